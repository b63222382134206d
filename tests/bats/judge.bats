#!/usr/bin/env bats
# reports/judge on a recorded run: whole, it passes; with one fault planted, it never does.

load helpers

setup() {
  common_setup
  JUDGE=$TOP/reports/judge
  cp -r "$TOP/tests/fixtures/loopback/run" run
  TCP=run/raw/alpha/flows/tcp-latency/alpha/beta/1
  IPERF3=run/raw/alpha/flows/iperf3/alpha/beta/1
}
teardown() { common_teardown; }

# judge CODE: the run is judged, and the exit code is that one
judge() {
  run "$JUDGE" run
  assert_equal "$status" "$1"
}

# edit FILE FILTER: jq in place
edit() { jq -c "$2" "$1" >edited && mv edited "$1"; }

check_status() { jq -r --arg id "$1" '.checks[] | select(.id == $id) | .status' run/verdict.json; }

verdict() { jq -r .verdict run/verdict.json; }

@test "a whole run passes, in one line, with one record for every expect entry" {
  judge 0
  assert_equal "${#lines[@]}" 1
  assert_output --regexp '^PASS: [0-9]+ of [0-9]+ records measured, scope software$'
  diff <(jq -r '.rounds[].flows[] | .id as $id | .expect[] | "\($id) \(.size_bytes)"' run/plan.json) \
    <(jq -r '"\(.flow) \(.params.size_bytes)"' run/records.jsonl)
}

@test "records, verdict and what they are made of are as their schemas say" {
  judge 0
  command -v check-jsonschema >/dev/null || skip "check-jsonschema is not installed"
  local schema=$TOP/reports/schema
  jq '{type: "array", items: .}' "$schema/record.schema.json" >records.schema.json
  jq -s . run/records.jsonl >records.json
  check-jsonschema --schemafile records.schema.json records.json
  check-jsonschema --schemafile "$schema/verdict.schema.json" run/verdict.json
  check-jsonschema --schemafile "$schema/environment.schema.json" "$TOP"/tests/fixtures/rxe/run/raw/*/environment.json
  find "$TOP/tests/fixtures/rxe/run/raw" -path '*/flows/*.json' -exec check-jsonschema --schemafile "$schema/flow.schema.json" {} +
  check-jsonschema --schemafile "$schema/plan.schema.json" run/plan.json
  check-jsonschema --schemafile "$schema/limits.schema.json" run/inputs/limits.json "$TOP"/reports/limits/*.yml
  check-jsonschema --schemafile "$schema/environment.schema.json" run/raw/*/environment.json
  find run/raw -path '*/flows/*.json' -exec check-jsonschema --schemafile "$schema/flow.schema.json" {} +
}

@test "judging again gives the same bytes and leaves nothing else behind" {
  judge 0
  cp run/records.jsonl run/verdict.json .
  judge 0
  cmp records.jsonl run/records.jsonl
  cmp verdict.json run/verdict.json
  run ls -A run
  assert_output "$(printf '%s\n' inputs plan.json raw records.jsonl verdict.json)"
}

@test "usage and a folder that is not there are exit code 2" {
  run "$JUDGE"
  assert_equal "$status" 2
  run "$JUDGE" nowhere
  assert_equal "$status" 2
  assert_output --partial "no such run: nowhere"
}

@test "a missing flow is inconclusive and listed" {
  rm -r "$TCP"
  judge 3
  assert_equal "$(jq -r '.coverage.missing | map(.flow) | unique[]' run/verdict.json)" tcp-latency/alpha/beta/1
  assert_equal "$(check_status flow/tcp-latency/alpha/beta/1)" inconclusive
}

@test "a host without raw outputs is inconclusive" {
  rm -r run/raw/beta
  judge 3
  assert_equal "$(check_status host/beta)" inconclusive
}

@test "a host whose agent had not finished is inconclusive" {
  edit run/raw/alpha/agent.json '.state = "running"'
  judge 3
  assert_equal "$(check_status host/alpha)" inconclusive
}

