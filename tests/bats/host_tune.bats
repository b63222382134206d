#!/usr/bin/env bats
# The module host_setting, on a made-up host (tune.bash): what is set, kept, put back, and applied at boot. What belongs to a NIC
# is in host_tune_nic.bats.

load helpers
load tune

setup() { tune_setup; }
teardown() { common_teardown; }

@test "everything is set, read back, and applied again at boot; a second tuning changes nothing; reverting leaves no byte" {
  dcb_nic
  local before
  before=$(everything)
  tune "$ALL"
  assert_json answer.json .changed
  assert_equal "$(value /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages)" 16
  assert_equal "$(value /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor)" performance
  # the state at the limit stays, the deeper one is off on each processor
  assert_equal "$(value /sys/devices/system/cpu/cpu0/cpuidle/state1/disable)/$(value /sys/devices/system/cpu/cpu0/cpuidle/state2/disable)" 0/1
  assert_equal "$(value /sys/devices/system/cpu/cpu1/cpuidle/state2/disable)" 1
  assert_equal "$(sed 1d root/etc/perch/host_tune.d/idle_latency_us | head -n 1)" \
    "$(printf 'write\t/sys/devices/system/cpu/cpu0/cpuidle/state2/disable\t1')"
  assert_equal "$(value /sys/class/net/eth1/mtu)" 9000
  assert_equal "$(value /proc/irq/31/smp_affinity_list)" 1
  assert_json nics/eth1.ethtool '.now == {RX: 8192, TX: 1024} and .adaptive == {rx: "off", tx: "on"} and .["rx-usecs"] == "0" and .["rx-frames"] == "128"'
  assert_equal "$(<nics/0000:03:00.0.control)" 5936
  assert_equal "$(cat root/sys/class/net/eth1/device/link/{l1,l1_1,l1_2,l0s}_aspm root/sys/class/net/eth1/device/link/{l1_1_pcipm,l1_2_pcipm,clkpm} | xargs)" "0 0 0 0 0 0 1"
  assert_equal "$(<nics/0000:00:01.0.acs)" 0011 # source validation and forwarding stay
  assert_equal "$(sed 1d root/etc/perch/host_tune.d/pcie_acs)" "$(printf 'wait\t/sys/class/net/eth1\nrun\tsetpci\t-s\t0000:00:01.0\tECAP_ACS+6.w=0000:000c')"
  assert_equal "$(value /etc/default/irqbalance)" $'# of the site\nIRQBALANCE_ARGS="--policyscript=/x --banmod=mlx5_core"'
  assert_json nics/eth1.dcb '.buffer.prio_buffer[3] == 1 and .buffer.buffer_size[:3] == [65408, 196608, 0]'
  [ -d root/sys/module/nvidia_peermem ] || fail "nvidia_peermem was not loaded"
  assert_equal "$(sed 1d root/etc/perch/host_tune.d/peermem)" "$(printf 'run\tmodprobe\tnvidia-peermem')"
  # a substate before the state that it needs, so that a revert begins with the state
  assert_equal "$(sed 1d root/etc/perch/host_tune.d/pcie_aspm | head -n 5 | cut -f 2)" \
    "$(printf '/sys/class/net/eth1/device/link/%s\n' l1_2_pcipm l1_1_pcipm l1_2_aspm l1_1_aspm l1_aspm)"
  assert_equal "$(value /sys/kernel/debug/mlx5/0000:03:00.0/cc_params/rp_ai_rate)/$(value /sys/kernel/debug/mlx5/0000:03:00.0/cc_params/np_cnp_dscp)" 10/46
  assert_equal "$(sed 1d root/etc/perch/host_tune.d/rings)" "$(printf 'wait\t/sys/class/net/eth1\nrun\tethtool\t-G\teth1\trx\t8192')"
  assert_equal "$(value /sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos)" 106
  assert_json nics/eth1.dcb '.pfc.prio_pfc[3] and .app == [[26, 3]] and .ets.tc_bw == [40, 0, 0, 60, 0, 0, 0, 0]'
  grep -qx 'net.ipv4.tcp_rmem = 4096 87380 9000000' root/etc/sysctl.d/90-perch.conf
  grep -qx 'root - memlock unlimited' root/etc/security/limits.d/90-perch.conf
  assert_equal "$(sed 1d root/etc/perch/host_tune.d/mtu)" "$(printf 'write\t/sys/class/net/eth1/mtu\t9000')"
  put /sys/kernel/mm/transparent_hugepage/enabled "always madvise [never]" # as a kernel shows it

  local after
  after=$(everything)
  tune "$ALL"
  assert_json answer.json '.changed == false and .changes == []'
  assert_equal "$(everything)" "$after"

  revert
  put /sys/kernel/mm/transparent_hugepage/enabled "[always] madvise never"
  assert_equal "$(everything)" "$before"
}

