"""Bundles that are opened, edited and packed again, as somebody who edits one would do it."""

from __future__ import annotations

import tarfile
from pathlib import Path

from perch.history import packed
from perch.judge.manifest import digest


def opened(bundle: Path, work: Path) -> Path:
    """The folder of the run, unpacked."""
    with tarfile.open(bundle) as tar:
        tar.extractall(work)
    return next(work.iterdir())


def closed(root: Path, bundle: Path) -> None:
    """Packs as perchctl bundle does."""
    tar = bundle.with_suffix(".tar")
    packed.archive(root, tar)
    with tar.open("rb") as source:
        bundle.write_bytes(b"".join(packed.compressed(source)))


def sealed_again(root: Path) -> None:
    """A new manifest, as one who edits the bundle would write it."""
    lines = "".join(f"{digest(root / name)}  {name}\n" for name in packed.listed(root))
    (root / packed.MANIFEST).write_text(lines)
