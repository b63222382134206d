# shellcheck shell=bash disable=SC2154  # PERCH, PORT, SCRATCH and the like belong to run, which sources this
# The engine's verbs backend and perftest on one RDMA device, each with the other's settings: DEVICE and GID_INDEX come
# from verbs, the rest are the columns of verbs.tsv. Each prints its numbers in the order of the column `statistic`.
# Nobody warms up, since perftest does not by default; the path MTU is the device's. `outstanding` is of each queue pair,
# as in perftest.

# settings WORKERS COLUMN...: names the columns. rxe's work is done by kernel threads, and whether the scheduler puts them on
# the client's processor or on another one changes a bandwidth by a factor of two: in the lab they stay on the processors
# of the mask WORKERS (hexadecimal), for both sides alike. A real device does its work itself.
settings() {
  [[ ${MACHINE:-} != "User-Mode Linux" ]] || echo "$1" >/sys/devices/virtual/workqueue/cpumask
  shift
  size=$3 amount=$4 waiting=$5 op=$6 outstanding=$7 moderation=$8 inline=$9 queue_pairs=${10}
}

# perch_verbs KIND OPTION...: one measurement by the engine, its JSON on standard output
perch_verbs() {
  local -a command=(
    "$PERCH" "$1" 127.0.0.1 --port "$PORT" --backend verbs --op "$op" --size "$size" --iterations "$amount" --warmup 0
    --device "$DEVICE" --server-device "$DEVICE" --gid-index "$GID_INDEX" --server-gid-index "$GID_INDEX"
    --completion "$waiting" --inline "$inline" --clock "$CLOCK" --json "${@:2}"
  )
  client /usr/bin/time -q -f '%U %S' -o "$SCRATCH/client.time" "${command[@]}"
  printf '%s' "${command[*]}" >"$SCRATCH/client.command" # without what times it
}

# perftest TOOL OPTION...: one measurement by perftest; its last line of numbers on standard output. Text is all that its
# older versions print. Now and then it cannot calibrate its clock ("Correlation coefficient") and prints zeros or inf, or
# its two ends wait for each other: it gets three attempts, each on a port of its own.
perftest() {
  local attempt
  local -a command=("$1" --ib-dev "$DEVICE" --gid-index "$GID_INDEX" --size "$size" --iters "$amount" --CPU-freq)
  local -a timed=(/usr/bin/time -q -f '%U %S' -o)
  [[ $op == read ]] || command+=(--inline_size "$inline") # reads have none, and it refuses to hear of it
  command+=("${@:2}" --port)
  for attempt in 0 1 2; do
    # timeout ends what time started, too
    start_server timeout --kill-after=5 60 "${timed[@]}" "$SCRATCH/server.time" "${command[@]}" "$((PEER_PORT + attempt))"
    listening "$((PEER_PORT + attempt))"
    if client "${timed[@]}" "$SCRATCH/client.time" "${command[@]}" "$((PEER_PORT + attempt))" 127.0.0.1 \
      >"$SCRATCH/client.log" 2>"$SCRATCH/client.errors" && wait "$SERVER_PID"; then
      SERVER_PID=
      printf '%s' "${command[*]} $((PEER_PORT + attempt))" >"$SCRATCH/server.command"
      printf '%s' "${command[*]} $((PEER_PORT + attempt)) 127.0.0.1" >"$SCRATCH/client.command"
      ! awk '$1 ~ /^[0-9]+$/ && $4 ~ /^[0-9.]+$/ && $4 > 0 { line = $0 } END { if (line == "") exit 1; print line }' \
        "$SCRATCH/client.log" || return 0
    fi
    end_server
    echo "bench: again, without a result: ${command[*]}: $(tail -qn 1 "$SCRATCH"/client.{errors,log} "$SCRATCH/server.log" | tr '\n' ' ')" >&2
  done
  return 1
}

# per_gigabyte SECONDS... on standard input -> processor seconds of both ends for 1e9 bytes of payload. Whole processes on
# both sides, set-up included; kernel threads belong to nobody.
per_gigabyte() {
  awk -v bytes="$((size * amount))" '{ for (i = 1; i <= NF; i++) s += $i } END { print s / bytes * 1e9 }'
}

# Processor seconds of the engine's server so far: each job ran in a child, which counts once it was waited for.
engine_server_seconds() {
  local deadline=$((SECONDS + 10))
  while pgrep -P "$ENGINE_PID" >"$SCRATCH/children"; do
    ((SECONDS < deadline)) || {
      echo "bench: a job of the engine's server still runs 10 s after its client ended" >&2
      return 1
    }
    read -rt 0.01 <> <(:) || :
  done
  awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15 + $16 + $17) / hz }' "/proc/$ENGINE_PID/stat"
}

perch_verbs_lat() {
  local size amount waiting op outstanding moderation inline queue_pairs
  settings "$ALL_CPUS" "$@"
  perch_verbs lat | jq -er '.latency_us | "\(.p50) \(.p99)"'
}

perftest_lat() {
  local size amount waiting op outstanding moderation inline queue_pairs
  settings "$ALL_CPUS" "$@"
  # bytes iterations min max typical mean stddev p99 p99.9
  perftest "ib_${op}_lat" | awk '{ print $5, $8 }'
}

