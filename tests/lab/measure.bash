# shellcheck shell=bash disable=SC2154,SC2034  # bats, helpers.bash and measure_files set what is not seen here
# A small run on the lab's two machines without Ansible, whose tasks take minutes on emulated processors: a plan made by
# perch/plan, walked by the agents that Ansible would start, fetched and judged here. `load measure` after helpers.

# The engine with the test hooks, which are asleep unless a variable wakes them.
: "${HOOKS:=$TOP/engine/build-hooks/perch}"
# Where all of it lies in a guest, apart from what Ansible brings.
readonly THERE=/opt/perch-faults

# Brings engine and agent to both machines. For setup_file.
measure_files() {
  local host stage=$BATS_FILE_TMPDIR/stage
  [ -x "$HOOKS" ] || make -s -C "$TOP/engine" hooks >&2 3>&-
  mkdir -p "$stage"
  cp "$HOOKS" "$stage/perch"
  "$TOP/.venv/bin/python" "$TOP/setup/zipapp.py" "$stage/perch-agent"
  echo "a secret of the lab's" >"$stage/token"
  for host in alpha beta; do
    tar -c -z -C "$stage" --owner=0 --group=0 . | lab_ssh "$host" "rm -rf $THERE; mkdir -m 755 $THERE; tar -x -z -C $THERE; chmod 600 $THERE/token" 3>&-
  done
}

measure_files_gone() {
  local host
  for host in alpha beta; do lab_ssh "$host" "rm -rf $THERE" 3>&-; done
}

# A suite that loads this file begins and ends so; a fault that no test has made costs nothing to take back.
setup_file() {
  lab_ready
  measure_files
}
teardown_file() { measure_files_gone; }

setup() { common_setup; }
teardown() {
  faults_gone
  common_teardown
}

# The devices of each machine, as an inventory names them; a suite may have more.
DEVICES='[{name: "rxe0", netdev: "eth1", ib_port: 1, gid_index: 1}]'

# second_rail: for setup, both machines have the second device of these too; faults_gone takes it away
second_rail() {
  local host
  DEVICES='[{name: "rxe0", netdev: "eth1", ib_port: 1, gid_index: 1}, {name: "rxe1", netdev: "eth2", ib_port: 1, gid_index: 1}]'
  for host in alpha beta; do lab_ssh "$host" "rdma link add rxe1 type rxe netdev eth2" 3>&- || return; done
}

# lab_plan JQ-TESTS [JQ-ALPHA [JQ-BETA]]: run/plan.json and run/inputs/limits.json for these tests (a jq expression) from alpha
# to beta. The filters change what the inventory says of a host's device.
lab_plan() {
  rm -rf run
  mkdir -p run/inputs run/raw
  jq -n "{run: \"20260101T000000Z-faults\", created: \"2026-01-01T00:00:00Z\", limits: \"rxe\",
    suite: {name: \"faults\", title: \"Faults\", tests: $1},
    hosts: ({alpha: \"$ALPHA\", beta: \"$BETA\"} | map_values({perch_address: ., perch_fabric: \"roce\", perch_scope: \"software\",
      perch_backends: [\"verbs\", \"tcp\"], perch_devices: $DEVICES,
      perch_port: 19300, perch_slowdown: 20})
      | .alpha.perch_devices |= map(${2:-.}) | .beta.perch_devices |= map(${3:-.}))}" |
    "$TOP/.venv/bin/python" "$TOP/tests/planned.py" >plan.json
  put_plan run <plan.json
  "$TOP/.venv/bin/python" -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' \
    <"$TOP/reports/limits/rxe.yml" >run/inputs/limits.json
}

# The agents' own way to start, on each machine as the command words AS (such as: env NAME=VALUE) say. The token is the
# user's who reads it.
AS=() AS_USER=root
start_agents() {
  local host pid
  local -a pids=()
  for host in alpha beta; do
    lab_ssh "$host" "rm -rf $THERE/run; mkdir -m 777 $THERE/run; chown $AS_USER $THERE/token; cat >$THERE/run/share.json" <"$(share "$host")" 3>&-
  done
  for host in alpha beta; do
    lab_ssh "$host" "cd / && ${AS[*]} $THERE/perch-agent start --plan $THERE/run/share.json --host $host --out $THERE/run/$host \
      --engine $THERE/perch --token-file $THERE/token --lease 600 --start-window 150" >"start.$host" 2>&1 3>&- &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || fail "an agent did not start: $(cat start.*)"; done
}

# wait_agents SECONDS HOST...: until these have ended
wait_agents() {
  local host seconds=$1
  for host in "${@:2}"; do
    timeout $((seconds + 30)) "$LAB" ssh "$host" "timeout $seconds bash -c 'until tail -n 1 $THERE/run/$host/flows.jsonl 2>/dev/null | grep -q \"kind\\\":\\\"end\"; do sleep 0.3; done'" 3>&- ||
      fail "$host: its agent has not ended within $seconds s: $(
        cat "start.$host"
        lab_ssh "$host" "tail -n 5 $THERE/run/$host/agent.log; ps -ef | grep -F perch | grep -v grep"
      )"
  done
}

