# shellcheck shell=bash
# The real playbook on the local inventory, with a suite of seconds. Each run has its own runs directory and ports.

playbook_setup() {
  common_setup
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1
  cat >suite.yml <<'YAML'
name: tiny
title: A suite of seconds
tests:
  - {name: tcp-latency, title: TCP latency, tool: perch, backend: tcp, kind: latency, params: {size: "8:64", duration: 200ms}, repeat: 2}
  - {name: iperf3, title: iperf3, tool: iperf3, kind: bandwidth, params: {size: 128K, duration: 1s}}
YAML
}

# site [OPTION...]: the command line, in SITE
site() {
  SITE=(ansible-playbook -i "${INVENTORY:-$TOP/inventories/local}" "$TOP/playbooks/site.yml" -e plan_suite_file="$PWD/suite.yml"
    -e plan_runs_dir="$PWD/runs" -e agent_state_dir="$PWD/agents" -e agent_start_window=15 -e perch_port="$(free_port)"
    -e "{\"agent_install_dir\": \"$PWD/opt/{{ inventory_hostname }}\"}"
    -e "{\"perch_iperf3_port\": $(free_port), \"perch_iperf_port\": $(free_port)}"
    -e engine_install=false -e agent_engine="$PERCH" "$@")
}

run_site() {
  local expected=$1
  shift
  site "$@"
  LIMIT=400 run_expecting "$expected" "${SITE[@]}"
}

verdict() { jq -r .verdict runs/latest/verdict.json; }
