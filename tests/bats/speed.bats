#!/usr/bin/env bats
# A large run is judged in parts (reports/README.md): whatever they are, not a byte may differ.

load helpers
load judge

setup() { judge_setup; }
teardown() { common_teardown; }

@test "a run judged in parts has the same records and the same verdict, to the byte" {
  recorded rxe
  jq -c . run/plan.json >whole && mv whole run/plan.json
  "$JUDGE" run >said || true
  mkdir whole && mv run/records.jsonl run/verdict.json whole
  assert_equal "$(jq '.rounds | length > 1' run/plan.json)" true
  # a byte a part: each round is judged by itself, and its records pass one tee
  mkdir bin
  printf '#!/bin/sh\necho >>"%s"\nexec "%s" "$@"\n' "$PWD/parts" "$(command -v tee)" >bin/tee
  chmod +x bin/tee
  PATH=$PWD/bin:$PATH PERCH_JUDGE_PART_BYTES=1 "$JUDGE" run >said_of_parts || true
  assert_equal "$(wc -l <parts)" "$(jq '.rounds | length' run/plan.json)"
  cmp said said_of_parts
  cmp whole/records.jsonl run/records.jsonl
  cmp whole/verdict.json run/verdict.json
}

# Records of one flow lie in two parts, and both parts have flows of one test.
@test "a report whose records and plan are read in parts is the same, to the byte" {
  local run
  mkdir bin
  printf '#!/bin/sh\ncase "$*" in *gist.jq*) echo >>"%s" ;; esac\nexec "%s" "$@"\n' "$PWD/parts" "$(command -v jq)" >bin/jq
  chmod +x bin/jq
  for run in loopback rxe; do
    recorded "$run"
    jq -c . run/plan.json >whole && mv whole run/plan.json
    "$JUDGE" run >/dev/null || true
    "$TOP/reports/prepare" run whole.json && "$TOP/reports/export" run
    cp run/junit.xml run/perch.prom .
    : >parts
    PATH=$PWD/bin:$PATH PERCH_REPORT_PART_BYTES=1 "$TOP/reports/prepare" run parts.json
    PATH=$PWD/bin:$PATH PERCH_REPORT_PART_BYTES=1 "$TOP/reports/export" run
    [ "$(wc -l <parts)" -ge 4 ] || fail "$(wc -l <parts) parts"
    cmp whole.json parts.json
    cmp junit.xml run/junit.xml
    cmp perch.prom run/perch.prom
  done
}

@test "records that cannot be read to their end make no report" {
  recorded loopback
  "$JUDGE" run >/dev/null || true
  printf '{"flow": ' >>run/records.jsonl
  run "$TOP/reports/prepare" run report.json
  assert_equal "$status" 3
  assert_output --partial "records.jsonl"
  run "$TOP/reports/export" run
  assert_equal "$status" 3
  [ ! -e report.json ] && [ ! -e run/perch.prom ] && [ ! -e run/junit.xml ]
}

@test "two flows with one id in different parts are no plan" {
  recorded rxe
  jq -c '.rounds += .rounds[0:1]' run/plan.json >twice && mv twice run/plan.json
  PERCH_JUDGE_PART_BYTES=1 judge 3
  assert_output --partial "two flows have the same id"
}

@test "every fold of the tally can be joined with another part's" {
  cd "$TOP/reports/jq"
  folds=$(grep -oh '\$fold == "[a-z]*"' tally.jq | grep -o '"[a-z]*"' | sort -u)
  [ "$(wc -l <<<"$folds")" -gt 8 ]
  joined=$(jq -nr -L . 'import "tally_merge" as m; m::fold_of[]' | sort -u)
  for fold in $folds; do
    case $fold in '"spread"') fold=list ;; '"again"') fold=list ;; esac
    grep -qx "${fold//\"/}" <<<"$joined"
  done
}
