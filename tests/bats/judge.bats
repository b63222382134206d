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
    judge 0
    assert_equal "$(check_status path/not_judged/write-latency/alpha/beta/1)" not_judged
    assert_equal "$(jq -r 'select(.test == "write-latency").path.state' run/records.jsonl)" unknown
    cp whole "$client"
  done
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
