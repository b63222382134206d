# shellcheck shell=bash disable=SC2154  # tests/soak/run sets here, root, WORK, PORT, MARK, PERCH and AGENT
# One compressed soak of two hosts, alpha and beta: network namespaces of this machine, joined by a cable, in which the agent and
# the engine run as on any host. Needs root. What a session leaves lies in $WORK/NAME: planted.jsonl, and run/ for reports/judge.

# begin_session NAME SECONDS [VARIABLE=VALUE...]: both hosts soak; the variables are beta's alone
begin_session() {
  NAME=$1 SECONDS_PLANNED=$2 DIR=$WORK/$1 NET=perch-soak-$$-$1 RUN_DIR=$WORK/$1/run
  shift 2
  BETA=("$@")
  mkdir -p "$RUN_DIR"/{inputs,raw}
  : >"$DIR/planted.jsonl"
  wire
  jq --arg run "$(date -u +%Y%m%dT%H%M%SZ)-$NAME" --arg created "$(now)" --arg duration "${SECONDS_PLANNED}s" --argjson port "$PORT" \
    '{$run, $created, limits: "local", soak_duration: $duration, suite: .,
      hosts: ([["alpha", "192.0.2.1"], ["beta", "192.0.2.2"]] | map({key: .[0], value: {perch_address: .[1], perch_fabric: "ethernet",
        perch_scope: "software", perch_backends: ["tcp", "ofi"], perch_port: $port}}) | from_entries)}' \
    "$here/suite.json" | "$root/.venv/bin/python" "$root/tests/planned.py" >"$DIR/plan.json"
  "$root/.venv/bin/python" "$root/tests/spelled.py" write "$RUN_DIR" <"$DIR/plan.json"
  "$root/.venv/bin/python" "$root/tests/spelled.py" shares "$DIR/shares" <"$DIR/plan.json"
  # no speed is judged here: what every soak is judged by is built in
  cp "$root/tests/fixtures/loopback/run/inputs/limits.json" "$RUN_DIR/inputs/"
  "$WORK/witness" >"$DIR/pauses" &
  WITNESS=$!
  # once: keepers of the first host read it while the second one starts
  (umask 077 && echo "a-secret-of-this-soak" >"$DIR/token")
  start_host alpha && start_host beta
  wait_for 60 all_measure || {
    echo "$NAME: not all flows have begun" >&2
    jq -r 'select(.kind == "flow" and .message) | "\(.id) (\(.role)): \(.message)"' "$RUN_DIR"/raw/*/flows.jsonl >&2
    return 1
  }
  BEGAN=$(epoch)
  echo "$NAME: soaks for $SECONDS_PLANNED s" >&2
}

wire() {
  local host
  for host in alpha beta; do ip netns add "$NET-$host"; done
  ip -n "$NET-alpha" link add p0 type veth peer name p0 netns "$NET-beta"
  ip -n "$NET-alpha" addr add 192.0.2.1/24 dev p0
  ip -n "$NET-beta" addr add 192.0.2.2/24 dev p0
  for host in alpha beta; do
    ip -n "$NET-$host" link set lo up
    ip -n "$NET-$host" link set p0 up
  done
}

inside() { ip netns exec "$NET-$1" "${@:2}"; }
now() { date -u +%FT%TZ; }
epoch() { echo "${EPOCHREALTIME/,/.}"; }

# agent HOST COMMAND [OPTION...]
agent() {
  local -a variables=()
  [ "$1" = alpha ] || variables=("${BETA[@]}")
  inside "$1" env "PERCH_TEST_MARK=$MARK" "${variables[@]}" "$AGENT" "soak-$2" --state "$DIR/$1.state" "${@:3}"
}

# options HOST: of its soak, in OPTIONS
options() {
  OPTIONS=(--plan "$DIR/shares/$1.json" --host "$1" --out "$RUN_DIR/raw/$1" --engine "$PERCH" --token-file "$DIR/token" --start-window 20)
}

start_host() {
  options "$1"
  agent "$1" start "${OPTIONS[@]}" --supervisor session >/dev/null
}

# planted ID MODE HOST KINDS TITLE: a fault is there from now on. MODE: found: one of these kinds is to be found; none: nothing at all
# is; said: DIR/ID.said appears when somebody has said it
planted() {
  PLANTED=$(jq -nc --arg id "$1" --arg mode "$2" --arg host "$3" --arg kinds "$4" --arg title "$5" --argjson start "$(epoch)" --arg session "$NAME" \
    '{$session, $id, $mode, $host, kinds: ($kinds | split(" ")), $title, $start}')
  echo "$NAME, $(seconds_in) s: $5" >&2
}

# ... and stays to the end, or has been taken away.
stays() { jq -c . <<<"$PLANTED" >>"$DIR/planted.jsonl"; }
taken_away() { jq -c --argjson at "$(epoch)" '. + {end: $at}' <<<"$PLANTED" >>"$DIR/planted.jsonl"; }

seconds_in() { awk -v a="$BEGAN" -v b="$(epoch)" 'BEGIN { printf "%.0f", b - a }'; }

# until_second N: of the session; there is nothing to wait for but the time itself
until_second() {
  local left
  left=$(awk -v at="$1" -v a="$BEGAN" -v b="$(epoch)" 'BEGIN { d = at - (b - a); printf "%.2f", (d > 0 ? d : 0) }')
  sleep "$left"
}

# wait_for SECONDS COMMAND...: until it holds
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# Each flow of the plan has an interval.
all_measure() {
  [ "$(grep -ls '"kind":"interval"' "$RUN_DIR"/raw/*/flows/*/*/*/*/*/client.soak | wc -l)" -eq "$(jq .rounds.flows "$RUN_DIR/plan.json")" ]
}

has_ended() { tail -n 1 "$RUN_DIR/raw/$1/flows.jsonl" | jq -e '.kind == "end" and .state == "done"'; }

# finish_session: until both hosts are over, and all is put away
finish_session() {
  local host status=0
  for host in alpha beta; do
    wait_for $((SECONDS_PLANNED + 60)) has_ended "$host" || {
      echo "$NAME: $host did not come to its end" >&2
      status=1
    }
  done
  end_session
  return "$status"
}

# Whatever still runs in the two namespaces ends, and they with it.
end_session() {
  local host pid
  [ -n "${NET:-}" ] || return 0
  kill "$WITNESS" 2>/dev/null || :
  for host in alpha beta; do
    agent "$host" stop >/dev/null 2>&1 || :
    for pid in $(ip netns pids "$NET-$host" 2>/dev/null); do kill -KILL "$pid" 2>/dev/null || :; done
    ip netns del "$NET-$host" 2>/dev/null || :
  done
  ! mountpoint -q "$RUN_DIR/raw/alpha" || { cp -a "$RUN_DIR/raw/alpha" "$DIR/alpha.kept" && umount "$RUN_DIR/raw/alpha" && rmdir "$RUN_DIR/raw/alpha" && mv "$DIR/alpha.kept" "$RUN_DIR/raw/alpha"; }
  NET=
}
