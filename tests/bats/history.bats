#!/usr/bin/env bats
# What was accepted before: runs are listed, accepted, found again when the next one is planned, and held against it.

load helpers
load judge

setup() {
  judge_setup
  HISTORY=$TOP/tests/fixtures/history
}
teardown() { common_teardown; }

# with_baseline FILTER: the run was planned with this accepted one
with_baseline() { jq -c "$1" "$HISTORY/baseline.json" >run/inputs/baseline.json; }

# As if the recorded run had been hardware: only there may drift fail a run. The figures are what they are.
as_hardware() {
  "$TOP/reports/judge" run >said || true
  jq '.scope = "hardware"' run/verdict.json >hardware.json
}

# drift FILTER: the checks of the recorded figures as hardware, against the accepted run after FILTER; standard output
drift() {
  jq -c ".fabric.scope = \"hardware\" | $1" "$HISTORY/baseline.json" >baseline.json
  jq -nc -L "$TOP/reports/jq" --slurpfile plan run/plan.json --slurpfile verdict hardware.json --slurpfile baseline baseline.json \
    -f "$TOP/reports/jq/drift.jq" "${2:-run/records.jsonl}" >drift.json
}

@test "a run like the accepted one passes and says which that was; without one that is shown" {
  judge 0
  assert_equal "$(check_status drift)" not_judged
  with_baseline .
  judge 0
  assert_equal "$(check_status drift)" pass
  assert_json run/verdict.json '.checks[] | select(.id == "drift") | .measured | test("45 figures .* 20261121T080406Z-fixture.*\"final\"")'
}

@test "software that is slower than the accepted run is shown, and so is what is much better" {
  with_baseline '.figures |= with_entries(select(.key | startswith("ofi-bandwidth/") or startswith("iperf3/")))
    | .figures["ofi-bandwidth/alpha/beta/65536/bandwidth.gbit_s"].value *= 1.3 | .figures["iperf3/alpha/beta/131072/bandwidth.gbit_s"].value /= 1.3'
  judge 0
  assert_equal "$(check_status drift/ofi-bandwidth/bandwidth.gbit_s)" advisory
  assert_equal "$(check_status drift/iperf3/bandwidth.gbit_s)" advisory
  assert_json run/verdict.json '[.checks[] | select(.id | startswith("drift/")) | select(.title | test("better"))] | length == 1'
}

@test "hardware that is worse than its bound and its noise fails, is inconclusive where nothing was repeated, and the noisy is left to repeats" {
  as_hardware
  # three quiet repeats in both runs, at 80 %
  jq -c 'select(.test == "ofi-bandwidth" and .params.size_bytes == 65536) | .,
    (.flow |= sub("/1$"; "/2") | .bandwidth.gbit_s *= 1.004), (.flow |= sub("/1$"; "/3") | .bandwidth.gbit_s *= 0.996)' run/records.jsonl >three.jsonl
  local key=ofi-bandwidth/alpha/beta/65536/bandwidth.gbit_s
  only='.figures |= {"'$key'": .["'$key'"]}'
  drift "$only | .figures[].value *= 1.25 | .figures[] |= (.n = 3 | .cv_percent = 0.5)" three.jsonl
  assert_json drift.json '[.[] | select(.id == "drift/ofi-bandwidth/bandwidth.gbit_s")] | length == 1 and .[0].status == "fail" and .[0].measured == -20'
  # 4 % is within the bound; 20 % with a noise of 20 % may be chance: measure again
  drift "$only | .figures[].value *= 1.04 | .figures[] |= (.n = 3 | .cv_percent = 0.5)" three.jsonl
  assert_json drift.json 'map(.status) | index("fail") == null and index("inconclusive") == null and index("pass") != null'
  drift "$only | .figures[].value *= 1.25 | .figures[] |= (.n = 3 | .cv_percent = 20)" three.jsonl
  assert_json drift.json '.[] | select(.id == "drift/ofi-bandwidth/bandwidth.gbit_s") | .status == "inconclusive" and (.remedy | test("noise of the repeats"))'
  drift "$only | .figures[].value *= 1.25"
  assert_json drift.json '.[] | select(.id == "drift/ofi-bandwidth/bandwidth.gbit_s") | .status == "inconclusive" and (.remedy | test("nothing was repeated"))'
}

