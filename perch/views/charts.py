"""The charts that the Vega-Lite specs of reports/charts draw.

Latencies of different definitions never share a chart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from perch.model.limits import Limits
from perch.model.verdict import Check
from perch.views import flows, rails, references, size_charts, transfers, words
from perch.views.details import Details
from perch.views.flows import Ranked
from perch.views.measured import Results
from perch.views.plan import PlannedTest
from perch.views.references import Reference
from perch.views.size_charts import LINES_MAX, Lines, is_comparable

Values = list[dict[str, Any]]

#: The share of messages above each percentile.
_ABOVE = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01, "p99_9": 0.001, "p99_99": 0.0001}

#: A histogram holds round trips in ns; the chart shows half of one in us.
HALF_US = 0.0005


class Chart(msgspec.Struct):
    """A chart: its spec, its texts and its values. `series` in the legend's order.

    beside: the other datasets of its spec, by name.
    """

    name: str
    spec: str
    title: str
    caption: str
    alternative: str
    series: list[str]
    values: Values
    beside: dict[str, Values] = {}


class _Axes(NamedTuple):
    """Fields of a chart's lines: along which they go, the first orders them, and their value."""

    along: tuple[str, ...]
    value: str
    log: bool = False


#: Specs whose lines have their names at their ends.
_NAMED = {
    "distribution": _Axes(("latency_us",), "longer", log=True),
    "course": _Axes(("s",), "gbit_s"),
    "evolution": _Axes(("order", "run"), "percent"),
    "transfer_size": _Axes(("size_bytes",), "gbyte_s"),
    "transfer_batch": _Axes(("batch",), "gbyte_s"),
}

#: Specs with a line for each test.
_LINE_SPECS = ("distribution", "course")


def chart(name: str, spec: str, title: str, caption: str, values: Values) -> Iterator[Chart]:
    """No chart where there is nothing to draw."""
    if not values:
        return
    series = list(dict.fromkeys(one["series"] for one in values if one.get("series") is not None))
    if spec in _LINE_SPECS and len(series) > LINES_MAX:
        caption += f" {len(series) - LINES_MAX} more tests are only in the tables."
        series = series[:LINES_MAX]
        values = [one for one in values if one["series"] in series]
    # for those who cannot see the picture; no bracket may end a link's text
    said = title + (f": {words.some(series, 8)}" if series else "")
    alternative = words.cell(said.replace("[", "").replace("]", ""))
    beside = {"labels": _labels(values, _NAMED[spec])} if spec in _NAMED else {}
    yield Chart(
        name, spec, words.cell(title), words.line(caption), alternative, series, values, beside
    )


def _labels(values: Values, axes: _Axes) -> Values:
    return size_charts.ends(values, axes.value, ("series",), log=axes.log, along=axes.along)


# ---- latency and bandwidth along the size --------------------------------------------------------


def _of_lines(
    name: str, spec: str, title: str, caption: str, parts: Iterable[Lines]
) -> Iterator[Chart]:
    """A chart for each part; several are numbered."""
    drawn = list(parts)
    for number, lines in enumerate(drawn, start=1):
        several = len(drawn) > 1
        for one in chart(
            f"{name}_{number}" if number > 1 else name,
            spec,
            f"{title} ({number} of {len(drawn)})" if several else title,
            caption,
            lines.values,
        ):
            one.beside = lines.beside
            yield one


def _along_sizes(tests: list[Results], checks: Sequence[Check], limits: Limits) -> Iterator[Chart]:
    yield from _of_lines(
        "latency",
        "latency",
        "Latency against message size",
        "Half of a round trip, engine only: median, p99 and p99.9 (where at least ten samples "
        "lie above it). Both axes are logarithmic.",
        size_charts.latencies(tests, "half_round_trip", checks, limits),
    )
    yield from _of_lines(
        "latency_completion",
        "latency",
        "Latency of one-sided operations against message size",
        "From posting to local completion. Do not compare it with half round trips.",
        size_charts.latencies(tests, "completion", checks, limits),
    )
    yield from _of_lines(
        "bandwidth",
        "bandwidth",
        "Bandwidth against message size",
        "Payload in one direction, in decimal gigabits a second. Operations and tools stop "
        "their clocks at different events, which the tables name. The horizontal axis is "
        "logarithmic.",
        size_charts.bandwidths(tests, checks, limits),
    )


# ---- distribution --------------------------------------------------------------------------------


def _distribution(details: Details, planned: list[PlannedTest]) -> Values:
    """Share of messages that took longer, from the merged histograms."""
    if not details.distributions:
        return []
    from perch.model.histogram import distribution

    values: Values = []
    for test in planned:
        counts = details.distributions.get(test.name)
        if counts is None:
            continue
        points = distribution(counts)
        total = points[-1][1] if points else 0
        values += [
            {"series": test.title, "latency_us": ns * HALF_US, "longer": 1 - seen / total}
            for ns, seen in points
            if seen < total
        ]
    return values


def _coarse(tests: list[Results], size: int) -> Values:
    """The same from the percentiles that records carry."""
    return [
        {"series": test.title, "latency_us": point.get(name), "longer": longer}
        for test in tests
        if is_comparable(test) and test.about["definition"] == "half_round_trip"
        for point in test.sizes
        if point.size_bytes == size
        for name, longer in _ABOVE.items()
        if point.get(name) is not None
    ]


