#!/usr/bin/env bats
# The verbs backend on a real device: every operation over every connection, and what only this backend has. Both ends run on
# this machine, over its first active RDMA device. Where there is none, `make test-slow` runs a part of this file in User-Mode
# Linux (tests/uml), and `tests/run verbs` all of it.

load helpers
load conformance

# The first device with an active port; PERCH_TEST_DEVICE names another.
find_device() {
  local state
  [ -z "${PERCH_TEST_DEVICE:-}" ] || { echo "$PERCH_TEST_DEVICE" && return; }
  for state in /sys/class/infiniband/*/ports/*/state; do
    if grep -q ACTIVE "$state"; then cut -d/ -f5 <<<"$state" && return; fi
  done
  fail "no RDMA device with an active port on this machine: tests/uml/run makes one"
}

# The index of its RoCEv2 GID with an IPv4 address; InfiniBand: 0. Named, nothing is chosen, and nothing is said about it.
find_gid() {
  local attributes=/sys/class/infiniband/$1/ports/1 file
  for file in "$attributes"/gids/*; do
    if grep -q '^0000:0000:0000:0000:0000:ffff' "$file" && grep -qx 'RoCE v2' "$attributes/gid_attrs/types/${file##*/}" 2>/dev/null; then
      echo "${file##*/}" && return
    fi
  done
  echo 0
}

setup_file() {
  # PERCH_HOOKS: built before, where nothing can be built
  [ -n "${PERCH_HOOKS:-}" ] || make --no-print-directory -s -C "$TOP/engine" hooks >&2
  cd "$BATS_FILE_TMPDIR" || return
  DEVICE=$(find_device)
  GID=$(find_gid "$DEVICE")
  export DEVICE GID HOOKS="${PERCH_HOOKS:-$TOP/engine/build-hooks/perch}" FILE_MARK="verbs-$BASHPID-$RANDOM"
  export PERCH_TEST_MARK=$FILE_MARK
  perch_serve --device "$DEVICE"
  # shellcheck disable=SC2153  # perch_serve sets it
  export PLAIN_PORT=$PORT
  PERCH=$HOOKS perch_serve --device "$DEVICE"
  export HOOKS_PORT=$PORT
  PERCH=$HOOKS PERCH_TEST_FLIP=3 perch_serve --device "$DEVICE"
  # shellcheck disable=SC2153  # perch_serve sets it
  export FLIPPING_PORT=$PORT FILE_SERVERS="${SERVERS[*]}"
}

teardown_file() { file_servers_gone; }

setup() {
  common_setup
  # shellcheck disable=SC2034  # conformance.bash reads it
  OPTIONS=(--device "$DEVICE" --gid-index "$GID")
}

teardown() {
  [ ! -e ipv6_only ] || ipv4_again
  stop_servers
  common_teardown
}

# perch [EXIT] COMMAND OPTION...: its records in out
perch() {
  local expected=0
  if [[ $1 =~ ^[0-9]$ ]]; then expected=$1 && shift; fi
  run_apart "$expected" "$PERCH" "$1" 127.0.0.1 --port "$PLAIN_PORT" --backend verbs --device "$DEVICE" --gid-index "$GID" \
    --timeout 20s --json "${@:2}"
  printf '%s\n' "$output" >out
}

