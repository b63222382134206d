"""The agent's commands: run, start, poll, status and stop."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
import resource
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perch.agent.agent import Agent, Settings
from perch.agent.children import KILL_AFTER
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import write_whole
from perch.agent.share import Share

#: What is read of a file's end for its last lines; a flow's output may be in one.
_END = 4 * 1024 * 1024


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
    write_whole(control / "pid", f"{os.getpid()} {_start_time(os.getpid())}\n".encode())
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
        sys.stderr.write("\n".join(_last_lines(log_path)[-3:]) + "\n")
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


def poll(out: Path, offset: int) -> Exit:
    """For the controller: renews the lease, prints "alive" or "gone" and new progress."""
    found = _pidfd(out)
    if found is None:
        print("gone", flush=True)
    else:
        os.close(found)
        lease = out / "control" / "lease"
        try:
            os.utime(lease)
        except OSError as error:
            words = f"cannot renew the lease {lease}: {error.strerror}"
            raise AgentError(Exit.HOST, words) from None
        print("alive", flush=True)
    with contextlib.suppress(OSError), (out / "control" / "progress.jsonl").open("rb") as progress:
        progress.seek(offset)
        os.write(sys.stdout.fileno(), progress.read())
    return Exit.WALKED


def status(out: Path) -> Exit:
    """One JSON object: state running, done, stopped or gone (ended without a last line)."""
    found = _pidfd(out)
    if found is not None:
        os.close(found)
    last: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, IndexError):
        last = json.loads(_last_lines(out / "flows.jsonl")[-1])
    state = "running" if found is not None else "gone"
    told: dict[str, Any] = {"state": state}
    if last.get("kind") == "end":
        told = {key: last[key] for key in ("state", "flows_done", "message") if key in last}
    print(json.dumps(told))
    return Exit.WALKED


def stop(out: Path) -> Exit:
    """Ends the agent if it runs; it has the last grace of its children before it is killed."""
    found = _pidfd(out)
    if found is None:
        return Exit.WALKED
    with contextlib.suppress(AgentError):
        write_whole(out / "control" / "reason", b"stopped by the controller\n")
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(found, number)
        if select.select([found], [], [], 3 * KILL_AFTER)[0]:
            break
    os.close(found)
    print("stopped")
    return Exit.WALKED


def _start_time(pid: int) -> str:
    """Field 22 of /proc/N/stat; numbers are used again, together with this they are not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    state, *fields = text.rpartition(") ")[2].split()
    return "" if state in "ZX" else fields[18]


def _pidfd(out: Path) -> int | None:
    """Of the running agent; None where it has ended. To be closed."""
    try:
        pid, started = (out / "control" / "pid").read_text().split()
        found = os.pidfd_open(int(pid))
    except (OSError, ValueError):
        return None
    if _start_time(int(pid)) == started:
        return found
    os.close(found)
    return None


def _last_lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _END))
        return file.read().decode(errors="replace").splitlines()
