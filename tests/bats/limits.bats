#!/usr/bin/env bats
# Limits: the built-in sets, a site's own over them, bounds that are relative, and files that are wrong: refused when a run is
# planned, and never a PASS when it is judged.

load helpers
load judge

setup() {
  judge_setup
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1
  cat >site.yml <<'YAML'
schema: perch.limits/1
name: ours
title: What we expect
limits:
  - id: iperf-bandwidth
    title: TCP bandwidth of iperf reaches the limit
    scope: {tool: [iperf3, iperf]}
    metric: bandwidth.gbit_s
    bound: {min: 2}
    unit: Gb/s
    source: "site policy: what these machines have always had"
    severity: required
    remedy: Ask Ann, who knows them
  - {id: small-message-mean, severity: removed, source: "site policy: nobody here sends small messages"}
YAML
}
teardown() { common_teardown; }

# play_plan [OPTION...]: inventory and suite become a run, as in site.yml up to where hosts come in
play_plan() {
  cat >play.yml <<YAML
- name: Plan
  hosts: all
  gather_facts: false
  roles: [$TOP/roles/inventory_check, $TOP/roles/plan]
YAML
  run timeout 60 ansible-playbook -i "$TOP/inventories/local" play.yml -e plan_runs_dir="$PWD/runs" "$@" 3>&-
  said=$(tr -s ' \n' ' ' <<<"${output//\\\"/\"}")
}

@test "a file of limits that is wrong ends the plan, with file, line and key, and no run is made" {
  sed -i 's/unit: Gb.s/unit: GB\/s/; s/bound: {min: 2}/bound: {min: 2, maxi: 3}/; s/id: small-message-mean/id: small-message-main/' site.yml
  play_plan -e plan_limits_site="$PWD/site.yml"
  assert_equal "$status" 2
  for part in 'site.yml:9: limit "iperf-bandwidth", bound.maxi: unknown' 'site.yml:10: limit "iperf-bandwidth", unit:' \
    'site.yml:14: limit "small-message-main", id: removes nothing: local.yml has no limit with this id'; do
    [[ $said = *"$part"* ]] || fail "this does not say $part: $output"
  done
  [ ! -e runs ] || fail "a run was made: $(ls runs)"
  printf 'limits: [\n' >site.yml
  play_plan -e plan_limits_site="$PWD/site.yml"
  assert_equal "$status" 2
  [[ $said = *site.yml*"correct the limits"* ]] || fail "$output"
  # of two bounds nobody knows which was meant
  printf 'schema: perch.limits/1\nschema: perch.limits/1\nlimits: []\n' >site.yml
  play_plan -e plan_limits_site="$PWD/site.yml"
  assert_equal "$status" 2
  [[ $said = *"site.yml, line 2: the key 'schema' occurs twice"* ]] || fail "$output"
}
