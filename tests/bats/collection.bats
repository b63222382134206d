#!/usr/bin/env bats
# The collection, built and installed by ansible-galaxy, and the perchctl that pip installs from it in an empty environment.

load helpers
load playbook

setup_file() {
  local source
  cd "$BATS_FILE_TMPDIR" || return
  git -C "$TOP" ls-files -z --cached --others --exclude-standard >files 2>/dev/null || skip "no git checkout to copy"
  mkdir source
  source=$PWD/source
  (cd "$TOP" && xargs -0 cp --parents -t "$source" <"$OLDPWD/files")
  "$TOP/.venv/bin/ansible-galaxy" collection build --output-path . source >/dev/null
  "$TOP/.venv/bin/ansible-galaxy" collection install --offline -p collections perch-fabric-*.tar.gz >/dev/null
  /usr/bin/python3 -m venv venv
  venv/bin/pip install --quiet --disable-pip-version-check "$PWD/collections/ansible_collections/perch/fabric[playbooks]"
}

setup() {
  playbook_setup
  COLLECTION=$BATS_FILE_TMPDIR/collections/ansible_collections/perch/fabric
  PATH=$BATS_FILE_TMPDIR/venv/bin:$PATH
}
teardown() { common_teardown; }

@test "perchctl from the collection judges, reports, bundles and verifies to the same bytes as the checkout" {
  local where
  cp -r "$TOP/tests/fixtures/loopback/run" here
  cp -r "$TOP/tests/fixtures/loopback/run" there
  for where in here there; do
    [ "$where" = here ] || PATH=$TOP/.venv/bin:$PATH
    run perchctl report "$where"
    run_expecting "$status" perchctl judge "$where"
    run_expecting 0 perchctl bundle "$where" "$where.tar.gz"
    run_expecting 0 perchctl verify "$where.tar.gz"
  done
  diff -r here there
}

@test "perchctl from the collection states the version" {
  run_expecting 0 perchctl --version
  assert_output "perchctl $(sed -n 's/.*PERCH_VERSION "\(.*\)".*/\1/p' "$TOP/engine/src/version.h")"
}

@test "the collection's playbook plans, measures and judges with it, and keeps runs outside of the collection" {
  local files
  files=$(cd "$COLLECTION" && find . -type f ! -name '*.pyc' | sort)
  export ANSIBLE_CONFIG=$PWD/ansible.cfg
  printf '[defaults]\ncollections_path = %s\n' "$BATS_FILE_TMPDIR/collections" >ansible.cfg
  cp "$TOP/inventories/local/hosts.yml" hosts.yml
  site
  SITE=("${SITE[@]/#"$TOP/playbooks/site.yml"/perch.fabric.site}")
  SITE=("${SITE[@]/#"plan_runs_dir=$PWD/runs"/perch_fabric=loopback}")
  SITE=("${SITE[@]/#"$TOP/inventories/local"/hosts.yml}")
  LIMIT=400 run timeout 400 "${SITE[@]}" 3>&-
  assert_json runs/latest/verdict.json '.coverage.planned == 9 and .coverage.measured == 9'
  [ -s runs/latest/report.html ] || fail "no report: $output"
  assert_equal "$(cd "$COLLECTION" && find . -type f ! -name '*.pyc' | sort)" "$files"
}
