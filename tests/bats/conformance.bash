# shellcheck shell=bash disable=SC2034,SC2154  # bats and helpers.bash set and read what is not seen here
# What every backend must do alike, for the suites that say which backends there are: each operation, way of waiting and
# direction is measured with --verify, and its record is held against what was asked; then one byte is flipped in a receive
# buffer, and that must be exit 5. A backend is named BACKEND:WHICH, where WHICH is libfabric's provider, or verbs' connection.

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
OPTIONS=() # more of the command line, for all runs of a test

# expect BACKEND:PROVIDER OPERATION: sets what is to be expected of it.
expect() {
  wait_modes=busy definition=completion lat_checks=client bw_checks=client both_ways=yes words='' records=3 flip_size=64
  case $2 in
    send | write) definition=half_round_trip lat_checks="client server" bw_checks=server ;;
    # The results of both ends would land where the other's operations work: --verify refuses that.
    fetch-add | compare-swap) words=$WORDS both_ways='' ;;
  esac
  case $1 in
    null:) lat_checks=client bw_checks=client ;; # nothing travels, and nothing sleeps
    tcp: | ofi:tcp*) wait_modes="busy event" ;;
    cxi:*)
      wait_modes="busy event"
      case $2 in
        # its targets see no write arrive, so that they look when they are asked
        write) definition=completion lat_checks=server ;;
        fetch-add | compare-swap) words=8 records=1 flip_size=8 ;; # one word at a time
      esac
      ;;
    verbs:*)
      wait_modes="busy event"
      case $2 in
        send-imm | write-imm) definition=half_round_trip lat_checks="client server" bw_checks=server ;;
        fetch-add | compare-swap) words=8 records=1 flip_size=8 ;; # one word at a time
      esac
      # where messages may be lost, one must be long enough to say which it is; ud: within one packet of any usual MTU
      case $1 in
        verbs:uc) words=9:65545:32768 ;;
        verbs:ud) words=9:1023:507 ;;
      esac
      ;;
  esac
}

# flags BACKEND:WHICH: the options that choose it
flags() {
  printf -- '--backend %s' "${1%%:*}"
  case $1 in
    verbs:*) printf -- ' --connection %s' "${1#*:}" ;;
    cxi:*) ;; # has one provider, cxi
    *:?*) printf -- ' --provider %s' "${1#*:}" ;;
  esac
}

# Memory cannot be polled in sleep: then a write's own completion is timed, and the target looks when it is asked.
expect_mode() {
  if [ "$1 $2 $3" = "verbs write event" ]; then definition=completion lat_checks=server; fi
}

# The names of what is wrong with the records; the arguments are what was asked for.
readonly CHECK='
  def supported($p): .latency_us.count * (1 - $p) >= 9.999999;
  def percentiles: {p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99, p99_9: 0.999, p99_99: 0.9999};
  def wrong: . as $r | .params as $p | (if $p.bidirectional then 2 else 1 end) as $directions
  | [["status", .status == "ok" and .error == null],
    ["what", .op == $op and (.backend + ":" + (.provider // (.connection | select($backend | startswith("verbs"))
      | ascii_downcase) // "")) == $backend],
    ["no loss", (.loss.lost_messages // 0) == 0],
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
      [["definition", .definition == (if $op | IN("send", "send-imm", "write-imm") then "receiver_acknowledged" else "initiator_completion" end)],
      ["count", .bandwidth.bytes == $iterations * $p.size_bytes * $directions and .latency_us == null],
      ["bandwidth", .bandwidth.gbit_s > 0 and .bandwidth.messages_per_s > 0
        and (.bandwidth.gbit_s / (.bandwidth.bytes * 8e-9 / .elapsed_s) - 1 | fabs) < 1e-6]]
    end
  | map(select(.[1] | not) | .[0]);
  [inputs | wrong] | if length < $records then ["records missing"] else add | unique end'

# Said of a simulated device, of both ends on one machine, and of Soft-RoCE where memory is polled. All else is a fault.
readonly NOTICES=(-e ': simulated by a test' -e "$UNPLACED" -e ' may write the last byte early: ')

# measure BACKEND:PROVIDER OPERATION SIZES WAY...: one run, each of its records checked. For the background: says what failed.
measure() {
  local backend=$1 op=$2 sizes=$3 code=0 bad
  local name=${*:4}
  shift 3
  # shellcheck disable=SC2046  # words
  timeout 40 "$PERCH" "$1" 127.0.0.1 "${@:2}" --port "$PLAIN_PORT" $(flags "$backend") "${OPTIONS[@]}" --op "$op" --size "$sizes" \
    --iterations "$ITERATIONS" --warmup "$WARMUP" --verify --json --timeout 20s >"$name.json" 2>"$name.err" || code=$?
  # shellcheck disable=SC2086  # words
  bad=$(jq -nc --arg backend "$backend" --arg op "$op" --arg definition "$definition" --argjson iterations "$ITERATIONS" \
    --argjson records "$records" \
    --argjson warmup "$WARMUP" --argjson checks "$(set -- $lat_checks && echo $#)" "$CHECK" "$name.json" --args -- "$@")
  [ "$code" -eq 0 ] && [ "$bad" = "[]" ] && ! grep -qvF "${NOTICES[@]}" "$name.err" && return
  printf '%s\n' "perch $* --op $op --size $sizes: exit code $code, wrong: $bad" "$(cat "$name.err" "$name.json")"
  return 1
}

# The ways that have one mode of waiting, one after the other.
measure_waiting() {
  local way sizes failed=0
  expect_mode "${1%%:*}" "$2" "$3"
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
  timeout 40 env "${environment[@]}" "$HOOKS" "$1" 127.0.0.1 "${@:2}" --port "$port" $(flags "$backend") "${OPTIONS[@]}" --op "$op" --size "$flip_size" \
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
  expect_mode "${1%%:*}" "$2" "${wait_modes##* }"
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