def _distributions(
    tests: list[Results], planned: list[PlannedTest], details: Details, size: int
) -> Iterator[Chart]:
    fine = _distribution(details, planned)
    source = (
        "the merged histograms of all repeats. A steep line means a steady latency."
        if fine
        else "the percentiles of the records."
    )
    return chart(
        "distribution",
        "distribution",
        f"Distribution of latency at {words.size(size)}",
        f"Share of messages that took longer than the time on the horizontal axis, from {source}",
        fine or _coarse(tests, size),
    )


# ---- transfers -----------------------------------------------------------------------------------

_OTHERS = {"size": "batches", "batch": "sizes"}


def _transfers(tests: list[Results], curves: list[Reference], along: str) -> Iterator[Chart]:
    """Published curves are shown with what was measured, never alone."""
    mine = [test for test in tests if test.kind == "transfer"]
    values = [value for test in mine for value in transfers.lines(test, along)]
    published = list(references.points(curves, along)) if values else []
    caption = (
        "Average bandwidth of all device pairs together, in decimal gigabytes a second. The "
        "horizontal axis is logarithmic."
    )
    if any(transfers.leaves_out(test, along) for test in mine):
        caption += (
            f" Of more than three {_OTHERS[along]} of a test, the chart shows the smallest, the "
            "middle and the largest; the tables have all."
        )
    if published:
        caption += (
            " **Dashed lines are published figures** of the hardware that they name; they are "
            "not limits."
        )
    name = f"transfer_{along}"
    title = f"Transfers: bandwidth against {along}"
    return chart(name, name, title, caption, values + published)


# ---- flows ---------------------------------------------------------------------------------------


#: What a limit bounds that stands in a chart of flows.
_FLOW_METRICS = {"bandwidth": "bandwidth.gbit_s", "latency": "latency_us.p50"}


def _flow_chart(
    ranked: list[Ranked], kind: str, checks: Sequence[Check], limits: Limits
) -> Iterator[Chart]:
    at = "smallest size, its median" if kind == "latency" else "largest size"
    caption = (
        f"Each point is a flow, from the worst to the best, at the test's {at}. A flat line means "
        "that all pairs are alike; a drop at the left is a slow pair, which the results name. At "
        f"most {flows.POINTS_MAX} flows of a test are drawn, the worst and the best included."
    )
    name = f"flows_{kind}"
    title = f"{kind.capitalize()} of each flow"
    tests = {test.test for test in ranked}
    ceilings = {flow.ceiling for test in ranked for _, flow in test.drawn if test.kind == kind}
    ceiling = ceilings.pop() if len(ceilings) == 1 else None
    bounds = size_charts.limit_lines(checks, limits, tests, [_FLOW_METRICS[kind]], ceiling)
    for one in chart(name, name, title, caption, flows.rank_points(ranked, kind)):
        one.beside = {"limits": bounds}
        yield one


def _map(ranked: list[Ranked]) -> Iterator[Chart]:
    found = flows.map_of(ranked)
    if found is None:
        return
    share = "its link's ceiling" if found.against_ceiling else "the median of the test's pairs"
    yield from chart(
        "map",
        "map",
        f"Pairs: {found.title}, {words.size(found.size)}",
        "One cell for each pair: clients are rows, servers are columns. The figure is the pair's "
        f"share of {share}; of several rails the worst one counts.",
        found.values,
    )


def _rails(matrices: list[rails.Matrix]) -> Iterator[Chart]:
    found = rails.drawn(matrices)
    if found is None:
        return
    yield from chart(
        "rails",
        "rails",
        f"Rails: {found.title}",
        "One cell for each NIC: hosts are rows, rails are columns. The figure is the median over "
        f"the NIC's flows with all peers, as a share of {found.share}. Where it sent and received, "
        "the slower way counts.",
        found.values,
    )


def _courses(planned: Iterable[PlannedTest], details: Details) -> Values:
    return [
        {"series": test.title, "s": end_s, "gbit_s": rate}
        for test in planned
        if test.name in details.courses
        for end_s, rate in details.courses[test.name].points
    ]


# ---- all -----------------------------------------------------------------------------------------


def charts(
    tests: list[Results],
    planned: list[PlannedTest],
    details: Details,
    ranked: list[Ranked],
    matrices: list[rails.Matrix],
    curves: list[Reference],
    latency_size: int,
    loaded: Values,
    evolution: Values,
    checks: Sequence[Check],
    limits: Limits,
) -> list[Chart]:
    """In the order in which the report shows them. checks: of the verdict."""
    return [
        *_along_sizes(tests, checks, limits),
        *_transfers(tests, curves, "size"),
        *_transfers(tests, curves, "batch"),
        *_flow_chart(ranked, "bandwidth", checks, limits),
        *_flow_chart(ranked, "latency", checks, limits),
        *_map(ranked),
        *_rails(matrices),
        *chart(
            "course",
            "course",
            "Bandwidth over time",
            "For each test, the flow whose lowest interval is farthest below its average.",
            _courses(planned, details),
        ),
        *chart(
            "loaded",
            "loaded",
            "Latency under load",
            "Each test at its smallest size, without load and while streams load its hosts.",
            loaded,
        ),
        *chart(
            "evolution",
            "evolution",
            "Evolution",
            "Each figure as a share of its value in the first run.",
            evolution,
        ),
        *_distributions(tests, planned, details, latency_size),
    ]
