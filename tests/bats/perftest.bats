#!/usr/bin/env bats
# perftest beside the engine: what its programs of two Debian releases printed, a recorded run of both, and the check that
# says whether they agree.

load helpers

FIXTURES=$TOP/tests/fixtures/perftest

setup() { common_setup; }
teardown() { common_teardown; }

# part FILE ARGUMENT...: the parts that are read from a real output, of that command
part() {
  local file=$FIXTURES/$1
  shift
  jq -n -c -L "$TOP/reports/jq" --rawfile out "$file" --args "$(imports perftest=p)"'
    [p::parts($out | split("\n"); []; {client_argv: $ARGS.positional, server_argv: ["-d", "rxe0"]}; "6.06")[]]' -- "$@" >part.json
}

recorded_run() {
  cp -r "$FIXTURES/run" run
  chmod -R u+w run
}

# judged VERDICT-EXIT
judged() { run_expecting "$1" "$TOP/reports/judge" run; }

@test "latency: min, typical, mean, percentiles and settings, of 4.5 and 25.01" {
  part 4.5/send_lat.txt ib_send_lat -n 1000
  assert_json part.json 'length == 1 and .[0].status == "ok" and .[0].definition == "half_round_trip" and .[0].latency_us.p50 == 16.32
    and .[0].latency_us.p99 == 79.57 and .[0].params.inline_bytes == 0 and .[0].link == {mtu_bytes: 4096, layer: "ethernet"}'
  part 4.5/read_lat.txt ib_read_lat -n 1000
  assert_json part.json '.[0].status == "ok" and .[0].definition == "completion" and .[0].latency_us.p50 == 21.6'
  part 4.5/atomic_lat.txt ib_atomic_lat -n 1000
  assert_json part.json '.[0].status == "ok" and .[0].op == "compare-swap" and .[0].params.size_bytes == 8'
  part 4.5/send_lat_ud.txt ib_send_lat -n 1000
  assert_json part.json '.[0].status == "ok" and .[0].connection == "UD"'
  part 4.5/send_lat_cm.txt ib_send_lat -n 1000 -R
  assert_json part.json '.[0].status == "ok" and .[0].params.rdma_cm == true'
  part 25.01/send_lat_events.txt ib_send_lat -n 1000 -e
  assert_json part.json '.[0].status == "ok" and .[0].params.completion == "event" and .[0].latency_us.p50 == 1870.14
    and .[0].client == {device: "rxe0", address: "::ffff:192.0.2.1"} and .[0].server.address == "::ffff:192.0.2.2"'
}

@test "latency by duration has a mean and no percentile, and inf is an error" {
  part 25.01/read_lat_duration.txt ib_read_lat -D 3 -f 1
  assert_json part.json '.[0].status == "ok" and .[0].latency_us.mean == 17493.11 and .[0].latency_us.p50 == null and .[0].latency_us.min == null'
  part 4.5/send_lat_duration.txt ib_send_lat -D 3 -f 1
  assert_json part.json '.[0].status == "error" and (.[0].error.message | test("is inf"))'
}

@test "bandwidth: MB and MiB are 2^20 bytes, Gb 10^9 bits; queue pairs, both ways, post lists and durations" {
  part 4.5/send_bw_gbits_4.txt ib_send_bw -n 500 -q 4
  assert_json part.json '.[0].status == "ok" and .[0].params.queue_pairs == 4 and (.[0].bandwidth.gbit_s - 0.22 | fabs) < 0.005
    and .[0].bandwidth.bytes == 4 * 500 * 65536'
  part 4.5/write_bw_both.txt ib_write_bw -n 500 -b
  assert_json part.json '.[0].status == "ok" and .[0].params.bidirectional and .[0].bandwidth.gbit_s == 0.053268 and .[0].bandwidth.bytes == 2 * 500 * 65536'
  part 4.5/write_bw_list.txt ib_write_bw -n 1600 -l 16
  assert_json part.json '.[0].status == "ok" and .[0].params.batch == 16'
  part 25.01/read_bw_duration.txt ib_read_bw -D 3 -f 1
  assert_json part.json '.[0].status == "ok" and (.[0].elapsed_s - 1 | fabs) < 0.1 and .[0].bandwidth.peak_gbit_s == null and .[0].claims.sent == 0'
  part 25.01/write_bw_all.txt ib_write_bw -a -n 5
  assert_json part.json 'length == 23 and all(.[]; .status == "ok") and .[22].params.size_bytes == 8388608'
  part 25.01/atomic_bw.txt ib_atomic_bw -n 1000
  assert_json part.json '.[0].status == "ok" and .[0].bandwidth.gbit_s > 0'
}

@test "JSON gives what the text gives; 4.5's is no JSON and is read all the same" {
  local file
  for file in 4.5/send_lat 4.5/write_bw_both 25.01/send_lat_events 25.01/send_bw_both_duration; do
    local -a argv=(-n 1000)
    case $file in *both_duration) argv=(-D 3 -f 1) ;; *both) argv=(-n 500) ;; esac
    part "$file.txt" "${argv[@]}"
    jq '.[0] | {status, op, kind, latency_us, bandwidth, completion: .params.completion, link}' part.json >text
    part "$file.json" "${argv[@]}"
    jq '.[0] | {status, op, kind, latency_us, bandwidth, completion: .params.completion, link}' part.json >json
    assert_json json '.status == "ok"'
    run diff text json
    assert_success
  done
}

