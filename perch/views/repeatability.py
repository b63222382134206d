"""Repeatability: of every pair and size that was measured again, how far its repeats lie apart."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import polars as pl

from perch.views import words
from perch.views.measured import BANDWIDTH, LATENCY, SIZE, is_transfer
from perch.views.plan import PlannedTest
from perch.views.table import Table, left, right
from perch.views.transfers import BATCH, PAIR

#: The coefficient of variation that draft-calabria-bmwg-ai-fabric-training-bench-02 recommends to
#: stay under.
UNSTABLE_PERCENT = 5

_KINDS = {
    "latency": "latency, median",
    "bandwidth": "bandwidth",
    "transfer": "bandwidth",
    "rate": "message rate",
}
_PAIR = ("client.host", "server.host")


def _variations(rows: pl.DataFrame, place: list[str], value: pl.Expr) -> pl.DataFrame:
    """Percent of the mean: the sample standard deviation of each place's repeats.

    Columns: place, n, cv; the figure that varies most first, of equals the last place.
    """
    figures = rows.with_columns(figure=value.cast(pl.Float64)).filter(
        pl.col("figure").is_not_null()
    )
    mean = pl.col("figure").mean()
    return (
        figures.group_by(place)
        .agg(
            pl.len().alias("n"),
            pl.when(mean != 0).then(100 * pl.col("figure").std() / mean).alias("cv"),
        )
        .filter((pl.col("n") > 1) & pl.col("cv").is_not_null())
        .with_columns(cv=pl.col("cv").round_sig_figs(9))
        .sort("cv", *place, descending=True)
    )


def _of_test(test: PlannedTest, rows: pl.DataFrame, transfers: pl.DataFrame) -> pl.DataFrame:
    mine = pl.col("test") == test.name
    if test.kind == "transfer":
        found = transfers.filter(mine)
        place = [SIZE, BATCH, PAIR, *_PAIR]
        # the sum, or the only pair where there is no sum
        has_sum = pl.col(PAIR).is_null().any().over(SIZE, BATCH, "flow")
        return _variations(
            found.filter(pl.col(PAIR).is_null() | ~has_sum), place, pl.col("gbyte_s")
        )
    value = (
        pl.coalesce(LATENCY["p50"], LATENCY["mean"])
        if test.kind == "latency"
        else pl.col(BANDWIDTH["gbit_s"])
    )
    return _variations(rows.filter(mine & ~is_transfer()), [SIZE, *_PAIR, "rail"], value)


def _percent(value: float) -> str:
    return words.percent(value, 2 if value < 9.95 else 1)


def _row(test: PlannedTest, found: pl.DataFrame) -> list[str]:
    worst = found.row(0, named=True)
    unstable = found.filter(pl.col("cv") > UNSTABLE_PERCENT).height
    where = f"{worst['client.host']} to {worst['server.host']}, {words.size(worst[SIZE])}"
    middle = found["cv"].median()
    return [
        words.cell(test.title),
        _KINDS[test.kind],
        words.whole(max(found["n"])),
        words.whole(found.height),
        _percent(float(middle)),  # type: ignore[arg-type]
        _percent(worst["cv"]),
        words.cell(where),
        f"**no**, {unstable} of {found.height} above" if unstable else "yes",
    ]


class Repeatability(msgspec.Struct):
    table: Table
    once_line: str


def section(tests: list[PlannedTest], rows: pl.DataFrame, transfers: pl.DataFrame) -> Repeatability:
    """transfers: perch.views.transfers.entries."""

    def found() -> Iterator[list[str]]:
        for test in tests:
            if test.repeats > 1 and test.kind in _KINDS:
                variations = _of_test(test, rows, transfers)
                if variations.height:
                    yield _row(test, variations)

    columns = (
        left("Test", "Figure")
        + right("Repeats", "Pairs and sizes", "Variation, middle", "Variation, largest")
        + left("Where", f"All below {UNSTABLE_PERCENT} %")
    )
    once = [words.cell(test.title) for test in tests if test.repeats <= 1]
    line = (
        f"Measured once, so that nothing can be said of their repeatability: {words.some(once, 8)}."
    )
    return Repeatability(Table(columns, list(found())), line if once else "")
