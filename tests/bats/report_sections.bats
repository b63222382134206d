#!/usr/bin/env bats
# What a report says, section by section: of recorded runs, and of a run on hardware that is made by hand, as its name says, for
# no hardware is here: four hosts, all to all, in the engine's words.

load helpers

setup() {
  common_setup
  PYTHON=$TOP/.venv/bin/python
  "$PYTHON" -c 'import jinja2' 2>/dev/null || skip "jinja2 is not installed"
}
teardown() { common_teardown; }

# What the role report writes of the judged run in run/, without its charts, in report.md
words() {
  run_expecting 0 env PERCH=/nonexistent "$TOP/reports/prepare" run report.json
  "$PYTHON" "$TOP/tests/bench/report_markdown.py" report.json report.md
}

recorded() {
  rm -rf run
  cp -r "$TOP/tests/fixtures/$1/run" run
  "$TOP/reports/judge" run >/dev/null || true
}

# section TITLE: its lines, in ./section
section() { sed -n "/^## $1\$/,/^## /p" report.md | sed '1d; $d' >section; }

readonly PLAN='["n1", "n2", "n3", "n4"] as $hosts
  | { schema: "perch.plan/1", run: "made-by-hand", created: "2026-01-01T00:00:00Z", limits: "roce", suite: {name: "s", title: "All to all"}, excluded: [],
      hosts: ($hosts | map({key: ., value: {fabric: "roce", scope: "hardware", address: "192.0.2.1", group: "g1", switch: "leaf1",
                                            devices: [{name: "mlx5_0", netdev: "eth1"}]}}) | from_entries),
      rounds: [ range(1; 3) as $repeat | $hosts[] as $client
                | { flows: [ $hosts[] | select(. != $client) | . as $server | ("latency", "read", "bandwidth") | . as $test
                             | { id: "\($test)/\($client)/\($server)/\($repeat)", $test, title: "RDMA \($test)", $repeat, tool: "perch", backend: "verbs",
                                 kind: (if $test == "bandwidth" then $test else "latency" end), op: (if $test == "read" then "read" else "send" end),
                                 scope: "hardware", hop_class: "same_switch", $client, $server, client_argv: ["perch", "lat"], server_argv: [],
                                 expect: [{size_bytes: 64}] } ] } ] }'

# n1 to n4 carries half of what the others do, and stalls once.
readonly RECORDS='.rounds[].flows[]
  | ((.client == "n1" and .server == "n4") | if . then 0.5 else 1 end) as $part
  | { schema: "perch.record/1", run: "made-by-hand", flow: .id, test, repeat, scope, tool: {name: "perch", version: "0"}, backend, provider: null, op, kind,
      definition: (if .test == "read" then "completion" elif .kind == "latency" then "half_round_trip" else "receiver_acknowledged" end),
      connection: "RC", client: {host: .client, device: "mlx5_0"}, server: {host: .server, device: "mlx5_0"},
      link: {rate_gbit_s: 100, mtu_bytes: 4096, layer: "roce", hop_class},
      params: {size_bytes: (if .kind == "bandwidth" then 1048576 elif .test == "read" then 4096 else 64 end), queue_pairs: 1, completion: "busy", verify: false},
      started: "2026-01-01T00:00:10.500Z",
      latency_us: (if .kind == "bandwidth" then null
                   else {count: 200000, min: 1.5, max: 9, mean: 2.05, stddev: 0.11, p50: 2, p90: 2.1, p95: 2.2, p99: 2.5, p99_9: 3, p99_99: 4} end),
      bandwidth: (if .kind == "latency" then null
                  else {gbit_s: (97 * $part), peak_gbit_s: 97.5, peak_definition: "best_interval_0.1s", min_interval_gbit_s: 60, messages_per_s: 11563, bytes: 104857600000} end),
      intervals: (if .kind == "latency" then [] else [range(0; 10) | {start_s: ., end_s: (. + 1), gbit_s: (if $part < 1 and . == 3 then 10 else 97 * $part end)}] end),
      packets: {sent: 1000, lost: 0, retries: 0}, path: {claimed_bytes: 1e6, client_device_bytes: 1.1e6, server_device_bytes: 1.1e6, state: "proven"},
      stall: (if $part < 1 and .kind == "bandwidth" then {longest_s: 1.25, start_s: 3, began: "2026-01-01T00:00:13.500Z"} else null end),
      status: "ok", error: null }'

