"""Charts of a trend: what reports/charts/trend.vl.json draws. `y` counts pixels from the top."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from perch.model.index import IndexLine
from perch.model.record import Number
from perch.views import words
from perch.views.charts import Chart, chart
from perch.views.trend import HARDWARE, Mark, Track, Trend

Values = list[dict[str, Any]]

LINES_MAX = 6
#: Different limits, and ceilings, of one chart.
BOUNDS_MAX = 4
TICKS_MAX = 7

#: Height of the plot in pixels, as in the spec, and the least between two names beside it.
HEIGHT, APART = 260, 14
#: A bound farther away than this many times the highest figure would flatten the lines.
FAR = 3

#: Pixels above the plot.
CHANGE_Y, ACCEPTED_Y = -10, -28

#: A stretch of runs with the same bound: first and last place, value.
Stretch = tuple[int, int, Number]


# ---- limits and ceilings -------------------------------------------------------------------------


def _bound(mark: Mark, kind: str) -> Number | None:
    if kind == "ceiling":
        return mark.ceiling
    return None if mark.limit is None else mark.limit.min if kind == "min" else mark.limit.max


def _stretches(track: Track, kind: str) -> list[Stretch]:
    found: list[Stretch] = []
    for mark in track.marks:
        value = _bound(mark, kind)
        if value is None:
            continue
        if found and found[-1][1:] == (mark.order - 1, value):
            found[-1] = (found[-1][0], mark.order, value)
        else:
            found.append((mark.order, mark.order, value))
    return found


_SAID = {"min": "limit: at least", "max": "limit: at most", "ceiling": "ceiling of the link:"}


def _bounds(tracks: Sequence[Track]) -> Iterator[tuple[str, list[Stretch], str]]:
    """Kind, stretches and words of each bound, once for all tests that have it."""
    for kind, said in _SAID.items():
        found: dict[tuple[Number, ...], tuple[list[Stretch], list[str]]] = {}
        for track in tracks:
            stretches = _stretches(track, kind)
            if not stretches:
                continue
            values = tuple(dict.fromkeys(value for _, _, value in stretches))
            drawn, names = found.setdefault(values, ([], []))
            drawn += [one for one in stretches if one not in drawn]
            names.append(track.test)
        for values, (drawn, names) in list(found.items())[:BOUNDS_MAX]:
            text = f"{said} {words.plain(values[-1])} {words.unit_sign(tracks[0].unit)}"
            whole = len(names) == len(tracks)
            yield kind, drawn, text if whole else f"{text} ({words.some(names, 2)})"


def _bound_values(tracks: Sequence[Track], top: float) -> Values:
    """A bound above the plot is named at its upper edge, where _top leaves room."""
    values: Values = []
    beyond = 0
    for kind, stretches, text in _bounds(tracks):
        role = "ceiling" if kind == "ceiling" else "limit"
        unit = words.unit_sign(tracks[0].unit)
        drawn = [one for one in stretches if one[2] <= top]
        values += [
            {
                "role": role, "x": first - 0.5, "x2": last + 0.5, "v": value,
                "said": f"{_SAID[kind]} {words.plain(value)} {unit}",
            }
            for first, last, value in drawn
        ]  # fmt: skip
        if drawn:
            _, last, value = max(drawn, key=lambda one: one[1])
            values.append({"role": f"{role} name", "x": last + 0.5, "v": value, "text": text})
        else:
            y = beyond * APART + APART / 2
            beyond += 1
            values.append({"role": "beyond", "y": y, "text": f"{text}, above this chart"})
    return values


# ---- lines and marks -----------------------------------------------------------------------------


def _said(track: Track, mark: Mark, line: IndexLine) -> str:
    """What a mark says on hover."""
    said = f"{track.title}: {words.quantity(mark.value, track.unit)}, run {line.run}"
    said += f", {line.verdict}, {mark.origin}"
    return said if line.accepted is None else f"{said}, accepted"


def _marks(tracks: Sequence[Track], runs: Sequence[IndexLine]) -> Values:
    return [
        {
            "role": "solid" if mark.origin == HARDWARE else "hollow", "series": track.title,
            "part": f"{track.title} {mark.part}", "x": mark.order, "v": mark.value,
            "said": _said(track, mark, runs[mark.order - 1]),
        }
        for track in tracks
        for mark in track.marks
    ]  # fmt: skip


def _spread(places: Sequence[float]) -> list[float]:
    """Heights in pixels, in the same order, each at least APART from the next and in the plot."""
    order = sorted(range(len(places)), key=lambda n: places[n])
    moved = list(places)
    for before, at in pairwise(order):
        moved[at] = max(moved[at], moved[before] + APART)
    bottom: float = HEIGHT
    for at in reversed(order):
        moved[at] = min(moved[at], bottom)
        bottom = moved[at] - APART
    return moved


def _names(tracks: Sequence[Track], top: float) -> Values:
    """The name and the latest figure at the end of each line."""
    places = _spread([HEIGHT * (1 - track.marks[-1].value / top) for track in tracks])
    return [
        {
            "role": "name", "series": track.title, "y": y,
            "text": f"{words.quantity(track.marks[-1].value, track.unit)} {track.title}",
        }
        for track, y in zip(tracks, places, strict=True)
    ]  # fmt: skip


# ---- runs ----------------------------------------------------------------------------------------


def _ticks(runs: Sequence[IndexLine]) -> Values:
    """Dates beneath the plot; several runs of a day have their time."""
    step = -(-len(runs) // TICKS_MAX)
    picked = [(order, runs[order - 1].created or "") for order in range(len(runs), 0, -step)]
    days = [created[:10] for _, created in picked]
    is_plain = len(set(days)) == len(days)
    return [
        {"role": "tick", "x": order, "y": HEIGHT + 16,
         "text": day if is_plain else created[5:16].replace("T", " ")}
        for (order, created), day in zip(picked, days, strict=True)
    ]  # fmt: skip


def _events(trend: Trend) -> Values:
    """Numbered changes and accepted runs above the plot."""
    values: Values = []
    for one in trend.changes:
        text, said = str(one.number), "; ".join(one.what)
        at = {"x": one.order - 0.5, "said": f"change {text}: {said}"}
        values += [{"role": "change", **at}, {"role": "number", "y": CHANGE_Y, "text": text, **at}]
    accepted = [
        {"role": "accepted", "x": order, "y": ACCEPTED_Y, "said": f"accepted: run {line.run}"}
        for order, line in enumerate(trend.runs, 1)
        if line.accepted is not None
    ]
    if trend.changes:
        values.append({"role": "lane", "y": CHANGE_Y, "text": "changes"})
    if accepted:
        values.append({"role": "lane", "y": ACCEPTED_Y, "text": "accepted"})
    return values + accepted


# ---- all -----------------------------------------------------------------------------------------


def _top(tracks: Sequence[Track]) -> float:
    """The upper edge: above figures and near bounds, with room for the names of far bounds."""
    highest = max(mark.value for track in tracks for mark in track.marks)
    bounds = [[one[2] for one in stretches] for _, stretches, _ in _bounds(tracks)]
    near = [value for values in bounds for value in values if value <= FAR * highest]
    beyond = sum(min(values) > FAR * highest for values in bounds)
    return max([highest, *near]) * HEIGHT / (HEIGHT - APART * (beyond + 1))


def _values(trend: Trend, tracks: Sequence[Track]) -> Values:
    top = _top(tracks)
    unit = words.unit_sign(tracks[0].unit)
    name = "Median latency" if tracks[0].metric.startswith("latency") else "Bandwidth"
    return [
        *({"role": "frame", "x": x, "v": v} for x, v in ((0.5, 0), (len(trend.runs) + 0.5, top))),
        *_bound_values(tracks, top),
        *_events(trend),
        *_marks(tracks, trend.runs),
        *_names(tracks, top),
        *_ticks(trend.runs),
        {"role": "unit", "text": f"{name} in {unit}"},
    ]


def _caption(tracks: Sequence[Track]) -> str:
    said = "Median over pairs of hosts and repeats. Runs follow in order of time, not to scale."
    if any(track.marks[-1].part for track in tracks):
        said += " A line breaks where a run lacks the figure or measured it otherwise."
    origins = sorted({mark.origin for track in tracks for mark in track.marks} - {HARDWARE})
    if origins:
        said += f" Hollow marks are no hardware: {', '.join(origins)}."
    return said


def charts(trend: Trend) -> Iterator[Chart]:
    """Of each metric and definition, at most LINES_MAX tests a chart."""
    groups: dict[tuple[str, str], list[Track]] = {}
    for track in trend.shown:
        groups.setdefault((track.metric, track.definition), []).append(track)
    number = 0
    for (metric, definition), tracks in groups.items():
        name = "Median latency" if metric.startswith("latency") else "Bandwidth"
        parts = [tracks[at : at + LINES_MAX] for at in range(0, len(tracks), LINES_MAX)]
        for place, part in enumerate(parts, 1):
            number += 1
            of = f" ({place} of {len(parts)})" if len(parts) > 1 else ""
            title = f"{name}, {definition}{of}"
            yield from chart(
                f"trend_{number}", "trend", title, _caption(part), _values(trend, part)
            )
