"""Reads what agents left under raw/: bounded, and regular files only.

A run's folder may have been fetched, copied or unpacked from anywhere. A file that is a link, a
pipe or a device, or that lies behind a linked folder, counts as missing: a link may lead out of the
run, and a pipe would be waited for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model.json_keys import repeated_key
from perch.model.plan import Flow, Plan
from perch.model.text import explained

#: Bytes of one output or document that are read. `perch lat --report-all` prints some 60 bytes a
#: sample: a million samples fit. What is larger is damaged, whatever it holds.
LARGEST = 64 * 2**20

#: Bytes of a stream that are read at a time: some dozens of lines.
BUFFER = 2**16

#: Folders below which a run's files lie. The two themselves may be links (runs on another file
#: system).
ROOTS = (Path("raw"), Path("inputs/hosts"))

#: What decoding text from outside raises: it is no JSON, of another type, no UTF-8, or nested
#: without end.
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_FOLDER_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_T = TypeVar("_T")


class _Schema(msgspec.Struct):
    schema: str = ""


_schema = msgspec.json.Decoder(_Schema)


class TooLargeError(Exception):
    """A file above `LARGEST`; the message names it."""


class RawFiles:
    """The files of one run's folder, named by their paths relative to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._prefix = f"{root}/"
        self._real = {f"{folder}/": os.path.realpath(root / folder) for folder in ROOTS}

    def _path_of(self, folder: str) -> str | None:
        """Where a folder under `ROOTS` lies if no link leads to it."""
        for top, real in self._real.items():
            if f"{folder}/".startswith(top):
                return f"{real}/{folder[len(top) :]}".rstrip("/")
        return None

    def open(self, folder: str) -> int | None:
        """A descriptor of a folder under `ROOTS`; None where it is not reached without a link."""
        path = self._path_of(folder)
        if path is None:
            return None
        try:
            found = os.open(self._prefix + folder, _FOLDER_FLAGS)
        except OSError:
            return None
        if os.readlink(f"/proc/self/fd/{found}") == path:  # noqa: PTH115 -- Path makes objects
            return found
        os.close(found)
        return None

    def read(self, path: str) -> bytes:
        """The bytes of a file under `ROOTS`, as `contents` gives them."""
        folder, _, name = path.rpartition("/")
        held = self.open(folder)
        if held is None:
            return b""
        try:
            return contents(name, held)
        finally:
            os.close(held)

    def stream(self, path: str) -> BinaryIO | None:
        """A regular file under `ROOTS` of any size, to be read by parts; None where none is."""
        folder, _, name = path.rpartition("/")
        held = self.open(folder)
        if held is None:
            return None
        try:
            file = regular(name, held)
        finally:
            os.close(held)
        return None if file is None else os.fdopen(file, "rb", BUFFER)

    def document(self, path: str, decoder: msgspec.json.Decoder[_T]) -> _T | None:
        """A document of a host.

        None where it is absent, too large, not of the decoder's type, or has a key twice.
        """
        try:
            text = self.read(path)
            found = decoder.decode(text)
        except (*UNREADABLE, TooLargeError):
            return None
        return found if repeated_key(text) is None else None

    def fault(self, path: str, decoder: msgspec.json.Decoder[_T], schemas: Sequence[str]) -> str:
        """In words, why `document` gives none, or one of no known schema; "" without the file."""
        file = self.stream(path)
        if file is None:
            return ""
        file.close()
        text = b""
        try:
            text = self.read(path)
            schema = schema_of(text)
            if schema not in schemas:
                return f"has the schema '{schema}', not {schemas[-1]}"
            decoder.decode(text)
        except TooLargeError:
            return f"has more than {LARGEST >> 20} MiB"
        except msgspec.ValidationError as error:
            return f"cannot be used: {explained(error)}"
        except UNREADABLE as error:
            at = "" if "byte" in str(error) else f" (byte {len(text)})"
            return f"is damaged: {explained(error)}{at}"
        return self.repeated(path) or ""

    def repeated(self, path: str) -> str | None:
        """In words, the key that a document has twice; None where it has none, or is damaged."""
        try:
            key = repeated_key(self.read(path))
        except TooLargeError:
            return None
        return None if key is None else f"has the key '{key}' twice in one object"


def schema_of(text: bytes) -> str:
    """The schema that a document names, or "". Raises one of UNREADABLE."""
    return _schema.decode(text).schema


def walk_folder(host: str, *, retry: bool = False) -> str:
    """Where `host` keeps what a walk left; that of the repeats lies beside that of the first."""
    return f"raw/{host}/retry" if retry else f"raw/{host}"


def flow_folder(flow: Flow, host: str) -> str:
    """Where `host` keeps its files of a flow."""
    return f"{walk_folder(host, retry=flow.retry)}/flows/{flow.id}"


def regular(path: str | Path, folder: int | None = None) -> int | None:
    """A descriptor of a regular file, in a folder of which this is a descriptor.

    None where it cannot be read, or is a link; a pipe is not waited for.
    """
    try:
        file = os.open(path, _FILE_FLAGS, dir_fd=folder)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def contents(name: str, folder: int) -> bytes:
    """The bytes of a regular file in a folder, of which this is a descriptor.

    b"" where none can be read. Raises TooLargeError above `LARGEST` bytes.
    """
    file = regular(name, folder)
    if file is None:
        return b""
    try:
        size = os.fstat(file).st_size
        if size > LARGEST:
            raise TooLargeError(f"{name} has more than {LARGEST >> 20} MiB")
        return os.read(file, size)
    except OSError:
        return b""
    finally:
        os.close(file)


def refuse_raw_1(files: RawFiles, plan: Plan) -> None:
    """Raises PerchError where an older agent left files of their own for each flow of a run."""
    for host in plan.hosts if plan.soak is None else ():
        name = f"raw/{host}/agent.json"
        if files.read(name):
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                "its raw files are perch.raw/1, not perch.raw/2",
                file=name,
                remedy="judge this run with the Perch that measured it, or measure again",
            )
