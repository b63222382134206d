"""Puts what was accepted before into a run that has just been planned."""

from __future__ import annotations

from pathlib import Path

from perch.errors import ExitCode, PerchError
from perch.judge import inputs
from perch.model.baseline import BaselineDocument
from perch.run import folder, lines

#: The first accepted run and the newest of the others: a longer table is not read.
MOST_RUNS = 10


def recall(root: Path, runs: Path, which: str = "auto") -> str | None:
    """Copies an accepted run to inputs/baseline.json, those before it to inputs/history.jsonl.

    `which`: auto, the accepted run of the plan's fabric in runs/baseline, if there is one; none;
    or a file. Returns a line that names it; None where there is none. Raises PerchError where
    something that was accepted cannot be used.
    """
    if which == "none":
        return None
    if which != "auto":
        return _put(root, Path(which))
    kept = runs / "baseline" / folder.fabric_id(folder.plan_head(root / folder.PLAN))
    path = kept / folder.BASELINE
    if not (path.exists() or path.is_symlink()):
        return None
    _usable(path)
    history = kept / folder.HISTORY
    if folder.is_regular(history):
        _as_accepted(path, history)
        newest = [line for line in lines.read(history) if lines.parsed(line) is not None]
        shown = newest[:1] + newest[1:][-(MOST_RUNS - 1) :]
        lines.replace(root / "inputs" / folder.HISTORY, b"".join(line + b"\n" for line in shown))
    return _put(root, path)


def _unusable(path: Path, what: str) -> PerchError:
    return PerchError(
        ExitCode.INCONCLUSIVE,
        what,
        file=path,
        remedy="accept a run again (make accept), or plan with plan_baseline=none",
    )


def _usable(path: Path) -> BaselineDocument:
    """Now, and not after everything has been measured. Raises PerchError."""
    if not folder.is_regular(path):
        raise _unusable(path, "it is missing, or is not a regular file")
    found = inputs.decoded_baseline(path.read_bytes(), str(path))
    if found.document is None:
        raise _unusable(path, found.fault.removeprefix(f"{path} "))
    return found.document


def _as_accepted(path: Path, history: Path) -> None:
    """A user who edits one of the two by hand has no accepted run any more."""
    now = lines.parsed(path.read_bytes()) or {}
    was = lines.of_run(lines.read(history), now["run"])
    if was is not None and {**was, "schema": ""} != {**now, "schema": ""}:
        raise _unusable(path, f"it is not what was accepted: {history} has other figures")


def _put(root: Path, path: Path) -> str:
    found = _usable(path)
    lines.replace(root / "inputs" / folder.BASELINE, path.read_bytes())
    label = f" ({found.label})" if found.label is not None else ""
    return f"This run is compared with run {found.run}{label}, accepted {found.accepted}"
