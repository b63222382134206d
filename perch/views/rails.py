"""Tests of several rails: each rail by size, and a matrix of the NICs, hosts by rails.

A NIC's figure is the median over its flows with all peers, so a bad peer does not make it look bad.
Where it sent and received, the slower way's median is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import product
from typing import Any

import msgspec
import polars as pl

from perch.checks.rails import client_rail, server_rail, ways
from perch.model.figures import rounded
from perch.views import words
from perch.views.flows import SLOW
from perch.views.measured import BANDWIDTH, LATENCY, SIZE, is_transfer
from perch.views.plan import PlannedTest
from perch.views.table import Table, capped, left, right

#: Matrices, and rows of each; rows of a test's table by rail.
TESTS_MAX, HOSTS_MAX, ROWS_MAX = 8, 40, 64

BY_RAIL = "Each rail, as the median over its pairs, with the slowest of them; outliers are in bold:"

_BATCH = "params.batch"


def results(rows: pl.DataFrame) -> pl.DataFrame:
    """Of the tests of several rails each figure with the rails and devices of its ends."""
    is_latency = pl.col("kind") == "latency"
    typical = pl.coalesce(LATENCY["p50"], LATENCY["mean"])
    found = rows.filter(pl.col("kind") != "sum").select(
        "test", "kind", SIZE, pl.when(is_transfer()).then(_BATCH).alias(_BATCH),
        "client.host", "server.host", "client.device", "server.device", *ways(),
        ceiling=pl.when(~is_latency).then(BANDWIDTH["ceiling_gbit_s"]),
        value=pl.when(is_latency).then(typical).otherwise(BANDWIDTH["gbit_s"]).cast(pl.Float64),
        rail=client_rail(), server_rail=server_rail(),
    )  # fmt: skip
    several = pl.col("rail").n_unique().over("test") > 1
    return found.filter(pl.col("value").is_not_null()).filter(several)


def _unit(kind: str) -> str:
    return "µs" if kind == "latency" else "Gb/s"


def speed(kind: str, value: float, middle: float) -> float:
    """A figure as a share of the median of all, of a latency the inverse."""
    return middle / value if kind == "latency" else value / middle


def _marked(value: float, share: float) -> str:
    said = words.figure(value)
    return f"**{said}**" if share < SLOW else said


# ---- a test's rails by size ----------------------------------------------------------------------


def _of_test(found: pl.DataFrame, kind: str) -> Table:
    is_latency = kind == "latency"
    value = pl.col("value")
    by_rail = found.group_by(SIZE, _BATCH, "rail").agg(
        value.median(),
        pl.col("ceiling").first(),
        worst=value.max() if is_latency else value.min(),
        pair=pl.concat_str("client.host", pl.lit(" to "), "server.host")
        .sort_by(value, "client.host", "server.host", descending=[is_latency, False, False])
        .first(),
    )
    by_rail = by_rail.with_columns(middle=value.median().over(SIZE, _BATCH))
    rows = []
    for one in by_rail.sort(SIZE, _BATCH, "rail").iter_rows(named=True):
        middle, ceiling = one["middle"], one["ceiling"]
        rows.append(
            [
                words.size(one[SIZE]),
                str(one["rail"]),
                _marked(one["value"], speed(kind, one["value"], middle)),
                words.percent(100 * one["value"] / ceiling) if ceiling else "-",
                _marked(one["worst"], speed(kind, one["worst"], middle)),
                words.cell(one["pair"]),
            ]
        )
    unit = _unit(kind)
    columns = right("Size", "Rail", f"Median, {unit}", "Of the ceiling", f"Slowest pair, {unit}")
    table = capped(columns + left("Which"), rows, ROWS_MAX)
    table.note = BY_RAIL
    return table


def tables(found: pl.DataFrame) -> dict[str, Table]:
    """By test; the pairs of a transfer have a table of their own."""
    plain = found.filter(pl.col("kind") != "transfer")
    return {
        str(test): _of_test(of, of["kind"][0])
        for (test,), of in plain.group_by("test", maintain_order=True)
    }


# ---- the matrix ----------------------------------------------------------------------------------


class Matrix(msgspec.Struct):
    """A test's NICs at one size: by host and rail. `ceiling`: None where links differ.

    `hosts`: in the plan's order. `devices`: of each rail, None where hosts call it otherwise.
    `ways`: sending or receiving, of NICs that are slow in that one only.
    """

    title: str
    kind: str
    place: str
    hosts: list[str]
    devices: dict[int, str | None]
    values: dict[tuple[str, int], float]
    ways: dict[tuple[str, int], str]
    middle: float
    ceiling: float | None

    def share(self, value: float) -> float:
        return speed(self.kind, value, self.middle)

    @property
    def worst(self) -> float:
        return min(map(self.share, self.values.values()))

    @property
    def slowest_first(self) -> list[str]:
        """The hosts by their slowest NIC."""
        least = dict.fromkeys(self.hosts, 1.0)
        for (host, _), value in self.values.items():
            least[host] = min(least[host], self.share(value))
        return sorted(self.hosts, key=lambda host: least[host])


def _nics(found: pl.DataFrame, kind: str) -> pl.DataFrame:
    """The figure of each NIC: of its slower way, with `way` and the `other` one's figure.

    Ways stand by themselves where each has two peers, or the only peer that there is: one bad peer
    of several does not show. A median is a figure that was measured, the faster one of two.
    """
    sides = [
        found.select(
            pl.col(f"{side}.host").alias("host"),
            pl.col(rail).alias("rail"),
            pl.col(f"{side}.device").alias("device"),
            pl.col(f"{side}_way").alias("way"),
            pl.col(f"{peer}.host").alias("peer"),
            "value",
        )
        for side, rail, peer in (("client", "rail", "server"), ("server", "server_rail", "client"))
    ]
    is_latency = kind == "latency"
    nic = ["host", "rail"]
    middle = pl.col("value").quantile(0.5, "lower" if is_latency else "higher")
    figures = [pl.col("device").first(), pl.col("peer").n_unique().alias("peers"), middle]
    ends = pl.concat(sides)
    both = ends.group_by(nic, maintain_order=True).agg(figures)
    slower = (
        ends.filter(pl.col("way").is_not_null())
        .group_by(*nic, "way", maintain_order=True)
        .agg(figures[1:])
        .join(both.select(*nic, all="peers"), on=nic)
        .filter(pl.col("peers") >= pl.min_horizontal("all", 2))
        .sort("value", descending=is_latency, maintain_order=True)
        .group_by(nic)
        .agg(pl.col("way", "value").first(), other=pl.col("value").last(), ways=pl.len())
        .filter(pl.col("ways") > 1)
    )
    return both.join(slower, on=nic, how="left", maintain_order="left").select(
        *nic, "device", "way", "other", value=pl.coalesce("value_right", "value")
    )


def _matrix(test: PlannedTest, found: pl.DataFrame, hosts: Iterable[str]) -> Matrix:
    """At its largest size and batch, of a latency at its smallest."""
    kind = found["kind"][0]
    ordered = found.sort(SIZE, _BATCH, descending=kind != "latency", maintain_order=True)
    size, batch = ordered.select(SIZE, _BATCH).row(0)
    at = found.filter(pl.col(SIZE).eq_missing(size) & pl.col(_BATCH).eq_missing(batch))
    nics = _nics(at, kind)
    middle = float(nics["value"].median())  # type: ignore[arg-type]
    named = nics.group_by("rail").agg(
        pl.when(pl.col("device").n_unique() == 1).then(pl.col("device").first()).alias("device")
    )
    measured = set(nics["host"])
    ceilings = at["ceiling"].unique().to_list()
    return Matrix(
        title=test.title,
        kind=kind,
        place=words.size(size) + ("" if batch is None else f", batch {words.whole(batch)}"),
        hosts=[host for host in hosts if host in measured],
        devices=dict(named.sort("rail").select("rail", "device").iter_rows()),
        values={(one["host"], one["rail"]): one["value"] for one in nics.iter_rows(named=True)},
        ways={
            (one["host"], one["rail"]): one["way"]
            for one in nics.drop_nulls("way").iter_rows(named=True)
            if speed(kind, one["value"], middle) < SLOW <= speed(kind, one["other"], middle)
        },
        middle=middle,
        ceiling=ceilings[0] if len(ceilings) == 1 else None,
    )


def matrices(
    found: pl.DataFrame, tests: Iterable[PlannedTest], hosts: Collection[str]
) -> list[Matrix]:
    """In the plan's order, that of tests and of hosts. found: of `results`."""
    parts = {str(test): of for (test,), of in found.group_by("test", maintain_order=True)}
    return [_matrix(test, parts[test.name], hosts) for test in tests if test.name in parts]


