#!/usr/bin/env bats
# perch rate: what it counts, and what it refuses. Lists and completions are in engine/tests/test_verbs_rate.c.

load helpers

setup() { common_setup; }
teardown() {
  stop_servers
  common_teardown
}

# rate EXIT OPTION...: to the server; the records as one array in out.json, what was said in $stderr.
# Asleep while it waits, as a busy machine lets two ends that poll go on by turns of milliseconds.
rate() {
  local expected=$1
  shift
  run_apart "$expected" "$PERCH" rate 127.0.0.1 --port "$PORT" --completion event --json "$@"
  jq -s . <<<"$output" >out.json
}

refused() {
  local part=$1
  shift
  run_apart 2 "$PERCH" rate 127.0.0.1 --port 1 "$@"
  assert_equal "$output" ""
  assert_said "$part"
}

@test "each size is a record: every message of every thread is counted, and the rate is theirs over the time" {
  perch_serve
  local op
  for op in send write read; do
    # 1001 messages: lists of 32, and a last one of 9
    rate 0 --op "$op" --size 8:32 --iterations 1001 --warmup 70 --threads 2
    assert_json out.json 'length == 3 and [.[].params.size_bytes] == [8, 16, 32] and all(.[]; .kind == "rate"
      and .status == "ok" and .definition == "initiator_completion" and .latency_us == null and .transfer == null
      and .params.threads == 2 and .params.batch == 32 and .message_rate.messages == 2002
      and (.message_rate.mmsg_s * 1e6 * .elapsed_s - 2002 | fabs) < 1
      and .bandwidth.bytes == 2002 * .params.size_bytes
      and .path.claimed_bytes == 2 * 1071 * .params.size_bytes)'
  done
}

@test "lists and queues of any length come to an end, over several connections" {
  perch_serve
  local batch completion
  for completion in busy event; do
    for batch in 1 3 7; do
      rate 0 --completion "$completion" --iterations 101 --warmup 5 --queue-pairs 3 --outstanding 7 --batch "$batch"
      assert_json out.json '.[0].message_rate.messages == 101 and .[0].params.queue_pairs == 3'
    done
  done
}

@test "a duration is kept, and other backends have the test, too" {
  perch_serve
  rate 0 --duration 200ms --warmup 10
  assert_json out.json '.[0] | .elapsed_s >= 0.2 and .message_rate.messages > 0 and .params.duration_s == 0.2'
  rate 0 --iterations 100 --warmup 300ms
  assert_json out.json '.[0] | .message_rate.messages == 100 and .params.warmup_s == 0.3
    and .path.claimed_bytes > 132 * 64'
  if "$PERCH" --version | grep -q ofi; then
    local op
    for op in send write; do
      rate 0 --backend ofi --provider tcp --op "$op" --iterations 500 --warmup 10
      assert_json out.json '.[0] | .backend == "ofi" and .message_rate.messages == 500'
    done
  fi
}

@test "sends over libfabric wait for receives, and every one is counted, whatever the lists and queues" {
  if ! "$PERCH" --version | grep -q ofi; then skip "no libfabric"; fi
  perch_serve
  local depth batch
  # of 9 the target lends 16 receives, far fewer than there are messages
  while read -r depth batch; do
    rate 0 --backend ofi --provider tcp --op send --size 64 --iterations 1001 --warmup 20 --threads 2 --outstanding "$depth" \
      --batch "$batch"
    assert_json out.json '.[0] | .op == "send" and .message_rate.messages == 2002
      and .path.claimed_bytes == 2 * 1021 * 64'
  done <<<$'1 1\n2 2\n9 4\n64 32\n64 64'
  local completion
  for completion in busy event; do
    rate 0 --backend ofi --provider tcp --op send --completion "$completion" --iterations 300 --warmup 5 --queue-pairs 3 \
      --outstanding 7 --batch 3
    assert_json out.json '.[0].message_rate.messages == 300'
  done
  rate 0 --backend ofi --provider shm --op send --completion busy --iterations 1500 --warmup 10
  assert_json out.json '.[0] | .provider == "shm" and .message_rate.messages == 1500'
  # the last credits of a sender that has gone are no failure
  wait_until no_server_jobs
  run grep failed "serve.$PORT.log"
  assert_equal "$output" ""
}

