#!/usr/bin/env bats
# reports/judge and RDMA: what the devices counted proves the path, or fails it; a name alone makes nothing hardware.

load helpers
load judge

setup() { judge_setup; }
teardown() { common_teardown; }

@test "hardware without device counters is never a PASS" {
  local flow=ofi-bandwidth-event/alpha/beta/0/1
  edit run/plan.json '.hosts[] |= (.scope = "hardware" | .fabric = "roce")
    | (.rounds[].flows[] | select(.test == "ofi-bandwidth-event")) |= (.scope = "hardware" | .provider = "verbs")'
  edit_output $flow '.provider = "verbs" | .link.layer = "infiniband"'
  judge 3
  assert_equal "$(check_status path/$flow)" inconclusive
}

@test "RDMA that Soft-RoCE carried is proven on both ends, by packets and by the interface under it" {
  recorded rxe
  judge 0
  assert_equal "$(jq -r '.checks[] | select(.id | startswith("path")) | "\(.id) \(.status) \(.measured)"' run/verdict.json)" "path/proven/software pass 9"
  assert_equal "$(jq -r '.path | "\(.state) \(.counted)"' run/records.jsonl | sort -u)" "proven rxe0 packets, eth1 bytes"
  # what Soft-RoCE sent again is in the record, and in the report
  assert_json <(jq 'select(.test == "write-latency")' run/records.jsonl) '.counters.server["rxe0/1"].duplicate_request == 12'
  run_expecting 0 "$TOP/.venv/bin/perchctl" report run
  assert_equal "$(grep -c '| 1 proven |$' run/report.md)" 9
  assert_equal "$(grep -c 'RDMA write latency, server: rxe0/1 duplicate_request 12$' run/report.md)" 1
}

@test "RDMA whose device counted less than was claimed fails; more is a finding; what cannot be read proves nothing" {
  recorded rxe
  local flow=write-latency/alpha/beta/0/1
  # the packets went nowhere; only the interface moved; one packet of 200 is missing at the other end
  spoil_end $flow client 1 path/$flow <<'FAULTS'
.counters.after.rdma = .counters.before.rdma
.counters.after.netdev = .counters.before.netdev
FAULTS
  spoil_end $flow server 1 path/write-latency/alpha/beta/0/1 <<'FAULTS'
.counters.after.rdma["rxe0/1"].counters |= (.rcvd_pkts = "199")
FAULTS
  more $flow rdma.rxe0/1.counters.sent_pkts 9000000000
  judge 0
  assert_equal "$(check_status path/write-latency/alpha/beta/0/1)" advisory
  recorded rxe
  rm -rf whole && cp -r run/raw whole
  local fault
  for fault in '.counters = null' '.counters |= (.before.rdma = {} | .after.rdma = {})' 'del(.counters.after.rdma["rxe0/1"].counters.sent_pkts)' \
    '.counters.before.rdma["rxe0/1"].counters.sent_pkts = "4294967290" | .counters.after.rdma["rxe0/1"].counters.sent_pkts = "5"'; do
    edit_end $flow client "$fault"
    judge 3
    assert_equal "$(check_status path/write-latency/alpha/beta/0/1)" inconclusive
    assert_equal "$(jq -r 'select(.test == "write-latency").path.state' run/records.jsonl)" unknown
    rm -r run/raw && cp -r whole run/raw
  done
}

@test "RDMA is hardware only where both hosts name a card's driver; without one, the run is inconclusive" {
  cards '"mlx5_core"'
  judge 0
  assert_output --partial "scope hardware"
  edit run/raw/beta/environment.json 'del(.rdma)'
  judge 3
  assert_json run/verdict.json 'any(.checks[]; .id == "path/write-latency/alpha/beta/0/1" and .status == "inconclusive" and (.remedy | test("driver"))
    and .measured == "nothing shows that mlx5_0 of beta (server) is hardware: its driver is not in environment.json")'
  cards null
  judge 3
  assert_equal "$(check_status path/verbs-read-bandwidth/alpha/beta/0/1)" inconclusive
}

