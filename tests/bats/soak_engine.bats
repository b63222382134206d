#!/usr/bin/env bats
# The engine's soak: intervals that are on disk as they end, connections that are made anew, stalls with their times, and a whole that
# is the sum of its parts. Nothing is raced: what must hold is the order of things, and sums.

# shellcheck disable=SC2154,SC2153  # run --separate-stderr sets stderr, perch_serve PORT and SERVER

load helpers

setup() { common_setup; }
teardown() {
  stop_servers
  common_teardown
}

# soak EXIT lat|bw OPTION...: against PORT, into `soak.jsonl`; the whole's record in `out`
soak() {
  local expected=$1 command=$2
  shift 2
  run_apart "$expected" "$PERCH" "$command" 127.0.0.1 --port "$PORT" --json --soak soak.jsonl "$@"
  printf '%s\n' "$output" >out
}

# soak_behind lat|bw OPTION...: the same behind the test's back; sets SOAK, its process
soak_behind() {
  "$PERCH" "$1" 127.0.0.1 --port "$PORT" --json --soak soak.jsonl "${@:2}" >out 2>err 3>&- &
  SOAK=$!
}

# soak_ends EXIT: within its time; what it wrote is shown
soak_ends() {
  local status=0
  wait "$SOAK" || status=$?
  cat err
  assert_equal "exit code $status" "exit code $1"
}

# Holds for the lines of the soak's file, as one array.
assert_lines() {
  jq -es "$1" soak.jsonl >/dev/null || fail "in the lines this does not hold: $1
$(jq -c 'del(.histogram, .job, .params)' soak.jsonl)"
}

# lines KIND COUNT: there are as many of them by now
lines() { (($(grep -c "\"kind\":\"$1\"" soak.jsonl) >= $2)); }

# The file is one: intervals and gaps follow each other and leave no time out but what it takes to connect and to agree; the last line
# is the whole, which is the sum, and what was printed.
assert_whole() {
  assert_lines 'map(select(.kind == "interval" or .kind == "gap")) as $l | ($l | length) > 0 and
    all(range(1; $l | length); $l[.].start_s >= $l[. - 1].end_s - 1e-6) and all($l[]; .end_s > .start_s)'
  assert_lines '.[0].kind == "soak" and .[1].kind == "connection" and (map(select(.kind == "interval")) as $i | .[-1] |
    .soak.intervals == ($i | length) and (.elapsed_s / ($i | map(.elapsed_s) | add) - 1 | fabs) < 1e-6)'
  # until the last of them ended: what came then was the end alone
  assert_lines '([.[] | select(.kind == "interval" or .kind == "gap").end_s] | max) as $last | .[-1] |
    if .soak.stopped or .error != null then .soak.passed_s >= $last else .soak.passed_s == $last end'
  diff <(tail -n 1 soak.jsonl) out
}

# assert_schema: each line is what the schema says
assert_schema() {
  local schema=$TOP/reports/schema/line.schema.json
  jq '{type: "array", items: {"$ref": "#/$defs/soak"}, "$defs": ."$defs", properties: .properties}' "$schema" >lines.schema.json
  jq -s 'map(select(.kind != "latency" and .kind != "bandwidth"))' soak.jsonl >lines.json
  run_expecting 0 check-jsonschema --schemafile lines.schema.json lines.json
}

