# shellcheck shell=bash
# The counters of the devices that a flow concerns, before and after it: what shows that its bytes took the path that
# they claim. Only read here, as text; the judge makes differences of them. A hundred files are read within 3 ms, as
# none of them costs a process.

readonly SYS_NET=/sys/class/net SYS_RDMA=/sys/class/infiniband SYS_CXI=/sys/class/cxi

# A Cassini NIC has some 1,900 counters, each a read of the card: those of payload, errors, pauses and replays are read.
# Its retry handler keeps its own under /run/cxi. Both by HewlettPackard/shs-docs, shs-libcxi and shs-cxi-driver.
readonly CASSINI_COUNTERS=(hni_sts_{tx,rx}_ok_octets hni_pcs_{good,corrected,uncorrected}_cw hni_{tx,rx}_paused_{0..7}
  hni_llr_{tx,rx}_replay_event)
readonly HANDLER_COUNTERS=(nacks spt_timeouts sct_timeouts tct_timeouts pkts_cancelled_o pkts_cancelled_u)

# Milliseconds until a Cassini counter shows what has passed (shs-libcxi, utils/cxi_stat.c waits as long).
readonly CASSINI_LIFESPAN=100

# Seconds of the idle baseline: what the devices carry while nothing is measured.
readonly IDLE_SECONDS=1

# The kernel answers reads of hw_counters from a cache that lives so long, in ms (RDMA_HW_STATS_DEFAULT_LIFESPAN in
# drivers/infiniband/core/sysfs.c); a device whose lifespan can be read says its own.
readonly DEFAULT_LIFESPAN=10

# What a card calls pauses, discards and marks, in all or of one priority (ethtool -S); the kernel has no common place for them.
readonly CARD_COUNTERS='^([rt]x_[a-z0-9_]*(pause|xoff|pfc_ena_frames|discard)[a-z0-9_.]*|link_xo(n|ff)_[rt]x\.nic|link_down_events_phy|rx_(crc_errors|symbol_err)_phy)$'

# Names go into JSON as they are; an interface with another one is not counted.
readonly SAFE_NAME='^[A-Za-z0-9_.:@-]+$'

# Interfaces by address, and "device/port" of RDMA -> interface under it; neither changes often, and both cost a process.
declare -A ROUTES=() UNDER=()

# read_first FILE: its first line in LINE; false where there is none, or where the driver answers with an error. Not
# every driver ends its line.
read_first() {
  LINE=''
  { read -r LINE <"$1" || [ -n "$LINE" ]; } 2>/dev/null
}