@test "a baseline of another fabric is named and inconclusive: limits, scope, hosts, devices, rate, MTU" {
  local change
  while read -r change; do
    with_baseline "$change"
    judge 3
    assert_equal "$(check_status drift/fabric)" inconclusive
    assert_equal "$(jq '[.checks[] | select(.id | startswith("drift"))] | length' run/verdict.json)" 1
  done <<'CHANGES'
.fabric.limits = "roce"
.fabric.scope = "hardware"
.fabric.hosts.gamma = .fabric.hosts.beta
.fabric.hosts.alpha.ends[0].mtu_bytes = 9000
.fabric.hosts.beta.ends[0].device = "mlx5_0"
.fabric.hosts.beta.ends[0].rate_gbit_s = 100
CHANGES
  assert_output --partial "The accepted run is of this fabric"
}

@test "figures under another definition are never held against each other, and one without a counterpart is shown" {
  with_baseline '.terms |= map(sub("definition=half_round_trip"; "definition=completion"))'
  judge 3
  assert_equal "$(check_status drift/unlike)" inconclusive
  assert_json run/verdict.json '.checks[] | select(.id == "drift/unlike") | .measured | test("definition: completion and half_round_trip")'
  with_baseline '.figures |= (del(.["iperf/alpha/beta/131072/bandwidth.gbit_s"]) | .["gone/alpha/beta/8/latency_us.p50"] = .["tcp-latency/alpha/beta/8/latency_us.p50"])'
  judge 0
  assert_equal "$(check_status drift/missing)" not_judged
  assert_json run/verdict.json '.checks[] | select(.id == "drift/missing") | .evidence == ["gone/alpha/beta/8/latency_us.p50", "iperf/alpha/beta/131072/bandwidth.gbit_s"]'
  with_baseline '.figures |= with_entries(.key |= "x" + .)'
  judge 3
  assert_equal "$(check_status drift/missing)" inconclusive
}

@test "a damaged baseline is inconclusive, whatever is wrong with it" {
  local fault
  head -c 300 "$HISTORY/baseline.json" >run/inputs/baseline.json
  judge 3
  assert_equal "$(check_status drift/baseline)" inconclusive
  rm run/inputs/baseline.json && mkdir run/inputs/baseline.json
  judge 3
  rmdir run/inputs/baseline.json
  while read -r fault; do
    with_baseline "$fault"
    judge 3
    assert_equal "$(check_status drift/baseline)" inconclusive
  done <<'FAULTS'
.schema = "perch.baseline/2"
., .
del(.fabric.hosts)
.figures = {}
.figures["iperf/alpha/beta/131072/bandwidth.gbit_s"].value = 0
.figures["iperf/alpha/beta/131072/bandwidth.gbit_s"].of = 99
FAULTS
}

@test "accepted runs are as their schema says" {
  command -v check-jsonschema >/dev/null || skip "check-jsonschema is not installed"
  jq -s '{type: "array", items: .[0]} | .["$defs"] = .items["$defs"]' "$TOP/reports/schema/baseline.schema.json" >lines.schema.json
  jq -s . "$HISTORY/baseline.json" "$HISTORY/history.jsonl" >lines.json
  check-jsonschema --schemafile lines.schema.json lines.json
}

# schema NAME FILE [EDIT...]: the JSON documents in FILE are as reports/schema/NAME says, and with each EDIT (jq) they are refused
schema() {
  command -v check-jsonschema >/dev/null || skip "check-jsonschema is not installed"
  jq '{"$schema", type: "array", items: del(."$schema", ."$id", ."$defs"), "$defs": (."$defs" // {})}' "$TOP/reports/schema/$1.schema.json" >array.schema.json
  jq -s . "$2" >array.json
  run_expecting 0 check-jsonschema --schemafile array.schema.json array.json
  local edit
  for edit in "${@:3}"; do
    jq "map($edit)" array.json >wrong.json
    cmp -s array.json wrong.json && fail "$edit alters nothing"
    run_expecting 1 check-jsonschema --schemafile array.schema.json wrong.json
  done
}

# ---- the list of runs, and accepting ----

