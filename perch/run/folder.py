"""The folder of a judged run: found, read in part, judged again elsewhere."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import polars as pl

from perch.checks.fabric import planned_identity
from perch.errors import ExitCode, PerchError
from perch.judge import columns, planned
from perch.judge.manifest import digest as file_digest
from perch.judge.raw import UNREADABLE
from perch.model import derived
from perch.model.figures import encode_sorted
from perch.model.folder import existing
from perch.model.plan import Plan
from perch.model.record import Record, Scope, ToolName
from perch.model.text import explained
from perch.model.verdict import Check, CheckStatus, Coverage, Verdict, Word, word
from perch.run import judging

PLAN, ROUNDS, RETRY = planned.PLAN, planned.ROUNDS, planned.RETRY
VERDICT, RECORDS, INTERVALS = judging.VERDICT, judging.RECORDS, judging.INTERVALS

#: Of an accepted run, and of all accepted runs of its fabric.
BASELINE, HISTORY = "baseline.json", "history.jsonl"

RECORD_SCHEMA = "perch.record/2"

#: Families of checks that every verdict of a measured run has.
EVERY_PASS = ("coverage", "manifest")

#: Records that are held at a time while their columns are made.
PART = 4096

_T = TypeVar("_T", "VerdictHead", Verdict)


class Counted(msgspec.Struct):
    planned: int = 0
    measured: int = 0


class CheckHead(msgspec.Struct):
    """What decides a verdict's word."""

    id: str
    status: CheckStatus
    measured: str | float | int | None = None


class VerdictHead(msgspec.Struct):
    """What the lists of runs and bundles say of a verdict."""

    schema: str
    run: str
    verdict: Word
    scope: Scope
    coverage: Counted
    checks: list[CheckHead]
    files: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class RecordHead(msgspec.Struct):
    """What every format of records has."""

    schema: str
    run: str
    tool: ToolName


_verdict = msgspec.json.Decoder(Verdict)
_verdict_head = msgspec.json.Decoder(VerdictHead)
_record = msgspec.json.Decoder(Record)
_record_head = msgspec.json.Decoder(RecordHead)


def is_regular(path: Path) -> bool:
    """A file itself: a pipe would be waited for, and a link may lead out of the run."""
    return path.is_file() and not path.is_symlink()


def digest(content: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def run_folder(name: str) -> Path:
    """The folder itself, links followed. Raises PerchError."""
    return existing(name).resolve()


def no_run(name: str) -> PerchError:
    """Of a folder without a plan: no other command can make it a run."""
    return PerchError(
        ExitCode.INCONCLUSIVE,
        f"it is not the folder of a run: {PLAN} is missing, or is not a regular file",
        file=name,
        remedy="give the folder of a run, such as runs/latest",
    )


def first_judge(root: Path, name: object) -> str:
    """The remedy where a file of a judged run is missing: without raw files only a report is left.

    Judging would replace it. `name`: of the folder, as the user gave it.
    """
    if (root / "raw").exists() or not (root / derived.MARKDOWN).is_file():
        return f"run perchctl judge {name} first"
    return f"read its {derived.MARKDOWN}: without raw files it cannot be judged"


def judged_folder(name: str) -> Path:
    """The folder of a run that has a verdict. Raises PerchError."""
    root = run_folder(name)
    if not is_regular(root / PLAN):
        raise no_run(name)
    for file in (RECORDS, VERDICT):
        if not is_regular(root / file):
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                "it is missing, or is not a regular file",
                file=f"{name}/{file}",
                remedy=first_judge(root, name),
            )
    return root


def _unusable(path: Path, why: str, place: str = "") -> PerchError:
    return PerchError(
        ExitCode.INCONCLUSIVE,
        why,
        file=path,
        place=place,
        remedy=f"judge the run again: perchctl judge {path.parent}",
    )


def plan_head(path: Path) -> Plan:
    """A plan without its rounds. Raises PerchError."""
    if not is_regular(path):
        raise PerchError(
            ExitCode.INCONCLUSIVE, "it is missing, or is not a regular file", file=path
        )
    try:
        head = planned.document(path.read_bytes(), str(path))
    except OSError as error:
        raise PerchError(
            ExitCode.INCONCLUSIVE, f"it cannot be read ({error.strerror})", file=path
        ) from None
    return Plan(**msgspec.structs.asdict(head) | {"rounds": []})


def verdict(root: Path) -> Verdict:
    """Raises PerchError where verdict.json is not a verdict, or not of the files beside it."""
    return _fitting(root, _verdict)


def verdict_head(root: Path) -> VerdictHead:
    """The same, in part."""
    return _fitting(root, _verdict_head)


def _fitting(root: Path, decoder: msgspec.json.Decoder[_T]) -> _T:
    path = root / VERDICT
    try:
        found = decoder.decode(path.read_bytes())
    except (*UNREADABLE, OSError) as error:
        raise _damaged(path, error) from None
    if found.schema != "perch.verdict/1":
        raise _unusable(path, f"its schema is '{found.schema}', not perch.verdict/1")
    # a run that could not be judged planned nothing and may have no name but its folder's
    if found.coverage.planned and (run := plan_head(root / PLAN).run) != found.run:
        raise _unusable(path, f"it is of run {found.run}, and the plan is of run {run}")
    if found.verdict != (follows := word(found.checks)):
        raise _unusable(path, f"it says {found.verdict}, but its checks say {follows}")
    if found.verdict == "PASS":
        _hold_pass(path, found.coverage, found.checks)
    _hold_files(root, found.files or {})
    return found


