# shellcheck shell=bash
# What is measured beside what: one function a program, each prints one number on standard output and ends every process
# that it started. Servers run on CPU $SERVER_CPU, clients on CPU $CLIENT_CPU: where the scheduler happens to put two
# processes changes a wake-up by a factor of three, on both sides of the comparison.

# listening PORT: returns once somebody listens there; the socket is the sign that a server is ready.
listening() {
  local deadline=$((SECONDS + 10))
  until [[ -n $(ss -ltnH "sport = :$1") ]]; do
    ((SECONDS < deadline)) || {
      echo "bench: nothing listens on port $1 after 10 s: $(tail -n 3 "$SCRATCH/server.log")" >&2
      return 1
    }
    read -rt 0.01 <> <(:) || :
  done
}

# Starts a server in the background; end_server stops it and waits for it. The last command of each kind is kept: it is the
# setting that a result was measured with.
start_server() {
  printf '%s' "$*" >"$SCRATCH/server.command"
  taskset -c "$SERVER_CPU" "$@" >"$SCRATCH/server.log" 2>&1 &
  SERVER_PID=$!
}

end_server() {
  [[ -n ${SERVER_PID:-} ]] || return 0 # a bare return within a trap fails as the script did
  kill "$SERVER_PID" 2>/dev/null || :
  wait "$SERVER_PID" 2>/dev/null || :
  SERVER_PID=
}

client() {
  printf '%s' "$*" >"$SCRATCH/client.command"
  timeout --kill-after=5 60 taskset -c "$CLIENT_CPU" "$@"
}

# perch_lat BACKEND PROVIDER SIZE COUNT MODE: mean half round trip in us
perch_lat() {
  local -a provider=()
  [[ -n $2 ]] && provider=(--provider "$2")
  client "$PERCH" lat 127.0.0.1 --port "$PORT" --backend "$1" "${provider[@]}" --op send --size "$3" --iterations "$4" \
    --warmup 10 --completion "$5" --clock "$CLOCK" --json | jq -e '.latency_us.mean'
}

# pingpong _ PROVIDER SIZE COUNT _: mean half round trip in us (its column usec/xfer). Its time begins before the two ends are
# connected, about 40 ms over tcp: counts are such that this is below 3 %.
pingpong() {
  start_server fi_pingpong -p "$2" -e rdm -S "$3" -I "$4" -B "$PEER_PORT"
  listening "$PEER_PORT"
  client fi_pingpong -p "$2" -e rdm -S "$3" -I "$4" -P "$PEER_PORT" 127.0.0.1 >"$SCRATCH/client.log"
  wait "$SERVER_PID" || :
  SERVER_PID=
  # text is all it prints: bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec
  awk '$1 ~ /^[0-9]/ { print $7; found = 1 } END { exit !found }' "$SCRATCH/client.log"
}

# sockperf_lat _ _ SIZE SECONDS MODE: mean half round trip in us
sockperf_lat() {
  local -a mode=()
  [[ $5 == busy ]] && mode=(--nonblocked)
  start_server sockperf server --tcp --uc-reuseaddr -i 127.0.0.1 -p "$PEER_PORT" "${mode[@]}"
  listening "$PEER_PORT"
  client sockperf ping-pong --tcp -i 127.0.0.1 -p "$PEER_PORT" -m "$3" -t "$4" --mps max "${mode[@]}" >"$SCRATCH/client.log"
  end_server
  awk 'match($0, /avg-latency=[0-9.]+/) { print substr($0, RSTART + 12, RLENGTH - 12); found = 1; exit } END { exit !found }' "$SCRATCH/client.log"
}

# qperf_lat _ _ SIZE SECONDS _: mean one-way latency in us
qperf_lat() {
  start_server qperf -lp "$PEER_PORT"
  listening "$PEER_PORT"
  client qperf -lp "$PEER_PORT" -t "$4" -m "$3" -e 5 -u 127.0.0.1 tcp_lat >"$SCRATCH/client.log"
  end_server
  awk '$1 == "latency" { print ($4 == "us" ? $3 : $4 == "ms" ? $3 * 1000 : $4 == "ns" ? $3 / 1000 : "unit?"); found = 1 } END { exit !found }' "$SCRATCH/client.log"
}

# perch_lat_time BACKEND PROVIDER SIZE SECONDS MODE: as perch_lat, for a time
perch_lat_time() {
  client "$PERCH" lat 127.0.0.1 --port "$PORT" --backend "$1" --op send --size "$3" --duration "${4}s" --completion "$5" \
    --clock "$CLOCK" --json | jq -e '.latency_us.mean'
}

# perch_bw BACKEND _ SIZE SECONDS MODE: Gb/s
perch_bw() {
  client "$PERCH" bw 127.0.0.1 --port "$PORT" --backend "$1" --op send --size "$3" --duration "${4}s" --completion "$5" --json | jq -e '.bandwidth.gbit_s'
}