@test "TCP between hosts of hardware is the baseline, and no reason to call the cards' run software; any other software is" {
  cards '"mlx5_core"'
  cp -r run whole
  # a recorded flow of TCP, as if it had gone between hosts of scope $1, over layer $2
  local flow=tcp-bandwidth-event/alpha/beta/0/1 fixture=$TOP/tests/fixtures/loopback/run
  beside() {
    rm -rf run && cp -r whole run
    edit run/plan.json ".hosts[].scope = \"$1\" | .rounds[].flows[].scope = \"$1\""
    # at its addresses and its time
    PYTHONPATH=$TOP:$TOP/tests/self-test "$TOP/.venv/bin/python" -c 'import json, pathlib, sys
from perch.model.moments import moment
from tests import spelled
from tests.py.judging import later
from tests.raw_lines import End, parsed, printed, walks
flow, fixture, root = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path("run")
hosts, recorded = (spelled.read(one)["hosts"] for one in (root, fixture))
first = End(root, "verbs-send-latency/alpha/beta/0/1").document()["started"]
shift = later(moment(first) - moment(End(fixture, flow).document()["started"]))
for host, role in (("alpha", "client"), ("beta", "server")):
    text = json.dumps(End(fixture, flow, role).document())
    for name in hosts:
        text = text.replace(recorded[name]["address"], hosts[name]["address"])
    end = json.loads(text)
    shift(end)
    if role == "client":
        lines = parsed(end["stdout"])
        [shift(line) for line in lines]
        end["stdout"] = printed(lines)
    (walk,) = walks(root, host)
    walk.ends.append(end)
    walk.agent["flows_total"] += 1
    walk.agent["flows_done"] += 1
    walk.save()' "$flow" "$fixture"
    edit_output $flow ".link.layer = \"$2\" | .client.host = \"alpha\" | .server.host = \"beta\""
    spelled "$fixture" >tcp.json
    spelled run | jq -c --slurpfile tcp tcp.json '.rounds += [{flows: [$tcp[0].rounds[].flows[] | select(.test == "tcp-bandwidth-event")]}]' | put_plan run
    "$JUDGE" run >/dev/null || true
    jq -e 'select(.test == "tcp-bandwidth-event") | .status == "ok"' run/records.jsonl >/dev/null || fail "$(jq -c 'select(.test == "tcp-bandwidth-event") | .error' run/records.jsonl)"
  }
  beside hardware ethernet
  assert_equal "$(jq -r .scope run/verdict.json)" hardware
  # beside hosts that the plan does not call hardware, and over a layer that leaves no machine
  beside software ethernet
  assert_equal "$(jq -r .scope run/verdict.json)" software
  beside hardware loopback
  assert_equal "$(jq -r .scope run/verdict.json)" software
  # one flow of RDMA's interface in software
  beside hardware ethernet
  edit run/plan.json '(.rounds[].flows[] | select(.test == "verbs-send-latency")).scope = "software"'
  "$JUDGE" run >/dev/null || true
  assert_equal "$(jq -r .scope run/verdict.json)" software
}

@test "Soft-RoCE under a card's name and without its driver's is software by its counters" {
  recorded rxe
  find run -type f -exec sed -i 's/rxe0/mlx5_0/g' {} +
  edit run/plan.json '.rounds[].flows[].scope = "hardware" | .hosts[].scope = "hardware"'
  local host
  for host in alpha beta; do
    edit "run/raw/$host/environment.json" 'del(.rdma)'
  done
  judge 3
  assert_output --partial "scope software"
  assert_equal "$(check_status software)" inconclusive
}

@test "RDMA that claims less than its figures need, or has another device than planned, is inconclusive" {
  recorded rxe
  local flow=verbs-write-bandwidth/alpha/beta/0/1
  spoil_output $flow 3 flow/$flow <<'FAULTS'
.path = {claimed_bytes: 0, client_sent_bytes: 0, client_received_bytes: 0}
.path.client_sent_bytes = 6553599
.client.device = "rxe1"
.server.device = null
FAULTS
  raw show send-bandwidth/alpha/beta/0/1 client stdout | sed 's/: rxe0$/: rxe1/' | raw put send-bandwidth/alpha/beta/0/1 client stdout
  judge 3
  assert_json run/verdict.json 'any(.checks[]; .id == "flow/send-bandwidth/alpha/beta/0/1" and .status == "inconclusive"
    and (.measured | test("the plan asks for device rxe0 on the client, the output says rxe1")))'
}

