#!/usr/bin/env bats
# Flow control, classes and congestion notification: what is made of hosts with cards of several makers, as they should be
# and broken, and what host-check reads. Where the fixtures come from: tests/fixtures/hosts/README.md.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

# What the inventory of a lossless fabric wants: priority 3, as the notes' switches have it in QoS group 3.
WANTED='{"pfc_priorities": [3], "roce_tos": 106, "dscp_trust": "dscp", "dscp_priority": {"26": 3}, "ecn_priorities": [3]}'

# Cases are collected and judged by one jq, since it takes longer to read the rules than to apply them.
setup_file() {
  local name
  for name in mlx5-dcb mlx5-ofed bnxt ice-fw-lldp labdcb none; do
    jq --arg name "$name" '{($name): .}' "$TOP/tests/fixtures/hosts/qos-$name.json"
  done | jq -s add >"$BATS_FILE_TMPDIR/fixtures.json"
}

# quoted TEXT: as a string of jq, which would take longer to start than to quote
quoted() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "${text//$'\n'/\\n}"
}

# case_of CHECK FIXTURE EDIT WANTED: a jq program that gives the findings over a fixture, as another has changed it, to a
# third, which says what is wrong. SCOPE, FABRIC, DEVICES, TRAITS: of the host.
case_of() {
  printf 'case(%s; %s; $f["%s"] | (%s); {name: "alpha", fabric: "%s", scope: "%s", devices: %s, traits: %s, ports: [], wanted: %s})\n' "$1" \
    "$(quoted "$2, $3")" "$2" "$3" "${FABRIC:-roce}" "${SCOPE:-hardware}" "${DEVICES:-[]}" "${TRAITS:-{\}}" "$4" | tr '\n' ' ' >>cases
  echo >>cases
}

# finds ID STATUS WORDS FIXTURE [EDIT [WANTED]]: the one finding of this id has this status and these words
finds() { case_of "one(\"$1\"; \"$2\"; $(quoted "$3"))" "$4" "${5:-.}" "${6:-$WANTED}"; }
absent() { case_of "none(\"$1\")" "$2" "${3:-.}" "${4:-$WANTED}"; }
# holds CONDITION FIXTURE [EDIT [WANTED]]: it does, of all findings together
holds() { case_of "all_of($1)" "$2" "${3:-.}" "${4:-$WANTED}"; }

# agree: all cases so far are as they say
agree() {
  local definitions
  definitions='import "hosts/qos" as q; $fixtures[0] as $f |
    def one($id; $status; $words): [.[] | select(.id == $id) | "\(.status): \(.found)"]
      | select(length != 1 or (.[0] | (startswith($status + ": ") and contains($words)) | not)) | "\($id) is not \($status) with \"\($words)\": \(.)";
    def none($id): select(any(.[]; .id == $id)) | "\($id) is there";
    def all_of(condition): select(condition | not) | "this does not hold: \(.)";
    def case(check; $name; raw; $host): [raw | q::findings($host)] | check | "\($name): \(.)";'
  jq -nr --slurpfile fixtures "$BATS_FILE_TMPDIR/fixtures.json" -f "$(rules "$definitions $(paste -sd, cases)")" >misses
  run cat misses
  assert_output ""
}

# said NAME TEXT: a jq program that lets a command have printed this
said() { printf '.commands["%s"] |= (.stdout = %s | .exit = 0)' "$1" "$(quoted "$2")"; }
# changed NAME PROGRAM: a jq program that changes the JSON that a command has printed
changed() { printf '.commands["%s"].stdout |= (fromjson | %s | tojson)' "$1" "$2"; }

@test "flow control that contradicts the fabric's traits is named, and limits that rest on nothing" {
  local lossless='{"lossless": true}' lossy='{"lossless": false}'
  TRAITS=$lossless finds qos-lossless bad "flow control is off; perch_fabric_traits says lossless" labdcb . '{}'
  TRAITS=$lossless finds qos-lossless ok "flow control is on for 3" mlx5-dcb . '{}'
  TRAITS=$lossy finds qos-lossless bad "flow control is on for 3; perch_fabric_traits says not lossless" mlx5-dcb . '{}'
  TRAITS=$lossy finds qos-lossless ok "flow control is off" labdcb . '{}'
  finds qos-lossless unknown "flow control is off; perch_fabric_traits says nothing" labdcb . '{}'
  # who wants none has said so; software drops what it likes; and what cannot be read contradicts nothing
  absent qos-lossless labdcb . '{"pfc_priorities": []}'
  SCOPE=software absent qos-lossless labdcb . '{}'
  absent qos-lossless mlx5-dcb . '{}'
  TRAITS=$lossless absent qos-lossless none . '{}'
  FABRIC=ethernet TRAITS=$lossless absent qos-lossless labdcb . '{}'
  agree
}

