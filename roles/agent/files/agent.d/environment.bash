# shellcheck shell=bash
# environment.json: what this host is. Read from /proc, /sys and the tools' own words; nothing is changed. What cannot be
# read is null.

# The first line of a file under /proc or /sys, or nothing; without a process, which costs an emulated host 80 ms.
read_line() {
  read_first "$1" || true
  printf '%s' "$LINE"
}

# The first dotted number that a command says about itself; nothing if it is not installed.
version_of() {
  command -v "$1" >/dev/null || return 0
  local said
  said=$(timeout 5 "$@" 2>&1 || true)
  [[ ! $said =~ [0-9]+(\.[0-9]+)+ ]] || printf '%s' "${BASH_REMATCH[0]}"
}

tuning_json() {
  local sys=/sys/devices/system ipv4=/proc/sys/net/ipv4
  jq -n --arg governor "$(read_line $sys/cpu/cpu0/cpufreq/scaling_governor)" \
    --arg smt "$(read_line $sys/cpu/smt/active)" \
    --arg no_turbo "$(read_line $sys/cpu/intel_pstate/no_turbo)" \
    --arg isolated "$(read_line $sys/cpu/isolated)" \
    --arg numa_balancing "$(read_line /proc/sys/kernel/numa_balancing)" \
    --arg hugepages "$(read_line /sys/kernel/mm/transparent_hugepage/enabled | sed -n 's/.*\[\(.*\)\].*/\1/p')" \
    --arg congestion "$(read_line $ipv4/tcp_congestion_control)" \
    --arg rmem "$(read_line $ipv4/tcp_rmem | tr '\t' ' ')" --arg wmem "$(read_line $ipv4/tcp_wmem | tr '\t' ' ')" \
    --arg memlock "$(ulimit -l)" \
    --arg virtual "$(grep -qw hypervisor /proc/cpuinfo && echo true || echo false)" '
    def or_null: if . == "" then null else . end;
    {governor: ($governor | or_null), smt_active: ($smt | or_null | if . then . == "1" else . end),
     turbo: ($no_turbo | or_null | if . then . == "0" else . end), isolated_cpus: ($isolated | or_null),
     numa_balancing: ($numa_balancing | or_null), transparent_hugepages: ($hugepages | or_null),
     tcp_congestion_control: ($congestion | or_null), tcp_rmem: ($rmem | or_null), tcp_wmem: ($wmem | or_null),
     memlock_limit_kib: $memlock, virtual_machine: ($virtual == "true")}'
}

interfaces_json() {
  local dir driver
  for dir in /sys/class/net/*; do
    [ -e "$dir/mtu" ] || continue
    driver=$(readlink "$dir/device/driver" || true)
    # a link that is down or has no rate answers with an error or -1
    printf '%s\t%s\t%s\t%s\t%s\n' "${dir##*/}" "$(read_line "$dir/mtu")" "$(read_line "$dir/operstate")" \
      "$(read_line "$dir/speed")" "${driver##*/}"
  done | jq -Rn '[inputs | split("\t") | {name: .[0], mtu_bytes: (.[1] | tonumber), state: .[2],
    rate_gbit_s: (if .[3] == "" or (.[3] | startswith("-")) then null else (.[3] | tonumber / 1000) end),
    driver: (if .[4] == "" then null else .[4] end)}]'
}

# RDMA devices with their drivers. The kernel's two soft ones have no hardware below but an interface beside; siw may have
# the interface's hardware below, and says what it is in its description.
rdma_json() {
  local dir driver
  for dir in /sys/class/infiniband/*; do
    [ -e "$dir/node_type" ] || continue
    driver=$(readlink "$dir/device/driver" || true)
    case $(read_line "$dir/node_type"),$(read_line "$dir/node_desc") in
      *"Software iWARP"* | *,siw*) driver=siw ;;
      *) [ -n "$driver" ] || [[ $(readlink -f "$dir") != */devices/virtual/* ]] || driver=rdma_rxe ;;
    esac
    printf '%s\t%s\t%s\n' "${dir##*/}" "${driver##*/}" "$(read_line "$dir/fw_ver")"
  done | jq -Rn 'def or_null: if . == "" then null else . end;
    [inputs | split("\t") | {name: .[0], driver: (.[1] | or_null), firmware: (.[2] | or_null)}]'
}

# Cassini NICs with their drivers and firmware; [] on a host without any.
cxi_json() {
  local dir driver
  for dir in /sys/class/cxi/*; do
    [ -d "$dir/device" ] || continue
    driver=$(readlink "$dir/device/driver" || true)
    printf '%s\t%s\t%s\n' "${dir##*/}" "${driver##*/}" "$(read_line "$dir/device/uc/qspi_blob_version")"
  done | jq -Rn 'def or_null: if . == "" then null else . end;
    [inputs | split("\t") | {name: .[0], driver: (.[1] | or_null), firmware: (.[2] | or_null)}]'
}

collect_environment() {
  write_json "$OUT/environment.json" --arg host "$HOST" --arg hostname "$(uname -n)" --arg boot_id "$(read_line /proc/sys/kernel/random/boot_id)" \
    --arg kernel "$(uname -r)" \
    --arg os "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release 2>/dev/null)" \
    --arg model "$(sed -n 's/^model name[^:]*: //p;T;q' /proc/cpuinfo)" --argjson cores "$(nproc)" \
    --argjson memory "$(awk '$1 == "MemTotal:" { printf "%.0f", $2 * 1024 }' /proc/meminfo)" \
    --arg perch "$(version_of "$ENGINE" --version)" --arg libfabric "$(version_of fi_info --version)" \
    --arg iperf "$(version_of iperf --version)" --arg iperf3 "$(version_of iperf3 --version)" \
    --arg perftest "$(version_of ib_send_lat --version)" --argjson rdma "$(rdma_json)" \
    --arg cxi_tools "$(version_of cxi_send_lat --version)" --argjson cxi "$(cxi_json)" \
    --arg jq "$(version_of jq --version)" --argjson tuning "$(tuning_json)" \
    --argjson interfaces "$(interfaces_json)" --arg collected "$(now)" '
    def or_null: if . == "" then null else . end;
    {schema: "perch.environment/1", $host, $hostname, boot_id: ($boot_id | or_null), $kernel, os: ($os | or_null),
     cpu: {model: ($model | or_null), cores: $cores}, memory_bytes: $memory,
     versions: ({$perch, $libfabric, $iperf, $iperf3, $perftest, cxi: $cxi_tools, $jq} | map_values(or_null)),
     $tuning, $interfaces, $rdma, $collected} + if $cxi == [] then {} else {$cxi} end'
}

# The idle baseline joins what is known of the host: it is measured once everyone has been told that this host is there.
collect_idle() {
  idle_json
  [ "$IDLE" = null ] ||
    write_json "$OUT/environment.json" --slurpfile known "$OUT/environment.json" --argjson idle "$IDLE" '$known[0] + {$idle}'
}
