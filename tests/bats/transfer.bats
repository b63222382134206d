#!/usr/bin/env bats
# perch transfer: batches of writes and reads between pairs of devices. Over libfabric's tcp and shm providers, where each "device"
# is the loopback interface or shared memory: several of them are several endpoints. What a device has of its own is in
# transfer_verbs.bats.

# shellcheck disable=SC2030,SC2031,SC2154  # each test is a subshell; run --separate-stderr sets stderr

load helpers

setup() {
  common_setup
  VIA=(--backend ofi --provider tcp)
}
teardown() {
  stop_servers
  common_teardown
}

# transfer EXIT OPTION...: to the server, over tcp;ofi_rxm unless VIA says otherwise; results in $output, what was said in $stderr
transfer() {
  local expected=$1
  shift
  run_apart "$expected" "$PERCH" transfer 127.0.0.1 --port "$PORT" "${VIA[@]}" "$@"
}

# transfer_json OPTION...: the records as one array in out.json
transfer_json() {
  transfer 0 --json "$@"
  jq -s . <<<"$output" >out.json
}

# refused EXIT PART OPTION...: without any server, before anything starts
refused() {
  local expected=$1 part=$2
  shift 2
  run_apart "$expected" "$PERCH" transfer 127.0.0.1 --port 1 "${VIA[@]}" "$@"
  assert_equal "$output" ""
  assert_said "$part"
}

@test "a line for each size and batch, sizes outside, batches inside; the fastest batch is the maximum" {
  perch_serve
  # asleep while it waits, so that it does not lose its turn on a busy machine: the least rate that is printed is 0.001 GB/s
  transfer 0 --size 1K:2K --batch 1:4 --iterations 1000 --warmup 5 --completion event
  mapfile -t rows < <(awk '!/^#/ && $1 != "MsgSize[B]" { print $1, $2, $3 }' <<<"$output")
  assert_equal "${rows[*]}" "1024 1 0.00 1024 2 0.00 1024 4 0.00 2048 1 0.00 2048 2 0.00 2048 4 0.01"
  # max >= avg > 0, min <= avg, p50 <= p99, operations a second: all there
  awk '!/^#/ && $1 != "MsgSize[B]" { n++; if (NF != 10 || $4 < $5 || $5 <= 0 || $6 > $7 || $8 > $9 || $10 <= 0) exit 1 } END { exit n != 6 }' \
    <<<"$output" || fail "a line has not the figures that it should have"
}

@test "one record for each pair, then the sum; their figures hang together" {
  perch_serve
  transfer_json --size 4K --iterations 10 --warmup 300ms
  assert_json out.json 'all(.[]; .transfer.batches == 10 and .params.warmup_s == 0.3) and .[0].path.claimed_bytes > 11 * 4096'
  transfer_json --devices lo,lo --server-devices lo,lo --size 4K --batch 16 --iterations 50 --warmup 10 --queue-pairs 2
  assert_json out.json 'map([.kind, .transfer.pair, .transfer.pairs]) == [["transfer", 0, 2], ["transfer", 1, 2], ["sum", null, 2]]'
  assert_json out.json 'all(.[]; .status == "ok" and .op == "write" and .definition == "batch_completion" and .completion_level == "delivery"
    and .params.batch == 16 and .params.devices == 2 and .params.threads == 2 and .params.queue_pairs == 2 and .params.session
    and .params.consecutive == false and .params.buffer_bytes == 65536 and .transfer.batch_bytes == 65536
    and .bandwidth.peak_definition == "fastest_batch" and .bandwidth.bytes == .transfer.completed * 4096
    and .transfer.completed == .transfer.batches * 16 and .latency_us.count == .transfer.batches)'
  # all go on until the last has its 50 batches
  assert_json out.json '(.[:2] | all(.[]; .transfer.asked == 800 and .transfer.completed >= 800)) and .[2].transfer.asked == 1600'
  assert_json out.json '.[2].bandwidth.bytes == .[0].bandwidth.bytes + .[1].bandwidth.bytes'
  assert_json out.json '.[2].transfer.window_s >= .[0].transfer.window_s and .[2].transfer.window_s >= .[1].transfer.window_s'
  assert_json out.json 'all(.[]; (.bandwidth.messages_per_s * .transfer.window_s / .transfer.completed - 1 | fabs) < 1e-6
    and (.bandwidth.gbit_s * .transfer.window_s * 1e9 / 8 / .bandwidth.bytes - 1 | fabs) < 1e-6)'
  assert_json out.json '.[:2] | all(.[]; (.bandwidth.peak_gbit_s * .latency_us.min * 1e3 / 8 / 65536 - 1 | fabs) < 1e-3)'
  assert_json out.json '.[2].bandwidth.peak_gbit_s == null and .[2].client.device == "lo,lo" and .[2].server.device == "lo,lo"'
  # claims of the wire and processor time are counted once
  assert_json out.json '.[2].path == null and (.[:2] | all(.[]; .path.client_sent_bytes >= 60 * 65536 and .cpu.client_s == null))
    and .[2].cpu.client_s > 0 and .[2].cpu.server_s > 0'
}

