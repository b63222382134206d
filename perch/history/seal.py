"""`perchctl seal DIR`: hashes a run's files, so that judging sees what is edited later."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from perch.errors import ExitCode, PerchError

#: What the judge reads besides raw/: regular files, or none.
DOCUMENTS = (
    "plan.json", "rounds.jsonl", "plan.retry.json", "inputs/limits.json", "inputs/baseline.json",
)  # fmt: skip


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Adds plan.json, rounds.jsonl and every file of inputs/ and raw/ that is not there yet to\n"
        "DIR/raw/manifest.sha256 (the format of sha256sum). Its lines are never changed:\n"
        "files that come later, such as those of repeated flows, are added."
    )
    parser.epilog = "Exit: 0 sealed, 2 usage, 3 a file cannot be read, 6 not writable."
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")


def command(args: argparse.Namespace) -> int:
    """Seals the run."""
    root = Path(args.run)
    if not (root / "raw").is_dir():
        raise PerchError(
            ExitCode.USAGE,
            f"no such run: '{args.run}' has no raw/",
            remedy="give the folder of a run, such as runs/latest",
        )
    new, before = seal(root)
    print(f"{new} files sealed, {before} before")
    return ExitCode.PASS


def refuse_links(root: Path, names: Iterable[str] = DOCUMENTS) -> None:
    """A link leads out of the run: what it names would be neither sealed nor handed over.

    Raises PerchError.
    """
    for name in names:
        if (root / name).is_symlink():
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                "it is a link",
                file=root / name,
                remedy="put the file itself in its place",
            )


def seal(root: Path) -> tuple[int, int]:
    """Adds what is not in the manifest yet; how many files that are, and how many were there."""
    from perch.judge import manifest
    from perch.run import lines

    path = root / manifest.MANIFEST
    refuse_links(root)
    if path.is_symlink():
        raise PerchError(
            ExitCode.INCONCLUSIVE, "it is a link", file=path, remedy="remove it and seal again"
        )
    sealed = path.read_bytes() if path.is_file() else b""
    names = {line[66:].decode(errors="surrogateescape") for line in sealed.splitlines()}
    new = [name for name in manifest.files(root) if name not in names]
    if sealed and not sealed.endswith(b"\n"):
        sealed += b"\n"
    added = (f"{_digest(root / name)}  {name}\n" for name in new)
    lines.replace(path, sealed + "".join(added).encode(errors="surrogateescape"))
    return len(new), len(names)


def _digest(path: Path) -> str:
    from perch.judge import manifest

    found = manifest.digest(path)
    if found is None:
        raise PerchError(
            ExitCode.INCONCLUSIVE, "it cannot be read", file=path, remedy="check its permissions"
        )
    return found
