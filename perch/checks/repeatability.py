"""Repeats of one figure agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from perch.checks import RunView, check, design, first
from perch.checks.figures import rounded_figures
from perch.model.figures import rounded
from perch.model.verdict import Bound, Check

#: The coefficient of variation that draft-calabria-bmwg-ai-fabric-training-bench-02 recommends to
#: stay under.
UNSTABLE_PERCENT = 5

_SOURCE = (
    design("repeatability")
    + "; draft-calabria-bmwg-ai-fabric-training-bench-02: under 5 % recommended"
)


def _figure() -> pl.Expr:
    """Of latency the median (the mean where a tool has no other), else bandwidth."""
    latency = pl.coalesce("latency_us.p50", "latency_us.mean")
    is_latency = pl.col("kind").eq_missing("latency")
    return pl.when(is_latency).then(latency).otherwise(pl.col("bandwidth.gbit_s"))


def variations(records: pl.DataFrame) -> pl.DataFrame:
    """Of each figure that was measured more than once the coefficient of variation, in percent.

    Columns: test, name (test/client/server#place), percent; in the order of the records.
    """
    repeated = (
        records.filter(pl.col("status") == "ok")
        .select("test", "pair", "place", v=_figure())
        .filter(pl.col("v").is_not_null())
        .group_by("test", "pair", "place", maintain_order=True)
        .agg("v")
        .filter(pl.col("v").list.len() > 1)
    )
    names = pl.concat_str(pl.col("pair").str.replace_all("\t", "/"), "place", separator="#")
    if repeated.is_empty():
        return pl.DataFrame(schema={"test": pl.String, "name": pl.String, "percent": pl.Float64})
    n = repeated["v"].list.len().to_numpy().astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(n)[:-1]])
    v = repeated["v"].explode().to_numpy()
    mean = np.add.reduceat(v, starts) / n
    squares = np.add.reduceat((v - np.repeat(mean, n)) ** 2, starts)
    # the mean of zeros has no part
    percent = 100 * np.sqrt(squares / (n - 1)) / np.where(mean == 0, np.nan, mean)
    return repeated.select(
        "test",
        names.alias("name"),
        rounded_figures(pl.lit(pl.Series("percent", percent))).fill_nan(None),
    )


@check(
    family="repeatability",
    order=120,
    columns=("test", "pair", "place", "kind", "status", "latency_us.p50", "latency_us.mean",
             "bandwidth.gbit_s"),
    criterion="repeatability",
    source=_SOURCE,
)  # fmt: skip
def repeatability(run: RunView) -> Iterator[Check]:
    """Above 5 % a figure is unstable."""
    found = variations(run.records)
    if found.is_empty():
        yield Check(
            id="repeatability",
            title="Repeats agree",
            status="not_judged",
            measured="nothing was measured more than once",
            source=design("repeatability"),
        )
    for (test,), group in sorted(found.partition_by("test", as_dict=True).items()):
        worst = group["percent"].max()
        by_size = group.sort("percent", descending=True, maintain_order=True)
        unstable = by_size.filter(pl.col("percent") > UNSTABLE_PERCENT)["name"]
        yield Check(
            id=f"repeatability/{test}",
            title=f"Repeats of test {test} agree",
            fault=f"Repeats differ, test {test}",
            status="pass" if unstable.is_empty() else "advisory",
            measured=rounded(worst) if isinstance(worst, float) else None,
            limit=Bound(None, UNSTABLE_PERCENT),
            unit="% coefficient of variation",
            evidence=first(unstable),
            remedy=None
            if unstable.is_empty()
            else f"do not rely on {len(unstable)} of its {len(group)} figures: stop other load, "
            "fix the CPU frequency and repeat",
        )
