# shellcheck shell=bash disable=SC2154  # status, output, stderr: run sets them
# What the suites share. Load it first: `load helpers`; start from 000-TEMPLATE.bats.

bats_require_minimum_version 1.8.0
bats_load_library bats-support
bats_load_library bats-assert

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Each program can be another one, to try a build of your own: PERCH=... bats tests/bats
: "${PERCH:=$TOP/engine/build/perch}"
# Ansible's modules are compiled once, not at each task, and not read byte by byte.
export PYTHONPATH=$TOP/tests/compiled
unset PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE

# Everything that a test starts carries its mark in the environment, so that a leak is found whatever it calls itself.
common_setup() {
  export PERCH_TEST_MARK="$BATS_SUITE_TEST_NUMBER-$BASHPID-$RANDOM"
  PATH=$TOP/.venv/bin:$PATH
  cd "$BATS_TEST_TMPDIR" || return
}

# The processes that carry this test's mark: pid and command line.
marked_processes() {
  local file pid
  for file in $(env -u PERCH_TEST_MARK grep -slzxF "PERCH_TEST_MARK=$PERCH_TEST_MARK" /proc/[0-9]*/environ); do
    pid=${file//[!0-9]/}
    [ "$pid" != "$BASHPID" ] || continue
    printf '%s %s\n' "$pid" "$(tr '\0' ' ' <"/proc/$pid/cmdline")"
  done 2>/dev/null
}

# no_leak [SECONDS]: nothing that this test started is left, or only what ends within the grace that a stopped child
# has (the agent's KILL_AFTER is 5 s). Whatever is left is ended, and named.
no_leak() {
  local end=$((SECONDS + ${1:-7})) left
  while left=$(marked_processes) && [ -n "$left" ]; do
    if [ "$SECONDS" -ge "$end" ]; then
      while read -r pid _; do kill -KILL "$pid"; done <<<"$left"
      fail "left running: $left"
    fi
    sleep 0.1
  done
}

common_teardown() { no_leak 7; }

# run_expecting EXIT COMMAND...: run, with a time limit, the exit code that is expected, and a log. LIMIT=seconds.
run_expecting() {
  local expected=$1
  shift
  run timeout --kill-after=5 "${LIMIT:-60}" "$@" 3>&-
  printf '$ %s\n%s\n-> %s\n' "$*" "$output" "$status"
  assert_equal "exit code $status" "exit code $expected"
}

run_perch() {
  local expected=0
  if [[ $1 =~ ^[0-9]$ ]]; then expected=$1 && shift; fi
  run_expecting "$expected" "$PERCH" "$@"
}

# packed_agent: the agent as one file; prints its path
packed_agent() {
  [ -e "$BATS_FILE_TMPDIR/perch-agent" ] || "$TOP/.venv/bin/python" "$TOP/setup/zipapp.py" "$BATS_FILE_TMPDIR/perch-agent"
  echo "$BATS_FILE_TMPDIR/perch-agent"
}

# agent_ended FOLDER: an agent of a run has walked to the end
agent_ended() { tail -n 1 "$1/flows.jsonl" | jq -e '.kind == "end" and .state == "done"' >/dev/null; }

# A TCP port that nobody listens on, below the ephemeral range; another one each time in a file, as what has been chosen
# may not be bound yet. Of the files that run side by side (tests/run) each has ports of its own: every n-th one.
free_port() {
  local offset lanes=${PERCH_TEST_LANES:-1} last=$BATS_FILE_TMPDIR/last_port
  local span=$((10000 / lanes * lanes))
  offset=$(cat "$last" 2>/dev/null || echo $((RANDOM % (span / lanes) * lanes + ${PERCH_TEST_LANE:-0})))
  while offset=$(((offset + lanes) % span)) && ss -ltnH "sport = :$((20000 + offset))" | grep -q .; do :; done
  echo "$offset" >"$last"
  echo $((20000 + offset))
}

# assert_json FILE JQ-CONDITION: of its last value; prints the file when it does not hold. Of no value it does not: jq 1.6 would call that success.
assert_json() {
  jq -es "length > 0 and (.[-1] | $2)" "$1" >/dev/null || fail "in $1 this does not hold: $2
$(cat "$1")"
}

# Waits for a file, or for a condition, so that tests need no guess of how long something takes. WAIT=seconds, at the most.
wait_until() {
  local end=$((SECONDS + ${WAIT:-20}))
  until "$@" 2>/dev/null; do
    [ "$SECONDS" -lt "$end" ] || fail "${WAIT:-20} s passed without: $*"
    sleep 0.1
  done
}

# plan_of JQ-TESTS: a plan, its flows spelled out, for the tests given (a jq expression), between alpha and beta on this
# machine, whose external tools have ports of their own, too.
plan_of() {
  jq -n --argjson port "$(free_port)" --argjson iperf3 "$(free_port)" --argjson iperf "$(free_port)" "{
    run: \"20260101T000000Z-bats\", created: \"2026-01-01T00:00:00Z\", limits: \"local\",
    suite: {name: \"bats\", title: \"bats\", tests: $1},
    hosts: ([[\"alpha\", \"127.0.0.1\"], [\"beta\", \"127.0.0.2\"]] | map({key: .[0], value: {perch_address: .[1],
      perch_fabric: \"loopback\", perch_backends: [\"tcp\", \"ofi\", \"null\"], perch_port: \$port,
      perch_iperf3_port: \$iperf3, perch_iperf_port: \$iperf}}) | from_entries)}" |
    "$TOP/.venv/bin/python" "$TOP/tests/planned.py"
}

