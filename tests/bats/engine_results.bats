#!/usr/bin/env bats
# What a measurement gives: records that are JSON and agree with themselves, limits that decide the exit code, a clean
# standard output.

# shellcheck disable=SC2154  # run --separate-stderr sets stderr

load helpers

setup() {
  common_setup
  perch_serve
}

teardown() {
  stop_servers
  common_teardown
}

# measured EXIT lat|bw OPTION...: standard output goes to `out`
measured() {
  local expected=$1 command=$2
  shift 2
  run_apart "$expected" "$PERCH" "$command" 127.0.0.1 --port "$PORT" "$@"
  printf '%s\n' "$output" >out
}

# Holds for the records in `out`, as one array.
assert_records() { jq -es "$1" out >/dev/null || fail "in the records this does not hold: $1"; }

@test "a record names what was measured on what, and its numbers agree" {
  measured 0 lat --json --size 8:64 --iterations 1000 --warmup 50
  assert_equal "$stderr" "$UNPLACED"
  assert_records 'length == 4 and map(.params.size_bytes) == [8, 16, 32, 64]'
  assert_records 'all(.[]; .schema == "perch.record/1" and .tool.name == "perch" and .backend == "tcp" and .op == "send"
    and .kind == "latency" and .definition == "half_round_trip" and .status == "ok" and .error == null)'
  assert_records 'all(.[]; .params.iterations == 1000 and .params.warmup == 50 and .params.duration_s == null
    and .params.outstanding == 1 and .params.completion == "busy" and .params.clock == "monotonic")'
  assert_records 'all(.[].latency_us; .count == 1000 and .min > 0 and .min <= .p50 and .p50 <= .p90 and .p90 <= .p99
    and .p99 <= .max and .min <= .mean and .mean <= .max and .p99_9 == null and .p99_99 == null)'
  assert_records 'all(.[]; .elapsed_s > 0 and (.started | test("^20[0-9-]+T[0-9:.]+Z$")) and .cpu.client_s != null and .cpu.server_s != null)'
  assert_records 'all(.[].client, .[].server; .host and .address)'
}

@test "the histogram of a record has the record's own samples" {
  measured 0 lat --json --iterations 5000
  jq -r .histogram.data out >histogram
  run_apart 0 "$PERCH" hist --quantiles 0.5,0.99 histogram
  # the record halves round trips, and three digits are kept
  jq -e --slurpfile record out '$record[0].latency_us as $l | .count == 5000 and (.mean / 2000 / $l.mean - 1 | fabs) < 0.001
    and (.quantiles["0.5"] / 2000 / $l.p50 - 1 | fabs) < 0.001 and (.max / 2000 / $l.max - 1 | fabs) < 0.001' <<<"$output"
}

@test "duration mode has the same percentiles as iteration mode" {
  measured 0 lat --json --duration 500ms --backend null
  assert_records '.[0] | .params.iterations == null and .params.duration_s == 0.5 and .elapsed_s >= 0.5 and .elapsed_s < 5
    and .latency_us.count > 10000 and .latency_us.p99_9 != null'
}

@test "bandwidth counts payload, and says how its peak is defined" {
  measured 0 bw --json --size 64K --duration 500ms
  assert_records '.[0] | .kind == "bandwidth" and .params.outstanding == 64 and .bandwidth.gbit_s > 0
    and .bandwidth.peak_gbit_s >= .bandwidth.min_interval_gbit_s and .bandwidth.peak_definition == "best_interval_0.1s"'
  assert_records '.[0] | (.bandwidth.bytes * 8 / .elapsed_s / 1e9 / .bandwidth.gbit_s - 1 | fabs) < 0.01'
  assert_records '.[0] | (.bandwidth.messages_per_s * 65536 * 8 / 1e9 / .bandwidth.gbit_s - 1 | fabs) < 0.01'
}

@test "both directions are added up" {
  measured 0 bw --json --bidirectional --size 64K --iterations 500
  assert_records '.[0] | .params.bidirectional == true and .bandwidth.bytes == 2 * 500 * 65536'
}

@test "a latency above --max-p99 is exit 1, and the record stands" {
  measured 1 lat --json --size 8:16 --max-p99 0.001
  assert_records 'length == 2 and all(.[]; .status == "ok" and .latency_us.p99 > 0.001)'
  [[ $stderr = *"--max-p99"* ]] || fail "$stderr"
  measured 0 lat --json --max-p99 10000000
  # a p99 that too few samples support counts as missed
  measured 1 lat --json --duration 1ms --gap 1ms --max-p99 10000000
}