@test "each maker's card as it should be: nothing is bad, and all that is required is known" {
  holds 'all(.[]; .status != "bad" and (.severity == "advisory" or .status == "ok"))' mlx5-ofed
  holds 'all(.[]; (.status != "bad" or .id == "qos-path-plain") and (.severity == "advisory" or .status == "ok"))' bnxt . "${WANTED/106/104}"
  # the kernel's own mlx5 does not say whether DCQCN is on
  holds '[.[] | select(.severity == "required" and .status != "ok") | .id] == ["qos-ecn-notification", "qos-ecn-reaction"]' mlx5-dcb
  agree
}

@test "every finding says all that a reader needs, whatever was found" {
  local fixture wanted
  for fixture in mlx5-dcb mlx5-ofed bnxt ice-fw-lldp labdcb none; do
    for wanted in "$WANTED" '{}'; do
      local DEVICES='[]'
      [ "$fixture" != none ] || DEVICES='[{"name": "rocep1s0", "netdev": "eth0"}]'
      holds 'length > 5 and all(.[]; (keys | length) == 10 and (.id | startswith("qos-")) and (.found | type) == "string" and .found != ""
        and (.why // "") != "" and (.remedy // "." | test("\\.$") | not) and (.source // "") != ""
        and (.status | IN("ok", "bad", "unknown", "not_applicable", "info")) and (.severity | IN("required", "advisory"))
        and (.value | type | IN("string", "number", "null")) and (.status != "bad" or .wanted != null))' "$fixture" . "$wanted"
    done
  done
  agree
}

@test "where nothing is wanted nothing required is said, and all is there to be compared" {
  holds '[.[] | select(.severity == "required") | .id] == ["qos-pause", "qos-path", "qos-roce-mode"]' mlx5-dcb . '{}'
  holds 'map({(.id): .value}) | add | ."qos-pfc" == "on for 3" and ."qos-dcbx" == "host" and ."qos-dscp-trust" == "dscp"
    and ."qos-pause" == "rx off, tx off" and ."qos-roce-tos" == 106 and ."qos-pfc-watchdog" == 8000 and ."qos-counters" == null
    and (."qos-ets" | startswith("prio_tc 0 0 0 3 0 0 6 0")) and (."qos-dscp-priority" | contains("24-31: 3"))' mlx5-dcb . '{}'
  agree
}

@test "PFC: on the wrong priority, off, on although not wanted, and not reported" {
  finds qos-pfc bad "on for 3, 4" mlx5-dcb "$(changed 'dcb-pfc ens1np0' '.prio_pfc[4] = true')"
  finds qos-pfc bad "off, by dcb" labdcb
  finds qos-pfc bad "on for 3" mlx5-ofed . '{"pfc_priorities": []}'
  finds qos-pfc ok "off" labdcb . '{"pfc_priorities": []}'
  finds qos-pfc ok "on for 3, by niccli" bnxt '.commands["dcb-pfc enp1s0f0np0"].exit = 1'
  finds qos-pfc unknown "mlnx_qos: no DCB netlink" mlx5-ofed '.commands["mlnx_qos eth4"] |= (.exit = 1 | .stderr = "Traceback\nno DCB netlink\n")'
  finds qos-pfc unknown "did not answer in time" mlx5-ofed '.commands["mlnx_qos eth4"].exit = 124'
  agree
}

@test "a NIC without DCB: not known on hardware, not applicable to a software device, and never well" {
  local DEVICES='[{"name": "rocep1s0", "netdev": "eth0"}]'
  finds qos-pfc unknown "no data center bridging" none
  finds qos-path unknown "PFC unknown" none
  finds qos-pfc unknown "no data center bridging" none . '{}'
  absent qos-ets none . '{}'
  absent qos-dcbx none . '{}'
  SCOPE=software finds qos-pfc not_applicable "no data center bridging" none . '{}'
  SCOPE=software finds qos-path not_applicable "PFC unknown" none . '{}'
  SCOPE=software finds qos-pfc unknown "no data center bridging" none # wanted all the same
  finds qos-dscp-priority unknown "no data center bridging" none
  agree
}

