"""The lines of a soak's charts, thinned so that no extreme is lost, and anomalies above them.

Values for Vega-Lite: `x` in milliseconds, `v` of the vertical axis, None where a line breaks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from perch.model.figures import rounded
from perch.views import size_charts, words
from perch.views.ranks import grouped
from perch.views.soak_rows import Silence
from perch.views.soak_words import since
from perch.views.words import Figure

Value = dict[str, Any]

#: Of so many stretches of time, of some four pixels each, a line has the extremes.
STRETCHES = 150
#: Shapes that tell lines apart without their colour, on each line.
SHAPES = 8
#: So many points of a line say their value on hover; of longer lines the extremes.
SAID = 20

#: Height of the plots in pixels, as the specs have it.
HEIGHT = 240

LOWEST, HIGHEST, BOTH = "min", "max", "both"


class Point(NamedTuple):
    """`start`, `end`: of the time that it speaks of; a start of None: of a moment."""

    x: float
    v: Figure
    start: float | None = None
    end: float = 0


def _with_holes(points: Sequence[Point], interval: float) -> Iterable[Point]:
    """A hole where more than half an interval is missing before a point."""
    before = None
    for point in points:
        start = point.start
        if before is not None and start is not None and start - before.end > interval / 2:
            yield Point(start, None)
        yield point
        before = point


def _extremes(points: Sequence[Point], keep: str) -> list[Point]:
    known = [point for point in points if point.v is not None]
    holes = [point for point in points if point.v is None][:1]
    kept: list[Point] = []
    if known and keep != HIGHEST:
        kept.append(min(known, key=lambda point: point.v or 0))
    if known and keep != LOWEST:
        highest = max(reversed(known), key=lambda point: point.v or 0)
        kept += [highest] if highest not in kept else []
    return sorted(holes + kept, key=lambda point: point.x)


def thinned(points: Sequence[Point], keep: str, stretches: int = STRETCHES) -> list[Point]:
    """Of each stretch the extremes, in time, and a hole."""
    if len(points) <= 2 * stretches:
        return list(points)
    each = math.ceil(len(points) / stretches)
    starts = range(0, len(points), each)
    return [one for start in starts for one in _extremes(points[start : start + each], keep)]


def _marked(points: Sequence[Point]) -> Iterable[Point]:
    """Where a line has a shape. A point between two holes is no line, and would not be seen."""
    each = math.ceil(len(points) / SHAPES) or 1
    for i, point in enumerate(points):
        lone = (i == 0 or points[i - 1].v is None) and (
            i + 1 == len(points) or points[i + 1].v is None
        )
        if point.v is not None and (i % each == each // 2 or lone):
            yield point


def after_start(x: float) -> str:
    return f"{since(x / 1000)} after the start"


def line(
    points: Iterable[Point], series: str, figure: str, keep: str, interval: float, sign: str
) -> list[Value]:
    """The values of one line. sign: of their unit."""
    ordered = sorted(points, key=lambda point: point.x)
    shown = thinned(list(_with_holes(ordered, interval)), keep)
    of = {"series": series, "figure": figure}

    def value(role: str, point: Point) -> Value:
        v = None if point.v is None else rounded(point.v)
        return {"role": role, **of, "x": math.floor(point.x), "v": v}

    def saying(role: str, point: Point) -> Value:
        at = after_start(point.x if point.start is None else point.start)
        said = f"{series}, {figure}: {words.figure(point.v)} {sign}, {at}"
        return value(role, point) | {"said": said}

    marked = list(_marked(shown))
    others = [one for one in thinned(shown, keep, SAID) if one.v is not None and one not in marked]
    return [
        *(value("line", one) for one in shown),
        *(saying("shape", one) for one in marked),
        *(saying("value", one) for one in others),
    ]


def ends(
    values: Sequence[Value],
    names: Sequence[str],
    span: float,
    *,
    log: bool,
    beside: Sequence[float],
) -> list[Value]:
    """The name of each line at the right edge, at the height where it ends."""
    drawn = [one for one in values if one["role"] == "line" and one["v"] is not None]
    found = size_charts.ends(drawn, "v", names, log=log, along=("x",), beside=beside, height=HEIGHT)
    return [one | {"x": span} for one in found]


def frame(span: float, top: float | None = None) -> list[Value]:
    """What all charts begin and end with, so that times stand below each other.

    top: a vertical axis reaches so far at least, so that noise does not fill it.
    """
    if top is None:
        return [{"role": "frame", "x": 0}, {"role": "frame", "x": span}]
    return [{"role": "frame", "x": 0, "v": 0}, {"role": "frame", "x": span, "v": top}]


def unit(text: str) -> Value:
    return {"role": "unit", "text": text}


# ---- anomalies, above the lines ------------------------------------------------------------------

LANES_MAX = 5
#: A lane of few has a line down through the plot at each.
FEW = 6
#: Where marks are closer than this share of the width, the first has its number.
APART = 0.045
#: Bars that are nearer to each other than this share, two pixels, are one.
ONE_BAR = 0.003
#: Pixels: of the first lane above the plot's edge, and from lane to lane.
FIRST_LANE, LANE = 12, 18


class Mark(msgspec.Struct):
    """An anomaly from x to x2. `id`: in the verdict, None of a silence that it has no room for."""

    kind: str
    x: float
    x2: float
    id: str | None = None


def placed(
    anomalies: Iterable[dict[str, Any]], silences: Iterable[Silence], span: float
) -> list[Mark]:
    """All of them, within the chart."""
    marks = []
    for one in anomalies:
        start, end = one.get("start_s"), one.get("end_s")
        if start is not None:
            end = start if end is None else end
            marks.append(
                Mark(one["kind"], math.floor(start * 1000), math.ceil(end * 1000), one.get("id"))
            )
    marks += [Mark(row.kind, row.start, row.end) for row in silences]
    for mark in marks:
        mark.x = min(max(mark.x, 0), span)
        mark.x2 = min(max(mark.x2, mark.x), span)
    return marks


def bars(marks: Iterable[Mark], span: float) -> list[tuple[float, float]]:
    """From and to; those that nearly touch are one."""
    found: list[tuple[float, float]] = []
    for mark in sorted(marks, key=lambda one: one.x):
        if found and mark.x - found[-1][1] <= ONE_BAR * span:
            found[-1] = found[-1][0], max(found[-1][1], mark.x2)
        else:
            found.append((mark.x, mark.x2))
    return found


def numbers(marks: Iterable[Mark], span: float) -> list[Mark]:
    """Those whose number is shown: no two lie on each other."""
    found: list[Mark] = []
    for mark in sorted((one for one in marks if one.id is not None), key=lambda one: one.x):
        if not found or mark.x - found[-1].x >= APART * span:
            found.append(mark)
    return found


def _lane_values(place: int, kind: str, marks: list[Mark], span: float) -> list[Value]:
    """Lanes count up from the plot's edge, in pixels."""
    y = -FIRST_LANE - LANE * place
    found = bars(marks, span)
    values: list[Value] = [
        {"role": "bar", "x": x, "x2": x2, "y": y, "said": f"{kind}, {after_start(x)}"}
        for x, x2 in found
    ]
    values += [
        {"role": "number", "x": one.x, "y": y - 3, "text": one.id} for one in numbers(marks, span)
    ]
    if len(found) <= FEW:
        values += [{"role": "rule", "x": x} for x, x2 in found if x2 - x < span / 4]
    return values


def mark_values(
    anomalies: Iterable[dict[str, Any]], silences: Iterable[Silence], span: float
) -> list[Value]:
    """Bars, numbers and rules in lanes, one a kind."""
    marks = placed(anomalies, silences, span)
    lanes = list(dict.fromkeys(mark.kind for mark in marks))
    if len(lanes) > LANES_MAX:
        lanes = [*lanes[: LANES_MAX - 1], "others"]
    last = len(lanes) - 1

    def lane(mark: Mark) -> int:
        return lanes.index(mark.kind) if mark.kind in lanes else last

    values = [
        value
        for group in grouped(marks, lambda mark: (lane(mark),))
        for value in _lane_values(lane(group[0]), lanes[lane(group[0])], group, span)
    ]
    return values + [
        {"role": "lane", "y": -FIRST_LANE - LANE * place, "text": kind}
        for place, kind in enumerate(lanes)
    ]