# in_runs NAME...: judged copies of the recorded run, as runs/NAME, each a run of its own
in_runs() {
  local name
  mkdir -p runs
  for name in "$@"; do
    cp -r run "runs/$name"
    "$JUDGE" "runs/$name" >said || true
  done
}

@test "each judged run has one line in the index; one that cannot be read is named and left" {
  in_runs one
  run_expecting 0 "$TOP/reports/index" runs/one
  run_expecting 0 "$TOP/reports/index" runs/one
  assert_equal "$(grep -c '' runs/index.jsonl)" 1
  assert_json runs/index.jsonl '.schema == "perch.index/1" and .verdict == "PASS" and .planned == 29 and .measured == 29 and .accepted == null'
  assert_equal "$(jq -r .digest runs/index.jsonl)" "$(sha256sum <runs/one/verdict.json | cut -c -64)"
  echo '{"run": ' >>runs/index.jsonl
  run_expecting 1 "$TOP/reports/index" runs/one
  assert_output --partial "index.jsonl:2: no JSON object"
  assert_equal "$(sed -n 2p runs/index.jsonl)" '{"run": '
  run_expecting 2 "$TOP/reports/index" runs/none
  # neither waited for nor written through
  rm runs/index.jsonl && mkfifo runs/index.jsonl
  LIMIT=20 run_expecting 6 "$TOP/reports/index" runs/one
  rm runs/index.jsonl && ln -s ../elsewhere runs/index.jsonl
  run_expecting 6 "$TOP/reports/index" runs/one
  [ ! -e elsewhere ] || fail "a link was written through"
}

@test "ten at once each leave their line" {
  in_runs one
  local i
  for i in 1 2 3 4 5 6 7 8 9 10; do
    cp -r runs/one "runs/$i"
    edit "runs/$i/verdict.json" ".run = \"run-$i\""
  done
  for i in 1 2 3 4 5 6 7 8 9 10; do "$TOP/reports/index" "runs/$i" 3>&- & done
  wait
  assert_equal "$(jq -r .run runs/index.jsonl | sort -u | grep -c '')" 10
}

@test "an accepted run is found by the next plan of its fabric, and by no other" {
  in_runs one
  run_expecting 0 "$TOP/reports/accept" --label "first light" runs/one
  assert_output --partial "is the baseline of alpha, beta"
  assert_json runs/index.jsonl '.accepted != null and .label == "first light"'
  schema index runs/index.jsonl 'del(.digest)' '.verdict = "PASSED"' '.planned = -1' '.digest |= .[1:]' '.extra = 1' '.created = "today"'
  mkdir -p runs/two/inputs runs/three/inputs
  cp run/plan.json runs/two
  jq '.limits = "roce"' run/plan.json >runs/three/plan.json
  run_expecting 0 "$TOP/reports/recall" runs/two runs
  assert_output --partial "first light"
  assert_json runs/two/inputs/baseline.json '.schema == "perch.baseline/1" and .label == "first light" and (.figures | length) == 65'
  assert_json runs/two/inputs/history.jsonl '.schema == "perch.history/1"'
  run_expecting 0 "$TOP/reports/recall" runs/three runs
  assert_equal "$(ls runs/three/inputs)" ""
  rm runs/two/inputs/*
  run_expecting 0 "$TOP/reports/recall" runs/two runs none
  assert_equal "$(ls runs/two/inputs)" ""
  # accepted again, it is still one line
  run_expecting 0 "$TOP/reports/accept" --label "again" runs/one
  assert_equal "$(cat runs/baseline/*/history.jsonl | grep -c '')" 1
  # no file of the run itself was touched by being judged anew
  assert_equal "$(ls -A runs/one)" "$(printf '%s\n' inputs plan.json raw records.jsonl verdict.json)"
}

