#!/usr/bin/env bats
# What every role and playbook owes its readers (tests/roles.py): manual, description, ranges. Each rule is broken once in a
# copy, to see that it speaks.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

roles() { run_expecting "$1" python "$TOP/tests/roles.py" "${2:-$TOP/roles}"; }

# says PART: the copy in roles/ is refused with these words
says() {
  roles 1 roles
  assert_output --partial "$1"
}

@test "every role has a manual, a description and a README that agree, and counts on no other role's variables" {
  roles 0
  assert_output --regexp '[1-9][0-9]* roles, 0 things'
}

@test "each rule is seen to be broken" {
  cp -r "$TOP/roles" .
  local engine=roles/engine/defaults/main.yml
  sed -i 's/^engine_owner: root/engine_ownr: root/' $engine
  says "engine: engine_ownr is in defaults/main.yml and not in meta/argument_specs.yml"
  says "engine: engine_owner is in meta/argument_specs.yml and not in defaults/main.yml"
  cp "$TOP/$engine" $engine
  sed -i 's/^engine_make_jobs: 4/engine_make_jobs: 5/; /^# Build and install without/d' $engine
  says "engine_make_jobs is 5 in defaults/main.yml, and 4 in meta/argument_specs.yml"
  says "engine_rebuild has no comment in defaults/main.yml"
  echo 'plan_limits: local' >>$engine
  says "engine: plan_limits is in defaults/main.yml, and is no variable of this role"
  cp "$TOP/$engine" $engine
  sed -i 's/, at least 1\././' roles/engine/meta/argument_specs.yml
  says "engine: engine_make_jobs is a number, and its description does not say of what range"
  sed -i 's/^engine_owner: root/engine_owner:/' $engine
  sed -i '/^      engine_owner:/,/default: root/{s/default: root/choices: [root]/}' roles/engine/meta/argument_specs.yml
  says "engine: engine_owner is null in defaults/main.yml, which is none of its choices"
  sed -i '/agent_lease/d' roles/agent/README.md
  says "agent: agent_lease is not in README.md"
  sed -i 's/plan_reference_curves | default(\[\])/plan_reference_curves/' roles/inventory_check/tasks/suite.yml
  says "inventory_check: plan_reference_curves of another role is used without a default in tasks/suite.yml"
  sed -i 's/perch_command:/ansible.builtin.command:/' roles/host_check/tasks/main.yml
  says "host_check: ansible.builtin.command is used in tasks/main.yml"
  rm roles/report/README.md
  says "report: there is no README.md"
}

@test "a playbook has less than 40 lines" {
  local playbook
  for playbook in "$TOP"/playbooks/*.yml; do
    [ "$(wc -l <"$playbook")" -lt 40 ] || fail "$playbook has $(wc -l <"$playbook") lines"
  done
}
