#!/usr/bin/env bats
# perch-agent's soak: sessions of seconds on this machine as alpha and beta, with the real engine, and what can go wrong in hours.

load helpers

setup() {
  common_setup
  export PERCH_SOAK_LINGER=1
}
teardown() {
  # what a session says goes to its file: of a test that failed it is shown
  [ -n "${BATS_TEST_COMPLETED:-}" ] || tail -n 20 -- */agent.log */agent.json */control/clock 2>/dev/null || true
  stop_servers
  common_teardown
}

# shellcheck disable=SC2034  # wait_until reads it
readonly WAIT=60

# soak_plan SECONDS [TURN_SECONDS]: both directions of bandwidth and a paced latency at once, or in turns
soak_plan() {
  jq -n --argjson port "$(free_port)" --argjson duration "$1" --argjson turn "${2:-null}" '
    {alpha: "127.0.0.2", beta: "127.0.0.3"} as $hosts
    | def flow($test; $kind; $client; $server; $turn; $seconds):
        {id: "\($test)/\($client)/\($server)/0/\($turn)", $test, title: $test, repeat: $turn, tool: "perch", backend: "tcp", provider: null, op: "send",
         kind: (if $kind == "lat" then "latency" else "bandwidth" end), $client, $server, scope: "software", server_argv: [], ready: null,
         deadline_s: ($seconds + 60), estimate_s: $seconds, expect: [{size_bytes: 8}],
         client_argv: ["perch", $kind, $hosts[$server], "--bind", $hosts[$client], "--backend", "tcp", "--completion", "event", "--duration", "\($seconds)s",
           "--interval", "1s", "--stall", "500ms", "--reconnect", "20s", "--rate", (if $kind == "lat" then "50msg/s" else "0.05Gb/s" end),
           "--soak", "client.soak", "--json"]};
    {run: "20260101T000000Z-soak", created: "2026-01-01T00:00:00Z", suite: {name: "soak", title: "soak"}, limits: "local",
     hosts: ($hosts | map_values({address: ., fabric: "loopback", scope: "software", backends: ["tcp"], port: $port})), excluded: [],
     soak: {duration_s: $duration, interval_s: 1, stall_s: 0.5, reconnect_s: 20, mode: (if $turn then "alternating" else "mixed" end), turn_s: $turn},
     rounds: (if $turn then [range($duration / $turn) | {flows: [
         if . % 2 == 0 then flow("bw"; "bw"; "alpha"; "beta"; . + 1; $turn) else flow("lat"; "lat"; "beta"; "alpha"; . + 1; $turn) end]}]
       else [{flows: [flow("bw"; "bw"; "alpha"; "beta"; 1; $duration), flow("bw"; "bw"; "beta"; "alpha"; 1; $duration),
         flow("lat"; "lat"; "alpha"; "beta"; 1; $duration)]}] end)}' >plan.json
}

# soak HOST COMMAND [OPTION...]: this machine is two hosts here, so each has a soak of its own
soak() {
  local host=$1 command=$2
  shift 2
  "$AGENT" "soak-$command" --plan "$(share "$host")" --host "$host" --out "$host" --engine "$PERCH" --start-window 10 --state "$PWD/$host.state" \
    --supervisor session "$@" 3>&-
}
of() { "$AGENT" "soak-$1" --state "$PWD/$2.state" 3>&-; }

state_is() { jq -e --arg state "$2" '.state == $state' "$1/agent.json" >/dev/null; }
both_are() {
  wait_until state_is alpha "$1"
  wait_until state_is beta "$1"
}

# lines_of FILE: as one array, so that one call checks all by the schema of one
matches_schema() {
  jq '{"$schema", type: "array", items: del(."$schema", ."$id", ."$defs"), "$defs": (."$defs" // {})}' "$TOP/reports/schema/$1.schema.json" >schema.json
  jq -s . "$2" >array.json
  run_expecting 0 check-jsonschema --schemafile schema.json array.json
}

samples_say() { jq -e "$1" array.json >/dev/null || fail "of the samples this does not hold: $1, $(jq -c 'map({number, uptime_s, roles: [.processes[].role]})' array.json)"; }

readonly BW=flows/bw/alpha/beta/0/1 LAT=flows/lat/alpha/beta/0/1

