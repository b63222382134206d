#!/usr/bin/env bats
# Faults in a soak of 24 s, between two network namespaces: planted, found, and told from each other. `make soak-test` has all of
# them, and a clean soak of ten minutes.

load helpers

setup() {
  common_setup
  [ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
  ip netns add "perch-probe-$BASHPID" 2>/dev/null || skip "this kernel or container makes no network namespaces"
  ip netns del "perch-probe-$BASHPID"
}
teardown() { common_teardown; }

@test "a stall, a corrupted byte and a killed server are each found in their place, and a killed controller costs nothing" {
  LIMIT=300 run_expecting 0 "$TOP/tests/soak/run" --out "$PWD/soak" quick
  # what each row says: that it was found, and as what
  jq -es 'map({key: .id, value: .}) | from_entries | .stall_1.kind == "stall" and .byte_flipped.kind == "corrupt" and .server_killed.kind == "gap"
    and (.controller_killed.found | not) and .server_killed.after_s < 15' soak/quick/rows.jsonl
  assert_json soak/quick/run/verdict.json '.verdict == "FAIL" and .soak.state == "done"'
}
