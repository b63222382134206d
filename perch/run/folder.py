"""The folder of a judged run: found, read in part, judged again elsewhere."""

from __future__ import annotations

import hashlib
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from perch.checks.fabric import planned_identity
from perch.errors import ExitCode, PerchError
from perch.judge import columns, planned
from perch.judge.raw import UNREADABLE
from perch.model.figures import encode_sorted
from perch.model.folder import existing
from perch.model.plan import Plan
from perch.model.record import Record, Scope, ToolName
from perch.model.text import explained
from perch.model.verdict import Verdict, Word
from perch.run import judging

PLAN, ROUNDS, RETRY = planned.PLAN, planned.ROUNDS, planned.RETRY
VERDICT, RECORDS, INTERVALS = judging.VERDICT, judging.RECORDS, judging.INTERVALS

#: Of an accepted run, and of all accepted runs of its fabric.
BASELINE, HISTORY = "baseline.json", "history.jsonl"

RECORD_SCHEMA = "perch.record/2"

#: Records that are held at a time while their columns are made.
PART = 4096


class Counted(msgspec.Struct):
    planned: int = 0
    measured: int = 0


class VerdictHead(msgspec.Struct):
    """What the lists of runs and bundles say of a verdict."""

    schema: str
    run: str
    verdict: Word
    scope: Scope
    coverage: Counted


class RecordHead(msgspec.Struct):
    """What every format of records has."""

    schema: str
    run: str
    tool: ToolName


_verdict = msgspec.json.Decoder(VerdictHead)
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
                remedy=f"run perchctl judge {name} first",
            )
    return root


def _unusable(path: Path, error: Exception, place: str = "") -> PerchError:
    return PerchError(
        ExitCode.INCONCLUSIVE,
        f"it cannot be used: {explained(error)}",
        file=path,
        place=place,
        remedy=f"run perchctl judge {path.parent} again",
    )


def plan_head(path: Path) -> Plan:
    """A plan without its rounds. Raises PerchError."""
    try:
        head = planned.document(path.read_bytes(), str(path))
    except OSError as error:
        raise PerchError(
            ExitCode.INCONCLUSIVE, f"it cannot be read ({error.strerror})", file=path
        ) from None
    return Plan(**msgspec.structs.asdict(head) | {"rounds": []})


def verdict_head(root: Path) -> VerdictHead:
    """Raises PerchError where verdict.json is not a verdict, or one of another run.

    A run that could not be judged may have no name but its folder's.
    """
    path = root / VERDICT
    try:
        head = _verdict.decode(path.read_bytes())
    except (*UNREADABLE, OSError) as error:
        raise _unusable(path, error) from None
    if head.schema != "perch.verdict/1":
        raise _unusable(path, ValueError(f"its schema is '{head.schema}', not perch.verdict/1"))
    if head.verdict != "INCONCLUSIVE" and (run := plan_head(root / PLAN).run) != head.run:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"it is of run {head.run}, and the plan is of run {run}",
            file=path,
            remedy=f"run perchctl judge {root} again",
        )
    return head


def _damaged(path: Path, decoder: msgspec.json.Decoder[Any], error: Exception) -> PerchError:
    """The same; of lines that could not be read, with the first such line."""
    if isinstance(error, OSError):
        return _unusable(path, error)
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            decoder.decode(line)
        except UNREADABLE as of_line:
            return _unusable(path, of_line, f"line {number}")
    return _unusable(path, error)


def record_heads(path: Path) -> list[RecordHead]:
    """Tool, run and format of every record. Raises PerchError for records of an older Perch."""
    try:
        heads = _record_head.decode_lines(path.read_bytes())
    except (*UNREADABLE, OSError) as error:
        raise _damaged(path, _record_head, error) from None
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
    """All records of a judged run. Raises PerchError."""
    path = root / RECORDS
    record_heads(path)
    try:
        return _record.decode_lines(path.read_bytes())
    except (*UNREADABLE, OSError) as error:
        raise _damaged(path, _record, error) from None


def frame(root: Path) -> pl.DataFrame:
    """The columns of all records of a judged run. Raises PerchError."""
    path = root / RECORDS
    record_heads(path)
    parts = []
    try:
        with path.open("rb") as lines:
            while part := [_record.decode(line) for line in islice(lines, PART)]:
                parts.append(columns.part(part))
    except (*UNREADABLE, OSError) as error:
        raise _damaged(path, _record, error) from None
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
