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
