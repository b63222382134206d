"""Every record's figure under every limit of a run, as the table of perch.checks.held.

Bounds may be relative: a figure as a share of what its link can carry, of comparable pairs, or
of what it was in the accepted run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from perch.checks import RunView
from perch.checks import figures as comparable
from perch.checks import limit_values as values
from perch.checks.figures import rounded_figures
from perch.checks.held import bounded, held_repeats, table
from perch.model.baseline import Baseline
from perch.model.limits import Limit
from perch.model.plan import Flow

#: So many pairs of hosts must have measured the same. With 5 hosts, 4 of the 10 pairs hold any one
#: of them: a bad host spoils less than half, and the median stays that of good ones. With 4 hosts
#: it spoils 3 of 6.
FEWEST_PEERS = 10

#: Columns that held_limits() takes.
COLUMNS = tuple(
    dict.fromkeys(
        ("row", "id", "pair", "place", "ceiling_gbit_s", *values.COLUMNS, *comparable.COLUMNS)
    )
)  # fmt: skip

_NO_RATE = "the rate or the MTU of its link is not known, so its ceiling is not"
_NO_CEILING = "no ceiling is known of loopback, shared memory and software devices"


def _of_ceiling(found: pl.DataFrame) -> pl.DataFrame:
    """Figures as shares of what their link can carry."""
    top = pl.col("ceiling_gbit_s")
    blind = pl.col("v").is_not_null() & top.is_null()
    is_hardware = pl.col("scope") == "hardware"
    return found.with_columns(
        v=rounded_figures(pl.col("v") / top),
        why=pl.when(blind).then(
            pl.when(is_hardware).then(pl.lit(_NO_RATE)).otherwise(pl.lit(_NO_CEILING))
        ),
        nothing=blind & ~is_hardware,
    )


def _accepted(baseline: Baseline, metric: str) -> pl.DataFrame:
    """Key, value and terms of this metric's figures in the accepted run."""
    document = baseline.document
    figures = document.figures.items() if document else ()
    texts = document.terms if document else []
    rows = [(key, one.value, texts[one.of]) for key, one in figures if key.endswith(f"/{metric}")]
    schema = {"key": pl.String, "was": pl.Float64, "was_terms": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _unlike(found: pl.DataFrame, run: str) -> pl.DataFrame:
    """By both texts of terms that are not alike, why."""
    both = found.select("was_terms", "terms").drop_nulls().unique(maintain_order=True)
    rows = [
        (was, now, f"the accepted run {run} measured it otherwise ({difference})")
        for was, now in both.iter_rows()
        if (difference := comparable.unlike(was, now)) is not None
    ]
    schema = {"was_terms": pl.String, "terms": pl.String, "unlike": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _of_baseline(found: pl.DataFrame, metric: str, baseline: Baseline) -> pl.DataFrame:
    """Figures as shares of those of the accepted run: only of such as were measured alike."""
    known = pl.col("v").is_not_null()
    if baseline.document is None:
        return found.with_columns(
            v=pl.lit(None, dtype=pl.Float64), why=pl.when(known).then(pl.lit(baseline.fault))
        )
    run = baseline.document.run
    found = found.with_columns(comparable.key(metric).alias("key"), comparable.terms(found))
    found = found.join(_accepted(baseline, metric), on="key", how="left", maintain_order="left")
    found = found.join(
        _unlike(found, run), on=["was_terms", "terms"], how="left", maintain_order="left"
    )
    none = pl.lit(f"the accepted run {run} has no such figure")
    why = pl.when(pl.col("was").is_null()).then(none).otherwise(pl.col("unlike"))
    return found.with_columns(
        v=pl.when(why.is_null()).then(rounded_figures(pl.col("v") / pl.col("was"))),
        why=pl.when(known).then(why),
    )


def _like() -> pl.Expr:
    """Records of one test with these in common are like each other."""
    batch = pl.when(pl.col("kind").is_in(["transfer", "sum"])).then(pl.col("params.batch"))
    parts = ("kind", "op", "params.size_bytes", batch, "link.hop_class")
    texts = [pl.col(one) if isinstance(one, str) else one for one in parts]
    return pl.concat_str([one.cast(pl.String).fill_null("") for one in texts], separator="\t")


def _asked(limit: Limit) -> list[str | pl.Expr]:
    """What a limit asks of a record beside its figure."""
    of_test: list[str | pl.Expr] = ["row", "test"]
    if limit.bound.of == "ceiling":
        return [*of_test, "scope", "ceiling_gbit_s"]
    if limit.bound.of == "baseline":
        columns = (*comparable.KEY_COLUMNS, *comparable.TERM_COLUMNS)
        return ["row", *dict.fromkeys(columns)]
    return [*of_test, _like().alias("like")] if limit.bound.of == "peers" else of_test


def _held_of(run: RunView, number: int, limit: Limit, tests: dict[str, Flow]) -> pl.DataFrame:
    """What one limit holds of the records with status ok; beside peers the figures themselves."""
    speaks = (pl.col("status") == "ok") & values.speaks_of(limit, tests)
    figure = values.figure(limit.metric).alias("v")
    found = run.records.lazy().filter(speaks).select(figure, *_asked(limit)).collect()
    v = pl.col("v")
    if limit.bound.of == "ceiling":
        found = _of_ceiling(found)
    elif limit.bound.of == "baseline":
        found = _of_baseline(found, limit.metric, run.baseline)
    if limit.bound.of == "peers":
        is_one = v > 0
        # among repeats the one in the middle speaks; a lower bound is strained by low figures
        strain = -v if limit.bound.min is not None else v
        figures = (v, pl.col("like"), strain.alias("strain"))
        judged: list[pl.Expr] = [pl.when(is_one).then(one) for one in figures]
    else:
        judged = bounded(v, limit.bound.min, limit.bound.max)
    return found.with_columns(
        *judged, kind=pl.lit("limit"), name=pl.lit(limit.id), seq=pl.lit(number)
    )


# ---- peers ---------------------------------------------------------------------------------------


def pairs_of_hosts(flows: Iterable[Flow]) -> dict[tuple[str, str], int]:
    """By test and hop class the pairs that measure it, by the plan: repeats are no peers."""
    pairs: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for flow in flows:
        a, b = flow.client, flow.server
        pairs.setdefault((flow.test, flow.hop_class or ""), set()).add((min(a, b), max(a, b)))
    return {of: len(found) for of, found in pairs.items()}


#: Comparable figures: of one limit and test, with the same column `like`.
_PEERS = ("name", "test", "like")


def _medians(peers: pl.DataFrame, flows: Iterable[Flow]) -> pl.DataFrame:
    """The median of comparable pairs, or why it is missing."""
    pairs = pairs_of_hosts(flows)
    medians = peers.group_by(_PEERS, maintain_order=True).agg(pl.col("v").median().alias("median"))
    counts = [
        pairs.get((test, like.rsplit("\t", 1)[1]), 0)
        for test, like in medians.select("test", "like").iter_rows()
    ]
    few = pl.format(
        "comparable pairs of hosts: {}, and a median needs {}", "pairs", pl.lit(FEWEST_PEERS)
    )
    return medians.with_columns(pl.Series("pairs", counts, pl.Int64)).select(
        *_PEERS,
        pl.when(pl.col("pairs") >= FEWEST_PEERS).then(pl.col("median")),
        pl.when(pl.col("pairs") < FEWEST_PEERS).then(few).alias("few"),
    )


def _beside_peers(
    held: pl.DataFrame, medians: pl.DataFrame, limits: Iterable[Limit]
) -> pl.DataFrame:
    """The table with figures beside their peers as shares of the median, last by limit and test."""
    parts = [held.filter(pl.col("like").is_null())]
    for limit in sorted(limits, key=lambda limit: limit.id):
        if limit.bound.of != "peers":
            continue
        mine = pl.col("like").is_not_null() & (pl.col("name") == limit.id)
        part = held.filter(mine).join(medians, on=_PEERS, maintain_order="left")
        part = part.with_columns(
            v=rounded_figures(pl.col("v") / pl.col("median")),
            why=pl.col("few"),
            nothing=pl.col("few").is_not_null(),
        )
        judged = part.with_columns(*bounded(pl.col("v"), limit.bound.min, limit.bound.max))
        parts.append(judged.sort("test", maintain_order=True).select(held.columns))
    return pl.concat(parts)


# ---- all -----------------------------------------------------------------------------------------


class Held(NamedTuple):
    """`spoken`: every figure under every limit, of repeated pairs the one that speaks for all.

    `again`: of repeated pairs the figures of each repeat.
    """

    spoken: pl.DataFrame
    again: pl.DataFrame


def held_limits(run: RunView) -> Held:
    """What the limits hold of the records: in their order, figures beside peers last."""
    return run.once(_held_limits)


def _held_limits(run: RunView) -> Held:
    flows = list(run.plan.flows())
    tests = values.first_flows(flows)
    held = table(
        _held_of(run, number, limit, tests)
        for number, limit in enumerate(run.limits.limits)
        if not (limit.is_agreement or limit.is_soak or limit.removed)
    )
    spoken, again = held_repeats(held, run.records, flows)
    peers = spoken.filter(pl.col("like").is_not_null())
    if peers.is_empty():
        return Held(spoken, again)
    medians = _medians(peers, flows)
    limits = run.limits.limits
    return Held(_beside_peers(spoken, medians, limits), _beside_peers(again, medians, limits))