@test "a plan cut in half, empty or missing is inconclusive, and replaces an earlier PASS" {
  judge 0
  local size
  size=$(stat -c %s run/plan.json)
  truncate -s $((size / 2)) run/plan.json
  judge 3
  assert_output --partial "plan.json is damaged"
  assert_equal "$(verdict)" INCONCLUSIVE
  : >run/plan.json
  judge 3
  rm run/plan.json
  judge 3
  assert_output --partial "plan.json is missing"
  assert_equal "$(verdict)" INCONCLUSIVE
}

@test "a plan that expects nothing is inconclusive" {
  edit run/plan.json '.rounds = []'
  judge 3
  assert_output --partial "holds no flow"
}

@test "a flow's id cannot climb out of raw/" {
  edit run/plan.json '.rounds[0].flows[0].id = "../../x/y"'
  judge 3
  assert_output --partial "is not test/client/server/repeat"
}

@test "missing and damaged limits are inconclusive" {
  mv run/inputs/limits.json .
  judge 3
  assert_equal "$(check_status limits)" inconclusive
  head -c 100 limits.json >run/inputs/limits.json
  judge 3
  assert_equal "$(check_status limits)" inconclusive
}

@test "a required limit that is missed fails, an advisory one only says so" {
  edit run/inputs/limits.json '.limits |= map(select(.id == "iperf-bandwidth") | .bound.min = 1e6)'
  judge 1
  assert_equal "$(check_status limit/iperf-bandwidth/iperf3)" fail
  edit run/inputs/limits.json '.limits += [.limits[0] | .id = "floor" | .bound.min = 1e-3] | .limits[0].severity = "advisory"'
  judge 0
  assert_equal "$(check_status limit/iperf-bandwidth/iperf3)" advisory
}

@test "a required limit whose figure nobody reported is inconclusive" {
  edit run/inputs/limits.json '.limits |= map(select(.id == "small-message-mean") | .metric = "latency_us.p99_99")'
  judge 3
  assert_equal "$(check_status limit/small-message-mean/tcp-latency)" inconclusive
}

@test "half a line of the engine is inconclusive, and the sizes before it stay measured" {
  truncate -s -100 "$TCP/client.stdout"
  judge 3
  assert_equal "$(jq -s -c 'map(select(.flow == "tcp-latency/alpha/beta/1") | .status)' run/records.jsonl)" '["ok","ok","ok","error"]'
}

@test "an empty output with exit code 0 is inconclusive for every tool" {
  local flow
  for flow in "$TCP" "$IPERF3" run/raw/alpha/flows/iperf/alpha/beta/1; do
    : >"$flow/client.stdout"
  done
  judge 3
  assert_equal "$(jq '.coverage.missing | length' run/verdict.json)" 6
}

@test "iperf3's document cut in half is inconclusive" {
  truncate -s 2000 "$IPERF3/client.stdout"
  judge 3
  assert_equal "$(check_status flow/iperf3/alpha/beta/1)" inconclusive
}

@test "iperf3 that was refused and exits 0 is inconclusive" {
  cp "$TOP/tests/fixtures/tools/iperf3_refused.json" "$IPERF3/client.stdout"
  judge 3
  assert_equal "$(jq '.coverage.missing[0].code' run/verdict.json)" 4
}

@test "iperf3 whose server was killed in the middle fails" {
  cp "$TOP/tests/fixtures/tools/iperf3_killed.json" "$IPERF3/client.stdout"
  judge 1
  assert_equal "$(check_status flow/iperf3/alpha/beta/1)" fail
}

@test "iperf that was refused and exits 0 is inconclusive" {
  cp "$TOP/tests/fixtures/tools/iperf_refused.txt" run/raw/alpha/flows/iperf/alpha/beta/1/client.stdout
  cp "$TOP/tests/fixtures/tools/iperf_refused.err" run/raw/alpha/flows/iperf/alpha/beta/1/client.stderr
  judge 3
  assert_equal "$(jq '.coverage.missing[0].code' run/verdict.json)" 4
}

@test "iperf's units are read from each line" {
  local stdout=run/raw/alpha/flows/iperf/alpha/beta/1/client.stdout
  cp "$TOP/tests/fixtures/tools/iperf_mbytes.txt" "$stdout"
  judge 0
  assert_equal "$(jq -s 'map(select(.test == "iperf"))[0].bandwidth.gbit_s | . * 10 | round' run/records.jsonl)" 253
  # 50 Mb/s is under the loopback's limit of 1 Gb/s
  cp "$TOP/tests/fixtures/tools/iperf_slow.txt" "$stdout"
  judge 1
  assert_equal "$(jq -s -c 'map(select(.test == "iperf"))[0].bandwidth.gbit_s' run/records.jsonl)" 0.0505
}

