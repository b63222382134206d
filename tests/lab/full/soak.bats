#!/usr/bin/env bats
# A soak of minutes on two machines, over ssh and under systemd, with what only machines can have: a host that boots again, a clock that
# is set, and a controller that is gone meanwhile.

load ../helpers

setup() {
  common_setup
  lab_ready
  options
  # an emulated processor: little to do, and what takes it 200 ms is no stall
  cat >suite.yml <<'YAML'
name: machines
title: A soak of two machines
soak: {interval: 5s, stall: 200ms, reconnect: 5m}
tests:
  - {name: verbs, title: "RDMA send, verified", tool: perch, backend: verbs, kind: bandwidth, params: {size: 4K, rate: 50msg/s, completion: event, verify: true}}
  - {name: tcp, title: TCP latency, tool: perch, backend: tcp, kind: latency, params: {size: 64, rate: 20msg/s, completion: event}}
YAML
}
teardown() {
  lab_playbook 0 "$TOP/playbooks/soak_stop.yml" "${OPTIONS[@]}" >/dev/null 2>&1 || true # there is none where all went well
  common_teardown
}

# options: the options of the playbooks
options() {
  OPTIONS=(-e plan_suite_file="$PWD/suite.yml" -e plan_runs_dir="$PWD/runs" -e soak_progress_interval=10 -e '{"engine_make_variables": ["CC=ccache cc", "CFLAGS=-O0"]}')
}

# state HOST: what its agent says of the soak
state() { lab_ssh "$1" /opt/perch/bin/perch-agent soak-status | jq -r .state; }
is_running() { [ "$(state "$1")" = running ]; }

@test "a host that boots again goes on, a clock that is set moves nothing, and the controller may be gone: all of it is in the verdict, with its time" {
  local booted
  ANSIBLE_CONFIG=$TOP/ansible.cfg LC_ALL=C.UTF-8 setsid ansible-playbook -i "$TOP/inventories/lab" "$TOP/playbooks/soak.yml" "${OPTIONS[@]}" \
    -e soak_duration=6m >begun 2>&1 3>&- &
  local controller=$!
  WAIT=1500 wait_until grep -q "left$" begun
  kill -KILL -- "-$controller" # with all of its workers
  run_on alpha systemctl is-active perch-soak.service
  is_running beta
  booted=$(date +%s)
  LIMIT=300 run_expecting 0 "$LAB" reboot beta
  WAIT=120 wait_until is_running beta
  echo "# beta measures again after $(($(date +%s) - booted)) s" >&3
  run_on alpha "date -s '+30 seconds'"
  # FAIL: a soak in which a host was booted is none to sign for
  LIMIT=900 lab_playbook 2 "$TOP/playbooks/soak.yml" "${OPTIONS[@]}"
  assert_output --partial "is on alpha, beta"
  run_on alpha "date -s '-30 seconds'"
  local verdict=runs/latest/verdict.json
  assert_json $verdict '.verdict == "FAIL" and .scope == "software" and .soak.state == "done" and .soak.duration_s == 360'
  assert_json $verdict '.soak.anomalies | any(.[]; .kind == "reboot" and .host == "beta" and .start != null and .end != null)'
  assert_json $verdict '.soak.anomalies | any(.[]; .kind == "gap" and .duration_s > 10)'
  assert_json $verdict '.soak.anomalies | any(.[]; .kind == "clock" and .value > 29 and .value < 31)'
  assert_json $verdict '[.soak.flows[] | .state] | unique == ["done"]'
  jq -s 'map(select(.kind == "start"))' runs/latest/raw/beta/flows.jsonl >starts
  assert_json starts 'all(.supervisor == "systemd") and length == 2 and (map(.boot_id) | unique | length) == 2'
  run_on beta "find /etc/systemd /run/systemd -name 'perch-soak*'; ls /var/lib/perch | grep -v lock\$ || :"
  assert_output ""
}
