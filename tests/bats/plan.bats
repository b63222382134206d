#!/usr/bin/env bats
# plan.jq: what inventory and suite become. Nothing is run here.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

# plan_for HOSTS TESTS: a plan for that many hosts on a real fabric, in compact JSON
plan_for() {
  jq -n "{run: \"r\", created: \"c\", limits: \"local\", suite: {name: \"s\", title: \"S\", tests: $2},
    hosts: ([range($1) | {key: \"h\(.)\", value: {perch_address: \"192.0.2.\(. + 1)\", perch_fabric: \"roce\",
      perch_backends: [\"tcp\", \"ofi\"]}}] | from_entries)}" | jq -c -f "$TOP/playbooks/plan.jq"
}

readonly LATENCY='[{name: "t", title: "T", tool: "perch", backend: "tcp", kind: "latency", params: {size: "8:64", duration: "2s"}}]'

@test "every pair of hosts is measured once, and no host twice in a round" {
  for n in 2 3 4 7 8 16; do
    plan_for "$n" "$LATENCY" >plan.json
    assert_json plan.json "[.rounds[].flows[] | [.client, .server] | sort] | (length == $n * ($n - 1) / 2) and (unique | length) == length"
    assert_json plan.json 'all(.rounds[]; [.flows[] | .client, .server] | (unique | length) == length)'
    # as few rounds as there can be: n - 1, or n when someone must sit out
    assert_json plan.json "(.rounds | length) == $n - 1 + $n % 2"
  done
}

@test "a flow's id is test/client/server/repeat, and no two are the same" {
  plan_for 4 '[{name: "a", title: "A", tool: "perch", backend: "tcp", kind: "latency", params: {size: 8}, repeat: 3},
    {name: "b", title: "B", tool: "iperf3", kind: "bandwidth", params: {size: "128K", duration: "1s"}}]' >plan.json
  assert_json plan.json '[.rounds[].flows[].id] | length == 24 and (unique | length) == 24 and index("a/h0/h3/2") != null'
}

@test "repeats are spread over the run: all tests once, then again" {
  plan_for 2 '[{name: "a", title: "A", tool: "perch", backend: "tcp", kind: "latency", params: {size: 8}, repeat: 3},
    {name: "b", title: "B", tool: "perch", backend: "tcp", kind: "latency", params: {size: 8}, repeat: 2}]' >plan.json
  assert_json plan.json '[.rounds[].flows[] | "\(.test)\(.repeat)"] == ["a1", "b1", "a2", "b2", "a3"]'
}

@test "expect names every size, as the engine reads --size" {
  for case in '"8:64"=[8,16,32,64]' '"1K"=[1024]' '8=[8]' '"1:3M:1M"=[1,1048577,2097153]' '"6:50"=[6,12,24,48]'; do
    plan_for 2 "[{name: \"t\", title: \"T\", tool: \"perch\", backend: \"tcp\", kind: \"latency\", params: {size: ${case%%=*}}}]" >plan.json
    assert_json plan.json "[.rounds[].flows[].expect[].size_bytes] == ${case#*=}"
  done
}

@test "a perch command line carries the suite's parameters, both addresses, and no token or port" {
  plan_for 2 '[{name: "t", title: "T", tool: "perch", backend: "ofi", provider: "tcp;ofi_rxm", op: "write", kind: "bandwidth",
    params: {size: "64K", duration: "1s", completion: "event", verify: true, bidirectional: false}}]' >plan.json
  assert_json plan.json '.rounds[0].flows[0].client_argv == ["perch", "bw", "192.0.2.2", "--backend", "ofi",
    "--provider", "tcp;ofi_rxm", "--op", "write", "--size", "64K", "--duration", "1s", "--completion", "event", "--verify",
    "--bind", "192.0.2.1", "--json"]'
  assert_json plan.json '.rounds[0].flows[0] | .server_argv == [] and .ready == null'
}

@test "iperf3 and iperf get a server that is ready when its port listens" {
  plan_for 2 '[{name: "i3", title: "I", tool: "iperf3", kind: "bandwidth", params: {size: "128K", duration: "2s", streams: 4}},
    {name: "i2", title: "I", tool: "iperf", kind: "bandwidth", params: {size: "128K", duration: "2s"}}]' >plan.json
  assert_json plan.json '.rounds[0].flows[0] | .ready == {port: 5201, proto: "tcp"} and .server_argv[0:2] == ["iperf3", "-s"]
    and (.client_argv | join(" ")) == "iperf3 -c 192.0.2.2 -B 192.0.2.1 -p 5201 -J -l 131072 -t 2 -P 4"'
  assert_json plan.json '.rounds[1].flows[0] | .ready.port == 5001 and (.client_argv | join(" ") | contains("-e -i 1"))'
}

