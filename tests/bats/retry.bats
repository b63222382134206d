#!/usr/bin/env bats
# Outliers are repeated once: reports/retry makes plan.retry.json from the verdict, and reports/judge judges all repeats, on their
# median, and shows them. What a repeat cannot cure stands.

load helpers
load judge

setup() {
  judge_setup
  RETRY=$TOP/reports/retry
}
teardown() { common_teardown; }

# outlier: iperf3's one stream has a limit of its own, which it misses by a tenth
outlier() {
  edit run/inputs/limits.json '.limits += [.limits[] | select(.id == "iperf-bandwidth") | .id = "stray" | .scope = {test: "iperf3"} | .bound.min = 25]'
}

# retry CODE: a plan of repeats is made, or not, with that exit code
retry() {
  run "$RETRY" run
  assert_equal "$status" "$1"
}

# repeated N FACTOR: repeat N of the outlier was measured, with its rate times FACTOR
repeated() {
  local host role flow=iperf3/alpha/beta
  for host in alpha beta; do
    role=client
    [ "$host" = alpha ] || role=server
    mkdir -p "run/raw/$host/retry/flows/$flow"
    cp -r "run/raw/$host/flows/$flow/1" "run/raw/$host/retry/flows/$flow/$1"
    edit "run/raw/$host/retry/flows/$flow/$1/$role.json" ".flow = \"$flow/$1\""
  done
  edit "run/raw/alpha/retry/flows/$flow/$1/client.stdout" "(.. | objects | select(has(\"bits_per_second\"))) |= (.bits_per_second |= . * $2 | .bytes |= (. * $2 | floor))"
}

@test "a flow outside a required limit is repeated twice more, as it was planned" {
  outlier
  retry 0
  assert_output --partial "1 of 12 fell outside: iperf3/alpha/beta (limit/stray/iperf3)"
  assert_json run/plan.retry.json '[.rounds[].flows[] | .id] == ["iperf3/alpha/beta/2", "iperf3/alpha/beta/3"]'
  jq -e --slurpfile plan run/plan.json '[.rounds[].flows[] | del(.id, .repeat)] | unique == [$plan[0].rounds[].flows[] | select(.test == "iperf3") | del(.id, .repeat)]' run/plan.retry.json
  command -v check-jsonschema >/dev/null || skip "check-jsonschema is not installed"
  check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" run/plan.retry.json
  check-jsonschema --schemafile "$TOP/reports/schema/verdict.schema.json" run/verdict.json
}

@test "repeats that were planned and not measured are missing" {
  outlier
  retry 0
  judge 1
  assert_equal "$(check_status coverage)" inconclusive
  assert_json run/verdict.json '.coverage.planned == 31 and ([.coverage.missing[].flow] == ["iperf3/alpha/beta/2", "iperf3/alpha/beta/3"])'
}

@test "one stray of three no longer decides, and stays visible with all values" {
  outlier
  retry 0
  repeated 2 2
  repeated 3 2.2
  judge 0
  assert_output --partial "31 of 31 records"
  assert_equal "$(check_status limit/stray/iperf3)" pass
  assert_json run/verdict.json 'any(.checks[]; .id == "retry/iperf3/alpha/beta" and .status == "advisory"
    and (.measured | test("^limit/stray/iperf3 at 131072: [0-9.]+, [0-9.]+, [0-9.]+$")) and .evidence == ["iperf3/alpha/beta/2", "iperf3/alpha/beta/3"])'
  assert_equal "$(jq -r 'select(.test == "iperf3").repeat' run/records.jsonl | paste -sd' ')" "1 2 3"
  command -v check-jsonschema >/dev/null || skip "check-jsonschema is not installed"
  check-jsonschema --schemafile "$TOP/reports/schema/verdict.schema.json" run/verdict.json
}

@test "a run with repeats is judged anew with them: it can be accepted, packed and verified" {
  outlier
  run_expecting 0 "$TOP/reports/seal" run
  retry 0
  repeated 2 2
  repeated 3 2.2
  run_expecting 0 "$TOP/reports/seal" run
  judge 0
  run_expecting 0 "$TOP/reports/accept" run
  run_expecting 0 "$TOP/reports/bundle" run
  run_expecting 0 "$TOP/reports/verify" run.bundle.tar.gz
  assert_output --partial "31 of 31 records"
}

@test "two of three outside fail, whichever they are" {
  outlier
  retry 0
  repeated 2 1.0
  repeated 3 2
  judge 1
  assert_equal "$(check_status limit/stray/iperf3)" fail
  assert_equal "$(check_status retry/iperf3/alpha/beta)" advisory
}

