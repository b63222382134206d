"""Latency and bandwidth against the message size, with their limits and the ceiling of the link.

At most LINES_MAX lines are drawn in a chart; of more tests there are several charts. Each point
says its figure in words, which a reader sees on hover, and each line has its name at its end.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from perch.model.limits import Limits
from perch.model.verdict import Check
from perch.views import words
from perch.views.measured import Results

Values = list[dict[str, Any]]

LINES_MAX = 6
#: Limits drawn in a chart.
LIMITS_MAX = 4

#: Percentiles of a latency chart.
PERCENTILES = {"p50": "p50", "p99": "p99", "p99_9": "p99.9"}

#: Height of the plot in pixels, as the specs have it, and the least between two names in it.
HEIGHT, APART = 300, 13
#: Characters of a name at the end of a line.
NAME_MAX = 26


class Lines(msgspec.Struct):
    """What one chart draws: points, names at the ends of lines, limits, and the ceiling."""

    values: Values
    labels: Values
    limits: Values
    ceiling: Values

    @property
    def beside(self) -> dict[str, Values]:
        """Datasets of the spec beside `values`."""
        return {"labels": self.labels, "limits": self.limits, "ceiling": self.ceiling}


def is_comparable(test: Results) -> bool:
    """Whether the engine measured a latency of one flow at a time."""
    about = test.about
    is_ours = about["tool.name"] == "perch" and about["backend"] != "null"
    return test.kind == "latency" and is_ours and test.is_one_way


# ---- names at the ends of lines ------------------------------------------------------------------


def _spread(places: Sequence[float]) -> list[float]:
    """Heights in pixels, in the same order, moved until each is APART from the next one."""
    order = sorted(range(len(places)), key=lambda n: places[n])
    moved = list(places)
    for before, at in pairwise(order):
        moved[at] = max(moved[at], moved[before] + APART)
    return moved


def _scale(values: Sequence[float], *, log: bool) -> tuple[float, float]:
    """The least and the greatest of the axis: whole decades, or from 0."""
    if log:
        least, most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return least, max(most, least + 1)
    return 0, max(values) or 1


def ends(
    values: Values,
    field: str,
    names: Sequence[str],
    *,
    log: bool,
    along: Sequence[str] = ("size_bytes",),
    beside: Sequence[float] = (),
    height: int = HEIGHT,
) -> Values:
    """The name of each line at its last point. names: the fields that tell lines apart.

    along: the fields of the other axis, ordered by the first. beside: what else the chart draws
    on the axis of `field`. height: of the plot in pixels.
    """
    last: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in values:
        line = tuple(one[name] for name in names)
        if line not in last or one[along[0]] >= last[line][along[0]]:
            last[line] = one
    found = list(last.values())
    if not found:
        return []
    least, most = _scale([*(one[field] for one in values), *beside], log=log)
    heights = [math.log10(one[field]) if log else one[field] for one in found]
    pixels = _spread([(at - least) / (most - least) * height for at in heights])
    places = [least + pixel / height * (most - least) for pixel in pixels]
    return [
        {
            "series": one["series"], **{name: one[name] for name in along},
            field: 10**place if log else place, "name": _name(one, names),
        }
        for one, place in zip(found, places, strict=True)
    ]  # fmt: skip


def _name(value: dict[str, Any], names: Sequence[str]) -> str:
    said = " ".join(str(value[name]) for name in reversed(names))
    return said if len(said) <= NAME_MAX else said[: NAME_MAX - 1] + "…"


# ---- limits --------------------------------------------------------------------------------------


def limit_lines(
    checks: Sequence[Check],
    limits: Limits,
    tests: Collection[str],
    metrics: Sequence[str],
    ceiling: float | None = None,
) -> Values:
    """The bounds of these tests' figures, each once: `bound`, and what it is in words.

    ceiling: of the link, where it is the same for all points. Other shares have no place on an
    axis of figures.
    """
    by_id = {one.id: one for one in limits.limits}
    found: dict[tuple[str, float], dict[str, Any]] = {}
    for check in checks:
        kind, _, rest = check.id.partition("/")
        name, _, test = rest.partition("/")
        limit = by_id.get(name)
        if kind != "limit" or limit is None or limit.metric not in metrics or check.limit is None:
            continue
        whole = {None: 1.0, "ceiling": ceiling}.get(limit.bound.of)
        if test not in tests or whole is None:
            continue
        for word, bound in (("at least", check.limit.min), ("at most", check.limit.max)):
            if bound is not None and bound > 0:
                said = f"limit: {word} {words.plain(bound)} {words.unit_sign(check.unit)}"
                found[limit.id, bound] = {"bound": bound * whole, "name": f"{said} ({limit.id})"}
    return list(found.values())[:LIMITS_MAX]


# ---- both kinds of charts ------------------------------------------------------------------------


def _names(tests: list[Results]) -> set[str]:
    return {test.name for test in tests}


def _parts(tests: list[Results], most: int) -> Iterator[list[Results]]:
    for start in range(0, len(tests), most):
        yield tests[start : start + most]


def latencies(
    tests: list[Results], definition: str, checks: Sequence[Check], limits: Limits
) -> Iterator[Lines]:
    """Percentiles of the tests of one definition."""
    mine = [
        test
        for test in tests
        if is_comparable(test) and test.about["definition"] == definition and test.sizes
    ]
    metrics = [f"latency_us.{name}" for name in PERCENTILES]
    for part in _parts(mine, LINES_MAX // len(PERCENTILES)):
        values = [
            {
                "series": test.title, "percentile": said, "size_bytes": point.size_bytes,
                "latency_us": point.get(name),
                "said": f"{test.title}, {said} at {words.size(point.size_bytes)}: "
                f"{words.figure(point.get(name))} µs",
            }
            for test in part
            for point in test.sizes
            for name, said in PERCENTILES.items()
            if point.get(name) is not None
        ]  # fmt: skip
        if values:
            lines = limit_lines(checks, limits, _names(part), metrics)
            bounds = [one["bound"] for one in lines]
            names = ("series", "percentile")
            labels = ends(values, "latency_us", names, log=True, beside=bounds)
            yield Lines(values, labels, lines, [])


def _ceiling(tests: list[Results]) -> Values:
    """What the link can carry at each size, as the first test with a ceiling has it."""
    for test in tests:
        found = [
            {"size_bytes": point.size_bytes, "gbit_s": point.get("ceiling_gbit_s")}
            for point in test.sizes
            if point.get("ceiling_gbit_s") is not None
        ]
        if found:
            return found
    return []


def bandwidths(tests: list[Results], checks: Sequence[Check], limits: Limits) -> Iterator[Lines]:
    """The tests of one way."""
    mine = [test for test in tests if test.kind == "bandwidth" and test.is_one_way and test.sizes]
    for part in _parts(mine, LINES_MAX):
        values = [
            {
                "series": test.title, "size_bytes": point.size_bytes, "gbit_s": point.get("gbit_s"),
                "said": f"{test.title} at {words.size(point.size_bytes)}: "
                f"{words.figure(point.get('gbit_s'))} Gb/s",
            }
            for test in part
            for point in test.sizes
            if point.get("gbit_s") is not None
        ]  # fmt: skip
        if values:
            lines = limit_lines(checks, limits, _names(part), ["bandwidth.gbit_s"])
            ceiling = _ceiling(part)
            beside = [*(one["bound"] for one in lines), *(one["gbit_s"] for one in ceiling)]
            labels = ends(values, "gbit_s", ("series",), log=False, beside=beside)
            yield Lines(values, labels, lines, ceiling)
