#!/usr/bin/env bats
# An inventory that is wrong is refused in words, in seconds, and before any host is touched: the hosts here cannot be
# reached, and whoever calls ssh leaves a mark.

load helpers

setup() {
  common_setup
  mark_ssh
  mkdir mine
  cat >mine/hosts.yml <<'YAML'
all:
  children:
    rack1:
      hosts:
        alpha: {ansible_host: 198.51.100.1, perch_address: 192.0.2.1}
        beta: {ansible_host: 198.51.100.2, perch_address: 192.0.2.2}
  vars:
    perch_fabric: roce
    perch_link_gbit_s: 100
    perch_backends: [verbs, tcp]
    perch_devices: [{name: mlx5_0, netdev: eth1}]
    plan_limits: roce
YAML
}
teardown() { common_teardown; }

# play PLAYBOOK [OPTION...]
play() {
  local playbook=$1
  shift
  run timeout 60 ansible-playbook -i "${INVENTORY:-mine}" "$TOP/playbooks/$playbook.yml" -e "{\"plan_runs_dir\": \"$PWD/runs\"}" "$@" 3>&-
  # as one line, however Ansible's YAML breaks a message
  said=$(tr -s ' \n' ' ' <<<"${output//\\\"/\"}")
}

# refused [OPTION...] -- PART...: site.yml says each of the parts, and touches no host
refused() {
  local -a options=()
  while [ "$1" != -- ]; do options+=("$1") && shift; done
  shift
  local part
  play "${PLAYBOOK:-site}" "${options[@]}"
  [ "$status" -eq 2 ] || fail "exit code $status: $output"
  for part in "$@"; do
    [[ $said = *"$part"* ]] || fail "this does not say \"$part\": $output"
  done
  assert_untouched
  [ ! -e runs ] || fail "a run was made: $(ls runs)"
}

# ends EXIT PART [OPTION...]: check.yml on INVENTORY says PART, and does not begin
ends() {
  local expected=$1 part=$2
  shift 2
  PLAYBOOK=${PLAYBOOK:-check} && play "$PLAYBOOK" "$@"
  [ "$status" -eq "$expected" ] || fail "$PLAYBOOK: exit code $status: $output"
  [[ $said = *"$part"* ]] || fail "$PLAYBOOK does not say \"$part\": $output"
  assert_untouched
}

mine() { cat >"mine/$1"; }

@test "an inventory that is right goes on to the hosts: the mark can be seen" {
  play check -e host_check_runs_dir="$PWD/checks"
  [ -s touched ] || fail "nobody called ssh: $output"
}

@test "an inventory that is not there, cannot be read or has no host is an error, for every playbook that works on hosts" {
  printf 'all: [\n' >broken.yml
  : >empty.yml
  printf 'all: {children: {switches: {hosts: {leaf1: {}}}}}\n' >switches.yml
  for PLAYBOOK in check compare_tuning first_day revert site soak soak_schedule soak_stop tune; do
    INVENTORY=empty.yml ends 2 "inventory $PWD/empty.yml: it has no host"
  done
  PLAYBOOK=check
  INVENTORY=no-such-file ends 1 "failed to parse inventory source $PWD/no-such-file"
  INVENTORY=switches.yml ends 2 "it has switches only; add the hosts to measure"
  ends 1 "failed to parse inventory source $PWD/broken.yml" -i broken.yml
  cp broken.yml mine/more.yml
  ends 1 "failed to parse inventory source $PWD/mine/more.yml"
}

@test "a collection's user, without this checkout's ansible.cfg, is told of an inventory without hosts, too" {
  printf '[defaults]\nroles_path = %s\nlibrary = %s\naction_plugins = %s\n' "$TOP/roles" "$TOP/plugins/modules" "$TOP/plugins/action" >ansible.cfg
  export ANSIBLE_CONFIG=$PWD/ansible.cfg
  printf 'all: [\n' >broken.yml
  INVENTORY=no-such-file ends 2 "inventory $PWD/no-such-file: there is no such file; correct the path after -i"
  INVENTORY=broken.yml ends 2 "inventory $PWD/broken.yml: it has no host; correct what the warnings above name"
  ends 2 "inventory $PWD/no-such-file: there is no such file" -i no-such-file
}