@test "all flows of a mixed soak run at once, without a word between the hosts, and each interval has its sample" {
  soak_plan 4
  soak alpha start >status.json
  soak beta start >/dev/null
  assert_json status.json '.state == "running" and .run == "20260101T000000Z-soak" and .host == "alpha" and .duration_s == 4 and .turns == 1'
  both_are "done"
  for flow in "alpha/$BW" "beta/flows/bw/beta/alpha/0/1" "alpha/$LAT"; do
    assert_json "$flow/client.json" '.schema == "perch.flow/1" and .state == "done" and .exit == 0 and .message == null and .elapsed_s >= 4
      and .argv[-2] == "--port" and (.counters.after.netdev.lo.rx_bytes | tonumber) > (.counters.before.netdev.lo.rx_bytes | tonumber)'
    assert_json "$flow/client.stdout" '.soak.intervals == 4 and .soak.gaps == 0 and .soak.stopped == false and .error == null'
    assert_equal "$(tail -n 1 "$flow/client.soak")" "$(cat "$flow/client.stdout")"
  done
  assert_json "beta/$BW/server.json" '.state == "done" and .argv == [] and .exit == null'
  assert_json alpha/agent.json '.flows_total == 3 and .flows_done == 3 and .soak.supervisor == "session" and (.soak.boots | length) == 1
    and .soak.serve_restarts == 0 and .soak.client_restarts == 0 and .soak.samples >= 5 and .soak.samples_dropped == 0 and .soak.unwritten == null
    and (.soak.begun | test("T[0-9:]{8}[.][0-9]{3}Z$")) and (.plan_sha256 | test("^[0-9a-f]{64}$"))'
  assert_json alpha/environment.json '.schema == "perch.environment/1"'
  matches_schema sample alpha/samples.jsonl
  samples_say 'map(.number) == [range(1; length + 1)] and all(.run == "20260101T000000Z-soak" and .host == "alpha" and .links.lo.operstate != null)'
  samples_say 'map(.uptime_s | tonumber) | [.[2] - .[1], .[3] - .[2]] | all(. > 0.5 and . < 3)' # the grid is of one second
  samples_say 'any(.processes | (map(.role) | unique) == ["agent", "job", "keeper", "measurer", "sampler", "serve"]
      and all(.resident_bytes > 100000 and .handles > 2) and ([.[] | select(.role == "keeper") | .flow] | sort) == ["bw/alpha/beta/0/1", "lat/alpha/beta/0/1"])'
  samples_say 'map(.counters.netdev.lo.rx_bytes | tonumber) | . == sort'
  [ ! -e alpha.state ] || fail "the soak is over, and the host still has it: $(<alpha.state)"
}

@test "turns of an alternating soak follow each other" {
  soak_plan 4 2
  # a busy machine may start the second host seconds later: both begin at a moment that is ahead of them
  local begin=$(($(date +%s) + 8))
  soak alpha start --begin "$begin" >/dev/null
  soak beta start --begin "$begin" >/dev/null
  both_are "done"
  assert_json "alpha/$BW/client.stdout" '.soak.planned_s == 2 and .soak.intervals == 2'
  assert_json beta/flows/lat/beta/alpha/0/2/client.stdout '.soak.planned_s == 2 and .soak.intervals == 2'
  jq -s 'map(.started)' "alpha/$BW/client.json" beta/flows/lat/beta/alpha/0/2/client.json >turns.json
  assert_json turns.json 'map(sub("\\.[0-9]+Z"; "Z") | fromdate) | .[1] - .[0] >= 1'
  assert_json alpha/flows/lat/beta/alpha/0/2/server.json '.state == "done"'
}

# limit_of HOST: for how many seconds at most its client may run, as the process says; 0: none does
limit_of() {
  local role pid limit=0
  while read -r role _ pid; do
    [[ $role != keeper ]] || limit=$(tr '\0' '\n' <"/proc/$pid/cmdline" | sed -n '/^--kill-after/{n;p}')
  done <"$1/control/children"
  echo "${limit:-0}"
}
may_run_for() { (($(limit_of "$1") >= $2)); }

@test "the last turn has its own length, with a rest that was too short for a turn" {
  soak_plan 4 2
  jq '.soak.duration_s = 8 | .rounds[1].flows[0].client_argv |= map(if . == "2s" then "6s" else . end)' plan.json >longer.json
  mv longer.json plan.json
  soak alpha start >/dev/null
  soak beta start >/dev/null
  # six seconds, the start window of ten and as much for the end; two would end it before
  wait_until may_run_for beta 24
  both_are "done"
  assert_json beta/flows/lat/beta/alpha/0/2/client.stdout '.soak.planned_s == 6 and .soak.intervals == 6'
}

