"""Unpacks a bundle that comes from somebody else.

Nothing larger than it may be, nothing but files and folders, no name that leads out.
"""

from __future__ import annotations

import filecmp
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from perch.errors import ExitCode, PerchError
from perch.history import packed
from perch.model.text import clean

#: A run of 317 hosts, all to all, has half a million files and a few gigabytes.
MOST_FILES = 2_000_000
MOST_BYTES = 16 * 2**30
#: The environment may set another limit of bytes.
MOST_BYTES_NAME = "PERCH_VERIFY_MOST_BYTES"

#: Another gzip packs otherwise from the first bytes on; an edited archive differs in few.
_FEW_BYTES = 8


def damaged(bundle: Path, what: str) -> PerchError:
    """The bundle was changed, or was never one."""
    return PerchError(ExitCode.FAIL, f"it is damaged: {what}", file=bundle)


def _too_large(bundle: Path, most: int) -> PerchError:
    return PerchError(
        ExitCode.INCONCLUSIVE,
        f"it unpacks to more than {most} bytes",
        file=bundle,
        remedy=f"set {MOST_BYTES_NAME} if that is right",
    )


def _most_bytes() -> int:
    said = os.environ.get(MOST_BYTES_NAME, str(MOST_BYTES))
    if not re.fullmatch("[0-9]{1,18}", said):
        raise PerchError(
            ExitCode.USAGE,
            f"{MOST_BYTES_NAME} is '{clean(said)}', not a number of bytes",
            remedy="correct or unset it",
        )
    return int(said)


def unpack(bundle: Path, work: Path) -> Path:
    """The run's folder below `work`. Raises PerchError."""
    most = _most_bytes()
    _inflate(bundle, work / "tar", most)
    check_compression(bundle, work / "tar")
    try:
        with tarfile.open(work / "tar", "r:", errorlevel=1) as tar:
            names = _extract(bundle, tar, work / "root", most)
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise damaged(bundle, f"its archive cannot be read: {error}") from None
    tops = sorted({name.split("/")[0] for name in names})
    if len(tops) != 1:
        raise damaged(bundle, f"it holds {len(tops)} runs: {', '.join(tops[:3])}")
    return work / "root" / tops[0]


def _inflate(bundle: Path, tar: Path, most: int) -> None:
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    size = 0
    with bundle.open("rb") as source, tar.open("wb") as target:
        if source.read(len(packed.GZIP_HEADER)) != packed.GZIP_HEADER:
            raise damaged(bundle, "it does not begin as perchctl bundle begins one")
        source.seek(0)
        try:
            while block := source.read(packed.BLOCK):
                while block and not unpacker.eof:
                    target.write(found := unpacker.decompress(block, packed.BLOCK))
                    block = unpacker.unconsumed_tail
                    size += len(found)
                    if size > most:
                        raise _too_large(bundle, most)
                if unpacker.eof and (block or unpacker.unused_data):
                    raise damaged(bundle, "something follows its archive")
        except zlib.error as error:
            raise damaged(bundle, str(error)) from None
    if not unpacker.eof:
        raise damaged(bundle, "it ends early")


def check_compression(bundle: Path, tar: Path) -> None:
    """A few bytes of gzip's code stand for the same content either way. Raises PerchError."""
    with bundle.open("rb") as given, tar.open("rb") as source:
        different = 0
        for made in packed.compressed(source):
            read = given.read(len(made))
            if read != made:
                different += abs(len(read) - len(made))
                different += sum(a != b for a, b in zip(read, made, strict=False))
            if different > _FEW_BYTES:
                return
        different += len(given.read(_FEW_BYTES))
    if 0 < different <= _FEW_BYTES:
        raise damaged(bundle, "some of its bytes are not as gzip packs them")


def _members(bundle: Path, tar: tarfile.TarFile, most: int) -> Iterator[tarfile.TarInfo]:
    """Files and folders with names of a run, each once. Raises PerchError."""
    seen: set[str] = set()
    size = 0
    for member in tar:
        name = member.name
        if not (member.isreg() or member.isdir()) or member.issparse():
            raise damaged(bundle, f"it holds what is neither a file nor a folder: {name}")
        if not packed.NAME.fullmatch(name):
            raise damaged(bundle, f"it holds a name that no run has: {name}")
        if name in seen:
            raise damaged(bundle, f"it holds {name} twice")
        seen.add(name)
        size += member.size
        if size > most:
            raise _too_large(bundle, most)
        if len(seen) > MOST_FILES:
            raise PerchError(
                ExitCode.INCONCLUSIVE, f"it holds more than {MOST_FILES} files", file=bundle
            )
        yield member


def _extract(bundle: Path, tar: tarfile.TarFile, root: Path, most: int) -> list[str]:
    """Writes the members below `root`; their names."""
    names = []
    root.mkdir()
    for member in _members(bundle, tar, most):
        names.append(member.name)
        path = root / member.name
        try:
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            source = tar.extractfile(member)
            assert source is not None  # it is a file
            with source, path.open("xb") as target:
                left = member.size
                while left:
                    block = source.read(min(left, packed.BLOCK))
                    if not block:
                        raise damaged(bundle, f"{member.name} ends early")
                    target.write(block)
                    left -= len(block)
        except OSError as error:
            raise damaged(bundle, f"{member.name}: {error.strerror}") from None
    return names


def check_archive(bundle: Path, root: Path, work: Path) -> None:
    """Headers count, too: packed again it must be the same archive. Raises PerchError."""
    again = work / "again.tar"
    packed.archive(root, again)
    if not filecmp.cmp(again, work / "tar", shallow=False):
        raise damaged(bundle, "its names, modes or times are not as perchctl bundle packs them")
