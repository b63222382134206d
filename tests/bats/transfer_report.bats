#!/usr/bin/env bats
# Published curves of transfers that a run has chosen: the plan keeps them with the run.

load helpers

setup() {
  common_setup
  PYTHON=$TOP/.venv/bin/python
}
teardown() { common_teardown; }

as_json() { "$PYTHON" -c 'import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)' "$1"; }

@test "the plan keeps the chosen curves with the run, and refuses one that is not there" {
  cat >plan.yml <<PLAYBOOK
- name: Plan
  hosts: all
  gather_facts: false
  roles:
    - role: inventory_check
      vars:
        inventory_check_suite_file: $TOP/playbooks/suites/quick.yml
        inventory_check_suite_schema: $TOP/playbooks/suites/suite.schema.json
        inventory_check_limits_dir: $TOP/reports/limits
    - role: plan
      vars:
        plan_suite_file: $TOP/playbooks/suites/quick.yml
        plan_limits_dir: $TOP/reports/limits
        plan_runs_dir: $PWD/runs
PLAYBOOK
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_ROLES_PATH=$TOP/roles ANSIBLE_NOCOLOR=1
  run_expecting 2 ansible-playbook -i "$TOP/inventories/local" plan.yml -e '{"plan_reference_curves": ["thor3"]}'
  assert_output --partial "there is no curve thor3"
  assert_output --partial "cx7-read-size, cx7-write-size, thor2-read-size, thor2-write-batch, thor2-write-size"
  [ ! -e runs ] || fail "a run was made"
  run_expecting 0 ansible-playbook -i "$TOP/inventories/local" plan.yml \
    -e '{"plan_reference_curves": ["thor2-write-batch"]}'
  assert_equal "$(ls runs/latest/inputs/reference)" thor2-write-batch.json
  assert_equal "$(jq -cS . runs/latest/inputs/reference/thor2-write-batch.json)" \
    "$(as_json "$TOP/reports/limits/reference/thor2-write-batch.yml" | jq -cS .)"
}
