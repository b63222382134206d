#!/usr/bin/env bats
# perch as cxi_send_lat and its sisters: their command lines, and the layout of their pages, column by column. All of it runs
# on the simulated provider (tests/sim_cxi); what a figure is worth is not looked at here.

# shellcheck disable=SC2030,SC2031,SC2154  # each test is a subshell; run --separate-stderr sets stderr

load helpers

readonly TOOLS=(cxi_send_lat cxi_write_lat cxi_read_lat cxi_atomic_lat cxi_send_bw cxi_write_bw cxi_read_bw cxi_atomic_bw)

# Another build of the simulated provider may be named: SIM_CXI=DIR bats tests/bats/personality.bats
setup_file() {
  [ -n "${SIM_CXI:-}" ] || make --no-print-directory -s -C "$TOP/tests/sim_cxi" >&2
}

setup() {
  common_setup
  export FI_PROVIDER_PATH=${SIM_CXI:-$TOP/tests/sim_cxi/build} SIM_CXI_FABRIC=$PWD/fabric
  unset PERCH_TOKEN_FILE
  for tool in "${TOOLS[@]}"; do ln -s "$PERCH" "$tool"; done
}

teardown() {
  stop_servers
  [ -z "${HUGE_PAGES:-}" ] || echo "$HUGE_PAGES" >/proc/sys/vm/nr_hugepages
  common_teardown
  [ ${#INSIDE[@]} -eq 0 ] || ip netns del "$NET"
}

# A test that needs a port of its own choice has a network of its own: outside of one, the end of any connection that had
# this port by chance keeps it for a minute (tcp(7), TIME_WAIT).
INSIDE=()
own_network() {
  NET=perch-$$-$RANDOM
  ip netns add "$NET" 2>/dev/null || skip "this kernel or container makes no network namespaces"
  INSIDE=(ip netns exec "$NET")
  ip -n "$NET" link set lo up
}

listens() { "${INSIDE[@]}" ss -ltnH "sport = :$1" | grep -q .; }
ready_or_gone() { listens "$PORT" || server_gone; }

# A server that could not start has said why.
server_listens() {
  wait_until ready_or_gone
  listens "$PORT" || fail "the server ended: $(cat server.err)"
}

# serve TOOL [OPTION...]: starts a server on PORT; its output is in server.out and server.err
serve() {
  local tool=$1
  shift
  : "${PORT:=$(free_port)}"
  "./$tool" -p "$PORT" "$@" >server.out 2>server.err 3>&- &
  SERVER=$!
  SERVERS+=("$SERVER")
  server_listens
}

# client EXIT TOOL [OPTION...]: another NIC than the server's, so that each can be told from the other
client() {
  local expected=$1 tool=$2
  shift 2
  SIM_CXI_DEVICES=sim_cxi0=0x13 run_apart "$expected" "./$tool" -p "$PORT" "$@" 127.0.0.1
}

# served EXIT: the server ends by itself, with this exit code
served() {
  local code=0
  wait_until server_gone
  wait "$SERVER" || code=$?
  cat server.out server.err
  assert_equal "server's exit code $code" "server's exit code $1"
}
server_gone() { ! kill -0 "$SERVER"; }

# Where each field of a line ends: the columns of a table.
ends() { awk '{ line = $0; at = 0; while (match(line, /[^ ]+/)) { at += RSTART + RLENGTH - 1; printf "%s%d", sep, at; sep = " "
  line = substr(line, RSTART + RLENGTH) } }' <<<"$1"; }

rule() { printf -- '-%.0s' $(seq "$1"); }

# summary FILE: what lies between the first two rules
summary() { awk '/^-+$/ { rules++; next } rules == 1' "$1"; }

# the page's summary at one end: summary_of LOCAL REMOTE NIC-LOCAL NIC-REMOTE ITERATIONS REPORTED SIZE-LINE...
summary_of() {
  local local=$1 remote=$2 nic=$3 other=$4 iterations=$5 reported=$6
  shift 6
  printf '%s\n' '    CXI RDMA Send Latency Test' 'Device           : sim_cxi0' "Service ID       : default (the provider's choice)" 'Client TX Mem    : System' \
    'Server RX Mem    : System' 'Test Type        : Iteration' "Iterations       : $iterations" 'Warmup Iters     : 10' \
    'Inter-Iter Gap   : 1000 microseconds' "$@" 'IDC              : Enabled' 'LL Cmd Launch    : Enabled' \
    "Results Reported : $reported" 'Hugepages        : Disabled' "Local ($local)   : NIC $nic PID 0 VNI 10" \
    "Remote ($remote)  : NIC $other PID 0"
}

@test "the page's first example, as it stands: eleven sizes, 100 iterations each" {
  own_network
  PORT=49194 # the default: nothing but the page's words
  "${INSIDE[@]}" ./cxi_send_lat >server.out 2>server.err 3>&- &
  SERVER=$!
  SERVERS+=("$SERVER")
  server_listens
  # 1210 messages, each of which may cost some time slices where others want the processors too
  LIMIT=200 SIM_CXI_DEVICES=sim_cxi0=0x13 run_apart 0 "${INSIDE[@]}" ./cxi_send_lat 127.0.0.1 -s 1:1024
  assert_said "simulated"
  printf '%s\n' "$output" >client.out
  served 0
  grep -q "sim_cxi0 is a simulated device" server.err

  local -a sizes=('Min Send Size    : 1' 'Max Send Size    : 1024')
  assert_equal "$(head -n 1 server.out)" "Listening on port 49194 for client to connect..."
  assert_equal "$(summary client.out)" "$(summary_of client server 0x13 0x12 100 Summary "${sizes[@]}")"
  assert_equal "$(summary server.out)" "$(summary_of server client 0x12 0x13 100 Summary "${sizes[@]}")"
  # rules, and what stands between them at the server
  assert_equal "$(grep -c "^$(rule 70)\$" client.out)" 3
  assert_equal "$(tail -n 3 server.out)" "$(rule 70)"$'\nSee client for results.\n'"$(rule 70)"
  # the table: header, then a line for each size in the page's columns
  local line size=1
  mapfile -t lines < <(awk '/^-+$/ { rules++; next } rules == 2' client.out)
  assert_equal "${lines[0]}" "     Bytes       Sends     Min[us]     Max[us]    Mean[us]  StdDev[us]"
  assert_equal "${#lines[@]}" 12
  for line in "${lines[@]:1}"; do
    assert_regex "$line" "^ +$size +100( +[0-9]+\.[0-9]{2}){4}\$"
    assert_equal "$(ends "$line")" "10 22 34 46 58 70"
    size=$((2 * size))
  done
}

@test "the page's second example: every latency, then the summary" {
  serve cxi_send_lat
  client 0 cxi_send_lat -n 5 --report-all
  printf '%s\n' "$output" >client.out
  served 0
  assert_equal "$(summary client.out)" "$(summary_of client server 0x13 0x12 5 All 'Send Size        : 8')"
  assert_equal "$(summary server.out)" "$(summary_of server client 0x12 0x13 5 All 'Send Size        : 8')"
  mapfile -t lines < <(awk '/^-+$/ { rules++ } rules >= 2' client.out)
  assert_equal "${#lines[@]}" 11
  assert_equal "${lines[1]}" "   SendNum  Latency[us]"
  for i in 0 1 2 3 4; do
    assert_regex "${lines[i + 2]}" "^         $i +[0-9]+\.[0-9]{3}\$"
    assert_equal "$(ends "${lines[i + 2]}")" "10 23"
  done
  for i in 0 7 10; do assert_equal "${lines[i]}" "$(rule 70)"; done
  assert_equal "${lines[8]}" "     Bytes       Sends     Min[us]     Max[us]    Mean[us]  StdDev[us]"
  assert_equal "$(ends "${lines[9]}")" "10 22 34 46 58 70"
  # smallest and largest of the table are those of the list, each rounded by itself: to a thousandth, and to a hundredth
  printf '%s\n' "${lines[@]:2:5}" "${lines[9]}" | awk '
    NR == 1 { min = max = $2 }
    NR < 6 { if ($2 < min) min = $2; if ($2 > max) max = $2 }
    NR == 6 { exit !($3 - min < 0.0056 && min - $3 < 0.0056 && $4 - max < 0.0056 && max - $4 < 0.0056) }' || fail "the table's extremes are not the list's"
}

@test "with both -n and -D the duration wins, and turns --report-all off" {
  serve cxi_send_lat
  client 0 cxi_send_lat -n 5 -D 1 --report-all --latency-gap 100
  assert_said "--duration outranks --iters"
  assert_said "--report-all is off"
  assert_line "Test Type        : Duration"
  assert_line "Duration         : 1 seconds"
  assert_line "Results Reported : Summary"
  refute_line --partial "SendNum"
  refute_line --partial "Iterations"
  [ "$(awk '$1 == 8 { print $2 }' <<<"$output")" -gt 5 ] || fail "it ended with the iterations"
  served 0
}

@test "each of the eight tools prints its own table, at both ends where its page does" {
  local tool header server i
  local -a options
  for tool in "${TOOLS[@]}"; do
    unset PORT
    serve "$tool"
    case $tool in
      *_lat) options=(-n 5 --latency-gap 0) ;;
      *) options=(-n 3 -l 4) ;;
    esac
    client 0 "$tool" "${options[@]}"
    printf '%s\n' "$output" >client.out
    served 0
    case $tool in
      cxi_send_lat) header='     Bytes       Sends     Min[us]     Max[us]    Mean[us]  StdDev[us]' ;;
      cxi_write_lat) header='RDMA Size[B]      Writes     Min[us]     Max[us]    Mean[us]  StdDev[us]' ;;
      cxi_read_lat) header='RDMA Size[B]       Reads     Min[us]     Max[us]    Mean[us]  StdDev[us]' ;;
      cxi_atomic_lat) header='AMO Size[B]         Ops     Min[us]     Max[us]    Mean[us]  StdDev[us]' ;;
      cxi_send_bw) header='Send Size[B]       Sends  BW[MB/s]  PktRate[Mpkt/s]' ;;
      cxi_write_bw) header='RDMA Size[B]      Writes  BW[MB/s]  PktRate[Mpkt/s]' ;;
      cxi_read_bw) header='RDMA Size[B]       Reads  BW[MB/s]  PktRate[Mpkt/s]' ;;
      cxi_atomic_bw) header='AMO Size[B]         Ops  BW[MB/s]    OpRate[M/s]' ;;
    esac
    mapfile -t lines < <(awk '/^-+$/ { rules++ } rules >= 2' client.out)
    assert_equal "${lines[1]}" "$header"
    assert_equal "${#lines[@]}" 4
    for i in 0 3; do assert_equal "${lines[i]}" "$(rule ${#header})"; done
    # every column ends where its title does
    assert_equal "$(ends "${lines[2]}")" "$(ends "${header/ Size/_Size}")"
    assert_equal "$(awk '{ print $2 }' <<<"${lines[2]}")" "$([[ $tool = *_lat ]] && echo 5 || echo 12)"
    if [[ $tool = *_lat ]]; then
      assert_equal "$(tail -n 2 server.out | head -n 1)" "See client for results."
    else
      # the same rate, and no count: the server started nothing
      server=$(tail -n 2 server.out | head -n 1)
      assert_equal "$(awk '{ print $1, $2, $3 }' <<<"$server")" "$(awk '{ print $1, "-", $3 }' <<<"${lines[2]}")"
      assert_equal "${#server}" "${#header}"
    fi
  done
}

