#!/usr/bin/env bats
# What a tuning changed: reports/compare-tuning on runs whose figures are known, the role's order of things with roles that
# stand in for the slow ones, and once the real playbook on the local inventory. What is tuned is a stand-in everywhere, as
# tuning needs root: a file for each host, which the runs can see.

load helpers

setup_file() {
  cp -r "$TOP/tests/fixtures/loopback/run" "$BATS_FILE_TMPDIR/base"
  "$TOP/reports/judge" "$BATS_FILE_TMPDIR/base"
}
setup() { common_setup; }
teardown() { common_teardown; }

# sub_run DIR FACTOR: the recorded run under a run id of its own, latencies times FACTOR and rates divided by it
sub_run() {
  local base=$BATS_FILE_TMPDIR/base run
  run=20260101T000000Z-$(basename "$1")
  mkdir -p "$1"
  cp "$base/rounds.jsonl" "$1/"
  for file in plan verdict; do jq -c --arg run "$run" '.run = $run' "$base/$file.json" >"$1/$file.json"; done
  jq -c --arg run "$run" --argjson factor "$2" '.run = $run
    | if .latency_us then .latency_us |= with_entries(if .key == "count" or .value == null then . else .value *= $factor end) else . end
    | if .bandwidth then .bandwidth.gbit_s /= $factor else . end' "$base/records.jsonl" >"$1/records.jsonl"
  "$TOP/.venv/bin/python" "$TOP/tests/stamped.py" "$1"
}

# comparison UNTUNED TUNED...: the folder c, with a sub-run for each factor in turn
comparison() {
  local number=0 factor phase
  rm -rf c && mkdir -p c/inputs
  for factor; do
    number=$((number + 1))
    if ((number % 2)); then phase=untuned; else phase=tuned; fi
    sub_run "$(printf 'c/%02d-%s' "$number" "$phase")" "$factor"
  done
  jq -n --argjson repeats "$((number / 2))" '{schema: "perch.tuning_asked/1", $repeats,
    tuning: {role: "host_tune", settings: {alpha: {host_tune_governor: "performance"}, beta: {host_tune_governor: "performance"}}}}' >c/inputs/tuning.json
}

compare() { run_expecting "$1" "$TOP/.venv/bin/perchctl" compare-tuning c view.json; }

# ---- the role ----

# stand_in ROLE FILE < tasks
stand_in() { mkdir -p "roles/$1/tasks" && cat >"roles/$1/tasks/$2.yml"; }

# Roles in place of the slow ones: a run is the recorded one, faster where every host is tuned.
stand_ins() {
  mkdir -p state kept
  stand_in stand_in_tune main <<'YAML'
- name: Refuse to be tuned
  ansible.builtin.fail: {msg: no hand may turn this screw}
  when: inventory_hostname == stand_in_tune_refusing | default('')
- name: Tune
  ansible.builtin.file: {path: "{{ stand_in_tune_dir }}/{{ inventory_hostname }}", state: touch, mode: "0644"}
YAML
  stand_in stand_in_tune revert <<'YAML'
- name: Stay as it is
  ansible.builtin.fail: {msg: the screw is stuck}
  when: inventory_hostname == stand_in_tune_stuck | default('')
- name: Revert
  ansible.builtin.file: {path: "{{ stand_in_tune_dir }}/{{ inventory_hostname }}", state: absent}
YAML
}

stub_roles() {
  stand_ins
  declare -f sub_run >sub_run.bash
  echo "- ansible.builtin.set_fact: {plan_run_dir: '{{ plan_runs_dir }}/{{ plan_run_name }}'}" | stand_in plan main
  echo '[]' | stand_in host_check main
  echo '[]' | stand_in report main
  stand_in switch_check main <<YAML
- ansible.builtin.shell: echo "{{ switch_check_run_dir | basename }} {{ switch_check_phase }} \$(cat $PWD/order 2>&- | wc -l)" >>$PWD/switches
  run_once: true
YAML
  stand_in agent main <<YAML
- ansible.builtin.shell: |
    echo "{{ agent_run_dir | basename }} \$(ls $PWD/state | xargs -r | grep . || echo none)" >>$PWD/order
    TOP=$TOP BATS_FILE_TMPDIR=$BATS_FILE_TMPDIR; . $PWD/sub_run.bash
    factor=\$(jq -n "(if \$(ls $PWD/state | wc -l) == 2 then 0.8 else 1 end) * (1 + \$(wc -l <$PWD/order) % 3 / 100)")
    sub_run {{ agent_run_dir }} \$factor
  args: {executable: /bin/bash}
  run_once: true
YAML
  echo "{name: stub, title: A stub}" >suite.yml
  cat >play.yml <<YAML
- hosts: all
  gather_facts: false
  vars: {plan_suite_file: $PWD/suite.yml, plan_runs_dir: $PWD/runs}
  roles: [compare_tuning]
YAML
}

# play EXIT [OPTION...]
play() {
  local expected=$1
  shift
  ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1 ANSIBLE_ROLES_PATH=$PWD/roles:$TOP/roles LIMIT=180 \
    run_expecting "$expected" ansible-playbook -i "$TOP/inventories/local" play.yml -e compare_tuning_role=stand_in_tune \
    -e stand_in_tune_dir="$PWD/state" -e compare_tuning_kept_dir="$PWD/kept" -e compare_tuning_repeats=2 "$@"
}

