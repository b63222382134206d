#!/usr/bin/env bats
# How a suite is written: copy this file, name it for what it tests, and say here what that is.
# A test's name is a sentence about behaviour. Assertions print what they saw; `[ x = y ]` does not.
# Processes in the background get `3>&-`, or bats waits for them.

load helpers

setup() { common_setup; }
teardown() { common_teardown; } # fails the test if anything that it started still runs

@test "the engine says its version" {
  run_perch --version
  assert_output --partial "perch "
}

@test "an unknown option is refused with exit code 2 and named" {
  run_perch 2 lat 127.0.0.1 --no-such-option
  assert_output --partial "--no-such-option"
}
