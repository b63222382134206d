"""Figures against their bounds: one table of all, from which each check of a bound is drawn.

A row is one figure of one record under one bound:

    kind, name, test      "limit" and the limit's id, or "shape" and interval or tail
    row                   of the record
    v                     the figure, or its share of what the bound is relative to; null: none
    why                   why there is none, where that is known
    nothing               there is no such figure, so nothing is missing (a loopback's ceiling)
    strain, broken        how near to the bound as a factor (the worst has the greatest); beyond it
    hard                  the record is of hardware
    of                    of a tail the percentile
    seq                   its place among the figures of its record
    like                  of a bound beside peers: what such records have in common

Rows stand in the order of the records.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from perch.model.plan import Flow
from perch.model.verdict import EVIDENCE_MAX

SCHEMA = {
    "kind": pl.String, "name": pl.String, "test": pl.String, "row": pl.Int64, "v": pl.Float64,
    "why": pl.String, "nothing": pl.Boolean, "strain": pl.Float64, "broken": pl.Boolean,
    "hard": pl.Boolean, "of": pl.String, "seq": pl.Int64, "like": pl.String,
}  # fmt: skip

#: The strain of a figure that no factor would bring within its bound.
BEYOND_ALL = 1e300


def table(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """One table of these parts; a column that a part lacks is null, or false."""
    known = {"nothing": False, "broken": False, "hard": False}
    whole = pl.concat(
        [
            part.select(
                pl.col(name).cast(dtype)
                if name in part.columns
                else pl.lit(known.get(name), dtype=dtype).alias(name)
                for name, dtype in SCHEMA.items()
            )
            for part in parts
        ]
        or [pl.DataFrame(schema=SCHEMA)]
    )
    return whole.sort("row", "seq", maintain_order=True)


def bounded(v: pl.Expr, least: float | None, most: float | None) -> list[pl.Expr]:
    """The columns strain and broken of figures under a bound."""
    strains, broken = [], []
    if most is not None:
        near = v / most if most > 0 else pl.when(v > most).then(BEYOND_ALL).otherwise(0.0)
        strains.append(near)
        broken.append(v > most)
    if least is not None:
        strains.append(pl.when(v > 0).then(least / v).otherwise(BEYOND_ALL))
        broken.append(v < least)
    strain = pl.max_horizontal(*strains)
    return [
        pl.when(v.is_not_null()).then(strain).alias("strain"),
        pl.any_horizontal(*broken).fill_null(value=False).alias("broken"),
    ]


def groups(held: pl.DataFrame) -> pl.DataFrame:
    """What each bound says of each test, in the table's order.

    Columns: kind, name, test; judged, unknown, broken, hard: counts; worst, at, of: the figure with
    the most strain and its row; why: the first reason; rows: of the first that are broken.
    """
    v, strain = pl.col("v"), pl.col("strain")
    is_worst = strain == strain.max()
    return held.group_by("kind", "name", "test", maintain_order=True).agg(
        v.count().alias("judged"),
        (v.is_null() & ~pl.col("nothing")).sum().alias("unknown"),
        (pl.col("broken") & pl.col("hard")).sum().alias("hard"),
        v.filter(is_worst).first().alias("worst"),
        pl.col("row").filter(is_worst).first().alias("at"),
        pl.col("of").filter(is_worst).first(),
        pl.col("why").drop_nulls().first(),
        pl.col("row").filter("broken").head(EVIDENCE_MAX).alias("rows"),
        pl.col("broken").sum(),
    )


# ---- repeats -------------------------------------------------------------------------------------


def repeated_pairs(flows: Iterable[Flow]) -> dict[str, list[Flow]]:
    """The repeats of each pair of hosts that was measured again, by the column pair of records."""
    pairs: dict[str, list[Flow]] = {}
    for flow in flows:
        if flow.retry:
            pairs.setdefault(f"{flow.test}\t{flow.client}\t{flow.server}", []).append(flow)
    return pairs


#: One figure of a repeated pair, over all of its repeats.
FIGURE = ("pair", "place", "kind", "name", "test", "like")


def held_repeats(
    held: pl.DataFrame, records: pl.DataFrame, flows: Iterable[Flow]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The table with one row for all repeats of a figure, and one with the row of each repeat.

    For all of them speaks one without a value, else the middle one by how near to the bound it is;
    of an even number the worse of the two. These rows stand behind all others.

    records: columns row, pair, place.
    """
    pairs = repeated_pairs(flows)
    if not pairs:
        return held, held.clear()
    named = held.join(records.select("row", "pair", "place"), on="row", maintain_order="left")
    waits = pl.col("pair").is_in(list(pairs))
    waiting = named.filter(waits)
    ranked = (
        waiting.with_row_index("at")
        .with_columns(first=pl.col("at").min().over(FIGURE))
        .sort("broken", "strain", "row", maintain_order=True)
        .with_columns(rank=pl.int_range(pl.len()).over(FIGURE), middle=pl.len().over(FIGURE) // 2)
    )
    is_blind = pl.col("v").is_null()
    blind = ranked.filter(is_blind).unique(FIGURE, keep="first", maintain_order=True)
    seen = ranked.filter(~is_blind.any().over(FIGURE) & (pl.col("rank") == pl.col("middle")))
    spoken = pl.concat([blind, seen]).sort("first", maintain_order=True)
    others = named.filter(~waits)
    return pl.concat([others.select(*SCHEMA), spoken.select(*SCHEMA)]), waiting.select(*SCHEMA)
