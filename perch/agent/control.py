"""The agent's commands that walk: run and start. They load all of it."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import resource
import select
from collections.abc import Callable
from pathlib import Path

from perch.agent import errors
from perch.agent.agent import Agent, Life, Settings
from perch.agent.asking import mark, running
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import remedy, write_whole
from perch.agent.share import Share

#: What a detached process writes once it is ready; else it ends with a line for people.
READY = "\n"


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
        todo = remedy(error, "give --out a directory that this user can write")
        why = f"cannot write to the directory {out} as user {_user()}: {error.strerror}; {todo}"
        raise AgentError(Exit.HOST, why) from None
    found = running(out)
    if found is not None:
        os.close(found)
        ends = f"`perch-agent stop --out {out}` ends it"
        raise AgentError(Exit.HOST, f"an agent runs in {out} already; {ends}")
    if (out / "flows.jsonl").exists():
        raise AgentError(
            Exit.HOST,
            f"{out} holds the results of an earlier run; give --out an empty directory",
        )


def _user() -> str:
    """A number where the host has no name for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def run(share: Share, settings: Settings, ready: Callable[[], None] = lambda: None) -> Exit:
    control = settings.control
    for name in ("lease", "reason", "progress.jsonl"):
        (control / name).unlink(missing_ok=True)
    write_whole(control / "lease", b"")
    write_whole(control / "pid", f"{mark()}\n".encode())
    return lived(lambda: Agent(share, settings, ready))


def lived(agent: Callable[[], Life]) -> Exit:
    """An agent's life. Its loop is there before it is made."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core of perch would have the token

    async def run() -> Exit:
        return await agent().run()

    return asyncio.run(run())


def start(share: Share, settings: Settings) -> Exit:
    """Detached; returns when it serves, or with why it cannot."""
    log = settings.out / "agent.log"
    code = detached(lambda ready: run(share, settings, ready), log)
    if code is None:
        print(f"{share.limit_s:g}")
        return Exit.WALKED
    return Exit(code) if code in set(Exit) else Exit.INTERNAL


def detached(work: Callable[[Callable[[], None]], int], log: Path) -> int | None:
    """Does it in a session of its own, which outlives this process.

    work: is given what it calls when it is ready.

    Returns:
        None once it is; else its exit code. Then it has said what the work has said last.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        code, is_ready = int(Exit.INTERNAL), False

        def tell_ready() -> None:
            nonlocal is_ready
            is_ready = True  # the number of the pipe is that of another file soon
            with contextlib.suppress(OSError):
                os.write(write, READY.encode())
            os.close(write)

        try:
            os.setsid()
            log_to(log)
            code = int(work(tell_ready))
        except AgentError as error:
            say(f"perch-agent: {error.message}")
            code = int(error.code)
        except Exception as error:
            say(f"perch-agent: the agent failed: {error!r}")
        finally:
            if not is_ready:
                with contextlib.suppress(OSError):
                    os.write(write, errors.said.encode(errors="replace")[: select.PIPE_BUF])
            os._exit(code)
    os.close(write)
    told = os.read(read, select.PIPE_BUF).decode(errors="replace")
    if told == READY:
        return None
    say(told or f"perch-agent: it ended without a reason; see {log}")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def log_to(path: Path) -> None:
    """Reads nothing, and writes there."""
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for fd, place in ((null, 0), (log, 1), (log, 2)):
        os.dup2(fd, place)
