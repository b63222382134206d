#!/usr/bin/env bats
# What the engine's figures mean: both ways to say how long, the pace, intervals, samples, limits, and phases longer than
# --timeout. Over tcp in event mode, which needs no core of its own.

load helpers

setup_file() {
  make --no-print-directory -s -C "$TOP/engine" hooks >&2
  cd "$BATS_FILE_TMPDIR" || return
  export FILE_MARK="measures-$BASHPID-$RANDOM" HOOKS="$TOP/engine/build-hooks/perch" FI_PROVIDER="tcp,ofi_rxm,shm"
  export PERCH_TEST_MARK=$FILE_MARK
  PERCH=$HOOKS perch_serve
  export FILE_PORT=$PORT FILE_SERVER=$SERVER
}

teardown_file() {
  kill "$FILE_SERVER" || fail "the server ended before its time: $(cat "$BATS_FILE_TMPDIR"/serve.*.log)"
  PERCH_TEST_MARK=$FILE_MARK no_leak
}

setup() { common_setup; }
teardown() { common_teardown; }

# perch [EXIT] COMMAND OPTION...: its records in out
perch() {
  local expected=0
  if [[ $1 =~ ^[0-9]$ ]]; then expected=$1 && shift; fi
  run_apart "$expected" "$HOOKS" "$1" 127.0.0.1 --port "$FILE_PORT" --completion event --json "${@:2}"
  printf '%s\n' "$output" >out
}

# holds CONDITION: of all objects in out, as an array
holds() { jq -es "$1" out >/dev/null || fail "this does not hold: $1
$(cut -c -2000 out)"; }

readonly PERCENTILES='def percentiles_right: .latency_us as $l | {p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99, p99_9: 0.999,
  p99_99: 0.9999} | all(to_entries[]; ($l[.key] != null) == ($l.count * (1 - .value) >= 9.999999));'

@test "iterations and duration give the same percentiles, each where ten samples lie above it" {
  for count in 19 20 99 100 1000; do
    perch lat --iterations "$count"
    holds "$PERCENTILES"' .[0] | percentiles_right and .latency_us.count == '"$count"
    jq -cS '.latency_us | keys' out >>keys
  done
  perch lat --duration 300ms
  holds "$PERCENTILES"' .[0] | percentiles_right and .latency_us.count > 100 and .elapsed_s >= 0.3 and .params.iterations == null'
  jq -cS '.latency_us | keys' out >>keys
  assert_equal "$(sort -u keys | wc -l)" 1
}

@test "bandwidth by duration lasts that long, and counts what arrived" {
  perch bw --duration 300ms --size 4K
  holds '.[0] | .elapsed_s >= 0.3 and .bandwidth.bytes > 0 and .bandwidth.bytes % 4096 == 0
    and (.bandwidth.gbit_s * .elapsed_s * 1e9 / 8 / .bandwidth.bytes - 1 | fabs) < 1e-6
    and .bandwidth.min_interval_gbit_s <= .bandwidth.peak_gbit_s'
}

@test "warm-up is not counted, in no figure" {
  perch lat --iterations 10 --warmup 500 --report-all
  holds '[.[] | select(.kind == "sample")] as $s | .[-1].latency_us as $l | ($s | length) == 10 and $l.count == 10
    and ($s | map(.number)) == [range(10)] and (($s | map(.latency_us) | max) - $l.max | fabs) < 1e-3
    and (($s | map(.latency_us) | min) - $l.min | fabs) < 1e-3 and (($s | map(.latency_us) | add / 10) - $l.mean | fabs) < 1e-3'
  perch bw --iterations 10 --warmup 500 --size 1000
  holds '.[0].bandwidth.bytes == 10000'
  perch lat --iterations 10 --warmup 0
  holds '.[0].latency_us.count == 10 and .[0].path.claimed_bytes == 2 * 10 * 8'
  # a time: as many messages as there is time for, whatever is measured behind them
  perch lat --iterations 10 --warmup 300ms
  holds '.[0] | .latency_us.count == 10 and .params.warmup == null and .params.warmup_s == 0.3
    and .path.claimed_bytes > 2 * 11 * 8'
  perch bw --iterations 10 --warmup 300ms --size 1000
  holds '.[0] | .bandwidth.bytes == 10000 and .path.claimed_bytes > 11000'
}

@test "the histogram holds every sample" {
  perch lat --iterations 500 --size 8:32
  jq -r .histogram.data out >histograms
  run_apart 0 "$HOOKS" hist histograms
  jq -es '.[0].count == 1500' <<<"$output"
}

@test "a rate is kept" {
  perch lat --rate 200msg/s --iterations 60 --warmup 0
  holds '.[0] | .elapsed_s >= 0.29 and .elapsed_s < 1 and .params.rate.overloaded == false and .params.rate.skipped == 0'
  perch bw --rate 0.1Gb/s --size 64K --iterations 60 --warmup 0
  # 59 periods of 5.24 ms; the first message goes at once
  holds '.[0] | .bandwidth.gbit_s < 0.103 and .bandwidth.gbit_s > 0.05 and .params.rate.overloaded == false'
}

@test "a rate above what the path can do is called overloaded, and delays count from the intended time" {
  perch lat --rate 100Mmsg/s --iterations 10000 --warmup 0 # long enough that one pause of the machine is no tenth of it
  # the last one waits for all before it
  holds '.[0] | .params.rate.overloaded and .latency_us.max > .elapsed_s * 1e6 * 0.9'
  perch bw --rate 100000Gb/s --size 64K --iterations 300 --warmup 0
  holds '.[0].params.rate.overloaded'
}

