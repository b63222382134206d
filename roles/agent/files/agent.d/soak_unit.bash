# shellcheck shell=bash
# What keeps a soak running when nobody looks: a transient unit of systemd, or, on a host without it and for a user who may not,
# a session of its own.

readonly SOAK_UNIT=perch-soak.service RESUME_UNIT=perch-soak-resume.service
UNIT_DIR=${PERCH_UNIT_DIR:-/etc/systemd/system}

# systemd keeps it where it is the first process and this user may ask it to.
has_systemd() { [ -d /run/systemd/system ] && [ "$EUID" -eq 0 ] && command -v systemd-run >/dev/null; }

# choose_supervisor run|start: SUPERVISOR becomes systemd or session; what cannot be kept is refused.
choose_supervisor() {
  local state
  [ "$SUPERVISOR" != auto ] || if has_systemd; then SUPERVISOR=systemd; else SUPERVISOR=session; fi
  if [ "$SUPERVISOR" = systemd ]; then
    has_systemd || fail "$EXIT_HOST" "systemd cannot keep the soak on $HOST: it is not the first process here, or user $(id -un) is not root; --supervisor session can"
    state=$(systemctl is-active "$SOAK_UNIT" 2>/dev/null || true)
    case $state in
      active | activating | deactivating | reloading)
        [ -s "$STATE" ] || fail "$EXIT_HOST" "the unit $SOAK_UNIT is $state on $HOST, and belongs to no soak known here ($STATE):" \
          "\`systemctl status $SOAK_UNIT\` says what it is, \`systemctl stop $SOAK_UNIT\` ends it"
        ;;
      failed) systemctl reset-failed "$SOAK_UNIT" || true ;; # of a run that crashed
    esac
  elif [ -n "$NUMA_POLICY" ] && [ "$1" = start ]; then
    command -v numactl >/dev/null || fail "$EXIT_HOST" "a NUMA policy without systemd needs numactl, which is not installed on $HOST"
  fi
}

unit_active() {
  local state
  [ "$SUPERVISOR" = systemd ] && has_systemd || return 1
  state=$(systemctl is-active "$SOAK_UNIT" 2>/dev/null || true)
  [[ $state =~ ^(active|activating|deactivating|reloading)$ ]]
}

end_unit() { ! unit_active || systemctl stop "$SOAK_UNIT" || true; }

# unit_command: the words of systemd-run, one a line. Why each property: systemd.exec(5), systemd.service(5), systemd.kill(5).
unit_command() {
  local -a words=(systemd-run "--unit=$SOAK_UNIT" --collect --quiet "--description=Perch soak of run $RUN"
    "--property=LimitMEMLOCK=infinity" # RDMA pins memory
    # a crash goes on; what the agent has ended itself (usage, host, stopped, disk) does not
    "--property=Restart=on-failure" "--property=RestartSec=2s" "--property=RestartPreventExitStatus=$EXIT_USAGE $EXIT_HOST $EXIT_STOPPED $EXIT_INTERNAL"
    "--property=SuccessExitStatus=$EXIT_STOPPED" # who stops it has not failed
    "--property=StartLimitIntervalSec=10min" "--property=StartLimitBurst=20"
    # the agent ends its keepers in their order; whatever is left after that is killed
    "--property=KillMode=mixed" "--property=TimeoutStopSec=15s"
    "--property=OOMPolicy=continue" # a keeper that the kernel kills is started anew, and the others go on
    "--property=TasksMax=infinity" "--setenv=PATH=$PATH")
  [ -z "$CPUS" ] || words+=("--property=CPUAffinity=$CPUS")
  [ -z "$NUMA_POLICY" ] || words+=("--property=NUMAPolicy=$NUMA_POLICY")
  [ -z "$NUMA_MASK" ] || words+=("--property=NUMAMask=$NUMA_MASK")
  words+=("$here/perch-agent" soak-session --out "$OUT")
  printf '%s\n' "${words[@]}"
}

# resume_unit: the unit that goes on with the soak after a boot, as text
resume_unit() {
  cat <<END
[Unit]
Description=Perch: go on with the soak of run $RUN
Wants=network-online.target
After=network-online.target
ConditionPathExists=$STATE

[Service]
Type=oneshot
$(resume_command)

[Install]
WantedBy=multi-user.target
END
}

# On disk before there is any load, as all that a boot must find (sync_claim).
install_resume_unit() {
  resume_unit >"$UNIT_DIR/$RESUME_UNIT" && systemctl daemon-reload && systemctl enable --quiet "$RESUME_UNIT" || return
  sync -- "$UNIT_DIR/$RESUME_UNIT" "$UNIT_DIR" "$UNIT_DIR"/multi-user.target.wants || true
}

# Whether the resume unit goes on with this host's soak, and not with that of another state file.
resumes_ours() { has_systemd && resume_command | grep -qxFf - "$UNIT_DIR/$RESUME_UNIT" 2>/dev/null; }

resume_command() { printf 'ExecStart="%s" soak-resume --state "%s"\n' "$here/perch-agent" "$STATE"; }

remove_resume_unit() {
  [ -e "$UNIT_DIR/$RESUME_UNIT" ] || return 0
  systemctl disable --quiet "$RESUME_UNIT" || true
  rm -f "$UNIT_DIR/$RESUME_UNIT"
  systemctl daemon-reload || true
}

# session_command: the words before the agent's own in a session, one a line
session_command() {
  printf '%s\n' setsid
  [ -z "$CPUS" ] || printf '%s\n' taskset --cpu-list "$CPUS"
  case $NUMA_POLICY in
    bind) printf '%s\n' numactl "--membind=$NUMA_MASK" ;;
    preferred) printf '%s\n' numactl "--preferred=$NUMA_MASK" ;;
    interleave) printf '%s\n' numactl "--interleave=$NUMA_MASK" ;;
    local) printf '%s\n' numactl --localalloc ;;
  esac
}

# start_supervised: starts the session in OUT. SUPERVISED is its process, or nothing under systemd; false: SUPERVISOR_SAID has why.
start_supervised() {
  local -a words
  SUPERVISED='' SUPERVISOR_SAID=''
  if [ "$SUPERVISOR" = systemd ]; then
    mapfile -t words < <(unit_command)
    if ! SUPERVISOR_SAID=$({ install_resume_unit && "${words[@]}"; } 2>&1); then
      remove_resume_unit
      return 1
    fi
  else
    mapfile -t words < <(session_command)
    ulimit -l unlimited 2>/dev/null || true # RDMA pins memory; who may not raise it has what there is
    "${words[@]}" "$here/perch-agent" soak-session --out "$OUT" </dev/null >>"$OUT/agent.log" 2>&1 &
    SUPERVISED=$!
  fi
}
