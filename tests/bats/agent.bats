#!/usr/bin/env bats
# perch-agent walking plans on this machine as alpha and beta, with the real engine; and everything that can go wrong.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

readonly QUICK='{tool: "perch", backend: "tcp", kind: "latency", params: {size: "8:16", duration: "100ms"}}'
# Long enough to be interrupted.
readonly LONG='{tool: "perch", backend: "tcp", kind: "latency", params: {size: 8, duration: "30s"}}'

# tests_of JQ-TEST...: a list of tests named t1, t2, ...
tests_of() {
  local number=0 test
  for test in "$@"; do
    number=$((number + 1))
    printf '%s%s' "$([ "$number" = 1 ] && echo '[' || echo ', ')" "($test + {name: \"t$number\", title: \"Test $number\"})"
  done
  echo ']'
}

# agent HOST COMMAND [OPTION...]
agent() {
  local host=$1 command=$2
  shift 2
  "$AGENT" "$command" --plan "$(share "$host")" --host "$host" --out "$host" --engine "$PERCH" --start-window 15 "$@" 3>&-
}

# What is waited for here takes long where other tests want the processors, too: a plan of two flows half a minute.
# shellcheck disable=SC2034  # wait_until reads it
readonly WAIT=60

# The client of a flow has met its server and runs: with the LONG one it will for half a minute.
client_runs() { marked_processes | grep -q '[/]perch lat 127.0.0.2 '; }

agent_state_is() { jq -e --arg state "$2" '.state == $state' "$1/agent.json" >/dev/null; }
flow_started() { grep -q "\"start\",\"flow\":\"$2/" "$1/progress.jsonl"; }
both_end() {
  wait_until agent_state_is alpha "${1:-done}"
  wait_until agent_state_is beta "${1:-done}"
}

@test "two agents walk a plan to its end and keep everything" {
  plan_of "$(tests_of "$QUICK" "$QUICK")" >plan.json
  agent alpha start >limit
  agent beta start
  both_end
  [ "$(<limit)" -gt 60 ] || fail "the agent did not say how long its plan may take: $(<limit)"
  assert_json alpha/agent.json '.schema == "perch.agent/1" and .flows_total == 2 and .flows_done == 2 and .message == null
    and .run == "20260101T000000Z-bats" and .plan_sha256 == "'"$(jq -r .plan_sha256 "$(share alpha)")"'"'
  for test in t1 t2; do
    assert_json "alpha/flows/$test/alpha/beta/0/1/client.json" '.schema == "perch.flow/1" and .run == "20260101T000000Z-bats" and .state == "done" and .exit == 0
      and .timed_out == false and .argv[1] == "lat" and .elapsed_s > 0.1'
    assert_json "beta/flows/$test/alpha/beta/0/1/server.json" '.state == "done" and .argv == [] and .exit == null'
    for side in alpha/flows/$test/alpha/beta/0/1/client beta/flows/$test/alpha/beta/0/1/server; do
      assert_json "$side.json" '.counters | .address_interface == "lo" and .route_interface == "lo" and (.before.host.TcpRetransSegs | test("^[0-9]+$"))
        and (.after.time_s | tonumber) > (.before.time_s | tonumber)
        and (.after.netdev.lo.rx_bytes | tonumber) > (.before.netdev.lo.rx_bytes | tonumber) and (.after.netdev | keys) == ["lo"]'
    done
    assert_equal "$(jq -r .params.size_bytes "alpha/flows/$test/alpha/beta/0/1/client.stdout" | xargs)" "8 16"
  done
  assert_equal "$(jq -r '"\(.index)/\(.total) \(.event) \(.exit)"' alpha/progress.jsonl | paste -sd,)" \
    "1/2 start null,1/2 end 0,2/2 start null,2/2 end 0"
  assert_json alpha/environment.json '.schema == "perch.environment/1" and .cpu.cores > 0 and .memory_bytes > 0
    and has("idle") == false and .versions.perch != null and (.interfaces | map(.name) | index("lo") != null)'
}

@test "a token file is used by both sides and stands on no command line" {
  plan_of "$(tests_of "$QUICK")" >plan.json
  echo "a-secret-of-this-test" >token && chmod 600 token
  agent alpha start --token-file "$PWD/token"
  agent beta start --token-file "$PWD/token"
  both_end
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.exit == 0 and (.argv | join(" ") | contains("token") | not)'
  refute grep -r "a-secret-of-this-test" alpha beta
}

@test "agents with different tokens do not measure, and say so" {
  plan_of "$(tests_of "$QUICK")" >plan.json
  echo "one-secret-of-this-test" >token && echo "another-secret-of-this-test" >other && chmod 600 token other
  agent alpha start --token-file "$PWD/token"
  agent beta start --token-file "$PWD/other"
  both_end
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.state == "peer_dead" and (.message | test("token"))'
}

