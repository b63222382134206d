#!/usr/bin/env bats
# shellcheck disable=SC2034  # AS and AS_USER are measure.bash's
# The faults that take longer than those of faults.bats, and the one that needs a machine to boot again: the server's power
# fails while traffic runs.

load ../helpers
load ../measure

@test "0.1 % of damaged packets are seen as lost and repeated, never as bad payload, and fail the run" {
  on_both "tc qdisc add dev eth1 root netem corrupt 0.1%"
  measure 1 240 "[$(jq -cn "${CHECKED}[1]")]"
  # rxe refuses a packet whose invariant CRC is wrong, and does not count it: its sender's counter and the receiver's differ
  record stream '.status == "ok" and .integrity.checked_bytes > 0 and .integrity.bad_bytes == 0 and .packets.lost > 0 and .packets.retries > 0'
  record stream '.packets.lost / .packets.sent | . > 1e-4 and . < 5e-3'
  check integrity '.status == "pass" and .measured == 0'
  check limit/packets-lost/stream '.status == "fail" and .measured > 100'
}

# cut_at "TEST SECONDS"...: in turn, the network is cut when that test's traffic runs (1000 packets after its beginning, three times its
# warm-up), for so long. It waits without starting processes: each costs an emulated processor 30 ms. The queue that cuts lies there
# before: while one is exchanged, the kernel refuses packets, and Soft-RoCE ends a queue pair whose packet is refused.
cut_at() {
  lab_ssh alpha "cat >/run/cut; chmod 755 /run/cut; systemd-run --quiet --collect --unit cut /run/cut" 3>&- <<CUT
#!/usr/bin/env bash
set -euo pipefail
exec {never}<> <(:)
sent=/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts
tc qdisc add dev eth1 root netem loss 0%
while read -r test seconds; do
  until read -rd '' said 2>/dev/null <$THERE/run/alpha/control/progress.jsonl || [[ \${said:-} == *'"start","flow":"'\$test/* ]]; do
    read -rt 0.2 -u \$never || true
  done
  read -r idle <\$sent
  until read -r now <\$sent && ((now > idle + 1000)); do read -rt 0.2 -u \$never || true; done
  tc qdisc change dev eth1 root netem loss 100%
  echo \$EPOCHREALTIME >/run/cut-\$test.from
  sleep \$seconds
  tc qdisc change dev eth1 root netem loss 0%
done <<<"$(printf '%s\n' "$@")"
CUT
}

# Soft-RoCE takes 7 retries, the default, for no limit (drivers/infiniband/sw/rxe/rxe_comp.c): with them only --timeout ends a flow. It
# counts 6 of them, as cards count all.
@test "a network cut for 5 s ends a queue pair with default timeouts; with --timeout-exponent 18 it lives on, and the stall is dated; a cut for good ends the flow" {
  local began from
  cut_at "default 5" "patient 5" "for-good 600"
  measure 1 300 "[{name: \"default\", title: \"default\", $LATENCY, params: {completion: \"event\", size: 64, duration: \"5s\", interval: \"200ms\", retry: 6}},
    {name: \"patient\", title: \"patient\", $LATENCY, params: {completion: \"event\", size: 64, duration: \"10s\", interval: \"200ms\", timeout_exponent: 18, verify: true}},
    {name: \"for-good\", title: \"for good\", $LATENCY, params: {completion: \"event\", size: 64, duration: \"3s\", interval: \"200ms\", retry: 6}}]"
  record default '.status == "error" and .error.code == 4 and .error.traffic'
  said default "retries exceeded"
  finding default fail 4
  # rxe tries again each 1.1 s (4.096 us x 2^18): the first try after the cut ends the stall
  record patient '.status == "ok" and .stall.longest_s > 4 and .stall.longest_s < 8.6 and .integrity.bad_bytes == 0 and .params.timeout_exponent == 18'
  check limit/stall/patient '.status == "fail" and .measured > 4 and (.evidence[0] | test("#64 at 20[0-9-]+T[0-9:.]+Z$")) and .remedy != null'
  began=$(jq -r 'select(.test == "patient") | .stall.began' run/records.jsonl)
  from=$(lab_ssh alpha cat /run/cut-patient.from)
  awk -v began="$(date -d "$began" +%s.%N)" -v from="$from" 'BEGIN { print began - from; exit !(began - from > -1 && began - from < 1) }' ||
    fail "the stall is dated $began, the cut was at $from"
  record for-good '.status == "error" and .error.code == 4'
  said for-good "retries exceeded"
  finding for-good fail 4
}

@test "the smaller MTU of two ports is used, and recorded; --mtu above one port's, and datagrams above it, are refused with its remedy" {
  RESTORE=yes
  run_on beta "ip link set eth1 mtu 1500; cat /sys/class/infiniband/rxe0/device/net/*/mtu 2>/dev/null; ibv_devinfo -d rxe0 | grep active_mtu"
  assert_output --partial "1024 (3)"
  measure 3 200 "[{name: \"smaller\", title: \"smaller\", $LATENCY, params: {completion: \"event\", size: \"64:4K\", iterations: 50, warmup: 5, verify: true}},
    {name: \"above\", title: \"above\", $LATENCY, params: {completion: \"event\", size: 64, iterations: 50, mtu: 4096}},
    {name: \"datagram\", title: \"datagram\", $LATENCY, params: {completion: \"event\", size: 2048, iterations: 50, connection: \"ud\"}}]"
  record smaller '.status == "ok" and .link.mtu_bytes == 1024 and .path.state == "proven"'
  record above '.status == "not_measured" and .error.code == 4'
  said above "--mtu 4096 is above the active MTU of the peer.s port, 1024; lower it, or raise the MTU"
  finding above inconclusive 4
  record datagram '.status == "not_measured" and .error.code == 4'
  said datagram "192.0.2.2.* says: verbs, device rxe0: --size 2048: .*an MTU of 1024 bytes; lower it, or raise the MTU of interface eth1"
  finding datagram inconclusive 4
}

@test "a path that drops large packets although both ports take them fails, names the size, and the small one stands" {
  run_on beta 'nft add table inet faults; nft add chain inet faults in "{ type filter hook prerouting priority 0; }"
    nft add rule inet faults in udp dport 4791 meta length gt 2000 counter drop; nft list ruleset'
  measure 1 120 "[{name: \"hole\", title: \"hole\", $LATENCY, params: {completion: \"event\", size: \"64:4K\", iterations: 50, warmup: 5, retry: 6}}]"
  assert_json <(jq -s . run/records.jsonl) 'map(select(.params.size_bytes == 64 or .params.size_bytes == 1024)) | length == 2 and all(.[]; .status == "ok")'
  assert_json <(jq -s . run/records.jsonl) 'map(select(.params.size_bytes == 2048)) | .[0].status == "error" and .[0].error.code == 4
    and (.[0].error.message | test("packets of the path MTU do not pass: try --mtu 1024"))'
  finding hole fail 4
}

@test "a wrong GID index, no such device, a port that is down, and perftest missing on a host: each is named and not measured" {
  RESTORE=yes
  run_on beta "mv /usr/bin/ib_send_lat /usr/bin/ib_send_lat.away"
  run_on alpha "modprobe dummy; ip link add down0 type dummy; rdma link add rxe1 type rxe netdev down0; cat /sys/class/infiniband/rxe1/ports/1/state"
  assert_output --partial DOWN
  local one="$LATENCY, params: {completion: \"event\", size: 64, iterations: 20}"
  # wrong NAME JQ-ALPHA JQ-BETA: measured by an inventory that is wrong on one host
  wrong() {
    lab_plan "[{name: \"$1\", title: \"$1\", $one}]" "$2" "$3"
    measure_planned 3 120
  }
  wrong range '.gid_index = 5000' .
  said range "5000' is out of range; give an index that 'perch devices' lists"
  record range '.status == "not_measured" and .error.code == 2'
  finding range inconclusive 2
  wrong empty '.gid_index = 200' .
  said empty "GID index 200 is empty; in use: 0, 1.*perch devices"
  record empty '.status == "not_measured" and .error.code == 3'
  finding empty inconclusive 3
  wrong kind . '.gid_index = 0'
  said kind "IPv4 and IPv6, which cannot reach each other; choose GIDs of one kind"
  record kind '.status == "not_measured" and .error.code == 4'
  finding kind inconclusive 4
  wrong missing '.name = "mlx5_9"' .
  said missing "no RDMA device mlx5_9; this host has rxe0"
  record missing '.status == "not_measured" and .error.code == 3'
  finding missing inconclusive 3
  wrong down '.name = "rxe1"' .
  said down "rxe1.*(DOWN|down)"
  record down '.status == "not_measured" and .error.code == 3'
  finding down inconclusive 3

  measure 3 120 '[{name: "absent", title: "absent", tool: "perftest", op: "send", kind: "latency", params: {size: 64, iterations: 100}}]'
  said absent "ib_send_lat is not installed on beta: install the package perftest"
  record absent '.status == "not_measured"'
  check coverage '.status == "inconclusive" and .measured == 0'
}

@test "a device that is gone from the server is named as the peer's, with what to do" {
  RESTORE=yes
  run_on beta "rdma link delete rxe0; ls /sys/class/infiniband"
  assert_output ""
  measure 3 120 "[{name: \"removed\", title: \"removed\", $LATENCY, params: {completion: \"event\", size: 64, iterations: 20}}]"
  record removed '.status == "not_measured" and .error.code == 4'
  said removed "192.0.2.2.* says: no RDMA device rxe0: .*rdma link add"
  finding removed inconclusive 4
}

@test "an ordinary user with too little memory to lock, or without the right to the device, is told which and what to do" {
  RESTORE=yes
  AS_USER=perch
  AS=(prlimit --memlock=65536:65536 setpriv --reuid perch --regid perch --init-groups)
  run_on alpha "stat -c '%a %U:%G' /dev/infiniband/uverbs0; ulimit -l"
  lab_plan "[{name: \"memlock\", title: \"memlock\", $BANDWIDTH, params: {completion: \"event\", size: \"64K\", iterations: 100}}]"
  measure_planned 3 120
  record memlock '.status == "not_measured" and .error.code == 3'
  said memlock "rxe0: cannot register memory: .*ulimit -l"
  finding memlock inconclusive 3

  on_both "chmod 600 /dev/infiniband/uverbs0"
  AS=(setpriv --reuid perch --regid perch --init-groups)
  measure 3 120 "[{name: \"forbidden\", title: \"forbidden\", $LATENCY, params: {completion: \"event\", size: 64, iterations: 20}}]"
  record forbidden '.status == "not_measured" and .error.code == 3'
  said forbidden "ermission|this user may not"
  finding forbidden inconclusive 3
}

@test "a server whose power fails in the middle of a flow is exit 4 and FAIL, and the client's host is left clean" {
  lab_plan '[{name: "power", title: "power", tool: "perch", backend: "verbs", kind: "latency",
      params: {completion: "event", size: 64, duration: "60s", interval: "200ms"}},
    {name: "later", title: "later", tool: "perch", backend: "verbs", kind: "latency", params: {completion: "event", size: 64, iterations: 20}}]'
  start_agents
  LIMIT=100 run_on alpha "until rdma resource show qp | grep -q 'state RTS.* pid [1-9]'; do sleep 0.1; done"
  LIMIT=20 run_expecting 0 "$LAB" kill beta
  wait_agents 300 alpha
  fetch_raw alpha
  nothing_left alpha
  judge_run 1
  record power '.status == "error" and .error.code == 4 and .error.traffic'
  finding power fail 4
  # and whoever is dead is not asked again
  record later '.status == "not_measured" and .error.code == 4'
  said later "beta.*(does not answer|could not be reached)"
  check host/beta '.status == "inconclusive" and .remedy != null'
  LIMIT=300 run_expecting 0 "$LAB" start beta
}
