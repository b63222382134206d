#!/usr/bin/env bats
# setup/setup: what it finds, and what it does where it may not install.
# shellcheck disable=SC2154  # run --separate-stderr sets stderr

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

# As someone who is not root and has no sudo, whoever runs the tests: both are found through PATH.
as_nobody() {
  mkdir -p bin
  printf '#!/bin/sh\necho 65534\n' >bin/id
  printf '#!/bin/sh\nexit 1\n' >bin/sudo
  chmod +x bin/*
  PATH=$PWD/bin:$PATH "$@"
}

@test "nothing to do installs nothing, and says nothing" {
  "$TOP/setup/setup" run build
  mkdir -p bin
  for program in apt-get sudo python3 pip; do
    printf '#!/bin/sh\necho "%s $*" >>%q/started\nexit 1\n' "$program" "$PWD" >"bin/$program"
  done
  chmod +x bin/*
  PATH=$PWD/bin:$PATH run_expecting 0 "$TOP/setup/setup" run build
  assert_output ""
  [ ! -e started ] || fail "it started: $(cat started)"
}

@test "missing packages and no right to install them: one command, exit code 3" {
  printf '[run]\njq\nno-such-package-1 # a reason\n[build]\nno-such-package-2\n' >packages.txt
  run as_nobody "$TOP/setup/setup" --no-venv --packages packages.txt run build </dev/null
  assert_equal "$status" 3
  assert_line "apt-get update && apt-get install --yes --no-install-recommends no-such-package-1 no-such-package-2"
  refute_output --partial " jq"
}

@test "only the sections asked for are looked at" {
  printf '[run]\njq\n[build]\nno-such-package-2\n' >packages.txt
  run_expecting 0 "$TOP/setup/setup" --no-venv --packages packages.txt run
}

@test "a section or an option that does not exist is refused with exit code 2" {
  run_expecting 2 "$TOP/setup/setup" --no-venv nothing
  assert_output "setup: unknown section 'nothing'; valid: run, verify, hosts, build, test, lint, release, bench, uml, lab"
  run_expecting 2 "$TOP/setup/setup" --no-such-option
  assert_output --partial "--no-such-option"
}

@test "an option without its value is a usage error in setup's own words" {
  run_expecting 2 "$TOP/setup/setup" --packages
  assert_output "setup: --packages needs a value; give a file such as setup/packages.txt"
}

@test "a misspelt section names the nearest one" {
  local word
  for word in tset:test tests:test benhc:bench realease:release laab:lab; do
    run_expecting 2 "$TOP/setup/setup" --no-venv "${word%:*}"
    assert_output "setup: unknown section '${word%:*}', did you mean '${word#*:}'?"
  done
}

@test "help names every option and section, and installs nothing" {
  mkdir -p bin
  printf '#!/bin/sh\necho "$0 $*" >>%q/started\nexit 1\n' "$PWD" | tee bin/apt-get bin/dpkg-query >bin/sudo
  chmod +x bin/*
  for word in -h --help; do
    PATH=$PWD/bin:$PATH run_apart 0 "$TOP/setup/setup" "$word"
    assert_equal "$stderr" ""
    for part in --packages --no-venv --help $(sed -n 's/^\[\(.*\)\].*/\1/p' "$TOP/setup/packages.txt"); do
      assert_line --regexp "^  (-h, )?$part( |$)"
    done
    [ "$(wc -L <<<"$output")" -le 100 ] || fail "wider than 100 columns"
  done
  [ ! -e started ] || fail "it started: $(cat started)"
}

@test "the list names every section's packages once, in words that apt knows as names" {
  run awk '/^\[/ { section = $1; next } { sub(/#.*/, ""); gsub(/[ \t]/, "") } $0 && seen[section $0]++ { print section $0 }
    $0 && $0 !~ /^[a-z0-9][a-z0-9+.-]+$/ { print }' "$TOP/setup/packages.txt"
  assert_output ""
}

# checkout DIR: a checkout with as much as set-up looks at, and a package perch that says where it is
checkout() {
  mkdir -p "$1/perch"
  cp -r "$TOP/setup" "$1"
  ln -s "$TOP/engine" "$1"
  printf 'def main():\n    print(__file__)\n' >"$1/perch/cli.py"
}

@test "checkouts share installed packages, and each runs its own perchctl, also after it was moved" {
  local name
  for name in one "the other"; do
    checkout "$name"
    run_expecting 0 "$name/setup/setup" run
    run_expecting 0 "$name/.venv/bin/perchctl"
    assert_output "$PWD/$name/perch/cli.py"
    assert [ -d "$name/perch/__pycache__" ]
    assert_equal "$(readlink "$name/.venv/cache")" "$(readlink "$TOP/.venv/cache")"
  done
  mv one moved
  ln -s "$PWD/moved/.venv/bin/perchctl" linked
  run_expecting 0 ./linked
  assert_output "$PWD/moved/perch/cli.py"
  run_expecting 0 "the other/.venv/bin/ansible-playbook" --version
  assert_output --partial "($PWD/the other/.venv/bin/python)"
}

@test "verify gets an environment of its own, which what else is set up later replaces; there it takes what is there" {
  local cache
  checkout one
  : >one/setup/requirements-verify.txt # nothing to fetch
  printf -- '-r requirements-verify.txt\n# all\n' >one/setup/requirements.txt
  export XDG_CACHE_HOME=$PWD/cache
  run_expecting 0 one/setup/setup verify
  cache=$(readlink one/.venv/cache)
  run_expecting 0 one/.venv/bin/perchctl
  run_expecting 0 one/setup/setup run
  [ "$(readlink one/.venv/cache)" != "$cache" ] || fail "only what verify needs is there"
  cache=$(readlink one/.venv/cache)
  run_expecting 0 one/setup/setup verify
  assert_equal "$(readlink one/.venv/cache)" "$cache"
}

@test "a half-built environment is never used: it is built again" {
  mkdir -p cache/perch
  local venv
  venv=$(readlink "$TOP/.venv/cache")
  mkdir -p "cache/perch/${venv##*/}/bin" # begun, without its mark of completion
  run env XDG_CACHE_HOME="$PWD/cache" PIP_NO_INDEX=1 PIP_FIND_LINKS= "$TOP/setup/setup" run
  assert_equal "$status" 3
  assert_output --partial "could not be built"
  [ ! -e "cache/perch/${venv##*/}" ] || fail "the failed environment is still there"
  assert_equal "$(readlink "$TOP/.venv/cache")" "$venv"
}