# counters_of DIR...: every file there that holds a count, as members of a JSON object in COUNTERS. Most of what a flow costs is spent here, so
# files are read without read_first's redirections, and held against patterns, which bash need not compile each time as it does a regex.
# A name that an earlier directory has is left out: JSON with a key twice says two things.
counters_of() {
  local dir file name
  COUNTERS=''
  for dir in "$@"; do
    for file in "$dir"/*; do
      name=${file##*/} LINE=''
      case $name in lifespan | *[!A-Za-z0-9_.-]*) continue ;; esac
      # not every driver ends its line
      if [ ! -f "$file" ] || { [ "$dir" != "$1" ] && [ -e "$1/$name" ]; } || ! { read -r LINE <"$file" || [ -n "$LINE" ]; }; then continue; fi
      case $LINE in '' | *[!0-9]*) continue ;; esac
      [ ${#LINE} -gt 20 ] || COUNTERS+="${COUNTERS:+, }\"$name\": \"$LINE\""
    done
  done 2>/dev/null # a driver may answer with an error
}

# cassini_counters NAME: the counters of a Cassini NIC and of its retry handler, as members of a JSON object in COUNTERS.
# Telemetry says "value@seconds.nanoseconds".
cassini_counters() {
  local file
  COUNTERS=''
  for file in "${CASSINI_COUNTERS[@]/#/$SYS_CXI/$1/device/telemetry/}" "${HANDLER_COUNTERS[@]/#//run/cxi/$1/}"; do
    read_first "$file" || continue
    LINE=${LINE%%@*}
    [[ $LINE =~ ^[0-9]{1,20}$ ]] || continue
    COUNTERS+="${COUNTERS:+, }\"${file##*/}\": \"$LINE\""
  done
}

# link_counters DIR: how often the link of an interface went down, and its PCI device's errors, added to COUNTERS. The kernel
# counts errors by kind and ends each list with its sum (Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats). A
# virtual interface has no device.
link_counters() {
  local kind word value
  ! read_first "$1/carrier_down_count" || [[ ! $LINE =~ ^[0-9]{1,20}$ ]] ||
    COUNTERS+="${COUNTERS:+, }\"carrier_down_count\": \"$LINE\""
  [ -e "$1/device" ] || return 0
  for kind in correctable nonfatal fatal; do
    [ -r "$1/device/aer_dev_$kind" ] || continue
    while read -r word value; do
      [[ $word != TOTAL_ERR_* || ! $value =~ ^[0-9]{1,20}$ ]] || COUNTERS+="${COUNTERS:+, }\"aer_$kind\": \"$value\""
    done <"$1/device/aer_dev_$kind"
  done
}

# card_counters NAME: what a card counts of flow control, added to COUNTERS; one process, and none for a virtual interface
card_counters() {
  local name value
  local -A seen=() # some drivers name two counters alike
  [ -e "$SYS_NET/$1/device" ] && command -v ethtool >/dev/null || return 0
  while IFS=': ' read -r name value; do
    [[ $name =~ $CARD_COUNTERS && $value =~ ^[0-9]{1,20}$ && -z ${seen[$name]:-} ]] || continue
    seen[$name]=1
    COUNTERS+="${COUNTERS:+, }\"$name\": \"$value\""
  done < <(timeout 2 ethtool -S "$1" 2>/dev/null || true)
}

# tcp_retransmissions: segments that this host has sent again since it started (/proc/net/snmp, RFC 4022), in
# RETRANSMISSIONS. For tools and providers that do not count their sockets'; other traffic of the host is in it.
tcp_retransmissions() {
  local -a names=() values
  local i
  RETRANSMISSIONS=''
  while read -ra values; do
    [ "${values[0]}" = Tcp: ] || continue
    for i in "${!names[@]}"; do
      [ "${names[i]}" != RetransSegs ] || RETRANSMISSIONS=${values[i]}
    done
    names=("${values[@]}")
  done </proc/net/snmp 2>/dev/null
}

# resolve NAME: an address of it, or nothing; an address is its own.
resolve() {
  if [[ $1 =~ ^[0-9.]+$ || $1 = *:* ]]; then
    echo "$1"
  else
    getent ahosts "$1" | sed -n '1s/ .*//p' || true
  fi
}

# route_to ADDRESS: the interface through which this host reaches it, in INTERFACE; empty where nobody says.
route_to() {
  if [ -z "${ROUTES[$1]+known}" ]; then
    ROUTES[$1]=$(ip -j route get "$(resolve "$1")" from "$(resolve "$OWN_ADDRESS")" 2>/dev/null | jq -r '[.[].dev // empty][0] // ""' || true)
  fi
  INTERFACE=${ROUTES[$1]}
  [[ $INTERFACE =~ $SAFE_NAME ]] || INTERFACE=''
}

# The interface that holds this host's own address: the one that a flow claims to use. 127.0.0.2 stands on no list.
own_interface() {
  local address
  address=$(resolve "$OWN_ADDRESS")
  case $address in
    127.* | ::1) OWN_INTERFACE=lo ;;
    *) OWN_INTERFACE=$(ip -j addr show to "$address" 2>/dev/null | jq -r '[.[].ifname // empty][0] // ""' || true) ;;
  esac
  [[ $OWN_INTERFACE =~ $SAFE_NAME ]] || OWN_INTERFACE=''
}

# The interface under a port of an RDMA device: rxe and siw name their parent, a card its port's GIDs; InfiniBand's
# lies beside the device. netdev_under DIRECTORY KEY: UNDER keeps it.
netdev_under() {
  local port=$1 device=${1%/ports/*} file
  for file in "$device/parent" "$port"/gid_attrs/ndevs/{0,1,2,3}; do
    ! read_first "$file" || break
  done
  if [ -z "$LINE" ]; then
    for file in "$device"/device/net/*; do
      [ ! -e "$file" ] || LINE=${file##*/}
    done
  fi
  [[ $LINE =~ $SAFE_NAME ]] || LINE=''
  UNDER[$2]=$LINE
}

# cassini_for: of the names in the caller's `wanted`, the Cassini NICs and those under a wanted interface, into
# CASSINI_NICS; what lies under them is wanted, too.
cassini_for() {
  local dir name under
  CASSINI_NICS=()
  for dir in "$SYS_CXI"/*; do
    name=${dir##*/}
    if [ ! -d "$dir/device" ] || [[ ! $name =~ $SAFE_NAME ]]; then continue; fi
    UNDER[$name]=''
    for under in "$dir"/device/net/*; do
      [ ! -e "$under" ] || [[ ! ${under##*/} =~ $SAFE_NAME ]] || UNDER[$name]=${under##*/}
    done
    [ -n "${wanted[$name]:-}" ] || [ -n "${wanted[${UNDER[$name]:--}]:-}" ] || continue
    CASSINI_NICS+=("$name")
    [ -z "${UNDER[$name]}" ] || wanted[${UNDER[$name]}]=1
  done
}