@test "across a reboot the clock goes on from the last sample, whatever the wall was set to before it" {
  mkdir -p control
  # ten minutes in, by the uptime; the wall has jumped by an hour since the beginning, and the host was away for 20 s
  printf 'old 5000000 0 1000000000000\n' >control/clock
  printf '{"boot_id":"old","time_s":"1000004200.250","uptime_s":"5600.000"}\n{"boot_id":"old","ti' >samples.jsonl
  run_expecting 0 bash -c 'set -euo pipefail
    source "$0/soak.bash"
    uptime_ms() { UPTIME_MS=30000; }
    wall_ms() { WALL_MS=1000004220250; }
    write_file() { cat >"$1"; }
    OUT=$PWD BOOT=new BEGIN=0
    take_clock' "$TOP/roles/agent/files/agent.d"
  assert_equal "$(cat control/clock)" "new 30000 620000 1000000000000"
}

# begins SECONDS: where a soak begins whose agreed moment is so far from the host's own time, in seconds from then
begins() {
  bash -c 'set -euo pipefail
    source "$0/soak.bash"
    say() { :; }
    uptime_ms() { UPTIME_MS=30000; }
    wall_ms() { WALL_MS=1000000000000; }
    write_file() { cat >/dev/null; }
    OUT=$PWD BOOT=new CLOCK_BOOT= START_WINDOW=60 BEGIN=$((1000000000 + $1))
    take_clock
    echo $(((CLOCK_BEGUN_MS - WALL_MS) / 1000)) "$CLOCK_PASSED_MS"' "$TOP/roles/agent/files/agent.d" "$1"
}

@test "turns begin at the agreed moment, also where it has just passed; one that is far away is of another clock" {
  assert_equal "$(begins 30)" "30 -30000"
  assert_equal "$(begins -20)" "-20 20000"
  assert_equal "$(begins 61)" "0 0"
  assert_equal "$(begins -61)" "0 0"
}

@test "what a boot must find is on disk before there is any load" {
  soak_plan 60
  echo "a-secret-of-this-test" >token && chmod 600 token
  mkdir doubles
  cat >doubles/sync <<END
#!/bin/bash
# samples come later
[ ! -e "$PWD/alpha/agent.json" ] || [[ "\$*" != */session.json* ]] || echo "too late" >>"$PWD/synced"
printf '%s\n' "\$@" >>"$PWD/synced"
exec /bin/sync "\$@"
END
  chmod +x doubles/sync
  PATH=$PWD/doubles:$PATH soak alpha start --token-file token >/dev/null
  local file
  for file in alpha/control/{boot,pid,session.json,plan.json} alpha/control alpha/. alpha/.. alpha.state token; do grep -qxF "$PWD/$file" synced || fail "not on disk: $file"; done
  grep -qxF "$PWD" synced
  ! grep "too late" synced || fail "the session ran already"
  of stop alpha
}

@test "a second soak on a host is refused by the name of the first, and leaves nothing" {
  soak_plan 60
  echo '{"run": "forgotten", "host": "alpha", "out": "/nowhere"}' >alpha.state
  soak alpha start >/dev/null 2>said
  grep -q "the soak of run forgotten nothing is left in /nowhere; it is forgotten" said
  run_agent 3 soak-start --plan "$(share alpha)" --host alpha --out other --engine "$PERCH" --state "$PWD/alpha.state" --supervisor session
  assert_output --partial "the soak of run 20260101T000000Z-soak runs on alpha already, in $PWD/alpha"
  [ ! -e other ] || fail "something was begun: $(find other)"
  run_agent 3 soak-start --plan "$(share alpha)" --host alpha --out alpha --engine "$PERCH" --state "$PWD/alpha.state" --supervisor session
  assert_output --partial "runs on alpha already"
  of stop alpha
}

stops() { assert_equal "$(of stop "$1")" stopped; }

