"""Transfers by test, size and batch: all pairs of devices together (kind sum) and each of them.

Bandwidth is in GB/s, 10^9 bytes a second, as other benchmarks of transfers print it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from perch.views import words
from perch.views.measured import SIZE, Figures, Point, Results, is_transfer, tidy, whole_median
from perch.views.table import Column, Table, capped, left, right
from perch.views.words import Figure

#: Figures of a transfer, each with its column; the last one is not shown in tables.
_COLUMNS = {
    "peak_gbyte_s": pl.col("bandwidth.peak_gbit_s") / 8,
    "gbyte_s": pl.col("bandwidth.gbit_s") / 8,
    "min": pl.col("latency_us.min"),
    "mean": pl.col("latency_us.mean"),
    "p50": pl.col("latency_us.p50"),
    "p99": pl.col("latency_us.p99"),
    "transfers_per_s": pl.col("bandwidth.messages_per_s"),
    "ceiling_gbyte_s": pl.col("ceiling_gbit_s") / 8,
}
_SHOWN = tuple(_COLUMNS)[:-1]

BATCH, PAIR = "params.batch", "pair"

ROWS_MAX = 200

#: More lines of one test could not be told apart in a chart.
LINES_MAX = 3


def entries(rows: pl.DataFrame) -> pl.DataFrame:
    """Results of transfers: test, size, batch, pair (null: the sum), flow, ends and figures.

    Of what one flow reports twice, the last counts.
    """
    found = rows.filter(is_transfer()).select(
        "test", SIZE, BATCH, "flow", "client.host", "server.host", "client.device",
        "server.device",
        pl.when(pl.col("kind") == "transfer")
        .then(pl.col("transfer.pair").fill_null(0))
        .alias(PAIR),
        **_COLUMNS,
    )  # fmt: skip
    return found.unique(["test", SIZE, BATCH, PAIR, "flow"], keep="last", maintain_order=True)


def _point(size: int | None, batch: int | None, groups: Sequence[dict[str, Any]]) -> Point:
    def figures(row: dict[str, Any]) -> Figures:
        return {name: tidy(row[name]) for name in _COLUMNS}

    pairs = {row[PAIR]: figures(row) for row in groups if row[PAIR] is not None}
    whole = next((figures(row) for row in groups if row[PAIR] is None), None)
    if whole is None and len(pairs) == 1:
        whole = next(iter(pairs.values()))
    records = max(row["records"] for row in groups)
    return Point(size, records, whole, batch=batch, pairs=pairs)


def by_test(
    found: pl.DataFrame,
) -> dict[str, tuple[list[Point], dict[int, tuple[str | None, str | None] | None]]]:
    """Of each test its points by size and batch, and the devices of each pair.

    The devices are None where hosts differ.
    """
    place = ["test", SIZE, BATCH, PAIR]
    groups = (
        found.group_by(place)
        .agg(
            pl.len().alias("records"),
            pl.col("min").min(),
            *(whole_median(pl.col(name)).alias(name) for name in _COLUMNS if name != "min"),
        )
        .sort(place, nulls_last=False)
    )
    points: dict[str, list[Point]] = {}
    for (test, size, batch), rows in groups.group_by(["test", SIZE, BATCH], maintain_order=True):
        points.setdefault(str(test), []).append(
            _point(size, batch, list(rows.iter_rows(named=True)))
        )
    ends = ["client.device", "server.device"]
    devices: dict[str, dict[int, tuple[str | None, str | None] | None]] = {}
    used = found.filter(pl.col(PAIR).is_not_null()).unique(
        ["test", PAIR, *ends], maintain_order=True
    )
    for test, pair, client, server in used.select("test", PAIR, *ends).iter_rows():
        of_test = devices.setdefault(test, {})
        of_test[pair] = None if pair in of_test else (client, server)
    return {test: (of, devices.get(test, {})) for test, of in points.items()}


# ---- tables --------------------------------------------------------------------------------------


def _figure_columns() -> list[Column]:
    return right(
        "max, GB/s", "avg, GB/s", "min, µs", "avg, µs", "p50, µs", "p99, µs", "transfers/s"
    )


def _cells(figures: Figures | None) -> list[str]:
    return [words.figure((figures or {}).get(name)) for name in _SHOWN]


def _total(point: Point) -> str:
    """Megabytes of a batch."""
    if point.batch is None or point.size_bytes is None:
        return "-"
    return words.figure(point.size_bytes * point.batch / 1e6)


def _slowest(point: Point) -> int | None:
    """The pair with the least bandwidth, where there are several."""
    rates = {pair: rate for pair, of in point.pairs.items() if (rate := of["gbyte_s"]) is not None}
    return min(rates, key=lambda pair: rates[pair]) if len(rates) > 1 else None


def _slowest_cell(point: Point) -> str:
    pair = _slowest(point)
    return "-" if pair is None else f"pair {pair}: {words.figure(point.pairs[pair]['gbyte_s'])}"


def _sum_table(test: Results, *, several: bool) -> Table:
    """A row for each size and batch: all pairs together."""
    columns = right("Size", "Batch", "Total, MB") + _figure_columns()
    rows = []
    for point in test.sizes:
        row = [words.size(point.size_bytes), words.whole(point.batch), _total(point)]
        row += _cells(point.figures)
        rows.append([*row, _slowest_cell(point)] if several else row)
    return Table(columns + (right("slowest, avg GB/s") if several else []), rows)


def _device_cell(devices: tuple[str | None, str | None] | None) -> str:
    if devices is None or devices == (None, None):
        return "-"
    return words.cell(" to ".join(name or "-" for name in devices))


def _pair_table(test: Results) -> Table:
    """A row for each pair; the slowest of its size and batch is in bold."""
    rows = []
    for point in test.sizes:
        slowest = _slowest(point)
        for pair, figures in point.pairs.items():
            name = f"**{pair}**" if pair == slowest else str(pair)
            ends = _device_cell(test.devices.get(pair))
            place = [words.size(point.size_bytes), words.whole(point.batch), name, ends]
            rows.append(place + _cells(figures))
    columns = right("Size", "Batch", "Pair") + left("Devices") + _figure_columns()
    table = capped(columns, rows, ROWS_MAX)
    table.note = "Each pair of devices; the slowest of its size and batch is in bold:"
    return table


def table(test: Results) -> Table:
    """Where no tool measured the sum of several pairs, the pairs are all there is."""
    several = max(len(point.pairs) for point in test.sizes) > 1
    if not several:
        return _sum_table(test, several=False)
    if all(point.figures is None for point in test.sizes):
        return _pair_table(test)
    found = _sum_table(test, several=True)
    found.pairs = _pair_table(test)
    return found


def _count(number: int | None, one: str, many: str) -> str | None:
    return None if number is None else f"1 {one}" if number == 1 else f"{number} {many}"


def _average(test: Results) -> str:
    if test.about["tool.name"] != "perch":
        return f"as {test.about['tool.name']} prints it"
    if test.about["params.devices"] == 1:
        return "all bytes over the whole time"
    return "a pair's bytes over its time, all pairs' over the longest of these times"


def note(test: Results) -> str:
    """What the figures are."""
    about = test.about
    completion = about["params.completion"]
    records = max(point.records for point in test.sizes)
    layer, provider = about["link.layer"], about["provider"]
    parts = [
        "Gigabytes (10^9) a second, and microseconds of a batch, from posting its first transfer "
        "to the completion of its last",
        f"max is bytes over the fastest batch, avg {_average(test)}",
        None if completion is None else words.waiting_words(completion),
        f"provider {provider}" if provider is not None else None,
        f"over {layer}" if layer is not None else None,
        _count(about["params.devices"], "pair of devices", "pairs of devices"),
        _count(about["params.queue_pairs"], "queue pair each", "queue pairs each"),
        _count(about["params.threads"], "thread", "threads"),
        "transfers posted one by one" if about["params.consecutive"] is True else None,
        "without a session" if about["params.session"] is False else None,
        "every byte checked" if test.is_verified else None,
        f"medians of {records} records a row" if records > 1 else None,
    ]
    return words.cell(words.joined(parts) + ".")


# ---- charts --------------------------------------------------------------------------------------

#: What a chart's lines go along, and what each has one of.
ALONG = {"size": ("size_bytes", "batch"), "batch": ("batch", "size_bytes")}


def picked(values: Sequence[Any]) -> list[Any]:
    """The least, the middle and the largest."""
    ordered = sorted(set(values))
    if len(ordered) <= LINES_MAX:
        return ordered
    return [ordered[0], ordered[len(ordered) // 2], ordered[-1]]


def _distinct(test: Results, name: str) -> set[int]:
    return {one for point in test.sizes if (one := getattr(point, name)) is not None}


def _drawn(point: Point, series: str) -> list[tuple[str, Figure]]:
    if point.figures is not None:
        return [(series, point.figures["gbyte_s"])]
    return [(f"{series}, pair {pair}", of["gbyte_s"]) for pair, of in point.pairs.items()]


def _at(point: Point) -> str:
    batch = "" if point.batch is None else f", batch {words.whole(point.batch)}"
    return f"{words.size(point.size_bytes)}{batch}"


def lines(test: Results, along: str) -> list[dict[str, Any]]:
    """One line for each of the picked others; a test of one point is a point by size."""
    axis, other = ALONG[along]
    others = _distinct(test, other)
    if len(_distinct(test, axis)) < 2 and (along == "batch" or len(others) > 1):
        return []
    values = []
    for one in picked(list(others)) or [None]:
        said = f"batch {one}" if along == "size" else words.size(one)
        series = f"{test.title}, {said}" if len(others) > 1 else test.title
        for point in test.sizes:
            if getattr(point, other) == one and getattr(point, axis) is not None:
                for name, rate in _drawn(point, series):
                    place = {"size_bytes": point.size_bytes, "batch": point.batch}
                    said = f"{name}, {_at(point)}: {words.figure(rate)} GB/s"
                    drawn = {"series": name, "gbyte_s": rate, "said": said} | place
                    values.append(drawn | {"origin": "measured"})
    return values


def leaves_out(test: Results, along: str) -> bool:
    """Whether the chart along one thing has this test, and not all of the other."""
    if test.kind != "transfer":
        return False
    axis, other = ALONG[along]
    others = _distinct(test, other)
    return len(_distinct(test, axis)) > 1 and sorted(others) != picked(list(others))
