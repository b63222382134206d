"""Slopes and steps of a figure over time, with what chance alone can make of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

#: How often a soak without any fault is said to have drifted, stepped or leaked, all its tests
#: together: each of m tests has a share of it (Bonferroni: O. J. Dunn, Journal of the American
#: Statistical Association 56, 1961). Site policy: one soak in a hundred.
FALSE_ALARM = 0.01

#: Neighbouring intervals resemble each other, so that few batches of many say more of a slope than
#: all of them: ten to thirty (B. Schmeiser, Operations Research 30, 1982).
BATCHES_MOST = 24
BATCHES_LEAST = 10

#: A difference of so many median deviations (seven standard deviations of a normal value) is none
#: of chance's, however few values there are: ranks know no size, and bear no small p of few values.
#: Of a slope's both ends together twice as many. Site policy.
DEVIATIONS = 10

#: Outliers count as so many median deviations where neighbours are compared.
OUTLIER = 4.5
LIKENESS_MOST = 0.9

#: Values on each side of a step that its contrast is taken of.
WINDOW_MOST = 15

#: Shorter parts are no level of their own; their lowest interval is judged by itself.
PART_LEAST = 5
#: So often the parts on both sides of a step are looked at again.
DEPTH = 3


class Trend(NamedTuple):
    """A slope in units of value per unit of time; `low` and `high` bound it, None of few points."""

    slope: float
    low: float | None
    high: float | None


class Step(NamedTuple):
    """`at`: the first value after it. `before`, `after`: the medians of the parts beside it."""

    at: int
    before: float
    after: float


def median(values: Any) -> float:
    return float(np.median(values))


def normal_quantile(p: float) -> float:
    """What a standard normal value exceeds with probability p.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.23 (|error| < 4.5e-4).
    """
    t = math.sqrt(-2 * math.log(p))
    above = 2.515517 + 0.802853 * t + 0.010328 * t * t
    return t - above / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t**3)


def batched(times: Values, values: Values, most: int) -> tuple[Values, Values]:
    """At most `most` batches: mean times and median values.

    A median, as a stall or a gap is an anomaly of its own.
    """
    n = len(times)
    k = min(n, most)
    edges = [i * n // k for i in range(k + 1)]
    parts = [slice(a, b) for a, b in pairwise(edges)]
    return (
        np.array([times[part].mean() for part in parts]),
        np.array([np.median(values[part]) for part in parts]),
    )


def _deviation(residuals: Values) -> float:
    return median(np.abs(residuals))


def _likeness(residuals: Values) -> float:
    """How much neighbours resemble each other: 0 to 0.9."""
    if len(residuals) < 3:
        return 0.0
    most = OUTLIER * _deviation(residuals)
    if most == 0:
        return 0.0
    r = np.clip(residuals, -most, most)
    return min(max(float(r[1:] @ r[:-1]) / float(r @ r), 0.0), LIKENESS_MOST)


def theil_sen(times: Values, values: Values, alpha: float) -> Trend | None:
    """The median of the slopes of all pairs, and its interval; None where no time passes.

    P. K. Sen, Journal of the American Statistical Association 63, 1968. The variance grows with the
    likeness r of neighbours by (1 + r) / (1 - r) (K. H. Hamed and A. R. Rao, Journal of Hydrology
    204, 1998, for r of the first order). Where so few points bear no such interval, it is that of
    the residuals' deviations.
    """
    i, j = np.triu_indices(len(times), 1)
    apart = times[j] - times[i]
    later = apart > 0
    slopes = np.sort((values[j] - values[i])[later] / apart[later])
    n, m = len(times), len(slopes)
    if m == 0:
        return None
    slope = median(slopes)
    if n < BATCHES_LEAST:
        return Trend(slope, None, None)
    residuals = values - slope * times
    residuals = residuals - np.median(residuals)
    r = _likeness(residuals)
    variance = n * (n - 1) * (2 * n + 5) / 18 * (1 + r) / (1 - r)
    first = math.floor((m - normal_quantile(alpha / 2) * math.sqrt(variance)) / 2)
    if first < 0:
        half = 2 * DEVIATIONS * _deviation(residuals) / float(times[-1] - times[0])
        return Trend(slope, slope - half, slope + half)
    return Trend(slope, float(slopes[first]), float(slopes[m - 1 - first]))


def trend(times: Values, values: Values, alpha: float) -> Trend | None:
    return theil_sen(*batched(times, values, BATCHES_MOST), alpha)


# ---- steps ---------------------------------------------------------------------------------------


def ranks(values: Values) -> Values:
    """From 1; equal values share theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(mean_rank[place], dtype=np.float64)


def _residuals(left: Values, right: Values) -> Values:
    return np.concatenate([left - np.median(left), right - np.median(right)])


def _contrast(values: Values, at: int) -> float:
    """How far the levels beside a place are apart, in median deviations of both."""
    w = min(at, len(values) - at, WINDOW_MOST)
    left, right = values[at - w : at], values[at : at + w]
    apart = abs(median(right) - median(left))
    if apart == 0:
        return 0.0
    deviation = _deviation(_residuals(left, right))
    return apart / deviation if deviation else math.inf


def _step(values: Values) -> tuple[int, float]:
    """Where a series steps, and the probability that chance did it.

    Pettitt's test of one change (A. N. Pettitt, Applied Statistics 28, 1979), which knows no
    distribution; K squared is made smaller by the likeness of neighbours on both sides.
    """
    n = len(values)
    k = np.arange(1, n)
    u = np.abs(2 * np.cumsum(ranks(values)[:-1]) - k * (n + 1))
    at = int(np.argmax(u)) + 1
    if _contrast(values, at) > DEVIATIONS:
        return at, 0.0
    r = _likeness(_residuals(values[:at], values[at:]))
    p = 2 * math.exp(-6 * float(u[at - 1]) ** 2 * (1 - r) / (1 + r) / (n**3 + n**2))
    return at, min(1.0, p)


def _places(values: Values, alpha: float, start: int, depth: int) -> Iterator[int]:
    if depth == 0 or len(values) < 2 * PART_LEAST:
        return
    at, p = _step(values)
    if p < alpha and PART_LEAST <= at <= len(values) - PART_LEAST:
        yield from _places(values[:at], alpha, start, depth - 1)
        yield start + at
        yield from _places(values[at:], alpha, start + at, depth - 1)


def steps(values: Values, alpha: float) -> list[Step]:
    """All steps of a series, in order.

    Binary segmentation (A. J. Scott and M. Knott, Biometrics 30, 1974): the parts on both sides of
    a step are looked at again.
    """
    places = list(_places(values, alpha, 0, DEPTH))
    edges = [0, *places, len(values)]
    levels = [median(values[a:b]) for a, b in pairwise(edges)]
    return [Step(at, levels[i], levels[i + 1]) for i, at in enumerate(places)]