@test "corrupted payload fails, by the exit code alone as by the count of bytes" {
  edit "$TCP/client.json" '.exit = 5'
  judge 1
  edit "$TCP/client.json" '.exit = 0'
  edit run/raw/alpha/flows/tcp-verify/alpha/beta/1/client.stdout '.integrity.bad_bytes = 1'
  judge 1
  assert_equal "$(check_status integrity)" fail
}

@test "a peer lost after traffic fails, one lost before it is inconclusive" {
  edit "$TCP/client.json" '.exit = 4'
  head -n 2 "$TCP/client.stdout" >half && mv half "$TCP/client.stdout"
  judge 1
  : >"$TCP/client.stdout"
  judge 3
  assert_equal "$(jq '.coverage.missing | length' run/verdict.json)" 4
}

@test "a limit on the command line that was missed fails, and its figures stay" {
  edit "$TCP/client.json" '.exit = 1'
  judge 1
  assert_equal "$(jq '.coverage.missing | length' run/verdict.json)" 0
}

@test "exit codes 2, 3, 6, a signal and a deadline are inconclusive" {
  local fault
  for fault in '.exit = 2' '.exit = 3' '.exit = 6' '.exit = 137 | .signal = "KILL"' '.state = "not_run" | .exit = null' \
    '.state = "peer_dead" | .exit = null' '.state = "meeting_failed" | .exit = null'; do
    cp "$TOP/tests/fixtures/loopback/run/raw/alpha/flows/tcp-latency/alpha/beta/1/client.json" "$TCP/client.json"
    edit "$TCP/client.json" "$fault"
    judge 3
  done
}

@test "zero, negative, nan and infinite figures are inconclusive, never results" {
  local stdout=run/raw/alpha/flows/tcp-bandwidth/alpha/beta/1/client.stdout value
  cp "$stdout" whole
  for value in 0 -1 nan 1e999 null; do
    sed -E "s/\"gbit_s\":[0-9.]+/\"gbit_s\":$value/" whole >"$stdout"
    judge 3
    assert_equal "$(check_status flow/tcp-bandwidth/alpha/beta/1)" inconclusive
  done
}

@test "an output of another backend than planned is inconclusive" {
  cp run/raw/alpha/flows/ofi-latency/alpha/beta/1/client.stdout "$TCP/client.stdout"
  judge 3
  assert_equal "$(check_status flow/tcp-latency/alpha/beta/1)" inconclusive
}

@test "a damaged client.json is inconclusive" {
  truncate -s 40 "$TCP/client.json"
  judge 3
  assert_equal "$(jq -r '.coverage.missing[0].message' run/verdict.json)" "client.json of this flow on alpha is damaged"
}

@test "hardware without device counters is never a PASS" {
  local flow=ofi-bandwidth-event/alpha/beta/1
  edit run/plan.json '(.rounds[].flows[] | select(.test == "ofi-bandwidth-event")) |= (.scope = "hardware" | .provider = "verbs")'
  edit run/raw/alpha/flows/$flow/client.stdout '.provider = "verbs" | .link.layer = "infiniband"'
  judge 3
  assert_equal "$(check_status path/$flow)" inconclusive
}

@test "RDMA that Soft-RoCE carried is proven on both ends, by packets and by the interface under it" {
  rm -r run && cp -r "$TOP/tests/fixtures/rxe/run" run
  judge 0
  assert_equal "$(jq -r '.checks[] | select(.id | startswith("path")) | "\(.id) \(.status) \(.measured)"' run/verdict.json)" "path/proven/software pass 9"
  assert_equal "$(jq -r '.path | "\(.state) \(.counted)"' run/records.jsonl | sort -u)" "proven rxe0 packets, eth1 bytes"
  # what Soft-RoCE sent again is in the record, and in the report
  assert_json <(jq 'select(.test == "write-latency")' run/records.jsonl) '.counters.server["rxe0/1"].duplicate_request == 12'
  run timeout 30 "$TOP/reports/prepare" run report.json
  assert_equal "$status" 0
  assert_json report.json '(.path.rows | length) == 9 and .path.rows[0][5] == "1 proven" and any(.moved.rows[]; test("server: rxe0/1 duplicate_request 12$"))'
}

