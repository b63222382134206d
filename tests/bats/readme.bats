#!/usr/bin/env bats
# The README's inventory, suite and limits are accepted as they stand there, and its table has the planner's numbers.

load helpers

setup() {
  common_setup
  mkdir mine
  # the blocks of YAML, in their order
  awk -v names="mine/hosts.yml our-suite.yml our-limits.yml" '
    /^```yaml/ { split(names, name, " "); file = name[++n]; next }
    /^```/ { file = "" }
    file { print >file }' "$TOP/README.md"
}
teardown() { common_teardown; }

# plan ARGUMENT...: for the hosts of mine/, which are not contacted
plan() {
  ANSIBLE_CONFIG=$TOP/ansible.cfg LC_ALL=C.UTF-8 timeout --kill-after=5 100 ansible-playbook -i mine "$TOP/playbooks/site.yml" \
    -e plan_only=true -e "plan_runs_dir=$PWD/runs" "$@" 3>&-
}

# row FABRIC SUITE: "MINUTES FLOWS" of the table
row() { sed -nE "s/^\| $1 \| \`$2\` \| ([0-9]+) \(([0-9,]+) flows\) .*/\1 \2/p" "$TOP/README.md"; }

@test "two hosts: the inventory is planned, with the flows and the minutes of the table" {
  assert_equal "$(row "2 hosts" rdma)" "2 34"
  run plan -e plan_suite=rdma
  assert_success
  assert_output --regexp "Suite rdma: 34 flows, about (9[0-9] s|2 min)\. Excluded: verbs-write-bandwidth-together: node1, node2"
}

@test "eight hosts with eight NICs have the flows and the minutes of the table" {
  local i suite minutes flows
  for i in {3..8}; do sed -i "/node2:/a \    node$i: {ansible_host: 203.0.113.$i, perch_address: 192.0.2.$i}" mine/hosts.yml; done
  for i in {1..7}; do sed -i "s/^\(    perch_devices: .*\)]/\1, {name: mlx5_$i, netdev: ens$((i + 1))f0np0, gid_index: 3}]/" mine/hosts.yml; done
  for suite in rdma transfer-write-sizes; do
    read -r minutes flows <<<"$(row "8 hosts x 8 NICs" "$suite")"
    run plan -e "plan_suite=$suite"
    assert_success
    assert_output --partial "Suite $suite: $flows flows, about $minutes min."
  done
}

@test "the suite and the limits are accepted, and refused with a mistake" {
  run plan -e "plan_suite_file=$PWD/our-suite.yml" -e "plan_limits_site=$PWD/our-limits.yml"
  assert_success
  assert_output --partial "Suite our-writes: 1 flow"
  sed -i 's/metric: bandwidth.gbit_s/metric: bandwidth.gbits/' our-limits.yml
  run plan -e "plan_suite_file=$PWD/our-suite.yml" -e "plan_limits_site=$PWD/our-limits.yml"
  assert_failure
  assert_output --partial "bandwidth.gbit_s"
}
