# shellcheck shell=bash
# Children: each in a process group of its own, under a deadline, and never alive longer than the agent.

# A process that ignores SIGTERM has this long before SIGKILL: perch closes its connections within its 2 s of farewell.
readonly KILL_AFTER=5

# spawn DEADLINE STDOUT STDERR COMMAND...: starts it and sets CHILD. timeout(1) makes the group and ends it at the
# deadline. Should the agent be killed, the kernel sends timeout a SIGTERM, which it passes to the group; should timeout
# be killed too, the command is.
spawn() {
  local deadline=$1 out=$2 err=$3
  shift 3
  { : >"$out" && : >"$err"; } 2>/dev/null || fail_write "$out"
  setpriv --pdeathsig TERM timeout --kill-after="$KILL_AFTER" "$deadline" setpriv --pdeathsig KILL "$@" \
    </dev/null >"$out" 2>"$err" &
  CHILD=$!
}

# our_child PID [STATE]: of this process, in a state of that pattern. bash collects who has ended, and then the number is anybody's: where
# 32,768 are all, a busy host gives each again within a minute.
our_child() {
  local LINE
  # shellcheck disable=SC2053  # a pattern
  read_first "/proc/$1/stat" && [[ ${LINE##*) } = ${2:-?}" $BASHPID "* ]]
}

# alive PID: a child of ours that has not ended
alive() { our_child "$1" '[!ZX]'; }

# wait_child PID: its exit status in STATUS; nothing of its group is left. `wait` alone would end at any trapped signal.
wait_child() {
  STATUS=0
  wait "$1" 2>/dev/null || STATUS=$? # quietly: bash would say who was killed
  kill_group "$1"
}

# kill_group PID: what the command left behind. As long as something of the group is there nobody else gets its number; who has it and is no
# child of ours is a stranger.
kill_group() {
  if our_child "$1" || [ ! -e "/proc/$1" ]; then kill -KILL -- "-$1" 2>/dev/null || true; fi
}

# timer SECONDS: a child that ends then, to wait for beside others.
timer() {
  setpriv --pdeathsig KILL sleep "$1" &
  CHILD=$!
}

# wait_any SECONDS PID...: until one of the children has ended; false when the time has passed. `wait -n` misses a child
# that ends between the look and the call, so it is given slices, ever longer ones: a miss then costs little, and a long
# wait starts few processes beside a measurement. The first is a fiftieth.
wait_any() {
  local end=$((${EPOCHREALTIME//[.,]/} + $1 * 1000000)) slice=$(($1 * 20)) left pid
  shift
  while :; do
    for pid in "$@"; do alive "$pid" || return 0; done
    left=$(((end - ${EPOCHREALTIME//[.,]/}) / 1000))
    [ "$left" -gt 0 ] || return 1
    if [ "$slice" -gt "$left" ]; then slice=$left; fi
    timer "$((slice / 1000)).$(printf '%03d' $((slice % 1000)))"
    wait -n "$CHILD" "$@" || true
    end_child "$CHILD"
    slice=$((slice * 2))
  done
}

end_child() {
  ! alive "$1" || kill -TERM "$1" 2>/dev/null || true
  wait_child "$1"
}

# Everything that the agent has started, at its own end. bash loses a SIGTERM that reaches its child between fork and exec:
# what has not ended after the grace that all others keep is killed.
end_children() {
  local pid end=$((EPOCHSECONDS + KILL_AFTER + 2))
  local -a pids
  mapfile -t pids < <(jobs -p)
  for pid in "${pids[@]}"; do ! alive "$pid" || kill -TERM "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do
    while alive "$pid" && [ "$EPOCHSECONDS" -le "$end" ]; do sleep 0.02; done
    ! alive "$pid" || kill -KILL "$pid" 2>/dev/null || true
    wait_child "$pid"
  done
}

# The signal behind a shell's exit status, by name; nothing for an ordinary exit.
signal_of() {
  [ "$1" -le 128 ] || kill -l $(($1 - 128)) 2>/dev/null || true
}

# The process behind a listening TCP socket is of this group: a stranger on the port must not be measured.
group_listens() {
  local group=$1 port=$2 inodes pid fd
  inodes=$(awk -v port="$(printf '%04X' "$port")" '
    $4 == "0A" { n = split($2, part, ":"); if (part[n] == port) print "socket:[" $10 "]" }' /proc/net/tcp /proc/net/tcp6)
  [ -n "$inodes" ] || {
    group_listens_by_cm "$group" "$port"
    return
  }
  for pid in $(pgrep -g "$group"); do
    for fd in "/proc/$pid/fd/"*; do
      grep -qxF "$(readlink "$fd")" <<<"$inodes" && return 0
    done
  done
  return 1
}

# A server of the RDMA connection manager (perftest -R) has no socket; the kernel lists its identifiers.
group_listens_by_cm() {
  local pids
  compgen -G '/sys/class/infiniband/*' >/dev/null && command -v rdma >/dev/null || return 1
  pids=$(pgrep -g "$1" | jq -Rn '[inputs | tonumber]')
  rdma -j resource show cm_id 2>/dev/null | jq -e --argjson pids "$pids" --arg port ":$2" '
    any(.[]; .state == "LISTEN" and (.pid as $pid | $pids | index($pid) != null) and (."src-addr" // "" | endswith($port)))' >/dev/null
}

# Until an external server listens; false when it ended or did not within the seconds given. There is no event to wait
# for (the tools say nothing that is not buffered), so the kernel's table is looked at 20 times a second.
wait_listening() {
  local group=$1 port=$2 end=$((EPOCHSECONDS + $3))
  while alive "$group" && [ "$EPOCHSECONDS" -le "$end" ]; do
    group_listens "$group" "$port" && return 0
    sleep 0.05
  done
  return 1
}