@test "a soak that is stopped ends everywhere, with what was measured" {
  soak_plan 60
  soak alpha start >/dev/null
  soak beta start >/dev/null
  wait_until grep -q '"kind":"interval"' "alpha/$BW/client.soak"
  of status alpha >status.json
  assert_json status.json '.state == "running" and .passed_s > 0.5 and .remaining_s < 60 and (.flows | map(.id) | sort) == ["bw/alpha/beta/0/1", "lat/alpha/beta/0/1"]
    and (.flows[0] | .state == "running" and .intervals >= 1 and .gaps == 0 and .last.gbit_s > 0.01)'
  # of two stops the first counts, unless the session has outlived it
  jq '.passed_s * 1000 | floor' status.json >alpha/control/stop_asked
  echo -20000 >beta/control/stop_asked
  local asked
  asked=$(<alpha/control/stop_asked)
  stops beta &
  stops alpha
  wait $!
  no_leak 0
  assert_json alpha/agent.json '.state == "stopped" and .message == "stopped by the controller" and .flows_done == 3
    and .soak.stop_asked_s * 1000 == '"$asked"' and .soak.stop_asked_s <= .soak.passed_s'
  assert_json beta/agent.json '.state == "stopped" and .soak.stop_asked_s > 0 and .soak.stop_asked_s <= .soak.passed_s'
  # a connection's uptime and the agent's are of one clock: the flow began within the start window
  jq -s '.[0].soak.clock + (.[1:] | map(select(.kind == "connection"))[-1] | {connection: .boot_id, began_s: (.uptime_s - .start_s)})' \
    alpha/agent.json "alpha/$BW/client.soak" >clocks.json
  assert_json clocks.json '.boot_id == .connection and (.passed_s + .began_s - .uptime_s | . >= 0 and . <= 10)'
  assert_json "alpha/$BW/client.json" '.state == "done" and .exit == 0 and .message == "stopped by the controller"'
  assert_json "alpha/$BW/client.stdout" '.soak.stopped and .soak.gaps == 0 and .soak.intervals >= 1'
  assert_equal "$(of stop alpha)" ""
  of status alpha >status.json
  assert_json status.json '.state == "none"'
  "$AGENT" soak-status --out alpha >status.json
  assert_json status.json '.state == "stopped" and .message == "stopped by the controller"'
  run_agent 3 soak-start --plan "$(share alpha)" --host alpha --out alpha --engine "$PERCH" --state "$PWD/alpha.state" --supervisor session
  assert_output --partial "holds the results of an earlier run"
}

# pid_of HOST ROLE [FLOW]: in the newest sample
pid_of() { tail -n 1 "$1/samples.jsonl" | jq -r --arg role "$2" --arg flow "${3:-}" '[.processes[] | select(.role == $role and ($flow == "" or .flow == $flow)) | .pid][0] // empty'; }
sampled() { [ -n "$(pid_of "$@")" ]; }
intervals_after_gap() { jq -es 'map(.kind) | .[(index("gap") // length):] | index("interval")' "$1" >/dev/null; }

@test "a server, a keeper and a sampler that are killed are started anew, and the gaps are kept" {
  soak_plan 60
  soak alpha start >/dev/null
  soak beta start >/dev/null
  wait_until grep -q '"kind":"interval"' "alpha/$BW/client.soak"
  wait_until grep -q '"kind":"interval"' "alpha/$LAT/client.soak"
  kill -KILL "$(pid_of beta serve)"
  wait_until intervals_after_gap "alpha/$BW/client.soak"
  wait_until intervals_after_gap "alpha/$LAT/client.soak"
  kill -KILL "$(pid_of alpha keeper lat/alpha/beta/0/1)" "$(pid_of alpha sampler)"
  wait_until grep -q '"reason":"perch was stopped and restarted' "alpha/$LAT/client.soak"
  wait_until grep -q sampler_ended alpha/progress.jsonl
  of stop alpha
  of stop beta
  assert_json "alpha/$BW/client.stdout" '.soak.gaps >= 1 and .soak.connections >= 2 and .soak.resumed == false'
  assert_json "alpha/$LAT/client.stdout" '.soak.gaps >= 2 and .soak.resumed'
  assert_json beta/agent.json '.soak.serve_restarts == 1'
  assert_json alpha/agent.json '.soak.client_restarts == 1'
  assert_equal "$(jq -r 'select(.event | endswith("ed")).event' beta/progress.jsonl | paste -sd,)" serve_ended,serve_restarted
  assert_equal "$(jq -r 'select(.event | endswith("ed")).event' alpha/progress.jsonl | sort | paste -sd,)" client_restarted,sampler_ended
  jq -s . alpha/samples.jsonl >array.json
  samples_say 'map(.number) == [range(1; length + 1)]'
}

