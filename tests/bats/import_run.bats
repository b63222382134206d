#!/usr/bin/env bats
# reports/import --run: outputs that were measured elsewhere become a run, which reports/judge judges as any other.

load helpers

setup() {
  common_setup
  import=$TOP/reports/import judge=$TOP/reports/judge fixtures=$TOP/tests/fixtures
  PERCH_PYTHON=$TOP/.venv/bin/python3
  export PERCH_PYTHON
}
teardown() { common_teardown; }

made() { run_expecting 0 "$import" --run run "$@"; }
status_of() { jq -r --arg id "$1" '[.checks[] | select(.id == $id) | .status] | join(" ")' run/verdict.json; }

@test "the notes of a 10 Gb/s pair are judged: 9.23 Gb/s are 99.7 % of what MTU 1024 allows, and nothing makes it a PASS" {
  made --limits roce "$fixtures/import/notes.md"
  run_expecting 3 "$judge" run
  assert_output --partial "INCONCLUSIVE: 5 of 5 records measured, scope imported; not judged: Perch measured everything itself"
  run jq -r '.checks[] | select(.id == "ceiling") | "\(.status) \(.measured * 10 | round / 10)"' run/verdict.json
  assert_output "pass 99.7"
  assert_equal "$(status_of imported)" inconclusive
  assert_equal "$(status_of limit/large-message-bandwidth/ib_send_bw-Bandwidth-Test)" pass
  assert_equal "$(jq -c '[.rounds[].flows[].test]' run/plan.json)" \
    '["ib_send_bw-Bandwidth-Test","Initial-Test-Untuned-System","After-Initial-Tuning","Final-Results-Optimized","TCP-Performance-Baseline-iperf"]'
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" run/plan.json
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/verdict.schema.json" run/verdict.json
  jq -s . run/records.jsonl >records.json
  jq '{"$schema": ."$schema", type: "array", items: (. | del(."$id"))}' "$TOP/reports/schema/record.schema.json" >array.json
  run_expecting 0 check-jsonschema --schemafile array.json records.json
}

@test "an imported figure above its link's ceiling fails the run, and so does one that misses a limit of hardware" {
  made --limits roce --link-rate 5 "$fixtures/import/notes.md"
  run_expecting 1 "$judge" run
  assert_equal "$(status_of ceiling)" fail
  rm -r run
  sed 's/9.23               9.23                 0.001100/4.61               4.61                 0.000550/' "$fixtures/import/notes.md" >slow.md
  made --limits roce slow.md
  run_expecting 1 "$judge" run
  assert_equal "$(status_of limit/large-message-bandwidth/ib_send_bw-Bandwidth-Test)" fail
}

@test "an output that cannot be read is owed by the run, said at once, and missing from the verdict" {
  sed 's/ 65536  .*/ 65536      500              nan                6.35\t\t   0.000102/' "$fixtures/perftest/4.5/write_bw_both.txt" >bad.txt
  run_expecting 1 "$import" --run run "$fixtures/perftest/4.5/send_lat.txt" bad.txt
  assert_output --partial "import: bad.txt:"
  run_expecting 3 "$judge" run
  assert_output --partial "1 of 2 records measured"
  assert_equal "$(jq -c '[.coverage.missing[].flow]' run/verdict.json)" '["bad.txt/unknown/unknown/2"]'
  assert_equal "$(status_of flow/bad.txt/unknown/unknown/2)" inconclusive
}

@test "nothing is overwritten, and no half of a run is left where it cannot be made" {
  mkdir run
  run_expecting 2 "$import" --run run "$fixtures/import/notes.md"
  assert_output --partial "run exists"
  echo "no output of anything" >none.txt
  run_expecting 1 "$import" --run other "$fixtures/import/notes.md" none.txt
  assert_output --partial "none.txt:1: it is of no known tool"
  run_expecting 2 "$import" --run other --limits no-such-set "$fixtures/import/notes.md"
  assert_output --partial "no set of limits no-such-set"
  run_expecting 2 "$import" --run other --link-rate fast "$fixtures/import/notes.md"
  assert [ ! -e other ]
  assert_equal "$(find . -name '.import*')" ""
}

