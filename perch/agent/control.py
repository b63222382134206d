"""The agent's commands that walk: run and start. They load all of it."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from perch.agent.agent import Agent, Settings
from perch.agent.asking import identity, last_lines
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import write_whole
from perch.agent.share import Share


def prepare(out: Path) -> None:
    """The directory must take a file before anything is started.

    Raises:
        AgentError: it does not, or has an earlier run's results.
    """
    control = out / "control"
    probe = control / "probe"
    try:
        control.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"a")
        probe.unlink()
    except OSError as error:
        raise AgentError(
            Exit.HOST,
            f"cannot write to the directory {out} as user {getpass.getuser()}: {error.strerror};"
            " give --out a directory that this user can write",
        ) from None
    if (out / "flows.jsonl").exists():
        raise AgentError(
            Exit.HOST,
            f"{out} holds the results of an earlier run; give --out an empty directory",
        )


def run(share: Share, settings: Settings, ready: Callable[[], None] = lambda: None) -> Exit:
    control = settings.control
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core of perch would have the token
    for name in ("lease", "reason", "started"):
        (control / name).unlink(missing_ok=True)
    write_whole(control / "lease", b"")
    write_whole(control / "pid", f"{os.getpid()} {identity(os.getpid())}\n".encode())
    return asyncio.run(_run(share, settings, ready))


async def _run(share: Share, settings: Settings, ready: Callable[[], None]) -> Exit:
    return await Agent(share, settings, ready).run()


def start(share: Share, settings: Settings) -> Exit:
    """Detached, in a session of its own; returns when it serves, or with why it cannot."""
    read, write = os.pipe()
    log_path = settings.out / "agent.log"
    pid = os.fork()
    if pid == 0:
        os.close(read)
        code = int(Exit.INTERNAL)
        try:
            _detach(log_path)
            code = int(run(share, settings, lambda: _told_ready(write)))
        except AgentError as error:
            say(f"perch-agent: {error.message}")
            code = int(error.code)
        finally:
            os._exit(code)
    os.close(write)
    if os.read(read, 1):
        print(f"{share.limit_s:g}")
        return Exit.WALKED
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code:
        sys.stderr.write("\n".join(last_lines(log_path)[-3:]) + "\n")
    return Exit(code) if code in set(Exit) else Exit.INTERNAL


def _told_ready(write: int) -> None:
    with contextlib.suppress(OSError):
        os.write(write, b"r")
    os.close(write)


def _detach(log_path: Path) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for fd, place in ((null, 0), (log, 1), (log, 2)):
        os.dup2(fd, place)
