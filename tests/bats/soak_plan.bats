#!/usr/bin/env bats
# Soaks in suites and plans: who sends to whom, for how long, and what is refused. Nothing is run here.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

readonly TESTS='[{name: "load", title: "L", tool: "perch", backend: "tcp", kind: "bandwidth", params: {size: "64K", rate: "500Mb/s"}},
  {name: "probe", title: "P", tool: "perch", backend: "ofi", kind: "latency", params: {size: 8, rate: "200msg/s"}}]'

# soak_plan HOSTS SOAK DURATION [TESTS]: a plan of a soak for that many hosts, in plan.json; SOAK and TESTS are jq expressions. With
# the newer jq where there is one, except for the first test.
soak_plan() {
  jq -n --arg duration "$3" "{run: \"r\", created: \"2026-01-01T00:00:00Z\", limits: \"local\", soak_duration: \$duration,
    suite: {name: \"s\", title: \"S\", soak: $2, tests: ${4:-$TESTS}},
    hosts: ([range($1) | {key: \"h\(.)\", value: {perch_address: \"192.0.2.\(. + 1)\", perch_fabric: \"roce\",
      perch_backends: [\"tcp\", \"ofi\"]}}] | from_entries)}" | "$TOP/.venv/bin/python" "$TOP/tests/planned.py" >plan.json
}

# rounds: the flows of each round, as test:client>server/turn
rounds() { jq -c '[.rounds[] | [.flows[] | "\(.test):\(.client)>\(.server)/\(.repeat)"] | join(" ")][]' plan.json; }

# refuses SOAK DURATION MESSAGE [TESTS]
refuses() {
  run soak_plan 2 "$1" "$2" "${4:-$TESTS}"
  assert_failure 5
  assert_output --partial "$3"
}

@test "plans of soaks are as their schema says, and so are the shipped suites" {
  local suite
  for suite in soak soak-local soak-turns; do
    "$TOP/.venv/bin/python" -c 'import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))' <"$TOP/playbooks/suites/$suite.yml" |
      jq '{run: "r", created: "2026-01-01T00:00:00Z", limits: "local", soak_duration: "24h", suite: ., hosts: ([range(4) | {key: "h\(.)",
        value: {perch_address: "192.0.2.\(. + 1)", perch_fabric: "roce", perch_link_gbit_s: 100, perch_backends: ["tcp", "ofi", "verbs"], perch_devices: ["mlx5_0"]}}]
        | from_entries)}' | "$TOP/.venv/bin/python" "$TOP/tests/planned.py" >"$suite.json"
    # tests of a backend that no host has are left out, and nothing else
    assert_json "$suite.json" 'all(.excluded[]; .test | startswith("cxi")) and (.rounds[0].flows | length) > 1'
  done
  for suite in soak soak-local soak-turns; do
    mkdir "$suite"
    put_plan "$suite" <"$suite.json"
    check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" "$suite/plan.json"
  done
  local fault
  for fault in 'del(.duration_s)' '.mode = "both"' '.turn_s = "0"' '.space_bytes.h0 = "much"'; do
    jq ".soak |= ($fault)" soak/plan.json >odd.json
    run check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" odd.json
    assert_equal "$fault: $status" "$fault: 1"
  done
}

@test "a suite's soak is held against the schema: unknown keys, words and times without a unit are refused" {
  cp "$TOP/playbooks/suites/soak-local.yml" suite.yml
  check-jsonschema --schemafile "$TOP/playbooks/suites/suite.schema.json" suite.yml
  local line
  for line in 'mode: wild' 'pairs: some' 'interval: 60' 'stall: 0ms' 'turn: 5m' 'intervall: 60s'; do
    sed "/^soak:/,/^\$/{/mode:/c\\  $line
}" "$TOP/playbooks/suites/soak-local.yml" >suite.yml
    grep -q "^  $line\$" suite.yml
    run check-jsonschema --schemafile "$TOP/playbooks/suites/suite.schema.json" suite.yml
    assert_equal "$line: $status" "$line: 1"
  done
}
