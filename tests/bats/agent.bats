#!/usr/bin/env bats
# perch-agent walking plans on this machine as alpha and beta, with real tools. What goes wrong otherwise is in tests/py/test_agent_*.py.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

readonly QUICK='{tool: "perch", backend: "tcp", kind: "latency", params: {size: "8:16", duration: "100ms"}}'
# Long enough to be interrupted.
readonly LONG='{tool: "perch", backend: "tcp", kind: "latency", params: {size: 8, duration: "30s"}}'
readonly IPERF3='{tool: "iperf3", kind: "bandwidth", params: {size: "128K", duration: "1s"}}'
readonly IPERF='{tool: "iperf", kind: "bandwidth", params: {size: "128K", duration: "1s"}}'

# tests_of JQ-TEST...: a list of tests named t1, t2, ...
tests_of() {
  local number=0 test
  for test in "$@"; do
    number=$((number + 1))
    printf '%s%s' "$([ "$number" = 1 ] && echo '[' || echo ', ')" "($test + {name: \"t$number\", title: \"Test $number\"})"
  done
  echo ']'
}

# agent HOST [OPTION...]: starts it
agent() {
  local host=$1
  shift
  "$(packed_agent)" start --plan "$(share "$host")" --host "$host" --out "$host" --engine "$PERCH" --start-window 15 "$@" 3>&-
}

both_end() {
  local host
  for host in alpha beta; do WAIT=60 wait_until agent_ended "$host"; done
}

# end_of HOST TEST: the line of the host's end of that flow
end_of() { jq -c --arg id "$2/alpha/beta/0/1" 'select(.kind == "flow" and .id == $id)' "$1/flows.jsonl"; }

# The client of a flow has met its server and runs.
client_runs() { marked_processes | grep -q '[/]perch lat 127.0.0.2 '; }

@test "a token file is used by both sides and stands on no command line" {
  plan_of "$(tests_of "$QUICK")" >plan.json
  echo "a-secret-of-this-test" >token && chmod 600 token
  agent alpha --token-file "$PWD/token"
  agent beta --token-file "$PWD/token"
  both_end
  assert_json <(end_of alpha t1) '.exit == 0 and (.argv | join(" ") | contains("token") | not)'
  refute grep -r "a-secret-of-this-test" alpha beta
}

@test "agents with different tokens do not measure, and say so" {
  plan_of "$(tests_of "$QUICK")" >plan.json
  echo "one-secret-of-this-test" >token && echo "another-secret-of-this-test" >other && chmod 600 token other
  agent alpha --token-file "$PWD/token"
  agent beta --token-file "$PWD/other"
  both_end
  assert_json <(end_of alpha t1) '.state == "peer_dead" and (.message | test("token"))'
}

@test "external tools: the client starts when the server listens" {
  plan_of "$(tests_of "$IPERF3" "$IPERF")" >plan.json
  agent alpha
  agent beta
  both_end
  assert_json <(end_of alpha t1) '.state == "done" and .exit == 0 and (.stdout | fromjson | .end.sum_received.bits_per_second > 0)'
  assert_json <(end_of beta t1) '.state == "done" and .exit == 0'
  assert_json <(end_of alpha t2) '.state == "done" and .exit == 0 and (.stdout | test("irtt"))'
}

@test "a stranger on an external tool's port is not measured" {
  plan_of "$(tests_of "$IPERF3" "$QUICK")" >plan.json
  iperf3 -s -B 127.0.0.2 -p "$(jq '.rounds[0].flows[0].ready.port' plan.json)" >/dev/null 2>&1 3>&- &
  agent alpha
  agent beta
  both_end
  kill %1
  assert_json <(end_of beta t1) '.state == "not_run" and (.message | test("did not come to listen on port"))'
  assert_json <(end_of alpha t1) '.state == "not_run" and (.message | test("beta could not start"))'
  assert_json <(end_of alpha t2) '.state == "done" and .exit == 0'
}

@test "a peer's agent killed in the middle: the flow ends, later ones are skipped, earlier ones are kept" {
  plan_of "$(tests_of "$QUICK" "$LONG" "$QUICK")" >plan.json
  agent alpha
  agent beta
  WAIT=60 wait_until grep -q '"start","flow":"t2/' alpha/control/progress.jsonl
  WAIT=60 wait_until client_runs
  kill -KILL "$(cut -d ' ' -f 1 beta/control/pid)"
  WAIT=60 wait_until agent_ended alpha
  assert_json <(end_of alpha t1) '.state == "done" and .exit == 0'
  assert_json <(end_of alpha t2) '.exit == 4 and (.timed_out | not)'
  assert_json <(end_of alpha t3) '.state == "peer_dead" and (.message | test("beta does not answer"))'
  assert_json beta/flows.jsonl '.kind != "end"' # it had no time to say more
}
