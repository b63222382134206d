#!/usr/bin/env bats
# Switches in a run: the real playbook on this machine's two addresses, with switches that tests/switches/simulator.py stands
# for, over ssh; and recorded readings with faults planted in them. No switch is here: all of them are simulated.

load helpers

setup() {
  common_setup
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1
}
teardown() {
  local pid
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
        agent_install: false
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
    '  - {name: tcp-latency, title: TCP latency, tool: perch, backend: tcp, kind: latency, params: {size: 64, duration: 200ms}}' >suite.yml
}

# run_site EXIT [OPTION...]: the whole playbook, on these hosts and switches
run_site() {
  local expected=$1
  shift
  LIMIT=400 run_expecting "$expected" ansible-playbook -i hosts.yml "$TOP/playbooks/site.yml" -e plan_suite_file="$PWD/suite.yml" \
    -e plan_runs_dir="$PWD/runs" -e agent_state_dir="$PWD/agents" -e agent_start_window=15 -e perch_port="$(free_port)" \
    -e agent_program="$AGENT" -e agent_engine="$PERCH" "$@"
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

  # whoever does not ask for the one that refuses has a PASS, and it says that the switches are simulated
  jq -c 'del(.switches.leaf3)' runs/latest/plan.json >plan && mv plan runs/latest/plan.json
  LIMIT=400 run_expecting 0 "$TOP/reports/judge" runs/latest
  for id in switch/answers switch/drops switch/pfc switch/errors switch/pause-storms switch/link-up; do assert_equal "$id $(check $id)" "$id pass"; done
  assert_equal "$(check switch/simulated)" not_judged
  assert_json runs/latest/verdict.json '[.switches[].rows[] | [.host, .port]] == [["alpha", "Ethernet1/1/1"], ["beta", "Ethernet2/1"]]
    and (.switches[0].rows[0].queues[] | select(.queue == "3") | .drops == 0 and .mbit_s > 0 and .packets_per_s > 0)'

  # in words: queue, bandwidth, packets, drops
  run grep -A 30 '^## Switches' runs/latest/report.md
  assert_output --partial "| leaf1 Ethernet1/1/1 | alpha | 3 |"
  assert_output --partial "simulated: no proof of a switch"
  assert_output --partial "leaf3 (sonic"

  # one command an exec, each given once before and once after, and nothing that is no `show`
  assert_equal "$(sort leaf1.log | uniq -c | awk '{print $1}' | sort -u)" 2
  run grep -vE '^show ' leaf1.log leaf2.log
  assert_output ""
}
