"""Student's t: the interval of a mean of few values, and how often chance alone is as far off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

#: The 0.975 quantile for 1 to 29 degrees of freedom: NIST/SEMATECH e-Handbook of Statistical
#: Methods, 1.3.6.7.2, "Critical Values of the Student's t Distribution".
_CRITICAL = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045,
)  # fmt: skip

#: The most values that interval() takes.
MOST = len(_CRITICAL) + 1


def critical(n: int) -> float:
    """The two-sided 95 % bound of t for `n` values (2 to MOST)."""
    return _CRITICAL[n - 2]


def p_value(t: float, df: int) -> float:
    """How often chance alone exceeds |t| with `df` degrees of freedom.

    The finite series in cos^2 of Abramowitz and Stegun, Handbook of Mathematical Functions,
    26.7.3 and 26.7.4.
    """
    x = abs(t)
    angle = math.atan(x / math.sqrt(df))
    cos2 = 1 / (1 + x * x / df)
    odd = df % 2 == 1
    term = series = 1.0
    for j in range(3 if odd else 2, df, 2):
        term *= (j - 1) / j * cos2
        series += term
    if df == 1:
        within = 2 / math.pi * angle
    elif odd:
        within = 2 / math.pi * (angle + x / math.sqrt(df) * cos2 * series)
    else:
        within = math.sin(angle) * series
    return max(1 - within, 0)


class Interval(NamedTuple):
    """A mean's 95 % interval is mean -+ half_width; `p`: chance alone gives one as far from 0."""

    n: int
    mean: float
    half_width: float
    p: float


def interval(values: Sequence[float], resolution: float) -> Interval:
    """Never narrower than `resolution`, to which the values themselves are known.

    Two repeats that agree in every digit prove nothing finer than a digit.
    """
    n = len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    error = math.sqrt(variance / n)
    p = 1.0 if abs(mean) <= resolution else 0.0 if error == 0 else p_value(mean / error, n - 1)
    return Interval(n, mean, max(critical(n) * error, resolution), p)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted for all of them, in the same order; it holds whatever depends on what.

    S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
    Statistics 6 (1979).
    """
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, p_values[i] * (len(p_values) - rank))
        adjusted[i] = min(least, 1)
    return adjusted
