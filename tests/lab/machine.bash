# shellcheck shell=bash disable=SC2154  # IMAGE, ACCELERATOR: lab sets them
# The virtual machine itself: what it is made of, how it is started, and how KVM is tried.

# MiB of each machine: enough to compile the engine beside 128 MiB of huge pages. One huge page of 1 GiB needs 6144.
: "${PERCH_LAB_MEMORY:=1536}"
# More words for the kernel's command line, for tests of machines that do not come up.
: "${PERCH_LAB_APPEND:=}"
# auto, kvm or tcg
: "${PERCH_LAB_ACCEL:=auto}"
# The first port tried for the forwards of ssh on 127.0.0.1.
: "${PERCH_LAB_PORT:=22100}"

# Seconds that the try of KVM may take: where KVM works, the kernel is up in one or two.
readonly PROBE_LIMIT=10
# What the try of KVM and a machine have in common.
readonly QEMU_BASE=(qemu-system-x86_64 -machine q35 -nodefaults -no-user-config -display none -monitor none)

# Sets ACCELERATOR to kvm where a machine boots with it: a /dev/kvm that opens may still run no guest. Remembered for
# this image until the host boots again.
choose_accelerator() {
  local boot memory console=$LAB_STATE/probe.console
  boot=$(</proc/sys/kernel/random/boot_id)
  memory=$IMAGE/accelerator-$boot
  if [ "$PERCH_LAB_ACCEL" != auto ]; then
    ACCELERATOR=$PERCH_LAB_ACCEL
    echo "$ACCELERATOR" >accelerator
    return
  fi
  if [ ! -e "$memory" ]; then
    rm -f "$IMAGE"/accelerator-*
    ACCELERATOR=tcg
    if [ -r /dev/kvm ] && [ -w /dev/kvm ]; then
      timeout --kill-after=2 "$PROBE_LIMIT" "${QEMU_BASE[@]}" -accel kvm -cpu host -m 512 -no-reboot \
        -kernel "$IMAGE/vmlinuz" -initrd "$IMAGE/initrd" -append "console=ttyS0 quiet perch-lab.probe" \
        -serial "file:$console" </dev/null >/dev/null 2>&1 || true
      if grep -q "perch-lab: probe" "$console" 2>/dev/null; then ACCELERATOR=kvm; fi
    fi
    echo "$ACCELERATOR" >"$memory"
  fi
  ACCELERATOR=$(<"$memory")
  echo "$ACCELERATOR" >accelerator
}

# What is laid over the image at each start: the settings of the lab's machines, and this machine's own name, addresses
# and keys. As a small tar file, which the ramdisk reads from the firmware's configuration.
make_seed() {
  local host=$1 number=$2 guest=$LAB_TOOLS/guest compiled=/usr/local/lib/perch-lab/tests/compiled tree unit
  tree=$(mktemp -d)
  install -D -m 755 "$guest/setup" "$tree/usr/local/lib/perch-lab/setup"
  install -D -m 644 "$guest/perch-lab.service" "$tree/etc/systemd/system/perch-lab.service"
  install -D -m 644 "$guest/sshd.conf" "$tree/etc/ssh/sshd_config.d/perch-lab.conf"
  install -D -m 644 "$guest/journald.conf" "$tree/etc/systemd/journald.conf.d/perch-lab.conf"
  install -m 644 "$guest/hosts" "$tree/etc/hosts"
  # an emulated processor needs as long to compile a module of Ansible's as to run it
  install -D -m 644 "$TOP/tests/compiled/sitecustomize.py" "$tree$compiled/perch_compiled.py"
  install -D -m 644 /dev/stdin "$tree/usr/lib/python3/dist-packages/perch_compiled.pth" <<<"$compiled"$'\nimport perch_compiled'
  mkdir "$tree/etc/systemd/system/multi-user.target.wants"
  ln -s ../perch-lab.service "$tree/etc/systemd/system/multi-user.target.wants/perch-lab.service"
  while read -r unit; do ln -s /dev/null "$tree/etc/systemd/system/$unit"; done \
    < <(sed 's/[[:blank:]]*#.*//; /^$/d' "$guest/masked-units.txt")

  echo "$host" >"$tree/etc/hostname"
  sha256sum <<<"$host $(<key.pub)" | cut -c 1-32 >"$tree/etc/machine-id"
  printf 'LAB_ADDRESS=192.0.2.%d/24\nLAB_ADDRESS6=2001:db8::%d/64\nRAIL_ADDRESS=203.0.113.%d/24\nMANAGEMENT_ADDRESS=198.51.100.15/24\n' \
    "$number" "$number" "$number" >"$tree/etc/perch-lab"
  chmod 644 "$tree"/etc/{hostname,machine-id,perch-lab}
  install -m 644 key.pub "$tree/etc/ssh/perch-lab-keys"
  install -m 600 host-key "$tree/etc/ssh/perch-lab-host-key"
  # directories keep the image's owners and modes
  (cd "$tree" && find . ! -type d -print0 | tar --create --gzip --null --files-from=- --owner=0 --group=0) >"$host.seed"
  rm -r "$tree"
}

