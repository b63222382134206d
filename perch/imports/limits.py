"""The limits of an imported run: a set of reports/limits, or a file of limits."""

from __future__ import annotations

from pathlib import Path

from perch.errors import ExitCode, PerchError
from perch.model import limit_files, limit_sets
from perch.model.figures import pretty
from perch.model.text import did_you_mean


def _path(name: str) -> Path:
    path = Path(name)
    if not path.is_file():
        path = limit_files.SETS / f"{name}.yml"
    if path.is_file():
        return path
    known = sorted(one.stem for one in limit_files.SETS.glob("*.yml"))
    raise PerchError(
        ExitCode.USAGE,
        f"no set of limits '{name}'{did_you_mean(name, known)}",
        remedy=f"give a file, or one of {', '.join(known)}",
    )


def read(name: str) -> bytes:
    """inputs/limits.json of a run. Raises PerchError where the limits cannot be used."""
    path = _path(name)
    if path.suffix not in (".yml", ".yaml"):
        text = path.read_text(errors="replace")
        limits = limit_sets.decoded(text.encode(), str(path))
        if limits.fault:
            raise PerchError(ExitCode.USAGE, limits.fault, remedy="correct the limits")
        return text.encode()
    merged = limit_sets.merged(limit_files.read(path), None)
    return pretty(merged)
