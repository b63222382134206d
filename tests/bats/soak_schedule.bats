#!/usr/bin/env bats
# The schedule of the soak: what the playbooks install and refuse, and the program that the service runs after soak.yml, which
# has a double here. The timer itself fires in tests/lab/full/soak_schedule.bats, where systemd runs the machine.

load helpers

setup() {
  common_setup
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1 LC_ALL=C.UTF-8
  PROGRAM=(python -P "$TOP/perch/soak/schedule.py")
  mkdir textfile
  : >soak.yml
  HOOK=("$PWD/hook" "a word")
}
teardown() { common_teardown; }

# ---- doubles ------------------------------------------------------------------------------------------------------

# In Ansible's place: makes the run RUN where the variables say, and ends with CODE. MAKES is what the run has: all, nothing
# (no run at all), plan, or all but one file.
double_of_soak() {
  cat >soak <<'SH'
#!/usr/bin/env bash
set -e
for vars; do :; done
[ "${MAKES-all}" != nothing ] || exit "${CODE:-0}"
runs=$(jq -r .plan_runs_dir "${vars#@}")
mkdir -p "$runs/$RUN"
ln -sfn "$RUN" "$runs/latest"
printf '{"run":"%s","schema":"perch.plan/2","rounds":[]}\n' "id-$RUN" >"$runs/$RUN/plan.json"
[ "${MAKES-all}" != plan ] || exit "${CODE:-2}"
printf '{"schema":"perch.verdict/1","verdict":"%s","soak":{"running":%s,"ended":"%s"}}\n' "${VERDICT=PASS}" "${RUNNING:-false}" \
  "${ENDED:-$(date -u +%FT%T.%3NZ)}" >"$runs/$RUN/verdict.json"
printf '%s\n' '# HELP perch_verdict x' '# TYPE perch_verdict gauge' "perch_verdict{verdict=\"$VERDICT\"} 1" >"$runs/$RUN/perch.prom"
: >"$runs/$RUN/report.md"
[ -z "${WITHOUT-}" ] || rm "$runs/$RUN/$WITHOUT"
exit "${CODE:-0}"
SH
  chmod +x soak
  printf '#!/bin/sh\nenv | grep ^PERCH_ | sort >told\nprintf "<%%s>" "$@" >>told\n' >hook
  chmod +x hook
}

# scheduled RUN [VARIABLE=VALUE...]: as the service does it, with KEEP and HOOK
scheduled() {
  local run=$1 status=0
  shift
  [ -x soak ] || double_of_soak
  mkdir -p runs
  jq -n --arg here "$PWD" '{plan_runs_dir: ($here + "/runs")}' >vars.json
  touch -a runs/.perch-soak-nightly.running
  env "RUN=$run" "$@" ./soak soak.yml -e @vars.json || status=$?
  ended "${STATUS:-$status}"
}

# ended STATUS: what the service runs then
ended() {
  local code=0
  EXIT_STATUS=$1 run "${PROGRAM[@]}" nightly "$PWD/runs" "${KEEP-2}" "$PWD/textfile" "${HOOK[@]}"
  case $output in
    *"soak-scheduled: FAIL: "*) code=1 ;;
    *"soak-scheduled: INCONCLUSIVE: "*) code=3 ;;
  esac
  assert_equal "$status" "$code"
}

prom() { run_expecting 0 python "$TOP/tests/prometheus.py" textfile/perch.prom; }
prom_says() { grep -qxF "$1" textfile/perch.prom || fail "no line $1 in: $(<textfile/perch.prom)"; }

# ---- the program --------------------------------------------------------------------------------------------------

