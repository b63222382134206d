# shellcheck shell=bash disable=SC2034,SC2154  # bats and the suites set and read what is not seen here
# For the suites that judge recorded runs: a copy of one, faults planted in it, and what the verdict must then be.

# recorded RUN: tests/fixtures/RUN, in ./run
recorded() {
  rm -rf run && cp -r "$TOP/tests/fixtures/$1/run" run
}

judge_setup() {
  common_setup
  JUDGE=$TOP/reports/judge
  recorded loopback
}

# judge CODE: the run is judged, and the exit code is that one
judge() {
  run "$JUDGE" run
  assert_equal "$status" "$1"
}

check_status() { jq -r --arg id "$1" '.checks[] | select(.id == $id) | .status' run/verdict.json; }

verdict() { jq -r .verdict run/verdict.json; }

# spoil FILE STATUS CHECK < table: each line is a jq filter that plants one fault in FILE; none of them may pass
spoil() {
  local fault
  cp "$1" whole
  while read -r fault; do
    cp whole "$1"
    edit "$1" "$fault"
    judge "$2"
    assert_equal "$(check_status "$3")" "$([ "$2" = 1 ] && echo fail || echo inconclusive)"
  done
  cp whole "$1"
}

# spoil_end FLOW ROLE STATUS CHECK < table: the same of an end of a flow
spoil_end() {
  local fault
  rm -rf whole && cp -r run/raw whole
  while read -r fault; do
    edit_end "$1" "$2" "$fault"
    judge "$3"
    assert_equal "$(check_status "$4")" "$([ "$3" = 1 ] && echo fail || echo inconclusive)"
    rm -r run/raw && cp -r whole run/raw
  done
}

# spoil_output FLOW STATUS CHECK < table: the same of each line that a flow's client printed
spoil_output() {
  local fault
  rm -rf whole && cp -r run/raw whole
  while read -r fault; do
    edit_output "$1" "$fault"
    judge "$2"
    assert_equal "$(check_status "$3")" "$([ "$2" = 1 ] && echo fail || echo inconclusive)"
    rm -r run/raw && cp -r whole run/raw
  done
}

# cards DRIVER: the recorded Soft-RoCE as if two cards had carried it, planned as hardware; DRIVER is a word of JSON.
cards() {
  recorded rxe
  PYTHONPATH=$TOP:$TOP/tests/self-test "$TOP/.venv/bin/python" -c 'import pathlib
from tests.py.cards import put_cards
from tests.py.judging import Run
put_cards(Run(pathlib.Path("run").resolve()))'
  local file
  for file in run/raw/*/environment.json; do
    edit "$file" ".rdma[].driver = $1"
  done
  "$TOP/.venv/bin/perchctl" seal run >/dev/null # as the playbook seals what it fetched
}

# more FLOW COUNTER BY: a counter of the client's host is that much higher after a flow, and in all of its later readings
more() {
  PYTHONPATH=$TOP "$TOP/.venv/bin/python" -c 'import pathlib, sys
from tests.py.judging import End, go_on, more
go_on(End(pathlib.Path("run"), sys.argv[1]), more(sys.argv[2], int(sys.argv[3])))' "$@"
}
