# shellcheck shell=bash
# State of hosts and switches, on composed runs: five hosts that were checked, and two below a switch.

beta=raw/beta/host_check.json

fault check-skipped checked INCONCLUSIVE "host_check/skipped" "a host check that was skipped" remove "$beta"
fault check-foreign checked INCONCLUSIVE "host_check/skipped" "a host check of another host" edit "$beta" '.hostname = "omega"'
fault check-old checked INCONCLUSIVE "host_check/skipped" "a host check from before the run" edit "$beta" '.collected = "2025-12-31T23:00:00Z"'
fault pfc-off checked FAIL "host_check/qos-pfc/beta/enp1s0 host_check/*" "PFC off on one host" \
  edit "$beta" '.commands["dcb-pfc enp1s0"].stdout |= (fromjson | .prio_pfc |= map(false) | tojson)'
fault mtu-differs checked FAIL "host_check/nic-path-mtu-ends/beta/mlx5_0 host_check/*" "an MTU that differs between the ends" \
  edit "$beta" '.commands["verbs mlx5_0"].stdout |= sub("active_mtu:(?<s>\\s+)4096 \\(5\\)"; "active_mtu:\(.s)1024 (3)")'
fault port-down checked FAIL "host_check/nic-port-state/beta/mlx5_0 host_check/*" "a port that is down" \
  edit "$beta" '.files["/sys/class/infiniband/mlx5_0/ports/1/state"] = "1: DOWN"'
fault port-rate checked FAIL "host_check/nic-link-speed/beta/mlx5_0" "a port that came up at half its rate" \
  edit "$beta" '.files["/sys/class/infiniband/mlx5_0/ports/1/rate"] = "50 Gb/sec (1X HDR)" | .files["/sys/class/net/enp1s0/speed"] = "50000" | .commands["settings enp1s0"].stdout |= sub("Speed: 100000"; "Speed: 50000")'
fault port-layer checked FAIL "host_check/nic-link-layer/beta/mlx5_0 host_check/*" "a port that speaks InfiniBand on a fabric of Ethernet" \
  edit "$beta" '.files["/sys/class/infiniband/mlx5_0/ports/1/link_layer"] = "InfiniBand"'
fault port-errors checked FAIL "host_check/nic-port-errors/beta/mlx5_0" "a port whose errors grow while one looks" \
  edit "$beta" '.later["/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error"] = "300"'
fault pcie-narrow checked FAIL "host_check/nic-pcie-width/beta/mlx5_0" "a card with half its PCIe lanes" \
  edit "$beta" '(.files | .["/sys/bus/pci/devices/0000:81:00.0/current_link_width"], .["/sys/bus/pci/devices/0000:80:01.1/current_link_width"]) = "8"'
fault pcie-slow checked FAIL "host_check/nic-pcie-speed/beta/mlx5_0" "a card whose PCIe link came up at half its speed" \
  edit "$beta" '(.files | .["/sys/bus/pci/devices/0000:81:00.0/current_link_speed"], .["/sys/bus/pci/devices/0000:80:01.1/current_link_speed"]) = "8.0 GT/s PCIe"'
fault pcie-lost checked FAIL "host_check/nic-pcie-errors/beta/mlx5_0" "a card that PCIe has lost packets of" \
  edit "$beta" '.files["/sys/bus/pci/devices/0000:81:00.0/aer_dev_nonfatal"] |= (sub("TLPBlockedErr 0"; "TLPBlockedErr 0\ndev_nonfatal_errs_bit[27] 3") | sub("TOTAL_ERR_NONFATAL 0"; "TOTAL_ERR_NONFATAL 3"))'
fault gid-v1 checked FAIL "host_check/nic-gid/beta/mlx5_0 host_check/*" "no GID of RoCE v2" \
  edit "$beta" '.files |= with_entries(if (.key | test("gid_attrs/types")) then .value = "IB/RoCE v1" else . end)'