@test "global pause: off where a priority is lossless, wanted or found; else as wanted, or shown" {
  finds qos-pause bad "rx on, tx off" mlx5-dcb "$(changed 'ethtool-pause ens1np0' '.[0].rx = true')"
  finds qos-pause bad "rx off, tx on" mlx5-dcb "$(changed 'ethtool-pause ens1np0' '.[0].tx = true')" '{}'
  finds qos-pause info "rx on, tx off" labdcb "$(changed 'ethtool-pause eth1' '.[0].rx = true')" '{}'
  finds qos-pause ok "rx on, tx on" labdcb "$(changed 'ethtool-pause eth1' '.[0] |= (.rx = true | .tx = true)')" '{"pause": "on"}'
  finds qos-pause bad "rx off, tx off" labdcb . '{"pause": "on"}'
  finds qos-pause bad "rx off, tx off" labdcb . '{"pause": true}' # on, as YAML reads it
  finds qos-pause ok "rx off, tx off" labdcb . '{"pause": false}'
  # an ethtool without --json
  finds qos-pause bad "rx on, tx on" mlx5-dcb '.commands["ethtool-pause ens1np0"] |= (.exit = 1 | .stdout = "")
    | .commands["ethtool-pause-text ens1np0"].stdout |= gsub("off"; "on")'
  finds qos-pause unknown "cannot be read" mlx5-dcb '.commands["ethtool-pause ens1np0", "ethtool-pause-text ens1np0"].stdout = "?"'
  agree
}

@test "classes: as wanted, with all the bandwidth and nothing lossy beside the lossless" {
  local ets='{"pfc_priorities": [3], "ets": {"prio_tc": {"3": 3}, "tc_tsa": {"0": "ets", "3": "ets"}, "tc_bw": {"0": 50, "3": 50}}}'
  finds qos-ets ok "priority 3 in class 3 (ets 50 %)" mlx5-dcb . "$ets"
  finds qos-ets bad "tc_bw 3:40 instead of 50" mlx5-dcb "$(changed 'dcb-ets ens1np0' '.tc_bw = [60,0,0,40,0,0,0,0]')" "$ets"
  finds qos-ets bad "tc_tsa 3:strict instead of ets" mlx5-dcb "$(changed 'dcb-ets ens1np0' '.tc_tsa[3] = "strict" | .tc_bw = [100,0,0,0,0,0,0,0]')" "$ets"
  finds qos-ets bad "prio_tc 3:0 instead of 3" mlx5-dcb "$(changed 'dcb-ets ens1np0' '.prio_tc[3] = 0')" "$ets"
  holds '.[] | select(.id == "qos-ets") | .severity == "required" and (.found | contains("shared with 0, 1, 2, 4, 5, 7 without PFC"))' \
    mlx5-dcb "$(changed 'dcb-ets ens1np0' '.prio_tc[3] = 0')" "$ets"
  finds qos-ets bad "sum to 90 %" mlx5-dcb "$(changed 'dcb-ets ens1np0' '.tc_bw[0] = 40')" '{}'
  holds '.[] | select(.id == "qos-ets") | .severity == "advisory"' mlx5-dcb "$(changed 'dcb-ets ens1np0' '.tc_bw[0] = 40')" '{}'
  finds qos-ets bad "no bandwidth" mlx5-dcb "$(changed 'dcb-ets ens1np0' '.tc_bw = [100,0,0,0,0,0,0,0]')"
  finds qos-ets info "priority 3 in class 1 (ets 50 %)" bnxt
  finds qos-ets unknown "dcb" mlx5-dcb "$(changed 'dcb-ets ens1np0' '.prio_tc[2] = 9')" "$ets"
  agree
}

@test "DSCP: what is trusted, by whichever word of it there is, and which priority it means" {
  finds qos-dscp-trust bad pcp mlx5-ofed '.files["/sys/class/net/eth4/qos/trust"] = "pcp"'
  finds qos-dscp-trust ok dscp mlx5-ofed 'del(.files["/sys/class/net/eth4/qos/trust"])'
  finds qos-dscp-trust bad pcp mlx5-dcb "$(said 'dcb-apptrust ens1np0' '{"order": ["pcp", "dscp"]}')"
  finds qos-dscp-trust bad pcp mlx5-dcb "$(changed 'dcb-app ens1np0' 'del(.dscp_prio)')"
  finds qos-dscp-trust unknown "" mlx5-dcb '.commands["dcb-app ens1np0"].exit = 1'
  finds qos-dscp-priority bad "DSCP 26 is 0 instead of 3" mlx5-dcb "$(changed 'dcb-app ens1np0' '.dscp_prio[26] = [26, 0]')"
  finds qos-dscp-priority bad "DSCP 26 is not mapped instead of 3" ice-fw-lldp
  finds qos-dscp-priority unknown "" mlx5-dcb "$(changed 'dcb-app ens1np0' '.dscp_prio[26] = [26, 8]')"
  finds qos-dscp-priority ok "26: 3, 48: 7" bnxt
  agree
}

