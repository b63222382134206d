#!/usr/bin/env bats
# Transfers between two machines that have two devices each: Soft-RoCE on the lab's interface, and on that of the second rail. What is
# looked at is that each pair uses its devices. All that transfers can do, on one machine: tests/bats/transfer_verbs.bats.

load helpers
load measure

setup() {
  common_setup
  second_rail
}

@test "two devices on both machines: writes in batches and reads in pieces, each payload right, each pair on its own devices" {
  measure 0 120 '[
    {name: "write", title: "write", tool: "perch", backend: "verbs", op: "write", kind: "transfer",
      params: {size: "1K", batch: "1:4", devices: 2, queue_pairs: 2, completion: "event", iterations: 20, warmup: 2, verify: true}},
    {name: "read", title: "read", tool: "perch", backend: "verbs", op: "read", kind: "transfer",
      params: {size: "32K", batch: 4, chunk: "8K", devices: 2, completion: "event", iterations: 20, warmup: 2, verify: true}}]'
  record write '.status == "ok" and .integrity.bad_bytes == 0 and .integrity.checked_bytes > 0'
  record read '.status == "ok" and .integrity.bad_bytes == 0 and .params.chunks == 4'
  jq -s 'map(select(.kind == "transfer"))' run/records.jsonl >pairs.json
  assert_json pairs.json 'length == 8 and all(.[]; .transfer.completed >= 20 * .params.batch
    and .client.device == .server.device and .client.device == ["rxe0", "rxe1"][.transfer.pair])'
  # packets of both devices moved on both machines
  assert_json pairs.json 'all(.[]; .counters | [.client, .server | ."rxe0/1", ."rxe1/1" | .sent_pkts, .rcvd_pkts] | min > 100)'
  assert_json pairs.json 'all(.[]; .path.state == "proven")'
  jq -s 'map(select(.kind == "sum"))' run/records.jsonl >sums.json
  assert_json sums.json 'length == 4 and all(.[]; .client.device == "rxe0,rxe1" and .params.devices == 2 and .bandwidth.gbit_s > 0)'
  check integrity '.status == "pass" and .measured == 0'
}
