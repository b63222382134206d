# shellcheck shell=bash disable=SC2154  # NETDEVS and RDMA: under_test sets them
# Flow control, classes and congestion notification of the interfaces under test and of what carries them. Nothing is made to
# be read: files under configfs are there only while somebody keeps a directory for the device (cma_roce_tos(8), bnxt_re).

# What ethtool -S counts of pauses, discards and storms. All of it can be longer than what is kept.
readonly QOS_COUNTERS='pause|pfc|prio|xon|xoff|discard|storm|out_of_buffer|congest'

# qos_counters NETDEV: the lines of ethtool -S that are asked for here
qos_counters() {
  # shellcheck disable=SC2016  # the inner shell's
  ask "ethtool-qos-stats $1" bash -c 'set -o pipefail
    ethtool -S "$1" | while IFS= read -r line; do [[ ! $line =~ $2 ]] || echo "$line"; done' counters "$1" "$QOS_COUNTERS"
}

# qos_netdev NETDEV: its settings, by dcb (iproute2) and by what its vendor has besides
qos_netdev() {
  local net=$1 dir=/sys/class/net/$1 driver pci
  driver=$(readlink "$dir/device/driver") || driver=''
  pci=$(readlink "$dir/device") || pci=''
  keep_link "$dir/device/driver"
  keep_link "$dir/device"
  ask "dcb-dcbx $net" dcb -j dcbx show dev "$net"
  ask "dcb-pfc $net" dcb -j -s pfc show dev "$net"
  ask "dcb-ets $net" dcb -j ets show dev "$net"
  ask "dcb-app $net" dcb -N -j app show dev "$net"
  ask "dcb-apptrust $net" dcb -j apptrust show dev "$net"
  ask "dcb-buffer $net" dcb -j buffer show dev "$net"
  ask "dcb-maxrate $net" dcb -j maxrate show dev "$net"
  ask "dcb-rewr $net" dcb -N -j rewr show dev "$net"
  ask "ethtool-pause $net" ethtool --json -a "$net"
  ask "ethtool-pause-text $net" ethtool -a "$net" # before 5.10 there is no --json
  ask "ethtool-priv-flags $net" ethtool --show-priv-flags "$net"
  ask "ethtool-pfc-tout $net" ethtool --get-tunable "$net" pfc-prevention-tout
  qos_counters "$net"
  keep "/proc/net/vlan/$net" "$dir"/{mtu,speed} "$dir/qos/trust" "$dir"/ecn/roce_{np,rp}/enable/[0-7] "$dir"/ecn/roce_{np,rp}/*
  case ${driver##*/} in
    mlx5_core)
      ask "mlnx_qos $net" mlnx_qos -i "$net"
      keep "/sys/kernel/debug/mlx5/${pci##*/}"/cc_params/*
      ;;
    bnxt_en)
      ask "niccli-qos $net" niccli -dev "${pci##*/}" getqos
      keep "/sys/kernel/debug/bnxt_re/${pci##*/}"/cc_config/*
      ;;
  esac
}

# qos_rdma DEVICE: the traffic class that its connections get, and what they counted of congestion
qos_rdma() {
  local dir=/sys/class/infiniband/$1
  keep_link "$dir/device/driver"
  keep "$dir"/ports/*/{link_layer,gid_attrs/ndevs/0} "$dir"/tc/*/traffic_class \
    "/sys/kernel/config/rdma_cm/$1"/ports/*/default_roce_{tos,mode} "/sys/kernel/config/irdma/$1"/roce_* \
    "/sys/kernel/config/bnxt_re/$1"/ports/*/cc/{ecn_enable,ecn_marking,cc_mode,roce_prio,roce_dscp,cnp_prio,cnp_dscp} \
    "/sys/kernel/config/bnxt_re/$1"/ports/*/cc/{disable_prio_vlan_tx,g,init_cr,init_tr,inact_th,nph_per_state,time_pph} \
    "$dir"/ports/*/hw_counters/{np_cnp_sent,np_ecn_marked_roce_packets,rp_cnp_handled,rp_cnp_ignored,out_of_buffer}
}

gather_qos() {
  local name port file comm
  local -a CARRIERS
  # of a virtual function the port of its physical one, which keeps these settings (nic_port)
  for name in "${NETDEVS[@]}"; do
    nic_carriers "$name"
    for port in "${CARRIERS[@]}"; do qos_netdev "$port"; done
  done
  for name in "${NETDEVS[@]}"; do keep "/proc/net/vlan/$name"; done
  for name in "${RDMA[@]}"; do qos_rdma "$name"; done
  keep /sys/module/irdma/parameters/dcqcn_*
  # whether rdma_cm is there at all, as a module or by its device: before that, its default cannot have been set
  keep /sys/module/rdma_cm/initstate
  keep_link /sys/class/misc/rdma_cm
  # lldpad sets what it has agreed with the switch over what was set by hand
  for file in /proc/[0-9]*/comm; do
    { read -r comm <"$file"; } 2>/dev/null || continue
    [ "$comm" != lldpad ] || keep "$file"
  done
}
