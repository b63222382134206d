# shellcheck shell=bash disable=SC2154  # RDMA and NETDEVS are main.bash's
# What a measurement needs of the machine itself: memory, processors, limits, the firewall, the clock, the kernel's log.
# keep, ask and the rest are lib.bash's.
#
# PERCH_SYSCTLS: names of sysctls that are read besides; PERCH_ASKED: the controller's clock as it asked, kept as it is.

readonly CPUS=/sys/devices/system/cpu

# put NAME TEXT: among the files, as if a file of that name held it
put() {
  pair "$1" "$2"
  FILES+="${FILES:+, }$PAIR"
}

# spread PATTERN: the file that every CPU has (cpu* in the pattern), a line for each value: "0-63,128 performance"
spread() {
  local cpu old value text=''
  local -A holders=()
  for ((cpu = 0; cpu <= LAST_CPU; cpu++)); do
    if ! line "${1/cpu\*/cpu$cpu}" || [ -z "$LINE" ]; then continue; fi
    old=${holders[$LINE]-}
    if [ -n "$old" ] && [ "${old##*[-,]}" = $((cpu - 1)) ]; then
      case ${old##*,} in *-*) old=${old%-*} ;; esac
      holders[$LINE]=$old-$cpu
    else
      holders[$LINE]=${old:+$old,}$cpu
    fi
  done
  for value in "${!holders[@]}"; do text+="${holders[$value]} $value"$'\n'; done
  [ -z "$text" ] || put "$1" "${text%$'\n'}"
}

machine_memory() {
  local nodes=/sys/devices/system/node
  keep /proc/meminfo /proc/swaps $nodes/online \
    /sys/kernel/mm/hugepages/hugepages-{2048,1048576}kB/{nr,free}_hugepages \
    $nodes/node*/hugepages/hugepages-{2048,1048576}kB/{nr,free}_hugepages $nodes/node*/distance \
    /sys/kernel/mm/transparent_hugepage/{enabled,defrag} \
    /sys/devices/system/edac/mc/mc*/{ce,ue}_count
  ask memory-modules dmidecode --type 17
}

machine_processors() {
  local state what
  LAST_CPU=0
  if line $CPUS/present && [[ ${LINE##*[-,]} =~ ^[0-9]{1,5}$ ]]; then LAST_CPU=$((10#${LINE##*[-,]})); fi
  keep $CPUS/{present,online,isolated,nohz_full} $CPUS/smt/{active,control} $CPUS/intel_pstate/{status,no_turbo} \
    $CPUS/amd_pstate/status $CPUS/cpufreq/boost $CPUS/cpuidle/{current_driver,current_governor} \
    $CPUS/vulnerabilities/* $CPUS/intel_uncore_frequency/*/{min,max}_freq_khz
  for what in scaling_driver scaling_governor energy_performance_preference scaling_min_freq scaling_max_freq \
    cpuinfo_max_freq boost; do
    spread "$CPUS/cpu*/cpufreq/$what"
  done
  # what these processors run at now; on older kernels each takes 20 ms to measure
  keep $CPUS/cpu[0-7]/cpufreq/scaling_cur_freq
  spread "$CPUS/cpu*/power/energy_perf_bias"
  spread "$CPUS/cpu*/power/pm_qos_resume_latency_us"
  spread "$CPUS/cpu*/thermal_throttle/package_throttle_count"
  for state in "$CPUS"/cpu0/cpuidle/state*; do
    for what in name latency disable; do spread "$CPUS/cpu*/cpuidle/${state##*/}/$what"; done
  done
  # the first processor's part of /proc/cpuinfo; all of it is a megabyte on a large machine
  # shellcheck disable=SC2016  # for the inner shell
  ask cpu-model bash -c 'while read -r line && [ -n "$line" ]; do echo "$line"; done </proc/cpuinfo'
  # the latency that programs and tuned ask for: a number of four bytes; who opens the file and writes nothing asks for nothing
  ask idle-latency od --address-radix=n --format=d4 --read-bytes=4 /dev/cpu_dma_latency
}

# Which of the programs that matter run, and what irqbalance was told. Only its own words of the environment are kept.
machine_programs() {
  local dir name word said found=''
  for dir in /proc/[0-9]*; do
    line "$dir/comm" || continue
    name=$LINE
    case $name in
      irqbalance)
        said=''
        while read -r -d '' word; do
          case $word in IRQBALANCE_* | -*) said+=" $word" ;; esac
        done < <(cat "$dir/cmdline" "$dir/environ" 2>/dev/null)
        found+="${dir##*/} $name$said"$'\n'
        ;;
      tuned)
        found+="${dir##*/} tuned"$'\n'
        ask tuned-verify tuned-adm verify
        ;;
      chronyd | ntpd | ptp4l | systemd-timesyn | firewalld | opensm) found+="${dir##*/} $name"$'\n' ;;
      *) [ "$dir" != /proc/1 ] || found+="1 $name"$'\n' ;; # its line shows that others' processes can be seen
    esac
  done
  put '/proc/*/comm' "${found%$'\n'}"
  keep /etc/tuned/{active_profile,profile_mode} /etc/{default,sysconfig}/irqbalance
}

