#!/usr/bin/env bats
# What could hide a fault from the judge of soaks: one that begins late, what nobody read, readings that no program expects, files that
# were mixed up, and limits beside each other. Runs are composed (tests/soak_compose.py), and then altered.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

# composed ARGUMENT...: the run in ./run
composed() { rm -rf run && "$TOP/.venv/bin/python" "$TOP/tests/soak_compose.py" run "$@"; }

# judged EXIT
judged() { run_expecting "$1" "$TOP/reports/judge" run; }

check() { jq -r --arg id "soak/$1" '.checks[] | select(.id == $id) | "\(.status): \(.measured)"' run/verdict.json; }
title() { jq -r --arg id "soak/$1" '.checks[] | select(.id == $id).title' run/verdict.json; }
anomalies() { jq -r --arg kind "$1" '.soak.anomalies[] | select(.kind == $kind) | "\(.severity) \(.flow // .host): \(.text)"' run/verdict.json; }

# samples FILTER: each sample of each host is passed through it; $i: its number, from 0
samples() { each samples.jsonl "$1"; }
# lines TEST FILTER: likewise the lines of its flows
lines() { each "flows/$1/*/client.soak" "$2"; }
each() {
  local file
  for file in run/raw/*/; do
    find "$file" -path "$file$1" -print0
  done >files
  while IFS= read -r -d '' file; do
    jq -c --arg host "$(cut -d / -f 3 <<<"$file")" "input_line_number as \$n | (\$n - 1) as \$i | $2" "$file" >altered
    cp altered "$file"
  done <files
}

# printed: the last lines of client.soak are what the clients printed, too
printed() {
  local file
  find run/raw -name client.soak | while read -r file; do tail -n 1 "$file" >"${file%soak}stdout"; done
}

# limited LIMIT...: JSON, beside those of the run
limited() {
  printf '%s\n' "$@" | jq -s --slurpfile old run/inputs/limits.json 'to_entries | map({id: "limit-\(.key)", title: "a test", scope: {}, unit: "%", source: "site policy: a test", remedy: "none"} + .value)
    as $more | $old[0] | .limits += $more' >limits.json
  cp limits.json run/inputs/limits.json
}

@test "a leak that begins after hours is one, in the last half and in the last quarter; of one that just begins nobody can say" {
  local at
  for at in 40000 64800; do
    composed --duration 86400 --interval 300 --plant leak=100@$at:0 --plant handles=60@$at:1
    judged 1
    assert_regex "$(anomalies leak)" '^fail node1: serve grows by 104\.9 MB/h .*, [0-9]+\.[0-9] MB in [0-9.]+ h$'
    assert_regex "$(anomalies handles)" '^fail node2: serve has [0-9]+ handles more than [0-9.]+ h before, and more and more$'
  done
  composed --duration 86400 --interval 300 --plant leak=100@85000:0 --plant handles=60@85000:1
  judged 3
  assert_regex "$(anomalies leak)" '^inconclusive node1: serve has grown by .* MB in 5\.9 h, and whether it goes on .* cannot be told$'
  assert_regex "$(anomalies handles)" '^inconclusive node2: serve has .* cannot be told$'
}

@test "a counter of bytes that was reset, or is full, costs no verdict: what else was planted is found" {
  composed --duration 1800 --plant flip@700:2
  samples 'if $i >= 10 and $host == "node1" then .counters.netdev.eth1.rx_bytes = "5" else . end'
  judged 1
  assert_equal "$(check integrity | cut -d : -f 1)" fail
  samples 'if $i >= 20 then .counters.netdev.eth1 += {rx_bytes: "18446744073709551615", port_xmit_data: "4294967295"} else . end'
  judged 1
}

@test "a counter that a device shows only later counts from then on" {
  composed --duration 1800
  samples 'if $i >= 5 then .counters.netdev.eth1.rx_discards_phy = (if $i < 9 then "0" else "7" end) else . end'
  judged 0
  assert_regex "$(check counters/drops)" '^advisory: node1: 7 drops \(netdev/eth1/rx_discards_phy\) at 2026-01-01T00:08:'
}

@test "what a counter had counted before it was first read is nobody's drop" {
  composed --duration 1800
  samples 'if $i > 0 then .counters.netdev.eth1.rx_discards_phy = "7000" else . end'
  judged 3
  assert_regex "$(check counters/drops)" '^inconclusive: node1: a counter of drops was reset, has wrapped, is full or was not read before'
}

@test "a sample whose uptime goes back is damage, and costs no verdict" {
  composed --duration 1200 --plant leak=3000:0
  samples 'if $i == 20 then .uptime_s = "5000.001" else . end'
  judged 1
  assert_regex "$(anomalies damaged)" '^inconclusive node1: line 21 of its samples cannot be used: its uptime lies before that of the one before'
}

@test "a few pages more in a short soak are no leak that could be told" {
  composed --duration 1200
  samples 'if $i >= 16 then .processes |= map(if .role == "agent" then .resident_bytes += 1100000 else . end) else . end'
  judged 0
  assert_equal "$(check memory | cut -d : -f 1) $(anomalies leak)" "not_judged "
}

@test "counters, links and handles that nobody read are no pass: shown on software, inconclusive on hardware" {
  composed --duration 1800
  samples '.counters = {host: {}, netdev: {}, rdma: {}, cxi: {}} | .links = {} | .processes[].handles = null'
  judged 0
  assert_equal "$(check counters)" "not_judged: none was ever read of node1, node2"
  assert_equal "$(check links)" "not_judged: none was ever read of node1, node2"
  assert_regex "$(check handles)" '^not_judged: 0 of 24 processes .*: its handles were not read$'
  assert_equal "$(jq -c '[.soak.blind[].id | select(endswith("_unread"))]' run/verdict.json)" '["counters_unread","links_unread","handles_unread"]'
  jq -c '.hosts[].scope = "hardware" | (.rounds[].flows[].scope) = "hardware"' run/plan.json >plan.json
  cp plan.json run/plan.json
  judged 3
  assert_equal "$(check counters)" "inconclusive: none was ever read of node1, node2"
  assert_equal "$(check links)" "inconclusive: none was ever read of node1, node2"
}

@test "a tail that no interval has samples for is not judged; one that is missing where it must be is damage" {
  composed --duration 600 --interval 1
  judged 0
  assert_equal "$(check latency/latency)" "not_judged: no interval of latency/node1/node2/1, latency/node2/node1/1 has samples enough for a p99"
  composed --duration 1800
  lines latency 'if .kind == "interval" and $i == 4 then .latency_us.p99 = null else . end'
  judged 3
  assert_regex "$(check lines)" '^inconclusive: .*line 5 cannot be used: its percentiles are not those that 12000 samples bear'
}

@test "the tail of the whole lies within those of its intervals" {
  composed --duration 1800
  lines latency 'if .kind == "latency" then .latency_us |= (.p90 = .p50 * 1.01 | .p95 = .p90 | .p99 = .p90 | .p99_9 = .p90 | .p99_99 = .p90) else . end'
  printed
  judged 3
  assert_regex "$(check sum)" '^inconclusive: latency/node1/node2/1: a p90 of 7\..* us, outside of those of its intervals'
  local tail
  for tail in p90 p95 p99 p99.9; do
    [[ $(anomalies sum) == *"latency/node1/node2/1: a $tail of "* ]] || fail "$tail was not held against the intervals: $(anomalies sum)"
  done
}

@test "of several limits of the pace each is held, in whatever order they stand" {
  local gentle='{"metric": "soak.rate_percent", "bound": {"max": 30}, "severity": "advisory"}'
  local strict='{"metric": "soak.rate_percent", "bound": {"max": 1}, "severity": "required"}'
  composed --duration 1800 --plant step=-0.1@0:0
  limited "$gentle" "$strict"
  judged 3
  assert_regex "$(check rate)" '^inconclusive: load/node1/node2/1: the flow kept 89\.9 % of its pace only'
  composed --duration 1800 --plant step=-0.1@0:0
  limited "$gentle"
  judged 0
  # one that is only shown keeps nobody from a PASS
  composed --duration 1800 --plant step=-0.1@0:0
  limited "${gentle/30/1}" "${strict/1\}/30\}}"
  judged 0
  assert_regex "$(check rate)" '^advisory: load/node1/node2/1: the flow kept 89\.9 % of its pace only'
}

@test "the file of one turn is not another's" {
  composed --mode alternating --turn 600 --duration 3600
  judged 0
  local from=run/raw/node1/flows/load/node1/node2/1 to=run/raw/node1/flows/load/node1/node2/4
  cp $from/client.{soak,stdout} $to/
  judged 3
  assert_equal "$(anomalies foreign)" "inconclusive load/node1/node2/4: its file is of another measurement: it began 0.000 s after its agent, when the turn before it had 600.0 s to go"
}

@test "what a limit allows is counted where it is allowed, and titles say the limit that is in force" {
  composed --duration 1800 --plant gap=3@700:0 --plant stall=0.039@605-1500:4
  limited '{"metric": "soak.gaps", "bound": {"max": 1}, "severity": "required"}' '{"metric": "soak.leak_mb_per_hour", "bound": {"max": 50}, "severity": "required"}'
  judged 0
  assert_equal "$(title gaps) | $(check gaps)" "No more connections were lost than a flow may lose | pass: 1 lost, 3.0 s without one"
  assert_equal "$(title stalls) | $(check stalls)" "No flow stood still for as long as its limit | pass: 15 stalls of 0.585 s together, none as long as its limit"
  assert_equal "$(title memory)" "No process of Perch grows by more than 50 MB/h"
  assert_regex "$(jq -r '.checks[] | select(.id == "soak/gaps").source' run/verdict.json)" '^at most 1: site policy: a test$'
}

@test "an interval with figures of two kinds, or of none, costs no verdict" {
  composed --duration 1200 --plant flip@700:2
  lines latency 'if .kind == "interval" and $i == 4 then .bandwidth = {gbit_s: (.bytes * 8e-9 / .elapsed_s)} | .latency_us.p90 = {} elif .kind == "interval" and $i == 5 then .latency_us.p95 = {} else . end'
  judged 1
  assert_regex "$(check lines)" '^inconclusive: .*line 5 cannot be used: it has figures of two kinds'
}

@test "an interval of no length costs no verdict" {
  composed --duration 600
  lines load 'if .kind == "interval" and $i == 3 then .start_s = .end_s | .elapsed_s = 0.005 | .bandwidth.gbit_s = .bytes * 8e-9 / 0.005 else . end'
  judged 1
  assert_regex "$(check rate)" '^fail: load/node1/node2/1: '
}