@test "the sisters' summaries have the lines of their pages" {
  # titles and switches that differ from tool to tool, in their order
  check() {
    local tool=$1 expected=$2
    shift 2
    unset PORT
    serve "$tool"
    client 0 "$tool" "$@"
    printf '%s\n' "$output" >client.out
    served 0
    assert_equal "$(summary client.out | grep -E '^(HRP|IDC|Matching|Restricted|LL|Bidir|Atomic|List|Rendez)' | sed 's/ *: /:/' | xargs)" "$expected"
    assert_equal "$(summary server.out | sed '/^Local\|^Remote/d')" "$(summary client.out | sed '/^Local\|^Remote/d')"
  }
  check cxi_write_lat "IDC:Disabled Restricted:Enabled LL Cmd Launch:Enabled" -n 2 --no-idc
  check cxi_read_lat "Restricted:Disabled LL Cmd Launch:Disabled" -n 2 --unrestricted --no-ll
  check cxi_send_lat "IDC:Disabled LL Cmd Launch:Enabled Rendezvous PUTs:Enabled" -n 2 -R
  check cxi_atomic_lat "Atomic Op:FETCHING MIN Atomic Type:INT32 IDC:Enabled Matching LEs:Disabled Restricted:Disabled LL Cmd Launch:Enabled" \
    -n 2 -A min -T int32 --fetching
  check cxi_write_bw "List Size:8 HRP:Disabled IDC:Enabled Restricted:Enabled Bidirectional:Enabled" -n 2 -l 8 -b --no-hrp
  assert_equal "$(summary client.out | grep -c ' Mem    : System')" 4 # both ways: transmit and receive memory of both
}

