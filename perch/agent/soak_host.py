"""A host's one soak: a link to where it lies, who runs it, and its unit of systemd."""

from __future__ import annotations

import contextlib
import os
import pkgutil
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perch.agent.asking import alive, mark
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import write_whole
from perch.programs import run

UNIT = Path("/etc/systemd/system/perch-soak.service")

#: Seconds: a start that fails takes systemd's 90 (DefaultTimeoutStartSec), then the unit's
#: TimeoutStopSec twice. Nothing else that systemctl is asked takes longer.
SYSTEMCTL_S = 120.0


def fail(message: str) -> AgentError:
    return AgentError(Exit.HOST, message)


def held(state: Path) -> Path | None:
    """Where the host's soak lies; None where it has none."""
    try:
        return state.readlink()
    except OSError:
        return None


def _runner(state: Path) -> Path:
    return state.with_name(f"{state.name}.pid")


def running(state: Path) -> int | None:
    """A pidfd of the agent that runs it, to be closed; None where none does."""
    try:
        return alive(_runner(state).read_text())
    except OSError:
        return None


def runs(state: Path) -> bool:
    found = running(state)
    if found is not None:
        os.close(found)
    return found is not None


def take(state: Path, out: Path) -> None:
    """This process runs it from now on. Raises AgentError: it was stopped.

    Who stops it removes the link, and then looks for the process: one of both sees the other.
    """
    write_whole(_runner(state), mark().encode())
    if held(state) != out:
        _runner(state).unlink(missing_ok=True)
        raise fail(f"there is no soak in {out} to go on with ({state})")


def release(state: Path, out: Path) -> None:
    """It is over: nothing goes on with it, and the host may have another one."""
    if has_unit(out):
        try:
            systemctl("--no-reload", "disable", "--quiet", UNIT.name)
        except AgentError as error:  # without its unit and its state nothing goes on, either
            say(error.message)
        UNIT.unlink(missing_ok=True)
    for path in (state, _runner(state)):
        path.unlink(missing_ok=True)


# ---- systemd -------------------------------------------------------------------------------------


def has_systemd() -> bool:
    """It keeps units where it is the first process, and for root."""
    is_first = Path("/run/systemd/system").is_dir() and os.geteuid() == 0
    return is_first and shutil.which("systemctl") is not None


def systemctl(*words: str) -> int:
    """Its exit code. Raises AgentError: it did not end, and was killed."""
    argv = ["systemctl", *words]
    try:
        return run(argv, SYSTEMCTL_S).returncode
    except subprocess.TimeoutExpired:
        why = f"`{shlex.join(argv)}` did not end within {SYSTEMCTL_S:g} s"
        raise fail(f"{why}; see that systemd answers: `systemctl status`") from None


def has_unit(out: Path) -> bool:
    """Whether systemd runs this soak."""
    with contextlib.suppress(OSError):
        return f'"{out}"' in UNIT.read_text()
    return False


def unit_text(state: Path, options: Mapping[str, Any]) -> str:
    words = [sys.executable, "-I", os.path.abspath(sys.argv[0]), "soak-session"]  # noqa: PTH100
    words += [word for key, value in options.items() for word in (f"--{key}", str(value))]
    text = (pkgutil.get_data("perch.agent", UNIT.name) or b"").decode()
    command = " ".join(f'"{word}"' for word in words)
    return text.format(state=state, command=command, path=os.environ["PATH"])


def start_unit(state: Path, options: Mapping[str, Any]) -> int:
    """The exit code of its start. Raises AgentError."""
    if systemctl("is-active", "--quiet", UNIT.name) == 0:
        raise fail(
            f"the unit {UNIT.name} is active on {options['host']}, and belongs to no soak of this"
            f" state: `systemctl stop {UNIT.name}` ends it"
        )
    try:
        UNIT.write_text(unit_text(state, options))
    except OSError as error:
        why = f"cannot write {UNIT}: {error.strerror}; use --supervisor session"
        raise fail(why) from None
    systemctl("daemon-reload")
    systemctl("enable", "--quiet", UNIT.name)
    # a boot must find it, and there may be one as soon as there is load
    places = {str(Path(options[key]).parent) for key in ("state", "plan", "out")} | {str(UNIT)}
    run(["sync", "--file-system", *places], SYSTEMCTL_S)
    return systemctl("start", UNIT.name)


def stop_unit(out: Path) -> None:
    """Where it is this soak's. Raises AgentError."""
    if has_unit(out):
        systemctl("stop", UNIT.name)


def notify() -> None:
    """Tells systemd, where that began it, that it measures."""
    if "NOTIFY_SOCKET" in os.environ:
        run(["systemd-notify", "--ready"], SYSTEMCTL_S)