readonly CHECKS='def check($id; $status; $measured): {$id, title: $id, $status, $measured, limit: null, unit: null, source: "s", evidence: [], remedy: null};
  [ check("coverage"; "pass"; 72), check("path/proven/hardware"; "pass"; 72), check("limit/bw/bandwidth"; "pass"; 97), check("limit/lat/latency"; "pass"; 2),
    check("tail/latency"; "pass"; 1.2), check("counters/drops"; "pass"; 0), check("limit/loss/bandwidth"; "pass"; 0), check("interval/bandwidth"; "pass"; 0.9),
    check("repeatability/latency"; "pass"; 1), check("host_check/nic-device"; "pass"; "there"), check("switch/drops"; "pass"; "1 port"),
    check("switch/link-up"; "pass"; "1 port"), check("drift/latency"; "pass"; 1), check("cross-check"; "pass"; 1), check("ceiling"; "pass"; 98),
    (check("integrity"; "pass"; 0) | .unit = "corrupted bytes of 1000000 checked") ]'
readonly FACTS='[{id: "nic-firmware", device: "mlx5_0", status: "info", found: "22.39.1002", hosts: null},
  {id: "nic-board", device: "mlx5_0", status: "info", found: "MT4125, MT_0000000359", hosts: null},
  {id: "nic-pcie-speed", device: "mlx5_0", status: "ok", found: "16 GT/s, the card has 16 GT/s", hosts: null},
  {id: "nic-pcie-width", device: "mlx5_0", status: "bad", found: "8x, the card has 16x", hosts: ["n3"]},
  {id: "nic-pcie-width", device: "mlx5_0", status: "ok", found: "16x, the card has 16x", hosts: ["n1", "n2", "n4"]},
  {id: "nic-link-speed", device: "mlx5_0", status: "ok", found: "100 Gb/s", hosts: null},
  {id: "qos-pfc", device: "eth1", status: "ok", found: "on for 3, by dcb", hosts: null},
  {id: "qos-buffers", device: "eth1", status: "ok", found: "priority 3 in buffer 1 of 130944 bytes", hosts: null}]'

# made [JQ-OF-THE-VERDICT]: the run by hand, in run/
made() {
  mkdir -p run/inputs
  jq -n "$PLAN" >run/plan.json
  jq -c "$RECORDS" run/plan.json >run/records.jsonl
  jq -n "$CHECKS as \$checks | {schema: \"perch.verdict/1\", run: \"made-by-hand\", verdict: \"PASS\", scope: \"hardware\", coverage: {planned: 72, measured: 72, missing: []},
    \$checks, facts: $FACTS, comparison: {statistic: null, rows: [], refused: [], others: []}} | ${1:-.}" >run/verdict.json
  jq -n '{name: "roce", limits: [{id: "bw", metric: "bandwidth.gbit_s", severity: "required"}, {id: "lat", metric: "latency_us.p50", severity: "required"},
    {id: "loss", metric: "derived.packets_lost_ppm", severity: "required"}]}' >run/inputs/limits.json
}

# The slow pair carries what the others do.
even() { jq -c 'if .kind == "bandwidth" then .bandwidth.gbit_s = 97 else . end' run/records.jsonl >edited && mv edited run/records.jsonl; }

@test "recorded runs: each section has its facts, no table is empty, no column has dashes alone, no word is a program's" {
  local name title
  for name in loopback perftest rxe; do
    recorded "$name"
    words
    assert_equal "$name: $(awk -f "$TOP/tests/markdown_tables.awk" report.md)" "$name: "
    for title in "Key findings" Readiness Anomalies "RDMA against TCP" Evolution Results Repeatability "Device under test" Topology Configuration Path \
      "Every check" "The hosts" "The commands"; do
      section "$title"
      grep -q '[a-z]' section || fail "$name: nothing stands under $title"
    done
  done
}

