#!/usr/bin/env bats
# Limits: the built-in sets, a site's own over them, bounds that are relative, and files that are wrong: refused when a run is
# planned, and never a PASS when it is judged.

load helpers
load judge

setup() {
  judge_setup
  export ANSIBLE_CONFIG=$TOP/ansible.cfg ANSIBLE_NOCOLOR=1
  cat >site.yml <<'YAML'
schema: perch.limits/1
name: ours
title: What we expect
limits:
  - id: iperf-bandwidth
    title: TCP bandwidth by iperf
    scope: {tool: [iperf3, iperf]}
    metric: bandwidth.gbit_s
    bound: {min: 2}
    unit: Gb/s
    source: "site policy: what these machines have always had"
    severity: required
    remedy: Ask Ann, who knows them
  - {id: small-message-mean, severity: removed, source: "site policy: nobody here sends small messages"}
YAML
}
teardown() { common_teardown; }

# as_json FILE: a YAML file
as_json() { "$TOP/.venv/bin/python" -c 'import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)' "$1"; }

# sets SET [SITE]: what role plan hands to limit_sets.jq, and what that says
sets() {
  local file
  for file in "$@"; do
    as_json "$file" | jq -c --arg file "$(basename "$file")" --rawfile text "$file" '{$file, $text, document: .}'
  done | jq -s '{set: .[0], site: .[1]}' >sets.json
  run jq -L "$TOP/reports/jq" -f "$TOP/reports/jq/limit_sets.jq" sets.json
}

# play_plan [OPTION...]: inventory and suite become a run, as in site.yml up to where hosts come in
play_plan() {
  cat >play.yml <<YAML
- name: Plan
  hosts: all
  gather_facts: false
  roles: [$TOP/roles/inventory_check, $TOP/roles/plan]
YAML
  run timeout 60 ansible-playbook -i "$TOP/inventories/local" play.yml -e plan_runs_dir="$PWD/runs" "$@" 3>&-
  said=$(tr -s ' \n' ' ' <<<"${output//\\\"/\"}")
}

