#!/usr/bin/env bats
# Devices that the hosts are asked for, once the engine is there: a stand-in of it lists cards that this machine has not.

setup() {
  load helpers
  load playbook
  playbook_setup
  sed -i '/iperf3/d; s/, repeat: 2//' suite.yml
  cat >hosts.yml <<'YAML'
all:
  hosts: {alpha: {perch_address: 127.0.0.1}, beta: {perch_address: 127.0.0.2}}
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    perch_fabric: roce
    perch_scope: software
    perch_backends: [tcp]
    perch_devices: [active]
YAML
  "$TOP/.venv/bin/python" - "$TOP" >devices.jsonl <<'PY'
import json, sys
sys.path.insert(0, sys.argv[1])
from tests.py.discovered import nic
for one in nic("mlx5_1", 2), nic("mlx5_0", 1), nic("mlx5_2", 3, default_route=True):
    print(json.dumps(one))
PY
  printf '#!/bin/sh\necho asked >>%s/asked\ncat %s/devices.jsonl\n' "$PWD" "$PWD" >engine
  chmod +x engine
  export INVENTORY=hosts.yml
}

@test "the hosts are asked, the run keeps the answers, and what is left out is excluded by name" {
  run_site 0 -e plan_engine="$PWD/engine"
  assert_output --partial "Devices: as the hosts answered."
  assert_output --partial "no flow uses mlx5_2 of alpha, beta: a management port (default route)"
  assert_json runs/latest/inputs/devices.json '.schema == "perch.devices/1" and (.hosts.beta | map(.device)) == ["mlx5_1", "mlx5_0", "mlx5_2"]'
  assert_json runs/latest/plan.json '[.hosts[].devices[].name] == ["mlx5_0", "mlx5_1", "mlx5_0", "mlx5_1"]'
  assert_json runs/latest/inputs/plan.json 'has("devices") | not'
  assert_equal "$(wc -l <asked)" 2

  # the plan of a recorded file asks nobody
  run_site 0 -e plan_only=true -e plan_devices="$PWD/runs/latest/inputs/devices.json" -e plan_engine=/no/such/engine
  assert_output --partial "Devices: of $(readlink -f runs/latest)/inputs/devices.json, recorded 20"
  run_site 0 -e plan_only=true -e '{"perch_devices": ["mlx5_0"]}'
  assert_output --partial "Devices: as the inventory names them; no host was asked."
  assert_equal "$(wc -l <asked)" 2
}

@test "a file of devices that is missing or damaged is refused in one line" {
  run_site 2 -e plan_only=true -e plan_devices=/no/such/devices.json
  assert_output --partial "/no/such/devices.json: it cannot be read (No such file or directory); give the inputs/devices.json of a run (plan_devices)"
  echo '{"schema": "perch.devices/1", "hosts": {' >cut.json
  run_site 2 -e plan_only=true -e plan_devices="$PWD/cut.json"
  assert_output --partial "$PWD/cut.json: it is damaged (input data was truncated); give the inputs/devices.json of another run (plan_devices)"
  refute_output --partial "lookup"
}

@test "plan_only plans nothing, and says so, where only the hosts know their devices" {
  run_site 2 -e plan_only=true
  assert_output --partial "Suite tiny: nothing is planned. host alpha: perch_devices has 'active', and the host was not asked for its devices; give plan_devices"
  [ ! -e asked ] || fail "the hosts were asked all the same"
}

@test "check mode is right before the engine is there, and after" {
  run_site 0 --check -e plan_engine="$PWD/no-engine"
  assert_output --partial "planned when the hosts were asked. host alpha, beta: 'perch devices' gave no answer, and perch_devices names no devices; run it there"
  run_site 0 --check -e plan_engine="$PWD/engine"
  assert_output --partial "Devices: as the hosts answered."
  [ ! -e runs ] || fail "check mode made a run"
}

# Patterns that match a management port, and others: tests/py/test_plan_discovery.py.
@test "a pattern that matches nothing is refused by name before anything is measured" {
  run_site 2 -e plan_engine="$PWD/engine" -e '{"perch_devices": ["bnxt*"]}'
  assert_output --partial "host alpha: perch_devices has 'bnxt*', which matches no device of its roce fabric; it has mlx5_0 (0000:01:00.0), mlx5_1"
  [ ! -e runs/latest ] || fail "a run was planned"
}

@test "CPUs and NUMA nodes that a host lacks are refused by name before anything is measured" {
  sed -i 's/duration: 200ms}/duration: 200ms, server_cpu: 1022-1023}/' suite.yml
  run_site 2 -e plan_engine="$PWD/engine"
  assert_output --partial "test tcp-latency, host beta: server_cpu is 1022-1023, and the host has CPUs"
  sed -i 's/server_cpu: 1022-1023}/numa: 1023}/' suite.yml
  run_site 2 -e plan_engine="$PWD/engine"
  assert_output --partial "test tcp-latency, host alpha: numa is 1023, and the host has"
  [ ! -e runs/latest ] || fail "a run was planned"
}

@test "a trait that a host contradicts is refused by name before anything is measured" {
  mkdir bin
  printf '#!/bin/sh\nfor word; do [ "$word" != pfc ] || echo %s; done\n' "'{\"pfc_cap\":8,\"prio_pfc\":[false,false,false,false,false,false,false,false]}'" >bin/dcb
  chmod +x bin/dcb
  export PATH=$PWD/bin:$PATH
  local hardware='{"perch_scope": "hardware", "perch_link_gbit_s": 100, "perch_devices": [{"name": "mlx5_0", "netdev": "lo"}]'
  run_site 2 -e plan_engine="$PWD/engine" -e "$hardware, \"perch_fabric_traits\": {\"lossless\": true}}"
  assert_output --partial "host alpha: qos-lossless: lo: flow control is off; perch_fabric_traits says lossless; wanted: on for a priority"
  assert_output --partial "host beta: qos-lossless"
  assert_output --partial "correct perch_fabric_traits, or the hosts' flow control"
  [ ! -e asked ] || fail "the hosts were asked for devices all the same"
  [ ! -e runs/latest ] || fail "a run was planned"
}