@test "a footprint is the buffer of each thread, at both ends" {
  perch_serve
  local op
  for op in send write read; do
    rate 0 --op "$op" --iterations 5000 --warmup 0 --threads 2 --queue-pairs 1 --footprint 4M
    assert_json out.json '.[0] | .message_rate.messages == 10000 and .params.footprint_bytes == 4194304'
  done
  rate 0 --iterations 100 --warmup 0
  assert_json out.json '.[0].params.footprint_bytes == null'
  run_apart 3 "$PERCH" rate 127.0.0.1 --port "$PORT" --footprint 512G
  assert_said "available; lower --footprint"
  refused "--footprint 64: at least 256 bytes, one message of the largest --size for each queue pair" \
    --footprint 64 --queue-pairs 4
}

@test "lat, bw and transfer have a footprint, too, and every byte is found where it belongs" {
  perch_serve
  local op kind
  for kind in lat bw transfer; do
    op='write'
    if [ "$kind" != transfer ]; then op=send; fi
    run_apart 0 "$PERCH" "$kind" 127.0.0.1 --port "$PORT" --completion event --json --op "$op" --size 1000 \
      --iterations 3000 --warmup 5 --footprint 1M --verify
    jq -s . <<<"$output" >out.json
    assert_json out.json '.[0] | .params.footprint_bytes == 1048576 and .integrity.bad_bytes == 0
      and .integrity.checked_bytes >= 3000 * 1000'
    run_apart 3 "$PERCH" "$kind" 127.0.0.1 --port "$PORT" --op "$op" --footprint 512G
    assert_said "available; lower --footprint"
  done
  run_apart 2 "$PERCH" bw 127.0.0.1 --port 1 --backend null --footprint 1M
  assert_said "--footprint: the null backend does not have it; give --backend tcp, verbs, ofi or cxi"
  run_apart 2 "$PERCH" lat 127.0.0.1 --port 1 --size 4K --footprint 4095
  assert_said "--footprint 4095: at least 4096 bytes, one message of the largest --size"
  run_apart 2 "$PERCH" check bw h --backend verbs --size 64:4K --queue-pairs 3 --footprint 8K
  assert_said "--footprint 8192: at least 12288 bytes, one message of the largest --size for each queue pair"
  run_apart 2 "$PERCH" bw 127.0.0.1 --port "$PORT" --size 4K --footprint 64K --verify
  assert_said "has 16 places of 4096 bytes, and 64 are needed"
}

@test "libfabric's writes, reads and atomics over a footprint are checked, too" {
  if ! "$PERCH" --version | grep -q ofi; then skip "no libfabric"; fi
  perch_serve
  local op kind
  for op in send write read fetch-add compare-swap; do
    for kind in lat bw; do
      run_apart 0 "$PERCH" "$kind" 127.0.0.1 --port "$PORT" --backend ofi --provider tcp --completion event --json \
        --op "$op" --size 64 --iterations 1500 --warmup 5 --footprint 64K --verify
      jq -s . <<<"$output" >out.json
      assert_json out.json '.[0] | .params.footprint_bytes == 65536 and .integrity.bad_bytes == 0
        and .integrity.checked_bytes >= 1500 * 64'
    done
  done
}

@test "the table has the rate in millions of messages a second" {
  perch_serve
  run_apart 0 "$PERCH" rate 127.0.0.1 --port "$PORT" --completion event --iterations 640 --warmup 0
  assert_line --index 0 --partial "# write rate over tcp"
  assert_line --index 1 --regexp '^ +Bytes +Writes +Rate\[Mmsg/s\] +Avg\[Gb/s\]$'
  assert_line --index 2 --regexp '^ +64 +640 +[0-9.]+ +[0-9.]+$'
}

@test "what cannot be is exit 2 before anything starts" {
  refused "perch rate measures send, write or read" --op fetch-add
  refused "0' is out of range" --queue-pairs 0
  refused "no option --verify; it belongs to: lat, bw, transfer" --verify
  refused "has no message rate" --backend null
  refused "--batch 64 needs --outstanding of at least as much" --batch 64 --outstanding 32
  refused "needs --outstanding of at least 96, and it is 64" --batch 32 --cq-moderation 65 --outstanding 64
  refused "and 262144 are possible" --queue-pairs 1024 --outstanding 512
  refused "no option --devices; it belongs to: transfer" --devices lo
}

@test "a peer that dies in the middle is exit 4, and the record has what was complete" {
  perch_serve
  local code=0
  "$PERCH" rate 127.0.0.1 --port "$PORT" --completion event --json --size 4K --warmup 0 --duration 20s >out 2>err 3>&- &
  local client=$!
  wait_until job_moved $((32 * 1024 * 1024))
  signal_jobs KILL
  wait "$client" || code=$?
  assert_equal "$code" 4
  jq -es 'length == 1 and .[0].status == "error" and .[0].error.code == 4 and .[0].error.traffic
    and .[0].message_rate.messages > 0' out || fail "$(cat out err)"
}