@test "external tools: the client starts when the server listens" {
  plan_of "$(tests_of '{tool: "iperf3", kind: "bandwidth", params: {size: "128K", duration: "1s"}}' \
    '{tool: "iperf", kind: "bandwidth", params: {size: "128K", duration: "1s"}}')" >plan.json
  agent alpha start
  agent beta start
  both_end
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.state == "done" and .exit == 0'
  assert_json alpha/flows/t1/alpha/beta/0/1/client.stdout '.end.sum_received.bits_per_second > 0'
  assert_json beta/flows/t1/alpha/beta/0/1/server.json '.state == "done" and .exit == 0'
  assert_json alpha/flows/t2/alpha/beta/0/1/client.json '.state == "done" and .exit == 0'
  grep -q "irtt" alpha/flows/t2/alpha/beta/0/1/client.stdout
}

@test "a stranger on an external tool's port is not measured" {
  plan_of "$(tests_of '{tool: "iperf3", kind: "bandwidth", params: {size: "128K", duration: "1s"}}' "$QUICK")" >plan.json
  iperf3 -s -B 127.0.0.2 -p "$(jq '.rounds[0].flows[0].ready.port' plan.json)" >/dev/null 2>&1 3>&- &
  agent alpha start
  agent beta start
  both_end
  kill %1
  assert_json beta/flows/t1/alpha/beta/0/1/server.json '.state == "not_run" and (.message | test("did not come to listen on port"))'
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.state == "not_run" and (.message | test("beta could not start"))'
  assert_json alpha/flows/t2/alpha/beta/0/1/client.json '.state == "done" and .exit == 0'
}

@test "a tool that is not installed is named, and the next flow is measured" {
  plan_of "$(tests_of "$QUICK" "$QUICK")" | jq '.rounds[0].flows[0] |= (del(.params) | .client_argv = ["no-such-tool", "-c"])' >plan.json
  agent alpha start
  agent beta start
  both_end
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.state == "not_run" and (.message | startswith("no-such-tool is not installed on alpha"))'
  assert_json alpha/flows/t2/alpha/beta/0/1/client.json '.state == "done"'
}

@test "a client that overruns its deadline is ended, even if it ignores SIGTERM" {
  plan_of "$(tests_of "$QUICK" "$QUICK")" |
    jq '.rounds[0].flows[0] |= (del(.params) | .client_argv = ["bash", "-c", "trap \"\" TERM; sleep 60 & wait; sleep 60"] | .deadline_s = 1)' >plan.json
  agent alpha start
  agent beta start
  both_end
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.timed_out and .state == "done" and .elapsed_s < 10 and (.message | test("deadline"))'
  assert_json alpha/flows/t2/alpha/beta/0/1/client.json '.state == "done" and .exit == 0'
}

@test "a number that a stranger has after a child of the agent's is no child: it is not waited for, and not ended" {
  local -a within=(unshare --user --map-root-user --pid --fork --mount-proc)
  "${within[@]}" test -w /proc/sys/kernel/ns_last_pid || skip "no process namespaces here, or a kernel that does not let a number be chosen"
  cat >again <<'END'
set -euo pipefail
. "$AGENT.d/counters.bash"
. "$AGENT.d/processes.bash"
spawn 5 /dev/null /dev/null true
child=$CHILD
while alive "$child"; do sleep 0.01; done
wait "$child"
(echo $((child - 1)) >/proc/sys/kernel/ns_last_pid; setsid sleep 20 &)
until [ "$(cat "/proc/$child/comm" 2>/dev/null)" = sleep ]; do sleep 0.01; done
! alive "$child" || echo "taken for alive"
wait_child "$child"
end_child "$child"
grep -q sleeping "/proc/$child/status" || echo "ended"
echo "exit code $STATUS"
END
  AGENT=$(dirname "$AGENT")/agent run_expecting 0 "${within[@]}" --kill-child bash -c 'bash again; exit' # a bash between, as process 1 is everybody's parent
  assert_equal "$output" "exit code 0"
}

@test "a peer's agent killed in the middle: the flow ends, later ones are skipped, earlier ones are kept" {
  plan_of "$(tests_of "$QUICK" "$LONG" "$QUICK")" >plan.json
  agent alpha start
  agent beta start
  wait_until flow_started alpha t2
  wait_until client_runs
  kill -KILL "$(cut -d ' ' -f 1 beta/control/pid)"
  wait_until agent_state_is alpha "done"
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.state == "done" and .exit == 0'
  assert_json alpha/flows/t2/alpha/beta/0/1/client.json '.exit == 4 and .elapsed_s < 15'
  assert_json alpha/flows/t3/alpha/beta/0/1/client.json '.state == "peer_dead" and (.message | test("beta does not answer"))'
  assert_json beta/agent.json '.state == "running"' # it had no time to say otherwise
}