fault gid-twice checked FAIL "host_check/nic-duplicate-gid/alpha/mlx5_0 host_check/*" "two hosts with one GID" \
  edit "$beta" '.files |= map_values(if type == "string" then gsub("c000:0202"; "c000:0201") else . end)'
fault address-twice checked FAIL "host_check/nic-duplicate-address/alpha/enp1s0 host_check/*" "two hosts with one address" \
  edit "$beta" '.commands |= map_values(.stdout |= gsub("192[.]0[.]2[.]2\"";  "192.0.2.1\""))'
fault card-gone checked FAIL "host_check/nic-device/beta/mlx5_0 host_check/*" "a card that is not there any more" \
  edit "$beta" '.files |= with_entries(select(.key | test("infiniband/mlx5_0") | not)) | .links |= with_entries(select(.key | test("infiniband/mlx5_0") | not))'
fault interface-down checked FAIL "host_check/nic-interface-state/beta/enp1s0" "an interface without carrier" \
  edit "$beta" '.files["/sys/class/net/enp1s0/carrier"] = "0" | .files["/sys/class/net/enp1s0/operstate"] = "down"'
fault driver-gone checked FAIL "host_check/machine-module-ib-uverbs/beta" "the module through which programs reach a card is not loaded" \
  edit "$beta" '.files |= del(.["/sys/class/infiniband_verbs/abi_version"])'
fault nodes-closed checked FAIL "host_check/machine-rdma-nodes/beta" "device nodes that the user may not open" edit "$beta" '.commands["rdma-nodes"].stdout |= gsub(" rw"; "")'
fault memory-lost checked FAIL "host_check/machine-memory-errors/beta" "a memory module that lost data" \
  edit "$beta" '.files["/sys/devices/system/edac/mc/mc0/ue_count"] = "1"'
fault flapping checked FAIL "host_check/machine-link-flaps/beta/enp1s0" "a link that went down again and again" \
  edit "$beta" '.files["/sys/class/net/enp1s0/carrier_down_count"] = "14" | .commands["kernel-log-lines"].stdout += ([range(14) | "\n[\(863000 + . * 60).000000] mlx5_core 0000:81:00.0 enp1s0: Link down"] | join(""))'
fault firewalled checked FAIL "host_check/machine-firewall/beta" "a firewall in front of the tests" edit "$beta" '.commands.nft.stdout |= sub("\"range\": \\[18000, 19000\\]"; "\"range\": [28000, 29000]")'
fault global-pause checked FAIL "host_check/qos-pause/beta/enp1s0 host_check/*" "global pause beside priority flow control" \
  edit "$beta" '.commands["ethtool-pause enp1s0"].stdout |= gsub("false"; "true") | .commands["ethtool-pause-text enp1s0"].stdout |= gsub("off"; "on")'
fault lossy-priority checked FAIL "host_check/qos-path/beta/mlx5_0 host_check/*" "RDMA in a class that drops" edit "$beta" '.files["/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos"] = "0"'
fault gid-address checked FAIL "host_check/nic-gid-address/beta/mlx5_0" "an address that no GID has" \
  edit "$beta" '.commands["address enp1s0"].stdout |= gsub("192[.]0[.]2[.]2\"";  "192.0.2.77\"") | .commands.addresses.stdout |= gsub("192[.]0[.]2[.]2\"";  "192.0.2.77\"")'
fault mac-twice checked FAIL "host_check/nic-duplicate-mac/alpha/enp1s0 host_check/*" "two hosts with one MAC address" \
  edit "$beta" '.files["/sys/class/net/enp1s0/address"] = "08:c0:eb:f0:28:b1"'
fault mtu-of-interface checked FAIL "host_check/nic-mtu-ends/beta/enp1s0" "an interface whose MTU differs from the others" edit "$beta" '.files["/sys/class/net/enp1s0/mtu"] = "9000"'
fault roce-v1 checked FAIL "host_check/qos-roce-mode/beta/mlx5_0" "a card that speaks RoCE v1 by default" \
  edit "$beta" '.files["/sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_mode"] = "IB/RoCE v1"'