@test "a deadline is later than the estimate, by the engine's time without progress" {
  plan_for 2 "$LATENCY" >plan.json
  assert_json plan.json '.rounds[0].flows[0] | .estimate_s == 8.5 and .deadline_s >= 30 + .estimate_s'
}

@test "what a host's backends lack is excluded, with the reason, and the others are measured" {
  plan_for 3 "$LATENCY" | jq '.hosts' >/dev/null
  jq -n "{run: \"r\", created: \"c\", limits: \"l\", suite: {name: \"s\", title: \"S\", tests: $LATENCY}, hosts: {
    a: {perch_address: \"192.0.2.1\", perch_fabric: \"roce\", perch_backends: [\"tcp\"]},
    b: {perch_address: \"192.0.2.2\", perch_fabric: \"roce\", perch_backends: [\"tcp\"]},
    c: {perch_address: \"192.0.2.3\", perch_fabric: \"roce\", perch_backends: [\"ofi\"]}}}" | jq -f "$TOP/playbooks/plan.jq" >plan.json
  assert_json plan.json '.excluded == [{test: "t", reason: "c has no backend tcp"}, {test: "every test", reason: "host c is in no flow"}]'
  assert_json plan.json '[.rounds[].flows[].id] == ["t/a/b/1"]'
}

@test "a test that too few hosts can take part in is excluded whole" {
  plan_for 2 '[{name: "n", title: "N", tool: "perch", backend: "null", kind: "latency", params: {size: 8}}]' >plan.json
  assert_json plan.json '.rounds == [] and (.excluded | length) == 5 and (.excluded[2].reason | contains("two hosts are needed"))'
}

@test "shared memory is not measured between different machines" {
  plan_for 2 '[{name: "m", title: "M", tool: "perch", backend: "ofi", provider: "shm", kind: "latency", params: {size: 8}}]' >plan.json
  assert_json plan.json '.rounds == [] and (.excluded[0].reason | contains("shares no memory"))'
}

@test "software is never called hardware, whatever card carries it" {
  plan_for 2 '[{name: "a", title: "A", tool: "perch", backend: "tcp", kind: "latency", params: {size: 8}},
    {name: "b", title: "B", tool: "perch", backend: "ofi", provider: "tcp;ofi_rxm", kind: "latency", params: {size: 8}},
    {name: "c", title: "C", tool: "perch", backend: "ofi", provider: "verbs;ofi_rxm", kind: "latency", params: {size: 8}},
    {name: "d", title: "D", tool: "perch", backend: "ofi", kind: "latency", params: {size: 8}},
    {name: "e", title: "E", tool: "perch", backend: "ofi", provider: "net", kind: "latency", params: {size: 8}},
    {name: "f", title: "F", tool: "perch", backend: "ofi", provider: "cxi", kind: "latency", params: {size: 8}}]' >plan.json
  assert_json plan.json '[.rounds[].flows[].scope] == ["software", "software", "hardware", "software", "software", "hardware"]'
  plan_of "$LATENCY" >plan.json
  assert_json plan.json 'all(.rounds[].flows[]; .scope == "software")'
}

@test "a size or a duration that is none is refused by name" {
  run plan_for 2 '[{name: "t", title: "T", tool: "perch", backend: "tcp", kind: "latency", params: {size: "8X"}}]'
  assert_output --partial '"8X" is no size'
}

@test "the shipped suites become plans for two hosts, the quick one of about a minute" {
  for suite in quick full; do
    "$TOP/.venv/bin/python" -c 'import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)["tests"]))' \
      <"$TOP/playbooks/suites/$suite.yml" >tests.json
    plan_of "$(<tests.json)" >"$suite.json"
    assert_json "$suite.json" '.excluded == [] and (.rounds | length) > 10'
  done
  assert_json quick.json '[.rounds[].flows[].estimate_s] | add | . > 30 and . < 70'
}

# refuses TEST-MEMBERS MESSAGE: such a test ends the plan at once, with its name
refuses() {
  run timeout 10 bash -c "$(declare -f plan_for); TOP='$TOP'; plan_for 2 '[{name: \"odd\", title: \"T\", tool: \"perch\", backend: \"tcp\", kind: \"latency\"} + {$1}]'"
  assert_failure 5
  assert_output --partial "test odd: "
  assert_output --partial "$2"
}

@test "sizes and times that cannot be are refused with the test's name, and none hangs" {
  for size in '"0:64"' 0 '"64:8"' '"8:64:0"' '"1:200:1"' 4294967296 '"1:4G"' '"1:2:3:4"'; do
    refuses "params: {size: $size}" "MIN:MAX:STEP"
  done
  refuses 'params: {size: 8, duration: "0s"}' "duration must be above 0"
  refuses 'params: {size: 8, iterations: 0}' "iterations must be above 0"
  refuses 'params: {size: 8, gap: "soon"}' '"soon" is no duration'
  refuses 'params: {size: 8, rate: "fast"}' '"fast" is no rate'
}

@test "combinations that the engine refuses are refused before anything runs" {
  refuses 'op: "write", params: {size: 8}' "op send only"
  refuses 'provider: "tcp", params: {size: 8}' "backend tcp has no providers"
  refuses 'backend: "null", provider: "tcp", params: {size: 8}' "backend null has no providers"
  refuses 'kind: "bandwidth", params: {size: 8, definition: "half_round_trip"}' "definition belongs to latency"
  refuses 'params: {size: 8, iterations: 1, duration: "1s"}' "exclude each other"
  refuses 'params: {size: 8, outstanding: 2}' "one message at a time"
  refuses 'backend: "ofi", op: "fetch-add", params: {size: "1:8"}' "multiples of 8"
  refuses 'backend: "pigeon", params: {size: 8}' "known are tcp, ofi, verbs, cxi, null"
  refuses 'tool: "iperf", backend: null, kind: "bandwidth", params: {size: "8:16", duration: "1s"}' "one size a test"
}

# time_of PARAMS: [estimate, deadline] of a test
time_of() {
  plan_for 2 "[{name: \"t\", title: \"T\", tool: \"perch\", backend: \"tcp\", kind: \"latency\", params: ({size: 8} + $1)}]" |
    jq -c '.rounds[0].flows[0] | [.estimate_s, .deadline_s]' >time.json
}

@test "iterations, gap, rate and warm-up are in the estimate, and the deadline is later" {
  time_of '{iterations: 1000000}'
  assert_json time.json '.[0] > 20 and .[1] > 1000' # a millisecond a message on a busy machine
  time_of '{iterations: 1000, gap: "100ms"}'
  assert_json time.json '.[0] > 100 and .[1] > 330'
  time_of '{iterations: 1000, rate: "10msg/s"}'
  assert_json time.json '.[0] > 100 and .[1] > 330'
  time_of '{iterations: 1000, rate: "640b/s"}'
  assert_json time.json '.[0] > 100'
  time_of '{duration: "1s", gap: "10ms", warmup: 6000}'
  assert_json time.json '.[0] > 60'
}

@test "a suite with nothing of the network left says so, and a host in no flow is named" {
  jq -n '{run: "r", created: "c", limits: "l", suite: {name: "s", title: "S", tests: [
    {name: "n", title: "N", tool: "perch", backend: "null", kind: "latency", params: {size: 8}},
    {name: "t", title: "T", tool: "perch", backend: "tcp", kind: "latency", params: {size: 8}}]}, hosts: {
    a: {perch_address: "192.0.2.1", perch_fabric: "roce", perch_backends: ["null"]},
    b: {perch_address: "192.0.2.2", perch_fabric: "roce", perch_backends: ["null"]},
    c: {perch_address: "192.0.2.3", perch_fabric: "roce", perch_backends: ["ofi"]}}}' | jq -f "$TOP/playbooks/plan.jq" >plan.json
  assert_json plan.json '.excluded[-2:] == [{test: "every test of the network", reason: "nothing of the network is measured: all its tests are excluded"},
    {test: "every test", reason: "host c is in no flow"}]'
}

