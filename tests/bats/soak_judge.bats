#!/usr/bin/env bats
# How a soak is judged: composed runs (tests/soak_compose.py, of lines that the engine wrote), clean ones and ones with planted faults.
# What is planted in one flow of a run says nothing of the others, so that one run shows many.

load helpers

setup() { common_setup; }
teardown() { common_teardown; }

judged() { run "$TOP/reports/judge" run; }

# composed ARGUMENT...: the run in ./run; judged_of: judged as well
composed() { rm -rf run && "$TOP/.venv/bin/python" "$TOP/tests/soak_compose.py" run "$@"; }
judged_of() {
  composed "$@"
  judged
}

status_of() { jq -r --arg id "soak/$1" '.checks[] | select(.id == $id) | .status' run/verdict.json; }
measured_of() { jq -r --arg id "soak/$1" '.checks[] | select(.id == $id) | .measured' run/verdict.json; }

# found KIND OWNER: the severity of its anomalies there
found() { jq -r --arg kind "$1" --arg at "$2" '[.soak.anomalies[] | select(.kind == $kind and (.flow == $at or (.flow == null and .host == $at))) | .severity][0] // "none"' run/verdict.json; }

setup_file() {
  export SOAK=$BATS_FILE_TMPDIR/planted
  # flows 0-5 are load, 6-11 verify, 12-17 latency, of node1 to node6 each
  "$BATS_TEST_DIRNAME/../../.venv/bin/python" "$BATS_TEST_DIRNAME/../soak_compose.py" "$SOAK" --hosts 6 --duration 1800 --plant gap=12@700:0 --plant stall=0.05@605-1500:12 \
    --plant stall=2@910:13 --plant drift=-0.6:1 --plant step=-0.5@900:2 --plant slow=1000@900-960:14 --plant flip@700:6 --plant tenfold@900:3 --plant missing@900:4 \
    --plant double@900:5 --plant long@900:7 --plant foreign:8 --plant junk@900:9 --plant dropped=3:10 --plant half:11 --plant nofile:15 --plant clock=5@900:16 \
    --plant leak=40:0 --plant handles=60:1 --plant counter@900:2 --plant flap@900:3 --plant nosample@900-1400:4
  "$BATS_TEST_DIRNAME/../../reports/judge" "$SOAK" >"$SOAK/said" || echo "$?" >"$SOAK/code"
}

planted() { ln -sfn "$SOAK" run; }

@test "each planted fault is found in its flow or on its host, with the severity that it has" {
  planted
  assert_equal "$(<"$SOAK/code")" 1
  local kind at severity
  while read -r kind at severity; do
    assert_equal "$kind $at $(found "$kind" "$at")" "$kind $at $severity"
  done <<'TABLE'
gap load/node1/node2/1 fail
stall latency/node1/node2/1 advisory
stall latency/node2/node3/1 fail
drift load/node2/node3/1 fail
change load/node3/node4/1 fail
slow latency/node3/node4/1 advisory
corrupt verify/node1/node2/1 fail
rate load/node4/node5/1 fail
sum load/node4/node5/1 inconclusive
hole load/node5/node6/1 inconclusive
overlap load/node6/node1/1 inconclusive
length verify/node2/node3/1 inconclusive
foreign verify/node3/node4/1 inconclusive
damaged verify/node4/node5/1 inconclusive
dropped verify/node5/node6/1 inconclusive
hole latency/node4/node5/1 inconclusive
clock latency/node5/node6/1 advisory
leak node1 fail
handles node2 fail
counter node3 advisory
link node4 fail
host node5 inconclusive
TABLE
}

@test "what was not planted is not found, and a half line at the end is no fault" {
  planted
  local flow
  for flow in verify/node6/node1/1 latency/node6/node1/1; do
    assert_equal "$(jq -c --arg flow "$flow" '[.soak.anomalies[] | select(.flow == $flow)]' run/verdict.json)" '[]'
  done
}

@test "an anomaly has its time on both clocks, its length, its messages and the line that shows it" {
  planted
  run_expecting 0 jq -r '.soak.anomalies[] | select(.kind == "gap") | [.start, .start_s, .end_s, .duration_s, .value, .unit, .evidence[0]] | @tsv' run/verdict.json
  assert_output "2026-01-01T00:11:40.000Z	700	712	12	12	s	raw/node1/flows/load/node1/node2/1/client.soak:15"
  run_expecting 0 sed -n 15p run/raw/node1/flows/load/node1/node2/1/client.soak
  assert_output --partial '"kind":"gap"'
  assert_equal "$(jq -c '[.soak.anomalies[] | select(.kind == "stall" and .severity == "fail") | .messages, .start_s, .duration_s]' run/verdict.json)" '[3,910,2]'
  # the step is dated to its interval
  assert_equal "$(jq -c '.soak.anomalies[] | select(.kind == "change" and .flow == "load/node3/node4/1") | .start_s > 870 and .start_s <= 960' run/verdict.json)" true
}

