"""What the agent writes: JSON lines that are whole or absent, and files that appear whole."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from perch.agent.errors import AgentError, Exit

#: Held back for the last lines, should the disk be full then.
RESERVE_BYTES = 64 * 1024


def encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def unwritable(path: Path, error: OSError) -> AgentError:
    return AgentError(
        Exit.INTERNAL,
        f"cannot write {path}: {error.strerror}; free space there and run again."
        " Results before this are kept",
    )


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
        raise unwritable(path, error) from None


class Lines:
    """A file of JSON lines. It must not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size = 0
        self._unsynced = False
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise unwritable(path, error) from None

    def write(self, value: Any) -> None:
        """One line, whole or not at all.

        Raises:
            AgentError: it cannot be written.
        """
        rest = encoded(value)
        size = self._size + len(rest)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):  # a disk that takes nothing keeps the half
                os.ftruncate(self._fd, self._size)
                os.lseek(self._fd, self._size, os.SEEK_SET)
            raise unwritable(self.path, error) from None
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
            raise unwritable(self.path, error) from None

    def close(self) -> None:
        self.sync()
        os.close(self._fd)


class Reserve:
    """A block of the disk that is given back for the last lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.write_bytes(bytes(RESERVE_BYTES))
        except OSError as error:
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
