# shellcheck shell=bash
# The two ends of a flow meet at the server's host, through its `perch serve`. A meeting lasts until the other end comes,
# is found dead, or must have come if it were well; nothing is synchronised by sleeping.

# A waiting end asks this often whether the other is alive. Only those who wait in vain ask: meetings take milliseconds.
readonly PROBE_EVERY=5
# No answer for this long, after everyone had time to start, is death: twice the initial retransmission time of a lost
# SYN (1 s, then 2 s), for a host too busy to answer at once.
readonly PEER_SILENCE=6

declare -A DEAD=() # peer -> why; its later flows are skipped

# perch's one line about what went wrong, without its own name.
last_message() { sed -n '$s/^perch[a-z ]*: //; $p' "$1" 2>/dev/null || true; }

# peer_answers: does the flow's peer answer, with our token? A meeting of one party takes place at once.
peer_answers() {
  spawn 5 /dev/null "$OUT/control/probe.stderr" "$ENGINE" meet "$FLOW_PEER_ADDRESS" --port "$FLOW_PEER_PORT" \
    --flow "probe/$HOST" --parties 1 --timeout 3s
  wait_child "$CHILD"
  [ "$STATUS" -eq 0 ]
}

# peer_is_gone: no answer, and none for so long that it will not come. Keeps the time of the first silence in
# SILENT_SINCE.
peer_is_gone() {
  if peer_answers; then
    SILENT_SINCE=0
    return 1
  fi
  [ "$SILENT_SINCE" -ne 0 ] || SILENT_SINCE=$EPOCHSECONDS
  [ "$EPOCHSECONDS" -ge $((STARTED_SECONDS + START_WINDOW)) ] &&
    [ "$EPOCHSECONDS" -ge $((SILENT_SINCE + PEER_SILENCE)) ]
}

# meet_peer UNTIL FIRST_PROBE ID...: waits until the other end comes to one of these meetings, and sets MET to its name.
# False: MEET_STATE and MEET_MESSAGE say why. FIRST_PROBE: seconds before anyone is asked (a probe disturbs who measures).
meet_peer() {
  local until=$1 pause=$2
  shift 2
  local -A meets=()
  SILENT_SINCE=0
  while alive "$SERVE"; do
    [ ${#meets[@]} -gt 0 ] || start_meets "$until" "$@"
    if ! wait_any "$pause" "${!meets[@]}"; then
      pause=$PROBE_EVERY
    elif take_ended; then
      end_meets
      return 0
    else
      end_meets
      pause=1 # a meeting that was refused is tried again
      timer 0.5
      wait_child "$CHILD"
    fi
    if peer_will_not_come "$until"; then
      DEAD[$FLOW_PEER]=$MEET_MESSAGE
      say "$FLOW_ID: $MEET_MESSAGE; its later flows are skipped"
      end_meets
      return 1
    fi
  done
  end_meets
  serve_message
  MEET_STATE=not_run MEET_MESSAGE=$SERVE_MESSAGE
  return 1
}

# Looks at the meetings that have ended; true, with its name in MET, if one of them took place.
take_ended() {
  local pid
  for pid in "${!meets[@]}"; do
    ! alive "$pid" || continue
    wait_child "$pid"
    MET=${meets[$pid]}
    unset "meets[$pid]"
    [ "$STATUS" -ne 0 ] || return 0
  done
  return 1
}

# Dead, or alive and too late. Sets MEET_STATE and MEET_MESSAGE.
peer_will_not_come() {
  local said
  if peer_is_gone || { [ "$SILENT_SINCE" -ne 0 ] && [ "$EPOCHSECONDS" -ge "$1" ]; }; then
    said=$(last_message "$OUT/control/probe.stderr")
    MEET_STATE=peer_dead MEET_MESSAGE="$FLOW_PEER does not answer at $FLOW_PEER_ADDRESS port $FLOW_PEER_PORT: $said"
  elif [ "$EPOCHSECONDS" -ge "$1" ]; then
    said=$(last_message "$OUT/control/meet.stderr")
    MEET_STATE=meeting_failed MEET_MESSAGE="$FLOW_PEER is alive but did not come in time${said:+: $said}"
  else
    return 1
  fi
}

end_meets() {
  local pid
  for pid in "${!meets[@]}"; do end_child "$pid"; done
  meets=()
}

# One waiting `perch meet` for each name, in the caller's `meets`.
start_meets() {
  local seconds=$(($1 - EPOCHSECONDS)) id
  shift
  [ "$seconds" -gt 0 ] || seconds=1
  for id in "$@"; do
    spawn $((seconds + KILL_AFTER)) /dev/null "$OUT/control/meet.stderr" "$ENGINE" meet "$FLOW_SERVER_ADDRESS" \
      --port "$FLOW_SERVER_PORT" --flow "$FLOW_ID/$id" --timeout "${seconds}s"
    meets[$CHILD]=$id
  done
}
