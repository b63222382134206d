#!/usr/bin/env bats
# Two ends of the engine and what can go wrong between them: wrong tokens, strangers, other versions, silence and death.
# Each is a clear message, exit 4 within its deadline, and a server that lives on.

load helpers

setup() { common_setup; }

teardown() {
  stop_servers
  common_teardown
}

token() { (umask 077 && head -c 32 /dev/urandom | base64 >"$1"); }

# A short measurement; the arguments come behind.
lat() {
  local expected=$1
  shift
  run_apart "$expected" "$PERCH" lat --port "$PORT" --iterations 100 "$@"
}

# The last server still serves, and has nothing left from what came before.
assert_server_lives() {
  wait_until no_server_jobs
  lat 0 "${1:-127.0.0.1}" "${@:2}"
}

# A program that pretends to be one end. stdin: Python with `frame(version, type, payload)` at hand.
pretend() { timeout 30 /usr/bin/python3 "$BATS_TEST_DIRNAME/../fixtures/peer.py" "$@" 3>&-; }

# Starts a listener that does `$1`; sets PORT
perch_pretended() {
  PORT=$(free_port)
  pretend "$1" "$PORT" &
  wait_until bash -c "ss -ltnH 'sport = :$PORT' | grep -q ."
}

# has_opened N: what crowd-WHAT and flood-WHAT have opened by now
has_opened() { [ "$(cat opened)" -ge "$1" ]; }

# served_despite HOW-WHAT: three honest clients one after the other, while strangers go on
served_despite() {
  local code=0 before
  /usr/bin/python3 "$BATS_TEST_DIRNAME/../fixtures/peer.py" "$1" "$PORT" 2>strangers.log 3>&- &
  local strangers=$!
  SERVERS+=("$strangers")
  wait_until has_opened 400
  for _ in 1 2 3; do
    before=$(cat opened)
    lat 0 127.0.0.1 --token-file secret --json
    jq -e '.status == "ok" and .latency_us.count == 100' <<<"$output"
  done
  kill -0 "$strangers" || fail "the strangers gave up: $(cat strangers.log)"
  # they were still there: each is another one's place, or the clock's
  WAIT=30 wait_until has_opened $((before + 100))
  kill "$strangers"
  wait "$strangers" || code=$?
  assert_equal "$code" 143
  rm opened
}

@test "IPv4, IPv6 and names reach the server" {
  perch_serve
  lat 0 127.0.0.1
  lat 0 127.0.0.1 --bind 127.0.0.2
  lat 0 localhost
  [ -e /proc/net/if_inet6 ] || skip "no IPv6 on this host"
  lat 0 ::1
}

@test "127.0.0.1 reaches the server where all other addresses are of IPv6" {
  unshare --user --map-root-user --net true 2>/dev/null || skip "no user namespaces here"
  [ -e /proc/net/if_inet6 ] || skip "no IPv6 on this host"
  # shellcheck disable=SC2016  # for the shell in there
  run_expecting 0 unshare --user --map-root-user --net bash -euc '
    ip link set lo up
    ip address add fd00::1/64 dev lo
    "$1" serve --once --port 18600 --ready-file ready & server=$!
    trap "kill $server 2>/dev/null || :" EXIT
    until [ -e ready ]; do kill -0 "$server" && read -rt 0.05 <> <(:) || :; done
    "$1" lat 127.0.0.1 --port 18600 --iterations 20 --warmup 0
    wait "$server"' bash "$PERCH"
}

@test "--bind chooses where the server listens" {
  perch_serve --bind 127.0.0.2
  lat 0 127.0.0.2
  lat 4 127.0.0.1
}

@test "without a token only loopback is bound" {
  run_perch 2 serve --bind 0.0.0.0 --port "$(free_port)"
  assert_output --partial "token"
  run_perch 2 serve --bind 192.0.2.1 --port "$(free_port)"
  assert_output --partial "token"
}

