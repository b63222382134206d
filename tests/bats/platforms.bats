#!/usr/bin/env bats
# Which packages the role engine wants on systems that are not at hand. The role runs in check mode on this machine, in a
# namespace with the system's own os-release (tests/fixtures/platforms says from where), so that Ansible's own code tells the
# facts; dpkg and rpm are real, rpm with a database of its own. Needs root, for the namespace.

load helpers

FIXTURES=$TOP/tests/fixtures/platforms

setup() {
  common_setup
  [ "$(id -u)" -eq 0 ] || skip "only root can mount another /etc"
  mkdir rpm local
  export HOME=$PWD
  printf '%%_dbpath %s\n%%_topdir %s\n%%_rpmdir %s\n' "$PWD/rpm" "$PWD/build" "$PWD" >.rpmmacros
  cat >hosts.yml <<YAML
all:
  hosts: {there: {}}
  vars: {ansible_connection: local, ansible_python_interpreter: "{{ ansible_playbook_python }}", perch_fabric: roce}
YAML
  cat >packages.yml <<'YAML'
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: engine, tasks_from: packages, public: true}
    - ansible.builtin.copy: {content: "{{ __engine_packages | sort | to_json }}", dest: "{{ playbook_dir }}/wanted.json"}
      check_mode: false
    - ansible.builtin.copy: {content: "{{ __engine_packages_missing | sort | to_json }}", dest: "{{ playbook_dir }}/missing.json"}
      check_mode: false
YAML
}

teardown() { common_teardown; }

# etc NAME: this machine's /etc, as that of the system
etc() {
  rm -rf etc
  cp -a /etc etc
  rm -f etc/{os-release,debian_version,lsb-release,redhat-release}
  cp "$FIXTURES/$1/os-release" etc/os-release
  [ ! -e "$FIXTURES/$1/redhat-release" ] || cp "$FIXTURES/$1/redhat-release" etc/
  [ ! -e "$FIXTURES/$1/debian_version" ] || cp "$FIXTURES/$1/debian_version" etc/
}

# on EXIT-CODE NAME: the role's packages there, in check mode
on() {
  etc "$2"
  # shellcheck disable=SC2016  # the inner shell's
  LIMIT=120 run_expecting "$1" env ANSIBLE_CONFIG="$TOP/ansible.cfg" ANSIBLE_ROLES_PATH="$TOP/roles" ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8 \
    unshare --mount --propagation private bash -c 'mount --bind etc /etc && mount --bind local /usr/local/lib && exec "$@"' \
    platforms ansible-playbook -i hosts.yml --check packages.yml
}

# made NAME...: packages of these names in rpm's database, without files
made() {
  local name
  for name in "$@"; do
    printf '%s\n' "Name: $name" 'Version: 1' 'Release: 1' 'Summary: A name' 'License: none' '%description' '%files' >"$name.spec"
    rpmbuild --quiet -bb "$name.spec"
    rpm --quiet --install --justdb --nodeps ./*/"$name"-1-1.*.rpm
  done
}

@test "the names of each system are those that have a source, all of them" {
  local name
  for name in ubuntu_2404 rocky_9 redhat_9 sles_15; do
    on 0 "$name"
    # a source is a file of a repository at a commit
    assert_json "$FIXTURES/$name/packages.json" '.sources as $sources
      | [.packages[] | .source as $at | ($sources | has($at)) and (.at | length > 0)] | all and length > 15'
    jq -S '.packages | keys' "$FIXTURES/$name/packages.json" >sourced
    jq -S . wanted.json >wanted
    diff sourced wanted || fail "$name: the role's names and those with a source differ"
  done
}

@test "lldpd is wanted where the check of hosts asks for neighbours by LLDP, and nowhere else" {
  local vars
  on 0 rocky_9
  assert_json wanted.json 'index("lldpd") != null'
  for vars in infiniband 'roce, perch_scope: software' 'roce, host_check_neighbours: false'; do
    sed -i "s/perch_fabric:.*/perch_fabric: $vars}/" hosts.yml
    on 0 rocky_9
    assert_json wanted.json 'index("lldpd") == null and index("mstflint") != null'
  done
}

@test "a system with other package names is named, with the file to write" {
  on 2 amazon_2023
  assert_output --partial "No names of packages are known for Amazon 2023"
  assert_output --partial "roles/engine/vars/Amazon_2023.yml"
  assert_output --partial "engine_packages_install"
  [ ! -e wanted.json ] || fail "names were guessed"
}

@test "rpm is asked, and only missing packages are wanted" {
  made gcc jq
  on 0 rocky_9
  assert_json missing.json 'index("gcc") == null and index("jq") == null and (index("make") != null)'
}

@test "a vendor's stack that lacks a package is named, and the distribution's is not wanted" {
  made ofed-scripts libibverbs rdma-core-devel
  on 2 rocky_9
  assert_output --partial "there: DOCA-OFED or MLNX_OFED is installed there, without infiniband-diags libibverbs-utils perftest."
  made infiniband-diags libibverbs-utils perftest
  on 0 rocky_9
  assert_json missing.json 'index("mstflint") == null and index("lldpd") != null'
  assert_json missing.json 'index("libfabric-devel") != null and index("perftest") == null'
  made shs-version libfabric
  on 2 sles_15
  assert_output --partial "HPE Slingshot Host Software is installed there, without libfabric-devel."
}

@test "Broadcom's library, built from its sources, is found without a package" {
  : >local/libbnxt_re-rdmav34.so
  on 2 rocky_9
  assert_output --partial "Broadcom's libbnxt_re is installed there, without"
  [[ $output == *rdma-core-devel* ]] || fail "$output"
}
