#!/usr/bin/env bats
# The schedule with nothing doubled: a timer of a real systemd runs playbooks/soak.yml on this machine over loopback, judges and
# exports it, and tells the hook. Here since it takes minutes; the systemd is that of tests/systemd/box, as Ansible takes
# half an hour in an emulated machine.

load ../../bats/helpers

setup() {
  common_setup
  "$TOP/tests/systemd/box" --possible || skip "no systemd of our own can run here"
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8
  PLACE=$(mktemp -d /srv/perch-test.XXXXXX)
  cd "$PLACE" || return
}
teardown() {
  cd /
  [ -z "${PLACE-}" ] || rm -rf "$PLACE"
  common_teardown
}

@test "a timer runs a soak of seconds: run, report, perch.prom and hook are there, and unscheduling leaves nothing else" {
  # One time, soon: no second one begins while the first one is looked at
  mkdir textfile
  cp "$PERCH" perch # it may lie in /tmp, which a sandbox has of its own
  printf '#!/bin/sh\nprintf "%%s\\n" "$@" >%q\nenv | grep ^PERCH_ >>%q\n' "$PWD/runs/told" "$PWD/runs/told" >hook
  chmod +x hook
  sed 's/^soak:$/&\n  interval: 1s/' "$TOP/playbooks/suites/soak-local.yml" >suite.yml
  jq -n --arg here "$PWD" --argjson port "$(free_port)" --arg once "$(date -d '+90 seconds' '+%F %T')" '{soak_schedule_vars: {plan_suite_file: ($here + "/suite.yml"), soak_duration: "12s",
      agent_state_dir: ($here + "/runs/agents"), agent_engine: ($here + "/perch"), perch_port: $port},
    soak_schedule_calendar: $once, soak_schedule_name: "real", soak_schedule_runs_dir: ($here + "/runs"), soak_schedule_textfile_dir: ($here + "/textfile"),
    soak_schedule_notify: [$here + "/hook"]}' >vars.json
  cat >steps <<SH
set -euo pipefail
playbook() { ansible-playbook -i $TOP/inventories/local "$TOP/playbooks/\$1.yml" -e @vars.json; }
playbook soak_schedule
# there is no journal here
mkdir /etc/systemd/system/perch-soak-real.service.d
printf '[Service]\nStandardOutput=append:%s\nStandardError=inherit\n' "\$PWD/log" >/etc/systemd/system/perch-soak-real.service.d/log.conf
systemctl daemon-reload
end=\$((SECONDS + 420))
until [ -e runs/told ]; do [ \$SECONDS -lt \$end ] || { echo "too late"; break; }; sleep 0.5; done
while [ "\$(systemctl is-active perch-soak-real.service)" = activating ]; do sleep 0.2; done
cat log
rm -r /etc/systemd/system/perch-soak-real.service.d
playbook soak_unschedule
find /etc/systemd -name '*perch-soak*'
systemctl list-units --all --plain --no-legend 'perch-soak*'
ls -A /run | grep perch || :
SH
  LIMIT=540 run_expecting 0 "$TOP/tests/systemd/box" bash steps
  refute_output --partial "too late"
  refute_line --regexp "^(perch|/etc/systemd)"
  local run=runs/latest verdict
  verdict=$(jq -r .verdict $run/verdict.json)
  assert_json $run/verdict.json '.schema == "perch.verdict/1" and .soak.running == false and .scope == "software"'
  assert_equal "$(sed -n 1p runs/told)" "$verdict"
  [ -s "$(sed -n 2p runs/told)" ] || fail "the hook was told no report: $(<runs/told)"
  grep -qx "PERCH_RUN_DIR=$PWD/runs/$(readlink runs/latest)" runs/told || fail "$(<runs/told)"
  run_expecting 0 python "$TOP/tests/prometheus.py" textfile/perch.prom
  grep -qxF "perch_verdict{verdict=\"$verdict\"} 1" textfile/perch.prom || fail "$(<textfile/perch.prom)"
  grep -q "^perch_run_info{.*suite=\"soak-local\"" textfile/perch.prom || fail "the run's own text is missing: $(<textfile/perch.prom)"
  assert_json $run/verdict.json '.coverage.measured == .coverage.planned'
  [ -z "$(find runs/agents -type f ! -name '*.lock' 2>/dev/null)" ] || fail "left by the agents: $(find runs/agents)"
}