@test "the verdict's section and the lines are as their schemas say, and the lines are those of the flows and the samples" {
  planted
  command -v check-jsonschema >/dev/null || skip "check-jsonschema is not installed"
  run_expecting 0 check-jsonschema --schemafile "$TOP/reports/schema/verdict.schema.json" run/verdict.json
  jq '{"$schema": ."$schema", properties: {lines: {items: {"$ref": "#/$defs/line"}}}, "$defs": (.["$defs"] + {record: {properties: .properties}, line: .["$defs"].soak})}' \
    "$TOP/reports/schema/record.schema.json" | sed 's|"#/properties/|"#/$defs/record/properties/|' >lines.schema.json
  jq -c 'select(.kind != "sample")' run/intervals.jsonl | jq -s '{lines: .}' >lines.json
  run_expecting 0 check-jsonschema --schemafile lines.schema.json lines.json
  # every line but the wholes, and those that cannot be used
  assert_equal "$(jq -r 'select(.kind == "interval") | .flow' run/intervals.jsonl | grep -c latency/node6)" 30
  assert_equal "$(jq -r 'select(.kind == "sample" and .host == "node1") | .line' run/intervals.jsonl | wc -l)" 31
  assert_equal "$(jq -c 'select(.flow == "load/node1/node2/1" and .kind == "gap") | [.line, .turn, .client, .soak_s + 0]' run/intervals.jsonl)" '[15,1,"node1",0]'
}

@test "a clean soak passes without any anomaly, and is the same to the byte under both jq" {
  newer=${PERCH_TEST_NEWER_JQ:-$("$TOP/tests/jq17" || :)}
  own_jq
  judged_of --duration 1800
  assert_equal "$status" 0
  assert_equal "$(jq -c '[.verdict, .soak.state, .soak.anomalies, .soak.anomaly_counts, .soak.running]' run/verdict.json)" '["PASS","done",[],{},false]'
  [ -n "$newer" ] || skip "no newer jq here"
  cp -r run other
  PATH=$newer:$PATH "$TOP/reports/judge" other
  cmp run/verdict.json other/verdict.json
  cmp run/intervals.jsonl other/intervals.jsonl
}

@test "memory passes only where each process lived long enough to tell a leak; handles need no hours for it" {
  judged_of --duration 28800 --interval 300
  assert_equal "$(status_of memory) $(status_of handles)" "not_judged pass"
  assert_regex "$(measured_of memory)" '^12 of 24 .*; (measurer|job): in 7\.8. h only growth above 1\.2 MB/h'
  judged_of --duration 43200 --interval 300
  assert_equal "$(status_of memory) $(status_of handles)" "pass pass"
}

@test "turns that alternate are one course: a figure that is worse in each later turn drifts" {
  judged_of --duration 7200 --mode alternating --turn 600 --plant drift=-0.6:0 --plant drift=-0.6:6 --plant drift=-0.6:12 --plant drift=-0.6:18
  assert_equal "$status" 1
  assert_equal "$(jq -r '[.soak.anomalies[] | select(.kind == "drift") | .flow] | join(" ")' run/verdict.json)" load/node1/node2/10
  assert_equal "$(jq -c '[.soak.flows | length, (map(select(.state == "done")) | length)]' run/verdict.json)" '[24,24]'
}

@test "turns that were taken out of a plan are no time that was measured" {
  judged_of --duration 1800 --mode alternating --turn 600
  assert_equal "$status $(status_of state)" "0 pass"
  jq -c 'del(.rounds[-1])' run/plan.json >plan.json
  mv plan.json run/plan.json
  judged
  assert_equal "$status $(jq -r '.checks[] | select(.id == "plan").measured' run/verdict.json)" "3 plan.json cannot be used: its turns together last 1200 s, and the soak 1800 s"
}