@test "repeats that are not this verdict's are refused" {
  outlier
  retry 0
  repeated 2 2
  repeated 3 2
  judge 0
  cp run/plan.retry.json whole.json
  local fault
  while read -r fault; do
    cp whole.json run/plan.retry.json
    edit run/plan.retry.json "$fault"
    judge 1
    assert_equal "$fault: $(check_status retry/plan)" "$fault: inconclusive"
  done <<'FAULTS'
.rounds[0].flows[0].client_argv += ["-w", "4M"]
.run = "another"
del(.rounds[1])
.rounds += [.rounds[1], .rounds[1]]
.rounds[0].flows[0] |= (.id = "iperf3/alpha/beta/5" | .repeat = 5)
.rounds[0].flows[0].deadline_s = 1
.rounds[0].flows[0] |= (.id = "iperf3/alpha/beta/1.5" | .repeat = 1.5)
FAULTS
  # more than outliers: good pairs beside bad ones, until a verdict pleases
  jq --slurpfile plan run/plan.json '[$plan[0].rounds[].flows[] | select(.test != "iperf3")] as $flows
    | .rounds += [$flows | group_by([.test, .client, .server])[0:3][] | max_by(.repeat) as $f | (1, 2) as $n
        | {flows: [$f | .repeat += $n | .id = "\(.test)/\(.client)/\(.server)/\(.repeat)"]}]' whole.json >run/plan.retry.json
  judge 1
  assert_json run/verdict.json '.checks[] | select(.id == "retry/plan") | .status == "inconclusive" and (.measured | test("4 of 12 pairs of hosts, more than a quarter"))'
  echo '{"schema' >run/plan.retry.json
  judge 1
  assert_equal "$(check_status retry/plan)" inconclusive
  # a flow that had not fallen outside
  cp whole.json run/plan.retry.json
  edit run/inputs/limits.json '.limits |= map(select(.id != "stray"))'
  judge 3
  assert_equal "$(check_status retry/iperf3/alpha/beta)" inconclusive
  # nor can the plan itself call its flows repeats
  jq -c --slurpfile again whole.json '.rounds += ($again[0].rounds | map(.flows |= map(.retry = true)))' run/plan.json >marked.json
  mv marked.json run/plan.json
  rm run/plan.retry.json
  judge 3
  assert_output --partial "says of itself that it is a repeat"
}

@test "a flow that was lost before traffic is cured by whole repeats, and stays listed" {
  local flow=tcp-verify/alpha/beta
  edit run/raw/alpha/flows/$flow/1/client.json '.exit = 4'
  echo "perch: 127.0.0.2: connection refused" >run/raw/alpha/flows/$flow/1/client.stderr
  : >run/raw/alpha/flows/$flow/1/client.stdout
  cp -r "$TOP/tests/fixtures/loopback/run/raw" good
  retry 0
  assert_output --partial "tcp-verify/alpha/beta (flow/tcp-verify/alpha/beta/1)"
  local host role n
  for n in 2 3; do
    for host in alpha beta; do
      role=client
      [ "$host" = alpha ] || role=server
      mkdir -p "run/raw/$host/retry/flows/$flow"
      cp -r "good/$host/flows/$flow/1" "run/raw/$host/retry/flows/$flow/$n"
      edit "run/raw/$host/retry/flows/$flow/$n/$role.json" ".flow = \"$flow/$n\""
    done
  done
  judge 0
  assert_equal "$(check_status flow/$flow/1)" advisory
  assert_equal "$(check_status retry/$flow)" advisory
  assert_json run/verdict.json '[.coverage.missing[].flow] | unique == ["tcp-verify/alpha/beta/1"]'
}

@test "a pass, a corrupted payload and what lies far from an outlier are not repeated" {
  retry 1
  assert_output --partial "the verdict is PASS"
  # a quarter of twelve is three
  edit run/inputs/limits.json '(.limits[] | select(.id == "iperf-bandwidth").bound.min) = 1e6'
  retry 3
  assert_output --partial "4 of 12 fell outside, more than a quarter"
  recorded loopback
  edit run/raw/alpha/flows/tcp-verify/alpha/beta/1/client.stdout '.integrity.bad_bytes = 7'
  retry 1
  assert_output --partial "nothing fell outside that a repeat could cure"
  [ ! -e run/plan.retry.json ]
}

@test "a run is repeated once, and usage is exit code 2" {
  outlier
  retry 0
  retry 3
  assert_output --partial "is there already"
  run "$RETRY"
  assert_equal "$status" 2
  run "$RETRY" nowhere
  assert_equal "$status" 2
}