# What is checked where, over what VIA says: of both operations.
every_byte_is_checked() {
  local op
  for op in write read; do
    transfer_json --op "$op" --verify --size 1000:2001:1001 --batch 1:8 --iterations 20 --warmup 3
    assert_json out.json 'length == 16 and all(.[]; .integrity == {checked_bytes: (23 * .params.batch * .params.size_bytes), bad_bytes: 0})'
    transfer_json --op "$op" --verify --size 100000 --chunk 7K --stride 150K --batch 5 --queue-pairs 3 --iterations 5 --warmup 1
    assert_json out.json 'all(.[]; .integrity == {checked_bytes: 3000000, bad_bytes: 0} and .params.chunks == 14 and .params.chunk_bytes == 7168
      and .params.stride_bytes == 153600)'
    transfer_json --op "$op" --verify --size 1M --chunk 4K --max-chunks 8 --iterations 5 --warmup 0 --no-session --consecutive --threads 2
    assert_json out.json 'all(.[]; .integrity.checked_bytes >= 5 * 1048576 * 2 and .integrity.bad_bytes == 0 and .params.chunks == 8
      and .params.chunk_bytes == 131072 and .params.session == false and .params.consecutive)'
  done
}

@test "every byte is checked: writes at the target, reads here, across pieces, strides, endpoints and threads" {
  perch_serve
  every_byte_is_checked
  VIA=(--backend ofi --provider shm)
  transfer_json --verify --size 64K --batch 4 --devices shm,shm --server-devices shm,shm --cross-rail 1 --threads 1 --iterations 5
  assert_json out.json 'length == 3 and all(.[]; .integrity.bad_bytes == 0 and .integrity.checked_bytes > 0 and .params.cross_rail == 1)'
}

@test "the baseline over tcp: the same table, and every byte checked" {
  perch_serve
  VIA=(--backend tcp)
  every_byte_is_checked
  assert_json out.json 'all(.[]; .backend == "tcp" and .completion_level == "delivery" and .connection == "stream" and .tcp != null)'
  transfer 0 --size 1K --batch 1:1024 --iterations 20 --completion event
  assert_equal "$(awk '!/^#/ && $1 != "MsgSize[B]" && NF == 10 { n++ } END { print n }' <<<"$output")" 11
  refused 2 "the tcp backend has no devices" --devices lo,lo --server-devices lo,lo
}

@test "over the simulated Slingshot provider: named simulated, and every byte checked" {
  make --no-print-directory -s -C "$TOP/tests/sim_cxi" >&2
  export FI_PROVIDER_PATH=$TOP/tests/sim_cxi/build SIM_CXI_FABRIC=$PWD/fabric
  perch_serve
  VIA=(--backend cxi)
  every_byte_is_checked
  assert_json out.json 'all(.[]; .simulated and .client.device == "sim_cxi0")'
  assert_said "simulated"
}

@test "threads share nothing that they write to: the hot loop takes no lock, and ThreadSanitizer has nothing to say" {
  nm -u "$TOP/engine/build/measure/transfer_drive.o" >calls
  grep -q " pthread_create" calls
  nm -u "$TOP/engine/build/measure/transfer_rate.o" >>calls
  refute grep -E "mutex|spin|rwlock|sem_|cond_" calls
  make --no-print-directory -s -C "$TOP/engine" sanitized-thread >&2
  # libfabric and the C library are not built with it: only what the engine's own code does is looked at
  export TSAN_OPTIONS="halt_on_error=1 exitcode=66"
  PERCH=$TOP/engine/build-thread/perch
  perch_serve
  VIA=(--backend tcp)
  # without --verify: there the order between the target's threads comes over the network, which it cannot see
  transfer 0 --size 4K --batch 16 --threads 4 --iterations 50 --json
  transfer 0 --size 4K --batch 16 --threads 4 --duration 300ms --op read --completion event --json
  refute [ "$(grep -c WARNING "serve.$PORT.log")" -gt 0 ]
}

