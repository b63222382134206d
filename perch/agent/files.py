"""What the agent writes: JSON lines that are whole or absent, and files that appear whole."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from perch.agent.errors import AgentError, Exit, say

#: Held back for the last lines, should the disk be full then.
RESERVE_BYTES = 64 * 1024

KEPT = ". Results before this are kept"

#: What is read of a file's end for its last lines; a flow's output may be in one.
END_BYTES = 4 * 1024 * 1024


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def remedy(error: OSError, else_: str = "see that this user can write there") -> str:
    """What to do about a file that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "free space there and run again"
    if error.errno in (errno.EROFS, errno.EIO):
        return "the kernel's log (dmesg) may say why; mend the disk and run again"
    return else_


def unwritable(path: Path, error: OSError, kept: str = "") -> AgentError:
    why = f"cannot write {path}: {error.strerror}; {remedy(error)}{kept}"
    return AgentError(Exit.INTERNAL, why)


def write_whole(path: Path, content: bytes) -> None:
    """Beside its place, then renamed: who reads it never meets half.

    Raises:
        AgentError: it cannot be written.
    """
    new = path.with_name(path.name + ".new")
    try:
        new.write_bytes(content)
        new.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            new.unlink()
        raise unwritable(path, error) from None


def end_of(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - END_BYTES))
        return file.read()


class Lines:
    """A file of JSON lines. It must not exist, or goes on: half a line at its end is cut off.

    `waiting`: those that the disk has not taken. `refused`: some had to wait.
    """

    waiting: Sequence[bytes] = ()
    refused = False

    def __init__(self, path: Path, goes_on: bool = False) -> None:
        self.path = path
        self._unsynced = False
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (0 if goes_on else os.O_EXCL)
        try:
            self._fd = os.open(path, flags, 0o644)
            size = os.fstat(self._fd).st_size
            self._size = size - len(end_of(path).rpartition(b"\n")[2])
            os.ftruncate(self._fd, self._size)
            os.lseek(self._fd, self._size, os.SEEK_SET)
        except OSError as error:
            raise unwritable(path, error) from None

    @property
    def is_empty(self) -> bool:
        return self._size == 0

    def write(self, value: Any) -> None:
        """One line, whole or not at all.

        Raises:
            AgentError: it cannot be written.
        """
        self._put(encoded(value))

    def _put(self, rest: bytes) -> None:
        size = self._size + len(rest)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):  # a disk that takes nothing keeps the half
                os.ftruncate(self._fd, self._size)
                os.lseek(self._fd, self._size, os.SEEK_SET)
            raise unwritable(self.path, error, "" if self.is_empty else KEPT) from None
        self._size = size
        self._unsynced = True

    def sync(self) -> None:
        """Raises AgentError: the disk has lost what it took."""
        if not self._unsynced:
            return
        self._unsynced = False
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise unwritable(self.path, error, KEPT) from None

    def close(self) -> None:
        self.sync()
        os.close(self._fd)

    def remove(self) -> None:
        os.close(self._fd)
        self.path.unlink()


class PatientLines(Lines):
    """Lines that wait in memory while the disk takes none."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, goes_on=True)
        self.waiting: list[bytes] = []

    def write(self, value: Any) -> None:
        self.waiting.append(encoded(value))
        self.flush()

    def flush(self) -> None:
        while self.waiting:
            try:
                self._put(self.waiting[0])
            except AgentError as error:
                if not self.refused:
                    say(f"{error.message}; the soak goes on, and lines wait in memory")
                self.refused = True
                return
            del self.waiting[0]

    def sync(self) -> None:
        self.flush()
        with contextlib.suppress(AgentError):
            super().sync()


class Reserve:
    """A block of the disk that is given back for the last lines."""

    def __init__(self, path: Path, size: int = RESERVE_BYTES) -> None:
        self._path = path
        try:
            path.write_bytes(bytes(size))
        except OSError as error:
            self.release()  # else it would fill the disk itself, and the log has no room
            raise unwritable(path, error) from None

    def release(self) -> None:
        self._path.unlink(missing_ok=True)


class Read(NamedTuple):
    """`torn`: the last line is half of one, as after a crash; it is not among the lines."""

    lines: list[Any]
    torn: bool


def read_lines(path: Path) -> Read:
    """Raises ValueError: a line before the last is not JSON."""
    content = path.read_bytes()
    *whole, rest = content.split(b"\n")
    lines = [json.loads(line) for line in whole]
    return Read(lines, rest != b"")
