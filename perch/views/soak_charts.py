"""The charts of a soak, from its lines over time and the verdict's `soak`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from perch.model.limits import Limit
from perch.views import soak_chosen as chosen
from perch.views import soak_lines as lines
from perch.views import words
from perch.views.charts import Chart, chart
from perch.views.plan import PlannedTest
from perch.views.ranks import grouped
from perch.views.soak_limits import limit_lines
from perch.views.soak_lines import BOTH, HIGHEST, LOWEST, Point, Value
from perch.views.soak_rows import Count, Heat, IntervalRow, Memory, Rows, Silence
from perch.views.words import Figure

Soak = Mapping[str, Any]

TESTS_MAX = 8
COUNTERS_MAX = 6

#: As the verdict leaves the warm-up out: five minutes, or a quarter of a short life.
WARM_UP_MS = 300_000

#: Kinds that concern every flow.
_OF_ALL = ("reboot", "link", "clock", "host")


def _anomalies(soak: Soak) -> list[dict[str, Any]]:
    return list(soak.get("anomalies") or [])


def _of_kinds(soak: Soak, *kinds: str) -> list[dict[str, Any]]:
    return [one for one in _anomalies(soak) if one["kind"] in kinds]


def _of_test(soak: Soak, test: str) -> list[dict[str, Any]]:
    """Those that are seen in a chart of this test."""
    return [
        one
        for one in _anomalies(soak)
        if (one.get("flow") is None and one["kind"] in _OF_ALL)
        or (one.get("flow") or "").startswith(f"{test}/")
    ]


def _about_bars(marks: Sequence[Value]) -> str:
    if any(mark["role"] == "bar" for mark in marks):
        return " Bars above it are anomalies, with their number in the table."
    return ""


# ---- flows ---------------------------------------------------------------------------------------


class _Figure(NamedTuple):
    """A figure of an interval; `keep`: its extremes, `worst`: of several pairs."""

    title: str
    value: Callable[[IntervalRow], Figure]
    keep: str
    worst: Callable[[list[float]], float]


_BANDWIDTH = (
    _Figure("mean", lambda row: row.mean, BOTH, min),
    _Figure("lowest 0.1 s", lambda row: row.low, LOWEST, min),
)
_LATENCY = (
    _Figure("p50", lambda row: row.p50, BOTH, max),
    _Figure("p99", lambda row: row.p99, HIGHEST, max),
)


class _Scale(NamedTuple):
    """Milliseconds of the whole chart and of an interval."""

    span: int
    interval: float


def _points(rows: Sequence[IntervalRow], figure: _Figure) -> list[Point]:
    return [Point((row.start + row.end) / 2, figure.value(row), row.start, row.end) for row in rows]


def _worst_points(rows: Sequence[IntervalRow], figure: _Figure, span: int) -> list[Point]:
    """The worst of several pairs in each stretch of time."""
    long = max(span / (2 * lines.STRETCHES), 1)
    found = []
    for group in grouped(rows, lambda row: (math.floor((row.start + row.end) / 2 / long),)):
        values = [value for row in group if (value := figure.value(row)) is not None]
        middle = (group[0].start + group[0].end) / 2
        start, end = min(row.start for row in group), max(row.end for row in group)
        found.append(Point(middle, figure.worst(values) if values else None, start, end))
    return found


def _flow_lines(
    rows: Sequence[IntervalRow],
    named: set[str],
    figures: Sequence[_Figure],
    scale: _Scale,
    sign: str,
) -> Iterator[Value]:
    pairs = grouped(rows, lambda row: (row.way,))
    others = []
    for of_pair in pairs:
        one = of_pair[0]
        if one.way not in named:
            others.append(of_pair)
            continue
        for figure in figures:
            yield from lines.line(
                _points(of_pair, figure), one.way, figure.title,
                figure.keep, scale.interval, sign,
            )  # fmt: skip
    if others:
        name = others[0][0].way if len(others) == 1 else f"worst of {len(others)} others"
        together = [row for of_pair in others for row in of_pair]
        for figure in figures:
            points = _worst_points(together, figure, scale.span)
            yield from lines.line(points, name, figure.title, figure.keep, scale.interval, sign)


def _thinned_words(count: int, kept: str) -> str:
    if count <= 2 * lines.STRETCHES:
        return ""
    each = math.ceil(count / lines.STRETCHES)
    return f" The chart combines every {each} of {words.whole(count)} intervals: it shows {kept}."


def _named_words(pairs: int) -> str:
    if pairs <= chosen.PAIRS_MAX + 1:
        return ""
    return (
        f" The chart names the {chosen.PAIRS_MAX} pairs with the most anomalies or the deepest "
        f"fall. Of the {pairs - chosen.PAIRS_MAX} others it shows the worst at each time."
    )


_CAPTIONS = {
    "bandwidth": (
        "Payload rate of each interval: its mean, and the lowest of its windows of 0.1 s.",
        "the lowest and the highest mean, and the lowest window",
    ),
    "latency": (
        "Median and p99 of the messages of each interval. An interval with fewer than 1,000 "
        "messages has no p99. The vertical axis is logarithmic.",
        "the lowest and the highest median, and the highest p99",
    ),
}


def _flow_chart(
    soak: Soak, test: PlannedTest, place: int, rows: Sequence[IntervalRow],
    silences: Sequence[Silence], named: set[str], scale: _Scale,
    limits: Sequence[Limit],
) -> Iterator[Chart]:  # fmt: skip
    kind = "bandwidth" if any(row.mean is not None for row in rows) else "latency"
    figures = _BANDWIDTH if kind == "bandwidth" else _LATENCY
    sign = "Gb/s" if kind == "bandwidth" else "µs"
    drawn = list(_flow_lines(rows, named, figures, scale, sign))
    if all(value["v"] is None for value in drawn):
        return
    mine = [one for one in silences if one.test == test.name]
    marks = lines.mark_values(_of_test(soak, test.name), mine, scale.span)
    pairs = len({row.way for row in rows})
    caption, kept = _CAPTIONS[kind]
    caption += _named_words(pairs) + _thinned_words(math.ceil(len(rows) / pairs), kept)
    flows = [
        one
        for one in soak.get("flows") or []
        if one["test"] == test.name and chosen.way(one["flow"]) in named
    ]
    bounds = limit_lines(flows, kind, limits)
    beside = [one["bound"] for one in bounds]
    for one in chart(
        f"soak_{kind}_{place}",
        f"soak_{kind}",
        f"{kind.capitalize()}: {test.title}",
        caption + _about_bars(marks),
        [
            *drawn,
            *marks,
            *lines.frame(scale.span),
            lines.unit(sign),
        ],
    ):
        labels = lines.ends(
            drawn, ("series", "figure"), scale.span, log=kind == "latency", beside=beside
        )
        one.beside = {"labels": labels, "limits": bounds}
        yield one


# ---- hosts ---------------------------------------------------------------------------------------


def _grown(rows: list[Memory]) -> Iterator[Point]:
    """MB since the warm-up of a process; a restart begins again at 0."""
    for of_process in grouped(rows, lambda row: (f"{row.pid}/{row.start}",)):
        begin, end = min(row.time for row in of_process), max(row.time for row in of_process)
        warm = begin + min(WARM_UP_MS, (end - begin) / 4)
        after = [row for row in of_process if row.time >= warm]
        first = min(after, key=lambda row: row.time).bytes
        for row in after:
            yield Point(row.time, (row.bytes - first) / 1e6, end=row.time)


def _process_name(one: Memory) -> str:
    flow = f" of {one.flow}" if one.flow is not None else ""
    number = f" {one.pid}" if one.flow is None and one.role == "job" else ""
    return f"{one.role}{flow}{number} at {one.host}"


def _host_chart(
    name: str, title: str, caption: str, values: list[Value], scale: _Scale, top: float
) -> Iterator[Chart]:
    """top: what the vertical axis reaches at least."""
    for one in chart(name, "soak_hosts", title, caption, [*values, *lines.frame(scale.span, top)]):
        labels = lines.ends(values, ("series",), scale.span, log=False, beside=[top])
        one.beside = {"labels": labels}
        yield one


def _memory_chart(soak: Soak, rows: Sequence[Memory], scale: _Scale) -> Iterator[Chart]:
    def process(row: Memory) -> tuple[Any, ...]:
        job = f"{row.pid}/{row.start}" if row.role == "job" else ""
        return row.host, row.role, row.flow, job

    drawn = [
        value
        for group in grouped(rows, process)
        for value in lines.line(
            _grown(group), _process_name(group[0]), "growth", BOTH, scale.interval, "MB"
        )
    ]
    if not drawn:
        return
    marks = lines.mark_values(_of_kinds(soak, "leak", "handles", "reboot"), [], scale.span)
    yield from _host_chart(
        "soak_memory",
        "Memory of Perch's processes",
        "Growth of resident memory since the warm-up of a process, in MB (10^6 bytes). The warm-up "
        "lasts 5 minutes, or a quarter of a shorter life. Shown are the "
        f"{chosen.PROCESSES_MAX} processes that grew fastest." + _about_bars(marks),
        [*drawn, *marks, lines.unit("MB")],
        scale,
        1,
    )


def _heat_lines(rows: Sequence[Heat], scale: _Scale) -> Iterator[Value]:
    named = [row for row in rows if row.name is not None]
    for group in grouped(named, lambda row: (row.host, row.name)):
        points = [Point(row.time, row.celsius, end=row.time) for row in group]
        name = f"{group[0].host} {group[0].name}"
        yield from lines.line(points, name, "temperature", HIGHEST, scale.interval, "°C")
    others = [row for row in rows if row.name is None]
    if others:
        points = [
            Point(group[0].time, max(row.celsius for row in group), end=group[0].time)
            for group in grouped(others, lambda row: (math.floor(row.time / scale.interval),))
        ]
        yield from lines.line(
            points, "hottest of all others", "temperature", HIGHEST, scale.interval, "°C"
        )


def _heat_chart(soak: Soak, rows: Sequence[Heat], scale: _Scale) -> Iterator[Chart]:
    drawn = list(_heat_lines(rows, scale))
    if not drawn:
        return
    marks = lines.mark_values(_of_kinds(soak, "reboot"), [], scale.span)
    yield from _host_chart(
        "soak_temperature",
        "Temperatures",
        f"The hottest sensor of each host, for up to {chosen.SENSORS_MAX} hosts."
        + _about_bars(marks),
        [*drawn, *marks, lines.unit("°C")],
        scale,
        50,
    )


def _counter_chart(soak: Soak, rows: Sequence[Count], scale: _Scale) -> Iterator[Chart]:
    groups = grouped(rows, lambda row: (row.host, row.name))
    groups.sort(key=lambda group: -sum(row.number for row in group))
    drawn = []
    for group in groups[:COUNTERS_MAX]:
        each = math.ceil(len(group) / (lines.STRETCHES / 2))
        for start in range(0, len(group), each):
            most = max(reversed(group[start : start + each]), key=lambda row: row.number)
            drawn.append(
                {
                    "role": "shape", "series": f"{most.name} at {most.host}",
                    "figure": "counted", "x": most.time, "v": most.number,
                    "said": f"{most.name} at {most.host}: {words.whole(most.number)}, "
                    f"{lines.after_start(most.time)}",
                }
            )  # fmt: skip
    if not drawn:
        return
    marks = lines.mark_values(_of_kinds(soak, "counter", "link"), [], scale.span)
    caption = (
        "Increases of the counters of hosts and devices between two samples. The vertical axis is "
        "logarithmic."
    )
    if len(groups) > COUNTERS_MAX:
        caption += f" Of {len(groups)} counters it shows the {COUNTERS_MAX} with the largest sums."
    yield from chart(
        "soak_counters",
        "soak_counters",
        "Counters that moved",
        caption + _about_bars(marks),
        [*drawn, *marks, *lines.frame(scale.span), lines.unit("counted")],
    )


# ---- all -----------------------------------------------------------------------------------------


def _timeline(soak: Soak, silences: Sequence[Silence], span: int) -> Iterator[Chart]:
    marks = lines.placed(_anomalies(soak), silences, span)
    values: list[Value] = []
    for group in grouped(marks, lambda mark: (mark.kind,)):
        kind = group[0].kind
        values += [
            {
                "role": "bar", "kind": kind, "x": x, "x2": x2,
                "said": f"{kind}, {lines.after_start(x)}",
            }
            for x, x2 in lines.bars(group, span)
        ]  # fmt: skip
        values += [
            {"role": "number", "kind": kind, "x": one.x, "text": one.id}
            for one in lines.numbers(group, span)
        ]
    if not values:
        return
    caption = (
        "A row for each kind; a bar lasts from start to end and has its number in the table where "
        "there is room."
    )
    if (soak.get("anomalies_left_out") or 0) > 0:
        caption += (
            " All stalls and gaps are shown, and the first 20 of other kinds of a flow or host."
        )
    kind = values[0]["kind"]
    frame = [value | {"kind": kind} for value in lines.frame(span)]
    yield from chart(
        "soak_anomalies", "soak_anomalies", "Anomalies over time", caption, values + frame
    )


def charts(
    soak: Soak, rows: Rows, tests: Sequence[PlannedTest], limits: Sequence[Limit]
) -> list[Chart]:
    """tests: the planned ones. limits: of the run."""
    span = max(math.floor((soak.get("passed_s") or 0) * 1000), rows.last, 1)
    scale = _Scale(span, (soak.get("interval_s") or 1) * 1000)
    pairs = chosen.pairs(soak)
    found = list(_timeline(soak, rows.silences, span))
    drawn = [test for test in tests if test.name in rows.intervals][:TESTS_MAX]
    for place, test in enumerate(drawn, 1):
        named = {way for name, way in pairs if name == test.name}
        intervals = rows.intervals[test.name]
        found += _flow_chart(soak, test, place, intervals, rows.silences, named, scale, limits)
    return [
        *found,
        *_counter_chart(soak, rows.counts, scale),
        *_memory_chart(soak, rows.memory, scale),
        *_heat_chart(soak, rows.heat, scale),
    ]