@test "high-rate puts are said of runs that have one: up to 2048 bytes" {
  [ -n "${HOOKS:-}" ] || make --no-print-directory -s -C "$TOP/engine" hooks >&2
  # This build knows the flag of libfabric's CXI header, also where the header is not installed.
  ln -sf "${HOOKS:-$TOP/engine/build-hooks/perch}" cxi_write_bw
  hrp() {
    unset PORT
    serve cxi_write_bw
    client 0 cxi_write_bw -n 2 -l 4 "${@:2}"
    assert_line "HRP              : $1"
    served 0
  }
  hrp Disabled # of 65536 bytes
  hrp Enabled -s 2048:4096
  hrp Disabled -s 4096
}

@test "the summary names GPUs as the originals do, so that reports read it; on doubles of their libraries" {
  local side
  [ -n "${PERCH_DOUBLES:-}" ] || make --no-print-directory -s -C "$TOP/engine" doubles >&2
  export LD_LIBRARY_PATH=${PERCH_DOUBLES:-$TOP/engine/build/doubles} PERCH_FAKE_GPU_VISIBLE=1
  export FI_CXI_DISABLE_NON_INJECT_MSG_IDC=0
  unset PORT
  serve cxi_send_bw -g NVIDIA -t 0
  client 0 cxi_send_bw -n 2 -l 4 -g NVIDIA -t 0 -r 1
  assert_said "FI_CXI_DISABLE_NON_INJECT_MSG_IDC=0 of the environment gives way to the memory of a GPU"
  printf '%s\n' "$output" >client.out
  served 0
  for side in client server; do
    assert_equal "$(summary "$side.out" | sed -n '/Mem /,/GPU Type  : .*$/p' | sed '/^Test/,$d')" "Client TX Mem    : GPU 0
Client GPU Type  : NVIDIA
Server RX Mem    : GPU 1
Server GPU Type  : NVIDIA"
  done
  "$TOP/.venv/bin/perchctl" import client.out >parts.json
  assert_json parts.json '.params | .tx_memory == "cuda:0" and .rx_memory == "cuda:1" and .idc == false'

  unset PORT
  serve cxi_send_bw
  client 0 cxi_send_bw -n 2 -l 4 -g AMD -r 0 -b
  assert_equal "$(summary <(printf '%s\n' "$output") | grep -E 'Mem |GPU')" "Client TX Mem    : System
Client RX Mem    : GPU 0
Client GPU Type  : AMD
Server TX Mem    : System
Server RX Mem    : GPU 0
Server GPU Type  : AMD"
  served 0

  unset PORT
  serve cxi_send_bw -g AMD -r 0
  client 4 cxi_send_bw -n 2 -g AMD -r 1
  assert_said "this server was started with -r for rocm:0, and the client asks for rocm:1; give both ends the same"
  served 4
}

