#!/usr/bin/env bats
# reports/judge on a recorded run: whole, it passes; with one fault in its plan, its limits or its folder, it never does.

load helpers
load judge

setup() { judge_setup; }
teardown() { common_teardown; }

@test "a whole run passes, in one line, with one record for every expect entry" {
  judge 0
  assert_equal "${#lines[@]}" 1
  assert_output --regexp '^PASS: [0-9]+ of [0-9]+ records measured, scope software$'
  diff <(jq -r '.rounds[].flows[] | .id as $id | .expect[] | "\($id) \(.size_bytes)"' run/plan.json) \
    <(jq -r '"\(.flow) \(.params.size_bytes)"' run/records.jsonl)
}

@test "records, verdict and what they are made of are as their schemas say" {
  judge 0
  command -v check-jsonschema >/dev/null || skip "check-jsonschema is not installed"
  local schema=$TOP/reports/schema
  jq '{type: "array", items: .}' "$schema/record.schema.json" >records.schema.json
  jq -s . run/records.jsonl >records.json
  check-jsonschema --schemafile records.schema.json records.json
  check-jsonschema --schemafile "$schema/verdict.schema.json" run/verdict.json
  check-jsonschema --schemafile "$schema/environment.schema.json" "$TOP"/tests/fixtures/rxe/run/raw/*/environment.json
  find "$TOP/tests/fixtures/rxe/run/raw" -path '*/flows/*.json' -exec check-jsonschema --schemafile "$schema/flow.schema.json" {} +
  check-jsonschema --schemafile "$schema/plan.schema.json" run/plan.json
  check-jsonschema --schemafile "$schema/limits.schema.json" run/inputs/limits.json "$TOP"/reports/limits/*.yml
  check-jsonschema --schemafile "$schema/environment.schema.json" run/raw/*/environment.json
  find run/raw -path '*/flows/*.json' -exec check-jsonschema --schemafile "$schema/flow.schema.json" {} +
}

@test "judging again gives the same bytes and leaves nothing else behind" {
  judge 0
  cp run/records.jsonl run/verdict.json .
  judge 0
  cmp records.jsonl run/records.jsonl
  cmp verdict.json run/verdict.json
  run ls -A run
  assert_output "$(printf '%s\n' inputs plan.json raw records.jsonl verdict.json)"
}

@test "usage and a folder that is not there are exit code 2" {
  run "$JUDGE"
  assert_equal "$status" 2
  run "$JUDGE" nowhere
  assert_equal "$status" 2
  assert_output --partial "no such run: nowhere"
}

@test "a missing flow is inconclusive and listed" {
  rm -r "$TCP"
  judge 3
  assert_equal "$(jq -r '.coverage.missing | map(.flow) | unique[]' run/verdict.json)" tcp-latency/alpha/beta/1
  assert_equal "$(check_status flow/tcp-latency/alpha/beta/1)" inconclusive
}

@test "a host without raw outputs is inconclusive" {
  rm -r run/raw/beta
  judge 3
  assert_equal "$(check_status host/beta)" inconclusive
}

@test "a host whose agent had not finished is inconclusive" {
  edit run/raw/alpha/agent.json '.state = "running"'
  judge 3
  assert_equal "$(check_status host/alpha)" inconclusive
}

@test "a plan cut in half, empty or missing is inconclusive, and replaces an earlier PASS" {
  judge 0
  local size
  size=$(stat -c %s run/plan.json)
  truncate -s $((size / 2)) run/plan.json
  judge 3
  assert_output --partial "plan.json is damaged"
  assert_equal "$(verdict)" INCONCLUSIVE
  : >run/plan.json
  judge 3
  rm run/plan.json
  judge 3
  assert_output --partial "plan.json is missing"
  assert_equal "$(verdict)" INCONCLUSIVE
}

@test "a plan that expects nothing is inconclusive" {
  edit run/plan.json '.rounds = []'
  judge 3
  assert_output --partial "holds no flow"
}

@test "a plan that owes one record twice, or one of no size, is inconclusive" {
  cp run/plan.json plan.json
  edit run/plan.json '.rounds[0].flows[0].expect |= . + .[0:1]'
  judge 3
  assert_output --partial "expects a record twice"
  cp plan.json run/plan.json
  edit run/plan.json '.rounds[0].flows[0].expect = [{}]'
  judge 3
  assert_output --partial "without a size"
}