@test "with the same token both sides agree, from --token-file or PERCH_TOKEN_FILE" {
  token one
  perch_serve --bind 0.0.0.0 --token-file one
  lat 0 127.0.0.1 --token-file one
  PERCH_TOKEN_FILE=one lat 0 127.0.0.1
}

@test "a wrong or missing token on either side is exit 4, and the server lives on" {
  token one && token two
  perch_serve --token-file one
  lat 4 127.0.0.1 --token-file two
  assert_said "token"
  lat 4 127.0.0.1
  assert_said "token"
  assert_server_lives 127.0.0.1 --token-file one
  perch_serve
  lat 4 127.0.0.1 --token-file one
  assert_said "token"
  assert_server_lives
}

@test "a port in use is exit 3 and named" {
  perch_serve
  run_perch 3 serve --port "$PORT"
  assert_output --partial "$PORT: the port is in use"
  assert_server_lives
}

@test "garbage, half a greeting, a huge frame and a web browser do not harm the server" {
  perch_serve --timeout 2s
  for kind in garbage half huge browser nothing unknown-frame; do
    pretend "send-$kind" "$PORT"
    assert_server_lives
  done
  grep -q "does not use perch's control protocol" "serve.$PORT.log"
  grep -q "above the limit" "serve.$PORT.log"
}

@test "a client of another version is told so, and the server lives on" {
  perch_serve
  run pretend send-version "$PORT"
  assert_output --partial "version 9"
  assert_server_lives
}

@test "a server of another version is exit 4, with both versions" {
  perch_pretended serve-version
  lat 4 127.0.0.1
  assert_said "version 9"
}

@test "a server that is none is exit 4" {
  perch_pretended serve-garbage
  lat 4 127.0.0.1
  assert_said "control protocol"
}

@test "a server that is silent is exit 4 when --timeout is over, not later" {
  perch_pretended serve-nothing
  begin=$SECONDS
  LIMIT=10 lat 4 127.0.0.1 --timeout 1s
  [ $((SECONDS - begin)) -ge 1 ] || fail "it did not wait"
  assert_said "--timeout"
}

@test "a client that is silent is dropped soon" {
  perch_serve
  # it ends when the server closes, and prints the server's words; whoever looks for the job may miss it
  run pretend send-silence "$PORT"
  assert_success
  assert_output --partial "did not greet within 3 s"
  wait_until no_server_jobs
}

@test "honest clients are served behind 400 silent connections, and during a flood" {
  token secret
  perch_serve --token-file secret
  local strangers
  for strangers in crowd-silence crowd-greeting flood-silence flood-greeting; do
    served_despite "$strangers"
  done
  # the strangers took the log's lines for a while, and no process
  grep -q 'connections without a proof of the token\|had to go' "serve.$PORT.log"
  assert_server_lives 127.0.0.1 --token-file secret
}

@test "several clients at once are all measured" {
  local -a clients=()
  local i
  perch_serve
  for i in 1 2 3 4 5 6; do
    "$PERCH" lat 127.0.0.1 --port "$PORT" --completion event --iterations 500 --json >"out.$i" 3>&- &
    clients+=($!)
  done
  for i in "${!clients[@]}"; do
    wait "${clients[i]}" || fail "client $((i + 1)) ended with exit code $?"
    assert_json "out.$((i + 1))" '.status == "ok" and .latency_us.count == 500'
  done
  wait_until no_server_jobs
}

@test "a client killed in the middle leaves no job behind, and the server lives on" {
  for backend in tcp ofi null; do
    rm -f out # of the backend before: its lines are not what is waited for
    perch_serve
    "$PERCH" lat 127.0.0.1 --port "$PORT" --backend "$backend" --completion busy --duration 50s --interval 100ms --json >out 2>err 3>&- &
    client=$!
    wait_until test -s out # into the traffic
    kill -KILL "$client"
    assert_server_lives 127.0.0.1 --backend "$backend"
    stop_servers
  done
}

# The last that was printed is an interval of a size, and not its end.
under_way() { tail -n 1 out | grep -q '"kind":"interval"'; }

