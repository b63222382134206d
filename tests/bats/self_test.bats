#!/usr/bin/env bats
# The verdict's own test (tests/self-test/run): a part of it, and what it says of faults that are not found.

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
  assert_line --regexp '^ok [0-9]+ - a flow that left no file: flips to INCONCLUSIVE \(flow/tcp-latency/alpha/beta/1\)$'
}

@test "the page of faults is what the program prints" {
  diff <("$SELF_TEST" --table) "$TOP/docs/self-test.md"
}

@test "a fault that is not found, or by another check, verdict or more than named, is not ok" {
  mkdir faults
  cat >faults/1.bash <<'FAULTS'
stdout=raw/alpha/flows/tcp-latency/alpha/beta/1/client.stdout
fault harmless loopback INCONCLUSIVE "flow/tcp-latency/alpha/beta/1" "harmless" edit "$stdout" '.note = "a key that nobody reads"'
fault nothing loopback INCONCLUSIVE "flow/tcp-latency/alpha/beta/1 coverage" "no edit" edit "$stdout" '.status = "ok"'
fault other-check loopback INCONCLUSIVE "limits coverage" "another check" remove "$stdout"
fault more loopback INCONCLUSIVE "flow/tcp-latency/alpha/beta/1" "more than named" remove "$stdout"
fault other-verdict loopback FAIL "flow/tcp-latency/alpha/beta/1 coverage" "another verdict" remove "$stdout"
fault stood-failed loopback FAIL "ceiling" "it had not passed" edit raw/alpha/flows/tcp-bandwidth/alpha/beta/1/client.stdout \
  '.link = {rate_gbit_s: 10, mtu_bytes: 1500, layer: "ethernet", hop_class: null}'
FAULTS
  SELF_TEST_FAULTS=$PWD/faults run timeout 200 "$SELF_TEST" --healthy 0 --power 0
  assert_equal "$status" 1
  assert_equal "$(grep -c '^not ok' <<<"$output")" 6
  assert_line --partial "changed nothing"
  assert_line --partial "limits is not there; coverage, flow/tcp-latency/alpha/beta/1 flipped"
  assert_line --partial "# others flipped, too: coverage"
  assert_line --partial "the verdict is INCONCLUSIVE"
  assert_line --partial "ceiling had not passed before: not_judged"
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
