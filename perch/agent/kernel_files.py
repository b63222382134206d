"""Files of the kernel, read by a child: a driver that never answers hangs the child alone.

A process that waits inside the kernel cannot be ended, so each reading has a deadline here.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
from collections.abc import Sequence
from mmap import mmap
from pathlib import Path
from typing import NamedTuple

from perch.agent.errors import say

#: Seconds in which a driver answers: as many as `ethtool` has.
WITHIN_S = 2.0

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class _Child(NamedTuple):
    """`at`: the number of the file that it reads, in memory that both share."""

    pid: int
    owner: int
    asks: int
    answers: int
    at: mmap


class KernelFiles:
    """`left`: folders that are no longer read, and commands that are no longer asked."""

    def __init__(self) -> None:
        self.left: set[str] = set()
        self._child: _Child | None = None

    def texts(self, files: Sequence[Path]) -> list[str | None]:
        """Of each file; None where it is not there, or the driver answers with an error or not."""
        is_second = False
        while True:
            wanted = [str(file) if str(file.parent) not in self.left else "" for file in files]
            child = self._living()
            found = _answered(child, wanted)
            if found is not None:
                return found
            at = _number(child)
            if self._end() and not is_second:  # somebody else ended it: the same once more
                is_second = True
            elif str(files[at].parent) in self.left:  # it ends by itself
                return [None] * len(files)
            else:
                self._leave(files[at])

    def text(self, file: Path) -> str | None:
        return self.texts([file])[0]

    def leave_command(self, argv: Sequence[str], within_s: float) -> None:
        command = " ".join(argv)
        self.left.add(command)
        say(f"`{command}` did not answer in {within_s:g} s, so it is not asked again")

    def _leave(self, file: Path) -> None:
        """The others of its folder are the same driver's."""
        self.left.add(str(file.parent))
        say(f"{file} did not answer in {WITHIN_S:g} s, so nothing of its folder is read any more")

    def _living(self) -> _Child:
        """A child of this very process: one that forks has it no more."""
        if self._child is None or self._child.owner != os.getpid():
            self._child = _start()
        return self._child

    def _end(self) -> bool:
        """Whether the child had ended. It does not wait for one that the kernel holds."""
        child, self._child = self._living(), None
        for fd in (child.asks, child.answers):
            os.close(fd)
        had_ended = os.waitpid(child.pid, os.WNOHANG)[0] != 0
        if not had_ended:
            os.kill(child.pid, signal.SIGKILL)
        return had_ended


def _number(child: _Child) -> int:
    return int.from_bytes(child.at[:], "little")


def _answered(child: _Child, wanted: Sequence[str]) -> list[str | None] | None:
    """None where one file takes too long, or the child has ended."""
    look = select.poll()
    look.register(child.answers, select.POLLIN)
    with contextlib.suppress(BrokenPipeError):
        _write(child.asks, json.dumps(wanted).encode() + b"\n")
    got = b""
    while not got.endswith(b"\n"):
        number = _number(child)
        if look.poll(WITHIN_S * 1000):
            more = os.read(child.answers, 65536)
            if not more:
                return None
            got += more
        elif _number(child) == number:
            return None
    found: list[str | None] = json.loads(got)
    return found


def _start() -> _Child:
    asked, asks = os.pipe()
    answers, answered = os.pipe()
    agent, at = os.getpid(), mmap(-1, 4)
    pid = os.fork()
    if pid == 0:
        try:
            _serve(agent, asked, answered, at)
        finally:
            os._exit(0)
    os.close(asked)
    os.close(answered)
    return _Child(pid, agent, asks, answers, at)


def _serve(agent: int, asked: int, answered: int, at: mmap) -> None:
    """It holds nothing of the agent's open: it may outlive it inside the kernel."""
    signal.set_wakeup_fd(-1)
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)  # its end is the agent's
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd, place in ((asked, 0), (answered, 1), (nothing, 2)):
        os.dup2(fd, place)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208, no objects of names
        if int(name) > 2:
            with contextlib.suppress(OSError):
                os.close(int(name))
    if os.getppid() != agent:
        return
    with os.fdopen(0, "rb") as lines:
        for line in lines:
            texts = []
            for number, name in enumerate(json.loads(line)):
                at[:] = number.to_bytes(4, "little")
                texts.append(_read(name))
            _write(1, json.dumps(texts).encode() + b"\n")


def _read(name: str) -> str | None:
    try:
        with open(name, "rb", 0) as file:  # noqa: PTH123, a path's own costs twice as much
            return file.read().decode(errors="replace")
    except OSError:
        return None


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


FILES = KernelFiles()