@test "software: nothing is recommended, and no criterion reads like hardware" {
  recorded loopback
  words
  section Readiness
  run cat section
  assert_output --partial "**Not judged: this run is no proof of hardware** (scope software)"
  assert_output --partial "**Recommended uses**: not judged: this run is no proof of hardware."
  refute_output --partial "recommended |"
  refute_output --regexp "\\| met \\|"
}

@test "results stand in perftest's columns, with its numbers" {
  recorded rxe
  words
  run cat report.md
  assert_output --partial "| #bytes | #iterations | t_min[usec] | t_max[usec] | t_typical[usec] | t_avg[usec] | t_stdev[usec] | 99%[usec] | 99.9%[usec] |"
  assert_output --partial "| 4096 | 200 | 541.62 | 119832.73 | 15993.33 | 17688.04 | 10613.03 | 94215.93 | 119832.73 |"
  assert_output --partial "| #bytes | #iterations | BW peak[Gb/sec] | BW average[Gb/sec] | MsgRate[Mpps] |"
  assert_output --partial "| 65536 | 400 | 0.0556 | 0.0428 | 0.000082 |"
}

@test "hardware that meets every criterion is ready, and is recommended for what it was measured for, each number with its source" {
  made
  even
  words
  section Readiness
  run cat section
  assert_output --partial "**Ready**: all 15 criteria are met."
  assert_output --partial "the best flow reached 98.9 % of its link's ceiling"
  assert_output --partial "**Recommended uses**: NVMe over Fabrics, Distributed databases"
  assert_output --partial "at most 10 µs; the worst measured 2.00 µs (NVM Express, Inc"
  # nobody measured transfers
  assert_output --regexp "Transfers for inference .* not judged \| not judged: transfers of 1 MiB and more"
}

@test "a use is recommended by the worst pair, not by the middle one" {
  made
  words
  section Readiness
  run cat section
  assert_output --partial "**Recommended uses**: Distributed databases."
  assert_output --partial "| NVMe over Fabrics | not recommended | not met: bandwidth of messages of 128 KiB and more: at least 90 % of the ceiling; the worst measured 49.5 % of the ceiling"
  even
  jq -c 'if .flow == "latency/n2/n3/2" then .latency_us.p99 = 21 elif .flow == "latency/n3/n2/1" then .latency_us.p50 = null else . end' run/records.jsonl >edited
  mv edited run/records.jsonl
  words
  section Readiness
  run cat section
  assert_output --partial "**Recommended uses**: NVMe over Fabrics."
  assert_output --partial "| Distributed databases | not recommended | not met: half of a round trip of up to 256 B, p99: at most 20 µs; the worst measured 21.0 µs"
  assert_output --partial "| MPI and other tightly coupled work | not judged | not judged: half of a round trip of up to 64 B, median: at most 5 µs; not measured"
}

@test "a criterion that TCP alone met is not met by RDMA's fabric, and the evidence is what came closest to its bound" {
  made '.checks += [{id: "limit/lat/far", title: "Far", status: "pass", measured: 1, limit: {min: null, max: 9}, unit: "us", source: "s", evidence: [], remedy: null},
    {id: "limit/lat/near", title: "Near", status: "pass", measured: 8, limit: {min: null, max: 9}, unit: "us", source: "s", evidence: [], remedy: null}]
    | (.checks[] | select(.id == "limit/bw/bandwidth").id) = "limit/bw/tcp"'
  jq -c '(.rounds[0].flows |= . + [.[0] | .test = "tcp" | .title = "TCP" | .id = "tcp/n1/n2/1" | .backend = "tcp" | .scope = "software" | .kind = "bandwidth"])' run/plan.json >edited
  mv edited run/plan.json
  jq -c 'select(.flow == "bandwidth/n1/n2/1") | .flow = "tcp/n1/n2/1" | .test = "tcp" | .backend = "tcp" | .scope = "software"' run/records.jsonl >added
  cat added >>run/records.jsonl
  words
  grep -qF "Scope: hardware. The kernel's TCP was measured beside it, as the baseline (1 test)." report.md
  section Readiness
  run cat section
  assert_output --partial "| Throughput | not judged | "
  assert_output --partial "| Latency | met | Near: 8 µs (limit: at most 9 µs); 3 of 3 checks passed |"
}

