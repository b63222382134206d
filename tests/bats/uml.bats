#!/usr/bin/env bats
# tests/uml: the kernel with Soft-RoCE that runs as a process. Building it takes minutes, so `make test` uses it where
# `make bench-verbs` or tests/uml/kernel has built it, and says where it has not.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

UML=$TOP/tests/uml

needs_kernel() { "$UML/kernel" --cached >/dev/null || skip "no kernel has been built here: tests/uml/kernel builds it"; }

# guest EXIT [OPTION...] COMMAND...
guest() {
  local expected=$1
  shift
  run_expecting "$expected" "$UML/run" --timeout 40 "$@"
}

@test "without an archive of Debian's in apt's lists: exit code 3, and the command that gets the source elsewhere" {
  mkdir bin
  printf '#!/bin/sh\nexit 0\n' >bin/apt-get
  chmod +x bin/apt-get
  for tool in bc bison flex; do ln -s /bin/true "bin/$tool"; done
  PATH=$PWD/bin:$PATH XDG_CACHE_HOME=$PWD/cache run_expecting 3 "$UML/kernel"
  assert_output --partial "apt-get download linux-source-"
  assert_output --partial "--source"
  run_expecting 0 find cache -name 'uml-build-*'
  assert_output ""
}

@test "a source that is no kernel is refused with exit code 3, and nothing is kept of it" {
  mkdir bin
  for tool in bc bison flex; do ln -s /bin/true "bin/$tool"; done
  echo nothing >linux-source.tar.xz
  PATH=$PWD/bin:$PATH XDG_CACHE_HOME=$PWD/cache run_expecting 3 "$UML/kernel" --source linux-source.tar.xz
  assert_output --partial "linux-source.tar.xz cannot be unpacked"
  XDG_CACHE_HOME=$PWD/cache run_expecting 1 "$UML/kernel" --cached
}

@test "the guest gives back exit code, standard output and standard error of a command with odd arguments" {
  needs_kernel
  run_apart 7 "$UML/run" --timeout 40 bash -c 'printf "<%s>" "$@"; echo gone wrong >&2; exit 7' bash 'a b' '' $'c\nd'
  assert_output $'<a b><><c\nd>'
  assert_said "gone wrong"
}

@test "in the guest: rxe0 is active on veth0, and GID 1 is its IPv4 address as RoCEv2" {
  needs_kernel
  guest 0 rdma --json link show rxe0/1
  printf '%s\n' "$output" >link.json
  assert_json link.json '.[0].state == "ACTIVE" and .[0].netdev == "veth0"'
  guest 0 cat /sys/class/infiniband/rxe0/ports/1/gids/1 /sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1
  assert_line 0000:0000:0000:0000:0000:ffff:0a00:0001
  assert_line "RoCE v2"
}

@test "what the guest writes stays there, except below --write" {
  needs_kernel
  mkdir kept
  guest 0 --write kept bash -c 'echo here >kept/file && echo there >lost && cat lost'
  assert_output there
  assert_equal "$(<kept/file)" here
  [ ! -e lost ] || fail "a file outside --write came back"
}

@test "a command that never ends is ended with its guest: exit code 124" {
  needs_kernel
  run_expecting 124 "$UML/run" --timeout 3 sleep 1000
  assert_output --partial "did not end within 3 s"
}

@test "when the script is killed, its guest ends, too" {
  needs_kernel
  mkdir kept
  TMPDIR=$PWD "$UML/run" --timeout 40 --write kept bash -c 'echo >kept/on && sleep 1000' 3>&- &
  local script=$!
  wait_until test -e kept/on
  run_expecting 0 pgrep --full "uml_dir=$PWD/"
  kill -KILL "$script"
  wait "$script" || :
  wait_until no_guest
}

no_guest() { ! pgrep --full "uml_dir=$PWD/"; }
