#!/usr/bin/env bats
# Debian 13 in a chroot (tests/debian13/run): another Python, jq, pandoc and C library, no fonts, and here another locale and
# time zone. Judged there, a run leaves the same bytes as on this machine.

load helpers

DEBIAN13=$TOP/tests/debian13

setup() {
  common_setup
  mkdir shared
}
teardown() { common_teardown; }

# there COMMAND...: in Debian 13, with ./shared at /mnt; the first time it is made, from packages
there() {
  run --separate-stderr timeout --kill-after=5 900 "$DEBIAN13/run" shared env LC_ALL=C TZ=XYZ-13:45 PYTHONHASHSEED=7 "$@" 3>&-
  # shellcheck disable=SC2154  # bats sets it
  printf '%s\n' "$stderr" | tail -n 20
  [ "$status" -ne 3 ] || skip "NOT TESTED: DEBIAN 13. ${stderr##*$'\n'}"
  assert_equal "exit code $status" "exit code 0"
}

@test "every fixture host and switch has the same findings under both versions of jq" {
  "$TOP/.venv/bin/python" "$DEBIAN13/findings.py" >here
  there sh -c 'cd /srv/perch && .venv/bin/python tests/debian13/findings.py >/mnt/there && tests/jq/run >/mnt/units'
  assert_json here '(.hosts | length) > 40 and (.switches.rows | length) > 4'
  cmp here shared/there
}

@test "every recorded, composed and imported run leaves the same bytes" {
  mkdir good
  PYTHONPATH=$TOP:$TOP/tests/self-test "$TOP/.venv/bin/python" -c '
from pathlib import Path
from selftest.runs import BASES
for name, make in BASES.items():
    make(Path("good", name))'
  local run
  for run in "$TOP"/tests/fixtures/*/run; do cp -r "$run" "good/$(basename "${run%/run}")-recorded"; done
  "$TOP/.venv/bin/perchctl" import --run good/imported "$TOP"/tests/fixtures/{import/*.md,mori/*.txt,tools/*} 2>unread || [ $? -eq 1 ]
  cp -r good here
  cp -r good shared/there
  "$DEBIAN13/results" here
  there /srv/perch/tests/debian13/results /mnt/there
  assert_equal "$(find here -name verdict.json | wc -l)" "$(find good -mindepth 1 -maxdepth 1 | wc -l)"
  # what pandas and others read has no bytes that we promise
  run diff -rq --exclude=records.parquet here shared/there
  assert_output ""
}

@test "a release of the same commit has the same bytes" {
  git -C "$TOP" ls-files -z --cached --others --exclude-standard >files
  git init --quiet shared/here
  (cd "$TOP" && xargs -0 cp --parents -t "$BATS_TEST_TMPDIR/shared/here" <"$BATS_TEST_TMPDIR/files")
  git -C shared/here add --all
  git -C shared/here -c user.name=tester -c user.email=tester@example.org commit --quiet --message "A release"
  git clone --quiet --no-hardlinks shared/here shared/there
  run_expecting 0 make -C shared/here release
  there sh -c '/srv/perch/setup/setup release >&2 && git config --global --add safe.directory /mnt/there && make -C /mnt/there release'
  diff -r shared/here/dist shared/there/dist
}