@test "--limit that leaves no host is an error" {
  printf '    switches: {hosts: {leaf1: {}}}\n' | sed -i '/^  children:/r /dev/stdin' mine/hosts.yml
  ends 1 "leaves us with no hosts to target" --limit nowhere
  ends 2 "--limit switches leaves no host; name a host or a group of hosts" --limit switches
}

@test "a variable that no role knows is refused wherever it is set, with the nearest names" {
  mkdir mine/group_vars mine/host_vars
  mine group_vars/rack1.yml <<<'agent_instal: false'
  mine host_vars/beta.yml <<<'perch_adress: 192.0.2.7'
  refused -e host_check_verdikt=true -e engine_zzzzzz=1 -- \
    "group rack1: agent_instal is no variable of the role agent" \
    "host beta: perch_adress is no variable of the role inventory_check; did you mean perch_address?" \
    "the command line (-e): host_check_verdikt is no variable of the role host_check; did you mean host_check_verdict" \
    "engine_zzzzzz is no variable of the role engine (roles/engine/README.md lists them)"
}

@test "an unknown variable of several hosts is one line" {
  mkdir mine/group_vars mine/host_vars
  mine group_vars/rack1.yml <<<'perch_adress: 192.0.2.7'
  mine host_vars/alpha.yml <<<'perch_adress: 192.0.2.6'
  mine host_vars/beta.yml <<<'perch_adress: 192.0.2.7'
  refused -- "- group rack1, hosts alpha, beta: perch_adress is no variable of the role inventory_check; did you mean perch_address?"
}

@test "a required variable that is misspelt is one line, not also said to be missing" {
  sed -i s/perch_address/perch_adress/ mine/hosts.yml
  refused -- "perch_adress is no variable of the role inventory_check; did you mean perch_address?"
  [[ $output != *"is not set"* ]] || fail "$output"
}

@test "a name that is all but one of ours is refused; others' names are left alone, and so are those that are said to be" {
  refused -e perchaddress=192.0.2.9 -- "perchaddress is no variable of any role; did you mean perch_address?"
  PLAYBOOK=check play check -e '{"inventory_check_foreign": ["agent_smith"], "agent_smith": 1, "mesh_address": 1, "__lab_x": 2}' -e host_check_runs_dir="$PWD/checks"
  [ -s touched ] || fail "refused: $output"
}

@test "a wrong type, an unknown choice and a number out of range are refused, with hosts, place and what is wanted" {
  mkdir mine/group_vars mine/host_vars
  mine group_vars/rack1.yml <<'YAML'
perch_port: 70000
agent_lease: soon
engine_make_variables: CFLAGS=-O2
engine_environment: [PATH]
YAML
  mine host_vars/alpha.yml <<'YAML'
perch_iperf_port: 0
perch_fabric: string-and-cans
perch_backends: [tcp, smoke, null]
perch_address: [192.0.2.1]
engine_rebuild: maybe
perch_slowdown: 0.5
agent_poll_interval: true
YAML
  refused -- \
    "hosts alpha, beta: perch_port must be a whole number from 1 to 65535, and is 70000 (set for group rack1)" \
    "hosts alpha, beta: agent_lease must be a whole number" "and is 'soon'" \
    "engine_make_variables must be a list, and is 'CFLAGS=-O2'" \
    "engine_environment must be a dictionary, and is ['PATH']" \
    "host alpha: perch_iperf_port must be a whole number from 1 to 65535, and is 0 (set for host alpha)" \
    "perch_fabric must be one of loopback, ethernet, roce, infiniband, slingshot, and is 'string-and-cans'" \
    "perch_backends, entry 2, must be one of tcp, ofi, verbs, cxi, null, and is 'smoke'" \
    'perch_backends, entry 3, must be' 'YAML reads a bare null as nothing' \
    "perch_address must be a text, and is ['192.0.2.1']" \
    "engine_rebuild must be true or false, and is 'maybe'" \
    "perch_slowdown must be a number, at least 1, and is 0.5" \
    "agent_poll_interval must be a number" "and is True"
}

