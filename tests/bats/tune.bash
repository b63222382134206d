# shellcheck shell=bash disable=SC2034,SC2154  # bats and helpers.bash set and read what is not seen here
# A made-up host for the module host_setting: a tree of files in place of /sys, /proc and /etc, and programs that stand for
# dcb and mlnx_qos. Real kernels are in tests/lab/tune.bats, the role itself in host_tune_role.bats.

tune_setup() {
  common_setup
  export FAKE_NICS=$PWD/nics
  make_host
}

put() { mkdir -p "$(dirname "root$1")" && printf '%s\n' "$2" >"root$1"; }

# One NUMA node with two processors; eth1 with a PCI function below a bridge and two interrupts below mlx5_0; eth0, which is management
make_host() {
  local cpu=/sys/devices/system/cpu net=/sys/class/net pci=/sys/devices/pci0/0000:00:01.0/0000:03:00.0 size irq
  mkdir -p nics root/etc/security root/var/lib root/etc/systemd/system/multi-user.target.wants root/sys/class/net root/sys/class/infiniband
  put $cpu/online 0-1
  for irq in 0 1; do
    put $cpu/cpu$irq/cpufreq/scaling_governor schedutil
    put $cpu/cpu$irq/cpuidle/state1/latency 2
    put $cpu/cpu$irq/cpuidle/state1/disable 0
    put $cpu/cpu$irq/cpuidle/state2/latency 170
    put $cpu/cpu$irq/cpuidle/state2/disable 0
  done
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
  cp "$TOP"/tests/bats/tune/{ethtool,setpci} bin
  mkdir -p root/sys/module
  cat >bin/modprobe <<SH
#!/bin/sh
[ ! -e "$PWD/no-peermem" ] || { echo 'could not insert: Invalid argument' >&2 && exit 1; }
case "\$*" in
  nvidia-peermem) mkdir "$PWD/root/sys/module/nvidia_peermem" ;;
  *) exit 1 ;;
esac
SH
  jq -n '{most: {RX: 8192, TX: 8192}, now: {RX: 1024, TX: 1024}, adaptive: {rx: "on", tx: "on"}, "rx-usecs": "8", "rx-frames": "128"}' >nics/eth1.ethtool
  echo 2936 >nics/0000:03:00.0.control
  echo 0015 >nics/0000:00:01.0.acs
  mkdir -p root/sys/bus/pci/drivers/mlx5_core
  ln -s "$PWD/root/sys/bus/pci/drivers/mlx5_core" root$pci/driver
  put /etc/default/irqbalance "$(printf '# of the site\nIRQBALANCE_ARGS="--policyscript=/x"')"
  printf '#!/bin/sh\necho "$*" >>"%s/systemctl.calls"\n' "$PWD" >bin/systemctl
  cat >bin/rmmod <<SH
#!/bin/sh
[ "\$*" = nvidia_peermem ] && rmdir "$PWD/root/sys/module/nvidia_peermem"
SH
  put $pci/link/l1_aspm 1
  local part
  for part in l1_1_aspm l1_2_aspm l1_1_pcipm l1_2_pcipm; do put $pci/link/$part 1; done
  put $pci/link/l0s_aspm 0
  put $pci/link/clkpm 1
  put /sys/kernel/debug/mlx5/0000:03:00.0/cc_params/rp_ai_rate 5
  put /sys/kernel/debug/mlx5/0000:03:00.0/cc_params/np_cnp_dscp 48
  chmod +x bin/*
  PATH=$PWD/bin:$PATH
}

# a NIC with DCB whose host owns DCBX, as the lab's answers
dcb_nic() {
  jq -n '{dcbx: {host: true, ieee: true}, app: [], pfc: {pfc_cap: 8, macsec_bypass: false, delay: 0, prio_pfc: [range(8) | false]},
    ets: {willing: false, ets_cap: 8, cbs: false, tc_bw: [range(8) | 0], tc_tsa: [range(8) | "strict"], prio_tc: [range(8)]},
    buffer: {prio_buffer: [range(8) | 0], buffer_size: [262016, 0, 0, 0, 0, 0, 0, 0], total_size: 262016}}' >nics/eth1.dcb
}

mlnx_nic() {
  jq -n '{mode: "OS controlled", trust: "pcp", pfc: [range(8) | 0], tsa: [range(8) | "vendor"], bw: [range(8) | 0], prio_tc: [1, 0, 2, 3, 4, 5, 6, 7],
    buffer: [range(8) | 0], sizes: [262016, 0, 0, 0, 0, 0, 0, 0], dscp: ([range(64) | {key: tostring, value: (. / 8 | floor)}] | from_entries)}' >nics/eth1.mlnx
}

# call OPTIONS: the module with these (a jq expression); its answer is in answer.json. WITHIN: a program that runs it
WITHIN=()
call() {
  local options
  options=$(jq -cn --arg root "$PWD/root" "{root: \$root, devices: [\"mlx5_0\"], reached_at: \"198.51.100.7\"} + $1")
  run --separate-stderr "${WITHIN[@]}" env -u SSH_CONNECTION "$TOP/.venv/bin/python" "$TOP/tests/bats/tune/host_setting" "$options"
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
ALL='{hugepages_2m: {"0": 16}, hugepages_1g: {"0": 1}, governor: "performance", idle_latency_us: 2, memlock: "unlimited", transparent_hugepages: "never",
  sysctls: {"vm.swappiness": 10, "net.ipv4.tcp_rmem": "4096 87380 9000000"}, mtu: 9000, irq_affinity: "local", rings: {rx: 8192},
  coalescing: {"adaptive-rx": false, "rx-usecs": 0}, pcie_read_request: 4096, pcie_aspm: "disabled", pcie_acs: "disabled", irqbalance_ban: true, cnp: {dscp: 46},
  buffers: {prio_buffer: {"3": 1}, buffer_size: {"0": 65500, "1": 196608}}, dcqcn: {rp_ai_rate: 10}, peermem: true, pfc_priorities: [3],
  ets: {tc_tsa: {"0": "ets", "3": "ets"}, tc_bw: {"0": 40, "3": 60}}, dscp_priority: {"26": 3}, dscp_trust: "dscp", roce_tos: 106}'