@test "a bandwidth below --min-gbit is exit 1, and the record stands" {
  measured 1 bw --json --iterations 500 --min-gbit 1000000
  assert_records '.[0].status == "ok"'
  measured 0 bw --json --iterations 500 --min-gbit 0.000001
}

@test "--interval gives a line each while it runs, and the record keeps them" {
  measured 0 lat --json --duration 1s --interval 200ms
  assert_records '(.[:-1] | length) >= 3 and all(.[:-1][]; .kind == "interval") and .[-1].kind == "latency"'
  assert_records '(.[-1].intervals | length) == length - 1 and (.[-1].intervals | map(.count) | add) <= .[-1].latency_us.count'
  assert_records 'all(.[-1].intervals[]; .end_s > .start_s and (.count == 0 or .latency_us != null))'
  measured 0 bw --duration 1s --interval 200ms
  [ "$(grep -c '^#.* s ' out)" -ge 3 ] || fail "no interval lines"
}

@test "--report-all gives every sample, and the summary agrees" {
  measured 0 lat --json --iterations 20 --report-all
  assert_records '(map(select(.kind == "sample")) | length) == 20 and map(select(.kind == "sample").number) == [range(20)]'
  assert_records '.[-1].latency_us as $l | map(select(.kind == "sample").latency_us) | (min - $l.min | fabs) < 0.001
    and (max - $l.max | fabs) < 0.001 and (add / 20 - $l.mean | fabs) < 0.001'
  measured 0 lat --iterations 7 --report-all
  [ "$(grep -cE '^ +[0-9]+ +[0-9.]+$' out)" -eq 7 ] || fail "not 7 samples"
}

@test "the table has cxi_send_lat's columns first, then percentiles, and nothing else is on standard output" {
  measured 0 lat --size 8:32 --iterations 1000
  assert_equal "$stderr" "$UNPLACED"
  grep -qE '^ +Bytes +Sends +Min\[us\] +Max\[us\] +Mean\[us\] +StdDev\[us\] +p50\[us\] +p99\[us\] +p99\.9\[us\]$' out
  [ "$(grep -cE '^ +[0-9]+ +1000( +[0-9.]+){6} +-$' out)" -eq 3 ] || fail "not three lines of nine columns"
  [ "$(grep -cv '^#' out)" -eq 4 ] || fail "more than a table"
}

@test "--rate and --gap set the pace" {
  measured 0 lat --json --iterations 50 --warmup 0 --rate 200msg/s
  assert_records '.[0] | .elapsed_s > 0.24 and .elapsed_s < 2 and .params.rate != null'
  measured 0 lat --json --iterations 50 --warmup 0 --gap 5ms
  assert_records '.[0] | .elapsed_s > 0.24 and .params.gap_us == 5000'
  measured 0 bw --json --duration 1s --size 1K --rate 10Mb/s
  assert_records '.[0].bandwidth.gbit_s | . > 0.008 and . < 0.012'
}

@test "--verify checks every byte that was measured" {
  measured 0 lat --json --verify --size 1:4K --iterations 50
  assert_records 'all(.[]; .params.verify == true and .integrity.checked_bytes >= 50 * .params.size_bytes and .integrity.bad_bytes == 0)'
}

@test "event completion and the cycle counter measure too, or say why not" {
  measured 0 lat --json --completion event --iterations 200
  assert_records '.[0].params.completion == "event"'
  if grep -qw constant_tsc /proc/cpuinfo && grep -qw nonstop_tsc /proc/cpuinfo; then
    measured 0 lat --json --clock cycles --iterations 200
    assert_records '.[0].params.clock == "cycles"'
  else
    measured 3 lat --json --clock cycles
  fi
}

@test "every operation of libfabric's tcp provider is measured" {
  for op in send write read fetch-add compare-swap; do
    measured 0 lat --json --backend ofi --provider tcp --op "$op" --iterations 100
    assert_records ".[0] | .op == \"$op\" and .status == \"ok\" and (.provider | test(\"tcp\")) and .completion_level != null"
  done
}

@test "a closed standard output is exit 6, and the server lives on" {
  run_expecting 6 bash -c "'$PERCH' lat 127.0.0.1 --port $PORT --json >/dev/full"
  measured 0 lat --json
}