fetch_raw() {
  local host
  for host in "$@"; do lab_ssh "$host" "tar -c -C $THERE/run --exclude=control $host" 3>&- | tar -x -C run/raw; done
}

# judge_run CODE: judged, with that exit code
judge_run() {
  run "$TOP/reports/judge" run
  printf '%s\n' "$output"
  jq -c '{flow, size: .params.size_bytes, status, error, stall, packets, integrity, mtu: .link.mtu_bytes}' run/records.jsonl
  jq -c '.checks[] | select(.status | IN("fail", "inconclusive", "advisory"))' run/verdict.json
  assert_equal "exit code $status" "exit code $1"
}

# measure CODE SECONDS JQ-TESTS: plan, both agents, and the verdict with that exit code (0 PASS, 1 FAIL, 3 INCONCLUSIVE)
measure() {
  lab_plan "$3"
  measure_planned "$1" "$2"
}

measure_planned() {
  start_agents
  wait_agents "$2" alpha beta
  fetch_raw alpha beta
  nothing_left alpha beta
  judge_run "$1"
}

# No process of ours runs on these machines, and no queue pair is held by any: ended within the grace of a stopped child.
nothing_left() {
  local host
  for host in "$@"; do
    # written so that the pattern does not find the shell that asks
    run_on "$host" "for i in \$(seq 60); do
        left=\$(pgrep -af '/opt/perch-fault[s]|^ib_[a-z]+_(lat|bw) '; rdma resource show qp | grep -E 'pid [1-9]')
        [ -n \"\$left\" ] || exit 0
        sleep 0.2
      done; echo \"left running: \$left\"; exit 1"
  done
}

# flow_of TEST: the id of that test's flow
flow_of() { echo "$1/alpha/beta/0/1"; }

# record TEST JQ-CONDITION: holds of each of that test's records
record() {
  jq -es --arg test "$1" "map(select(.test == \$test)) | length > 0 and all(.[]; $2)" run/records.jsonl >/dev/null ||
    fail "of the records of $1 this does not hold: $2
$(jq -c --arg test "$1" 'select(.test == $test)' run/records.jsonl)"
}

# said TEST PATTERN: its error's message has it
said() {
  record "$1" ".error.message | test(\"$2\")"
}

# check ID JQ-CONDITION: of the verdict's check
check() {
  jq -e --arg id "$1" "[.checks[] | select(.id == \$id)] | length == 1 and (.[0] | $2)" run/verdict.json >/dev/null ||
    fail "of the check $1 this does not hold: $2
$(jq -c '.checks[] | [.id, .status, .measured]' run/verdict.json)"
}

# finding TEST STATUS CODE: the flow's own finding, with a remedy
finding() {
  check "flow/$(flow_of "$1")" ".status == \"$2\" and (.measured | test(\"^exit $3|^code $3\")) and .remedy != null"
}

# ---- what the tests of faults share ----

# Of the engine over verbs; latency is counted in messages, small numbers of them: an emulated processor needs a
# millisecond each.
LATENCY='tool: "perch", backend: "verbs", kind: "latency"'
BANDWIDTH='tool: "perch", backend: "verbs", kind: "bandwidth"'

# One packet a message: Soft-RoCE of Linux 6.12 fails sends of several packets with an error of its own when some are lost. 5,000
# packets with payload: at a loss of 0.1 % the chance that none is hit is e^-5 there, and less with their acknowledgements.
CHECKED="[{name: \"send\", title: \"send\", $LATENCY, params: {completion: \"event\", size: \"1K\", iterations: 300, warmup: 20, verify: true}},
  {name: \"stream\", title: \"stream\", $BANDWIDTH, params: {completion: \"event\", size: \"4K\", iterations: 5000, warmup: 10, outstanding: 16, verify: true}}]"

# on_both COMMAND: in both guests
on_both() {
  local host
  for host in alpha beta; do run_on "$host" "$1"; done
}

# Takes back every fault that a test has made; with RESTORE=yes the whole of networks and devices.
faults_gone() {
  local host
  for host in alpha beta; do lab_ssh "$host" 'systemctl stop cut 2>/dev/null; [ ! -e /usr/bin/ib_send_lat.away ] || mv /usr/bin/ib_send_lat.away /usr/bin/ib_send_lat
      rdma link delete rxe1 2>/dev/null; ip link delete down0 2>/dev/null; chmod -f 666 /dev/infiniband/uverbs0; tc qdisc del dev eth1 root 2>/dev/null; tc qdisc del dev eth2 root 2>/dev/null; nft flush ruleset' 3>&-; done
  [ "${RESTORE:-no}" = no ] || for host in alpha beta; do lab_ssh "$host" systemctl restart perch-lab 3>&-; done
}
