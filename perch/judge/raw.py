"""Reads what agents left under raw/: bounded, and regular files only.

A run's folder may have been fetched, copied or unpacked from anywhere. A file that is a link, a
pipe or a device, or that lies behind a linked folder, counts as missing: a link may lead out of the
run, and a pipe would be waited for.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from perch.model.plan import Flow
from perch.model.raw import End, FlowFiles

#: Bytes of one output or document that are read. `perch lat --report-all` prints some 60 bytes a
#: sample: a million samples fit. What is larger is damaged, whatever it holds.
LARGEST = 64 * 2**20

#: Folders below which a run's files lie. The two themselves may be links (runs on another file
#: system).
ROOTS = (Path("raw"), Path("inputs/hosts"))

DAMAGED = "damaged"

#: What decoding text from outside raises: it is no JSON, of another type, no UTF-8, or nested
#: without end.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_T = TypeVar("_T")
_end = msgspec.json.Decoder(End)


class TooLargeError(Exception):
    """A file above `LARGEST`; the message names it."""


class RawFiles:
    """The files of one run's folder, named by their paths relative to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._prefix = f"{root}/"
        self._folders: dict[str, bool] = {str(folder): True for folder in ROOTS}

    def holds(self, folder: str) -> bool:
        """Whether `folder` is one, reached without a link.

        Remembered: many flows share their parents.
        """
        known = self._folders.get(folder)
        if known is None:
            parent = folder.rpartition("/")[0]
            known = parent != "" and self.holds(parent) and self.is_folder(folder)
            self._folders[folder] = known
        return known

    def is_folder(self, path: str) -> bool:
        """Whether `path` itself is a folder, and no link to one."""
        try:
            return stat.S_ISDIR(os.lstat(self._prefix + path).st_mode)
        except OSError:
            return False

    def of_flow(self, folder: str) -> str | None:
        """The path of a flow's folder; None where it is not reached without a link."""
        if self.holds(folder.rpartition("/")[0]) and self.is_folder(folder):
            return self._prefix + folder
        return None

    def read(self, path: str) -> bytes:
        """The bytes of a file under `ROOTS`, as `contents` gives them."""
        held = self.holds(path.rpartition("/")[0])
        return contents(self._prefix + path) if held else b""

    def stream(self, path: str) -> BinaryIO | None:
        """A regular file under `ROOTS` of any size, to be read by parts; None where none is."""
        if not self.holds(path.rpartition("/")[0]):
            return None
        try:
            file = os.open(self._prefix + path, _FILE_FLAGS)
        except OSError:
            return None
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            return None
        return os.fdopen(file, "rb")

    def document(self, path: str, decoder: msgspec.json.Decoder[_T]) -> _T | None:
        """A document of a host; None where it is absent, too large or not of the decoder's type."""
        try:
            return decoder.decode(self.read(path))
        except (*UNREADABLE, TooLargeError):
            return None


def flow_folder(flow: Flow, host: str) -> str:
    """Where `host` keeps its files of a flow; repeats lie beside what the first walk left."""
    return f"raw/{host}/{'retry/flows' if flow.retry else 'flows'}/{flow.id}"


def contents(path: str) -> bytes:
    """The bytes of a regular file; b"" where none can be read.

    Raises TooLargeError above `LARGEST` bytes.
    """
    try:
        file = os.open(path, _FILE_FLAGS)
    except OSError:
        return b""
    try:
        status = os.fstat(file)
        if status.st_size == 0 or not stat.S_ISREG(status.st_mode):
            return b""
        if status.st_size > LARGEST:
            name = path.rpartition("/")[2]
            raise TooLargeError(f"{name} has more than {LARGEST >> 20} MiB")
        return os.read(file, status.st_size)
    except OSError:
        return b""
    finally:
        os.close(file)


def _end_of(path: str) -> End | str | None:
    """One end of a flow: None without a file, DAMAGED where it cannot be read."""
    try:
        text = contents(path)
        if not text:
            return None
        end = _end.decode(text)
    except (*UNREADABLE, TooLargeError):
        return DAMAGED
    return end if end.schema == "perch.flow/1" else DAMAGED


def read_flow(files: RawFiles, flow: Flow) -> FlowFiles:
    """What both agents left of one flow.

    Raises TooLargeError where an output is too large to be read.
    """
    raw = FlowFiles(None, None, b"", b"")
    client = files.of_flow(flow_folder(flow, flow.client))
    if client is not None:
        raw.client = _end_of(f"{client}/client.json")
        raw.stdout = contents(f"{client}/client.stdout")
        raw.stderr = contents(f"{client}/client.stderr")
    server = files.of_flow(flow_folder(flow, flow.server))
    if server is not None:
        raw.server = _end_of(f"{server}/server.json")
    return raw
