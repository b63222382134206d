#!/usr/bin/env bats
# reports/judge and what the tools left: an output that is cut off, impossible or another's is never a result.

load helpers
load judge

setup() { judge_setup; }
teardown() { common_teardown; }

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
  # at the time of the run's own: of another day it would be no output of this run
  sed 's/2026-11-21 07:29:../2026-11-21 08:04:35/' "$TOP/tests/fixtures/tools/iperf_mbytes.txt" >"$stdout"
  judge 0
  assert_equal "$(jq -s 'map(select(.test == "iperf"))[0].bandwidth.gbit_s | . * 10 | round' run/records.jsonl)" 253
  # 50 Mb/s is under the loopback's limit of 1 Gb/s
  sed 's/2026-11-21 07:29:../2026-11-21 08:04:35/' "$TOP/tests/fixtures/tools/iperf_slow.txt" >"$stdout"
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
.bandwidth.gbit_s *= 10 | .bandwidth.bytes *= 10
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
.latency_us.mean = .latency_us.min
FAULTS
  echo oops >>run/raw/alpha/flows/iperf/alpha/beta/1/client.stdout
  judge 3
}
