"""The comparison of a folder of sub-runs, untuned against tuned (perch.tuning/1)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from perch.checks.scope import weakest
from perch.history import tuning_figures, tuning_runs
from perch.history.tuning_figures import (
    BETTER,
    NO_EFFECT,
    NOT_COMPARED,
    WORSE,
    Figure,
    FlowChange,
    Overall,
)
from perch.history.tuning_runs import SubRun
from perch.judge.raw import UNREADABLE
from perch.model.record import Scope
from perch.model.text import names, plural
from perch.model.tuning import (
    MOST_REPEATS,
    Asked,
    Counts,
    FigureRow,
    FlowRow,
    Method,
    Outcome,
    OverallRow,
    Result,
    RunRow,
    TuningDocument,
)
from perch.run import folder

_RUN = RunRow.__struct_fields__
_sub_run = re.compile(r"(\d\d)-(?:untuned|tuned)")


class Tuning(msgspec.Struct):
    """A whole comparison. `gaps`: what keeps it from being whole, in words."""

    name: str
    repeats: int
    asked: Asked | None
    outcome: Outcome | None
    runs: list[SubRun]
    pairs: list[list[str]]
    flows: list[FlowChange] = []
    overall: list[Overall] = []
    gaps: list[str] = []

    @property
    def figures(self) -> list[Figure]:
        return [figure for flow in self.flows for figure in flow.figures]

    def first(self, name: str) -> Any:
        """The first of what the sub-runs say, such as their title."""
        return next((one for run in self.runs if (one := getattr(run, name)) is not None), None)

    @property
    def scope(self) -> Scope | None:
        scopes = [run.scope for run in self.runs if run.scope is not None]
        return weakest(scopes) if scopes else None

    @property
    def hosts(self) -> list[str]:
        return sorted({host for run in self.runs for host in run.hosts})

    @property
    def suites(self) -> list[str]:
        return sorted({run.suite for run in self.runs if run.usable and run.suite is not None})

    @property
    def result(self) -> Result:
        """By what remains over all flows after Holm's correction; never of half a comparison."""
        sure = {one.change.verdict for one in self.overall if one.change.is_sure}
        if self.gaps:
            return "incomplete"
        if sure >= {BETTER, WORSE}:
            return "mixed"
        if BETTER in sure:
            return BETTER
        return WORSE if WORSE in sure else NO_EFFECT


# ---- what was asked ------------------------------------------------------------------------------


def _document(path: Path) -> dict[str, Any]:
    """Nothing where there is no object."""
    try:
        content = path.read_bytes() if folder.is_regular(path) else b"{}"
        return msgspec.json.decode(content, type=dict[str, Any])
    except (*UNREADABLE, OSError):
        return {}


def _asked(given: Any) -> Asked | None:
    """The playbook's own words; whatever else stands there counts as nothing."""
    if not isinstance(given, dict):
        return None
    role, settings = given.get("role"), given.get("settings")
    if not isinstance(role, str):
        return None
    of_hosts = settings.items() if isinstance(settings, dict) else ()
    return Asked(role, {host: one if isinstance(one, dict) else {} for host, one in of_hosts})


def _texts(given: Any) -> list[str]:
    return [str(one) for one in given] if isinstance(given, list) else []


def _outcome(given: dict[str, Any]) -> Outcome | None:
    if not given:
        return None
    stopped, changes = given.get("stopped"), given.get("changes")
    return Outcome(
        None if stopped is None else str(stopped).rstrip(". "),
        {host: _texts(one) for host, one in changes.items()} if isinstance(changes, dict) else None,
        _texts(given.get("not_reverted")),
    )


def _repeats(root: Path, asked: Any) -> int:
    """How many were asked for, else as many as there are: what is missing must be missed."""
    if isinstance(asked, int) and 2 <= asked <= MOST_REPEATS:
        return asked
    numbers = [int(found[1]) for one in root.iterdir() if (found := _sub_run.fullmatch(one.name))]
    return (max(numbers, default=0) + 1) // 2


# ---- the comparison ------------------------------------------------------------------------------


def _gaps_of_outcome(outcome: Outcome) -> Iterator[str]:
    if outcome.stopped is not None:
        yield f"the comparison was stopped: {outcome.stopped}"
    if outcome.not_reverted:
        hosts = names(outcome.not_reverted, 20)
        yield f"these hosts were not reverted: {hosts}; run playbooks/revert.yml"
    if outcome.changes is not None and not any(outcome.changes.values()):
        yield "the tuning changed nothing on any host: both are the same"


def _gaps_of_runs(runs: Sequence[SubRun]) -> Iterator[str]:
    for why in sorted({run.why for run in runs if run.why is not None}):
        yield f"{names([run.name for run in runs if run.why == why], 8)}: {why}"
    for run in runs:
        if run.usable and (run.measured or 0) < (run.planned or 0):
            yield f"{run.name}: {run.measured} of {run.planned} records measured"


