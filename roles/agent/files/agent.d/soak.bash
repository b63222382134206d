# shellcheck shell=bash
# A soak on this host: `perch serve`, the sampler, and turn after turn the clients of the plan's rounds, all of a round at once,
# until its time is over. Nobody meets and nobody has a lease: the hosts agree by the plan and by when they were started, keepers
# try again while the other end is not there, and whatever ends here is started anew. What must outlive a crash or a reboot lies
# in control/: session.json (what was asked), clock (since when), turn, pid, boots.jsonl.

# Seconds between two looks at the children; a look costs no process, and 20 children a tenth of a millisecond.
readonly TICK_S=0.5

# Milliseconds before what has ended is started anew: doubled from the first to the last (the engine's own are 0.1 s and 5 s), and
# the first again after it has lived for as long as the last.
readonly RESTART_FIRST_MS=200 RESTART_LAST_MS=5000

# Seconds that a server stays without a client after the last turn, as a keeper elsewhere may be between two attempts to connect:
# those are at most 5 s apart (BACK_OFF_LAST_NS of engine/src/cli/soak.c). Tests have no such keeper.
LINGER=${PERCH_SOAK_LINGER:-6}
# The same where everyone is stopped: the controller tells all hosts at about the same time, and has 10 s.
readonly LINGER_STOPPED=2

# soak_event EVENT FLOW MESSAGE: a line for whoever watches; FLOW - : none
soak_event() {
  say "$1: $3"
  append_line "$OUT/progress.jsonl" "$(jq -nc --arg time "$(now)" --arg event "$1" --arg flow "$2" --arg message "$3" \
    '{$time, $event, flow: (if $flow == "-" then null else $flow end), $message}')"
}

