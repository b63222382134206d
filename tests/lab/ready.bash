# shellcheck shell=bash disable=SC2154  # lock: lab sets it
# When a machine counts as ready: its setup has ended, it answers by ssh, and its clock runs as the host's does and shows its time.

# Seconds from power to ready. An emulated machine on a calm host takes about 35.
: "${PERCH_LAB_BOOT_LIMIT:=300}"

# A clock off by more than this, in thousandths, makes every figure of the machine worthless: refuse.
readonly CLOCK_TOLERANCE=50
# Seconds over which the clocks are compared: first try, and another where a busy host may have blurred that.
readonly CLOCK_TRIES=(5 20)
# Microseconds by which a clock may differ from the host's: with that, those of two guests differ by less than the second that a verdict
# allows (clock/ends).
readonly CLOCK_APART=400000
# Seconds for it. A calm host needs one look, a setting and another look.
readonly CLOCK_SET_LIMIT=60

# How often this machine has become ready: once a boot, and at each restart of perch-lab.service.
ready_count() { grep -ac "perch-lab: ready" "$1.console" || true; }

# The console's last lines, without the colours and the carriage returns that a terminal would need.
console_tail() {
  sed 's/\x1b[[(][0-9;?]*[A-Za-z]//g; s/[\r\x1b]//g' "$1.console" 2>/dev/null | grep -v '^[[:blank:]]*$' |
    tail -n 15 | sed "s/^/  $1| /" >&2
}

# not_ready HOST REASON...: says why, with the console's last lines, and has the others not waited for
not_ready() {
  local host=$1
  shift
  : >failed
  say "$host: $*. The last lines of its console:"
  console_tail "$host"
  return 1
}

# wait_ready HOST COUNT: until it has become ready more than COUNT times.
wait_ready() {
  local host=$1 count=$2 end=$((SECONDS + PERCH_LAB_BOOT_LIMIT)) word
  until [ "$(ready_count "$host")" -gt "$count" ]; do
    [ ! -e failed ] || return 1 # the other one: no need to wait for this
    if ! running "$host.keeper"; then
      not_ready "$host" "the machine is dead, $(cat "$host.end" 2>/dev/null || echo "and so is its keeper")$(sed '1s/^/: /' "$host.qemu.log")"
      return
    fi
    if word=$(grep -ao "Kernel panic - .*\|perch-lab: failed: .*\|You are in emergency mode" "$host.console"); then
      not_ready "$host" "it does not come up: ${word//$'\r'/}"
      return
    fi
    if [ "$SECONDS" -ge "$end" ]; then
      not_ready "$host" "not ready after $PERCH_LAB_BOOT_LIMIT s. Raise PERCH_LAB_BOOT_LIMIT if this machine is busy"
      return
    fi
    sleep 0.2
  done
}

# One connection that the later commands share. It is the lab's: no test's mark, none of our files open.
open_connection() {
  local host=$1
  env -u PERCH_TEST_MARK timeout 60 ssh -F ssh_config -f -N -o ControlMaster=yes -o "ControlPath=$host.mux" \
    -l root "$host" </dev/null >"$host.ssh.log" 2>&1 {lock}>&- ||
    not_ready "$host" "no ssh to it: $(<"$host.ssh.log")"
}

# Sets REPLY to hundredths of a second since this machine's boot; the guest's kernel writes its own the same way.
host_uptime() {
  read -r REPLY _ </proc/uptime
  REPLY=$((10#${REPLY/./}))
}

# ask_guest [TIME]: sets the guest's UPTIME and TIME, and BEFORE and AFTER, the host's time around them; with TIME its clock is set first
ask_guest() {
  local uptime time
  BEFORE=${EPOCHREALTIME/[.,]/}
  echo "${1-}" >&"$ask"
  read -r -t 60 uptime time <&"$answer" || return 1
  AFTER=${EPOCHREALTIME/[.,]/}
  UPTIME=$((10#${uptime/./})) TIME=$((10#${time/[.,]/}))
}

# clock_rate SECONDS: sets RATE, the guest's milliseconds in a second of the host's, over that time
clock_rate() {
  local from guest_from
  ask_guest || return 1
  host_uptime
  from=$REPLY guest_from=$UPTIME
  sleep "$1"
  ask_guest || return 1
  host_uptime
  RATE=$(((UPTIME - guest_from) * 1000 / (REPLY - from)))
}

check_rate() {
  local host=$1 pause RATE=
  for pause in "${CLOCK_TRIES[@]}"; do
    clock_rate "$pause" || return 1
    if [ $((RATE - 1000)) -le "$CLOCK_TOLERANCE" ] && [ $((1000 - RATE)) -le "$CLOCK_TOLERANCE" ]; then
      echo "$RATE" >"$host.clock"
      return 0
    fi
  done
  WHY="its clock counts $RATE ms in a second of this machine's, more than $((CLOCK_TOLERANCE / 10)) % off; no figure of it would mean anything. Start the lab again"
  return 1
}

# A machine reads whole seconds from its battery's clock as it boots. A busy host may blur the setting and the look: both are tried again.
set_clock() {
  local end=$((SECONDS + CLOCK_SET_LIMIT))
  ask_guest || return 1
  until [ $((TIME - BEFORE)) -le "$CLOCK_APART" ] && [ $((AFTER - TIME)) -le "$CLOCK_APART" ]; do
    if [ "$SECONDS" -ge "$end" ]; then
      WHY="its clock is between $((TIME - AFTER)) and $((TIME - BEFORE)) us ahead of this machine's, $CLOCK_SET_LIMIT s after it was first set. See how busy this machine is"
      return 1
    fi
    ask_guest "$EPOCHREALTIME" && ask_guest || return 1
  done
}

# Its clock runs as the host's does, and shows its time.
check_clock() {
  local host=$1 ask answer BEFORE AFTER UPTIME TIME WHY="it does not answer while its clock is compared"
  # one shell of the guest answers each line, and starts nothing to do so
  coproc GUEST { ssh -F ssh_config -o "ControlPath=$host.mux" -l root "$host" 'while read -r time; do
    [ -z "$time" ] || date --set="@$time" >/dev/null
    read -r uptime _ </proc/uptime
    echo "$uptime $EPOCHREALTIME"
  done'; }
  # bash forgets the coprocess's own descriptors as soon as it ends
  exec {answer}<&"${GUEST[0]}" {ask}>&"${GUEST[1]}"
  if ! check_rate "$host" || ! set_clock; then not_ready "$host" "$WHY"; fi
}

wait_for_host() { wait_ready "$2" "$1" && open_connection "$2" && check_clock "$2"; }

# wait_for_hosts [--after COUNT] HOST...: side by side; every host that fails says why
wait_for_hosts() {
  local after=0 failed=0 host pid
  local -a waiting=()
  if [ "$1" = --after ]; then
    after=$2
    shift 2
  fi
  rm -f failed
  for host in "$@"; do
    wait_for_host "$after" "$host" &
    waiting+=($!)
  done
  for pid in "${waiting[@]}"; do wait "$pid" || failed=1; done
  return "$failed"
}
