#!/usr/bin/env bats
# A fault that the check of two hosts finds, beside what tests/lab/check.bats shows of sound ones.

load ../helpers

setup_file() { lab_ready; }
setup() { common_setup; }
teardown() { common_teardown; }

@test "a fault on one host is found there: another MTU than its peer's" {
  lab_ssh beta ip link set eth1 mtu 1500
  LIMIT=300 lab_playbook 0 "$TOP/playbooks/check.yml" -e host_check_runs_dir="$BATS_TEST_TMPDIR"
  lab_ssh beta ip link set eth1 mtu 4200
  grep -E '"advisory: [^"]*nic-mtu-ends: ' <<<"$output" || fail "nothing was said of it"
}