# machine_argv HOST NUMBER PORT: sets MACHINE to QEMU's command line. The lab network and that of the second rail are
# datagrams between two unix sockets (over TCP they stall); the management network leads nowhere but to this forward of ssh.
machine_argv() {
  local host=$1 number=$2 port=$3 peer append mac
  peer=${LAB_HOSTS[$((2 - number))]}
  mac=$(printf '52:54:00:77:%%02x:%02x' "$number")
  append="console=ttyS0 quiet loglevel=4 systemd.show_status=auto net.ifnames=0 mitigations=off audit=0 apparmor=0 selinux=0"
  append+=" preempt=full random.trust_cpu=on nowatchdog no_timer_check nokaslr cryptomgr.notests systemd.ssh_auto=no"
  MACHINE=("${QEMU_BASE[@]}" -name "perch-lab-$host")
  if [ "$ACCELERATOR" = kvm ]; then
    MACHINE+=(-accel kvm -cpu host)
  else
    # This processor's model is one that acpi-cpufreq takes. QEMU 7.2 moves a byte at a time where a guest trusts in
    # fast strings (erms, fsrm), and translates a program again where it lies at another address (norandmaps).
    MACHINE+=(-accel "tcg,thread=multi,tb-size=512" -cpu "max,vendor=GenuineIntel,family=6,model=85,stepping=4,-erms,-fsrm")
    append+=" norandmaps tsc=reliable tsc_early_khz=${PERCH_LAB_TSC_KHZ:-$(tsc_khz)}"
  fi
  # shellcheck disable=SC2054,SC2059  # the commas are QEMU's; the format was made above
  MACHINE+=(-smp 1 -m "$PERCH_LAB_MEMORY" -acpitable "file=$IMAGE/cpufreq.aml"
    -kernel "$IMAGE/vmlinuz" -initrd "$IMAGE/initrd" -append "$append $PERCH_LAB_APPEND"
    -fw_cfg "name=opt/perch-lab/seed,file=$host.seed"
    -drive "file=$IMAGE/disk,if=virtio,format=raw,snapshot=on,cache=unsafe"
    -object rng-random,id=random,filename=/dev/urandom -device virtio-rng-pci,rng=random
    -netdev "user,id=management,restrict=on,net=198.51.100.0/24,hostfwd=tcp:127.0.0.1:$port-:22"
    -device "virtio-net-pci,netdev=management,romfile=,mac=$(printf "$mac" 0)"
    -netdev "dgram,id=lab,local.type=unix,local.path=$host.wire,remote.type=unix,remote.path=$peer.wire"
    -device "virtio-net-pci,netdev=lab,romfile=,mac=$(printf "$mac" 1)"
    -netdev "dgram,id=rail,local.type=unix,local.path=$host.rail,remote.type=unix,remote.path=$peer.rail"
    -device "virtio-net-pci,netdev=rail,romfile=,mac=$(printf "$mac" 2)"
    -serial "file:$host.console")
}

# The rate of the host's time stamp counter, measured once a lab.
tsc_khz() {
  if [ ! -e tsc_khz ]; then
    cc -O1 -o tsc_khz.program "$LAB_TOOLS/tsc_khz.c"
    ./tsc_khz.program >tsc_khz.new
    mv tsc_khz.new tsc_khz
  fi
  cat tsc_khz
}

# start_machine HOST: a keeper and its machine; on return it runs, with its forward in place.
start_machine() {
  local host=$1 number=1 port=$PERCH_LAB_PORT end
  [ "$host" = "${LAB_HOSTS[0]}" ] || number=2
  make_seed "$host" "$number"
  for (( ; port < PERCH_LAB_PORT + 100; port++)); do
    if ss -ltnH "sport = :$port" | grep -q .; then continue; fi
    machine_argv "$host" "$number" "$port"
    rm -f "$host".{wire,rail,console,end,keeper,machine,mux}
    # not marked as a test's own process: the lab outlives the test that starts a machine again
    env -u PERCH_TEST_MARK setsid "$LAB_TOOLS/keeper" "$host" "${MACHINE[@]}" </dev/null >"$host.keeper.log" 2>&1 &
    end=$((SECONDS + 20))
    until [ -e "$host.console" ] || [ -e "$host.end" ] || [ "$SECONDS" -ge "$end" ]; do sleep 0.1; done
    if [ -e "$host.console" ]; then
      echo "$port" >"$host.port"
      return 0
    fi
    # the port was taken between the look and the start
    grep -q "host forwarding" "$host.qemu.log" || break
  done
  say "$host: QEMU does not start: $(cat "$host.keeper.log" "$host.qemu.log" 2>/dev/null)"
  return 1
}