@test "a required variable that is missing, and one that cannot be computed, are named with the hosts" {
  sed -i '/perch_fabric/d; s/perch_address: 192.0.2.2/perch_address: "{{ fabric_adress }}"/' mine/hosts.yml
  refused -- "hosts alpha, beta: perch_fabric is not set" "host beta: perch_address cannot be computed" "fabric_adress"
}

@test "what depends on facts or on a role's default is left until it is there" {
  play check -e host_check_runs_dir="$PWD/checks" -e '{"agent_engine": "{{ agent_install_dir }}/a", "engine_owner": "{{ ansible_facts.user_id }}"}'
  [ -s touched ] || fail "refused: $output"
}

@test "devices: a wrong key, a number that is none, a device twice" {
  refused -e '{"perch_devices": [{"nmae": "mlx5_0"}, {"name": "mlx5_1", "gid_index": "three", "ib_port": 0}, "-d"]}' -- \
    "perch_devices, entry 1, has 'nmae', which is unknown; valid: name, netdev, ib_port, gid_index, svc_id, vni; did you mean name?" \
    "perch_devices, entry 1, has no name" \
    "perch_devices, entry 2, gid_index must be a whole number from 0 to 4095, and is 'three'" \
    "perch_devices, entry 2, ib_port must be a whole number from 1 to 254, and is 0" \
    "perch_devices, entry 3, must be a name, a pattern or a quoted PCI address, or a dictionary with name" "and is '-d'"
  refused -e '{"perch_devices": [{"name": "mlx5_0", "gid_idx": 3}, {"name": "mlx5_1", "gid_idx": 3}]}' -- \
    "perch_devices (entries 1, 2) has 'gid_idx', which is unknown; valid: name, netdev, ib_port, gid_index, svc_id, vni; did you mean gid_index?"
  [ "$(grep -c "'gid_idx', which is unknown" <<<"$output")" = 1 ] || fail "$output"
  refused -e '{"perch_devices": ["mlx4_0", {"name": "mlx4_0", "ib_port": 2}, {"name": "mlx4_0", "ib_port": 2}]}' -- \
    "hosts alpha, beta: perch_devices has mlx4_0 (ib_port 2) twice; name each device once (set for the command line (-e))"
  refused -e '{"perch_devices": ["mlx5_0", {"name": "mlx5_0"}]}' -- "hosts alpha, beta: perch_devices has mlx5_0 twice; name each device once (set for the command line (-e))"
}

@test "a group without hosts that names a device is refused" {
  printf '    rack9: {vars: {perch_devices: [mlx5_7], proxy: 1}}\n' | sed -i '/^  children:/r /dev/stdin' mine/hosts.yml
  refused -- "group rack9 sets perch_devices, and no host is in it"
}

@test "files of variables for a host or a group that is not in the inventory are refused" {
  mkdir mine/host_vars mine/group_vars
  mine host_vars/alhpa.yml <<<'{}'
  mine group_vars/rack7.yml <<<'{}'
  : >mine/host_vars/.hidden
  refused -- "host_vars/alhpa.yml is for a host that the inventory does not have; did you mean alpha?" \
    "group_vars/rack7.yml is for a group that the inventory does not have"
  # the same, named by its file
  INVENTORY=mine/hosts.yml refused -- "host_vars/alhpa.yml is for a host"
  # beside another inventory they may well be its hosts'
  cp mine/hosts.yml mine/other.yml
  INVENTORY=mine/hosts.yml play check -e host_check_runs_dir="$PWD/checks"
  [ -s touched ] || fail "refused: $output"
}

