"""95 % intervals of figures of one run, of its samples or its intervals.

They say how far chance goes within the run; how runs differ, only repeats can say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum, sqrt
from typing import NamedTuple

import numpy as np

from perch.model import histogram, student
from perch.model.comparison import Range
from perch.model.figures import rounded, supports
from perch.model.record import Interval, Record

#: Intervals by place (test/client/server/size) and metric.
Ranges = dict[str, dict[str, Range]]

#: The two-sided 95 % bound of the normal distribution.
_NORMAL = 1.96
_QUANTILES = {"latency_us.p50": 0.5, "latency_us.p99": 0.99}
_MICROSECONDS = {"ns_round_trip": 0.0005}

#: B. Schmeiser, "Batch Size Effects in the Analysis of Simulation Output", Operations Research 30
#: (1982): ten to thirty batches, whatever the length.
BATCHES = 10
#: The last interval may be a short one.
_WHOLE = 0.9


def of(records: Iterable[Record]) -> Ranges:
    """What the run's own histograms and courses say."""
    found: Ranges = {}
    merged: dict[str, list[Record]] = {}
    for record in records:
        if record.status != "ok":
            continue
        place = _place(record)
        if record.kind == "latency" and record.histogram is not None:
            merged.setdefault(place, []).append(record)
        elif record.kind == "bandwidth":
            course = of_course(record)
            if course is not None:
                found.setdefault(place, {})["bandwidth.gbit_s"] = course
    for place, repeats in merged.items():
        found.setdefault(place, {}).update(of_samples(repeats))
    return found


def _place(record: Record) -> str:
    size = None if record.params is None else record.params.size_bytes
    ends = f"{record.test}/{record.client.host}/{record.server.host}"
    return f"{ends}/{'null' if size is None else size}{record.on_rail}"


# ---- latency: order statistics -------------------------------------------------------------------


class _Bounds(NamedTuple):
    metric: str
    low: float
    high: float


def _bounds(n: int) -> list[_Bounds]:
    """Shares between whose samples a quantile lies, with 95 %: n p -+ 1.96 sqrt(n p (1 - p)).

    W. J. Conover, Practical Nonparametric Statistics, 3rd ed., 3.2. Samples beyond the upper one,
    which is the nearer to an end, must support it.
    """
    found = []
    for metric, p in _QUANTILES.items():
        half = _NORMAL * sqrt(p * (1 - p) / n)
        low, high = p - half, p + half
        if supports(n, high):
            found.append(_Bounds(metric, low, high))
    return found


def of_samples(repeats: Sequence[Record]) -> dict[str, Range]:
    """Of all repeats of a place, their histograms merged."""
    kinds = {one.histogram.unit: one.histogram for one in repeats if one.histogram is not None}
    decoded = histogram.decode([one.histogram.data for one in repeats if one.histogram is not None])
    if len(kinds) != 1 or decoded.damaged:
        return {}
    counts = decoded.merged()
    n = int(counts.sum())
    bounds = _bounds(n) if n else []
    (place,) = np.nonzero(counts)
    whole = histogram.Decoded(1, np.zeros_like(place), place, counts[place], [])
    shares = [share for one in bounds for share in (one.low, one.high)]
    times = [int(time) for time in whole.quantiles(*shares)[0]]
    scale = _MICROSECONDS.get(next(iter(kinds)), 0.001)
    return {
        one.metric: Range(rounded(low * scale), rounded(high * scale), "samples")
        for one, low, high in zip(bounds, times[::2], times[1::2], strict=True)
    }


# ---- bandwidth: batch means ----------------------------------------------------------------------


def _length(interval: Interval) -> float:
    return (interval.end_s or 0) - (interval.start_s or 0)


def of_course(record: Record) -> Range | None:
    """Of a stream's mean over time; None where it was not watched for long enough.

    Neighbouring intervals resemble each other (a rate control swings, a burst lasts): batches of
    ten or more neighbours, by Student's t.
    """
    rate = None if record.bandwidth is None else record.bandwidth.gbit_s
    if rate is None or len(record.intervals) < BATCHES:
        return None
    least = _WHOLE * _length(record.intervals[0])
    course = [
        one.gbit_s for one in record.intervals if one.gbit_s is not None and _length(one) > least
    ]
    if len(course) < BATCHES:
        return None
    each = len(course) // BATCHES
    means = [fsum(course[i * each : (i + 1) * each]) / each for i in range(len(course) // each)]
    half = student.interval(means, 0).half_width
    return Range(rounded(max(rate - half, 0)), rounded(rate + half), "intervals")