@test "check mode names each change with both values, makes nothing, and keeps nothing" {
  dcb_nic
  local before
  before=$(everything)
  call "{settings: $ALL, _ansible_check_mode: true}"
  assert_json answer.json '.changed and .troubles == []'
  assert_json answer.json '.changes | contains(["/sys/class/net/eth1/mtu: 1500 -> 9000", "DSCP-to-priority map of eth1: none -> 26:3"])'
  assert_json answer.json '(.diff.before | contains("/proc/sys/vm/swappiness: 60\n")) and (.diff.after | contains("/proc/sys/vm/swappiness: 10\n"))'
  assert_equal "$(everything)" "$before"
}

@test "a second tuning with other values does not overwrite what was kept: reverting goes back to the host's own" {
  tune '{mtu: 9000}'
  tune '{mtu: 4200}'
  assert_equal "$(value /sys/class/net/eth1/mtu)" 4200
  assert_equal "$(grep -lr /sys/class/net/eth1/mtu root/var/lib/perch/host_tune/kept | wc -l)" 1
  revert
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
}

@test "whole files come back with their bytes, mode and owner, links as links" {
  mkdir -p root/etc/sysctl.d root/etc/security/limits.d
  printf 'old\0bytes without an end' >root/etc/sysctl.d/90-perch.conf
  chmod 600 root/etc/sysctl.d/90-perch.conf
  ln -s /nowhere root/etc/security/limits.d/90-perch.conf
  local before
  before=$(everything)
  tune '{memlock: 1024, sysctls: {"vm.swappiness": 1}}'
  [ ! -L root/etc/security/limits.d/90-perch.conf ] || fail "written through the link"
  revert
  assert_equal "$(everything)" "$before"
}

@test "a value that cannot be written stays recorded, the others are set, and reverting takes all back" {
  local before
  before=$(everything)
  mkdir root/sys/devices/system/cpu/cpu2 root/sys/devices/system/cpu/cpu2/cpufreq
  ln -s /proc/version root/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor
  call '{settings: {governor: "performance", mtu: 9000}}'
  trouble "cpu2/cpufreq/scaling_governor cannot be set to performance: "
  assert_equal "$(value /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor)/$(value /sys/class/net/eth1/mtu)" performance/9000
  rm -r root/sys/devices/system/cpu/cpu2
  call '{state: "reverted"}'
  trouble "cpu2/cpufreq/scaling_governor does not exist"
  assert_equal "$(value /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor)/$(value /sys/class/net/eth1/mtu)" schedutil/1500
  # what could not be put back stays kept, and nothing else does
  assert_equal "$(find root/var/lib/perch -name '0*.json' | wc -l)" 1
  rm root/var/lib/perch/host_tune/kept/0*.json
  revert
  assert_equal "$(everything)" "$before"
}

@test "the old value is on the disk before the first change: a program killed in the write has recorded it" {
  mkfifo fifo
  ln -sf "$PWD/fifo" root/proc/sys/vm/swappiness
  # reading the pipe gives 60, then the write to it blocks, where the program is killed
  (echo 60 >fifo) 3>&- &
  "$TOP/.venv/bin/python" "$TOP/tests/bats/tune/host_setting" "$(jq -cn --arg root "$PWD/root" \
    '{root: $root, settings: {sysctls: {"vm.swappiness": 10}}}')" >/dev/null 2>&1 3>&- &
  local pid=$!
  wait_until grep -rqs --include='0*.json' '"old": "60"' root/var/lib/perch/host_tune/kept
  kill -KILL "$pid"
  rm root/proc/sys/vm/swappiness
  put /proc/sys/vm/swappiness 10
  revert
  assert_equal "$(value /proc/sys/vm/swappiness)" 60
  [ ! -e root/var/lib/perch ] || fail "left: $(find root/var/lib/perch)"
}