# devices_for INTERFACE-OR-DEVICE...: those that exist, with the RDMA devices over the interfaces and the interfaces
# under the RDMA devices, into NETDEVS, RDMA_PORTS and CASSINI_NICS.
devices_for() {
  local -A wanted=() found=() ports=()
  local name port key
  for name in "$@"; do
    [[ ! $name =~ $SAFE_NAME ]] || wanted[$name]=1
  done
  UNDER=()
  cassini_for
  for port in "$SYS_RDMA"/*/ports/*; do
    [ -d "$port" ] || continue
    key=${port#"$SYS_RDMA"/} && key=${key/\/ports\///}
    netdev_under "$port" "$key"
    if [ -n "${wanted[${key%/*}]:-}" ] || [ -n "${wanted[${UNDER[$key]:--}]:-}" ]; then
      ports[$key]=1
      [ -z "${UNDER[$key]}" ] || wanted[${UNDER[$key]}]=1
    fi
  done
  for name in "${!wanted[@]}"; do
    [ ! -d "$SYS_NET/$name/statistics" ] || found[$name]=1
  done
  NETDEVS=("${!found[@]}") RDMA_PORTS=("${!ports[@]}")
}

# all_devices: the interfaces and devices that the flows of this host concern, into ALL_DEVICES: of the own address, of the way to each
# peer, and what the plan names.
all_devices() {
  local address device
  ALL_DEVICES=("$OWN_INTERFACE")
  while read -r address; do
    route_to "$address"
    ALL_DEVICES+=("$INTERFACE")
  done < <(printf '%s\n' "${FLOWS[@]}" | jq -r '.peer_address' | sort -u)
  while read -r device; do
    ALL_DEVICES+=("$device")
  done < <(printf '%s\n' "${FLOWS[@]}" | jq -r '.devices[]' | sort -u)
}

# reading: the counters of NETDEVS, RDMA_PORTS and CASSINI_NICS now, as members of a JSON object in READING
reading() {
  local name net='' rdma='' cxi='' host=''
  for name in "${NETDEVS[@]}"; do
    counters_of "$SYS_NET/$name/statistics"
    link_counters "$SYS_NET/$name"
    card_counters "$name"
    net+="${net:+, }\"$name\": {$COUNTERS}"
  done
  for name in "${RDMA_PORTS[@]}"; do
    counters_of "$SYS_RDMA/${name%/*}/ports/${name#*/}"/{counters,hw_counters}
    rdma+="${rdma:+, }\"$name\": {\"netdev\": \"${UNDER[$name]:-}\", \"counters\": {$COUNTERS}}"
  done
  for name in "${CASSINI_NICS[@]}"; do
    cassini_counters "$name"
    cxi+="${cxi:+, }\"$name\": {\"netdev\": \"${UNDER[$name]:-}\", \"counters\": {$COUNTERS}}"
  done
  [ -z "$cxi" ] || cxi=", \"cxi\": {$cxi}"
  tcp_retransmissions
  [ -z "$RETRANSMISSIONS" ] || host="\"TcpRetransSegs\": \"$RETRANSMISSIONS\""
  READING="\"host\": {$host}, \"netdev\": {$net}, \"rdma\": {$rdma}$cxi"
}

# snapshot: a reading with its time, as JSON in SNAPSHOT
snapshot() {
  local time=${EPOCHREALTIME/,/.}
  reading
  SNAPSHOT="{\"time_s\": \"$time\", $READING}"
}

# Until what the cache of hw_counters holds is younger than the flow's end.
wait_lifespan() {
  local name most=0
  [ ${#CASSINI_NICS[@]} -eq 0 ] || most=$CASSINI_LIFESPAN
  for name in "${RDMA_PORTS[@]}"; do
    read_first "$SYS_RDMA/${name%/*}/ports/${name#*/}/hw_counters/lifespan" || LINE=$DEFAULT_LIFESPAN
    [[ ! $LINE =~ ^[0-9]{1,5}$ ]] || [ "$LINE" -le "$most" ] || most=$LINE
  done
  [ "$most" -eq 0 ] || sleep "$((most / 1000)).$(printf '%03d' $((most % 1000)))"
}

# counters_before: of the flow that is set. Before a server meets its client, and after a client has met its server, so
# that no byte of the flow passes uncounted on either.
counters_before() {
  route_to "$FLOW_PEER_ADDRESS"
  devices_for "$OWN_INTERFACE" "$INTERFACE" "${FLOW_DEVICES[@]}"
  snapshot
  FLOW_BEFORE=$SNAPSHOT
}

# counters_after: the flow's counters in COUNTERS, null where it never began
counters_after() {
  if [ -z "$FLOW_BEFORE" ]; then
    COUNTERS=null
    return
  fi
  wait_lifespan
  snapshot
  route_to "$FLOW_PEER_ADDRESS"
  COUNTERS="{\"address_interface\": \"$OWN_INTERFACE\", \"route_interface\": \"$INTERFACE\", \"before\": $FLOW_BEFORE, \"after\": $SNAPSHOT}"
}

# idle_json: what this host's devices carry while it measures nothing, in IDLE; null for a loopback address, where
# counters prove nothing. Taken before the first flow; peers may measure already, but not with this host.
idle_json() {
  local before
  IDLE=null
  [ "$OWN_INTERFACE" != lo ] || return 0
  all_devices
  devices_for "${ALL_DEVICES[@]}"
  snapshot
  before=$SNAPSHOT
  sleep "$IDLE_SECONDS" # a measurement of nothing: it has no event to wait for
  snapshot
  IDLE="{\"before\": $before, \"after\": $SNAPSHOT}"
}