@test "an interval has figures of its own, and all of them merge to the whole" {
  perch_serve
  local of
  for of in 'lat --backend tcp' 'lat --backend ofi --completion event' 'bw --backend ofi --completion event' \
    'bw --backend tcp --completion event --bidirectional --verify'; do
    rm -f soak.jsonl
    # shellcheck disable=SC2086
    soak 0 $of --duration 1500ms --interval 500ms
    assert_whole
    assert_schema
    assert_lines 'map(select(.kind == "interval")) | length >= 1 and all(.[]; .status == "ok" and .messages > 0 and .cpu.server_s != null
      and .memory.client_bytes > 0 and .memory.server_bytes > 0 and .memory.keeper_bytes > 0 and .handles.client > 2 and .handles.server > 2
      and .path.claimed_bytes > 0 and (.started | test("Z$")) and (.ended | test("Z$")))'
    # what was counted is what was counted
    assert_lines '.[-1] as $w | map(select(.kind == "interval")) | $w.path.claimed_bytes == (map(.path.claimed_bytes) | add)
      and ($w.bandwidth.bytes // .[0].bytes) == (if $w.bandwidth then map(.bytes) | add else .[0].bytes end)'
    [[ $of = lat* ]] || continue
    jq -r 'select(.kind == "interval" and .histogram).histogram.data' soak.jsonl >histograms
    run_apart 0 "$PERCH" hist --quantiles 0.5,0.9,0.99 histograms
    assert_lines ".[-1].latency_us as \$l | $output | .count == \$l.count
      and ([[.quantiles[\"0.5\"], \$l.p50], [.quantiles[\"0.9\"], \$l.p90], [.quantiles[\"0.99\"], \$l.p99]] |
        all(.[]; .[0] == .[1] or (.[0] / 2000 / .[1] - 1 | fabs) < 0.001))"
    assert_lines '.[-1].latency_us as $l | map(select(.kind == "interval").latency_us) |
      $l.max == (map(.max) | max) and $l.min == (map(.min) | min) and $l.count == (map(.count) | add)'
  done
}

@test "a flipped byte is found in the interval in which it came" {
  make -s -C "$TOP/engine" hooks >&2
  local hooks=$TOP/engine/build-hooks/perch
  PERCH_TEST_FLIP=1 PERCH=$hooks perch_serve
  PERCH=$hooks soak 5 bw --backend tcp --verify --duration 600ms --interval 200ms
  assert_whole
  assert_schema
  assert_lines 'any(.[]; .kind == "interval" and .integrity.bad_bytes > 0 and .error.code == 5) and .[-1].status == "error"
    and .[-1].error.code == 5 and .[-1].integrity.bad_bytes > 0'
}

@test "of a flipped byte it is known who found it, when, in which message and where, and what stood there" {
  make -s -C "$TOP/engine" hooks >&2
  local hooks=$TOP/engine/build-hooks/perch by
  for by in server client; do
    rm -f soak.jsonl
    # the hook flips the middle byte of the buffer that is checked after so many: some way into them
    if [ $by = server ]; then
      PERCH_TEST_FLIP=50 PERCH=$hooks perch_serve
      PERCH=$hooks soak 5 bw --backend tcp --verify --size 1000 --rate 100msg/s --completion event --warmup 1 --duration 900ms --interval 300ms
    else
      perch_serve
      PERCH=$hooks PERCH_TEST_FLIP=50 soak 5 bw --backend ofi --op read --verify --size 1000 --rate 100msg/s --completion event --warmup 1 \
        --duration 900ms --interval 300ms
    fi
    assert_schema
    # byte 500 lies in the middle of the word that begins at 496; half a word of it was turned over
    assert_lines '. as $l | map(select(.kind == "interval" and .integrity.bad_bytes > 0)) | length == 1 and (.[0] as $i | $i.integrity |
      .bad_bytes == 1 and .first_bad.found_by == "'$by'" and .first_bad.offset == 500 and .first_bad.message < 50
      and .first_bad.start_s >= $i.start_s - 0.01 and .first_bad.start_s <= $i.end_s and (.first_bad.at | test("Z$"))
      and (.first_bad | .expected != .found and .expected[:8] == .found[:8] and .expected[10:] == .found[10:] and (.expected | length) == 16)
      and $l[-1].integrity.first_bad == .first_bad and ($i.error.message | contains("at byte 500")))'
  done
}

@test "a library that never comes back is a loss like another: what was measured is kept, and the soak goes on" {
  cat >stuck.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

/* recv() does not come back while there is a file `stuck`. The watchdog's thread has no part in it. */
ssize_t recv(int fd, void *p, size_t n, int flags) {
	while (gettid() == getpid() && access("stuck", F_OK) == 0)
		(void) usleep(10000);
	return ((ssize_t (*)(int, void *, size_t, int)) dlsym(RTLD_NEXT, "recv"))(fd, p, n, flags);
}
C
  cc -shared -fPIC -o stuck.so stuck.c -ldl
  perch_serve
  local of
  for of in lat 'bw --bidirectional'; do
    rm -f soak.jsonl
    # shellcheck disable=SC2086
    LD_PRELOAD=$PWD/stuck.so soak_behind $of --backend tcp --completion event --duration 120s --interval 300ms --timeout 2s
    wait_until lines interval 2
    touch stuck
    wait_until grep -q 'does not come back' err
    rm stuck
    WAIT=60 wait_until lines gap 1
    wait_until lines interval $(($(grep -c '"kind":"interval"' soak.jsonl) + 1))
    kill "$SOAK"
    soak_ends 0
    assert_whole
    assert_schema
    # the one in which it hung has what came before, and why it ended
    assert_lines 'any(.[]; .kind == "interval" and .status == "error" and .error.code == 4 and .messages > 0 and (.error.message | contains("does not come back")))
      and any(.[]; .kind == "gap" and (.reason | contains("does not come back"))) and .[-1].soak.connections == 2'
  done
  # and where it hangs in each attempt to connect, for which there is no watchdog, the soak ends with what it has
  rm soak.jsonl
  LD_PRELOAD=$PWD/stuck.so soak_behind lat --backend tcp --completion event --duration 120s --interval 300ms --timeout 2s --reconnect 3s
  wait_until lines interval 1
  touch stuck
  soak_ends 4
  assert_whole
  assert_lines '.[-1] | .status == "error" and (.error.message | contains("cannot reconnect within 3 s")) and .latency_us.count > 0'
}

@test "what was found corrupted before the connection was lost is not lost with it" {
  make -s -C "$TOP/engine" hooks >&2
  perch_serve
  # the first buffer that this end checks, with no warm-up before the interval
  PERCH_TEST_FLIP=1 PERCH=$TOP/engine/build-hooks/perch soak_behind bw --backend tcp --bidirectional --verify --warmup 0 --duration 60s \
    --interval 60s --reconnect 1s
  wait_until lines connection 1
  wait_until job_moved $((1024 * 1024))
  kill -KILL "$SERVER"
  soak_ends 5
  assert_whole
  assert_lines 'any(.[]; .kind == "interval" and .status == "error" and .integrity.bad_bytes > 0) and .[-1].error.code == 5
    and .[-1].integrity.bad_bytes > 0'
}

@test "a server that is killed and started again leaves a gap with its times, and the soak goes on" {
  local backend
  for backend in tcp ofi; do
    rm -f soak.jsonl
    perch_serve
    soak_behind bw --backend "$backend" --completion event --duration 60s --interval 300ms --timeout 3s
    wait_until lines interval 2
    local killed again
    kill -KILL "$SERVER"
    killed=$(date +%s.%N)
    wait_until grep -q 'lost its connection' err
    again=$(date +%s.%N)
    "$PERCH" serve --port "$PORT" 2>again.log 3>&- &
    SERVERS+=($!)
    wait_until lines gap 1
    local seen
    seen=$(grep -c '"kind":"interval"' soak.jsonl)
    wait_until lines interval $((seen + 2))
    kill "$SOAK"
    soak_ends 0
    kill "${SERVERS[-1]}"
    assert_whole
    assert_schema
    assert_lines 'def at: sub("\\.[0-9]+Z$"; "Z") | fromdate; map(select(.kind == "gap")) | length == 1 and (.[0] | .attempts >= 1 and (.reason | length) > 0
      and (.started | at) <= '"$again"' and (.ended | at) + 1 >= '"$killed"' and .end_s > .start_s)'
    assert_lines '.[-1] | .soak.connections == 2 and .soak.gaps == 1 and .soak.stopped and .status == "ok"'
  done
}

@test "a server that breaks each connection at once is asked less and less often" {
  perch_serve
  # a warm-up of messages: one of 200 ms outlasts each connection, which then is not counted
  soak_behind bw --backend tcp --completion event --warmup 100 --duration 60s --interval 30s
  wait_until lines connection 1
  local end=$((SECONDS + 5))
  while ((SECONDS < end)); do
    signal_jobs KILL 2>/dev/null || true
    sleep 0.02
  done
  kill "$SOAK"
  soak_ends 0
  # after 0.1, 0.2, 0.4, 0.8, 1.6 and 3.2 s
  assert_lines '.[-1].soak.connections | . >= 3 and . <= 7'
  # what was on its way in the lost ones nobody knows; the warm-up before them was no more than a part of it. One may have lost its server
  # before its first message.
  assert_lines 'map(select(.kind == "interval" and .status == "error")) | any(.messages > 0) and all(.path == null)'
  assert_lines '.[-1].path == null'
}

@test "a network that is cut for five seconds costs the connection, and the gap holds all of them" {
  unshare --user --map-root-user --net --mount true 2>/dev/null || skip "no user namespaces here"
  head -c 32 /dev/urandom >token && chmod 600 token
  # shellcheck disable=SC2016
  LIMIT=90 run_expecting 0 unshare --user --map-root-user --net --mount bash -c 'set -euo pipefail
    unshare --net sleep 80 & far=$!
    until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.05; done
    ip link add here type veth peer name there netns "$far"
    ip addr add 192.0.2.1/24 dev here && ip link set here up && ip link set lo up
    nsenter -t "$far" -n ip addr add 192.0.2.2/24 dev there
    nsenter -t "$far" -n ip link set there up
    nsenter -t "$far" -n "$1" serve --port 18600 --token-file token --ready-file ready & server=$!
    until [ -e ready ]; do sleep 0.05; done
    "$1" lat 192.0.2.2 --token-file token --backend tcp --completion event --json --soak soak.jsonl --duration 60s --interval 500ms --timeout 2s >out & soak=$!
    count() { grep -sc "\"kind\":\"$1\"" soak.jsonl || [ -e soak.jsonl ] || echo 0; }
    until (($(count interval) >= 2)); do sleep 0.1; done
    ip link set here down
    date +%s.%N >down
    sleep 5
    date +%s.%N >up
    ip link set here up
    until (($(count gap) >= 1)); do sleep 0.1; done
    seen=$(count interval)
    until (($(count interval) > seen + 1)); do sleep 0.1; done
    kill "$soak" && wait "$soak"
    kill "$server" "$far"' bash "$PERCH"
  assert_whole
  local down up
  down=$(<down) up=$(<up)
  # The silence began at the latest when the link had been cut, and lasted until it was back.
  assert_lines 'def at: (sub("\\.[0-9]+Z$"; "Z") | fromdate) + (capture("\\.(?<ms>[0-9]+)Z").ms | tonumber / 1000); map(select(.kind == "gap")) | length == 1
    and (.[0] | (.started | at) < '"$down"' + 1 and (.ended | at) > '"$up"' and .end_s - .start_s > 4)'
}

@test "a server that stands still for a moment is a stall with its start and end" {
  local of t1
  # Bandwidth stands still once all that may be under way is: of a stream that is what its buffers hold.
  for of in 'lat --backend tcp' 'lat --backend tcp --completion event' 'bw --backend tcp' 'bw --backend ofi --completion event'; do
    rm -f soak.jsonl
    perch_serve
    # shellcheck disable=SC2086
    soak_behind $of --duration 60s --interval 500ms --stall 40ms
    wait_until lines interval 1
    signal_jobs STOP
    if [[ $of = lat* ]]; then sleep 0.05; else sleep 1; fi
    t1=$(date +%s.%N)
    signal_jobs CONT
    wait_until lines interval $(($(grep -c '"kind":"interval"' soak.jsonl) + 2))
    kill "$SOAK"
    soak_ends 0
    kill "$SERVER"
    assert_schema
    # It lasted from when nothing could move any more, or before, until things could: the time told is whole milliseconds.
    assert_lines 'def at: (sub("\\.[0-9]+Z$"; "Z") | fromdate) + (capture("\\.(?<ms>[0-9]+)Z").ms | tonumber / 1000);
      any(.[]; .kind == "stall" and (.started | at) < '"$t1"' and (.ended | at) + 0.001 >= '"$t1"' and .end_s - .start_s >= 0.04 and .messages >= 1)'
    assert_lines '.[-1] | .soak.stalls >= 1 and .soak.gaps == 0 and .soak.stall_s >= 0.04 and (.stall.longest_s >= 0.04)'
  done
}

@test "a client that stands still while a probe is due is a stall like another" {
  perch_serve
  soak_behind lat --backend tcp --rate 20msg/s --duration 60s --interval 500ms --stall 40ms
  wait_until lines interval 1
  pkill -STOP -P "$SOAK" # between two probes, mostly
  sleep 1
  pkill -CONT -P "$SOAK"
  wait_until lines interval $(($(grep -c '"kind":"interval"' soak.jsonl) + 2))
  kill "$SOAK"
  soak_ends 0
  assert_schema
  assert_lines 'map(select(.kind == "stall")) | any(.end_s - .start_s > 0.9) and (map(.end_s - .start_s) | add) < 4'
}

@test "a server that never answers at an interval's end: the interval ends where the silence began, and the gap begins there" {
  perch_serve
  # so little that all of an interval is under way before anything has to wait
  soak_behind bw --backend tcp --completion event --size 4K --warmup 1 --rate 5Mb/s --duration 60s --interval 1s --timeout 3s --reconnect 20s
  wait_until lines interval 1
  signal_jobs STOP
  wait_until lines gap 1
  signal_jobs KILL
  kill "$SOAK"
  soak_ends 0
  assert_whole
  assert_lines '(map(select(.kind == "interval" and .status == "error")) | .[0].elapsed_s < 3) and (map(select(.kind == "gap")) | .[0].end_s - .[0].start_s > 2.9)'
}

@test "a server that stands still between two intervals is a stall that is counted" {
  perch_serve
  # A write now and then, for which no server is needed at the end of an interval: what waits for it then is the agreement alone.
  soak_behind bw --backend ofi --op write --completion event --rate 1msg/s --duration 60s --interval 600ms --stall 100ms --warmup 1
  wait_until lines interval 2
  sleep 0.2
  signal_jobs STOP
  sleep 1.5
  signal_jobs CONT
  wait_until lines stall 1
  wait_until lines interval $(($(grep -c '"kind":"interval"' soak.jsonl) + 1))
  kill "$SOAK"
  soak_ends 0
  assert_whole
  assert_schema
  assert_lines 'map(select(.kind == "stall")) as $s | ($s | length) >= 1 and (.[-1].soak | .stalls == ($s | length)
    and (.stall_s - ($s | map(.end_s - .start_s) | add) | fabs) < 0.001 and .stall_s > 0.5)'
}

