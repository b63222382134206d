"""Two runs' figures beside each other (perch.comparison/1)."""

from __future__ import annotations

from math import sqrt
from typing import Any, cast

import msgspec

from perch.checks.figures import unlike
from perch.history.baseline import is_extreme
from perch.history.intervals import Ranges
from perch.model import student
from perch.model.baseline import AcceptedFigure, BaselineDocument
from perch.model.comparison import Comparison, Named, Range, Refused, Row
from perch.model.figures import rounded

METHOD = (
    "95 % intervals of repeats are by Student's t. Without repeats, latency uses order statistics "
    "of its histogram, and bandwidth batch means of its intervals. The last two do not show how "
    "runs differ"
)


class Side(msgspec.Struct):
    """One run: its figures, and the intervals that it shows itself."""

    figures: BaselineDocument
    ranges: Ranges


def _named(side: Side) -> Named:
    of = side.figures
    return Named(of.run, of.created, of.verdict, of.fabric.scope)


def interval(side: Side, key: str, figure: AcceptedFigure) -> Range | None:
    """Of its repeats, where there are any: a repeat is what a run is. None of an extreme."""
    place, _, metric = key.rpartition("/")
    if is_extreme(metric):
        return None
    if figure.n < 2 or figure.cv_percent is None:
        return side.ranges.get(place, {}).get(metric)
    critical = student.critical(min(figure.n, student.MOST))
    half = critical * figure.value * figure.cv_percent / 100 / sqrt(figure.n)
    return Range(rounded(max(figure.value - half, 0)), rounded(figure.value + half), "repeats")


def words(a: Range | None, b: Range | None, better: str, metric: str) -> str:
    """Better or worse only where the two intervals do not overlap."""
    if is_extreme(metric):
        return "no interval: an extreme"
    if a is None or b is None:
        return "no interval: one value"
    if a.high >= b.low and b.high >= a.low:
        return "no difference seen"
    word = "better" if (b.low > a.high) == (better == "higher") else "worse"
    within = "" if a.of == b.of == "repeats" else ", within these two runs"
    return word + within


def _row(a: Side, b: Side, key: str) -> Row:
    x, y = a.figures.figures[key], b.figures.figures[key]
    of_a, of_b = interval(a, key, x), interval(b, key, y)
    return Row(
        figure=key,
        unit=x.unit,
        better=x.better,
        a=x.value,
        a_interval=of_a,
        b=y.value,
        b_interval=of_b,
        change_percent=rounded(100 * (y.value / x.value - 1)),
        words=cast(Any, words(of_a, of_b, x.better, key.rpartition("/")[2])),
    )


def compare(a: Side, b: Side) -> Comparison:
    """Every figure that both have, in the order of `a`; what was measured otherwise is named."""
    of_a, of_b = a.figures.figures, b.figures.figures
    rows, refused = [], []
    for key in of_a:
        if key not in of_b:
            continue
        why = unlike(a.figures.terms[of_a[key].of], b.figures.terms[of_b[key].of])
        if why is None:
            rows.append(_row(a, b, key))
        else:
            refused.append(Refused(key, why))
    return Comparison(
        schema="perch.comparison/1",
        a=_named(a),
        b=_named(b),
        method=METHOD,
        rows=rows,
        refused=refused,
        only_a=[key for key in of_a if key not in of_b],
        only_b=[key for key in of_b if key not in of_a],
    )