# holds CONDITION: of all objects in out, as an array
holds() { jq -es "$1" out >/dev/null || fail "this does not hold: $1
$(cut -c -2000 out)"; }

@test "rc: send conforms" { conforms verbs:rc send; }
@test "rc: send notices a flipped byte" { notices_a_flipped_byte verbs:rc send; }
@test "rc: send-imm conforms" { conforms verbs:rc send-imm; }
@test "rc: send-imm notices a flipped byte" { notices_a_flipped_byte verbs:rc send-imm; }
@test "rc: write conforms" { conforms verbs:rc write; }
@test "rc: write notices a flipped byte" { notices_a_flipped_byte verbs:rc write; }
@test "rc: write-imm conforms" { conforms verbs:rc write-imm; }
@test "rc: write-imm notices a flipped byte" { notices_a_flipped_byte verbs:rc write-imm; }
@test "rc: read conforms" { conforms verbs:rc read; }
@test "rc: read notices a flipped byte" { notices_a_flipped_byte verbs:rc read; }
@test "rc: fetch-add conforms" { conforms verbs:rc fetch-add; }
@test "rc: fetch-add notices a flipped byte" { notices_a_flipped_byte verbs:rc fetch-add; }
@test "rc: compare-swap conforms" { conforms verbs:rc compare-swap; }
@test "rc: compare-swap notices a flipped byte" { notices_a_flipped_byte verbs:rc compare-swap; }

@test "uc: send conforms" { conforms verbs:uc send; }
@test "uc: send notices a flipped byte" { notices_a_flipped_byte verbs:uc send; }
@test "uc: send-imm conforms" { conforms verbs:uc send-imm; }
@test "uc: send-imm notices a flipped byte" { notices_a_flipped_byte verbs:uc send-imm; }
@test "uc: write conforms" { conforms verbs:uc write; }
@test "uc: write notices a flipped byte" { notices_a_flipped_byte verbs:uc write; }
@test "uc: write-imm conforms" { conforms verbs:uc write-imm; }
@test "uc: write-imm notices a flipped byte" { notices_a_flipped_byte verbs:uc write-imm; }

@test "ud: send conforms" { conforms verbs:ud send; }
@test "ud: send notices a flipped byte" { notices_a_flipped_byte verbs:ud send; }
@test "ud: send-imm conforms" { conforms verbs:ud send-imm; }
@test "ud: send-imm notices a flipped byte" { notices_a_flipped_byte verbs:ud send-imm; }

# every_way OPTION...: each kind of operation, verified, with options that change how messages are queued
every_way() {
  local op completion
  for op in send send-imm write write-imm read; do
    for completion in busy event; do
      perch bw --op "$op" --completion "$completion" --verify --size 3000 --iterations 500 --warmup 64 "$@"
      holds '.[0] | .status == "ok" and .integrity == {bad_bytes: 0, checked_bytes: (564 * 3000)} and .bandwidth.bytes == 1500000'
    done
  done
}

@test "several queue pairs" {
  every_way --queue-pairs 4
  holds '.[0].params.queue_pairs == 4'
}
@test "several queue pairs, whose depth is no whole number of lists" { every_way --batch 2 --queue-pairs 3 --outstanding 5; }
@test "post lists" { every_way --batch 16; }
@test "post lists over several queue pairs" { every_way --batch 4 --queue-pairs 3 --outstanding 17; }
@test "completion moderation" { every_way --cq-moderation 64; }
@test "completion moderation over post lists and several queue pairs" {
  every_way --cq-moderation 8 --batch 5 --queue-pairs 4 --outstanding 10
}
@test "completion moderation ends by time, too" {
  perch bw --op write --cq-moderation 16 --queue-pairs 2 --batch 2 --duration 300ms --size 4K
  holds '.[0] | .elapsed_s >= 0.3 and .elapsed_s < 3 and .bandwidth.bytes % 4096 == 0'
  perch bw --op send --cq-moderation 16 --bidirectional --duration 300ms --size 4K --verify
  holds '.[0] | .status == "ok" and .integrity.bad_bytes == 0'
}
@test "the target of writes and reads sleeps: its device serves them" {
  local op
  for op in write read; do
    perch bw --op "$op" --completion busy --duration 500ms --size 4K
    holds '.[0].cpu | .server_s < .client_s / 2'
  done
}
@test "one message under way" { every_way --outstanding 1; }

@test "a shared receive queue" {
  local op
  for op in send send-imm write-imm; do
    perch bw --op "$op" --srq --queue-pairs 4 --verify --size 3000 --iterations 500
    holds '.[0] | .integrity.bad_bytes == 0 and .params.srq'
    perch lat --op "$op" --srq --verify --iterations 50
    holds '.[0].integrity.bad_bytes == 0'
  done
  perch bw --op send --connection ud --srq --verify --size 1000 --iterations 100
}

@test "inline: both sides of its limit, none at all, and more than the device has" {
  for bytes in 0 64; do
    perch lat --op send --inline "$bytes" --verify --size 63:66 --iterations 20
    holds "all(.[]; .params.inline_bytes == $bytes and .integrity.bad_bytes == 0)"
    perch bw --op write --inline "$bytes" --verify --size 63:66 --iterations 200
    holds 'all(.[]; .integrity.bad_bytes == 0)'
  done
  perch 3 lat --op send --inline 65536 --iterations 20
  assert_said "$DEVICE"
  assert_said "--inline 65536"
}

@test "the connection manager" {
  perch bw --op send --rdma-cm --queue-pairs 3 --verify --size 3000 --iterations 500
  holds '.[0] | .integrity.bad_bytes == 0 and .params.rdma_cm'
  perch lat --op read --rdma-cm --verify --iterations 20
  perch lat --op write --rdma-cm --verify --iterations 20 --completion busy
  holds '.[0].definition == "half_round_trip"'
  perch 2 lat --op send --rdma-cm --connection ud
}

@test "relaxed ordering: a write is no ping-pong any more" {
  perch lat --op write --relaxed-ordering on --iterations 20 --verify
  holds '.[0] | .definition == "completion" and .integrity.bad_bytes == 0'
  perch 2 lat --op write --relaxed-ordering on --definition half_round_trip
  perch lat --op write-imm --relaxed-ordering on --iterations 20 --verify
  holds '.[0].definition == "half_round_trip"'
}

@test "a write cannot be seen to arrive in sleep" {
  perch lat --op write --completion event --iterations 20
  holds '.[0].definition == "completion"'
  perch 2 lat --op write --completion event --definition half_round_trip
  assert_said "--completion busy"
}

@test "path MTU, service level, traffic class, retries" {
  perch lat --op send --mtu 512 --sl 0 --traffic-class 104 --retry 5 --rnr-retry 6 --timeout-exponent 16 --size 5000 --iterations 20 --verify
  holds '.[0] | .link.mtu_bytes == 512 and .params.mtu_bytes == 512 and .params.traffic_class == 104 and .params.retry == 5
    and .params.rnr_retry == 6 and .params.timeout_exponent == 16'
}

@test "the MTU asked for is above the port's" {
  mtu=$(perch lat --iterations 20 >/dev/null && jq .link.mtu_bytes out)
  [ "$mtu" -lt 4096 ] || skip "the port's MTU is 4096, the largest there is"
  perch 3 lat --mtu 4096
  assert_said "$DEVICE"
}

@test "a datagram above the MTU is refused" {
  perch 2 lat --connection ud --size 4097
  perch lat --connection ud --size 1 --iterations 20
  mtu=$(jq .link.mtu_bytes out)
  perch lat --connection ud --size "$mtu" --iterations 20 --verify
  [ "$mtu" -eq 4096 ] || perch 3 lat --connection ud --size $((mtu + 1))
}

@test "atomics take one word" {
  perch 2 lat --op fetch-add --size 16
  assert_said "--size 8"
}

@test "datagrams that are lost are counted, and delay no other message" {
  perch bw --connection ud --size 1000 --iterations 20000 --outstanding 512 --completion event
  holds '.[0] | .status == "ok" and .loss.sent_messages == 20000 and .bandwidth.bytes == (20000 - .loss.lost_messages) * 1000
    and .elapsed_s < 15'
}

@test "reliable connections have no losses to count" {
  perch bw --iterations 10
  holds '.[0].loss == null'
}

@test "huge pages, or the reason why not" {
  local free reason
  free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)
  if [ "$free" -ge 2 ]; then
    perch lat --huge 2M --iterations 20 --verify
    holds '.[0].params.huge == 2097152'
  else
    perch 3 lat --huge 2M --iterations 20
    # the guest of tests/uml has none of any size
    if [ -d /sys/kernel/mm/hugepages/hugepages-2048kB ]; then reason=nr_hugepages; else reason="no huge pages of that size"; fi
    assert_said "$reason"
  fi
}