@test "a kernel that takes less than it was given is named: huge pages that it does not have, PFC that a driver ignores" {
  dcb_nic && touch nics/eth1.dcb.deaf
  # the count of the node does not follow that of the host here
  call '{settings: {hugepages_2m: 64, pfc_priorities: [3]}}'
  trouble "the kernel gave 4 of 64 huge pages of 2 MiB"
  trouble "hugepagesz=2M hugepages=64"
  trouble "priority flow control of eth1 was set to priorities 3, and is priorities none"
  call '{state: "reverted"}'
  assert_json answer.json '.troubles == []'
}

@test "an old value that the host does not take back is named, and stays kept for another try" {
  dcb_nic
  tune '{pfc_priorities: [3], mtu: 9000}'
  touch nics/eth1.dcb.deaf
  call '{state: "reverted"}'
  trouble "priority flow control of eth1 was set to priorities none, and is priorities 3"
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
  assert_equal "$(find root/var/lib/perch -name '0*.json' | wc -l)" 1
  rm nics/eth1.dcb.deaf
  revert
  assert_json nics/eth1.dcb '.pfc.prio_pfc[3] == false'
  [ ! -e root/var/lib/perch ] || fail "left: $(find root/var/lib/perch)"
}

@test "a read-only /proc/sys, as in a container, is named; what can be written is" {
  # shellcheck disable=SC2016
  WITHIN=(unshare -rm bash -c 'mount --bind root/proc/sys root/proc/sys && mount -o remount,bind,ro root/proc/sys && exec "$@"' bash)
  call '{settings: {sysctls: {"vm.swappiness": 10}, mtu: 9000}}'
  trouble "/proc/sys/vm/swappiness cannot be set to 10: it is read-only. To do: in a container the host itself must be tuned"
  assert_equal "$(value /proc/sys/vm/swappiness) $(value /sys/class/net/eth1/mtu)" "60 9000"
  WITHIN=()
  revert
}

@test "without root nothing is read or set, and what to do is said" {
  # shellcheck disable=SC2034  # call() of tune.bash reads it
  WITHIN=(unshare -U)
  call '{root: "", settings: {mtu: 9000}}'
  assert_json answer.json '.changed == false and .troubles == ["settings can be read and kept by root alone. To do: set ansible_become: true"]'
}

@test "what this host does not have is named, with what to do" {
  rm -r root/sys/devices/system/node/node0/hugepages/hugepages-1048576kB root/sys/kernel/mm/hugepages/hugepages-1048576kB
  rm -r root/sys/devices/system/cpu/cpu*/cpuidle
  rm root/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor root/etc/pam.d/sshd
  call '{settings: {hugepages_1g: 2, hugepages_2m: {"7": 3}, governor: "performance", idle_latency_us: 2, memlock: "unlimited", ecn_priorities: [3], pfc_priorities: [3],
    tuned_profile: "network-latency", sysctls: {"net.no.such": 1, "../../../etc/passwd": 1}}}'
  trouble "this machine has no huge pages of 1 GiB"
  trouble "this machine has no NUMA node 7"
  trouble "the processors have no governor"
  trouble "the processors have no idle states"
  trouble "no file of /etc/pam.d asks pam_limits.so"
  trouble "eth1 has no switches for ECN"
  trouble "eth1 has no priority settings that can be reached (dcb pfc show dev eth1: Attribute read: Operation not supported"
  trouble "tuned-adm is not installed"
  trouble "there is no sysctl net.no.such"
  assert_json answer.json '[.troubles[] | select(contains("passwd"))] | length == 1'
  assert_json answer.json '[.troubles[] | test("\\. To do: .+")] | all'
}