@test "what Ansible does not read, empty groups, a play's variables and what is omitted are no faults" {
  mkdir -p mine/group_vars mine/host_vars
  touch mine/group_vars/{README.md,all.yml.orig} mine/host_vars/notes.txt
  printf '    switches: {hosts: {}, vars: {switch_check_provider: eos}}\n' | sed -i '/^  children:/r /dev/stdin' mine/hosts.yml
  printf '%s\n' 'perch_port: "{{ base }}"' 'perch_slowdown: "{{ nowhere | default(omit) }}"' >mine/group_vars/all.yml
  printf '%s\n' '- hosts: all' '  gather_facts: false' '  vars: {base: 18700}' '  roles: [{role: inventory_check, run_once: true}]' >wrapper.yml
  ANSIBLE_CONFIG=$TOP/ansible.cfg run timeout 60 ansible-playbook -i mine wrapper.yml 3>&-
  assert_equal "$status" 0
  assert_untouched
}

@test "a play's variables count for all hosts, one host's own for no other" {
  mkdir mine/host_vars
  mine host_vars/alpha.yml <<<'base: 18700'
  sed -i 's/^    plan_limits: roce/&\n    perch_port: "{{ base }}"/' mine/hosts.yml
  refused -- "host beta: perch_port cannot be computed"
}

@test "what is wanted of hosts, and tuned on them: values that cannot be are refused, those that can are not" {
  mkdir mine/group_vars
  mine group_vars/all.yml <<'YAML'
host_tune_hugepages_2m: -5
host_tune_hugepages_1g: {0: -1, one: 2}
host_tune_governor: 7
host_tune_memlock: lots
host_tune_sysctls: {vm.swappiness: [1]}
host_tune_irq_affinity: banana
host_tune_ets: {tc_tsa: {0: foo}}
host_check_iommu: banana
host_check_governor: 5
host_check_memlock: "-1"
host_check_ring_rx: many
host_check_sysctls: {vm.swappiness: {a: 1}}
YAML
  PLAYBOOK=check refused -- "host_tune_hugepages_2m must be a whole number, at least 0, or a dictionary, and is -5" \
    "host_tune_hugepages_1g 0 must be a whole number, at least 0, and is -1" "host_tune_hugepages_1g, key must be a whole number, at least 0, and is 'one'" \
    "host_tune_governor must be a word of letters, and is 7" "host_tune_memlock must be a whole number, at least 0, or unlimited, and is 'lots'" \
    "host_tune_sysctls vm.swappiness must be a text, and is [1]" "host_tune_irq_affinity must be local or a list of processors, and is 'banana'" \
    "host_tune_ets tc_tsa 0 must be one of ets, strict, and is 'foo'" "host_check_iommu must be one of passthrough, off, translated, and is 'banana'" \
    "host_check_governor must be a word of letters, and is 5" "host_check_memlock must be a whole number, at least 0, or unlimited, and is '-1'" \
    "host_check_ring_rx must be a whole number, at least 1, or max, and is 'many'" "host_check_sysctls vm.swappiness must be a text"
  mine group_vars/all.yml <<'YAML'
host_tune_hugepages_2m: {0: 0, 1: "1024"}
host_tune_hugepages_1g: 4
host_tune_governor: schedutil
host_tune_memlock: 65536
host_tune_sysctls: {vm.swappiness: 1, net.ipv4.tcp_rmem: 4096 87380 6291456}
host_tune_irq_affinity: 0-7,16
host_tune_ets: {tc_tsa: {0: ets, 3: strict}}
host_check_iommu: "off"
host_check_governor:
host_check_memlock: unlimited
host_check_ring_rx: max
host_check_ring_tx: 512
YAML
  play check -e host_check_runs_dir="$PWD/checks"
  [ -s touched ] || fail "refused: $output"
  rm touched
  play check -e host_check_runs_dir="$PWD/checks" -e '{"host_tune_irq_affinity": "local", "host_tune_hugepages_2m": null, "host_check_iommu": null}'
  [ -s touched ] || fail "refused: $output"
}

