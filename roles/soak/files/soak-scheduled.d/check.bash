# shellcheck shell=bash disable=SC2154  # soak-scheduled sets them
# What a schedule is asked before it is installed, as who will run it.

fault() {
  say "$1"
  faults=$((faults + 1))
}

# asked KIND VARIABLE TEXT: what systemd refuses, in its own words; a calendar that never comes is refused, too
asked() {
  local said
  # each stands in a line of a unit, where % begins a specifier
  if [[ $3 == *[[:cntrl:]%]* ]]; then
    fault "$2 is \"$3\", which is more than a line of a unit can hold"
  elif ! said=$(LC_ALL=C.UTF-8 systemd-analyze "$1" -- "$3" 2>&1); then
    fault "$2 is \"$3\"; systemd says: $said"
  elif [[ $said == *'Next elapse: never'* ]]; then
    fault "$2 is \"$3\"; systemd says: Next elapse: never"
  elif [[ $1 == calendar ]]; then
    sed -n 's/^ *\(Next elapse: .*\)/\1/p' <<<"$said"
  fi
}

# whole PATH WHAT TEST: a whole path of something that is there, and more (test's letter)
whole() {
  if [[ $1 != /* || ($3 == x && ! -f $1) || ($3 == w && ! -d $1) ]] || ! test "-$3" "$1"; then
    fault "$2: $1 is no $4 on this machine, by its whole path, or not for $(id -un)"
  fi
}

check_config() {
  local source
  faults=0
  asked calendar soak_schedule_calendar "$calendar"
  asked timespan soak_schedule_delay "$delay"
  whole "$playbook" soak_schedule_playbook f "playbook"
  ((${#inventory[@]} > 0)) || fault "soak_schedule_inventory: there is none"
  for source in "${inventory[@]}"; do whole "$source" soak_schedule_inventory r "file or folder"; done
  ((${#ansible[@]} == 0)) || whole "${ansible[0]}" soak_schedule_ansible x program
  ((${#notify[@]} == 0)) || whole "${notify[0]}" soak_schedule_notify x program
  if [[ -n $textfile ]]; then whole "$textfile" soak_schedule_textfile_dir w "folder that can be written"; fi
  ((keep >= 0)) || fault "soak_schedule_keep is $keep; it is at least 0"
  ((limit >= 1 && limit <= 86400)) || fault "soak_schedule_limit is $limit; it is 1 to 86400"
  ((notify_limit >= 1 && notify_limit <= 3600)) || fault "soak_schedule_notify_limit is $notify_limit; it is 1 to 3600"
  ! jq -e '.vars | has("plan_runs_dir") or has("soak_runs_dir")' "$config" >/dev/null ||
    fault "soak_schedule_vars: the runs' folder is soak_schedule_runs_dir, and neither plan_runs_dir nor soak_runs_dir"
  return $((faults > 0 ? 2 : 0))
}