machine_limits() {
  # of a child of this script, whose limits and capabilities are those of the agent: both come the same way
  keep /proc/self/{limits,status} /etc/security/limits.conf /etc/security/limits.d/*.conf
  ask user id --user --name
  ask groups id --groups --name
  ask service-limits systemctl show --property=DefaultLimitMEMLOCK --property=DefaultLimitMEMLOCKSoft
}

# sysctl_file NAME: its file, in SYSCTL_FILE. As sysctl(8) has it: the first separator tells whether dots or slashes part the words.
sysctl_file() {
  local separators=${1//[!.\/]/}
  SYSCTL_FILE=$1
  [ "${separators:0:1}" = / ] || SYSCTL_FILE=$(tr ./ /. <<<"$1")
  SYSCTL_FILE=/proc/sys/$SYSCTL_FILE
}

# machine_pkeys DEVICE: the partition keys of its InfiniBand ports that are in use; the table has room for hundreds
machine_pkeys() {
  local port path
  for port in "$1"/ports/*; do
    if ! line "$port/link_layer" || [ "$LINE" != InfiniBand ]; then continue; fi
    for path in "$port"/pkeys/*; do
      if line "$path" && [ "$LINE" != 0x0000 ]; then keep "$path"; fi
    done
  done
}

# machine_virtual DEVICE: what its virtual functions may do, as its ports say
machine_virtual() {
  local net
  if ! line "$1/device/sriov_numvfs" || [ "$LINE" = 0 ]; then return 0; fi
  for net in "$1"/device/net/*; do
    # their representors are there, too (nic_port)
    if [ ! -e "$net" ] || { line "$net/phys_port_name" && [[ ! $LINE =~ ^p[0-9] ]]; }; then continue; fi
    ask "virtual ${net##*/}" ip -j link show dev "${net##*/}"
  done
}

machine_kernel() {
  local name group device
  local -a sysctls=()
  for name in ${PERCH_SYSCTLS-}; do
    sysctl_file "$name"
    case $SYSCTL_FILE in */../*) ;; *) sysctls+=("$SYSCTL_FILE") ;; esac
  done
  keep /proc/uptime /proc/cmdline /proc/loadavg /proc/modules /etc/os-release \
    /proc/sys/kernel/{ostype,osrelease,version,numa_balancing,nmi_watchdog} /proc/sys/vm/{swappiness,zone_reclaim_mode} \
    /proc/sys/net/core/{rmem_max,wmem_max,netdev_max_backlog,default_qdisc} \
    /proc/sys/net/ipv4/{tcp_rmem,tcp_wmem,tcp_congestion_control} "${sysctls[@]}" \
    /sys/class/dmi/id/{sys_vendor,product_name,bios_version,bios_date}
  # who answers for whom in the network: a table that is full drops packets to hosts that it does not know
  keep /proc/sys/net/ipv{4,6}/neigh/default/gc_thresh3 /sys/module/ib_core/parameters/netns_mode
  for name in /sys/class/iommu/*; do keep_link "$name"; done
  keep /sys/class/infiniband_verbs/abi_version /sys/class/misc/rdma_cm/abi_version
  for device in "${RDMA[@]}"; do
    name=/sys/class/infiniband/$device
    keep "$name/node_type" "$name/parent" "$name/device/numa_node"
    keep_link "$name/device"
    keep_link "$name/device/driver"
    keep_link "$name/device/iommu_group"
    keep "$name/device/driver/module/version" "$name"/device/sriov_{num,total}vfs
    machine_pkeys "$name"
    machine_virtual "$name"
    group=$(readlink "$name/device/iommu_group") && keep "/sys/kernel/iommu_groups/${group##*/}/type"
  done
  # what there is, and a mark where this user may read and write it
  # shellcheck disable=SC2016  # for the inner shell
  ask rdma-nodes bash -c 'for node in /dev/infiniband/*; do
      [ -e "$node" ] || continue
      if [ -r "$node" ] && [ -w "$node" ]; then echo "$node rw"; else echo "$node"; fi
    done'
}