@test "the way of RDMA's packets: by rdma_cm's default, by the override of all, by --tos, to a lossless priority or not" {
  finds qos-path ok "rdma_cm: ToS 106 -> DSCP 26 -> priority 3 -> class 3, PFC on; programs given --tos 106" mlx5-dcb
  finds qos-path bad "rdma_cm: ToS 0 -> DSCP 0 -> priority 0 -> class 0, PFC off" mlx5-dcb \
    '.files["/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos"] = "0"'
  finds qos-path bad "--tos 8: ToS 8 -> DSCP 2 -> priority 0 -> class 0, PFC off" mlx5-dcb . "${WANTED/106/8}"
  finds qos-path bad "PFC off" mlx5-dcb "$(changed 'dcb-app ens1np0' '.dscp_prio[26] = [26, 5]')"
  finds qos-path bad "DSCP not trusted, and no tag -> priority 0" mlx5-dcb "$(changed 'dcb-app ens1np0' 'del(.dscp_prio)')"
  finds qos-path ok "DSCP not trusted, and no tag -> priority 3" mlx5-dcb "$(changed 'dcb-app ens1np0' '{default_prio: [3]}')"
  # lossless, but not the priority that is wanted, which the switches know
  finds qos-path bad "priority 4 -> class 0, PFC on" mlx5-dcb "$(changed 'dcb-app ens1np0' '.dscp_prio[26] = [26, 4]') | $(changed 'dcb-pfc ens1np0' '.prio_pfc[4] = true')"
  finds qos-path ok "all, by the override traffic_class: ToS 106" mlx5-ofed
  absent qos-path-plain mlx5-ofed
  finds qos-path bad "ToS 40 -> DSCP 10 -> priority 1" mlx5-ofed '.files["/sys/class/infiniband/mlx5_2/tc/1/traffic_class"] = "Global tclass=40"'
  finds qos-path unknown "0 unless it was set" mlx5-ofed '.files["/sys/class/infiniband/mlx5_2/tc/1/traffic_class"] = ""'
  finds qos-path-plain bad "ToS 0 -> DSCP 0 -> priority 0 -> class 0, PFC off" bnxt
  # without a DSCP that is trusted, irdma goes by the kernel's table: ToS 8 is priority 2
  finds qos-path ok "ToS 8 -> DSCP not trusted -> priority 2 (by the kernel's table) -> class 2, PFC on" ice-fw-lldp . '{"pfc_priorities": [2]}'
  finds qos-path bad "ToS 16 -> DSCP not trusted -> priority 6" ice-fw-lldp . '{"pfc_priorities": [2], "roce_tos": 16}'
  finds qos-path info "PFC off" labdcb 'del(.files["/sys/module/rdma_cm/initstate"], .links["/sys/class/misc/rdma_cm"])' '{}'
  agree
}

@test "rdma_cm's default is known only where its directory is there, or the module has never been" {
  finds qos-roce-tos ok "106, by rdma_cm" mlx5-dcb
  finds qos-roce-tos bad "104, by rdma_cm" bnxt
  finds qos-roce-tos ok "106, by the override traffic_class" mlx5-ofed
  finds qos-roce-tos unknown "0 unless it was set" labdcb
  finds qos-roce-tos bad "0, by rdma_cm" labdcb 'del(.files["/sys/module/rdma_cm/initstate"], .links["/sys/class/misc/rdma_cm"])'
  finds qos-roce-tos unknown "no traffic class" mlx5-dcb '.files["/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos"] = "300"'
  finds qos-roce-mode bad "IB/RoCE v1" mlx5-dcb '.files["/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode"] = "IB/RoCE v1"'
  agree
}

