#!/usr/bin/env bats
# The role engine on bare systems, where it must install packages first: chroots of the Debian releases that are supported,
# with Python and nothing else, as the lab's machines reach no package index. Needs root and a Debian mirror in reach.

load ../helpers

setup() {
  common_setup
  [ "$(id -u)" -eq 0 ] || skip "only root can make a chroot and enter it"
}
teardown() { common_teardown; }

# bare SUITE [SOURCES]: the system in ./root, which Ansible takes for a host behind ssh. The stand-in for ssh runs its last argument
# in the chroot, and its mounts end with it.
bare() {
  mmdebstrap --variant=minbase --include=python3,apt --dpkgopt=force-unsafe-io --aptopt='Acquire::Languages "none"' "$1" root "${@:2}" >mmdebstrap.log 2>&1 ||
    fail "mmdebstrap: $(tail -n 5 mmdebstrap.log)"
  cat >ssh <<SH
#!/bin/bash
exec unshare --mount --propagation private env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c '
  mount -t proc proc "\$0/proc" && mount --rbind /dev "\$0/dev" && exec chroot "\$0" /bin/sh -c "\$1"' "$PWD/root" "\${!#}"
SH
  chmod +x ssh
  cat >hosts.yml <<YAML
all:
  hosts:
    bare: {ansible_host: 192.0.2.9}
  vars:
    ansible_ssh_executable: $PWD/ssh
    ansible_ssh_transfer_method: piped
    ansible_python_interpreter: /usr/bin/python3
    engine_source: $PWD/source
    engine_make_variables: [CFLAGS=-O0]
YAML
  cp -r "$TOP/engine" source
  rm -rf source/build*
  printf '%s\n' '- name: Bring the engine' '  hosts: all' '  gather_facts: false' '  roles: [engine]' >site.yml
}

play() {
  local expected=$1
  shift
  LIMIT=600 run_expecting "$expected" env ANSIBLE_CONFIG="$TOP/ansible.cfg" ANSIBLE_ROLES_PATH="$TOP/roles" LC_ALL=C.UTF-8 \
    ansible-playbook -i hosts.yml site.yml "$@"
}

packages() { chroot root dpkg-query --show | sort; }

# on_bare SUITE [SOURCES]: check mode, the first run, the second
on_bare() {
  local before
  bare "$@"
  before=$(packages)
  play 0 --check
  assert_output --regexp "bare .*changed=2 " # the packages and the engine
  assert_equal "$(packages)" "$before"
  [ ! -e root/opt/perch ] || fail "check mode made something"

  play 0
  run_expecting 0 chroot root /opt/perch/bin/perch --version
  assert_line --regexp "^backends: tcp.* ofi"
  run_expecting 0 chroot root sh -ec 'for program in jq iperf3 iperf ss pgrep fi_info ib_send_lat ibv_devinfo smpquery ethtool
    do command -v "$program"; done'

  play 0
  assert_output --regexp "bare .*changed=0 "
  measured
}

# The system as two hosts over loopback: its agents walk a plan, and what they leave is judged.
measured() {
  cat >suite.yml <<'YAML'
name: tiny
title: A suite of seconds
tests:
  - {name: tcp-latency, title: TCP latency, tool: perch, backend: tcp, kind: latency, params: {size: 64, duration: 200ms}}
  - {name: iperf3, title: iperf3, tool: iperf3, kind: bandwidth, params: {size: 128K, duration: 1s}}
YAML
  sed 's/^    bare: .*/    alpha: {ansible_host: 192.0.2.9, perch_address: 127.0.0.1}\n    beta: {ansible_host: 192.0.2.8, perch_address: 127.0.0.2}/' \
    hosts.yml >two.yml
  LIMIT=600 run_expecting 0 env ANSIBLE_CONFIG="$TOP/ansible.cfg" LC_ALL=C.UTF-8 ansible-playbook -i two.yml "$TOP/playbooks/site.yml" \
    -e plan_suite_file="$PWD/suite.yml" -e plan_runs_dir="$PWD/runs" -e plan_limits=local -e engine_install=false \
    -e "{\"perch_fabric\": \"loopback\", \"perch_backends\": [\"tcp\"], \"perch_port\": $(free_port), \"perch_iperf3_port\": $(free_port)}" \
    -e "{\"agent_install_dir\": \"/opt/perch/{{ inventory_hostname }}\", \"agent_engine\": \"/opt/perch/bin/perch\"}"
  assert_json runs/latest/verdict.json '.verdict == "PASS" and .coverage.measured == 2'
}

@test "a bare Debian 12 gets packages and engine in one run" { on_bare bookworm; }

@test "a bare Debian 13 gets packages and engine in one run" { on_bare trixie; }

# UBUNTU_MIRROR: where archive.ubuntu.com is out of reach. Its keys are not on Debian.
@test "a bare Ubuntu 24.04 gets packages and engine in one run" {
  on_bare noble "deb [trusted=yes] ${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu} noble main universe"
}

@test "packages that cannot be installed are named, with what to do" {
  bare trixie
  : >root/etc/apt/sources.list
  rm -rf root/etc/apt/sources.list.d root/var/lib/apt/lists/*
  play 2
  assert_output --partial "these packages could not be installed: gcc"
  assert_output --partial "engine_packages_install"
}
