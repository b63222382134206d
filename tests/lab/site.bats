#!/usr/bin/env bats
# The whole way on two machines, over ssh: the engine is built on the hosts from the checkout's sources, verbs, perftest and
# TCP are measured, and the run is judged and reported on the controller.

load helpers

setup_file() {
  local host
  lab_ready
  # a lab that is used again has it
  for host in alpha beta; do lab_ssh "$host" rm -rf /opt/perch 3>&- || return; done
  cat >"$BATS_FILE_TMPDIR/suite.yml" <<'YAML'
name: lab
title: Verbs, perftest and TCP of two machines
tests:
  - {name: verbs-send, title: RDMA send latency, tool: perch, backend: verbs, kind: latency, params: {size: "64:256", iterations: 1000, completion: event}}
  - {name: perftest-send, title: "RDMA send latency, perftest", tool: perftest, op: send, kind: latency, params: {size: 64, iterations: 1000, completion: event}}
  - {name: verbs-write, title: RDMA write bandwidth, tool: perch, backend: verbs, op: write, kind: bandwidth, params: {size: 64K, duration: 2s, completion: event}}
  - {name: verbs-verify, title: RDMA payload integrity, tool: perch, backend: verbs, kind: bandwidth, params: {size: 4K, iterations: 200, verify: true, completion: event}}
  - {name: tcp, title: TCP latency, tool: perch, backend: tcp, kind: latency, params: {size: 64, iterations: 1000, completion: event}}
YAML
}
setup() { common_setup; }
teardown() { common_teardown; }

runs() { echo "$BATS_FILE_TMPDIR/runs"; }

# site EXIT [ARGUMENT...]: without optimisation and with the cache of the image, since an emulated processor compiles for minutes
site() {
  local expected=$1
  shift
  lab_playbook "$expected" "$TOP/playbooks/site.yml" -e plan_suite_file="$BATS_FILE_TMPDIR/suite.yml" -e plan_runs_dir="$(runs)" \
    -e '{"engine_make_variables": ["CC=ccache cc", "CFLAGS=-O0"]}' "$@"
}

@test "site.yml builds the engine on both hosts, measures, proves the path, judges PASS in scope software, and reports" {
  local run
  LIMIT=900 site 0
  assert_output --regexp "alpha: perch [0-9.]+ is built for /opt/perch/bin/perch: no engine is installed"
  run=$(runs)/latest
  assert_json "$run/verdict.json" '.verdict == "PASS" and .scope == "software"
    and .coverage == {planned: 7, measured: 7, missing: []}'
  jq -s . "$run/records.jsonl" >records.json
  assert_json records.json 'map(select(.backend == "verbs" or .tool.name == "perftest")) | length == 6
    and all(.[]; .path.state == "proven" and .scope == "software")'
  assert_json records.json 'any(.[]; .test == "verbs-send" and .connection == "RC" and .client.device == "rxe0" and .link.mtu_bytes == 4096)'
  assert_json records.json 'any(.[]; .test == "verbs-verify" and .integrity.checked_bytes > 0 and .integrity.bad_bytes == 0)'
  assert_json "$run/verdict.json" 'any(.agreement[]; .op == "send" and .state != null)'
  grep -qi "software" <(head -n 12 "$run/report.md") || fail "the report's first lines do not say that this is software: $(head -n 12 "$run/report.md")"
}

@test "a second run finds the engine as it is, and builds nothing" {
  LIMIT=300 site 0 --check
  refute_output --partial "is built for"
}