@test "ECN: at both points for the priority, its parameters, and its notifications out of the lossless class" {
  finds qos-ecn-notification ok "on for 0, 1, 2, 3" mlx5-ofed
  finds qos-ecn-notification bad "on for 0, 1, 2, 4" mlx5-ofed '.files["/sys/class/net/eth4/ecn/roce_np/enable/3"] = "0"'
  finds qos-ecn-reaction bad "on for 0, 1, 2, 4" mlx5-ofed '.files["/sys/class/net/eth4/ecn/roce_rp/enable/3"] = "0"'
  finds qos-ecn-notification ok "on for 3" bnxt
  finds qos-ecn-reaction bad "off" bnxt '.files["/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc/ecn_enable"] = "0"'
  finds qos-ecn-reaction bad "on for 5" bnxt '.files["/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc/roce_prio"] = "0x5"'
  finds qos-ecn-reaction bad "on for 3" bnxt . '{"ecn_priorities": []}'
  finds qos-ecn-reaction ok "on for 0, 1" ice-fw-lldp '.files["/sys/kernel/config/irdma/rdmap175s0f0/roce_dcqcn_enable"] = "1"'
  finds qos-ecn-reaction unknown "cannot be read" ice-fw-lldp
  SCOPE=software finds qos-ecn-reaction not_applicable "cannot be read" labdcb . '{}'
  finds qos-ecn-parameters info "rp_rpg_ai_rate=5" mlx5-ofed
  finds qos-ecn-parameters info "rp_ai_rate=5" mlx5-dcb
  # the kernel's bnxt_re: files of debugfs, and no configfs
  local debugfs='.files |= with_entries(select(.key | test("config/bnxt_re") | not)) | .files += ({enable_cc: "1", tos_ecn: "1", cc_mode: "1", run_avg_weight_g: "8",
    alt_vlan_pcp: "7", alt_vlan_dscp: "48"} | with_entries(.key |= "/sys/kernel/debug/bnxt_re/0000:06:00.0/cc_config/" + .))'
  finds qos-ecn-reaction ok "on for 0, 1, 2, 3, 4, 5, 6, 7" bnxt "$debugfs"
  finds qos-ecn-reaction bad "off" bnxt "$debugfs"' | .files["/sys/kernel/debug/bnxt_re/0000:06:00.0/cc_config/enable_cc"] = "0"'
  finds qos-ecn-parameters info "alt_vlan_dscp=48 alt_vlan_pcp=7 cc_mode=1 enable_cc=1 run_avg_weight_g=8 tos_ecn=1" bnxt "$debugfs"
  finds qos-cnp ok "DSCP 48, priority 7" bnxt "$debugfs"
  finds qos-cnp bad "DSCP 26, priority 3" bnxt "$debugfs"' | .files["/sys/kernel/debug/bnxt_re/0000:06:00.0/cc_config/alt_vlan_dscp"] = "26"'
  # the parameters of Intel's irdma, of its own devices alone
  local module='.files += {"/sys/module/irdma/parameters/dcqcn_T": "500", "/sys/module/irdma/parameters/dcqcn_min_rate": "0"}'
  finds qos-ecn-parameters info "dcqcn_T=500 dcqcn_min_rate=0" ice-fw-lldp "$module"
  finds qos-ecn-reaction unknown "cannot be read" ice-fw-lldp "$module"
  holds 'any(.[]; .id == "qos-ecn-parameters" and (.found | test("dcqcn_T") | not))' mlx5-dcb "$module"
  finds qos-cnp ok "DSCP 48, priority 6" mlx5-ofed
  finds qos-cnp ok "DSCP 48, priority 7" bnxt
  finds qos-cnp bad "DSCP 26, priority 3" mlx5-ofed '.files["/sys/class/net/eth4/ecn/roce_np/cnp_dscp"] = "26"'
  finds qos-cnp bad "DSCP 26, priority 3" bnxt '.files["/sys/kernel/config/bnxt_re/bnxt_re0/ports/1/cc/cnp_dscp"] = "0x1a"'
  agree
}

