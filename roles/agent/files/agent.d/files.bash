# shellcheck shell=bash
# What the agent says and writes. Every file appears whole (written beside its place, then renamed), so that whoever
# reads the directory while the agent runs, or after it was killed, never meets half a file.

say() { printf '%(%FT%TZ)T %s\n' -1 "$*" >&2; }

fail() {
  local code=$1
  shift
  say "perch-agent: $*"
  exit "$code"
}

# unwritten PATH WHY: output that cannot be written is the end: measuring on would lose every later result in silence. A soak goes on, as
# its keepers do, and says so once (soak.bash sets SURVIVE).
unwritten() {
  if [ "${SURVIVE:-false}" = true ]; then
    [ -n "${UNWRITTEN:-}" ] || say "$2; the soak goes on"
    UNWRITTEN=${UNWRITTEN:-$1}
    return 0
  fi
  STOP_REASON=$2
  fail "$EXIT_INTERNAL" "$2. What was measured before is kept in $OUT; run again."
}

fail_write() {
  rm -f "$1.new"
  unwritten "$1" "cannot write $1 on ${HOST:-this host}: the disk is full or the directory is gone: free space there"
}

now() { date -u +%FT%T.%3NZ; }

# Seconds with a fraction since the epoch; bash reads it without starting a process.
clock() { printf '%s' "${EPOCHREALTIME/,/.}"; }

# elapsed SINCE -> seconds, three decimals
elapsed() {
  local us=$((${EPOCHREALTIME//[.,]/} - ${1//[.,]/}))
  printf '%d.%03d' $((us / 1000000)) $((us % 1000000 / 1000))
}

# write_file PATH <content
write_file() {
  { cat >"$1.new" && mv -f "$1.new" "$1"; } 2>/dev/null || fail_write "$1"
}

# write_json PATH JQ-ARGUMENTS...: one object made by jq, on one line: the judge reads each line of a file apart
write_json() {
  local path=$1 json
  shift
  json=$(jq -nc "$@") || {
    unwritten "$path" "jq could not make $path; jq 1.6 or newer is needed, and memory for it"
    return 0
  }
  write_file "$path" <<<"$json"
}

append_line() {
  { printf '%s\n' "$2" >>"$1"; } 2>/dev/null || fail_write "$1"
}

# The directory must take a file before anything is started.
prepare_out() {
  { mkdir -p "$OUT/control" "$OUT/flows" && : >"$OUT/control/probe"; } 2>/dev/null ||
    fail "$EXIT_HOST" "cannot write to the directory $OUT as user $(id -un): it is missing, read-only or not yours." \
      "Give --out a directory that this user can write."
  rm -f "$OUT/control/probe"
  OUT=$(cd "$OUT" && pwd)
}

# agent.json: state running|done|stopped, message
write_state() {
  write_json "$OUT/agent.json" --arg run "$RUN" --arg plan "$PLAN_SHA256" --arg host "$HOST" --arg started "$STARTED" \
    --arg ended "$([ "$1" = running ] || now)" --arg state "$1" --arg message "${2:-}" --argjson total "$FLOWS_TOTAL" --argjson walked "$FLOWS_DONE" --argjson soak "${SOAK_JSON:-null}" '
    {schema: "perch.agent/1", $run, plan_sha256: $plan, $host, $started, ended: (if $ended == "" then null else $ended end), $state,
     flows_total: $total, flows_done: $walked, message: (if $message == "" then null else $message end)}
    + if $soak == null then {} else {$soak} end'
}