fault pcie-log checked FAIL "host_check/machine-pcie-log/beta/mlx5_0" "PCIe errors in the kernel's log" \
  edit "$beta" '.commands["kernel-log-lines"].stdout += "\n[863000.000000] pcieport 0000:80:01.1: AER: Uncorrected (Non-Fatal) error received: 0000:81:00.0\n[863000.000001] mlx5_core 0000:81:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)"'
fault processor-log checked FAIL "host_check/machine-hardware-log/beta" "a machine check in the kernel's log" \
  edit "$beta" '.commands["kernel-log-lines"].stdout += "\n[863000.000000] mce: [Hardware Error]: CPU 3: Uncorrected error, bank 5"'
fault check-half checked INCONCLUSIVE "host_check/skipped" "a host check that was cut in half" cut_at "$beta" 4000
fault check-unanswered checked INCONCLUSIVE "host_check/nic-port-state/beta/mlx5_0" "a question that the host did not answer" \
  edit "$beta" 'del(.files["/sys/class/infiniband/mlx5_0/ports/1/state"])'

fault switch-silent switched INCONCLUSIVE "switch/answers/leaf1 switch/*" "a switch that was not read after the run" remove raw/leaf1/switch-after.json
fault switch-dropped switched FAIL "switch/drops/leaf1/Ethernet0" "a switch that dropped packets of the lossless class" \
  edit raw/leaf1/switch-after.json '.commands.counters.stdout |= (fromjson | .["COUNTERS:oid:0x1a00000000003"].value.SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS = "17" | tojson)'
fault switch-storm switched FAIL "switch/pause-storms/leaf1/Ethernet0" "a pause storm on a switch's port" \
  edit raw/leaf1/switch-after.json '.commands.counters.stdout |= (fromjson | .["COUNTERS:oid:0x1500000000003"].value.PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED = "2" | tojson)'
fault switch-foreign switched INCONCLUSIVE "switch/answers/leaf1 switch/*" "a switch's reading of another run" edit raw/leaf1/switch-after.json '.run = "20260101T000000Z-other"'
fault switch-port switched INCONCLUSIVE "switch/ports" "a host that hangs on no port of the switch" \
  edit 'raw/leaf1/switch-*.json' '.commands.lldp.stdout |= gsub("\"beta\""; "\"omega\"")'
fault switch-down switched FAIL "switch/link-up/leaf1/Ethernet0" "a switch's port that is down" \
  edit raw/leaf1/switch-after.json '.commands.ports.stdout |= (fromjson | .["PORT_TABLE:Ethernet0"].value.oper_status = "down" | tojson)'
fault switch-pfc switched FAIL "switch/pfc/leaf1/Ethernet0" "a switch without PFC on the lossless priority" \
  edit 'raw/leaf1/switch-*.json' '.commands.qos.stdout |= (fromjson | .["PORT_QOS_MAP|Ethernet0"].value.pfc_enable = "4" | tojson)'
fault switch-errors switched FAIL "switch/errors/leaf1/Ethernet0" "a switch that saw damaged frames" \
  edit raw/leaf1/switch-after.json '.commands.counters.stdout |= (fromjson | .["COUNTERS:oid:0x1000000000012"].value.SAI_PORT_STAT_IF_IN_ERRORS = "900" | tojson)'
fault switch-cleared switched INCONCLUSIVE "switch/drops/leaf1/Ethernet0 switch/*" "a switch's counters that were cleared during the run" \
  edit raw/leaf1/switch-before.json '.commands.counters.stdout |= (fromjson | .["COUNTERS:oid:0x1a00000000003"].value.SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS = "99999" | tojson)'
fault switch-speed switched FAIL "switch/link-speed/leaf1/Ethernet0" "a switch's port of another speed than the host's interface" \
  edit raw/alpha/environment.json '.interfaces |= map(if .name == "eth1" then .rate_gbit_s = 25 else . end)'
