# shellcheck shell=bash
# A soak's life on a host: run, start, status, stop, resume. STATE is the host's one soak, {run, host, out}: from the moment it is
# claimed until it is over; a second one is refused by it. What the session was asked for lies in its own control/session.json.

soak_command() {
  case $1 in
    soak-run | soak-start)
      require_options PLAN HOST OUT ENGINE
      [[ $SUPERVISOR =~ ^(auto|systemd|session)$ ]] || fail "$EXIT_USAGE" "option --supervisor takes auto, systemd or session, not \"$SUPERVISOR\""
      [[ $NUMA_POLICY =~ ^(|default|preferred|bind|interleave|local)$ ]] ||
        fail "$EXIT_USAGE" "option --numa-policy takes default, preferred, bind, interleave or local, not \"$NUMA_POLICY\""
      [[ "$CPUS$NUMA_MASK" =~ ^[0-9,-]*$ ]] || fail "$EXIT_USAGE" "options --cpus and --numa-mask take numbers and ranges such as 0-3,8"
      ;;
    soak-session | soak-sample) require_options OUT ;;
    soak-status | soak-stop | soak-resume) ;;
    *) usage ;;
  esac
  "soak_main_${1#soak-}"
}

# The session's options, of the directory that OUT is.
load_session() {
  local -a field
  mapfile -t field < <(jq -r '.host, .plan, .engine, .token_file, .start_window, .begin, .state, .supervisor, .cpus, .numa_policy, .numa_mask, .run, .plan_sha256' \
    "$OUT/control/session.json" 2>/dev/null)
  [ ${#field[@]} -eq 13 ] || fail "$EXIT_HOST" "there is no soak in $OUT: control/session.json is missing or unreadable"
  HOST=${field[0]} PLAN=${field[1]} ENGINE=${field[2]} TOKEN_FILE=${field[3]} START_WINDOW=${field[4]} BEGIN=${field[5]} STATE=${field[6]}
  SUPERVISOR=${field[7]} CPUS=${field[8]} NUMA_POLICY=${field[9]} NUMA_MASK=${field[10]} RUN=${field[11]} PLAN_SHA256=${field[12]}
}

# Whether OUT holds a session that can be read. Its directory may have been removed, or a crash may have taken what was just written.
has_session() {
  local first=''
  { read -rn 1 first <"$OUT/control/session.json"; } 2>/dev/null || true
  [ "$first" = "{" ]
}

# The processes of a session in OUT, whatever has become of its files.
left_running() {
  local pid
  local -a words
  for pid in $(pgrep -f 'perch-agent soak-session --out ' || true); do
    mapfile -d '' -t words < <(cat "/proc/$pid/cmdline" 2>/dev/null)
    if [ ${#words[@]} -gt 0 ] && [ "${words[-1]}" = "$OUT" ]; then echo "$pid"; fi
  done
}

# session_pid: the process that has the session in OUT, and only of this boot, as numbers begin anew with each. One that has ended
# and that nobody has waited for yet is none.
session_pid() {
  local pid started
  local -a stat
  boot_id
  [ "$(cat "$OUT/control/boot" 2>/dev/null)" = "$BOOT" ] || return 1
  read -r pid started 2>/dev/null <"$OUT/control/pid" || return 1
  read_first "/proc/$pid/stat" || return 1
  read -ra stat <<<"${LINE##*) }"
  [[ ${stat[0]} != [ZX] ]] && [ "${stat[19]}" = "$started" ] && printf '%s' "$pid"
}

# The host's soak, as STATE says: sets OUT and RUN; false: there is none.
state_session() {
  local run out
  { read -r run && read -r out; } < <(jq -r '.run, .out' "$STATE" 2>/dev/null) || return 1
  RUN=$run OUT=$out
}

# claim_soak: this host's soak is the one in OUT from now on. Under a lock, so that of two that come at once one is refused.
claim_soak() {
  local lock
  { mkdir -p "$(dirname "$STATE")" && : >>"$STATE.lock"; } 2>/dev/null ||
    fail "$EXIT_HOST" "cannot write $STATE as user $(id -un); give --state a file that this user can write"
  exec {lock}>"$STATE.lock"
  flock -w 5 "$lock" || fail "$EXIT_HOST" "another soak is being started on $HOST at this moment ($STATE.lock)"
  refuse_second
  boot_id
  write_file "$OUT/control/boot" <<<"$BOOT"
  write_file "$OUT/control/pid" <<<"$$ $(start_time $$)"
  write_session
  write_json "$STATE" --arg run "$RUN" --arg host "$HOST" --arg out "$OUT" --arg time "$(now)" '{$run, $host, $out, claimed: $time}'
  exec {lock}>&-
}

# on_host COMMAND: what a person types on this host
on_host() { printf '%q ' "$here/perch-agent" "$1" --state && printf '%q' "$STATE"; }

# One soak a host: who runs is named, and who was interrupted, too. One whose directory is gone is none any more.
refuse_second() (
  local new=$OUT
  if ! state_session; then
    [ ! -s "$STATE" ] || say "$STATE is no soak's, and is replaced"
    return 0
  fi
  if ! has_session; then
    [ -z "$(left_running)" ] ||
      fail "$EXIT_HOST" "the soak of run $RUN still runs on $HOST, though $OUT has no control/session.json any more: \`$(on_host soak-stop)\` ends it"
    say "of the soak of run $RUN nothing is left in $OUT; it is forgotten"
    return 0
  fi
  if session_pid >/dev/null || unit_active; then
    fail "$EXIT_HOST" "the soak of run $RUN runs on $HOST already, in $OUT: attach to it (playbooks/soak.yml), or stop it first (playbooks/soak_stop.yml)"
  fi
  [ "$OUT" = "$new" ] ||
    fail "$EXIT_HOST" "the soak of run $RUN on $HOST was interrupted and is not over ($OUT): \`$(on_host soak-resume)\` goes on with it," \
      "playbooks/soak_stop.yml closes it"
  fail "$EXIT_HOST" "$OUT holds an interrupted soak; \`$(on_host soak-resume)\` goes on with it"
)

write_session() {
  write_json "$OUT/control/session.json" --arg run "$RUN" --arg plan_sha256 "$PLAN_SHA256" --arg host "$HOST" --arg plan "$OUT/control/plan.json" --arg engine "$ENGINE" \
    --arg token_file "$TOKEN_FILE" --argjson start_window "$START_WINDOW" --argjson begin "$BEGIN" --arg state "$STATE" \
    --arg supervisor "$SUPERVISOR" --arg cpus "$CPUS" --arg numa_policy "$NUMA_POLICY" --arg numa_mask "$NUMA_MASK" '
    {$run, $plan_sha256, $host, $plan, $engine, $token_file, $start_window, $begin, $state, $supervisor,
     unit: (if $supervisor == "systemd" then "perch-soak.service" else null end), $cpus, $numa_policy, $numa_mask}'
}

# It is over: the host may have another one, and nothing resumes it.
release_soak() {
  is_claimed || return 0
  # the unit first: who is killed in between still holds the host's soak, and soak-stop does the rest
  [ "$SUPERVISOR" != systemd ] || remove_resume_unit
  rm -f "$STATE"
}

# As release_soak, once agent.json says that it is over: one that nobody could write would be a soak that nobody can end.
release_closed() {
  [[ $(jq -r .state "$OUT/agent.json" 2>/dev/null) =~ ^(done|stopped)$ ]] ||
    fail "$EXIT_INTERNAL" "the last word on the soak of run $RUN could not be written in $OUT: free space there, then \`$(on_host soak-stop)\` closes it"
  release_soak
}

# prepare_soak: everything that can be found out before anything is started.
prepare_soak() {
  check_plan
  OUT=$(realpath -m "$OUT") STATE=$(realpath -m "$STATE")
  refuse_second # before anything is written, and again under the lock
  prepare_out
  [ ! -e "$OUT/agent.json" ] || fail "$EXIT_HOST" "$OUT holds the results of an earlier run; give --out an empty directory"
  jq -e '.soak | [.duration_s, .interval_s] | all(type == "number" and . > 0) and .[1] <= .[0]' "$PLAN" >/dev/null 2>&1 ||
    fail "$EXIT_HOST" "the plan $PLAN is no soak's, or its interval is longer than it lasts; \`perch-agent run\` walks other plans"
  [ -x "$ENGINE" ] || fail "$EXIT_HOST" "there is no engine at $ENGINE on $HOST: build it with \`make engine\`, or set agent_engine"
  ENGINE=$(realpath "$ENGINE")
  [ -z "$TOKEN_FILE" ] || TOKEN_FILE=$(realpath "$TOKEN_FILE")
  choose_supervisor "$1"
  claim_soak
  spell_plan
  sync_claim
}

# What a boot must find is on disk before there is any load: it may be the load that ends this host.
sync_claim() {
  local -a files=("$OUT"/control/{boot,pid,session.json,plan.json} "$STATE")
  [ -z "$TOKEN_FILE" ] || files+=("$TOKEN_FILE")
  sync -- "${files[@]}" "$OUT"/{control,.,..} "$(dirname "$STATE")" || say "the beginning of the soak could not be put on disk; after a crash it may be lost"
}

soak_main_run() {
  SUPERVISOR=session
  prepare_soak run
  soak_session
}

# What the supervisor runs.
soak_main_session() {
  OUT=$(realpath "$OUT")
  load_session
  exec </dev/null >>"$OUT/agent.log" 2>&1
  soak_session
}

soak_main_sample() {
  load_session
  soak_plan
  read_clock
  mapfile -t FLOWS < <(host_flows)
  OWN_ADDRESS=$(jq -r --arg host "$HOST" '.hosts[$host].address' "$PLAN")
  soak_sample
}

# started SUPERVISOR-PID: until the session listens and samples; false: it ended before. A supervisor's own word is asked for
# where there is no process of ours.
soak_started() {
  while [ ! -e "$OUT/control/started" ]; do
    if [ -n "$1" ]; then alive "$1" || return 1; else unit_active || return 1; fi
    sleep 0.1 # the file is the session's word; there is no event for it
  done
}

# What has begun after all: a question to systemd may stay without an answer.
end_begun() {
  end_unit
  end_left_running
  return 1
}

soak_main_start() {
  local said
  prepare_soak start
  if ! start_supervised || ! { soak_started "$SUPERVISED" || end_begun; }; then
    # on the last line, as the controller shows that one and removes what was begun
    said=${SUPERVISOR_SAID:-$(jq -r '.message // ""' "$OUT/agent.json" 2>/dev/null || true)}
    [ -n "$said" ] || tail -n 3 "$OUT/agent.log" >&2 2>/dev/null || true
    release_soak
    fail "$EXIT_HOST" "the soak of run $RUN did not start on $HOST: ${said:-$OUT/agent.log says why}"
  fi
  soak_main_status
}

# Goes on with the host's soak, if it was interrupted. The resume unit calls this after a boot.
soak_main_resume() {
  state_session || {
    say "there is no soak to go on with on this host ($STATE)"
    return 0
  }
  load_session
  if session_pid >/dev/null; then
    say "the soak of run $RUN runs already"
    return 0
  fi
  rm -f "$OUT/control/started"
  { start_supervised && soak_started "$SUPERVISED"; } ||
    fail "$EXIT_HOST" "the soak of run $RUN could not go on: ${SUPERVISOR_SAID:-$OUT/agent.log says why}"
}

# soak_session_of: OUT is what --out says, or the host's soak. False: there is none.
soak_session_of() {
  if [ -n "$OUT" ]; then [ -e "$OUT/control/session.json" ] && OUT=$(realpath "$OUT"); else state_session; fi
}

# When the stop was asked for, of a soak that has begun. Within the time that one may take, a second one is the same; an older one counts no more.
readonly STOP_LIMIT_S=9
note_stop() {
  local file=$OUT/control/stop_asked
  read_clock || return 0
  passed
  if ! [ -s "$file" ] || [ "$(<"$file")" -le $((PASSED_MS - STOP_LIMIT_S * 1000)) ]; then write_file "$file" <<<"$PASSED_MS"; fi
}

soak_main_stop() {
  local pid
  soak_session_of || return 0
  if ! has_session; then
    end_left_running
    resumes_ours && SUPERVISOR=systemd
    release_soak
    echo stopped
    return
  fi
  load_session
  # a full disk: then the signal alone says it
  echo "stopped by the controller" >"$OUT/control/reason" 2>/dev/null || true
  if pid=$(session_pid); then
    # from this moment on the servers of others may be gone before our keepers
    (note_stop) 2>/dev/null || true # a full disk ends no stop
    stop_session "$pid"
    echo stopped
  elif is_claimed; then
    rm -f "$OUT/control/stop_asked" # of an earlier one, which did not end it
    end_unit
    close_session
    echo stopped
  fi
}

# Ends a session whose files say nothing of it. systemd does not start it again: without them it can only end.
end_left_running() {
  local end=$((SECONDS + STOP_LIMIT_S)) pid
  for pid in $(left_running); do kill -TERM "$pid" 2>/dev/null || true; done
  while [ -n "$(left_running)" ] && [ "$SECONDS" -lt "$end" ]; do sleep 0.1; done
  for pid in $(left_running); do kill -KILL "$pid" 2>/dev/null || true; done
}

# A session ends within some 5 s: keepers 1 s, servers 2 s, and what jq takes. After 9 it is killed, and what it has left is closed.
stop_session() {
  local end=$((SECONDS + STOP_LIMIT_S))
  kill -TERM "$1" 2>/dev/null || true
  while [ "$(session_pid)" = "$1" ]; do
    if [ "$SECONDS" -ge "$end" ]; then
      kill -KILL "$1" || true
      end_unit
      break
    fi
    sleep 0.1
  done
  while [ "$SECONDS" -lt "$end" ] && unit_active; do sleep 0.1; done # so that the next one finds its name free
  # killed, here or by somebody else, in the middle of its last work
  ! is_claimed || close_session
}

# Whether the host's soak is still the one in OUT.
is_claimed() { [ "$(jq -r '.out' "$STATE" 2>/dev/null)" = "$OUT" ]; }

# What an interrupted session has left gets its results.
close_session() {
  if [ "$(jq -r .state "$OUT/agent.json" 2>/dev/null)" != "done" ]; then
    begin_session
    close_flows "stopped by the controller"
    soak_state stopped "stopped by the controller, after it had been interrupted"
  fi
  release_closed
}

# An interval stands within so many lines of the end: at most 64 stalls are kept of each.
readonly LAST_LINES=80

# lines_of_kind KIND: how many the caller's file has. A day has some 10 MB, so this looks for bytes and reads no JSON. A keeper that
# reached nobody takes its file away, at any moment: what is there is what grep could open.
lines_of_kind() {
  local lines
  lines=$(LC_ALL=C grep -cF "\"kind\":\"$1\"" "$file/client.soak" 2>/dev/null) || true
  echo "${lines:-0}"
}

# One client flow a line, for soak_main_status: id, state, intervals, gaps, stalls, and its last interval as it is.
status_flows() {
  local i state file
  for i in "${!FLOW_IDS[@]}"; do
    file=$OUT/flows/${FLOW_IDS[i]}
    if [ "${FLOW_ROLES[i]}" != client ] || [ ! -e "$(flow_file "$i")" ]; then continue; fi
    if [ -e "$file/client.json" ]; then
      state=$(jq -r .state "$file/client.json" || echo unreadable)
    elif [ -n "$1" ] && grep -qF "keeper ${FLOW_IDS[i]} " "$OUT/control/children" 2>/dev/null && [ -s "$file/client.soak" ]; then
      state=running
    else
      state=waiting
    fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "${FLOW_IDS[i]}" "$state" "$(lines_of_kind interval)" "$(lines_of_kind gap)" "$(lines_of_kind stall)" \
      "$({ tail -n "$LAST_LINES" "$file/client.soak" | grep -F '"kind":"interval"' || true; } 2>/dev/null | tail -n 1)"
  done
}

# status_passed STATE: PASSED_MS of one that runs, as of its last sample where it was interrupted, or what it had at its end.
status_passed() {
  local up=0
  PASSED_MS=0
  case $1 in
    starting) ;;
    running | interrupted)
      read_clock 2>/dev/null || return 0
      if [ "$1" = running ]; then
        passed
      else
        up=$(tail -n 2 "$OUT/samples.jsonl" 2>/dev/null | jq -Rr --arg boot "$CLOCK_BOOT" 'fromjson? | select(.boot_id == $boot).uptime_s | tonumber * 1000 | round' | tail -n 1)
        [ -z "$up" ] || PASSED_MS=$((CLOCK_PASSED_MS + up - CLOCK_UPTIME_MS))
      fi
      ;;
    *) PASSED_MS=$(jq -r '.soak.passed_s // 0 | . * 1000 | round' "$OUT/agent.json" 2>/dev/null || echo 0) ;;
  esac
}

# status_without: the status where no session can be read. What runs all the same is no soak that is over.
status_without() {
  local state=none message="no soak on this host"
  if [ -n "$OUT" ] && [ -n "$(left_running)" ]; then
    state=running message="it has no control/session.json any more; playbooks/soak_stop.yml ends it"
  elif [ -n "$OUT" ]; then
    message="nothing of this soak can be read here; playbooks/soak_stop.yml removes what is left of it"
  fi
  jq -Mnc --arg state "$state" --arg run "${RUN:-}" --arg out "$OUT" --arg now "$(now)" --arg message "$message" '
    def of($text): if $state == "none" or $text == "" then null else $text end;
    {$state, run: of($run), host: null, out: of($out), supervisor: null, started: null, $now, passed_s: null, duration_s: null,
     remaining_s: null, turn: null, turns: null, flows: [], $message}'
}

soak_main_status() {
  local pid='' state message=''
  if ! soak_session_of || ! has_session; then
    status_without
    return
  fi
  load_session
  pid=$(session_pid) || true
  soak_plan
  boot_id
  mapfile -t FLOWS < <(host_flows)
  take_clients
  state=$(jq -r .state "$OUT/agent.json" 2>/dev/null || echo none)
  message=$(jq -r '.message // ""' "$OUT/agent.json" 2>/dev/null || true)
  if [ -n "$pid" ]; then
    [ -e "$OUT/control/started" ] && state=running || state=starting
  elif [ "$state" = running ] || [ -e "$STATE" ] && [ "$state" != "done" ]; then
    state=interrupted
    message=${message:-"no process of it runs, and it is not over: \`$(on_host soak-resume)\` on $HOST goes on with it, playbooks/soak_stop.yml closes it"}
  fi
  status_passed "$state"
  status_flows "$pid" | jq -RMnc --arg state "$state" --arg run "$RUN" --arg host "$HOST" --arg out "$OUT" --arg supervisor "$SUPERVISOR" --arg now "$(now)" \
    --arg started "$(jq -r '.started // ""' "$OUT/agent.json" 2>/dev/null || true)" --argjson passed "$PASSED_MS" --argjson duration "$DURATION_MS" \
    --argjson turn_ms "$TURN_MS" --argjson turns "$TURNS" --arg message "$message" '
    def or_null: if . == "" then null else . end;
    ([$passed, 0] | max) as $passed
    | {$state, $run, $host, $out, $supervisor, started: ($started | or_null), $now, passed_s: ($passed / 1000), duration_s: ($duration / 1000),
       remaining_s: ([($duration - $passed) / 1000, 0] | max), turn: ([($passed / $turn_ms | floor) + 1, $turns] | min), $turns,
       flows: [inputs | split("\t") | {id: .[0], state: .[1], intervals: (.[2] | tonumber), gaps: (.[3] | tonumber), stalls: (.[4] | tonumber),
         last: (.[5] | fromjson? // null | if . == null then null elif .latency_us then {p99_us: .latency_us.p99}
           elif .bandwidth then {gbit_s: .bandwidth.gbit_s} else null end)}],
       message: ($message | or_null)}'
}
