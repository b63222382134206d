#!/usr/bin/env bats
# The role host_tune and its playbooks on this machine's two made-up hosts (trees of files, no root's rights used), from the
# checkout and as a collection. What each setting does to a host is in host_tune.bats and host_tune_nic.bats.

load helpers

setup() {
  common_setup
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1
  local host
  for host in alpha beta; do
    mkdir -p $host/{proc/sys/vm,etc/systemd/system,var/lib,sys/class/net/eth1,sys/class/infiniband/mlx5_0}
    echo 60 >$host/proc/sys/vm/swappiness
    echo 1500 >$host/sys/class/net/eth1/mtu
  done
  cat >hosts.yml <<YAML
all:
  hosts: {alpha: {perch_address: 192.0.2.1}, beta: {perch_address: 192.0.2.2}}
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    perch_fabric: roce
    perch_link_gbit_s: 100
    perch_backends: [verbs]
    perch_devices: [{name: mlx5_0, netdev: eth1}]
    host_tune_protected: [eth0]
    __host_tune_root: "$PWD/{{ inventory_hostname }}"
YAML
}
teardown() { common_teardown; }

# play EXIT PLAYBOOK [OPTION...]; not in an ssh session, whose interface would be protected
play() {
  local expected=$1 playbook=$2
  shift 2
  LIMIT=120 run_expecting "$expected" env -u SSH_CONNECTION ansible-playbook -i hosts.yml "$playbook" "$@"
}
tree() { find alpha beta -printf '%p %m\n' | sort && find alpha beta -type f -exec sha256sum {} + | sort; }

WANTED='{"host_tune_mtu": 9000, "host_tune_sysctls": {"vm.swappiness": 10}}'

@test "nothing is wanted by default, and nothing is done" {
  local before
  before=$(tree)
  play 0 "$TOP/playbooks/tune.yml" -e host_tune_apply=true
  assert_output --partial "nothing to change"
  assert_equal "$(tree)" "$before"
}

@test "without host_tune_apply, and in check mode, each change is shown as a diff and none is made" {
  local before
  before=$(tree)
  play 0 "$TOP/playbooks/tune.yml" --diff -e "$WANTED"
  assert_output --partial "would change, with host_tune_apply=true and without --check:"
  assert_line "-/sys/class/net/eth1/mtu: 1500"
  assert_line "+/sys/class/net/eth1/mtu: 9000"
  assert_output --regexp "alpha .*changed=1 "
  play 0 "$TOP/playbooks/tune.yml" --check -e "$WANTED" -e host_tune_apply=true
  assert_output --regexp "beta .*changed=1 "
  assert_equal "$(tree)" "$before"
}

@test "applied, a second run changes nothing, and revert.yml leaves no byte; few tasks, whatever is set" {
  local before
  before=$(tree)
  play 0 "$TOP/playbooks/tune.yml" -e host_tune_apply=true -e "$WANTED"
  assert_equal "$(cat {alpha,beta}/sys/class/net/eth1/mtu | xargs)" "9000 9000"
  local tasks
  tasks=$(sed '1,/^PLAY \[Tune the hosts\]/d' <<<"$output" | grep -c '^TASK')
  [ "$tasks" -gt 0 ] && [ "$tasks" -le 8 ] || fail "there are $tasks tasks"
  play 0 "$TOP/playbooks/tune.yml" -e host_tune_apply=true -e "$WANTED"
  assert_output --regexp "alpha .*changed=0 "
  play 0 "$TOP/playbooks/revert.yml" --check
  assert_output --partial "/sys/class/net/eth1/mtu: 9000 -> 1500"
  assert_equal "$(cat alpha/sys/class/net/eth1/mtu)" 9000
  play 0 "$TOP/playbooks/revert.yml"
  assert_equal "$(tree)" "$before"
  play 0 "$TOP/playbooks/revert.yml"
  assert_output --partial "nothing to put back"
  assert_output --regexp "alpha .*changed=0 "
}

@test "a host that lacks something fails by name, with what it has set; the other hosts go on" {
  rm -r alpha/sys/class/net/eth1
  play 2 "$TOP/playbooks/tune.yml" -e host_tune_apply=true -e "$WANTED"
  assert_output --partial "there is no interface eth1 (of mlx5_0)"
  assert_output --regexp "alpha .*failed=1 "
  assert_output --regexp "beta .*failed=0 "
  assert_equal "$(cat beta/sys/class/net/eth1/mtu) $(cat alpha/proc/sys/vm/swappiness)" "9000 10"
}

