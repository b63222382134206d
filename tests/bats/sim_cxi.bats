#!/usr/bin/env bats
# The simulated cxi provider, seen by libfabric's own programs and by the engine's ofi backend. Its rules have tests of their
# own: tests/sim_cxi/build/rules.

load helpers

setup_file() {
  local top
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  make --no-print-directory -s -C "$top/tests/sim_cxi" >&2
}

setup() {
  common_setup
  export FI_PROVIDER_PATH=$TOP/tests/sim_cxi/build SIM_CXI_FABRIC=$BATS_TEST_TMPDIR/fabric
}
teardown() { common_teardown; } # fails the test if anything that it started still runs

@test "fi_info lists two devices, each with both kinds of keys, named as a simulation" {
  run_expecting 0 fi_info -p cxi
  assert_equal "$(grep -c 'domain: sim_cxi0' <<<"$output") $(grep -c 'domain: sim_cxi1' <<<"$output")" "2 2"
  assert_equal "$(grep -c 'protocol: FI_PROTO_CXI' <<<"$output")" 4
  run_expecting 0 fi_info -p cxi -e
  assert_output --partial FI_CXI_RDZV_THRESHOLD
}

listens() { ss -ltnH "sport = :$1" | grep -q .; }

@test "fi_pingpong runs between two processes" {
  local port server
  port=$(free_port)
  timeout 60 fi_pingpong -p cxi -e rdm -B "$port" -I 10 -S 64 >server.out 2>&1 3>&- &
  server=$!
  wait_until listens "$port"
  run_expecting 0 fi_pingpong -p cxi -e rdm -P "$port" -I 10 -S 64 127.0.0.1
  assert_line --regexp '^64 +10 +=10 '
  wait "$server"
  assert_equal "$(find fabric -type f)" "" # both have left the fabric
}

# Nothing about figures: only that each operation is measured, with its payload verified, and how it called libfabric.
@test "the engine's ofi backend measures each operation, and its calls are counted" {
  local port op server
  port=$(free_port)
  "$PERCH" serve --port "$port" >server.out 2>&1 3>&- &
  server=$!
  wait_until listens "$port"
  for op in send read; do
    SIM_CXI_REPORT=$PWD/$op-%p.json run_perch lat 127.0.0.1 --port "$port" --backend ofi --provider cxi --op "$op" --size 64 \
      --iterations 20 --warmup 2 --verify --json
    assert_equal "$(jq -r '"\(.provider) \(.client.device) \(.integrity.bad_bytes)"' <<<"${lines[-1]}")" "cxi sim_cxi0 0"
  done
  kill "$server"
  # a ping-pong of 64 bytes is injected; beside it there is the greeting
  run_expecting 0 jq -c '[.simulated, .calls.fi_inject >= 22, (.modelled.idc_message >= 22)]' send-*.json
  assert_output '[true,true,true]'
  run_expecting 0 jq -c '[.calls.fi_read >= 22, .calls.fi_inject // 0]' read-*.json
  assert_output '[true,0]'
}
