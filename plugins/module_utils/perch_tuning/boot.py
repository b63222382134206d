# SPDX-License-Identifier: Apache-2.0
"""Applies the settings again at boot: a unit, a small script, and a file for each variable."""

from __future__ import annotations

from .base import System, Trouble
from .values import Directory, WholeFile

HOME = "/etc/perch"
LINES = HOME + "/host_tune.d"
SCRIPT = HOME + "/perch-tune"
UNIT = "/etc/systemd/system/perch-tune.service"
WANTS = "/etc/systemd/system/multi-user.target.wants"

UNIT_TEXT = f"""\
# Written by perch's role host_tune; its tasks_from revert removes it.
[Unit]
Description=Settings of perch's role host_tune
Wants=network-online.target
After=network-online.target network.target systemd-sysctl.service tuned.service
ConditionPathExists={LINES}

[Service]
Type=oneshot
ExecStart=/bin/bash {SCRIPT}
TimeoutStartSec=180

[Install]
WantedBy=multi-user.target
"""

# The lines are words between tabs, and nothing in them is ever read by the shell as a program.
SCRIPT_TEXT = f"""\
#!/bin/bash
# Written by perch's role host_tune: applies what the files in {LINES} say.
# A line is words between tabs:
#   write PATH VALUE | wait PATH | run PROGRAM ARGUMENT...
#   irq INTERFACE NAME ORDINAL CPUS | tos DEVICE PORT VALUE
set -uo pipefail
# a NIC's driver may come after the network; all lines together wait no longer
ends=$((SECONDS + 30))
failed=0

wait_for() {{ while [ ! -e "$1" ] && [ "$SECONDS" -lt "$ends" ]; do sleep 0.2; done; }}
put() {{ wait_for "$1" && printf '%s\\n' "$2" >"$1"; }}

# the interrupts of a NIC are below the function that owns them, and those of one name count from 0
irq() {{
  local directory number actions left=$3
  wait_for "/sys/class/net/$1/device"
  directory=$(realpath "/sys/class/net/$1/device") || return
  while [[ -n $directory && ! -d $directory/msi_irqs ]]; do directory=${{directory%/*}}; done
  for number in $(printf '%s\\n' "$directory"/msi_irqs/* | sed 's|.*/||' | sort -n); do
    [ -e "/proc/irq/$number/smp_affinity_list" ] || continue
    actions=$(<"/sys/kernel/irq/$number/actions") || continue
    [ "${{actions%%,*}}" = "$2" ] || continue
    if [ "$left" -eq 0 ]; then
      printf '%s\\n' "$4" >"/proc/irq/$number/smp_affinity_list"
      return
    fi
    left=$((left - 1))
  done
  return 1
}}

# rdma_cm's defaults are reached through a directory of configfs, which stays:
# the value cannot be read without it
tos() {{
  local base=/sys/kernel/config mounted="" status=0
  wait_for "/sys/class/infiniband/$1"
  modprobe -q rdma_cm
  if [ ! -d "$base/rdma_cm" ]; then
    base=$(mktemp -d) && mounted=$base
    mount -t configfs perch "$base" || status=1
  fi
  {{
    mkdir -p "$base/rdma_cm/$1" &&
      printf '%s\\n' "$3" >"$base/rdma_cm/$1/ports/$2/default_roce_tos"
  }} || status=1
  [ -z "$mounted" ] || {{ umount "$mounted" && rmdir "$mounted"; }}
  return "$status"
}}

for file in {LINES}/*; do
  [ -f "$file" ] || continue
  while IFS=$'\\t' read -r -a words; do
    case ${{words[0]-}} in
      write) put "${{words[1]}}" "${{words[2]}}" ;;
      wait) wait_for "${{words[1]}}" ;;
      run) "${{words[@]:1}}" </dev/null ;;
      irq) irq "${{words[1]}}" "${{words[2]}}" "${{words[3]}}" "${{words[4]}}" ;;
      tos) tos "${{words[1]}}" "${{words[2]}}" "${{words[3]}}" ;;
      "" | \\#*) ;;
      *) false ;;
    esac || {{ echo "perch-tune: ${{file##*/}}: not applied: ${{words[*]}}" >&2 && failed=1; }}
  done <"$file"
done
exit "$failed"
"""


def _text(setting: str, lines: list[list[str]]) -> str:
    for word in (word for words in lines for word in words):
        if not word or any(character in word for character in "\t\n\0"):
            raise Trouble(
                f"{word!r} cannot be applied at boot: it is empty, or holds a tab or a line end",
                "correct the value",
            )
    return f"# host_tune_{setting}\n" + "".join("\t".join(words) + "\n" for words in lines)


def wishes(system: System, lines: dict[str, list[list[str]]]) -> list[tuple]:
    """The files that make the lines of each variable apply at boot,
    in the order in which they are to be made.
    """
    files = {setting: _text(setting, own) for setting, own in lines.items() if own}
    if not files:
        return []
    if not system.exists("/etc/systemd/system"):
        raise Trouble(
            "this host has no systemd, so these are not set again at its next boot: "
            f"{', '.join(files)}",
            "tune it again after a boot",
        )
    common = [
        (Directory(system, path=HOME), "present"),
        (Directory(system, path=LINES), "present"),
        (WholeFile(system, path=SCRIPT), WholeFile.holding(SCRIPT_TEXT, 0o755)),
        (WholeFile(system, path=UNIT), WholeFile.holding(UNIT_TEXT)),
        (Directory(system, path=WANTS), "present"),
        (WholeFile(system, path=f"{WANTS}/perch-tune.service"), {"link": UNIT}),
    ]
    return [("boot", *wish) for wish in common] + [
        (setting, WholeFile(system, path=f"{LINES}/{setting}"), WholeFile.holding(text))
        for setting, text in files.items()
    ]