@test "between two paced messages nothing stands still" {
  perch_serve
  local of
  # The pause is twice as long as what counts as a stall.
  for of in 'lat' 'bw' 'bw --completion event'; do
    rm -f soak.jsonl
    # shellcheck disable=SC2086
    soak 0 $of --backend tcp --rate 0.5msg/s --stall 1s --duration 5s --interval 5s --warmup 1
    assert_lines '.[-1] | .soak.stalls == 0 and .soak.intervals == 1'
  done
}

@test "a rate is kept within one percent over all intervals, by the bytes that were counted" {
  perch_serve
  local of
  for of in '--backend tcp' '--backend tcp --completion event' '--backend ofi --completion event'; do
    rm -f soak.jsonl
    # shellcheck disable=SC2086
    soak 0 bw $of --size 4K --rate 100Mb/s --duration 8s --interval 500ms
    # no more than was due since the beginning, and no less than while it was measured: a busy machine measures later and shorter
    assert_lines '.[-1] as $whole | (map(select(.kind == "interval").bytes) | add * 8 / 100e6) as $due_s
      | $due_s > 0.99 * $whole.elapsed_s and $due_s < 1.01 * $whole.soak.passed_s'
    assert_lines '.[-1].params.rate | .asked == 0.1 and .skipped == 0'
  done
}