@test "an agent that is killed leaves nothing running; another one goes on with its soak" {
  soak_plan 14
  soak alpha start >/dev/null
  soak beta start >/dev/null
  wait_until sampled alpha keeper bw/alpha/beta/0/1
  kill -KILL "$(cut -d ' ' -f 1 alpha/control/pid)"
  wait_until only_beta_runs
  of status alpha >status.json
  assert_json status.json '.state == "interrupted" and .passed_s >= 0.5 and (.message | contains("soak-resume --state '"$PWD"'/alpha.state")) and all(.flows[]; .state == "waiting")'
  run_agent 3 soak-start --plan "$(share alpha)" --host alpha --out other --engine "$PERCH" --state "$PWD/alpha.state" --supervisor session
  assert_output --partial "was interrupted and is not over"
  # what stops leave that die before they have stopped anything; nor is it a reason of the session that they did not reach
  for host in alpha beta; do echo "stopped by the controller" >$host/control/reason && echo 1 >$host/control/stop_asked; done
  of resume alpha
  [ ! -e alpha/control/reason ] && [ ! -e alpha/control/stop_asked ]
  of status alpha >status.json
  assert_json status.json '.state == "running"'
  both_are "done"
  assert_json alpha/agent.json '(.soak.boots | length) == 2 and .state == "done" and (.message // "") == "" and .soak.stop_asked_s == null'
  assert_json beta/agent.json '.state == "done" and (.message // "") == ""'
  assert_json "alpha/$BW/client.stdout" '.soak.resumed and .soak.gaps >= 1 and .soak.stopped == false and .soak.passed_s > 13.9'
  assert_json "alpha/$BW/client.json" '.state == "done" and .exit == 0 and .elapsed_s > 13.9 and .counters != null'
  jq -s . alpha/samples.jsonl >array.json
  samples_say 'map(.number) == [range(1; length + 1)]'
}
only_beta_runs() { ! marked_processes | grep -q -e '[-]-bind 127.0.0.2' -e "[-]-out $PWD/alpha"; }

@test "a session that is ended from outside is interrupted and not over: what is fetched of it is a copy" {
  soak_plan 60
  soak alpha start >/dev/null
  kill -TERM "$(cut -d ' ' -f 1 alpha/control/pid)"
  wait_until grep -q interrupted: alpha/agent.json
  no_leak
  assert_json alpha/agent.json '.state == "running" and .ended == null and (.message | test("^interrupted: .*soak-resume"))'
  of status alpha >status.json
  assert_json status.json '.state == "interrupted"'
  assert_equal "$(of stop alpha)" stopped
  assert_json alpha/agent.json '.state == "stopped" and .ended != null'
}

@test "a soak whose files were removed while it runs, or were lost in a crash, can be ended, and another one begun" {
  mkdir "odd [a+b]" && cd "odd [a+b]" # no pattern
  soak_plan 60
  soak alpha start >/dev/null
  wait_until rm -r alpha # the session may just be writing there
  run_agent 3 soak-start --plan "$(share alpha)" --host alpha --out other --engine "$PERCH" --state "$PWD/alpha.state" --supervisor session
  assert_output --partial "the soak of run 20260101T000000Z-soak still runs on alpha, though $PWD/alpha has no control/session.json any more"
  [ ! -e other ] || fail "something was begun: $(find other)"
  of status alpha >status.json
  assert_json status.json '.state == "running" and .run == "20260101T000000Z-soak" and (.message | test("soak_stop.yml ends it"))'
  "$AGENT" soak-status --out "$PWD/alpha" >status.json
  assert_json status.json '.state == "running"'
  assert_equal "$(of stop alpha)" stopped
  [ ! -e alpha.state ] || fail "the host still has it: $(<alpha.state)"
  no_leak 0
  rm -rf alpha
  soak alpha start >/dev/null
  kill -KILL "$(cut -d ' ' -f 1 alpha/control/pid)"
  wait_until no_leak 0
  : >alpha/control/session.json
  of status alpha >status.json
  assert_json status.json '.state == "none"'
  "$AGENT" soak-status --out "$PWD/alpha" >status.json
  assert_json status.json '.state == "none" and (.message | test("soak_stop.yml removes what is left"))'
  assert_equal "$(of stop alpha)" stopped
  assert_equal "$(of stop alpha)" ""
}