@test "NICs that no flow uses are listed by name, with the hosts that have them; the null backend uses none" {
  eight() {
    jq -n '{run: "r", created: "2026-01-01T00:00:00Z", limits: "l", suite: {name: "s", title: "S", tests: '"$1"'}, hosts:
      ({a: "192.0.2.1", b: "192.0.2.2"} | map_values({perch_address: ., perch_fabric: "roce", perch_backends: ["tcp", "verbs", "null"],
        perch_devices: [range(8) | "mlx5_\(.)"]}))}' | jq -f "$TOP/playbooks/plan.jq" >plan.json
    check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" plan.json
  }
  eight '[{name: "t", title: "T", tool: "perch", backend: "verbs", kind: "latency", params: {size: 8}}]'
  assert_json plan.json '.excluded == [range(1; 8) | {test: "every test", nic: "mlx5_\(.)", reason: "no flow uses mlx5_\(.) of a, b"}]'
  eight '[{name: "t", title: "T", tool: "perch", backend: "tcp", kind: "latency", params: {size: 8}},
    {name: "u", title: "U", tool: "perch", backend: "verbs", kind: "transfer", op: "write", params: {size: 8, devices: 6}}]'
  assert_json plan.json '[.excluded[].nic] == ["mlx5_6", "mlx5_7"]'
  eight '[{name: "n", title: "N", tool: "perch", backend: "null", kind: "latency", params: {size: 8}}]'
  assert_json plan.json '[.excluded[] | select(.nic)] | length == 8'
}