@test "who owns DCBX: the host, the firmware, its LLDP agent, or lldpad besides" {
  local host='{"dcbx": "host"}'
  finds qos-dcbx ok host mlx5-dcb . "$host"
  finds qos-dcbx bad firmware mlx5-dcb "$(changed 'dcb-dcbx ens1np0' '{cee: true, ieee: true}')" "$host"
  finds qos-dcbx bad firmware mlx5-ofed '.commands["mlnx_qos eth4"].stdout |= sub("OS controlled"; "Firmware controlled")' "$host"
  finds qos-dcbx bad "firmware, the firmware's LLDP agent is on, willing" ice-fw-lldp . "$host"
  holds 'any(.[]; .id == "qos-dcbx" and .remedy == "ethtool --set-priv-flags enp175s0f0 fw-lldp-agent off")' ice-fw-lldp . "$host"
  # the agent has the last word, whatever dcb says
  finds qos-dcbx bad "firmware, the firmware's LLDP agent is on" ice-fw-lldp "$(changed 'dcb-dcbx enp175s0f0' '{host: true, ieee: true}')" "$host"
  finds qos-dcbx bad "firmware, the firmware's LLDP agent is on" bnxt "$(said 'ethtool-priv-flags enp1s0f0np0' 'disable-fw-lldp: off')" "$host"
  finds qos-dcbx ok host ice-fw-lldp "$(changed 'dcb-dcbx enp175s0f0' '{host: true, ieee: true}')
    | .commands[\"ethtool-priv-flags enp175s0f0\"].stdout |= sub(\"agent          : on\"; \"agent          : off\")" "$host"
  finds qos-dcbx unknown "no such device" labdcb '.commands["dcb-dcbx eth1", "dcb-pfc eth1"] |= (.exit = 1 | .stderr = "no such device")' "$host"
  finds qos-lldpad info "does not run" mlx5-dcb
  finds qos-lldpad info runs mlx5-dcb '.files["/proc/812/comm"] = "lldpad\n"'
  finds qos-lldpad bad runs mlx5-dcb '.files["/proc/812/comm"] = "lldpad\n"' "$host"
  agree
}

@test "pauses and discards are shown, a storm is bad, and so is a watchdog that is not as wanted" {
  finds qos-counters info "pauses sent: 1532 for priority 3; received: 88 for priority 3; discards: none" mlx5-dcb
  finds qos-counters info "sent: 12 for priority 3; received: 340 for priority 3" bnxt
  finds qos-counters info "sent: 14864 for priority 2; received: none" ice-fw-lldp
  finds qos-counters info "discards: rx_discards_phy 7" mlx5-dcb '.commands["ethtool-qos-stats ens1np0"].stdout |= sub("discards_phy: 0"; "discards_phy: 7")'
  finds qos-pfc-storm ok none mlx5-dcb
  finds qos-pfc-storm bad "tx_pause_storm_error_events 2" mlx5-dcb '.commands["ethtool-qos-stats ens1np0"].stdout |= sub("error_events: 0"; "error_events: 2")'
  finds qos-pfc-storm bad "continuous_roce_pause_events 9" bnxt '.commands["ethtool-qos-stats enp1s0f0np0"].stdout |= sub("continuous_roce_pause_events: 0"; "continuous_roce_pause_events: 9")'
  finds qos-pfc-watchdog info "on, after 8000 ms" mlx5-dcb
  finds qos-pfc-watchdog bad off mlx5-dcb "$(said 'ethtool-pfc-tout ens1np0' 'pfc-prevention-tout: 0')" '{"pfc_watchdog": true}'
  finds qos-pfc-watchdog ok "the driver's own timeout" mlx5-dcb "$(said 'ethtool-pfc-tout ens1np0' 'pfc-prevention-tout: 65535')" '{"pfc_watchdog": true}'
  finds qos-pfc-watchdog not_applicable "cannot be read" bnxt
  finds qos-pfc-watchdog unknown "cannot be read" bnxt . '{"pfc_watchdog": true}'
  agree
}

@test "buffers: one of its own and of some size for each lossless priority" {
  finds qos-buffers ok "priority 3 in buffer 1 of 130944 bytes; cable 7 m" mlx5-dcb
  finds qos-buffers bad "priority 3 in buffer 0 of 130944 bytes, with 0, 1, 2, 4, 5, 6, 7" mlx5-dcb "$(changed 'dcb-buffer ens1np0' '.prio_buffer[3] = 0')"
  finds qos-buffers bad "of 0 bytes" mlx5-dcb "$(changed 'dcb-buffer ens1np0' '.buffer_size[1] = 0')"
  # 7 m at 400 Gb/s and MTU 9000: (301 + 15) x 400 + 2.72 x 9000 + 9000
  local fast='.files["/sys/class/net/ens1np0/speed"] = "400000" | .files["/sys/class/net/ens1np0/mtu"] = "9000"'
  holds 'any(.[]; .id == "qos-buffers" and .status == "bad" and (.wanted | test("of at least 159880 bytes")))' mlx5-dcb "$fast"
  holds 'any(.[]; .id == "qos-buffers" and .status == "ok" and (.wanted | test("of at least 159880 bytes")))' mlx5-dcb "$fast | $(changed 'dcb-buffer ens1np0' '.buffer_size[1] = 159880')"
  finds qos-buffers bad "of 159879 bytes" mlx5-dcb "$fast | $(changed 'dcb-buffer ens1np0' '.buffer_size[1] = 159879')"
  finds qos-buffers ok "of 130944 bytes" mlx5-dcb "$fast | .files[\"/sys/class/net/ens1np0/speed\"] = \"-1\""
  # another driver's rule is not known
  finds qos-buffers ok "of 130944 bytes" mlx5-dcb "$fast | .links[\"/sys/class/net/ens1np0/device/driver\"] = \"../../../../bus/pci/drivers/bnxt_en\""
  finds qos-buffers not_applicable "cannot be read" bnxt
  finds qos-buffers unknown "dcb is not installed" mlx5-ofed
  # what mlnx_qos of today prints besides
  finds qos-buffers ok "priority 3 in buffer 1 of 19872 bytes; cable 7 m" mlx5-ofed '.commands["mlnx_qos eth4"].stdout |=
    (sub("Cable len"; "default priority:\nReceive buffer size (bytes): 20016,19872,0,0,0,0,0,0,total_size=524160\nCable len")
     | sub("enabled (?<row>[01 ]+)"; "enabled \(.row)\n\tbuffer      0   0   0   1   0   0   0   0   "))'
  agree
}

@test "a bond is its members, a VLAN what it lies on, and stacks without an end are none" {
  local bond='.links |= . + {"/sys/class/net/bond0/lower_ens1np0": "ens1np0", "/sys/class/net/bond0/lower_ens2np0": "ens2np0"}
    | .files["/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0"] = "bond0"'
  holds '[.[] | select(.id == "qos-pfc") | [.device, .status]] == [["ens1np0", "ok"], ["ens2np0", "unknown"]]' mlx5-dcb "$bond"
  finds qos-path unknown "tag" mlx5-dcb '.links["/sys/class/net/vlan5/lower_ens1np0"] = "ens1np0" | .files["/proc/net/vlan/vlan5"] = "vlan5  VID: 5"
    | .files["/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0"] = "vlan5" | '"$(changed 'dcb-app ens1np0' 'del(.dscp_prio)')" '{"pfc_priorities": [3]}'
  holds 'length > 3' mlx5-dcb '.links |= . + {"/sys/class/net/ens1np0/lower_x": "x", "/sys/class/net/x/lower_ens1np0": "ens1np0"}'
  agree
}

@test "a virtual function has the settings of its physical one, and in a guest none" {
  local vf='.files["/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0"] = "vf0" | .links["/sys/class/net/vf0/device"] = "../../../0000:3b:00.2"'
  local of="$vf | .links[\"/sys/class/net/vf0/device/physfn/net\"] = \"ens1np0\""
  holds '[.[] | select(.id == "qos-pfc") | [.device, .status, .found]] == [["ens1np0", "ok", "on for 3, by dcb"]]' mlx5-dcb "$of"
  finds qos-path ok "PFC on" mlx5-dcb "$of"
  finds qos-ecn-parameters info "rp_ai_rate=5" mlx5-dcb "$of"
  finds qos-pfc bad "off" mlx5-dcb "$of | $(changed 'dcb-pfc ens1np0' '.prio_pfc = [false, false, false, false, false, false, false, false]')"
  finds qos-pfc unknown "there is no such interface" mlx5-dcb "$vf"
  vf+=' | .files["/sys/bus/pci/devices/0000:3b:00.2/current_link_speed"] = "Unknown" | .files["/sys/bus/pci/devices/0000:3b:00.2/current_link_width"] = "0"'
  finds qos-pfc not_applicable "0000:3b:00.2 is a virtual function; its physical function is not on this host" mlx5-dcb "$vf"
  holds '[.[] | select(.status == "unknown" and .severity == "required") | .id] == []' mlx5-dcb "$vf" '{}'
  agree
}

@test "it is a matter of RoCE: not of InfiniBand, Slingshot or loopback, nor of an InfiniBand port" {
  local fabric
  for fabric in infiniband slingshot loopback; do
    FABRIC=$fabric holds 'map([.id, .status]) == [["qos-device", "not_applicable"]]' mlx5-dcb
  done
  holds 'map([.id, .status]) == [["qos-device", "not_applicable"]]' mlx5-dcb '.files["/sys/class/infiniband/mlx5_0/ports/1/link_layer"] = "InfiniBand"'
  DEVICES='[{"name": "mlx5_7"}]' finds qos-path unknown "its interface is not known" mlx5-dcb
  DEVICES='[{"name": "mlx5_7", "netdev": "eth9"}]' finds qos-pfc unknown "there is no such interface" mlx5-dcb
  agree
}

@test "wishes that cannot be are named, and do not stop the others" {
  local wish
  for wish in '"pfc_priorities": [8]' '"pfc_priorities": 3' '"ecn_priorities": ["3"]' '"roce_tos": 256' '"roce_tos": 1.5' '"dscp_priority": {"64": 3}' \
    '"dscp_priority": {"26": 8}' '"ets": {"bw": {"0": 1}}' '"ets": {"prio_tc": {"9": 1}}' '"pause": "maybe"' '"dscp_trust": "both"' '"dcbx": "os"' '"pfc_watchdog": "yes"'; do
    holds '[.[] | select(.id == "qos-wanted") | [.status, .severity]] == [["bad", "required"]]' mlx5-dcb . "{$wish}"
    finds qos-pfc info "on for 3, by dcb" mlx5-dcb . "{$wish}"
  done
  absent qos-wanted mlx5-dcb . '{"mtu": 9000, "pfc_priorities": null}'
  agree
}

@test "nonsense in every answer and file is never taken for well" {
  local fixture nonsense
  for fixture in mlx5-dcb mlx5-ofed bnxt ice-fw-lldp labdcb; do
    for nonsense in '""' '"[]"' '"{}"' '"null"' '"\u0001\ufffd{\"prio_pfc\": [true]"' '"9999999999999999999999"' '"on on on: on\n\tenabled 1 1 1"' '7' '[]' 'null'; do
      holds 'all(.[]; .status != "ok")' "$fixture" \
        "(.commands[] |= (.stdout = $nonsense)) | (.files[] |= (if . == \"Ethernet\" then . else $nonsense end))"
      # the files alone tell of these
      holds '[.[] | select(.status == "ok") | .id] - ["qos-dscp-trust", "qos-roce-tos", "qos-roce-mode", "qos-ecn-notification", "qos-ecn-reaction", "qos-cnp"] == []' \
        "$fixture" ".commands[] = $nonsense | .links[] = $nonsense"
    done
  done
  agree
}

# gathered NAME...: what host-check of this tree reads here
gathered() {
  { cat "$TOP"/roles/host_check/files/host-check.d/*.bash && echo 'host_check "$@" </dev/null'; } | bash -s -- "$@" >found.json
}

@test "host-check reads an interface of this machine, and its answers can be judged" {
  local net
  net=$(basename "$(dirname "$(find /sys/class/net/*/device -maxdepth 0 | head -n 1)")")
  [ -n "$net" ] || net=lo
  gathered "$net"
  assert_json found.json ".schema == \"perch.host_check/1\" and (.commands | has(\"dcb-pfc $net\") and has(\"ethtool-pause $net\") and has(\"ethtool-qos-stats $net\"))"
  jq -c --arg net "$net" -f "$(rules 'import "hosts/qos" as q; [q::findings({name: "a", fabric: "roce", scope: "hardware", wanted: {}, ports: [],
    devices: [{name: "none0", netdev: $net}]})]')" found.json >judged.json
  assert_json judged.json '[.[] | select(.id == "qos-pfc")] | length == 1'
}

