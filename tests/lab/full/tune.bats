#!/usr/bin/env bats
# Tuning that survives a reboot, and reverting after one; a controller that dies in the middle.

load ../helpers

setup() {
  common_setup
  lab_ready
}
teardown() {
  common_teardown
  lab_playbook 0 "$TOP/playbooks/revert.yml" --limit alpha
}

WANTED='{"host_tune_apply": true, "host_tune_hugepages_2m": 66, "host_tune_governor": "performance", "host_tune_memlock": "unlimited",
  "host_tune_sysctls": {"vm.swappiness": 11}, "host_tune_mtu": 2500, "host_tune_pfc_priorities": [3],
  "host_tune_dscp_priority": {"26": 3}, "host_tune_transparent_hugepages": "never", "host_tune_roce_tos": 106}'

values() {
  run_on alpha 'cat /proc/sys/vm/nr_hugepages /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor /proc/sys/vm/swappiness \
    /sys/class/net/eth1/mtu /sys/kernel/mm/transparent_hugepage/enabled; dcb -N pfc show dev eth1 prio-pfc; dcb -N app show dev eth1
    systemd-run -qP su perch -c "ulimit -l" # a new login: ours may have begun with another limit
    mkdir -p /tmp/cfs && modprobe rdma_cm && mount -t configfs none /tmp/cfs && { [ -d /tmp/cfs/rdma_cm/rxe0 ] || ours=$(mkdir -v /tmp/cfs/rdma_cm/rxe0); } && cat /tmp/cfs/rdma_cm/rxe0/ports/1/default_roce_tos
    [ -z "$ours" ] || rmdir /tmp/cfs/rdma_cm/rxe0; umount /tmp/cfs'
}

@test "what was set is set again after a reboot, and reverting after it gives back every value and byte" {
  local untuned tuned
  values
  untuned=$output
  lab_playbook 0 "$TOP/playbooks/tune.yml" --limit alpha -e "$WANTED"
  values
  tuned=$output
  assert_line --index 0 66
  assert_line --partial "always madvise [never]"

  LIMIT=300 run_expecting 0 "$LAB" reboot alpha
  LIMIT=120 run_on alpha 'systemctl is-system-running --wait; systemctl show --property Result perch-tune'
  assert_output "running
Result=success"
  values
  assert_output "$tuned"
  lab_playbook 0 "$TOP/playbooks/tune.yml" --limit alpha -e "$WANTED"
  assert_output --regexp "alpha .*changed=0 "

  lab_playbook 0 "$TOP/playbooks/revert.yml" --limit alpha
  values
  assert_output "$untuned"
  run_on alpha 'find / -xdev \( -name "*90-perch*" -o -name "perch-tune*" -o -path "*/host_tune*" -o -path /etc/perch \) ! -path "/home/*" ! -path "/root/.ansible/*"'
  assert_output ""
}

@test "a tuning that is killed in the middle is taken back by revert.yml" {
  local untuned
  values
  untuned=$output
  # whoever asks this dcb dies at once: half of the settings are made by then
  lab_ssh alpha "printf '#!/bin/sh\nkill -KILL \$PPID\n' >/usr/local/sbin/dcb && chmod +x /usr/local/sbin/dcb"
  lab_playbook 2 "$TOP/playbooks/tune.yml" --limit alpha -e "$WANTED"
  run_on alpha 'rm /usr/local/sbin/dcb; cat /sys/class/net/eth1/mtu; ls /var/lib/perch/host_tune/kept | wc -l'
  assert_line --index 0 2500
  [ "${lines[1]}" -ge 5 ] || fail "${lines[1]} values were kept"
  lab_playbook 0 "$TOP/playbooks/revert.yml" --limit alpha
  values
  assert_output "$untuned"
  run_on alpha 'ls -d /var/lib/perch/host_tune /etc/perch 2>&1 | grep -c "No such file"'
  assert_output 2
}
