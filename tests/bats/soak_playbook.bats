#!/usr/bin/env bats
# The real playbooks of a soak on the local inventory: begun, left alone, found again, stopped, refused. Seconds instead of hours.

load helpers

setup() {
  common_setup
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8
  AGENT=$(packed_agent)
  cat >suite.yml <<'YAML'
name: tiny
title: A soak of seconds
soak: {interval: 1s, reconnect: 5s}
tests:
  - {name: load, title: Load, tool: perch, backend: tcp, kind: bandwidth, params: {size: 64K, rate: 100Mb/s, completion: event}}
YAML
}
teardown() {
  for host in alpha beta; do
    [ ! -L "agents/soak-$host" ] || "$AGENT" soak-stop --state "$PWD/agents/soak-$host"
  done
  common_teardown
}

# command_of NAME [OPTION...]: the command line of playbooks/NAME.yml, in COMMAND
command_of() {
  local name=$1
  shift
  [ -e port ] || free_port >port
  COMMAND=(ansible-playbook -i "${INVENTORY:-$TOP/inventories/local}" "$TOP/playbooks/$name.yml" -e plan_suite_file="$PWD/suite.yml"
    -e plan_runs_dir="$PWD/runs" -e agent_state_dir="$PWD/agents" -e perch_port="$(<port)" -e engine_install=false -e agent_engine="$PERCH"
    -e "{\"agent_install_dir\": \"$PWD/opt/{{ inventory_hostname }}\"}" -e agent_start_window=30 -e soak_poll_interval=1 -e soak_progress_interval=1 "$@")
}

# book EXIT NAME [OPTION...]: runs it
book() {
  local expected=$1
  shift
  command_of "$@"
  LIMIT=300 run_expecting "$expected" "${COMMAND[@]}"
}

# status HOST: what its agent says of the soak
status() { "$AGENT" soak-status --state "$PWD/agents/soak-$1" | jq -r .state; }