@test "memory and handles stay what they were, interval after interval" {
  perch_serve
  local of
  # Of a minute or more, as shorter ones are not looked at for growth. libfabric's tcp provider has rings of some 100,000 places,
  # half of which these have reached when they end.
  for of in 'lat --backend tcp' 'bw --backend tcp' 'bw --backend ofi --size 64 --rate 20000msg/s' 'lat --backend ofi --rate 5000msg/s'; do
    rm -f soak.jsonl
    # shellcheck disable=SC2086
    soak_behind $of --completion event --duration 60s --interval 100ms
    wait_until lines interval 25
    kill "$SOAK"
    soak_ends 0
    assert_lines 'map(select(.kind == "interval")) | length > 15 and (.[0] as $f | .[-1] | .memory.client_bytes - $f.memory.client_bytes < 1e6
      and .memory.server_bytes - $f.memory.server_bytes < 1e6 and .memory.keeper_bytes - $f.memory.keeper_bytes < 1e6 and .handles == $f.handles)'
  done
}

@test "SIGTERM while a paced probe waits for its turn sends none before its time" {
  perch_serve
  soak_behind lat --backend tcp --completion event --rate 100msg/s --duration 60s --interval 500ms
  wait_until lines interval 2
  kill -TERM "$SOAK"
  soak_ends 0
  kill "$SERVER"
  assert_whole
  # a rate of 100 is kept in the last interval, too; what goes before it is due would have come back before it went
  assert_lines 'map(select(.kind == "interval")) | all(.messages <= 100 * .elapsed_s + 2 and .latency_us.max < 1e6)'
  assert_lines '.[-1].latency_us.max < 1e6'
}