# card COMMAND...: runs it where /sys/class and configfs hold two mlx5 cards in a bond as NVIDIA's OFED shows them, and where
# dcb and mlnx_qos are programs that say how they were called
card() {
  # shellcheck disable=SC2016  # for the inner shell
  unshare --user --map-root-user --mount bash -c '
    set -e
    mount -t tmpfs none /sys/class
    mkdir -p config bin pci/0000:3b:00.0 drivers/mlx5_core
    net=/sys/class/net dev=/sys/class/infiniband/mlx5_bond_0
    mkdir -p "$net"/{bond0,eth4/ecn/roce_np/enable,eth5/qos} "$dev"/tc/1 "$dev"/ports/1/{gid_attrs/ndevs,hw_counters}
    ln -s ../eth4 "$net/bond0/lower_eth4"; ln -s ../eth5 "$net/bond0/lower_eth5"
    ln -s "$PWD/pci/0000:3b:00.0" "$net/eth4/device"; ln -s "$PWD/drivers/mlx5_core" "pci/0000:3b:00.0/driver"
    echo 1 >"$net/eth4/ecn/roce_np/enable/3"; echo 48 >"$net/eth4/ecn/roce_np/cnp_dscp"; echo dscp >"$net/eth5/qos/trust"; echo 9000 >"$net/eth5/mtu"; echo 100000 >"$net/eth5/speed"
    echo "Global tclass=106" >"$dev/tc/1/traffic_class"
    echo Ethernet >"$dev/ports/1/link_layer"; echo bond0 >"$dev/ports/1/gid_attrs/ndevs/0"; echo 5 >"$dev/ports/1/hw_counters/np_cnp_sent"
    for name in dcb mlnx_qos ethtool; do printf "#!/bin/sh\necho %s \"\$@\" | tee -a %s/calls\n" "$name" "$PWD" >"bin/$name"; chmod +x "bin/$name"; done
    PATH=$PWD/bin:$PATH "$@"' card "$@"
}