def _hold_pass(
    path: Path, counted: Counted | Coverage, checks: Sequence[CheckHead | Check]
) -> None:
    """Raises PerchError for a PASS that judging cannot give, as checks were removed or edited."""
    families = {one.id.split("/")[0]: one for one in checks}
    for name in EVERY_PASS:
        if name not in families:
            raise _unusable(path, f"it says PASS without the check '{name}'")
    # after a retry the figure has words, as repeats cured what is missing
    said, measured = families["coverage"].measured, counted.measured
    cured = isinstance(said, str) and said.startswith(f"{measured}, and in repeats ")
    if not cured and not said == measured == counted.planned:
        raise _unusable(
            path,
            f"it says PASS, but its coverage says {measured} of {counted.planned} records",
        )


def _hold_files(root: Path, files: dict[str, str]) -> None:
    """Raises PerchError where a file is not the one that was judged. `files`: their digests."""
    path = root / VERDICT
    if RECORDS not in files:
        raise _unusable(path, f"it has no digest of {RECORDS}, as an older Perch made it")
    if INTERVALS not in files and os.path.lexists(root / INTERVALS):
        raise _unusable(root / INTERVALS, f"{VERDICT} has no digest of it")
    if unknown := sorted(files.keys() - {RECORDS, INTERVALS}):
        raise _unusable(path, f"'files' names '{unknown[0]}', which judging does not write")
    for name, wanted in files.items():
        if (there := file_digest(root / name)) is None:
            raise _unusable(root / name, "it is missing, or cannot be read")
        if there != wanted:
            raise _unusable(root / name, f"it changed after {VERDICT} was made")


def _damaged(path: Path, error: Exception, place: str = "") -> PerchError:
    return _unusable(path, f"it cannot be used: {explained(error)}", place)


def _damaged_lines(path: Path, decoder: msgspec.json.Decoder[Any], error: Exception) -> PerchError:
    """The same, with the first line that cannot be read."""
    if isinstance(error, OSError):
        return _damaged(path, error)
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            decoder.decode(line)
        except UNREADABLE as of_line:
            return _damaged(path, of_line, f"line {number}")
    return _damaged(path, error)


def record_heads(path: Path) -> list[RecordHead]:
    """Tool, run and format of every record. Raises PerchError for records of an older Perch."""
    try:
        heads = _record_head.decode_lines(path.read_bytes())
    except (*UNREADABLE, OSError) as error:
        raise _damaged_lines(path, _record_head, error) from None
    for number, head in enumerate(heads, 1):
        if head.schema != RECORD_SCHEMA:
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                f"its schema is '{head.schema}', not {RECORD_SCHEMA}: another version of Perch "
                "judged this run",
                file=path,
                place=f"line {number}",
                remedy=f"run perchctl judge {path.parent} first",
            )
    return heads


def records(root: Path) -> list[Record]:
    """All records of a run with a verdict that fits. Raises PerchError."""
    path = root / RECORDS
    try:
        return _record.decode_lines(path.read_bytes())
    except (*UNREADABLE, OSError) as error:
        raise _damaged_lines(path, _record, error) from None


def frame(root: Path) -> pl.DataFrame:
    """The columns of the same, some thousands of records at a time. Raises PerchError."""
    path = root / RECORDS
    parts = []
    try:
        with path.open("rb") as lines:
            while part := [_record.decode(line) for line in islice(lines, PART)]:
                parts.append(columns.part(part))
    except (*UNREADABLE, OSError) as error:
        raise _damaged_lines(path, _record, error) from None
    return columns.joined(parts)


def fabric_id(plan: Plan) -> str:
    """Twelve hexadecimal digits that tell the fabrics of a site apart."""
    return digest(encode_sorted(planned_identity(plan)) + b"\n")[:12]


def judge_again(root: Path, work: Path) -> tuple[Path, Verdict]:
    """Judges a run in a new folder below `work`; its own folder stays as it is.

    Returns the new folder and the verdict. Raises PerchError where the run cannot be judged.
    """
    again = work / root.name
    again.mkdir(parents=True)
    for name in (PLAN, ROUNDS, RETRY):
        if (root / name).exists() or (root / name).is_symlink():
            shutil.copyfile(root / name, again / name, follow_symlinks=False)
    for name in ("raw", "inputs"):
        (again / name).symlink_to((root / name).resolve())
    return again, judging.judge(again)[0]


def differences(root: Path, again: Path) -> list[str]:
    """The outputs of judging that are not the same to the byte in both folders."""
    return [
        name
        for name in (RECORDS, VERDICT, INTERVALS)
        if _content(root / name) != _content(again / name)
    ]


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if is_regular(path) else None


def judged_again(root: Path, name: str) -> Verdict:
    """The verdict from the raw outputs. Raises PerchError where the one in the folder differs.

    `name`: of the folder, as the user gave it.
    """
    with tempfile.TemporaryDirectory(prefix="perch-again.") as work:
        again, verdict = judge_again(root, Path(work))
        changed = differences(root, again)
    if changed:
        raise PerchError(
            ExitCode.FAIL,
            f"judging it again gives another {changed[0]} ({judging.line(verdict)})",
            file=name,
            remedy=f"run perchctl report {name}, and read the new report first",
        )
    return verdict
