#!/usr/bin/env bats
# The engine's command line: what it refuses, with which words and exit code, and what it says about itself.

# shellcheck disable=SC2154  # run --separate-stderr sets stderr and stderr_lines

load helpers

setup() { common_setup; }
teardown() { stop_servers && common_teardown; }

have_backend() { "$PERCH" --version | grep -qw -- "$1"; }

# refused EXIT PART ARGUMENT...: nothing on standard output, PART in the message, which is one line
refused() {
  local expected=$1 part=$2
  shift 2
  run_apart "$expected" "$PERCH" "$@"
  assert_equal "$output" ""
  assert_equal "${#stderr_lines[@]}" 1
  assert_regex "$stderr" "^perch: "
  assert_said "$part"
}

@test "help, version and their subcommands go to standard output, fit 80 columns and exit 0" {
  for arguments in --help -h --version -V "lat --help" "bw -h" "serve --help" "check --help" "hist --help" "meet --help" "devices --help" \
    --help-all "lat --help-all" "bw --help-all" "transfer --help-all" "rate --help-all"; do
    # shellcheck disable=SC2086  # words
    run_apart 0 "$PERCH" $arguments
    assert_equal "$stderr" ""
    [ -n "$output" ] || fail "perch $arguments says nothing"
    [ "$(wc -L <<<"$output")" -le 80 ] || fail "wider than 80 columns: perch $arguments"
  done
  run_perch --help-all
  for word in serve lat bw check hist meet devices tcp ofi null "Exit status"; do assert_output --partial "$word"; done
}

@test "the manual page is sound, and names every option that the helps name" {
  command -v man >/dev/null || skip "no man(1) here"
  "$PERCH" --manual >perch.1
  MANWIDTH=200 MANROFFOPT='' run_apart 0 env LC_ALL=C.UTF-8 man --warnings -l perch.1
  assert_equal "$stderr" ""
  for section in NAME SYNOPSIS DESCRIPTION COMMANDS OPTIONS BACKENDS OUTPUT DEFINITIONS "EXIT STATUS" ENVIRONMENT EXAMPLES "SEE ALSO"; do
    assert_line --regexp "^$section"
  done
  for command in serve lat bw transfer rate check hist meet devices completion; do
    for option in $("$PERCH" "$command" --help-all | sed -n 's/^  .*\(--[a-z0-9-]*\).*/\1/p'); do
      grep -qF -- "$option" <<<"$output" || fail "$option of perch $command is not in the manual"
    done
  done
}

@test "docs/options.md lists the options as the table has them" {
  "$PERCH" --markdown >listed
  diff <(sed '1,/^## List of options/d' "$TOP/docs/options.md" | grep '^|') listed ||
    fail "in docs/options.md, put the output of engine/build/perch --markdown in place of this table"
}

@test "no subcommand, or an unknown one, is exit 2 and names them all" {
  refused 2 "serve, lat, bw, transfer, rate, check, hist, meet, devices or completion"
  refused 2 "'measure' is no subcommand" measure
  refused 2 "'--json' is no subcommand" --json
}

@test "an unknown, shortened or misplaced option is exit 2 and named" {
  refused 2 "unknown option '--frobnicate'" lat 127.0.0.1 --frobnicate
  refused 2 "unknown option '--iter', did you mean '--iterations'?" lat 127.0.0.1 --iter 5
  refused 2 "no option --bidirectional; it belongs to: bw" lat 127.0.0.1 --bidirectional
  refused 2 "no option --size; it belongs to: lat, bw" serve --size 8
  refused 2 "--iterations needs a value" lat 127.0.0.1 --iterations
  refused 2 "--json takes no value" lat 127.0.0.1 --json=yes
}

@test "a bad value is exit 2, and the message has the option, the value and what is accepted" {
  refused 2 "--size '12Q' is not understood; give MIN" lat 127.0.0.1 --size 12Q
  refused 2 "--size '0' is out of range" lat 127.0.0.1 --size 0
  refused 2 "--size '5G' is out of range" lat 127.0.0.1 --size 5G
  refused 2 "--size '64:8' is a range whose MAX is below its MIN" lat 127.0.0.1 --size 64:8
  refused 2 "--size '1:1000:1' is too many" lat 127.0.0.1 --size 1:1000:1
  refused 2 "--size ''" lat 127.0.0.1 --size ""
  refused 2 "--iterations '-1'" lat 127.0.0.1 --iterations -1
  refused 2 "--iterations '1e3'" lat 127.0.0.1 --iterations 1e3
  refused 2 "--duration '0'" lat 127.0.0.1 --duration 0
  refused 2 "--duration '5 s'" lat 127.0.0.1 --duration "5 s"
  refused 2 "--rate '1000' is not understood; give a number above 0 with its unit" lat 127.0.0.1 --rate 1000
  refused 2 "send, send-imm, write, write-imm, read, fetch-add, compare-swap" lat 127.0.0.1 --op put
  refused 2 "busy or event" lat 127.0.0.1 --completion asleep
  refused 2 "1 to 65535" lat 127.0.0.1 --port 65536
  refused 2 "--max-p99 'nan'" lat 127.0.0.1 --max-p99 nan
  refused 2 "--min-gbit '0'" bw 127.0.0.1 --min-gbit 0
}

