"""Judges a run: DIR/plan.json, DIR/raw and DIR/inputs -> DIR/records.jsonl and DIR/verdict.json.

DIR/records.parquet holds the same records for databases.

Nothing else is read, so that a run can be judged again anywhere, at any time, with the same result.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import polars as pl

from perch.checks import RunView, all_findings, shown
from perch.checks.verdict import assemble
from perch.errors import ExitCode, PerchError
from perch.judge import columns, findings, host_lines, laws, parquet, planned, seen, worker
from perch.judge.hosts import HostFacts, read_hosts
from perch.judge.inputs import read_baseline, read_limits
from perch.judge.manifest import read_manifest
from perch.judge.raw import RawFiles, refuse_raw_1
from perch.judge.switches import read_switches
from perch.judge.trail import Trail, of_idle
from perch.model import derived
from perch.model.baseline import Baseline
from perch.model.figures import encode, encode_lines
from perch.model.imported import Documents
from perch.model.limits import Limits
from perch.model.plan import Plan, Round
from perch.model.text import clean, names
from perch.model.verdict import Check, Coverage, Verdict, loosened
from perch.soak import judge as soak
from perch.soak.told import Soak

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

VERDICT, RECORDS, INTERVALS = derived.VERDICT, derived.RECORDS, derived.INTERVALS
PARQUET = derived.PARQUET

#: How the name begins of a folder for half-written outputs, and the folder in it of a report that
#: was drawn from the verdict before.
WORK, EARLIER = ".judge.", "earlier"


class Judged(msgspec.Struct):
    """A run as it was judged; the verdict is that of DIR/verdict.json."""

    root: Path
    plan: Plan
    hosts: dict[str, HostFacts]
    limits: Limits
    baseline: Baseline
    records: pl.DataFrame
    verdict: Verdict


# ---- outputs -------------------------------------------------------------------------------------


class _Hashed(io.BufferedWriter):
    """A new file, and the SHA-256 of what was written to it."""

    def __init__(self, path: Path) -> None:
        super().__init__(io.FileIO(path, "wb"))
        self._found = hashlib.sha256()

    def write(self, content: ReadableBuffer, /) -> int:
        self._found.update(content)
        return super().write(content)

    def digest(self) -> str:
        return self._found.hexdigest()


class _Work(NamedTuple):
    """A folder for half-written outputs, and the digests of those that the verdict names."""

    folder: Path
    digests: dict[str, str]

    @property
    def parts(self) -> Path:
        """Of the pieces of a plan."""
        return self.folder / "parts"

    @contextmanager
    def new(self, name: str) -> Iterator[io.BufferedWriter]:
        with _Hashed(self.folder / name) as file:
            yield file
        self.digests[name] = file.digest()

    def write(self, verdict: Verdict) -> Verdict:
        """Writes verdict.json; returns it with the digests."""
        verdict = msgspec.structs.replace(verdict, files=dict(sorted(self.digests.items())))
        (self.folder / VERDICT).write_bytes(encode(verdict) + b"\n")
        return verdict


# ---- records -------------------------------------------------------------------------------------


class _Pieces(NamedTuple):
    """The pieces of a plan, and where the lines of each lie."""

    rounds: list[list[Round]]
    lines: host_lines.Index


def _pieces(plan: Plan, files: RawFiles) -> _Pieces:
    rounds = [] if planned.is_imported(plan) else worker.pieces(plan.rounds)
    flows = ((flow for turn in piece for flow in turn.flows) for piece in rounds)
    lines = host_lines.index(
        files, plan.run, plan.hosts, list(flows), is_soak=plan.soak is not None
    )
    return _Pieces(rounds, lines)


class _Read(NamedTuple):
    """What was read of a run: its records as columns, a row for each flow, its readings.

    `others`: files of what of the records is no column (perch.judge.parquet).
    """

    records: pl.DataFrame
    seen: pl.DataFrame
    trail: Trail
    others: list[Path]


def _read_records(
    plan: Plan, hosts: dict[str, HostFacts], pieces: _Pieces, root: Path, work: _Work
) -> _Read:
    """Of a whole run. Writes records.jsonl."""
    # flows are judged without what host-check found, which is most of what is known of a host
    facts = {name: msgspec.structs.replace(host, checks=None) for name, host in hosts.items()}
    source = worker.Source(str(root.resolve()), msgspec.structs.replace(plan, rounds=[]), facts)
    trail = of_idle({name: host.idle_readings for name, host in hosts.items()})
    with work.new(RECORDS) as whole:
        read = worker.read(source, pieces.rounds, pieces.lines.parts, work.parts)
        for n, of_piece in enumerate(read):
            trail.follow(of_piece)
            lines = work.parts / f"{n}.jsonl"
            with lines.open("rb") as part:
                shutil.copyfileobj(part, whole, 2**20)
            lines.unlink()
    records, rows, others = (
        [work.parts / f"{n}.{name}" for n in range(len(pieces.rounds))]
        for name in ("columns", "seen", "others")
    )
    joined = columns.joined([columns.read(records)])
    return _Read(joined, pl.concat(map(columns.read_file, rows)), trail, others)


def _imported_records(plan: Plan, files: RawFiles, work: _Work) -> tuple[_Read, Documents]:
    """The same of a run whose outputs were measured elsewhere."""
    from perch.imports import imported  # with all its readers, which other runs do not need

    records, documents = imported.read(plan, files)
    frame = laws.judged(records)
    with work.new(RECORDS) as whole:
        whole.write(encode_lines(records))
    others = work.parts / "0.others"
    parquet.others(records).write_ipc(others)
    found = columns.joined([frame] if records else [])
    return _Read(found, seen.frame([]), Trail(), [others]), documents


# ---- a soak --------------------------------------------------------------------------------------


def _soak_state(plan: Plan, hosts: dict[str, HostFacts]) -> str | None:
    """What agents say of a soak that is not over, or that it was stopped."""
    states = {host.agent.state for host in hosts.values() if host.agent}
    if plan.soak is None:
        return None
    return next((state for state in ("running", "stopped") if state in states), None)


def _judged_soak(
    plan: Plan, hosts: dict[str, HostFacts], limits: Limits, files: RawFiles, work: _Work
) -> Soak | None:
    """Writes intervals.jsonl."""
    if plan.soak is None:
        return None
    with work.new(INTERVALS) as out:
        return soak.judge(plan, plan.soak, hosts, limits, files, out)


# ---- a verdict -----------------------------------------------------------------------------------


def _judge(root: Path, work: _Work) -> Judged:
    """Writes all outputs into `work`. Raises PerchError where the run cannot be judged."""
    plan, retry_fault = planned.with_retry(
        planned.plan_to_judge(root / "plan.json"), root / "plan.retry.json"
    )
    limits, baseline = read_limits(root), read_baseline(root)
    work.parts.mkdir()
    files = RawFiles(root)
    refuse_raw_1(files, plan)
    with ThreadPoolExecutor(1) as beside:  # this process waits for others most of the time
        pieces = beside.submit(_pieces, plan, files)
        manifest = beside.submit(read_manifest, files, plan.flows())
        hosts = read_hosts(files, plan, findings.judged)
        documents, odd = None, pieces.result().lines.odd
        if planned.is_imported(plan):
            read, documents = _imported_records(plan, files, work)
        else:
            read = _read_records(plan, hosts, pieces.result(), root, work)
        table = beside.submit(parquet.write, read.records, read.others, work.folder / PARQUET)
        view = RunView(
            plan=plan,
            records=read.records,
            seen=read.seen,
            trail=read.trail,
            hosts=hosts,
            limits=limits,
            baseline=baseline,
            root=root,
            switches=read_switches(files, plan, read.seen),
            documents=documents,
            manifest=msgspec.structs.replace(manifest.result(), odd=odd),
            retry_fault=retry_fault or "",
            soak_state=_soak_state(plan, hosts),
            soak=_judged_soak(plan, hosts, limits, files, work),
        )
        verdict = work.write(assemble(view, all_findings(view)))
        table.result()
    return Judged(root, plan, hosts, limits, baseline, read.records, verdict)


#: What to do where a run cannot be judged, if the fault itself does not say it.
AGAIN = "plan and measure again: only a whole plan shows what is missing"


def _unjudged(root: Path, why: str, file: str, remedy: str) -> Verdict:
    """Of a run that cannot be judged: it must not keep an older PASS, nor be without a verdict."""
    fault = Check(
        id="plan",
        title="The run can be judged",
        fault="The run cannot be judged",
        status="inconclusive",
        measured=why,
        source="design, a run that cannot be judged is INCONCLUSIVE",
        evidence=[file] if file else [],
        remedy=remedy,
    )
    return Verdict(
        run=root.resolve().name,
        verdict="INCONCLUSIVE",
        scope="software",
        coverage=Coverage(0, 0, []),
        checks=[shown(fault)],
        comparison={"statistic": None, "rows": [], "refused": [], "others": []},
    )


def _reason(error: OSError) -> str:
    """Why, and of which file where the error names one."""
    name = Path(error.filename).name if isinstance(error.filename, str) else ""
    return f"{name}: {error.strerror}" if name else str(error.strerror or error)


def _put_aside(root: Path, work: Path) -> None:
    """What was drawn from an earlier verdict: it must not be seen while there is none."""
    (work / EARLIER).mkdir()
    for name in (*derived.MARKED, derived.CHARTS):
        if os.path.lexists(root / name):
            (root / name).replace(work / EARLIER / name)


def _put_back(root: Path, work: Path) -> None:
    """The same, as far as it was drawn from the verdict that is there now."""
    if not (root / VERDICT).exists():
        return
    current = derived.mark(root).encode()
    for name in derived.MARKED:
        file = work / EARLIER / name
        if file.is_file() and current in file.read_bytes():
            file.replace(root / name)
            if name == derived.MARKDOWN and (work / EARLIER / derived.CHARTS).is_dir():
                (work / EARLIER / derived.CHARTS).replace(root / derived.CHARTS)


def _remove_abandoned(root: Path) -> None:
    """Folders of judges that were killed; one that still works holds a lock on its own."""
    for folder in root.glob(f"{WORK}*"):
        with suppress(OSError), _locked(folder):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds a lock on a folder. Raises OSError where another process has it."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


@contextmanager
def _outputs(root: Path) -> Iterator[Path]:
    """A folder for half-written outputs, which are moved into place when all are whole.

    No earlier verdict stays while a new one is made: whatever ends this in the middle (SIGKILL, a
    full disk, a fault of ours) must not leave an old PASS beside newer raw files, nor its report.
    """
    try:
        _remove_abandoned(root)
        work = Path(tempfile.mkdtemp(prefix=WORK, dir=root))
    except OSError as error:
        raise PerchError(
            ExitCode.NOT_WRITABLE,
            f"it is not writable ({error.strerror}); {RECORDS} and {VERDICT} are written there"
            + (f"; its {VERDICT} is an earlier one" if (root / VERDICT).exists() else ""),
            file=root,
            remedy="judge a copy of it",
        ) from None
    state = f"its {VERDICT} stays as it was"
    try:
        with _locked(work):
            _put_aside(root, work)
            for name in derived.JUDGED:
                (root / name).unlink(missing_ok=True)
                state = "it has no verdict"
            yield work
            for name in (RECORDS, PARQUET, INTERVALS, VERDICT):
                if (work / name).exists():
                    (work / name).replace(root / name)
            state = "its verdict is new, but a report beside it is not"
            _put_back(root, work)
    except OSError as error:
        raise PerchError(
            ExitCode.NOT_WRITABLE,
            f"{state}: {_reason(error)}",
            file=root,
            remedy="make room on the disk, see that its files can be written, and judge again",
        ) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def judged(root: Path) -> tuple[Judged | Verdict, PerchError | None]:
    """Judges a run and publishes its outputs.

    Returns the run as it was judged; of one that could not be judged, its verdict, and why.
    Raises PerchError where the outputs cannot be written.
    """
    with _outputs(root) as work:
        try:
            with planned.without_collector():
                return _judge(root, _Work(work, {})), None
        except PerchError as error:
            if error.code != ExitCode.INCONCLUSIVE:
                raise
            remedy, error.remedy = error.remedy or AGAIN, ""
            verdict = _unjudged(root, str(error), error.file, remedy)
            error.remedy = remedy
            of_nothing = _Work(work, {})
            with of_nothing.new(RECORDS):
                pass
            parquet.write(columns.joined([]), [], work / PARQUET)
            (work / INTERVALS).unlink(missing_ok=True)
            return of_nothing.write(verdict), error


def judge(root: Path) -> tuple[Verdict, PerchError | None]:
    """The same; of the run only its verdict."""
    run, fault = judged(root)
    return run.verdict if isinstance(run, Judged) else run, fault


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
    for status, word in (("fail", "failed"), ("inconclusive", "inconclusive")):
        # several limits of one figure have one headline
        found = (check.headline for check in verdict.checks if check.status == status)
        titles = list(dict.fromkeys(found))
        if titles:
            said += f"; {word}: {names(titles, NAMED)}"
    less = loosened(verdict.checks)
    if less:
        said += f"; limits {less}"
    return clean(said)


def reason(verdict: Verdict, fault: PerchError | None) -> str | None:
    """Why a run could not be judged, and what to do: `fault`, or its first check with words.

    A check whose figure is a number only counts what other checks name, with their file.
    """
    if fault is not None:
        return str(fault)
    if verdict.verdict != "INCONCLUSIVE":
        return None
    worded = (
        f"{check.measured}; {check.remedy}" if check.remedy else check.measured
        for check in verdict.checks
        if check.status == "inconclusive" and isinstance(check.measured, str)
    )
    return next(worded, None)