# share HOST [PLAN]: the host's share of a spelled-out plan (./plan.json), as perchctl plan would make it; prints its path
share() {
  local plan=${2:-plan.json} name
  name=$(basename "$plan" .json)
  "$TOP/.venv/bin/python" "$TOP/tests/spelled.py" shares "shares.$name" <"$plan" && echo "$PWD/shares.$name/$1.json"
}

# put_plan RUN < PLAN: a spelled-out plan becomes plan.json and rounds.jsonl of a run; spelled RUN prints it
put_plan() { "$TOP/.venv/bin/python" "$TOP/tests/spelled.py" write "$1"; }
spelled() { "$TOP/.venv/bin/python" "$TOP/tests/spelled.py" read "$1"; }

# edit FILE FILTER: jq in place; of a run's plan.json the plan with its flows spelled out
edit() {
  if [ "${1##*/}" = plan.json ]; then
    spelled "${1%/*}" | jq -c "$2" | put_plan "${1%/*}"
  else
    jq -c "$2" "$1" >edited && mv edited "$1"
  fi
}

# raw show|put FLOW ROLE [NAME]: an end of a flow in ./run as a document, or the text that it wrote (tests/raw_lines.py)
raw() { PYTHONPATH=$TOP "$TOP/.venv/bin/python" "$TOP/tests/raw_lines.py" "$1" run "${@:2}"; }
# edit_end FLOW ROLE FILTER: changes it with jq
edit_end() { raw show "$1" "$2" | jq -c "$3" | raw put "$1" "$2"; }

# rules PROGRAM: prints the path of a file with a jq program and what it imports of reports/jq in one text, as the judge has it.
# jq 1.6 compiles that in a third of the time.
rules() {
  local file
  file=$(mktemp "$BATS_FILE_TMPDIR/rules.XXXXXX")
  PYTHONPATH=$TOP "$TOP/.venv/bin/python" -c 'import sys
from perch.judge.jq_program import whole
print(whole(sys.stdin.read()))' <<<"$1" >"$file" && echo "$file"
}

# keep NAME COMMAND...: for setup_file: a command that answers each line with a line, for all tests of the file: it starts, or compiles,
# once. ask NAME < LINE prints an answer; end_kept, for teardown_file, ends them all.
keep() {
  local at=$BATS_FILE_TMPDIR/kept.$1
  mkfifo "$at.in" "$at.out"
  # open for both, it sees no end of the file between two tests
  "${@:2}" <>"$at.in" 1<>"$at.out" 2>"$at.err" 3>&- &
  echo "$!" >"$at.pid"
}
ask() {
  local at=$BATS_FILE_TMPDIR/kept.$1
  cat >"$at.line"
  { timeout 60 cp "$at.line" "$at.in" && timeout 60 head -n 1 <>"$at.out"; } || fail "no answer of $1: $(<"$at.err")"
}
end_kept() { cat "$BATS_FILE_TMPDIR"/kept.*.pid | xargs kill; }

# run_apart EXIT COMMAND...: like run_expecting, with standard error apart, in $stderr
run_apart() {
  local expected=$1
  shift
  run --separate-stderr timeout --kill-after=5 "${LIMIT:-60}" "$@" 3>&-
  # shellcheck disable=SC2154  # bats sets it
  printf '$ %s\n%s\n--\n%s\n-> %s\n' "$*" "$output" "$stderr" "$status"
  assert_equal "exit code $status" "exit code $expected"
}

# assert_said PART: what run_apart left in $stderr has it
assert_said() { [[ $stderr = *"$1"* ]] || fail "this message does not say \"$1\": $stderr"; }

# What a measurement on one machine says of its ends.
# shellcheck disable=SC2034  # for the suites
UNPLACED="perch: neither end is pinned to a core: both ends are on one machine"

# perch_serve [OPTION...]: starts `perch serve`; sets PORT and SERVER, keeps its log in serve.PORT.log
perch_serve() {
  PORT=$(free_port)
  "$PERCH" serve --port "$PORT" --ready-file "ready.$PORT" "$@" 2>"serve.$PORT.log" 3>&- &
  SERVER=$!
  SERVERS+=("$SERVER")
  wait_until test -e "ready.$PORT"
}

# The job processes of the server that was started last.
server_jobs() { pgrep -P "$SERVER"; }

signal_jobs() { server_jobs | xargs kill "-$1"; }

no_server_jobs() { ! server_jobs >/dev/null; }

# What the server's job has sent and received on its TCP sockets, in bytes: its traffic begins when that grows, not after
# some time.
job_bytes() {
  ss -tinpHO | grep -F "pid=$(server_jobs)," | grep -oE 'bytes_(received|acked):[0-9]+' | awk -F: '{ n += $2 } END { printf "%.0f\n", n }'
}
job_moved() { [ "$(job_bytes)" -ge "$1" ]; }

# For teardown_file, where setup_file has exported FILE_SERVERS and FILE_MARK: each server still lives, and ends now.
file_servers_gone() {
  local pid
  for pid in $FILE_SERVERS; do
    kill "$pid" || fail "a server ended before its time: $(cat "$BATS_FILE_TMPDIR"/serve.*.log)"
  done
  PERCH_TEST_MARK=$FILE_MARK no_leak
}

# For teardown: ends what perch_serve started.
stop_servers() {
  local pid
  for pid in "${SERVERS[@]}"; do kill "$pid" 2>/dev/null || true; done
}

# For suites of Ansible that must not reach a host: whoever calls ssh leaves a mark, the file `touched`, and no connection.
mark_ssh() {
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8
  export ANSIBLE_SSH_EXECUTABLE=$PWD/ssh ANSIBLE_SSH_RETRIES=0
  printf '#!/bin/sh\necho "$*" >>%q\nexit 255\n' "$PWD/touched" >ssh
  chmod +x ssh
}

assert_untouched() {
  [ ! -e touched ] || fail "a host was touched: $(<touched)"
}