# In the guest of tests/uml: the interface has addresses of IPv6 alone, and then those that it had.
ipv6_only() {
  : >ipv6_only
  ip address del 10.0.0.1/24 dev veth0
  ip address add fd00:5::1/64 dev veth0 nodad
  wait_until grep -q '^fd00:0005' -r /sys/class/infiniband/rxe0/ports/1/gids
}

ipv4_again() {
  ip address del fd00:5::1/64 dev veth0
  ip address add 10.0.0.1/24 dev veth0
  wait_until grep -q 'ffff:0a00:0001$' "/sys/class/infiniband/rxe0/ports/1/gids/$GID"
}

@test "addresses of IPv6 alone: their GID is chosen and named" {
  local connection
  [ "$DEVICE" = rxe0 ] && [ -d /sys/class/net/veth1 ] || skip "an interface loses its addresses: in the guest of tests/uml only"
  ipv6_only
  for connection in --connection=rc --connection=ud --rdma-cm; do
    run_apart 0 "$PERCH" bw 127.0.0.1 --port "$PLAIN_PORT" --backend verbs --device "$DEVICE" "$connection" --op send --verify \
      --size 3000 --iterations 200 --warmup 64 --timeout 20s --json
    printf '%s\n' "$output" >out
    assert_said "(fd00:5::1, RoCE v2) is the first with an IPv6 address"
    holds '.[0] | .status == "ok" and .integrity == {bad_bytes: 0, checked_bytes: (264 * 3000)} and .client.address == "fd00:5::1"
      and .server.address == "fd00:5::1"'
  done
}

@test "a hundred queue pairs, both ways" {
  perch bw --queue-pairs 100 --outstanding 2 --bidirectional --verify --iterations 1000 --warmup 100 --size 500
  holds '.[0] | .integrity == {bad_bytes: 0, checked_bytes: (1100 * 2 * 500)}'
}

@test "a client that dies leaves nothing behind, and the server goes on" {
  "$PERCH" bw 127.0.0.1 --port "$PLAIN_PORT" --backend verbs --device "$DEVICE" --duration 20s --completion event >out 2>&1 3>&- &
  client=$!
  # shellcheck disable=SC2034  # helpers.bash reads it
  SERVER=${FILE_SERVERS%% *}
  wait_until server_jobs
  kill -KILL "$client"
  wait_until no_server_jobs
  perch lat --iterations 20
}