@test "SIGTERM ends it with a partial result that is whole in itself, also while nothing moves" {
  local state before
  for state in moving still; do
    rm -f soak.jsonl
    perch_serve
    soak_behind bw --backend tcp --duration 60s --interval 30s
    wait_until lines connection 1
    wait_until server_jobs
    wait_until job_moved $((1024 * 1024)) # the interval under way must not be lost
    [ $state = moving ] || signal_jobs STOP
    before=$(date +%s%N)
    kill -TERM "$SOAK"
    soak_ends 0
    # at once, not when the server has been silent for 30 s (--timeout) or the 60 s are over
    (($(date +%s%N) - before < 25000000000))
    [ $state = moving ] || signal_jobs CONT
    kill "$SERVER"
    assert_whole
    assert_schema
    assert_lines '.[-1] | .soak.stopped and .status == "ok" and .bandwidth.bytes > 0 and .elapsed_s < 30 and .soak.intervals == 1'
    no_leak 7
  done
}

@test "a full disk stops no measurement, and nothing that was measured is lost" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  perch_serve
  local freed code=0
  for freed in yes no; do
    [ $freed = yes ] || code=6
    # shellcheck disable=SC2016
    run_expecting $code unshare --user --map-root-user --mount bash -c 'set -euo pipefail
      mkdir -p small && mount -t tmpfs -o size=64k none small
      "$1" lat 127.0.0.1 --port "$2" --backend tcp --completion event --json --soak small/soak.jsonl --duration 60s --interval 200ms >out 2>err & soak=$!
      until grep -q interval small/soak.jsonl 2>/dev/null; do sleep 0.05; done
      cat /dev/zero >small/fill 2>/dev/null || true
      until grep -q "cannot write small/soak.jsonl: No space left" err; do sleep 0.05; done
      if [ "$3" = yes ]; then
        rm small/fill
        until grep -q "is written again" err; do sleep 0.05; done
      fi
      kill "$soak"
      status=0
      wait "$soak" || status=$?
      cp small/soak.jsonl soak.jsonl
      exit "$status"' bash "$PERCH" "$PORT" $freed
    cat err
    if [ $freed = no ]; then
      grep -q 'they are on standard output' err
      tail -c 1 soak.jsonl | cmp - <(echo) # no half line
      cat out >>soak.jsonl
      tail -n 1 soak.jsonl >out
    fi
    assert_whole
    assert_schema
  done
}