@test "both ends say that they are perch, so that no report takes them for the original" {
  serve cxi_send_lat
  client 0 cxi_send_lat -n 2
  assert_said "perch: cxi_send_lat is perch in the place of HPE's tool: "
  assert_equal "$(grep -c 'is perch in the place of' <<<"$stderr")" 1
  served 0
  assert_equal "$(grep -c 'cxi_send_lat is perch in the place of' server.err)" 1
}

@test "options that mean nothing without another are named" {
  serve cxi_atomic_lat
  client 0 cxi_atomic_lat -n 2 -C le
  assert_said "--cswap-op belongs to --atomic-op=CSWAP, and changes nothing without it"
  served 0
  unset PORT
  serve cxi_atomic_lat
  client 0 cxi_atomic_lat -n 2 -A cswap -C le
  [[ $stderr != *"belongs to"* ]] || fail "CSWAP has it: $stderr"
  served 0
  unset PORT
  serve cxi_send_lat
  client 0 cxi_send_lat -n 2 -g AMD
  assert_said "--gpu-type belongs to --tx-gpu and --rx-gpu, and changes nothing without them"
}

@test "-v at the client alone names a VNI for both, and the server has the originals' default service" {
  export SIM_CXI_SERVICES=1:vni=10,5:vni=10
  serve cxi_send_lat
  client 0 cxi_send_lat -n 2 -v 5
  assert_line "Service ID       : 5"
  served 0
  grep -qx "Service ID       : 1" server.out
}