machine_packages() {
  # shellcheck disable=SC2016  # dpkg-query's own variables
  ask packages-dpkg dpkg-query --show --showformat='${Package} ${Version}\n' rdma-core libibverbs1 ibverbs-providers \
    librdmacm1 libfabric1 perftest
  ask packages-rpm rpm --query --queryformat '%{NAME} %{VERSION}-%{RELEASE}\n' rdma-core libibverbs librdmacm libfabric perftest
  ask ofed ofed_info -s
}

machine_firewall() {
  ask nft nft --json list ruleset
  ask iptables iptables-save
  keep /proc/net/ip_tables_names /etc/ufw/ufw.conf
}

machine_clock() {
  [ -z "${PERCH_ASKED-}" ] || put PERCH_ASKED "$PERCH_ASKED"
  ask chrony chronyc -c tracking
  ask timedatectl timedatectl show
  keep /sys/devices/system/clocksource/clocksource0/current_clocksource
}

# The kernel's log, from the journal or else from the kernel: its source and first line, then the newest lines of each
# kind that matters. It is read once; a journal may hold a year. The words are those of drivers/pci/pcie/aer.c, of mce
# and EDAC, of the network drivers ("NIC Link is Down", mlx5's "Link down"), and those that machine_log_drivers.jq names.
machine_log() {
  local name
  for name in "${NETDEVS[@]}"; do keep "/sys/class/net/$name/carrier_down_count"; done
  # shellcheck disable=SC2016  # for the inner shell
  ask kernel-log-lines bash -c 'set -o pipefail
    command -v grep >/dev/null || exit 127
    kinds=("AER: |PCIe Bus Error|DPC:? containment event" "Hardware Error|mce: .*(error|Machine check)|EDAC .*(CE|UE) |Memory failure: 0x"
      "[Ll]ink (is )?([Dd]own|DOWN)"
      "NVRM: Xid|amdgpu.* [1-9][0-9]* (new )?(un)?correctable hardware errors" "NETDEV WATCHDOG: " "task .* blocked for more than "
      "mlx5_core.*([Hh]ealth (compromised|issue|recovery)|handling bad device|synd|Fatal error|timeout\. Will|[Tt]emperature|Port module event(\[error\]|.*unplugged)|insufficient power)"
      "bnxt_.*([Ff]irmware (.*reset event|(is )?not responding|reset aborted)|TX timeout|FW STALL|thermal threshold|SFP\+ module)"
      "(ice|irdma) .*(HMC Error|abnormal ae_id|[Rr]eset requested|Rebuild failed|Cannot start link)"
      "ionic .*(FW (heartbeat stalled|Down)|DEVCMD .* timeout)" "cxi_(core|ss1) .*C_EC_(CRIT|UNCOR)"
      "DMAR: \[|IO_PAGE_FAULT|arm-smmu.*(event 0x10|context fault)")
    any=$(IFS="|" && echo "${kinds[*]}")
    # the first line, and those of any kind: a log may have a million others
    sift() { IFS= read -r first || return 0; printf "%s\n" "$first"; grep -E "$any" || [ $? -eq 1 ]; }
    source=journal
    log=$(journalctl --dmesg --boot --output=short-unix --no-pager --quiet 2>/dev/null | sift) && [ -n "$log" ] || {
      source=dmesg
      log=$(dmesg | sift) || exit
    }
    [ -n "$log" ] || exit 3
    echo "source $source"
    head -n 1 <<<"$log"
    for kind in "${kinds[@]}"; do grep -E "$kind" <<<"$log" | tail -n 80 || true; done'
}

gather_machine() {
  ask clock date --utc +%s.%N # first, as near as can be to the controller's clock
  machine_memory
  machine_processors
  machine_programs
  machine_limits
  machine_kernel
  machine_packages
  machine_firewall
  machine_clock
  machine_log
}
