#!/usr/bin/env bats
# reports/import: records of outputs that were measured elsewhere. Outputs: tests/fixtures/README.md.
bats_require_minimum_version 1.5.0
load helpers

setup() {
  cd "$BATS_TEST_DIRNAME/../fixtures" || return
  import=../../reports/import
}

@test "import: an output of each tool becomes records, and a file without a line end stays apart from the next" {
  printf %s "$(cat perftest/4.5/send_lat.txt)" >"$BATS_TEST_TMPDIR/cut.txt"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR/cut.txt" perftest/4.5/write_bw_both.json tools/iperf_slow.txt cxi/send_bw.txt \
    loopback/run/raw/*/flows/*/*/*/1/client.stdout
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  run jq -sc '[.[].schema] | unique' <<<"$output"
  [ "$output" = '["perch.record/1"]' ]
}

@test "import: figures, units and scope are those of the output" {
  run --separate-stderr "$import" tools/iperf_slow.txt cxi/send_bw.txt perftest/4.5/send_lat.txt
  [ "$status" -eq 0 ]
  run jq -sc 'map([.scope, .bandwidth.gbit_s // .latency_us.mean, .params.sl])' <<<"$output"
  [ "$output" = '[["software",0.0505,null],["imported",190.18016,null],["software",81.88,null]]' ]
}

@test "import: what cannot be read is named with file and line, and the rest is printed" {
  sed 's/Gb\/sec/furlongs/g' perftest/4.5/send_bw_gbits_4.txt >"$BATS_TEST_TMPDIR/unit.txt"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR/unit.txt" tools/iperf3_killed.json cxi/send_lat_server.txt tools/iperf_refused.err \
    perftest/4.5/wrong_device.txt none.txt perftest/25.01/send_bw_both_duration.txt mori/cx7-read-size.txt perftest/4.5/send_lat.txt
  [ "$status" -eq 1 ]
  [ "$(wc -l <<<"$output")" -eq 1 ]
  [ "$(grep -cE '^import: [^:]+:[0-9]+: .+; .+' <<<"$stderr")" -eq 8 ]
  [[ $stderr == *"unit.txt:"*"unknown column"* ]]
}

@test "import: a JSON document of perftest whose message rate fits no unit is refused" {
  sed -E 's/(MsgRate *: *)[0-9.]+/\112345.0/' perftest/4.5/write_bw_both.json >"$BATS_TEST_TMPDIR/rate.json"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR/rate.json"
  [ "$status" -eq 1 ]
  [ -z "$output" ]
}

@test "import: a reader that ends in the middle is an error, and does not look like fewer outputs" {
  # the real jq, but for the reader of the cxi tools, which is killed
  mkdir "$BATS_TEST_TMPDIR/bin"
  printf '#!/bin/bash\n[[ "$*" != *import_cxi.jq* ]] || kill -KILL $$\nexec "%s" "$@"\n' "$(command -v jq)" >"$BATS_TEST_TMPDIR/bin/jq"
  chmod +x "$BATS_TEST_TMPDIR/bin/jq"
  PATH=$BATS_TEST_TMPDIR/bin:$PATH run --separate-stderr "$import" cxi/send_bw.txt perftest/4.5/send_lat.txt
  [ "$status" -eq 1 ]
  [[ $stderr == *"import: reading the outputs of cxi ended in the middle"* ]]
  [ "$(wc -l <<<"$output")" -eq 1 ]
}

@test "import: without a file it says how it is used" {
  run "$import"
  [ "$status" -eq 2 ]
}