@test "one flipped byte is exit 5, with the transfer and the place" {
  make --no-print-directory -s -C "$TOP/engine" hooks >&2
  local hooks=${PERCH_HOOKS:-$TOP/engine/build-hooks/perch}
  PERCH=$hooks PERCH_TEST_FLIP=13 perch_serve
  transfer 5 --verify --size 1000 --batch 4 --iterations 5 --warmup 0 --json
  assert_said "payload corrupted: 1 of 20000 checked bytes of write"
  assert_equal "$(grep -c "payload corrupted" <<<"$stderr")" 1
  assert_said "first in transfer 13 at byte 500"
  jq -es 'length == 2 and all(.[]; .status == "error" and .error.code == 5 and .integrity.bad_bytes == 1)' <<<"$output"
  PERCH_TEST_FLIP=13 PERCH=$hooks transfer 5 --op read --verify --size 1000 --batch 4 --iterations 5 --warmup 0
  # the source of reads never changes, so its transfers are numbered by their place in a batch: 0 to 3
  assert_said "first in transfer 1 at byte 500"
}

@test "a batch that the queues have no room for is split, and that is said" {
  perch_serve
  transfer_json --size 64 --batch 300 --outstanding 64 --queue-pairs 2 --iterations 10 --verify
  assert_said "a batch of 300 takes 300 work requests, and the queues have 128"
  assert_json out.json 'all(.[]; .transfer.lists == 3 and .integrity.bad_bytes == 0)'
  transfer_json --size 64 --batch 128 --outstanding 64 --queue-pairs 2 --iterations 10
  [[ $stderr != *"work requests"* ]] || fail "said though there is room: $stderr"
  assert_json out.json 'all(.[]; .transfer.lists == 1)'
  transfer_json --size 64 --batch 100 --consecutive --queue-pairs 2 --iterations 10
  assert_json out.json 'all(.[]; .transfer.lists == 50)'
}

@test "for a time: it ends with the batch that is under way, and nothing was asked for" {
  perch_serve
  transfer_json --duration 500ms --size 64K --batch 8 --completion event
  assert_json out.json 'all(.[]; .transfer.asked == null and .params.iterations == null and .params.duration_s == 0.5 and .params.completion == "event"
    and .transfer.window_s >= 0.5 and .transfer.window_s < 3 and .transfer.batches > 10)'
}

@test "two pairs are two tables and their sum" {
  perch_serve
  transfer 0 --devices lo,lo --server-devices lo,lo --size 1K:2K --batch 2 --iterations 20
  assert_equal "$(grep -c '^# pair [01]: lo -> 127.0.0.1 (lo), write over ofi' <<<"$output")" 2
  assert_equal "$(grep -c '^# sum of 2 pairs of devices, write' <<<"$output")" 1
  assert_equal "$(awk '!/^#/ && $1 != "MsgSize[B]" { print $1 }' <<<"$output" | tr '\n' ' ')" "1024 2048 1024 2048 1024 2048 "
}

@test "several threads of one pair: their fastest batches do not make a maximum" {
  perch_serve
  transfer_json --size 4K --batch 16 --threads 2 --iterations 20
  assert_json out.json 'all(.[]; .bandwidth.peak_gbit_s == null and .bandwidth.gbit_s > 0 and .transfer.asked == 640)'
}

@test "who is done first goes on until the last one is, so that all are measured while all run" {
  perch_serve
  transfer_json --size 64 --batch 4 --threads 2 --iterations 2000 --completion event
  assert_json out.json 'all(.[]; .transfer.asked == 16000 and .transfer.completed > 16000)'
}

@test "a batch goes out as one list; consecutive transfers go out one by one" {
  local lists
  local -a how=()
  cat >count.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/socket.h>

static int calls;

ssize_t sendmsg(int fd, const struct msghdr *m, int flags) {
	calls++;
	return ((ssize_t (*)(int, const struct msghdr *, int)) dlsym(RTLD_NEXT, "sendmsg"))(fd, m, flags);
}

__attribute__((destructor)) static void say(void) {
	FILE *f = fopen("calls", "w");

	(void) fprintf(f, "%d\n", calls);
	(void) fclose(f);
}
C
  cc -shared -fPIC -o count.so count.c -ldl
  perch_serve
  for lists in 100 6400; do
    [ "$lists" = 100 ] || how=(--consecutive)
    run_apart 0 env LD_PRELOAD="$PWD/count.so" "$PERCH" transfer 127.0.0.1 --port "$PORT" --backend tcp --size 64 --batch 64 --iterations 100 \
      --warmup 0 --json "${how[@]}"
    # the kernel may take a list in two parts
    [ "$(cat calls)" -ge "$lists" ] && [ "$(cat calls)" -le $((lists + lists / 2)) ] || fail "$(cat calls) calls for $lists lists"
  done
}

