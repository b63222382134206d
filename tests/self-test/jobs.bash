# shellcheck shell=bash disable=SC2154  # run sets them
# Work side by side, on as many processors as there are, told in order.

declare -A running=()

end_jobs() {
  local pid
  # a job is a process group of its own: nothing of it outlives us
  for pid in "${!running[@]}"; do kill -- "-$pid" 2>/dev/null || :; done
  wait || :
}

# side_by_side WORK TELL ITEM...: WORK ITEM in the background, PERCH_TEST_JOBS of them at once; TELL ITEM in the items' order,
# each as soon as it and all before it are done.
side_by_side() {
  local do=$1 tell=$2 pid next=0 item
  shift 2
  local -a items=("$@")
  local -A finished=()
  for item in "${items[@]}"; do
    if ((${#running[@]} >= PERCH_TEST_JOBS)); then one_done; fi
    set -m
    "$do" "$item" </dev/null &
    set +m
    running[$!]=$item
  done
  while ((${#running[@]})); do one_done; done
}

# Waits for one job and tells whatever can be told now. Its exit does not matter: the result that it left does.
one_done() {
  pid=
  wait -n -p pid "${!running[@]}" || :
  finished[${running[$pid]}]=1
  unset "running[$pid]"
  while ((next < ${#items[@]})) && [[ -n ${finished[${items[next]}]-} ]]; do
    "$tell" "${items[next]}"
    next=$((next + 1))
  done
}
