#!/usr/bin/env bats
# How labs begin and end: nothing is left behind, and a machine that does not come up is reported with its console.
# These labs are small ones of their own, beside the one that the other suites use.

load helpers

setup() {
  common_setup
  export PERCH_LAB=life-$BATS_TEST_NUMBER-$$ PERCH_LAB_MEMORY=512
  STATE=$TOP/runs/.lab/$PERCH_LAB
}

teardown() {
  "$LAB" down
  rm -rf "$STATE" "$STATE.lock"
  common_teardown
}

# Processes that belong to this test's lab: keepers and machines stand in its state, connections name it.
lab_processes() {
  local process
  for process in /proc/[0-9]*; do
    [ "${process#/proc/}" != "$BASHPID" ] || continue
    if [ "$(readlink "$process/cwd")" = "$STATE" ]; then printf '%s %s\n' "${process#/proc/}" "$(tr '\0' ' ' <"$process/cmdline")"; fi
  done 2>/dev/null
}

machines_started() { [ -s "$STATE/alpha.machine" ] && [ -s "$STATE/beta.machine" ]; }

# none_left SECONDS
none_left() {
  local end=$((SECONDS + $1)) left
  while left=$(lab_processes) && [ -n "$left" ]; do
    [ "$SECONDS" -lt "$end" ] || fail "left running: $left"
    sleep 0.1
  done
}

# Starts `lab up ARGUMENT...` in the background, as STARTER, and waits until both machines run.
start_lab() {
  "$LAB" up "$@" >up.log 2>&1 3>&- &
  STARTER=$!
  local end=$((SECONDS + 90)) # a busy machine, and perhaps the first try of KVM
  until machines_started; do
    [ "$SECONDS" -lt "$end" ] || fail "90 s passed without two machines: $(cat up.log)"
    sleep 0.1
  done
  [ "$(lab_processes | grep -c qemu-system)" -ge 2 ] || fail "two machines should run: $(lab_processes)"
}

@test "down ends everything that up has started, also while it is starting" {
  start_lab
  run_expecting 0 "$LAB" down
  none_left 10 # the starter sees at its next look that its machines have gone
  wait "$STARTER" || [ $? -eq 4 ]
  [ ! -e "$STATE/key" ] || fail "the lab's key is still there"
  run_expecting 4 "$LAB" ssh alpha true
  assert_output --partial "make lab"
}

@test "a starter that is killed leaves no machine" {
  start_lab
  kill -KILL "$STARTER"
  none_left 10
}

@test "a lab that belongs to a program ends with it, however that ends" {
  sleep 1000 3>&- &
  local owner=$!
  start_lab --while "$owner"
  kill -KILL "$owner"
  none_left 10
  wait "$STARTER" || [ $? -eq 4 ]
}

@test "a keeper that is killed takes its machine along, though nobody is left to see it" {
  start_lab
  local keeper machine
  read -r keeper _ <"$STATE/beta.keeper"
  read -r machine _ <"$STATE/beta.machine"
  assert_equal "$(</proc/"$machine"/comm)" qemu-system-x86
  kill -KILL "$STARTER" "$keeper"
  none_left 10
}

@test "a machine that dies while it boots is reported at once, exit code 4, and the other one is not kept" {
  start_lab
  local machine code=0
  read -r machine _ <"$STATE/beta.machine"
  kill -KILL "$machine"
  wait "$STARTER" || code=$?
  assert_equal "$code" 4
  run cat up.log
  assert_output --partial "beta: the machine is dead, its machine ended (exit code 137). The last lines of its console:"
  none_left 1
}

@test "a machine whose kernel panics is reported with the console's last lines, exit code 4" {
  LIMIT=120 PERCH_LAB_APPEND="rdinit=/nowhere" run_expecting 4 "$LAB" up
  # whichever is the first; the other is not waited for
  assert_output --regexp "(alpha|beta): it does not come up: Kernel panic - not syncing: VFS: Unable to mount root fs"
  assert_line --regexp '^  (alpha|beta)\| .*Kernel panic'
  none_left 1
}

@test "a machine that is too slow is reported with the console's last lines, exit code 4" {
  LIMIT=120 PERCH_LAB_BOOT_LIMIT=4 run_expecting 4 "$LAB" up
  assert_output --regexp "(alpha|beta): not ready after 4 s"
  assert_output --partial "The last lines of its console:"
  none_left 1
}

@test "a lab whose lease has run out ends by itself" {
  start_lab
  echo "until $((EPOCHSECONDS - 1))" >"$STATE/lease"
  none_left 10
  wait "$STARTER" || [ $? -eq 4 ]
  assert_equal "$(<"$STATE/alpha.end")" "the lab's lease ran out (exit code 137)"
}

@test "an unknown command, host or owner is refused with exit code 2" {
  run_expecting 2 "$LAB" fly
  assert_output --partial '"fly"'
  run_expecting 2 "$LAB" ssh gamma true
  assert_output --partial '"gamma"'
  run_expecting 2 "$LAB" up --while 0
  assert_output --partial "--while"
}
