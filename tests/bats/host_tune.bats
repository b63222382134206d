#!/usr/bin/env bats
# The module host_setting, on a made-up host: a tree of files in place of /sys, /proc and /etc, and programs that stand for
# dcb and mlnx_qos. Real kernels are in tests/lab/tune.bats, the role itself in host_tune_role.bats.

load helpers

setup() {
  common_setup
  export FAKE_NICS=$PWD/nics
  make_host
}
teardown() { common_teardown; }

put() { mkdir -p "$(dirname "root$1")" && printf '%s\n' "$2" >"root$1"; }

# One NUMA node with two processors; eth1 with a PCI function and two interrupts below mlx5_0; eth0, which is management
make_host() {
  local cpu=/sys/devices/system/cpu net=/sys/class/net pci=/sys/devices/pci0/0000:03:00.0 size irq
  mkdir -p nics root/etc/security root/var/lib root/etc/systemd/system/multi-user.target.wants root/sys/class/net root/sys/class/infiniband
  put $cpu/online 0-1
  for irq in 0 1; do put $cpu/cpu$irq/cpufreq/scaling_governor schedutil; done
  for size in 2048 1048576; do
    put /sys/kernel/mm/hugepages/hugepages-${size}kB/nr_hugepages 4
    put /sys/devices/system/node/node0/hugepages/hugepages-${size}kB/nr_hugepages 4
  done
  put /sys/kernel/mm/transparent_hugepage/enabled "[always] madvise never"
  put /proc/sys/vm/swappiness 60
  put /proc/sys/net/ipv4/tcp_rmem "$(printf '4096\t131072\t6291456')"
  put /etc/pam.d/sshd "session required pam_limits.so"
  put $pci/local_cpulist 1
  for irq in 30 31; do
    put $pci/msi_irqs/$irq msix
    put /sys/kernel/irq/$irq/actions "eth1-$irq"
    put /proc/irq/$irq/smp_affinity_list 0
  done
  put $pci/net/eth1/mtu 1500
  ln -s "$PWD/root$pci" root$pci/net/eth1/device
  ln -s "$PWD/root$pci/net/eth1" root$net/eth1
  put /sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0 eth1
  put /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos 0
  put $net/eth0/mtu 1500
  mkdir root$net/eth0/device # a network card; what is virtual has none
  mkdir bin
  cp "$TOP"/tests/bats/tune/{dcb,mlnx_qos} bin
  cat >bin/ip <<'SH'
#!/bin/sh
echo '[{"ifname":"lo","addr_info":[{"local":"127.0.0.1"}]},{"ifname":"eth0","addr_info":[{"family":"inet","local":"198.51.100.7"}]}]'
SH
  printf '#!/bin/sh\ncat "$FAKE_NICS/$2.flags" 2>/dev/null\n' >bin/ethtool
  chmod +x bin/*
  PATH=$PWD/bin:$PATH
}

# a NIC with DCB whose host owns DCBX, as the lab's answers
dcb_nic() {
  jq -n '{dcbx: {host: true, ieee: true}, app: [], pfc: {pfc_cap: 8, macsec_bypass: false, delay: 0, prio_pfc: [range(8) | false]},
    ets: {willing: false, ets_cap: 8, cbs: false, tc_bw: [range(8) | 0], tc_tsa: [range(8) | "strict"], prio_tc: [range(8)]}}' >nics/eth1.dcb
}

mlnx_nic() {
  jq -n '{mode: "OS controlled", trust: "pcp", pfc: [range(8) | 0], tsa: [range(8) | "vendor"], bw: [range(8) | 0], prio_tc: [1, 0, 2, 3, 4, 5, 6, 7],
    dscp: ([range(64) | {key: tostring, value: (. / 8 | floor)}] | from_entries)}' >nics/eth1.mlnx
}

# call OPTIONS: the module with these (a jq expression); its answer is in answer.json. WITHIN: a program that runs it
WITHIN=()
call() {
  local options
  options=$(jq -cn --arg root "$PWD/root" "{root: \$root, devices: [\"mlx5_0\"], reached_at: \"198.51.100.7\"} + $1")
  run --separate-stderr "${WITHIN[@]}" env -u SSH_CONNECTION "$TOP/.venv/bin/python" "$TOP/tests/bats/tune/host_setting" "$options"
  # shellcheck disable=SC2154  # bats sets it
  [ "$status" -eq 0 ] || fail "$output$stderr"
  jq 'del(.invocation)' <<<"$output" >answer.json
}
tune() { call "{settings: $1}" && assert_json answer.json '.troubles == []'; }
revert() { call '{state: "reverted"}' && assert_json answer.json '.troubles == []'; }
trouble() { assert_json answer.json "[.troubles[] | contains(\"$1\")] | any"; }
value() { printf '%s\n' "$(<"root$1")"; }
# all of the host: names, modes, owners, sums, links; not times
everything() { (cd root && find . -printf '%p %m %u %l\n' | sort && find . -type f -exec sha256sum {} + | sort) && find nics -type f -exec jq -cS . {} +; }

# all that can be set there; the count is the node's, as no kernel spreads it here
ALL='{hugepages_2m: {"0": 16}, hugepages_1g: {"0": 1}, governor: "performance", memlock: "unlimited", transparent_hugepages: "never",
  sysctls: {"vm.swappiness": 10, "net.ipv4.tcp_rmem": "4096 87380 9000000"}, mtu: 9000, irq_affinity: "local", pfc_priorities: [3],
  ets: {tc_tsa: {"0": "ets", "3": "ets"}, tc_bw: {"0": 40, "3": 60}}, dscp_priority: {"26": 3}, dscp_trust: "dscp", roce_tos: 106}'

@test "everything is set, read back, and applied again at boot; a second tuning changes nothing; reverting leaves no byte" {
  dcb_nic
  local before
  before=$(everything)
  tune "$ALL"
  assert_json answer.json .changed
  assert_equal "$(value /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages)" 16
  assert_equal "$(value /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor)" performance
  assert_equal "$(value /sys/class/net/eth1/mtu)" 9000
  assert_equal "$(value /proc/irq/31/smp_affinity_list)" 1
  assert_equal "$(value /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos)" 106
  assert_json nics/eth1.dcb '.pfc.prio_pfc[3] and .app == [[26, 3]] and .ets.tc_bw == [40, 0, 0, 60, 0, 0, 0, 0]'
  grep -qx 'net.ipv4.tcp_rmem = 4096 87380 9000000' root/etc/sysctl.d/90-perch.conf
  grep -qx 'root - memlock unlimited' root/etc/security/limits.d/90-perch.conf
  assert_equal "$(sed 1d root/etc/perch/host_tune.d/mtu)" "$(printf 'write\t/sys/class/net/eth1/mtu\t9000')"
  put /sys/kernel/mm/transparent_hugepage/enabled "always madvise [never]" # as a kernel shows it

  local after
  after=$(everything)
  tune "$ALL"
  assert_json answer.json '.changed == false and .changes == []'
  assert_equal "$(everything)" "$after"

  revert
  put /sys/kernel/mm/transparent_hugepage/enabled "[always] madvise never"
  assert_equal "$(everything)" "$before"
}

@test "check mode names each change with both values, makes nothing, and keeps nothing" {
  dcb_nic
  local before
  before=$(everything)
  call "{settings: $ALL, _ansible_check_mode: true}"
  assert_json answer.json '.changed and .troubles == []'
  assert_json answer.json '.changes | contains(["/sys/class/net/eth1/mtu: 1500 -> 9000", "DSCP-to-priority map of eth1: none -> 26:3"])'
  assert_json answer.json '(.diff.before | contains("/proc/sys/vm/swappiness: 60\n")) and (.diff.after | contains("/proc/sys/vm/swappiness: 10\n"))'
  assert_equal "$(everything)" "$before"
}

@test "a second tuning with other values does not overwrite what was kept: reverting goes back to the host's own" {
  tune '{mtu: 9000}'
  tune '{mtu: 4200}'
  assert_equal "$(value /sys/class/net/eth1/mtu)" 4200
  assert_equal "$(grep -lr /sys/class/net/eth1/mtu root/var/lib/perch/host_tune/kept | wc -l)" 1
  revert
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
}

@test "whole files come back with their bytes, mode and owner, links as links" {
  mkdir -p root/etc/sysctl.d root/etc/security/limits.d
  printf 'old\0bytes without an end' >root/etc/sysctl.d/90-perch.conf
  chmod 600 root/etc/sysctl.d/90-perch.conf
  ln -s /nowhere root/etc/security/limits.d/90-perch.conf
  local before
  before=$(everything)
  tune '{memlock: 1024, sysctls: {"vm.swappiness": 1}}'
  [ ! -L root/etc/security/limits.d/90-perch.conf ] || fail "written through the link"
  revert
  assert_equal "$(everything)" "$before"
}

@test "a value that cannot be written stays recorded, the others are set, and reverting takes all back" {
  local before
  before=$(everything)
  mkdir root/sys/devices/system/cpu/cpu2 root/sys/devices/system/cpu/cpu2/cpufreq
  ln -s /proc/version root/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor
  call '{settings: {governor: "performance", mtu: 9000}}'
  trouble "cpu2/cpufreq/scaling_governor cannot be set to performance: "
  assert_equal "$(value /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor)/$(value /sys/class/net/eth1/mtu)" performance/9000
  rm -r root/sys/devices/system/cpu/cpu2
  call '{state: "reverted"}'
  trouble "cpu2/cpufreq/scaling_governor does not exist"
  assert_equal "$(value /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor)/$(value /sys/class/net/eth1/mtu)" schedutil/1500
  # what could not be put back stays kept, and nothing else does
  assert_equal "$(find root/var/lib/perch -name '0*.json' | wc -l)" 1
  rm root/var/lib/perch/host_tune/kept/0*.json
  revert
  assert_equal "$(everything)" "$before"
}

@test "the old value is on the disk before the first change: a program killed in the write has recorded it" {
  mkfifo fifo
  ln -sf "$PWD/fifo" root/proc/sys/vm/swappiness
  # reading the pipe gives 60, then the write to it blocks, where the program is killed
  (echo 60 >fifo) 3>&- &
  "$TOP/.venv/bin/python" "$TOP/tests/bats/tune/host_setting" "$(jq -cn --arg root "$PWD/root" \
    '{root: $root, settings: {sysctls: {"vm.swappiness": 10}}}')" >/dev/null 2>&1 3>&- &
  local pid=$!
  wait_until grep -rqs --include='0*.json' '"old": "60"' root/var/lib/perch/host_tune/kept
  kill -KILL "$pid"
  rm root/proc/sys/vm/swappiness
  put /proc/sys/vm/swappiness 10
  revert
  assert_equal "$(value /proc/sys/vm/swappiness)" 60
  [ ! -e root/var/lib/perch ] || fail "left: $(find root/var/lib/perch)"
}

@test "a kernel that takes less than it was given is named: huge pages that it does not have, PFC that a driver ignores" {
  dcb_nic && touch nics/eth1.dcb.deaf
  # the count of the node does not follow that of the host here
  call '{settings: {hugepages_2m: 64, pfc_priorities: [3]}}'
  trouble "the kernel gave 4 of 64 huge pages of 2 MiB"
  trouble "hugepagesz=2M hugepages=64"
  trouble "priority flow control of eth1 was set to priorities 3, and is priorities none"
  call '{state: "reverted"}'
  assert_json answer.json '.troubles == []'
}

@test "an old value that the host does not take back is named, and stays kept for another try" {
  dcb_nic
  tune '{pfc_priorities: [3], mtu: 9000}'
  touch nics/eth1.dcb.deaf
  call '{state: "reverted"}'
  trouble "priority flow control of eth1 was set to priorities none, and is priorities 3"
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
  assert_equal "$(find root/var/lib/perch -name '0*.json' | wc -l)" 1
  rm nics/eth1.dcb.deaf
  revert
  assert_json nics/eth1.dcb '.pfc.prio_pfc[3] == false'
  [ ! -e root/var/lib/perch ] || fail "left: $(find root/var/lib/perch)"
}

@test "a read-only /proc/sys, as in a container, is named; what can be written is" {
  # shellcheck disable=SC2016
  WITHIN=(unshare -rm bash -c 'mount --bind root/proc/sys root/proc/sys && mount -o remount,bind,ro root/proc/sys && exec "$@"' bash)
  call '{settings: {sysctls: {"vm.swappiness": 10}, mtu: 9000}}'
  trouble "/proc/sys/vm/swappiness cannot be set to 10: it is read-only. To do: in a container the host itself must be tuned"
  assert_equal "$(value /proc/sys/vm/swappiness) $(value /sys/class/net/eth1/mtu)" "60 9000"
  WITHIN=()
  revert
}

@test "without root nothing is read or set, and what to do is said" {
  WITHIN=(unshare -U)
  call '{root: "", settings: {mtu: 9000}}'
  assert_json answer.json '.changed == false and .troubles == ["settings can be read and kept by root alone. To do: set ansible_become: true"]'
}

@test "what this host does not have is named, with what to do" {
  rm -r root/sys/devices/system/node/node0/hugepages/hugepages-1048576kB root/sys/kernel/mm/hugepages/hugepages-1048576kB
  rm root/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor root/etc/pam.d/sshd
  call '{settings: {hugepages_1g: 2, hugepages_2m: {"7": 3}, governor: "performance", memlock: "unlimited", ecn_priorities: [3], pfc_priorities: [3],
    tuned_profile: "network-latency", sysctls: {"net.no.such": 1, "../../../etc/passwd": 1}}}'
  trouble "this machine has no huge pages of 1 GiB"
  trouble "this machine has no NUMA node 7"
  trouble "the processors have no governor"
  trouble "no file of /etc/pam.d asks pam_limits.so"
  trouble "eth1 has no switches for ECN"
  trouble "eth1 has no priority settings that can be reached (dcb pfc show dev eth1: Attribute read: Operation not supported"
  trouble "tuned-adm is not installed"
  trouble "there is no sysctl net.no.such"
  assert_json answer.json '[.troubles[] | select(contains("passwd"))] | length == 1'
  assert_json answer.json '[.troubles[] | test("\\. To do: .+")] | all'
}

@test "whether rdma_cm's view of a device was there before is kept with its value: a revert removes only a view of ours" {
  call '{settings: {roce_tos: 106}}'
  jq -se 'any(.spec | .kind == "cm_tos" and .was_there)' root/var/lib/perch/host_tune/kept/*.json >/dev/null ||
    fail "$(cat root/var/lib/perch/host_tune/kept/*.json)"
  call '{state: "reverted"}'
  assert_equal "$(value /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos)" 0
}

@test "devices and interfaces that are not there are named, and the others are set" {
  call '{settings: {mtu: 9000}, devices: ["mlx5_0", "mlx5_9", {name: "mlx5_0", netdev: "eth7"}]}'
  trouble "there is no RDMA device mlx5_9"
  trouble "there is no interface eth7 (of mlx5_0). To do: correct perch_devices; there are: eth0, eth1"
  assert_equal "$(value /sys/class/net/eth1/mtu)" 9000
}

@test "the interface of Ansible's connection, and all that it is made of, is never altered" {
  mkdir root/sys/class/net/{bond0,vlan5}
  ln -s ../bond0 root/sys/class/net/eth0/lower_bond0
  ln -s ../eth1 root/sys/class/net/bond0/lower_eth1
  put /proc/sys/net/ipv4/conf/eth0/rp_filter 1
  local before
  before=$(everything)
  call '{settings: {mtu: 9000, irq_affinity: "local", roce_tos: 106, pfc_priorities: [3], sysctls: {"net.ipv4.conf.eth0.rp_filter": 2}}}'
  assert_json answer.json '.changed == false and (.troubles | length) == 5 and ([.troubles[] | contains("carries Ansible")] | all)'
  assert_equal "$(everything)" "$before"
}

@test "where nobody knows which interface carries the connection none is altered, unless it is named" {
  call '{settings: {mtu: 9000}, reached_at: "tunnel.example.org"}'
  trouble "it is not known which interface"
  call '{settings: {mtu: 9000}, reached_at: "127.0.0.1"}'
  trouble "host_tune_connection_interface: eth0"
  # what is protected besides, or is not there, does not say which it is
  call '{settings: {mtu: 9000}, reached_at: "tunnel.example.org", protected: ["eth0"]}'
  trouble "it is not known which interface"
  call '{settings: {mtu: 9000}, reached_at: "tunnel.example.org", connection_interface: "eth7"}'
  trouble "it is not known which interface"
  call '{settings: {mtu: 9000}, reached_at: "tunnel.example.org", connection_interface: "eth1"}'
  trouble "eth1 carries Ansible"
  call '{settings: {mtu: 9000}, protected: ["eth1"]}'
  trouble "is in host_tune_protected"
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
  call '{settings: {mtu: 9000}, reached_at: "tunnel.example.org", connection_interface: "eth0"}'
  assert_equal "$(value /sys/class/net/eth1/mtu)" 9000
}

@test "an address on an interface without a network card below it (WireGuard, Open vSwitch, a dummy) does not show the carrier" {
  rmdir root/sys/class/net/eth0/device
  call '{settings: {mtu: 9000}}'
  trouble "it is not known which interface"
  mkdir root/sys/class/net/bond0
  ln -s ../bond0 root/sys/class/net/eth0/lower_bond0
  call '{settings: {mtu: 9000}}'
  trouble "it is not known which interface"
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
  mkdir -p root/sys/class/net/eth2/device
  ln -s ../eth2 root/sys/class/net/bond0/lower_eth2
  tune '{mtu: 9000}'
}

@test "the interface by which answers go back to the client is protected, too" {
  sed -i '2i [ "$2 $3 $4" != "route get 192.0.2.1" ] || { echo '"'"'[{"dst":"192.0.2.1","dev":"eth1"}]'"'"' && exit; }' bin/ip
  jq -cn --arg root "$PWD/root" '{root: $root, devices: ["mlx5_0"], settings: {mtu: 9000}, reached_at: "198.51.100.7"}' >options
  SSH_CONNECTION="192.0.2.1 5 198.51.100.7 22" run "$TOP/.venv/bin/python" "$TOP/tests/bats/tune/host_setting" "$(<options)"
  assert_output --partial "eth1 carries Ansible's own connection"
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
}

@test "a device whose own interface carries the connection is not altered, whatever interface the inventory gives it" {
  put /sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0 eth0
  call '{settings: {mtu: 9000, roce_tos: 106}, devices: [{name: "mlx5_0", netdev: "eth1"}]}'
  assert_json answer.json '.changed == false and (.troubles | length) == 2 and ([.troubles[] | contains("eth0 carries Ansible")] | all)'
}

@test "sysctls that the kernel writes into every interface are refused; those that it only combines are set" {
  local key
  for key in ipv4/ip_forward ipv4/conf/{all/forwarding,default/rp_filter} ipv6/conf/all/{forwarding,disable_ipv6} ipv4/neigh/default/base_reachable_time_ms; do
    put /proc/sys/net/"$key" 0
    call "{settings: {sysctls: {\"net/$key\": 1}}}"
    trouble "the kernel writes net/$key into other interfaces"
    assert_equal "$(value /proc/sys/net/"$key")" 0
  done
  for key in ipv4/conf/all/{arp_ignore,rp_filter} ipv6/conf/default/disable_ipv6 ipv4/neigh/default/gc_thresh3; do
    put /proc/sys/net/"$key" 0
    tune "{sysctls: {\"net/$key\": 1}}"
    assert_equal "$(value /proc/sys/net/"$key")" 1
  done
}

@test "a change that would take something else away for good is refused: the twin of a sysctl, IPv6 addresses by a small MTU" {
  put /proc/sys/vm/dirty_bytes 0
  put /proc/sys/vm/dirty_ratio 20
  call '{settings: {sysctls: {"vm.dirty_bytes": 100000000}}}'
  trouble "setting vm.dirty_bytes makes /proc/sys/vm/dirty_ratio 0"
  tune '{sysctls: {"vm.dirty_ratio": 10}}'
  assert_equal "$(value /proc/sys/vm/dirty_bytes)/$(value /proc/sys/vm/dirty_ratio)" 0/10
  tune '{mtu: 1200}'
  put /proc/net/if_inet6 "fe80000000000000505400fffe000001 03 40 20 80     eth1"
  call '{settings: {mtu: 1279}}'
  trouble "eth1 would lose its IPv6 addresses"
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1200
  tune '{mtu: 1280}'
}

@test "the address of the ssh session counts, also behind sudo, which drops the variable" {
  sed -i 's/198.51.100.7/203.0.113.9/' bin/ip
  jq -cn --arg root "$PWD/root" '{root: $root, devices: ["mlx5_0"], settings: {sysctls: {"net.ipv4.conf.eth0.rp_filter": 2}}}' >options
  put /proc/sys/net/ipv4/conf/eth0/rp_filter 1
  # shellcheck disable=SC2016
  SSH_CONNECTION="192.0.2.1 5 203.0.113.9 22" run bash -c 'env -u SSH_CONNECTION "$@"; true' bash \
    "$TOP/.venv/bin/python" "$TOP/tests/bats/tune/host_setting" "$(<options)"
  assert_output --partial "eth0 carries Ansible's own connection"
}

@test "firmware or a daemon that owns DCBX: said by name, and nothing is set" {
  dcb_nic
  cp nics/eth1.dcb own
  jq '.dcbx = {"lld-managed": true, ieee: true}' own >nics/eth1.dcb
  call '{settings: {pfc_priorities: [3]}}'
  trouble "the firmware of eth1 owns DCBX"
  cp own nics/eth1.dcb
  printf 'Private flags for eth1:\nlink-down-on-close : off\nfw-lldp-agent : on\n' >nics/eth1.flags
  call '{settings: {pfc_priorities: [3]}}'
  trouble "ethtool --set-priv-flags eth1 fw-lldp-agent off"
  printf 'Private flags for eth1:\ndisable-fw-lldp       : off\n' >nics/eth1.flags
  call '{settings: {ets: {prio_tc: {"1": 1}}}}'
  trouble "disable-fw-lldp off"
  rm nics/eth1.flags
  put /proc/77/comm lldpad
  call '{settings: {dscp_priority: {"26": 3}}}'
  trouble "lldpad runs"
  assert_equal "$(cat nics/eth1.dcb)" "$(cat own)"
  assert_json answer.json '.changed == false'
}

@test "programs that would undo a setting are named, and it is not made: irqbalance, tuned, a later file of sysctl" {
  put /proc/70/comm irqbalance
  put /proc/71/comm tuned
  put /etc/sysctl.d/99-site.conf "vm.swappiness=30"
  call '{settings: {irq_affinity: "local", governor: "performance", sysctls: {"vm.swappiness": 10}}}'
  trouble "systemctl disable --now irqbalance"
  trouble "tuned runs"
  trouble "/etc/sysctl.d/99-site.conf sets vm.swappiness to 30 at boot"
  assert_equal "$(value /proc/irq/30/smp_affinity_list)/$(value /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor)" 0/schedutil
}

@test "through mlnx_qos: PFC, ETS, DSCP map and trust are set, found again, and put back" {
  mlnx_nic
  local before settings='{pfc_priorities: [3], dscp_priority: {"40": 3}, dscp_trust: "dscp",
    ets: {tc_tsa: {"0": "ets", "3": "ets"}, tc_bw: {"0": 50, "3": 50}}}'
  before=$(jq -S . nics/eth1.mlnx)
  tune "$settings"
  assert_json nics/eth1.mlnx '.pfc == [0, 0, 0, 1, 0, 0, 0, 0] and .trust == "dscp" and .dscp["40"] == 3 and .bw[3] == 50'
  tune "$settings"
  assert_json answer.json '.changed == false'
  revert
  assert_equal "$(jq -S . nics/eth1.mlnx)" "$before"
  jq '.mode = "Firmware controlled"' nics/eth1.mlnx >new && mv new nics/eth1.mlnx
  call "{settings: $settings}"
  trouble "mlnx_qos -i eth1 -d os"
}

@test "answers of dcb that are damaged, empty or of another kind are named, and nothing is set" {
  local answer
  for answer in '' '{' '[]' 'null' '{"prio_pfc":[true]}' '{"prio_pfc":"yes"}'; do
    printf '#!/bin/sh\nprintf %%s '"'%s'"'\n' "$answer" >bin/dcb
    call '{settings: {pfc_priorities: [3]}, qos_provider: "dcb"}'
    assert_json answer.json '(.troubles | length) == 1 and .changed == false'
  done
}

@test "percents of ETS that are not 100 together are refused before anything is set" {
  dcb_nic
  call '{settings: {ets: {tc_tsa: {"0": "ets"}, tc_bw: {"0": 40}}}}'
  trouble "would be 40 together"
  assert_json nics/eth1.dcb '.ets.tc_tsa[0] == "strict"'
}

@test "trust without a switch of its own: it follows the map, which is said; with one it is set" {
  dcb_nic
  call '{settings: {dscp_trust: "dscp"}}'
  trouble "To do: set host_tune_dscp_priority, too"
  jq '.apptrust = {order: ["pcp"]}' nics/eth1.dcb >new && mv new nics/eth1.dcb
  tune '{dscp_trust: "dscp"}'
  assert_json nics/eth1.dcb '.apptrust.order == ["dscp"]'
  revert
  assert_json nics/eth1.dcb '.apptrust.order == ["pcp"]'
}

@test "an interrupt that has another number after a reboot is found by its name" {
  tune '{irq_affinity: "1"}'
  mv root/proc/irq/31 root/proc/irq/45 && mv root/sys/kernel/irq/31 root/sys/kernel/irq/45
  mv root/sys/class/net/eth1/device/msi_irqs/{31,45}
  revert
  assert_equal "$(value /proc/irq/45/smp_affinity_list)" 0
}

@test "interrupts of one name are kept, put back and set at boot one by one" {
  for irq in 30 31; do put /sys/kernel/irq/$irq/actions same; done
  put /proc/irq/30/smp_affinity_list 0-1
  put /proc/irq/31/smp_affinity_list 1
  tune '{irq_affinity: "0,1"}'
  assert_equal "$(value /proc/irq/30/smp_affinity_list) $(value /proc/irq/31/smp_affinity_list)" "0 1"
  tune '{irq_affinity: "0"}'
  # as at a boot
  put /proc/irq/30/smp_affinity_list 7
  put /proc/irq/31/smp_affinity_list 7
  sed -i 's/same\t1\t0/same\t1\t5/' root/etc/perch/host_tune.d/irq_affinity
  sed "s#/etc/perch#$PWD/root&#; s#\"/sys/#\"$PWD/root/sys/#g; s#\"/proc/#\"$PWD/root/proc/#g; s/SECONDS + 30/SECONDS + 1/" root/etc/perch/perch-tune >script
  sed -i "s#/proc/irq/#$PWD/root/proc/irq/#g; s#$PWD/root$PWD/root#$PWD/root#g" script
  run_expecting 0 bash script
  assert_equal "$(value /proc/irq/30/smp_affinity_list) $(value /proc/irq/31/smp_affinity_list)" "0 5"
  revert
  assert_equal "$(value /proc/irq/30/smp_affinity_list) $(value /proc/irq/31/smp_affinity_list)" "0-1 1"
}

@test "what did not happen is not told as a change: a store that cannot be made, a driver that takes nothing" {
  rm -r root/var/lib && touch root/var/lib
  call '{settings: {mtu: 9000, sysctls: {"vm.swappiness": 10}}}'
  assert_json answer.json '.changed == false and .changes == [] and (.troubles | length) == 1'
  trouble "old values cannot be kept in /var/lib/perch/host_tune/kept: Not a directory"
  rm root/var/lib && mkdir root/var/lib
  dcb_nic
  tune '{pfc_priorities: [3]}'
  touch nics/eth1.dcb.deaf
  call '{state: "reverted"}'
  assert_json answer.json '[.changes[] | contains("priority flow control")] | any | not'
}

@test "a store that somebody else may have written is not trusted: a link, another mode, a file in its place" {
  tune '{mtu: 9000}'
  local store=root/var/lib/perch/host_tune
  chmod 755 $store/kept
  call '{state: "reverted"}'
  trouble "is not a directory of root's own with mode 0700"
  chmod 700 $store/kept && mv $store/kept elsewhere && ln -s "$PWD/elsewhere" $store/kept
  call '{state: "reverted"}'
  trouble "/var/lib/perch/host_tune/kept is not a directory of root's own"
  call '{settings: {mtu: 4200}}'
  trouble "/var/lib/perch/host_tune/kept is not a directory of root's own"
  rm $store/kept && touch $store/kept
  call '{settings: {mtu: 4200}}'
  assert_json answer.json '.changed == false and (.troubles | length) == 1'
  assert_equal "$(value /sys/class/net/eth1/mtu)" 9000
}

@test "a kept value names only places that its kind writes, and its path says whose interface it is" {
  tune '{mtu: 9000}'
  put /proc/sys/net/ipv4/conf/eth0/rp_filter 1
  local kept=root/var/lib/perch/host_tune/kept spec n=100
  for spec in '"kind": "text", "path": "/sys/class/net/eth0/mtu"' '"kind": "text", "path": "/sys/devices/x/net/eth0/mtu", "netdev": "eth1"' \
    '"kind": "text", "path": "/proc/sys/net/ipv4/conf/eth0/rp_filter"' '"kind": "text", "path": "/etc/shadow"' '"kind": "text", "path": "/sys/../etc/shadow"' \
    '"kind": "file", "path": "/etc/cron.d/x"' '"kind": "directory", "path": "/etc/cron.d"' '"kind": "traffic_class", "port": 1, "device": "../x"'; do
    echo '{"schema": "perch.host_tune_kept/1", "setting": "x", "spec": {'"$spec"'}, "old": "1"}' >$kept/000$n-bad.json
    n=$((n + 1))
  done
  call '{state: "reverted"}'
  assert_json answer.json '(.troubles | length) == 8 and ([.troubles[] | select(contains("eth0 carries Ansible"))] | length) == 3
    and ([.troubles[] | select(contains("is not a place of a"))] | length) == 5'
  assert_equal "$(value /sys/class/net/eth0/mtu) $(value /sys/class/net/eth1/mtu)" "1500 1500"
  [ ! -e root/etc/shadow ] && [ ! -e root/etc/cron.d ] || fail "written elsewhere"
}

@test "a tuning that cannot begin anything leaves no store" {
  local before
  before=$(everything)
  call '{settings: {mtu: 9000}, devices: ["mlx5_9"]}'
  trouble "there is no RDMA device mlx5_9"
  assert_equal "$(everything)" "$before"
}

@test "kept values that are damaged are named and left; the others are put back" {
  tune '{mtu: 9000, sysctls: {"vm.swappiness": 10}}'
  local kept=root/var/lib/perch/host_tune/kept
  truncate -s 20 "$(grep -l swappiness $kept/*)"
  : >$kept/000090-empty.json
  head -c 2000 /dev/urandom >$kept/000091-binary.json
  echo '{"schema": "perch.host_tune_kept/1", "setting": "x", "spec": {"kind": "shell", "path": "/"}, "old": 1}' >$kept/000092-kind.json
  echo '{"schema": "perch.host_tune_kept/1", "setting": "x", "spec": {"kind": "file"}, "old": 1}' >$kept/000093-spec.json
  call '{state: "reverted"}'
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
  trouble "000090-empty.json holds no kept value"
  trouble "a value of the kind shell"
  assert_json answer.json '(.troubles | length) == 5'
  assert_equal "$(find $kept -name '0*' | wc -l)" 5
}

@test "two programs do not tune one host at once" {
  mkdir -p root/var/lib/perch/host_tune/kept
  chmod 700 root/var/lib/perch/host_tune{,/kept}
  exec 9<root/var/lib/perch/host_tune/kept
  flock 9
  call '{settings: {mtu: 9000}}'
  trouble "another program tunes this host"
  # the lock comes before the reading: also where nothing is to be changed
  call '{settings: {transparent_hugepages: "always"}}'
  exec 9<&-
  trouble "another program tunes this host"
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
}

@test "what is applied at boot: the script writes values and runs programs word for word, and names what failed" {
  tune '{mtu: 9000}'
  sed "s|/etc/perch/host_tune.d|$PWD/lines|; s/SECONDS + 30/SECONDS + 1/" root/etc/perch/perch-tune >script
  mkdir lines
  echo 1 >target
  printf '# a comment\nwrite\t%s/target\tnew $(touch evil)\nrun\ttouch\tmade;touch evil\n' "$PWD" >lines/a
  printf 'write\t/no/such/file\t1\nnonsense\trm\n' >lines/b
  run_expecting 1 bash script
  assert_output --partial "perch-tune: b: not applied: write /no/such/file 1"
  assert_output --partial "perch-tune: b: not applied: nonsense rm"
  refute_output --partial "perch-tune: a:"
  assert_equal "$(cat target)" 'new $(touch evil)'
  [ -e "made;touch evil" ] && [ ! -e evil ] || fail "$(ls)"
  shellcheck --shell=bash script
}

# tuned-adm with the words of tuned's own (tuned/admin/admin.py); its state is the two files that tuned keeps
tuned_host() {
  mkdir -p root/etc/tuned
  printf 'balanced\n' >root/etc/tuned/active_profile
  printf 'auto\n' >root/etc/tuned/profile_mode
  cat >bin/tuned-adm <<'SH'
#!/bin/bash
cd root/etc/tuned || exit
case $1 in
  active) if [ -s active_profile ]; then echo "Current active profile: $(<active_profile)"; else echo "No current active profile."; fi ;;
  profile) [ "$2" != no-such ] || { echo "Requested profile 'no-such' doesn't exist." >&2 && exit 1; }
    echo "${*:2}" >active_profile && echo manual >profile_mode ;;
  auto_profile) echo balanced >active_profile && echo auto >profile_mode ;;
  off) : >active_profile ;;
esac
SH
  chmod +x bin/tuned-adm
}

@test "tuned's profile is set and put back, with its mode; one that tuned does not know is named" {
  tuned_host
  local before
  before=$(everything)
  tune '{tuned_profile: "network-latency"}'
  assert_json answer.json '.changes[0] == "tuned'"'"'s profile: balanced (auto) -> network-latency (manual)"'
  tune '{tuned_profile: "network-latency"}'
  assert_json answer.json '.changed == false'
  revert
  assert_equal "$(everything)" "$before"
  call '{settings: {tuned_profile: "no-such"}}'
  trouble "Requested profile 'no-such' doesn't exist."
  printf '#!/bin/sh\necho Cannot talk to TuneD daemon via DBus\n' >bin/tuned-adm
  call '{settings: {tuned_profile: "network-latency"}}'
  trouble "tuned-adm active says: Cannot talk to TuneD daemon"
}

@test "NVIDIA's files for ECN and the traffic class are set where they are" {
  local part priority before
  for part in roce_np roce_rp; do
    for priority in {0..7}; do put /sys/class/net/eth1/ecn/$part/enable/"$priority" 1; done
  done
  put /sys/class/infiniband/mlx5_0/tc/1/traffic_class "Global tclass=96"
  before=$(everything)
  call '{settings: {ecn_priorities: [3], roce_tos: 106}, _ansible_check_mode: true}'
  assert_json answer.json '.changes | contains(["/sys/class/infiniband/mlx5_0/tc/1/traffic_class: 96 -> 106"])'
  tune '{ecn_priorities: [3]}'
  assert_equal "$(cat root/sys/class/net/eth1/ecn/roce_rp/enable/* | xargs)" "0 0 0 1 0 0 0 0"
  revert
  assert_equal "$(everything)" "$before"
}