@test "values out of range are refused by name before anything is set, also where the role is used without inventory_check" {
  local before
  printf '%s\n' '- hosts: all' '  gather_facts: false' '  roles: [host_tune]' >role.yml
  before=$(tree)
  play 2 role.yml --limit alpha -e host_tune_apply=true -e '{"host_tune_mtu": 67, "host_tune_roce_tos": 256, "host_tune_pfc_priorities": [3, 8],
    "host_tune_dscp_priority": {"64": 3}, "host_tune_ets": {"tc_tsa": {"0": "fast"}}, "host_tune_hugepages_2m": -1, "host_tune_memlock": "much",
    "host_tune_irq_affinity": "all", "host_tune_sysctls": {"vm.x; rm": 1}, "host_tune_governor": "a b", "host_tune_idle_latency_us": 1000001,
    "host_tune_hugepages_1g": {"a": 1}, "host_tune_ecn_priorities": [9], "host_tune_governor_provider": "tuned",
    "host_tune_dcqcn": {"rp_ai_rate": "fast"}, "host_tune_rings": {"rx": 0}, "host_tune_coalescing": {"rx-usecs": "fast"},
    "host_tune_buffers": {"buffer_size": {"8": 1}}, "host_tune_cnp": {"dscp": 64}, "host_tune_irqbalance_ban": false}'
  local name
  for name in mtu roce_tos pfc_priorities dscp_priority ets hugepages_2m memlock irq_affinity sysctls governor idle_latency_us hugepages_1g ecn_priorities \
    rings coalescing dcqcn buffers cnp irqbalance_ban; do
    assert_output --partial "host_tune_$name is "
  done
  [ "$(grep -c 'host_tune_mtu is ' <<<"$output")" -eq 1 ] || fail "not once: $output"
  assert_output --partial "host_tune_governor_provider: tuned and host_tune_tuned_profile go together"
  play 2 role.yml --limit alpha -e '{"host_tune_sysctls": "vm.swappiness=1", "host_tune_ets": {"weights": {}}}'
  assert_output --partial "weights"
  play 2 role.yml --limit alpha -e '{"host_tune_transparent_hugepages": "often", "host_tune_dscp_trust": "both", "host_tune_pcie_read_request": 300}'
  assert_output --partial "value of host_tune_transparent_hugepages must be one of: always"
  assert_output --partial "value of host_tune_dscp_trust must be one of: dscp"
  assert_output --partial "value of host_tune_pcie_read_request must be one of: 128"
  assert_equal "$(tree)" "$before"
}

@test "the ends of each range are taken" {
  mkdir host_vars
  echo '{"host_tune_mtu": 65535, "host_tune_sysctls": {"vm.swappiness": "1"}}' >host_vars/alpha.json
  echo '{"host_tune_mtu": 68}' >host_vars/beta.json
  play 0 "$TOP/playbooks/tune.yml" --check
  assert_output --partial "1500 -> 65535"
  assert_output --partial "1500 -> 68"
}

@test "one setting alone, by its own file of tasks" {
  cat >one.yml <<'YAML'
- name: Set the MTU
  hosts: alpha
  gather_facts: false
  tasks:
    - name: Set the MTU
      ansible.builtin.include_role: {name: host_tune, tasks_from: mtu}
YAML
  play 0 one.yml -e host_tune_apply=true -e "$WANTED"
  assert_equal "$(cat alpha/sys/class/net/eth1/mtu alpha/proc/sys/vm/swappiness | xargs)" "9000 60"
}

@test "every variable has a file of tasks, a default with its manual, and a line in the README" {
  local name
  while read -r name; do
    grep -q "\`$name\`" "$TOP/roles/host_tune/README.md" || fail "$name is not in the README"
    grep -q "^      $name:" "$TOP/roles/host_tune/meta/argument_specs.yml" || fail "$name has no argument spec"
  done < <(sed -n 's/^\(host_tune_[a-z0-9_]*\):.*/\1/p' "$TOP/roles/host_tune/defaults/main.yml")
  for name in $("$TOP/.venv/bin/python" -c 'import sys; sys.path.insert(0, sys.argv[1] + "/plugins/module_utils")
from perch_tuning.settings import SETTINGS; print(*SETTINGS)' "$TOP"); do
    [ -e "$TOP/roles/host_tune/tasks/$name.yml" ] || fail "$name has no file of tasks"
    grep -q "^host_tune_$name:$" "$TOP/roles/host_tune/defaults/main.yml" || fail "host_tune_$name is not null by default"
  done
}

@test "a host without systemd: what would not come back at a boot is named, and set now" {
  rm -r alpha/etc/systemd
  play 2 "$TOP/playbooks/tune.yml" --limit alpha -e host_tune_apply=true -e "$WANTED"
  assert_output --partial "this host has no systemd, so these are not set again at its next boot: mtu"
  assert_equal "$(cat alpha/sys/class/net/eth1/mtu)" 9000
}

@test "inside the built collection the role finds its module and does the same" {
  (cd "$TOP" && ansible-galaxy collection build --output-path "$BATS_TEST_TMPDIR" >/dev/null)
  ansible-galaxy collection install --offline -p collections perch-fabric-*.tar.gz >/dev/null
  printf '[defaults]\ncollections_path = %s/collections\n' "$PWD" >ansible.cfg
  printf '%s\n' '- hosts: alpha' '  gather_facts: false' '  roles: [perch.fabric.host_tune]' >site.yml
  ANSIBLE_CONFIG=$PWD/ansible.cfg play 0 site.yml -e host_tune_apply=true -e "$WANTED"
  assert_equal "$(cat alpha/sys/class/net/eth1/mtu)" 9000
}