@test "a soak that runs, or was stopped, or lacks samples is never a pass" {
  judged_of --duration 3600 --running 1200
  assert_equal "$status $(status_of state) $(jq -c .soak.running run/verdict.json)" "3 inconclusive true"
  assert_equal "$(measured_of state)" "it still runs: 1200 s of 3600 s"
  # one that can go on says why it does not
  jq -c '.message = "interrupted: by a reboot"' run/raw/node1/agent.json >agent.json && mv agent.json run/raw/node1/agent.json
  judged
  assert_equal "$status $(jq -r '.checks[] | select(.id == "host/node1") | .measured' run/verdict.json)" \
    "3 its agent still ran when its outputs were fetched: interrupted: by a reboot"
  judged_of --duration 3600 --stopped 1200
  assert_equal "$status $(status_of state) $(jq -r .soak.state run/verdict.json)" "3 inconclusive stopped"
  assert_equal "$(jq -c '[.checks[] | select(.id | startswith("flow/")) | .measured] | unique' run/verdict.json)" '["it was stopped after 1200 s of 3600 s"]'
  assert_equal "$(jq -r '.checks[] | select(.status == "inconclusive") | .remedy' run/verdict.json | sort -u)" \
    "It was ended on purpose (playbooks/soak_stop.yml, or soak-stop on the host): let the next one run to its end"
  assert_equal "$(jq -c .soak.stall_limits_s run/verdict.json)" "[0.04]"
  composed --duration 1200
  rm run/raw/node2/samples.jsonl
  judged
  assert_equal "$status $(status_of samples)" "3 inconclusive"
  assert_equal "$(measured_of samples)" "node2 left no sample"
}

# edit_agent HOST FILTER
edit_agent() {
  jq "$2" "run/raw/$1/agent.json" >agent.json
  mv agent.json "run/raw/$1/agent.json"
}

# asked_at HOST SECONDS: its agent was asked to stop then, seconds since the soak began
asked_at() { edit_agent "$1" ".soak.stop_asked_s = $2"; }

@test "a connection that was lost once the stop had been asked for, of either host, is the stop's; one before it is not" {
  composed --duration 3600 --stopped 1200 --plant gap=3@1197:0
  asked_at node2 1196
  judged
  assert_equal "$status $(found gap load/node1/node2/1) $(status_of gaps)" "3 advisory advisory"
  assert_equal "$(jq -r '.soak.anomalies[] | select(.kind == "gap").text' run/verdict.json)" \
    "no connection for 3.0 s, after the stop had been asked for: the connection was lost"
  asked_at node2 1198
  judged
  assert_equal "$status $(found gap load/node1/node2/1) $(status_of gaps)" "1 fail fail"
  # nor was it the stop that ended a connection which came back, or one of a soak that nobody stopped
  composed --duration 3600 --stopped 1200 --plant gap=3@300:0
  asked_at node2 200
  judged
  assert_equal "$status $(found gap load/node1/node2/1)" "1 fail"
  composed --duration 1200 --plant gap=3@300:0
  asked_at node2 200
  judged
  assert_equal "$status $(found gap load/node1/node2/1)" "1 fail"
}

# last_turn FILTER: of the connection's line of the flow that is lost for good in the last turn
last_turn() { jq -c "if .kind == \"connection\" then $1 else . end" "$LAST" >lines && cp lines "$LAST"; }

