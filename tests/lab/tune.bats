#!/usr/bin/env bats
# The role host_tune as it is meant: over ssh, on a machine with governors, huge pages and DCB; what it sets is asked of the
# kernel itself. Everything that can be tried without one is in tests/bats/host_tune*.bats. The tests build on each other:
# a task costs seconds on an emulated machine.

load helpers

setup_file() { lab_ready; }
teardown_file() {
  # only where a test has failed in the middle
  ! lab_ssh alpha test -e /var/lib/perch/host_tune 3>&- || lab_playbook 0 "$TOP/playbooks/revert.yml" --limit alpha
}
setup() { common_setup; }
teardown() { common_teardown; }

WANTED='{"host_tune_hugepages_2m": 66, "host_tune_governor": "performance", "host_tune_memlock": "unlimited",
  "host_tune_sysctls": {"vm.swappiness": 11, "net.ipv4.conf.eth1.arp_ignore": 1}, "host_tune_mtu": 2500, "host_tune_pfc_priorities": [3],
  "host_tune_ets": {"tc_tsa": {"0": "ets", "3": "ets"}, "tc_bw": {"0": 50, "3": 50}}, "host_tune_dscp_priority": {"26": 3},
  "host_tune_transparent_hugepages": "never", "host_tune_roce_tos": 106}'

# A limit counts from the next login, so it is asked of a new one, not of a child of our own session.
# what the machine has of all this, as its kernel and its tools say it, and every byte of /etc
state() {
  lab_ssh alpha 'cat /proc/sys/vm/nr_hugepages /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor /proc/sys/vm/swappiness \
    /proc/sys/net/ipv4/conf/eth1/arp_ignore /sys/class/net/eth1/mtu /sys/kernel/mm/transparent_hugepage/enabled
    dcb -N pfc show dev eth1 prio-pfc; dcb ets show dev eth1 tc-tsa tc-bw; dcb -N app show dev eth1; systemd-run -qP su perch -c "ulimit -l"
    mkdir -p /tmp/cfs && mount -t configfs none /tmp/cfs && ls /tmp/cfs/rdma_cm 2>/dev/null; umount /tmp/cfs
    find /etc /var/lib/perch -xdev -printf "%p %m %u %l\n" 2>/dev/null | sort | sha256sum
    find /etc -xdev -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum'
}

@test "without host_tune_apply what would change is shown, on both ends of each change, and nothing is done" {
  state >"$BATS_FILE_TMPDIR/before"
  lab_playbook 0 "$TOP/playbooks/tune.yml" --limit alpha -e "$WANTED"
  assert_output --partial "would change"
  assert_output --partial "/sys/class/net/eth1/mtu: 4200 -> 2500"
  assert_output --partial "huge pages of 2 MiB: 64 on node 0 -> 66"
  assert_equal "$(state)" "$(<"$BATS_FILE_TMPDIR/before")"
  run_on alpha 'ls /var/lib/perch/host_tune /etc/perch 2>&1 | grep -c "No such file"'
  assert_output 2
}

@test "applied: the kernel has every value; management and what cannot be done are named, and keep nothing else from being done" {
  lab_playbook 2 "$TOP/playbooks/tune.yml" --limit alpha -e host_tune_apply=true -e "$WANTED" \
    -e '{"host_tune_ecn_priorities": [3]}'
  assert_output --partial "eth1 has no switches for ECN"
  lab_playbook 2 "$TOP/playbooks/tune.yml" --limit alpha --check -e '{"host_tune_mtu": 2500, "perch_devices": [{"name": "rxe0", "netdev": "eth0"}]}'
  assert_output --partial "carries Ansible"
  run_on alpha 'cat /proc/sys/vm/nr_hugepages /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor /proc/sys/vm/swappiness \
    /proc/sys/net/ipv4/conf/eth1/arp_ignore /sys/class/net/eth1/mtu /sys/class/net/eth0/mtu /sys/kernel/mm/transparent_hugepage/enabled'
  assert_output "66
performance
11
1
2500
1500
always madvise [never]"
  run_on alpha 'dcb -j pfc show dev eth1; dcb -j ets show dev eth1; dcb -N app show dev eth1; systemd-run -qP su perch -c "ulimit -l"; systemctl is-enabled perch-tune'
  assert_output --partial '"prio_pfc":[false,false,false,true,false,false,false,false]'
  assert_output --partial '"tc_bw":[50,0,0,50,0,0,0,0]'
  assert_line --regexp '^dscp-prio 26:3'
  assert_line unlimited
  assert_line enabled
  # rdma_cm's default has no other place where it could be seen
  run_on alpha 'mount -t configfs none /tmp/cfs && cat /tmp/cfs/rdma_cm/rxe0/ports/1/default_roce_tos; umount /tmp/cfs'
  assert_output 106
}

@test "a second tuning changes nothing" {
  lab_playbook 0 "$TOP/playbooks/tune.yml" --limit alpha -e host_tune_apply=true -e "$WANTED"
  assert_output --regexp "alpha .*changed=0 "
}

@test "reverted to the byte" {
  lab_playbook 0 "$TOP/playbooks/revert.yml" --limit alpha
  assert_equal "$(state)" "$(<"$BATS_FILE_TMPDIR/before")"
  run_on alpha 'ls /var/lib/perch/host_tune /etc/perch /etc/systemd/system/perch-tune.service 2>&1 | grep -c "No such file"'
  assert_output 3
}
