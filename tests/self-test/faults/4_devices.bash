# shellcheck shell=bash
# What devices counted: on a recorded run over Soft-RoCE, and on the same composed as hardware.

client=raw/alpha/flows/write-latency/alpha/beta/1/client.json
server=raw/beta/flows/write-latency/alpha/beta/1/server.json
verbs=raw/alpha/flows/verbs-write-bandwidth/alpha/beta/1
of_path="path/write-latency/alpha/beta/1"

fault still-counters rxe FAIL "$of_path" "counters that did not move" edit "$client" '.counters.after = .counters.before'
fault lost-packet rxe FAIL "$of_path" "a device that counted fewer packets than it was sent" \
  edit "$server" '.counters.after.rdma["rxe0/1"].counters.rcvd_pkts = (.counters.before.rdma["rxe0/1"].counters.rcvd_pkts | tonumber + 100 | tostring)'
fault no-counters rxe INCONCLUSIVE "$of_path" "a flow of RDMA whose agent left no counters" edit "$client" '.counters = null'
fault wrapped rxe INCONCLUSIVE "$of_path" "a counter that went back" \
  edit "$client" '.counters |= (.before.rdma["rxe0/1"].counters.sent_pkts = "4294967290" | .after.rdma["rxe0/1"].counters.sent_pkts = "5")'
fault other-device rxe INCONCLUSIVE "flow/verbs-write-bandwidth/alpha/beta/1 coverage" "an output of another device than planned" \
  edit "$verbs/client.stdout" '.client.device = "rxe1"'
fault other-port rxe FAIL "$of_path" "traffic over another port than planned" \
  edit "$client" '.counters |= ((.before, .after).rdma |= (.["rxe0/2"] = .["rxe0/1"]) | .after.rdma["rxe0/1"] = .before.rdma["rxe0/1"])'
fault small-claim rxe INCONCLUSIVE "flow/verbs-write-bandwidth/alpha/beta/1 coverage" "a claim of fewer bytes than the figures need" \
  edit "$verbs/client.stdout" '.path.client_sent_bytes = 6553599'
fault lossy rxe FAIL "limit/packets-lost/send-bandwidth" "packets that one device sent and the other did not take" \
  limits_of rxe , edit raw/alpha/flows/send-bandwidth/alpha/beta/1/client.json '.counters.after.rdma["rxe0/1"].counters.sent_pkts |= (tonumber + 30 | tostring)'
fault stalled rxe FAIL "limit/stall/verbs-write-bandwidth" "traffic that stood still for longer than a queue pair's retries" \
  limits_of rxe , edit "$verbs/client.stdout" '.stall = {longest_s: 5.2, start_s: 0.5, began: "2026-01-01T00:00:00.500Z"}'

fault posing cards INCONCLUSIVE "$of_path path/*" "a software device posing as hardware: nothing names its driver" edit 'raw/*/environment.json' 'del(.rdma)'
fault posing-one-end cards INCONCLUSIVE "$of_path path/*" "a driver that only one end names" edit raw/beta/environment.json 'del(.rdma)'
fault posing-rxe cards INCONCLUSIVE "software" "a software device posing as hardware under a card's name" edit 'raw/*/environment.json' '.rdma[].driver = "rdma_rxe"'
fault posing-counters cards INCONCLUSIVE "software" "a software device posing as hardware under a card's name and driver: its counters are a soft device's" \
  edit 'raw/*/flows/verbs-write-bandwidth/*/*/*/*.json' ' .counters.before.rdma["mlx5_0/1"].counters += {sent_pkts: "0", rcvd_pkts: "0"} | .counters.after.rdma["mlx5_0/1"].counters += {sent_pkts: "900", rcvd_pkts: "900"}'
fault simulated cards INCONCLUSIVE "simulated" "a simulation posing as hardware" edit "$verbs/client.stdout" '.simulated = true'
fault foreign-traffic cards INCONCLUSIVE "$of_path" "somebody else's traffic on the device" \
  edit "$client" '.counters.after.rdma["mlx5_0/1"].counters.port_xmit_data = "9000000000"'