# lost_in_the_middle SIGNAL OPTION...: hits the job's process while its second size is measured
lost_in_the_middle() {
  local signal=$1 client code=0
  shift
  rm -f out # of the backend before: its lines are not what is waited for
  perch_serve
  "$PERCH" lat 127.0.0.1 --port "$PORT" --duration 1s --size 8:1M --interval 100ms --json "$@" >out 2>err 3>&- &
  client=$!
  wait_until grep -q '"kind":"latency"' out
  wait_until under_way
  signal_jobs "$signal"
  wait "$client" || code=$?
  assert_equal "$code" 4
  # what was measured stands; the size that was under way says why it is not there
  jq -es 'map(select(.kind != "interval")) | length >= 2 and all(.[:-1][]; .status == "ok") and (.[-1] | .status == "error" and .error.code == 4
    and .error.traffic == true and (.error.message | length) > 0)' out || fail "$(cat out)"
}

@test "a server killed in the middle is exit 4, and the sizes done are kept" {
  for backend in tcp ofi; do
    lost_in_the_middle KILL --backend "$backend"
    [[ $(cat err) != *--timeout* ]] || fail "it waited for --timeout: $(cat err)"
    assert_server_lives
    stop_servers
  done
}

@test "a server that hangs in the middle is exit 4 when --timeout is over" {
  lost_in_the_middle STOP --timeout 1s
  [[ $(cat err) = *--timeout* ]] || fail "the message does not name --timeout: $(cat err)"
  signal_jobs KILL
  assert_server_lives
}

@test "a client that hangs in the middle leaves no job behind when the server's --timeout is over, whatever it asked for" {
  perch_serve --timeout 1s
  "$PERCH" lat 127.0.0.1 --port "$PORT" --timeout 10m --duration 10m --interval 100ms --json >out 2>err 3>&- &
  client=$!
  wait_until test -s out # into the traffic
  kill -STOP "$client"
  wait_until no_server_jobs
  kill -KILL "$client"
  assert_server_lives
}

@test "a job with more memory than the server's --max-memory is exit 4, and the server lives on" {
  perch_serve --max-memory 4M
  for kind in "bw --verify --outstanding 8" "transfer --batch 8"; do
    # shellcheck disable=SC2086  # words
    run_perch 0 $kind 127.0.0.1 --port "$PORT" --iterations 2 --warmup 0 --size 64K
    # shellcheck disable=SC2086
    run_perch 4 $kind 127.0.0.1 --port "$PORT" --iterations 2 --warmup 0 --size 1M
    assert_output --partial "more than the 4096 KiB of 'perch serve --max-memory'"
  done
  run_perch 2 serve --port "$PORT" --max-memory 0
  assert_output --partial "bytes above 0"
  assert_server_lives
}

@test "traffic that stands still for a second is measured on, and the record says when and for how long" {
  local kind stopped completion pause
  # a stopped receiver's kernel goes on receiving: some 40 MB, which took 0.8 s on a busy machine
  local -A pauses=([lat]=1.2 [bw]=2.6)
  for kind in lat bw; do
    for completion in busy event; do
      pause=${pauses[$kind]}
      perch_serve
      rm -f out
      "$PERCH" "$kind" 127.0.0.1 --port "$PORT" --duration 5s --interval 100ms --completion "$completion" --json >out 2>err 3>&- &
      client=$!
      wait_until test -s out
      stopped=$EPOCHREALTIME
      signal_jobs STOP
      sleep "$pause"
      signal_jobs CONT
      # a busy machine may have let us sleep for longer
      pause=$(jq -n "$EPOCHREALTIME - $stopped")
      wait "$client" || fail "exit code $?: $(cat err)"
      # two looks of a tenth of a second may be missing; a busy machine may stop the two for longer
      jq -es --arg stopped "$stopped" --argjson pause "$pause" '.[-1] | .status == "ok" and .stall.longest_s > 0.7 and
        .stall.longest_s < $pause + 1.7 and .stall.start_s < 4
        and ((.stall.began | sub("\\.[0-9]+Z$"; "Z") | fromdateiso8601) - ($stopped | tonumber) | fabs) < 2 + $pause' out || fail "$kind $completion: stopped at $stopped: $(tail -n 1 out)"
      # shellcheck disable=SC2153 # helpers.bash sets it
      kill "$SERVER"
    done
  done
}

