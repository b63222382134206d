#!/usr/bin/env bats
# Soaks in suites and plans: who sends to whom, for how long, and what is refused. Nothing is run here.

load helpers

setup() {
  common_setup
  PATH=${PERCH_TEST_NEWER_JQ:+$PERCH_TEST_NEWER_JQ:}$PATH
}
teardown() { common_teardown; }

readonly TESTS='[{name: "load", title: "L", tool: "perch", backend: "tcp", kind: "bandwidth", params: {size: "64K", rate: "500Mb/s"}},
  {name: "probe", title: "P", tool: "perch", backend: "ofi", kind: "latency", params: {size: 8, rate: "200msg/s"}}]'

# soak_plan HOSTS SOAK DURATION [TESTS]: a plan of a soak for that many hosts, in plan.json; SOAK and TESTS are jq expressions. With
# the newer jq where there is one, except for the first test.
soak_plan() {
  jq -n --arg duration "$3" "{run: \"r\", created: \"2026-01-01T00:00:00Z\", limits: \"local\", soak_duration: \$duration,
    suite: {name: \"s\", title: \"S\", soak: $2, tests: ${4:-$TESTS}},
    hosts: ([range($1) | {key: \"h\(.)\", value: {perch_address: \"192.0.2.\(. + 1)\", perch_fabric: \"roce\",
      perch_backends: [\"tcp\", \"ofi\"]}}] | from_entries)}" | jq -c -f "$TOP/playbooks/plan.jq" >plan.json
}

# rounds: the flows of each round, as test:client>server/turn
rounds() { jq -c '[.rounds[] | [.flows[] | "\(.test):\(.client)>\(.server)/\(.repeat)"] | join(" ")][]' plan.json; }

@test "mixed: all tests at once, in one round, and each host sends to the next and receives from another" {
  own_jq
  soak_plan 2 '{}' 24h
  assert_equal "$(rounds)" '"load:h0>h1/1 load:h1>h0/1 probe:h0>h1/1 probe:h1>h0/1"'
  assert_json plan.json '.soak | del(.space_bytes) == {duration_s: 86400, interval_s: 60, stall_s: 0.02, reconnect_s: 1800, mode: "mixed", turn_s: null}'
  soak_plan 3 '{}' 24h
  assert_equal "$(rounds)" '"load:h0>h1/1 load:h1>h2/1 load:h2>h0/1 probe:h0>h1/1 probe:h1>h2/1 probe:h2>h0/1"'
}

@test "pairs all: every two hosts once, and each host sends about as often as it receives" {
  for n in 2 3 5 8; do
    soak_plan "$n" '{pairs: "all"}' 1h
    assert_json plan.json "(.rounds | length) == 1 and ([.rounds[].flows[] | select(.test == \"load\")]
      | ([.[] | [.client, .server] | sort] | length == $n * ($n - 1) / 2 and (unique | length) == length)
        and ([.[].client] | group_by(.) | map(length) | max - min <= 1))"
  done
}

@test "alternating: turns until the time is over, the ends exchanged each time, no host twice in a round" {
  soak_plan 3 '{mode: "alternating", turn: "10s", interval: "2s"}' 125s
  assert_json plan.json 'all(.rounds[]; [.flows[] | .client, .server] | (unique | length) == length)'
  run rounds
  assert_line --index 0 '"load:h1>h2/1"'
  assert_line --index 5 '"probe:h0>h2/1"'
  assert_line --index 6 '"load:h2>h1/2"'
  # the rest is long enough for a turn of its own
  assert_equal "${#lines[@]}" 13
  assert_json plan.json '[.rounds[].flows[0].estimate_s] | add == 125 and .[0:12] == [range(12) | 10] and .[12] == 5'
  assert_json plan.json '[.rounds[].flows[].id] | (unique | length) == length'
  # and where it is not, the last turn has it
  soak_plan 3 '{mode: "alternating", turn: "10s", interval: "10s"}' 125s
  assert_json plan.json '[.rounds[].flows[0].estimate_s] | length == 12 and add == 125 and .[11] == 15'
  # the judge takes what the planner makes
  assert_equal "$(jq -c -L "$TOP/reports/jq" 'import "plan_faults" as plan; [plan::faults]' plan.json)" '[]'
  # a ring has one round each turn, in which all hosts send
  soak_plan 4 '{mode: "alternating", pairs: "ring", turn: "10s", interval: "2s"}' 40s
  assert_equal "$(rounds | tail -n 1)" '"probe:h1>h0/2 probe:h2>h1/2 probe:h3>h2/2 probe:h0>h3/2"'
}

@test "a flow's command has the time in seconds, what the suite says of the soak, and a file of its own directory" {
  soak_plan 2 '{interval: "30s", stall: "50ms", reconnect: "5m"}' 1.5d
  assert_json plan.json '.rounds[0].flows[0] | .estimate_s == 129600 and .deadline_s == 129600 + 300 + 30 and .server_argv == []
    and .client_argv == ["perch", "bw", "192.0.2.2", "--backend", "tcp", "--op", "send", "--size", "64K", "--rate", "500Mb/s",
      "--duration", "129600s", "--interval", "30s", "--stall", "50ms", "--reconnect", "5m", "--soak", "client.soak",
      "--bind", "192.0.2.1", "--json"]'
}

@test "decimals of hours and days are the seconds that they say" {
  local time
  for time in 1.1h:3960 2.2h:7920 1.1d:95040 0.7d:60480 4.1m:246 8.2h:29520; do
    soak_plan 2 '{interval: "1.1m"}' "${time%:*}"
    assert_json plan.json ".soak.duration_s == ${time#*:} and .soak.interval_s == 66 and
      ([.rounds[].flows[].client_argv | .[index(\"--duration\") + 1]] | unique == [\"${time#*:}s\"])"
  done
  # three turns of 0.2 s are 0.6 s, and 2.9999999999999996 of them to a computer
  soak_plan 2 '{mode: "alternating", turn: "0.2s", interval: "0.2s"}' 0.6s
  assert_json plan.json '(.rounds | length) == 3 and ([.rounds[].flows[].client_argv | .[index("--duration") + 1]] | unique == ["0.2s"])'
}

# refuses SOAK DURATION MESSAGE [TESTS]
refuses() {
  run soak_plan 2 "$1" "$2" "${4:-$TESTS}"
  assert_failure 5
  assert_output --partial "$3"
}

@test "times that cannot be are refused, with what to write" {
  for duration in 24 0h -1h 24H 1h30m; do refuses '{}' "$duration" "soak_duration \"$duration\" is no time with a unit; write 90s, 24h or 7d"; done
  refuses '{}' 30s "interval, 60s, is longer than soak_duration, 30s"
  assert_output --partial "a shorter soak.interval in a suite of your own (plan_suite_file)"
  refuses '{mode: "alternating", turn: "30s"}' 1h "interval, 60s, is longer than its turn, 30s"
  refuses '{interval: "20ms"}' 1h "stall, 20ms, is not below its interval, 20ms"
  refuses '{}' 366d "longer than 365 days"
  for what in interval stall reconnect; do refuses "{$what: \"0.0000001s\"}" 1h "the suite's $what, 0.0000001s, is shorter than 1 ms"; done
  refuses '{mode: "alternating"}' 10m "has no room for all: 2 turns of 10m"
  refuses '{mode: "alternating", turn: "60s"}' 7d "makes 10080 turns of 60s, and 5000 are possible"
}

@test "tests that cannot be soaked are refused by name" {
  test_of() { echo "[{name: \"odd\", title: \"O\", tool: \"perch\", backend: \"tcp\", kind: \"latency\", params: {size: 8}} + {$1}]"; }
  refuses '{}' 1h "test odd: a soak is of tool perch" "$(test_of 'tool: "iperf3", kind: "bandwidth"')"
  refuses '{}' 1h "test odd: a soak is of tool perch" "$(test_of 'kind: "transfer", op: "write"')"
  refuses '{}' 1h "test odd: a soak is of the network" "$(test_of 'backend: "null"')"
  refuses '{}' 1h "test odd: a soak has no repeats" "$(test_of 'repeat: 2')"
  refuses '{}' 1h "test odd: a soak measures one size" "$(test_of 'params: {size: "8:64"}')"
  for key in iterations:5 'duration:"1s"' 'interval:"1s"'; do
    refuses '{}' 1h "test odd: ${key%%:*} is not a test's to say" "$(test_of "params: {size: 8, $key}")"
  done
}

@test "a soak without a time, and a time without a soak, are refused with the playbook that is meant" {
  refuses '{}' '' "playbooks/soak.yml -e soak_duration=24h"
  refuses null 1h "suite s is no soak"
}

@test "what a host will write is in the plan, and grows with time, flows and kinds" {
  soak_plan 2 '{}' 24h
  local day hour
  day=$(jq '.soak.space_bytes.h0' plan.json)
  soak_plan 2 '{}' 1h
  hour=$(jq '.soak.space_bytes.h0' plan.json)
  # 1440 intervals and 4 lines against 60 and 4
  [ $((day * 64 / 1444)) -le $((hour + 64)) ] && [ $((day * 64 / 1444)) -ge $((hour - 64)) ]
  # of a flow of each kind two thousand lines of 2.2 and of 7.2 KB: between 10 and 100 MB a day
  [ "$day" -gt 10000000 ] && [ "$day" -lt 100000000 ] || fail "a day is $day bytes"
}

@test "plans of soaks are as their schema says, and so are the shipped suites" {
  local suite
  for suite in soak soak-local soak-turns; do
    "$TOP/.venv/bin/python" -c 'import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))' <"$TOP/playbooks/suites/$suite.yml" |
      jq '{run: "r", created: "2026-01-01T00:00:00Z", limits: "local", soak_duration: "24h", suite: ., hosts: ([range(4) | {key: "h\(.)",
        value: {perch_address: "192.0.2.\(. + 1)", perch_fabric: "roce", perch_backends: ["tcp", "ofi", "verbs"], perch_devices: ["mlx5_0"]}}]
        | from_entries)}' | jq -c -f "$TOP/playbooks/plan.jq" >"$suite.json"
    # tests of a backend that no host has are left out, and nothing else
    assert_json "$suite.json" 'all(.excluded[]; .test | startswith("cxi")) and (.rounds[0].flows | length) > 1'
  done
  check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" soak.json soak-local.json soak-turns.json
  local fault
  for fault in 'del(.duration_s)' '.mode = "both"' '.turn_s = 0' '.space_bytes.h0 = "much"' '.more = 1'; do
    jq ".soak |= ($fault)" soak.json >odd.json
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
