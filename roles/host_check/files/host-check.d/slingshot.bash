# shellcheck shell=bash
# HPE Slingshot: the Cassini NICs, their links, services and retry handlers. Files of Cassini 1 lie under port/, of
# Cassini 2 under port/0/ (HewlettPackard/shs-libcxi, utils/cxi_stat.c).
gather_slingshot() {
  local dir name net port
  local -a counters=()
  local -A NICS=()
  for name in "$@"; do NICS[$name]=1; done
  for dir in /sys/class/cxi/*; do
    [ ! -d "$dir/device" ] || NICS[${dir##*/}]=1
  done
  [ ${#NICS[@]} -gt 0 ] || return 0
  for name in "${!NICS[@]}"; do
    dir=/sys/class/cxi/$name/device port=$dir/port
    keep_link "$dir/driver"
    keep "$dir/uc/qspi_blob_version" "$port"/{link,speed,link_layer_retry,loopback,pause} \
      "$port"/0/{link/state,link/speed,llr/state,config/loopback,link/config/pause_map}
    for net in "$dir"/net/*; do
      [ -e "$net" ] || continue
      keep "/sys/class/net/${net##*/}"/{carrier_down_count,operstate,mtu}
      pair "$dir/net" "${net##*/}"
      LINKS+="${LINKS:+, }$PAIR"
    done
    counters+=("$dir"/telemetry/hni_pcs_{good,corrected,uncorrected}_cw)
    ask "retry-handler $name" systemctl is-active "cxi_rh@$name"
    ask "services $name" cxi_service list -v -d "$name"
    ask "status $name" cxi_stat -r -d "$name"
  done
  keep "${counters[@]}"
  # both answers are empty where the log cannot be read: a line of any kind shows that it can
  ask kernel-log journalctl --dmesg --lines=1 --output=short-unix --no-pager --quiet
  ask link-events journalctl --dmesg --since=-10h --output=short-unix --no-pager --quiet --grep=CXI_EVENT_LINK_DOWN
  ask libfabric fi_info -p cxi
  sleep 1 # a measurement: what the counters gain in a second
  keep_later "${counters[@]}"
}
