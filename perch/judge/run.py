"""Judges a run: DIR/plan.json, DIR/raw and DIR/inputs -> DIR/records.jsonl and DIR/verdict.json.

Nothing else is read, so that a run can be judged again anywhere, at any time, with the same result.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec
import polars as pl

from perch.checks import RunView, all_findings
from perch.checks.verdict import assemble
from perch.errors import ExitCode, PerchError
from perch.judge import columns, findings, imported, planned
from perch.judge.hosts import HostFacts, read_hosts
from perch.judge.inputs import read_baseline, read_limits
from perch.judge.manifest import read_manifest
from perch.judge.raw import RawFiles
from perch.judge.records import FlowReader
from perch.judge.switches import read_switches
from perch.model.baseline import Baseline
from perch.model.limits import Limits
from perch.model.plan import Plan, Round
from perch.model.record import Record
from perch.model.verdict import Check, Coverage, Verdict

VERDICT, RECORDS, INTERVALS = "verdict.json", "records.jsonl", "intervals.jsonl"

#: Flows from which a second process is worth its start of half a second.
MANY_FLOWS = 2000
#: Flows of one piece of work. The pieces do not depend on the number of processes.
CHUNK_FLOWS = 4096
PROCESSES = 2

#: prctl(2)
PR_SET_PDEATHSIG = 1

_encoder = msgspec.json.Encoder()


class Judged(msgspec.Struct):
    """A run as it was judged; the verdict is that of DIR/verdict.json."""

    root: Path
    plan: Plan
    hosts: dict[str, HostFacts]
    limits: Limits
    baseline: Baseline
    records: pl.DataFrame
    verdict: Verdict


# ---- records -------------------------------------------------------------------------------------


class _Source(msgspec.Struct):
    """What a process needs to read any part of the plan. The plan has no rounds here."""

    root: Path
    plan: Plan
    hosts: dict[str, HostFacts]


def _chunks(rounds: list[Round]) -> Iterator[list[Round]]:
    """Whole rounds, some `CHUNK_FLOWS` flows at a time."""
    chunk: list[Round] = []
    flows = 0
    for turn in rounds:
        chunk.append(turn)
        flows += len(turn.flows)
        if flows >= CHUNK_FLOWS:
            yield chunk
            chunk, flows = [], 0
    if chunk:
        yield chunk


def _read_chunk(reader: FlowReader, rounds: list[Round], path: Path) -> pl.DataFrame:
    """Writes the records of some rounds to a file, and returns their columns."""
    records: list[Record] = []
    with path.open("wb") as file:
        for turn in rounds:
            of_round = reader.read(turn)
            file.write(_encoder.encode_lines(of_round))
            records += of_round
    return columns.part(records)


_reader: FlowReader | None = None


def _start_worker(source: _Source, parent: int) -> None:
    """A worker does not outlive the process that judges, however that one ends."""
    global _reader
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _reader = FlowReader(source.plan, source.hosts, RawFiles(source.root))


def _work(rounds: list[Round], path: Path) -> pl.DataFrame:
    assert _reader is not None
    return _read_chunk(_reader, rounds, path)


def _frames(source: _Source, rounds: list[Round], folder: Path) -> Iterator[pl.DataFrame]:
    """The columns of each chunk in order; its records lie in folder/0, folder/1 ..."""
    if sum(len(turn.flows) for turn in rounds) < MANY_FLOWS:
        reader = FlowReader(source.plan, source.hosts, RawFiles(source.root))
        for n, chunk in enumerate(_chunks(rounds)):
            yield _read_chunk(reader, chunk, folder / str(n))
        return
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, spawn, _start_worker, (source, os.getpid())) as pool:
        chunks = list(_chunks(rounds))
        yield from pool.map(_work, chunks, [folder / str(n) for n in range(len(chunks))])


def _read_records(source: _Source, rounds: list[Round], work: Path) -> pl.DataFrame:
    """Writes work/records.jsonl, and returns the columns of all records."""
    parts = work / "parts"
    parts.mkdir()
    frames = []
    with (work / RECORDS).open("wb") as whole:
        for n, frame in enumerate(_frames(source, rounds, parts)):
            frames.append(frame)
            with (parts / str(n)).open("rb") as part:
                shutil.copyfileobj(part, whole, 2**20)
            (parts / str(n)).unlink()
    return columns.joined(frames)


def _imported_records(plan: Plan, files: RawFiles, work: Path) -> pl.DataFrame:
    """The same of a run whose outputs were measured elsewhere."""
    records = list(imported.records(plan, files))
    (work / RECORDS).write_bytes(_encoder.encode_lines(records))
    return columns.frame(records)


# ---- a verdict -----------------------------------------------------------------------------------


def _judge(root: Path, work: Path) -> Judged:
    """Writes all outputs into `work`. Raises PerchError where the run cannot be judged."""
    plan, retry_fault = planned.with_retry(
        planned.read_plan(root / "plan.json"), root / "plan.retry.json"
    )
    limits, baseline = read_limits(root), read_baseline(root)
    files = RawFiles(root)
    hosts = read_hosts(files, plan, findings.judged)
    if planned.is_imported(plan):
        records = _imported_records(plan, files, work)
    else:
        source = _Source(root, msgspec.structs.replace(plan, rounds=[]), hosts)
        records = _read_records(source, plan.rounds, work)
    view = RunView(
        plan=plan,
        records=records,
        hosts=hosts,
        limits=limits,
        baseline=baseline,
        root=root,
        switches=read_switches(files, plan),
        manifest=read_manifest(files, plan.flows()),
        retry_fault=retry_fault or "",
    )
    verdict = assemble(view, all_findings(view))
    (work / VERDICT).write_bytes(_encoder.encode(verdict) + b"\n")
    return Judged(root, plan, hosts, limits, baseline, records, verdict)


def _unjudged(root: Path, why: str) -> Verdict:
    """Of a run that cannot be judged: it must not keep an older PASS, nor be without a verdict."""
    fault = Check(
        id="plan",
        title="The plan can be read",
        status="inconclusive",
        measured=why,
        source="design, coverage is judged against the plan",
        evidence=["plan.json"],
        remedy="Plan and measure again: without a whole plan nobody can say what is missing",
    )
    return Verdict(
        run=root.resolve().name,
        verdict="INCONCLUSIVE",
        scope="software",
        coverage=Coverage(0, 0, []),
        checks=[fault],
        comparison={"statistic": None, "rows": [], "refused": [], "others": []},
    )


@contextmanager
def _outputs(root: Path) -> Iterator[Path]:
    """A folder for half-written outputs, which are moved into place when all are whole.

    No earlier verdict stays while a new one is made: whatever ends this in the middle (SIGKILL, a
    full disk, a fault of ours) must not leave an old PASS beside newer raw files.
    """
    try:
        work = Path(tempfile.mkdtemp(prefix=".judge.", dir=root))
    except OSError as error:
        raise PerchError(
            ExitCode.NOT_WRITABLE,
            f"it is not writable ({error.strerror}); {RECORDS} and {VERDICT} are written there",
            file=root,
            remedy="judge a copy of it",
        ) from None
    try:
        for name in (VERDICT, RECORDS, INTERVALS):
            (root / name).unlink(missing_ok=True)
        yield work
        for name in (RECORDS, INTERVALS, VERDICT):
            if (work / name).exists():
                (work / name).replace(root / name)
    except OSError as error:
        raise PerchError(
            ExitCode.NOT_WRITABLE,
            f"it has no verdict: {error.strerror or error}; an earlier one was removed",
            file=root,
            remedy="make room on the disk, see that its files can be written, and judge again",
        ) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def judge(root: Path) -> tuple[Verdict, PerchError | None]:
    """Judges a run anew and publishes its outputs.

    Returns the verdict, and why the run could not be judged, where it could not.
    Raises PerchError where the outputs cannot be written.
    """
    with _outputs(root) as work:
        try:
            return _judge(root, work).verdict, None
        except PerchError as error:
            if error.code != ExitCode.INCONCLUSIVE:
                raise
            verdict = _unjudged(root, str(error))
            (work / RECORDS).write_bytes(b"")
            (work / INTERVALS).unlink(missing_ok=True)
            (work / VERDICT).write_bytes(_encoder.encode(verdict) + b"\n")
            return verdict, error


# ---- the command ---------------------------------------------------------------------------------

#: How many checks of a kind the one line names.
NAMED = 3

CODES: Mapping[str, ExitCode] = {
    "PASS": ExitCode.PASS,
    "FAIL": ExitCode.FAIL,
    "INCONCLUSIVE": ExitCode.INCONCLUSIVE,
}


def line(verdict: Verdict) -> str:
    """One line a verdict: what a script or a tired person reads first."""
    measured, owed = verdict.coverage.measured, verdict.coverage.planned
    said = f"{verdict.verdict}: {measured} of {owed} records measured, scope {verdict.scope}"
    for status, word in (("fail", "not met"), ("inconclusive", "not judged")):
        titles = [check.title for check in verdict.checks if check.status == status]
        more = f" and {len(titles) - NAMED} more" if len(titles) > NAMED else ""
        if titles:
            said += f"; {word}: {', '.join(titles[:NAMED])}{more}"
    return said