@test "a limit for a host that is not there is refused: it would never speak" {
  mkdir limits
  sed '0,/scope: {/s//scope: {client: alhpa, server: [beta, delta], /' "$TOP/reports/limits/roce.yml" >limits/mine.yml
  refused -e plan_limits_dir="$PWD/limits" -e plan_limits=mine -- \
    "mine.yml, limit small-message-median: the client is alhpa, which is not a host of the inventory; did you mean alpha?" "the server is delta, which is not a host"
}

# A role of its own stands for those that have such options.
@test "dictionaries: keys and values out of range, a host that is not there, as the option's description has them" {
  mkdir -p roles/toy/meta
  cp -r "$TOP/roles/inventory_check" roles
  cat >roles/toy/meta/argument_specs.yml <<'YAML'
argument_specs:
  main:
    options:
      toy_map: {type: dict, description: "The priority of a DSCP, keys from 0 to 63, values 0 to 7."}
      toy_ports: {type: dict, description: The port that leads to each host (keys are hosts).}
      toy_priorities: {type: list, elements: int, description: "Priorities, 0 to 7."}
      toy_size: {type: int, description: Its size., default: 3}
      toy_share: {type: float, description: Its share.}
      toy_nested: {type: dict, description: A dictionary., options: {inner: {type: int, description: From -5 to 1000000., required: true}}}
  again:
    options:
      toy_other: {type: str, choices: [a, b, null], description: Of another entry point.}
YAML
  printf -- '- {hosts: all, gather_facts: false, roles: [inventory_check]}\n' >toy.yml
  local -a toy=(ansible-playbook -i mine toy.yml)
  ANSIBLE_ROLES_PATH=roles run_expecting 0 "${toy[@]}" -e '{"toy_map": {"26": 3, "0": 0}, "toy_ports": {"beta": "Ethernet1"}, "toy_priorities": [3],
    "toy_share": "0.5", "toy_nested": {"inner": -5}, "toy_other": null}'
  ANSIBLE_ROLES_PATH=roles run_expecting 2 "${toy[@]}" -e '{"toy_map": {"64": 8, "x": -1}, "toy_ports": {"bta": 1}, "toy_priorities": [3, 8],
    "toy_share": "nan", "toy_nested": {"inner": 1000001, "other": 1}, "toy_other": "c", "toy_size": null, "toy_third": 1}'
  local part
  for part in "toy_map, key must be a whole number from 0 to 63, and is '64'" "toy_map, key must be a whole number from 0 to 63, and is 'x'" \
    "toy_map 64 must be a whole number from 0 to 7, and is 8" "toy_map x must be a whole number from 0 to 7, and is -1" \
    "toy_ports has bta, which is not a host of the inventory; did you mean beta?" \
    "toy_priorities, entry 2, must be a whole number from 0 to 7, and is 8" "toy_share must be a number, and is 'nan'" \
    "toy_nested inner must be a whole number from -5 to 1000000, and is 1000001" "toy_nested has 'other', which is unknown; valid: inner" \
    "toy_other must be one of a, b, and is 'c'" "toy_size must be a whole number, and is null" "toy_third is no variable of the role toy"; do
    assert_output --partial "$part"
  done
  assert_untouched
}

