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
  [ "$(grep -cE '^import: [^:]+:[0-9]+: .+; .+' <<<"$stderr")" -eq 24 ]
  [[ $stderr == *"unit.txt:"*"unknown column"* ]]
}

@test "import: a JSON document of perftest whose message rate fits no unit is refused" {
  sed -E 's/(MsgRate *: *)[0-9.]+/\112345.0/' perftest/4.5/write_bw_both.json >"$BATS_TEST_TMPDIR/rate.json"
  run --separate-stderr "$import" "$BATS_TEST_TMPDIR/rate.json"
  [ "$status" -eq 1 ]
  [ -z "$output" ]
}

@test "import: without a file it says how it is used" {
  run "$import"
  [ "$status" -eq 2 ]
}
