#!/usr/bin/env bats
# The real playbook where something breaks while it measures: the others' results are kept, and the verdict is not PASS.

load helpers
load playbook

setup() { playbook_setup; }
teardown() { common_teardown; }

@test "no engine: the report is written all the same, the verdict is INCONCLUSIVE, and the play fails" {
  run_site 2 -e agent_engine="$PWD/no-such-engine"
  assert_output --partial "no-such-engine"
  assert_equal "$(verdict)" INCONCLUSIVE
  [ -s runs/latest/report.md ] || fail "there is no report"
}

@test "one host whose port is taken costs its flows, not the other's files, and the verdict is not PASS" {
  local port
  port=$(free_port)
  "$PERCH" serve --bind 127.0.0.2 --port "$port" --ready-file ready 2>/dev/null 3>&- &
  wait_until test -e ready
  run_site 2 -e perch_port="$port"
  kill %1
  # once while it measures, and once in the line of the verdict
  assert_equal "$(grep -c "127.0.0.2:$port: the port is in use" <<<"$output")" 2
  assert_equal "$(grep -c "did not start on beta.*127.0.0.2:$port: the port is in use" <<<"$output")" 1
  assert_output --partial 'did not start on beta: perch serve on beta ended'
  assert_output --partial 'choose another with perch_port in the inventory (PORT=NUMBER of make demo)'
  assert_equal "$(verdict)" INCONCLUSIVE
  assert_json runs/latest/raw/beta/flows.jsonl '.kind == "end" and .state == "stopped"'
  assert_json runs/latest/raw/alpha/flows.jsonl '.kind == "end" and .state == "done"'
}

@test "a host that cannot be reached costs its own flows only, and the agent is put on the others where it is not yet" {
  cat >hosts.yml <<'YAML'
all:
  hosts:
    alpha: {perch_address: 127.0.0.1}
    beta: {perch_address: 127.0.0.2}
    gamma: {perch_address: 127.0.0.3, ansible_connection: ssh, ansible_host: 127.0.0.3, ansible_port: 1}
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    perch_fabric: loopback
    perch_backends: [tcp]
YAML
  sed -i '/iperf3/d; s/, repeat: 2//' suite.yml

  INVENTORY=hosts.yml run_site 2 -e agent_start_window=3
  assert_equal "$(verdict)" INCONCLUSIVE
  assert_json runs/latest/verdict.json '.coverage.planned == 12 and .coverage.measured == 4'
  assert_json <(grep -F '"tcp-latency/alpha/beta/0/1"' runs/latest/raw/alpha/flows.jsonl) '.state == "done" and .exit == 0'
  [ -x opt/alpha/bin/perch-agent ] || fail "the agent was not installed"
}

@test "where no host can be reached, the report is written all the same: it says that nothing was measured" {
  cat >hosts.yml <<'YAML'
all:
  hosts: {alpha: {}, beta: {}}
  vars:
    ansible_connection: ssh
    ansible_host: 127.0.0.3
    ansible_port: 1
    perch_address: "{{ inventory_hostname }}"
    perch_fabric: slingshot
    perch_link_gbit_s: 200
    perch_backends: [cxi]
    perch_devices: [cxi0]
YAML
  INVENTORY=hosts.yml run_site 2 -e plan_suite=slingshot -e plan_suite_file="$TOP/playbooks/suites/slingshot.yml"
  assert_output --partial "Verdict: INCONCLUSIVE"
  assert_equal "$(verdict)" INCONCLUSIVE
  run cat runs/latest/report.md
  assert_line --partial "Nothing was measured"
  refute_output --partial simulat
}

@test "where every host is lost after it was checked, the report is written all the same" {
  # reachable until what is wanted of it is kept, which is the last step of its check
  cat >hosts.yml <<'YAML'
all:
  hosts: {alpha: {perch_address: 127.0.0.1}, beta: {perch_address: 127.0.0.2}}
  vars:
    ansible_connection: "{{ 'ssh' if lookup('ansible.builtin.pipe', 'ls ' ~ runs ~ '/*/inputs/hosts/beta.json 2>/dev/null || :') is search('json$') else 'local' }}"
    ansible_host: 127.0.0.3
    ansible_port: 1
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    perch_fabric: loopback
    perch_backends: [tcp]
YAML
  INVENTORY=hosts.yml run_site 4 -e runs="$PWD/runs" # Ansible's exit code for lost hosts
  assert_output --partial "Verdict: INCONCLUSIVE"
  assert_equal "$(verdict)" INCONCLUSIVE
  [ -s runs/latest/raw/beta/host_check.json ] || fail "the hosts were lost before they were checked"
  grep -q "Nothing was measured" runs/latest/report.md
}

