#!/usr/bin/env bats
# reports/import --run: outputs that were measured elsewhere become a run, which reports/judge judges as any other.

load helpers

setup() {
  common_setup
  import=$TOP/reports/import fixtures=$TOP/tests/fixtures
  PERCH_PYTHON=$TOP/.venv/bin/python3
  export PERCH_PYTHON
}
teardown() { common_teardown; }

made() { run_expecting 0 "$import" --run run "$@"; }

@test "the report of an imported run says so first, and shows RDMA and TCP each by its own definition" {
  command -v ansible-playbook >/dev/null || skip "ansible-playbook is not installed"
  made --limits roce "$fixtures/import/notes.md"
  cat >report.yml <<PLAYBOOK
- name: Report
  hosts: all
  gather_facts: false
  roles:
    - role: report
      vars:
        report_run_dir: $PWD/run
PLAYBOOK
  ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_ROLES_PATH=$TOP/roles LIMIT=300 run_expecting 0 ansible-playbook -i alpha, -c local report.yml
  run cat run/report.md
  assert_output --partial "Imported: measured elsewhere, and not seen by Perch."
  assert_output --partial "perftest send (RDMA), 4 queue pairs"
  assert_output --partial "Not compared: perftest send (RDMA), 4 queue pairs measured initiator_completion, iperf sender_payload."
  for title in "Initial Test (Untuned System)" "After Initial Tuning" "Final Results (Optimized)"; do
    assert_output --regexp "### .*${title//[()]/.}"
  done
  assert_output --partial "ib_send_bw -d rocep11s0 -x 3"
}
