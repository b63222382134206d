#!/usr/bin/env bats
# The schedule of the soak under a real systemd, which tests/systemd/box runs beside this machine's own: the timer fires, the
# service runs as another user within its sandbox, and nothing is left when it is unscheduled. A double stands in Ansible's place
# where the soak would be; soak_schedule.bats tests the program itself.

load helpers

setup() {
  common_setup
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8
  "$TOP/tests/systemd/box" --possible || skip "no systemd of our own can run here"
  # a service with a /tmp of its own does not see ours, and another user not what is in bats' folder
  PLACE=$(mktemp -d /srv/perch-test.XXXXXX)
  chmod 755 "$PLACE"
  cd "$PLACE" || return
  SERVANT=nobody
  runuser -u "$SERVANT" -- test -r "$TOP/perch/soak/schedule.py" || SERVANT=root
}
teardown() {
  cd /
  [ -z "${PLACE-}" ] || rm -rf "$PLACE"
  common_teardown
}

@test "a timer fires every few seconds, one soak at a time, within its sandbox; and unscheduling leaves nothing but the runs" {
  mkdir -m 777 textfile home # what may be written by anybody, and is not by the service but for the first
  cat >soak <<'SH'
#!/bin/bash
for vars; do :; done
runs=$(jq -r .plan_runs_dir "${vars#@}")
run=$(date -u +%Y%m%dT%H%M%S%NZ)-soak
mkdir -p "$runs/$run"
ln -sfn "$run" "$runs/latest"
printf '{"schema":"perch.plan/2","run":"%s","rounds":[]}\n' "$run" >"$runs/$run/plan.json"
verdict=PASS
[ ! -e "${0%/*}/runs/told" ] || verdict=FAIL
printf '{"schema":"perch.verdict/1","verdict":"%s","soak":{"running":false}}\n' "$verdict" >"$runs/$run/verdict.json"
id -un >"$runs/$run/who"
grep -E '^(NoNewPrivs|CapBnd)' /proc/self/status >>"$runs/$run/who"
touch "${0%/*}/home/outside" 2>>"$runs/$run/who" || exit 0
SH
  printf '#!/bin/sh\necho "$1" "$2" >>%q\n' "$PWD/runs/told" >hook
  chmod +x soak hook
  : >soak.yml
  cat >steps <<SH
set -euo pipefail
within() { end=\$((SECONDS + \$1)); shift; until "\$@"; do [ \$SECONDS -lt \$end ] || { echo "too late: \$*"; systemctl status 'perch-soak*'; exit 1; }; sleep 0.2; done; }
told() { [ -e runs/told ] && [ "\$(wc -l <runs/told)" -ge "\$1" ]; }
playbook() { ansible-playbook -i $TOP/inventories/local "$TOP/playbooks/\$1.yml" -e soak_schedule_name=often "\${@:2}"; }
playbook soak_schedule -e "soak_schedule_calendar='*:*:0/3'" -e soak_schedule_runs_dir=\$PWD/runs -e soak_schedule_playbook=\$PWD/soak.yml \
  -e soak_schedule_user=$SERVANT -e soak_schedule_keep=1 -e "{\"soak_schedule_ansible\": [\"\$PWD/soak\"], \"soak_schedule_notify\": [\"\$PWD/hook\"],
  \"soak_schedule_textfile_dir\": \"\$PWD/textfile\", \"soak_schedule_vars\": {\"soak_duration\": \"1h\"}}"
within 30 told 2
within 10 systemctl is-failed -q perch-soak-often.service
systemctl is-enabled perch-soak-often.timer perch-soak-often-resume.service
# what was due every three seconds until now says nothing of a calendar of Mondays; nor does a stamp that somebody left
within 20 sh -c '! systemctl is-active -q perch-soak-often.service'
systemctl stop perch-soak-often.timer
touch -d 2020-01-01 /var/lib/systemd/timers/stamp-perch-soak-often.timer
runs=\$(wc -l <runs/told)
playbook soak_schedule -e "soak_schedule_calendar='Mon 00:00'" -e soak_schedule_delay=0 -e soak_schedule_runs_dir=\$PWD/runs -e soak_schedule_playbook=\$PWD/soak.yml \
  -e soak_schedule_user=$SERVANT -e soak_schedule_keep=1 -e "{\"soak_schedule_ansible\": [\"\$PWD/soak\"], \"soak_schedule_notify\": [\"\$PWD/hook\"],
  \"soak_schedule_textfile_dir\": \"\$PWD/textfile\", \"soak_schedule_vars\": {\"soak_duration\": \"1h\"}}"
systemctl show -p LastTriggerUSec,ActiveState perch-soak-often.timer
sleep 2 # within which a timer that is due fires
echo "begun since: \$((\$(wc -l <runs/told) - runs))"
playbook soak_unschedule
systemctl list-units --all 'perch-soak*' --no-legend
find /etc/systemd /var/lib/systemd -name '*perch-soak*'
SH
  LIMIT=180 run_expecting 0 "$TOP/tests/systemd/box" bash steps
  assert_line enabled
  assert_line "ActiveState=active"
  assert_line "begun since: 0"
  refute_line --regexp "^/(etc|var/lib)/systemd/.*perch-soak"
  refute_line --regexp "^ *perch-soak"
  assert_equal "$(sed -n '1p; /^NoNew/p' runs/latest/who)" "$SERVANT
NoNewPrivs:	1"
  [ "$SERVANT" = root ] || grep -q '^CapBnd:.0000000000000000$' runs/latest/who || fail "it has rights: $(<runs/latest/who)"
  grep -q "Read-only file system" runs/latest/who || fail "it could write elsewhere: $(<runs/latest/who)"
  assert_equal "$(head -n 2 runs/told)" $'PASS \nFAIL '
  grep -qx 'perch_verdict{verdict="FAIL"} 1' textfile/perch.prom || fail "$(<textfile/perch.prom)"
  assert_equal "$(stat -c '%U %a' textfile/perch.prom)" "$SERVANT 644"
  [ "$(find runs -maxdepth 1 -name '2*' | wc -l)" -le 2 ] || fail "old runs stay: $(ls runs)"
}
