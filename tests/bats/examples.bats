#!/usr/bin/env bats
# The example inventories: their sample variables are the roles' defaults, and each can be used as it is.

load helpers

setup() {
  common_setup
  mark_ssh
  export ANSIBLE_ROLES_PATH=$TOP/roles
  cat >plan.yml <<'YAML'
- name: Check the inventory and make the plan
  hosts: all:!switches
  gather_facts: false
  roles: [inventory_check]
  tasks:
    - ansible.builtin.import_role: {name: plan, tasks_from: name}
    - ansible.builtin.import_role: {name: plan, tasks_from: make} # no host is asked for its devices
YAML
}
teardown() { common_teardown; }

# plan_for INVENTORY SUITE: as site.yml does it, up to where hosts come in
plan_for() {
  run_expecting 0 ansible-playbook -i "$1" plan.yml -e "{\"plan_suite\": \"$2\", \"plan_runs_dir\": \"$PWD/runs\"}"
  assert_untouched
}

# uncommented EXAMPLE: a copy, all of whose sample variables are set
uncommented() {
  cp -r "$TOP/inventories/$1" all
  # what the hosts say of themselves stays theirs, and a run's directory is made by the run
  sed -i '/^# perch_/d; s/^# //' all/group_vars/all/*.yml
}

@test "the sample variables are what make examples writes from the roles' defaults" {
  local example
  cp -r "$TOP/inventories" .
  rm -r inventories/example_*/group_vars/all
  "$TOP/setup/examples" inventories
  for example in "$TOP"/inventories/example_*; do
    diff -r "$example" "inventories/${example##*/}" || fail "call \`make examples\`, and commit what it writes"
  done
}

@test "RoCE: verbs and perftest between every two of four hosts, on both NICs where a transfer asks for them" {
  plan_for "$TOP/inventories/example_roce" rdma
  assert_json runs/latest/plan.json '(.hosts | length == 4) and (.switches.leaf2 | .provider == "nxos" and .ports.node4 == ["Ethernet1/3", "Ethernet1/4"])'
  spelled runs/latest >plan.json
  assert_json plan.json '[.rounds[].flows[] | select(.tool == "perftest").client_argv | join(" ") | select(contains("-d mlx5_0 -i 1 -x 3"))] | length > 0'
  assert_json plan.json '[.rounds[].flows[] | [.client, .server] | sort] | unique | length == 6'
  plan_for "$TOP/inventories/example_roce" transfer-read-many-nics
  spelled runs/latest >plan.json
  assert_json plan.json '[.rounds[].flows[] | select(.test == "verbs-read").client_argv | join(" ")]
    | length > 0 and all(.[]; contains("mlx5_0:1:3,mlx5_1:1:3"))'
}

@test "InfiniBand: verbs go by LID, no GID index is asked for" {
  plan_for "$TOP/inventories/example_infiniband" rdma
  spelled runs/latest >plan.json
  assert_json plan.json '[.rounds[].flows[] | select(.backend == "verbs")] | length > 0
    and all(.[]; .scope == "hardware" and (.client_argv | index("--gid-index")) == null)'
  assert_json runs/latest/plan.json '.switches.fabric | .provider == "infiniband" and .ports.node3 == ["5/1"]'
}

@test "Slingshot: the cxi backend beside HPE's own tools" {
  plan_for "$TOP/inventories/example_slingshot" slingshot
  spelled runs/latest >plan.json
  assert_json plan.json '([.rounds[].flows[] | select(.backend == "cxi")] | length > 0) and ([.rounds[].flows[] | select(.tool == "cxi")] | length > 0)'
}

@test "every default fits its own description: with all samples set the inventory is right" {
  uncommented example_roce
  plan_for all quick
}