@test "a flow's id cannot climb out of raw/" {
  edit run/plan.json '.rounds[0].flows[0].id = "../../x/y"'
  judge 3
  assert_output --partial "is not test/client/server/repeat"
  # a name of two lines is two paths, and the second may lead anywhere
  cp "$TOP/tests/fixtures/loopback/run/plan.json" run/plan.json
  edit run/plan.json '.rounds[0].flows[0].id += "\n"'
  judge 3
  assert_output --partial "is not test/client/server/repeat"
  cp "$TOP/tests/fixtures/loopback/run/plan.json" run/plan.json
  edit run/plan.json '.hosts["gamma\n"] = .hosts.beta'
  judge 3
  assert_output --partial "is not usable as a path"
}

@test "missing and damaged limits are inconclusive" {
  mv run/inputs/limits.json .
  judge 3
  assert_equal "$(check_status limits)" inconclusive
  head -c 100 limits.json >run/inputs/limits.json
  judge 3
  assert_equal "$(check_status limits)" inconclusive
}

@test "a required limit that is missed fails, an advisory one only says so" {
  edit run/inputs/limits.json '.limits |= map(select(.id == "iperf-bandwidth") | .bound.min = 1e6)'
  judge 1
  assert_equal "$(check_status limit/iperf-bandwidth/iperf3)" fail
  edit run/inputs/limits.json '.limits += [.limits[0] | .id = "floor" | .bound.min = 1e-3] | .limits[0].severity = "advisory"'
  judge 0
  assert_equal "$(check_status limit/iperf-bandwidth/iperf3)" advisory
}