@test "the role measures untuned and tuned in turn, reverts each time, and reports; runs/latest stays as it was" {
  stub_roles
  mkdir runs && ln -s elsewhere runs/latest
  play 0
  assert_equal "$(cat order)" "01-untuned none
02-tuned alpha beta
03-untuned none
04-tuned alpha beta"
  # the switches are read around each run's measuring: the number is that of the runs measured by then
  assert_equal "$(cat switches)" "01-untuned before 0
01-untuned after 1
02-tuned before 1
02-tuned after 2
03-untuned before 2
03-untuned after 3
04-tuned before 3
04-tuned after 4"
  [ -z "$(ls state)" ] || fail "left tuned: $(ls state)"
  assert_equal "$(readlink runs/latest)" elsewhere
  assert_json runs/latest-tuning/tuning.json '.gaps == [] and .method.repeats == 2 and .method.pairs == 2 and .outcome.not_reverted == []
    and .tuning.role == "stand_in_tune" and (.tuning.settings.beta | keys) == ["stand_in_tune_dir"]'
  run cat runs/latest-tuning/report.md
  assert_output --partial "## Before and after tuning"
  assert_output --regexp '\| 8 B \| typical \(p50\) \| [0-9.]+ µs \| [0-9.]+ µs \| -[0-9.]+ % \|'
  assert_output --partial "[04-tuned](04-tuned/report.md)"
  assert_output --partial 'stand_in_tune_dir'
}

@test "a host that cannot be tuned stops the comparison; every host is reverted, and nothing is claimed" {
  stub_roles
  play 0 -e stand_in_tune_refusing=beta
  assert_equal "$(cat order)" "01-untuned none"
  [ -z "$(ls state)" ] || fail "left tuned: $(ls state)"
  assert_json runs/latest-tuning/tuning.json '.result == "incomplete" and .outcome.not_reverted == []
    and any(.gaps[]; test("stopped.*beta.*no hand may turn this screw"))'
  grep -q "Incomplete" runs/latest-tuning/report.md
}

@test "a host that cannot be reverted ends it after its first repeat, and is named with what to do; the others are reverted" {
  stub_roles
  play 0 -e stand_in_tune_stuck=beta
  assert_equal "$(ls state)" beta
  assert_equal "$(wc -l <order)" 2
  assert_json runs/latest-tuning/tuning.json '.result == "incomplete" and .outcome.not_reverted == ["beta"]
    and any(.gaps[]; test("not reverted: beta; run playbooks/revert.yml"))'
}

@test "hosts that are tuned already, one repeat, or check mode: nothing is changed" {
  stub_roles
  play 2 -e compare_tuning_repeats=1
  assert_output --partial "An interval needs 2 repeats"
  play 0 --check
  [ ! -e order ] && [ ! -e runs ] && [ -z "$(ls state)" ] || fail "check mode made something: $(ls . state)"
  : >kept/000001-0.json
  play 2
  assert_output --partial "is tuned already"
  assert_output --partial "playbooks/revert.yml"
  [ ! -e order ] && [ ! -e runs ] || fail "something was made: $(ls)"
}

# ---- the playbook, as it is ----

@test "a tuning that the role would refuse is refused before anything is measured" {
  ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1 LIMIT=120 run_expecting 2 ansible-playbook -i "$TOP/inventories/local" \
    "$TOP/playbooks/compare_tuning.yml" -e plan_runs_dir="$PWD/runs" -e compare_tuning_kept_dir="$PWD/kept" -e host_tune_governor_provider=tuned
  assert_output --partial "host_tune_governor_provider: tuned and host_tune_tuned_profile go together"
  [ ! -e runs ] || fail "something was made: $(ls runs)"
}

@test "the real playbook: each phase is a whole run that can be judged again, and no host is left tuned" {
  stand_ins
  cat >suite.yml <<'YAML'
name: tiny
title: A suite of seconds
tests:
  - {name: tcp-latency, title: TCP latency, tool: perch, backend: tcp, kind: latency, params: {size: 64, iterations: 2000, completion: event}}
YAML
  printf '#!/bin/sh\ncase $1 in lat) ls %s | xargs -r | grep . >>%s || echo none >>%s ;; esac\nexec %s "$@"\n' "$PWD/state" "$PWD/order" "$PWD/order" "$PERCH" >engine
  chmod +x engine
  ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1 ANSIBLE_ROLES_PATH=$TOP/roles:$PWD/roles LIMIT=600 \
    run_expecting 0 ansible-playbook -i "$TOP/inventories/local" "$TOP/playbooks/compare_tuning.yml" -e plan_suite_file="$PWD/suite.yml" \
    -e plan_runs_dir="$PWD/runs" -e agent_state_dir="$PWD/agents" -e "{\"agent_install_dir\": \"$PWD/opt/{{ inventory_hostname }}\"}" -e perch_port="$(free_port)" \
    -e "{\"perch_iperf3_port\": $(free_port), \"perch_iperf_port\": $(free_port)}" -e agent_engine="$PWD/engine" \
    -e compare_tuning_role=stand_in_tune -e stand_in_tune_dir="$PWD/state" -e compare_tuning_kept_dir="$PWD/kept" -e compare_tuning_repeats=2
  assert_equal "$(xargs <order)" "none alpha beta none alpha beta"
  [ -z "$(ls state)" ] || fail "left tuned: $(ls state)"
  [ ! -e runs/latest ] || fail "latest names a part of a comparison"
  assert_json runs/latest-tuning/tuning.json '.gaps == [] and (.runs | map(.run) | unique | length) == 4 and (.flows | length) == 1'
  local dir verdict
  for dir in runs/latest-tuning/0*; do
    for file in plan.json inputs/limits.json raw/alpha/host_check.json raw/beta/flows.jsonl report.md; do
      [ -s "$dir/$file" ] || fail "there is no $dir/$file"
    done
    verdict=$(cat "$dir/verdict.json")
    run "$TOP/reports/judge" "$dir"
    assert_equal "$(cat "$dir/verdict.json")" "$verdict"
  done
  [ -z "$(find agents -type f)" ] || fail "left on the host: $(find agents -type f)"
}
