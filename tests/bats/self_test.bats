#!/usr/bin/env bats
# The verdict's own test (tests/self-test/run) as a program: a part of it, and how it ends. The rest is in tests/py/test_self_test.py.

load helpers

SELF_TEST=$TOP/tests/self-test/run

setup() { common_setup; }
teardown() { common_teardown; }

@test "one fault of each kind flips the verdict by the check that was named" {
  run timeout 400 "$SELF_TEST" --quick
  assert_equal "$status" 0
  echo "$output"
  assert_line --regexp '^# [0-9]+ of [0-9]+ faults are left out here; make self-test plants all$'
  assert_line '# 190 of 200 healthy runs are left out here'
  refute_line --regexp '^not ok'
  assert_line --regexp '^ok [0-9]+ - a flow of which no agent left a line: flips to INCONCLUSIVE \(flow/tcp-latency/alpha/beta/0/1\)$'
}

@test "interrupted, it leaves nothing behind" {
  mkdir tmp
  TMPDIR=$PWD/tmp "$SELF_TEST" --healthy 0 --power 0 --faults flow >out 2>&1 3>&- &
  WAIT=60 wait_until grep -q '^ok 1' out
  kill -TERM $!
  wait $! || [ $? -eq 143 ]
  assert_equal "$(ls -A tmp)" ""
}

@test "a wrong option, and a fault that is not there, are refused" {
  run "$SELF_TEST" --faults no-such-fault --healthy 0 --power 0
  assert_equal "$status" 2
  run "$SELF_TEST" --sloppy
  assert_equal "$status" 2
}
