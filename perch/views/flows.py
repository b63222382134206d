"""Flows beside each other: of each test with several pairs the slowest by name, ranks, and a map.

What is drawn stays small however many flows there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import polars as pl

from perch.model.figures import rounded
from perch.views import words
from perch.views.measured import BANDWIDTH, LATENCY, SIZE, is_transfer
from perch.views.plan import PlannedTest
from perch.views.table import Table, left, right

#: Points of one test's line.
POINTS_MAX = 200
#: Hosts on each side of the map.
MAP_MAX = 40
#: Fewer flows fill no map.
MAP_LEAST = 6
SLOWEST_MAX = 5
SLOWEST_ROWS_MAX = 60
#: Below this share of the median of the test's pairs a flow is named in bold. Source: site policy.
SLOW = 0.9

_PAIR = ["client.host", "server.host"]


class Flow(msgspec.Struct):
    """`rail`: None where the test has one only."""

    client: str
    server: str
    value: float
    ceiling: float | None
    rail: int | None = None

    @property
    def ends(self) -> str:
        on = "" if self.rail is None else f", rail {self.rail}"
        return f"{self.client} to {self.server}{on}"


class Ranked(msgspec.Struct):
    """A test's flows at one size, repeats merged to their median, the worst first.

    repeats: how many times the plan measures each pair.
    flows: how many. drawn: rank, from 1, and flow. pairs: all of them, each with its worst rail,
    where they fill a map. among: what the flows are of.
    """

    test: str
    title: str
    kind: str
    size: int
    repeats: int
    flows: int
    middle: float
    slowest: list[Flow]
    drawn: list[tuple[int, Flow]]
    pairs: list[Flow] | None
    among: str


def drawn_ranks(count: int) -> list[int]:
    """Places from 0 that are drawn: all, or so many with the first and the last among them."""
    if count <= POINTS_MAX:
        return list(range(count))
    return [int(i * (count - 1) / (POINTS_MAX - 1) + 0.5) for i in range(POINTS_MAX)]


def _flows(rows: pl.DataFrame, kind: str) -> tuple[int, pl.DataFrame] | None:
    """A test's largest size (latency: its smallest), and each flow's figure there in order."""
    column = LATENCY["p50"] if kind == "latency" else BANDWIDTH["gbit_s"]
    sizes = rows[SIZE].drop_nulls().unique().sort().to_list()
    if not sizes:
        return None
    size = sizes[0] if kind == "latency" else sizes[-1]
    ceiling = pl.lit(None, pl.Float64) if kind == "latency" else pl.col("ceiling_gbit_s").first()
    several = pl.col("rail").n_unique() > 1
    flows = (
        rows.filter((pl.col(SIZE) == size) & pl.col(column).is_not_null())
        .with_columns(rail=pl.when(several).then("rail"))
        .group_by(*_PAIR, "rail")
        .agg(pl.col(column).cast(pl.Float64).median().alias("value"), ceiling.alias("ceiling"))
        .sort("value", *_PAIR, "rail", descending=kind == "latency")
    )
    return size, flows.select(*_PAIR, "value", "ceiling", "rail")


def _flow(row: tuple[Any, ...]) -> Flow:
    client, server, value, ceiling, rail = row
    return Flow(client, server, float(rounded(value)), ceiling, rail)


def _ranked(test: PlannedTest, size: int, flows: pl.DataFrame) -> Ranked:
    count = flows.height
    pairs = flows.unique(_PAIR, keep="first", maintain_order=True)
    hosts = pl.concat([pairs["client.host"], pairs["server.host"]]).n_unique()
    is_mapped = MAP_LEAST <= pairs.height <= MAP_MAX**2 and hosts <= MAP_MAX
    middle = flows["value"].median()
    return Ranked(
        test=test.name,
        title=test.title,
        kind=test.kind,
        size=size,
        repeats=test.repeats,
        flows=count,
        middle=float(middle),  # type: ignore[arg-type]
        slowest=[_flow(row) for row in flows.head(SLOWEST_MAX).iter_rows()],
        drawn=[(at + 1, _flow(flows.row(at))) for at in drawn_ranks(count)],
        pairs=[_flow(row) for row in pairs.iter_rows()] if is_mapped else None,
        among="pairs" if flows["rail"].null_count() else "pairs and rails",
    )


def ranked(rows: pl.DataFrame, tests: list[PlannedTest]) -> list[Ranked]:
    """The tests with more than two pairs or rails of them: bandwidths, then latencies."""
    plain = rows.filter(~is_transfer())
    found = []
    for kind in ("bandwidth", "latency"):
        for test in tests:
            if test.kind != kind or test.flows <= 2 * test.repeats:
                continue
            flows = _flows(plain.filter(pl.col("test") == test.name), kind)
            if flows is not None and flows[1].height > 2:
                found.append(_ranked(test, *flows))
    return found


def _slowest_rows(test: Ranked) -> Iterator[list[str]]:
    unit = "µs" if test.kind == "latency" else "Gb/s"
    for flow in test.slowest:
        ratio = flow.value / test.middle
        is_slow = ratio > 1 / SLOW if test.kind == "latency" else ratio < SLOW
        share = words.percent(100 * ratio)
        yield [
            words.cell(f"{test.title}, {words.size(test.size)}"),
            words.cell(flow.client),
            words.cell(flow.server),
            "-" if flow.rail is None else str(flow.rail),
            f"{words.figure(flow.value)} {unit}",
            words.percent(100 * flow.value / flow.ceiling) if flow.ceiling else "-",
            f"**{share}**" if is_slow else share,
        ]


def slowest_table(tests: list[Ranked]) -> Table:
    columns = left("Test", "From", "To") + right(
        "Rail", "Figure", "Of the ceiling", "Of the test's median"
    )
    rows = [row for test in tests for row in _slowest_rows(test)]
    return Table(columns, rows[:SLOWEST_ROWS_MAX])


# ---- charts --------------------------------------------------------------------------------------


def rank_points(tests: list[Ranked], kind: str) -> list[dict[str, Any]]:
    """`place`: percent of the test's flows that are worse."""
    return [
        {
            "series": test.title, "place": rounded(100 * (rank - 0.5) / test.flows),
            "value": flow.value, "from": flow.client, "to": flow.server,
            "said": f"{test.title} at {words.size(test.size)}, {flow.ends}: "
            f"{words.figure(flow.value)} {'µs' if kind == 'latency' else 'Gb/s'}",
        }
        for test in tests
        if test.kind == kind
        for rank, flow in test.drawn
    ]  # fmt: skip


class Map(msgspec.Struct):
    """`against_ceiling`: of what; else of the median of the test's pairs."""

    title: str
    size: int
    against_ceiling: bool
    values: list[dict[str, Any]]


def map_of(tests: list[Ranked]) -> Map | None:
    """The bandwidth test with the most flows, as client against server."""
    bandwidths = [test for test in tests if test.kind == "bandwidth"]
    test = max(reversed(bandwidths), key=lambda one: one.flows, default=None)
    if test is None or test.pairs is None:
        return None
    has_ceiling = all(flow.ceiling for flow in test.pairs)
    values: list[dict[str, Any]] = []
    for flow in test.pairs:
        whole = (flow.ceiling if has_ceiling else None) or test.middle
        share = rounded(100 * flow.value / whole)
        said = f"{flow.ends}: {words.figure(flow.value)} Gb/s"
        said += f", {words.percent(float(share))}"
        values.append(
            {"client": flow.client, "server": flow.server, "percent": share, "said": said}
        )
    return Map(test.title, test.size, has_ceiling, values)
