# shellcheck shell=bash
# Speed, evenness, counters and clocks, on a composed fabric of five hosts: what only hardware is held to.

slow='raw/gamma/flows/write-bandwidth/gamma/delta/1/client.stdout'
writes=raw/alpha/flows/write-bandwidth/alpha/beta/1
steady=raw/alpha/flows/steady-bandwidth/alpha/beta/1/client.stdout
sends=raw/alpha/flows/send-latency/alpha/beta/1/client.stdout
weaken='.bandwidth.gbit_s *= 0.8 | .bandwidth.messages_per_s *= 0.8 | .elapsed_s /= 0.8'
# card_says COUNTER VALUE: that counter of alpha's card stood there after the flow
card_says() { printf '.counters.after.rdma["mlx5_0/1"].counters.%s = "%s"' "$1" "$2"; }

fault above-line-rate fabric FAIL "ceiling" "a result above line rate" \
  edit "$writes/client.stdout" '(.bandwidth.gbit_s / 99.5) as $f | .elapsed_s *= $f | .bandwidth |= (.gbit_s = 99.5 | .messages_per_s /= $f)'
fault at-80 fabric FAIL "limit/site-peers/write-bandwidth limit/large-message-share/write-bandwidth" "a result at 80 % of what its like have" edit "$slow" "$weaken"
fault peer-disagrees fabric FAIL "agreement/bandwidth-write-RC limit/large-message-share/perftest-write-bandwidth" "an engine and perftest that differ by a fifth on one path" \
  scale_table raw/alpha/flows/perftest-write-bandwidth/alpha/beta/1/client.stdout 0.8
fault perftest-unit fabric INCONCLUSIVE "flow/perftest-write-bandwidth/alpha/beta/1 coverage path/*" "another unit in the header of perftest's table" \
  text raw/alpha/flows/perftest-write-bandwidth/alpha/beta/1/client.stdout 's,MiB/sec,Gb/sec,g'
fault no-rate-told fabric INCONCLUSIVE "limit/large-message-share/perftest-write-bandwidth" "a host that does not tell its link's rate, nor does the tool" \
  edit raw/beta/environment.json '.interfaces[].rate_gbit_s = null'
fault slower-end fabric FAIL "ceiling" "an end whose link is slower than the result" edit raw/beta/environment.json '.interfaces[].rate_gbit_s = 50'
fault bad-interval fabric FAIL "interval/steady-bandwidth" "one bad interval in ten minutes, its bytes made up for by the others" \
  edit "$steady" 'if .kind == "interval" and .start_s == 300 then .gbit_s = 20 elif .intervals then .intervals[30].gbit_s = 20 | .bandwidth.min_interval_gbit_s = 20 else . end'
fault tail-spike fabric FAIL "tail/send-latency" "a tail spike: a p99 of twenty medians" \
  edit "$sends" '.latency_us |= (.p99 = .p50 * 20 | .max = ([.max, .p99 * 1.1] | max))'
fault slow-median fabric FAIL "limit/small-message-median/send-latency" "a median above its limit" \
  edit "$sends" '.elapsed_s *= 10 | .latency_us |= with_entries(if .key == "count" or .value == null then . else .value *= 10 end)'
fault definitions fabric INCONCLUSIVE "flow/send-latency/alpha/beta/1 coverage path/send-latency/*" "a latency of another definition than its operation can have" \
  edit "$sends" '.definition = "completion"'

fault dropped fabric FAIL "counters/drops" "packets that the card dropped" edit "$writes/client.json" "$(card_says port_xmit_discards 7)"
fault damaged fabric FAIL "counters/errors" "damaged packets on a link" edit "$writes/client.json" "$(card_says port_rcv_errors 40) | $(card_says symbol_error 40)"
fault flap fabric FAIL "counters/link" "a link that went down during a flow" edit "$writes/client.json" "$(card_says link_downed 1)"
fault retransmitted fabric FAIL "counters/retransmissions limit/*" "retransmissions beyond what noise explains" edit "$writes/client.json" "$(card_says local_ack_timeout_err 5000)"
fault disordered fabric FAIL "counters/out-of-sequence" "packets that came out of order" edit "$writes/client.json" "$(card_says out_of_sequence 5000)"
fault aer fabric FAIL "counters/pcie" "an error that PCIe could not correct" \
  edit "$writes/client.json" '(.counters.before, .counters.after).rdma["mlx5_0/1"].counters.aer_nonfatal = "4" | .counters.after.rdma["mlx5_0/1"].counters.aer_nonfatal = "5"'
fault counters-hollow fabric INCONCLUSIVE "counters/still" "bytes that a card counted in no packet" \
  edit "$writes/client.json" '.counters.after.rdma["mlx5_0/1"].counters |= (.port_xmit_packets = "0" | .port_rcv_packets = "0")'
fault counters-still fabric FAIL "path/write-bandwidth/alpha/beta/1" "counters of a card that did not move" edit "$writes/client.json" '.counters.after.rdma = .counters.before.rdma'
fault counters-reset fabric INCONCLUSIVE "counters/reset *" "counters that were cleared during a flow" \
  edit "$writes/client.json" '.counters.before.rdma["mlx5_0/1"].counters |= map_values("999999999999") | .counters.before.netdev.enp1s0 |= map_values("999999999999")'
fault counters-blind fabric INCONCLUSIVE "counters/missing" "a card that does not count what goes wrong" \
  edit "$writes/client.json" '(.counters.before, .counters.after).rdma["mlx5_0/1"].counters |= with_entries(select(.key | test("^port_(xmit|rcv)_(data|packets)$")))'
fault skewed fabric INCONCLUSIVE "clock/ends" "clocks of two hosts ten minutes apart" \
  edit 'raw/beta/flows/write-bandwidth/alpha/beta/1/server.json' '.started |= sub("T00:00"; "T00:10") | .ended |= sub("T00:00"; "T00:10")'
fault lived fabric INCONCLUSIVE "flow/steady-bandwidth/alpha/beta/1 coverage path/*" "ten minutes that were measured by a process of two" \
  edit raw/alpha/flows/steady-bandwidth/alpha/beta/1/client.json '.elapsed_s = 120'