@test "extremes in a table are those of all pairs and repeats" {
  made
  jq -c 'if .flow == "bandwidth/n2/n3/2" then .bandwidth.min_interval_gbit_s = 3 | .bandwidth.peak_gbit_s = 98 else . end' run/records.jsonl >edited && mv edited run/records.jsonl
  words
  grep -qF "medians of 24 records a size, extremes and counts of all of them." report.md
  run grep -A 2 '| #bytes | #iterations | BW peak' report.md
  assert_output --partial "| 1048576 | 2400000 | 98.00 | 97.00 | 0.011563 | 98.9 % | 3.00 |"
}

@test "one criterion that is not met, or not judged, makes no use of it recommended" {
  made '(.checks[] | select(.id == "limit/loss/bandwidth")) |= (.status = "advisory" | .measured = 7)'
  even
  words
  section Readiness
  run cat section
  assert_output --partial "**Not ready**: 14 of 15 criteria are met; not met: no loss."
  assert_output --partial "**Recommended uses**: none."
  made 'del(.checks[] | select(.id == "interval/bandwidth"))'
  even
  words
  section Readiness
  run cat section
  assert_output --partial "not judged: stable over time"
  assert_output --partial "**Recommended uses**: MPI and other tightly coupled work."
  made '.verdict = "FAIL"'
  even
  words
  section Readiness
  grep -q "uses\*\*: not judged: the verdict is FAIL" section
}

@test "key findings are sentences of what was measured, against the ceiling" {
  made
  words
  section "Key findings"
  run cat section
  assert_output --partial "**97.0 Gb/s is 98.9 % of what a 100 Gb/s link can carry at MTU 4096 (98.0 Gb/s)**: RDMA bandwidth, 1 MiB."
  assert_output --partial "The slowest pair is n1 to n4, at 48.5 Gb/s: 50.0 % of the middle one."
  assert_output --partial "**Half of a round trip of 64 B takes 2.00 µs** in the median, 2.05 µs in the mean"
  assert_output --partial "standard deviation 0.110 µs, p99 - p50 0.500 µs; the longest of 4,800,000 messages took 9.00 µs."
  assert_output --partial "The RDMA devices counted 72,000 packets: none lost on the way, none times sent again."
}

@test "anomalies have their time, flow and evidence" {
  made '.checks += [{id: "counters/pause", title: "Pause frames", status: "advisory", measured: 12, limit: {min: null, max: 0}, unit: "frames", source: "s",
    evidence: ["n1 mlx5_0/1 at 2026-01-01T00:00:14Z"], remedy: "r"}]'
  words
  section Anomalies
  run cat section
  assert_output --partial "| 2026-01-01T00:00:13.500Z | \`bandwidth/n1/n4/1#1048576\` | nothing was completed for 1.25 s |"
  assert_output --partial "| 2026-01-01T00:00:13Z | \`bandwidth/n1/n4/2#1048576\` | 1 interval below 80 % of the flow's average, the lowest 10.0 of 48.5 Gb/s, 3.00 s after its start |"
  assert_output --partial "raw/n1/flows/bandwidth/n1/n4/1/"
  assert_output --partial "| 2026-01-01T00:00:14Z | \`n1 mlx5_0/1 at 2026-01-01T00:00:14Z\` | Pause frames: 12 frames (limit: at most 0 frames) | check \`counters/pause\` |"
}

@test "device under test, topology and configuration come from the hosts' facts; what differs has a row of its own" {
  made
  words
  section "Device under test"
  run cat section
  assert_output --partial "| mlx5_0 (eth1) | MT4125, MT_0000000359 | 22.39.1002 | 16 GT/s, 8x, the card has 16x | 100 Gb/s | n3 |"
  assert_output --partial "| mlx5_0 (eth1) | MT4125, MT_0000000359 | 22.39.1002 | 16 GT/s, 16x | 100 Gb/s | n1, n2, n4 |"
  section Topology
  run cat section
  assert_output --partial "4 hosts, 12 pairs of client and server measured of 12 possible, in 8 rounds of at most 9 flows at the same time."
  assert_output --partial "| one switch | 12 | 72 |"
  section Configuration
  run cat section
  assert_output --partial "| Priority flow control (PFC) | eth1 | on for 3, by dcb | all hosts |"
  assert_output --partial "| Receive buffers, headroom of PFC | eth1 | priority 3 in buffer 1 of 130944 bytes | all hosts |"
}

