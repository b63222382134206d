# shellcheck shell=bash
# The clients of a soak: this host's keepers (`perch lat|bw --soak`). Each goes on by itself over lost connections; one that ends
# before its time is started anew and goes on with its file.

# What the agent keeps of a flow across restarts, by the flow's index in FLOWS: FLOW_IDS, FLOW_ROLES, FLOW_TURNS. Of a client of
# the turn that runs: CLIENT_OPEN (not over yet), CLIENT_PID (runs now), CLIENT_DUE_MS (starts then), CLIENT_DELAY_MS,
# CLIENT_SINCE_MS (its start), CLIENT_SECONDS (its deadline), CLIENT_STATUS (how it ended).
declare -A CLIENT_OPEN=() CLIENT_PID=() CLIENT_DUE_MS=() CLIENT_DELAY_MS=() CLIENT_SINCE_MS=() CLIENT_SECONDS=() CLIENT_STATUS=()

take_clients() {
  mapfile -t FLOW_IDS < <(printf '%s\n' "${FLOWS[@]}" | jq -r '.id')
  mapfile -t FLOW_ROLES < <(printf '%s\n' "${FLOWS[@]}" | jq -r '.role')
  mapfile -t FLOW_TURNS < <(printf '%s\n' "${FLOWS[@]}" | jq -r '.round')
}

# Those whose result lies there: on a full disk one may have been refused, to be written at the end.
count_done() {
  local i
  FLOWS_DONE=0
  for i in "${!FLOW_IDS[@]}"; do
    [ ! -e "$OUT/flows/${FLOW_IDS[i]}/${FLOW_ROLES[i]}.json" ] || FLOWS_DONE=$((FLOWS_DONE + 1))
  done
}

# flow_file I: where the first start of flow I is kept, by whichever agent: boot, passed ms, time, counters before
flow_file() { printf '%s' "$OUT/control/flow.$1"; }

# use_flow I: sets FLOW_* for it
use_flow() {
  read_flow "${FLOWS[$1]}"
  FLOW_DIR=$OUT/flows/$FLOW_ID FLOW_EXIT=null FLOW_BEFORE=''
  mkdir -p "$FLOW_DIR" 2>/dev/null || fail_write "$FLOW_DIR"
}

# begin_flow I: its first start. The counters are read before any byte of it.
begin_flow() {
  passed
  counters_before
  [ -e "$(flow_file "$1")" ] || write_file "$(flow_file "$1")" <<<"$BOOT $PASSED_MS $(now) $FLOW_BEFORE"
}