@test "switches of the inventory need no address on the fabric, but their variables are held against the specs, too" {
  printf '    switches: {hosts: {leaf1: {ansible_host: 198.51.100.9, perch_scope: hard}}}\n' | sed -i '/^  children:/r /dev/stdin' mine/hosts.yml
  sed -i '/perch_address: 192.0.2.2/s/perch_address.*}/perch_address: 192.0.2.2\/24}/' mine/hosts.yml
  refused -- "host leaf1: perch_scope must be one of hardware, software, simulated, and is 'hard'"
  refused -e '{"plan_switches": ["leaf2"]}' -- "plan_switches has leaf2, which is not a host of the inventory; did you mean leaf1?"
  sed -i 's/hard}/hardware}/' mine/hosts.yml
  refused -- 'host beta: perch_address must be an address or a name, without a prefix length' "'192.0.2.2/24'"
  [[ $said != *"leaf1: perch_address"* ]] || fail "$said"
}

@test "hosts that cannot be told apart, or would share a port, are refused by name" {
  refused -e perch_address=192.0.2.1 -- "hosts alpha, beta have the same perch_address 192.0.2.1; give each host its own"
  refused -e '{"perch_port": 5001}' -- 'hosts alpha, beta: its ports must differ' "perch_iperf_port: 5001"
  refused --limit alpha -- "two hosts or more are needed, and --limit alpha leaves only alpha"
}

@test "every playbook that has hosts of an inventory begins with the inventory's check" {
  local playbook
  for playbook in "$TOP"/playbooks/*.yml; do
    # report.yml reads a run's folder, and no inventory; inventory.yml only counts hosts; the others are parts of site.yml
    case "${playbook##*/}" in inventory.yml | admit.yml | deploy.yml | measure.yml | verdict.yml) continue ;; esac
    ! grep -qx '  hosts: localhost' "$playbook" || continue
    PLAYBOOK=$(basename "$playbook" .yml) refused -e perch_fabrik=roce -- "perch_fabrik is no variable of the role inventory_check; did you mean perch_fabric?"
  done
}

@test "hosts that share an address, and a backend with a slip, are named once, with what to do" {
  sed -i 's/192.0.2.2/192.0.2.1/' mine/hosts.yml
  refused -- "hosts alpha, beta have the same perch_address 192.0.2.1; give each host its own"
  [ "$(grep -c 'have the same perch_address' <<<"$output")" -eq 1 ] || fail "not once: $output"
  sed -i 's/verbs, tcp/verb, tcp/' mine/hosts.yml
  refused -- "perch_backends, entry 1, must be one of tcp, ofi, verbs, cxi, null, and is 'verb'; did you mean verbs? (set for group all)"
  [ "$(grep -c "and is 'verb'" <<<"$output")" -eq 1 ] || fail "not once: $output"
}

@test "a fault of a suite, of limits and of their names is shown once" {
  sed 's/duration: [0-9]*s/duration: 5/' "$TOP/playbooks/suites/quick.yml" >suite.yml
  refused -e plan_suite_file="$PWD/suite.yml" -- "5 is no duration: write 5s"
  refused -e plan_limits=rocce -- "plan_limits may be one of: ib-hdr, ib-ndr, ib-xdr, infiniband, local, roce" "; did you mean roce?"
  [ "$(grep -c 'may be one of' <<<"$output")" -eq 1 ] || fail "not once: $output"
  refused -e plan_suite=rdam -- "plan_suite may be one of: " "; did you mean rdma?"
  refused -e '{"plan_reference_curves": ["thor2-read-sise"]}' -- "there is no curve thor2-read-sise in " "; did you mean thor2-read-size?"
}

@test "plan_only shows the plan, contacts no host and writes nothing" {
  play site -e plan_only=true -e plan_suite=rdma
  [ "$status" -eq 0 ] || fail "exit code $status: $output"
  [[ $said = *"Suite rdma: "*" flows, about "*"Excluded: "*"Payload: at least "* ]] || fail "no plan: $output"
  assert_untouched
  [ ! -e runs ] || fail "a run was made: $(ls runs)"
}
