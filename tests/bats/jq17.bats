#!/usr/bin/env bats
# Judging under two versions of jq: this machine's, and Debian 13's with its security updates (tests/jq17).

load helpers

setup() {
  common_setup
  NEWER=$("$TOP/tests/jq17" 2>why) || skip "Debian 13's jq cannot be had here (tests/jq17 says why)"
}
teardown() { common_teardown; }

@test "records and verdict are the same bytes under both, and the plan, too" {
  local name
  for name in loopback rxe perftest; do
    cp -r "$TOP/tests/fixtures/$name/run" one
    # an accepted run, too, against which it is held
    [ "$name" != loopback ] || cp "$TOP"/tests/fixtures/history/{baseline.json,history.jsonl} one/inputs/
    cp -r one two
    "$TOP/reports/judge" one >one.said || true
    PATH=$NEWER:$PATH "$TOP/reports/judge" two >two.said || true
    cmp one.said two.said
    cmp one/records.jsonl two/records.jsonl
    cmp one/verdict.json two/verdict.json
    rm -r one two
  done
  PATH=$NEWER:$PATH plan_of '[{name: "t", title: "t", tool: "perch", backend: "tcp", kind: "latency", params: {size: 8, iterations: 9}}]' >plan.json
  assert_json plan.json '.schema == "perch.plan/1" and (.rounds | length) > 0'
}

@test "outputs measured elsewhere are the same records under both" {
  "$TOP/reports/import" "$TOP/tests/fixtures/import/notes.md" >one.jsonl
  PATH=$NEWER:$PATH "$TOP/reports/import" "$TOP/tests/fixtures/import/notes.md" >two.jsonl
  cmp one.jsonl two.jsonl
}

@test "every program names its modules in the order that this jq needs" {
  run_expecting 0 python3 "$TOP/tests/jq_order.py"
}
