# shellcheck shell=bash
# What the suites of the lab share. `load helpers`; tests/lab/run has started the lab that PERCH_LAB names.

# shellcheck source=tests/bats/helpers.bash
source "$(dirname "${BASH_SOURCE[0]}")/../bats/helpers.bash"

LAB=$TOP/tests/lab/lab

# The hosts' addresses on the lab network (inventories/lab).
# shellcheck disable=SC2034  # the suites use them
ALPHA=192.0.2.1 BETA=192.0.2.2

# lab_ssh HOST COMMAND...: as root; the words are joined and read by the guest's shell
lab_ssh() { "$LAB" ssh "$@"; }

# run_on [EXIT] HOST COMMAND...: run, with a time limit (LIMIT) and the exit code that is expected; 255 is ssh's own
run_on() {
  local expected=0
  if [[ $1 =~ ^[0-9]+$ ]]; then expected=$1 && shift; fi
  run_expecting "$expected" "$LAB" ssh "$@"
}

# lab_ready: for setup_file of a suite: both machines run, and their networks and devices are in the first state.
lab_ready() {
  local host
  "$LAB" up >&2 3>&- || return
  for host in alpha beta; do lab_ssh "$host" systemctl restart perch-lab >&2 3>&- || return; done
}

# lab_playbook EXIT PLAYBOOK [ARGUMENT...]: ansible-playbook on the lab's inventory
lab_playbook() {
  local expected=$1
  shift
  LIMIT=${LIMIT:-600} run_expecting "$expected" env ANSIBLE_CONFIG="$TOP/ansible.cfg" LC_ALL=C.UTF-8 \
    ansible-playbook -i "$TOP/inventories/lab" "$@"
}
