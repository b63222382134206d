"""The course of a measurement: its worst interval and its longest tail."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check
from perch.checks.figures import rounded_figures, supported
from perch.checks.held import bounded, groups, held_repeats, table
from perch.model.figures import rounded
from perch.model.record import Latency
from perch.model.verdict import Bound, Check

#: An interval that carried less was for more than half of its time without traffic, or on a link
#: at half its speed; no repair of single packets takes so long. Site policy.
LEAST_SHARE = 0.5

#: An order of magnitude: where a thousandth of the messages take longer than ten others. Site
#: policy.
MOST_TAIL = 10

#: A ten-thousandth of the messages may take ten times as much again: as of a thousandth, that is a
#: hundredth of all time. Site policy.
MOST_FAR_TAIL = 100

#: Ten windows of 0.1 s: below that the first and last are a good part of the whole.
LEAST_WINDOWED_S = 1

#: Columns that these checks take.
COLUMNS = (
    "row", "id", "pair", "place", "test", "scope", "status", "elapsed_s", "worst_interval_share",
    "bandwidth.gbit_s", "bandwidth.min_interval_gbit_s", "latency_us.count",
    "latency_us.p50", "latency_us.p99", "latency_us.p99_9", "latency_us.p99_99",
)  # fmt: skip


def _worst_share() -> pl.Expr:
    """The worst interval against the middle of its record's own.

    Also the worst window of a tenth of a second against the whole. Null where neither is known.
    """
    window = pl.col("bandwidth.min_interval_gbit_s") / pl.col("bandwidth.gbit_s")
    is_long = pl.col("elapsed_s") >= LEAST_WINDOWED_S
    return pl.min_horizontal("worst_interval_share", pl.when(is_long).then(window))


def _tail(name: str) -> pl.Expr:
    """A percentile against the median, where ten samples support it."""
    is_known = supported(Latency.PERCENTILES[name]) & (pl.col("latency_us.p50") > 0)
    return pl.when(is_known).then(pl.col(f"latency_us.{name}") / pl.col("latency_us.p50"))


def _held(records: pl.DataFrame) -> pl.DataFrame:
    """The table of perch.checks.held: interval and tails of each record with status ok."""
    shared = (
        "row",
        "test",
        (pl.col("scope") == "hardware").alias("hard"),
        pl.lit("shape").alias("kind"),
    )
    ok = records.lazy().filter(pl.col("status") == "ok")
    v = pl.col("v")
    farthest = pl.when(_tail("p99_9").is_not_null()).then(pl.lit("p99_9")).otherwise(pl.lit("p99"))
    intervals = ok.select(
        *shared, rounded_figures(_worst_share()).alias("v"), name=pl.lit("interval")
    )
    tails = ok.select(
        *shared,
        rounded_figures(pl.coalesce(_tail("p99_9"), _tail("p99"))).alias("v"),
        name=pl.lit("tail"),
        of=farthest,
    )
    far_tails = ok.select(
        *shared,
        rounded_figures(_tail("p99_99")).alias("v"),
        name=pl.lit("far-tail"),
        of=pl.lit("p99_99"),
    )
    bounds = (
        (intervals, LEAST_SHARE, None),
        (tails, None, MOST_TAIL),
        (far_tails, None, MOST_FAR_TAIL),
    )
    return table(
        part.filter(v.is_not_null())
        .with_columns(*bounded(v, least, most), seq=pl.lit(seq))
        .collect()
        for seq, (part, least, most) in enumerate(bounds)
    )


def held_shapes(run: RunView) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Intervals and tails; of repeated pairs one that speaks for all, and those of each repeat."""
    return held_repeats(_held(run.records), run.records, run.plan.flows())


def _interval(test: str) -> Check:
    return Check(
        id=f"interval/{test}",
        title=f"No interval far below the others, test {test}",
        fault=f"Intervals far below the others, test {test}",
        status="pass",
        limit=Bound(LEAST_SHARE, None),
        unit="of the median interval",
        source="site policy: a link that stands still for half of an interval is a fault, no noise",
        remedy="look at that time into the logs of both hosts and of the switches (link, pause "
        "storms, other traffic); to have the time of it, give the test in the suite the key "
        "interval (interval: 1s) and measure again; of a soak each anomaly has it",
    )


#: By the name of a tail its title, the words for when it does not hold, most and source.
_TAILS = {
    "tail": (
        "No tail far above the median",
        "Tail too long",
        MOST_TAIL,
        "site policy: a tail within an order of magnitude of the median",
    ),
    "far-tail": (
        "No message of ten thousand far above the median",
        "Far tail too long",
        MOST_FAR_TAIL,
        "site policy: a hundredth of all time, as ten times the median is at p99.9",
    ),
}


def _long_tail(name: str, test: str, of: str) -> Check:
    title, fault, most, source = _TAILS[name]
    return Check(
        id=f"{name}/{test}",
        title=f"{title}, test {test}",
        fault=f"{fault}, test {test}",
        status="pass",
        limit=Bound(None, most),
        unit=f"times the median, {of.replace('_', '.')}",
        source=source,
        remedy="look for other load, power saving and interrupts on both hosts, and for pause "
        "frames and retransmissions on the way",
    )


@check(family="shape", order=220, columns=COLUMNS)
def shapes(run: RunView) -> Iterator[Check]:
    """Worst interval and longest tail of each test.

    On software they are advisory: a machine's other work shows there.
    """
    ids = run.records["id"]
    for one in groups(run.once(held_shapes)[0]).iter_rows(named=True):
        test, broken = one["test"], one["broken"]
        name = one["name"]
        words = _interval(test) if name == "interval" else _long_tail(name, test, one["of"])
        words.status = "fail" if one["hard"] else "advisory" if broken else "pass"
        words.measured = rounded(one["worst"])
        words.evidence = ids[one["rows"] if broken else [one["at"]]].to_list()
        words.remedy = words.remedy if broken else None
        yield words
