# shellcheck shell=bash
# The NICs under test: ports, addresses, firmware and driver, their place on PCIe, interrupts, rings, errors.

# nic_functions LINK: the PCI functions in a sysfs link's target, the NIC's own last, the bridges above it before.
nic_functions() {
  local target part
  target=$(readlink "$1" 2>/dev/null) || return 0
  while IFS= read -r -d / part; do
    [[ ! $part =~ ^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$ ]] || printf '%s\n' "$part"
  done <<<"$target/"
}

# The entries of a port's GID table that are in use; the table has room for hundreds, and is the kernel's own (under_test).
nic_gids() {
  local port=$1 path gid
  for path in "$port"/gids/*; do
    IFS= read -r gid 2>/dev/null <"$path" || continue
    [[ $gid == *[1-9a-f]* ]] || continue
    keep "$path" "$port/gid_attrs/types/${path##*/}" "$port/gid_attrs/ndevs/${path##*/}"
  done
}

# nic_rdma DEVICE
nic_rdma() {
  local dir=/sys/class/infiniband/$1 port path asked=$1
  # a virtual function's link is that of its physical one
  for path in "$dir"/device/physfn/infiniband/*; do [ ! -e "$path" ] || asked=${path##*/}; done
  keep_link "$dir"
  keep "$dir"/{fw_ver,hca_type,board_id,node_guid}
  ask "verbs $1" ibv_devinfo -d "$1"
  for port in "$dir"/ports/*; do
    keep "$port"/{state,phys_state,rate,link_layer,lid,sm_lid} "$port"/counters/*
    nic_gids "$port"
    # what the port could do is told by its own management agent alone: a request that does not leave the host
    if line "$port/link_layer" && [ "$LINE" = InfiniBand ]; then
      ask "portinfo $1/${port##*/}" smpquery -C "$asked" -P "${port##*/}" -D portinfo 0
      # of the switch, one hop away: one request each, whatever the fabric's size
      ask "neighbour $1/${port##*/}" smpquery -C "$asked" -P "${port##*/}" -D nodeinfo "0,${port##*/}"
      ask "neighbour-name $1/${port##*/}" smpquery -C "$asked" -P "${port##*/}" -D nodedesc "0,${port##*/}"
    fi
  done
}

# nic_ethtool NAME OPTION INTERFACE: as JSON where this ethtool has it for the option, else as text
nic_ethtool() {
  if command -v ethtool >/dev/null; then
    # shellcheck disable=SC2016  # the other shell's own variables
    ask "$1" bash -c 'out=$(ethtool --json "$@" 2>/dev/null) && printf "%s\n" "$out" || exec ethtool "$@"' ethtool "$2" "$3"
  else
    ask "$1" ethtool "$2" "$3"
  fi
}

# nic_port INTERFACE: itself, or of a virtual function the interface of its physical one, in PORT; keeps which it is
nic_port() {
  local path own=''
  PORT=$1
  ! line "/sys/class/net/$1/dev_port" || own=$LINE
  for path in "/sys/class/net/$1"/device/physfn/net/*; do
    [ -e "$path" ] || continue
    # virtual functions' representors are there, too, as "pf0vf1" (Linux, Documentation/networking/switchdev.rst)
    if line "$path/phys_port_name" && [[ ! $LINE =~ ^p[0-9] ]]; then continue; fi
    # a function may have several ports, by number (Linux, Documentation/ABI/testing/sysfs-class-net)
    if [ "$PORT" = "$1" ] || { line "$path/dev_port" && [ "$LINE" = "$own" ]; }; then PORT=${path##*/}; fi
  done
  if [ "$PORT" = "$1" ] || is_kept link "/sys/class/net/$1/device/physfn/net"; then return 0; fi
  pair "/sys/class/net/$1/device/physfn/net" "$PORT"
  LINKS+="${LINKS:+, }$PAIR"
}

