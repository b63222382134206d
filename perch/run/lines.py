"""Files with a line of JSON for each run (index.jsonl, history.jsonl), changed under a lock."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from perch.errors import ExitCode, PerchError
from perch.judge.raw import UNREADABLE
from perch.model.figures import encode
from perch.model.text import clean

#: Seconds to wait for another process's lock.
PATIENCE_S = 60

Line = dict[str, Any]

_object = msgspec.json.Decoder(dict[str, Any])


@contextmanager
def locked(runs: Path) -> Iterator[None]:
    """No other process changes the history of `runs` meanwhile. Raises PerchError."""
    path = runs / ".index.lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise PerchError(
            ExitCode.NOT_WRITABLE,
            f"it is not writable ({error.strerror}); the history of runs is kept there",
            file=runs,
        ) from None
    try:
        _wait_for(lock, path)
        yield
    finally:
        os.close(lock)


def _wait_for(lock: int, path: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < end:
                time.sleep(0.05)
                continue
            raise PerchError(
                ExitCode.NOT_WRITABLE,
                f"another process has held it for {PATIENCE_S} s",
                file=path,
                remedy="see which process writes there, and try again",
            ) from None
        return


def parsed(line: bytes) -> Line | None:
    """The object of a run; None if the line is not one."""
    try:
        found = _object.decode(line)
    except UNREADABLE:
        return None
    return found if isinstance(found.get("run"), str) else None


def read(path: Path) -> list[bytes]:
    """The lines of a file; none where it is not there. Raises PerchError for what is no file."""
    if not (path.exists() or path.is_symlink()):
        return []
    if not path.is_file():  # a pipe would be waited for, a broken link be written through
        raise PerchError(
            ExitCode.NOT_WRITABLE, "it is not a file", file=path, remedy="move it away"
        )
    return path.read_bytes().splitlines()


def of_run(lines: list[bytes], run: str) -> Line | None:
    """The first line of this run."""
    return next((one for line in lines if (one := parsed(line)) and one["run"] == run), None)


def set_line(path: Path, run: str, line: Line) -> None:
    """`line` in place of the line of `run`, or at the end; what cannot be read stays as it is."""
    kept: list[bytes] = []
    is_set = False
    for old in read(path):
        found = parsed(old)
        if found is None or found["run"] != run:
            kept.append(old)
        elif not is_set:
            kept.append(encode(line))
            is_set = True
    replace(path, b"".join(one + b"\n" for one in (kept if is_set else [*kept, encode(line)])))


def replace(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all. An OSError names `path`, not the temporary file."""
    fresh = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        fresh = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        fresh.chmod(0o644)
        fresh.replace(path)
    except OSError as error:
        if fresh is not None:
            fresh.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def unreadable(path: Path) -> list[int]:
    """Numbers of lines that are no objects of a run."""
    return [number for number, line in enumerate(read(path), 1) if parsed(line) is None]


def report_unreadable(program: str, path: Path) -> bool:
    """Names such lines on standard error; whether there are any."""
    numbers = unreadable(path)
    for number in numbers:
        where = clean(f"{path}, line {number}")
        print(f"{program}: {where}: not a line of a run; it is kept as it is", file=sys.stderr)
    return bool(numbers)
