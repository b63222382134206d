#!/usr/bin/env bats
# What needs machines to boot again. On the lab of the other suites, which is given back as it was; one more lab of its own.

load ../helpers

# each with both machines, whatever the one before has left
setup() {
  common_setup
  lab_ready
}
teardown() { common_teardown; }

@test "a machine whose power fails is gone at once, and comes back with a new disk" {
  run_on beta 'touch /root/mark; sync'
  LIMIT=20 run_expecting 0 "$LAB" kill beta
  run_on 255 beta true
  run_on 1 alpha "ping -c 2 -i 0.2 -W 1 $BETA"
  LIMIT=300 run_expecting 0 "$LAB" start beta
  run_on alpha "ping -c 3 -W 5 $BETA"
  run_on beta 'ls /root/mark 2>&1 || cat /sys/class/infiniband/rxe0/ports/1/state'
  assert_output --partial "4: ACTIVE"
}

@test "a machine that boots again keeps its disk" {
  run_on beta 'touch /root/mark; sync; cat /proc/sys/kernel/random/boot_id'
  local before=$output
  LIMIT=300 run_expecting 0 "$LAB" reboot beta
  run_on beta 'ls /root/mark; cat /proc/sys/kernel/random/boot_id /sys/class/infiniband/rxe0/ports/1/state'
  assert_line --index 0 /root/mark
  refute_line --index 1 "$before"
  assert_line --index 2 "4: ACTIVE"
}

@test "a lab whose guests' clocks run wrong is refused with exit code 4, and names by how much" {
  [ "$(<"$TOP/runs/.lab/$PERCH_LAB/accelerator")" = tcg ] || skip "with KVM the clock is the host's own"
  local rate
  rate=$(<"$TOP/runs/.lab/$PERCH_LAB/tsc_khz")
  # told a counter of 10 % less than it is, a guest counts too many seconds
  LIMIT=400 PERCH_LAB=clock-$$ PERCH_LAB_TSC_KHZ=$((rate * 9 / 10)) run_expecting 4 "$LAB" up
  assert_output --regexp "its clock counts 11[01][0-9] ms in a second"
  rm -rf "$TOP/runs/.lab/clock-$$" "$TOP/runs/.lab/clock-$$.lock"
}

@test "a machine with 6 GiB has a huge page of 1 GiB" {
  LIMIT=400 PERCH_LAB=huge-$$ PERCH_LAB_MEMORY=6144 PERCH_LAB_APPEND="hugepagesz=1G hugepages=1" \
    run_expecting 0 "$LAB" up --while $$
  PERCH_LAB=huge-$$ run_on alpha cat /sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages
  assert_output 1
  PERCH_LAB=huge-$$ run_expecting 0 "$LAB" down
  rm -rf "$TOP/runs/.lab/huge-$$" "$TOP/runs/.lab/huge-$$.lock"
}
