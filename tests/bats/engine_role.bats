#!/usr/bin/env bats
# The role engine, on this machine, with a prefix below the test's directory: two hosts, local connection, no root. What it
# does over ssh and with packages is in tests/lab.

load helpers

# The real sources, built without optimisation, as only the role is tried here.
setup_file() {
  # without what is built there: a test beside this one may be building
  mkdir "$BATS_FILE_TMPDIR/source"
  cp -r "$TOP"/engine/{Makefile,src,tests} "$BATS_FILE_TMPDIR/source"
  cat >"$BATS_FILE_TMPDIR/hosts.yml" <<YAML
all:
  hosts: {alpha: {}, beta: {}}
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    engine_owner: $(id -un)
    engine_group: $(id -gn)
    engine_packages_install: false
    engine_make_jobs: $(nproc)
    engine_make_variables: [CFLAGS=-O0]
    engine_prefix: "{{ playbook_dir }}/opt"
YAML
  # built once; each test begins with a copy
  mkdir "$BATS_FILE_TMPDIR/first"
  cd "$BATS_FILE_TMPDIR/first" || return
  play --limit alpha >"$BATS_FILE_TMPDIR/first.log" 2>&1 || {
    cat "$BATS_FILE_TMPDIR/first.log" >&2
    return 1
  }
}

setup() {
  common_setup
  cp -r "$BATS_FILE_TMPDIR/source" source
}
teardown() { common_teardown; }

# play [OPTION...]: the role alone, on the sources in ./source or the pristine ones
play() {
  local source=$PWD/source
  [ -d "$source" ] || source=$BATS_FILE_TMPDIR/source
  printf '%s\n' '- name: Bring the engine' '  hosts: all' '  gather_facts: false' '  roles: [engine]' >site.yml
  PATH=$TOP/.venv/bin:$PATH ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1 timeout --kill-after=5 300 \
    ansible-playbook -i "$BATS_FILE_TMPDIR/hosts.yml" site.yml -e engine_source="$source" "$@" 3>&-
}

run_play() {
  local expected=$1
  shift
  run play --limit alpha "$@"
  printf '%s\n-> %s\n' "$output" "$status"
  assert_equal "exit code $status" "exit code $expected"
}

installed() { cp -a "$BATS_FILE_TMPDIR/first/opt" opt; }
version() { sed -n 's/.*PERCH_VERSION "\(.*\)".*/\1/p' "$TOP/engine/src/version.h"; }
# all that is there: names, modes, sums; not times
tree() { find opt -printf '%p %m %y\n' | sort && find opt -type f -exec sha256sum {} + | sort; }

@test "the first run builds the checkout's engine; the second changes nothing" {
  installed
  assert_regex "$(cat "$BATS_FILE_TMPDIR/first.log")" "no engine is installed"
  run_expecting 0 opt/bin/perch --version
  assert_output --partial "perch $(version)"
  assert_equal "$(stat -c %a opt/bin/perch opt/share/man/man1/perch.1 | xargs)" "755 644"
  assert_equal "$(find opt -type f | sort | xargs)" "opt/bin/perch opt/engine.json opt/share/man/man1/perch.1"

  local before
  before=$(tree)
  run_play 0
  assert_output --regexp "alpha .*changed=0 "
  assert_equal "$(tree)" "$before"
  [ "$(grep -c '^TASK' <<<"$output")" -le 9 ] || fail "the tasks have become more"
}

@test "times and owners of the controller's files, and the engine's tests, do not count as changes" {
  installed
  find source -exec touch -d 2001-01-01 {} +
  chmod -R g+w source
  echo 'int more;' >>source/tests/pair.h
  run_play 0
  assert_output --regexp "alpha .*changed=0 "
}

@test "check mode on a bare host says what would be built, and makes nothing" {
  run_play 0 --check
  assert_output --partial "no engine is installed"
  assert_output --regexp "alpha .*changed=1 "
  [ ! -e opt ] || fail "check mode made something: $(find opt)"
  installed
  run_play 0 --check
  assert_output --regexp "alpha .*changed=0 "
}

@test "another program in the engine's place is replaced, and why is said" {
  installed
  printf '#!/bin/sh\necho perch 0.0.1\n' >opt/bin/perch
  run_play 0
  assert_output --partial "it does not say that it is perch $(version)"
  assert_output --partial "it is not the program that was installed"
  run_expecting 0 opt/bin/perch --version
  assert_output --partial "perch $(version)"
}

@test "another owner's right to write the engine is found and taken" {
  installed
  chmod 777 opt/bin/perch
  run_play 0 --check
  assert_output --partial "its owner or its mode was changed"
}

@test "changed sources and changed options are reasons to build" {
  installed
  run_play 0 --check -e '{"engine_make_variables": ["CFLAGS=-O1"]}'
  assert_output --partial "sources or options are others"
  run_play 0 --check -e '{"engine_environment": {"PKG_CONFIG_PATH": "/opt/vendor"}}'
  assert_output --partial "sources or options are others"
  echo '/* changed */' >>source/src/backends/null/null.c
  run_play 0 --check
  assert_output --partial "sources or options are others"
}

@test "sources that do not compile leave the installed engine, and the compiler's words are shown" {
  installed
  local before
  before=$(tree)
  local first
  first=$(printf '%s\n' source/src/*.c | head -n 1) # what make compiles first, so that the others need not be
  echo 'this is no C;' >>"$first"
  run_play 2
  assert_output --partial "${first##*/}"
  assert_output --partial "error:"
  assert_output --partial "The installed engine was left as it is"
  assert_equal "$(tree)" "$before"
}

@test "an engine that says another version than its sources replaces nothing" {
  installed
  local before
  before=$(tree)
  sed -i 's/"perch " PERCH_VERSION "\\nbackends:"/"perch 9.9.9\\nbackends:"/' source/src/cli/options_help.c
  run_play 2
  assert_output --partial "perch 9.9.9"
  assert_output --partial "The installed engine was left as it is"
  assert_equal "$(tree)" "$before"
}

@test "sources that are not there are named" {
  run_play 2 -e engine_source="$PWD/no-such-engine"
  assert_output --partial "no-such-engine"
  [ ! -e opt ] || fail "something was made: $(find opt)"
}

@test "each host is judged by what it has itself" {
  mkdir alpha beta
  cp -a "$BATS_FILE_TMPDIR/first/opt" beta/opt
  run play --check -e '{"engine_prefix": "{{ playbook_dir }}/{{ inventory_hostname }}/opt"}'
  printf '%s\n' "$output"
  assert_equal "$status" 0
  assert_output --regexp "alpha .*changed=1 "
  assert_output --regexp "beta .*changed=0 "
}

@test "engine_install false: no task of the role does anything" {
  run_play 0 -e '{"engine_install": false}' -e engine_source=/nowhere
  assert_output --regexp "alpha .*changed=0 "
  [ ! -e opt ] || fail "something was made: $(find opt)"
}

@test "every package of the role is in the one list of packages" {
  run comm -23 \
    <("$TOP/.venv/bin/python" -c 'import sys, yaml; names = yaml.safe_load(open(sys.argv[1]))
print(*names["__engine_packages_build"], *names["__engine_packages_run"], *names["__engine_packages_neighbours"], sep="\n")' "$TOP/roles/engine/vars/Debian.yml" | sort -u) \
    <(sed 's/[ \t]*#.*//; /^\[/d' "$TOP/setup/packages.txt" | sort -u)
  assert_output ""
}
