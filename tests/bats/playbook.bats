#!/usr/bin/env bats
# The real playbook on the local inventory, with a suite of seconds: what it leaves, and what it refuses before anything is made.

load helpers
load playbook

# Two runs in one folder, for the tests of what runs leave: of the suite of seconds, and of one with a limit that nothing can
# keep, on an inventory with a port that only its hosts can tell. ran NAME: its words are in NAME.log, its exit code in NAME.exit.
setup_file() {
  BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR playbook_setup
  export FILE_MARK=$PERCH_TEST_MARK
  ran first
  readlink runs/latest >first
  find agents -type f >first.left
  find "runs/$(<first)" -type f -exec sha256sum {} + | sort >first.files
  cp -r "runs/$(<first)" first.run
  cp runs/index.jsonl first.index
  cat >suite.yml <<'YAML'
name: outlier
title: Four tests, of which one falls outside
tests:
  - {name: one, title: One, tool: perch, backend: tcp, kind: latency, params: {size: 8, duration: 100ms}}
  - {name: two, title: Two, tool: perch, backend: tcp, kind: latency, params: {size: 8, duration: 100ms}}
  - {name: three, title: Three, tool: perch, backend: tcp, kind: latency, params: {size: 8, duration: 100ms}}
  - {name: four, title: Four, tool: perch, backend: tcp, kind: latency, params: {size: 8, duration: 100ms}}
YAML
  cat >limits.yml <<'YAML'
schema: perch.limits/1
name: site
title: A limit that nothing can keep
limits:
  - {id: stray, title: No time at all, scope: {test: four}, metric: latency_us.mean, bound: {max: 0.001}, unit: us,
     source: "site policy: a test", severity: required, remedy: None}
  # a busy machine may miss these, too
  - {id: small-message-mean, severity: removed, source: "site policy: a test"}
  - {id: small-message-idle, severity: removed, source: "site policy: a test"}
  - {id: small-message-tail, severity: removed, source: "site policy: a test"}
YAML
  printf 'all: {vars: {ansible_port: "{{ 22 + 0 * (inventory_dir | length) }}"}}\n' >port.yml
  ran second -i port.yml -e plan_limits_site="$PWD/limits.yml"
}

ran() {
  local code=0
  site "${@:2}"
  timeout --kill-after=5 400 "${SITE[@]}" >"$1.log" 2>&1 3>&- || code=$?
  echo "$code" >"$1.exit"
}

teardown_file() { PERCH_TEST_MARK=$FILE_MARK no_leak; }

setup() { playbook_setup; }
teardown() { common_teardown; }

# after NAME: what that run has left
after() {
  cd "$BATS_FILE_TMPDIR" || return
  run cat "$1.log"
  status=$(<"$1.exit")
}

@test "a run leaves plan, raw outputs, records, verdict and report, and shows its progress" {
  after first
  assert_output --regexp '\[1/3\] TCP latency, alpha -> beta, about [0-9]+ s left'
  assert_output --partial '[3/3] TCP latency'
  for file in plan.json inputs/limits.json raw/alpha/environment.json raw/beta/flows.jsonl records.jsonl verdict.json report.md; do
    [ -s "first.run/$file" ] || fail "there is no $file"
  done
  # a busy machine repeats some
  assert_json first.run/verdict.json '.scope == "software" and .coverage.planned == .coverage.measured and .coverage.planned >= 9'
  # the playbook's exit follows the verdict
  assert_equal "$([ "$status" -eq 0 ] && echo PASS || echo other)" "$(jq -r .verdict first.run/verdict.json | sed '/^PASS$/!s/.*/other/')"
  if [ "$status" -eq 0 ]; then assert_output --partial "Verdict: PASS, software only. The report is"; fi
  assert_equal "$(<first.left)" ""
  assert_equal "$(find first.run -name '*token*')" ""
  # sealed as it was fetched, and listed
  assert_json first.run/verdict.json '.checks[] | select(.id == "manifest") | .status == "pass"'
  assert_json first.index '.run as $run | .schema == "perch.index/2" and .planned >= 9 and .folder == $run'
}