@test "a client's agent killed in the middle: the server's end does not wait for its whole deadline" {
  plan_of "$(tests_of "$LONG" "$QUICK")" | jq '.rounds[0].flows[0].deadline_s = 6' >plan.json
  agent alpha start
  agent beta start
  wait_until flow_started beta t1
  wait_until client_runs
  kill -KILL "$(cut -d ' ' -f 1 alpha/control/pid)"
  wait_until agent_state_is beta "done"
  assert_json beta/flows/t1/alpha/beta/0/1/server.json '.state == "peer_dead" and .elapsed_s < 20'
  assert_json beta/flows/t2/alpha/beta/0/1/server.json '.state == "peer_dead"'
}

@test "a peer that never starts is dead after the start window" {
  plan_of "$(tests_of "$QUICK")" >plan.json
  LIMIT=30 run_agent run --plan "$(share alpha)" --host alpha --out alpha --engine "$PERCH" --start-window 2
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.state == "peer_dead" and .counters == null'
  LIMIT=30 run_agent run --plan "$(share beta)" --host beta --out beta --engine "$PERCH" --start-window 2
  assert_json beta/flows/t1/alpha/beta/0/1/server.json '.state == "peer_dead" and (.message | test("alpha does not answer"))'
}

@test "SIGTERM: nothing stays behind, and each flow that did not run says why" {
  plan_of "$(tests_of "$QUICK" "$LONG" "$QUICK")" >plan.json
  agent alpha start
  agent beta start
  wait_until flow_started alpha t2
  run_agent stop --out alpha
  assert_output "stopped"
  assert_json alpha/agent.json '.state == "stopped" and .message == "stopped by the controller" and .flows_done == 1'
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.state == "done"'
  assert_json alpha/flows/t3/alpha/beta/0/1/client.json '.state == "not_run" and .message == "stopped by the controller"'
  run_agent stop --out beta
  run_agent stop --out beta
  assert_output "" # there was nothing to stop any more
}

@test "without a controller the lease ends the agents" {
  plan_of "$(tests_of "$LONG")" >plan.json
  agent alpha start --lease 2
  agent beta start --lease 2
  both_end stopped
  assert_json alpha/agent.json '.message | test("no word from the controller for more than 2 s")'
}

@test "poll renews the lease and prints what is new" {
  plan_of "$(tests_of "$LONG")" >plan.json
  agent alpha start --lease 3 --start-window 60
  for _ in 1 2 3 4 5 6 7; do
    run_agent poll --out alpha --offset 0
    assert_line --index 0 alive
    sleep 1
  done
  assert_line --index 1 --partial '"event":"start"'
  run_agent poll --out alpha --offset "$(wc -c <alpha/progress.jsonl)"
  assert_output alive
  run_agent stop --out alpha
  run_agent poll --out alpha --offset 0
  assert_line --index 0 gone
}

@test "port in use: exit code 3, and every flow says so" {
  plan_of "$(tests_of "$QUICK" "$QUICK")" >plan.json
  local port
  port=$(jq .hosts.alpha.port plan.json)
  "$PERCH" serve --bind 127.0.0.1 --port "$port" --ready-file ready 2>/dev/null 3>&- &
  wait_until test -e ready
  run_agent 3 start --plan "$(share alpha)" --host alpha --out alpha --engine "$PERCH"
  assert_output --partial "$port"
  kill %1
  for test in t1 t2; do
    assert_json "alpha/flows/$test/alpha/beta/0/1/client.json" '.state == "not_run" and .exit == null and (.message | test("perch serve on alpha ended"))
      and .run == "20260101T000000Z-bats"'
  done
  assert_json alpha/agent.json '.state == "stopped" and (.message | test("perch serve"))'
}

@test "a child that loses its SIGTERM is killed at the agent's end, and not waited for" {
  cat >ends.bash <<'BASH'
set -euo pipefail
for part in counters files processes; do source "$1/$part.bash"; done
(trap "" TERM && : >deaf && exec sleep 300) &
until [ -e deaf ]; do sleep 0.01; done
end_children
BASH
  LIMIT=60 run_expecting 0 bash ends.bash "$TOP/roles/agent/files/agent.d"
}

@test "no engine: exit code 3, the path, and what to do" {
  plan_of "$(tests_of "$QUICK")" >plan.json
  run_agent 3 run --plan "$(share alpha)" --host alpha --out alpha --engine ./no-such-engine
  assert_output --partial "./no-such-engine"
  assert_output --partial "make engine"
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.state == "not_run" and (.message | test("no engine"))'
}

