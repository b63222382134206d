# What to do about a reading that is missing: install its tool, by the package's name on that system, else read it by hand. A remedy of
# the fault would replace parts without a reading that says they are bad.

# The packages that hold a tool, of Debian, Red Hat and SUSE; those of roles/engine/vars, and of what each system has from the start.
def packages:
  { ethtool: ["ethtool", "ethtool", "ethtool"], ip: ["iproute2", "iproute", "iproute2"], ibv_devinfo: ["ibverbs-utils", "libibverbs-utils", "libibverbs-utils"],
    smpquery: ["infiniband-diags", "infiniband-diags", "infiniband-diags"], lldpctl: ["lldpd", "lldpd", "lldpd"],
    mstconfig: ["mstflint", "mstflint", "mstflint"], dmidecode: ["dmidecode", "dmidecode", "dmidecode"],
    fi_info: ["libfabric-bin", "libfabric", "libfabric"], chronyc: ["chrony", "chrony", "chrony"], nft: ["nftables", "nftables", "nftables"],
    "iptables-save": ["iptables", "iptables-nft", "iptables"], systemctl: ["systemd", "systemd", "systemd"] }
  | .devlink = .ip | .dcb = .ip | .mstlink = .mstconfig | .mstreg = .mstconfig;

# The place of a system in these lists, by its os-release; null: another system
def family($raw):
  ([$raw.files["/etc/os-release"] | strings | scan("(?:^|\n)ID(?:_LIKE)?=\"?([^\"\n]*)")[]] | join(" ")) as $ids
  | if $ids | test("\\b(debian|ubuntu)\\b") then 0 elif $ids | test("\\b(rhel|fedora|centos)\\b") then 1 elif $ids | test("\\b(suse|sles)\\b") then 2 else null end;

# "package mstflint"; on a system that is not known "package ibverbs-utils or libibverbs-utils". Null: a tool without a package of its own
def package($raw; $tool):
  packages[$tool] as $names | family($raw) as $n
  | if $names == null then null elif $n != null then "package \($names[$n])" else "package " + ($names | unique | join(" or ")) end;

