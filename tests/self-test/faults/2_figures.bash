# shellcheck shell=bash
# Figures that cannot be, or that contradict one another, on the same recorded run.

latency=raw/alpha/flows/tcp-latency/alpha/beta/1
bandwidth=raw/alpha/flows/tcp-bandwidth/alpha/beta/1
of_latency="flow/tcp-latency/alpha/beta/1 coverage"
of_bandwidth="flow/tcp-bandwidth/alpha/beta/1 coverage"

fault zero loopback INCONCLUSIVE "$of_bandwidth" "a bandwidth of zero" text "$bandwidth/client.stdout" 's/"gbit_s":[0-9.]+/"gbit_s":0/'
fault negative loopback INCONCLUSIVE "$of_bandwidth" "a negative bandwidth" text "$bandwidth/client.stdout" 's/"gbit_s":[0-9.]+/"gbit_s":-21/'
fault nan loopback INCONCLUSIVE "$of_bandwidth" "a bandwidth that is not a number" text "$bandwidth/client.stdout" 's/"gbit_s":[0-9.]+/"gbit_s":nan/'
fault infinite loopback INCONCLUSIVE "$of_bandwidth" "an infinite bandwidth" text "$bandwidth/client.stdout" 's/"gbit_s":[0-9.]+/"gbit_s":1e999/'
fault absent-figure loopback INCONCLUSIVE "$of_bandwidth" "a bandwidth that is null, with status ok" text "$bandwidth/client.stdout" 's/"gbit_s":[0-9.]+/"gbit_s":null/'
fault swapped-unit loopback INCONCLUSIVE "$of_bandwidth" "gigabytes under the name of gigabits" edit "$bandwidth/client.stdout" '.bandwidth.gbit_s /= 8'
fault mib-as-mb loopback INCONCLUSIVE "$of_bandwidth" "MiB/s read as MB/s" edit "$bandwidth/client.stdout" '.bandwidth.gbit_s /= 1.048576'
fault edited-figure loopback INCONCLUSIVE "$of_bandwidth" "a raw figure that was edited upwards, its bytes and seconds left as they were" \
  edit "$bandwidth/client.stdout" '.bandwidth.gbit_s *= 1.2'
fault nanoseconds loopback INCONCLUSIVE "$of_latency" "nanoseconds under the name of microseconds" \
  edit "$latency/client.stdout" '.latency_us |= with_entries(if .key == "count" or .value == null then . else .value *= 1000 end)'
fault percentiles loopback INCONCLUSIVE "$of_latency" "a p99 below its p50" edit "$latency/client.stdout" '.latency_us.p99 = .latency_us.p50 / 2'
fault thin-percentile loopback INCONCLUSIVE "$of_latency" "a p99.99 of too few samples" edit "$latency/client.stdout" '.latency_us.p99_99 = .latency_us.max'
fault mean-outside loopback INCONCLUSIVE "$of_latency" "a mean above the maximum" edit "$latency/client.stdout" '.latency_us.mean = .latency_us.max * 2'
fault too-fast loopback INCONCLUSIVE "$of_bandwidth" "a bandwidth that no link of today carries, its bytes made to fit" \
  edit "$bandwidth/client.stdout" '.bandwidth |= (.bytes *= (200000 / .gbit_s) | .gbit_s = 200000)'
fault corrupted loopback FAIL "integrity flow/tcp-verify/alpha/beta/1 coverage" "a payload of which one byte arrived corrupted" \
  edit raw/alpha/flows/tcp-verify/alpha/beta/1/client.stdout '.integrity.bad_bytes = 1'
fault unchecked loopback INCONCLUSIVE "flow/tcp-verify/alpha/beta/1 coverage" "a verified flow that checked no byte" \
  edit raw/alpha/flows/tcp-verify/alpha/beta/1/client.stdout '.integrity.checked_bytes = 0'
fault slow-iperf loopback FAIL "limit/iperf-bandwidth/iperf clock/ends" "a rate in Mbits/sec far below its limit" \
  of raw/alpha/flows/iperf/alpha/beta/1/client.stdout +tools/iperf_slow.txt

transfers=raw/alpha/flows/tcp-write/alpha/beta/1/client.stdout
of_transfers="flow/tcp-write/alpha/beta/1 coverage"
fault transfer-pair transfers INCONCLUSIVE "$of_transfers" "transfers of a pair of devices that are not there, though their sum is" text "$transfers" '1d'
fault transfer-sum transfers INCONCLUSIVE "$of_transfers" "a sum of transfers that is more than its pairs" \
  edit "$transfers" 'if .kind == "sum" then .bandwidth |= (.gbit_s *= 1.5 | .bytes *= 1.5 | .messages_per_s *= 1.5) else . end'
fault transfer-unit transfers INCONCLUSIVE "$of_transfers limits" "transfers whose gigabytes stand under the name of gigabits" edit "$transfers" '.bandwidth.gbit_s /= 8'
fault transfer-batch transfers INCONCLUSIVE "$of_transfers limits" "transfers in other batches than planned" edit "$transfers" '.params.batch = 16'
fault transfer-latency transfers INCONCLUSIVE "$of_transfers limits" "batches that took longer than all of their time" \
  edit "$transfers" '.latency_us |= with_entries(if .key == "count" or .value == null then . else .value *= 4 end)'
fault too-short loopback INCONCLUSIVE "$of_bandwidth" "a measurement of half of the time that was asked for" \
  edit "$bandwidth/client.stdout" '.elapsed_s /= 2 | .bandwidth.bytes /= 2'
fault transfer-times transfers INCONCLUSIVE "$of_transfers" "a sum of transfers whose batches deviate more than those of its pairs" edit "$transfers" 'if .kind == "sum" then .latency_us.stddev *= 1.5 else . end'
