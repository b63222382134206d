"""What a host keeps of its one soak: a state file, and where systemd runs the unit that goes on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pkgutil
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from perch.agent.asking import alive, mark
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import encoded, write_whole
from perch.programs import run

UNIT = Path("/etc/systemd/system/perch-soak.service")

#: Seconds: a start that fails takes systemd's 90 (DefaultTimeoutStartSec), then the unit's
#: TimeoutStopSec twice. Nothing else that systemctl is asked takes longer.
SYSTEMCTL_S = 120.0


class Session(NamedTuple):
    """The host's soak. `begin`: seconds since the epoch when it begins; 0: at once.

    `process`: of the agent that runs it, or was the last to.
    """

    run: str
    host: str
    out: str
    plan: str
    engine: str
    state: str
    supervisor: str = "auto"
    token_file: str = ""
    start_window: int = 60
    begin: int = 0
    duration_s: float = 0.0
    process: str = ""

    @property
    def folder(self) -> Path:
        return Path(self.out)

    @property
    def control(self) -> Path:
        return self.folder / "control"

    def runs(self) -> bool:
        found = alive(self.process)
        if found is not None:
            os.close(found)
        return found is not None

    def claim(self) -> None:
        """Raises AgentError: it cannot be written."""
        write_whole(Path(self.state), encoded(self._asdict()))

    def release(self) -> None:
        """It is over: nothing goes on with it, and the host may have another one."""
        if self.supervisor == "systemd":
            try:
                systemctl("--no-reload", "disable", "--quiet", UNIT.name)
            except AgentError as error:  # without its unit and its state nothing goes on, either
                say(error.message)
            UNIT.unlink(missing_ok=True)
        Path(self.state).unlink(missing_ok=True)

    def sync(self) -> None:
        """What a boot must find is on disk before there is any load: that may end this host."""
        files = [Path(one) for one in (self.state, self.plan, self.token_file) if one]
        files += [files[0].parent, self.control, self.folder, self.folder.parent]
        if self.supervisor == "systemd":
            files += [UNIT, UNIT.parent, UNIT.parent / "multi-user.target.wants"]
        for path in files:
            with contextlib.suppress(OSError):
                held = os.open(path, os.O_RDONLY)
                os.fsync(held)
                os.close(held)


def load(state: Path) -> Session | None:
    """The host's soak; None where it has none."""
    try:
        return Session(**json.loads(state.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


@contextlib.contextmanager
def locked(state: Path) -> Iterator[Session | None]:
    """The host's soak, of which one at a time decides. Raises AgentError."""
    try:
        state.parent.mkdir(parents=True, exist_ok=True)
        lock = state.with_name(state.name + ".lock").open("w")
    except OSError as error:
        raise fail(f"cannot write {state}: {error.strerror}; use another --state") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield load(state)


def taken(state: Path, out: str) -> Session:
    """The host's soak, which from now on is this process's. `out`: it must be that; "": any.

    Raises:
        AgentError: there is none, or it runs.
    """
    with locked(state) as session:
        if session is None or out not in ("", session.out):
            raise fail(f"there is no soak to go on with on this host ({state})")
        if session.runs():
            raise fail(f"the soak of run {session.run} runs on {session.host} already")
        session = session._replace(process=mark())
        session.claim()
    return session


def fail(message: str) -> AgentError:
    return AgentError(Exit.HOST, message)


# ---- systemd -------------------------------------------------------------------------------------


def agent(*words: str) -> list[str]:
    """A command of this very agent."""
    return [sys.executable, "-I", os.path.abspath(sys.argv[0]), *words]  # noqa: PTH100


def on_host(command: str, session: Session) -> str:
    """What a person types there."""
    return f"`{shlex.join(agent(command, '--state', session.state))}`"


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


def unit_text(session: Session) -> str:
    words = agent("soak-session", "--state", session.state)
    command = " ".join(f'"{word}"' for word in words)
    text = (pkgutil.get_data("perch.agent", UNIT.name) or b"").decode()
    return text.format(
        run=session.run, state=session.state, command=command, path=os.environ["PATH"]
    )


def install_unit(session: Session) -> None:
    """Raises AgentError."""
    try:
        UNIT.write_text(unit_text(session))
    except OSError as error:
        why = f"cannot write {UNIT}: {error.strerror}; use --supervisor session"
        raise fail(why) from None
    systemctl("daemon-reload")
    systemctl("enable", "--quiet", UNIT.name)


def notify() -> None:
    """Tells systemd that it measures (sd_notify(3))."""
    place = os.environ.get("NOTIFY_SOCKET", "")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.sendto(b"READY=1", place.replace("@", "\0", 1) if place[:1] == "@" else place)
