#!/usr/bin/env bats
# Two machines with two rails each over real Soft-RoCE: rxe0 on the lab's interface, rxe1 on a second one with a network of its own.
# One rail is slow: its flows are named, and no other. The same on simulated NICs: tests/bats/rails.bats.

load helpers
load measure

setup() {
  common_setup
  second_rail
}

# shaped RATE0 RATE1: what each machine sends over each rail
shaped() { on_both "tc qdisc add dev eth1 root tbf rate $1 burst 16kb latency 1s && tc qdisc add dev eth2 root tbf rate $2 burst 16kb latency 1s"; }

# test_of NAME MEMBERS: of each rail, one packet a message; nothing is sent again while it waits in the queue of a slow rail
test_of() {
  printf '{name: "%s", title: "%s", %s, op: "write", directions: "both", params: {completion: "event", size: "4K", duration: "3s", warmup: 10,
    outstanding: 8, timeout_exponent: 20, devices: "all"} %s}' "$1" "$1" "$BANDWIDTH" "$2"
}

@test "one rail of two is slow: alone and together, its flows are named and no others; records, checks and charts are by rail" {
  local test
  # both are paced far below what an emulated processor can do, which differs from second to second
  shaped 6mbit 1500kbit
  measure 0 150 "[$(test_of alone ''), $(test_of all ', rails: "together"')]"
  jq -s . run/records.jsonl >records.json
  assert_json records.json 'length == 8 and all(.[]; .status == "ok" and .path.state == "proven"
    and .client.device == .server.device and .client.device == (["rxe0", "rxe1"][.flow | split("/")[3] | tonumber]))'
  assert_json records.json 'map({rail: (.flow | split("/")[3]), rate: .bandwidth.gbit_s}) | group_by(.rail) | map(map(.rate))
    | (.[1] | max) < 0.0016 and (.[0] | min) > 0.003'
  for test in alone all; do
    check "rails/siblings/$test" '.status == "advisory" and (.evidence | length > 0 and all(test("/1/1#")))'
  done
  # intervals are left out: an emulated processor stands still at times
  assert_json run/verdict.json '[.checks[] | select(.status | IN("fail", "inconclusive", "advisory")) | select(.id | startswith("interval/") | not)
    | .id] == ["rails/siblings/all", "rails/siblings/alone"]'
  run_expecting 0 "$TOP/.venv/bin/perchctl" report run
  [ -s run/charts/rails.svg ] || fail "the report has no chart of the rails"
  grep -q "rail 1 (rxe1)" run/report.md || fail "the report does not name the rail"
}