@test "import: notes in Markdown give each table its record, named by its heading, with what commands and settings say" {
  run --separate-stderr "$import" import/notes.md
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  run jq -sc 'map([.test, .bandwidth.gbit_s // .latency_us.mean, .client.device, .link.rate_gbit_s])[]' <<<"$output"
  [ "$output" = '["ib_send_bw-Bandwidth-Test",9.23,"rocep11s0",10]
["Initial-Test-Untuned-System",52.07,"rocep19s0",10]
["After-Initial-Tuning",14.85,"rocep19s0",10]
["Final-Results-Optimized",14.37,"rocep19s0",10]
["TCP-Performance-Baseline-iperf",4.67,null,10]' ]
}

@test "import: settings and command of notes become the record's; what they do not say stays null" {
  run jq -sc '.[0] | [.op, .connection, .params.queue_pairs, .params.outstanding, .link.mtu_bytes, .link.layer, .params.srq]' <("$import" import/notes.md)
  [ "$output" = '["send","RC",4,512,1024,"ethernet",null]' ]
  run jq -sc '.[3] | [.link.mtu_bytes, .link.layer, .latency_us.p99, .latency_us.p99_9]' <("$import" import/notes.md)
  [ "$output" = '[null,null,15.85,21.7]' ]
}

@test "import: a link rate in words counts where a document states exactly one; the person's word outranks it" {
  sed 's/92% of 10G link/92% of 10G link, of a 25G link/' import/notes.md >"$BATS_TEST_TMPDIR/two.md"
  run jq -sc 'map(.link.rate_gbit_s) | unique' <("$import" "$BATS_TEST_TMPDIR/two.md")
  [ "$output" = '[null]' ]
  run jq -sc 'map(.link.rate_gbit_s) | unique' <("$import" --link-rate 25 "$BATS_TEST_TMPDIR/two.md")
  [ "$output" = '[25]' ]
}

@test "import: a table whose command asks for something else, or of which several commands or none speak, is refused" {
  refused() {
    run --separate-stderr "$import" "$BATS_TEST_TMPDIR/notes.md"
    [ "$status" -eq 1 ] && [[ $stderr == *"notes.md:$1:"*"$2"* ]] || {
      echo "$stderr"
      return 1
    }
  }
  sed 's/-n 5000 -q 4 -F/-n 5000 -q 2 -F/; s/- \*\*Number of QPs\*\*: 4/- x/' import/notes.md >"$BATS_TEST_TMPDIR/notes.md"
  refused 43 '20000 messages of 10000'
  sed 's/-s 1048576/-s 65536/' import/notes.md >"$BATS_TEST_TMPDIR/notes.md"
  refused 42 'command asks for 65536'
  sed '11a ib_send_bw -d rocep11s0 192.168.251.112' import/notes.md >"$BATS_TEST_TMPDIR/notes.md"
  refused 43 'which of them printed it'
  sed '11d' import/notes.md >"$BATS_TEST_TMPDIR/notes.md"
  refused 41 'no command'
}

@test "import: documents of other tools: both ends' outputs in one manual page, and five sweeps of MORI-IO" {
  run --separate-stderr "$import" import/cxi_send_lat.1.md import/mori-io-benchmark.md
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  run jq -sc 'map(.tool.name) | group_by(.) | map([.[0], length])' <<<"$output"
  [ "$output" = '[["cxi",12],["mori",86]]' ]
}

@test "import: several outputs in one log are told apart by their own words, and a fault has the line of the log" {
  {
    echo '$ ib_send_lat -d rxe0 192.0.2.1'
    cat perftest/4.5/send_lat.txt
    echo '$ iperf -c 192.0.2.2 -t 2'
    cat tools/iperf_plain.txt tools/iperf3_streams.json
    sed 's/ 4096  .*/ 4096       5                nan               1.87   \t\t     0.000478/' perftest/25.01/write_bw_all.txt
  } >"$BATS_TEST_TMPDIR/log"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR/log"
  [ "$status" -eq 1 ]
  run jq -sc 'map(.tool.name) | group_by(.) | map([.[0], length])' <<<"$output"
  [ "$output" = '[["iperf",1],["iperf3",1],["perftest",23]]' ]
  number=$(grep -n nan "$BATS_TEST_TMPDIR/log" | cut -d: -f1)
  [[ $stderr == "import: $BATS_TEST_TMPDIR/log:$number: "*"nan"* ]]
}

@test "import: iperf 2: CSV of one stream and of three, text with a sum, and a total that is none" {
  run jq -sc 'map([.bandwidth.gbit_s, .params.queue_pairs, (.intervals | length)])' \
    <("$import" tools/iperf_csv.txt tools/iperf_csv_e.txt tools/iperf_csv_streams.txt tools/iperf_streams.txt tools/iperf_e_streams.txt tools/iperf_plain.txt)
  [ "$output" = '[[19.319245,1,2],[11.877747,1,2],[30.315312,3,2],[19.9,3,2],[28.6,3,2],[14.8,1,0]]' ]
  head -n 2 tools/iperf_csv.txt >"$BATS_TEST_TMPDIR/cut.csv"
  sed 's/,18686673376/,86866733760/' tools/iperf_csv.txt >"$BATS_TEST_TMPDIR/rate.csv"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR"/{cut,rate}.csv
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  [[ $stderr == *"cut.csv:2: "*"truncated"* ]]
  [[ $stderr == *"rate.csv:1: "*"disagree"* ]]
}

@test "import: UDP: iperf3's figure is the receiver's, with loss and jitter; iperf 2 knows the sender's only" {
  run jq -c '[.bandwidth.gbit_s, .definition, .connection, .loss, .tcp]' <("$import" tools/iperf3_udp.json)
  [ "$output" = '[0.098444,"receiver_payload","datagram",{"sent_messages":17265,"lost_messages":265,"jitter_us":12.3},null]' ]
  jq 'del(.end.sum_received)' tools/iperf3_udp.json >"$BATS_TEST_TMPDIR/sender.json"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR/sender.json" tools/iperf_udp.txt tools/iperf_udp_csv.txt
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  [ "$(grep -c '^import: ' <<<"$stderr")" -eq 3 ]
  [[ $stderr == *"iperf_udp.txt:2: it is UDP's"* ]]
}

@test "import: iperf3: streams and both ways are summed; an error, half a document and text name their line" {
  run jq -sc 'map([.bandwidth.gbit_s, .params.queue_pairs, .params.bidirectional])' <("$import" tools/iperf3_streams.json tools/iperf3_bidir.json)
  [ "$output" = '[[16.598462,3,false],[13.055332,1,true]]' ]
  head -n 100 tools/iperf3_streams.json >"$BATS_TEST_TMPDIR/half.json"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR/half.json" tools/iperf3_refused.json tools/iperf3_text.txt
  [ "$status" -eq 1 ]
  [[ $stderr == *"half.json:100: "*"truncated"* ]]
  [[ $stderr == *"iperf3_refused.json:10: iperf3: unable to connect"* ]]
  [[ $stderr == *"iperf3_text.txt:1: "*"-J"* ]]
}

@test "import: iperf3: sums that its streams or its sender deny, lost streams and half of its time are errors" {
  local n=0 edit
  for edit in '.end.sum_received |= (.bytes *= 3 | .bits_per_second *= 3)' \
    '.end |= ((.sum_received, .sum_sent) |= (.bytes *= 3 | .bits_per_second *= 3))' \
    '.end.sum_received |= (.seconds /= 2 | .bits_per_second *= 2)' '.end.streams |= .[1:]'; do
    n=$((n + 1))
    jq "$edit" tools/iperf3_streams.json >"$BATS_TEST_TMPDIR/$n.json"
  done
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR"/{1,2,3,4}.json
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  [[ $stderr == *"1.json:"*"more was received than was sent"* ]]
  [[ $stderr == *"2.json:"*"its streams received"* ]]
  [[ $stderr == *"3.json:"*"it lasted 1.000978 s of 2 s"* ]]
  [[ $stderr == *"4.json:"*"it has 2 streams, and 3 were asked for"* ]]
}

@test "import: iperf 2: several streams that were cut off are no total, and half a number of retries is none" {
  head -n 13 tools/iperf_e_streams.txt >"$BATS_TEST_TMPDIR/second.txt" # as if it had lasted one second
  head -n 16 tools/iperf_e_streams.txt >"$BATS_TEST_TMPDIR/interval.txt"
  sed 's/^\(\[SUM\] 0.0000-2.*\)15$/\11/' tools/iperf_e_streams.txt >"$BATS_TEST_TMPDIR/sum.txt"
  sed '$s/ 33 .*/ 3/' tools/iperf_mbytes.txt >"$BATS_TEST_TMPDIR/one.txt"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR"/{second,interval,sum,one}.txt
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  [[ $stderr == *"second.txt:13: "*"may be an interval"* ]]
  [[ $stderr == *"interval.txt:"*"ends with an interval, not with its total"* ]]
  [[ $stderr == *"sum.txt:"*"retries of its streams"* ]]
  [[ $stderr == *"one.txt:"*"has no end"* ]]
}

@test "import: perftest: an average that its least and its median deny, parts of a message and a column twice are errors" {
  sed 's/^ 64 .*/ 64 1000 15.30 23876.07 16.32 15.31 986.67 79.57 23876.07/' perftest/4.5/send_lat.txt >"$BATS_TEST_TMPDIR/mean.txt"
  sed 's/^ 64      1000 / 64      1000.5 /' perftest/4.5/send_lat.txt >"$BATS_TEST_TMPDIR/half.txt"
  sed 's/t_min\[usec\]/t_avg[usec]/' perftest/4.5/send_lat.txt >"$BATS_TEST_TMPDIR/twice.txt"
  "$import" perftest/4.5/send_lat.txt | sed 's/"mean":81.88/"mean":1/' >"$BATS_TEST_TMPDIR/mean.jsonl"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR"/{mean,half,twice}.txt "$BATS_TEST_TMPDIR/mean.jsonl"
  [ "$status" -eq 1 ]
  [ -z "$output" ]
  [[ $stderr == *"mean.txt:23: "*"t_avg of 15.31 us is below"* ]]
  [[ $stderr == *"half.txt:23: "*"#iterations is 1000.5"* ]]
  [[ $stderr == *"twice.txt:22: "*"column avg twice"* ]]
  [[ $stderr == *"mean.jsonl:1: "*"mean lies below"* ]]
}

@test "import: perftest: whole frames of raw Ethernet have a definition and no ceiling of their own" {
  run jq -c '[.definition, .connection, .bandwidth.gbit_s, .link.layer]' <("$import" perftest/formats/raw_ethernet_bw.txt)
  [ "$output" = '["frame_completion","RawEth",95.624343,null]' ]
}

@test "import: a document of perftest without a unit: the message rate tells MiB/s from Gb/s" {
  jq -n '{test_info: {test: "Send_BW_Test", Number_of_qps: 1, Connection_type: "RC", Link_type: "IB", Mtu: 4096, TX_depth: 128},
          results: {MsgSize: 65536, n_iterations: 5000, BW_peak: 98.1, BW_average: 97.51, MsgRate: 0.185985}}' >"$BATS_TEST_TMPDIR/gb.json"
  jq '.results += {BW_average: 11624.1, BW_peak: 11700.5}' "$BATS_TEST_TMPDIR/gb.json" >"$BATS_TEST_TMPDIR/mib.json"
  jq 'del(.results.MsgRate)' "$BATS_TEST_TMPDIR/gb.json" >"$BATS_TEST_TMPDIR/none.json"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR"/{gb,mib,none}.json
  [ "$status" -eq 1 ]
  [[ $stderr == "import: $BATS_TEST_TMPDIR/none.json:"*"unit"* ]]
  run jq -sc 'map(.bandwidth.gbit_s | floor)' <<<"$output"
  [ "$output" = '[97,97]' ]
}

