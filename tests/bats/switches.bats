#!/usr/bin/env bats
# Switches in a run: the real playbook on this machine's two addresses, with switches that tests/switches/simulator.py stands
# for, over ssh; and recorded readings with faults planted in them. No switch is here: all of them are simulated.

load helpers

setup() {
  common_setup
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1
}
teardown() {
  local pid state
  for state in agents/soak-alpha agents/soak-beta; do
    [ ! -L "$state" ] || "$(packed_agent)" soak-stop --state "$PWD/$state" || true
  done
  for pid in "${SIMULATORS[@]}"; do kill "$pid" 2>/dev/null || true; done
  common_teardown
}

# simulate NAME [OPTION...] [VARIANT]: a switch over ssh; its port in NAME.port, what it was asked in NAME.log
simulate() {
  local name=$1
  shift
  [ -e key ] || ssh-keygen -q -t ed25519 -N '' -f key
  "$TOP/.venv/bin/python" "$TOP/tests/switches/simulator.py" --port-file "$name.port" "$@" 2>"$name.log" 3>&- &
  SIMULATORS+=("$!")
  wait_until test -s "$name.port"
}

# inventory_of NAME=PROVIDER...: two hosts and these switches, all simulated
inventory_of() {
  local one
  cat >hosts.yml <<YAML
all:
  children:
    hosts_under_test:
      hosts:
        alpha: {perch_address: 127.0.0.1}
        beta: {perch_address: 127.0.0.2}
      vars:
        ansible_connection: local
        ansible_python_interpreter: "{{ ansible_playbook_python }}"
        perch_fabric: loopback
        perch_backends: [tcp]
        engine_install: false
        agent_install_dir: $PWD/opt/{{ inventory_hostname }}
    switches:
      hosts:
YAML
  for one in "$@"; do
    echo "        ${one%%=*}: {switch_check_provider: ${one#*=}, ansible_port: $(cat "${one%%=*}.port")}" >>hosts.yml
  done
  cat >>hosts.yml <<YAML
      vars:
        ansible_host: 127.0.0.1
        ansible_user: admin
        ansible_ssh_private_key_file: $PWD/key
        ansible_ssh_common_args: -F none -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o IdentitiesOnly=yes -o LogLevel=ERROR
        perch_scope: simulated
        switch_check_priorities: [3]
YAML
  printf '%s\n' 'name: tiny' 'title: A suite of seconds' 'tests:' \
    '  - {name: tcp-latency, title: TCP latency, tool: perch, backend: tcp, kind: latency, params: {size: 64, duration: 5s}}' >suite.yml
}

# run_site EXIT [OPTION...]: the whole playbook, on these hosts and switches
run_site() {
  local expected=$1
  shift
  LIMIT=400 run_expecting "$expected" ansible-playbook -i hosts.yml "$TOP/playbooks/site.yml" -e plan_suite_file="$PWD/suite.yml" \
    -e plan_runs_dir="$PWD/runs" -e agent_state_dir="$PWD/agents" -e agent_start_window=15 -e perch_port="$(free_port)" \
    -e agent_engine="$PERCH" -e switch_check_interval=1 "$@"
}

check() { jq -r --arg id "$1" '.checks[] | select(.id == $id) | .status' "${2:-runs/latest}/verdict.json"; }

