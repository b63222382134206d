# shellcheck shell=bash
# One flow, at this host's end of it.

# From here on time is the flow's.
start_clock() { FLOW_STARTED=$(now) FLOW_CLOCK=$EPOCHREALTIME; }

# flow_result STATE EXIT MESSAGE: the flow's .json. EXIT empty: no command ran. Ended by timeout(1): 124, or 137 when
# only SIGKILL helped.
flow_result() {
  local timed_out=false signal='' message=$3 seconds
  seconds=$(elapsed "$FLOW_CLOCK")
  counters_after
  if [ "$2" = 124 ] || { [ "$2" = 137 ] && [ "${seconds%.*}" -ge "$FLOW_DEADLINE" ]; }; then
    timed_out=true signal=TERM message="ended at its deadline of $FLOW_DEADLINE s${3:+: $3}"
  elif [ -n "$2" ]; then
    signal=$(signal_of "$2")
  fi
  write_json "$FLOW_DIR/$FLOW_ROLE.json" --arg run "$RUN" --arg flow "$FLOW_ID" --arg role "$FLOW_ROLE" --arg host "$HOST" \
    --arg started "$FLOW_STARTED" --arg ended "$(now)" --argjson elapsed "$seconds" \
    --arg exit "$2" --arg signal "$signal" --argjson timed_out "$timed_out" --arg state "$1" --arg message "$message" \
    --argjson counters "$COUNTERS" \
    --args '
    def or_null: if . == "" then null else . end;
    {schema: "perch.flow/1", $run, $flow, $role, $host, argv: $ARGS.positional, $started, $ended, elapsed_s: $elapsed,
     exit: ($exit | or_null | if . then tonumber else . end), signal: ($signal | or_null), $timed_out, $state,
     message: ($message | or_null), $counters}' -- "${FLOW_ARGV[@]}"
  FLOW_EXIT=${2:-null} FLOWS_DONE=$((FLOWS_DONE + 1))
  [ -z "$message" ] || say "$FLOW_ID ($FLOW_ROLE): $1: $message"
}

# progress EVENT EXIT: a line for whoever watches
progress() {
  append_line "$OUT/progress.jsonl" "$(jq -nc --arg time "$(now)" --arg event "$1" --arg flow "$FLOW_ID" \
    --arg title "$FLOW_TITLE" --arg client "$FLOW_CLIENT" --arg server "$FLOW_SERVER" --arg role "$FLOW_ROLE" \
    --argjson index "$FLOW_INDEX" --argjson total "$FLOW_TOTAL" --argjson exit "$2" --argjson remaining "$FLOW_REMAINING" '
    {$time, $event, $flow, $title, $client, $server, $role, $index, $total, $exit, remaining_s: ($remaining | round)}')"
}

do_flow() {
  read_flow "$1"
  FLOW_DIR=$OUT/flows/$FLOW_ID FLOW_EXIT=null FLOW_BEGAN=false FLOW_BEFORE=''
  start_clock
  mkdir -p "$FLOW_DIR" 2>/dev/null || fail_write "$FLOW_DIR"
  progress start null
  if [ -n "${DEAD[$FLOW_PEER]:-}" ]; then
    flow_result peer_dead '' "skipped: ${DEAD[$FLOW_PEER]}"
  else
    "${FLOW_ROLE}_flow"
  fi
  progress end "$FLOW_EXIT"
}

# Programs whose package has another name.
declare -Ar PACKAGE_OF=([ib_send]=perftest [ib_write]=perftest [ib_read]=perftest [ib_atomic]=perftest
  [cxi_send]=cray-libcxi-utils [cxi_write]=cray-libcxi-utils [cxi_read]=cray-libcxi-utils [cxi_atomic]=cray-libcxi-utils)