@test "a target that dies in the first batch: what was complete of it is counted, and it is the fabric's loss" {
  local client code
  VIA=(--backend tcp --completion event)
  # a batch of 1 GiB, of which some has come; the rest may come before we look again
  for _ in 1 2 3 4 5 6; do
    perch_serve
    "$PERCH" transfer 127.0.0.1 --port "$PORT" "${VIA[@]}" --json --size 32K --batch 32768 --iterations 100 --warmup 0 >out 2>err 3>&- &
    client=$! code=0
    wait_until job_moved $((32 * 1024 * 1024))
    signal_jobs KILL
    wait "$client" || code=$?
    assert_equal "$code" 4
    if jq -es 'length == 2 and all(.[]; .error.traffic and .transfer.batches == 0 and .transfer.completed > 0)' out; then return; fi
  done
  fail "no kill came in the middle of the first batch; the last one: $(cat out err)"
}

@test "log level info says which lane has what, and how far it has come" {
  perch_serve
  transfer 0 --size 1K:2K --iterations 5 --threads 2 --log-level info
  assert_said "lane 1: pair 0, lo -> lo, thread 1"
  assert_said "size 2048, batch 1: 2 of 2"
}

@test "a missed limit is exit 1, and named with both figures" {
  perch_serve
  transfer 1 --size 1K --iterations 20 --min-gbit 100000
  assert_said "are below --min-gbit 100000"
  transfer 1 --size 1K --iterations 1200 --max-p99 0.001
  assert_said "is above --max-p99 0.001"
  transfer 1 --size 1K --iterations 20 --max-p99 1000000
  assert_said "counts as missed, because 20 samples do not support a p99"
  transfer 0 --size 1K --iterations 1200 --max-p99 100000000 --min-gbit 0.000001
}

@test "one end may have more devices than the other" {
  perch_serve
  transfer_json --devices lo,lo,lo --server-devices lo --size 4K --batch 4 --iterations 20 --verify
  assert_json out.json 'map(.transfer.pair) == [0, 1, 2, null] and all(.[]; .status == "ok" and .params.devices == 3
    and .integrity.bad_bytes == 0 and .integrity.checked_bytes > 0)'
  transfer_json --devices lo --server-devices lo,lo --size 4K --batch 4 --iterations 20
  assert_json out.json 'map(.transfer.pair) == [0, 1, null] and all(.[]; .status == "ok" and .params.devices == 2)'
}

@test "a thread sleeps for all its devices and queue pairs" {
  perch_serve
  transfer_json --devices lo,lo,lo --server-devices lo,lo,lo --threads 1 --queue-pairs 2 --completion event --size 4K --batch 4 \
    --iterations 20 --verify
  assert_json out.json 'length == 4 and all(.[]; .status == "ok" and .params.completion == "event"
    and .integrity.bad_bytes == 0 and .integrity.checked_bytes > 0)'
}

@test "what cannot be is exit 2 before anything starts" {
  refused 2 "1 to 32768" --batch 0
  refused 2 "out of range" --batch 32769
  refused 2 "not understood" --batch 1:x
  refused 2 "is no transfer" --op send
  refused 2 "--devices names 2 devices and --server-devices none" --devices lo,lo
  refused 2 "entry 2 of 3 is not a device" --devices lo,,lo --server-devices lo,lo,lo
  refused 2 "16 at most" --devices a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q --server-devices a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q
  refused 2 "--cross-rail 2 with 2 pairs" --devices lo,lo --server-devices lo,lo --cross-rail 2
  refused 2 "--threads 3 with 2 pairs" --devices lo,lo --server-devices lo,lo --threads 3
  refused 2 "transfers would overlap" --size 4K --stride 1K
  refused 2 "--buffer 4096 is smaller than the largest batch, which takes 8192 bytes" --size 1K --batch 8 --buffer 4K
  refused 2 "pieces" --size 64K --chunk 1K --batch 32768
  refused 2 "exclude each other" --iterations 5 --duration 1s
  refused 2 "--device and --devices" --device lo --devices lo
  run_apart 2 "$PERCH" transfer 127.0.0.1 --port 1 --backend null
  assert_said "has no transfers"
  run_apart 2 "$PERCH" bw 127.0.0.1 --port 1 --threads 2
  assert_said "it belongs to: transfer, rate"
}

