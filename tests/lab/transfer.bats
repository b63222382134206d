#!/usr/bin/env bats
# Transfers between two machines that have two devices each: Soft-RoCE on the lab's interface, and on a second one that is laid over
# it (macvlan), with an address and a network of its own. The bandwidth of both is that of one; what is looked at is that each pair
# uses its devices. All that transfers can do, on one machine: tests/bats/transfer_verbs.bats.

load helpers
load measure

# The second network: an interface, its addresses (RFC 5737; the lab's management has the third network of that document), a device
readonly RAIL=rail1 RAIL_DEVICE=rxe1

setup_file() {
  local host n=0
  lab_ready
  measure_files
  for host in alpha beta; do
    n=$((n + 1))
    # both interfaces hear each other's ARP requests: whoever answers for the other's address takes its packets to the wrong device
    lab_ssh "$host" "sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 && ip link add link eth1 name $RAIL address 02:00:00:00:01:0$n type macvlan mode bridge && ip link set $RAIL mtu 4200 up &&
      ip address add 203.0.113.$n/24 dev $RAIL && rdma link add $RAIL_DEVICE type rxe netdev $RAIL" 3>&- || return
  done
}

teardown_file() {
  local host
  for host in alpha beta; do lab_ssh "$host" "rdma link delete $RAIL_DEVICE; ip link delete $RAIL
      sysctl -qw net.ipv4.conf.all.arp_ignore=0 net.ipv4.conf.all.arp_announce=0" 3>&-; done
  measure_files_gone
}

# shellcheck disable=SC2034  # lab_plan reads it
DEVICES="[{name: \"rxe0\", netdev: \"eth1\", ib_port: 1, gid_index: 1}, {name: \"$RAIL_DEVICE\", netdev: \"$RAIL\", ib_port: 1, gid_index: 1}]"

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
  # packets of both devices moved on both machines; eth1 carries the second network, too, and where that is much the path proof says so
  assert_json pairs.json 'all(.[]; .counters | [.client, .server | ."rxe0/1", ."rxe1/1" | .sent_pkts, .rcvd_pkts] | min > 100)'
  assert_json pairs.json 'all(.[]; .path.state == "proven" or (.path.state == "exceeded" and (.path.reason | test("eth1"))))'
  jq -s 'map(select(.kind == "sum"))' run/records.jsonl >sums.json
  assert_json sums.json 'length == 4 and all(.[]; .client.device == "rxe0,rxe1" and .params.devices == 2 and .bandwidth.gbit_s > 0)'
  check integrity '.status == "pass" and .measured == 0'
}
