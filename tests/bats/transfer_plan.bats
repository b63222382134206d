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
    | map_values(. + {perch_fabric: \"roce\", perch_link_gbit_s: 100, perch_backends: [\"verbs\", \"ofi\", \"tcp\"]}) * (${2:-{\}}))}" |
    "$TOP/.venv/bin/python" "$TOP/tests/planned.py" >plan.json
}

# transfer_test PARAMS [MEMBERS]: a test of the suite
transfer_test() {
  echo "({name: \"t\", title: \"T\", tool: \"perch\", backend: \"verbs\", op: \"write\", kind: \"transfer\", params: $1} + ${2:-{\}})"
}

# argv: the command of the plan's first flow
argv() { jq -r '.rounds[0].flows[0].client_argv | join(" ")' plan.json; }

# all_refused SCHEMA FILE PLACE FAULT...: the schema takes the file, and with none of these faults at the place. One process looks
# at all, as it takes longer to start.
all_refused() {
  local schema=$1 good=$2 place=$3 fault n=0
  shift 3
  for fault; do
    n=$((n + 1))
    jq "$place |= ($fault)" "$good" >"odd.$n.json"
  done
  run check-jsonschema --schemafile "$schema" "$good" odd.*.json
  assert_equal "$status" 1
  refute_line --partial " $good::"
  n=0
  for fault; do
    n=$((n + 1))
    assert_line --partial " odd.$n.json::" || fail "not refused: $fault"
  done
}

@test "plans of transfers are as their schema says" {
  plan_with "[$(transfer_test '{size: "8:16", batch: "1:4", devices: 2}'), {name: \"l\", title: \"L\", tool: \"perch\", backend: \"tcp\",
    kind: \"latency\", params: {size: 8}}]"
  mkdir run
  put_plan run <plan.json
  jq -s . run/rounds.jsonl >rounds.json
  jq '{type: "array", items: {"$ref": ."$ref"}, "$defs": ."$defs"}' "$TOP/reports/schema/rounds.schema.json" >rounds.schema.json
  check-jsonschema --schemafile rounds.schema.json rounds.json
  check-jsonschema --schemafile "$TOP/reports/schema/share.schema.json" "$(share a)"
  all_refused "$TOP/reports/schema/plan.schema.json" run/plan.json '.tests.t.forms["2"].expect[0]' '.kind = "bandwidth"' '.size_bytes = "8"' '.pair = 0.5'
}

# left_out REASON PARAMS [MEMBERS [HOSTS]]: no flow is planned, and this is why
left_out() {
  plan_with "[$(transfer_test "$2" "${3:-{\}}")]" "${4:-{\}}"
  jq -e --arg reason "$1" '.rounds == [] and .excluded[0] == {test: "t", $reason}' plan.json >/dev/null || fail "not left out for: $1: $(jq -c '.excluded' plan.json)"
}

# suite_plan SUITE HOSTS: a shipped suite for these hosts (JSON), in plan.json
suite_plan() {
  python3 -c 'import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))' <"$TOP/playbooks/suites/$1.yml" >suite.json
  jq -n --slurpfile suite suite.json --argjson hosts "$2" '{run: "r", created: "c", limits: "l", suite: $suite[0], $hosts}' |
    "$TOP/.venv/bin/python" "$TOP/tests/planned.py" >plan.json
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

@test "a suite's schema knows what a transfer is, and nothing else" {
  local schema=$TOP/playbooks/suites/suite.schema.json good='{size: "1K", batch: "1:32768", devices: "all", session: false}'
  jq -n "{name: \"s\", title: \"S\", tests: [$(transfer_test "$good")]}" >suite.json
  all_refused "$schema" suite.json '.tests[0]' '.params.batch = "0:4"' '.params.batch = 40000' '.params.devices = 17' '.params.devices = []' \
    '.params.cq_moderation = 1' 'del(.op)' '.op = "send"' '.backend = "null"' '.tool = "perftest" | del(.backend)' '.params.threads = 65' \
    'del(.params.size)' '.kind = "bandwidth"' '.params |= (.iterations = 1 | .duration = "1s")'
}

# agent_run HOST: walks plan.json as that host
agent_run() { "$(packed_agent)" start --plan "$(share "$1")" --host "$1" --out "run/raw/$1" --engine "$PERCH" --start-window 30 3>&-; }

# edit_line FILTER: of the client's line of ofi-write in run/raw/alpha/flows.jsonl
edit_line() {
  jq -c "if .kind == \"flow\" and .id == \"ofi-write/alpha/beta/0/1\" then $1 else . end" run/raw/alpha/flows.jsonl >edited
  mv edited run/raw/alpha/flows.jsonl
}

# judged CODE: the verdict of ./run
judged() { run_expecting "$1" "$TOP/reports/judge" run; }

@test "agents measure transfers over ofi and tcp; all pairs and sums are covered and judged, and none may be missing" {
  jq -n --argjson port "$(free_port)" '{run: "20260101T000000Z-x", created: "2026-01-01T00:00:00Z", limits: "sums",
    suite: {name: "s", title: "S", tests: [
      {name: "ofi-write", title: "W", tool: "perch", backend: "ofi", provider: "tcp;ofi_rxm", op: "write", kind: "transfer",
       params: {size: "4K:64K:60K", batch: "1:16", devices: 2, iterations: 20, verify: true, completion: "event"}},
      {name: "ofi-read", title: "R", tool: "perch", backend: "ofi", provider: "tcp;ofi_rxm", op: "read", kind: "transfer",
       params: {size: "64K", batch: 4, queue_pairs: 2, chunk: "16K", stride: "128K", session: false, threads: 1, duration: "200ms"}},
      {name: "tcp-write", title: "W", tool: "perch", backend: "tcp", op: "write", kind: "transfer",
       params: {size: "4K:64K:60K", batch: 16, consecutive: true, iterations: 200, completion: "event"}}]},
    hosts: ({alpha: "127.0.0.1", beta: "127.0.0.2"} | map_values({perch_address: ., perch_fabric: "loopback", perch_backends: ["ofi", "tcp"],
      perch_devices: [{name: "lo", netdev: "lo"}, {name: "lo", netdev: "lo"}], perch_port: $port}))}' | "$TOP/.venv/bin/python" "$TOP/tests/planned.py" >plan.json
  assert_json plan.json '.excluded == []'
  mkdir -p run/inputs
  put_plan run <plan.json
  # that limits speak of the right records is tested here, and no speed: they are out of reach of any machine
  jq -n '{schema: "perch.limits/1", name: "sums", title: "T", limits: [
    {id: "sums", metric: "bandwidth.gbit_s", scope: {kind: "sum", size_bytes: {min: 65536}, batch: {min: 4}}, bound: {min: 1e-6}, unit: "Gb/s"},
    {id: "pairs", metric: "latency_us.mean", scope: {kind: "transfer", op: "write", batch: 16, backend: ["ofi", "tcp"]}, bound: {max: 2e7}, unit: "us"}
    ] | map(. + {title: .id, source: "site policy: none", severity: "required", remedy: "mend this test"})}' >run/inputs/limits.json
  agent_run alpha >/dev/null
  agent_run beta >/dev/null
  WAIT=100 wait_until agent_ended run/raw/alpha
  WAIT=100 wait_until agent_ended run/raw/beta

  judged 0
  jq -s . run/records.jsonl >records.json
  jq '{type: "array", items: .}' "$TOP/reports/schema/record.schema.json" >records.schema.json
  check-jsonschema --schemafile records.schema.json records.json
  check-jsonschema --schemafile "$TOP/reports/schema/verdict.schema.json" run/verdict.json
  check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" run/plan.json
  check-jsonschema --schemafile "$TOP/reports/schema/limits.schema.json" run/inputs/limits.json "$TOP"/reports/limits/*.yml
  # two sizes by five batches by two pairs and their sum; one of one pair; two of one pair
  assert_json run/verdict.json '.verdict == "PASS" and .scope == "software" and .coverage == {planned: 36, measured: 36, missing: []}'
  diff <(spelled run | jq -c '.rounds[].flows[] | .id as $id | .expect[] | [$id, .kind, .size_bytes, .batch, .pair]') \
    <(jq -c '[.flow, .kind, .params.size_bytes, .params.batch, .transfer.pair]' run/records.jsonl)
  assert_json records.json 'all(.[]; .status == "ok" and .definition == "batch_completion" and .path.state == "not_judged" and .stall == null)'
  assert_json records.json '[.[] | select(.test == "ofi-read") | .params | [.session, .chunks, .chunk_bytes, .stride_bytes, .queue_pairs]] | unique
    == [[false, 4, 16384, 131072, 2]]'
  # a verified transfer's bandwidth is nobody's limit
  assert_json run/verdict.json '[.checks[] | select(.id == "integrity") | .status] == ["pass"] and ([.checks[] | select(.id | startswith("limit/"))
    | [.id, .status]] | sort) == [["limit/pairs/ofi-write", "pass"], ["limit/pairs/tcp-write", "pass"], ["limit/sums/ofi-read", "pass"],
      ["limit/sums/tcp-write", "pass"]]'

  # one pair's line is lost
  cp run/raw/alpha/flows.jsonl whole
  edit_line '.stdout |= (split("\n") | map(select(test("\"kind\":\"transfer\".*\"size_bytes\":4096,.*\"batch\":8,.*\"pair\":1") | not)) | join("\n"))'
  lines() { jq -s 'map(.stdout // "" | split("\n") | length) | add' "$1"; }
  assert_equal "$(($(lines whole) - $(lines run/raw/alpha/flows.jsonl)))" 1
  judged 3
  assert_json run/verdict.json '.verdict == "INCONCLUSIVE" and (.coverage | .measured == 35 and (.missing | map([.flow, .expect]))
    == [["ofi-write/alpha/beta/0/1", {kind: "transfer", size_bytes: 4096, batch: 8, pair: 1}]])'
  cp whole run/raw/alpha/flows.jsonl

  # the plan asked for no session, and the engine says that it had one
  local plan
  plan=$(sha256sum <run/plan.json)
  edit run/plan.json '.rounds[0].flows[0].params.session = false'
  sed -i "s/${plan%% *}/$(sha256sum <run/plan.json | cut -d ' ' -f 1)/" run/raw/*/*.jsonl
  edit_line ".argv = $(spelled run | jq -c '.rounds[0].flows[0].client_argv') + .argv[-2:]"
  judged 3
  assert_json run/verdict.json '.verdict == "INCONCLUSIVE" and (.coverage.missing | length) == 30
    and (.coverage.missing[0].message | contains("the plan asks for session false, the output says true"))'
}
