#!/usr/bin/env bats
# What a report says of a soak, from a verdict and lines that are made by hand, as their name says: some hosts in a ring, bandwidth
# twice and latency; one gap, a step down, a process that grows, and many stalls.

load helpers

setup() {
  common_setup
  PYTHON=$TOP/.venv/bin/python
  "$PYTHON" -c 'import jinja2' 2>/dev/null || skip "jinja2 is not installed"
}
teardown() { common_teardown; }

# made HOSTS INTERVALS SECONDS [JQ-OF-THE-VERDICT]: the run in run/, its intervals of so many seconds
made() {
  local part
  mkdir -p run
  for part in intervals plan soak; do
    jq -nc --argjson hosts "$1" --argjson n "$2" --argjson each "$3" --arg part "$part" -f "$TOP/tests/fixtures/soak_report/made.jq" >"run/$part"
  done
  mv run/intervals run/intervals.jsonl
  mv run/plan run/plan.json
  jq "{schema: \"perch.verdict/1\", run: \"made-by-hand\", verdict: \"FAIL\", scope: \"software\", coverage: {planned: 6, measured: 0, missing: []}, checks: [], facts: [],
    comparison: {statistic: null, rows: [], refused: [], others: []}, soak: .} | ${4:-.}" run/soak >run/verdict.json
  rm run/soak
  : >run/records.jsonl
}

# What the role report writes, without its charts
words() {
  run_expecting 0 env PERCH=/nonexistent "$TOP/reports/prepare" run report.json
  "$PYTHON" "$TOP/tests/bench/report_markdown.py" report.json report.md
}

# chart NAME JQ: of one chart of report.json
chart() { jq -c --arg name "$1" ".soak.charts[] | select(.name == \$name) | $2" report.json; }

@test "the first lines say that it is a soak, how long, how much of it was measured, and what was found" {
  made 2 60 1 '.soak.stall_limits_s = [0.04]'
  words
  sed -n '1,/^| Test /p' report.md >first
  run cat first
  assert_output --partial "**Soak of 1 min**, all tests at once, an interval each 1 s: 55.0 s measured (91.66 %) by the flow that has least, 3 gaps, 5.01 s without a connection in the worst flow."
  assert_output --partial "It ran to its end."
  assert_output --partial "**Anomalies**: 1 gap, 75 stalls longer than 40 ms, 1 change of level, 1 process that grows."
  run_expecting 0 "$TOP/reports/summary" run
  assert_output --partial "Soak of 1 min, all tests at once"
  assert_output --partial "Anomalies: 1 gap, 75 stalls"
  # a flow's own stalls are more than those that are anomalies
  run cat report.md
  assert_output --partial "| Stalls of 20 ms and more |"
  # what was not measured for another reason is no gap
  made 2 60 1 '.soak.flows[] |= (.gaps = 0 | .gap_s = 0)'
  words
  run cat report.md
  assert_output --partial "55.0 s measured (91.66 %) by the flow that has least, no gap."
}

@test "a finding that is one more is so in words too; a terminal has its text as it is, and the report without a tag" {
  made 2 60 1 '.checks = [("a/1", "b/1", "c/1", "d/1") | {id: ., title: "T", status: "fail", measured: "a*b_ & <i>x", limit: null, unit: null, source: "s", evidence: [], remedy: "Look at raw/<host>/agent.log"}]'
  words
  run cat report.md
  assert_output --partial "1 more is in the table of [checks]"
  assert_output --partial "a\*b\_ &amp; &lt;i>x. *Look at raw/&lt;host>/agent.log.*"
  refute_output --partial "<i>"
  run_expecting 0 "$TOP/reports/summary" run
  assert_output --partial "FAIL, not met: T: a*b_ & <i>x. Look at raw/<host>/agent.log"
  refute_output --partial "&lt;"
}