@test "options that contradict each other are exit 2" {
  refused 2 "exclude each other" lat 127.0.0.1 --iterations 5 --duration 5s
  refused 2 "both set the pace" lat 127.0.0.1 --gap 5us --rate 5Gb/s
  refused 2 "--report-all" lat 127.0.0.1 --report-all --duration 5s
  refused 2 "--outstanding 2" lat 127.0.0.1 --outstanding 2
  refused 2 "--max-p99 with --iterations 10" lat 127.0.0.1 --iterations 10 --max-p99 5
}

@test "a host is needed, and only one" {
  refused 2 "needs the host" lat
  refused 2 "'c' is a second operand" bw b c
  refused 2 "takes no operand" serve host
  refused 2 "needs --flow" meet 127.0.0.1
}

@test "an unknown backend is exit 2, and so is what a backend never has" {
  refused 2 "nosuch" lat 127.0.0.1 --backend nosuch
  refused 2 "--op write" lat 127.0.0.1 --backend tcp --op write
  refused 2 "--provider" lat 127.0.0.1 --backend tcp --provider shm
}

@test "a choice that a backend does not have is exit 2, even where it says what is so anyway" {
  refused 2 "--queue-pairs: the tcp backend does not have it" bw 127.0.0.1 --queue-pairs 4
  refused 2 "--queue-pairs: the tcp backend does not have it" bw 127.0.0.1 --queue-pairs 1
  refused 2 "--tos: the tcp backend does not have it" lat 127.0.0.1 --tos 104
  refused 2 "--gid-index: the null backend does not have it" lat 127.0.0.1 --backend null --gid-index 1
  refused 2 "--connection: the null backend does not have it" lat 127.0.0.1 --backend null --connection rc
  refused 2 "--server-device x: the tcp backend has no devices" lat 127.0.0.1 --server-device x
  refused 2 "no option --queue-pairs; it belongs to: bw" lat 127.0.0.1 --queue-pairs 4
  refused 2 "no option --mtu; it belongs to: lat, bw" serve --mtu 1024
}

@test "choices of verbs: a bad value, and what no device can do, is exit 2" {
  have_backend verbs || skip "built without verbs"
  refused 2 "give rc, uc or ud" lat 127.0.0.1 --backend verbs --connection dc
  refused 2 "256, 512, 1024, 2048 or 4096" lat 127.0.0.1 --backend verbs --mtu 1500
  refused 2 "--gid-index '256' is out of range" lat 127.0.0.1 --backend verbs --gid-index 256
  refused 2 "2M or 1G" lat 127.0.0.1 --backend verbs --huge 4K
  refused 2 "--connection uc has no --op read" lat 127.0.0.1 --backend verbs --connection uc --op read
  refused 2 "--connection ud has no --op write" bw 127.0.0.1 --backend verbs --connection ud --op write
  refused 2 "a message is one packet, of at most 4096 bytes" bw 127.0.0.1 --backend verbs --connection ud --size 8K
  refused 2 "a message is one packet, of at most 512 bytes" bw 127.0.0.1 --backend verbs --connection ud --size 1K --mtu 512
  refused 2 "--connection uc acknowledges nothing" bw 127.0.0.1 --backend verbs --connection uc --retry 3
  refused 2 "--outstanding 512 on each of --queue-pairs 1024 are 524288 messages, and 262144 are possible" \
    bw 127.0.0.1 --backend verbs --queue-pairs 1024 --outstanding 512
  refused 2 "--cq-moderation 65 needs --outstanding of at least as much, and it is 64" \
    bw 127.0.0.1 --backend verbs --queue-pairs 4 --cq-moderation 65
  refused 2 "--srq: --op read takes no receives" bw 127.0.0.1 --backend verbs --op read --srq
  refused 2 "with --relaxed-ordering on the last byte may be visible before the others" \
    lat 127.0.0.1 --backend verbs --op write --relaxed-ordering on --definition half_round_trip
}

@test "verbs on a host without RDMA is exit 3, with the remedy" {
  have_backend verbs || skip "built without verbs"
  if compgen -G '/sys/class/infiniband/*' >/dev/null; then skip "this host has an RDMA device"; fi
  perch_serve
  # shellcheck disable=SC2153  # perch_serve sets PORT
  refused 3 "this host has no RDMA device; load its driver" lat 127.0.0.1 --port "$PORT" --backend verbs
  refused 3 "no RDMA device mlx5_9" lat 127.0.0.1 --port "$PORT" --backend verbs --device mlx5_9
}

@test "a host name that does not resolve is exit 4 and named" {
  refused 4 "no-such-host.invalid" lat no-such-host.invalid
  refused 4 "no-such-host.invalid" meet no-such-host.invalid --flow f
}

