"""Latency under load beside the same latency without it.

Where the plan lets a latency flow run beside streams at one of its hosts. Source:
draft-calabria-bmwg-ai-fabric-training-bench-02, latency unloaded and under load, and the ratio of
the two. Only what was asked alike of the same hosts, over the same rail and at the same size, is
divided. Of several rails the one that load slows most is shown, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import polars as pl

from perch.checks.figures import unlike
from perch.model.figures import median
from perch.views import words
from perch.views.measured import LATENCY, SIZE, Figures, Results, is_transfer
from perch.views.plan import PlanDigest, Stream
from perch.views.ranks import grouped
from perch.views.table import Table, left, right
from perch.views.words import Figure

FIGURES = {
    "mean": "Mean", "p50": "Median", "p95": "p95", "p99": "p99", "p99_9": "p99.9", "max": "Maximum",
}  # fmt: skip

#: Tests and sizes in the table; the figures of all are in records.jsonl.
ROWS_MAX = 12
#: More tests in one chart could not be told apart.
LINES_MAX = 4


class _Latency(msgspec.Struct):
    """One result; `link`: client, server, rail. `beside`: streams that ran at its hosts then."""

    test: str
    size: int | None
    link: tuple[str, str, int]
    figures: Figures
    beside: list[Stream]


class Loaded(msgspec.Struct):
    """A test at one size. `load`: tests of the streams; `gbit_s`: what they carried.

    `why`: nothing may be shown with it.
    """

    title: str
    size: int | None
    load: list[str]
    gbit_s: Figure
    unloaded: Figures = {}
    loaded: Figures = {}
    why: str = ""


#: Rates of a test between two hosts over a rail, by size.
_Rates = dict[Stream, dict[int | None, list[Figure]]]


def merged(rows: Sequence[Figures]) -> Figures:
    """Medians over repeats and pairs, of maxima the greatest.

    What one lacks all lack: a tail is missing where few messages came, and few come where they are
    slow.
    """
    found: Figures = {}
    for name in FIGURES:
        values = [row[name] for row in rows]
        known = [value for value in values if value is not None]
        if name == "max":
            found[name] = max(known, default=None)
        else:
            found[name] = median(known) if len(known) == len(values) else None
    return found


def _latencies(rows: pl.DataFrame, plan: PlanDigest) -> list[_Latency]:
    names = [test.name for test in plan.tests if test.kind == "latency"]
    found = rows.filter(~is_transfer() & pl.col("test").is_in(names)).select(
        "test", SIZE, "client.host", "server.host", "rail", *(LATENCY[name] for name in FIGURES)
    )
    return [
        _Latency(
            test, size, (client, server, rail), dict(zip(FIGURES, figures, strict=True)),
            plan.beside.get((test, client, server, rail), []),
        )
        for test, size, client, server, rail, *figures in found.iter_rows()
    ]  # fmt: skip


def _rates(rows: pl.DataFrame, plan: PlanDigest) -> _Rates:
    names = {stream[0] for streams in plan.beside.values() for stream in streams}
    found = rows.filter(~is_transfer() & pl.col("test").is_in(sorted(names))).select(
        "test", "client.host", "server.host", "rail", SIZE, "bandwidth.gbit_s"
    )
    rates: _Rates = {}
    for test, client, server, rail, size, rate in found.iter_rows():
        rates.setdefault((test, client, server, rail), {}).setdefault(size, []).append(rate)
    return rates


def _load(streams: Iterable[Stream], rates: _Rates) -> Figure:
    """Gb/s; None where a stream had several sizes one after another, or none."""
    total = 0.0
    for stream in streams:
        sizes = list(rates.get(stream, {}).values())
        if len(sizes) != 1:
            return None
        known = [rate for rate in sizes[0] if rate is not None]
        if len(known) < len(sizes[0]):
            return None
        total += median(known) or 0
    return total


def _loaded(
    loaded: list[_Latency], idle: list[_Latency], terms: dict[str, str], titles: dict[str, str],
    rates: _Rates,
) -> Loaded:  # fmt: skip
    """idle: without load, at the same size."""
    one = loaded[0]
    links = {row.link for row in loaded}
    beside = [row for row in idle if row.link in links]
    alike = [row for row in beside if terms.get(row.test) == terms.get(one.test)]
    loads = [_load(row.beside, rates) for row in loaded]
    known = [load for load in loads if load is not None]
    found = Loaded(
        title=titles[one.test],
        size=one.size,
        load=[titles[test] for test in sorted({s[0] for row in loaded for s in row.beside})],
        gbit_s=median(known) if len(known) == len(loads) else None,
    )
    if not beside:
        found.why = "no comparable latency was measured between these hosts without load"
    elif not alike:
        difference = unlike(terms[beside[0].test], terms[one.test])
        found.why = f"it was asked otherwise without load ({difference})"
    else:
        common = {row.link for row in alike}
        found.unloaded = merged([row.figures for row in alike])
        found.loaded = merged([row.figures for row in loaded if row.link in common])
    return found


def _slowed(one: Loaded) -> float:
    """How many times longer a message takes under load."""
    for name in ("p50", "mean"):
        idle, busy = one.unloaded.get(name), one.loaded.get(name)
        if idle and busy is not None:
            return busy / idle
    return 0


def _worst_rail(
    loaded: list[_Latency], idle: list[_Latency], terms: dict[str, str], titles: dict[str, str],
    rates: _Rates,
) -> Iterator[Loaded]:  # fmt: skip
    """Of several rails the one that load slows most; the first of equals."""
    by_rail = grouped(loaded, lambda row: (row.link[2],))
    if len(by_rail) > 1:
        found = []
        for group in by_rail:
            rail = group[0].link[2]
            one = _loaded(group, idle, terms, titles, rates)
            one.title += f", rail {rail} (slowed most of {len(by_rail)})"
            found.append(one)
        yield max(found, key=_slowed)


def loaded(rows: pl.DataFrame, plan: PlanDigest, tests: list[Results]) -> list[Loaded]:
    """In order of title and size."""
    if not plan.beside:
        return []
    titles = {test.name: test.title for test in plan.tests}
    terms = {test.name: test.terms for test in tests}
    rates = _rates(rows, plan)
    idle: dict[int | None, list[_Latency]] = {}
    under_load = []
    for row in _latencies(rows, plan):
        if row.beside:
            under_load.append(row)
        else:
            idle.setdefault(row.size, []).append(row)
    found = []
    for group in grouped(under_load, lambda row: (row.test, row.size)):
        of_group = group, idle.get(group[0].size, []), terms, titles, rates
        found += [_loaded(*of_group), *_worst_rail(*of_group)]
    return sorted(found, key=lambda one: (one.title, one.size or 0))


# ---- the report ----------------------------------------------------------------------------------


class LoadedSection(msgspec.Struct):
    """`loads`: sentences of what ran beside what."""

    table: Table
    loads: list[str]


def _told(value: Figure) -> str:
    return "-" if value is None else f"{words.figure(value)} µs"


def _rows(one: Loaded) -> Iterable[list[str]]:
    for name, title in FIGURES.items():
        idle, busy = one.unloaded.get(name), one.loaded.get(name)
        if idle is not None or busy is not None:
            ratio = words.times(busy / idle) if idle and busy is not None else "-"
            place = [words.cell(one.title), words.size(one.size), title]
            yield [*place, _told(idle), _told(busy), ratio]


def _sentence(one: Loaded) -> str:
    said = f"*{words.cell(one.title)}* ran beside {words.cell(words.some(one.load, 4))}"
    if one.gbit_s is not None:
        said += f", which carried {words.figure(one.gbit_s)} Gb/s meanwhile"
    return f"{said}; not compared: {words.cell(one.why)}." if one.why else f"{said}."


def section(found: list[Loaded]) -> LoadedSection:
    compared = [one for one in found if not one.why]
    columns = left("Test") + right("Size") + left("Figure")
    columns += right("Unloaded", "Under load", "Under load / unloaded")
    table = Table(columns, [row for one in compared[:ROWS_MAX] for row in _rows(one)])
    table.more = max(len(compared) - ROWS_MAX, 0)
    firsts = {one.title: one for one in reversed(found)}
    return LoadedSection(table, [_sentence(firsts[title]) for title in sorted(firsts)])


def points(found: list[Loaded]) -> list[dict[str, Any]]:
    """Of each test its smallest size."""
    smallest = {one.title: one for one in reversed(found) if not one.why}
    values = []
    for title in sorted(smallest)[:LINES_MAX]:
        one = smallest[title]
        for figures, said in ((one.unloaded, "unloaded"), (one.loaded, "under load")):
            series = f"{title}, {words.size(one.size)}, {said}"
            for order, (name, figure) in enumerate(FIGURES.items()):
                if figures.get(name) is not None:
                    latency = figures[name]
                    place = {"series": series, "figure": figure, "order": order}
                    words_of = f"{series}, {figure}: {words.figure(latency)} µs"
                    values.append(place | {"latency_us": latency, "said": words_of})
    return values
