#!/usr/bin/env bats
# The lab's machines are what the tests on them take them for. Everything is asked of the guests' own kernels and tools.

load helpers

setup_file() { lab_ready; }
setup() { common_setup; }
teardown() { common_teardown; }

# Path of the RDMA port's files in a guest
PORT_DIR=/sys/class/infiniband/rxe0/ports/1

@test "both machines run systemd, each under its own name, and no unit has failed" {
  local host
  for host in alpha beta; do
    run_on "$host" 'hostname; cat /proc/1/comm; systemctl is-system-running --wait'
    assert_output "$host
systemd
running"
  done
}

@test "a guest's clock runs as the host's: within 5 % over five seconds" {
  local host first second from to
  for host in alpha beta; do
    first=$(lab_ssh "$host" cat /proc/uptime) from=${EPOCHREALTIME/./}
    sleep 5
    second=$(lab_ssh "$host" cat /proc/uptime) to=${EPOCHREALTIME/./}
    # the answers' own way, some 0.1 s each under load, is a part of the difference
    run awk -v guest="$(awk "BEGIN { print ${second%% *} - ${first%% *} }")" -v host="$((to - from))" \
      'BEGIN { ratio = guest / (host / 1e6); print ratio; exit !(ratio > 0.9 && ratio < 1.1) }'
    assert_success
    # what `up` measured over a standing connection is the judgement itself
    run cat "$TOP/runs/.lab/$PERCH_LAB/$host.clock"
    [ "$output" -ge 950 ] && [ "$output" -le 1050 ] || fail "clock rate $output per thousand"
  done
}

@test "a guest's clock shows the host's time: within half a second" {
  local host before guest after
  for host in alpha beta; do
    before=${EPOCHREALTIME/./}
    guest=$(lab_ssh "$host" 'echo "${EPOCHREALTIME/./}"')
    after=${EPOCHREALTIME/./}
    [ $((before - guest)) -lt 500000 ] && [ $((guest - after)) -lt 500000 ] ||
      fail "$host: the guest's $guest us came between $before us and $after us"
  done
}

@test "rxe0 is active at path MTU 4096, and its second GID is RoCE v2 of the lab address" {
  run_on alpha "cat $PORT_DIR/state $PORT_DIR/gids/1 $PORT_DIR/gid_attrs/types/1 $PORT_DIR/gid_attrs/ndevs/1; ibv_devinfo -d rxe0"
  assert_line --index 0 "4: ACTIVE"
  assert_line --index 1 "0000:0000:0000:0000:0000:ffff:c000:0201"
  assert_line --index 2 "RoCE v2"
  assert_line --index 3 "eth1"
  assert_line --regexp 'active_mtu:[[:blank:]]+4096 \(5\)'
  run_on beta "cat $PORT_DIR/gids/1"
  assert_output "0000:0000:0000:0000:0000:ffff:c000:0202"
}

@test "verbs traffic between the machines is payload-checked and moves rxe0's counters on both" {
  local host sent received index=0
  local -a before=()
  for host in alpha beta; do before+=("$(lab_ssh "$host" cat $PORT_DIR/hw_counters/{sent,rcvd}_pkts | tr '\n' ' ')"); done
  lab_ssh beta 'systemd-run --quiet --collect --unit pingpong ibv_rc_pingpong -d rxe0 -g 1 -e -c -n 200 -s 8192'
  run_on beta 'for i in $(seq 100); do ss -ltnH "sport = :18515" | grep -q . && exit; sleep 0.1; done; exit 1'
  LIMIT=120 run_on alpha "timeout 60 ibv_rc_pingpong -d rxe0 -g 1 -e -c -n 200 -s 8192 $BETA"
  assert_output --partial "200 iters in"
  # 8 KiB are two packets of 4 KiB: 400 each way at least
  for host in alpha beta; do
    run_on "$host" cat $PORT_DIR/hw_counters/{sent,rcvd}_pkts
    read -r sent received <<<"${before[index]}"
    [ $((lines[0] - sent)) -ge 400 ] || fail "$host sent $((lines[0] - sent)) packets"
    [ $((lines[1] - received)) -ge 400 ] || fail "$host received $((lines[1] - received)) packets"
    index=$((index + 1))
  done
}

@test "frames of 4200 bytes pass between the machines, over IPv4 and IPv6, and nothing passes to the outside" {
  # 28 and 48 bytes of headers
  run_on alpha "ping -c 3 -i 0.2 -W 5 -M do -s 4172 $BETA && ping -6 -c 3 -i 0.2 -W 5 -M do -s 4152 2001:db8::2"
  assert_output --partial "0% packet loss"
  run_on 2 alpha "ip route get 198.18.0.1"
  assert_output --partial "unreachable"
  # the emulated gateway, which would stand for the host, answers nobody
  run_on alpha "timeout 5 bash -c '</dev/tcp/198.51.100.2/22' 2>/dev/null || echo closed"
  assert_output "closed"
}