@test "a directory that cannot be written: exit code 3, and nothing is started" {
  plan_of "$(tests_of "$QUICK")" >plan.json
  for out in /proc/perch-agent ./plan.json/out; do
    run_agent 3 run --plan "$(share alpha)" --host alpha --out "$out" --engine "$PERCH"
    assert_output --partial "cannot write to the directory $out"
  done
}

@test "a full disk: exit code 6, a clear message, and what was measured before is kept" {
  # A limit on the size of files fails a write as a full disk does, and needs no root: the progress outgrows it.
  local flow='{tool: "perch", backend: "tcp", kind: "latency", params: {size: 8, duration: "50ms"}}'
  plan_of "$(tests_of "$flow" "$flow" "$flow" "$flow" "$flow" "$flow" "$flow" "$flow" "$flow")" >plan.json
  agent beta start
  local pid status=0
  bash -c 'trap "" XFSZ; exec "$@"' -- "$AGENT" run --plan "$(share alpha)" --host alpha --out alpha --engine "$PERCH" --start-window 15 >said 2>&1 3>&- &
  pid=$!
  wait_until flow_started alpha t1
  prlimit --pid "$pid" --fsize=3072
  wait "$pid" || status=$?
  assert_equal "$status" 6
  grep -F "the disk is full" said
  assert_json alpha/flows/t1/alpha/beta/0/1/client.json '.state == "done" and .exit == 0'
  assert_json alpha/agent.json '.state == "stopped" and (.message | test("the disk is full"))'
  run_agent stop --out beta
}

@test "perch serve killed in the middle: its signal is named, and the flow that had begun is not said to be not run" {
  plan_of "$(tests_of "$QUICK" "$LONG" "$QUICK")" >plan.json
  agent alpha start
  agent beta start
  wait_until flow_started beta t2
  wait_until client_runs
  kill -KILL "$(marked_processes | awk '$3 == "serve" && /--bind 127.0.0.2 / { print $1 }')"
  wait_until agent_state_is beta stopped
  wait_until test -s beta/flows/t3/alpha/beta/0/1/server.json # what never ran is said after the state
  assert_json beta/agent.json '.message | test("^perch serve on beta ended: by signal KILL$")'
  assert_json beta/flows/t1/alpha/beta/0/1/server.json '.state == "done" and .message == null'
  assert_json beta/flows/t2/alpha/beta/0/1/server.json '.state == "done" and (.message | test("its end was not seen here: perch serve on beta"))'
  assert_json beta/flows/t3/alpha/beta/0/1/server.json '.state == "not_run" and (.message | test("signal KILL"))'
  assert_json alpha/flows/t2/alpha/beta/0/1/client.json '.exit == 4'
  run_agent stop --out alpha
}

@test "a plan that is cut off, of another version, or without this host is refused with exit code 3" {
  plan_of "$(tests_of "$QUICK")" >plan.json
  cp "$(share alpha)" whole.json
  head -c 300 whole.json >cut.json
  run_agent 3 run --plan cut.json --host alpha --out alpha --engine "$PERCH"
  assert_output --partial "cannot read the plan cut.json"
  jq '.schema = "perch.share/9"' whole.json >other.json
  run_agent 3 run --plan other.json --host alpha --out alpha --engine "$PERCH"
  assert_output --partial 'has the schema "perch.share/9"; this agent reads perch.share/1'
  run_agent 3 run --plan whole.json --host gamma --out gamma --engine "$PERCH"
  assert_output --partial 'is of host "alpha", and not of "gamma"'
  jq 'del(.hosts.beta)' whole.json >holes.json
  run_agent 3 run --plan holes.json --host alpha --out alpha --engine "$PERCH"
  assert_output --partial "the plan holes.json is damaged"
}

@test "an earlier run's results are not overwritten" {
  plan_of "$(tests_of "$QUICK")" >plan.json
  mkdir alpha && echo '{}' >alpha/agent.json
  run_agent 3 run --plan "$(share alpha)" --host alpha --out alpha --engine "$PERCH"
  assert_output --partial "an earlier run"
  assert_equal "$(<alpha/agent.json)" "{}"
}

@test "wrong usage is exit code 2, with the option's name" {
  run_agent 2 run --plan plan.json --no-such-option 1
  assert_output --partial "--no-such-option"
  run_agent 2 run --host alpha
  assert_output --partial "--plan is required"
  run_agent 2 run --plan p --host h --out o --engine e --lease soon
  assert_output --partial '"soon"'
  run_agent 2 walk
  assert_output --partial "perch-agent run"
}