@test "programs that would undo a setting are named, and it is not made: irqbalance, tuned, a later file of sysctl" {
  put /proc/70/comm irqbalance
  put /proc/71/comm tuned
  put /etc/sysctl.d/99-site.conf "vm.swappiness=30"
  call '{settings: {irq_affinity: "local", governor: "performance", sysctls: {"vm.swappiness": 10}}}'
  trouble "systemctl disable --now irqbalance, or set host_tune_irqbalance_ban"
  trouble "tuned runs"
  trouble "/etc/sysctl.d/99-site.conf sets vm.swappiness to 30 at boot"
  assert_equal "$(value /proc/irq/30/smp_affinity_list)/$(value /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor)" 0/schedutil
}

@test "what did not happen is not told as a change: a store that cannot be made, a driver that takes nothing" {
  rm -r root/var/lib && touch root/var/lib
  call '{settings: {mtu: 9000, sysctls: {"vm.swappiness": 10}}}'
  assert_json answer.json '.changed == false and .changes == [] and (.troubles | length) == 1'
  trouble "old values cannot be kept in /var/lib/perch/host_tune/kept: Not a directory"
  rm root/var/lib && mkdir root/var/lib
  dcb_nic
  tune '{pfc_priorities: [3]}'
  touch nics/eth1.dcb.deaf
  call '{state: "reverted"}'
  assert_json answer.json '[.changes[] | contains("priority flow control")] | any | not'
}

@test "a store that somebody else may have written is not trusted: a link, another mode, a file in its place" {
  tune '{mtu: 9000}'
  local store=root/var/lib/perch/host_tune
  chmod 755 $store/kept
  call '{state: "reverted"}'
  trouble "is not a directory of root's own with mode 0700"
  chmod 700 $store/kept && mv $store/kept elsewhere && ln -s "$PWD/elsewhere" $store/kept
  call '{state: "reverted"}'
  trouble "/var/lib/perch/host_tune/kept is not a directory of root's own"
  call '{settings: {mtu: 4200}}'
  trouble "/var/lib/perch/host_tune/kept is not a directory of root's own"
  rm $store/kept && touch $store/kept
  call '{settings: {mtu: 4200}}'
  assert_json answer.json '.changed == false and (.troubles | length) == 1'
  assert_equal "$(value /sys/class/net/eth1/mtu)" 9000
}

@test "a kept value names only places that its kind writes, and its path says whose interface it is" {
  tune '{mtu: 9000}'
  put /proc/sys/net/ipv4/conf/eth0/rp_filter 1
  local kept=root/var/lib/perch/host_tune/kept spec n=100
  for spec in '"kind": "text", "path": "/sys/class/net/eth0/mtu"' '"kind": "text", "path": "/sys/devices/x/net/eth0/mtu", "netdev": "eth1"' \
    '"kind": "text", "path": "/proc/sys/net/ipv4/conf/eth0/rp_filter"' '"kind": "text", "path": "/etc/shadow"' '"kind": "text", "path": "/sys/../etc/shadow"' \
    '"kind": "file", "path": "/etc/cron.d/x"' '"kind": "directory", "path": "/etc/cron.d"' '"kind": "traffic_class", "port": 1, "device": "../x"'; do
    echo '{"schema": "perch.host_tune_kept/1", "setting": "x", "spec": {'"$spec"'}, "old": "1"}' >$kept/000$n-bad.json
    n=$((n + 1))
  done
  call '{state: "reverted"}'
  assert_json answer.json '(.troubles | length) == 8 and ([.troubles[] | select(contains("eth0 carries Ansible"))] | length) == 3
    and ([.troubles[] | select(contains("is not a place of a"))] | length) == 5'
  assert_equal "$(value /sys/class/net/eth0/mtu) $(value /sys/class/net/eth1/mtu)" "1500 1500"
  [ ! -e root/etc/shadow ] && [ ! -e root/etc/cron.d ] || fail "written elsewhere"
}

@test "a tuning that cannot begin anything leaves no store" {
  local before
  before=$(everything)
  call '{settings: {mtu: 9000}, devices: ["mlx5_9"]}'
  trouble "there is no RDMA device mlx5_9"
  assert_equal "$(everything)" "$before"
}