perch_verbs_bw() {
  local size amount waiting op outstanding moderation inline queue_pairs before after gbit_s
  settings "$ONE_CPU" "$@"
  amount=$((amount * queue_pairs)) # --iters is of each queue pair, --iterations of all
  before=$(engine_server_seconds)
  gbit_s=$(perch_verbs bw --queue-pairs "$queue_pairs" --outstanding "$outstanding" --cq-moderation "$moderation" |
    jq -e '.bandwidth.gbit_s')
  after=$(engine_server_seconds)
  echo "$gbit_s $(per_gigabyte < <(cat "$SCRATCH/client.time" && awk -v a="$before" -v b="$after" 'BEGIN { print b - a }'))"
}

perftest_bw() {
  local size amount waiting op outstanding moderation inline queue_pairs gbit_s
  settings "$ONE_CPU" "$@"
  # bytes iterations peak average message-rate; MiB/s, whatever the header calls them: in Gb/s it would print two digits
  gbit_s=$(perftest "ib_${op}_bw" --qp "$queue_pairs" --tx-depth "$outstanding" --cq-mod "$moderation" |
    awk '{ print $4 * 1048576 * 8 / 1e9 }')
  amount=$((amount * queue_pairs))
  echo "$gbit_s $(per_gigabyte < <(cat "$SCRATCH/client.time" "$SCRATCH/server.time"))"
}

# perch_verbs_transfer BATCH OPTION...: the sum's record
perch_verbs_transfer() {
  local -a command=(
    "$PERCH" transfer 127.0.0.1 --port "$PORT" --backend verbs --op "$op" --size "$size" --iterations "$amount" --warmup 0 --batch "$1"
    --device "$DEVICE" --server-device "$DEVICE" --gid-index "$GID_INDEX" --server-gid-index "$GID_INDEX"
    --completion "$waiting" --clock "$CLOCK" --json "${@:2}"
  )
  client "${command[@]}" | jq -ec 'select(.kind == "sum")'
}

# The column `outstanding` is the batch, and the list of perftest.
perch_verbs_transfers() {
  local size amount waiting op outstanding moderation inline queue_pairs
  settings "$ONE_CPU" "$@"
  perch_verbs_transfer "$outstanding" --queue-pairs "$queue_pairs" | jq -e '.bandwidth.messages_per_s'
}

perch_verbs_alone_x5() {
  local size amount waiting op outstanding moderation inline queue_pairs
  settings "$ONE_CPU" "$@"
  amount=$((amount * 4))
  perch_verbs_transfer 1 | jq -e '.bandwidth.messages_per_s * 5'
}

perch_verbs_transfer_bw() {
  local size amount waiting op outstanding moderation inline queue_pairs
  settings "$ONE_CPU" "$@"
  perch_verbs_transfer 1 | jq -e '.bandwidth.gbit_s'
}

perch_verbs_bw_one() {
  local size amount waiting op outstanding moderation inline queue_pairs
  settings "$ONE_CPU" "$@"
  perch_verbs bw --outstanding 1 | jq -e '.bandwidth.gbit_s'
}

# perch_verbs_rate ...: messages a second, in lists of the column `moderation` of which the last asks for a completion
perch_verbs_rate() {
  local size amount waiting op outstanding moderation inline queue_pairs
  settings "$ONE_CPU" "$@"
  amount=$((amount * queue_pairs))
  perch_verbs rate --queue-pairs "$queue_pairs" --outstanding "$outstanding" --batch "$moderation" --cq-moderation "$moderation" |
    jq -e '.message_rate.mmsg_s * 1e6'
}

perftest_rate() {
  local size amount waiting op outstanding moderation inline queue_pairs
  settings "$ONE_CPU" "$@"
  # bytes iterations peak average message-rate in millions a second
  perftest "ib_${op}_bw" --qp "$queue_pairs" --tx-depth "$outstanding" --post_list "$moderation" --cq-mod "$moderation" |
    awk '{ printf "%.1f\n", $5 * 1e6 }'
}

# A list, whose last request alone asks for a completion, and no other before that has come: what a batch is.
perftest_list() {
  local size amount waiting op outstanding moderation inline queue_pairs
  settings "$ONE_CPU" "$@"
  amount=$((amount * outstanding))
  # bytes iterations peak average message-rate in millions a second
  perftest "ib_${op}_bw" --qp "$queue_pairs" --tx-depth "$outstanding" --post_list "$outstanding" --cq-mod "$outstanding" |
    awk '{ printf "%.1f\n", $5 * 1e6 }'
}

printf -v ALL_CPUS '%x' "$((1 << SERVER_CPU | 1 << CLIENT_CPU))"
printf -v ONE_CPU '%x' "$((1 << CLIENT_CPU))"
# shellcheck disable=SC2034  # for run
PEERS=(ib_send_lat ib_write_lat ib_read_lat ib_send_bw ib_write_bw ib_read_bw)
# shellcheck disable=SC2034  # for run
PEER_PACKAGES=(perftest libibverbs1 ibverbs-providers)
