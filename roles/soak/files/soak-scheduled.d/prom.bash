# shellcheck shell=bash disable=SC2154  # soak-scheduled sets them
# For the node exporter's textfile collector: perch.prom of this run, and what only the schedule knows.

# The run's own text, where it is of this run and says what we say.
own_prom() {
  local file=$runs/$run/perch.prom
  [[ -n $run ]] && fresh "$file" && grep -qxF "perch_verdict{verdict=\"$verdict\"} 1" "$file" && cat -- "$file"
}

is() { if [[ $1 == "$2" ]]; then echo 1; else echo 0; fi; }

# In its place: no figure of an earlier run may look like one of today.
no_prom() {
  local known
  printf '# HELP perch_verdict %s\n# TYPE perch_verdict gauge\n' "1 at the run's verdict, 0 at the others."
  for known in PASS FAIL INCONCLUSIVE; do printf 'perch_verdict{verdict="%s"} %s\n' "$known" "$(is "$known" "$verdict")"; done
}

gauge() { printf '# HELP %s %s\n# TYPE %s gauge\n%s%s %s\n' "$1" "$2" "$1" "$1" "$3" "$4"; }

schedule_prom() {
  gauge perch_schedule_info "The schedule, and the folder of the run that it has begun (empty: none); the value is always 1." \
    "{schedule=\"$name\",folder=\"$run\"}" 1
  gauge perch_schedule_passed "1 where the scheduled run was measured to its end and passed." "{schedule=\"$name\"}" "$(is PASS "$verdict")"
  gauge perch_schedule_start_timestamp_seconds "When the schedule has begun, since 1970." "{schedule=\"$name\"}" "$began"
  gauge perch_schedule_end_timestamp_seconds "When it was over and this file was written, since 1970." "{schedule=\"$name\"}" "$EPOCHSECONDS"
}

# The exporter reads *.prom and nothing else, and is another user: the file appears whole, and readable.
export_prom() {
  local fresh_file
  [[ -n $textfile ]] || return 0
  fresh_file=$(mktemp "$textfile/.perch.prom.XXXXXX" 2>/dev/null) || return
  if { own_prom || no_prom; } >"$fresh_file" && schedule_prom >>"$fresh_file" && chmod 644 -- "$fresh_file" && mv -- "$fresh_file" "$textfile/perch.prom"; then
    return 0
  fi
  rm -f -- "$fresh_file"
  return 1
}