@test "what was killed in the middle of a line is continued, with a gap until then" {
  perch_serve
  # with more digits than a line has
  soak_behind lat --backend tcp --completion event --duration 60.123456789s --interval 200ms
  wait_until lines interval 2
  kill -KILL "$SOAK"
  wait "$SOAK" || true
  wait_until no_server_jobs # who measured has ended with who kept
  head -n 3 soak.jsonl >before
  printf '{"schema":"perch.record/1","kind":"inter' >>soak.jsonl
  soak_behind lat --backend tcp --completion event --duration 60.123456789s --interval 200ms
  wait_until lines gap 1
  wait_until lines interval $(($(grep -c '"kind":"interval"' soak.jsonl) + 1))
  kill "$SOAK"
  soak_ends 0
  grep -q 'half a line, and are cut off' err
  diff before <(head -n 3 soak.jsonl)
  assert_whole
  assert_schema
  assert_lines '.[-1] | .soak.resumed and .soak.gaps == 1 and .soak.connections == 2'
  # What was stopped can go on; what was begun otherwise cannot.
  soak 2 lat --backend tcp --duration 50s --interval 200ms
  assert_said "another duration_s"
  soak 2 lat --backend tcp --duration 60.123456789s --interval 200ms --size 64
  assert_said "another job"
}

# killed SECONDS: a soak of so long that has two intervals, and was killed
killed() {
  rm -f soak.jsonl
  soak_behind lat --backend tcp --completion event --duration "$1s" --interval 200ms
  wait_until lines interval 2
  kill -KILL "$SOAK"
  wait "$SOAK" || true
  wait_until no_server_jobs
}

# of_another_boot: the soak's file is that of a host which was booted since
of_another_boot() { sed -i 's/"boot_id": *"[^"]*"/"boot_id":"another"/' soak.jsonl; }