@test "a run reads its switches before and after: what NX-OS and EOS say is reported and judged, one that refuses leaves it INCONCLUSIVE" {
  simulate leaf1 nxos
  simulate leaf2 eos
  simulate leaf3 --refuse
  inventory_of leaf1=nxos leaf2=eos leaf3=sonic
  sed -i 's/provider: nxos/&, switch_check_ports: {alpha: Ethernet1\/1\/1}/; s/provider: eos/&, switch_check_ports: {beta: [Et2\/1]}/' hosts.yml
  run_site 2
  assert_json runs/latest/plan.json '(.hosts | keys) == ["alpha", "beta"] and .switches.leaf1 ==
    {provider: "nxos", scope: "simulated", priorities: [3], ports: {alpha: ["Ethernet1/1/1"]}}'
  assert_json runs/latest/raw/leaf1/switch-before.json '.schema == "perch.switch/1" and .phase == "before" and ([.commands[].exit] | unique) == [0]'
  assert_json runs/latest/raw/leaf3/switch-after.json '[.commands[].exit] == [null] and (.commands.counters.stderr | test("Permission denied"))'
  assert_equal "$(jq -r .verdict runs/latest/verdict.json)" INCONCLUSIVE
  assert_json runs/latest/verdict.json '[.checks[] | select(.status == "inconclusive" or .status == "fail") | .id] == ["switch/answers/leaf3"]'
  assert_json runs/latest/verdict.json '.checks[] | select(.id == "switch/answers/leaf3") | .measured | test("could not be reached.*Permission denied")'

  # in words: queue, bandwidth, packets, drops
  run grep -A 30 '^## Switches' runs/latest/report.md
  assert_output --partial "| leaf1 Ethernet1/1/1 | alpha | 3 |"
  assert_output --partial "| leaf1 Ethernet1/1/1 | alpha | port |"
  assert_output --regexp "between readings in [0-9.]+ % of the flows' time, rates within"
  assert_output --partial "simulated: no proof of a switch"
  assert_output --partial "leaf3 (sonic"

  # a plan without the one that refuses gives PASS, and it says that the switches are simulated
  local was
  was=$(sha256sum <runs/latest/plan.json)
  spelled runs/latest | jq -c 'del(.switches.leaf3)' >plan && put_plan runs/latest <plan
  sed -i "s/${was%% *}/$(sha256sum <runs/latest/plan.json | cut -d ' ' -f 1)/" runs/latest/raw/*/*.jsonl
  rm runs/latest/raw/manifest.sha256 && "$TOP/.venv/bin/perchctl" seal runs/latest # a plan of our own
  LIMIT=400 run_expecting 0 "$TOP/reports/judge" runs/latest
  for id in switch/answers switch/drops switch/pfc switch/errors switch/pause-storms switch/link-up; do assert_equal "$id $(check $id)" "$id pass"; done
  assert_equal "$(check switch/simulated)" not_judged
  assert_json runs/latest/verdict.json '[.switches[].rows[] | [.host, .port]] == [["alpha", "Ethernet1/1/1"], ["beta", "Ethernet2/1"]]
    and (.switches[0].rows[0].queues[] | select(.queue == "3") | .drops == 0 and .mbit_s > 0 and .packets_per_s > 0)'

  # while flows ran: one reading at a time, the last one before the reading after the flows, and rates that are the minute's
  zcat runs/latest/raw/leaf1/samples.jsonl.gz >samples
  split -l 1 samples sample.
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/switch.schema.json" sample.*
  assert_equal "$(jq -s '[.[] | .asked_s, (.commands[] | .asked_s, .answered_s)] | . == sort and length >= 14' samples)" true
  [ ! -e runs/latest/sampling ] || fail "sampling goes on: $(ls runs/latest/sampling)"
  # shellcheck disable=SC2016  # jq's own
  assert_json runs/latest/verdict.json '.switches[0].during | (.within_percent / 100) as $within | .intervals >= 1 and .within_percent <= 10
    and (.rows[] | select(.queue == "3") | .figures.mbit_s | .min > 9253 / (1 + $within) - 10 and .max < 9253 / (1 - $within) + 10)
    and (.rows[] | select(.queue == null) | .figures.utilisation_percent.median > 80 and (.peak.flows[0] | test("^tcp-latency/")))'

  # one command an exec, all but the counters once before and once after, and nothing that is no `show`
  assert_equal "$(grep -cx 'show lldp neighbors detail | json' leaf1.log) $(grep -c lldp leaf2.log)" "2 2"
  run grep -vE '^show ' leaf1.log leaf2.log
  assert_output ""
}

# soak NAME [OPTION...]: the playbook NAME.yml of an hour's soak on these hosts and switches
soak() {
  timeout 300 ansible-playbook -i hosts.yml "$TOP/playbooks/$1.yml" -e plan_suite_file="$PWD/suite.yml" -e plan_runs_dir="$PWD/runs" \
    -e agent_state_dir="$PWD/agents" -e agent_start_window=30 -e perch_port="$port" -e agent_engine="$PERCH" -e soak_duration=1h \
    -e "{\"agent_soak_state\": \"$PWD/agents/soak-{{ inventory_hostname }}\"}" -e switch_check_interval=1 -e soak_poll_interval=1 "${@:2}"
}
has_readings() { [ "$(zcat runs/latest/sampling/leaf1 | wc -l)" -ge "$1" ]; }

@test "a soak reads its switches while a playbook waits, and its report says how much of it that was" {
  simulate leaf1 nxos
  inventory_of leaf1=nxos
  sed -i 's/provider: nxos/&, switch_check_ports: {alpha: Ethernet1\/1\/1}/' hosts.yml
  printf '%s\n' 'name: tiny' 'title: A soak of seconds' 'soak: {interval: 1s}' 'tests:' \
    '  - {name: load, title: Load, tool: perch, backend: tcp, kind: bandwidth, params: {size: 64K, rate: 100Mb/s, completion: event}}' >suite.yml
  port=$(free_port)
  run soak soak -e soak_wait=false
  assert_success
  zcat runs/latest/sampling/leaf1 >first # what a playbook that did not wait has read is kept
  soak soak >waiting 2>&1 3>&- &
  SIMULATORS+=("$!")
  WAIT=200 wait_until has_readings "$(($(wc -l <first) + 3))"
  run soak soak_stop
  assert_success
  wait "${SIMULATORS[-1]}" || true
  zcat runs/latest/raw/leaf1/samples.jsonl.gz >samples
  [ ! -e runs/latest/sampling ] || fail "sampling goes on: $(ls runs/latest/sampling)"
  assert_equal "$(head -n "$(wc -l <first)" samples)" "$(cat first)"
  assert_equal "$(jq -r .begun samples | sort -u | wc -l)" 2
  assert_json runs/latest/verdict.json '.switches[0].during | .intervals >= 3 and .covered_percent > 5 and .covered_percent < 100
    and (.rows[0].peak.flows[0] | test("^load/"))'
  assert_json runs/latest/verdict.json '.checks[] | select(.id == "switch/during")
    | .measured | test("leaf1 was read in [0-9.]+ % of the soak: only while a playbook waits")'
  run grep -A 30 '^## Switches' runs/latest/report.md
  assert_output --regexp "between readings in [0-9.]+ % of the flows' time"
}

@test "a command that a switch answers too late is left and named, and the others are asked" {
  simulate leaf1 --mute 'show queuing interface' nxos
  inventory_of leaf1=nxos
  cat >role.yml <<'YAML'
- hosts: all:!switches
  gather_facts: false
  roles:
    - {role: switch_check, vars: {switch_check_run_dir: "{{ run_dir }}", switch_check_phase: after, switch_check_timeout: 20}}
YAML
  LIMIT=200 run_expecting 0 ansible-playbook -i hosts.yml role.yml -e run_dir="$PWD/r"
  assert_json r/raw/leaf1/switch-after.json '.commands.queuing | .exit == null and .stdout == "" and (.stderr | test("20 second"))'
  assert_json r/raw/leaf1/switch-after.json '[.commands | to_entries[] | select(.key != "queuing") | .value.exit] == [0, 0, 0, 0]'
}

# The role alone; what it asked is also run by a shell of this machine, whose nv, ethtool, iblinkinfo and perfquery are ours.
@test "SONiC, Cumulus and InfiniBand are asked what their readers read, the latter as root, in lines that a shell understands" {
  simulate leaf1 sonic
  simulate leaf2 cumulus
  simulate fabric infiniband
  inventory_of leaf1=sonic leaf2=cumulus fabric=infiniband
  sed -i 's/provider: cumulus/&, switch_check_ports: {alpha: swp1, beta: "swp2; reboot"}/' hosts.yml
  cat >role.yml <<'YAML'
- hosts: all:!switches
  gather_facts: false
  roles:
    - {role: switch_check, vars: {switch_check_run_dir: "{{ run_dir }}", switch_check_phase: before}}
YAML
  LIMIT=400 run_expecting 0 ansible-playbook -i hosts.yml role.yml -e run_dir="$PWD/r"
  local leaf
  for leaf in leaf1 leaf2 fabric; do
    assert_json "r/raw/$leaf/switch-before.json" '[.commands[] | select(.exit != 0 or (.stdout | test("Invalid input")) or .stdout == "")] == [] and (.commands | length) >= 3'
  done
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/switch.schema.json" r/raw/*/switch-before.json
  [ "$(grep -c '^sudo .*BECOME-SUCCESS' fabric.log)" -ge 3 ] || fail "$(cat fabric.log)"
  refute grep -qv '^sudo .*BECOME-SUCCESS' fabric.log
  run grep -c sudo leaf1.log leaf2.log
  assert_output "leaf1.log:0
leaf2.log:0"
  # check mode asks, too, and keeps nothing
  LIMIT=400 run_expecting 0 ansible-playbook --check -i hosts.yml role.yml -e run_dir="$PWD/never"
  [ ! -e never ] || fail "check mode made $(find never)"
  assert_equal "$(grep -c 'nv show qos roce' leaf2.log)" 2

  # a port's name is a port's name, and no command
  refute grep -q reboot leaf2.log

  mkdir bin
  printf '#!/bin/sh\ncat "%s/infiniband/before/links"\n' "$TOP/tests/fixtures/switches" >bin/iblinkinfo
  # shellcheck disable=SC2016  # the script's own
  printf '#!/bin/sh\necho "$(basename "$0") $*"\n' | tee bin/perfquery bin/nv bin/ethtool >/dev/null
  chmod +x bin/*
  sed -n 's/.*BECOME-SUCCESS-[a-z0-9]* *; //p' fabric.log | sed "s/'\\\"'\\\"'/'/g; s/'$//" >lines
  assert_equal "$(PATH=$PWD/bin:$PATH sh -c "$(sed -n 2p lines)")" "## 3/1
perfquery -x 3 1
## 3/2
perfquery -x 3 2"
  run env PATH="$PWD/bin:$PATH" sh -c "$(grep -m 1 'counters qos' leaf2.log)"
  assert_output "## swp1
nv show interface swp1 counters qos -o json"
  run env PATH="$PWD/bin:$PATH" sh -c "$(grep -m 1 ethtool leaf2.log)"
  assert_output "## swp1
ethtool -S swp1"
}