@test "every built-in set is sound, alone" {
  for set in "$TOP"/reports/limits/*.yml; do
    sets "$set"
    assert_equal "$status" 0
  done
}

@test "a site's entry replaces one with its id, a new one is added, and the run says where each came from" {
  sed -i 's/id: small-message-mean, severity/id: completion-mean, severity/' site.yml
  sed -n '/id: iperf-bandwidth/,/Ann/p' site.yml | sed 's/iperf-bandwidth/ours/' >added && cat added >>site.yml
  play_plan -e plan_limits_site="$PWD/site.yml"
  assert_equal "$status" 0
  assert_json runs/latest/inputs/limits.json '.files == ["local.yml", "site.yml"]
    and ([.limits[] | select(.id == "iperf-bandwidth") | {from, min: .bound.min, was: .replaces.bound.min, of: .replaces.from}]
         == [{from: "site.yml", min: 2, was: 1, of: "local.yml"}])
    and ([.limits[] | select(.removed) | {id, from, file: .removed.file}] == [{id: "completion-mean", from: "local.yml", file: "site.yml"}])
    and ([.limits[] | select(.id == "ours") | .from] == ["site.yml"]) and all(.limits[]; .from != null)'
  check-jsonschema --schemafile "$TOP/reports/schema/limits.schema.json" runs/latest/inputs/limits.json site.yml
}

@test "a file of limits that is wrong ends the plan, with file, line and key, and no run is made" {
  sed -i 's/unit: Gb.s/unit: GB\/s/; s/bound: {min: 2}/bound: {min: 2, maxi: 3}/; s/id: small-message-mean/id: small-message-main/' site.yml
  play_plan -e plan_limits_site="$PWD/site.yml"
  assert_equal "$status" 2
  for part in 'site.yml:9: limit "iperf-bandwidth", bound.maxi: unknown' 'site.yml:10: limit "iperf-bandwidth", unit:' \
    'site.yml:14: limit "small-message-main", id: removes nothing: local.yml has no limit with this id'; do
    [[ $said = *"$part"* ]] || fail "this does not say $part: $output"
  done
  [ ! -e runs ] || fail "a run was made: $(ls runs)"
  printf 'limits: [\n' >site.yml
  play_plan -e plan_limits_site="$PWD/site.yml"
  assert_equal "$status" 2
  [[ $said = *"The limits cannot be read"*site.yml* ]] || fail "$output"
  # of two bounds nobody knows which was meant
  printf 'schema: perch.limits/1\nschema: perch.limits/1\nlimits: []\n' >site.yml
  play_plan -e plan_limits_site="$PWD/site.yml"
  assert_equal "$status" 2
  [[ $said = *"The limits cannot be read"*site.yml*"duplicate mapping key 'schema'"*"line 2"* ]] || fail "$output"
}

# shellcheck disable=SC2030
@test "a site cannot remove what a relative limit leans on, remove without a reason, or both remove and give" {
  sed -i '/^  - id: iperf/,/Ann/d' site.yml
  sed -i 's/small-message-mean/large-message-bandwidth/' site.yml
  sets "$TOP/reports/limits/roce.yml" site.yml
  assert_equal "$status" 1
  assert_output --partial 'limit "large-message-share", bound.of: relative, and no required absolute limit of bandwidth.gbit_s'
  sed -i 's/source: .*}/source: ""}/' site.yml
  sets "$TOP/reports/limits/roce.yml" site.yml
  assert_output --partial 'site.yml:5: limit "large-message-bandwidth", source: no source: who removes a limit says why'
}

# put the merged limits into the recorded run
with_site() {
  sets "$TOP/reports/limits/local.yml" site.yml
  # shellcheck disable=SC2031  # sets() has run in this very test
  printf '%s\n' "$output" >run/inputs/limits.json
}

@test "the verdict shows what a site has replaced and removed" {
  with_site
  judge 0
  assert_json run/verdict.json 'any(.checks[]; .id == "limit/small-message-mean" and .status == "not_judged"
      and .measured == "removed by the site (site.yml): site policy: nobody here sends small messages" and (.source | test("required, of local.yml")))
    and any(.checks[]; .id == "limit/iperf-bandwidth/iperf3" and .status == "pass" and .limit.min == 2
      and (.source | endswith("(the site'"'"'s site.yml, in place of required min 1 of local.yml)")))'
  check-jsonschema --schemafile "$TOP/reports/schema/verdict.schema.json" run/verdict.json
  # nothing required is left to judge anything
  edit run/inputs/limits.json '.limits |= map(.removed = {file: "site.yml", source: "site policy: none"})'
  judge 3
  assert_equal "$(check_status limits)" inconclusive
}

@test "a run's limits that are wrong are INCONCLUSIVE, with file, line and key" {
  jq . run/inputs/limits.json >whole
  local fault
  while read -r fault; do
    jq "${fault%% = *}" whole >run/inputs/limits.json
    judge 3
    assert_json run/verdict.json "any(.checks[]; .id == \"limits\" and .status == \"inconclusive\" and (.measured | test(\"${fault##* = }\")))"
  done <<'FAULTS'
.limits[0].bound.mux |= 3 = ^inputs/limits.json:[0-9]+: limit .small-message-mean., bound.mux
del(.limits[1].source) = ^inputs/limits.json:[0-9]+: limit .small-message-idle., source: no source
.limits[0].removed |= {file: "x"} = , removed: who removes
FAULTS
  # what else may be wrong is in tests/jq/limits.test: it is one checker
  cat whole whole >run/inputs/limits.json
  judge 3
  assert_json run/verdict.json 'any(.checks[]; .id == "limits" and (.measured | test("holds 2 documents")))'
}

# share BOUND: a limit of the recorded Soft-RoCE write, with its absolute partner, all required
share() {
  jq -n --argjson bound "$1" '{title: "Writes", scope: {test: "verbs-write-bandwidth"}, metric: "bandwidth.gbit_s", unit: "Gb/s",
      source: "site policy: a test", severity: "required", remedy: "mend this test"}
    | {schema: "perch.limits/1", name: "t", title: "T", limits: [. + {id: "floor", bound: {min: 0.0001, max: 1000}},
       . + {id: "share", $bound, unit: {ceiling: "of the ceiling", baseline: "of the baseline"}[$bound.of]}]}' >run/inputs/limits.json
}

@test "a share of the ceiling is kept, or missed on either side; unknown, it is inconclusive on hardware and not judged elsewhere" {
  recorded rxe
  local out=run/raw/alpha/flows/verbs-write-bandwidth/alpha/beta/1/client.stdout check=limit/share/verbs-write-bandwidth gbit
  share '{"min": 0.9, "of": "ceiling"}'
  judge 0
  assert_equal "$(check_status $check)" not_judged
  assert_json run/verdict.json 'any(.checks[]; .id == "limit/share/verbs-write-bandwidth" and (.measured | test("^no ceiling")))'
  gbit=$(jq -s 'map(select(.bandwidth))[-1].bandwidth.gbit_s' $out)
  # the link as fast as 105 %, then 130 % of the figure; at MTU 4096 98 % of it is payload
  edit $out ".link.rate_gbit_s = $gbit * 1.05"
  judge 0
  assert_equal "$(check_status $check)" pass
  edit $out ".link.rate_gbit_s = $gbit * 1.3"
  judge 1
  assert_equal "$(check_status $check)" fail
  share '{"max": 0.5, "of": "ceiling"}'
  judge 1
  assert_equal "$(check_status $check)" fail
}

@test "on hardware an unknown ceiling is inconclusive, and the rate that both hosts tell makes it known" {
  recorded rxe
  # the recorded Soft-RoCE as if two cards had carried it
  find run -type f -exec sed -i 's/rxe0/mlx5_0/g' {} +
  edit run/plan.json '.rounds[].flows[].scope = "hardware"'
  local host gbit out=run/raw/alpha/flows/verbs-write-bandwidth/alpha/beta/1/client.stdout check=limit/share/verbs-write-bandwidth
  for host in alpha beta; do edit "run/raw/$host/environment.json" '.rdma[].driver = "mlx5_core"'; done
  find run/raw -name '*.json' -exec sed -i 's/sent_pkts/tx_pkts/g; s/rcvd_pkts/rx_pkts/g' {} +
  share '{"min": 0.9, "of": "ceiling"}'
  run "$JUDGE" run
  assert_equal "$(check_status $check) $(check_status ceiling/unknown)" "inconclusive not_judged"
  assert_json run/verdict.json 'any(.checks[]; .id == "limit/share/verbs-write-bandwidth" and (.remedy | test("rate_gbit_s")))'
  gbit=$(jq -s 'map(select(.bandwidth))[-1].bandwidth.gbit_s' $out)
  for host in alpha beta; do edit "run/raw/$host/environment.json" "(.interfaces[] | select(.name == \"eth1\")).rate_gbit_s = $gbit * 1.05"; done
  run "$JUDGE" run
  assert_equal "$(check_status $check)" pass
  # a virtual interface has no hardware below, and the rate that it says was invented for it
  cp run/raw/alpha/environment.json whole
  edit run/raw/alpha/environment.json '(.interfaces[] | select(.name == "eth1")).driver = null'
  run "$JUDGE" run
  assert_equal "$(check_status $check)" inconclusive
  mv whole run/raw/alpha/environment.json
  # one host's word is not both hosts'
  edit run/raw/beta/environment.json "(.interfaces[] | select(.name == \"eth1\")).rate_gbit_s = $gbit * 1.3"
  edit run/raw/alpha/environment.json "(.interfaces[] | select(.name == \"eth1\")).rate_gbit_s = null"
  run "$JUDGE" run
  assert_equal "$(check_status $check)" inconclusive
}

@test "a share of the accepted run: kept, missed, of another fabric, measured otherwise, or none" {
  recorded rxe
  share '{"min": 0.9, "of": "baseline"}'
  local check=limit/share/verbs-write-bandwidth
  judge 3
  assert_json run/verdict.json 'any(.checks[]; .id == "limit/share/verbs-write-bandwidth" and .status == "inconclusive"
    and (.measured | test("no run of this fabric.* had been accepted")) and (.remedy | test("make accept")))'
  jq -n -L "$TOP/reports/jq" --slurpfile plan run/plan.json --slurpfile verdict run/verdict.json --arg accepted 2026-01-01T00:00:00Z --arg called "" \
    --arg forced "" --arg id 0123456789ab -f "$TOP/reports/jq/accepted.jq" run/records.jsonl >accepted.json
  cp accepted.json run/inputs/baseline.json
  judge 0
  assert_equal "$(check_status $check)" pass
  edit run/inputs/baseline.json '.figures |= map_values(.value *= 1.2)'
  judge 1
  assert_equal "$(check_status $check)" fail
  jq '.fabric.hosts.alpha.ends |= map(.device = "mlx5_0")' accepted.json >run/inputs/baseline.json
  judge 3
  assert_json run/verdict.json 'any(.checks[]; .id == "limit/share/verbs-write-bandwidth" and .status == "inconclusive"
    and (.measured | test("^the baseline is of another fabric: alpha has rxe0")))'
  jq '.terms |= map(sub("op=write"; "op=send"))' accepted.json >run/inputs/baseline.json
  judge 3
  head -c 300 accepted.json >run/inputs/baseline.json
  judge 3
  assert_json run/verdict.json 'any(.checks[]; .id == "limit/share/verbs-write-bandwidth" and (.measured | test("baseline.json is damaged")))'
}