@test "a host where nothing listens is exit 4, with host and port" {
  port=$(free_port)
  refused 4 "127.0.0.1 port $port" lat 127.0.0.1 --port "$port"
  refused 4 "127.0.0.1 port $port" bw 127.0.0.1 --port "$port" --backend null # null too needs its server
  refused 4 "127.0.0.1 port $port" meet 127.0.0.1 --port "$port" --flow f
}

@test "a token file that is missing, short or readable by others is exit 3" {
  refused 3 "nowhere" lat 127.0.0.1 --token-file nowhere
  (umask 077 && echo short >short)
  refused 3 "short" serve --token-file short
  echo "a token of sufficient length" >open && chmod 644 open
  refused 3 "chmod 600" serve --token-file open
}

@test "results that cannot be written are exit 6" {
  run_perch 6 hist /dev/null
  run_expecting 6 bash -c "'$PERCH' devices >/dev/full"
  assert_output --partial "standard output"
}

# without_reader COMMAND...: with a pipe as standard output whose reader has gone; prints how it ended, and what it said
without_reader() {
  python3 - "$@" <<'PYTHON'
import os, subprocess, sys
reader, writer = os.pipe()
os.close(reader)
ended = subprocess.run(sys.argv[1:], stdout=writer, stderr=subprocess.PIPE, timeout=60)
print(ended.returncode, ended.stderr.decode())
PYTHON
}

@test "a reader that has gone ends perch as SIGPIPE does, without a word" {
  for arguments in devices "devices --json" --help --manual "hist histograms"; do
    echo HISTFAAAACp4nJNpmSzMwMDAyQABzFCaEch0M9ixgMH+A0SAk+kwP9P7eYxMAIIKBsM= >histograms
    # shellcheck disable=SC2086  # words
    run without_reader "$PERCH" $arguments
    assert_output "-13 "
  done
}

@test "a measurement ends at once when its reader has gone, and serves the next" {
  perch_serve
  for command in "lat 127.0.0.1 -D 300 --interval 10ms" "bw 127.0.0.1 -D 300 --interval 10ms" \
    "lat 127.0.0.1 -n 10 --size 8:1M --json" "transfer 127.0.0.1 -n 1 --batch 1:32768 --size 1:64"; do
    # shellcheck disable=SC2016  # the inner shell's
    LIMIT=30 run_expecting 0 env PERCH="$PERCH" bash -c '"$PERCH" '"$command --port $PORT"' 2>errors | head -n 1; echo "${PIPESTATUS[0]}"'
    assert_line --index 1 141
    assert_equal "$(cat errors)" "$UNPLACED"
  done
  run_perch lat 127.0.0.1 --port "$PORT" -n 10
}

@test "progress is drawn on a terminal, and nowhere else" {
  perch_serve
  measure="'$PERCH' lat 127.0.0.1 --port $PORT -D 2 --size 8:16 --cpu off --server-cpu off"
  TERM=xterm run_expecting 0 script --quiet --return --command "$measure" /dev/null
  assert_output --partial $'\r\e[Kperch: 8 bytes, 1 of 2: '
  assert_output --partial " s left"
  # removed before each row, so that the table stands as it does elsewhere
  clean=$(tr -d '\r' <<<"$output" | sed $'s/perch: [^\e]*\e\\[K//g; s/\e\\[K//g')
  assert_equal "$(awk '!/^#/ { print $1 }' <<<"$clean")" $'Bytes\n8\n16'
  TERM=dumb run_expecting 0 script --quiet --return --command "$measure" /dev/null
  refute_output --partial " of 2"
  run_apart 0 "$PERCH" lat 127.0.0.1 --port "$PORT" -D 2
  assert_equal "$stderr" "$UNPLACED"
}

@test "hist merges files and standard input, and refuses what is no histogram" {
  # 5, 1000 and 1000000, as PyPI's hdrhistogram writes them
  one=HISTFAAAACp4nJNpmSzMwMDAyQABzFCaEch0M9ixgMH+A0SAk+kwP9P7eYxMAIIKBsM=
  echo "$one" >a && printf '\n%s\n  %s \n' "$one" "$one" >b
  run_apart 0 "$PERCH" hist --quantiles 0.5,1 a - b <<<"$one"
  assert_equal "$(jq -c '[.count, .min, .max, .quantiles]' <<<"$output")" '[12,5,1000447,{"0.5":null,"1":1000447}]'
  refused 6 "cannot open nowhere" hist nowhere
  echo "${one:0:40}" >short
  refused 6 "short, line 1" hist a short
  refused 6 "no histogram" hist /dev/null
}

@test "devices lists this host, as a table and as JSON" {
  run_apart 0 "$PERCH" devices
  assert_line --regexp "^tcp .*lo .*127\.0\.0\.1"
  run_apart 0 "$PERCH" devices --json
  jq -es 'length > 0 and all(.[]; .backend and .device)' <<<"$output"
}