@test "kept values that are damaged are named and left; the others are put back" {
  tune '{mtu: 9000, sysctls: {"vm.swappiness": 10}}'
  local kept=root/var/lib/perch/host_tune/kept
  truncate -s 20 "$(grep -l swappiness $kept/*)"
  : >$kept/000090-empty.json
  head -c 2000 /dev/urandom >$kept/000091-binary.json
  echo '{"schema": "perch.host_tune_kept/1", "setting": "x", "spec": {"kind": "shell", "path": "/"}, "old": 1}' >$kept/000092-kind.json
  echo '{"schema": "perch.host_tune_kept/1", "setting": "x", "spec": {"kind": "file"}, "old": 1}' >$kept/000093-spec.json
  call '{state: "reverted"}'
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
  trouble "000090-empty.json holds no kept value"
  trouble "a value of the kind shell"
  assert_json answer.json '(.troubles | length) == 5'
  assert_equal "$(find $kept -name '0*' | wc -l)" 5
}

@test "two programs do not tune one host at once" {
  mkdir -p root/var/lib/perch/host_tune/kept
  chmod 700 root/var/lib/perch/host_tune{,/kept}
  exec 9<root/var/lib/perch/host_tune/kept
  flock 9
  call '{settings: {mtu: 9000}}'
  trouble "another program tunes this host"
  # the lock comes before the reading: also where nothing is to be changed
  call '{settings: {transparent_hugepages: "always"}}'
  exec 9<&-
  trouble "another program tunes this host"
  assert_equal "$(value /sys/class/net/eth1/mtu)" 1500
}

@test "what is applied at boot: the script writes values and runs programs word for word, and names what failed" {
  tune '{mtu: 9000}'
  sed "s|/etc/perch/host_tune.d|$PWD/lines|; s/SECONDS + 30/SECONDS + 1/" root/etc/perch/perch-tune >script
  mkdir lines
  echo 1 >target
  printf '# a comment\nwrite\t%s/target\tnew $(touch evil)\nrun\ttouch\tmade;touch evil\n' "$PWD" >lines/a
  printf 'write\t/no/such/file\t1\nnonsense\trm\n' >lines/b
  run_expecting 1 bash script
  assert_output --partial "perch-tune: b: not applied: write /no/such/file 1"
  assert_output --partial "perch-tune: b: not applied: nonsense rm"
  refute_output --partial "perch-tune: a:"
  assert_equal "$(cat target)" 'new $(touch evil)'
  [ -e "made;touch evil" ] && [ ! -e evil ] || fail "$(ls)"
  shellcheck --shell=bash script
}

# tuned-adm with the words of tuned's own (tuned/admin/admin.py); its state is the two files that tuned keeps
tuned_host() {
  mkdir -p root/etc/tuned
  printf 'balanced\n' >root/etc/tuned/active_profile
  printf 'auto\n' >root/etc/tuned/profile_mode
  cat >bin/tuned-adm <<'SH'
#!/bin/bash
cd root/etc/tuned || exit
case $1 in
  active) if [ -s active_profile ]; then echo "Current active profile: $(<active_profile)"; else echo "No current active profile."; fi ;;
  profile) [ "$2" != no-such ] || { echo "Requested profile 'no-such' doesn't exist." >&2 && exit 1; }
    echo "${*:2}" >active_profile && echo manual >profile_mode ;;
  auto_profile) echo balanced >active_profile && echo auto >profile_mode ;;
  off) : >active_profile ;;
esac
SH
  chmod +x bin/tuned-adm
}

@test "tuned's profile is set and put back, with its mode; one that tuned does not know is named" {
  tuned_host
  local before
  before=$(everything)
  tune '{tuned_profile: "network-latency"}'
  assert_json answer.json '.changes[0] == "tuned'"'"'s profile: balanced (auto) -> network-latency (manual)"'
  tune '{tuned_profile: "network-latency"}'
  assert_json answer.json '.changed == false'
  revert
  assert_equal "$(everything)" "$before"
  call '{settings: {tuned_profile: "no-such"}}'
  trouble "Requested profile 'no-such' doesn't exist."
  printf '#!/bin/sh\necho Cannot talk to TuneD daemon via DBus\n' >bin/tuned-adm
  call '{settings: {tuned_profile: "network-latency"}}'
  trouble "tuned-adm active says: Cannot talk to TuneD daemon"
}
