#!/usr/bin/env bats
# Two hosts with two rails each, for real: two network namespaces with a pair of veth for each rail. They carry the data
# of the simulated NICs cxi0 and cxi1 (tests/sim_cxi), and of libfabric over TCP. Needs root, as only root makes namespaces.

load helpers
load namespaces

setup_file() {
  local top
  top=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  make --no-print-directory -s -C "$top/tests/sim_cxi" >&2
}

setup() {
  common_setup
  two_namespaces
  mkdir -p run/inputs run/raw
  # no test judges speed: any rate will do
  jq '.name = "path" | .limits |= [first(.[] | select(.metric | test("bandwidth"))) | .bound = {min: 1e-9} | .scope = {kind: "bandwidth"}]' \
    "$TOP/tests/fixtures/loopback/run/inputs/limits.json" >run/inputs/limits.json
}

teardown() {
  common_teardown
  no_namespaces
}

# As in namespaces.bash, with the simulated NICs of that host, each on a network of its own.
inside() {
  local -A host=([alpha]=1 [beta]=2)
  local n=${host[$1]}
  ip netns exec "$NET-$1" env FI_PROVIDER_PATH="$TOP/tests/sim_cxi/build" SIM_CXI_FABRIC="$BATS_TEST_TMPDIR/fabric" \
    SIM_CXI_DEVICES="sim_cxi0=0x${n}0@10.77.0.$n,sim_cxi1=0x${n}1@10.78.0.$n" "${@:2}"
}

# The rails as an inventory has them.
CXI='perch_fabric: "slingshot", perch_scope: "simulated", perch_backends: ["cxi"], perch_devices: ["cxi0", "cxi1"]'
TCP='perch_fabric: "ethernet", perch_scope: "software", perch_backends: ["ofi"], perch_devices: [{name: "nic0", netdev: "p0"}, {name: "nic1", netdev: "p1"}]'

# measure HOST JQ-TESTS: a plan for them between the two, walked by both agents, and judged.
measure() {
  jq -n "{run: \"20260101T000000Z-rails\", created: \"2026-01-01T00:00:00Z\", limits: \"path\",
    suite: {name: \"rails\", title: \"Rails\", tests: $2},
    hosts: ([[\"alpha\", \"10.77.0.1\"], [\"beta\", \"10.77.0.2\"]] | map({key: .[0], value: {perch_address: .[1], perch_port: 18600,
      $1}}) | from_entries)}" | "$TOP/.venv/bin/python" "$TOP/tests/planned.py" >plan.json
  put_plan run <plan.json
  walk_both
  run_expecting 0 "$TOP/reports/judge" run
}

# shaped HOST RAIL RATE: what that host sends over it
shaped() { ip netns exec "$NET-$1" tc qdisc add dev "$2" root tbf rate "$3" burst 64kb latency 50ms; }

# test_of NAME BACKEND MEMBERS: bandwidth of each rail, in a suite
test_of() {
  printf '{name: "%s", title: "%s", tool: "perch", backend: "%s", kind: "bandwidth", op: "send",
    params: {size: "64K", duration: "500ms", devices: "all"} %s}' "$1" "$1" "$2" "$3"
}

@test "one rail of two is slow: alone and together, its records show it, and only in that direction" {
  # paced, all of them, far below what a busy machine can do: what is left to the scheduler differs by itself
  shaped alpha p0 80mbit
  shaped alpha p1 8mbit
  shaped beta p0 80mbit
  shaped beta p1 80mbit
  measure "$CXI" "[$(test_of alone cxi ', directions: "both"'), $(test_of all cxi ', rails: "together", directions: "both"')]"
  jq -s 'map({key: .flow, value: .}) | from_entries' run/records.jsonl >records.json
  local test
  for test in alone all; do
    assert_json records.json "
      .[\"$test/alpha/beta/1/1\"].bandwidth.gbit_s < 0.012 and .[\"$test/beta/alpha/1/1\"].bandwidth.gbit_s > 0.03
      and .[\"$test/alpha/beta/0/1\"].bandwidth.gbit_s > 0.03 and .[\"$test/beta/alpha/0/1\"].bandwidth.gbit_s > 0.03"
  done
  assert_json records.json 'map_values(.client.device) == {
      "alone/alpha/beta/0/1": "sim_cxi0", "alone/beta/alpha/0/1": "sim_cxi0",
      "alone/alpha/beta/1/1": "sim_cxi1", "alone/beta/alpha/1/1": "sim_cxi1",
      "all/alpha/beta/0/1": "sim_cxi0", "all/beta/alpha/0/1": "sim_cxi0",
      "all/alpha/beta/1/1": "sim_cxi1", "all/beta/alpha/1/1": "sim_cxi1"}
    and ([.[] | [.test, .rails_at_once]] | unique) == [["all", 2], ["alone", null]]'
  assert_json run/verdict.json '[.checks[] | select(.id == ("rails/siblings/all", "rails/siblings/alone"))]
    | length == 2 and all(.status == "advisory") and all(.evidence[0] | endswith("/alpha/beta/1/1#65536"))
    and ([.[].evidence[] | select(contains("/0/1#"))] == [])'
  # together: each began before the other had ended, and one reading frames both
  jq -s 'map(select(.kind == "flow" and (.id | startswith("all/"))))' run/raw/alpha/flows.jsonl >lines.json
  assert_json lines.json '[group_by(.role)[] | map(.samples) | unique | length] == [1, 1]
    and all(group_by(.role)[]; (map(.started_monotonic_ns) | max) < (map(.ended_monotonic_ns) | min))'
}

@test "libfabric over TCP: each rail's data goes over the interface that its devices name" {
  shaped alpha p0 80mbit
  shaped alpha p1 8mbit
  measure "$TCP" "[$(test_of alone ofi ', provider: "tcp;ofi_rxm"'), $(test_of all ofi ', provider: "tcp;ofi_rxm", rails: "together"')]"
  jq -s . run/records.jsonl >records.json
  assert_json records.json 'map({(.flow): [.client.device, .server.device, .path.state, .rails_at_once]}) | add == {
    "alone/alpha/beta/0/1": ["p0", "p0", "proven", null], "alone/alpha/beta/1/1": ["p1", "p1", "proven", null],
    "all/alpha/beta/0/1": ["p0", "p0", "proven", 2], "all/alpha/beta/1/1": ["p1", "p1", "proven", 2]}'
  assert_json records.json 'group_by(.rail) | map(map(.bandwidth.gbit_s)) | (.[0] | min) > 3 * (.[1] | max) and (.[1] | max) < 0.012'
  assert_json run/verdict.json '[.checks[] | select(.id == ("rails/siblings/all", "rails/siblings/alone"))]
    | length == 2 and all(.status == "advisory") and ([.[].evidence[] | select(contains("/1/1#") | not)] == [])'
}