# Where a reading comes from: a command to run by hand. DEVICE is the finding's.
def kernel_log: "journalctl --dmesg --boot | head, or dmesg";
def pci_space: "lspci -vv, which shows the cards' configuration space";
def cpu($file): "cat /sys/devices/system/cpu/\($file)";
def counters: "ls -l /sys/class/infiniband/*/ports/*/counters";
def rdma($file): "cat /sys/class/infiniband/DEVICE/\($file)";
def net($file): "cat /sys/class/net/DEVICE/\($file)";
def dcb($what): "dcb \($what) show dev DEVICE, or mlnx_qos -i DEVICE";
def tos: "mkdir /sys/kernel/config/rdma_cm/DEVICE, and cat its ports/1/default_roce_tos";
def ways:
  { "machine-clock": "chronyc tracking, or timedatectl", "machine-clock-skew": "timedatectl on this host and on the controller",
    "machine-clocksource": "cat /sys/devices/system/clocksource/clocksource0/current_clocksource", "machine-cpus-online": cpu("online"),
    "machine-energy-bias": cpu("cpu0/power/energy_perf_bias"), "machine-energy-preference": cpu("cpu0/cpufreq/energy_performance_preference"),
    "machine-firewall": "nft list ruleset and iptables-save, and look for the ports", "machine-governor": cpu("cpu0/cpufreq/scaling_governor"),
    "machine-gpu-acs": pci_space, "machine-gpu-bar": "cat /sys/bus/pci/devices/DEVICE/resource", "machine-gpu-direct": "cat /proc/modules /proc/driver/nvidia/version",
    "machine-gpu-modules": "cat /proc/modules /proc/driver/nvidia/params", "machine-gpu-link-width": "lspci -vv -s DEVICE", "machine-gpu-memory-errors": "nvidia-smi -q -d ECC (AMD: amd-smi metric --ecc)",
    "machine-gpu-log": kernel_log, "machine-hardware-log": kernel_log, "machine-hung-tasks": kernel_log, "machine-iommu-log": kernel_log, "machine-iommu-log-others": kernel_log,
    "machine-nic-log": kernel_log, "machine-pcie-log": kernel_log, "machine-pcie-log-others": kernel_log, "machine-transmit-timeouts": kernel_log,
    "machine-link-flaps": "journalctl --dmesg --grep \"link.*down\" --ignore-case", "machine-hugepages-1g": "cat /proc/meminfo", "machine-hugepages-2m": "cat /proc/meminfo",
    "machine-hugepages-1g-local": "numastat -m", "machine-hugepages-2m-local": "numastat -m",
    "machine-idle-states": "cpupower idle-info", "machine-iommu": "cat /sys/kernel/iommu_groups/*/type", "machine-irqbalance": "pgrep -a irqbalance",
    "machine-isolated-cpus": cpu("isolated"), "machine-kernel": "uname -a", "machine-kernel-arguments": "cat /proc/cmdline",
    "machine-memlock": "ulimit -l", "machine-memlock-service": "systemctl show --property=DefaultLimitMEMLOCK", "machine-memory": "cat /proc/meminfo",
    "machine-memory-errors": "grep . /sys/devices/system/edac/mc/mc*/?e_count", "machine-memory-modules": "dmidecode --type 17",
    "machine-microcode": "grep microcode /proc/cpuinfo", "machine-mitigations": "grep . /sys/devices/system/cpu/vulnerabilities/*",
    "machine-module-ib-uverbs": "lsmod", "machine-module-rdma-ucm": "lsmod", "machine-driver": "lspci -k",
    "machine-neighbours": "sysctl net.ipv4.neigh.default.gc_thresh3", "machine-numa-balancing": "sysctl kernel.numa_balancing",
    "machine-numa-distances": "cat /sys/devices/system/node/node*/distance", "machine-numa-nodes": "cat /sys/devices/system/node/online",
    "machine-os": "cat /etc/os-release", "machine-processor": "lscpu", "machine-rdma-namespaces": "rdma system show",
    "machine-rdma-nodes": "ls -l /dev/infiniband", "machine-smt": cpu("smt/active"), "machine-swap": "cat /proc/swaps", "machine-throttled": "grep . /sys/devices/system/cpu/cpu*/thermal_throttle/*",
    "machine-transparent-hugepages": "cat /sys/kernel/mm/transparent_hugepage/enabled", "machine-tuned": "tuned-adm active",
    "machine-tuned-settings": "tuned-adm verify", "machine-turbo": "cpupower frequency-info", "machine-uncore-frequency": "grep . /sys/devices/system/cpu/intel_uncore_frequency/*/m*_freq_khz",
    "machine-virtual-functions": rdma("device/sriov_numvfs"), "machine-virtual-function-rights": "ip link show dev DEVICE", "machine-partitions": "grep . /sys/class/infiniband/DEVICE/ports/*/pkeys/*",
    "nic-adaptive-routing": "mstreg --reg_name ROCE_ACCL --get", "nic-bit-errors": "mstlink -c", "nic-config": "mstconfig -e q",
    "nic-arp-announce": "sysctl net.ipv4.conf.DEVICE.arp_announce, and ip address", "nic-arp-ignore": "sysctl net.ipv4.conf.DEVICE.arp_ignore, and ip address",
    "nic-rp-filter": "sysctl net.ipv4.conf.DEVICE.rp_filter, and ip address", "nic-carrier-changes": net("carrier_changes"),
    "nic-coalescing": "ethtool -c DEVICE", "nic-driver": "lspci -k", "nic-fec": "ethtool --show-fec of its interface", "nic-fec-blocks": "ethtool -I --show-fec of its interface",
    "nic-firmware": rdma("fw_ver"), "nic-firmware-stored": "devlink dev info", "nic-gid": "grep . /sys/class/infiniband/DEVICE/ports/*/gids/*",
    "nic-gid-address": "ip address, and compare with the GIDs of DEVICE", "nic-health": "devlink health show",
    "nic-interface-errors": "grep . /sys/class/net/DEVICE/statistics/*", "nic-interface-state": net("operstate"), "nic-irq-affinity": "grep DEVICE /proc/interrupts",
    "nic-link-layer": rdma("ports/1/link_layer"), "nic-link-width": rdma("ports/1/rate"), "nic-module": "ethtool -m DEVICE, with ethtool 6.6 or newer", "nic-mtu": net("mtu"),
    "nic-numa-node": "cat /sys/bus/pci/devices/*/numa_node", "nic-offloads": "ethtool -k DEVICE", "nic-path-mtu": "ibv_devinfo -d DEVICE", "nic-port-errors": counters,
    "nic-pcie-acs": pci_space, "nic-pcie-ats": pci_space, "nic-pcie-max-payload": pci_space, "nic-pcie-max-read-request": pci_space, "nic-pcie-relaxed-ordering": pci_space,
    "nic-pcie-extended-tags": pci_space, "nic-pcie-aspm": pci_space, "nic-pcie-atomics": pci_space, "nic-pcie-completion-timeout": pci_space,
    "nic-pcie-corrected-errors": "grep . /sys/bus/pci/devices/*/aer_dev_correctable", "nic-pcie-errors": "grep . /sys/bus/pci/devices/*/aer_dev_*fatal",
    "nic-pcie-speed": pci_space, "nic-pcie-uplinks": pci_space, "nic-pcie-width": pci_space, "nic-port-state": rdma("ports/1/state"),
    "nic-ring-rx": "ethtool -g DEVICE", "nic-ring-tx": "ethtool -g DEVICE", "nic-subnet-manager": rdma("ports/1/sm_lid"),
    "qos-buffers": dcb("buffer"), "qos-dcbx": dcb("dcbx"), "qos-dscp-priority": dcb("app"), "qos-dscp-trust": dcb("apptrust"), "qos-ets": dcb("ets"),
    "qos-pfc": "dcb pfc show dev DEVICE, or mlnx_qos or niccli of the card's vendor", "qos-pause": "ethtool -a DEVICE", "qos-pfc-watchdog": "ethtool --get-tunable DEVICE pfc-prevention-tout",
    "qos-ecn-notification": "the vendor's tool (mlnx_qos, niccli, bnxt_setupcc.sh) for ECN of DEVICE", "qos-ecn-reaction": "the vendor's tool (mlnx_qos, niccli, bnxt_setupcc.sh) for ECN of DEVICE",
    "qos-cnp": "the vendor's tool (mlnx_qos, niccli, bnxt_setupcc.sh) for CNP of DEVICE", "qos-path": tos, "qos-path-plain": dcb("app"), "qos-roce-tos": tos,
    "slingshot-link-state": "cxi_stat -d DEVICE", "slingshot-link-speed": "cxi_stat -d DEVICE", "slingshot-link-retry": "cxi_stat -d DEVICE",
    "slingshot-loopback": "cxi_stat -d DEVICE", "slingshot-pfc": "cxi_stat -d DEVICE", "slingshot-service": "cxi_service list -d DEVICE",
    "slingshot-retry-handler": "systemctl status cxi_rh@DEVICE", "slingshot-link-flaps": "journalctl --dmesg --grep CXI_EVENT_LINK_DOWN",
    "slingshot-codewords": "cxi_stat -r -d DEVICE", "slingshot-libfabric": "fi_info -p cxi" };
def way: if startswith("machine-sysctl-") then "sysctl --all, and look for \(.[15:] | gsub("-"; "."))" else ways[.] end;

# A finding as its area has it, where need be with `missing`, the tool that its host lacks, or `reading`, the command that gave no answer.
# On hardware a missing tool leaves its check INCONCLUSIVE; of the firewall's ports the measurement itself tells.
def settled($raw):
  .missing as $tool | .device as $device | (.reading // (.id | way)) as $way | del(.missing, .reading)
  | if .status != "unknown" then .
    elif $tool != null then
      .remedy = "Install \($tool)\(package($raw; $tool) | if . == null then "" else " (\(.))" end), and check again"
      | if .id == "machine-firewall" then . else .severity = "required" end
    elif $way == null then .
    else .remedy = "As root (ansible_become: true), run \($way | gsub("DEVICE"; $device // "INTERFACE"))" end;
