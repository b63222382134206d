"""Each figure of each flow, untuned against tuned.

The unit of evidence is the repeat: a tuned run against the untuned one just before it, as the
logarithm of their ratio. What an interval of ratios is worth here: T. Kalibera, R. Jones,
"Quantifying Performance Changes with Effect Size Confidence Intervals" (2012/2020).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, fsum, log
from typing import Any, Final, Literal, NamedTuple

import msgspec

from perch.history.tuning_runs import About, Key, Line
from perch.model import student
from perch.model.figures import median, rounded
from perch.model.record import Latency, Number
from perch.model.tuning import Better, Change, Kind, MetricName

#: The engine's histogram has three significant digits (docs/definitions.md): the ratio of two
#: figures is known to 0.2 %.
_ENGINE_RESOLUTION = 0.002
#: Other tools print two decimals (perftest, the cxi tools) or three digits (iperf).
_STEP = 0.01

BETTER: Final = "better"
WORSE: Final = "worse"
NO_EFFECT: Final = "no_effect"
NOT_COMPARED: Final = "not_compared"


class Metric(NamedTuple):
    name: MetricName
    title: str
    unit: Literal["us", "Gb/s"]
    better: Better


_TITLES: dict[MetricName, str] = {
    "min": "minimum",
    "p50": "typical (p50)",
    "mean": "average",
    "stddev": "deviation",
    "max": "maximum",
    "p99": "p99",
    "p99_9": "p99.9",
}
_LATENCY = tuple(Metric(name, title, "us", "lower") for name, title in _TITLES.items())
_BANDWIDTH = (Metric("gbit_s", "bandwidth", "Gb/s", "higher"),)
#: In the order of the tables.
METRICS: dict[Kind, tuple[Metric, ...]] = {
    "latency": _LATENCY,
    "bandwidth": _BANDWIDTH,
    "sum": (*_BANDWIDTH, *_LATENCY),
}


class Ratios(NamedTuple):
    """Logarithms: of each tuned run over the untuned one before it, and over the one after it."""

    forth: list[float]
    back: list[float]


def not_compared(why: str | None) -> Change:
    return Change(None, None, None, None, None, NOT_COMPARED, why, None)


class Figure(msgspec.Struct):
    metric: Metric
    untuned: Number | None
    tuned: Number | None
    change: Change
    ratios: Ratios | None = None
    resolution: Number | None = None


class FlowChange(msgspec.Struct):
    """A flow at a size. `why`: none of its figures can be compared."""

    key: Key
    title: str
    about: About
    why: str | None
    figures: list[Figure]


class Overall(msgspec.Struct):
    """A figure over all flows."""

    kind: Kind
    metric: Metric
    flows: int
    change: Change


# ---- one figure ----------------------------------------------------------------------------------


def log_ratios(untuned: Sequence[float], tuned: Sequence[float]) -> Ratios:
    forth = [log(b) - log(a) for a, b in zip(untuned, tuned, strict=True)]
    back = [log(b) - log(a) for a, b in zip(untuned[1:], tuned, strict=False)]
    return Ratios(forth, back)


def resolution(tool: str, least: float) -> float:
    """How finely a figure is known, as a part of it."""
    if tool.startswith("perch "):
        return _ENGINE_RESOLUTION
    return max(_STEP / least, _ENGINE_RESOLUTION)


def _percent(logarithm: float) -> Number:
    return rounded((exp(logarithm) - 1) * 100)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def compared(ratios: Ratios, better: str, known_to: float) -> Change:
    """The interval holds "no change", or it does not.

    A change that goes on in the same direction when the tuning is taken back is drift of the
    machines: the runs' order alone made it.
    """
    found = student.interval(ratios.forth, known_to)
    low, high = found.mean - found.half_width, found.mean + found.half_width
    way = 1 if low > 0 else -1 if high < 0 else 0
    half = found.half_width
    smallest = _percent(half) if better == "higher" else -_percent(-half)
    change = Change(
        change_percent=_percent(found.mean),
        low_percent=_percent(low),
        high_percent=_percent(high),
        smallest_percent=smallest,
        p=rounded(found.p),
        verdict=NO_EFFECT,
        why=None,
        p_holm=None,
    )
    if way == 0:
        return change
    if _mean(ratios.back) * way <= 0:
        change.p = 1  # drift is no evidence against chance
        change.why = "it moved on the same way when the tuning was taken back: drift"
    else:
        change.verdict = BETTER if (way > 0) == (better == "higher") else WORSE
    return change


def of_run(values: Sequence[Number | None], metric: str) -> Number | None:
    """A figure over a flow's own repeats within a sub-run: extremes are those of all of them."""
    known = [value for value in values if value is not None]
    if metric in ("min", "max"):
        return (min if metric == "min" else max)(known, default=None)
    return median(known) if len(known) == len(values) else None