# recall_flow I: since when it ran, and the counters before it. They begin anew with each boot: then there are none.
recall_flow() {
  local boot began elapsed
  passed
  read -r boot began FLOW_STARTED FLOW_BEFORE 2>/dev/null <"$(flow_file "$1")" || {
    boot='' began=$PASSED_MS FLOW_STARTED=$(now) FLOW_BEFORE=''
  }
  if [ "$boot" = "$BOOT" ]; then
    route_to "$FLOW_PEER_ADDRESS"
    devices_for "$OWN_INTERFACE" "$INTERFACE" "${FLOW_DEVICES[@]}"
  else
    FLOW_BEFORE=''
  fi
  elapsed=$((PASSED_MS > began ? PASSED_MS - began : 0))
  # flow_result counts from a time on the wall; the time that passed is of the clock that nobody steps
  FLOW_CLOCK=$((${EPOCHREALTIME//[.,]/} - elapsed * 1000))
}

# How client.soak of the flow that is set ends: none (no such file), open (it can go on), stopped (it was told to end, and can go
# on), or whole and its exit code.
soak_end() {
  local file=$FLOW_DIR/client.soak
  SOAK_END=none
  [ -s "$file" ] || return 0
  SOAK_END=$(tail -n 1 "$file" | jq -Rr '(fromjson? // {})
    | if (.kind == "latency" or .kind == "bandwidth" | not) then "open"
      elif .soak.stopped then "stopped" else "whole \(.error.code // 0)" end' 2>/dev/null) || SOAK_END=open
}

begin_turn() {
  local i
  for i in "${!FLOW_IDS[@]}"; do
    [ "${FLOW_TURNS[i]}" -eq "$TURN" ] || continue
    if [ "${FLOW_ROLES[i]}" = client ]; then begin_client "$i"; else begin_server "$i"; fi
  done
  write_children
}

begin_server() {
  [ ! -e "$OUT/flows/${FLOW_IDS[$1]}/server.json" ] || return 0
  use_flow "$1"
  begin_flow "$1"
}

# begin_client I: starts it, unless it is over already or its turn was missed.
begin_client() {
  [ ! -e "$OUT/flows/${FLOW_IDS[$1]}/client.json" ] || return 0
  use_flow "$1"
  soak_end
  passed
  if [[ $SOAK_END = whole* ]]; then
    recall_flow "$1"
    end_flow "done" "${SOAK_END#whole }" "its agent ended before it could keep the exit code; this is the one of the record"
  elif [ "$SOAK_END" = none ] && [ "$PASSED_MS" -ge "$TURN_END_MS" ]; then
    recall_flow "$1"
    end_flow not_run '' "no agent ran on $HOST in its turn: agent.json has when there was one"
  else
    CLIENT_OPEN[$1]=$UPTIME_MS CLIENT_DELAY_MS[$1]=0
    begin_flow "$1"
    progress start null
    start_client "$1"
  fi
}

# start_client I: of the flow that is set
start_client() {
  passed
  CLIENT_SINCE_MS[$1]=$UPTIME_MS
  CLIENT_SECONDS[$1]=$(((TURN_END_MS > PASSED_MS ? TURN_END_MS - PASSED_MS : 0) / 1000 + START_WINDOW + ROUND_GRACE))
  soak_spawn "${CLIENT_SECONDS[$1]}" "$FLOW_DIR" client.stdout client.stderr "${FLOW_ARGV[@]}"
  CLIENT_PID[$1]=$CHILD
  unset "CLIENT_DUE_MS[$1]"
}

# A look at each client of this turn: who has ended, and who is due.
look_at_clients() {
  local i changed=false
  uptime_ms
  for i in "${!CLIENT_OPEN[@]}"; do
    if [ -n "${CLIENT_PID[$i]:-}" ]; then
      ! alive "${CLIENT_PID[$i]}" || continue
      wait_child "${CLIENT_PID[$i]}"
      unset "CLIENT_PID[$i]"
      client_ended "$i" "$STATUS"
      changed=true
    elif [ "$UPTIME_MS" -ge "${CLIENT_DUE_MS[$i]}" ]; then
      use_flow "$i"
      start_client "$i"
      changed=true
    fi
  done
  [ "$changed" = false ] || write_children
}

# client_ended I STATUS: over, or to be started anew. A signal that nobody here has sent is a crash: the file goes on. What cannot
# connect, or finds its address or device not there yet after a reboot, is tried again for as long as hosts start apart.
client_ended() {
  local status=$2 again='' said
  use_flow "$1"
  soak_end
  passed
  said=$(last_message "$FLOW_DIR/client.stderr")
  if [ "$status" -gt 128 ] && [[ $SOAK_END != whole* ]] && [ "$PASSED_MS" -lt "$TURN_END_MS" ]; then
    again="ended by signal $(signal_of "$status")"
  elif [ "$SOAK_END" = none ] && [ $((UPTIME_MS - CLIENT_OPEN[$1])) -lt $((START_WINDOW * 1000)) ]; then
    case $status in
      4) again="has no connection yet: $said" ;;
      3) [ "$(wc -l <"$OUT/control/boots.jsonl")" -lt 2 ] || again="cannot run yet: $said" ;;
    esac
  fi
  if [ -n "$again" ]; then
    [ $((UPTIME_MS - CLIENT_SINCE_MS[$1])) -lt "$RESTART_LAST_MS" ] || CLIENT_DELAY_MS[$1]=0
    later "${CLIENT_DELAY_MS[$1]}"
    CLIENT_DELAY_MS[$1]=$DELAY_MS CLIENT_DUE_MS[$1]=$((UPTIME_MS + DELAY_MS))
    if [ "$status" -ne 4 ]; then
      CLIENT_RESTARTS=$((CLIENT_RESTARTS + 1))
      soak_event client_restarted "$FLOW_ID" "$FLOW_ID $again; it is started anew"
      soak_state running
    fi
    return
  fi
  recall_flow "$1"
  CLIENT_STATUS[$1]=$status
  FLOW_DEADLINE=${CLIENT_SECONDS[$1]}
  if [ "$SOAK_END" = none ] && [ "$status" -eq 4 ]; then
    end_flow peer_dead '' "no connection within $START_WINDOW s: $said"
  else
    end_flow "done" "$status" "$([ "$status" -eq 0 ] || echo "$said")"
  fi
  unset "CLIENT_OPEN[$1]"
}

# end_flow STATE EXIT MESSAGE: the result of the flow that is set
end_flow() {
  flow_result "$@"
  progress end "$FLOW_EXIT"
  soak_state running
}

# The servers' ends of the turn: of a soak's flow there is nothing but `perch serve`.
end_turn() {
  local i
  for i in "${!FLOW_IDS[@]}"; do
    if [ "${FLOW_TURNS[i]}" -ne "$TURN" ] || [ "${FLOW_ROLES[i]}" = client ]; then continue; fi
    [ "$TURN" -eq $((TURNS - 1)) ] || end_server "$i" # others may still measure with this host in the last one
  done
}

end_server() {
  [ ! -e "$OUT/flows/${FLOW_IDS[$1]}/server.json" ] || return 0
  use_flow "$1"
  recall_flow "$1"
  end_flow "done" '' ''
}

# Tells all keepers to end, which takes a second, and ends those that do not.
end_clients() {
  local i end
  for i in "${!CLIENT_PID[@]}"; do ! alive "${CLIENT_PID[$i]}" || kill -TERM "${CLIENT_PID[$i]}" 2>/dev/null || true; done
  end=$((SECONDS + 3))
  for i in "${!CLIENT_PID[@]}"; do
    wait_any "$((end > SECONDS ? end - SECONDS : 0))" "${CLIENT_PID[$i]}" || kill_group "${CLIENT_PID[$i]}"
    wait_child "${CLIENT_PID[$i]}"
    CLIENT_STATUS[$i]=$STATUS
  done
}

# close_flows REASON: every flow that has no result yet gets one, and nothing goes on any more.
close_flows() {
  local i
  for i in "${!FLOW_IDS[@]}"; do
    if [ -e "$OUT/flows/${FLOW_IDS[i]}/${FLOW_ROLES[i]}.json" ] || [ ! -e "$(flow_file "$i")" ]; then continue; fi
    use_flow "$i"
    recall_flow "$i"
    soak_end
    if [ "$FLOW_ROLE" = server ]; then
      flow_result "done" '' "$1"
    elif [ "$SOAK_END" = none ]; then
      flow_result not_run '' "${1:-it had not begun}"
    elif [ "$SOAK_END" = open ]; then
      flow_result "done" "${CLIENT_STATUS[$i]:-}" "${1:+$1; }it ended without the record of its whole"
    elif [ "$SOAK_END" = stopped ]; then
      flow_result "done" "${CLIENT_STATUS[$i]:-0}" "${1:-stopped}"
    else
      flow_result "done" "${SOAK_END#whole }" "$1"
    fi
  done
  not_run_rest "${1:-the soak was over before it began}"
}