def _row(one: Matrix, host: str) -> Iterator[str]:
    yield words.cell(host)
    for rail in one.devices:
        value, way = one.values.get((host, rail)), one.ways.get((host, rail))
        said = "-" if value is None else _marked(value, one.share(value))
        yield f"{said} ({way})" if way else said


def _table(one: Matrix) -> Table:
    names = [f"{rail} ({name})" if name else str(rail) for rail, name in one.devices.items()]
    shown = one.hosts if len(one.hosts) <= HOSTS_MAX else one.slowest_first
    rows = [list(_row(one, host)) for host in shown]
    table = capped(left("Host") + right(*map(words.cell, names)), rows, HOSTS_MAX)
    table.title = f"{words.cell(one.title)}, {one.place}, {_unit(one.kind)}"
    return table


class Section(msgspec.Struct):
    """`more`: tests that are not shown."""

    tables: list[Table]
    more: int


def section(found: list[Matrix]) -> Section:
    """Of many tests those with the slowest NICs."""
    shown = sorted(found, key=lambda one: one.worst)[:TESTS_MAX]
    kept = [one for one in found if one in shown]
    return Section([_table(one) for one in kept], len(found) - len(kept))


class Drawn(msgspec.Struct):
    title: str
    share: str
    values: list[dict[str, Any]]


def drawn(found: list[Matrix]) -> Drawn | None:
    """Of the tests of bandwidth the one with the most NICs: as shares of the ceiling.

    Where links differ or have none, of the median.
    """
    rates = [one for one in found if one.kind != "latency" and len(one.hosts) <= HOSTS_MAX]
    one = max(reversed(rates), key=lambda one: len(one.values), default=None)
    if one is None:
        return None
    whole = one.ceiling or one.middle
    values = []
    for host, rail in product(one.hosts, one.devices):
        value, way = one.values.get((host, rail)), one.ways.get((host, rail))
        if value is None:
            continue
        said = f"{host}, rail {rail} ({one.devices[rail] or 'its NIC'})"
        said += f", {way}" * bool(way) + f": {words.figure(value)} Gb/s"
        percent = rounded(100 * value / whole)
        said += f", {words.percent(float(percent))}"
        values.append({"host": host, "rail": rail, "percent": percent, "said": said})
    share = "its link's ceiling" if one.ceiling else "the median of the test's NICs"
    return Drawn(f"{one.title}, {one.place}", share, values)
