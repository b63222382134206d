#!/usr/bin/env bats
# The verbs backend between two machines: operations over each connection, every payload verified, and both ends' counters
# say that all of it went through the devices. All operations, on one machine: tests/bats/verbs.bats.

load helpers
load measure

# a_test OPERATION CONNECTION SIZES: latency of it; few messages, since an emulated processor needs a millisecond each
a_test() {
  jq -nc --arg op "$1" --arg connection "$2" --arg size "$3" '{name: "\($connection)-\($op)", title: "\($op) over \($connection)",
    tool: "perch", backend: "verbs", kind: "latency", op: $op,
    params: {connection: $connection, size: $size, completion: "event", iterations: 50, warmup: 5, verify: true}}'
}

@test "rc write, send, read and fetch-add, uc write, ud send: each payload is right, and proven to have used the devices" {
  local test
  measure 0 75 "$(
    {
      a_test write rc 5000
      a_test send rc 5000
      a_test read rc 5000
      a_test fetch-add rc 8
      a_test write uc 5000
      a_test send ud 1000
    } | jq -sc .
  )"
  for test in rc-write rc-send rc-read rc-fetch-add uc-write ud-send; do
    record "$test" '.status == "ok" and .integrity.checked_bytes > 0 and .integrity.bad_bytes == 0 and .latency_us.count == 50
      and (.loss.lost_messages // 0) == 0 and .path.state == "proven"'
    record "$test" ".op == \"${test#*-}\" and (.connection | ascii_downcase) == \"${test%%-*}\""
  done
  check integrity '.status == "pass" and .measured == 0'
}