@test "the external tools' ports are the server's own" {
  jq -n '{run: "r", created: "c", limits: "l", suite: {name: "s", title: "S", tests: [
    {name: "i3", title: "I", tool: "iperf3", kind: "bandwidth", params: {size: "128K", duration: "1s"}},
    {name: "i2", title: "I", tool: "iperf", kind: "bandwidth", params: {size: "128K", duration: "1s"}}]}, hosts: {
    a: {perch_address: "192.0.2.1", perch_fabric: "roce"},
    b: {perch_address: "192.0.2.2", perch_fabric: "roce", perch_iperf3_port: 6201, perch_iperf_port: 6001}}}' | jq -f "$TOP/playbooks/plan.jq" >plan.json
  assert_json plan.json '[.rounds[].flows[] | .ready.port, (.client_argv, .server_argv | .[index("-p") + 1])] == [6201, "6201", "6201", 6001, "6001", "6001"]'
}

# rdma_plan TESTS [HOST-MEMBERS]: two hosts with a software RDMA device, the second of another name and GID index
rdma_plan() {
  jq -n "{run: \"r\", created: \"c\", limits: \"l\", suite: {name: \"s\", title: \"S\", tests: $1}, hosts: ({
    a: {perch_address: \"192.0.2.1\", perch_devices: [{name: \"mlx5_0\", ib_port: 2, gid_index: 3}]},
    b: {perch_address: \"192.0.2.2\", perch_devices: [{name: \"mlx5_1\", gid_index: 1}], perch_perftest_port: 19101}}
    | map_values(. + {perch_fabric: \"roce\", perch_backends: [\"verbs\"]} + ${2:-{\}}))}" | jq -f "$TOP/playbooks/plan.jq"
}

@test "verbs: each side's device, port and GID index come from its own inventory" {
  rdma_plan '[{name: "t", title: "T", tool: "perch", backend: "verbs", op: "write", kind: "bandwidth",
    params: {size: "64K", duration: "1s", connection: "uc", queue_pairs: 4, traffic_class: 106, rdma_cm: false}}]' >plan.json
  assert_json plan.json '.rounds[0].flows[0] | .scope == "hardware" and (.client_argv | join(" ")) == "perch bw 192.0.2.2 --backend verbs --op write"
    + " --size 64K --duration 1s --connection uc --queue-pairs 4 --traffic-class 106 --device mlx5_0 --ib-port 2 --gid-index 3"
    + " --server-device mlx5_1 --server-gid-index 1 --bind 192.0.2.1 --json"'
}

@test "perftest: program, options and devices of both ends, and a server that is ready when its port listens" {
  rdma_plan '[{name: "t", title: "T", tool: "perftest", op: "send", kind: "bandwidth",
      params: {size: "1M", iterations: 5000, queue_pairs: 4, tx_depth: 64, cq_moderation: 1, mtu: 1024, report_gbits: true, bidirectional: true}},
    {name: "a", title: "A", tool: "perftest", op: "compare-swap", kind: "latency", params: {size: 8, iterations: 1000}},
    {name: "d", title: "D", tool: "perftest", op: "read", kind: "bandwidth", params: {size: "64K", duration: "10s"}},
    {name: "s", title: "S", tool: "perftest", op: "write", kind: "bandwidth", params: {size: "all", iterations: 10}}]' >plan.json
  assert_json plan.json '.rounds[0].flows[0] | .ready == {port: 19101, proto: "tcp"} and .scope == "hardware"
    and (.client_argv | join(" ")) == "ib_send_bw -d mlx5_0 -i 2 -x 3 -p 19101 -F -c RC -s 1048576 -n 5000 -q 4 -t 64 -Q 1 -m 1024 -b --report_gbits 192.0.2.2"
    and (.server_argv | join(" ")) == "ib_send_bw -d mlx5_1 -i 1 -x 1 -p 19101 -F -c RC -s 1048576 -n 5000 -q 4 -t 64 -Q 1 -m 1024 -b --report_gbits"'
  assert_json plan.json '.rounds[1].flows[0].client_argv[0] == "ib_atomic_lat" and (.rounds[1].flows[0].client_argv | join(" ") | contains("-A CMP_AND_SWAP"))'
  assert_json plan.json '.rounds[2].flows[0].client_argv | join(" ") | contains("-D 10 -f 1")'
  assert_json plan.json '.rounds[3].flows[0] | (.client_argv | index("-a")) != null and (.expect | length) == 23 and .expect[22].size_bytes == 8388608'
}