@test "the governor of acpi-cpufreq can be switched, and the frequency wanted follows" {
  local cpu=/sys/devices/system/cpu/cpu0/cpufreq
  run_on alpha "cat $cpu/scaling_driver; echo powersave >$cpu/scaling_governor; cat $cpu/scaling_governor $cpu/scaling_cur_freq
    cpupower frequency-set --governor performance >/dev/null; cat $cpu/scaling_governor $cpu/scaling_cur_freq"
  assert_output "acpi-cpufreq
powersave
1200000
performance
2600000"
}

@test "2 MiB huge pages are there and can be mapped" {
  run_on alpha 'grep -E "^HugePages_(Total|Free)" /proc/meminfo | tr -s " "; python3 -c "
import mmap
pages = mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)  # MAP_HUGETLB
pages[0] = 7
print(open(\"/proc/meminfo\").read().split(\"HugePages_Free:\")[1].split()[0])"'
  assert_output "HugePages_Total: 64
HugePages_Free: 64
63"
}

@test "dcb and ethtool read and write priority flow control, classes, applications and pause" {
  run_on alpha 'dcb pfc set dev eth1 prio-pfc all:off 3:on && dcb -j pfc show dev eth1'
  assert_output --partial '"prio_pfc":[false,false,false,true,false,false,false,false]'
  run_on alpha 'dcb ets set dev eth1 tc-tsa all:ets tc-bw all:0 0:50 3:50 && dcb -j ets show dev eth1'
  assert_output --partial '"tc_bw":[50,0,0,50,0,0,0,0]'
  run_on alpha 'dcb app replace dev eth1 dscp-prio 26:3 && dcb -N -j app show dev eth1 && dcb app del dev eth1 dscp-prio 26:3'
  assert_output --partial '"dscp_prio":[[26,3' # iproute2 6.15 adds a blank of its own to the pair
  run_on alpha 'ethtool -A eth1 autoneg off rx on tx on && ethtool -a eth1'
  assert_line --regexp '^RX:[[:blank:]]+on'
  run_on alpha 'ethtool -A eth1 rx off tx off; dcb pfc set dev eth1 prio-pfc all:off && dcb -j pfc show dev eth1'
  assert_output --partial '"prio_pfc":[false,false,false,false,false,false,false,false]'
}

@test "netem cuts the lab network and leaves management alone; restarting perch-lab gives everything back" {
  run_on 1 alpha "tc qdisc add dev eth1 root netem loss 100% && ping -c 2 -i 0.2 -W 1 $BETA"
  assert_output --partial "100% packet loss"
  run_on alpha "rdma link delete rxe0 && ip link set eth1 down mtu 1500 && ls /sys/class/infiniband"
  assert_output ""
  LIMIT=120 run_on alpha "systemctl restart perch-lab && cat $PORT_DIR/state $PORT_DIR/gids/1 /sys/class/net/eth1/mtu && ping -c 2 -i 0.2 -W 5 $BETA"
  assert_line --index 0 "4: ACTIVE"
  assert_line --index 1 "0000:0000:0000:0000:0000:ffff:c000:0201"
  assert_line --index 2 "4200"
  assert_output --partial "0% packet loss"
}

@test "Ansible reaches both as an ordinary user, who becomes root" {
  LIMIT=120 run_expecting 0 env ANSIBLE_CONFIG="$TOP/ansible.cfg" LC_ALL=C.UTF-8 \
    ansible -i "$TOP/inventories/lab" all --one-line --module-name ansible.builtin.command \
    --args 'sh -c "id -un; logname 2>/dev/null || echo $SUDO_USER; hostname"'
  assert_line --regexp '^alpha .*\(stdout\) root\\nperch\\nalpha$'
  assert_line --regexp '^beta .*\(stdout\) root\\nperch\\nbeta$'
}

@test "the keys are this lab's own, and none is in the image" {
  run_on alpha 'cat /etc/ssh/perch-lab-keys'
  assert_output "$(<"$TOP/runs/.lab/$PERCH_LAB/key.pub")"
  local image
  image=$("$TOP/tests/lab/image" --path)
  run debugfs -R "ls -p /etc/ssh" "$image/disk"
  refute_output --partial "perch-lab-key"
  refute_output --partial "ssh_host"
  assert_output --partial "sshd_config"
}