is_over() { agent_ended agents/*-"$1"/out; }

# as_agent PROGRAM: the options of a playbook for which it is the agent of each host
as_agent() { printf -- '-e\n{"__agent_argv": ["%s"]}\n' "$1"; }

nothing_begun() {
  [ ! -e runs ] || [ -z "$(ls -A runs)" ] || fail "a run was left: $(ls -A runs)"
  [ ! -e agents ] || [ -z "$(find agents -type f)" ] || fail "left on a host: $(find agents -type f)"
  assert_equal "$(marked_processes | grep -v bats || true)" ""
}

@test "a soak outlives its playbook, is refused to another controller, is found again, and stopped with what it has measured" {
  book 0 soak -e soak_duration=1h -e soak_wait=false
  assert_output --partial "no verdict stands yet"
  assert_output --regexp '\[alpha\] 00:0[0-9]:[0-9]+ of 01:00:00, 0(0:5|1:0)[0-9]:[0-9]+ left'
  assert_equal "$(status alpha) $(status beta)" "running running"
  assert_json runs/latest/verdict.json '.verdict == "INCONCLUSIVE"'
  # what was fetched is still there, and nothing that grows is sealed
  [ -s "$(echo agents/*-alpha/out/flows/load/alpha/beta/0/1/client.soak)" ]
  [ -s runs/latest/raw/alpha/flows/load/alpha/beta/0/1/client.soak ]
  [ ! -e runs/latest/raw/manifest.sha256 ]
  local run
  run=$(readlink runs/latest)

  mv runs elsewhere
  book 2 soak -e soak_duration=5s
  assert_output --partial "not this controller's"
  assert_output --partial "$run, running"
  assert_output --partial "is not known here"
  assert_output --partial "soak_stop.yml"
  [ ! -e runs ]
  mv elsewhere runs

  # killed while it waits: the hosts do not notice
  command_of soak -e soak_duration=9h
  "${COMMAND[@]}" >log 2>&1 3>&- &
  local playbook=$!
  WAIT=300 wait_until grep -qE '^\[alpha\] .* left$' log
  grep -F "The soak $run is on alpha, beta: no other one is begun." log
  marked_processes | grep ansible-playbook | while read -r pid _; do kill -KILL "$pid" || true; done
  wait "$playbook" || true
  assert_equal "$(status alpha) $(status beta)" "running running"
  assert_equal "$(find runs -mindepth 1 -maxdepth 1 -type d -printf '%f\n')" "$run"

  command_of soak_stop
  LIMIT=300 run_expecting 0 "${COMMAND[@]}"
  assert_output --partial "Stopped, and what it has measured is here"
  for host in alpha beta; do
    assert_json "runs/latest/raw/$host/flows.jsonl" '.kind == "end" and .state == "stopped"'
  done
  # whole lines, and the whole at the end
  tail -n 1 runs/latest/raw/alpha/flows/load/alpha/beta/0/1/client.soak >whole
  assert_json whole '.kind == "bandwidth" and .soak.stopped'
  assert_json runs/latest/verdict.json '.verdict != "PASS"'
  [ -s runs/latest/raw/manifest.sha256 ]
  assert_equal "$(find agents -type f)" ""
  book 0 soak_stop
  assert_output --partial "No soak was on these hosts"
}

@test "a soak is seen to its end: fetched, removed from the hosts, sealed, and the exit follows the verdict; one from before is named as such" {
  book 0 soak -e soak_duration=10s -e soak_wait=false
  WAIT=60 wait_until is_over alpha
  WAIT=60 wait_until is_over beta
  cp -a agents agents.over
  cp -a runs runs.over
  # who asks for another one gets that
  command_of soak -e soak_duration=9h
  LIMIT=300 run timeout 300 "${COMMAND[@]}" 3>&-
  assert_output --regexp "Verdict of the soak that was over on 20[-0-9]+T[0-9:.]+Z and lay on the hosts \(no other one was begun\): (PASS|INCONCLUSIVE|FAIL)"
  assert_equal "$(find agents -type f)" ""

  # the same hosts before that: of one, nothing can be read. As of a playbook that was killed between the sign and the start, a look removes
  # nothing there, and a stop does.
  rm -r agents runs
  mv agents.over agents
  mv runs.over runs
  local run
  run=$(readlink runs/latest)
  rm -r "agents/$run-alpha/out"
  book 2 soak -e soak_duration=3s
  assert_output --partial "alpha: none, nothing of this soak can be read here; playbooks/soak_stop.yml removes what is left"
  [ -e "agents/$run-alpha/token" ] || fail "a look removed what may be about to begin"
  [ ! -e "agents/$run-beta" ] || fail "beta's is here, and stayed there"
  book 0 soak_stop
  assert_equal "$(find agents -type f)" ""

  command_of soak -e soak_duration=8s
  LIMIT=300 run timeout 300 "${COMMAND[@]}" 3>&-
  assert_output --regexp '\[alpha\] done'
  for host in alpha beta; do
    assert_json "runs/latest/raw/$host/flows.jsonl" '.kind == "end" and .state == "done"'
  done
  grep '"id":"load/beta/alpha/0/1","role":"client"' runs/latest/raw/beta/flows.jsonl >outcome
  assert_json outcome '.state == "done" and .exit == 0'
  [ -s runs/latest/raw/manifest.sha256 ] && [ -s runs/latest/report.md ]
  assert_equal "$([ "$status" -eq 0 ] && echo PASS || echo other)" "$(jq -r .verdict runs/latest/verdict.json | sed '/^PASS$/!s/.*/other/')"
  assert_equal "$(find agents -type f)" ""
}

