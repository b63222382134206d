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
  jq 'del(.soak) | .hosts[].port = 18600' run/plan | put_plan run && rm run/plan
  jq "{schema: \"perch.verdict/1\", run: \"made-by-hand\", verdict: \"PASS\", scope: \"software\", coverage: {planned: 6, measured: 6, missing: []}, facts: [],
    checks: [\"coverage\", \"manifest\" | {id: ., title: ., status: \"pass\", measured: 6, source: \"made\"}],
    comparison: {statistic: null, rows: [], refused: [], others: []}, soak: .} | ${4:-.}" run/soak >run/verdict.json
  rm run/soak
  : >run/records.jsonl
}

@test "the page of a soak: nothing wider than a phone, all reached by the keyboard, enough contrast in light and dark" {
  made 2 60 1
  run_expecting 0 "$PYTHON" "$TOP/tests/drawn.py" report run
  "$PYTHON" "$TOP/tests/browser.py" run/report.html looks 3>&-
  facts() { jq -e "$1" looks/facts.json >/dev/null || fail "does not hold: $1"; }
  facts '.console == [] and .whole.charts == 7 and .whole.twice == [] and .whole.nowhere == [] and .whole.labels == []'
  facts '[."phone-light", ."phone-dark"] | all(.layout.page == 360 and .layout.unreachable == [])'
  facts '.keyboard | .expected == .reached and .unseen == []'
  facts '[."phone-light", ."phone-dark", ."desktop-light", ."desktop-dark", .paper] | all(.contrast.faint == [])'
  facts '.axe | length == 2 and all(.violations == [])'
  facts '.paper | .wide == [] and .page <= .window'
}