# bw_of BACKEND PROVIDER SIZE COUNT MODE OPTION...: Gb/s of writes, or over tcp of sends
bw_of() {
  local -a provider=(--op send)
  [[ -n $2 && $2 != " " ]] && provider=(--provider "$2" --op write)
  client "$PERCH" bw 127.0.0.1 --port "$PORT" --backend "$1" "${provider[@]}" --size "$3" --iterations "$4" --warmup 10 \
    --completion "$5" --clock "$CLOCK" --json "${@:6}" | jq -e '.bandwidth.gbit_s'
}

# perch_bw_verified BACKEND PROVIDER SIZE COUNT MODE: every byte is filled and checked
perch_bw_verified() {
  bw_of "$@" --verify
}

# perch_bw_half ...: half of what goes without
perch_bw_half() {
  bw_of "$@" | jq -e '. / 2'
}

# perch_bw_half_scattered ...: the same, over as much memory as 64 verified messages have
perch_bw_half_scattered() {
  bw_of "$@" --footprint $((64 * $3)) | jq -e '. / 2'
}

# iperf3_bw _ _ SIZE SECONDS _: Gb/s as the receiver counted
iperf3_bw() {
  start_server iperf3 -s -1 -B 127.0.0.1 -p "$PEER_PORT"
  listening "$PEER_PORT"
  client iperf3 -c 127.0.0.1 -p "$PEER_PORT" -t "$4" -l "$3" -J >"$SCRATCH/client.log"
  wait "$SERVER_PID" || :
  SERVER_PID=
  jq -e '.end.sum_received.bits_per_second / 1e9' "$SCRATCH/client.log"
}

# engine_transfer BACKEND PROVIDER OPTION...: one measurement of transfers, the sum's record on standard output
engine_transfer() {
  local -a provider=()
  [[ -n $2 && $2 != " " ]] && provider=(--provider "$2")
  client "$PERCH" transfer 127.0.0.1 --port "$PORT" --backend "$1" "${provider[@]}" --clock "$CLOCK" --json "${@:3}" |
    jq -ec 'select(.kind == "sum")'
}

# perch_transfers BACKEND PROVIDER SIZE BATCHES MODE BATCH: writes a second, BATCH of them waited for together
perch_transfers() {
  engine_transfer "$1" "$2" --size "$3" --iterations "$4" --completion "$5" --batch "$6" | jq -e '.bandwidth.messages_per_s'
}

# perch_alone_x3, perch_alone_x5 ...: so many times as many as go one by one
perch_alone_x3() {
  engine_transfer "$1" "$2" --size "$3" --iterations "$(($4 * 4))" --completion "$5" | jq -e '.bandwidth.messages_per_s * 3'
}

perch_alone_x5() {
  engine_transfer "$1" "$2" --size "$3" --iterations "$(($4 * 4))" --completion "$5" | jq -e '.bandwidth.messages_per_s * 5'
}

# perch_two_devices BACKEND PROVIDER SIZE BATCHES MODE DEVICE BATCH: two threads at each end, each with a device of its own. All four
# need a processor (TWO_DEVICES_CPUS), so nothing is pinned, and the server is its own.
perch_two_devices() {
  local -a command=("$PERCH" transfer 127.0.0.1 --port "$PEER_PORT" --backend "$1" --provider "$2" --devices "$6,$6"
    --server-devices "$6,$6" --size "$3" --iterations "$4" --completion "$5" --batch "$7" --clock "$CLOCK" --json)
  printf '%s' "${command[*]}" >"$SCRATCH/client.command"
  "$PERCH" serve --bind 127.0.0.1 --port "$PEER_PORT" 2>"$SCRATCH/server.log" &
  SERVER_PID=$!
  listening "$PEER_PORT"
  timeout --kill-after=5 60 "${command[@]}" | jq -e 'select(.kind == "sum") | .bandwidth.messages_per_s'
  end_server
}
# shellcheck disable=SC2034  # for run
TWO_DEVICES_CPUS=4

# perch_one_device_x1_8 ...: 1.8 times what one thread on one device does
perch_one_device_x1_8() {
  engine_transfer "$1" "$2" --size "$3" --iterations "$4" --completion "$5" --batch "$7" | jq -e '.bandwidth.messages_per_s * 1.8'
}

# perch_transfer_bw BACKEND PROVIDER SIZE COUNT MODE: Gb/s of writes one by one
perch_transfer_bw() {
  engine_transfer "$1" "$2" --size "$3" --iterations "$4" --warmup 10 --completion "$5" | jq -e '.bandwidth.gbit_s'
}

# perch_bw_one ...: the same by `perch bw` with one message under way
perch_bw_one() {
  client "$PERCH" bw 127.0.0.1 --port "$PORT" --backend "$1" --provider "$2" --op write --outstanding 1 --size "$3" --iterations "$4" \
    --warmup 10 --completion "$5" --clock "$CLOCK" --json | jq -e '.bandwidth.gbit_s'
}

# shellcheck disable=SC2034  # for run
PEERS=(fi_pingpong iperf3 qperf sockperf)
# shellcheck disable=SC2034  # for run
PEER_PACKAGES=(libfabric-bin iperf3 qperf sockperf)