@test "a scheduled soak is exported whole, and told" {
  scheduled 20260101T020000Z-soak
  assert_output --partial "soak-scheduled: PASS: $PWD/runs/20260101T020000Z-soak"
  assert_equal "$(stat -c '%a %n' textfile/*)" "644 textfile/perch.prom"
  assert_equal "$(ls -A textfile)" perch.prom
  prom
  prom_says 'perch_verdict{verdict="PASS"} 1'
  prom_says 'perch_schedule_passed{schedule="nightly"} 1'
  assert_equal "$(sed '/^PERCH_TEST/d' told)" "PERCH_MESSAGE=
PERCH_REPORT=$PWD/runs/20260101T020000Z-soak/report.md
PERCH_RUN_DIR=$PWD/runs/20260101T020000Z-soak
PERCH_SCHEDULE=nightly
PERCH_VERDICT=PASS
<a word><PASS><$PWD/runs/20260101T020000Z-soak/report.md><$PWD/runs/20260101T020000Z-soak>"
  [ ! -e runs/.perch-soak-nightly.running ]
}

@test "what failed, still runs, has no verdict, or says PASS while soak.yml failed, is never a PASS, and no older figure stands in for it" {
  scheduled 20260101T020000Z-soak
  scheduled 20260102T020000Z-soak VERDICT=FAIL CODE=2
  prom_says 'perch_verdict{verdict="FAIL"} 1'
  scheduled 20260103T020000Z-soak CODE=2
  assert_output --partial "INCONCLUSIVE: soak.yml ended with exit code 2, although the verdict is PASS"
  local case
  for case in RUNNING=true RUNNING=null RUNNING='false},"soak":{"x":1' MAKES=plan WITHOUT=verdict.json VERDICT=GREAT VERDICT='PASS","verdict":"PASSED'; do
    scheduled "20260104T020000Z-${#case}" "$case"
    assert_output --partial "INCONCLUSIVE: "
    prom
    prom_says 'perch_verdict{verdict="PASS"} 0'
    prom_says 'perch_verdict{verdict="INCONCLUSIVE"} 1'
    prom_says 'perch_schedule_passed{schedule="nightly"} 0'
  done
  # of the run before, which is still there; and where systemd could not even begin
  scheduled none MAKES=nothing CODE=4
  assert_output --partial "INCONCLUSIVE: there is no verdict: soak.yml ended with exit code 4"
  ended KILL
  assert_output --partial "INCONCLUSIVE: there is no verdict: soak.yml ended with exit code KILL"
  prom_says 'perch_verdict{verdict="INCONCLUSIVE"} 1'
  assert_equal "$(tail -n 1 told)" "<a word><INCONCLUSIVE><><>"
  assert_equal "$(grep MESSAGE told)" "PERCH_MESSAGE=there is no verdict: soak.yml ended with exit code KILL"
}

@test "a soak that was over before and lay on the hosts is no measurement of this time" {
  scheduled 20260101T020000Z-soak ENDED=2026-01-01T10:00:00.000Z
  assert_output --partial "INCONCLUSIVE: this soak had ended before and was not fetched yet; no new one was begun: $PWD/runs/20260101T020000Z-soak"
  prom_says 'perch_schedule_passed{schedule="nightly"} 0'
  # what it fails for is told
  scheduled 20260101T020000Z-soak ENDED=2026-01-01T10:00:00.000Z VERDICT=FAIL CODE=2
  assert_output --partial "FAIL: this soak had ended before"
  assert_equal "$(tail -n 1 told)" "<a word><FAIL><$PWD/runs/20260101T020000Z-soak/report.md><$PWD/runs/20260101T020000Z-soak>"
  # also of a soak of which nobody knows whether it goes on
  scheduled 20260115T020000Z-soak VERDICT=FAIL RUNNING=true
  assert_output --partial "FAIL: $PWD/runs/20260115"
}

@test "a run without perch.prom, or with one of another verdict, is exported without a figure of its own" {
  scheduled 20260101T020000Z-soak WITHOUT=perch.prom
  prom
  prom_says 'perch_verdict{verdict="PASS"} 1'
  prom_says 'perch_verdict{verdict="FAIL"} 0'
  rm -r textfile
  scheduled 20260103T020000Z-soak
  assert_output --partial "textfile/perch.prom could not be written"
}

