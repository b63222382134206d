#!/usr/bin/env bats
# Transfers and message rates over the verbs backend: lists, queue pairs, several devices, and devices that go away. Both ends run on this
# machine. In the guest of tests/uml a second Soft-RoCE device stands for a second NIC: a device reaches itself within
# Soft-RoCE, and the other one over the wire between their interfaces. What needs two is skipped where there is one.

# shellcheck disable=SC2030,SC2031  # each test is a subshell

load helpers

# The second device of the guest, at the other end of rxe0's wire: one kernel has both addresses, and must accept that.
make_second_device() {
  local interface
  [ -d /sys/class/infiniband/rxe0 ] && [ -d /sys/class/net/veth1 ] && [ ! -d /sys/class/infiniband/rxe1 ] || return 0
  ip address add 10.0.0.2/24 dev veth1
  for interface in all veth0 veth1; do
    echo 1 >"/proc/sys/net/ipv4/conf/$interface/accept_local"
    echo 0 >"/proc/sys/net/ipv4/conf/$interface/rp_filter"
  done
  add_second_device
}

add_second_device() {
  rdma link add rxe1 type rxe netdev veth1
  wait_until grep -q ACTIVE /sys/class/infiniband/rxe1/ports/1/state
}

setup_file() {
  # PERCH_HOOKS: built before, where nothing can be built
  [ -n "${PERCH_HOOKS:-}" ] || make --no-print-directory -s -C "$TOP/engine" hooks >&2
  cd "$BATS_FILE_TMPDIR" || return
  make_second_device
  devices=(/sys/class/infiniband/*) # in order
  FIRST=${devices[0]##*/} SECOND=${devices[1]:+${devices[1]##*/}}
  [ -d "${devices[0]}" ] || fail "no RDMA device on this machine: tests/uml/run makes one"
  export FIRST SECOND HOOKS="${PERCH_HOOKS:-$TOP/engine/build-hooks/perch}" FILE_MARK="transfer-$BASHPID-$RANDOM"
  export PERCH_TEST_MARK=$FILE_MARK
  perch_serve
  # shellcheck disable=SC2153  # perch_serve sets it
  export PLAIN_PORT=$PORT
  PERCH=$HOOKS PERCH_TEST_FLIP=3 perch_serve
  # shellcheck disable=SC2153  # perch_serve sets it
  export FLIPPING_PORT=$PORT FILE_SERVERS="${SERVERS[*]}"
}

teardown_file() { file_servers_gone; }
setup() {
  common_setup
  BOTH=(--devices "$FIRST,$SECOND" --server-devices "$FIRST,$SECOND")
}
teardown() { common_teardown; }

# transfer [EXIT] OPTION...: its records in out; between $FIRST and itself, unless devices are named
transfer() {
  local expected=0
  local -a devices=(--device "$FIRST" --server-device "$FIRST")
  if [[ $1 =~ ^[0-9]$ ]]; then expected=$1 && shift; fi
  [[ " $* " != *" --devices "* ]] || devices=()
  run_apart "$expected" "$PERCH" transfer 127.0.0.1 --port "${AT_PORT:-$PLAIN_PORT}" --backend verbs "${devices[@]}" \
    --timeout 20s --json "$@"
  printf '%s\n' "$output" >out
}

# holds CONDITION: of all objects in out, as an array
holds() { jq -es "$1" out >/dev/null || fail "this does not hold: $1
$(cut -c -2000 out)"; }

# right OPTION...: batches of 1 to 128 writes and reads, verified; each pair's line and the sum's for each. Lanes (a
# thread's part of a pair) go on until the last of them has its batches.
right() {
  local op
  for op in write read; do
    transfer --op "$op" --batch 1:128 --verify --iterations 10 --warmup 2 --size 1000 "$@"
    holds 'def lanes: .params | [.threads, .devices] | max;
      all(.[]; .op == "'"$op"'" and .status == "ok" and .definition == "batch_completion"
        and .integrity.bad_bytes == 0
        and .integrity.checked_bytes == .params.batch * .params.size_bytes
          * (.transfer.batches + 2 * lanes / (if .kind == "sum" then 1 else .transfer.pairs end))
        and .transfer.completed == .transfer.batches * .params.batch and .transfer.completed >= .transfer.asked
        and .bandwidth.bytes == .transfer.completed * .params.size_bytes)
      and ([.[] | select(.kind == "sum") | .params.batch] == [1, 2, 4, 8, 16, 32, 64, 128])
      and all(.[] | select(.kind == "sum"); .transfer.asked == 10 * lanes * .params.batch)'
  done
}

needs_two() { [ -n "$SECOND" ] || skip "needs two RDMA devices"; }

@test "transfers: batches of 1 to 128, one list each" {
  right
  holds 'all(.[]; .transfer.lists == 1 and .params.session) and length == 16'
}

@test "transfers: the ibv_wr calls, where the device has them" {
  [ "$(cat "/sys/class/infiniband/$FIRST/node_desc")" = rxe ] || skip "known of Soft-RoCE only"
  transfer --op write --size 100 --iterations 10
  holds 'all(.[]; .transfer.post_api == "ibv_wr")'
}

@test "transfers: several queue pairs" {
  right --queue-pairs 4
  holds 'all(.[]; .params.queue_pairs == 4)'
  right --queue-pairs 3 --outstanding 5
  holds '.[-1] | .params.batch == 128 and .transfer.lists == 9' # 43 work requests on one of them
}

# Times that a receiver of Soft-RoCE was not ready.
not_ready() { cat "/sys/class/infiniband/$FIRST/ports/1/hw_counters/"*rnr_err 2>/dev/null | paste -sd ' '; }

# counted OPTION...: message rates of every operation, all of whose messages are there
counted() {
  local op before
  for op in write read send; do
    before=$(not_ready)
    run_apart 0 "$PERCH" rate 127.0.0.1 --port "$PLAIN_PORT" --backend verbs --device "$FIRST" --server-device "$FIRST" \
      --timeout 20s --json --op "$op" --size 8:4K:1K --queue-pairs 2 --threads 2 --iterations 3001 --warmup 70 "$@"
    printf '%s\n' "$output" >out
    holds 'length == 4 and all(.[]; .op == "'"$op"'" and .status == "ok" and .message_rate.messages == 6002
      and .path.claimed_bytes == 2 * 3071 * .params.size_bytes)'
    assert_equal "$(not_ready)" "$before"
  done
}

@test "rates: writes, reads and sends are counted, and no receiver is ever not ready" { counted; }
@test "rates: over a footprint, too" { counted --footprint 16M; }

@test "transfers: two devices, a thread for each" {
  needs_two
  right "${BOTH[@]}" --threads 2
  holds '(map(select(.params.batch == 128)) | map([.kind, .transfer.pair, .client.device, .server.device])) ==
    [["transfer", 0, "'"$FIRST"'", "'"$FIRST"'"], ["transfer", 1, "'"$SECOND"'", "'"$SECOND"'"],
     ["sum", null, "'"$FIRST,$SECOND"'", "'"$FIRST,$SECOND"'"]]'
}

@test "transfers: cross-rail" {
  needs_two
  right "${BOTH[@]}" --cross-rail 1
  holds 'map(select(.kind == "transfer" and .params.batch == 1) | [.client.device, .server.device]) ==
    [["'"$FIRST"'", "'"$SECOND"'"], ["'"$SECOND"'", "'"$FIRST"'"]]'
}

@test "transfers: two threads on one device, and one on two" {
  needs_two
  right --threads 2
  right "${BOTH[@]}" --threads 1
}

@test "transfers: large ones go in chunks" {
  transfer --op write --size 100001 --chunk 16K --batch 3 --verify --iterations 5 --queue-pairs 2
  holds 'all(.[]; .params.chunks == 7 and .params.chunk_bytes == 16384 and .integrity.bad_bytes == 0)'
  transfer --op read --size 100001 --chunk 16K --max-chunks 3 --batch 3 --verify --iterations 5
  holds 'all(.[]; .params.chunks == 3 and .integrity.bad_bytes == 0)'
}

@test "transfers: strided, without a session, one by one" {
  right --stride 4K
  right --no-session
  holds 'all(.[]; .params.session == false)'
  right --consecutive
  holds 'all(.[]; .transfer.lists == .params.batch)'
  right --consecutive --no-session --stride 1008 --queue-pairs 2 --chunk 300
}

@test "transfers: asleep" {
  right --completion event
  right --completion event --queue-pairs 4 --outstanding 10
}

@test "transfers: a batch above the queue's depth is split, and that is said" {
  transfer --op write --size 64 --batch 128 --outstanding 16 --verify --iterations 10
  holds 'all(.[]; .transfer.lists == 8 and .transfer.completed == 1280)'
  assert_said "a batch of 128"
  assert_said "--outstanding 16"
}

@test "transfers: more than the device takes is refused" {
  transfer 3 --op write --size 64 --queue-pairs 1024 --outstanding 8192
  assert_said "$FIRST"
  assert_said "lower --outstanding"
}

@test "transfers: only over reliable connections" {
  transfer 2 --op write --connection uc
  transfer 2 --op write --connection ud
}

@test "transfers: inline, and the connection manager" {
  transfer --op write --size 32:64:32 --batch 16 --inline 32 --verify --iterations 10
  holds 'all(.[]; .params.inline_bytes == 32 and .integrity.bad_bytes == 0)'
  transfer --op write --size 64 --batch 16 --rdma-cm --queue-pairs 2 --verify --iterations 10
  holds 'all(.[]; .params.rdma_cm and .integrity.bad_bytes == 0)'
}

@test "transfers: a flipped byte is noticed" {
  AT_PORT=$FLIPPING_PORT transfer 5 --op write --size 1000 --batch 8 --verify --iterations 10
  holds 'any(.[]; .integrity.bad_bytes == 1)'
}

# loses COMMAND...: something goes while batches run from $SECOND over the wire: exit 6, and what was complete is kept
loses() {
  local client
  "$PERCH" transfer 127.0.0.1 --port "$PLAIN_PORT" --backend verbs --device "$SECOND" --server-device "$FIRST" \
    --op write --size 16K --batch 128 --warmup 0 --duration 30s --timeout 3s --json >out 2>err 3>&- &
  client=$!
  began=$(packets)
  wait_until moving 5000 # packets: some seven batches
  "$@"
  wait "$client" && status=0 || status=$?
  cut -c -3000 out err
  assert_equal "exit code $status" "exit code 6"
  holds 'length == 2 and all(.[]; .status == "error" and .error.code == 6 and .error.traffic and .transfer.batches > 0
    and .transfer.completed >= .transfer.batches * 128)'
}

packets() { cat /sys/class/net/veth1/statistics/tx_packets; }
moving() { (($(packets) - began > $1)); }

in_guest() { [ -d /sys/class/infiniband/rxe1 ] || skip "only in the guest of tests/uml: $1"; }

@test "transfers: an interface that goes down in the middle of a batch is exit code 6, and what was complete is kept" {
  in_guest "interfaces go down"
  loses ip link set veth1 down
  grep -q "went down" err || fail "the reason is not said"
  ip link set veth1 up
  wait_until grep -q ACTIVE /sys/class/infiniband/rxe1/ports/1/state
  transfer "${BOTH[@]}" --cross-rail 1 --size 1K --batch 8 --verify --iterations 5
}

# Deleting the RDMA device alone is no loss: Soft-RoCE waits until all have closed it. It stays away, so this comes last.
@test "transfers: a device that is removed with its interface in the middle of a batch is exit code 6" {
  in_guest "interfaces are removed"
  loses ip link delete veth1
  grep -q rxe1 err || fail "the device is not named"
}