@test "repeats: the coefficient of variation of each test, and what was measured once" {
  made
  jq -c 'if .test == "latency" and .repeat == 2 and .client.host == "n2" then .latency_us.p50 = 3 else . end' run/records.jsonl >edited && mv edited run/records.jsonl
  words
  section Repeatability
  run cat section
  assert_output --partial "| RDMA latency | latency, median | 2 | 12 | 0.00 % | 28.3 % | n2 to n4, 64 B | **no**, 3 of 12 above |"
  assert_output --partial "| RDMA bandwidth | bandwidth | 2 | 12 | 0.00 % | 0.00 % |"
}

@test "evolution: each accepted run with its change; figures of other terms are named, not held against each other" {
  recorded loopback
  cp "$TOP/tests/fixtures/history/history.jsonl" run/inputs/
  words
  section Evolution
  run cat section
  assert_output --partial "| Figure | Test | Size | initial | after tuning | final | this run | since the first |"
  assert_output --partial "| Latency, median | TCP latency | 8 B | 137 µs | 107 µs (-21 %) | 97.5 µs (-9.1 %) | 97.5 µs (0.0 %) | -29 % |"
  # older runs have neither deviation nor maximum, whose rows then have no change; of a maximum the greatest of all pairs counts
  jq -c '.figures |= (. + (to_entries | map(select(.key | endswith("/8/latency_us.p50")) | .key |= sub("p50$"; "stddev"), (.key |= sub("p50$"; "max") | .value.value = 9000)
    | .value.value *= 2) | from_entries)) | select(.label == "final")' run/inputs/history.jsonl >one && cat one >>run/inputs/history.jsonl
  sed -i '/"label":"final"/{/stddev/!d}' run/inputs/history.jsonl
  words
  section Evolution
  run cat section
  assert_output --partial "| Jitter, standard deviation | TCP latency | 8 B | not measured | not measured | 195 µs |"
  assert_output --regexp "\\| Maximum \\| TCP latency \\| 8 B \\| not measured \\| not measured \\| 18,000 µs \\| [0-9,]+ µs \\(-[0-9]+ %\\) \\| -[0-9]+ % \\|"
  jq -c '.terms |= map(sub("definition=half_round_trip"; "definition=completion"))' run/inputs/history.jsonl >edited && mv edited run/inputs/history.jsonl
  words
  section Evolution
  run cat section
  refute_output --partial "| Latency, median | TCP latency |"
  assert_output --partial "Not held against each other: TCP latency: definition: completion and half_round_trip differ."
}

@test "each pair: ranked, on a map, the slowest by name; what is drawn stays small" {
  made
  words
  assert_json report.json '[.charts[] | select(.name == "flows_bandwidth").values[] | [.from, .to, .value]] | length == 12 and .[0] == ["n1", "n4", 48.5]'
  assert_json report.json '[.charts[] | select(.name == "map").values[]] | length == 12 and any(.[]; .client == "n1" and .server == "n4" and (.percent | round) == 49)'
  assert_json report.json 'all(.charts[]; .alternative | length > 10)'
  grep -qF '| RDMA bandwidth, 1 MiB | n1 | n4 | 48.5 Gb/s | 49.5 % | **50.0 %** |' report.md
  run jq -c -n -L "$TOP/reports/jq" 'import "flow_ranks" as r; import "series" as _; import "transfer_rows" as _; import "ceiling" as _; import "comparison" as _;
    import "flow_view" as f; import "format" as _; import "digits" as _; import "common" as _;
    import "words" as _; import "table" as _; [{ranks: [range(0; 100000) | ["a", "b", ., null]]} | r::shown | {kind: "bandwidth", title: "t"} + .]
    | f::rank_points("bandwidth") | length, .[0].value, .[-1].value'
  assert_output "200
0
99999"
  "$PYTHON" "$TOP/reports/draw.py" report.json charts
  [ "$(find charts -name '*.svg' -size +120k | wc -l)" -eq 0 ] || fail "$(ls -l charts)"
}