@test "a hook that fails, hangs or is not there is said, and changes nothing" {
  HOOK=(/bin/false)
  scheduled 20260101T020000Z-soak
  assert_output --partial "the notify hook /bin/false failed with exit code 1"
  HOOK=("$PWD/no-such-hook")
  scheduled 20260102T020000Z-soak VERDICT=FAIL
  assert_output --partial "no-such-hook cannot be started: No such file or directory"
  HOOK=()
  scheduled 20260104T020000Z-soak
  refute_output --partial "hook"
  # one that hangs is ended by systemd, after all else
  mkfifo pipe
  printf '#!/bin/sh\n: >begun\nexec cat pipe\n' >hangs && chmod +x hangs
  touch -a runs/.perch-soak-nightly.running
  EXIT_STATUS=0 "${PROGRAM[@]}" nightly "$PWD/runs" 1 "$PWD/textfile" "$PWD/hangs" 2>log 3>&- &
  wait_until test -e begun
  prom_says 'perch_verdict{verdict="INCONCLUSIVE"} 1'
  : >pipe
  wait
}

@test "a soak that is ended from outside is gone on with, and only then told" {
  local status
  for status in TERM 143 99; do
    STATUS=$status scheduled 20260101T020000Z-soak MAKES=plan
    assert_output --partial "On the hosts the soak continues"
  done
  [ ! -e told ] || fail "it was told"
  [ ! -e textfile/perch.prom ] || fail "it was exported"
  # the same run is the newest one still, and it was over before soak.yml went on with it
  local over
  over=$(date -u +%FT%T.%3NZ)
  scheduled 20260101T020000Z-soak "ENDED=$over"
  assert_equal "$(tail -n 1 told)" "<a word><PASS><$PWD/runs/20260101T020000Z-soak/report.md><$PWD/runs/20260101T020000Z-soak>"
  [ ! -e runs/.perch-soak-nightly.running ]
}

@test "a soak.yml that takes longer than its time is INCONCLUSIVE, and told" {
  SERVICE_RESULT=timeout STATUS=TERM scheduled 20260101T020000Z-soak MAKES=plan
  assert_output --partial "INCONCLUSIVE: soak.yml was ended: it took longer than its time"
  assert_equal "$(grep -c '<INCONCLUSIVE>' told)" 1
  prom_says 'perch_verdict{verdict="INCONCLUSIVE"} 1'
}

@test "old runs of the schedule go; accepted ones, links and what has no verdict stay" {
  local day
  for day in 01 02 03 04 05; do KEEP=0 scheduled "202601${day}T020000Z-soak"; done
  mkdir -p runs/baseline/f00 runs/20251231T020000Z-by-hand
  mv runs/20260103T020000Z-soak elsewhere
  cp elsewhere/plan.json runs/20251231T020000Z-by-hand
  # accepted now and earlier; one without a plan, and a link
  printf '{"run":"id-2026010%sT020000Z-soak"}\n' 1 2 >runs/baseline/f00/history.jsonl
  rm runs/20260104T020000Z-soak/plan.json
  ln -s "$PWD/elsewhere" runs/20240101T020000Z-soak
  KEEP=1
  scheduled 20260106T020000Z-soak RUNNING=true # not measured to the end: nothing goes
  refute_output --partial "removed"
  scheduled 20260107T020000Z-soak
  assert_equal "$(cd runs && echo 2*)" "20240101T020000Z-soak 20251231T020000Z-by-hand 20260101T020000Z-soak 20260102T020000Z-soak \
20260104T020000Z-soak 20260107T020000Z-soak"
  assert_output --partial "removed 20260105T020000Z-soak, of which 1 newer ones are kept"
  [ -e elsewhere/plan.json ]

  echo '{"run":' >runs/baseline/f00/history.jsonl
  scheduled 20260108T020000Z-soak
  assert_output --partial "no old run is removed"
  [ -d runs/20260107T020000Z-soak ]
}

# ---- the playbooks ------------------------------------------------------------------------------------------------

# play EXIT PLAYBOOK [OPTION...]: with a folder for the units
play() {
  local expected=$1 playbook=$2
  shift 2
  run_expecting "$expected" ansible-playbook -i "${INVENTORY:-$TOP/inventories/local}" "$TOP/playbooks/$playbook.yml" -e soak_unit_dir="$PWD/units" \
    -e soak_schedule_runs_dir="$PWD/runs" -e soak_schedule_name=nightly -e soak_schedule_playbook="$PWD/soak.yml" "$@"
}
schedule() { play "$1" soak_schedule -e "soak_schedule_calendar='Sun 02:00'" "${@:2}"; }
unschedule() { play "$1" soak_unschedule "${@:2}"; }