def _gaps(found: Tuning) -> Iterator[str]:
    if found.outcome is not None:
        yield from _gaps_of_outcome(found.outcome)
    yield from _gaps_of_runs(found.runs)
    refused = [flow for flow in found.flows if flow.why is not None]
    if refused:
        one = refused[0]
        yield (
            f"{len(refused)} of {len(found.flows)} flows and sizes cannot be compared, the first "
            f"{one.key.test}, {one.key.client} to {one.key.server}, {one.key.place}: {one.why}"
        )
    if len(found.pairs) < 2:
        yield f"{plural(len(found.pairs), 'whole pair')} of runs: an interval needs two"
    elif all(figure.change.verdict == NOT_COMPARED for figure in found.figures):
        yield "no figure could be compared"
    if len(found.suites) > 1:
        yield f"the sub-runs are of different suites: {', '.join(found.suites)}"


def _order(flow: FlowChange) -> tuple[Any, ...]:
    size, batch = flow.about.size_bytes, flow.about.batch
    return (*flow.key[:3], -1 if size is None else size, -1 if batch is None else batch)


def _flows(runs: Sequence[SubRun], pairs: Sequence[Sequence[str]]) -> list[FlowChange]:
    """Of the whole pairs; two are the fewest that have an interval."""
    if len(pairs) < 2:
        return []
    used = [name for pair in pairs for name in pair]
    titles = {test: title for run in runs for test, title in run.titles.items()}
    lines = tuning_runs.by_key(run for run in runs if run.name in used)
    flows = [
        tuning_figures.flow(key, of_key, used, titles.get(key.test, key.test))
        for key, of_key in sorted(lines.items(), key=lambda one: "\t".join(one[0]))
    ]
    return sorted(flows, key=_order)


def compare(root: Path) -> Tuning | None:
    """None where the folder holds no sub-run, or too many."""
    given = _document(root / "inputs/tuning.json")
    repeats = _repeats(root, given.get("repeats"))
    if not 1 <= repeats <= MOST_REPEATS:
        return None
    runs = tuning_runs.read(root, repeats)
    both = zip(runs[::2], runs[1::2], strict=True)
    found = Tuning(
        name=root.resolve().name,
        repeats=repeats,
        asked=_asked(given.get("tuning")),
        outcome=_outcome(_document(root / "inputs/outcome.json")),
        runs=runs,
        pairs=[[a.name, b.name] for a, b in both if a.usable and b.usable],
    )
    found.flows = _flows(runs, found.pairs)
    tuning_figures.correct([figure.change for figure in found.figures])
    found.overall = list(tuning_figures.overall(found.flows))
    tuning_figures.correct([one.change for one in found.overall])
    found.gaps = list(_gaps(found))
    return found


# ---- the document --------------------------------------------------------------------------------


def counts(found: Tuning) -> Counts:
    """Of the figures of single flows."""
    changes = [figure.change for figure in found.figures]

    def of(verdict: str, *, sure: bool = False) -> int:
        return sum(one.verdict == verdict and (one.is_sure or not sure) for one in changes)

    compared = len(changes) - of(NOT_COMPARED)
    return Counts(
        compared=compared,
        better=of(BETTER),
        worse=of(WORSE),
        no_effect=of(NO_EFFECT),
        not_compared=of(NOT_COMPARED),
        by_chance=compared / 20,
        sure_better=of(BETTER, sure=True),
        sure_worse=of(WORSE, sure=True),
    )


def _figure(figure: Figure) -> FigureRow:
    return FigureRow(
        metric=figure.metric.name,
        title=figure.metric.title,
        unit=figure.metric.unit,
        better=figure.metric.better,
        untuned=figure.untuned,
        tuned=figure.tuned,
        **structs.asdict(figure.change),
        resolution=msgspec.UNSET if figure.resolution is None else figure.resolution,
    )


def _flow(flow: FlowChange) -> FlowRow:
    return FlowRow(
        **flow.key._asdict(),
        title=flow.title,
        **structs.asdict(flow.about),
        why=flow.why,
        figures=[_figure(figure) for figure in flow.figures],
    )


def _overall(one: Overall) -> OverallRow:
    return OverallRow(
        kind=one.kind,
        metric=one.metric.name,
        title=one.metric.title,
        better=one.metric.better,
        flows=one.flows,
        **structs.asdict(one.change),
    )


def _method(found: Tuning) -> Method:
    return Method(
        statistic="mean of the logarithms of tuned / untuned, neighbours in time; Student's t",
        confidence=0.95,
        repeats=found.repeats,
        pairs=len(found.pairs),
        correction="Holm 1979",
        t_values="NIST/SEMATECH e-Handbook 1.3.6.7.2",
    )


def document(found: Tuning) -> TuningDocument:
    """perch.tuning/1."""
    return TuningDocument(
        schema="perch.tuning/1",
        run=found.name,
        suite=next(iter(found.suites), None),
        title=found.first("title"),
        created=found.first("created"),
        scope=found.scope,
        hosts=found.hosts,
        tuning=found.asked,
        outcome=found.outcome,
        method=_method(found),
        result=found.result,
        gaps=found.gaps,
        counts=counts(found),
        runs=[RunRow(*(getattr(run, name) for name in _RUN)) for run in found.runs],
        overall=[_overall(one) for one in found.overall],
        flows=[_flow(flow) for flow in found.flows],
    )
