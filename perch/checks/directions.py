"""Is a path as fast back as forth, and none of its sizes slower than both of its neighbours?

Both compare figures of one test with each other, so they need neither a link's rate nor other
pairs. The best of all repeats speaks: what is slow is so each time.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, first
from perch.checks.figures import is_bound_by_link, rounded_figures, speed
from perch.judge.columns import on_rail
from perch.model.figures import rounded
from perch.model.verdict import Bound, Check

#: Two figures of 5 % variation each, as two tools may differ (reports/limits/roce.yml).
LEAST_BACK = 0.9
#: What a size may lack of the lesser of its neighbours: the way of sending may change there, as
#: from inline to not. Site policy: four times the 5 % by which repeats may vary.
LEAST_SIZE = 0.8
#: On software other work of the machine shows; only a factor of two is told. Site policy.
LEAST_SOFT = 0.5

#: By family its title, and the words for when it does not hold.
_WORDS = {
    "directions": ("Both directions are equally fast", "One direction is slower than the other"),
    "sizes": ("No size slower than its neighbours", "A size is slower than both its neighbours"),
}

COLUMNS = (
    "test", "kind", "rail", "status", "scope", "client.host", "server.host", "params.size_bytes",
    "params.batch", "params.cross_rail", "transfer.pair", "latency_us.p50", "latency_us.mean",
    "bandwidth.gbit_s",
)  # fmt: skip

_ENDS = ("client.host", "server.host")
_size = pl.col("params.size_bytes")
_is_transfer = pl.col("kind") == "transfer"
#: Figures of one test that are of the same work, but for the hosts.
_SAME = ("test", "kind", "rail", "params.size_bytes", "batch", "pair")


def _best(records: pl.DataFrame) -> pl.DataFrame:
    """The best figure of each test, pair, way and size, as a speed: of a latency its inverse.

    Of transfers each batch and pair of devices, which are the same both ways unless they cross.
    """
    kinds = pl.col("kind").is_in(["latency", "bandwidth", "rate", "transfer"])
    straight = pl.col("params.cross_rail").fill_null(0) == 0
    ok = records.filter((pl.col("status") == "ok") & kinds & straight & _size.is_not_null())
    batch, pair = pl.col("params.batch"), pl.col("transfer.pair")
    return (
        ok.with_columns(
            v=speed(),
            large=is_bound_by_link(),
            batch=pl.when(_is_transfer).then(batch).otherwise(0),
            pair=pl.when(_is_transfer).then(pair).otherwise(0),
        )
        .filter(pl.col("v") > 0)
        .group_by(*_SAME, *_ENDS, maintain_order=True)
        .agg(pl.col("v").max(), pl.first("large"), hard=(pl.col("scope") == "hardware").all())
        .with_columns(
            name=pl.concat_str("test", *_ENDS, separator="/")
            + "#"
            + _size.cast(pl.String)
            + pl.when(_is_transfer).then(pl.format("x{}/{}", "batch", "pair")).otherwise(pl.lit(""))
            + on_rail()
        )
    )


def _both_ways(best: pl.DataFrame) -> pl.DataFrame:
    """What the slower way of a pair has of the other one's figure."""
    back = best.select(
        *_SAME, pl.col("v").alias("other"),
        pl.col("client.host").alias("server.host"), pl.col("server.host").alias("client.host"),
    )  # fmt: skip
    keys = [*_SAME, *_ENDS]
    least = pl.when(pl.col("hard")).then(LEAST_BACK).otherwise(LEAST_SOFT)
    return best.join(back, on=keys, how="inner", maintain_order="left").select(
        "test",
        "name",
        rounded_figures(pl.col("v") / pl.col("other")).alias("share"),
        least.alias("least"),
        (pl.col("hard") & pl.col("large")).alias("fails"),
    )


def _between_sizes(best: pl.DataFrame) -> pl.DataFrame:
    """What a size has of the lesser figure of the next smaller and the next larger one.

    Rates grow with the size, and so do times: a size that both its neighbours are faster than is
    slow by itself. Batches and lists of small messages follow other laws.
    """
    best = best.filter(pl.col("kind").is_in(["latency", "bandwidth"]))
    of = ["test", "kind", "rail", *_ENDS]
    ordered = best.sort("params.size_bytes", maintain_order=True)
    smaller, larger = pl.col("v").shift(1).over(of), pl.col("v").shift(-1).over(of)
    least = pl.when(pl.col("hard")).then(LEAST_SIZE).otherwise(LEAST_SOFT)
    return ordered.select(
        "test",
        "name",
        rounded_figures(pl.col("v") / pl.min_horizontal(smaller, larger)).alias("share"),
        least.alias("least"),
        pl.col("hard").alias("fails"),
        has_both=smaller.is_not_null() & larger.is_not_null(),
    ).filter("has_both")


def _findings(found: pl.DataFrame, family: str, unit: str) -> Iterator[Check]:
    title, fault = _WORDS[family]
    for (test,), group in sorted(found.partition_by("test", as_dict=True).items()):
        worst = group.sort(pl.col("share") / pl.col("least"), maintain_order=True)
        slow = worst.filter(pl.col("share") < pl.col("least"))
        one = Check(
            id=f"{family}/{test}",
            title=f"{title}, test {test}",
            fault=f"{fault}, test {test}",
            status="pass",
            measured=rounded(worst["share"][0]),
            limit=Bound(worst["least"][0], None),
            unit=unit,
            evidence=first(slow["name"] if slow.height else worst["name"].head(1)),
        )
        if slow.height:
            one.status = "fail" if slow["fails"].any() else "advisory"
            one.remedy = (
                "on the slower host check CPU, PCIe and pause frames. Check routes and drops of "
                "this direction, and the size limits of inline and eager sends"
            )
        yield one


@check(
    family="directions",
    order=121,
    columns=COLUMNS,
    source="arithmetic: two figures of 5 % variation each, the most that "
    "draft-calabria-bmwg-ai-fabric-training-bench-02 recommends; half of it on software",
)
def directions(run: RunView) -> Iterator[Check]:
    """Of each test that was measured both ways between two hosts the pair that differs most."""
    unit = "of the other direction's figure"
    yield from _findings(_both_ways(run.once(_prepared)), "directions", unit)


@check(
    family="sizes",
    order=122,
    columns=COLUMNS,
    source="site policy: a fifth, four times the 5 % by which repeats may vary; half on software",
)
def sizes(run: RunView) -> Iterator[Check]:
    """Of each test with three sizes the one that falls farthest below both of its neighbours."""
    unit = "of the slower neighbour's figure"
    yield from _findings(_between_sizes(run.once(_prepared)), "sizes", unit)


def _prepared(run: RunView) -> pl.DataFrame:
    return _best(run.records)