# One after the other on the same folder, as each playbook takes seconds.
@test "a schedule is right in check mode, is what systemd verifies with least privileges, changes nothing twice, and goes without a trace" {
  double_of_soak
  touch vault
  echo 'all: {hosts: {alpha: {production: true}}}' >hosts.yml
  local -a options=(-e "{\"soak_schedule_notify\": [\"$PWD/hook\"], \"soak_schedule_textfile_dir\": \"$PWD/textfile\",
    \"soak_schedule_vault_password_file\": \"$PWD/vault\"}" -e '{"soak_schedule_vars": {"soak_confirm": true, "soak_duration": "8h", "note": "a secret"},
    "soak_schedule_keep": 3, "soak_schedule_delay": "30min", "soak_schedule_catch_up": false}')
  INVENTORY=hosts.yml schedule 0 "${options[@]}" --check
  assert_output --partial "perch-soak-nightly.timer (system): Next elapse: Sun "
  nothing_written
  INVENTORY=hosts.yml schedule 0 "${options[@]}"
  refute_output --regexp "localhost +: ok=[0-9]+ +changed=0 "
  INVENTORY=hosts.yml schedule 0 "${options[@]}"
  assert_output --regexp "localhost +: ok=[0-9]+ +changed=0 "

  assert_equal "$(cd units && echo *)" "perch-soak-nightly-resume.service perch-soak-nightly.json perch-soak-nightly.service perch-soak-nightly.timer"
  run_expecting 0 systemd-analyze verify units/perch-soak-nightly.service units/perch-soak-nightly-resume.service units/perch-soak-nightly.timer
  assert_output ""
  # of 10.0, which is a service that may do anything; what is left is the network, the homes with their keys, and who runs it
  run_expecting 0 systemd-analyze security --offline=true --no-pager --threshold=30 units/perch-soak-nightly.service
  grep -qx "OnCalendar=Sun 02:00" units/perch-soak-nightly.timer
  grep -qx "RandomizedDelaySec=30min" units/perch-soak-nightly.timer
  grep -qx "Persistent=false" units/perch-soak-nightly.timer
  grep -qx "TimeoutStartSec=8h 2h" units/perch-soak-nightly.service
  ! grep -r "a secret" units/*.service units/*.timer || fail "a variable is in a unit"
  assert_equal "$(stat -c %a units/perch-soak-nightly.json)" 640

  assert_json units/perch-soak-nightly.json ". == {note: \"a secret\", soak_confirm: true, soak_duration: \"8h\", plan_runs_dir: \"$PWD/runs\", soak_wait: true}"
  grep -qF "\"$PWD/soak.yml\" \"-i\" \"$PWD/hosts.yml\" \"-e\" \"@$PWD/units/perch-soak-nightly.json\"" units/perch-soak-nightly.service
  grep -qE "^ExecStopPost=.*/perch/soak/schedule.py\" \"nightly\" \"$PWD/runs\" \"3\" \"$PWD/textfile\" \"$PWD/hook\" $" units/perch-soak-nightly.service

  : >units/perch-soak-other.timer
  unschedule 0 --check
  assert_output --partial "Would be removed: perch-soak-nightly.timer of $PWD/units"
  unschedule 0
  assert_output --partial "Removed: perch-soak-nightly.timer of $PWD/units"
  refute_output --regexp " changed=0 "
  unschedule 0
  assert_output --regexp " changed=0 "
  assert_output --partial "There is no schedule nightly in $PWD/units"
  assert_equal "$(cd units && echo *)" perch-soak-other.timer
  [ -d runs ] || fail "the runs are gone"
}

nothing_written() {
  [ ! -e units ] || fail "units were written"
  [ ! -e runs ] || fail "a folder for runs was made"
}

# refused WORDS [OPTION...]: nothing is written
refused() {
  play 2 soak_schedule "${@:2}"
  assert_output --partial "$1"
  assert_output --partial "Nothing was written"
  nothing_written
}

