# shellcheck shell=bash disable=SC2154  # judge, which sources this, has set work, rooms and perch_jq
# For judge: what a run's own past says. Are its files still as they were fetched (raw/manifest.sha256, reports/seal), and are
# its figures as in the accepted run of its fabric (inputs/baseline.json, reports/recall)? Each prints checks, as an array.

# The files that the manifest should name: regular ones, as judge reads no others. sha256sum writes names with a backslash in
# its own way; no file that anybody reads has one.
sealed_files() {
  { find -H plan.json plan.retry.json inputs raw -type f 2>/dev/null || true; } |
    LC_ALL=C awk '$0 != "raw/manifest.sha256" && !index($0, "\\")' | LC_ALL=C sort
}

# seal_findings: lines "changed|missing|new|line<TAB>PATH" of a run that has a manifest
seal_findings() {
  local line='^[0-9a-f]{64}  (plan\.json|plan\.retry\.json|inputs/.*|raw/.*)$'
  LC_ALL=C grep -vnE "$line" raw/manifest.sha256 | sed 's/:.*//; s/^/line\t/' || true
  sealed_files >"$work/there"
  { LC_ALL=C grep -E "$line" raw/manifest.sha256 || true; } | LC_ALL=C sort -k 2 >"$work/sealed"
  cut -c 67- "$work/sealed" | LC_ALL=C sort -u >"$work/names"
  LC_ALL=C comm -23 "$work/names" "$work/there" | sed 's/^/missing\t/'
  LC_ALL=C comm -13 "$work/names" "$work/there" | sed 's/^/new\t/'
  # only regular files are opened: a pipe would be waited for
  LC_ALL=C awk 'NR == FNR { there[$0]; next } substr($0, 67) in there' "$work/there" "$work/sealed" |
    { LC_ALL=C sha256sum --check --quiet 2>/dev/null || true; } | sed -nE 's/^(.*): FAILED( open or read)?$/changed\t\1/p'
}

# Lines "unplanned<TAB>PATH": outputs of flows that neither the plan nor that of the repeats has (judge's parts are of both). A plan that was cut afterwards leaves them.
unplanned_flows() {
  { find raw -path 'raw/*/flows/*' -name client.json -type f 2>/dev/null || true; } | LC_ALL=C sort >"$work/there"
  local part
  for part in "$work"/parts/*/plan.json; do listing flow_files "$part"; done | LC_ALL=C grep '/client\.json$' | LC_ALL=C sort | LC_ALL=C comm -13 - "$work/there" | sed 's/^/unplanned\t/'
}

# The check that an edited raw file must meet. A run from before has no manifest: that is shown, and judged by nobody.
judge_seal() {
  {
    if [[ ! -e raw/manifest.sha256 && ! -L raw/manifest.sha256 ]]; then
      printf 'none\n'
    elif [[ ! -f raw/manifest.sha256 || -L raw/manifest.sha256 || ! -r raw/manifest.sha256 ]]; then
      # whoever put a folder, a pipe or a link there has taken the manifest away
      printf 'sealed\t0\nline\t0\n'
    else
      printf 'sealed\t%s\n' "$(LC_ALL=C grep -c '' raw/manifest.sha256)"
      seal_findings
    fi
    unplanned_flows
  } | jq -nR -f "$rooms/jq/seal.jq" >"$work/seal.json"
}

# Sets baseline_fault: why there is no accepted run to be held against; the one that is used lies in $work/baseline.json.
read_baseline() {
  baseline_fault=
  if [[ ! -e inputs/baseline.json && ! -L inputs/baseline.json ]]; then
    baseline_fault="no run of this fabric and suite had been accepted when this one was planned (make accept)"
  elif [[ ! -f inputs/baseline.json || ! -r inputs/baseline.json ]]; then
    baseline_fault="inputs/baseline.json cannot be read"
  elif ! jq -c . inputs/baseline.json >"$work/baseline.json" 2>"$work/error"; then
    baseline_fault="inputs/baseline.json is damaged: $(jq_said)"
  else
    baseline_fault=$(perch_jq -rn 'import "baseline_faults" as baseline; import "common" as _;
      [inputs] | if length == 1 then [limit(3; .[0] | baseline::faults)] | join("; ") else "it holds \(length) documents instead of one" end' \
      "$work/baseline.json" 2>/dev/null) || baseline_fault="it is not as its schema says"
    [[ -z $baseline_fault ]] || baseline_fault="inputs/baseline.json cannot be used: $baseline_fault"
  fi
  [[ -z $baseline_fault ]] || echo null >"$work/baseline.json"
}

# judge_drift VERDICT RECORDS: against the accepted run that the run was planned with
judge_drift() {
  if [[ -z $baseline_fault ]]; then
    # figures and fabric know no flows, of which a whole plan may have half a gigabyte: one part of it says the rest, too
    jq -c 'del(.rounds)' "$work/parts/0001/light.json" >"$work/fabric.json"
    perch_jq -nc --slurpfile plan "$work/fabric.json" --slurpfile verdict "$1" --slurpfile baseline "$work/baseline.json" \
      -f "$rooms/jq/drift.jq" "$2"
  elif [[ -e inputs/baseline.json || -L inputs/baseline.json ]]; then
    jq -n --arg why "$baseline_fault" '[{ id: "drift/baseline", title: "The accepted run can be read", status: "inconclusive",
      measured: $why, limit: null, unit: null, source: "design, a baseline that cannot be used is never a PASS",
      evidence: ["inputs/baseline.json"],
      remedy: "Put the file of the accepted run there again (runs/baseline), or take it away, and judge again" }]'
  else
    jq -n --arg why "$baseline_fault" '[{ id: "drift", title: "Figures are as in the accepted run", status: "not_judged",
      measured: $why, limit: null, unit: null, source: "design, relative limits against an accepted run", evidence: [], remedy: null }]'
  fi >"$work/drift.json"
}

# conclude VERDICT: with these checks beside its own, and its word drawn anew. jq 1.7 keeps a number's spelling until it is
# calculated with (1E-9), and each jq before has read what another wrote.
conclude() {
  perch_jq -n --slurpfile verdict "$1" --slurpfile seal "$work/seal.json" --slurpfile drift "$work/drift.json" --slurpfile soak "$work/soak.json" \
    'import "word" as word; $verdict[0] | .checks += $soak[0].checks + $seal[0] + $drift[0] | . + ($soak[0] | del(.checks)) | .verdict = (.checks | word::word) | (.. | numbers) |= . + 0' >"$work/concluded.json" &&
    mv -- "$work/concluded.json" "$1"
}
