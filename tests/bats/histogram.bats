#!/usr/bin/env bats
# The engine's histograms against PyPI's hdrhistogram: see histogram_oracle.py, whose own lines are shown when one fails.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

@test "perch hist and PyPI's hdrhistogram read each other and agree; damaged texts are refused" {
  PERCH=$PERCH run_expecting 0 "$TOP/tests/histogram_oracle.py"
  refute_line --regexp "^not ok"
}