@test "a file that was changed after the plan is found: a line moved, an output more, an output less" {
  made --limits roce "$fixtures/import/notes.md"
  file=run/raw/import/notes.md
  cp "$file" good.md
  sed '40,45d' good.md >"$file"
  run_expecting 3 "$judge" run
  assert_output --partial "0 of 5 records measured"
  printf '\n```\n%s\n```\n' "$(cat "$fixtures/tools/iperf_plain.txt")" | cat good.md - >"$file"
  run_expecting 3 "$judge" run
  assert_output --partial "5 of 5 records measured"
  assert_equal "$(jq -c '[.coverage.missing[] | [.flow, .message[-37:]]]' run/verdict.json)" '[["not-planned/unknown/unknown/6","an output that the plan does not know"]]'
  assert_equal "$(status_of flow/not-planned/unknown/unknown/6)" inconclusive
  rm "$file"
  run_expecting 3 "$judge" run
  assert_output --partial "0 of 5 records measured"
  ln -s ../../../good.md "$file"
  run_expecting 3 "$judge" run
  assert_output --partial "0 of 5 records measured"
}

@test "a plan cannot lead judge to files outside, nor mix what was measured elsewhere with what the agents measured" {
  made "$fixtures/import/notes.md"
  jq '.rounds[].flows[0].import.file = "raw/import/../../plan.json"' run/plan.json >plan.json
  cp plan.json run/plan.json
  run_expecting 3 "$judge" run
  assert_output --partial "has no line of a file of raw/import"
  jq 'del(.rounds[].flows[0].import)' run/plan.json >plan.json
  cp plan.json run/plan.json
  run_expecting 3 "$judge" run
  assert_output --partial "measured elsewhere beside others"
}

@test "files of one name, and outputs without a size, keep their places" {
  mkdir a b
  cp "$fixtures/tools/iperf_plain.txt" a/out.txt
  cp "$fixtures/perftest/4.5/send_lat.txt" b/out.txt
  made a/out.txt b/out.txt
  assert_equal "$(jq -c '[.rounds[].flows[] | [.test, .import.file, .expect]]' run/plan.json)" \
    '[["out.txt","raw/import/out.txt",[{"size_bytes":null}]],["2-out.txt","raw/import/2-out.txt",[{"size_bytes":64}]]]'
  run_expecting 3 "$judge" run
  assert_output --partial "2 of 2 records measured"
}

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

@test "limits with a key twice make no run, and a bound of -inf is none" {
  local top=$TOP folder=$BATS_TEST_TMPDIR
  sed 's/^\( *\)bound: {min: 7}/\1bound: {min: 7}\n\1bound: {min: 0.001}/' "$top/reports/limits/roce.yml" >"$folder/twice.yml"
  refute cmp -s "$folder/twice.yml" "$top/reports/limits/roce.yml"
  run "$top/reports/import" --run "$folder/twice" --limits "$folder/twice.yml" "$top/tests/fixtures/tools/iperf_plain.txt"
  [ "$status" -eq 2 ]
  [[ $output == *"the key bound stands there twice"* ]]
  [ ! -e "$folder/twice" ]
  sed 's/bound: {min: 7}/bound: {min: -.inf}/' "$top/reports/limits/roce.yml" >"$folder/least.yml"
  "$top/reports/import" --run "$folder/least" --limits "$folder/least.yml" "$top/tests/fixtures/tools/iperf_plain.txt"
  run "$top/reports/judge" "$folder/least"
  [ "$status" -eq 3 ]
  jq -e 'any(.checks[]; .id == "limits" and (.measured | test("bound.min: no number")))' "$folder/least/verdict.json"
}
