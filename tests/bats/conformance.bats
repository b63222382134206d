#!/usr/bin/env bats
# What every backend must do alike: each operation, way of waiting and direction is measured with --verify, and its
# record is held against what was asked; then one byte is flipped in a receive buffer, and that must be exit 5.
# Another backend, provider or operation is a line in expect(), and two tests.

load helpers

# Few, since busy waiting beside other work costs a time slice (some 10 ms) a message; and enough for a p50.
readonly ITERATIONS=20 WARMUP=5

# How each way is measured, and over which sizes: odd ones, a page, and 64 KiB and more, where providers change from
# eager messages to rendezvous. Atomics: words, up to what every provider takes at once (shm's compare-swap: 2048).
ways() {
  cat <<END
lat --completion busy|1:65537:32768
bw --completion busy|7:65543:32768
bw --bidirectional --completion busy|8:8184:4088
lat --completion event|7:4103:2048
bw --completion event|1:65537:32768
bw --bidirectional --completion event|8:8184:4088
END
}
readonly WORDS=8:2048:680

# expect BACKEND:PROVIDER OPERATION: sets what is to be expected of it.
expect() {
  wait_modes=busy definition=completion lat_checks=client bw_checks=client both_ways=yes words=''
  case $2 in
    send | write) definition=half_round_trip lat_checks="client server" bw_checks=server ;;
    # The results of both ends would land where the other's operations work: --verify refuses that.
    fetch-add | compare-swap) words=$WORDS both_ways='' ;;
  esac
  case $1 in
    null:) lat_checks=client bw_checks=client ;; # nothing travels, and nothing sleeps
    tcp: | ofi:tcp*) wait_modes="busy event" ;;
  esac
}

setup_file() {
  make --no-print-directory -s -C "$TOP/engine" hooks >&2
  cd "$BATS_FILE_TMPDIR" || return
  # Fewer providers are found faster; those under test are among them.
  export HOOKS="$TOP/engine/build-hooks/perch" FI_PROVIDER="tcp,ofi_rxm,shm" FILE_MARK="conformance-$BASHPID-$RANDOM"
  export PERCH_TEST_MARK=$FILE_MARK
  perch_serve
  # shellcheck disable=SC2153  # perch_serve sets it
  export PLAIN_PORT=$PORT
  PERCH=$HOOKS perch_serve
  export HOOKS_PORT=$PORT
  PERCH=$HOOKS PERCH_TEST_FLIP=3 perch_serve
  export FLIPPING_PORT=$PORT FILE_SERVERS="${SERVERS[*]}"
}

teardown_file() {
  local pid
  # shellcheck disable=SC2153  # set in setup_file
  for pid in $FILE_SERVERS; do
    kill "$pid" || fail "a server ended before its time: $(cat "$BATS_FILE_TMPDIR"/serve.*.log)"
  done
  PERCH_TEST_MARK=$FILE_MARK no_leak
}

setup() { common_setup; }

teardown() {
  stop_servers
  common_teardown
}

# flags BACKEND:PROVIDER: the options that choose it
flags() {
  printf -- '--backend %s' "${1%%:*}"
  [ -z "${1#*:}" ] || printf -- ' --provider %s' "${1#*:}"
}