@test "sections stand in the standards' order; findings say whether they were not met or not judged; a test's word is of what judged it" {
  made '.checks += [{id: "limit/bw/bandwidth2", title: "B", status: "advisory", measured: 1, limit: {min: 2, max: null}, unit: "Gb/s", source: "s", evidence: [], remedy: "r"},
    {id: "clock/ends", title: "C", status: "inconclusive", measured: "no word", limit: null, unit: null, source: "s", evidence: [], remedy: "r"},
    {id: "limit/x/bandwidth", title: "X", status: "not_judged", measured: "no", limit: null, unit: null, source: "s", evidence: [], remedy: null}]'
  words
  assert_equal "$(grep -xE '## (Device under test|Topology|Configuration|The hosts|Results|Anomalies|Repeatability)' report.md | tr '\n' ' ')" \
    "## Device under test ## Topology ## Configuration ## The hosts ## Results ## Anomalies ## Repeatability "
  grep -qF '1. **INCONCLUSIVE**, not judged: C: no word.' report.md
  grep -qF '2. **advisory**, not met: B: 1 Gb/s (limit: at least 2 Gb/s).' report.md
  assert_json report.json 'any(.summary.rows[]; .[0] == "RDMA bandwidth" and .[-1] == "pass")'
}

@test "findings of one kind are one line, so that three lines are three things" {
  made '.verdict = "FAIL" | .checks += [range(0; 40) | {id: "flow/bandwidth/n\(.)/n1/1", title: "Flow bandwidth/n\(.)/n1/1", status: "fail", measured: "exit 5 after \(.) s",
      limit: null, unit: null, source: "s", evidence: [], remedy: "r"}]
    + [{id: "limit/bw/a", title: "Bandwidth, test a", status: "fail", measured: 50, limit: {min: 90, max: null}, unit: "Gb/s", source: "s", evidence: [], remedy: "r"},
       {id: "limit/bw/b", title: "Bandwidth, test b", status: "fail", measured: 20, limit: {min: 90, max: null}, unit: "Gb/s", source: "s", evidence: [], remedy: "r"}]'
  words
  assert_json report.json '(.findings | length) == 2 and .findings_more == 0 and .findings[0].more == "and 39 more like it"'
  # of the two tests the one that is farther from its bound
  assert_json report.json '.findings[1] | .title == "Bandwidth, test b" and .more == "and 1 more like it"'
}

@test "latency under load stands beside the same without, and only where it was asked alike of the same hosts" {
  made
  # the run by hand mixes its tests in its rounds
  jq '.rounds |= [.[].flows | group_by(.test)[] | {flows: .}]' run/plan.json >plan && cp plan run/plan.json
  words
  run grep -c "Latency under load" report.md
  assert_output 0
  # n1 to n2 once more, in the round in which a stream leaves n1; of the fast test one size, and of the other other queue pairs
  jq '(.rounds[].flows[] | select(.id == "latency/n1/n2/1")) as $one
    | [ $one, (.rounds[].flows[] | select(.repeat == 1 and .client == "n1" and .test == "bandwidth" and .server == "n3")) ] as [$latency, $stream]
    | .rounds += [{flows: [ ($latency | .test = "loaded" | .id = "loaded/n1/n2/1" | .title = "Loaded | latency"),
                            ($latency | .test = "deep" | .id = "deep/n1/n2/1" | .title = "Deep latency"),
                            ($stream | .test = "load" | .id = "load/n1/n3/1" | .title = "Load"),
                            ($stream | .test = "load" | .id = "load/n3/n4/1" | .client = "n3" | .server = "n4" | .title = "Load") ]}]' run/plan.json >plan && mv plan run/plan.json
  jq -c "$RECORDS | if .test == \"loaded\" then .latency_us |= map_values(. * 4) | .latency_us.count = 200000 elif .test == \"deep\" then .params.queue_pairs = 8 else . end" \
    run/plan.json >run/records.jsonl
  words
  sed -n '/^### Latency under load$/,/^## /p' report.md >section
  run cat section
  # the stream between n3 and n4 is no load of these hosts
  assert_output --partial '- *Loaded \| latency* ran beside Load, which carried 97.0 Gb/s meanwhile.'
  assert_output --partial '- *Deep latency* ran beside Load, which carried 97.0 Gb/s meanwhile; not compared: it was asked otherwise without load (queue_pairs: 1 and 8).'
  assert_output --partial '| Loaded \| latency | 64 B | Median | 2.00 µs | 8.00 µs | 4.00x |'
  assert_output --partial '| Loaded \| latency | 64 B | p99.9 | 3.00 µs | 12.0 µs | 4.00x |'
  refute_output --partial '| Deep latency |'
  jq -e '.charts[] | select(.name == "loaded") | .values | length == 12 and any(.[]; .series == "Loaded | latency, 64 B, under load" and .figure == "p99" and .latency_us == 10)' report.json
  "$PYTHON" "$TOP/reports/draw.py" report.json charts
  grep -q 'Latency in' charts/loaded.svg
}

