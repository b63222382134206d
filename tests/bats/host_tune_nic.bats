#!/usr/bin/env bats
# The module host_setting, on a made-up host (tune.bash): the settings of a NIC, and the interfaces that are never altered.

load helpers
load tune

setup() { tune_setup; }
teardown() { common_teardown; }

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

@test "without a known connection interface nothing is altered, unless it is named" {
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

@test "irqbalance that runs begins again with each card's driver banned, and with its own options after a revert" {
  local before
  put /proc/70/comm irqbalance
  before=$(everything)
  tune '{irqbalance_ban: true, irq_affinity: "local"}'
  assert_equal "$(value /proc/irq/30/smp_affinity_list) $(<systemctl.calls)" "1 try-restart irqbalance.service"
  tune '{irqbalance_ban: true, irq_affinity: "local"}'
  assert_json answer.json '.changed == false'
  revert
  assert_equal "$(everything)" "$before"
  assert_equal "$(wc -l <systemctl.calls)" 2
  # without a line of its own, of a commented one, and without irqbalance
  put /etc/default/irqbalance '#IRQBALANCE_ARGS="--x"'
  tune '{irqbalance_ban: true}'
  assert_equal "$(value /etc/default/irqbalance)" $'#IRQBALANCE_ARGS="--x"\nIRQBALANCE_ARGS="--banmod=mlx5_core"'
  revert
  mv root/etc/default/irqbalance root/etc/irqbalance
  call '{settings: {irqbalance_ban: true}}'
  trouble "irqbalance is not installed"
}

@test "CNP: OFED's files take DSCP and priority; the kernel's driver only the DSCP, and others neither" {
  call '{settings: {cnp: {dscp: 46, priority: 6}}}'
  trouble "changes another parameter with the priority of CNP"
  revert
  put /sys/class/net/eth1/ecn/roce_np/cnp_dscp 48
  put /sys/class/net/eth1/ecn/roce_np/cnp_802p_prio 0
  local before
  before=$(everything)
  tune '{cnp: {dscp: 46, priority: 6}}'
  assert_equal "$(cat root/sys/class/net/eth1/ecn/roce_np/cnp_{dscp,802p_prio} | xargs)" "46 6"
  revert
  assert_equal "$(everything)" "$before"
  rm -r root/sys/class/net/eth1/ecn root/sys/kernel/debug/mlx5
  call '{settings: {cnp: {dscp: 46}}}'
  trouble "has no file for the dscp of CNP"
}

@test "bridges without ACS are left alone, and a machine without setpci is named" {
  rm nics/*.acs
  tune '{pcie_acs: "disabled"}'
  assert_json answer.json '.changed == false'
  sed -i '3i echo "no such file" >&2; exit 1' bin/setpci
  call '{settings: {pcie_acs: "disabled"}}'
  trouble "setpci does not read ACS Control of 0000:00:01.0: no such file. To do: install pciutils"
}

@test "receive buffers through mlnx_qos, and a NIC whose buffers cannot be read" {
  mlnx_nic
  local before
  before=$(everything)
  tune '{buffers: {prio_buffer: {"3": 1}, buffer_size: {"0": 65536, "1": 196480}}}'
  assert_json nics/eth1.mlnx '.buffer == [0, 0, 0, 1, 0, 0, 0, 0] and .sizes == [65536, 196480, 0, 0, 0, 0, 0, 0]'
  tune '{buffers: {prio_buffer: {"3": 1}, buffer_size: {"0": 65536, "1": 196480}}}'
  assert_json answer.json '.changed == false'
  revert
  assert_equal "$(everything)" "$before"
  rm nics/eth1.mlnx
  dcb_nic
  jq 'del(.buffer)' nics/eth1.dcb >new && mv new nics/eth1.dcb
  call '{settings: {buffers: {prio_buffer: {"3": 1}}}}'
  trouble "dcb buffer show dev eth1: Attribute not found"
}

@test "nvidia_peermem that was there stays after a revert; one that cannot be loaded is named" {
  mkdir root/sys/module/nvidia_peermem
  tune '{peermem: true}'
  assert_json answer.json '.changed == true' # its line at boot
  revert
  [ -d root/sys/module/nvidia_peermem ] || fail "a revert unloaded what was there"
  rmdir root/sys/module/nvidia_peermem
  : >no-peermem
  call '{settings: {peermem: true}}'
  trouble "modprobe nvidia-peermem: could not insert: Invalid argument. To do: install NVIDIA"
}

@test "rings that are too large, a name that the driver does not have, and a device without a PCI function are refused by name" {
  call '{settings: {rings: {rx: 9000}, coalescing: {"rx-usecs": 1, "tx-usecs": 1}}}'
  trouble "the rx ring of eth1 has 8192 places at most"
  trouble "eth1 has no tx-usecs. To do: its driver has: rx-usecs, rx-frames, adaptive-rx, adaptive-tx; correct host_tune_coalescing"
  assert_json nics/eth1.ethtool '.now.RX == 1024 and .["rx-usecs"] == "8"'
  rm nics/*.control
  call '{settings: {pcie_read_request: 512}}'
  trouble "setpci does not read Device Control of eth1"
  put /sys/class/net/dummy0/mtu 1500
  call '{settings: {pcie_read_request: 512}, devices: [{name: "rxe0", netdev: "dummy0"}]}'
  trouble "dummy0 is on no PCI function"
  call '{settings: {dcqcn: {rp_ai_rte: 1}}}'
  trouble "eth1 has no parameter rp_ai_rte"
  trouble "choose from: np_cnp_dscp, rp_ai_rate"
  call '{settings: {dcqcn: {np_cnp_prio: 1}}}'
  trouble "a change of np_cnp_prio changes another parameter, too"
  rm -r root/sys/devices/pci0/0000:00:01.0/0000:03:00.0/link
  call '{settings: {pcie_aspm: "disabled"}}'
  trouble "the kernel controls no power saving of the PCIe link of eth1"
}