missing_tool() {
  [ ${#FLOW_ARGV[@]} -gt 0 ] && ! command -v "${FLOW_ARGV[0]}" >/dev/null &&
    MISSING="${FLOW_ARGV[0]} is not installed on $HOST: install the package ${PACKAGE_OF[${FLOW_ARGV[0]%_*}]:-of that name}, or leave it out of perch_tools"
}

# Until the start of the flow: as long as a living peer could take to come to this round.
meet_start() { meet_peer "$FLOW_LATEST" "$PROBE_EVERY" "$@"; }

# Until its end: the client's deadline and its last grace. Nobody is asked before the flow should be over, which is at
# about a third of its deadline.
meet_done() { meet_peer $((EPOCHSECONDS + FLOW_DEADLINE + ROUND_GRACE)) "$((FLOW_DEADLINE / 2 + PROBE_EVERY))" "done"; }

# The client's result is written before the ends meet again: it stays, whatever happens to the server.
client_flow() {
  local -a ids=(start)
  [ "$FLOW_EXTERNAL" = false ] || ids+=(refused)
  if ! meet_start "${ids[@]}"; then
    flow_result "$MEET_STATE" '' "$MEET_MESSAGE"
    return
  fi
  if [ "$MET" = refused ]; then
    flow_result not_run '' "the server's end on $FLOW_PEER could not start; its server.json says why"
    return
  fi
  start_clock
  if missing_tool; then
    flow_result not_run '' "$MISSING"
  else
    counters_before
    spawn "$FLOW_DEADLINE" "$FLOW_DIR/client.stdout" "$FLOW_DIR/client.stderr" "${FLOW_ARGV[@]}"
    wait_child "$CHILD"
    flow_result "done" "$STATUS" "$([ "$STATUS" -eq 0 ] || tail -n 1 "$FLOW_DIR/client.stderr")"
  fi
  meet_done || true # said and remembered there; the result stands
}

# perch's clients use the `perch serve` that runs already; other tools have a server of their own.
server_flow() {
  local server=''
  if [ "$FLOW_EXTERNAL" = true ] && ! start_server; then
    meet_start refused || true # so that the client need not wait for nothing
    return
  fi
  server=$CHILD
  counters_before
  if ! meet_start start; then
    FLOW_BEFORE=''
    [ "$FLOW_EXTERNAL" = false ] || end_child "$server"
    flow_result "$MEET_STATE" '' "$MEET_MESSAGE"
    return
  fi
  FLOW_BEGAN=true
  if ! meet_done; then
    STATUS=''
    [ "$FLOW_EXTERNAL" = false ] || end_child "$server"
    end_unseen "$MEET_STATE" "$STATUS" "$MEET_MESSAGE"
  elif [ "$FLOW_EXTERNAL" = false ]; then
    flow_result "done" '' ''
  else
    finish_server "$server"
  fi
}

# end_unseen STATE EXIT MESSAGE: a server's end of a flow that had begun. Where this side failed, the client may have
# measured to the end all the same: its own result says, and this one is not "not run".
end_unseen() {
  local state=$1
  [ "$state" != not_run ] || state="done"
  flow_result "$state" "$2" "the flow had begun, and its end was not seen here: $3"
}

# False: the flow's result says why it cannot run.
start_server() {
  local seconds=$((FLOW_LATEST - EPOCHSECONDS + FLOW_DEADLINE + 2 * ROUND_GRACE)) reason
  if missing_tool; then
    flow_result not_run '' "$MISSING"
    return 1
  fi
  spawn "$seconds" "$FLOW_DIR/server.stdout" "$FLOW_DIR/server.stderr" "${FLOW_ARGV[@]}"
  local server=$CHILD
  if ! wait_listening "$server" "$FLOW_LISTEN_PORT" "$ROUND_GRACE"; then
    end_child "$server"
    reason=$(cat "$FLOW_DIR/server.stderr" "$FLOW_DIR/server.stdout" | tr -s '\n\t ' '   ' | cut -c 1-300)
    flow_result not_run "$STATUS" "${FLOW_ARGV[0]} did not come to listen on port $FLOW_LISTEN_PORT of $HOST (is another program using it?): $reason"
    return 1
  fi
  CHILD=$server
}

# One-shot servers end by themselves once the client is gone; the others are told to.
finish_server() {
  if wait_any 2 "$1"; then wait_child "$1"; else end_child "$1"; fi
  flow_result "done" "$STATUS" ''
}

# The agent stops in the middle of a flow.
end_current() {
  [ "${FLOW_BEGAN:-false}" = false ] || [ -e "$FLOW_DIR/server.json" ] || end_unseen not_run '' "$1"
}

# Flows that will not run any more get their result all the same. One jq for all: there may be thousands.
not_run_rest() {
  local path json
  while IFS=$'\t' read -r path json; do
    [ ! -e "$OUT/flows/$path" ] || continue
    mkdir -p "$OUT/flows/${path%/*}" 2>/dev/null || fail_write "$OUT/flows/$path"
    write_file "$OUT/flows/$path" <<<"$json"
  done < <(printf '%s\n' "${FLOWS[@]}" | jq -r --arg run "$RUN" --arg host "$HOST" --arg message "$1" '
    "\(.id)/\(.role).json\t" + ({schema: "perch.flow/1", $run, flow: .id, role, host: $host, argv, started: null, ended: null,
      elapsed_s: null, exit: null, signal: null, timed_out: false, state: "not_run", message: $message} | tojson)')
}