@test "a run does not touch an earlier one" {
  after second
  refute [ "$(readlink runs/latest)" = "$(<first)" ]
  assert_equal "$(find "runs/$(<first)" -type f -exec sha256sum {} + | sort)" "$(<first.files)"
}

@test "connection settings of the inventory that only its hosts have do not reach the controller" {
  after second
  refute_output --partial "is undefined"
  refute_output --regexp "localhost .* failed=[1-9]"
  assert_json runs/latest/verdict.json '.coverage.planned == .coverage.measured'
}

@test "what fell outside is measured again: its files join the manifest, and the index has one line, of the last verdict" {
  after second
  assert_equal "exit code $status" "exit code 2"
  assert_output --partial "fell outside: four/alpha/beta (limit/stray/four)"
  assert_json runs/latest/verdict.json '.verdict == "FAIL" and .coverage.planned == 6 and .coverage.measured == 6
    and ([.checks[] | select(.id | startswith("manifest")) | [.id, .status]] == [["manifest", "pass"]])'
  # sealed twice: the first walk's files before they were judged, the repeats' behind them
  run sed -nE 's|^[0-9a-f]{64}  ||; \|^plan.retry.json$\|^raw/.*/flows.jsonl$|p' runs/latest/raw/manifest.sha256
  assert_line --index 0 raw/alpha/flows.jsonl
  assert_line plan.retry.json
  assert_line raw/beta/retry/flows.jsonl
  assert_equal "$(jq -c '[.verdict, .planned, .measured]' runs/index.jsonl | tail -n +2)" '["FAIL",6,6]'
}

@test "a suite that names an unknown backend is refused, naming it and the known ones; nothing is made" {
  sed -i 's/backend: tcp/backend: carrier-pigeon/' suite.yml
  run_site 2
  assert_output --partial "carrier-pigeon"
  assert_output --partial "test tcp-latency"
  assert_output --regexp "tcp.*ofi.*null"
  [ ! -e runs ] || fail "a run was made: $(ls runs)"
}

@test "an inventory that cannot be measured is refused by name, before anything is made" {
  run_site 2 -e perch_fabric=string-and-cans
  assert_output --partial "string-and-cans"
  run_site 2 -e '{"perch_backends": ["tcp", "smoke"]}'
  assert_output --partial "smoke"
  run_site 2 -e perch_address=127.0.0.1
  assert_output --partial "have the same perch_address"
  run_site 2 -e plan_limits=none-such
  assert_output --partial "none-such"
  run_site 2 -e plan_suite_file=/no/such/suite.yml
  assert_output --partial "/no/such/suite.yml"
  [ ! -e runs ] || fail "a run was made: $(ls runs)"
}

@test "ports that clash, and host names that are no names, are refused with the host's name" {
  run_site 2 -e '{"perch_iperf3_port": 5001, "perch_iperf_port": 5001}'
  assert_output --partial 'hosts alpha, beta: its ports must differ'
  sed 's/alpha:/"-alpha":/' "$TOP/inventories/local/hosts.yml" >hosts.yml
  INVENTORY=hosts.yml run_site 2
  assert_output --partial 'host -alpha: the name of a host has letters'
  [ ! -e runs ] || fail "a run was made: $(ls runs)"
}

@test "a runs directory that cannot be written is named, with what to do" {
  : >runs-is-a-file
  run_site 2 -e plan_runs_dir="$PWD/runs-is-a-file"
  assert_output --partial "Suite tiny cannot be planned"
  assert_output --partial "cannot be made (Not a directory)"
  assert_output --partial "plan_runs_dir)"
}

@test "check mode plans, and neither writes nor measures, on the first run" {
  run_site 0 --check
  assert_output --partial "3 flows"
  [ ! -e runs ] && [ ! -e agents ] || fail "check mode made something: $(ls)"
}
