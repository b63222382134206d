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
  CHECK=(--check)
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
    - ansible.builtin.debug: {msg: "wanted{{ alone | default('') }}.json {{ __engine_packages | sort | to_json }}"}
    - ansible.builtin.debug: {msg: "missing{{ alone | default('') }}.json {{ __engine_packages_missing | sort | to_json }}"}
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

# on EXIT-CODE NAME: the role's packages there, in check mode unless CHECK is empty; leaves their names in wanted.json and missing.json
on() {
  local file names
  etc "$2"
  # shellcheck disable=SC2016  # the inner shell's
  LIMIT=120 run_expecting "$1" env ANSIBLE_CONFIG="$TOP/ansible.cfg" ANSIBLE_ROLES_PATH="$TOP/roles" ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8 \
    unshare --mount --propagation private bash -c 'mount --bind etc /etc && mount --bind local /usr/local/lib && exec "$@"' \
    platforms ansible-playbook -i hosts.yml "${CHECK[@]}" packages.yml
  while read -r file names; do
    printf '%s\n' "$names" >"$file"
  done < <(sed -nE 's/^ *"msg": ("(wanted|missing).*")$/\1/p' <<<"$output" | jq -r .)
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
  local without
  cat >>hosts.yml <<'YAML'
  children:
    elsewhere:
      hosts:
        infiniband: {perch_fabric: infiniband}
        software: {perch_scope: software}
        unasked: {host_check_neighbours: false}
      vars: {alone: "-{{ inventory_hostname }}"}
YAML
  on 0 rocky_9
  assert_json wanted.json 'index("lldpd") != null'
  for without in infiniband software unasked; do
    assert_json "wanted-$without.json" 'index("lldpd") == null and index("mstflint") != null'
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

# installing NAME...: rocky 9 whose repository has all packages but these. The package manager is a stand-in, which installs all
# of a call or nothing, as dnf and apt do; rpm keeps what it installs.
installing() {
  local lacks="$*"
  mkdir -p library repository
  on 0 rocky_9
  jq -r '.[]' missing.json >names
  {
    printf '%s\n' 'Name: all' 'Version: 1' 'Release: 1' 'Summary: A name' 'License: none' '%description'
    while read -r name; do printf '%s\n' "%package -n $name" 'Summary: A name' "%description -n $name" "%files -n $name"; done <names
  } >all.spec
  rpmbuild --quiet -bb all.spec
  mv ./*/*-1-1.*.rpm repository/
  for name in $lacks; do rm repository/"$name"-1-1.*.rpm; done
  cat >library/stand_in.py <<PY
import glob, subprocess
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"name": {"type": "list"}, "update_cache": {"type": "bool"}, "state": {}})
files = []
for name in module.params["name"]:
    found = glob.glob("$PWD/repository/" + name + "-1-1.*.rpm")
    if not found:
        module.fail_json(msg="No package " + name + " available.")
    files += found
open("$PWD/calls", "a").write(" ".join(module.params["name"]) + "\\n")
if files:
    subprocess.run(["rpm", "--quiet", "--install", "--justdb", "--nodeps", *files], check=True)
module.exit_json(changed=bool(files))
PY
  sed -i 's/perch_fabric:/ansible_package_use: stand_in, perch_fabric:/' hosts.yml
  CHECK=()
}

@test "packages are installed by one call where the repository has them all" {
  installing
  on 0 rocky_9
  refute_output --partial "warning"
  on 0 rocky_9
  assert_json missing.json '. == []'
  assert_equal "$(wc -l <calls)" 1
}

@test "a helpful package that the repository lacks is a warning that names it and its check, and the others are installed" {
  installing lldpd mstflint
  on 0 rocky_9
  assert_output --partial 'warning: there: package \"lldpd\" cannot be installed; without it the check nic-neighbour is INCONCLUSIVE'
  assert_output --partial 'warning: there: package \"mstflint\" cannot be installed; without it on cards of NVIDIA the checks nic-config, nic-adaptive-routing and nic-bit-errors are INCONCLUSIVE'
  assert_json missing.json '. == ["lldpd", "mstflint"]'
  refute_output --partial "these packages could not"
}

@test "a needed package that the repository lacks fails the host, by name" {
  installing make lldpd
  on 2 rocky_9
  assert_output --regexp "there: these packages could not be installed: .*make.* The package *manager said: No package (make|lldpd) available"
  assert_output --partial "engine_packages_install"
}

@test "each package that the role wants is needed, or has words for what lacks without it" {
  run_expecting 0 "$TOP/.venv/bin/python" - "$TOP/roles/engine/vars" <<'PY'
import sys, pathlib, yaml
vars = {path.stem: yaml.safe_load(path.read_text()) for path in pathlib.Path(sys.argv[1]).glob("*.yml")}
helpful = set(vars.pop("main")["__engine_packages_without"])
wanted = [{*one["__engine_packages_run"], *one["__engine_packages_neighbours"]} for one in vars.values()]
print("unused:", *sorted(helpful - set().union(*wanted)))
print("also built from:", *sorted(helpful & {name for one in vars.values() for name in one["__engine_packages_build"]}))
PY
  assert_output "unused:
also built from:"
}