@test "a last word that could not be written leaves a soak that can be closed later" {
  soak_plan 60
  soak alpha start >/dev/null
  mkdir doubles
  # no memory for what agent.json says at the end
  printf '#!/bin/bash\n[[ "$*" != *"--arg state stopped"* ]] || exit 5\nexec %q "$@"\n' "$(command -v jq)" >doubles/jq && chmod +x doubles/jq
  kill -KILL "$(cut -d ' ' -f 1 alpha/control/pid)"
  wait_until no_leak 0
  PATH=$PWD/doubles:$PATH run_agent 6 soak-stop --state "$PWD/alpha.state"
  assert_output --partial "the last word on the soak of run 20260101T000000Z-soak could not be written in $PWD/alpha"
  assert_equal "$(of stop alpha)" stopped
  assert_json alpha/agent.json '.state == "stopped"'
  [ ! -e alpha.state ] || fail "the host still has it: $(<alpha.state)"
}

@test "what was interrupted and is not to go on is closed by soak-stop" {
  soak_plan 60
  soak alpha start >/dev/null
  soak beta start >/dev/null
  wait_until grep -q '"kind":"interval"' "alpha/$BW/client.soak"
  kill -KILL "$(cut -d ' ' -f 1 alpha/control/pid)"
  of stop beta
  wait_until no_leak 0
  assert_equal "$(of stop alpha)" stopped
  assert_json alpha/agent.json '.state == "stopped" and .flows_done == 3 and (.message | test("interrupted"))'
  assert_json "alpha/$BW/client.json" '.state == "done" and .message == "stopped by the controller"'
  assert_json "alpha/flows/bw/beta/alpha/0/1/server.json" '.state == "done"'
  [ ! -e alpha.state ] || fail "the host still has it: $(<alpha.state)"
}

@test "without an answer from the peer the flow ends after the start window, and the others are measured" {
  soak_plan 5
  soak beta start >/dev/null
  jq '.tests.bw.forms["1"].client[2] = "127.0.0.9"' "$(share alpha)" >astray.json
  soak alpha start --start-window 2 --plan astray.json >/dev/null
  both_are "done"
  assert_json "alpha/$BW/client.json" '.state == "peer_dead" and .exit == null and (.message | test("no connection within 2 s: cannot connect to 127.0.0.9"))'
  assert_json "alpha/$LAT/client.json" '.state == "done" and .exit == 0'
  assert_json alpha/agent.json '.soak.client_restarts == 0'
}

@test "what a client cannot say, as on a full disk, ends no session; a file that goes while status counts its lines is none" {
  soak_plan 2
  mkdir -p "alpha/$BW/client.stderr" # so that no such file can be made
  soak alpha start --start-window 2 >/dev/null
  wait_until state_is alpha "done"
  assert_json "alpha/$BW/client.json" '.state == "peer_dead" and (.message | test("no connection within 2 s"))'
  # nor does a jq that gets no memory
  run_expecting 0 bash -c 'set -euo pipefail
    EXIT_INTERNAL=6 SURVIVE=true OUT=.
    source "$0/files.bash"
    jq() { return 5; }
    write_json state.json
    echo "$UNWRITTEN"' "$TOP/roles/agent/files/agent.d"
  assert_line state.json
  assert_output --partial "jq could not make state.json; jq 1.6 or newer is needed, and memory for it; the soak goes on"
  # a keeper that reached nobody takes its file away; here it does so between any two looks
  mkdir doubles
  printf '#!/bin/bash\n/usr/bin/grep "$@"; status=$?; rm -f "%s"; exit "$status"\n' "$PWD/alpha/$BW/client.soak" >doubles/grep
  chmod +x doubles/grep
  : >"alpha/$BW/client.soak"
  PATH=$PWD/doubles:$PATH run_agent 0 soak-status --out alpha
  [ ! -e "alpha/$BW/client.soak" ] || fail "the file is still there: the double was not used"
  "$AGENT" soak-status --out alpha >status.json
  assert_json status.json '.flows | map(.intervals) == [0, 0]'
}