def obstacle(values: Sequence[Number | None], metric: str, names: Sequence[str]) -> str | None:
    """Why a figure cannot be compared. `values`: those of the sub-runs of these names."""
    for value, name in zip(values, names, strict=True):
        if value is None:
            few = metric in Latency.PERCENTILES
            return f"{'too few samples' if few else 'not reported'} in {name}"
        if value <= 0:
            return f"{value} in {name}"
    return None


def figure(metric: Metric, lines: Sequence[Line], names: Sequence[str]) -> Figure:
    """`lines`: of one place. `names`: the sub-runs, untuned and tuned in turn."""
    values = [
        of_run([line.values[metric.name] for line in lines if line.name == name], metric.name)
        for name in names
    ]
    why = obstacle(values, metric.name, names)
    untuned, tuned = of_run(values[::2], ""), of_run(values[1::2], "")
    found = Figure(metric, untuned, tuned, not_compared(why))
    known = [value for value in values if value is not None]
    if why is None:
        found.ratios = log_ratios(known[::2], known[1::2])
        found.resolution = resolution(lines[0].like["tool"], min(known))
        found.change = compared(found.ratios, metric.better, found.resolution)
    return found


# ---- a flow --------------------------------------------------------------------------------------


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None else str(value)


def unlike(a: dict[str, Any], b: dict[str, Any]) -> str | None:
    """The first thing in which two records are not alike."""
    return next(
        (f"{name}: {_shown(a[name])} and {_shown(b[name])}" for name in a if a[name] != b[name]),
        None,
    )


def refused(lines: Sequence[Line], names: Sequence[str]) -> str | None:
    """Why a flow at a size cannot be compared at all."""
    seen = {line.name for line in lines}
    for name in names:
        if name not in seen:
            return f"{name} has no record of it"
    for line in lines:
        if line.why is not None:
            return f"not measured in {line.name}: {line.why}"
    for line in lines[1:]:
        odd = unlike(lines[0].like, line.like)
        if odd is not None:
            return f"{lines[0].name} and {line.name} are not alike ({odd})"
    return None


def flow(key: Key, lines: Sequence[Line], names: Sequence[str], title: str) -> FlowChange:
    about = next((line.about for line in lines if line.why is None), lines[0].about)
    why = refused(lines, names)
    metrics = METRICS[about.kind] if why is None and about.kind is not None else ()
    return FlowChange(key, title, about, why, [figure(one, lines, names) for one in metrics])


# ---- over all flows ------------------------------------------------------------------------------


def _columns(rows: Sequence[Sequence[float]]) -> list[float]:
    """Of each repeat the mean over flows, so that the repeat stays the unit."""
    return [_mean(column) for column in zip(*rows, strict=True)]


def overall(flows: Sequence[FlowChange]) -> Iterator[Overall]:
    """Metric by metric, in the order of the tables."""
    for kind, metrics in METRICS.items():
        for metric in metrics:
            ratios = [
                one.ratios
                for each in flows
                if each.about.kind == kind
                for one in each.figures
                if one.metric == metric and one.ratios is not None
            ]
            if ratios:
                mean = Ratios(
                    _columns([one.forth for one in ratios]), _columns([one.back for one in ratios])
                )
                change = compared(mean, metric.better, _ENGINE_RESOLUTION)
                yield Overall(kind, metric, len(ratios), change)


def correct(changes: Sequence[Change]) -> None:
    """Sets p_holm of all that have a p."""
    with_p = [(change, change.p) for change in changes if change.p is not None]
    for (change, _), p in zip(with_p, student.holm([p for _, p in with_p]), strict=True):
        change.p_holm = rounded(p)