@test "a tool whose output is cut off is no result: the verdict is not PASS, and what was measured is kept" {
  mkdir bin
  printf '#!/bin/sh\ncase "$*" in *-c*) %s "$@" | head -c 200 ;; *) exec %s "$@" ;; esac\n' "$(command -v iperf3)" "$(command -v iperf3)" >bin/iperf3
  chmod +x bin/iperf3
  PATH=$PWD/bin:$PATH run_site 2
  refute [ "$(verdict)" = PASS ]
  # all but iperf3's; a busy machine may have repeated some
  assert_json runs/latest/verdict.json '.coverage.measured >= 8 and .coverage.measured == .coverage.planned - 1'
}

# beta's agent packs what is not its own; on a host that somebody else has taken over that may be anything.
@test "results that hold a link are not unpacked, stay on the host, and the verdict is not PASS" {
  cat >agent <<SH
#!/usr/bin/env bash
case "\$*" in
pack*beta*)
  "$TOP/.venv/bin/python" -I opt/beta/bin/perch-agent "\$@" >/dev/null
  ln -s /etc/hostname "\${*: -1}/planted"
  tar --create --gzip --format=ustar --file="\${*: -1}.tar.gz" --directory="\${*: -1}" planted environment.json flows.jsonl
  echo "\${*: -1}.tar.gz"
  ;;
*) exec "$TOP/.venv/bin/python" -I "$PWD/opt/alpha/bin/perch-agent" "\$@" ;;
esac
SH
  sed -i "s|opt/beta|$PWD/opt/beta|" agent
  chmod +x agent
  run_site 2 -e "{\"__agent_argv\": [\"$PWD/agent\"]}"
  assert_output --partial "'planted' is not a regular file"
  assert_output --partial "Its results stay in $PWD/agents/"
  assert_equal "$(ls runs/latest/raw/beta)" host_check.json
  [ -s "$(echo agents/*-beta/out/flows.jsonl)" ] || fail "beta's results are lost"
  [ -s runs/latest/raw/alpha/flows.jsonl ] || fail "alpha's results are missing"
  refute [ "$(verdict)" = PASS ]
}

@test "whatever modes and umask there are, results are 0644, directories 0755, and ours" {
  (umask 000 && run_site 0)
  run find runs/latest/raw/alpha runs/latest/raw/beta ! \( -uid "$(id -u)" \( -type d -perm 755 -o -type f -perm 644 \) \) -printf '%M %U %p\n'
  assert_output ""
}

@test "a host without the Python that the inventory names says what to do, and the others are measured" {
  cat >hosts.yml <<'YAML'
all:
  hosts:
    alpha: {perch_address: 127.0.0.1}
    beta: {perch_address: 127.0.0.2}
    gamma: {perch_address: 127.0.0.3, ansible_python_interpreter: /no/such/python3}
  vars:
    ansible_connection: local
    ansible_python_interpreter: "{{ ansible_playbook_python }}"
    perch_fabric: loopback
    perch_backends: [tcp]
YAML
  sed -i '/iperf3/d; s/, repeat: 2//' suite.yml
  INVENTORY=hosts.yml run_site 2 -e agent_start_window=3
  assert_output --partial "gamma: no Python 3.9 or newer runs there as /no/such/python3"
  assert_output --partial "set ansible_python_interpreter"
  assert_json runs/latest/verdict.json '.verdict == "INCONCLUSIVE" and .coverage.measured == 4'
}

@test "a playbook that is killed leaves no agent behind: the lease ends them" {
  site -e agent_lease=3
  sed -i 's/200ms/20s/' suite.yml
  "${SITE[@]}" >log 2>&1 3>&- &
  local playbook=$!
  WAIT=120 wait_until grep -q "left" log
  # its workers too; some end by themselves as soon as the first one is killed
  marked_processes | grep ansible-playbook | while read -r pid _; do kill -KILL "$pid" || true; done
  wait "$playbook" || true
  no_leak 15
  assert_json "$(echo agents/*-alpha/out/flows.jsonl)" '.state == "stopped" and (.message | test("no word from the controller"))'
  site -e agent_run_dir="$PWD"
  run timeout 120 "${SITE[@]/site.yml/fetch.yml}"
  assert_failure 2
  assert_output --partial "agent_run_dir must be the folder of a run, such as \$PWD/runs/latest, and is '$PWD'"
  ln -s "$(echo "$PWD"/runs/2*)" linked
  site -e agent_run_dir="$PWD/linked"
  run timeout 120 "${SITE[@]/site.yml/fetch.yml}"
  assert_success
  assert_equal "$(echo agents/*-alpha)" "agents/*-alpha"
  assert_json runs/2*/raw/alpha/flows.jsonl '.state == "stopped"'
  assert_json runs/2*/verdict.json '.verdict == "INCONCLUSIVE"'
}