@test "host-check asks the members of a bond, reads each maker's files, and changes nothing" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  export -f gathered
  export TOP
  card bash -c 'gathered mlx5_bond_0; find /sys/class -newer calls'
  assert_json found.json '.links["/sys/class/net/bond0/lower_eth5"] == "../eth5" and (.links["/sys/class/net/eth4/device/driver"] | endswith("/mlx5_core"))
    and .files["/sys/class/infiniband/mlx5_bond_0/tc/1/traffic_class"] == "Global tclass=106" and .files["/sys/class/net/eth5/qos/trust"] == "dscp"
    and .files["/sys/class/net/eth5/mtu"] == "9000" and .files["/sys/class/net/eth5/speed"] == "100000"
    and .files["/sys/class/net/eth4/ecn/roce_np/enable/3"] == "1" and .files["/sys/class/net/eth4/ecn/roce_np/cnp_dscp"] == "48"'
  assert_json found.json '(.commands | has("dcb-pfc bond0") | not) and .commands["dcb-pfc eth5"].stdout == "dcb -j -s pfc show dev eth5"
    and .commands["mlnx_qos eth4"].argv == ["mlnx_qos", "-i", "eth4"] and (.commands | has("mlnx_qos eth5") | not)'
  # each file, link and command once
  run_expecting 0 "$TOP/.venv/bin/python" -c 'import collections, json
json.load(open("found.json"), object_pairs_hook=lambda pairs: print(*[k for k, n in collections.Counter(k for k, _ in pairs).items() if n > 1], end=""))'
  assert_output ""
  # every call shows, none sets
  run grep -vE '^(dcb (-[jNs] )+[a-z]+ show dev eth[45]|mlnx_qos -i eth4|ethtool (--json )?-[aS] eth[45]|ethtool (-m|-I --json --show-fec) eth[45]|ethtool --(show-priv-flags|get-tunable) eth[45]( pfc-prevention-tout)?|ethtool (-i |--json -[gck] )?bond0)$' calls
  assert_output ""
}
