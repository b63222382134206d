#!/usr/bin/env bats
# A first hardware day, from the playbook to the archive: on this machine, where only TCP can answer.

load helpers
load playbook

setup() { playbook_setup; }

teardown() { common_teardown; }

@test "the archive has the answers, names by name what could not run, and holds no token" {
  site -e plan_suite_file="$TOP/playbooks/suites/first-day.yml" -e first_day_accept=true
  LIMIT=400 run_expecting 0 "${SITE[@]/%site.yml/first_day.yml}"
  local run archive
  run=$(basename "$(readlink runs/latest)")
  archive=runs/$run.bundle.tar.gz
  tar -xzf "$archive"
  local page=$run/first-day.md
  grep -q '^| a | .* | in part | 2 of 2 flows |$' "$page" || fail "$(<"$page")"
  grep -q '^| b | .* | measured | 2 of 2 hosts |$' "$page" || fail "$(<"$page")"
  grep -q '^- alpha has no backend verbs: c-write, c-read$' "$page" || fail "$(<"$page")"
  grep -q '^- no device is a bond (alpha: ' "$page" || fail "$(<"$page")"
  grep -q '^- alpha has no backend verbs: e-rails, e-rails-together$' "$page" || fail "$(<"$page")"
  # the counters of the loopback interface, which count at once
  grep -q '^| alpha | lo | tx_bytes | 1 | ' "$page" || fail "$(<"$page")"
  # six readings surround idle time and the two flows of a host; those that follow the client's flow come besides
  local host
  for host in alpha beta; do
    jq -es 'map(select(.kind == "sample")) | length > 8 and (last.monotonic_ns - first.monotonic_ns) / 1e9 > 3' "$run/raw/$host/samples.jsonl"
    [ "$(find agents -name token | wc -l)" -eq 0 ] || fail "a token is left"
  done
  ! grep -rlE 'token_file|PERCH_TOKEN=|BEGIN [A-Z ]*PRIVATE KEY' "$run" || fail "a secret is in the archive"
  LIMIT=60 run_expecting 0 "$TOP/.venv/bin/perchctl" verify "$archive"
}

@test "without first_day_accept no archive is made, and the addresses and the command are printed" {
  mkdir runs
  cp -r "$TOP/tests/fixtures/loopback/run" runs/day
  "$TOP/.venv/bin/perchctl" judge runs/day || [ $? -ne 2 ]
  cat >pack.yml <<YAML
- hosts: localhost
  gather_facts: false
  roles: [{role: $TOP/roles/first_day, vars: {first_day_run_dir: $PWD/runs/day}}]
YAML
  LIMIT=60 run_expecting 0 ansible-playbook -i localhost, -c local pack.yml
  [[ $output == *"Addresses in this run's files ("* ]] || fail "$output"
  [[ $output == *"run perchctl bundle $PWD/runs/day"* ]] || fail "$output"
  [ ! -e runs/day.bundle.tar.gz ] || fail "an archive was made"
}
