#!/usr/bin/env bats
# Where the ends of a measurement work: on cores that are named or near, and the record says on which.

# shellcheck disable=SC2154  # run --separate-stderr sets stderr

load helpers

setup() {
  common_setup
  [ "$(nproc)" -ge 2 ] || skip "this machine has one CPU"
}

teardown() {
  stop_servers
  common_teardown
}

# cpus_are PID LIST: what the kernel lets a process's first thread use
cpus_are() { [ "$(awk '/^Cpus_allowed_list:/ { print $2 }' "/proc/$1/status")" = "$2" ]; }
job_is_on() { cpus_are "$(server_jobs)" "$1"; }

# a thread that only watches shares no core with one that measures
others_are_not_on() {
  local task
  for task in "/proc/$1/task"/*; do
    [ "${task##*/}" != "$1" ] || continue
    ! grep "^Cpus_allowed_list:[[:space:]]*$2\$" "$task/status" || fail "${task##*/} is on CPU $2, too"
  done
}

# placements EXIT COMMAND OPTION...: of the client and of the server, in $output
placements() {
  local expected=$1 command=$2
  shift 2
  run_apart "$expected" "$PERCH" "$command" 127.0.0.1 --port "$PORT" --json "$@"
  output=$(jq -c '.client.placement, .server.placement' <<<"$output")
}

@test "both ends run where they are told, and nowhere else" {
  perch_serve --cpu 1
  "$PERCH" bw 127.0.0.1 --port "$PORT" --cpu 0 -D 300 >out 2>errors 3>&- &
  wait_until cpus_are $! 0
  wait_until job_is_on 1
  others_are_not_on $! 0
  # the process that listens is in nobody's way
  ! cpus_are "$SERVER" 1 || fail "the listener is pinned"
  kill $!
  wait $! || assert_equal "$?" 143
  assert_equal "$(cat errors)" ""
}

@test "the record says on which CPUs, nodes and memory each end was" {
  perch_serve
  for command in lat bw transfer; do
    placements 0 "$command" --cpu 1 --server-cpu 0 -n 50
    assert_equal "$stderr" ""
    assert_equal "$(jq -rs 'map(.cpu) | unique | join(" ")' <<<"$output")" "0 1"
    assert_equal "$(jq -s 'all(.unplaced == null and has("node") and has("memory_node"))' <<<"$output")" true
  done
  # what the client says outranks what the server was started with
  perch_serve --cpu 0
  placements 0 lat --server-cpu 1
  assert_equal "$(tail -n 1 <<<"$output" | jq -r .cpu)" 1
}

@test "ends on one machine are not pinned, which is said once" {
  perch_serve
  for command in lat bw transfer; do
    placements 0 "$command" --size 8:64 -n 50
    assert_equal "$stderr" "$UNPLACED"
    assert_equal "$(jq -rs 'map("\(.cpu) \(.unplaced)") | unique | join(",")' <<<"$output")" "null same-machine"
  done
  placements 0 lat --cpu off --server-cpu off
  assert_equal "$stderr" ""
  assert_equal "$(jq -rs 'map(.unplaced) | unique | join(",")' <<<"$output")" off
}

@test "a named core that another process has is said" {
  perch_serve
  "$PERCH" bw 127.0.0.1 --port "$PORT" --cpu 0 -D 300 >out 2>errors 3>&- &
  wait_until cpus_are $! 0
  run_apart 0 "$PERCH" lat 127.0.0.1 --port "$PORT" --cpu 0 -n 50
  assert_said "--cpu 0: another perch process has the core of CPU 0, which slows both; name other cores"
  kill $!
  wait $! || true
  run_apart 0 "$PERCH" lat 127.0.0.1 --port "$PORT" --cpu 0 -n 50
  [[ $stderr != *"another perch process"* ]] || fail "the core is free again: $stderr"
}

@test "both ends of one machine are refused the same core" {
  perch_serve --cpu 0
  for command in lat bw transfer; do
    run_apart 4 "$PERCH" "$command" 127.0.0.1 --port "$PORT" --cpu 0
    assert_said "says: --cpu 0 and the server's --cpu 0 share the core of CPU 0; name other cores for one end"
    assert_equal "$output" ""
  done
  run_apart 3 "$PERCH" lat 127.0.0.1 --port "$PORT" --cpu 0 --server-cpu 0
  assert_said "--cpu 0 and the server's --cpu 0 share the core of CPU 0"
}

@test "what a host has not is refused before anything is measured" {
  perch_serve
  run_apart 3 "$PERCH" lat 127.0.0.1 --port "$PORT" --cpu 0,1023
  assert_said "--cpu 0,1023: this host has CPUs "
  assert_equal "$output" ""
  run_apart 4 "$PERCH" bw 127.0.0.1 --port "$PORT" --server-cpu 1023
  assert_said "says: --server-cpu 1023: this host has CPUs "
  run_apart 3 taskset -c 0 "$PERCH" bw 127.0.0.1 --port "$PORT" --cpu 1
  assert_said "--cpu 1: this process may use CPUs 0 only"
  run_apart 3 "$PERCH" transfer 127.0.0.1 --port "$PORT" --cpu 0 --threads 2
  assert_said "--cpu 0: 2 threads on 1 core"
  run_apart 3 "$PERCH" lat 127.0.0.1 --port "$PORT" --numa 1000
  assert_said "--numa 1000: this host has "
  run_apart 3 "$PERCH" serve --port "$(free_port)" --cpu 1023
  assert_said "--cpu 1023: this host has CPUs "
  run_apart 2 "$PERCH" lat 127.0.0.1 --port "$PORT" --cpu 0-
  assert_said "--cpu '0-' is not understood; give auto, off, or CPU numbers"
}