@test "a soak that runs, was stopped, ended early or has nothing says so" {
  local state words
  for state in running:"**It still runs**: the first 30.0 s are here, all intervals that had ended when it was fetched." stopped:"**It was stopped**" short:"**It ended before its time was over.**" none:"**Nothing of it was measured.**"; do
    words=${state#*:}
    made 2 60 1 ".soak.state = \"${state%%:*}\" | .soak.running = (.soak.state == \"running\") | .soak.passed_s = 30 | .soak.measured_s = 30"
    words
    run cat report.md
    assert_output --partial "$words"
  done
}

@test "anomalies stand in the verdict's order with their time, duration, messages and lines; many alike hide no other" {
  made 2 60 10 '.soak.anomalies |= (map(select(.kind == "stall")) + map(select(.kind != "stall")))'
  words
  grep -E '^\| a[0-9]+ ' report.md >rows
  assert_equal "$(cut -d ' ' -f 2 <rows | tr '\n' ' ')" "a4 a5 a6 a7 a8 a9 a10 a11 a1 a2 a3 "
  run cat rows
  assert_output --partial "| a1 | FAIL | the connection was lost for 5.01 s and came back at the 3rd attempt | bw/n1/n2/1 | 2026-11-22 18:26:36.250 | 18:26:41.250 | 0:03:20 | 5.01 s | - | \`raw/n1/flows/bw/n1/n2/1/client.soak\`:17, 18, 19 |"
  assert_output --regexp "a4 \| advisory .* 50.0 ms \| 64 \|"
  run cat report.md
  assert_output --partial "67 more, alike or less severe, are in \`verdict.json\`"
}

@test "what befalls several flows at once is one row, with all of its places and messages; what comes later is another" {
  made 2 60 10 '.soak.anomalies |= (map(select(.kind == "stall"))[:1]
    | . + [.[0] + {id: "b", flow: "bw/n2/n1/1", start_s: (.[0].start_s + 0.4), end_s: (.[0].start_s + 0.9), duration_s: 0.5, end: "2026-11-22T18:23:26.600Z", messages: 7, text: "longer"}]
    + [.[0] + {id: "c", start_s: (.[0].start_s + 2)}] + [.[0] + {id: "d", severity: "fail"}])'
  words
  grep -E '^\| [abcd][0-9]* ' report.md | cut -d '|' -f 2-10 >rows
  run cat rows
  assert_line ' a4 and 1 more | advisory | longer | bw/n2/n1/1 and 1 more | 2026-11-22 18:23:25.250 | 18:23:26.600 | 9.7 s | 0.500 s | 71 '
  assert_line --partial ' c | advisory | nothing was completed'
  assert_line --partial ' d | FAIL | nothing was completed'
}

@test "charts keep the lowest and the highest of what they thin, and break where intervals are missing" {
  made 2 900 1
  # one bad interval, in one of nine hundred
  jq -c 'if .kind == "interval" and .flow == "bw/n1/n2/1" and .start_s > 700.005 and .start_s < 700.02 then .bandwidth.gbit_s = 3 | .bandwidth.min_interval_gbit_s = 0.25 else . end' run/intervals.jsonl >edited
  mv edited run/intervals.jsonl
  words
  assert_equal "$(chart soak_bandwidth_1 '[.values[] | select(.role == "line" and .series == "n1 → n2" and .figure == "mean of the interval")] | map(.v | values) | min')" 3
  assert_equal "$(chart soak_bandwidth_1 '[.values[] | select(.role == "line" and .figure != "mean of the interval")] | map(.v | values) | min')" 0.25
  assert_equal "$(chart soak_bandwidth_1 '[.values[] | select(.role == "line" and .v == null)] | map(.x) | unique | length')" 1
  chart soak_bandwidth_1 '.values | length' >size
  (($(<size) < 1500)) || fail "$(<size) values in one chart"
}