@test "a required limit whose figure nobody reported is inconclusive" {
  edit run/inputs/limits.json '.limits |= map(select(.id == "small-message-mean") | .metric = "latency_us.p99_99")'
  judge 3
  assert_equal "$(check_status limit/small-message-mean/tcp-latency)" inconclusive
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

@test "software does not become hardware by the plan's word" {
  edit run/plan.json '.rounds[].flows[].scope = "hardware"'
  judge 3
  assert_output --partial "scope software"
  assert_json run/verdict.json '[.checks[] | select(.status == "inconclusive") | .id] == ["software"]
    and (.checks[] | select(.id == "software") | .measured == "29 records planned as hardware came over sockets or a device of software")'
  # one test of sockets more than the plan says is enough, and which one is told
  edit run/plan.json '(.rounds[].flows[] | select(.test != "iperf3")).scope = "software"'
  judge 3
  assert_json run/verdict.json '.checks[] | select(.id == "software") | .measured == "1 record planned as hardware came over sockets or a device of software"
    and .evidence == ["iperf3/alpha/beta/1#131072"]'
  edit run/plan.json '.rounds[].flows[0].scope = "real"'
  judge 3
  assert_output --partial 'unknown scope "real"'
}

@test "what the plan leaves out is shown, and a plan of little else is inconclusive" {
  cp run/plan.json plan.json
  edit run/plan.json '.excluded = [{test: "verbs-latency", reason: "alpha has no backend verbs"}]'
  judge 0
  assert_equal "$(check_status excluded)" not_judged
  edit run/plan.json '.hosts.gamma = .hosts.beta'
  judge 3
  assert_equal "$(check_status coverage)" inconclusive
  cp plan.json run/plan.json
  edit run/plan.json '.rounds[].flows[].backend = "null"'
  judge 3
  assert_equal "$(check_status excluded)" inconclusive
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
  run_expecting 0 "$TOP/reports/summary" run
  assert_line --partial "records measured. 1 of 8 NICs measured on alpha, not mlx5_1"
  # a transfer over six of them, and a NIC whose only flow is one of the null backend
  edit run/plan.json '.rounds[0].flows[0].expect[0].pair = 5'
  run "$TOP/reports/judge" run
  [[ "$(check)" = '["advisory","6 of 8 NICs measured on alpha, not mlx5_6, mlx5_7"]' ]] || fail "$(check)"
  edit run/plan.json '.rounds[].flows[] |= (.backend = "null" | del(.expect[].pair))'
  run "$TOP/reports/judge" run
  [[ "$(check)" = '["advisory","0 of 1 NIC measured on beta, not mlx5_0; 0 of 8 NICs measured on alpha, not '* ]] || fail "$(check)"
}

@test "pipes, links and devices among the raw files are not read" {
  rm "$TCP/client.stdout" "$IPERF3/client.stdout" run/raw/alpha/environment.json
  mkfifo "$TCP/client.stdout" run/raw/alpha/environment.json
  cp "$TOP/tests/fixtures/loopback/run/raw/alpha/flows/iperf3/alpha/beta/1/client.stdout" outside
  ln -s "$PWD/outside" "$IPERF3/client.stdout"
  ln -sf /dev/zero run/raw/alpha/flows/iperf/alpha/beta/1/client.stderr
  run timeout 30 "$JUDGE" run
  assert_equal "$status" 3
  assert_equal "$(jq -r '[.coverage.missing[].flow] | unique | join(" ")' run/verdict.json)" "iperf3/alpha/beta/1 tcp-latency/alpha/beta/1"
  run timeout 30 "$TOP/reports/prepare" run report.json
  assert_equal "$status" 0
  mv -- run -run
  run "$JUDGE" -run
  assert_equal "$status" 3
}

@test "a folder that cannot be written is exit code 6" {
  local -a as=()
  chmod a-w run
  # root may write everywhere, unless it lacks this capability
  [ "$(id -u)" -ne 0 ] || as=(setpriv --bounding-set=-dac_override)
  run "${as[@]}" "$JUDGE" run
  assert_equal "$status" 6
}

@test "the summary is one screen: verdict, tests, report" {
  judge 0
  run "$TOP/reports/summary" run
  assert_equal "$status" 0
  assert_output --partial "Verdict: PASS"
  assert_output --partial "TCP latency"
  assert_output --partial "no proof of hardware"
  assert_output --partial "run/report.md"
}

@test "prepare without records says what to do" {
  run "$TOP/reports/prepare" run report.json
  assert_equal "$status" 2
  assert_output --partial "run reports/judge run first"
}

@test "a verdict, records or a history cut in half end the drawing together with a word, and a pipe is not waited for" {
  judge 0
  cp -r run whole
  local file
  for file in verdict.json records.jsonl; do
    head -c 500 "whole/$file" >"run/$file"
    run_expecting 3 "$TOP/reports/prepare" run report.json
    assert_output --partial "run reports/judge run and try again"
    cp "whole/$file" "run/$file"
  done
  # found by the second of the programs alone, while the first one speaks to it
  jq -c '.checks = [5]' whole/verdict.json >run/verdict.json
  run_expecting 3 "$TOP/reports/prepare" run report.json
  cp whole/verdict.json run/verdict.json
  rm run/inputs/limits.json run/plan.json
  mkfifo run/inputs/limits.json run/plan.json
  run_expecting 0 "$TOP/reports/prepare" run report.json
  run_expecting 0 "$TOP/reports/export" run
}

@test "a judge that is killed in the middle leaves no earlier verdict" {
  judge 0
  # the first jq that it starts ends it, as a reboot would
  mkdir killing && printf '#!/bin/sh\nkill -KILL $PPID\n' >killing/jq && chmod +x killing/jq
  PATH=$PWD/killing:$PATH run "$TOP/reports/judge" run
  assert_equal "$status" 137
  [ ! -e run/verdict.json ] || fail "the old verdict is still there"
}

@test "a verdict that cannot be written is exit 6, and no earlier one stays" {
  judge 0
  rm run/records.jsonl && mkdir run/records.jsonl
  judge 6
  assert_output --partial "has no verdict"
  [ ! -e run/verdict.json ] || fail "the old verdict is still there"
}

@test "an output of a flow that the plan does not have: a plan that was cut afterwards does not pass" {
  edit run/plan.json '.rounds |= map(.flows |= map(select(.id != "tcp-verify/alpha/beta/1")) | select(.flows != []))'
  judge 3
  assert_equal "$(check_status manifest/unplanned)" inconclusive
}