@test "a baseline that was edited by hand or is damaged is refused when the next run is planned, before anything is measured" {
  in_runs one
  run_expecting 0 "$TOP/reports/accept" runs/one
  mkdir -p runs/two/inputs
  cp run/plan.json runs/two
  local kept edit
  kept=$(echo runs/baseline/*)
  cp "$kept/baseline.json" whole.json
  for edit in '.figures[].value *= 0.1' '.figures |= (to_entries[1:] | from_entries)' '.figures[].better = "lower"' '.fabric.limits = "roce"'; do
    jq "$edit" whole.json >"$kept/baseline.json"
    run_expecting 3 "$TOP/reports/recall" runs/two runs
    assert_output --partial "baseline.json is not what was accepted"
    assert_equal "$(ls runs/two/inputs)" ""
  done
  for edit in '{}' '.figures = {}' '., .'; do
    jq "$edit" whole.json >"$kept/baseline.json"
    run_expecting 3 "$TOP/reports/recall" runs/two runs
    assert_output --partial "baseline.json cannot be used: it"
    run_expecting 3 "$TOP/reports/recall" runs/two runs "$kept/baseline.json"
    assert_equal "$(ls runs/two/inputs)" ""
  done
  head -c 300 whole.json >"$kept/baseline.json"
  run_expecting 3 "$TOP/reports/recall" runs/two runs
  # a damaged line of the history is named and left behind; the first of the others and the newest nine are copied
  cp whole.json "$kept/baseline.json"
  local i
  { echo '{"run": ' && cat "$kept/history.jsonl" && for i in $(seq 2 12); do jq -c ".run = \"run-$i\"" whole.json; done; } >lines && mv lines "$kept/history.jsonl"
  run_expecting 0 "$TOP/reports/recall" runs/two runs
  assert_output --partial "history.jsonl:1: no JSON object"
  assert_equal "$(jq -r .run runs/two/inputs/history.jsonl | paste -sd' ')" "$(jq -r .run whole.json) $(seq -f 'run-%g' 4 12 | paste -sd' ')"
}

@test "only a PASS is accepted, unless a reason is kept with it; a verdict that the raw outputs do not give never is" {
  in_runs one
  rm -r runs/one/raw/beta
  run_expecting 1 "$TOP/reports/accept" runs/one
  assert_output --partial "judged anew"
  "$JUDGE" runs/one || true
  run_expecting 1 "$TOP/reports/accept" runs/one
  assert_output --partial "the verdict is INCONCLUSIVE"
  edit runs/one/verdict.json '.verdict = "PASS"'
  run_expecting 1 "$TOP/reports/accept" runs/one
  [ ! -e runs/baseline ]
  in_runs two
  edit runs/two/inputs/limits.json '.limits |= map(select(.id == "iperf-bandwidth") | .bound.min = 1e6)'
  "$JUDGE" runs/two || true
  run_expecting 0 "$TOP/reports/accept" --force "a known slow link, ticket 7" runs/two
  assert_json runs/index.jsonl '.verdict == "FAIL" and .forced == "a known slow link, ticket 7"'
  run_expecting 2 "$TOP/reports/accept" --force "" runs/two
}

@test "two runs stand side by side with intervals; what was measured otherwise is refused, and nothing is written over" {
  in_runs one two
  jq -c 'if .test == "shm-read-latency" then .definition = "half_round_trip" elif .test == "ofi-bandwidth" then .bandwidth.gbit_s *= 0.5 else . end' \
    runs/one/records.jsonl >runs/two/records.jsonl
  run_expecting 0 "$TOP/reports/compare" runs/one runs/two
  assert_output --partial "| ofi-bandwidth/alpha/beta/65536/bandwidth.gbit_s | Gb/s |"
  assert_json runs/compare-one-two/comparison.json '.refused | length > 0 and all(.[]; .figure | startswith("shm-read-latency/"))
    and (.[0].reason | test("definition: completion and half_round_trip"))'
  # by hand: two repeats with t = 12.706 and sd / sqrt(2)
  assert_json runs/compare-one-two/comparison.json '.rows[] | select(.figure == "tcp-latency/alpha/beta/8/latency_us.p50") | .a_interval.of == "repeats"
    and (.a_interval.high - 97.5215 * (1 + 12.706 * 1.35894088 / (2 | sqrt)) | fabs) < 0.01'
  assert_json runs/compare-one-two/comparison.json '.rows[] | select(.figure == "ofi-bandwidth/alpha/beta/65536/bandwidth.gbit_s") | (.change_percent + 50 | fabs) < 0.01'
  run_expecting 0 "$TOP/reports/compare" runs/one runs/one
  # of samples: the quantile lies within its interval
  assert_json runs/compare-one-one/comparison.json '[.rows[] | select(.a_interval.of == "samples")]
    | length > 0 and all(.[]; .a_interval.low <= .a * 1.001 and .a <= .a_interval.high * 1.001)'
  run_expecting 0 "$TOP/reports/compare" runs/one runs/two
  [ -s runs/compare-one-two-2/comparison.md ]
  schema comparison runs/compare-one-two/comparison.json 'del(.method)' '.rows[0].a_interval.of = "luck"' '.rows[0].words = "fine"' '.rows[0].a = 0' \
    '.rows[0].figure = "tcp"' '.refused[0].reason = ""' '.a.scope = null' '.rows[0].extra = 1'
  run_expecting 2 "$TOP/reports/compare" runs/one
  head -c 3000 runs/one/records.jsonl >runs/two/records.jsonl
  run_expecting 3 "$TOP/reports/compare" runs/one runs/two
  assert_output --partial "runs/two/records.jsonl cannot be read"
}

@test "a bandwidth that was measured once has the interval of its course, and where there is none that is said" {
  in_runs one
  # twenty intervals: ten batches of two, with means 9, 11, 9, 11, ...; 10 is their mean, and sd / sqrt(10) = 1.05409 / 3.16228
  jq -c 'if .test == "ofi-bandwidth" then .bandwidth.gbit_s = 10
      | .intervals = [range(0; 20) | {start_s: ., end_s: (. + 1), gbit_s: (if . % 4 < 2 then 9 else 11 end)}] + [{start_s: 20, end_s: 20.1, gbit_s: 1}]
    elif .kind == "bandwidth" then .intervals = [] else . end' runs/one/records.jsonl >records && mv records runs/one/records.jsonl
  run_expecting 0 "$TOP/reports/compare" runs/one runs/one
  assert_output --partial "no interval: one value"
  assert_json runs/compare-one-one/comparison.json '.rows[] | select(.figure == "ofi-bandwidth/alpha/beta/65536/bandwidth.gbit_s") | .a_interval
    | .of == "intervals" and (.low - (10 - 2.262 * 0.333333) | fabs) < 1e-4 and (.high - (10 + 2.262 * 0.333333) | fabs) < 1e-4'
  assert_json runs/compare-one-one/comparison.json '[.rows[] | select(.unit == "Gb/s" and (.figure | startswith("ofi-bandwidth/") | not) and .a_interval == null)]
    | length > 0 and all(.[]; .words == "no interval: one value")'
  # the same on the page, with a title of its own, and whatever a run is called
  edit runs/one/plan.json '.created = "x|<b>`*y*"'
  run_expecting 0 "$TOP/reports/compare" runs/one runs/one
  run_expecting 0 tidy -quiet -errors runs/compare-one-one-2/comparison.html
  grep -qF 'x|&lt;b&gt;`*y*' runs/compare-one-one-2/comparison.html
  grep -qF 'no interval: one value' runs/compare-one-one-2/comparison.html
  run_expecting 3 env PERCH_PYTHON=/bin/false "$TOP/reports/compare" runs/one runs/one
  assert_output --partial "has no jinja2"
}

@test "a quantile whose bound too few samples support has no interval, and the others keep theirs" {
  in_runs one
  # 1,000 samples: above the upper bound of their p99 lie four
  perch_serve
  "$PERCH" lat 127.0.0.1 --port "$PORT" --backend tcp --size 8 --iterations 1000 --json >line.json
  stop_servers
  jq -c --slurpfile line line.json 'select(.test == "shm-read-latency") | .latency_us = $line[0].latency_us | .histogram = $line[0].histogram
    | .latency_us.p99 = .latency_us.max' runs/one/records.jsonl >records && mv records runs/one/records.jsonl
  run_expecting 0 "$TOP/reports/compare" runs/one runs/one
  assert_json runs/compare-one-one/comparison.json '[.rows[] | select(.figure | endswith("latency_us.p50")) | .a_interval.of] | length > 0 and all(.[]; . == "samples")'
  assert_json runs/compare-one-one/comparison.json '[.rows[] | select(.figure | endswith("latency_us.p99")) | .a_interval] | length > 0 and all(.[]; . == null)'
}