@test "perftest without a named device, or not at hand, is excluded with the reason" {
  local test='[{name: "t", title: "T", tool: "perftest", kind: "latency", params: {size: 8, iterations: 1000}}]'
  rdma_plan "$test" '{perch_devices: []}' >plan.json
  assert_json plan.json '.rounds == [] and (.excluded[0].reason | contains("names no RDMA device (perch_devices)"))'
  rdma_plan "$test" '{perch_tools: ["perch"]}' >plan.json
  assert_json plan.json '.rounds == [] and .excluded[0].reason == "a has no tool perftest"'
}

@test "a software device is software by its name, and a slow host has longer deadlines" {
  local test='[{name: "t", title: "T", tool: "perftest", kind: "latency", params: {size: 8, iterations: 10000}},
    {name: "v", title: "V", tool: "perch", backend: "verbs", kind: "latency", params: {size: 8, iterations: 10000}}]'
  rdma_plan "$test" '{perch_devices: ["rxe0"]}' >laptop.json
  rdma_plan "$test" '{perch_devices: ["rxe0"], perch_slowdown: 10}' >emulated.json
  assert_json laptop.json 'all(.rounds[].flows[]; .scope == "software")'
  jq -n --slurpfile a laptop.json --slurpfile b emulated.json '[$a[0], $b[0]] | map([.rounds[].flows[] | [.estimate_s, .deadline_s]])' >times.json
  assert_json times.json '.[0] as $a | .[1] as $b | all(0, 1; $b[.][0] >= 5 * $a[.][0] and $b[.][1] >= 5 * $a[.][1])'
  assert_json emulated.json '.hosts.a | has("slowdown") | not'
}

@test "what perftest refuses is refused before anything runs" {
  local p='tool: "perftest", backend: null'
  refuses "$p, params: {size: \"8:64\", iterations: 10}" "one size a test"
  refuses "$p, params: {size: 8}" "either iterations or duration"
  refuses "$p, params: {size: 8, iterations: 3}" "5 to 100000000 iterations"
  refuses "$p, op: \"write\", params: {size: 8, iterations: 10, completion: \"event\"}" "no events with op write"
  refuses "$p, op: \"read\", params: {size: 8, iterations: 10, connection: \"uc\"}" "connection uc has no op read"
  refuses "$p, op: \"fetch-add\", params: {size: 64, iterations: 10}" "work on 8 bytes"
  refuses "$p, params: {size: 8, iterations: 10, queue_pairs: 2}" "queue_pairs belongs to bandwidth"
  refuses "$p, params: {size: 8, iterations: 10, tos: 8}" "tos with rdma_cm only"
  refuses "$p, params: {size: 8, duration: \"2s\", margin: \"1s\"}" "twice the margin"
  refuses "$p, kind: \"bandwidth\", params: {size: 8, iterations: 100, batch: 3}" "a multiple of batch"
}

@test "what the engine refuses of queue pairs is refused before anything runs" {
  local v='backend: "verbs"'
  refuses "$v, op: \"read\", params: {size: 8, connection: \"ud\"}" "connection ud has no op read"
  refuses "$v, params: {size: \"8K\", connection: \"ud\"}" "one packet"
  refuses "$v, params: {size: 8, queue_pairs: 2}" "belong to bandwidth"
  refuses "$v, kind: \"bandwidth\", params: {size: 8, queue_pairs: 16, cq_moderation: 8}" "must not be above outstanding"
  refuses "$v, op: \"write\", params: {size: 8, relaxed_ordering: true}" "polls memory"
  refuses 'params: {size: 8, mtu: 1024}' "backend tcp has no mtu"
}
