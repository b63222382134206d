#!/usr/bin/env bats
# shellcheck disable=SC2034  # AS is measure.bash's
# Faults of an RDMA path, made for real, and what Perch must say of each: exit code, message, the records' status, and the
# verdict with its finding. None hangs, none leaves a process on a guest, none is PASS. The first test is the same without
# a fault, and passes: what the others find is the fault's. More faults are in full/faults.bats, for want of time here.

load helpers
load measure

@test "without a fault the same tests pass: no packet is lost, nothing stands still, every byte is right" {
  measure 0 200 "$CHECKED"
  record send '.status == "ok" and .packets.lost == 0 and .packets.gaps == 0 and .stall.longest_s < 2.15 and .path.state == "proven"'
  record stream '.status == "ok" and .packets.lost == 0 and .integrity.bad_bytes == 0 and .packets.sent > 5000'
  check limit/packets-lost/stream '.status == "pass" and .measured == 0'
  check limit/stall/send '.status == "pass"'
  check integrity '.status == "pass"'
}

@test "a loss of 2 % is seen as lost and repeated packets, never as bad payload, and fails the run" {
  on_both "tc qdisc add dev eth1 root netem loss 2%"
  measure 1 240 "$CHECKED"
  record stream '.status == "ok" and .integrity.checked_bytes > 0 and .integrity.bad_bytes == 0 and .packets.retries > 0 and .packets.gaps > 0'
  record stream '.packets.lost / .packets.sent | . > 0.005 and . < 0.06'
  check integrity '.status == "pass" and .measured == 0'
  check limit/packets-lost/stream '.status == "fail" and .measured > 5000 and .remedy != null'
  # the half that answers goes on after it, however often a message or an answer is lost
  record send '.status == "ok" and .packets.retries > 0'
  check limit/packets-lost/send '.status == "fail"'
}

@test "one flipped byte is exit 5 and FAIL, and outranks all else" {
  AS=(env PERCH_TEST_FLIP=50)
  measure 1 120 "[{name: \"flip\", title: \"flip\", $LATENCY, params: {completion: \"event\", size: \"4K\", iterations: 200, verify: true}}]"
  record flip '.status == "error" and .error.code == 5 and .error.traffic and .integrity.bad_bytes > 0'
  said flip "payload corrupted|arrived corrupted"
  assert_json <(grep -F "\"$(flow_of flip)\"" run/raw/alpha/flows.jsonl) '.exit == 5'
  finding flip fail 5
  check integrity '.status == "fail" and .remedy != null'
}
