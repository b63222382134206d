#!/usr/bin/env bats
# A first hardware day on two machines over ssh, with verbs over Soft-RoCE: from the playbook to the archive. What needs no
# machine of its own is in tests/bats/first_day.bats.

load ../helpers

setup_file() { lab_ready; }
setup() { common_setup; }
teardown() { common_teardown; }

@test "two machines answer what Soft-RoCE can, the rest is named with its reason, and the archive holds no key" {
  local run archive page
  LIMIT=2400 lab_playbook 0 "$TOP/playbooks/first_day.yml" -e plan_runs_dir="$PWD/runs" -e first_day_accept=true \
    -e '{"engine_make_variables": ["CC=ccache cc", "CFLAGS=-O0"]}'
  run=$(basename "$(readlink runs/latest)")
  archive=runs/$run.bundle.tar.gz
  page=runs/$run/first-day.md
  grep -q '^| a | .* | measured | \([0-9]*\) of \1 flows |$' "$page" || fail "$(<"$page")"
  grep -q '^| b | .* | measured | 2 of 2 hosts |$' "$page" || fail "$(<"$page")"
  grep -q '^- alpha has no NVIDIA GPU' "$page" || fail "$(<"$page")"
  grep -q '^- no device is a bond (alpha: ' "$page" || fail "$(<"$page")"
  tar -xzOf "$archive" "$run/bundle.json" >/dev/null
  ! tar -xzOf "$archive" | grep -aqE 'BEGIN [A-Z ]*PRIVATE KEY' || fail "a key is in the archive"
  LIMIT=120 run_expecting 0 "$TOP/.venv/bin/perchctl" verify "$archive"
}