@test "RDMA whose device counted less than was claimed fails; more is a finding; what cannot be read proves nothing" {
  rm -r run && cp -r "$TOP/tests/fixtures/rxe/run" run
  local client=run/raw/alpha/flows/write-latency/alpha/beta/1/client.json server=run/raw/beta/flows/write-latency/alpha/beta/1/server.json
  # the packets went nowhere; only the interface moved; one packet of 200 is missing at the other end
  spoil "$client" 1 path/write-latency/alpha/beta/1 <<'FAULTS'
.counters.after.rdma = .counters.before.rdma
.counters.after.netdev = .counters.before.netdev
FAULTS
  spoil "$server" 1 path/write-latency/alpha/beta/1 <<'FAULTS'
.counters.after.rdma["rxe0/1"].counters |= (.rcvd_pkts = "199")
FAULTS
  cp "$client" whole
  edit "$client" '.counters.after.rdma["rxe0/1"].counters.sent_pkts = "9000000000"'
  judge 0
  assert_equal "$(check_status path/write-latency/alpha/beta/1)" advisory
  cp whole "$client"
  local fault
  for fault in '.counters = null' '.counters.after.rdma = {}' 'del(.counters.after.rdma["rxe0/1"].counters.sent_pkts)' \
    '.counters.before.rdma["rxe0/1"].counters.sent_pkts = "4294967290" | .counters.after.rdma["rxe0/1"].counters.sent_pkts = "5"'; do
    edit "$client" "$fault"
    judge 3
    assert_equal "$(check_status path/write-latency/alpha/beta/1)" inconclusive
    assert_equal "$(jq -r 'select(.test == "write-latency").path.state' run/records.jsonl)" unknown
    cp whole "$client"
  done
}