@test "of many pairs the worst are named, and of the others the worst at each time is drawn" {
  made 8 60 1
  words
  run chart soak_bandwidth_1 .series
  assert_output '["n1 → n2","n2 → n3","n7 → n8","n8 → n1","worst of 4 others"]'
  run chart soak_bandwidth_1 .caption
  assert_output --partial "Named are the 4 pairs with the most anomalies"
}

@test "stalls and gaps that the verdict has no room for have their bars all the same" {
  made 2 60 10 '.soak.anomalies = [] | .soak.anomalies_left_out = 78'
  jq -c 'select(.kind == "interval" and .flow == "lat/n1/n2/1") | .kind = "stall" | .start_s += 3 | .end_s = .start_s + 0.05' run/intervals.jsonl >stalls
  # these are not longer than their flow's limit, and no anomalies; far enough away to have bars of their own
  jq -c '.flow = "lat/n2/n1/1" | .client = "n2" | .server = "n1" | .start_s += 4 | .end_s = .start_s + 0.03' stalls >within
  cat stalls within >>run/intervals.jsonl
  words
  assert_equal "$(chart soak_anomalies '[.values[] | select(.role == "bar" and .kind == "stall")] | length')" 59
  assert_equal "$(chart soak_latency_3 '[.values[] | select(.role == "bar")] | length')" 59
  run chart soak_anomalies .caption
  assert_output --partial "Stalls and gaps are all there"
}

@test "turns of a pair are one line, which breaks between them, and a turn of a single interval is a point" {
  made 2 60 1 '.soak.mode = "alternating" | .soak.turn_s = 10'
  # every other ten seconds; of the last ones, one interval
  jq -c 'if .kind != "interval" then . else (.start_s / 10 | floor) as $turn | select($turn % 2 == 0 and (.start_s < 40 or .start_s < 41 and .start_s > 40)) | .turn = $turn + 1 | .flow |= sub("[0-9]+$"; "\($turn + 1)") end' \
    run/intervals.jsonl >edited && mv edited run/intervals.jsonl
  words
  run cat report.md
  assert_output --partial "tests in turn"
  line='[.values[] | select(.role == "line" and .series == "n2 → n1" and .figure == "mean of the interval")]'
  assert_equal "$(chart soak_bandwidth_1 "$line | map(select(.v == null)) | length")" 2
  assert_equal "$(chart soak_bandwidth_1 '.series')" '["n1 → n2","n2 → n1"]'
  assert_equal "$(chart soak_bandwidth_1 '[.values[] | select(.role == "shape" and .series == "n2 → n1" and .figure == "mean of the interval" and .x > 40000)] | length')" 1
}

@test "what anomalies say is text: it breaks no table, and does nothing in Markdown" {
  made 2 60 1 '.soak.anomalies[0] += {text: "a|b <script>1</script> `c`\n**d**", kind: "x|y<b>", host: "h|i"} | .soak.anomaly_counts["x|y<b>"] = 2
    | .soak.blind[0].text = "| <img src=x> |" | .soak.anomalies[0].evidence = ["raw/a|b:1"]'
  words
  assert_equal "$(awk -f "$TOP/tests/markdown_tables.awk" report.md)" ""
  run cat report.md
  refute_output --partial '<script>'
  refute_output --partial '<img'
  assert_output --partial 'a\|b &lt;script>1&lt;/script> \`c\` \*\*d\*\*'
  run_expecting 0 "$PYTHON" "$TOP/reports/draw.py" report.json charts
  refute grep -q '<b>' charts/soak_anomalies.svg
}

@test "the page of a soak: nothing wider than a phone, all reached by the keyboard, enough contrast in light and dark" {
  made 2 60 1
  words
  run_expecting 0 "$PYTHON" "$TOP/reports/draw.py" report.json run/charts
  cp report.md run/
  run_expecting 0 "$TOP/reports/html" run
  "$PYTHON" "$TOP/tests/browser.py" run/report.html looks 3>&-
  facts() { jq -e "$1" looks/facts.json >/dev/null || fail "does not hold: $1"; }
  facts '.console == [] and .whole.charts == 7 and .whole.twice == [] and .whole.nowhere == [] and .whole.labels == []'
  facts '[."phone-light", ."phone-dark"] | all(.layout.page == 360 and .layout.unreachable == [])'
  facts '.keyboard | .expected == .reached and .unseen == []'
  facts '[."phone-light", ."phone-dark", ."desktop-light", ."desktop-dark", .paper] | all(.contrast.faint == [])'
  facts '.axe | length == 2 and all(.violations == [])'
  facts '.paper | .wide == [] and .page <= .window'
}