@test "where a pause was asked for there is no stall to speak of" {
  perch_serve
  run_perch lat 127.0.0.1 --port "$PORT" --iterations 5 --warmup 0 --gap 20ms --json
  assert_json <(echo "$output" | grep '^{') '.status == "ok" and has("stall") and .stall == null'
}

@test "SIGTERM stops the server with exit 0, its jobs with it" {
  perch_serve
  "$PERCH" lat 127.0.0.1 --port "$PORT" --duration 50s >out 2>&1 3>&- &
  client=$!
  wait_until server_jobs
  jobs=$(server_jobs)
  kill -TERM "$SERVER"
  wait "$SERVER" || fail "the server ended with exit code $?"
  for pid in $jobs; do ! kill -0 "$pid" 2>/dev/null || fail "job $pid is left"; done
  code=0
  wait "$client" || code=$?
  assert_equal "$code" 4
  [ ! -e "ready.$PORT" ] || fail "the ready file is left"
}

@test "a listener that is killed takes its jobs with it" {
  perch_serve
  "$PERCH" lat 127.0.0.1 --port "$PORT" --duration 50s >out 2>&1 3>&- &
  client=$!
  wait_until server_jobs
  kill -KILL "$SERVER"
  code=0
  wait "$client" || code=$?
  assert_equal "$code" 4
}

@test "a provider that this host lacks is exit 3, and those that it has are named" {
  perch_serve
  lat 3 127.0.0.1 --backend ofi --provider nosuch
  assert_said nosuch
  assert_said tcp
  FI_PROVIDER=nosuch lat 3 127.0.0.1 --backend ofi
  assert_server_lives 127.0.0.1 --backend ofi
}

@test "two parties of a flow wait for each other" {
  perch_serve
  "$PERCH" meet 127.0.0.1 --port "$PORT" --flow a/b/c/0/1 >out 2>&1 3>&- &
  first=$!
  wait_until server_jobs
  run_perch meet 127.0.0.1 --port "$PORT" --flow a/b/c/0/1
  wait "$first"
}

@test "three parties meet, and another flow does not count" {
  local -a waiting=()
  local pid
  perch_serve
  for flow in same same other; do
    timeout 80 "$PERCH" meet 127.0.0.1 --port "$PORT" --flow "$flow" --parties 3 --timeout "$([ "$flow" = same ] && echo 60s || echo 3s)" >out 2>&1 3>&- &
    waiting+=($!)
  done
  sleep 1
  kill -0 "${waiting[0]}" || fail "two of three were let go"
  run_perch meet 127.0.0.1 --port "$PORT" --flow same --parties 3
  wait "${waiting[0]}" && wait "${waiting[1]}"
  ! wait "${waiting[2]}" || fail "the other flow was let go"
}

@test "a party that waits in vain is exit 4 when --timeout is over" {
  perch_serve
  LIMIT=10 run_perch 4 meet 127.0.0.1 --port "$PORT" --flow alone --timeout 1s
  assert_output --partial "1 of 2"
}

# What stands where the library is looked for is no library: each side says so, and tcp goes on without it.
@test "a libfabric that cannot be loaded: exit code 3 with what to do, and the other backends work" {
  mkdir broken
  echo "no library" >broken/libfabric.so.1
  perch_serve
  LD_LIBRARY_PATH=$PWD/broken lat 3 127.0.0.1 --backend ofi
  assert_said "cannot load libfabric"
  assert_said "install"
  LD_LIBRARY_PATH=$PWD/broken lat 0 127.0.0.1 --backend tcp
  LD_LIBRARY_PATH=$PWD/broken perch_serve
  lat 4 127.0.0.1 --backend ofi
  assert_said "cannot load libfabric"
  assert_server_lives 127.0.0.1 --backend tcp
}
