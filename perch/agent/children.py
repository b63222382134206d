"""Children: each in a process group of its own, and never alive longer than the agent."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from perch.agent.clock import KILL_AFTER

#: Bytes that are kept of a command's outputs.
STDOUT_BYTES, STDERR_BYTES = 1024 * 1024, 64 * 1024

#: Bytes of a server's errors that are logged: strangers who connect for days must fill no disk.
LOG_BYTES = 16 * 1024 * 1024

#: What is read of an output at a time, and kept of its end, for messages.
_CHUNK, _TAIL = 64 * 1024, 4096

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class Ended(NamedTuple):
    """One of both: the exit code, or the name of the signal without SIG."""

    exit: int | None
    signal: str | None


class Capture:
    """An output's first bytes, how many there were, and its end.

    copy_to: a descriptor that gets all of it, too. has_end: the text of one that is cut goes on
    with its last bytes.
    """

    def __init__(self, limit: int, copy_to: int = -1, has_end: bool = False) -> None:
        self._limit = limit
        self._has_end = has_end
        self._copy_to = copy_to
        self._head = bytearray()
        self._tail = b""
        self.bytes = 0

    def add(self, chunk: bytes) -> None:
        self.bytes += len(chunk)
        self._head += chunk[: self._limit - len(self._head)]
        self._tail = (self._tail + chunk)[-_TAIL:]
        if self._copy_to >= 0 and self.bytes - len(chunk) <= LOG_BYTES:
            more = chunk if self.bytes <= LOG_BYTES else b"\n(no more of this is logged)\n"
            with contextlib.suppress(OSError):  # a log on a full disk
                os.write(self._copy_to, more)

    @property
    def is_cut(self) -> bool:
        return self.bytes > self._limit

    def text(self) -> str:
        r"""Bytes that are no UTF-8 become \xNN."""
        text = bytes(self._head)
        if self._has_end and self.is_cut:
            end = self._tail[-(self.bytes - self._limit) :]
            left_out = self.bytes - self._limit - len(end)
            text += b"\n(%d bytes are left out)\n%s" % (left_out, end) if left_out else end
        return text.decode(errors="backslashreplace")

    def last_line(self) -> str:
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


class Process:
    """A child. `ended` is done when nothing of its group is left.

    is_alone: it ends what it has started by itself when it is told to.
    """

    def __init__(self, pid: int, stdout: Capture, stderr: Capture, is_alone: bool = False) -> None:
        self.pid = pid
        self._is_alone = is_alone
        self.stdout = stdout
        self.stderr = stderr
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    def send(self, number: int) -> None:
        """A signal to the group, as long as its number is its own."""
        if not self.ended.done():
            tell = os.kill if self._is_alone and number != signal.SIGKILL else os.killpg
            with contextlib.suppress(ProcessLookupError):
                tell(self.pid, number)


async def end(process: Process, grace_s: float = KILL_AFTER) -> Ended | None:
    """None: not even SIGKILL ends it (it waits inside the kernel)."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        process.send(number)
        if number is signal.SIGTERM:
            process.send(signal.SIGCONT)  # a stopped process handles SIGTERM only then
        await asyncio.wait({process.ended}, timeout=grace_s)
        if process.ended.done():
            return process.ended.result()
    return None


class Keeper:
    """A process that ends all groups when the agent has ended, however that came.

    The kernel ends only a child (PR_SET_PDEATHSIG), not what that has started.
    """

    def __init__(self) -> None:
        read, self._write = os.pipe()
        if os.fork() == 0:
            try:
                os.close(self._write)
                _keep(read)
            finally:
                os._exit(0)
        os.close(read)

    def add(self, group: int) -> None:
        self._tell(f"+{group}\n")

    def remove(self, group: int) -> None:
        self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._write, line.encode())


def _keep(read: int) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    with os.fdopen(read) as lines:
        for line in lines:
            (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


class Children:
    """Starts the agent's children, and ends them. One thread only: the kernel watches that."""

    def __init__(self, keeper: Keeper, environment: Mapping[str, str] | None = None) -> None:
        self._keeper = keeper
        self._environment = dict(os.environ if environment is None else environment)
        self._alive: dict[int, Process] = {}

    def start(
        self,
        argv: Sequence[str],
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
        stderr: int | None = None,
        is_server: bool = False,
        cpus: Sequence[int] = (),
        folder: Path | None = None,
    ) -> Process:
        """stdout, stderr: descriptors; None: captured. cpus: that it may use; none: all.

        is_server: it ends its own children when it is told to, and its errors are logged, too.
        folder: where it works.

        Raises:
            OSError: it cannot be started.
        """
        agent = os.getpid()

        def prepare() -> None:
            os.setpgid(0, 0)
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if cpus:
                os.sched_setaffinity(0, cpus)
            if os.getppid() != agent:
                os._exit(1)  # it ended before the kernel watched

        popen = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE if stderr is None else stderr,
            preexec_fn=prepare,
            env=self._environment,
            cwd=folder,
        )
        self._keeper.add(popen.pid)
        errors = Capture(STDERR_BYTES, sys.stderr.fileno() if is_server else -1, has_end=True)
        process = Process(popen.pid, Capture(STDOUT_BYTES), errors, is_server)
        self._alive[popen.pid] = process
        self._watch(popen, process)
        return process

    def _watch(self, popen: subprocess.Popen[bytes], process: Process) -> None:
        loop = asyncio.get_running_loop()
        pidfd = os.pidfd_open(popen.pid)
        outputs = [
            (pipe.fileno(), capture)
            for pipe, capture in ((popen.stdout, process.stdout), (popen.stderr, process.stderr))
            if pipe is not None
        ]
        for fd, capture in outputs:
            os.set_blocking(fd, False)
            loop.add_reader(fd, self._read, fd, capture)

        def collect() -> None:
            loop.remove_reader(pidfd)
            os.close(pidfd)
            process.send(signal.SIGKILL)  # what it left behind; a zombie keeps the number
            for fd, capture in outputs:
                while self._read(fd, capture):
                    pass
                loop.remove_reader(fd)
            for pipe in (popen.stdout, popen.stderr):
                if pipe is not None:
                    pipe.close()
            self._keeper.remove(popen.pid)
            del self._alive[popen.pid]
            process.ended.set_result(_ended(popen.wait()))

        loop.add_reader(pidfd, collect)

    def _read(self, fd: int, capture: Capture) -> bool:
        """False: there is nothing more for now, or no writer any more."""
        try:
            chunk = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            asyncio.get_running_loop().remove_reader(fd)
            return False
        capture.add(chunk)
        return True

    async def end_all(self) -> None:
        """At the agent's own end."""
        await asyncio.gather(*(end(process) for process in list(self._alive.values())))

    async def answer(self, argv: Sequence[str], limit_s: float = 5.0) -> str:
        """What a command writes; "" where it is missing, fails or takes too long."""
        try:
            process = self.start(argv)
        except OSError:
            return ""
        await asyncio.wait({process.ended}, timeout=limit_s)
        if not process.ended.done():
            await end(process, 1.0)
            return ""
        return process.stdout.text() if process.ended.result().exit == 0 else ""


def _ended(status: int) -> Ended:
    if status >= 0:
        return Ended(status, None)
    try:
        name = signal.Signals(-status).name[3:]
    except ValueError:
        name = str(-status)
    return Ended(None, name)
