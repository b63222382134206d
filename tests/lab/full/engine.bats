#!/usr/bin/env bats
# The role engine as it is meant: over ssh, as a user with sudo, on two machines. What needs no machine of its own is in
# tests/bats/engine_role.bats; packages are in full/engine_packages.bats.

load ../helpers

setup_file() {
  lab_ready
  cp -r "$TOP/engine" "$BATS_FILE_TMPDIR/source"
  rm -rf "$BATS_FILE_TMPDIR"/source/build*
  # beside the engine that other suites of the lab have brought, and built fast: only the role is tried here
  cat >"$BATS_FILE_TMPDIR/site.yml" <<'YAML'
- name: Bring the engine
  hosts: all
  gather_facts: false
  roles: [engine]
  vars:
    engine_prefix: /opt/perch-test
    engine_source: "{{ playbook_dir }}/source"
    engine_make_variables: [CFLAGS=-O0]
YAML
}
teardown_file() {
  local host
  for host in alpha beta; do lab_ssh "$host" rm -rf /opt/perch-test 3>&-; done
}

setup() { common_setup; }
teardown() { common_teardown; }

play() {
  local expected=$1
  shift
  ANSIBLE_ROLES_PATH=$TOP/roles lab_playbook "$expected" "$BATS_FILE_TMPDIR/site.yml" "$@"
}

version() { sed -n 's/.*PERCH_VERSION "\(.*\)".*/\1/p' "$TOP/engine/src/version.h"; }
tree() { lab_ssh "$1" "find /opt/perch-test -type f -exec sha256sum {} + | sort; find /opt/perch-test -printf '%p %m %u %g\n' | sort"; }

@test "check mode on a bare host says that the engine would be built, and makes nothing" {
  lab_ssh alpha rm -rf /opt/perch-test
  play 0 --check --limit alpha
  assert_output --partial "no engine is installed"
  assert_output --regexp "alpha .*changed=1 "
  run_on alpha test ! -e /opt/perch-test
}

@test "the first run builds on both hosts, for root, with the verbs that they have; the second changes nothing" {
  local host
  play 0
  for host in alpha beta; do
    run_on "$host" /opt/perch-test/bin/perch --version
    assert_line "perch $(version)"
    assert_line --regexp "^backends:.* verbs"
    run_on "$host" "cd /opt/perch-test && find . -printf '%P %m %u %g\n' | sort"
    assert_output "$(printf '%s\n' " 755 root root" "bin 755 root root" "bin/perch 755 root root" "engine.json 644 root root" \
      "share 755 root root" "share/man 755 root root" "share/man/man1 755 root root" "share/man/man1/perch.1 644 root root")"
  done
  play 0
  assert_output --regexp "alpha .*changed=0 "
  assert_output --regexp "beta .*changed=0 "
}

@test "an engine of another version on one host is found there, and only there" {
  lab_ssh beta "printf '#!/bin/sh\necho perch 0.0.1\n' >/opt/perch-test/bin/perch"
  play 0 --check
  assert_output --partial "beta: perch $(version) is built for /opt/perch-test/bin/perch"
  assert_output --partial "it does not say that it is perch $(version)"
  assert_output --regexp "alpha .*changed=0 "
  assert_output --regexp "beta .*changed=1 "
}

@test "sources that do not compile leave the installed engine, and the compiler's words are shown" {
  local before
  before=$(tree alpha)
  cp -r "$BATS_FILE_TMPDIR/source" source
  echo 'this is no C;' >>source/src/backends/backend.c
  play 2 --limit alpha -e engine_source="$PWD/source"
  assert_output --partial "backend.c"
  assert_output --partial "error:"
  assert_output --partial "The installed engine was left as it is"
  assert_equal "$(tree alpha)" "$before"
}
