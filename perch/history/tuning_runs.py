"""The sub-runs of a comparison of a tuning: NN-untuned and NN-tuned in turn, each a judged run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from perch.checks.figures import TIMES_COMPLETION
from perch.errors import PerchError
from perch.judge import planned
from perch.model.figures import encode, supports
from perch.model.record import Latency, Number, Params, Record, Scope
from perch.model.tuning import KINDS, Kind, Phase
from perch.model.verdict import Word
from perch.run import folder

UNTUNED: Final = "untuned"
TUNED: Final = "tuned"

#: What makes two transfers the same question.
_TRANSFER = ("batch", "devices", "threads", "consecutive", "session", "stride_bytes", "chunks")


class Key(NamedTuple):
    test: str
    client: str
    server: str
    place: str


class About(msgspec.Struct):
    """What a flow measures. `batch`: of a transfer's sum."""

    kind: Kind | None = None
    op: str | None = None
    definition: str | None = None
    size_bytes: int | None = None
    batch: int | None = None


class Line(msgspec.Struct):
    """One record of a sub-run. `why`: it was not measured. `like`: what must be the same."""

    name: str
    flow: str
    key: Key
    why: str | None
    like: dict[str, Any]
    about: About
    values: dict[str, Number | None]


class SubRun(msgspec.Struct):
    """One sub-run. `why`: it cannot be used."""

    name: str
    phase: Phase
    repeat: int
    why: str | None = None
    run: str | None = None
    suite: str | None = None
    title: str | None = None
    created: str | None = None
    hosts: list[str] = []
    scope: Scope | None = None
    verdict: Word | None = None
    titles: dict[str, str] = {}
    planned: int | None = None
    measured: int | None = None
    lines: list[Line] = []

    @property
    def usable(self) -> bool:
        return self.why is None


# ---- a record ------------------------------------------------------------------------------------


def _settings(record: Record, params: Params, level: str | None) -> str:
    rate = None if params.rate is None else [params.rate.asked, params.rate.unit]
    asked = [
        record.kind,
        record.definition,
        level,
        params.completion,
        params.queue_pairs,
        params.outstanding,
        params.gap_us,
        rate,
        params.size_bytes,
    ]
    if record.kind == "sum":
        asked += [record.op, *(getattr(params, name) for name in _TRANSFER)]
    return encode(asked).decode()


def _like(record: Record, params: Params) -> dict[str, Any]:
    """The path's MTU is not among it: that may be what was tuned."""
    level = record.completion_level if record.definition in TIMES_COMPLETION else None
    return {
        "definition": record.definition,
        "completion_level": level,
        "tool": " ".join(one for one in (record.tool.name, record.tool.version) if one),
        "backend": record.backend,
        "provider": record.provider,
        "scope": record.scope,
        "connection": record.connection,
        "bidirectional": params.bidirectional is True,
        "verify": params.verify is True,
        "settings": _settings(record, params, level),
    }


def _values(record: Record) -> dict[str, Number | None]:
    """An imported tool's percentiles may have no count, or too low a one, behind them."""
    latency = record.latency_us or Latency()
    values: dict[str, Number | None] = {
        name: getattr(latency, name) for name in Latency.__struct_fields__
    }
    for name, quantile in Latency.PERCENTILES.items():
        if latency.count is None or not supports(latency.count, quantile):
            values[name] = None
    return values | {"gbit_s": None if record.bandwidth is None else record.bandwidth.gbit_s}


def _line(name: str, record: Record) -> Line:
    params = record.params or Params()
    ends = record.client.host or "", record.server.host or ""
    key = Key(record.test, *ends, record.place + record.on_rail)
    if record.status != "ok":
        why = record.status if record.error is None else record.error.message
        return Line(name, record.flow, key, why or record.status, {}, About(), {})
    kind: Kind | None = next((one for one in KINDS if one == record.kind), None)
    about = About(
        kind,
        record.op,
        record.definition,
        params.size_bytes,
        params.batch if kind == "sum" else None,
    )
    like = _like(record, params)
    return Line(name, record.flow, key, None, like, about, _values(record))


# ---- a sub-run -----------------------------------------------------------------------------------


def _read(root: Path, found: SubRun) -> None:
    """Fills in what is known of a sub-run. Raises PerchError where a file cannot be used."""
    plan = planned.read_plan(root / folder.PLAN)
    verdict, records = folder.verdict_head(root), folder.records(root)
    found.run, found.created = plan.run, plan.created
    found.suite, found.title = plan.suite.name, plan.suite.title
    found.hosts, found.scope, found.verdict = list(plan.hosts), verdict.scope, verdict.verdict
    found.titles = {flow.test: flow.title or flow.test for flow in plan.flows()}
    found.planned = sum(len(flow.expect) for flow in plan.flows())
    found.measured = sum(record.status == "ok" for record in records)
    if len(records) != found.planned:
        found.why = f"records.jsonl has {len(records)} of {found.planned} records: judge it again"
    # a transfer's sum speaks for its pairs of devices
    found.lines = [_line(found.name, record) for record in records if record.kind != "transfer"]


def _sub_run(root: Path, found: SubRun) -> None:
    if not root.is_dir():
        found.why = "it was not made"
        return
    for file in (folder.PLAN, folder.VERDICT, folder.RECORDS):
        if not folder.is_regular(root / file):
            found.why = f"{file} is missing or cannot be read"
            return
    try:
        _read(root, found)
    except PerchError as error:
        at = f"{Path(error.file).name}: " if error.file else ""
        found.why = f"it is damaged: {at}{error.what}"


def read(root: Path, repeats: int) -> list[SubRun]:
    """All sub-runs in order; what was not made is among them, and a copy is not used twice."""
    runs: list[SubRun] = []
    for number in range(1, 2 * repeats + 1):
        phase: Phase = UNTUNED if number % 2 else TUNED
        found = SubRun(f"{number:02d}-{phase}", phase, (number + 1) // 2)
        _sub_run(root / found.name, found)
        twin = next((one.name for one in runs if one.run and one.run == found.run), None)
        if twin is not None:
            found.why = f"it is the same run as {twin}"
        runs.append(found)
    return runs


def by_key(runs: Iterable[SubRun]) -> dict[Key, list[Line]]:
    """The lines of these sub-runs, by what was measured."""
    found: dict[Key, list[Line]] = {}
    for run in runs:
        for line in run.lines:
            found.setdefault(line.key, []).append(line)
    return found