@test "a table without an end or without a row, and no output at all, are errors" {
  part 4.5/send_bw_all.txt ib_send_bw -a -n 50
  assert_json part.json 'length > 3 and (last | .status == "error" and (.error.message | test("truncated")))'
  part 25.01/send_bw.txt ib_send_bw -n 300
  assert_json part.json 'length == 1 and .[0].status == "error" and (.[0].error.message | test("table is empty"))'
  part 4.5/wrong_device.txt ib_send_lat
  assert_json part.json '.[0].status == "error" and (.[0].error.message | test("it is empty"))'
}

@test "a run of engine and perftest: every flow has its record, and inf keeps the run from passing" {
  recorded_run
  judged 3
  assert_output --partial "11 of 12 records measured"
  jq -s . run/records.jsonl >records.json
  assert_json records.json 'all(.[]; .scope == "software") and ([.[] | select(.tool.name == "perftest" and .status == "ok")] | length) == 6
    and all(.[] | select(.tool.name == "perftest" and .status == "ok"); .tool.version == "6.06" and .backend == null)'
  assert_json records.json '[.[] | select(.status != "ok")] | length == 1 and (.[0].error.message | test("inf"))'
  local record
  split -l 1 run/records.jsonl record.
  for record in record.*; do mv "$record" "$record.json"; done
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/record.schema.json" record.*.json
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/verdict.schema.json" run/verdict.json
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" run/plan.json
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/environment.schema.json" run/raw/alpha/environment.json
}

@test "agreement: judged where definition and settings are the same, by the run's limits; else the reason is said" {
  recorded_run
  judged 3
  # perftest lets PCIe reorder unless told otherwise, the engine does not: a required limit that cannot be judged so cannot pass
  assert_json run/verdict.json '.agreement | any(.[]; .op == "write" and .metric == "gbit_s" and .state == "not_judged"
    and (.reason | test("relaxed_ordering: engine false, perftest true")))'
  jq '.limits |= map(if .id == "agreement-bandwidth" then .severity = "required" else . end)' run/inputs/limits.json >l && mv l run/inputs/limits.json
  judged 3
  assert_json run/verdict.json '.checks[] | select(.id == "agreement/bandwidth-write-RC") | .status == "inconclusive" and (.measured | test("relaxed_ordering"))'
  sed -i 's/PCIe relax order: ON/PCIe relax order: OFF/' run/raw/alpha/flows/perftest-write-bandwidth/alpha/beta/1/client.stdout
  judged 3
  assert_json run/verdict.json '.agreement | any(.[]; .op == "write" and .metric == "gbit_s" and .state == "agree" and .ratio == 0.880296)'
  assert_json run/verdict.json '.agreement | any(.[]; .op == "send" and .metric == "gbit_s" and .state == "not_judged" and .ratio == null
    and (.reason | test("receiver_acknowledged.*initiator_completion")))'
  assert_json run/verdict.json '.checks[] | select(.id == "agreement/latency-write-RC") | .status == "advisory" and .measured > 3 and .limit.max == 3'
  # the same figures under a required limit fail, and without any limit nothing is judged
  jq '.limits |= map(if .id == "agreement-latency" then .severity = "required" else . end)' run/inputs/limits.json >l && mv l run/inputs/limits.json
  judged 1
  jq '.limits |= map(select(.metric | startswith("agreement") | not))' run/inputs/limits.json >l && mv l run/inputs/limits.json
  judged 3
  assert_json run/verdict.json '[.checks[] | select(.id | startswith("agreement/")) | .status] | length == 4 and all(.[]; . == "not_judged")'
}

@test "a device of another name is software by its driver, and hardware only where nothing says otherwise" {
  recorded_run
  find run/raw run/plan.json -type f -exec sed -i 's/rxe0/roce0/g' {} +
  jq '.rounds[].flows[].scope = "hardware" | .hosts[].scope = "hardware"' run/plan.json >p && mv p run/plan.json
  judged 3
  run jq -r .scope run/verdict.json
  assert_output software
  local host
  for host in alpha beta; do
    jq '.rdma[].driver = "mlx5_core"' "run/raw/$host/environment.json" >e && mv e "run/raw/$host/environment.json"
  done
  # rxe's own counters are a second witness
  run timeout 60 "$TOP/reports/judge" run
  run jq -r .scope run/verdict.json
  assert_output software
  find run/raw -type f -exec sed -i 's/"sent_pkts"/"tx_pkts"/g; s/"rcvd_pkts"/"rx_pkts"/g' {} +
  run timeout 60 "$TOP/reports/judge" run
  run jq -r .scope run/verdict.json
  assert_output hardware
}

@test "what perftest could not do is named with the right code: the host, or the peer" {
  recorded_run
  local dir=run/raw/alpha/flows/perftest-send-latency/alpha/beta/1
  jq -c '.exit = 1' "$dir/client.json" >e && mv e "$dir/client.json"
  : >"$dir/client.stdout"
  cp "$FIXTURES/4.5/wrong_device.err" "$dir/client.stderr"
  judged 3
  assert_json run/verdict.json '.coverage.missing[] | select(.flow == "perftest-send-latency/alpha/beta/1") | .code == 3 and (.message | test("Unable to find"))'
  echo "Couldn't connect to 10.0.0.2:18515" >"$dir/client.stderr"
  judged 3
  assert_json run/verdict.json '.coverage.missing[] | select(.flow == "perftest-send-latency/alpha/beta/1") | .code == 4'
}
