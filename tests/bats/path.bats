#!/usr/bin/env bats
# The path proof for real: two network namespaces, joined by two pairs of veth, in which agents measure with the real
# tools. Needs root, as only root makes namespaces.

load helpers
load namespaces

setup() {
  common_setup
  two_namespaces
  mkdir -p run/inputs run/raw
  # no test judges speed: any rate will do
  jq '.name = "path" | .limits |= map(select(.metric | test("latency_us.mean|bandwidth")) | .bound = {min: 1e-9})' \
    "$TOP/tests/fixtures/loopback/run/inputs/limits.json" >run/inputs/limits.json
}

teardown() {
  common_teardown
  no_namespaces
}

# measure CODE JQ-TESTS: a plan for them between the two, walked by both agents; then it is judged, with that exit code.
measure() {
  local NETWORK=${NETWORK:-10.77.0.}
  jq -n "{run: \"20260101T000000Z-path\", created: \"2026-01-01T00:00:00Z\", limits: \"path\",
    suite: {name: \"path\", title: \"Path\", tests: $2},
    hosts: ([[\"alpha\", \"${NETWORK}1\"], [\"beta\", \"${NETWORK}2\"]] | map({key: .[0], value: {perch_address: .[1],
      perch_fabric: \"ethernet\", perch_scope: \"software\", perch_backends: [\"tcp\", \"ofi\"], perch_port: 18600}}) | from_entries)}" |
    "$TOP/.venv/bin/python" "$TOP/tests/planned.py" >plan.json
  put_plan run <plan.json
  walk_both
  run "$TOP/reports/judge" run
  echo "$output"
  assert_equal "$status" "$1"
}

readonly LATENCY='{name: "lat", title: "lat", tool: "perch", backend: "tcp", kind: "latency", params: {size: "8:1K", iterations: 1000}}'
readonly BANDWIDTH='{name: "bw", title: "bw", tool: "perch", backend: "tcp", kind: "bandwidth", params: {size: "64K", duration: "300ms"}}'

states() { jq -r '"\(.test) \(.path.state)"' run/records.jsonl | sort -u | paste -sd,; }

@test "bytes over the claimed interface are proven on both ends, for the engine and for both iperfs" {
  measure 0 "[$LATENCY, $BANDWIDTH,
    {name: \"both\", title: \"both ways\", tool: \"perch\", backend: \"tcp\", kind: \"bandwidth\",
     params: {size: \"1K:64K\", duration: \"200ms\", bidirectional: true}},
    {name: \"ofi\", title: \"ofi\", tool: \"perch\", backend: \"ofi\", provider: \"tcp\", kind: \"bandwidth\", params: {size: \"64K\", duration: \"300ms\"}},
    {name: \"iperf3\", title: \"iperf3\", tool: \"iperf3\", kind: \"bandwidth\", params: {size: \"128K\", duration: \"1s\"}},
    {name: \"iperf\", title: \"iperf\", tool: \"iperf\", kind: \"bandwidth\", params: {size: \"128K\", duration: \"1s\"}}]"
  assert_equal "$(states)" "both proven,bw proven,iperf proven,iperf3 proven,lat proven,ofi proven"
  assert_json run/verdict.json '[.checks[] | select(.id | startswith("path"))] | length == 1 and .[0].status == "pass" and .[0].measured == 6'
  # what was claimed lies below what both ends counted, and the two counted the same
  assert_json <(jq -s . run/records.jsonl) 'all(.[]; .path | .claimed_bytes <= .client_device_bytes and .claimed_bytes <= .server_device_bytes
    and (.client_device_bytes / .server_device_bytes - 1 | fabs) < 0.01)'
  assert_json <(head -n 1 run/records.jsonl) '.path.counted == "p0 bytes" and .counters.client.TcpRetransSegs >= 0 and (.counters.client | has("p1") | not)'
  assert_json run/raw/alpha/environment.json '.idle_samples == [1, 2]'
  # two namespaces of one kernel: the engine finds it for itself, the agent for the tools
  assert_json <(jq -s . run/records.jsonl) 'all(.[]; .client.placement.unplaced == "same-machine" and .server.placement.unplaced == "same-machine")'
}

@test "hosts without any IPv4 address are measured by all tools, and their bytes are proven" {
  local host device number=0
  for host in alpha beta; do
    number=$((number + 1))
    for device in lo p0 p1; do ip -n "$NET-$host" -4 addr flush dev "$device"; done
    ip -n "$NET-$host" addr add "fd00:77::$number/64" dev p0 nodad
  done
  NETWORK=fd00:77:: measure 0 "[$LATENCY, $BANDWIDTH,
    {name: \"transfer\", title: \"transfer\", tool: \"perch\", backend: \"tcp\", kind: \"transfer\", op: \"write\",
     params: {size: \"64K\", batch: 8, iterations: 20, verify: true}},
    {name: \"rate\", title: \"rate\", tool: \"perch\", backend: \"tcp\", kind: \"rate\", op: \"write\", params: {size: 64, duration: \"300ms\"}},
    {name: \"ofi\", title: \"ofi\", tool: \"perch\", backend: \"ofi\", provider: \"tcp\", kind: \"latency\", params: {size: 8, iterations: 1000}},
    {name: \"iperf3\", title: \"iperf3\", tool: \"iperf3\", kind: \"bandwidth\", params: {size: \"128K\", duration: \"1s\"}},
    {name: \"iperf\", title: \"iperf\", tool: \"iperf\", kind: \"bandwidth\", params: {size: \"128K\", duration: \"1s\"}}]"
  assert_json <(jq -s . run/records.jsonl) 'all(.[]; .status == "ok" and .path.state == "proven"
    and .client.address == "fd00:77::1" and .server.address == "fd00:77::2")'
}

@test "bytes that went over another interface than the claimed one fail the run, and that interface is named" {
  ip -n "$NET-alpha" route replace 10.77.0.2/32 dev p1 src 10.77.0.1
  ip -n "$NET-beta" route replace 10.77.0.1/32 dev p1 src 10.77.0.2
  measure 1 "[$BANDWIDTH]"
  assert_equal "$(states)" "bw contradicted"
  assert_json run/verdict.json '.verdict == "FAIL" and any(.checks[]; .id == "path/bw/alpha/beta/0/1" and .status == "fail"
    and (.measured | test("client: p0 sent .* but at least .* were claimed; p1 carried as many bytes")) and .remedy != null)'
}

@test "one way over another interface is enough to fail" {
  ip -n "$NET-beta" route replace 10.77.0.1/32 dev p1 src 10.77.0.2
  measure 1 "[$LATENCY]"
  assert_equal "$(states)" "lat contradicted"
}

@test "somebody else's traffic on the device is a finding, and no failure of software" {
  ip netns exec "$NET-beta" iperf3 -s -p 19290 >/dev/null 2>&1 3>&- &
  SERVER=$!
  listens() { [ -n "$(inside beta ss -ltnH "sport = :19290")" ]; }
  wait_until listens
  # not before both hosts have come to the flow, for then it would be part of an idle baseline
  timeout 60 bash -c "until grep -q start run/raw/alpha/control/progress.jsonl && grep -q start run/raw/beta/control/progress.jsonl; do sleep 0.1; done
    exec ip netns exec $NET-alpha iperf3 -c 10.77.0.2 -p 19290 -t 2" >/dev/null 2>&1 3>&- &
  measure 0 '[{name: "lat", title: "lat", tool: "perch", backend: "tcp", kind: "latency", params: {size: 8, duration: "4s"}}]'
  wait $!
  kill "$SERVER"
  assert_equal "$(states)" "lat exceeded"
  assert_json run/verdict.json 'any(.checks[]; .id == "path/lat/alpha/beta/0/1" and .status == "advisory" and .remedy != null)'
}

@test "an interface whose counters are not there proves nothing, and does not fail sockets in software" {
  measure 0 "[$LATENCY]"
  local host
  for host in alpha beta; do
    cp "run/raw/$host/samples.jsonl" whole
    # values have the layout's order: those of the host first, then those of interfaces
    jq -sc '(map(select(.kind == "layout"))[0] | [(.host | length), (.netdev | map(length) | add)]) as [$host, $netdev] | .[]
      | if .kind == "layout" then .netdev = {}
        elif .kind == "sample" then .values |= (split(" ") | .[:$host] + .[$host + $netdev:] | join(" ")) else . end' whole >"run/raw/$host/samples.jsonl"
    run_expecting 0 "$TOP/reports/judge" run
    assert_equal "$(states)" "lat unknown"
    assert_json run/verdict.json 'any(.checks[]; .id == "path/not_judged/lat/alpha/beta/0/1" and .status == "not_judged" and (.measured | test("no counter of p0")))'
    cp whole "run/raw/$host/samples.jsonl"
  done
}