# nic_carriers INTERFACE: the ports of a bond's links, of a VLAN's parent, of those of a bond below a VLAN, else its own, in
# CARRIERS; keeps the links to them
nic_carriers() {
  local lower PORT
  local -a left=("$1") below
  CARRIERS=()
  while [ ${#left[@]} -gt 0 ]; do
    below=()
    for lower in "/sys/class/net/${left[0]}"/lower_*; do
      [ ! -e "$lower" ] || { keep_link "$lower" && below+=("${lower##*/lower_}"); }
    done
    [ ${#below[@]} -gt 0 ] || { nic_port "${left[0]}" && CARRIERS+=("$PORT"); }
    left=("${left[@]:1}" "${below[@]}")
  done
}

# nic_fec NAME INTERFACE: the mode of FEC, and its counters where this ethtool has them (5.13)
nic_fec() {
  # shellcheck disable=SC2016  # the other shell's own variables
  if command -v ethtool >/dev/null; then
    ask "$1 $2" bash -c 'for how in "-I --json" -I; do
        ! out=$(ethtool $how --show-fec "$1" 2>/dev/null) || { printf "%s\n" "$out"; exit; }
      done
      exec ethtool --show-fec "$1"' ethtool "$2"
  else
    ask "$1 $2" ethtool --show-fec "$2"
  fi
}

# nic_interface NAME
nic_interface() {
  local dir=/sys/class/net/$1 lower
  local -a CARRIERS
  keep_link "$dir"
  for lower in "$dir"/lower_*; do
    keep "$lower"/{operstate,speed} # of a bond, a VLAN: what carries it
  done
  keep "$dir"/{mtu,operstate,carrier,speed,duplex,address,carrier_changes,carrier_down_count,bonding/mode} "$dir"/statistics/* \
    /proc/sys/net/ipv4/conf/"$1"/{arp_ignore,arp_announce,rp_filter}
  ask "address $1" ip -j address show dev "$1"
  ask "driver $1" ethtool -i "$1"
  ask "settings $1" ethtool "$1"
  nic_ethtool "rings $1" -g "$1"
  nic_ethtool "coalescing $1" -c "$1"
  nic_ethtool "features $1" -k "$1"
  nic_carriers "$1"
  for lower in "${CARRIERS[@]}"; do
    nic_fec fec "$lower"
    ask "module $lower" ethtool -m "$lower"
  done
}

# nic_interrupts FUNCTION: each interrupt's name and the processors that it goes to. The name is a directory beside the
# list, and so a part of the path that head prints before it.
nic_interrupts() {
  local irq action
  local -a lists=()
  for irq in "/sys/bus/pci/devices/$1"/msi_irqs/*; do
    for action in /proc/irq/"${irq##*/}"/*/; do
      [ ! -d "$action" ] || lists+=("$action../effective_affinity_list")
    done
  done
  [ ${#lists[@]} -eq 0 ] || ask "interrupts $1" head -v -n 1 "${lists[@]}"
}

# nic_pci FUNCTION: of a NIC or of a bridge above one
nic_pci() {
  local dir=/sys/bus/pci/devices/$1
  keep_link "$dir"
  keep_link "$dir/driver"
  keep_link "$dir/physfn"
  keep "$dir"/{vendor,device,subsystem_vendor,subsystem_device,numa_node,local_cpulist} \
    "$dir"/{current_link_speed,current_link_width,max_link_speed,max_link_width} \
    "$dir"/aer_dev_{fatal,nonfatal,correctable}
  # without root only the first 64 bytes, in which no capability lies; equal lines are printed once
  ask "pci $1" od -A x -t x1 "$dir/config"
}

# What is kept of mstconfig's hundreds of lines
readonly NIC_SETTINGS='^[*]?[[:space:]]*(RO[[:space:]]+)?(Configurations:|ADVANCED_PCI_SETTINGS|ATS_ENABLED|CQE_COMPRESSION|LINK_TYPE_P[0-9]|MAX_ACC_OUT_READ|NUM_OF_VFS|PCI_WR_ORDERING|RDMA_SELECTIVE_REPEAT_EN|ROCE_CC_[A-Z0-9_]+|ROCE_CONTROL|SRIOV_EN)[[:space:]]'

# nic_config FUNCTION: the settings of an NVIDIA card's firmware, by mstflint or by NVIDIA's own tools of other names
nic_config() {
  local driver kind=mst
  driver=$(readlink "/sys/bus/pci/devices/$1/driver") || return 0
  if [ "${driver##*/}" != mlx5_core ] || [ -e "/sys/bus/pci/devices/$1/physfn" ]; then return 0; fi
  if ! command -v mstconfig >/dev/null && command -v mlxconfig >/dev/null; then kind=mlx; fi
  if command -v "${kind}config" >/dev/null; then
    # grep, since the shell takes 80 ms for these lines; without it nothing is left, which is INCONCLUSIVE
    # shellcheck disable=SC2016  # the inner shell's
    ask "config $1" bash -c 'set -o pipefail
      "$0" -d "$1" -e q | { grep -E "$2" || true; }' "${kind}config" "$1" "$NIC_SETTINGS"
  else
    ask "config $1" mstconfig -d "$1" -e q
  fi
  ask "roce-accl $1" "${kind}reg" -d "$1" --reg_name ROCE_ACCL --get
  # bit errors, by MFT's tool or by mstflint's open one, whose answer is the same (Mellanox/mstflint, mlxlink/)
  kind=mst
  ! command -v mlxlink >/dev/null || kind=mlx
  ask "link $1" "${kind}link" -d "$1" -c --json
}

# nic_errors INTERFACE...: what counts errors, of RDMA, too. Read at the beginning and at the end, so that it shows if a
# link is failing at this moment.
nic_errors() {
  local name
  for name in "${RDMA[@]}"; do
    printf '%s\n' "/sys/class/infiniband/$name"/ports/*/counters/*
  done
  for name in "$@"; do
    printf '%s\n' "/sys/class/net/$name"/statistics/*error*
  done
}

gather_nic() {
  local name link function
  local -a CARRIERS
  local -A own=() all=() interfaces=()
  local -a functions errors cassini=()
  for name in "${NETDEVS[@]}"; do interfaces[$name]=1; done
  # a Cassini NIC is no RDMA device; its links and services are slingshot.bash's, its place in the machine is as any other's
  for link in /sys/class/cxi/*; do
    [ -d "$link/device" ] || continue
    keep_link "$link"
    cassini+=("$link")
    for name in "$link"/device/net/*; do
      [ ! -e "$name" ] || interfaces[${name##*/}]=1
    done
  done
  for name in "${RDMA[@]}"; do nic_rdma "$name"; done
  for name in "${!interfaces[@]}"; do nic_interface "$name"; done
  for link in "${RDMA[@]/#//sys/class/infiniband/}" "${cassini[@]}" "${!interfaces[@]}"; do
    [[ $link == /* ]] || link=/sys/class/net/$link
    for name in "$link" "$link"/lower_*; do
      mapfile -t functions < <(nic_functions "$name")
      [ ${#functions[@]} -gt 0 ] || continue
      own[${functions[-1]}]=1
      # the link and its settings are those of the physical function, of which this may be a virtual one
      function=$(readlink "/sys/bus/pci/devices/${functions[-1]}/physfn") && functions+=("${function##*/}")
      for function in "${functions[@]}"; do all[$function]=1; done
    done
  done
  for function in "${!all[@]}"; do
    nic_pci "$function"
    nic_config "$function"
  done
  ask devlink-health devlink -j health show
  ask devlink-info devlink -j dev info
  ask devlink-param devlink -j dev param show
  for link in /sys/bus/auxiliary/devices/mlx5_core.*; do keep_link "$link"; done # newer drivers' ports are below these
  for function in "${!own[@]}"; do nic_interrupts "$function"; done
  keep /sys/devices/system/node/online /proc/sys/kernel/osrelease /proc/sys/net/ipv4/conf/all/{arp_ignore,arp_announce,rp_filter} \
    /sys/module/{mlx5_core,mlx5_ib,mlx_compat,bnxt_en,bnxt_re,ice,irdma,ib_core}/version
  ask ofed ofed_info -s
  ask addresses ip -j -4 address
  ask lldp lldpctl -f json
  mapfile -t errors < <(nic_errors "${!interfaces[@]}")
  keep_later "${errors[@]}"
  for name in "${!interfaces[@]}"; do
    nic_carriers "$name"
    for link in "${CARRIERS[@]}"; do nic_fec fec-later "$link"; done
  done
}