@test "what systemd refuses, and a fabric in production, is refused by name before anything is written" {
  refused "systemd says: Failed to parse calendar specification 'whenever': Invalid argument" -e soak_schedule_calendar=whenever \
    -e '{"soak_schedule_vars": {"soak_duration": "8h"}}'
  # two words to Ansible; and a text where a list is meant
  refused '\"02:00\" on the command line belongs to no variable' -e soak_schedule_calendar='Sun 02:00' -e soak_schedule_notify=/bin/true
  assert_output --partial "lists. On a command line that is JSON"
  cat >hosts.yml <<'YAML'
all: {hosts: {alpha: {}, beta: {production: true}}}
YAML
  INVENTORY=hosts.yml refused "beta: production: true" -e soak_schedule_calendar=daily -e soak_schedule_name=a-resume
  assert_output --partial 'does not end in \"resume\"'
  # of an inventory of lines every value is a text
  echo 'alpha production=false' >hosts.ini
  INVENTORY=hosts.ini play 0 soak_schedule --check -e soak_schedule_calendar=daily -e '{"soak_schedule_vars": {"soak_duration": "8h"}}'
}

@test "a schedule without a calendar, a duration or right names is refused in a sentence, before anything is written" {
  echo 'all: {hosts: {alpha: {}}}' >hosts.yml
  export INVENTORY=hosts.yml
  refused "Nothing says when: soak_schedule_calendar is a calendar expression of systemd, as in -e "
  refute_output --partial argument_spec
  # one of the command line is not handed on
  schedule 2 -e soak_duration=8h
  assert_output --partial "neither soak_schedule_vars nor the inventory has a soak_duration"
  schedule 2 -e '{"soak_schedule_vars": {"soak_duration": "24"}}'
  assert_output --partial "soak_duration must be a time with its unit, such as 24h, and is '24'"
  echo 'all: {hosts: {alpha: {}}, vars: {soak_duration: 8h}}' >hosts.yml
  schedule 0 --check
  schedule 2 -e '{"soak_schedule_vars": {"soak_durtion": "2m", "soak_wait": "never", "note": 1}, "soak_schedul_keep": 8}'
  assert_output --partial "soak_schedule_vars: soak_durtion is no variable of the role soak; did you mean soak_duration"
  assert_output --partial "soak_schedule_vars: soak_wait must be true or false"
  assert_output --partial "the command line (-e): soak_schedul_keep is no variable of the role soak; did you mean soak_schedule_keep"
  schedule 2 -e '{"soak_schedule_keep": -1}'
  assert_output --partial "soak_schedule_keep must be a whole number, at least 0, and is -1"
  schedule 2 -e '{"soak_schedule_vars": {"plan_suite": "nosuch", "plan_runs_dir": "/tmp"}}'
  assert_output --partial "There is no suite $TOP/playbooks/suites/nosuch.yml"
  assert_output --partial "soak_schedule_vars: the folder of runs is soak_schedule_runs_dir, and neither"
  unschedule 2 -e soak_schedul_scope=user
  assert_output --partial "soak_schedul_scope is no variable of the role soak; did you mean soak_schedule_scope"
  nothing_written
}

@test "what could not run is refused: calendars, programs and folders, each by name" {
  local vars='{"soak_schedule_vars": {"soak_duration": "8h"}}'
  refused 'soak_schedule_calendar is \"2020-01-01\"; systemd says: Next elapse: never' -e soak_schedule_calendar=2020-01-01 -e "$vars"
  refused "Failed to parse time span '5mins'" -e soak_schedule_calendar=daily -e soak_schedule_delay=5mins -e "$vars"
  refused "No text of a unit may hold" -e '{"soak_schedule_calendar": "daily\nOnCalendar=hourly"}' -e "$vars"
  refused "/no/hook, /no/python, /no/such: not on this machine" -e soak_schedule_calendar=daily -e "$vars" \
    -e '{"soak_schedule_notify": ["/no/hook"], "soak_schedule_ansible": ["/no/python"], "soak_schedule_textfile_dir": "/no/such"}'
}