# What the plan says of the soak: DURATION_MS, INTERVAL_MS, TURN_MS and TURNS.
soak_plan() {
  read -r DURATION_MS INTERVAL_MS TURN_MS TURNS < <(jq -r '.soak as $s | (.rounds | length) as $turns
    | [$s.duration_s, $s.interval_s, ($s.turn_s // $s.duration_s) | . * 1000 | round] + [$turns] | map(tostring) | join(" ")' "$PLAN")
}

# last_sample BOOT: wall and uptime of the last sample of that boot, in milliseconds; nothing where it has none. The very last line may be half a one.
last_sample() {
  tail -n 2 "$OUT/samples.jsonl" 2>/dev/null | jq -nRr --arg boot "$1" '[inputs | fromjson? | objects | select(.boot_id == $boot)
    | [.time_s, .uptime_s | (tonumber? // empty) * 1000 | floor] | select(length == 2)] | .[-1] // empty | map(tostring) | join(" ")' 2>/dev/null
}

# The session's clock, for passed: it had passed CLOCK_PASSED_MS at that uptime of that boot, and began when the wall said CLOCK_BEGUN_MS.
read_clock() { read -r CLOCK_BOOT CLOCK_UPTIME_MS CLOCK_PASSED_MS CLOCK_BEGUN_MS <"$OUT/control/clock"; }

# take_clock: this boot's clock goes on where the last one was. Across a reboot only the wall can say how long it took, and that since the last
# sample alone: one that was set before is no time that passed.
take_clock() {
  local sampled_wall='' sampled_uptime=''
  uptime_ms
  [ ! -s "$OUT/control/clock" ] || read_clock
  [ "$CLOCK_BOOT" != "$BOOT" ] || return 0
  wall_ms
  if [ -n "$CLOCK_BOOT" ]; then
    read -r sampled_wall sampled_uptime < <(last_sample "$CLOCK_BOOT") || true
    if [ -n "$sampled_uptime" ] && [ "$sampled_uptime" -ge "$CLOCK_UPTIME_MS" ]; then
      CLOCK_PASSED_MS=$((CLOCK_PASSED_MS + sampled_uptime - CLOCK_UPTIME_MS + (WALL_MS > sampled_wall ? WALL_MS - sampled_wall : 0)))
    else
      CLOCK_PASSED_MS=$((WALL_MS > CLOCK_BEGUN_MS ? WALL_MS - CLOCK_BEGUN_MS : 0))
    fi
  else
    CLOCK_BEGUN_MS=$WALL_MS
    local ahead_ms=$((BEGIN * 1000 - WALL_MS))
    # a moment further away than hosts start apart is of another clock; one that has just passed is everybody's all the same
    if [ "$BEGIN" -gt 0 ] && [ "${ahead_ms#-}" -le $((START_WINDOW * 1000)) ]; then
      CLOCK_BEGUN_MS=$((BEGIN * 1000))
    elif [ "$BEGIN" -gt 0 ]; then
      say "the first turn begins at once: its time, $(date -u -d "@$BEGIN" +%FT%TZ), is not within $START_WINDOW s from now"
    fi
    CLOCK_PASSED_MS=$((WALL_MS - CLOCK_BEGUN_MS))
  fi
  CLOCK_BOOT=$BOOT CLOCK_UPTIME_MS=$UPTIME_MS
  write_file "$OUT/control/clock" <<<"$CLOCK_BOOT $CLOCK_UPTIME_MS $CLOCK_PASSED_MS $CLOCK_BEGUN_MS"
}

wall_ms() { WALL_MS=$((${EPOCHREALTIME//[.,]/} / 1000)); }

# later MS: how long to wait after the MS of the last time, in DELAY_MS
later() {
  DELAY_MS=$(($1 == 0 ? RESTART_FIRST_MS : $1 * 2))
  [ "$DELAY_MS" -le "$RESTART_LAST_MS" ] || DELAY_MS=$RESTART_LAST_MS
}

# soak_spawn SECONDS DIR STDOUT STDERR COMMAND...: as spawn, in DIR, and adding to STDERR: what was said before a restart stays.
# A full disk ends nothing: then nobody can read what is said.
soak_spawn() {
  local seconds=$1 dir=$2 out=$3 err=$4
  shift 4
  (
    cd "$dir" || exit "$EXIT_INTERNAL"
    { : >"$out"; } 2>/dev/null || out=/dev/null
    { : >>"$err"; } 2>/dev/null || err=/dev/null
    exec setpriv --pdeathsig TERM timeout --kill-after="$KILL_AFTER" "$seconds" setpriv --pdeathsig KILL "$@" \
      </dev/null >"$out" 2>>"$err"
  ) &
  CHILD=$!
}

# The groups that the sampler looks at.
write_children() {
  local i lines=''
  [ -z "$SERVE" ] || lines="serve - $SERVE"$'\n'
  for i in "${!CLIENT_PID[@]}"; do lines+="keeper ${FLOW_IDS[i]} ${CLIENT_PID[$i]}"$'\n'; done
  write_file "$OUT/control/children" < <(printf '%s' "$lines")
}

spawn_serve() {
  rm -f "$OUT/control/ready"
  uptime_ms
  SERVE_SINCE_MS=$UPTIME_MS SERVE_STATUS=''
  soak_spawn "$LIMIT" "$OUT" /dev/null "$OUT/serve.log" "$ENGINE" serve --bind "$OWN_ADDRESS" --port "$OWN_PORT" \
    --ready-file "$OUT/control/ready"
  SERVE=$CHILD
  write_children
}

# The first `perch serve` of this agent; false: it ended, serve.log says why.
first_serve() {
  spawn_serve
  while alive "$SERVE"; do
    [ ! -e "$OUT/control/ready" ] || return 0
    heed
    sleep 0.05 # the ready file is the engine's word; there is no event for it
  done
  serve_message
  SERVE=''
  return 1
}

# A server that ended is started anew: the keepers elsewhere note the gap.
keep_serve() {
  uptime_ms
  if [ -n "$SERVE" ]; then
    ! alive "$SERVE" || return 0
    serve_message
    [ $((UPTIME_MS - SERVE_SINCE_MS)) -lt "$RESTART_LAST_MS" ] || SERVE_DELAY_MS=0
    later "$SERVE_DELAY_MS"
    SERVE='' SERVE_DELAY_MS=$DELAY_MS SERVE_DUE_MS=$((UPTIME_MS + DELAY_MS))
    write_children
    soak_event serve_ended - "$SERVE_MESSAGE"
  elif [ "$UPTIME_MS" -ge "$SERVE_DUE_MS" ]; then
    SERVE_RESTARTS=$((SERVE_RESTARTS + 1))
    spawn_serve
    soak_event serve_restarted - "perch serve was started anew"
    soak_state running
  fi
}

# A process of its own; see sample.bash. It ends with the agent.
keep_sampler() {
  uptime_ms
  if [ -n "$SAMPLER" ]; then
    ! alive "$SAMPLER" || return 0
    wait_child "$SAMPLER"
    SAMPLER='' SAMPLER_DUE_MS=$((UPTIME_MS + RESTART_LAST_MS))
    soak_event sampler_ended - "the sampler ended with exit code $STATUS; it is started anew"
  elif [ "$UPTIME_MS" -ge "$SAMPLER_DUE_MS" ]; then
    setpriv --pdeathsig KILL "$here/perch-agent" soak-sample --out "$OUT" &
    SAMPLER=$!
  fi
}

# The last sample, and the sampler's end.
end_sampler() {
  [ -n "$SAMPLER" ] && alive "$SAMPLER" || return 0
  echo end >&"$SAMPLER_BELL"
  wait_any 3 "$SAMPLER" || true
  end_child "$SAMPLER"
  [ "$STATUS" -ne "$EXIT_INTERNAL" ] || UNWRITTEN=$OUT/samples.jsonl
}

# Whether somebody has asked the agent to end.
heed() { [ "$ENDING" = false ] || exit "$EXIT_STOPPED"; }

# One look at everything. Nobody rings the agent's bell: reading it is a wait that costs no process.
tick() {
  read -rt "$TICK_S" -u "$BELL" _ || true
  heed
  keep_serve
  keep_sampler
  look_at_clients
}

# What agent.json says of the soak.
soak_json() {
  passed
  SOAK_JSON=$(jq -nc --slurpfile boots "$OUT/control/boots.jsonl" --slurpfile session "$OUT/control/session.json" --argjson passed "$PASSED_MS" \
    --argjson duration "$DURATION_MS" --argjson interval "$INTERVAL_MS" --argjson serve "$SERVE_RESTARTS" --argjson client "$CLIENT_RESTARTS" \
    --arg boot "$CLOCK_BOOT" --argjson uptime "$CLOCK_UPTIME_MS" --argjson before "$CLOCK_PASSED_MS" --argjson begun "${CLOCK_BEGUN_MS:-null}" \
    --arg cpus "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)" \
    --arg unwritten "${UNWRITTEN:-}" --arg asked "$(cat "$OUT/control/stop_asked" 2>/dev/null || true)" --arg samples "$(grep -c . "$OUT/samples.jsonl" 2>/dev/null || true)" \
    --arg last "$(tail -n 1 "$OUT/samples.jsonl" 2>/dev/null)" '
    {supervisor: $session[0].supervisor, unit: $session[0].unit, duration_s: ($duration / 1000), interval_s: ($interval / 1000),
     begun: ($begun | if . == null then . else (. / 1000 | floor | todate[:-1]) + "." + (. % 1000 + 1000 | tostring[1:]) + "Z" end),
     clock: (if $boot == "" then null else {boot_id: $boot, uptime_s: ($uptime / 1000), passed_s: ($before / 1000)} end),
     passed_s: ($passed / 1000), cpus: $cpus, $boots,
     serve_restarts: $serve, client_restarts: $client, samples: ($samples | tonumber? // 0), samples_dropped: ($last | fromjson? // {} | .dropped // 0),
     unwritten: (if $unwritten == "" then null else $unwritten end), stop_asked_s: ($asked | tonumber? // null | if . == null then . else . / 1000 end)}') || SOAK_JSON=${SOAK_JSON:-null}
}

# soak_state STATE [MESSAGE]
soak_state() {
  soak_json
  count_done
  write_state "$@"
}

# What an agent before this one had counted.
take_counts() {
  SERVE_RESTARTS=0 CLIENT_RESTARTS=0
  [ ! -e "$OUT/agent.json" ] || read -r STARTED SERVE_RESTARTS CLIENT_RESTARTS < <(jq -r '"\(.started) \(.soak.serve_restarts) \(.soak.client_restarts)"' "$OUT/agent.json") ||
    true
  [[ $SERVE_RESTARTS =~ ^[0-9]+$ && $CLIENT_RESTARTS =~ ^[0-9]+$ ]] || SERVE_RESTARTS=0 CLIENT_RESTARTS=0
}

# All that the session needs to know; nothing is started yet.
begin_session() {
  SURVIVE=true ENDING=false STOP_REASON='' SERVE='' SAMPLER='' SERVE_DUE_MS=0 SERVE_DELAY_MS=0 SAMPLER_DUE_MS=0 FLOWS_DONE=0
  STARTED=$(now) STARTED_SECONDS=$EPOCHSECONDS
  soak_plan
  take_counts
  mapfile -t FLOWS < <(host_flows)
  FLOWS_TOTAL=${#FLOWS[@]}
  read -r OWN_ADDRESS OWN_PORT < <(jq -r --arg host "$HOST" '.hosts[$host] | "\(.address) \(.port)"' "$PLAN")
  take_clients
  own_interface
  boot_id
  uptime_ms
  CLOCK_BOOT='' CLOCK_UPTIME_MS=$UPTIME_MS CLOCK_PASSED_MS=0 CLOCK_BEGUN_MS=''
  [ ! -s "$OUT/control/clock" ] || take_clock
  # an end that nobody sees: the last turn's, everyone's start window, and what a server lingers
  LIMIT=$(((DURATION_MS > TURNS * TURN_MS ? DURATION_MS : TURNS * TURN_MS) / 1000 + 2 * START_WINDOW + 6 * ROUND_GRACE))
  [ -z "$TOKEN_FILE" ] || export PERCH_TOKEN_FILE=$TOKEN_FILE
}

# The session, from its beginning or from where it was interrupted, to its end.
soak_session() {
  local first=true bell
  begin_session
  rm -f "$OUT/control/stop_asked" "$OUT/control/reason" # of a stop that did not end it
  [ ! -s "$OUT/control/boots.jsonl" ] || first=false
  write_file "$OUT/control/boot" <<<"$BOOT"
  write_file "$OUT/control/pid" <<<"$$ $(start_time $$)"
  trap soak_finish EXIT
  # only remembered: who exits out of `read -t` leaves its alarm behind, which then ends bash in the middle of its last work
  trap 'ENDING=true' TERM
  trap 'ENDING=true STOP_REASON="ended by the keyboard"' INT HUP
  uptime_ms
  append_line "$OUT/control/boots.jsonl" "$(jq -nc --arg boot "$BOOT" --arg time "$(now)" --argjson ms "$UPTIME_MS" '{boot_id: $boot, $time, uptime_s: ($ms / 1000)}')"
  head -c $(((FLOWS_TOTAL + 8) * 4096)) /dev/zero 2>/dev/null | write_file "$OUT/control/reserve" # a block for each result, a few for the rest
  for bell in bell sampler; do [ -p "$OUT/control/$bell" ] || mkfifo "$OUT/control/$bell"; done
  exec {BELL}<>"$OUT/control/bell" {SAMPLER_BELL}<>"$OUT/control/sampler"
  soak_state running
  [ "$first" = true ] || soak_event resumed - "the soak goes on, $((PASSED_MS / 1000)) s after it began"

  if [ "$first" = true ]; then
    first_serve || stop_for "$SERVE_MESSAGE"
  else
    spawn_serve
  fi
  [ -e "$OUT/environment.json" ] || collect_environment
  take_clock
  keep_sampler
  write_file "$OUT/control/started" </dev/null
  say "$HOST soaks for $((DURATION_MS / 1000)) s, turns: $TURNS, flows: $FLOWS_TOTAL"
  for ((TURN = 0; TURN < TURNS; TURN++)); do walk_turn; done
  while passed && [ "$PASSED_MS" -lt "$DURATION_MS" ]; do tick; done
  linger $((LINGER * 1000)) $((DURATION_MS + (START_WINDOW + ROUND_GRACE) * 1000))
  SOAK_OVER=true
}

# One turn, from its time on until all clients of this host are over: a little later than by the clock, by what they took to
# connect. All hosts are late by about the same.
walk_turn() {
  local start=$((TURN * TURN_MS)) long=$TURN_MS
  # the last one has what is left: less than the others, or a rest that was too short for a turn of its own
  [ "$TURN" -lt $((TURNS - 1)) ] || long=$((DURATION_MS > start ? DURATION_MS - start : TURN_MS))
  while passed && [ "$PASSED_MS" -lt "$start" ]; do tick; done
  TURN_END_MS=$(((PASSED_MS > start + START_WINDOW * 1000 ? start : PASSED_MS) + long))
  begin_turn
  while [ "${#CLIENT_OPEN[@]}" -gt 0 ]; do tick; done
  end_turn
}

# linger MS UNTIL_MS: until `perch serve` has had no client for MS, or so much has passed.
linger() {
  local quiet=0
  while passed && [ "$PASSED_MS" -lt "$2" ] && [ "$quiet" -lt "$1" ] && [ -n "$SERVE" ]; do
    read -rt "$TICK_S" -u "$BELL" _ || true
    # its own group has timeout, serve, and a process for each client
    if [ "$(pgrep -g "$SERVE" | wc -l)" -gt 2 ]; then quiet=0; else quiet=$((quiet + 500)); fi
    alive "$SERVE" && [ "$ENDING" = false ] || return 0
  done
}

# The end, however it comes. Keepers first, while the servers of all hosts are there to agree on the last interval.
soak_finish() {
  local code=$? state=stopped reason=''
  trap - EXIT
  # a child that is told to end between fork and exec still has these traps: it must end nobody but itself
  [ "$BASHPID" -eq "$$" ] || exit "$code"
  trap '' TERM INT HUP
  ENDING=false
  set +e # what is left to do is done, whatever of it fails
  reason=${STOP_REASON:-$(cat "$OUT/control/reason" 2>/dev/null || true)}
  end_clients
  [ -z "$reason" ] || [ -z "${BELL:-}" ] || { passed && linger 500 $((PASSED_MS + LINGER_STOPPED * 1000)); }
  rm -f "$OUT/control/reserve" # what follows needs it, should the disk be full
  end_sampler
  end_children
  if [ "$code" -eq 0 ] && [ "${SOAK_OVER:-false}" = true ]; then
    state="done" reason='' # a stop that came too late, or not at all
  elif [ -z "$reason" ]; then
    # a reboot, or an end that nobody has asked for: it can go on, so nothing is closed, and what is fetched meanwhile is a copy
    soak_state running "interrupted: the agent was ended (exit code $code); \`$(on_host soak-resume)\` on $HOST goes on with it"
    exit "$code"
  fi
  close_flows "$reason"
  [ -z "${UNWRITTEN:-}" ] || reason+="${reason:+; }$UNWRITTEN could not be written when it was due, as disk or memory were full or gone"
  soak_state "$state" "$reason"
  say "$HOST is $state: $FLOWS_DONE flows${reason:+: $reason}"
  release_closed
  exit "$code"
}
