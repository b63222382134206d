# shellcheck shell=bash
# The faults, one function each: planted, there for a while, taken away.

# The processes of beta's `perch serve`: its group has serve, which leads it, and a job for each client.
beta_group() { pgrep -of "perch serve --bind 192.0.2.2 "; }
beta_serve() { pgrep -g "$(beta_group)" -x perch; }
beta_jobs() { pgrep -g "$(beta_group)" -x perch-job; }

kill_server() {
  planted server_killed found beta "gap" "server killed and started again"
  local pids
  pids=$(
    beta_serve
    beta_jobs
  )
  # shellcheck disable=SC2086
  kill -KILL $pids
  wait_for 20 beta_serve
  taken_away
}

cut_network() {
  planted network_cut found beta "gap" "network cut for 5 s"
  ip -n "$NET-alpha" link set p0 down
  sleep 5
  ip -n "$NET-alpha" link set p0 up
  taken_away
}

stall_server() {
  planted "stall_$1" found beta "stall" "server stands still for 50 ms"
  local pids
  pids=$(beta_jobs)
  # shellcheck disable=SC2086
  kill -STOP $pids
  sleep 0.05
  # shellcheck disable=SC2086
  kill -CONT $pids
  taken_away
}

flip_byte() {
  planted byte_flipped found beta "corrupt" "one byte flipped in a buffer that was received"
  touch "$DIR/flip"
  wait_for 30 test ! -e "$DIR/flip"
  taken_away
}

# Whoever started the soak and looks at it ends, with all that it has started.
kill_controller() {
  planted controller_killed none - "" "controller killed"
  set -m
  (while :; do agent alpha status >/dev/null; done) &
  sleep 2
  kill -KILL -- "-$!"
  set +m
  wait "$!" 2>/dev/null || :
  taken_away
}

halve_rate() {
  planted rate_halved found alpha "low rate drift change slow" "rate of alpha's link halved half-way"
  # what alpha sends is 80 Mb/s, and what it answers to beta's probes
  ip netns exec "$NET-alpha" tc qdisc add dev p0 root tbf rate 40mbit burst 64kb latency 50ms
}

fill_disk() {
  planted disk_full said alpha "" "disk of alpha full for 8 s"
  cat /dev/zero >"$RUN_DIR/raw/alpha/fill" 2>/dev/null || :
  # shellcheck disable=SC2317  # wait_for calls it
  said() { grep -qs "No space left" "$RUN_DIR/raw/alpha/agent.log"; }
  if wait_for 20 said; then epoch >"$DIR/disk_full.said"; fi
  sleep 5
  rm -f "$RUN_DIR/raw/alpha/fill"
  taken_away
}

step_clock() {
  planted clock_stepped found beta "clock" "clock of beta stepped by 30 s"
  echo 30 >"$DIR/clock"
}

# All of beta's processes end at once, and it comes back with another boot id.
reboot_beta() {
  local pid
  planted host_rebooted found beta "reboot" "beta rebooted, away for 8 s"
  for pid in $(ip netns pids "$NET-beta"); do kill -KILL "$pid" 2>/dev/null || :; done
  sleep 8
  cat /proc/sys/kernel/random/uuid >"$DIR/boot_id"
  options beta
  # as systemd would
  inside beta unshare --mount bash -c 'mount --bind "$1" /proc/sys/kernel/random/boot_id && shift && exec "$@"' bash "$DIR/boot_id" \
    env "PERCH_TEST_MARK=$MARK" setsid "$AGENT" soak-session --state "$DIR/beta.state" "${OPTIONS[@]}" >/dev/null 2>&1 &
  taken_away
}