@test "what cannot be started is refused, and nothing is left of it" {
  local -a start=(soak-start --host alpha --engine "$PERCH" --state "$PWD/alpha.state" --supervisor session)
  soak_plan 4
  jq 'del(.soak)' plan.json >no_soak.json
  run_agent 3 "${start[@]}" --plan "$(share alpha no_soak.json)" --out a
  assert_output --partial "is no soak's"
  jq '.soak.interval_s = 5' plan.json >long.json
  run_agent 3 "${start[@]}" --plan "$(share alpha long.json)" --out a
  assert_output --partial "its interval is longer than it lasts"
  run_agent 3 "${start[@]}" --plan "$(share alpha)" --out a --engine /nowhere
  assert_output --partial "there is no engine at /nowhere"
  run_agent 2 "${start[@]}" --plan "$(share alpha)" --out a --supervisor cron
  assert_output --partial 'takes auto, systemd or session, not "cron"'
  perch_serve --bind 127.0.0.2 # another program on the port
  jq --argjson port "$PORT" '.hosts |= map_values(.port = $port)' plan.json >taken.json
  run_agent 3 "${start[@]}" --plan "$(share alpha taken.json)" --out b
  assert_regex "${lines[-1]}" "did not start on alpha: perch serve on alpha ended with exit code 3: cannot listen on 127.0.0.2:$PORT: the port is in use"
  assert_json b/agent.json '.state == "stopped"'
  [ ! -e alpha.state ] || fail "the host has a soak that did not start: $(<alpha.state)"
}

# What a unit is made of, without a systemd to run it: the functions of the agent, with a session's names.
# shellcheck disable=SC2034  # they read these
unit_text() {
  local here=/opt/perch/agent OUT="/var/lib/perch/a b/out" RUN=20260101T000000Z-soak STATE=/var/lib/perch/soak.json CPUS=$2 NUMA_POLICY=$3 NUMA_MASK=$4
  local EXIT_USAGE=2 EXIT_HOST=3 EXIT_STOPPED=4 EXIT_INTERNAL=6
  # shellcheck source=/dev/null
  . "$TOP/roles/agent/files/agent.d/soak_unit.bash"
  "$1"
}

@test "the soak's unit may pin memory, has its processors and NUMA policy, and comes back after a crash only" {
  run unit_text unit_command 2-5 bind 1
  for word in --unit=perch-soak.service --collect --property=LimitMEMLOCK=infinity --property=CPUAffinity=2-5 --property=NUMAPolicy=bind --property=NUMAMask=1 \
    --property=Restart=on-failure "--property=RestartPreventExitStatus=2 3 4 6" --property=KillMode=mixed --property=OOMPolicy=continue; do
    assert_line "$word"
  done
  assert_equal "$(tail -n 4 <<<"$output" | paste -sd,)" "/opt/perch/agent/perch-agent,soak-session,--out,/var/lib/perch/a b/out"
  run unit_text unit_command '' '' ''
  refute_output --partial CPUAffinity
  refute_output --partial NUMA
}

# as the transient unit would stand in a file
unit_file() {
  unit_text unit_command "$@" | awk '
    /^--property=(StartLimit|CollectMode)/ { sub(/^--property=/, ""); unit = unit $0 "\n"; next }
    /^--property=/ { sub(/^--property=/, ""); service = service $0 "\n" }
    END { printf "[Unit]\n%s[Service]\nType=simple\nExecStart=/bin/true\n%s", unit, service }'
}

@test "systemd takes both units as they are" {
  unit_text resume_unit '' '' '' | sed 's|^ExecStart="/opt/perch/agent/perch-agent"|ExecStart="/bin/true"|' >perch-soak-resume.service
  grep -qxF 'ExecStart="/bin/true" soak-resume --state "/var/lib/perch/soak.json"' perch-soak-resume.service
  run_expecting 0 systemd-analyze verify --man=no "$PWD/perch-soak-resume.service"
  assert_output ""
  unit_file 0-1 interleave 0 >perch-soak.service
  run_expecting 0 systemd-analyze verify --man=no "$PWD/perch-soak.service"
  assert_output ""
  sed -i 's/^OOMPolicy=.*/OOMPolicy=maybe/' perch-soak.service
  run systemd-analyze verify --man=no "$PWD/perch-soak.service"
  assert_output --partial "OOM policy"
}

