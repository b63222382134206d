"""perch.tuning/1: what a tuning changed, each figure of each flow with its 95 % interval."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from perch.model.comparison import Change as Percent
from perch.model.comparison import NotNegative
from perch.model.record import Number, Scope
from perch.model.verdict import Word

#: An interval of more values has no critical value (perch.model.student).
MOST_REPEATS = 30

Kind = Literal["latency", "bandwidth", "sum"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Better = Literal["lower", "higher"]
MetricName = Literal["min", "p50", "mean", "stddev", "max", "p99", "p99_9", "gbit_s"]
ChangeVerdict = Literal["better", "worse", "no_effect", "not_compared"]
Phase = Literal["untuned", "tuned"]
Result = Literal["better", "worse", "mixed", "no_effect", "incomplete"]
Chance = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]
Whole = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]


class Change(msgspec.Struct, forbid_unknown_fields=True):
    """Of tuned over untuned, in percent, with its 95 % interval.

    `smallest_percent`: the least gain that these repeats would have shown. `p`: how often chance
    alone is as clear; `p_holm`: after Holm's correction for all figures of its list.
    """

    change_percent: Percent | None
    low_percent: Percent | None
    high_percent: Percent | None
    smallest_percent: Percent | None
    p: Chance | None
    verdict: ChangeVerdict
    why: str | None
    p_holm: Chance | None

    @property
    def is_sure(self) -> bool:
        """Whether it remains after Holm's correction."""
        return self.p_holm is not None and self.p_holm < 0.05


class FigureRow(Change, forbid_unknown_fields=True):
    """A figure of a flow: the medians over the repeats, and the change.

    `resolution`: how finely a ratio of this figure is known, as a part of it.
    """

    metric: MetricName
    title: str
    unit: Literal["us", "Gb/s"]
    better: Better
    untuned: Number | None
    tuned: Number | None
    resolution: Number | msgspec.UnsetType = msgspec.UNSET


class OverallRow(Change, forbid_unknown_fields=True):
    """A figure over all flows: the mean of their changes in each repeat."""

    kind: Kind
    metric: MetricName
    title: str
    better: Better
    flows: AtLeastOne


class FlowRow(msgspec.Struct, forbid_unknown_fields=True):
    """A flow at a size. `place`: the size; of transfers size, batch and sum.

    `why`: nothing of it is compared.
    """

    test: str
    title: str
    client: str
    server: str
    place: str
    kind: Kind | None
    op: str | None
    definition: str | None
    size_bytes: Whole | None
    batch: AtLeastOne | None
    why: str | None
    figures: list[FigureRow]


class RunRow(msgspec.Struct, forbid_unknown_fields=True):
    """A sub-run. `why`: it cannot be used."""

    name: Annotated[str, Meta(pattern=r"^[0-9]{2}-(un)?tuned$")]
    phase: Phase
    repeat: AtLeastOne
    run: str | None
    verdict: Word | None
    planned: AtLeastOne | None
    measured: Whole | None
    usable: bool
    why: str | None


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """The role that tunes, and its variables by host (inputs/tuning.json)."""

    role: str
    settings: dict[str, dict[str, Any]]


class Outcome(msgspec.Struct, forbid_unknown_fields=True):
    """How it ended (inputs/outcome.json).

    `changes`: by host what the role reported as changed; null: it reports nothing.
    """

    stopped: str | None
    changes: dict[str, list[str]] | None
    not_reverted: list[str]


class Method(msgspec.Struct, forbid_unknown_fields=True):
    """How the intervals were made. `pairs`: repeats of which both runs can be used."""

    statistic: str
    confidence: Annotated[float, Meta(ge=0.95, le=0.95)]
    repeats: Annotated[int, Meta(ge=1, le=MOST_REPEATS)]
    pairs: Annotated[int, Meta(ge=0, le=MOST_REPEATS)]
    correction: str
    t_values: str


class Counts(msgspec.Struct, forbid_unknown_fields=True):
    """Of figures of single flows.

    `by_chance`: intervals that miss by chance. `sure_better`, `sure_worse`: what remains after the
    correction for all of them.
    """

    compared: Whole
    better: Whole
    worse: Whole
    no_effect: Whole
    not_compared: Whole
    by_chance: NotNegative
    sure_better: Whole
    sure_worse: Whole


class TuningDocument(msgspec.Struct, forbid_unknown_fields=True):
    """Runs untuned and tuned in turn; changes are of tuned against untuned, in percent.

    `created`: when the first sub-run was planned. `result`: by the figures over all flows that
    remain after the correction; incomplete wherever there are `gaps`, which keep the comparison
    from being whole.
    """

    schema: Literal["perch.tuning/1"]
    run: str
    suite: str | None
    title: str | None
    created: str | None
    scope: Scope | None
    hosts: list[str]
    tuning: Asked | None
    outcome: Outcome | None
    method: Method
    result: Result
    gaps: list[str]
    counts: Counts
    runs: list[RunRow]
    overall: list[OverallRow]
    flows: list[FlowRow]