@test "both ways: each end counts what it started, and both report the sum" {
  serve cxi_send_bw
  client 0 cxi_send_bw -n 5 -l 4 -b -s 4096
  printf '%s\n' "$output" >client.out
  served 0
  local mine theirs
  mine=$(tail -n 2 client.out | head -n 1) theirs=$(tail -n 2 server.out | head -n 1)
  assert_equal "$(awk '{ print $2 }' <<<"$mine") $(awk '{ print $2 }' <<<"$theirs")" "20 20"
  assert_equal "$(awk '{ print $3, $4 }' <<<"$mine")" "$(awk '{ print $3, $4 }' <<<"$theirs")"
  # 4096 bytes are two packets: a million bytes a second are 2/4096 of a million packets
  awk '{ d = $4 * 2048 - $3; exit !(d < 0.01 + $3 / 100 && d > -0.01 - $3 / 100) }' <<<"$mine" || fail "packets and bytes do not fit: $mine"
}

@test "the server lives on when a stranger comes, and serves the next client" {
  serve cxi_send_lat
  # another protocol (the original's first word is a length), and a connection that says nothing and goes
  printf '\0\0\0\020cxi_send_lat 2.1' | timeout 10 bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT; cat >&3; timeout 5 cat <&3" >/dev/null || true
  wait_until grep -q "does not use perch's control protocol" server.err
  timeout 5 bash -c "exec 3<>/dev/tcp/127.0.0.1/$PORT"
  client 0 cxi_send_lat -n 3
  served 0
  assert_equal "$(grep -c 'See client for results.' server.out)" 1
}

@test "a client for something else is refused, with both names, and ends the server" {
  serve cxi_send_lat
  client 4 cxi_read_lat -n 3
  assert_said "started as cxi_send_lat, and the client wants read latency over cxi"
  assert_equal "$output" ""
  served 4
}

@test "without a token loopback only; with PERCH_TOKEN_FILE at both ends, tokens are proved" {
  (umask 077 && echo 0123456789abcdef0123456789abcdef >token)
  PERCH_TOKEN_FILE=token serve cxi_send_lat
  client 4 cxi_send_lat -n 3
  assert_said "requires a token"
  PERCH_TOKEN_FILE=token client 0 cxi_send_lat -n 3
  served 0
  unset PORT
  serve cxi_send_lat
  assert_equal "$(ss -ltnH "sport = :$PORT" | awk '{ print $4 }' | grep -cv '^\(127\.0\.0\.1\|\[::1\]\):')" 0
  client 0 cxi_send_lat -n 3
}

@test "a wrong command line is exit 2, named as the original's, with nothing on standard output" {
  wrong() {
    local part=$1
    shift
    run_apart 2 "$@"
    assert_equal "$output" ""
    assert_said "$part"
  }
  wrong "cxi_send_lat: unknown option '--frobnicate'; 'cxi_send_lat --help'" ./cxi_send_lat 127.0.0.1 --frobnicate
  wrong "cxi_send_lat: unknown option '-l'" ./cxi_send_lat 127.0.0.1 -l 4
  wrong "cxi_send_lat: --size '0'" ./cxi_send_lat 127.0.0.1 -s 0
  wrong "4294967295" ./cxi_send_lat 127.0.0.1 -s 4294967296
  wrong "give one of 2M, 1G" ./cxi_send_lat 127.0.0.1 --use-hp 4K
  wrong "'cxi_stat'" "$PERCH" --personality cxi_stat
  wrong "unknown option '-q'" "$PERCH" --personality cxi_send_lat -q
}

@test "buffers that do not fit --buf-sz are refused before anything is measured" {
  serve cxi_write_bw
  client 2 cxi_write_bw -n 2 -l 4 -s 1048576 --buf-sz 4096
  assert_said "--buf-sz 4096: the buffers of one direction take 1048576 bytes here"
  assert_equal "$output" ""
}

