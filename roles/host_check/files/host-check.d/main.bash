# shellcheck shell=bash
# What is read, in order, and how it is printed.

# is_active DEVICE: whether an RDMA device of sysfs has an active port; of a Cassini NIC nothing says it here
is_active() {
  local path
  [[ $1 == */infiniband/* ]] || return 0
  for path in "$1"/ports/*/state; do
    line "$path" || continue
    [[ $LINE != *ACTIVE ]] || return 0
  done
  return 1
}

# stands_for CHOICE PATH: whether a pattern, a PCI address or "active" stands for a device of sysfs
stands_for() {
  local function
  if [ "$1" = active ]; then
    is_active "$2"
  else
    function=$(readlink -f "$2/device") || function=
    # shellcheck disable=SC2053 # a pattern
    [[ ${2##*/} == $1 || ${function##*/} == $1 ]]
  fi
}

# chosen NAME...: sets CHOSEN, the names, with the devices that a choice stands for in its place
chosen() {
  local name path
  local -A seen=()
  CHOSEN=()
  for name in "$@"; do
    if [[ $name != *[*?[]* && $name != ????:??:??.? && $name != active ]]; then
      CHOSEN+=("$name")
      continue
    fi
    for path in /sys/class/infiniband/* /sys/class/cxi/*; do
      if [ -e "$path" ] && [ -z "${seen[$path]-}" ] && stands_for "$name" "$path"; then
        CHOSEN+=("${path##*/}") seen[$path]=1
      fi
    done
  done
}

# under_test NAME...: sets RDMA, the RDMA devices under test, NETDEVS, their interfaces, and PCI, their functions in sysfs
under_test() {
  local name path netdev
  local -A netdevs=() pci=()
  RDMA=()
  for name in "$@"; do
    if [ -d "/sys/class/infiniband/$name" ]; then
      RDMA+=("$name")
    elif [ -d "/sys/class/net/$name" ]; then
      netdevs[$name]=1
    fi
  done
  # what is named and not there is told apart by the judge, which knows the names, too
  if (($# == 0)); then
    for path in /sys/class/infiniband/*; do
      [ ! -d "$path" ] || RDMA+=("${path##*/}")
    done
  fi
  for name in "${RDMA[@]}"; do
    for path in "/sys/class/infiniband/$name"/ports/*/gid_attrs/ndevs/*; do
      # reading an entry without an interface is an error. By the shell itself: a table may have a thousand entries, which the
      # kernel keeps, not the driver (Linux, drivers/infiniband/core/sysfs.c, show_port_gid and cache.c).
      read -r netdev 2>/dev/null <"$path" || continue
      [ -z "$netdev" ] || netdevs[$netdev]=1
    done
    [ ! -d "/sys/class/infiniband/$name/device/net" ] || for path in "/sys/class/infiniband/$name"/device/net/*; do
      netdevs[${path##*/}]=1
    done
  done
  for path in "${RDMA[@]/#//sys/class/infiniband/}" "${!netdevs[@]}"; do
    [[ $path == /* ]] || path=/sys/class/net/$path
    path=$(readlink -f "$path/device") || continue
    [ ! -e "$path/vendor" ] || pci[$path]=1
  done
  NETDEVS=("${!netdevs[@]}") PCI=("${!pci[@]}")
}

# host_check NAME...: the whole, on standard output
host_check() {
  local name
  # shellcheck disable=SC2034 # the areas read them
  local -a CHOSEN RDMA NETDEVS PCI slingshot=()
  chosen "$@"
  set -- "${CHOSEN[@]}"
  SCRATCH=$(mktemp -d)
  trap 'rm -rf -- "$SCRATCH"; [ -z "$READER" ] || kill "$READER" 2>/dev/null' EXIT
  under_test "$@"
  for name in "$@"; do
    [[ $name != *cxi* ]] || slingshot+=("$name")
  done
  keep /proc/uptime
  ask kernel uname -sr
  gather_machine
  gather_nic
  gather_qos
  gather_gpu
  gather_slingshot "${slingshot[@]}"
  json "$(uname -n)"
  printf '{"schema": "perch.host_check/1", "hostname": %s, "collected": "%s", ' "$JSON" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
  printf '"files": {%s}, "later": {%s}, "links": {%s}, "commands": {%s}}\n' "$FILES" "$LATER" "$LINKS" "$COMMANDS"
}