@test "systemd keeps a soak: it comes back after a crash, goes on after a boot, and leaves no unit behind" {
  "$TOP/tests/systemd/box" --possible || skip "no systemd of our own can run here"
  soak_plan 60
  share alpha
  cat >steps <<'END'
set -euo pipefail
keep() { "$AGENT" soak-"$1" --state "$PWD/$2.state" "${@:3}"; }
pid() { systemctl show --property=MainPID --value perch-soak.service; }
until_true() { for _ in {1..300}; do ! "$@" || return 0; sleep 0.1; done; echo "not so within 30 s: $*"; exit 1; }
grown() { [ "$(grep -c '"kind":"interval"' alpha/flows/bw/alpha/beta/0/1/client.soak)" -gt "$1" ]; }
came_back() { [ "$(pid)" -gt 0 ] && [ "$(pid)" != "$crashed" ]; }

keep_alpha() { keep start alpha --plan shares.plan/alpha.json --host alpha --engine "$PERCH" --start-window 20 "$@"; }
systemd-run --quiet --unit=perch-soak.service sleep 100
keep_alpha --out alpha 2>stranger || echo "stranger: $?"
systemctl stop perch-soak.service
systemd-run --quiet --unit=perch-soak.service false # a stale unit, of what crashed
until_true systemctl is-failed perch-soak.service

keep start beta --plan shares.plan/beta.json --host beta --out beta --engine "$PERCH" --start-window 20 --supervisor session >/dev/null
# systemd does not answer once, just when its unit has begun: nothing of it stays
mkdir deaf
cat >deaf/systemctl <<'DEAF'
#!/bin/bash
[ "$1" != is-active ] || { echo >>asked; [ "$(grep -c '' asked)" -ne 2 ] || exit 1; }
exec /bin/systemctl "$@"
DEAF
chmod +x deaf/systemctl
PATH=$PWD/deaf:$PATH keep_alpha --out deafened 2>deafened.said || echo "deafened: $?"
grep -q "did not start on alpha" deafened.said
! systemctl is-active --quiet perch-soak.service || echo "deafened: an orphan"
[ ! -e /etc/systemd/system/perch-soak-resume.service ] && [ ! -e alpha.state ]

mkdir noting
printf '#!/bin/bash\nprintf "%%s\\n" "$@" >>synced\nexec /bin/sync "$@"\n' >noting/sync
chmod +x noting/sync
PATH=$PWD/noting:$PATH keep_alpha --out alpha --cpus 0 | jq -r .supervisor
grep -x -e '/etc/systemd/system/perch-soak-resume.service' -e '/etc/systemd/system/multi-user.target.wants' synced
systemctl show perch-soak.service --property=LimitMEMLOCK,CPUAffinity,Restart,KillMode,OOMPolicy
systemctl is-enabled perch-soak-resume.service
until_true grown 0
keep_alpha --out other 2>/dev/null || echo "second: $?"

crashed=$(pid)
kill -KILL "$crashed"
until_true came_back
until_true grown 2
keep status alpha | jq -r .state

systemctl stop perch-soak.service # as a shutdown does
keep status alpha | jq -r .state
sed -i "s/^[^ ]*/another-boot/" alpha/control/clock alpha/control/boot alpha/control/flow.*
systemctl start perch-soak-resume.service
until_true grown 4
jq -r '.soak.boots | length' alpha/agent.json

keep stop alpha
keep stop beta
systemctl is-active perch-soak.service || true
find /etc/systemd /run/systemd/transient -name 'perch-soak*'
END
  LIMIT=200 run_expecting 0 "$TOP/tests/systemd/box" env AGENT="$AGENT" PERCH="$PERCH" bash steps
  for word in systemd LimitMEMLOCK=infinity CPUAffinity=0 Restart=on-failure KillMode=mixed OOMPolicy=continue enabled "second: 3" "stranger: 3" "deafened: 3" failed /etc/systemd/system/perch-soak-resume.service \
    /etc/systemd/system/multi-user.target.wants; do assert_line "$word"; done
  refute_output --partial orphan
  grep -q 'the unit perch-soak.service is active on alpha, and belongs to no soak known here' stranger
  assert_equal "$(tail -n 6 <<<"$output" | paste -sd,)" running,interrupted,3,stopped,stopped,inactive
  assert_json alpha/agent.json '.state == "stopped" and .soak.supervisor == "systemd" and .soak.unit == "perch-soak.service"'
  assert_json "alpha/$BW/client.json" '.state == "done" and .exit == 0 and .counters == null' # they began anew with the boot
  assert_json "alpha/$BW/client.stdout" '.soak.resumed and .soak.gaps >= 2 and .soak.stopped'
}
