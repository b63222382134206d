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

fault switch-silent switched INCONCLUSIVE "switch/answers/leaf1 switch/*" "a switch that was not read after the run" remove raw/leaf1/switch-after.json
fault switch-dropped switched FAIL "switch/drops/leaf1/Ethernet0" "a switch that dropped packets of the lossless class" \
  edit raw/leaf1/switch-after.json '.commands.counters.stdout |= (fromjson | .["COUNTERS:oid:0x1a00000000003"].value.SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS = "17" | tojson)'
fault switch-storm switched FAIL "switch/pause-storms/leaf1/Ethernet0" "a pause storm on a switch's port" \
  edit raw/leaf1/switch-after.json '.commands.counters.stdout |= (fromjson | .["COUNTERS:oid:0x1500000000003"].value.PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED = "2" | tojson)'