@test "without its lines over time, or with damaged ones, the tables stand and the report says what is missing" {
  made 2 60 1
  for damage in rm "truncate -s -20"; do
    $damage run/intervals.jsonl
    words
    run cat report.md
    assert_output --partial "intervals.jsonl is missing or damaged, so nothing is drawn over time"
    assert_output --partial "| a1 | FAIL |"
    assert_equal "$(jq -c '[.soak.charts[].name]' report.json)" '["soak_anomalies"]'
    made 2 60 1
  done
}

@test "every chart is drawn, and what a report could not have seen stands in it" {
  made 2 60 1
  words
  run_expecting 0 "$PYTHON" "$TOP/reports/draw.py" report.json charts
  assert_equal "$(cd charts && echo *)" \
    "soak_anomalies.svg soak_bandwidth_1.svg soak_bandwidth_2.svg soak_counters.svg soak_latency_3.svg soak_memory.svg soak_temperature.svg"
  # colour and shape have one legend
  assert_equal "$(grep -o '>n1 → n2<' charts/soak_bandwidth_1.svg | wc -l)" 1
  sed -n '/^### What it could not have seen/,/^## /p' report.md >section
  run cat section
  assert_output --partial "Stalls shorter than 20 ms"
}

@test "a composed soak, judged, has its report: each planted fault in the table, every course in a chart" {
  "$PYTHON" "$TOP/tests/soak_compose.py" run --duration 1200 --plant gap@300-312 --plant step=0.5@600:1 >/dev/null
  "$TOP/reports/judge" run >/dev/null || true
  words
  run cat report.md
  assert_output --partial "**Soak of 20 min**, all tests at once, an interval each 1 min: 19 min 48 s measured (98.99 %) by the flow that has least, 1 gap, 12.0 s without a connection in the worst flow."
  assert_output --regexp "\\| a[0-9]+ \\| FAIL \\| no connection for 12.0 s"
  assert_equal "$(jq -c '[.soak.charts[] | select(.spec == "soak_bandwidth" or .spec == "soak_latency") | .name]' report.json)" \
    '["soak_bandwidth_1","soak_bandwidth_2","soak_latency_3"]'
}

@test "a composed soak that runs has what was measured so far, and no word that says more" {
  "$PYTHON" "$TOP/tests/soak_compose.py" run --duration 86400 --running 1200 >/dev/null
  run_expecting 3 "$TOP/reports/judge" run
  words
  run cat report.md
  assert_output --partial "**INCONCLUSIVE**"
  assert_output --partial "20 min measured (1.38 %) by the flow that has least, no gap. **It still runs**: the first 20 min are here"
  # there is nothing to look at, and nothing to measure again
  assert_output --partial "Wait for its end: playbooks/soak.yml finds the soak that runs"
  refute_output --regexp "measure again|agent\.(log|json)|Put the run's limits"
  assert_output --partial "No anomaly was found in what was measured so far."
  assert_output --regexp "\\| load \\| so far 0.4[0-9]+ Gb/s in the mean \\|"
  assert_equal "$(awk -f "$TOP/tests/markdown_tables.awk" report.md)" ""
  made 2 60 1 '.soak.state = "none" | .soak.measured_s = 0 | .soak.anomalies = [] | .soak.anomaly_counts = {}'
  words
  run cat report.md
  assert_output --partial "Nothing was measured in which an anomaly could have shown."
}

