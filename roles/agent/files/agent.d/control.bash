# shellcheck shell=bash
# The agent's life: run, start, poll, stop.

# How `perch serve` ended: the signal or the exit code, and, where it ended by itself, its last words. Its status is
# kept, as it can be waited for only once.
serve_message() {
  local said signal
  [ -n "$SERVE_STATUS" ] || {
    wait_child "$SERVE"
    SERVE_STATUS=$STATUS
  }
  signal=$(signal_of "$SERVE_STATUS")
  if [ -n "$signal" ]; then
    SERVE_MESSAGE="perch serve on $HOST ended: by signal $signal"
    return
  fi
  said=$(last_message "$OUT/serve.log")
  SERVE_MESSAGE="perch serve on $HOST ended with exit code $SERVE_STATUS: ${said:-it said nothing; see serve.log}"
}

# This host's `perch serve`: every perch flow and every meeting on this host goes through it. Sets SERVE; false: it
# cannot, serve.log says why.
start_serve() {
  local port
  read -r OWN_ADDRESS port < <(jq -r --arg host "$HOST" '.hosts[$host] | "\(.address) \(.port)"' "$PLAN")
  rm -f "$OUT/control/ready"
  spawn "$LIMIT" /dev/null "$OUT/serve.log" "$ENGINE" serve --bind "$OWN_ADDRESS" --port "$port" --ready-file "$OUT/control/ready"
  SERVE=$CHILD SERVE_STATUS=''
  while alive "$SERVE"; do
    [ ! -e "$OUT/control/ready" ] || return 0
    sleep 0.05 # the ready file is the engine's word; there is no event for it
  done
  serve_message
  return 1
}

# The end, however it comes: children first, then the flows that never ran, then the state.
finish() {
  local code=$?
  trap - EXIT
  # a child that is told to end between fork and exec still has these traps: it must end nobody but itself
  [ "$BASHPID" -eq "$$" ] || exit "$code"
  trap '' TERM INT HUP
  end_children
  if [ "$code" -eq 0 ]; then
    write_state "done"
  else
    : "${STOP_REASON:=$(cat "$OUT/control/reason" 2>/dev/null || echo "the agent failed; agent.log says why")}"
    say "stopped: $STOP_REASON"
    rm -f "$OUT/control/reserve"
    write_state stopped "$STOP_REASON" # first: the disk may be full for the rest
    end_current "$STOP_REASON"
    not_run_rest "$STOP_REASON"
  fi
  exit "$code"
}

agent_run() {
  [ ! -e "$OUT/agent.json" ] || fail "$EXIT_HOST" "$OUT holds the results of an earlier run; give --out an empty directory"
  STARTED=$(now) STARTED_SECONDS=$EPOCHSECONDS FLOWS_DONE=0 STOP_REASON='' LIMIT=$(plan_limit)
  mapfile -t FLOWS < <(host_flows)
  FLOWS_TOTAL=${#FLOWS[@]}
  [ -z "$TOKEN_FILE" ] || export PERCH_TOKEN_FILE=$TOKEN_FILE
  write_file "$OUT/control/lease" </dev/null
  write_file "$OUT/control/reserve" <<<"a block for the last agent.json, should the disk be full then"
  write_file "$OUT/control/pid" <<<"$$ $(start_time $$)"
  trap finish EXIT
  trap 'exit "$EXIT_STOPPED"' TERM INT HUP
  write_state running
  setpriv --pdeathsig KILL "$here/perch-agent" watch --out "$OUT" --lease "$LEASE" --limit "$LIMIT" &
  say "$HOST walks $PLAN: $FLOWS_TOTAL flows, at most $LIMIT s"

  [ -x "$ENGINE" ] || stop_for "there is no engine at $ENGINE on $HOST: build it with \`make engine\`, or set agent_engine"
  collect_environment
  start_serve || stop_for "$SERVE_MESSAGE"
  write_file "$OUT/control/started" </dev/null
  own_interface
  collect_idle
  local flow
  for flow in "${FLOWS[@]}"; do
    alive "$SERVE" || { serve_message && stop_for "$SERVE_MESSAGE"; }
    do_flow "$flow"
    write_state running
  done
  say "$HOST is done: $FLOWS_DONE flows"
}

stop_for() {
  STOP_REASON=$1
  exit "$EXIT_HOST"
}

# Ends the agent when nobody has asked after it for the length of the lease (the controller is gone), or when the plan
# must be over. A process of its own, because the agent's shell waits for children most of the time.
agent_watch() {
  local began=$EPOCHSECONDS every=15 agent=$PPID reason=''
  [ "$LEASE" -eq 0 ] || [ "$LEASE" -ge 60 ] || every=$((LEASE / 4 + 1))
  while [ -z "$reason" ]; do
    timer "$every"
    wait "$CHILD"
    if [ "$LEASE" -gt 0 ] && [ $((EPOCHSECONDS - $(stat -c %Y "$OUT/control/lease"))) -gt "$LEASE" ]; then
      reason="no word from the controller for more than $LEASE s: it was ended or lost its way here"
    elif [ $((EPOCHSECONDS - began)) -gt $((LIMIT + every)) ]; then
      reason="the plan should have been over after $LIMIT s"
    fi
  done
  write_file "$OUT/control/reason" <<<"$reason"
  kill -TERM "$agent"
}

# A process is known by its number and its start (field 22 of /proc/N/stat): numbers are used again.
start_time() { awk '{ sub(/.*\) /, ""); print $20 }' "/proc/$1/stat" 2>/dev/null; }

# The running agent's process; false if it has ended.
agent_pid() {
  local pid started
  read -r pid started 2>/dev/null <"$OUT/control/pid" || return 1
  [ "$(start_time "$pid")" = "$started" ] && printf '%s' "$pid"
}

# Detached, in a session of its own, so that it outlives the connection that started it; the lease bounds that. Prints the
# seconds after which it will have ended in any case.
agent_start() {
  local pid code=0
  plan_limit
  setsid "$here/perch-agent" run "$@" </dev/null >>"$OUT/agent.log" 2>&1 &
  pid=$!
  while alive "$pid"; do
    [ ! -e "$OUT/control/started" ] || return 0
    sleep 0.05
  done
  wait "$pid" || code=$?
  [ "$code" -eq 0 ] || tail -n 3 "$OUT/agent.log" >&2
  exit "$code"
}

# For the controller, once a second or so: renews the lease; "alive" or "gone", then the progress since byte OFFSET.
agent_poll() {
  if agent_pid >/dev/null; then
    touch "$OUT/control/lease"
    echo alive
  else
    echo gone
  fi
  tail -c "+$((OFFSET + 1))" "$OUT/progress.jsonl" 2>/dev/null || true # there is none before the first flow
}

# Ends the agent if it runs. It has time to end its children (their last grace) before it is killed.
agent_stop() {
  local pid end=$((EPOCHSECONDS + 3 * KILL_AFTER))
  pid=$(agent_pid) || return 0
  echo "stopped by the controller" >"$OUT/control/reason"
  kill -TERM "$pid" || return 0
  while [ "$(agent_pid)" = "$pid" ]; do
    if [ "$EPOCHSECONDS" -gt "$end" ]; then
      kill -KILL "$pid" || true
      break
    fi
    sleep 0.1
  done
  echo stopped
}