# What hosts, tools, switches and people have written, each with $suffix behind it: titles, findings, remedies, names of devices, versions.
readonly SAID='["title", "message", "found", "remedy", "source", "label", "reason", "device", "driver", "firmware", "model", "os", "kernel", "hostname",
  "group", "switch", "netdev", "address", "version", "measured", "why", "port", "queue", "command"] as $free
  | reduce (paths(strings) | select((.[-1] | IN($free[])) or (.[-2] | IN("evidence", "versions", "tuning"))
                                    or (.[-1] == "name" and (.[0] | IN("suite", "rdma", "interfaces", "switches"))))) as $place
      (.; setpath($place; getpath($place) + $suffix))'
readonly HOSTILE=' |x| <b>b</b> `c` *e* _f_ [l](javascript:alert) ![i](x.png) #g ~~s~~ $m$ &amp; \ \| {{ 7 * 7 }} http://a.b www.c.d :100: -
# H
- li'

# said_by_all SUFFIX: run/ in words with that suffix, and the shape of its Markdown, in shape.txt
said_by_all() {
  local file
  rm -rf run
  cp -r good run
  for file in run/plan.json run/records.jsonl run/verdict.json run/inputs/limits.json run/raw/*/environment.json; do
    [ ! -f "$file" ] || { jq -c --arg suffix "$1" "$SAID" "$file" >said && mv said "$file"; }
  done
  words
  pandoc --from gfm-raw_html --to json report.md | jq -r -f "$TOP/tests/markdown_shape.jq" >shape.txt
}

@test "words of hosts, tools and people stay words: no table breaks, no heading, link, code or tag begins" {
  local run
  for run in loopback rxe made; do
    if [ "$run" = made ]; then
      rm -rf run
      made '.switches = [{name: "leaf1", provider: "sonic", scope: "simulated", priorities: [3], seconds: 9, faults: [{command: "show", why: "said"}],
          gaps: [{command: "show pfc", why: "refused"}], rows: [{port: "Ethernet0", host: "n1", lost: ["began anew"], tx_mbit_s: 1, pause: {rx: 0, tx: 0}, pause_by_priority: {rx: [0, 0, 0, 1], tx: [0, 0, 0, 1]},
          utilisation_percent: 1, queues: [{queue: "UC3", priority: 3, mbit_s: 1, drops: 1}]}]}]
        | .coverage.missing = [{flow: "latency/n1/n2/1", expect: {size_bytes: 64}, status: "error", code: 6, message: "gone"}]
        | .checks += [("pass", "fail", "inconclusive", "advisory", "not_judged") as $status
            | {id: "flow/\($status)", title: "T", $status, measured: "M", limit: null, unit: null, source: "S", evidence: ["E"], remedy: "R"}]'
      jq '.excluded = [{test: "t", reason: "no device"}]' run/plan.json >plan && mv plan run/plan.json
    else
      recorded "$run"
    fi
    rm -rf good
    mv run good
    said_by_all " zz"
    mv shape.txt tame.txt
    assert [ "$(grep -c zz tame.txt)" -gt 40 ]
    said_by_all "$HOSTILE"
    python3 -c 'import sys; words = " ".join(sys.argv[1].split()); print(open("shape.txt").read().replace(" " + words, " zz"), end="")' "$HOSTILE" >hostile.txt
    diff tame.txt hostile.txt || fail "$run: these words do something in its report"
  done
}
