# shellcheck shell=bash disable=SC2154  # soak-scheduled sets them
# The runs of a schedule: which are its own, and which of them are kept.

# Only what stands in this list was made by the schedule, and may be removed by it.
note_run() {
  local list=$runs/.perch-soak-$name.runs
  grep -qxF -- "$run" "$list" 2>/dev/null || printf '%s\n' "$run" >>"$list" || say "$list cannot be written: $run will not be removed when it is old"
}

# Runs that later ones are held against, or that a report shows as accepted once: by their folders (index.jsonl) and by their names.
accepted_runs() {
  local file
  shopt -s nullglob
  for file in "$runs"/baseline/*/baseline.json "$runs"/baseline/*/history.jsonl; do jq -er .run "$file" || return; done
  [[ ! -e $runs/index.jsonl ]] || jq -er 'select(.accepted != null) | .folder' "$runs/index.jsonl" || [[ $? -eq 4 ]] || return
  shopt -u nullglob
}

# run_of FOLDER: the run's name in its plan, which stands before the rounds of it: a large plan is not read to its end
run_of() {
  [[ -f $1/plan.json && ! -L $1/plan.json ]] || return
  jq -ner --stream 'reduce (label $stop | inputs | if .[0][0] == "rounds" then break $stop else . end | select(length == 2)) as $e ({}; setpath($e[0]; $e[1]))
    | select(.schema == "perch.plan/2") | .run | strings' "$1/plan.json" 2>/dev/null
}

# Whether an agent's last word of the run is that it runs, or a verdict's.
still_runs() {
  local file
  for file in "$1"/verdict.json "$1"/raw/*/agent.json; do
    [[ -f $file ]] || continue
    if ! jq -e '[.soak | objects | .running] != [true] and .state != "running"' "$file" >/dev/null 2>&1; then return 0; fi
  done
  return 1
}

# Removes what is older than the newest `keep` runs of the schedule. Only after a run that was measured: one that was not
# says nothing of those before it, which may be all that there is.
remove_old() {
  local accepted folder id seen=0
  ((keep > 0)) && [[ -n $run && -z $why ]] || return 0
  if ! accepted=$(accepted_runs 2>/dev/null); then
    say "no old run is removed: what $runs says of accepted runs cannot be read"
    return
  fi
  while read -r folder; do
    # a name is no path
    [[ $folder == [0-9]+([A-Za-z0-9._-]) && -d $runs/$folder && ! -L $runs/$folder ]] || continue
    seen=$((seen + 1))
    if ((seen <= keep)) || [[ $folder == "$run" ]]; then continue; fi
    id=$(run_of "$runs/$folder") || continue
    if grep -qxF -e "$folder" -e "$id" <<<"$accepted" || still_runs "$runs/$folder"; then continue; fi
    if rm -rf --one-file-system -- "${runs:?}/$folder"; then say "removed $folder, of which $keep newer ones are kept"; else say "$runs/$folder cannot be removed"; fi
  done < <(sort -ru "$runs/.perch-soak-$name.runs" 2>/dev/null)
}
