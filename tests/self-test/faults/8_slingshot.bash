# shellcheck shell=bash
# Slingshot: what two nodes with Cassini NICs say, what their tools print, and a provider that is not cxi (composed).

engine=raw/alpha/flows/engine/alpha/beta/1/client
tool=raw/alpha/flows/bw/alpha/beta/1/client
node=raw/beta/host_check.json
of_engine="flow/engine/alpha/beta/1 coverage path/engine/*"
# nic_says COUNTER VALUE: that counter of alpha's NIC stood there after the flow
nic_says() { printf '.counters.after.cxi.cxi0.counters.%s = "%s"' "$1" "$2"; }
# services FROM TO: what cxi_service said of the node, with other words
services() { printf '.commands["services cxi0"].stdout |= sub("%s"; "%s")' "$1" "$2"; }

fault cxi-fallback slingshot INCONCLUSIVE "flow/engine/alpha/beta/1 coverage" "a fallback to a software provider: sockets in the place of the NIC" \
  edit "$engine.stdout" '.backend = "ofi" | .provider = "tcp;ofi_rxm"'
fault cxi-provider slingshot INCONCLUSIVE "simulated limits" "a NIC that its node does not have" edit raw/beta/environment.json '.cxi = []'
fault cxi-posing slingshot INCONCLUSIVE "simulated" "a simulated device in the place of the NIC" \
  says "$tool.stderr" 'cxi_write_bw: sim_cxi0 is a simulated device: these figures are no proof of hardware'
fault cxi-vni slingshot INCONCLUSIVE "$of_engine" "another VNI than planned" edit "$engine.stdout" '.client.vni = 11 | .params.vni = 11'
fault cxi-service slingshot INCONCLUSIVE "$of_engine" "another service than planned" edit "$engine.stdout" '.client.svc_id = 2 | .params.svc_id = 2'
fault cxi-tool-vni slingshot INCONCLUSIVE "flow/bw/alpha/beta/1 coverage path/bw/*" "a cxi tool that ran under another service than planned" \
  text "$tool.stdout" 's/^(Service ID *: )1$/\12/'
fault cxi-unit slingshot INCONCLUSIVE "flow/bw/alpha/beta/1 coverage path/bw/*" "another unit in the header of a cxi tool's table" text "$tool.stdout" 's,BW\[MB/s\],BW[GB/s],'
fault cxi-octets slingshot FAIL "path/engine/alpha/beta/1" "octets that the other NIC did not take" \
  edit raw/beta/flows/engine/alpha/beta/1/server.json '.counters.after.cxi.cxi0.counters.hni_sts_rx_ok_octets = "500000000"'
fault cxi-cancelled slingshot FAIL "counters/drops" "packets that a NIC gave up" edit "$engine.json" "$(nic_says pkts_cancelled_o 3)"
fault cxi-uncorrected slingshot FAIL "counters/errors" "codewords that nothing could correct" edit "$engine.json" "$(nic_says hni_pcs_uncorrected_cw 2)"
fault cxi-replays slingshot FAIL "counters/retransmissions" "frames that the link repeated" edit "$engine.json" "$(nic_says hni_llr_tx_replay_event 4000)"
fault cxi-carrier slingshot FAIL "counters/link" "a NIC whose link went down during a flow" edit "$engine.json" '.counters.after.netdev.hsn0.carrier_down_count = "2"'
fault cxi-slow slingshot FAIL "limit/write-bandwidth/engine" "a NIC at 80 %" \
  edit "$engine.stdout" '.elapsed_s /= 0.8 | .bandwidth |= (.gbit_s *= 0.8 | .messages_per_s *= 0.8)'
fault cxi-unchecked slingshot INCONCLUSIVE "host_check/skipped" "a node whose check was skipped" remove "$node"
fault cxi-no-vni slingshot FAIL "host_check/slingshot-service/beta/cxi0" "a service that does not allow the planned VNI" edit "$node" "$(services 'VNIs               : 1 10' 'VNIs               : 1 11')"
fault cxi-disabled slingshot FAIL "host_check/slingshot-service/beta/cxi0" "a service that is disabled" edit "$node" "$(services 'Enabled            : Yes' 'Enabled            : No')"
fault cxi-down slingshot FAIL "host_check/slingshot-link-state/beta/cxi0" "a NIC whose link is down" edit "$node" '.files["/sys/class/cxi/cxi0/device/port/link"] = "down"'
fault cxi-100 slingshot FAIL "host_check/slingshot-link-speed/beta/cxi0 ceiling" "a NIC whose link came up at half its speed" \
  edit "$node" '.files["/sys/class/cxi/cxi0/device/port/speed"] = "CK_100G"'
fault cxi-llr slingshot FAIL "host_check/slingshot-link-retry/beta/cxi0" "a link without its retry" edit "$node" '.files["/sys/class/cxi/cxi0/device/port/link_layer_retry"] = "off"'
fault cxi-handler slingshot FAIL "host_check/slingshot-retry-handler/beta/cxi0" "a retry handler that does not run" edit "$node" '.commands["retry-handler cxi0"].stdout = "failed"'
fault cxi-codewords slingshot FAIL "host_check/slingshot-codewords/beta/cxi0" "a link that loses codewords" \
  edit "$node" '.later["/sys/class/cxi/cxi0/device/telemetry/hni_pcs_uncorrected_cw"] = "9@1763726401.000000000"'
fault cxi-pause slingshot FAIL "host_check/slingshot-pfc/beta/cxi0" "global pause in the place of priority flow control" edit "$node" '.files["/sys/class/cxi/cxi0/device/port/pause"] = "global"'
fault cxi-looped slingshot FAIL "host_check/slingshot-loopback/beta/cxi0" "a port in loopback" edit "$node" '.files["/sys/class/cxi/cxi0/device/port/loopback"] = "internal"'
fault cxi-flapping slingshot FAIL "host_check/slingshot-link-flaps/beta/cxi0" "a NIC whose link went down again and again" \
  edit "$node" '(.collected | fromdate) as $now | .files["/sys/class/net/hsn0/carrier_down_count"] = "12" | .commands["link-events"] |= (.exit = 0 | .stdout = ([range(12) | "\($now - 300 + .).000000 beta kernel: cxi_ss1 0000:21:00.0: cxi0[hsn0]: CXI_EVENT_LINK_DOWN"] | join("\n")))'
fault cxi-hidden slingshot FAIL "host_check/slingshot-libfabric/beta/cxi0" "a NIC that libfabric does not offer" edit "$node" '.commands.libfabric.stdout |= gsub("domain: cxi0"; "domain: cxi1")'
fault cxi-gone slingshot FAIL "host_check/slingshot-device/beta host_check/*" "a NIC that is not there any more" \
  edit "$node" '.links |= with_entries(.key |= sub("cxi0"; "cxi1"))'
