#!/usr/bin/env bats
# The role report: records, verdict, report and charts from a run's folder alone, whatever the verdict.

load helpers

setup() {
  common_setup
  cp -r "$TOP/tests/fixtures/loopback/run" run
  command -v ansible-playbook >/dev/null || skip "ansible-playbook is not installed"
  cat >report.yml <<PLAYBOOK
- name: Report
  hosts: all
  gather_facts: false
  roles:
    - role: report
      vars:
        report_run_dir: $PWD/run
        report_engine: "{{ lookup('ansible.builtin.env', 'REPORT_ENGINE') or '$TOP/engine/build/perch' }}"
PLAYBOOK
}
teardown() { common_teardown; }

report() {
  ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_ROLES_PATH=$TOP/roles \
    run ansible-playbook -i alpha,beta -c local report.yml
  assert_equal "$status" 0
}

# The lines before the first table: what a reader sees without scrolling.
first_screen() { sed '/^| Test /q' run/report.md; }

@test "a run that passed has a report, and its first screen says that it is no proof of hardware" {
  report
  first_screen >first
  run cat first
  assert_output --partial "**PASS**"
  assert_output --partial "no proof of hardware"
  assert_output --partial "alpha, beta"
  assert_output --partial "planned records measured"
  for chart in latency latency_completion bandwidth distribution; do
    grep -q "charts/$chart.svg" run/report.md
    grep -q '<svg' "run/charts/$chart.svg"
  done
  for section in "Device under test" Topology Configuration "Key findings" Readiness Anomalies "RDMA against TCP" Evolution Charts Results Repeatability \
    "Every check" "The hosts"; do
    grep -qx "## $section" run/report.md || fail "no section $section"
  done
}

@test "RDMA against TCP: bandwidth, latency, jitter, tail, CPU and retransmissions, never unknown" {
  report
  sed -n '/^## RDMA against TCP, all figures/,/^## The commands/p' run/report.md >table
  run cat table
  for figure in "Bandwidth, busy polling" "Bandwidth, waiting by events" "Latency, median" "Jitter, standard deviation" \
    "Jitter, p99 - p50" "Tail, p99" "CPU of the client, waiting by events" "CPU of the server, waiting by events" "Whole host's CPU at the server, waiting by events" "Retransmissions"; do
    assert_output --partial "$figure"
  done
  refute_output --partial "unknown"
}

@test "a run that failed and one without a plan have their reports, too" {
  rm -r run/raw/beta
  report
  run first_screen
  assert_output --partial "**INCONCLUSIVE**"
  assert_output --partial "Raw outputs of host beta"
  : >run/plan.json
  report
  run cat run/report.md
  assert_output --partial "plan.json cannot be used" || assert_output --partial "plan.json is damaged"
}

@test "the same run gives the same report and the same pictures" {
  report
  mkdir first
  cp run/report.md run/charts/*.svg first/
  report
  for file in first/*; do
    cmp "$file" "run/$(basename "$file")" || cmp "$file" "run/charts/$(basename "$file")"
  done
}

@test "without the engine the distribution is drawn from the records, and says so" {
  REPORT_ENGINE=/nonexistent report
  run cat run/report.md
  assert_output --partial "no engine was at hand"
  grep -q '<svg' run/charts/distribution.svg
}

@test "text from outside cannot break the report's tables" {
  local json=run/raw/alpha/flows/tcp-latency/alpha/beta/1/client.json
  jq -c '.state = "not_run" | .exit = null | .message = "a|b\n<img src=x>"' "$json" >edited && mv edited "$json"
  report
  run grep -F 'a\|b &lt;img src=x>' run/report.md
  assert_equal "$status" 0
}

@test "engine and perftest stand side by side, with whether they agree and why they are not compared" {
  rm -r run
  cp -r "$TOP/tests/fixtures/perftest/run" run
  report
  sed -n '/^## The engine beside perftest/,/^## Every check/p' run/report.md >table
  run cat table
  assert_output --partial "| write latency, RC: median | 64 B | 113 µs | 16.2 µs | 7.01x | **disagree** |"
  # perftest turned relaxed ordering on here, as it does by default, and the engine did not
  assert_output --partial "| 0.276 Gb/s | 0.313 Gb/s | - | not alike (relaxed_ordering: engine false, perftest true) |"
  assert_output --partial "not alike (definition: engine receiver_acknowledged, perftest initiator_completion; relaxed_ordering"
}
