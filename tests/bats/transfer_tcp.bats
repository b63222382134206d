#!/usr/bin/env bats
# perch transfer over tcp: the baseline, whose target is served by a thread of the server. What all backends share is in
# transfer.bats, and what the connection carries in engine/tests/test_tcp_transfer.c.

load helpers

setup() { common_setup; }
teardown() {
  stop_servers
  common_teardown
}

# transfer EXIT OPTION...: to the server; the records as one array in out.json, what was said in $stderr
transfer() {
  local expected=$1
  shift
  run_apart "$expected" "$PERCH" transfer 127.0.0.1 --port "$PORT" --backend tcp --json "$@"
  jq -s . <<<"$output" >out.json
}

@test "with both ends asleep every byte of every batch finds its place, far beyond what a socket holds" {
  perch_serve
  local op
  for op in write read; do
    transfer 0 --op "$op" --completion event --verify --size 1000:8M:4M --batch 1:4 --iterations 3 --warmup 1
    assert_json out.json 'length == 12 and all(.[]; .status == "ok" and .completion_level == "delivery"
      and .integrity == {bad_bytes: 0, checked_bytes: (4 * .params.batch * .params.size_bytes)})'
  done
}

@test "the largest batch goes through, and what the target's processor did for it is said" {
  perch_serve
  transfer 0 --size 64 --batch 32768 --iterations 3 --warmup 1 --completion event --verify
  assert_json out.json 'all(.[]; .transfer.completed == 98304 and .integrity == {checked_bytes: 8388608, bad_bytes: 0})
    and .[-1].cpu.server_s > 0'
}

@test "a sleeping target needs no processor while there are no requests" {
  perch_serve
  "$PERCH" transfer 127.0.0.1 --port "$PORT" --backend tcp --completion event --duration 20s >out 2>err 3>&- &
  local client=$! before after
  wait_until job_moved $((1024 * 1024))
  kill -STOP "$client"
  sleep 0.2
  before=$(job_ticks)
  sleep 0.5
  after=$(job_ticks)
  kill -KILL "$client"
  # of 50 ticks (proc(5): 100 a second)
  ((after - before <= 5)) || fail "the target used $((after - before)) ticks of 50 with nothing to do"
}

# Processor time of the server's job, user and system: fields 14 and 15 of proc(5)'s stat, behind the name in brackets.
job_ticks() {
  local stat
  stat=$(<"/proc/$(server_jobs)/stat")
  # shellcheck disable=SC2086  # its fields
  set -- ${stat##*) }
  echo $((${12} + ${13}))
}

@test "a target that dies in the middle is exit 4, and the record says how many transfers were complete" {
  perch_serve
  local op code
  for op in write read; do
    code=0
    rm -f out
    "$PERCH" transfer 127.0.0.1 --port "$PORT" --backend tcp --op "$op" --completion event --json --size 64K:128K \
      --batch 8 --warmup 0 --duration 4s >out 2>err 3>&- &
    local client=$!
    wait_until test -s out
    wait_until job_moved $(($(job_bytes) + 64 * 1024 * 1024))
    signal_jobs KILL
    wait "$client" || code=$?
    assert_equal "$code" 4
    jq -es 'length == 4 and all(.[:2][]; .status == "ok") and all(.[2:][]; .status == "error" and .error.code == 4
      and .error.traffic and .transfer.completed > 0
      # with the whole ones of the batch that was under way
      and .transfer.completed >= .transfer.batches * 8 and .transfer.completed < (.transfer.batches + 1) * 8)' out ||
      fail "$(cat out err)"
  done
}

@test "lat and bw over tcp keep one operation, send" {
  local op command
  for command in lat bw; do
    for op in write read write-imm; do
      run_apart 2 "$PERCH" "$command" 127.0.0.1 --port 1 --backend tcp --op "$op"
      assert_said "--op $op: the tcp backend does not have it"
    done
  done
}