# cards DRIVER: the recorded Soft-RoCE as if two cards had carried it, planned as hardware; DRIVER is a word of JSON.
cards() {
  rm -rf run && cp -r "$TOP/tests/fixtures/rxe/run" run
  find run -type f -exec sed -i 's/rxe0/mlx5_0/g' {} +
  edit run/plan.json '.rounds[].flows[].scope = "hardware"'
  local file
  for file in run/raw/*/flows/*/alpha/beta/1/{client,server}.json; do
    # a card counts bytes, in words of four; the interface's stand for them
    edit "$file" '(.counters.before, .counters.after) |= (.netdev.eth1 as $eth | .rdma["mlx5_0/1"].counters |= (
      del(.sent_pkts, .rcvd_pkts) + {port_xmit_data: ($eth.tx_bytes | tonumber / 4 | floor | tostring),
                                     port_rcv_data: ($eth.rx_bytes | tonumber / 4 | floor | tostring)}))'
  done
  for file in run/raw/*/environment.json; do
    edit "$file" ".idle = null | .rdma[].driver = $1"
  done
}

@test "RDMA is hardware only where both hosts name a card's driver; without one, the run is inconclusive" {
  cards '"mlx5_core"'
  judge 0
  assert_output --partial "scope hardware"
  edit run/raw/beta/environment.json 'del(.rdma)'
  judge 3
  assert_json run/verdict.json 'any(.checks[]; .id == "path/write-latency/alpha/beta/1" and .status == "inconclusive" and (.remedy | test("driver"))
    and .measured == "nothing shows that mlx5_0 of beta (server) is hardware: its driver is not in environment.json")'
  cards null
  judge 3
  assert_equal "$(check_status path/verbs-read-bandwidth/alpha/beta/1)" inconclusive
}

@test "Soft-RoCE under a card's name and without its driver's is software by its counters" {
  rm -r run && cp -r "$TOP/tests/fixtures/rxe/run" run
  find run -type f -exec sed -i 's/rxe0/mlx5_0/g' {} +
  edit run/plan.json '.rounds[].flows[].scope = "hardware"'
  local host
  for host in alpha beta; do
    edit "run/raw/$host/environment.json" 'del(.rdma)'
  done
  judge 0
  assert_output --partial "scope software"
}

@test "RDMA that claims less than its figures need, or has another device than planned, is inconclusive" {
  rm -r run && cp -r "$TOP/tests/fixtures/rxe/run" run
  local flow=verbs-write-bandwidth/alpha/beta/1
  local out=run/raw/alpha/flows/$flow/client.stdout
  spoil "$out" 3 flow/$flow <<'FAULTS'
.path = {claimed_bytes: 0, client_sent_bytes: 0, client_received_bytes: 0}
.path.client_sent_bytes = 6553599
.client.device = "rxe1"
.server.device = null
FAULTS
  out=run/raw/alpha/flows/send-bandwidth/alpha/beta/1/client.stdout
  sed -i 's/: rxe0$/: rxe1/' $out
  judge 3
  assert_json run/verdict.json 'any(.checks[]; .id == "flow/send-bandwidth/alpha/beta/1" and .status == "inconclusive"
    and (.measured | test("the plan asks for device rxe0 on the client, the output says rxe1")))'
}

@test "another port of the planned device is no proof" {
  rm -r run && cp -r "$TOP/tests/fixtures/rxe/run" run
  local client=run/raw/alpha/flows/write-latency/alpha/beta/1/client.json
  # all went over port 2, while port 1, which the plan names, stood still
  spoil "$client" 1 path/write-latency/alpha/beta/1 <<'FAULTS'
.counters |= ((.before, .after).rdma |= (.["rxe0/2"] = .["rxe0/1"]) | .after.rdma["rxe0/1"] = .before.rdma["rxe0/1"])
FAULTS
  # where nothing names the port, nobody knows
  client=run/raw/alpha/flows/verbs-write-bandwidth/alpha/beta/1/client.json
  spoil "$client" 3 path/verbs-write-bandwidth/alpha/beta/1 <<'FAULTS'
(.counters.before, .counters.after).rdma |= (.["rxe0/2"] = .["rxe0/1"])
FAULTS
}

@test "a bandwidth above what the link can carry fails" {
  edit run/raw/alpha/flows/tcp-bandwidth/alpha/beta/1/client.stdout '.link = {rate_gbit_s: 1, mtu_bytes: 1500, layer: "ethernet", hop_class: null}'
  judge 1
  assert_equal "$(check_status ceiling)" fail
}

@test "bytes that are no text do not disturb the judging" {
  head -c 3000 /dev/urandom >"$TCP/client.stderr"
  head -c 3000 /dev/urandom >"$TCP/client.stdout"
  judge 3
  assert_equal "$(jq -s 'length' run/records.jsonl)" "$(jq '[.rounds[].flows[].expect | length] | add' run/plan.json)"
}

# spoil FILE STATUS CHECK < table: each line is a jq filter that plants one fault in FILE; none of them may pass
spoil() {
  local fault
  cp "$1" whole
  while read -r fault; do
    cp whole "$1"
    edit "$1" "$fault"
    judge "$2"
    assert_equal "$(check_status "$3")" "$([ "$2" = 1 ] && echo fail || echo inconclusive)"
  done
  cp whole "$1"
}

@test "a raw file of another run, flow, role, host or command is no evidence" {
  spoil "$TCP/client.json" 3 flow/tcp-latency/alpha/beta/1 <<'FAULTS'
.run = "another"
del(.run)
.flow = "tcp-latency/alpha/beta/2"
.role = "server"
.host = "beta"
.argv[1] = "bw"
.argv += ["--iterations", "1"]
FAULTS
  spoil run/raw/beta/flows/tcp-latency/alpha/beta/1/server.json 3 flow/tcp-latency/alpha/beta/1 <<<'.run = "another"'
  assert_equal "$(jq -r '.coverage.missing[0] | .code, (.message | .[0:45])' run/verdict.json)" $'6\nraw file belongs to another measurement: serv'
  spoil run/raw/alpha/agent.json 3 host/alpha <<<'.run = "another"'
}

@test "a server without a word, or with a bad end, leaves no result" {
  local server=run/raw/beta/flows/iperf3/alpha/beta/1/server.json
  spoil "$server" 3 flow/iperf3/alpha/beta/1 <<'FAULTS'
.state = "meeting_failed"
.exit = 1
.exit = 137 | .signal = "KILL"
FAULTS
  edit "$server" '.exit = 143 | .signal = "TERM"'
  judge 0
  rm "$server" run/raw/beta/flows/tcp-latency/alpha/beta/1/server.json
  judge 3
  assert_equal "$(jq '.coverage.missing | length' run/verdict.json)" 5
}

@test "an output that is not what the plan's command asks for is inconclusive" {
  spoil run/raw/alpha/flows/ofi-bandwidth-event/alpha/beta/1/client.stdout 3 flow/ofi-bandwidth-event/alpha/beta/1 <<'FAULTS'
.backend = null
.provider = "shm"
.op = "write"
.kind = null
.params.completion = "busy"
.params.verify = true
.params.bidirectional = true
.params.duration_s = 3
.definition = "initiator_completion"
FAULTS
  spoil "$IPERF3/client.stdout" 3 flow/iperf3/alpha/beta/1 <<<'.start.test_start.num_streams = 2'
}

@test "queue pairs of another connection, number or MTU than planned are inconclusive; lost messages are judged" {
  rm -r run && cp -r "$TOP/tests/fixtures/rxe/run" run
  local flow=verbs-ud-send-bandwidth/alpha/beta/1
  spoil run/raw/alpha/flows/$flow/client.stdout 3 flow/$flow <<'FAULTS'
.connection = "RC"
.params.queue_pairs = 4
.params.relaxed_ordering = true
FAULTS
  edit run/raw/alpha/flows/$flow/client.stdout '.loss.lost_messages = 30'
  edit run/inputs/limits.json '.limits += [{id: "lost", title: "Lost", scope: {tool: "perch"}, metric: "derived.loss_ppm", bound: {max: 10000},
    unit: "ppm", source: "test", severity: "required"}]'
  judge 1
  assert_equal "$(check_status limit/lost/verbs-ud-send-bandwidth)" fail
}

@test "impossible figures and unknown lines are inconclusive" {
  spoil run/raw/alpha/flows/tcp-bandwidth-event/alpha/beta/1/client.stdout 3 flow/tcp-bandwidth-event/alpha/beta/1 <<'FAULTS'
.status = "fine"
.error = {code: 6, message: "oops"}
.bandwidth.gbit_s *= 1.1
.bandwidth.gbit_s *= 1e5 | .bandwidth.bytes *= 1e5
.elapsed_s = 0.001
.params.rate = {overloaded: true}
., "garbage"
., (.params.size_bytes = 7)
FAULTS
  spoil run/raw/alpha/flows/tcp-verify/alpha/beta/1/client.stdout 3 flow/tcp-verify/alpha/beta/1 <<'FAULTS'
.integrity.checked_bytes = 0
.integrity = null
FAULTS
  spoil "$TCP/client.stdout" 3 flow/tcp-latency/alpha/beta/1 <<'FAULTS'
.latency_us.count = 3
.latency_us.count *= 2
.latency_us.mean = 1
FAULTS
  echo oops >>run/raw/alpha/flows/iperf/alpha/beta/1/client.stdout
  judge 3
}

@test "limits that judge nothing, or ask for what no record has, are inconclusive" {
  spoil run/inputs/limits.json 3 limits <<'FAULTS'
.limits[].severity = "advisory"
.limits[].scope.tool = "none"
.limits[0].scope.sise = 8
.limits[0].metric = "latency_us.p42"
.limits[0].bound.maximum = 8
FAULTS
}

@test "software does not become hardware by the plan's word" {
  edit run/plan.json '.rounds[].flows[].scope = "hardware"'
  judge 0
  assert_output --partial "scope software"
  edit run/plan.json '.rounds[].flows[0].scope = "real"'
  judge 3
  assert_output --partial 'unknown scope "real"'
}

@test "what the plan leaves out is shown, and a plan of little else is inconclusive" {
  cp run/plan.json plan.json
  edit run/plan.json '.excluded = [{test: "verbs-latency", reason: "alpha has no backend verbs"}]'
  judge 0
  assert_equal "$(check_status excluded)" not_judged
  edit run/plan.json '.hosts.gamma = .hosts.beta'
  judge 3
  assert_equal "$(check_status coverage)" inconclusive
  cp plan.json run/plan.json
  edit run/plan.json '.rounds[].flows[].backend = "null"'
  judge 3
  assert_equal "$(check_status excluded)" inconclusive
}

@test "pipes, links and devices among the raw files are not read" {
  rm "$TCP/client.stdout" "$IPERF3/client.stdout" run/raw/alpha/environment.json
  mkfifo "$TCP/client.stdout" run/raw/alpha/environment.json
  cp "$TOP/tests/fixtures/loopback/run/raw/alpha/flows/iperf3/alpha/beta/1/client.stdout" outside
  ln -s "$PWD/outside" "$IPERF3/client.stdout"
  ln -sf /dev/zero run/raw/alpha/flows/iperf/alpha/beta/1/client.stderr
  run timeout 30 "$JUDGE" run
  assert_equal "$status" 3
  assert_equal "$(jq -r '[.coverage.missing[].flow] | unique | join(" ")' run/verdict.json)" "iperf3/alpha/beta/1 tcp-latency/alpha/beta/1"
  run timeout 30 "$TOP/reports/prepare" run report.json
  assert_equal "$status" 0
  mv -- run -run
  run "$JUDGE" -run
  assert_equal "$status" 3
}

@test "a folder that cannot be written is exit code 6" {
  local -a as=()
  chmod a-w run
  # root may write everywhere, unless it lacks this capability
  [ "$(id -u)" -ne 0 ] || as=(setpriv --bounding-set=-dac_override)
  run "${as[@]}" "$JUDGE" run
  assert_equal "$status" 6
}

@test "the summary is one screen: verdict, tests, report" {
  judge 0
  run "$TOP/reports/summary" run
  assert_equal "$status" 0
  assert_output --partial "Verdict: PASS"
  assert_output --partial "TCP latency"
  assert_output --partial "no proof of hardware"
  assert_output --partial "run/report.md"
}

@test "prepare without records says what to do" {
  run "$TOP/reports/prepare" run report.json
  assert_equal "$status" 2
  assert_output --partial "run reports/judge run first"
}

# The limits of the lab in place of the fixture's.
with_limits() {
  "$TOP/.venv/bin/python" -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' <"$TOP/reports/limits/$1.yml" >run/inputs/limits.json
}

@test "packets that one device sent and the other did not take fail a run whose payload is whole" {
  rm -r run && cp -r "$TOP/tests/fixtures/rxe/run" run
  with_limits rxe
  judge 0
  assert_equal "$(check_status limit/packets-lost/send-bandwidth)" pass
  # of 3,443 packets to the server 30 more were sent than came
  edit run/raw/alpha/flows/send-bandwidth/alpha/beta/1/client.json \
    '.counters.after.rdma["rxe0/1"].counters.sent_pkts |= (tonumber + 30 | tostring)'
  judge 1
  assert_json run/verdict.json 'any(.checks[]; .id == "limit/packets-lost/send-bandwidth" and .status == "fail" and .measured > 100 and .remedy != null
    and .evidence == ["send-bandwidth/alpha/beta/1#65536"])'
  assert_equal "$(jq -r 'select(.test == "send-bandwidth").packets.lost' run/records.jsonl)" 30
}

@test "traffic that stood still for longer than a queue pair's retries fails, with the time when it did" {
  rm -r run && cp -r "$TOP/tests/fixtures/rxe/run" run
  with_limits rxe
  local out=run/raw/alpha/flows/verbs-write-bandwidth/alpha/beta/1/client.stdout
  edit $out '.stall = {longest_s: 2.1, start_s: 0.5, began: "2026-01-01T00:00:00.500Z"}'
  judge 0
  assert_equal "$(check_status limit/stall/verbs-write-bandwidth)" pass
  edit $out '.stall = {longest_s: 5.2, start_s: 0.5, began: "2026-01-01T00:00:00.500Z"}'
  judge 1
  assert_json run/verdict.json 'any(.checks[]; .id == "limit/stall/verbs-write-bandwidth" and .status == "fail" and .measured == 5.2
    and .evidence == ["verbs-write-bandwidth/alpha/beta/1#65536 at 2026-01-01T00:00:00.500Z"])'
  # where a pause was asked for there is none to judge
  edit $out '.stall = null'
  judge 0
}