@test "a run that is no soak has nothing of one" {
  made 2 60 1 'del(.soak)'
  words
  assert_equal "$(jq -c .soak report.json)" null
  run cat report.md
  refute_output --regexp "[Ss]oak of|## The soak"
}

@test "the worst interval of a turn has its time since the soak began, not since the turn" {
  made 2 60 1 '.soak.flows[0].soak_s = 3000 | .soak.flows[1].soak_s = null'
  words
  run cat report.md
  assert_output --regexp "bw/n1/n2/1. \\| done \\|.* 0:50:20 \\|"
  assert_output --regexp "bw/n2/n1/1. \\| done \\|.* \\| - \\| -2.00 %"
}

@test "key findings name each test's worst interval, and none where a flow has no figure" {
  made 2 60 1
  words
  run cat report.md
  assert_output --partial "- **No interval of Bandwidth carried less than 94.0 Gb/s** (n2 to n1, 20.1 s after the start); in the worst 0.1 s of that flow 80.0 Gb/s."
  assert_output --partial "- **No interval of Latency under load had a p99 above 1,040 µs**"
  made 2 60 1 '.soak.flows[0].figures.bandwidth.lowest_interval = null'
  words
  run cat report.md
  refute_output --partial "No interval of Bandwidth carried"
  assert_output --partial "- **No interval of Bandwidth, verified carried"
}

@test "perch.prom has the soak's time, anomalies by kind, gaps and worst interval, and nothing that a flow lacks" {
  made 2 60 1 '.soak.running = true | .soak.flows[0].figures.bandwidth.lowest_interval = null'
  run_expecting 0 "$TOP/reports/export" run
  python "$TOP/tests/prometheus.py" run/perch.prom >samples
  sample() { jq -c --arg name "perch_soak_$1" 'select(.name == $name) | [.value, (.labels | to_entries[].value)]' samples | tr -d '\n'; }
  assert_equal "$(sample running)$(sample planned_seconds)$(sample measured_seconds)" "[1][60][55]"
  assert_equal "$(sample anomalies | grep -oE '\[[1-9][^]]*')" '[1,"gap"
[75,"stall"
[1,"change"
[1,"leak"'
  assert_equal "$(sample gap_seconds)" '[5.01,"bw"][5.01,"bw-verify"][5.01,"lat"]'
  assert_equal "$(sample lowest_interval_bytes_per_second)" '[11750000000,"bw-verify"]'
  assert_equal "$(sample highest_p99_seconds)" '[0.00104,"lat"]'
}

@test "junit.xml: a soak's check that failed tells when, where, and which lines show it" {
  made 2 60 1 '.checks = [{id: "soak/gap", title: "No gap", status: "fail", measured: 1, limit: null, unit: null, source: "s", evidence: [], remedy: null}]'
  run_expecting 0 "$TOP/reports/export" run
  run cat run/junit.xml
  assert_output --partial 'classname="perch.soak" name="soak/gap"'
  assert_output --partial "2026-11-22T18:23:36.250Z to 2026-11-22T18:23:41.250Z, bw/n1/n2/1: the connection was lost for 5.01 s and came back at the 3rd attempt (raw/n1/flows/bw/n1/n2/1/client.soak:17, "
}

@test "readiness gathers a soak's checks by what they speak of" {
  made 2 60 1 '.checks = [("soak/gaps", "soak/memory", "soak/integrity", "soak/counters/drops") | {id: ., title: ., status: "fail", measured: 1, limit: null, unit: null, source: "s", evidence: [], remedy: null}]'
  words
  sed -n '/^## Readiness/,/^## /p' report.md >section
  run cat section
  assert_output --regexp "Stable over time \\| [^|]+ \\| soak/gaps"
  assert_output --regexp "Nothing grows \\| [^|]+ \\| soak/memory"
  assert_output --regexp "No corruption \\| [^|]+ \\| soak/integrity"
  assert_output --regexp "Counters clean \\| [^|]+ \\| soak/counters"
}
