#!/usr/bin/env bats
# A new tool as CONTRIBUTING.md describes it: tests/journeys/netperf.patch, applied to a copy of the tree.

load helpers

PATCH=$TOP/tests/journeys/netperf.patch

setup() {
  common_setup
  git -C "$TOP" ls-files -z >files 2>/dev/null || skip "no git checkout to copy"
  mkdir tree
  (cd "$TOP" && xargs -0 cp --parents -t "$OLDPWD/tree" <"$OLDPWD/files")
  patch -s -d tree -p1 <"$PATCH"
  export PYTHONPATH=$PWD/tree
}
teardown() { common_teardown; }

python() { "$TOP/.venv/bin/python" -P "$@"; }

@test "netperf is added by four files, and suites and inventories can name it" {
  [ "$(grep -c '^diff --git' "$PATCH")" -le 4 ]
  cd tree
  run_expecting 0 python -m pytest -q tests/py/test_tools_registry.py
  run_expecting 0 python tests/roles.py
}

@test "netperf is planned, measures over loopback, is judged and reported" {
  command -v netserver >/dev/null || skip "NOT TESTED: netperf is not installed (Debian: non-free)"
  local host name='{name: "netperf", title: "TCP by netperf", tool: "netperf", kind: "bandwidth", params: {size: "128K", duration: "1s"}}'
  mkdir -p run/inputs run/raw
  jq -n --argjson serve "$(free_port)" --argjson port "$(free_port)" "{
    run: \"20260101T000000Z-netperf\", created: \"2026-01-01T00:00:00Z\", limits: \"netperf\",
    suite: {name: \"netperf\", title: \"netperf\", tests: [$name]},
    hosts: ([[\"alpha\", \"127.0.0.1\"], [\"beta\", \"127.0.0.2\"]] | map({key: .[0], value: {perch_address: .[1], perch_fabric: \"loopback\",
      perch_backends: [\"tcp\"], perch_tools: [\"perch\", \"netperf\"], perch_port: \$serve, perch_netperf_port: \$port}}) | from_entries)}" |
    python tree/tests/planned.py >plan.json
  python tree/tests/spelled.py write run <plan.json
  python tree/tests/spelled.py shares shares <plan.json
  # no test judges speed: any rate will do
  jq '.name = "netperf" | .limits |= map(select(.metric == "bandwidth.gbit_s") | .bound = {min: 1e-9} | .scope = {kind: "bandwidth"} | .severity = "required")[0:1]' \
    "$TOP/tests/fixtures/loopback/run/inputs/limits.json" >run/inputs/limits.json
  echo "a-secret-of-this-test" >token && chmod 600 token
  for host in alpha beta; do
    "$(packed_agent)" start --plan "shares/$host.json" --host "$host" --out "run/raw/$host" --engine "$PERCH" --start-window 5 --token-file "$PWD/token" 3>&-
  done
  for host in alpha beta; do WAIT=90 wait_until agent_ended "run/raw/$host"; done
  run_expecting 0 python -m perch judge run
  assert_output --partial "PASS: 1 of 1 records measured, scope software"
  assert_json run/records.jsonl '.tool.name == "netperf" and .bandwidth.gbit_s > 0 and .definition == "receiver_payload"'
  run_expecting 0 python -m perch report run
  grep -q "TCP by netperf" run/report.md
}
