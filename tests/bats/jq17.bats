#!/usr/bin/env bats
# Judging under two versions of jq: this machine's, and Debian 13's with its security updates (tests/jq17).

load helpers

setup() {
  common_setup
  NEWER=$("$TOP/tests/jq17" 2>why) || skip "Debian 13's jq cannot be had here (tests/jq17 says why)"
}
teardown() { common_teardown; }

# What tests/run lets the newer one judge alone (JUDGING there) is held to the same bytes here, program by program.

# both NAME COMMAND...: what the command prints and how it ends, under this machine's jq and under the newer one
both() {
  local name=$1 code
  shift
  code=0 && "$@" >"$name.one" 2>&1 || code=$?
  echo "exit code $code" >>"$name.one"
  code=0 && PATH=$NEWER:$PATH "$@" >"$name.two" 2>&1 || code=$?
  echo "exit code $code" >>"$name.two"
  cmp "$name.one" "$name.two" || fail "$(diff "$name.one" "$name.two" | head -c 3000)"
}

# figures DIR: what a report shows of a judged run, and what programs read
figures() { PERCH=/nonexistent "$TOP/reports/prepare" "$1" report.json && cat report.json && "$TOP/reports/export" "$1" && cat "$1"/{junit.xml,perch.prom}; }

# A recorded run whose hosts were asked, and whose switches, one of each maker, were read.
asked_run() {
  local fixtures=$TOP/tests/fixtures variant phase run
  run=$(jq -r .run one/plan.json)
  mkdir -p one/inputs/hosts
  for variant in nxos eos sonic cumulus infiniband; do
    mkdir "one/raw/$variant"
    for phase in before after; do
      "$fixtures/switches/reading" "$variant" "$phase" "$run" "$variant" | sed 's/node1/alpha/g; s/node2/beta/g' >"one/raw/$variant/switch-$phase.json"
    done
  done
  jq -c '.host_checks = true | .switches = (["nxos", "eos", "sonic", "cumulus", "infiniband"]
    | map({key: ., value: {provider: ., scope: "hardware", priorities: [3], ports: {}}}) | from_entries)' one/plan.json >plan && mv plan one/plan.json
  host alpha machine-intel qos-mlx5-dcb nic-mlx5 >one/raw/alpha/host_check.json
  host beta machine-amd qos-mlx5-ofed nic-bnxt >one/raw/beta/host_check.json
  wanted alpha >one/inputs/hosts/alpha.json
  wanted beta >one/inputs/hosts/beta.json
}

# host NAME FIXTURE...: what a host said of itself, in parts of several fixtures
host() {
  local name=$1
  shift
  (cd "$TOP/tests/fixtures/hosts" && cat "${@/%/.json}") | jq -sc --arg name "$name" '. as $all | {schema: .[0].schema, hostname: $name, collected: "2026-01-01T00:00:10Z"}
    + (["files", "later", "links", "commands"] as $parts | reduce $parts[] as $p ({}; .[$p] = ([$all[][$p]] | add)))'
}
wanted() { jq -nc --arg host "$1" '{schema: "perch.wanted/1", $host, wanted: {pfc_priorities: [3], roce_tos: 106, dscp_trust: "dscp", ecn_priorities: [3], mtu: 9000}}'; }

@test "records, verdict and what a report shows are the same bytes under both" {
  local name
  for name in loopback rxe perftest; do
    cp -r "$TOP/tests/fixtures/$name/run" one
    case $name in
      # an accepted run, too, against which it is held
      loopback) cp "$TOP"/tests/fixtures/history/{baseline.json,history.jsonl} one/inputs/ ;;
      rxe) asked_run ;;
    esac
    cp -r one two
    "$TOP/reports/judge" one >one.said || true
    PATH=$NEWER:$PATH "$TOP/reports/judge" two >two.said || true
    cmp one.said two.said
    cmp one/records.jsonl two/records.jsonl
    cmp one/verdict.json two/verdict.json
    both figures figures one
    rm -r one two
  done
}

@test "what is found on hosts of every maker is the same words under both" {
  local name fixtures=$TOP/tests/fixtures
  mkdir -p run/raw run/inputs/hosts
  for name in "$fixtures"/hosts/{machine,qos,nic}-*.json; do
    name=$(basename "$name" .json)
    [ "$name" != nic-cases ] || continue
    mkdir "run/raw/$name"
    # a part is put to a whole machine
    host "$name" machine-amd "$name" >"run/raw/$name/host_check.json"
    wanted "$name" >"run/inputs/hosts/$name.json"
  done
  mkdir run/raw/nid1 && cp "$fixtures/slingshot/host_check.json" run/raw/nid1/
  for name in run/raw/*; do
    jq -nc --arg name "${name##*/}" '{($name): {perch_fabric: (if $name == "nid1" then "slingshot" else "roce" end),
      perch_devices: [{"nic-mlx5": "mlx5_0", "nid1": "cxi0"}[$name] // empty]}}'
  done | jq -sc add >hosts.json
  both hosts sh -c "'$TOP/reports/hosts' run <hosts.json"
  grep -q '^BAD: qos-[a-z0-9-]*: qos-' hosts.one
  grep -q '^ok: nid1: slingshot-' hosts.one
}