# The names of what is wrong with the records; the arguments are what was asked for.
readonly CHECK='
  def supported($p): .latency_us.count * (1 - $p) >= 9.999999;
  def percentiles: {p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99, p99_9: 0.999, p99_99: 0.9999};
  def wrong: . as $r | .params as $p | (if $p.bidirectional then 2 else 1 end) as $directions
  | [["status", .status == "ok" and .error == null],
    ["what", .op == $op and (.backend + ":" + (.provider // "")) == $backend],
    ["params", $p.iterations == $iterations and $p.warmup == $warmup and $p.verify
      and ($ARGS.positional | join(" ") | contains("--completion " + $p.completion))
      and $p.bidirectional == any($ARGS.positional[]; . == "--bidirectional")],
    ["elapsed", .elapsed_s > 0],
    ["level", (.completion_level == null) == (.backend == "null")],
    ["both ends", (.client.host | length) > 0 and (.server.host | length) > 0],
    ["cpu", .cpu.client_s >= 0 and .cpu.server_s >= 0 and .cpu.client_s_per_gb >= 0],
    ["integrity", .integrity == {bad_bytes: 0, checked_bytes: (($iterations + $warmup) * $p.size_bytes
      * (if .kind == "latency" then $checks else $directions end))}]]
  + if .kind == "latency" then
      [["definition", .definition == $definition],
      ["count", .latency_us.count == $iterations and .bandwidth == null],
      ["order", .latency_us.min > 0 and .latency_us.min <= .latency_us.p50 and .latency_us.p50 <= .latency_us.max
        and .latency_us.mean <= .latency_us.max and .latency_us.stddev >= 0],
      ["percentiles", all(percentiles | to_entries[]; .value as $q | ($r.latency_us[.key] != null) == ($r | supported($q)))],
      ["histogram", .histogram.unit == (if $definition == "completion" then "ns" else "ns_round_trip" end)]]
    else
      [["definition", .definition == (if $op == "send" then "receiver_acknowledged" else "initiator_completion" end)],
      ["count", .bandwidth.bytes == $iterations * $p.size_bytes * $directions and .latency_us == null],
      ["bandwidth", .bandwidth.gbit_s > 0 and .bandwidth.messages_per_s > 0
        and (.bandwidth.gbit_s / (.bandwidth.bytes * 8e-9 / .elapsed_s) - 1 | fabs) < 1e-6]]
    end
  | map(select(.[1] | not) | .[0]);
  [inputs | wrong] | if length < 3 then ["records missing"] else add | unique end'

# measure BACKEND:PROVIDER OPERATION SIZES WAY...: one run, each of its records checked. For the background: says what failed.
measure() {
  local backend=$1 op=$2 sizes=$3 code=0 bad
  local name=${*:4}
  shift 3
  # shellcheck disable=SC2046  # words
  timeout 40 "$PERCH" "$1" 127.0.0.1 "${@:2}" --port "$PLAIN_PORT" $(flags "$backend") --op "$op" --size "$sizes" \
    --iterations "$ITERATIONS" --warmup "$WARMUP" --verify --json --timeout 20s >"$name.json" 2>"$name.err" || code=$?
  # shellcheck disable=SC2086  # words
  bad=$(jq -nc --arg backend "$backend" --arg op "$op" --arg definition "$definition" --argjson iterations "$ITERATIONS" \
    --argjson warmup "$WARMUP" --argjson checks "$(set -- $lat_checks && echo $#)" "$CHECK" "$name.json" --args -- "$@")
  [ "$code" -eq 0 ] && [ "$bad" = "[]" ] && [ ! -s "$name.err" ] && return
  printf '%s\n' "perch $* --op $op --size $sizes: exit code $code, wrong: $bad" "$(cat "$name.err" "$name.json")"
  return 1
}

# The ways that have one mode of waiting, one after the other.
measure_waiting() {
  local way sizes failed=0
  while IFS='|' read -r way sizes; do
    [[ $way = *"$3" ]] || continue
    [ -n "$both_ways" ] || [[ $way != *bidirectional* ]] || continue
    # shellcheck disable=SC2086  # words
    measure "$1" "$2" "${words:-$sizes}" $way || failed=1
  done < <(ways)
  return "$failed"
}

# Busy and event side by side: one of them sleeps most of the time.
conforms() {
  local mode pid pids=() failed=0
  expect "$1" "$2"
  for mode in $wait_modes; do
    measure_waiting "$1" "$2" "$mode" 3>&- &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  [ "$failed" -eq 0 ] || fail "$1 $2 does not conform"
}

# flipped BACKEND:PROVIDER OPERATION SIDE KIND...: the fourth buffer that one side checks is changed. For the background.
flipped() {
  local backend=$1 op=$2 side=$3 code=0 port=$FLIPPING_PORT
  local -a environment=()
  local name=${*:3}
  shift 3
  [ "$side" = server ] || { port=$HOOKS_PORT environment=(PERCH_TEST_FLIP=3); }
  # shellcheck disable=SC2046  # words
  timeout 40 env "${environment[@]}" "$HOOKS" "$1" 127.0.0.1 "${@:2}" --port "$port" $(flags "$backend") --op "$op" --size 64 \
    --iterations 10 --warmup 0 --verify --json --timeout 20s --completion "${wait_modes##* }" >"$name.json" 2>"$name.err" || code=$?
  if [ "$code" -eq 5 ] && [ "$(grep -c "payload corrupted" "$name.err")" -eq 1 ] &&
    jq -es 'length == 1 and (.[0] | .status == "error" and .error.code == 5 and .integrity.bad_bytes == 1
      and (.error.message | contains("payload corrupted: 1 of")))' "$name.json" >/dev/null; then return; fi
  printf '%s\n' "perch $* --op $op, a byte flipped at the $side: exit code $code" "$(cat "$name.err" "$name.json")"
  return 1
}

notices_a_flipped_byte() {
  local side pid pids=() failed=0
  expect "$1" "$2"
  for side in $lat_checks; do
    flipped "$1" "$2" "$side" lat 3>&- &
    pids+=($!)
  done
  for side in $bw_checks; do
    flipped "$1" "$2" "$side" bw 3>&- &
    pids+=($!)
  done
  if [ -n "$both_ways" ]; then
    flipped "$1" "$2" client bw --bidirectional 3>&- &
    pids+=($!)
  fi
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  [ "$failed" -eq 0 ] || fail "$1 $2 does not notice a flipped byte"
}

@test "tcp: send conforms" { conforms tcp: send; }
@test "tcp: send notices a flipped byte" { notices_a_flipped_byte tcp: send; }

@test "null: send conforms" { conforms null: send; }
@test "null: send notices a flipped byte" { notices_a_flipped_byte null: send; }
@test "null: write conforms" { conforms null: write; }
@test "null: write notices a flipped byte" { notices_a_flipped_byte null: write; }
@test "null: read conforms" { conforms null: read; }
@test "null: read notices a flipped byte" { notices_a_flipped_byte null: read; }
@test "null: fetch-add conforms" { conforms null: fetch-add; }
@test "null: fetch-add notices a flipped byte" { notices_a_flipped_byte null: fetch-add; }
@test "null: compare-swap conforms" { conforms null: compare-swap; }
@test "null: compare-swap notices a flipped byte" { notices_a_flipped_byte null: compare-swap; }

@test "ofi tcp;ofi_rxm: send conforms" { conforms "ofi:tcp;ofi_rxm" send; }
@test "ofi tcp;ofi_rxm: send notices a flipped byte" { notices_a_flipped_byte "ofi:tcp;ofi_rxm" send; }
@test "ofi tcp;ofi_rxm: write conforms" { conforms "ofi:tcp;ofi_rxm" write; }
@test "ofi tcp;ofi_rxm: write notices a flipped byte" { notices_a_flipped_byte "ofi:tcp;ofi_rxm" write; }
@test "ofi tcp;ofi_rxm: read conforms" { conforms "ofi:tcp;ofi_rxm" read; }
@test "ofi tcp;ofi_rxm: read notices a flipped byte" { notices_a_flipped_byte "ofi:tcp;ofi_rxm" read; }
@test "ofi tcp;ofi_rxm: fetch-add conforms" { conforms "ofi:tcp;ofi_rxm" fetch-add; }
@test "ofi tcp;ofi_rxm: fetch-add notices a flipped byte" { notices_a_flipped_byte "ofi:tcp;ofi_rxm" fetch-add; }
@test "ofi tcp;ofi_rxm: compare-swap conforms" { conforms "ofi:tcp;ofi_rxm" compare-swap; }
@test "ofi tcp;ofi_rxm: compare-swap notices a flipped byte" { notices_a_flipped_byte "ofi:tcp;ofi_rxm" compare-swap; }

@test "ofi shm: send conforms" { conforms ofi:shm send; }
@test "ofi shm: send notices a flipped byte" { notices_a_flipped_byte ofi:shm send; }
@test "ofi shm: write conforms" { conforms ofi:shm write; }
@test "ofi shm: write notices a flipped byte" { notices_a_flipped_byte ofi:shm write; }
@test "ofi shm: read conforms" { conforms ofi:shm read; }
@test "ofi shm: read notices a flipped byte" { notices_a_flipped_byte ofi:shm read; }
@test "ofi shm: fetch-add conforms" { conforms ofi:shm fetch-add; }
@test "ofi shm: fetch-add notices a flipped byte" { notices_a_flipped_byte ofi:shm fetch-add; }
@test "ofi shm: compare-swap conforms" { conforms ofi:shm compare-swap; }
@test "ofi shm: compare-swap notices a flipped byte" { notices_a_flipped_byte ofi:shm compare-swap; }

# sanitized SANITIZERS BACKEND:PROVIDER=OPERATION...: both ends are built with them. What they find ends a client (exit
# code, standard error), a job (so its client) or, at its end, stands in the server's log.
sanitized() {
  local pair
  make --no-print-directory -s -C "$TOP/engine" HOOKS= SANITIZE="$1" >&2
  PERCH=$TOP/engine/build-$1/perch
  perch_serve
  PLAIN_PORT=$PORT
  shift
  for pair in "$@"; do conforms "${pair%=*}" "${pair#*=}"; done
  wait_until no_server_jobs
  kill "$SERVER" && wait "$SERVER"
  [ "$(wc -l <"serve.$PORT.log")" -eq 1 ] || fail "$(cat "serve.$PORT.log")"
}

@test "the address and undefined-behaviour sanitizers find nothing" {
  sanitized address,undefined tcp:=send "ofi:tcp;ofi_rxm=write" ofi:shm=read
}

# Two threads: the measurement, and the watchdog that looks at it.
@test "the thread sanitizer finds nothing" {
  sanitized thread "ofi:tcp;ofi_rxm=send"
}
