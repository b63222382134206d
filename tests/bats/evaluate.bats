#!/usr/bin/env bats
# What a run is judged by beside its limits: counters before and after, intervals, tails, the clocks of both ends, and
# results that contradict themselves. Each is planted in a recorded run, and must be found by its own check.

load helpers
load judge

setup() { judge_setup; }
teardown() { common_teardown; }

FLOW=write-latency/alpha/beta/1
CLIENT=run/raw/alpha/flows/$FLOW/client.json
SERVER=run/raw/beta/flows/$FLOW/server.json

# found CODE CHECK STATUS: judged with that exit code, and that status of the check
found() {
  judge "$1"
  assert_equal "$2: $(check_status "$2")" "$2: $3"
}

# moves FILE DEVICE COUNTER BEFORE AFTER: what one counter of the flow saw; DEVICE: port or eth1
moves() {
  local at='.netdev.eth1'
  [ "$2" != port ] || at='.rdma["mlx5_0/1"].counters'
  edit "$1" ".counters.before${at}[\"$3\"] = \"$4\" | .counters.after${at}[\"$3\"] = \"$5\""
}

@test "a class of counters that moved fails hardware, or is shown where it only explains" {
  cards '"mlx5_core"'
  judge 0
  cp "$SERVER" whole
  local device counter code check
  while read -r device counter code check; do
    cp whole "$SERVER"
    moves "$SERVER" "$device" "$counter" 7 9
    found "$code" "counters/$check" "$([ "$code" = 1 ] && echo fail || echo advisory)"
    assert_json run/verdict.json "any(.checks[]; .id == \"counters/$check\" and .evidence == [\"$FLOW\"] and .remedy != null and .source != null
      and (.measured | test(\"^2 in 1 flow, beta: .* $counter\$\")))"
  done <<'COUNTERS'
port port_xmit_discards 1 drops
eth1 rx_crc_errors 1 errors
port local_ack_timeout_err 1 retransmissions
port out_of_seq_request 1 out-of-sequence
eth1 carrier_down_count 1 link
eth1 aer_nonfatal 1 pcie
eth1 rx_prio3_pause 0 pause
port np_cnp_sent 0 congestion
eth1 rx_dropped 0 host-drops
eth1 aer_correctable 0 pcie-corrected
COUNTERS
}

@test "on software the same counters are advisory, and the run passes" {
  recorded rxe
  edit "$SERVER" '.counters.after.netdev.eth1.rx_missed_errors = "9"'
  found 0 counters/drops advisory
  found 0 counters/errors pass
}

@test "what was sent again is held against the packets, one in a million" {
  cards '"mlx5_core"'
  local file
  for file in "$CLIENT" "$SERVER"; do
    moves "$file" port port_xmit_packets 0 6000000
    moves "$file" port port_rcv_packets 0 6000000
  done
  moves "$CLIENT" port packet_seq_err 0 12
  found 0 counters/retransmissions pass
  moves "$CLIENT" port packet_seq_err 0 13
  found 1 counters/retransmissions fail
  assert_json run/verdict.json 'any(.checks[]; .id == "counters/retransmissions" and (.measured | test("at most 1.083333 in a million packets$")))'
}

@test "a counter that went backwards or is full is inconclusive" {
  cards '"mlx5_core"'
  spoil "$SERVER" 3 counters/reset <<'FAULTS'
.counters.before.netdev.eth1.rx_crc_errors = "9" | .counters.after.netdev.eth1.rx_crc_errors = "2"
.counters.after.rdma["mlx5_0/1"].counters.link_downed = "255" | .counters.before.rdma["mlx5_0/1"].counters.link_downed = "255"
FAULTS
}

@test "hardware whose devices do not count what goes wrong is inconclusive, software is not judged" {
  cards '"mlx5_core"'
  spoil "$SERVER" 3 counters/missing <<'FAULTS'
del(.counters[].netdev?, .counters[].rdma?["mlx5_0/1"].counters.completer_retry_err)
del(.counters[].rdma?["mlx5_0/1"].counters["completer_retry_err", "link_downed"])
FAULTS
  recorded rxe
  edit "$SERVER" 'del(.counters[].rdma?["rxe0/1"].counters["completer_retry_err", "link_downed"])'
  found 0 counters/missing ""
}

@test "bytes in no packet, and packets without a byte, are no device's counters" {
  cards '"mlx5_core"'
  spoil "$CLIENT" 3 counters/still <<'FAULTS'
.counters.after.netdev.eth1 += (.counters.before.netdev.eth1 | {tx_packets, rx_packets})
.counters.after.rdma["mlx5_0/1"].counters += {port_xmit_packets: "0", port_rcv_packets: "0"} | .counters.before.rdma["mlx5_0/1"].counters += {port_xmit_packets: "0", port_rcv_packets: "0"}
FAULTS
}

@test "an interface of a loopback that counted nothing of a transfer is inconclusive" {
  local file
  for file in run/raw/alpha/flows/tcp-latency/alpha/beta/1/client.json run/raw/beta/flows/tcp-latency/alpha/beta/1/server.json; do
    edit "$file" '(["tx_bytes", "rx_bytes", "tx_packets", "rx_packets", "rx_missed_errors"] | map({key: ., value: "5"}) | from_entries) as $lo
      | .counters = {address_interface: "lo", route_interface: "lo", before: {time_s: "1.0", host: {}, netdev: {lo: $lo}, rdma: {}},
                     after: {time_s: "2.0", host: {}, netdev: {lo: ($lo | .tx_bytes = "9000000" | .rx_bytes = "9000000" | .tx_packets = "900" | .rx_packets = "900")}, rdma: {}}}'
  done
  found 0 counters/still pass
  edit run/raw/alpha/flows/tcp-latency/alpha/beta/1/client.json '.counters.after.netdev = .counters.before.netdev'
  found 3 counters/still inconclusive
}

STREAM=run/raw/alpha/flows/iperf3/alpha/beta/1/client.stdout

@test "one bad interval is found: advisory on software, a failure of hardware" {
  found 0 interval/iperf3 pass
  edit "$STREAM" '.intervals[1].sum.bits_per_second |= . * 0.4'
  found 0 interval/iperf3 advisory
  assert_json run/verdict.json 'any(.checks[]; .id == "interval/iperf3" and .measured < 0.5 and .limit == {min: 0.5, max: null} and .evidence == ["iperf3/alpha/beta/1#131072"] and (.remedy | contains("(interval: 1s)")))'
  # a card's, by the engine's own intervals of ten minutes
  cards '"mlx5_core"'
  local out=run/raw/alpha/flows/verbs-write-bandwidth/alpha/beta/1/client.stdout
  edit "$out" '.bandwidth.gbit_s as $g | .intervals = [range(0; 600) | {start_s: ., end_s: (. + 1), count: 10, gbit_s: $g, latency_us: null}]'
  found 0 interval/verbs-write-bandwidth pass
  edit "$out" '.intervals[411].gbit_s = 0'
  found 1 interval/verbs-write-bandwidth fail
}

@test "the worst window of a tenth of a second is held against the whole" {
  cards '"mlx5_core"'
  local out=run/raw/alpha/flows/verbs-write-bandwidth/alpha/beta/1/client.stdout
  edit "$out" '.bandwidth.min_interval_gbit_s = .bandwidth.gbit_s * 0.49 | .elapsed_s = 2 | .bandwidth.bytes = (.bandwidth.gbit_s * 2e9 / 8 | floor)
    | .path |= map_values(0) | .path.client_sent_bytes = 1e9'
  judge 1
  assert_equal "$(check_status interval/verbs-write-bandwidth)" fail
}

@test "a tail spike is found where enough samples support it: advisory on software, a failure of hardware" {
  local out=run/raw/alpha/flows/tcp-latency/alpha/beta/1/client.stdout
  found 0 tail/tcp-latency pass
  edit "$out" '.latency_us |= (.p99_9 = .p50 * 11 | .max = .p50 * 900)'
  found 0 tail/tcp-latency advisory
  # nine samples above it are no tail, and the next percentile speaks
  edit "$out" '.latency_us |= (.p99_9 = null | .count = 9000)'
  found 0 tail/tcp-latency pass
}

@test "clocks of both ends that differ are shown, and too far apart inconclusive" {
  local server=run/raw/beta/flows/tcp-latency/alpha/beta/1/server.json
  found 0 clock/ends pass
  cp "$server" whole
  edit "$server" '(.started, .ended) |= (.[:19] + "Z" | fromdateiso8601 + 90 | todateiso8601)'
  found 0 clock/ends advisory
  assert_json run/verdict.json 'any(.checks[]; .id == "clock/ends" and (.measured | test("^beta is 8[0-9.]+ s ahead of alpha")) and .evidence == ["tcp-latency/alpha/beta/1"])'
  cp whole "$server"
  edit "$server" '(.started, .ended) |= (.[:19] + "Z" | fromdateiso8601 - 4000 | todateiso8601)'
  found 3 clock/ends inconclusive
  # counters tell the time, too
  recorded rxe
  edit "$SERVER" '.counters.before.time_s |= (tonumber + 100 | tostring)'
  found 0 clock/ends advisory
}

@test "a result that took longer than its process lived contradicts itself" {
  local client=run/raw/alpha/flows/iperf3/alpha/beta/1/client.json
  edit "$client" '.elapsed_s = 0.2'
  found 3 flow/iperf3/alpha/beta/1 inconclusive
  assert_json run/verdict.json 'any(.checks[]; .id == "flow/iperf3/alpha/beta/1" and (.measured | test("its process lived 0.2 s$")))'
}

@test "the agent counts an interface's lost links, PCIe errors and, by the card's own words, pauses" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  mkdir bin
  printf '#!/bin/sh\nprintf "NIC statistics:\\n     rx_prio3_pause: 12\\n     tx_pause_ctrl_phy: 4\\n     rx_discards_phy: 2\\n     rx_packets: 99\\n     a\\"b_pause: 1\\n"\n' >bin/ethtool
  chmod +x bin/ethtool
  # shellcheck disable=SC2016  # for the inner shell
  PATH=$PWD/bin:$PATH unshare --user --map-root-user --mount bash -c 'set -euo pipefail
    mount -t tmpfs none /sys/class
    mkdir -p /sys/class/net/{eth9/{statistics,device},veth9/statistics}
    echo 7 | tee /sys/class/net/{eth9,veth9}/statistics/rx_bytes >/sys/class/net/eth9/carrier_down_count
    printf "RxErr 0\nBadTLP 3\nTOTAL_ERR_COR 3\n" >/sys/class/net/eth9/device/aer_dev_correctable
    printf "Undefined 0\nTOTAL_ERR_FATAL 0\n" >/sys/class/net/eth9/device/aer_dev_fatal
    . "$1/counters.bash"
    devices_for eth9 veth9
    snapshot
    echo "$SNAPSHOT"' counters "$TOP/roles/agent/files/agent.d" >snapshot.json
  assert_json snapshot.json '.netdev.eth9 == {rx_bytes: "7", carrier_down_count: "7", aer_correctable: "3", aer_fatal: "0",
    rx_prio3_pause: "12", tx_pause_ctrl_phy: "4", rx_discards_phy: "2"} and .netdev.veth9 == {rx_bytes: "7"}'
}