@test "when one host cannot, none begins: those that have are stopped, and neither run nor file is left" {
  mkdir -p runs/earlier
  ln -s earlier runs/latest
  [ -e port ] || free_port >port
  "$PERCH" serve --bind 127.0.0.2 --port "$(<port)" --ready-file ready 2>/dev/null 3>&- &
  wait_until test -e ready
  book 2 soak -e soak_duration=60s
  assert_equal "$(readlink runs/latest)" earlier
  # a name that another soak.yml has taken meanwhile stays
  printf '#!/bin/bash\n[ "$1" != soak-start ] || ln -sfn other %q/runs/latest\nexec %q "$@"\n' "$PWD" "$AGENT" >agent && chmod +x agent
  mapfile -t stand_in < <(as_agent "$PWD/agent")
  book 2 soak -e soak_duration=60s "${stand_in[@]}"
  kill %1
  wait
  assert_output --partial $'No soak was begun: 1 of 2 hosts cannot.\n- '
  [ "$(grep -c 'No soak was begun' <<<"$output")" -eq 1 ] || fail "not once: $output"
  assert_output --partial "beta: "
  assert_equal "$(readlink runs/latest) $(echo runs/*)" "other runs/earlier runs/latest"
  rm -r runs
  nothing_begun
}

@test "a host that is lost while its soak starts: nothing is left of the others', and it is named with what ends its own" {
  mkdir connections
  cat >connections/fragile.py <<'PY'
DOCUMENTATION = """
name: fragile
short_description: As local, and lost once there is a file named cut
description: [As it says.]
author: [The Perch authors]
extends_documentation_fragment: [connection_pipelining]
"""
import os

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as Local


class Connection(Local):
    transport = "fragile"

    def exec_command(self, *words, **options):
        said = super().exec_command(*words, **options)
        if os.path.exists(os.environ["CUT"]):
            raise AnsibleConnectionFailure("cut")
        return said
PY
  echo 'all: {hosts: {beta: {ansible_connection: fragile}}}' >fragile.yml
  export ANSIBLE_CONNECTION_PLUGINS=$PWD/connections CUT=$PWD/cut
  # its soak begins, and nobody hears of it
  printf '#!/bin/bash\n%q "$@" || exit\n[[ "$*" != soak-start*"--host beta"* ]] || : >%q\n' "$AGENT" "$CUT" >agent && chmod +x agent
  # in turns, and east of Greenwich: that they begin at one moment holds there, too
  sed -i 's/interval: 1s,/mode: alternating, turn: 4s, interval: 1s,/' suite.yml
  mapfile -t stand_in < <(as_agent "$PWD/agent")
  TZ=EAST-3 book 4 soak -i "$PWD/fragile.yml" -e soak_duration=60s "${stand_in[@]}"
  assert_output --partial "No soak was begun: 1 of 2 hosts cannot."
  assert_output --partial "beta was lost while its soak was started, and whether one runs there is not known: playbooks/soak_stop.yml ends it"
  assert_equal "$(status alpha) $(status beta)" "none running"
  [ -z "$(ls -A runs)" ] || fail "a run was left: $(ls -A runs)"
  [ -z "$(find agents -path '*-alpha/*')" ] || fail "left on alpha: $(find agents -path '*-alpha/*')"
  grep -F " soaks: " agents/*-beta/out/agent.log
  ! grep -F "begins at once" agents/*-beta/out/agent.log || fail "it did not wait for the agreed moment"
  rm cut
  book 0 soak_stop
  assert_equal "$(status beta)" none
}

@test "a host without the Python that the inventory names says what to do, and none begins" {
  cat >hosts.yml <<'YAML'
all:
  hosts:
    alpha: {perch_address: 127.0.0.1}
    beta: {perch_address: 127.0.0.2, ansible_python_interpreter: /no/such/python3}
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    perch_fabric: loopback
    perch_backends: [tcp]
YAML
  INVENTORY=hosts.yml book 2 soak -e soak_duration=1m
  assert_output --partial "beta: no Python 3.9 or newer runs there as /no/such/python3"
  assert_output --partial "set ansible_python_interpreter"
  assert_output --partial "beta did not answer, and a soak may run there; nothing was started"
  refute_output --partial "has no attribute"
  nothing_begun
}

# The engine is built by its role from a stand-in of the sources: one that lists cards which this machine has not.
@test "the devices are asked of the engine that the soak has brought, and the run keeps the answers" {
  mkdir -p source/src source/tests
  cp "$TOP/engine/src/version.h" source/src
  "$TOP/.venv/bin/python" - "$TOP" >devices.jsonl <<'PY'
import json, sys
sys.path.insert(0, sys.argv[1])
from tests.py.discovered import nic
for one in nic("mlx5_1", 2), nic("mlx5_0", 1), nic("mlx5_2", 3, default_route=True):
    print(json.dumps(one))
PY
  printf '#!/bin/sh\n[ "$1" != devices ] || exec cat %q\nexec %q "$@"\n' "$PWD/devices.jsonl" "$PERCH" >source/src/perch
  printf 'all:\n\tinstall -D src/perch build/perch\n\ttouch build/perch.1\n' >source/Makefile
  cat >hosts.yml <<YAML
all:
  hosts: {alpha: {perch_address: 127.0.0.1}, beta: {perch_address: 127.0.0.2}}
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    engine_owner: $(id -un)
    engine_group: $(id -gn)
    engine_packages_install: false
    engine_prefix: $PWD/opt/{{ inventory_hostname }}
    engine_source: $PWD/source
    agent_soak_supervisor: session
    agent_soak_state: "{{ agent_state_dir }}/soak-{{ inventory_hostname }}"
    perch_fabric: roce
    perch_scope: software
    perch_backends: [tcp]
    perch_devices: [active]
YAML
  export INVENTORY=hosts.yml
  local brought=(-e engine_install=true -e "agent_engine=$PWD/opt/{{ inventory_hostname }}/bin/perch")
  book 2 soak -e soak_duration=5s "${brought[@]}" -e '{"perch_devices": ["bnxt*"]}'
  assert_output --partial "host alpha: perch_devices has 'bnxt*', which matches no device of its roce fabric; it has mlx5_0"
  nothing_begun
  rm -r opt
  command_of soak -e soak_duration=5s "${brought[@]}"
  LIMIT=300 run timeout 300 "${COMMAND[@]}" 3>&-
  printf '%s\n' "$output"
  assert_output --partial "Devices: as the hosts answered."
  assert_output --partial "no flow uses mlx5_2 of alpha, beta: a management port (default route)"
  assert_json runs/latest/inputs/devices.json '.hosts.beta | map(.device) == ["mlx5_1", "mlx5_0", "mlx5_2"]'
  assert_json runs/latest/plan.json '[.hosts[].devices[].name] == ["mlx5_0", "mlx5_1", "mlx5_0", "mlx5_1"]'
}

@test "no space for what will be written is refused before any host starts, on the controller too, with how much it takes" {
  mkdir -p run/shares
  echo '{}' >run/shares/localhost.json
  echo '{"soak": {"space_bytes": {"a": 4e17, "b": 1e17}}}' >run/plan.json
  cat >cases.yml <<YAML
- hosts: localhost
  connection: local
  gather_facts: false
  vars: {ansible_python_interpreter: "{{ ansible_playbook_python }}", soak_run_dir: $PWD/run, agent_run_dir: $PWD/run, agent_install_dir: $PWD/opt,
    agent_state_dir: $PWD/agents, agent_soak_space: 500000000000000000}
  tasks:
    - {ansible.builtin.include_role: {name: agent, tasks_from: soak_prepare, apply: {ignore_errors: true}}}
    - {ansible.builtin.include_role: {name: soak, tasks_from: space, apply: {ignore_errors: true}}}
YAML
  run_expecting 0 ansible-playbook -i localhost, cases.yml
  assert_output --regexp "no space: $PWD/agents has [0-9.]+ [A-Z]+ left, and the soak will write some 444.[0-9]+ PB there"
  assert_output --regexp "no space: $PWD on the controller has [0-9.]+ [A-Z]+ left, and the soak will take some 888.[0-9]+ PB"
}

@test "production needs soak_confirm, and a time its unit; check mode says the same and begins nothing" {
  book 2 soak -e soak_duration=60s -e production=true --check
  assert_output --partial "alpha, beta: the inventory says production: true"
  assert_output --partial "soak_confirm=true"
  # the mark of a switch is its fabric's
  echo 'all: {children: {switches: {hosts: {leaf: {production: true}}}}}' >switches.yml
  book 2 soak -e soak_duration=60s -i switches.yml --check
  assert_output --partial "leaf: the inventory says production: true"
  book 2 soak -e soak_duration=24
  assert_output --partial "soak_duration must be a time with its unit, such as 24h, and is '24'"
  book 0 soak -e soak_duration=60s -e production=true -e soak_confirm=true --check
  assert_output --partial "2 flows, about 60 s"
  # what cannot be planned is a sentence, without the program's frame
  book 2 soak -e soak_duration=0.5s --check
  refute_output --partial "non-zero return code"
  refute_output --partial "jq: error"
  assert_output --partial "Suite tiny cannot be planned, so nothing is measured: the suite's interval, 1s, is longer than soak_duration, 0.5s"
  nothing_begun
}

# agent_saying NAME LINE...: an agent that answers each look with the next of these statuses; silent is none
agent_saying() {
  local name=$1
  shift
  printf '%s\n' "$@" >"$name.said"
  cat >"$name" <<SH
#!/bin/bash
read -r line <"$PWD/$name.said"
[ "\$(grep -c '' "$PWD/$name.said")" -eq 1 ] || sed -i 1d "$PWD/$name.said"
[ "\$line" != silent ] || exit 6
printf '%s\n' "\$line"
SH
  chmod +x "$name"
}

@test "stopping in check mode says what would be stopped, and stops nothing" {
  agent_saying alone '{"state": "none"}'
  mapfile -t stand_in < <(as_agent "$PWD/alone")
  book 0 soak_stop --check "${stand_in[@]}"
  assert_output --partial "No soak is on these hosts"
  agent_saying busy '{"state": "running", "run": "20260101T020000Z-soak"}'
  mapfile -t stand_in < <(as_agent "$PWD/busy")
  book 0 soak_stop --check "${stand_in[@]}"
  assert_output --partial "Would be stopped: 20260101T020000Z-soak on alpha, beta"
}

# said STATE SUPERVISOR LEFT: a status
said() {
  jq -cn --arg state "$1" --arg supervisor "$2" --argjson left "$3" '{$state, $supervisor,
    run: "r", passed_s: (100 - $left), duration_s: 100, remaining_s: $left, message: (if $state == "interrupted" then "it crashed" else null end)}'
}

@test "waiting: progress, a host that is silent for a while, and soaks that crash or do not end" {
  agent_saying good "$(said running session 90)" silent silent "$(said running session 50)" "$(said "done" session 0)"
  agent_saying resumed "$(said interrupted systemd 90)" "$(said interrupted systemd 80)" \
    "$(said running systemd 70)" "$(said "done" systemd 0)"
  agent_saying crashed "$(said interrupted session 90)"
  agent_saying endless "$(said running session 0)"
  agent_saying looked "$(said running session 90)" "$(said "done" session 0)"
  cat >cases.yml <<YAML
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - perch_soak_wait: {agent: ["$PWD/good"], out: /nowhere, state: /nowhere, lead: true, interval: 0.05, progress: 0.01}
      register: good
    - perch_soak_wait: {agent: ["$PWD/resumed"], out: /nowhere, state: /nowhere, interval: 0.05}
      register: resumed
    - perch_soak_wait: {agent: ["$PWD/crashed"], out: /nowhere, state: /nowhere, interval: 0.05}
      register: crashed
    - perch_soak_wait: {agent: ["$PWD/endless"], out: /nowhere, state: /nowhere, interval: 0.05, grace: 0.5}
      register: endless
    - perch_soak_wait: {agent: ["$PWD/looked"], out: /nowhere, state: /nowhere, wait: false}
      register: looked
    - perch_soak_wait: {agent: ["$PWD/no-such"], out: /nowhere, state: /nowhere}
      register: absent
    - ansible.builtin.assert:
        that:
          - good.state == 'done'
          - resumed.state == 'done'
          - crashed.state == 'interrupted' and crashed.message == 'it crashed'
          - endless.state == 'running' and 'should have been over' in endless.message
          - looked.state == 'running'
          - absent.state == 'unreachable'
YAML
  run_expecting 0 ansible-playbook -i localhost, cases.yml
  assert_line "[localhost] 00:00:10 of 00:01:40, 00:01:30 left"
  assert_output --partial "[localhost] does not answer; its soak goes on without us"
  assert_line "[localhost] answers again"
  assert_line "[localhost] interrupted: it crashed"
  # said once, not at each look
  assert_equal "$(grep -c "does not answer; its soak goes on" <<<"$output")" 2
}

@test "what is odd on the hosts is refused by name: two soaks, another inventory's, another plan, a host that is silent" {
  mkdir -p runs/one runs/two
  echo '{"run": "one", "soak": {}, "hosts": {"a": {}, "b": {}}}' | tee runs/one/plan.json >runs/two/plan.json
  echo '{"run": "none"}' >runs/plan.json
  local sum
  sum=$(sha256sum runs/one/plan.json | cut -d ' ' -f 1)
  cat >cases.yml <<YAML
- hosts: localhost
  connection: local
  gather_facts: false
  vars:
    runs: $PWD/runs
    one: {state: running, run: one, host: a, plan_sha256: $sum, kept: []}
    idle: {state: none, kept: []}
  tasks:
    - perch_soak_found: {hosts: {a: "{{ idle }}", b: "{{ idle }}"}, runs_dir: "{{ runs }}"}
      register: nothing
    - perch_soak_found: {hosts: {a: "{{ one }}", b: "{{ idle }}"}, runs_dir: "{{ runs }}"}
      register: known
    - perch_soak_found: {hosts: {a: "{{ one }}", b: null}, runs_dir: "{{ runs }}"}
      register: silent_beside
    - perch_soak_found: {hosts: {a: "{{ idle | combine({'kept': ['one', 'two', 'three']}) }}", b: "{{ idle }}"}, runs_dir: "{{ runs }}"}
      register: left
    - perch_soak_found: {hosts: {a: "{{ one }}", b: "{{ one | combine({'run': 'two', 'host': 'b'}) }}"}, runs_dir: "{{ runs }}"}
      register: two
      ignore_errors: true
    - perch_soak_found: {hosts: "{{ {'a': item, 'b': idle} }}", runs_dir: "{{ runs }}"}
      register: strange
      ignore_errors: true
      loop:
        - "{{ one | combine({'plan_sha256': 'f' * 64}) }}"
        - "{{ one | combine({'host': 'x'}) }}"
        - "{{ one | combine({'run': 'three'}) }}"
        - "{{ one | combine({'run': '../runs'}) }}"
        - "{{ one | combine({'state': 'interrupted', 'run': 'three', 'message': 'it crashed'}) }}"
    - perch_soak_found: {hosts: {a: "{{ idle }}", b: null}, runs_dir: "{{ runs }}"}
      register: silent
      ignore_errors: true
    - perch_soak_found: {hosts: {a: "{{ one | combine({'run': 'three'}) }}", b: null}, runs_dir: "{{ runs }}", stopping: true}
      register: stopping
    - ansible.builtin.assert:
        that:
          - nothing.run == '' and nothing.dir == ''
          - known.run == 'one' and known.dir == runs ~ '/one' and known.running == ['a']
          - silent_beside.run == 'one' and silent_beside.silent == ['b']
          - left.run == 'two' and left.running == []
          - two.failed and 'one on a; two on b' in two.msg
          - strange.results | map(attribute='failed') | unique == [true]
          - "'but with another plan' in strange.results[0].msg"
          - "'was started there as host x' in strange.results[1].msg"
          - "'three, running, is not known here' in strange.results[2].msg"
          - "'../runs, running, is not known here' in strange.results[3].msg"
          - "'three, interrupted (it crashed), is not known here' in strange.results[4].msg"
          - silent.failed and 'b did not answer' in silent.msg
          - stopping.run == ''
YAML
  run_expecting 0 ansible-playbook -i localhost, cases.yml
}