@test "import: no figure is 0, nan or inf, and of a half table only what is whole is printed" {
  head -n 30 perftest/25.01/write_bw_all.txt >"$BATS_TEST_TMPDIR/half.txt"
  sed 's/ 8192  .*/ 8192       5                0.00               0.00   \t\t     0.000000/' perftest/25.01/write_bw_all.txt >"$BATS_TEST_TMPDIR/zero.txt"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR"/{half,zero}.txt
  [ "$status" -eq 1 ]
  [[ $stderr == *"half.txt:30: "*"no end"* ]]
  [[ $stderr == *"zero.txt:$(grep -n ' 8192  ' "$BATS_TEST_TMPDIR/zero.txt" | cut -d: -f1): "* ]]
  [ "$(wc -l <<<"$output")" -eq $((7 + 22)) ]
}

@test "import: records of another run keep their names, and lose their proof; what cannot be is refused" {
  "$import" import/notes.md >"$BATS_TEST_TMPDIR/records.jsonl"
  run jq -sc 'map([.flow, .tool.name, .path.state]) | .[0, 4]' <("$import" "$BATS_TEST_TMPDIR/records.jsonl")
  [ "$output" = '["ib_send_bw-Bandwidth-Test/unknown/unknown/1","perftest","not_judged"]
["TCP-Performance-Baseline-iperf/unknown/unknown/5","iperf","not_judged"]' ]
  sed -i '1s/"gbit_s":9.23/"gbit_s":19.23/; 2s/"min":13.98/"min":1e999/; 3s/"status":"ok"/"status":"error"/; 4s/.$//' "$BATS_TEST_TMPDIR/records.jsonl"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR/records.jsonl"
  [ "$status" -eq 1 ]
  [ "$(wc -l <<<"$output")" -eq 1 ]
  for line in 1 2 3 4; do [[ $stderr == *"records.jsonl:$line: "* ]]; done
}

@test "import: many files cost a handful of processes" {
  mkdir "$BATS_TEST_TMPDIR/many"
  for i in {1..300}; do cp perftest/4.5/send_lat.txt "$BATS_TEST_TMPDIR/many/$i.txt"; done
  start=$EPOCHREALTIME
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR"/many/*.txt
  [ "$status" -eq 0 ]
  [ "$(wc -l <<<"$output")" -eq 300 ]
  # a process for each would be 300 times as long as that of one (0.2 s on an idle machine)
  [ $(((${EPOCHREALTIME/./} - ${start/./}) / 1000000)) -lt 30 ]
}