@test "whether a connection was lost before the stop or after it is told by the uptime of its host: no wall and no turn that is late moves it" {
  composed --mode alternating --turn 600 --duration 3600 --plant gap=3@3597-3600:11
  LAST=$(grep -l '"kind":"gap"' run/raw/*/flows/*/*/*/*/client.soak)
  local flow=${LAST#*/flows/} server host
  flow=${flow%/client.soak}
  host=${LAST#run/raw/} server=$(cut -d / -f 3 <<<"$flow")
  edit_agent "$server" '.state = "stopped" | .soak.passed_s = 3700'
  edit_agent "${host%%/*}" '.state = "stopped" | .soak.passed_s = 3700'
  local ms late
  for late in 0 75; do
    last_turn ".uptime_s += $late"
    for ms in 1767220000000 1767232800000; do
      sed -i "1s/\"started_ms\":[0-9]*/\"started_ms\":$ms/" "$LAST"
      asked_at "$server" $((3596 + late))
      judged
      assert_equal "$late $ms $(found gap "$flow")" "$late $ms advisory"
      asked_at "$server" $((3598 + late))
      judged
      assert_equal "$late $ms $(found gap "$flow")" "$late $ms fail"
    done
  done
  # of another boot nothing is known
  last_turn '.boot_id = "another"'
  asked_at "$server" 1
  judged
  assert_equal "$(found gap "$flow")" fail
}

@test "a stop is told by the client's time, wherever its server's began; what no agent can have said excuses nothing" {
  composed --duration 3600 --stopped 1200 --plant gap=10@1190:0
  # both were asked 1198 s after the client's soak began
  began() { edit_agent node2 ".soak.begun = \"$1Z\""; }
  asked_at node1 1198
  asked_at node2 1188
  began 2026-01-01T00:00:10.000
  judged
  assert_equal "$(found gap load/node1/node2/1)" fail
  asked_at node2 1175
  judged
  assert_equal "$(found gap load/node1/node2/1)" advisory
  began 2025-12-31T23:58:59.000
  judged
  assert_equal "$(found gap load/node1/node2/1)" fail
  began 2026-01-01T00:00:10.000
  local said
  for said in '.stop_asked_s = -1e999' '.stop_asked_s = -1' '.stop_asked_s = "0"' '.passed_s = null' '.begun = 5' '.begun = null'; do
    edit_agent node2 ".soak.stop_asked_s = 1175 | .soak$said"
    judged
    assert_equal "$said $(found gap load/node1/node2/1)" "$said fail"
    edit_agent node2 '.soak.passed_s = 1203'
    began 2026-01-01T00:00:10.000
  done
  edit_agent node2 '.soak.stop_asked_s = 1175'
  for said in '"x"' '[1]' '{"boot_id": "boot-0", "uptime_s": "0", "passed_s": 0}' '{"boot_id": "boot-0", "uptime_s": 6000, "passed_s": 0}' '{"boot_id": "boot-0", "uptime_s": 0, "passed_s": 0}'; do
    edit_agent node1 ".soak.clock = $said"
    judged
    assert_equal "$said $(found gap load/node1/node2/1)" "$said fail"
  done
}

@test "a clock that is set back between two turns moves no time but its own flows'" {
  composed --mode alternating --turn 600 --duration 3600 --plant flap@1000:0
  for turn in 2 3; do
    for file in run/raw/node2/flows/*/*/*/"$turn"/client.soak; do
      [[ ! -e $file ]] || sed -i '1s/"started_ms":[0-9]*/"started_ms":1767218400000/' "$file"
    done
  done
  judged
  assert_equal "$(jq -r '.soak.started' run/verdict.json) $(status_of samples)" "2026-01-01T00:00:00.000Z pass"
  assert_equal "$(jq -r '[.soak.anomalies[] | select(.kind == "link") | .start_s][0] | floor' run/verdict.json)" 960
}

# stalls_from SECONDS: the soak tells only those
stalls_from() {
  jq --argjson s "$1" '.soak.stall_s = $s | (.rounds[].flows[].client_argv) |= map(if . == "20ms" then "\($s)s" else . end)' run/plan.json >plan.json
  mv plan.json run/plan.json
  sed -i "1s/\"stall_s\":0.02/\"stall_s\":$1/" run/raw/*/flows/*/*/*/*/client.soak
  sed -i "s/\"20ms\"/\"$1s\"/" run/raw/*/flows/*/*/*/*/client.json
  judged
}

@test "no stall is no pass where one beyond its limit would not have been told" {
  composed --duration 1200
  stalls_from 30
  assert_equal "$status $(status_of stalls)" "3 inconclusive"
  assert_equal "$(measured_of stalls)" "the limit is 1 s, and what is shorter than 30 s was not told"
  composed --duration 1200
  stalls_from 1
  assert_equal "$status $(status_of stalls)" "0 pass"
}

@test "a host that was booted anew is found by its samples, with the gaps of its flows" {
  judged_of --duration 1500 --plant reboot@700-800
  assert_equal "$status $(found reboot node1) $(found gap load/node1/node2/1) $(found host node1)" "1 fail fail none"
}

@test "limits of the run stand in the place of the built-in ones" {
  composed --duration 1200 --plant gap=3@700
  jq '.limits += [{id: "some-gaps", title: "Gaps", scope: {kind: "bandwidth"}, metric: "soak.gaps", bound: {max: 1}, unit: "gaps", source: "site policy: a test", severity: "required",
    remedy: "none"}, {id: "much", title: "Much", scope: {test: "verify"}, metric: "soak.interval_gbit_s", bound: {min: 0.2}, unit: "Gb/s", source: "site policy: a test", severity: "required", remedy: "none"}]' \
    run/inputs/limits.json >limits && mv limits run/inputs/limits.json
  judged
  assert_equal "$status $(status_of gaps) $(status_of interval/verify)" "1 pass fail"
  assert_equal "$(jq -r '.checks[] | select(.id == "limits") | .measured' run/verdict.json)" ""
}
