# shellcheck shell=bash
# The sampler of a soak: at the start, at each interval and at the end one line in samples.jsonl (perch.sample/1): counters, links,
# temperatures, and what each process of ours holds. A process of its own, so that nothing that the agent does makes a sample late.
# It starts one process a sample (pgrep), one more where a card has counters of its own (ethtool), and one to reach the disk (sync).

# Lines that wait in memory while the disk takes none: some 3 KB each, 16 hours of minutes. Later ones are dropped, and counted.
readonly PENDING_MAX=1000

# Milliseconds since this host booted, asleep or not; wall clocks are stepped, this one is not.
uptime_ms() {
  read_first /proc/uptime
  LINE=${LINE%% *}
  UPTIME_MS=$((10#${LINE/./} * 10)) # it has hundredths
}

boot_id() {
  read_first /proc/sys/kernel/random/boot_id || true
  BOOT=$LINE
}

# passed: milliseconds since the first turn began, in PASSED_MS; below 0 before it. control/clock holds since when.
passed() {
  uptime_ms
  PASSED_MS=$((CLOCK_PASSED_MS + UPTIME_MS - CLOCK_UPTIME_MS))
}

# link_states: of NETDEVS and RDMA_PORTS, as members of a JSON object in LINKS
link_states() {
  local name file members
  LINKS=''
  for name in "${NETDEVS[@]}"; do
    members=''
    for file in operstate carrier_changes speed; do
      if ! read_first "$SYS_NET/$name/$file" || [[ ! $LINE =~ ^[a-z0-9-]+$ ]]; then continue; fi
      members+="${members:+, }\"$file\": \"$LINE\""
    done
    LINKS+="${LINKS:+, }\"$name\": {$members}"
  done
  for name in "${RDMA_PORTS[@]}"; do
    members=''
    for file in state phys_state rate; do
      if ! read_first "$SYS_RDMA/${name%/*}/ports/${name#*/}/$file" || [[ ! $LINE =~ ^[A-Za-z0-9_:.\ /\(\)]+$ ]]; then continue; fi
      members+="${members:+, }\"$file\": \"$LINE\""
    done
    LINKS+="${LINKS:+, }\"$name\": {$members}"
  done
}

# find_sensors: the files that tell a temperature (Documentation/hwmon/sysfs-interface: millidegrees), and a name of each, into
# SENSORS. Two chips of one kind have the name of their device behind it.
find_sensors() {
  local dir file name device
  local -A seen=()
  SENSORS=()
  for dir in /sys/class/hwmon/hwmon*; do
    if ! read_first "$dir/name" || [[ ! $LINE =~ $SAFE_NAME ]]; then continue; fi
    name=$LINE
    if [ -n "${seen[$name]:-}" ]; then
      device=$(readlink -f "$dir/device" || true)
      name+=".${device##*/}"
    fi
    seen[$name]=1
    [[ $name =~ $SAFE_NAME ]] || continue
    for file in "$dir"/temp*_input; do
      [ ! -e "$file" ] || SENSORS[$file]=$name/$(basename "$file" _input)
    done
  done
}

# temperatures: in TEMPERATURES, as members of a JSON array. A sensor that does not answer is left out.
temperatures() {
  local file sign
  TEMPERATURES=''
  for file in "${!SENSORS[@]}"; do
    if ! read_first "$file" || [[ ! $LINE =~ ^-?[0-9]{1,9}$ ]]; then continue; fi
    sign=${LINE%%[0-9]*} LINE=${LINE#-}
    printf -v LINE '%s%d.%03d' "$sign" $((LINE / 1000)) $((LINE % 1000))
    TEMPERATURES+="${TEMPERATURES:+, }{\"name\": \"${SENSORS[$file]}\", \"celsius\": $LINE}"
  done
}

# process ROLE FLOW PID: what it holds, added to PROCESSES; nothing if it has ended meanwhile.
process() {
  local flow=null handles=null
  local -a stat files
  read_first "/proc/$3/stat" || return 0
  read -ra stat <<<"${LINE##*) }" # from the state on: the name before it may hold anything
  [ "${stat[0]}" != Z ] || return 0
  [ "$2" = - ] || flow="\"$2\""
  files=("/proc/$3/fd/"*)
  [ ! -L "${files[0]}" ] || handles=${#files[@]}
  PROCESSES+="${PROCESSES:+, }{\"role\": \"$1\", \"flow\": $flow, \"pid\": $3, \"start\": \"${stat[19]}\", "
  PROCESSES+="\"resident_bytes\": $((stat[21] * PAGE)), \"handles\": $handles}"
}

# processes: of the groups in control/children (role, flow, number of its leader, timeout), the agent and this one, in PROCESSES.
# The leader's child is what was started; what that has started is a server's job, or a keeper's measurer.
processes() {
  local role flow group pid groups=''
  local -A roles=() flows=()
  local -a stat
  PROCESSES=''
  while read -r role flow group; do
    roles[$group]=$role flows[$group]=$flow
    groups+=${groups:+,}$group
  done <"$OUT/control/children"
  if [ -n "$groups" ]; then
    while read -r pid; do
      read_first "/proc/$pid/stat" || continue
      read -ra stat <<<"${LINE##*) }"
      group=${stat[2]:-}
      if [ "$pid" = "$group" ] || [ -z "${roles[${group:-0}]:-}" ]; then continue; fi
      role=${roles[$group]}
      [ "${stat[1]}" = "$group" ] || case $role in serve) role=job ;; *) role=measurer ;; esac
      process "$role" "${flows[$group]}" "$pid"
    done < <(pgrep -g "$groups" || true)
  fi
  process agent - "$PPID"
  process sampler - "$$"
}

# take_sample: one line, in SAMPLE
take_sample() {
  local time=${EPOCHREALTIME/,/.} uptime
  uptime_ms
  printf -v uptime '%d.%03d' $((UPTIME_MS / 1000)) $((UPTIME_MS % 1000))
  SAMPLE_NUMBER=$((SAMPLE_NUMBER + 1))
  devices_for "${ALL_DEVICES[@]}"
  reading
  link_states
  temperatures
  processes
  SAMPLE="{\"schema\": \"perch.sample/1\", \"run\": \"$RUN\", \"host\": \"$HOST\", \"number\": $SAMPLE_NUMBER, \"boot_id\": \"$BOOT\", "
  SAMPLE+="\"time_s\": \"$time\", \"uptime_s\": \"$uptime\", \"dropped\": $SAMPLES_DROPPED, \"counters\": {$READING}, "
  SAMPLE+="\"links\": {$LINKS}, \"temperatures\": [$TEMPERATURES], \"processes\": [$PROCESSES]}"
}

# keep_sample: SAMPLE goes to the disk, behind those that wait. What the disk took of a line before it was full is cut off again.
keep_sample() {
  if [ ${#PENDING[@]} -ge "$PENDING_MAX" ]; then
    SAMPLES_DROPPED=$((SAMPLES_DROPPED + 1))
  else
    PENDING+=("$SAMPLE")
  fi
  while [ ${#PENDING[@]} -gt 0 ]; do
    if ! printf '%s\n' "${PENDING[0]}" 2>/dev/null >>"$OUT/samples.jsonl"; then
      truncate --no-create --size="$SAMPLES_SIZE" "$OUT/samples.jsonl" 2>/dev/null || true
      [ ${#PENDING[@]} -gt 1 ] || say "cannot write $OUT/samples.jsonl: up to $PENDING_MAX samples wait in memory until the disk takes them"
      return 0
    fi
    SAMPLES_SIZE=$((SAMPLES_SIZE + ${#PENDING[0]} + 1))
    PENDING=("${PENDING[@]:1}")
  done
  sync "$OUT/samples.jsonl" 2>/dev/null || true
}

# Goes on with the file of a sampler before this one: its lines are counted, and half a line at its end is cut off.
open_samples() {
  local file=$OUT/samples.jsonl
  SAMPLE_NUMBER=0 SAMPLES_DROPPED=0 SAMPLES_SIZE=0 PENDING=()
  [ -s "$file" ] || return 0
  [ "$(tail -c 1 "$file" | od -An -tx1)" = " 0a" ] ||
    truncate --size="-$(tail -n 1 "$file" | wc -c)" "$file" 2>/dev/null || true
  read -r SAMPLE_NUMBER SAMPLES_SIZE < <(wc -lc <"$file")
  [[ $(tail -n 1 "$file") =~ \"dropped\":\ ([0-9]+) ]] && SAMPLES_DROPPED=${BASH_REMATCH[1]}
  [[ $(tail -n 1 "$file") =~ \"number\":\ ([0-9]+) ]] && SAMPLE_NUMBER=${BASH_REMATCH[1]}
  return 0
}

# Until the agent says that it is over; the kernel ends the sampler with the agent. `read` is a wait that costs no process.
soak_sample() {
  local word='' next left
  local -A SENSORS=()
  LC_ALL=C
  PAGE=$(getconf PAGESIZE)
  boot_id
  open_samples
  own_interface
  all_devices
  find_sensors
  exec {bell}<>"$OUT/control/sampler"
  while :; do
    take_sample
    keep_sample
    [ "$word" != end ] || break
    passed
    next=$((PASSED_MS < 0 ? 0 : (PASSED_MS / INTERVAL_MS + 1) * INTERVAL_MS))
    while passed && left=$((next - PASSED_MS)) && [ "$left" -gt 0 ] && [ "$word" != end ]; do
      printf -v left '%d.%03d' $((left / 1000)) $((left % 1000))
      read -rt "$left" -u "$bell" word || true
    done
  done
  [ ${#PENDING[@]} -eq 0 ] || fail "$EXIT_INTERNAL" "the last ${#PENDING[@]} samples could not be written"
}