@test "a small buffer takes a whole huge page, and the summary counts it" {
  local pool=/proc/sys/vm/nr_hugepages wanted
  HUGE_PAGES=$(<$pool)
  wanted=$((HUGE_PAGES + 4)) # one at each end, and some that others may take
  echo "$wanted" >$pool 2>/dev/null || skip "only root reserves huge pages"
  [ "$(<$pool)" -ge "$wanted" ] || skip "this kernel has no room for huge pages"
  serve cxi_send_lat
  client 0 cxi_send_lat -s 8 -n 10 --use-hp 2M
  assert_output --partial "Hugepages        : Enabled (2M - 1 pages)"
  served 0
  assert_equal "$(grep -c "Enabled (2M - 1 pages)" server.out)" 1
}

@test "help and version name the page, and say that the original cannot be talked to" {
  local tool
  for tool in "${TOOLS[@]}"; do
    run_apart 0 "./$tool" --help
    assert_output --partial "$tool ADDR [OPTIONS]"
    assert_output --partial "both ends must be perch"
    [ "$(wc -L <<<"$output")" -le 80 ] || fail "wider than 80 columns"
  done
  run_apart 0 ./cxi_send_lat -V
  assert_line --index 0 "cxi_send_lat version: 2.1.0"
  assert_output --partial "the two cannot talk to each other"
  run_apart 0 "$PERCH" --personality cxi_send_lat -V
  assert_line --index 0 "cxi_send_lat version: 2.1.0"
}

proxied() { [ "$(wc -l <proxy.out)" -eq 2 ]; }

@test "perch itself: --once ends with the first measurement, --barrier meets before each message" {
  PORT=$(free_port)
  "$PERCH" serve --once --port "$PORT" 2>server.err 3>&- &
  SERVER=$!
  SERVERS+=("$SERVER")
  server_listens
  : >server.out
  # What goes over the control connection, by a proxy: a header is "PRCH", version 2, type (20: barrier)
  cat >proxy.py <<'PY'
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
client, server = listener.accept()[0], socket.create_connection(("127.0.0.1", int(sys.argv[1])))
seen = {client: b"", server: b""}
def pump(source, sink):
    while data := source.recv(65536):
        seen[source] += data
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)
threads = [threading.Thread(target=pump, args=pair) for pair in ((client, server), (server, client))]
for t in threads: t.start()
for t in threads: t.join()
print(*(seen[end].count(b"PRCH\0\2\0\x14") for end in (client, server)), flush=True)
PY
  timeout 60 python3 proxy.py "$PORT" >proxy.out 3>&- &
  wait_until test -s proxy.out
  run_apart 0 "$PERCH" lat 127.0.0.1 --port "$(head -n 1 proxy.out)" --iterations 20 --warmup 2 --barrier --size 1:4 --json
  assert_equal "$(grep -c '"status":"ok"' <<<"$output")" 3
  served 0
  wait_until proxied
  assert_equal "$(tail -n 1 proxy.out)" "66 66" # (20 + 2) x 3 sizes, each said and answered
}

@test "perch itself: a counter that may stop is no clock, unless that is asked for" {
  sed 's/ nonstop_tsc//' /proc/cpuinfo >cpuinfo
  unshare --mount mount --bind cpuinfo /proc/cpuinfo 2>/dev/null || skip "this user cannot put another /proc/cpuinfo in place"
  cycles() { unshare --mount bash -c 'mount --bind cpuinfo /proc/cpuinfo && exec "$@"' bash "$PERCH" lat 127.0.0.1 --backend null --clock cycles \
    --port "$PORT" --iterations 20 "$@"; }
  PORT=$(free_port)
  unshare --mount bash -c 'mount --bind cpuinfo /proc/cpuinfo && exec "$@"' bash "$PERCH" serve --port "$PORT" 2>server.err 3>&- &
  SERVER=$!
  SERVERS+=("$SERVER")
  server_listens
  run cycles
  assert_equal "$status" 3
  assert_output --partial "has no constant_tsc and nonstop_tsc"
  run cycles --ignore-frequency-mismatch
  assert_equal "$status" 0
  assert_output --partial "may stop or change its rate; it is used as --ignore-frequency-mismatch asks for"
}

@test "perch itself: --barrier and --ignore-frequency-mismatch are refused where they mean nothing" {
  run_apart 2 "$PERCH" bw 127.0.0.1 --barrier
  assert_said "no option --barrier; it belongs to: lat"
  run_apart 2 "$PERCH" lat 127.0.0.1 --ignore-frequency-mismatch
  assert_said "--ignore-frequency-mismatch belongs to --clock cycles"
}
