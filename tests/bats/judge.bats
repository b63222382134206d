#!/usr/bin/env bats
# reports/judge on a recorded run: whole, it passes; with one fault in its plan, its limits or its folder, it never does.

load helpers
load judge

setup() { judge_setup; }
teardown() { common_teardown; }

@test "records, verdict and what they are made of are as their schemas say" {
  judge 0
  command -v check-jsonschema >/dev/null || skip "check-jsonschema is not installed"
  local schema=$TOP/reports/schema
  jq '{type: "array", items: .}' "$schema/record.schema.json" >records.schema.json
  jq -s . run/records.jsonl >records.json
  check-jsonschema --schemafile records.schema.json records.json
  check-jsonschema --schemafile "$schema/verdict.schema.json" run/verdict.json
  check-jsonschema --schemafile "$schema/environment.schema.json" "$TOP"/tests/fixtures/rxe/run/raw/*/environment.json
  check-jsonschema --schemafile "$schema/plan.schema.json" run/plan.json
  check-jsonschema --schemafile "$schema/limits.schema.json" run/inputs/limits.json "$TOP"/reports/limits/*.yml
  check-jsonschema --schemafile "$schema/environment.schema.json" run/raw/*/environment.json
}

@test "limits that judge nothing, or ask for what no record has, are inconclusive" {
  spoil run/inputs/limits.json 3 limits <<'FAULTS'
.limits[].severity = "advisory"
.limits[].scope.tool = "none"
.limits[0].scope.sise = 8
.limits[0].metric = "latency_us.p42"
.limits[0].bound.maximum = 8
FAULTS
}

@test "NICs that no flow uses are a warning with their names; a test that was left out is another thing" {
  check() { jq -c '.checks[] | select(.id == "nics") | [.status, .measured]' run/verdict.json; }
  judge 0
  assert_equal "$(check)" ""
  edit run/plan.json '.hosts[].devices = [{name: "mlx5_0"}] | .excluded = [{test: "every test", nic: "mlx5_1", reason: "no flow uses mlx5_1 of alpha"}]'
  judge 0
  assert_equal "$(check)" '["pass",2]'
  assert_equal "$(check_status excluded)" ""
  edit run/plan.json '.hosts.alpha.devices = [range(8) | {name: "mlx5_\(.)"}]'
  judge 0
  assert_equal "$(check)" '["advisory","1 of 8 NICs measured on alpha, not mlx5_1, mlx5_2, mlx5_3, mlx5_4, mlx5_5, mlx5_6, mlx5_7"]'
  run_expecting 0 "$TOP/.venv/bin/perchctl" summary run
  assert_line --partial "records measured. 1 of 8 NICs measured on alpha, not mlx5_1"
  # a transfer over six of them, and a NIC whose only flow is one of the null backend
  edit run/plan.json '(.rounds[].flows[] | select(.test == "tcp-latency")) |= (.kind = "transfer" | .op = "write" | .params = {size: "8:64", devices: 6} | .expect[0].pair = 5)'
  run "$TOP/reports/judge" run
  [[ "$(check)" = '["advisory","6 of 8 NICs measured on alpha, not mlx5_6, mlx5_7"]' ]] || fail "$(check)"
  edit run/plan.json '.rounds[].flows[] |= (.backend = "null" | del(.params.devices, .expect[].pair))'
  run "$TOP/reports/judge" run
  [[ "$(check)" = '["advisory","0 of 1 NIC measured on beta, not mlx5_0; 0 of 8 NICs measured on alpha, not '* ]] || fail "$(check)"
}

@test "the summary is one screen: verdict, tests, report" {
  judge 0
  run "$TOP/.venv/bin/perchctl" summary run
  assert_equal "$status" 0
  assert_output --partial "Verdict: PASS"
  assert_output --partial "TCP latency"
  assert_output --partial "no proof of hardware"
  assert_output --partial "run/report.md"
}
