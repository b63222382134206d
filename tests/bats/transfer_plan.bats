#!/usr/bin/env bats
# Transfers in suites, plans, records and the verdict. The last test runs them, by two agents on this machine.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

# plan_with TESTS [HOSTS]: a plan for two hosts with three and two RDMA devices, which HOSTS may change, in plan.json
plan_with() {
  jq -n "{run: \"r\", created: \"c\", limits: \"l\", suite: {name: \"s\", title: \"S\", tests: $1}, hosts: ({
    a: {perch_address: \"192.0.2.1\", perch_devices: [{name: \"m0\", netdev: \"e0\", gid_index: 3}, {name: \"m1\", netdev: \"e1\", gid_index: 3},
      {name: \"m2\", netdev: \"e2\", gid_index: 3}]},
    b: {perch_address: \"192.0.2.2\", perch_devices: [{name: \"n0\", netdev: \"f0\"}, {name: \"n1\", netdev: \"f1\"}]}}
    | map_values(. + {perch_fabric: \"roce\", perch_backends: [\"verbs\", \"ofi\", \"tcp\"]}) * (${2:-{\}}))}" |
    jq -f "$TOP/playbooks/plan.jq" >plan.json
}

# transfer_test PARAMS [MEMBERS]: a test of the suite
transfer_test() {
  echo "({name: \"t\", title: \"T\", tool: \"perch\", backend: \"verbs\", op: \"write\", kind: \"transfer\", params: $1} + ${2:-{\}})"
}

# argv: the command of the plan's first flow
argv() { jq -r '.rounds[0].flows[0].client_argv | join(" ")' plan.json; }

@test "a flow owes a record for each size, batch and pair of devices, and one for each sum, in the engine's order" {
  plan_with "[$(transfer_test '{size: "8:16", batch: "1:4", devices: 2}')]"
  assert_json plan.json '.rounds[0].flows[0].expect | length == 18 and .[0:4] == [{kind: "transfer", size_bytes: 8, batch: 1, pair: 0},
    {kind: "transfer", size_bytes: 8, batch: 1, pair: 1}, {kind: "sum", size_bytes: 8, batch: 1}, {kind: "transfer", size_bytes: 8, batch: 2, pair: 0}]
    and .[-1] == {kind: "sum", size_bytes: 16, batch: 4}'
  plan_with "[$(transfer_test '{size: 1024, batch: "3:100"}')]"
  assert_json plan.json '[.rounds[0].flows[0].expect[] | select(.kind == "sum").batch] == [3, 6, 12, 24, 48, 96]'
  # a latency's are as they were
  plan_with '[{name: "t", title: "T", tool: "perch", backend: "tcp", kind: "latency", params: {size: "8:16"}}]'
  assert_json plan.json '.rounds[0].flows[0].expect == [{size_bytes: 8}, {size_bytes: 16}]'
}

@test "plans of transfers are as their schema says" {
  plan_with "[$(transfer_test '{size: "8:16", batch: "1:4", devices: 2}'), {name: \"l\", title: \"L\", tool: \"perch\", backend: \"tcp\",
    kind: \"latency\", params: {size: 8}}]"
  jq '.run = "r" | .created = "2026-01-01T00:00:00Z" | .limits = "roce"' plan.json >whole.json
  check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" whole.json
  local fault
  for fault in '.kind = "bandwidth"' 'del(.batch)' 'del(.pair)' '.batch = 32769' '.pair = 8' 'del(.kind)' '.kind = "sum"'; do
    jq ".rounds[0].flows[0].expect[0] |= ($fault)" whole.json >odd.json
    run check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" odd.json
    assert_equal "$fault: $status" "$fault: 1"
  done
}

@test "the command names the first devices of each host, and what the suite says of the session" {
  plan_with "[$(transfer_test '{size: "1K:64K", batch: 128, devices: 2, cross_rail: 1, queue_pairs: 4, session: true, consecutive: false, duration: "1s"}')]"
  assert_equal "$(argv)" "perch transfer 192.0.2.2 --backend verbs --op write --size 1K:64K --batch 128 --cross-rail 1 --queue-pairs 4 --duration 1s \
--devices m0,m1 --server-devices n0,n1 --gid-index 3 --bind 192.0.2.1 --json"
  plan_with "[$(transfer_test '{size: "1M", chunk: "64K", max_chunks: 8, stride: "2M", buffer: "8M", batch: 4, session: false, consecutive: true, verify: true}' \
    '{op: "read"}')]"
  assert_equal "$(argv)" "perch transfer 192.0.2.2 --backend verbs --op read --size 1M --chunk 64K --max-chunks 8 --stride 2M --buffer 8M --batch 4 \
--consecutive --verify --no-session --device m0 --gid-index 3 --server-device n0 --bind 192.0.2.1 --json"
  # libfabric knows a card by its RDMA device where the provider drives it, else by the interface
  plan_with "[$(transfer_test '{size: 8, devices: 2}' '{backend: "ofi", provider: "tcp;ofi_rxm"}')]"
  [[ "$(argv)" = *"--provider tcp;ofi_rxm --op write --size 8 --devices e0,e1 --server-devices f0,f1 --bind"* ]]
  plan_with "[$(transfer_test '{size: 8, devices: 2}' '{backend: "ofi", provider: "verbs;ofi_rxm"}')]"
  [[ "$(argv)" = *"--devices m0,m1 --server-devices n0,n1 --bind"* ]]
  assert_json plan.json '.rounds[0].flows[0].scope == "hardware"'
  plan_with "[$(transfer_test '{size: 8}' '{backend: "tcp"}')]"
  assert_equal "$(argv)" "perch transfer 192.0.2.2 --backend tcp --op write --size 8 --bind 192.0.2.1 --json"
}

@test "all devices: as many as both hosts name; one without a partner is listed as left out" {
  plan_with "[$(transfer_test '{size: 8, devices: "all"}')]"
  [[ "$(argv)" = *"--devices m0,m1 --server-devices n0,n1 "* ]]
  assert_json plan.json '.excluded == [{test: "m2 in t", reason: "a and b: the other host has no device to pair with"},
    {test: "every test", nic: "m2", reason: "no flow uses m2 of a"}]'
  # one soft device among them makes all of it software
  assert_json plan.json '.rounds[0].flows[0].scope == "hardware"'
  plan_with "[$(transfer_test '{size: 8, devices: "all"}')]" '{b: {perch_devices: ["n0", "rxe1"]}}'
  assert_json plan.json '.rounds[0].flows[0].scope == "software"'
  plan_with "[$(transfer_test '{size: 8}')]" '{b: {perch_devices: ["n0", "rxe1"]}}'
  assert_json plan.json '.rounds[0].flows[0].scope == "hardware"'
}

# left_out REASON PARAMS [MEMBERS [HOSTS]]: no flow is planned, and this is why
left_out() {
  plan_with "[$(transfer_test "$2" "${3:-{\}}")]" "${4:-{\}}"
  jq -e --arg reason "$1" '.rounds == [] and .excluded[0] == {test: "t", $reason}' plan.json >/dev/null || fail "not left out for: $1: $(jq -c '.excluded' plan.json)"
}

@test "hosts without the devices that a test takes, or whose devices do not fit each other, are left out in words" {
  left_out "b names 2 of the 3 devices that the test takes (perch_devices)" '{size: 8, devices: 3}'
  left_out "b names no device (perch_devices), and the test takes all" '{size: 8, devices: "all"}' '{}' '{b: {perch_devices: []}}'
  left_out "b names a device twice (perch_devices)" '{size: 8, devices: 2}' '{}' '{b: {perch_devices: ["n0", "n0"]}}'
  left_out "b does not say which interface is over n1 (netdev in perch_devices)" '{size: 8, devices: 2}' '{backend: "ofi", provider: "tcp"}' \
    '{b: {perch_devices: [{name: "n0", netdev: "f0"}, {name: "n1"}]}}'
  left_out "a and b: devices of a host differ in gid_index: 1, 3; a transfer takes one for all" '{size: 8, devices: 2}' '{}' \
    '{b: {perch_devices: [{name: "n0", gid_index: 1}, {name: "n1", gid_index: 3}]}}'
  left_out "a and b: 4 threads are neither a multiple nor a divisor of 3 device pairs" '{size: 8, devices: "all", threads: 4}' '{}' \
    '{b: {perch_devices: ["n0", "n1", "n2"]}}'
  left_out "a and b: cross_rail 2 needs more than 2 devices, and there are 2" '{size: 8, devices: "all", cross_rail: 2}'
  left_out "a and b: a thread waits by events for one device only: 1 threads do not do for 2" '{size: 8, devices: "all", threads: 1, completion: "event"}'
  # one device is the engine's choice where none is named
  plan_with "[$(transfer_test '{size: 8, devices: 1}')]" '{a: {perch_devices: []}, b: {perch_devices: []}}'
  assert_equal "$(argv)" "perch transfer 192.0.2.2 --backend verbs --op write --size 8 --bind 192.0.2.1 --json"
}

@test "what the engine refuses is refused before anything runs, with the test's name" {
  run plan_with "[$(transfer_test '{size: 8, batch: 32769}')]"
  assert_failure 5
  assert_output --partial 'test t: batch "32769": write N or MIN:MAX (doubling), each from 1 to 32768'
  # the rest through the plan's own module: each would be a process of its own
  jq -n -L "$TOP/playbooks/plan" 'import "transfer" as transfer; import "engine" as _; import "units" as _;
    def refused($params; $members): {backend: "verbs", op: "write", params: $params} + $members
      | [limit(1; try transfer::contradiction catch .)] | .[0];
    [ ((0, 32769, "4:2", "1:x", "1:2:3", "1K", 1.5) | [{size: 8, batch: .}, {}, "batch \"\(.)\": write N"]),
      [{size: 8}, {op: "send"}, "a transfer is a write or a read, not op send"],
      [{size: 8}, {backend: "cxi"}, "plans know no transfers over backend cxi; they know those over verbs, ofi, tcp"],
      [{size: 8}, {provider: "tcp"}, "backend verbs has no providers"],
      [{size: 8, mtu: 1024}, {backend: "ofi"}, "backend ofi has no mtu"],
      [{size: 8, fabric_class: "bulk-data"}, {}, "backend verbs has no fabric_class"],
      [{size: 8, devices: 1}, {backend: "tcp"}, "backend tcp has no devices"],
      [{size: 8, devices: 1}, {backend: "ofi", provider: "shm"}, "provider shm has no devices"],
      [{size: 8, devices: 9}, {}, "devices is a number from 1 to 8, or all"],
      [{size: "8:64K", chunk: "64K"}, {}, "chunk 64K cuts nothing: no transfer is larger"],
      [{size: "64K", max_chunks: 2}, {}, "max_chunks belongs to chunk"],
      [{size: "64K", chunk: "4K", batch: 32768}, {}, "a batch of 32768 is cut into 524288 pieces, and 262144 are possible"],
      [{size: "8:8K", stride: "4K"}, {}, "stride 4K is smaller than the largest transfer"],
      [{size: "4K", stride: "8K", batch: 4, buffer: "16K"}, {}, "a batch of 4 takes a buffer of 28672 bytes, and buffer is 16K"],
      [{size: 8, threads: 65}, {}, "threads are 1 to 64"],
      [{size: 8, devices: 2, threads: 3}, {}, "threads are a multiple or a divisor of the device pairs: 3 is neither of 2"],
      [{size: 8, devices: 2, threads: 1, completion: "event"}, {}, "a thread waits by events for one device only"],
      [{size: 8, cross_rail: 1}, {}, "cross_rail 1 needs more than 1 devices"],
      [{size: 8, queue_pairs: 2, completion: "event"}, {backend: "tcp"}, "backend tcp waits by events for one of its queue_pairs only"],
      [{size: 8, tos: 8, traffic_class: 8}, {}, "tos and traffic_class are the same option"],
      [{size: 8, iterations: 5, duration: "1s"}, {}, "iterations and duration exclude each other"],
      [{size: 8, iterations: 0}, {}, "iterations must be above 0"],
      # and what it takes is not
      ([{size: "8:64K", batch: "1:32768", devices: 8, threads: 4, cross_rail: 7, queue_pairs: 4, session: false}, {}, null],
       [{size: "64K", chunk: "4K", max_chunks: 8, batch: 32768}, {op: "read"}, null],
       [{size: "4K", stride: "8K", batch: 4, buffer: "28K"}, {backend: "tcp"}, null],
       [{size: 8, queue_pairs: 2, completion: "event"}, {}, null]) ]
    | map(.[2] as $wanted | refused(.[0]; .[1]) as $said
          | select(if $wanted == null then $said != null else ($said // "" | startswith($wanted) | not) end) + [$said])' >odd.json
  assert_json odd.json '. == []'
}

@test "a longer sweep, a larger batch and more pairs have later deadlines" {
  local params last=0
  for params in '{size: 64K}' '{size: "32K:64K"}' '{size: "32K:64K", batch: 1024}' '{size: "32K:64K", batch: "1:32768"}' \
    '{size: "32K:64K", batch: "1:32768", iterations: 1000}'; do
    plan_with "[$(transfer_test "${params//64K\}/\"64K\"\}}")]"
    assert_json plan.json ".rounds[0].flows[0].deadline_s >= 30 + .rounds[0].flows[0].estimate_s and .rounds[0].flows[0].deadline_s > $last"
    last=$(jq '.rounds[0].flows[0].deadline_s' plan.json)
  done
  plan_with "[$(transfer_test '{size: 64, batch: 1024, duration: "7s"}')]"
  assert_json plan.json '.rounds[0].flows[0].estimate_s > 7 and .rounds[0].flows[0].estimate_s < 9'
}

# suite_plan SUITE HOSTS: a shipped suite for these hosts (JSON), in plan.json
suite_plan() {
  python3 -c 'import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))' <"$TOP/playbooks/suites/$1.yml" >suite.json
  jq -n --slurpfile suite suite.json --argjson hosts "$2" '{run: "r", created: "c", limits: "l", suite: $suite[0], $hosts}' |
    jq -f "$TOP/playbooks/plan.jq" >plan.json
}

# hosts_of INVENTORY: its hosts with the perch_ variables of theirs and of all
hosts_of() {
  # shellcheck disable=SC2016  # for Python
  python3 -c '
import json, sys, yaml
hosts = {}
def walk(group, inherited):
    own = {**inherited, **{k: v for k, v in (group.get("vars") or {}).items() if k.startswith("perch_")}}
    for name, host in (group.get("hosts") or {}).items():
        hosts[name] = {**own, **{k: v for k, v in (host or {}).items() if k.startswith("perch_")}}
    for name, child in (group.get("children") or {}).items():
        if name != "switches":
            walk(child, own)
walk(yaml.safe_load(open(sys.argv[1]))["all"], {})
print(json.dumps(hosts))' "$1"
}

readonly EIGHT='{"a": {"perch_address": "192.0.2.1"}, "b": {"perch_address": "192.0.2.2"}}'

@test "the four suites measure eight devices as MORI-IO's page does, and plan for every inventory that ships" {
  local suite inventory fabric hosts
  local -A shipped=()
  for inventory in "$TOP"/inventories/*/hosts.yml; do shipped[$inventory]=$(hosts_of "$inventory"); done
  for suite in transfer-read-many-nics transfer-write-sizes transfer-write-batches transfer-one-at-a-time; do
    for fabric in roce infiniband; do
      hosts=$(jq -c --arg fabric "$fabric" 'map_values(. + {perch_fabric: $fabric, perch_backends: ["verbs", "tcp", "ofi"],
        perch_devices: [range(8) | {name: "mlx5_\(.)", netdev: "e\(.)"}]})' <<<"$EIGHT")
      suite_plan "$suite" "$hosts"
      assert_json plan.json '.excluded == []'
      mv plan.json "$suite.json"
    done
    for inventory in "${!shipped[@]}"; do
      suite_plan "$suite" "${shipped[$inventory]}"
      assert_json plan.json '[.rounds[].flows[] | select(.backend == "tcp" or .backend == "ofi")] | length >= 2'
      # whatever backends a host has, all of their tests are there
      jq -e --slurpfile suite suite.json --argjson hosts "${shipped[$inventory]}" '
        ([$hosts[].perch_backends[]] | unique) as $have
        | ([.rounds[].flows[].test] | unique) == ([$suite[0].tests[] | select(.backend as $b | $have | index([$b]) != null).name] | unique)' \
        plan.json || fail "$suite on $inventory: $(jq -c .excluded plan.json)"
    done
  done
  assert_json transfer-read-many-nics.json '[.rounds[].flows[] | select(.backend == "verbs")] | length == 1 and (.[0] | .op == "read" and .scope == "hardware"
    and (.client_argv | join(" ") | contains("--size 8:1M --batch 256 ") and contains("--queue-pairs 2 ") and contains("mlx5_7 --server-devices"))
    and (.expect | length) == 18 * 9)'
  assert_json transfer-write-sizes.json '[.rounds[].flows[] | select(.backend == "verbs") | (.expect | length)] == [18 * 2, 18 * 9]'
  assert_json transfer-write-batches.json '[.rounds[].flows[] | select(.test == "verbs-write") | .expect[] | select(.kind == "sum").batch]
    | length == 16 and .[0] == 1 and .[15] == 32768'
  assert_json transfer-one-at-a-time.json '[.rounds[].flows[] | select(.test == "verbs-read")][0] | .op == "read"
    and ([.expect[] | select(.kind == "sum").size_bytes] | length == 17 and .[0] == 1024 and .[16] == 67108864)'
}

@test "a suite's schema knows what a transfer is, and nothing else" {
  local schema=$TOP/playbooks/suites/suite.schema.json good='{size: "1K", batch: "1:32768", devices: "all", session: false}' fault
  jq -n "{name: \"s\", title: \"S\", tests: [$(transfer_test "$good")]}" >suite.json
  check-jsonschema --schemafile "$schema" suite.json
  for fault in '.params.batch = "0:4"' '.params.batch = 40000' '.params.devices = 9' '.params.devices = "some"' '.params.cq_moderation = 1' \
    'del(.op)' '.op = "send"' '.backend = "null"' '.tool = "perftest" | del(.backend)' '.params.threads = 65' 'del(.params.size)' \
    '.kind = "bandwidth"' '.params |= (.iterations = 1 | .duration = "1s")'; do
    jq ".tests[0] |= ($fault)" suite.json >odd.json
    run check-jsonschema --schemafile "$schema" odd.json
    assert_equal "$fault: $status" "$fault: 1"
  done
}

# agent_run HOST: walks plan.json as that host
agent_run() { "$AGENT" start --plan plan.json --host "$1" --out "run/raw/$1" --engine "$PERCH" --start-window 30 3>&-; }

agent_is_done() { jq -e '.state == "done"' "run/raw/$1/agent.json" >/dev/null; }

# judged CODE: the verdict of ./run
judged() { run_expecting "$1" "$TOP/reports/judge" run; }

# edit FILE FILTER: jq in place
edit() { jq -c "$2" "$1" >edited && mv edited "$1"; }

@test "agents measure transfers over ofi and tcp; all pairs and sums are covered and judged, and none may be missing" {
  jq -n --argjson port "$(free_port)" '{run: "20260101T000000Z-x", created: "2026-01-01T00:00:00Z", limits: "local",
    suite: {name: "s", title: "S", tests: [
      {name: "ofi-write", title: "W", tool: "perch", backend: "ofi", provider: "tcp;ofi_rxm", op: "write", kind: "transfer",
       params: {size: "4K:64K:60K", batch: "1:16", devices: 2, iterations: 20, verify: true, completion: "event"}},
      {name: "ofi-read", title: "R", tool: "perch", backend: "ofi", provider: "tcp;ofi_rxm", op: "read", kind: "transfer",
       params: {size: "64K", batch: 4, queue_pairs: 2, chunk: "16K", stride: "128K", session: false, threads: 1, duration: "200ms"}},
      {name: "tcp-write", title: "W", tool: "perch", backend: "tcp", op: "write", kind: "transfer",
       params: {size: "4K:64K:60K", batch: 16, consecutive: true, iterations: 200, completion: "event"}}]},
    hosts: ({alpha: "127.0.0.1", beta: "127.0.0.2"} | map_values({perch_address: ., perch_fabric: "loopback", perch_backends: ["ofi", "tcp"],
      perch_devices: [{name: "lo", netdev: "lo"}, {name: "lo", netdev: "lo"}], perch_port: $port}))}' | jq -f "$TOP/playbooks/plan.jq" >plan.json
  assert_json plan.json '.excluded == []'
  mkdir -p run/inputs
  cp plan.json run/
  # that limits speak of the right records is tested here, and no speed: they are out of reach of any machine
  jq -n '{schema: "perch.limits/1", name: "local", title: "T", limits: [
    {id: "sums", metric: "bandwidth.gbit_s", scope: {kind: "sum", size_bytes: {min: 65536}, batch: {min: 4}}, bound: {min: 1e-6}, unit: "Gb/s"},
    {id: "pairs", metric: "latency_us.mean", scope: {kind: "transfer", op: "write", batch: 16, backend: ["ofi", "tcp"]}, bound: {max: 2e7}, unit: "us"}
    ] | map(. + {title: .id, source: "site policy: none", severity: "required", remedy: "mend this test"})}' >run/inputs/limits.json
  agent_run alpha >/dev/null
  agent_run beta >/dev/null
  WAIT=100 wait_until agent_is_done alpha
  WAIT=100 wait_until agent_is_done beta

  judged 0
  jq -s . run/records.jsonl >records.json
  jq '{type: "array", items: .}' "$TOP/reports/schema/record.schema.json" >records.schema.json
  check-jsonschema --schemafile records.schema.json records.json
  check-jsonschema --schemafile "$TOP/reports/schema/verdict.schema.json" run/verdict.json
  check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" plan.json
  check-jsonschema --schemafile "$TOP/reports/schema/limits.schema.json" run/inputs/limits.json "$TOP"/reports/limits/*.yml
  # two sizes by five batches by two pairs and their sum; one of one pair; two of one pair
  assert_json run/verdict.json '.verdict == "PASS" and .scope == "software" and .coverage == {planned: 36, measured: 36, missing: []}'
  diff <(jq -c '.rounds[].flows[] | .id as $id | .expect[] | [$id, .kind, .size_bytes, .batch, .pair]' run/plan.json) \
    <(jq -c '[.flow, .kind, .params.size_bytes, .params.batch, .transfer.pair]' run/records.jsonl)
  assert_json records.json 'all(.[]; .status == "ok" and .definition == "batch_completion" and .path.state == "not_judged" and .stall == null)'
  assert_json records.json '[.[] | select(.test == "ofi-read") | .params | [.session, .chunks, .chunk_bytes, .stride_bytes, .queue_pairs]] | unique
    == [[false, 4, 16384, 131072, 2]]'
  # a verified transfer's bandwidth is nobody's limit
  assert_json run/verdict.json '[.checks[] | select(.id == "integrity") | .status] == ["pass"] and ([.checks[] | select(.id | startswith("limit/"))
    | [.id, .status]] | sort) == [["limit/pairs/ofi-write", "pass"], ["limit/pairs/tcp-write", "pass"], ["limit/sums/ofi-read", "pass"],
      ["limit/sums/tcp-write", "pass"]]'

  # one pair's line is lost
  local flow=run/raw/alpha/flows/ofi-write/alpha/beta/1
  cp "$flow/client.stdout" whole
  grep -v '"kind":"transfer".*"size_bytes":4096,.*"batch":8,.*"pair":1' whole >"$flow/client.stdout"
  assert_equal "$(($(wc -l <whole) - $(wc -l <"$flow/client.stdout")))" 1
  judged 3
  assert_json run/verdict.json '.verdict == "INCONCLUSIVE" and (.coverage | .measured == 35 and (.missing | map([.flow, .expect]))
    == [["ofi-write/alpha/beta/1", {kind: "transfer", size_bytes: 4096, batch: 8, pair: 1}]])'
  cp whole "$flow/client.stdout"

  # the plan asked for no session, and the engine says that it had one
  edit run/plan.json '.rounds[0].flows[0].client_argv += ["--no-session"]'
  edit "$flow/client.json" '.argv += ["--no-session"]'
  judged 3
  assert_json run/verdict.json '.verdict == "INCONCLUSIVE" and (.coverage.missing | length) == 30
    and (.coverage.missing[0].message | contains("the plan asks for session false, the output says true"))'
}
