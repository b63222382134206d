"""What keeps a soak running: a transient unit of systemd, or a session of its own.

Both run `perch-agent soak-session`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from perch.agent.soak_kept import Session, sync_all

UNIT = "perch-soak.service"
RESUME_UNIT = "perch-soak-resume.service"
UNITS = Path("/etc/systemd/system")

#: Why each: systemd.exec(5), systemd.service(5), systemd.kill(5). A crash goes on; what the agent
#: has ended itself does not. It ends its keepers in their order, and what is left then is killed.
#: A keeper that the kernel kills for its memory is started again, and the others go on.
PROPERTIES = (
    "LimitMEMLOCK=infinity",
    "Restart=on-failure",
    "RestartSec=2s",
    "RestartPreventExitStatus=2 3 4 6",
    "SuccessExitStatus=4",
    "StartLimitIntervalSec=10min",
    "StartLimitBurst=20",
    "KillMode=mixed",
    "TimeoutStopSec=15s",
    "OOMPolicy=continue",
    "TasksMax=infinity",
)


def agent(*words: str) -> list[str]:
    """A command of this very agent."""
    return [sys.executable, "-I", os.path.abspath(sys.argv[0]), *words]  # noqa: PTH100


def on_host(command: str, session: Session) -> str:
    """What a person types there."""
    return f"`{shlex.join(agent(command, '--state', session.state))}`"


def has_systemd() -> bool:
    """It keeps units where it is the first process, and for root."""
    is_first = Path("/run/systemd/system").is_dir() and os.geteuid() == 0
    return is_first and shutil.which("systemd-run") is not None


def _systemctl(*words: str) -> str:
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def unit_state() -> str:
    return _systemctl("is-active", UNIT) if has_systemd() else ""


def is_active(state: str | None = None) -> bool:
    """Now, or as `unit_state` has said."""
    said = unit_state() if state is None else state
    return said in ("active", "activating", "deactivating", "reloading")


def unit_command(session: Session) -> list[str]:
    return [
        "systemd-run", f"--unit={UNIT}", "--collect", "--quiet",
        f"--description=Perch soak of run {session.run}",
        *(f"--property={one}" for one in PROPERTIES), f"--setenv=PATH={os.environ['PATH']}",
        *agent("soak-session", "--out", session.out),
    ]  # fmt: skip


def resume_text(session: Session) -> str:
    """The unit that goes on with the soak after a boot."""
    words = " ".join(f'"{word}"' for word in agent("soak-resume", "--state", session.state))
    return f"""[Unit]
Description=Perch: go on with the soak of run {session.run}
Wants=network-online.target
After=network-online.target
ConditionPathExists={session.state}

[Service]
Type=oneshot
ExecStart={words}

[Install]
WantedBy=multi-user.target
"""


def install_resume(session: Session) -> None:
    """On disk before there is any load, as all that a boot must find. Raises OSError."""
    (UNITS / RESUME_UNIT).write_text(resume_text(session))
    _systemctl("daemon-reload")
    _systemctl("enable", "--quiet", RESUME_UNIT)
    sync_all([UNITS / RESUME_UNIT, UNITS, UNITS / "multi-user.target.wants"])


def remove_resume(state: str) -> None:
    """Where it goes on with the soak of this state file."""
    file = UNITS / RESUME_UNIT
    with contextlib.suppress(OSError):
        if has_systemd() and f"\nConditionPathExists={state}\n" in file.read_text():
            _systemctl("disable", "--quiet", RESUME_UNIT)
            file.unlink()
            _systemctl("daemon-reload")


def end_unit() -> None:
    if is_active():
        _systemctl("stop", UNIT)


def forget_failed() -> None:
    """Of a run that crashed: its name is free again."""
    _systemctl("reset-failed", UNIT)


def begin(session: Session) -> tuple[subprocess.Popen[bytes] | None, str]:
    """Starts the session: its process, none under systemd; and why it could not be."""
    null = subprocess.DEVNULL
    try:
        if session.supervisor != "systemd":
            with (session.folder / "agent.log").open("ab") as log:
                words = agent("soak-session", "--out", session.out)
                return subprocess.Popen(
                    words, stdin=null, stdout=log, stderr=log, start_new_session=True
                ), ""
        install_resume(session)
        done = subprocess.run(unit_command(session), capture_output=True, text=True, check=False)
    except OSError as error:
        return None, f"{error.filename}: {error.strerror}"
    return None, done.stderr.strip() if done.returncode else ""