@test "a clock on the wall that was set is no time that passed: within a boot its own clock goes on, after another that since the last line" {
  local change
  perch_serve
  for change in true of_another_boot; do
    killed 600
    # years of which the wall alone knows, at the beginning
    sed -i '1s/"started_ms": *[0-9]*/"started_ms":1577836800000/' soak.jsonl
    "$change"
    head -n 1 soak.jsonl | grep -q '"started_ms":1577836800000'
    soak_behind lat --backend tcp --completion event --duration 600s --interval 200ms
    wait_until lines gap 1
    kill "$SOAK"
    soak_ends 0
    assert_lines 'all(.[] | select(.kind == "gap"); .end_s < 600)'
    assert_schema
  done
}

@test "a host that is back long after the planned end has a gap until then, and no longer" {
  perch_serve
  killed 600
  sed -i 's/"ended": *"20[0-9][0-9]/"ended":"2020/' soak.jsonl
  of_another_boot
  soak 0 lat --backend tcp --completion event --duration 600s --interval 200ms
  # and its beginning lies where the last line ended, years before this boot
  assert_lines '.[-2] as $gap | $gap.kind == "gap" and $gap.end_s == 600 and .[-1].soak.passed_s == 600 and
    ([$gap.started, $gap.ended, .[-3].ended] | all(.[:4] == "2020")) and $gap.started <= $gap.ended'
}

@test "a host that was booted in the middle counts by the clock of its new boot, whatever is set then" {
  perch_serve
  killed 600
  of_another_boot
  soak_behind lat --backend tcp --completion event --duration 600s --interval 200ms
  wait_until lines connection 2 # its line has the new boot
  kill -KILL "$SOAK"
  wait "$SOAK" || true
  wait_until no_server_jobs
  sed -i 's/"ended": *"20[0-9][0-9]/"ended":"2020/; 1s/"started_ms": *[0-9]*/"started_ms":1577836800000/' soak.jsonl
  soak_behind lat --backend tcp --completion event --duration 600s --interval 200ms
  wait_until lines gap 2
  kill "$SOAK"
  soak_ends 0
  assert_lines 'all(.[] | select(.kind == "gap"); .end_s < 600)'
  assert_schema
}

@test "what was ended between its last interval and its last line has no gap at its end" {
  perch_serve
  soak 0 lat --backend tcp --duration 300ms --interval 100ms
  sed -i '$d' soak.jsonl
  soak 0 lat --backend tcp --duration 300ms --interval 100ms
  assert_lines '(.[-1] | .kind == "latency" and .soak.gaps == 0 and .soak.resumed) and ([.[] | select(.kind == "gap")] == [])'
}

@test "what has ended is not continued, and nothing is left of what could not begin" {
  perch_serve
  soak 0 lat --backend tcp --duration 300ms --interval 100ms
  cp soak.jsonl before
  soak 2 lat --backend tcp --duration 300ms --interval 100ms
  assert_said "this soak has ended"
  cmp soak.jsonl before
  rm soak.jsonl
  PORT=$(free_port)
  soak 4 lat --backend tcp --duration 1s --interval 100ms
  [ ! -e soak.jsonl ]
  soak 6 lat --backend tcp --duration 1s --soak no/such/directory
  assert_said "cannot be written"
}

@test "a server that never comes back ends the soak, with all that was measured" {
  perch_serve
  soak_behind lat --backend tcp --completion event --duration 60s --interval 200ms --reconnect 1s
  wait_until lines interval 1
  kill -KILL "$SERVER"
  soak_ends 4
  grep -q -- '--reconnect' err
  assert_whole
  assert_lines '.[-2].kind == "gap" and .[-2].attempts >= 1 and (.[-1] | .status == "error" and .error.code == 4 and .latency_us.count > 0)'
}

@test "a soak that cannot be is refused before anything begins" {
  PORT=1
  soak 2 lat --duration 1s --interval 2s
  assert_said "--interval no longer than --duration"
  soak 2 lat --iterations 10
  assert_said "--duration"
  soak 2 bw --duration 1s --size 1K:4K
  assert_said "one size"
  soak 2 bw --duration 1s --min-gbit 1
  assert_said "--min-gbit"
  run_apart 2 "$PERCH" bw 127.0.0.1 --duration 1s --soak soak.jsonl
  assert_said "--json"
  run_apart 2 "$PERCH" bw 127.0.0.1 --stall 1s
  assert_said "--soak"
  [ ! -e soak.jsonl ]
}