@test "plans are the same bytes under both, and what cannot be planned is refused in the same words" {
  local suite
  for suite in "$TOP"/playbooks/suites/*.yml; do
    "$TOP/.venv/bin/python" -c 'import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))' "$suite"
  done >suites
  # a suite after the other, for hosts of each fabric; then tests that cannot be
  jq -c '. as $suite
    | {roce: ["verbs", "tcp", "ofi"], infiniband: ["verbs"], slingshot: ["cxi", "ofi"], loopback: ["tcp", "ofi", "null"]} | to_entries[]
    | .key as $fabric | .value as $backends
    | {run: "r", created: "c", limits: "l", $suite, hosts: ([range(4) | {key: "h\(.)", value: {perch_address: "192.0.2.\(. + 1)", perch_fabric: $fabric,
        perch_backends: $backends, perch_tools: ["perch", "perftest", "cxi", "iperf3", "iperf"], perch_switch: "s\(. % 2)",
        perch_devices: [range(4) | {name: "d\(.)", netdev: "e\(.)", gid_index: 3}]}}] | from_entries)}' suites >inputs
  head -n 1 inputs >first
  jq -c '({params: {size: "8:x"}}, {params: {size: 8, duration: "0s"}}, {params: {size: 8, nonsense: 1}},
    {tool: "iperf", kind: "latency"}, {tool: "perftest", params: {size: 8}}, {kind: "transfer", params: {size: 8, batch: 32769}}) as $odd
    | .suite.tests[0] += $odd + {name: "odd", title: "Odd"}' first >>inputs
  both plans jq -c -f "$TOP/playbooks/plan.jq" inputs
  [ "$(grep -c '"perch.plan/1"' plans.one)" -gt 30 ] || fail "few plans: $(cut -c -200 plans.one)"
  [ "$(grep -c 'test odd: ' plans.one)" -ge 5 ] || fail "few refusals: $(grep -v '^{' plans.one)"
}

@test "numbers that both would spell otherwise are the same bytes in records and verdict" {
  cp -r "$TOP/tests/fixtures/loopback/run" one
  # a size and a repeat as fractions, times of some microseconds, a window beyond 2^53, a reading that is no number of the plan
  sed -i -E 's/"size_bytes":8,/"size_bytes":8.0,/; s/"stddev":[0-9.]+/"stddev":0.0000120/; s/"(client|server)_s":[0-9.]+/"\1_s":1.234E-5/g; s/"window_bytes":[0-9]+/"window_bytes":123456789012345678/' \
    one/raw/alpha/flows/tcp-latency/alpha/beta/1/client.stdout one/raw/alpha/flows/tcp-bandwidth/alpha/beta/1/client.stdout
  sed -i -E 's/"gap_us":[0-9.]+/"gap_us":1e17/' one/raw/alpha/flows/shm-read-latency/alpha/beta/1/client.stdout
  sed -i -E 's/"exit": ?0/"exit":1E2/' one/raw/alpha/flows/iperf3/alpha/beta/1/client.json
  sed -i -E 's/"repeat": ?1,/"repeat": 1.0,/' one/plan.json
  cp -r one two
  "$TOP/reports/judge" one >one.said || true
  PATH=$NEWER:$PATH "$TOP/reports/judge" two >two.said || true
  # they have arrived where they matter
  grep -qF '"stddev":1.2e-05' one/records.jsonl
  grep -qF '"server_s":1.2e-05' one/records.jsonl
  grep -qF '"window_bytes":123456789012345680' one/records.jsonl
  grep -qF 'the output says 1e+17' one/records.jsonl
  grep -qF '"exit 100' one/records.jsonl
  cmp one.said two.said
  cmp one/records.jsonl two/records.jsonl
  cmp one/verdict.json two/verdict.json
}

@test "a soak's report and its files for programs are the same bytes under both" {
  local part
  mkdir run
  for part in intervals plan soak; do
    PATH=$NEWER:$PATH jq -nc --argjson hosts 5 --argjson n 400 --argjson each 60 --arg part "$part" -f "$TOP/tests/fixtures/soak_report/made.jq" >"run/$part"
  done
  mv run/soak soak
  mv run/intervals run/intervals.jsonl
  mv run/plan run/plan.json
  jq '{schema: "perch.verdict/1", run: "made-by-hand", verdict: "FAIL", scope: "software", coverage: {planned: 6, measured: 0, missing: []}, checks: [], facts: [],
    comparison: {statistic: null, rows: [], refused: [], others: []}, soak: .}' soak >run/verdict.json
  # numbers that both would spell otherwise
  sed -i -e '3 s/"gbit_s":[0-9.]*/"gbit_s":9.50e1/' -e '4 s/"gbit_s":[0-9.]*/"gbit_s":95.500/' run/intervals.jsonl
  : >run/records.jsonl
  both figures figures run
  grep -q '"soak_latency_3"' figures.one
}

@test "outputs measured elsewhere are the same records under both" {
  both import "$TOP/reports/import" "$TOP"/tests/fixtures/import/*.md "$TOP"/tests/fixtures/perftest/{4.5,25.01}/*.txt "$TOP"/tests/fixtures/cxi/*.txt
  [ "$(grep -c '"perch.record/1"' import.one)" -gt 100 ] || fail "few records"
}

@test "every program names its modules in the order that this jq needs" {
  run_expecting 0 python3 "$TOP/tests/jq_order.py"
}
