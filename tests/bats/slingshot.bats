#!/usr/bin/env bats
# Slingshot: the cxi tools' outputs, their place in a plan, what hosts say of their NICs, and the verdict over all of it.
# No NIC is here: outputs are HPE's published ones, and a node's sysfs is laid out under another /sys/class.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

# recorded: the self-test's run of two nodes whose tools printed the published figures, in run/; tests/py/test_slingshot_run.py spoils it
recorded() {
  PYTHONPATH=$TOP:$TOP/tests/self-test "$TOP/.venv/bin/python" -c 'import pathlib
from selftest.runs.slingshot import slingshot
slingshot(pathlib.Path("run"))'
}

@test "a run of two nodes with published figures passes, its path proven by the NICs' octets" {
  recorded
  run_expecting 0 "$TOP/reports/judge" run
  assert_output --partial "scope hardware"
  assert_json run/verdict.json '[.checks[] | select(.id == "path/proven/hardware" or (.id | startswith("limit/write-bandwidth/"))) | .status] | unique == ["pass"]'
  assert_json run/verdict.json '[.checks[] | select(.id | startswith("host_check/slingshot")) | .status] | unique == ["pass"]'
  head -n 1 run/records.jsonl >record.json
  assert_json record.json '.link.hop_class == "same_switch" and .scope == "hardware" and .path.client_device_bytes >= 90000'
  command -v check-jsonschema >/dev/null || skip "check-jsonschema is not installed"
  jq '{type: "array", items: .}' "$TOP/reports/schema/record.schema.json" >records.schema.json
  jq -s . run/records.jsonl >records.json
  check-jsonschema --schemafile records.schema.json records.json
  check-jsonschema --schemafile "$TOP/reports/schema/verdict.schema.json" run/verdict.json
  check-jsonschema --schemafile "$TOP/reports/schema/plan.schema.json" run/plan.json
  check-jsonschema --schemafile "$TOP/reports/schema/environment.schema.json" run/raw/*/environment.json
}

# node COMMAND...: runs it where /sys/class holds a Cassini NIC, as its driver lays it out
node() {
  # shellcheck disable=SC2016  # for the inner shell
  unshare --user --map-root-user --mount bash -c '
    set -e
    mkdir -p class
    mount --rbind /sys/class/net class 2>/dev/null && umount -l class
    mount -t tmpfs none /sys/class
    nic=/sys/class/cxi/cxi0/device
    mkdir -p "$nic"/{port,telemetry,net/hsn0,uc} /sys/class/net/hsn0/statistics
    ln -s ../../../../bus/pci/drivers/cxi_ss1 "$nic/driver"
    echo up >"$nic/port/link"; echo BS_200G >"$nic/port/speed"; echo pfc/802.1qbb >"$nic/port/pause"
    echo on >"$nic/port/link_layer_retry"; echo off >"$nic/port/loopback"
    echo 72057594037927000@1763726400.000000001 >"$nic/telemetry/hni_sts_tx_ok_octets"
    echo 42@1763726400.000000002 >"$nic/telemetry/hni_sts_rx_ok_octets"
    echo 1000 >/sys/class/net/hsn0/statistics/tx_bytes; echo 3 >/sys/class/net/hsn0/carrier_down_count
    "$@"' node "$@"
}

@test "host-check reads a NIC's files, and only reads; without one it says so" {
  unshare --user --map-root-user --mount true 2>/dev/null || skip "no user namespaces here"
  node "$TOP/roles/host_check/files/host-check" cxi0 >found.json
  assert_json found.json '.schema == "perch.host_check/1" and .files["/sys/class/cxi/cxi0/device/port/link"] == "up"
    and .links["/sys/class/cxi/cxi0/device/net"] == "hsn0" and .commands["services cxi0"].exit == null
    and .commands["kernel-log"].argv[0:2] == ["journalctl", "--dmesg"]'
  local found
  found=$(rules 'import "hosts/slingshot" as h; [h::findings({fabric: "slingshot", devices: [{name: "cxi0"}]})]')
  jq -f "$found" found.json | jq 'map({(.id): .status}) | add' >judged.json
  assert_json judged.json '."slingshot-device" == "ok" and ."slingshot-link-speed" == "ok" and ."slingshot-pfc" == "ok" and ."slingshot-service" == "unknown"
    and ."slingshot-link-flaps" == "ok"'
  [ -e /sys/class/cxi ] || {
    "$TOP/roles/host_check/files/host-check" cxi0 >none.json
    jq -f "$found" none.json >judged.json
    assert_json judged.json 'map([.status, .found]) == [["not_applicable", "no Slingshot device"]]'
  }
}

@test "playbooks/check.yml on a host without a NIC: not applicable, never PASS" {
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1
  local -a play=(ansible-playbook -i "$TOP/inventories/local" "$TOP/playbooks/check.yml" -e host_check_runs_dir="$PWD/runs" -e perch_fabric=slingshot)
  [ ! -e /sys/class/cxi ] || skip "this machine has a Cassini NIC"
  mkdir runs
  LIMIT=200 run_expecting 2 "${play[@]}"
  assert_output --partial "NOT KNOWN: alpha: slingshot-device: no Slingshot device"
  assert_output --partial "INCONCLUSIVE"
  refute_output --partial "PASS:"
  assert_equal "$(find runs -name host_check.json | wc -l)" 2
  # what a real check leaves is as the schemas say
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/wanted.schema.json" runs/*/inputs/hosts/*.json
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/host_check.schema.json" runs/*/raw/*/host_check.json
}

# agent HOST NIC...: walks plan.json as that host, whose NICs are cxi0, cxi1, ..., with the tools of bin/
agent() {
  local host=$1 nic i=0 devices=""
  shift
  for nic in "$@"; do devices+=${devices:+,}sim_cxi$((i++))=$nic; done
  PATH=$PWD/bin:$PATH SIM_CXI_DEVICES=$devices "$(packed_agent)" start --plan "$(share "$host")" --host "$host" --out "run/raw/$host" \
    --engine "$PERCH" --start-window 30 3>&-
}

# simulate DEVICES TESTS: plan.json of alpha and beta with these NICs, both as jq's, and a run for their agents
simulate() {
  export FI_PROVIDER_PATH=$TOP/tests/sim_cxi/build SIM_CXI_FABRIC=$PWD/fabric
  [ -e "$FI_PROVIDER_PATH/libcxi-fi.so" ] || skip "NOT TESTED: tests/sim_cxi is not built (make sim-cxi)"
  "$PERCH" lat --help-all 2>&1 | grep -q -- --svc-id || skip "NOT TESTED: this engine was built without the cxi backend"
  mkdir -p bin run/inputs
  ln -s "$PERCH" bin/cxi_send_lat
  # without a token Perch accepts 127.0.0.1 alone, under whatever name; the original has neither
  (umask 077 && echo 0123456789abcdef0123456789abcdef >token)
  export PERCH_TOKEN_FILE=$PWD/token
  jq -n --argjson port "$(free_port)" --argjson tool "$(free_port)" '{run: "20260101T000000Z-x", created: "2026-01-01T00:00:00Z",
    limits: "local", suite: {name: "s", title: "S", tests: '"$2"'},
    hosts: ({alpha: "127.0.0.1", beta: "127.0.0.2"} | map_values({perch_address: ., perch_fabric: "slingshot", perch_scope: "simulated",
      perch_backends: ["cxi"], perch_tools: ["perch", "cxi"], perch_devices: '"$1"', perch_port: $port,
      perch_cxi_port: $tool}))}' | "$TOP/.venv/bin/python" "$TOP/tests/planned.py" >plan.json
  put_plan run <plan.json
  python3 -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' <"$TOP/reports/limits/local.yml" >run/inputs/limits.json
}

agents_end() {
  local host
  for host in alpha beta; do WAIT=120 wait_until agent_ended "run/raw/$host"; done
}

@test "over the simulated provider: cxi_send_lat and the engine, run by the agents, judged, and named simulated" {
  simulate '[{name: "cxi0", svc_id: 1, vni: 10}]' '[
    {name: "tool", title: "cxi_send_lat", tool: "cxi", kind: "latency", params: {size: "8:16", iterations: 20, gap: "0us"}},
    {name: "engine", title: "engine", tool: "perch", backend: "cxi", kind: "latency", params: {size: "8:16", iterations: 20}}]'
  agent alpha 0x13 >/dev/null
  agent beta 0x12 >/dev/null
  agents_end
  run "$TOP/reports/judge" run
  jq -c '[.flow, .status, .scope, .error, .client]' run/records.jsonl
  assert_output --partial "scope simulated"
  jq -s . run/records.jsonl >records.json
  assert_json records.json 'length == 4 and all(.[]; .status == "ok" and .scope == "simulated" and .path.state == "not_judged" and .link.layer == "slingshot")
    and ([.[] | .tool.name] | unique) == ["perch", "perch-personality"]'
  assert_json run/verdict.json '[.checks[] | select(.id == "simulated") | .status] == ["not_judged"]'
}

@test "over the simulated provider: transfers between two NICs each, run by the agents, judged, and named simulated" {
  simulate '[{name: "cxi0", svc_id: 1, vni: 10}, {name: "cxi1", svc_id: 1, vni: 10}]' '[
    {name: "write", title: "W", tool: "perch", backend: "cxi", op: "write", kind: "transfer", params: {size: "1K:2K", batch: 4, iterations: 20}},
    {name: "read", title: "R", tool: "perch", backend: "cxi", op: "read", kind: "transfer",
      params: {size: 1024, batch: 4, devices: "all", iterations: 20, verify: true}}]'
  agent alpha 0x13 0x15 >/dev/null
  agent beta 0x12 0x14 >/dev/null
  agents_end
  run "$TOP/reports/judge" run
  jq -c '[.flow, .kind, .status, .scope, .error, .client]' run/records.jsonl
  assert_output --partial "7 of 7 records measured, scope simulated"
  jq -s . run/records.jsonl >records.json
  assert_json records.json 'all(.[]; .status == "ok" and .scope == "simulated" and .backend == "cxi" and .link.layer == "slingshot"
      and .client.svc_id == 1 and .server.vni == 10)
    and ([.[] | select(.kind == "transfer") | .client.device] | sort) == ["sim_cxi0", "sim_cxi0", "sim_cxi0", "sim_cxi1"]'
}