@test "a gap lies between messages and is no part of them" {
  perch lat --gap 5ms --iterations 20 --warmup 0
  holds '.[0] | .elapsed_s >= 0.1 and .latency_us.p50 < 2500'
}

@test "intervals add up to the whole" {
  perch lat --duration 620ms --interval 200ms
  holds '[.[] | select(.kind == "interval")] as $i | ($i | length) == 3 and all($i[]; .count > 0 and .latency_us.count == .count)
    and (.[-1].intervals | length) == 3 and ([$i[].count] | add) <= .[-1].latency_us.count
    and .[-1].intervals[0].start_s == 0 and .[-1].intervals[1].start_s == .[-1].intervals[0].end_s'
  perch bw --duration 620ms --interval 200ms
  holds '[.[] | select(.kind == "interval")] as $i | ($i | length) == 3 and all($i[]; .gbit_s > 0)
    and ([$i[].count] | add) * 65536 <= .[-1].bandwidth.bytes'
}

@test "a limit that is missed is exit 1, with a record that is ok" {
  perch 1 lat --iterations 1000 --max-p99 0.001
  holds '.[0].status == "ok"'
  # shellcheck disable=SC2154  # run_apart sets it
  [[ $stderr = *--max-p99* ]] || fail "the limit is not named"
  perch 0 lat --iterations 1000 --max-p99 10000000
  perch 1 bw --iterations 100 --min-gbit 1000000
  holds '.[0].status == "ok"'
  [[ $stderr = *--min-gbit* ]] || fail "the limit is not named"
  perch 0 bw --iterations 100 --min-gbit 0.000001
  # a limit that cannot be judged is missed
  perch 1 lat --duration 1ms --warmup 0 --max-p99 10000000 --gap 1ms
}

@test "a corrupted size outranks a missed limit, and the sizes after it are measured" {
  PERCH_TEST_FLIP=3 perch 5 lat --verify --size 8:32 --iterations 1000 --warmup 0 --max-p99 0.001
  holds 'map(.status) == ["error", "ok", "ok"] and .[0].error.code == 5 and map(.integrity.bad_bytes) == [1, 0, 0]'
  PERCH_TEST_FLIP=1003 perch 5 lat --verify --size 8:32 --iterations 1000 --warmup 0 --max-p99 0.001
  holds 'map(.status) == ["ok", "error", "ok"]'
}

@test "what is corrupted while warming up is found too" {
  PERCH_TEST_FLIP=3 perch 5 lat --verify --iterations 10 --warmup 10
  holds '.[0].integrity.bad_bytes == 1'
}

@test "a flipped byte is located" {
  PERCH_TEST_FLIP=3 perch 5 lat --verify --size 100 --iterations 10 --warmup 0
  [[ $stderr = *"1 of 2000 checked bytes of send"*"first in message 3 at byte 50"* ]] || fail "not located: $stderr"
}

@test "a phase may last longer than --timeout where the server cannot see it" {
  perch lat --backend ofi --provider tcp --op read --duration 3s --timeout 1s
  perch bw --backend ofi --provider tcp --op read --duration 3s --timeout 1s
  perch lat --backend null --duration 3s --timeout 1s --completion busy
}

@test "a pace slower than --timeout is no hang" {
  perch lat --gap 700ms --iterations 2 --warmup 0 --timeout 500ms
  perch bw --rate 1.5msg/s --iterations 2 --warmup 0 --timeout 500ms
}

@test "a paced end that sleeps between its messages uses little of a core, and keeps its rate" {
  for of in 'lat --backend tcp' 'lat --backend ofi --provider tcp' 'bw --backend tcp --size 4K' 'bw --backend ofi --provider tcp --size 4K' \
    'bw --backend tcp --size 4K --bidirectional'; do
    # shellcheck disable=SC2086
    perch $of --rate 200msg/s --duration 1s
    # a spinning one uses all of it; 1 % is usual, and a machine that is busy adds to it, but no spin
    holds '.[0] | .cpu.client_s / .elapsed_s < 0.2 and .cpu.server_s / .elapsed_s < 0.2 and .params.rate.skipped == 0
      and ((.bandwidth.bytes // 0) / 4096 + (.latency_us.count // 0) | . >= 195 and . <= 402)'
  done
}

@test "a client that is stopped ends by that signal, and not with the exit code of a missed limit" {
  for signal in TERM:143 INT:130; do
    code=0
    rm -f out # of the signal before: its lines are not what is waited for
    # a shell lets its background processes ignore SIGINT; this one must not
    env --default-signal=INT "$HOOKS" lat 127.0.0.1 --port "$FILE_PORT" --completion event --duration 20s --json --interval 100ms >out 2>&1 3>&- &
    client=$!
    wait_until test -s out
    kill "-${signal%:*}" "$client"
    wait "$client" || code=$?
    assert_equal "$code" "${signal#*:}"
  done
}

@test "the listener keeps no descriptor of a job that has ended" {
  SERVER=$FILE_SERVER
  wait_until no_server_jobs
  before=$(ls "/proc/$FILE_SERVER/fd")
  for _ in 1 2 3 4; do perch lat --iterations 10; done
  "$HOOKS" lat 127.0.0.1 --port "$FILE_PORT" --completion event --duration 20s >out 2>&1 3>&- &
  client=$!
  wait_until server_jobs
  kill -KILL "$client"
  wait_until no_server_jobs
  # closed as the job is collected: at once, but after it has left the list of processes
  wait_until bash -c "[ \"\$(ls /proc/$FILE_SERVER/fd)\" = \"$before\" ]"
}
