#!/usr/bin/env bats
# What the role report writes beside the Markdown: the page, in a real browser; junit.xml; perch.prom. The run whose report is
# looked at is a recorded one in which hosts and plan say hostile things.

load helpers

# One report and one look at its page serve all tests. Chromium is on the list of packages: where it is not, tests fail.
setup_file() {
  local script='</td></table><script>document.title="owned"</script>'
  cd "$BATS_FILE_TMPDIR" || return
  cp -r "$TOP/tests/fixtures/loopback/run" run
  jq -c --arg text "$script [click](javascript:alert(1)) \"quoted\" {{ 3 * 37 }}" '.tests["tcp-latency"].title = $text' run/plan.json >plan.json
  mv plan.json run/plan.json
  sed -i -E "1s/(\"plan_sha256\": ?\")[0-9a-f]+/\1$(sha256sum <run/plan.json | cut -d ' ' -f 1)/" run/raw/*/{flows,samples}.jsonl
  raw show iperf3/alpha/beta/0/1 client | jq -c --arg text "$script ]]> <img src=x onerror=alert(1)> ![i](https://evil.example/i.png) [away](file:///etc/passwd) \"q\" "$'\u0001\u001b[31m'"" \
    '.state = "not_run" | .exit = null | .message = $text' | raw put iperf3/alpha/beta/0/1 client
  printf 'an older page\n' >run/report.html
  make -C "$TOP" report RUN="$PWD/run" >make.log 2>&1 3>&- || { cat make.log >&2 && return 1; }
  "$TOP/.venv/bin/python" "$TOP/tests/browser.py" run/report.html looks 3>&- || return 1
  trend_of_six "$script" || return 1
}

# trend_of_six LABEL: the page of six runs like this one, each slower than the last; the second is accepted, the fourth has another kernel
trend_of_six() {
  "$TOP/.venv/bin/perchctl" runs run || return
  mkdir trend
  jq -c --arg words "$1" 'range(1; 7) as $n | .run = "run-\($n)" | .folder = .run | .created = "2026-01-0\($n)T12:00:00Z"
    | .medians |= map_values(.by_size |= map_values(. * (1 + $n / 50)))
    | if $n == 2 then .accepted = "2026-01-02T13:00:00Z" | .label = $words else . end
    | if $n > 3 then .versions.kernel = ["6.12"] else . end' index.jsonl >trend/index.jsonl || return
  make -C "$TOP" trend RUNS="$PWD/trend" >trend.log 2>&1 3>&- || { cat trend.log >&2 && return 1; }
  "$TOP/.venv/bin/python" "$TOP/tests/browser.py" trend/trend.html trend/looks 3>&-
}

setup() {
  common_setup
  RUN=$BATS_FILE_TMPDIR/run FACTS=$BATS_FILE_TMPDIR/looks/facts.json
}
teardown() { common_teardown; }

# facts JQ-CONDITION: of what the browser saw; prints the part that FILTER names where it does not hold
facts() { jq -e "$1" "$FACTS" >/dev/null || fail "of the page this does not hold: $1
$(jq -c "${2:-.}" "$FACTS" | head -c 3000)"; }

# copy NAME: a folder with this run's judged files, to be altered
copy() {
  mkdir "$1"
  cp -r "$RUN"/{plan.json,rounds.jsonl,records.jsonl,verdict.json,report.md,charts} "$1"
}

prom() { python "$TOP/tests/prometheus.py" "${1:-$RUN}/perch.prom" >samples.json; }
sample() { jq -c --arg name "$1" "select(.name == \$name) | ${2:-.value}" samples.json; }

# ---- report.html ----

@test "the page is one valid file with title, language and contents, which loads nothing and runs nothing" {
  # tidy 5.6 does not know that a summary may hold a heading (HTML Living Standard, 4.11.2)
  run tidy -quiet -errors "$RUN/report.html"
  assert_equal "$(grep -v summary <<<"$output")" ""
  facts '.console == []' .console
  facts '(.requests | length) == 1' .requests
  facts '.whole | .scripts == 0 and .twice == [] and .nowhere == [] and .headings == [] and .labels == []' .whole
  facts '.whole | .lang == "en" and .contents == .sections and (.sections | length) > 5 and .charts == 5' .whole
  facts '.whole.title == "INCONCLUSIVE: Fabric report: A recorded run"' .whole.title
  grep -q "Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'" "$RUN/report.html"
  run ls -A "$RUN"
  refute_output --partial .html.
  refute_output --partial .export.
}

@test "two hosts fill some three screens, the rest is folded, and all of it is on paper" {
  facts '.folded | .screens < 3.5 and (.closed | index("Every check") and index("The commands"))' .folded
  facts '.folded.closed | any(. == "RDMA against TCP" or . == "Key findings") | not' .folded
  facts '.paper_folded | .wide == [] and .page <= .window' .paper_folded
}

@test "what hosts, tools and plans say stays text, and links lead nowhere but into the page and to the web" {
  facts '.whole.links == []' .whole.links
  run cat "$RUN/report.html"
  refute_output --partial '<script'
  refute_output --partial '<img'
  refute_output --partial 'javascript:alert(1)"'
  refute_output --partial 'href="file:'
  assert_output --partial '{{ 3 * 37 }}'
  assert_output --partial '&lt;script&gt;document.title=&quot;owned&quot;' || assert_output --partial '&lt;script&gt;document.title="owned"'
}

@test "on a phone nothing is wider than the page, and what scrolls by itself has a name and is reached by the keyboard" {
  facts '[."phone-light", ."phone-dark"] | all(.layout.page == 360 and .layout.window == 360)' '[."phone-light", ."phone-dark"]'
  facts '."phone-light".layout | .scrolling > 5 and .unreachable == []' '."phone-light".layout'
  # a shade at the edge shows that there is more
  facts '[."phone-light", ."phone-dark", ."desktop-light"] | all(.layout.unhinted == [])' '."phone-light".layout'
  facts '."desktop-light".layout | .page <= 1440 and .unreachable == []' '."desktop-light".layout'
}

@test "the keyboard reaches every link, table and chart in the page's order, the skip link first, with a focus that is seen" {
  facts '.keyboard | .expected == .reached and (.reached | length) > 30' .keyboard
  facts '.keyboard.reached[0] | test("Skip to the report")' '.keyboard.reached[0]'
  facts '.keyboard.unseen == []' .keyboard.unseen
  facts '.keyboard | .skipped_to == "#page.report" and .scrolled > 0' '.keyboard | {skipped_to, scrolled}'
}

@test "light and dark: text has a contrast of 4.5:1 and what is drawn of 3:1, and axe finds no violation of WCAG A and AA" {
  facts '[."phone-light", ."phone-dark", ."desktop-light", ."desktop-dark", .paper] | all(.contrast.faint == [] and .contrast.texts > 500 and .contrast.strokes > 50)' \
    '[."phone-light", ."desktop-dark", .paper] | map(.contrast)'
  facts '.axe | length == 2 and all(.violations == [] and .passes > 10)' .axe
  # it is two schemes that were looked at
  refute cmp "$BATS_FILE_TMPDIR/looks/phone-light.png" "$BATS_FILE_TMPDIR/looks/phone-dark.png"
}

@test "on paper all fits, rows are not cut, tables have their head on each page, and what serves screens only is left out" {
  facts '.paper | .wide == [] and .page <= .window and .cut == 0 and .heads == 0 and .screen_only == 0' .paper
  facts '.pdf.pages > 3 and .pdf.pages < 40' .pdf
}

@test "the verdict stands in words, whichever it is" {
  local word class
  facts '.whole.verdict | startswith("INCONCLUSIVE: ")' .whole.verdict
  copy run
  for word in PASS "PASS, software only" FAIL INCONCLUSIVE; do
    printf '# Report\n\n⚠️ **%s**: because.\n\nOther **PASS** words.\n' "$word" >run/report.md
    run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" page run
    class=${word,,}
    case $word in *only) class=limited ;; esac
    run tr '\n' ' ' <run/report.html
    assert_output --partial "<title>$word: Report</title>"
    assert_output --partial "<div class=\"verdict $class\"> <p><strong>$word</strong>: because.</p>"
    assert_output --partial "<p>Other <strong>PASS</strong> words.</p>"
  done
}

@test "the same run gives the same page and the same files for programs, to the byte" {
  local file
  copy run
  for _ in 1 2 3; do
    run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" page run
    run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" export run
    for file in report.html junit.xml perch.prom; do cmp "run/$file" "$RUN/$file"; done
  done
}

@test "two hundred and fifty charts make a page of bounded size: those beyond are linked to" {
  local n
  copy run
  for n in {1..250}; do
    cp run/charts/distribution.svg "run/charts/c$n.svg"
    printf '### Chart %s\n\n![Chart %s](charts/c%s.svg)\n\n' "$n" "$n" "$n"
  done >run/report.md
  run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" page run
  [ "$(stat -c %s run/report.html)" -lt 5000000 ] || fail "it has $(stat -c %s run/report.html) bytes"
  run grep -o '<svg' run/report.html
  [ "${#lines[@]}" -ge 90 ] || fail "only ${#lines[@]} charts are drawn"
  assert_equal $((${#lines[@]} + $(grep -c 'this chart is not part of the page' run/report.html))) 250
}

@test "a chart that could load or run something, and one from elsewhere, is not taken in" {
  local evil
  copy run
  for evil in '<script>1</script>' '<image href="x"/>' '<g onload="x()"/>' '<a href="javascript:1">x</a>' '<use href="http://evil.example/#x"/>' \
    '<foreignObject/>' '<style>@import "http://evil.example"</style>'; do
    printf '<svg width="9" height="9" viewBox="0 0 9 9">%s</svg>' "$evil" >run/charts/evil.svg
    printf '# R\n\n![evil](charts/evil.svg)\n\n![passwd](../../etc/passwd)\n\n![passwd](charts/../evil.svg)\n' >run/report.md
    run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" page run
    run grep -c '<svg' run/report.html
    assert_output 0
    assert_equal "$(grep -o 'this chart is not part of the page' run/report.html | wc -l)" 3
  done
  printf '<svg width="9" height="9" viewBox="0 0 9 9"><g id="a"/></svg>' >run/charts/evil.svg
  run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" page run
  run cat run/report.html
  assert_output --partial '<g id="chart.evil.a"/>'
}

@test "without pandoc there is no page, not even an older one; that is said, and the report is whole without it" {
  copy run
  echo old >run/report.html
  mkdir bin
  PATH=$PWD/bin run -3 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" page run
  assert_output --partial "pandoc is not installed"
  assert_output --partial "report.md has the same content"
  [ ! -e run/report.html ] || fail "the older page is still there"
  [ -s run/report.md ] || fail "report.md is gone"
}

@test "what cannot be written or read is named, with the exit codes of the design" {
  copy run
  rm run/verdict.json
  run_expecting 2 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" export run
  assert_output --partial "run: verdict.json is missing"
  echo '{' >run/verdict.json
  run_expecting 3 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" export run
  assert_output --partial "run/verdict.json: it cannot be used: "
}

@test "a run that is judged again and cannot be read keeps no report of its earlier verdict" {
  local file
  copy run
  cp "$RUN"/{report.html,junit.xml,perch.prom} run
  echo '{' >run/plan.json
  run_expecting 3 "$TOP/.venv/bin/perchctl" judge run
  assert_output --partial "plan.json: it is damaged"
  for file in report.md report.html junit.xml perch.prom charts/latency.svg; do
    [ ! -e "run/$file" ] || fail "the older $file is still there"
  done
}

# ---- trend.html ----

@test "make trend draws the runs of a folder, and another fabric only if it is there" {
  run cat "$BATS_FILE_TMPDIR/trend.log"
  assert_output --regexp "trend.html: trend of 6 runs of fabric [0-9a-f]{12}"
  run_expecting 2 make -C "$TOP" trend RUNS="$BATS_FILE_TMPDIR/trend" FABRIC="0 'none'"
  assert_output --partial "no run of fabric '0 'none''"
}

@test "the page of trends keeps the rules of the report's page: on a phone, by keyboard, in both schemes and on paper" {
  FACTS=$BATS_FILE_TMPDIR/trend/looks/facts.json
  run tidy -quiet -errors "$BATS_FILE_TMPDIR/trend/trend.html"
  assert_equal "$(grep -v summary <<<"$output")" ""
  facts '.console == [] and (.requests | length) == 1' '{console, requests}'
  facts '.whole | .scripts == 0 and .links == [] and .twice == [] and .nowhere == [] and .headings == [] and .labels == []' .whole
  facts '.whole | .lang == "en" and .contents == .sections and .charts == 5 and (.title | startswith("Trend: "))' .whole
  facts '[."phone-light", ."phone-dark"] | all(.layout | .page == 360 and .unreachable == [])' '[."phone-light", ."phone-dark"]'
  facts '.keyboard | .expected == .reached and (.reached | length) > 10 and .unseen == []' .keyboard
  facts '[."phone-light", ."phone-dark", ."desktop-light", ."desktop-dark", .paper] | all(.contrast.faint == [] and .contrast.texts > 200 and .contrast.strokes > 50)' \
    '[."phone-light", ."desktop-dark", .paper] | map(.contrast)'
  facts '.axe | length == 2 and all(.violations == [] and .passes > 10)' .axe
  facts '.paper | .wide == [] and .page <= .window and .cut == 0 and .heads == 0 and .screen_only == 0' .paper
  run cat "$BATS_FILE_TMPDIR/trend/trend.html"
  assert_output --partial '&lt;script&gt;document.title='
}

# ---- junit.xml ----

# an XPath expression's value
xpath() { xmllint --xpath "$1" "${2:-$RUN}/junit.xml"; }

@test "junit.xml is valid, has a testcase for each check and one for the verdict, and counts them" {
  run_expecting 0 xmllint --noout --schema "$TOP/tests/fixtures/page/junit.xsd" "$RUN/junit.xml"
  assert_equal "$(xpath 'count(//testcase)')" "$(jq '.checks | length + 1' "$RUN/verdict.json")"
  assert_equal "$(xpath 'string(//testsuite/@tests)')" "$(xpath 'count(//testcase)')"
  assert_equal "$(xpath 'string(//testcase[@name="verdict"]/error/@type)')" inconclusive
  assert_equal "$(xpath 'count(//error)')" "$(jq '[.checks[] | select(.status == "inconclusive")] | length + 1' "$RUN/verdict.json")"
  assert_equal "$(xpath 'string(//testsuite/@errors)')" "$(xpath 'count(//error)')"
  assert_equal "$(xpath 'count(//skipped)')" "$(jq '[.checks[] | select(.status == "not_judged")] | length' "$RUN/verdict.json")"
  assert_equal "$(xpath 'count(//system-out)')" "$(jq '[.checks[] | select(.status == "advisory")] | length' "$RUN/verdict.json")"
  [ "$(xpath 'count(//skipped[string-length(@message) > 20])')" -gt 0 ] || fail "nothing says why it was skipped"
  # two records of half a second and six of a fifth
  assert_equal "$(xpath 'string(//testcase[@name="flows/tcp-bandwidth"]/@time)')" 0.605
}

@test "junit.xml: a check that fails is a failure, and hostile text arrives, its control characters as escapes" {
  copy run
  jq -c '.verdict = "FAIL" | .checks = [.checks[0] | .id = "limit/a\"b" | .status = "fail" | .measured = "x ]]> <b> & \"q\"\n\u0001\u001b\ufffe\ud83d\ude00"]' \
    "$RUN/verdict.json" >run/verdict.json
  run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" export run
  run_expecting 0 xmllint --noout --schema "$TOP/tests/fixtures/page/junit.xsd" run/junit.xml
  assert_equal "$(xpath 'count(//failure)' run)" 2
  assert_equal "$(xpath 'string(//testcase[2]/@name)' run)" 'limit/a"b'
  assert_equal "$(xpath 'string(//testcase[2]/@classname)' run)" perch.limit
  run xpath 'string(//testcase[2]/failure/@message)' run
  assert_output --partial $'x ]]> <b> & "q"\\n\\x01\\x1b\\ufffe\U0001f600'
  run xpath 'string(//testcase[2]/failure)' run
  assert_output --partial 'source: design'
}

# ---- perch.prom ----

@test "perch.prom is read by Prometheus' own parser, keeps its naming rules, and says what the verdict says" {
  prom
  assert_equal "$(sample perch_verdict 'select(.value == 1) | .labels.verdict')" '"INCONCLUSIVE"'
  assert_equal "$(sample perch_verdict .value | sort | tr -d '\n')" 001
  assert_equal "$(sample perch_scope 'select(.value == 1) | .labels.scope')" '"software"'
  assert_equal "$(sample perch_run_info '.labels | del(.verdict_sha256)')" '{"run":"20261121T080406Z-fixture","suite":"fixture","limits":"local"}'
  assert_equal "$(sample perch_planned_records '.value')" 29
  assert_equal "$(sample perch_measured_records '.value')" 28
  assert_equal "$(sample perch_checks 'select(.labels.status == "inconclusive") | .value')" \
    "$(jq '[.checks[] | select(.status == "inconclusive")] | length' "$RUN/verdict.json")"
  assert_equal "$(sample perch_check_not_passed .labels.status | sort -u)" '"inconclusive"'
  assert_equal "$(sample perch_run_start_timestamp_seconds)" 1795248252.35
}

@test "perch.prom's figures are the records', in seconds and bytes a second" {
  prom
  local shm='select(.labels.test == "shm-read-latency" and .labels.size_bytes == "8")' records
  records='select(.test == "shm-read-latency" and .params.size_bytes == 8)'
  assert_equal "$(sample perch_latency_seconds "$shm | select(.labels.quantile == \"0.99\") | .value * 1e9 | round")" \
    "$(jq "$records | .latency_us.p99 * 1e3 | round" "$RUN/records.jsonl")"
  assert_equal "$(sample perch_latency_seconds_count "$shm | .value")" "$(jq "$records | .latency_us.count" "$RUN/records.jsonl")"
  assert_equal "$(sample perch_latency_seconds_count "$shm | .labels | [.client, .server, .definition] | join(\" \")")" '"alpha beta completion"'
  assert_equal "$(sample perch_bandwidth_bytes_per_second 'select(.labels.test == "iperf") | .value * 8 / 1e9')" \
    "$(jq 'select(.test == "iperf") | .bandwidth.gbit_s' "$RUN/records.jsonl")"
  assert_equal "$(sample perch_test_latency_median_seconds 'select(.labels.test == "tcp-latency" and .labels.size_bytes == "8" and .labels.statistic == "max") | .value * 1e9 | round')" \
    "$(jq -s 'map(select(.test == "tcp-latency" and .params.size_bytes == 8) | .latency_us.p50) | max * 1e3 | round' "$RUN/records.jsonl")"
}

@test "perch.prom: a percentile that one repeat cannot support is not taken from the others" {
  prom
  jq -es 'map(select(.test == "tcp-latency" and .params.size_bytes == 8) | .latency_us.p99) | length == 2 and any(. == null) and any(. != null)' \
    "$RUN/records.jsonl" >/dev/null
  assert_equal "$(sample perch_latency_seconds 'select(.labels.test == "tcp-latency" and .labels.quantile == "0.99")')" ""
  assert_equal "$(sample perch_test_latency_p99_seconds 'select(.labels.test == "tcp-latency")')" ""
}

@test "perch.prom: counters that moved are summed over flows, once for each, and names are escaped" {
  copy run
  jq -c 'del(.counters) | if .test == "iperf" or .test == "tcp-latency"
    then .counters = {client: {"eth\"0\\\n": {rx_errors: 5, rx_bytes: 77}, TcpRetransSegs: 2}, server: {}} else . end' \
    "$RUN/records.jsonl" >run/records.jsonl
  run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" export run
  prom run
  # two flows of tcp-latency with four records each, and one of iperf
  assert_equal "$(sample perch_trouble_counter 'select(.labels.counter == "rx_errors") | [.value, .labels.host, .labels.device]')" '[15,"alpha","eth\"0\\\\n"]'
  assert_equal "$(sample perch_trouble_counter 'select(.labels.counter == "TcpRetransSegs") | [.value, .labels.device]')" '[6,null]'
  assert_equal "$(sample perch_trouble_counter .labels.counter | wc -l)" 2
}

@test "perch.prom stays small: above its cap pairs are left out, which it says, and the extremes of each test remain" {
  copy run
  jq -c 'select(.test == "iperf") | . as $r | range(1001) | . as $i | $r | .client.host = "h\($i)" | .bandwidth.gbit_s = $i + 1' "$RUN/records.jsonl" >run/records.jsonl
  run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" export run
  prom run
  assert_equal "$(sample perch_pairs_left_out)" 1
  assert_equal "$(sample perch_bandwidth_bytes_per_second)" ""
  assert_equal "$(sample perch_test_bandwidth_bytes_per_second '.value / 125e6' | tr '\n' ' ')" "1 501 1001 "
  sed -i 1d run/records.jsonl
  run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" export run
  prom run
  assert_equal "$(sample perch_pairs_left_out)" 0
  assert_equal "$(sample perch_bandwidth_bytes_per_second | wc -l)" 1000
}

@test "a run whose plan is damaged has its files for other programs, too" {
  copy run
  echo '{"created"' >run/plan.json
  run_expecting 3 "$TOP/.venv/bin/perchctl" judge run
  run_expecting 0 "$TOP/.venv/bin/python" "$TOP/tests/drawn.py" export run
  prom run
  assert_equal "$(sample perch_run_info '.labels | del(.verdict_sha256)')" '{"run":"run"}'
}

# ---- the front door ----

@test "make judge judges the run that it is told, and fails unless that is PASS" {
  cp -r "$TOP/tests/fixtures/rxe/run" run
  run_expecting 0 make -C "$TOP" judge RUN="$PWD/run"
  assert_output --partial "PASS: 15 of 15"
  rm -r run/raw/beta
  run_expecting 2 make -C "$TOP" judge RUN="$PWD/run"
  assert_output --partial "INCONCLUSIVE"
  run_expecting 2 make -C "$TOP" judge RUN="$PWD/none"
  assert_output --partial "no such run"
}

@test "make report writes every file of a report anew, says the verdict, and succeeds whatever it is" {
  run cat "$BATS_FILE_TMPDIR/make.log"
  assert_output --partial "INCONCLUSIVE: 28 of 29 records measured"
  for file in records.jsonl verdict.json report.md report.html junit.xml perch.prom charts/latency.svg; do
    [ -s "$RUN/$file" ] || fail "there is no $file"
  done
  run head -n 1 "$RUN/report.html"
  assert_output '<!DOCTYPE html>'
}