@test "a device that is not there is exit 3 here, and 4 at the target" {
  perch_serve
  transfer 3 --device nosuch
  transfer 4 --server-device nosuch
  assert_said "nosuch"
}

# What is under way when a target's job is stopped by SIGNAL: exit 4, and what was complete before is kept.
dies_in_the_middle() {
  local signal=$1 code=0 client
  shift
  perch_serve
  rm -f out
  "$PERCH" transfer 127.0.0.1 --port "$PORT" "${VIA[@]}" --json --size 64K:128K --batch 8 --warmup 0 --duration 4s "$@" >out 2>err 3>&- &
  client=$!
  WAIT=60 wait_until test -s out
  # into the second size, and no more of it than all threads can have under way at once
  wait_until job_moved $(($(job_bytes) + 32 * 1024 * 1024))
  signal_jobs "$signal"
  SIGNALLED=$SECONDS
  wait "$client" || code=$?
  assert_equal "$code" 4
  jq -es 'length == 4 and all(.[:2][]; .status == "ok") and all(.[2:][]; .status == "error" and .error.code == 4 and .error.traffic
    and .transfer.completed > 0 and .transfer.completed >= .transfer.batches * 8 and .transfer.completed < (.transfer.batches + .params.threads) * 8
    and (.error.message | length > 0))' out || fail "$(cat out err)"
}

@test "a target that dies in the middle is exit 4, and the record says how many transfers were complete" {
  dies_in_the_middle KILL
  VIA=(--backend tcp)
  dies_in_the_middle KILL
}

@test "a target that hangs in the middle is exit 4 when --timeout is over, also with verification and sleeping threads" {
  dies_in_the_middle STOP --timeout 3s
  grep -q -- "--timeout" err
  signal_jobs KILL
  dies_in_the_middle STOP --timeout 3s --verify --completion event --threads 16
  local took=$((SECONDS - SIGNALLED))
  signal_jobs KILL
  # 16 threads that ask one after another, 3 s each, would take 48 s
  [ "$took" -lt 40 ] || fail "took $took s to notice"
}

@test "a library that does not come back: the initiator says so with what is known, and the target's job ends, too" {
  cat >stuck.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

/* recv() and recvmsg() come back so many times, and then never again; the main thread, which talks to the peer, has no part in it. */
static int left = 20000;

static void wait_for_ever(void) {
	if (gettid() != getpid() && __sync_sub_and_fetch(&left, 1) < 0)
		for (;;)
			(void) pause();
}

ssize_t recv(int fd, void *p, size_t n, int flags) {
	wait_for_ever();
	return ((ssize_t (*)(int, void *, size_t, int)) dlsym(RTLD_NEXT, "recv"))(fd, p, n, flags);
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags) {
	wait_for_ever();
	return ((ssize_t (*)(int, struct msghdr *, int)) dlsym(RTLD_NEXT, "recvmsg"))(fd, m, flags);
}
C
  cc -shared -fPIC -o stuck.so stuck.c -ldl
  VIA=(--backend tcp --completion event --timeout 1s --duration 20s --json)
  perch_serve
  run_apart 4 env LD_PRELOAD="$PWD/stuck.so" "$PERCH" transfer 127.0.0.1 --port "$PORT" "${VIA[@]}"
  assert_said "does not come back"
  jq -es 'length == 2 and all(.[]; .status == "error" and .error.traffic and .transfer.completed > 0)' <<<"$output"
  wait_until no_server_jobs
  LD_PRELOAD=$PWD/stuck.so perch_serve
  run_apart 4 "$PERCH" transfer 127.0.0.1 --port "$PORT" "${VIA[@]}"
  wait_until no_server_jobs
}

@test "an initiator that is killed leaves no job at the target" {
  perch_serve
  "$PERCH" transfer 127.0.0.1 --port "$PORT" "${VIA[@]}" --duration 20s --json >out 2>err 3>&- &
  client=$!
  wait_until job_moved $((1024 * 1024))
  kill -KILL "$client"
  wait_until no_server_jobs
}