@test "another port of the planned device is no proof" {
  recorded rxe
  # all went over port 2, while port 1, which the plan names, stood still
  spoil_end write-latency/alpha/beta/0/1 client 1 path/write-latency/alpha/beta/0/1 <<'FAULTS'
.counters |= ((.before, .after).rdma |= (.["rxe0/2"] = .["rxe0/1"]) | .after.rdma["rxe0/1"] = .before.rdma["rxe0/1"])
FAULTS
  # where nothing names the port, nobody knows
  spoil_end verbs-write-bandwidth/alpha/beta/0/1 client 3 path/verbs-write-bandwidth/alpha/beta/0/1 <<'FAULTS'
(.counters.before, .counters.after).rdma |= (.["rxe0/2"] = .["rxe0/1"])
FAULTS
}

@test "queue pairs of another connection, number or MTU than planned are inconclusive; lost messages are judged" {
  recorded rxe
  local flow=verbs-ud-send-bandwidth/alpha/beta/0/1
  spoil_output $flow 3 flow/$flow <<'FAULTS'
.connection = "RC"
.params.queue_pairs = 4
.params.relaxed_ordering = true
FAULTS
  edit_output $flow '.loss.lost_messages = 30 | .bandwidth.bytes *= 0.85 | .bandwidth.gbit_s *= 0.85
    | .bandwidth.messages_per_s *= 0.85 | .cpu |= (.client_s_per_gb = null | .server_s_per_gb = null)'
  edit run/inputs/limits.json '.limits += [{id: "lost", title: "Lost", scope: {tool: "perch"}, metric: "derived.loss_ppm", bound: {max: 10000},
    unit: "ppm", source: "test", severity: "required", remedy: "none"}]'
  judge 1
  assert_equal "$(check_status limit/lost/verbs-ud-send-bandwidth)" fail
}

# The limits of the lab in place of the fixture's.
with_limits() {
  "$TOP/.venv/bin/python" -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' <"$TOP/reports/limits/$1.yml" >run/inputs/limits.json
  edit run/plan.json ".limits = \"$1\""
}

@test "packets that one device sent and the other did not take fail a run whose payload is whole" {
  recorded rxe
  with_limits rxe
  judge 0
  assert_equal "$(check_status limit/packets-lost/send-bandwidth)" pass
  # of 3,443 packets to the server 30 more were sent than came
  edit_end send-bandwidth/alpha/beta/0/1 client \
    '.counters.after.rdma["rxe0/1"].counters.sent_pkts |= (tonumber + 30 | tostring)'
  judge 1
  assert_json run/verdict.json 'any(.checks[]; .id == "limit/packets-lost/send-bandwidth" and .status == "fail" and .measured > 100 and .remedy != null
    and .evidence == ["send-bandwidth/alpha/beta/0/1#65536"])'
  assert_equal "$(jq -r 'select(.test == "send-bandwidth").packets.lost' run/records.jsonl)" 30
}

@test "traffic that stood still for longer than a queue pair's retries fails, with the time when it did" {
  recorded rxe
  with_limits rxe
  local flow=verbs-write-bandwidth/alpha/beta/0/1
  # five seconds longer than it was, and begun as much earlier
  edit_output $flow '.started = "2026-11-21T14:17:34.945Z" | .elapsed_s = 6.2 | .bandwidth |= (.gbit_s = .bytes * 8e-9 / 6.2
    | .messages_per_s = .bytes / 65536 / 6.2 | .min_interval_gbit_s = 0)'
  edit_output $flow '.stall = {longest_s: 2.1, start_s: 0.5, began: "2026-11-21T14:17:35.445Z"}'
  judge 0
  assert_equal "$(check_status limit/stall/verbs-write-bandwidth)" pass
  edit_output $flow '.stall = {longest_s: 5.2, start_s: 0.5, began: "2026-11-21T14:17:35.445Z"}'
  judge 1
  assert_json run/verdict.json 'any(.checks[]; .id == "limit/stall/verbs-write-bandwidth" and .status == "fail" and .measured == 5.2
    and .evidence == ["verbs-write-bandwidth/alpha/beta/0/1#65536 at 2026-11-21T14:17:35.445Z"])'
  # where a pause was asked for there is none to judge
  edit_output $flow '.stall = null'
  judge 0
}
