#!/usr/bin/env bats
# The hosts' checks as they are meant: over ssh, by a user who becomes root, on machines with a real kernel's RDMA device,
# DCB and governors. What the checks make of each card and fault is in tests/bats/host_*.bats.

load helpers

setup_file() { lab_ready; }
setup() { common_setup; }
teardown() { common_teardown; }

# said LINE...: a finding, as it is printed, from its beginning on
said() {
  local line
  for line in "$@"; do
    grep -qF "\"$line" <<<"$output" || fail "it was not said: $line"
  done
}

@test "check.yml reads both hosts over ssh in a handful of tasks, and says what their kernels say" {
  local begun=$SECONDS
  LIMIT=300 lab_playbook 0 "$TOP/playbooks/check.yml" -e host_check_runs_dir="$BATS_TEST_TMPDIR"
  printf '# check.yml on two hosts: %d s\n' $((SECONDS - begun)) >&3
  said 'PASS: ' \
    'ok: alpha: nic-gid: rxe0: 1: 192.0.2.1, RoCE v2, eth1' 'ok: beta: nic-gid: rxe0: 1: 192.0.2.2, RoCE v2, eth1' \
    'ok: beta: nic-port-state: rxe0: 4: ACTIVE, 5: LinkUp' 'ok: alpha: nic-path-mtu: rxe0: 4096 of 4096' \
    'ok: alpha: nic-mtu-ends: 4200 on all' 'ok: alpha: nic-duplicate-gid: ' \
    'ok: alpha: machine-firewall: let through: 18600/tcp' 'not judged: alpha: qos-pfc: eth1: off, by dcb' \
    'not judged: beta: machine-clocksource: tsc'
  # 12 a host, whatever is read: the first host has the run's own, too
  run awk '/^(alpha|beta) +:/ { gsub(/[a-z]+=/, ""); print $1, ($3 + $8 <= 13), ($5 == 0) }' <<<"$output"
  assert_output "alpha 1 1
beta 1 1"
}
