"""Is each record a measurement of its own?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import polars as pl

from perch.checks import RunView, check, design, first
from perch.model.verdict import Bound, Check

#: Figures that no two measurements share by chance, whatever their test and size: the engine and
#: iperf3 print nine digits of each. Their times are left out: a copy may have others.
_LATENCY = (
    "latency_us.count", "latency_us.mean", "latency_us.stddev", "latency_us.min", "latency_us.max",
)  # fmt: skip
_BANDWIDTH = ("bandwidth.bytes", "bandwidth.gbit_s", "cpu.client_s", "cpu.server_s")
_ROW = (*_LATENCY, "latency_us.p50", "latency_us.p99", "latency_us.p99_9")
_INTERVALS = ("bandwidth.gbit_s", "bandwidth.peak_gbit_s", "bandwidth.min_interval_gbit_s")

#: Samples of a latency whose figures do not repeat by chance. Site policy.
LEAST_SAMPLES = 100
#: Sizes whose latencies, of two digits behind the point, do not all repeat by chance. Site policy.
LEAST_SIZES = 3
#: So many different rates of a flow's sizes do not all repeat in another repeat. On a full link
#: times differ by about a microsecond: the engine's rate (nanoseconds) repeats once in thousands,
#: perftest's once in ten. Site policy.
LEAST_RATES, LEAST_COARSE_RATES = 3, 9
#: A row of few digits does not repeat where its tail could have had so many other values: each of
#: p99, p99.9 and maximum differs by a tenth of its distance to the median, in steps of 0.01 us
#: (perftest). Site policy.
LEAST_OUTCOMES, STEP_US = 1e9, 0.1


def _there(*columns: str) -> pl.Expr:
    return pl.all_horizontal(pl.col(name).is_not_null() for name in columns)


def _alike(records: pl.DataFrame, figures: tuple[str, ...]) -> pl.Series:
    """The flows of records that have all these figures in common with another record."""
    return records.filter(_there(*figures) & pl.struct(figures).is_duplicated())["flow"]


def _fine(records: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Records with fine figures: of latency, of bandwidth, and with intervals that differ.

    The sum of a transfer of one pair is that of its pair.
    """
    fine = records.filter(
        pl.col("tool.name").is_in(["perch", "iperf3"]) & (pl.col("kind") != "sum")
    )
    varied = pl.col("bandwidth.peak_gbit_s") > pl.col("bandwidth.min_interval_gbit_s")
    return (
        fine.filter(
            (pl.col("latency_us.count") >= LEAST_SAMPLES) & (pl.col("latency_us.stddev") > 0)
        ),
        fine.filter(_there(*_BANDWIDTH)),
        fine.filter(_there(*_INTERVALS) & varied),
    )


def _tables(records: pl.DataFrame) -> pl.DataFrame:
    """Of flows whose tools print few digits: all latencies of all sizes, as one text."""
    figures = pl.concat_str("place", *_LATENCY, separator=" ")
    return (
        records.filter(~pl.col("tool.name").is_in(["perch", "iperf3"]) & _there(*_LATENCY))
        .group_by("flow", maintain_order=True)
        .agg(figures.str.join("\n").alias("table"), pl.len().alias("sizes"))
        .filter(pl.col("sizes") >= LEAST_SIZES)
    )


def _again(records: pl.DataFrame, figures: tuple[str, ...]) -> pl.Series:
    """Flows that have these figures in common with another repeat of their test and hosts."""
    return _alike(records, ("pair", "place", *figures))


def _rates(records: pl.DataFrame) -> pl.DataFrame:
    """Of flows with enough sizes: all their rates, as one text. Each has a test and hosts."""
    rates = pl.concat_str("place", "bandwidth.bytes", "bandwidth.gbit_s", separator=" ")
    least = pl.when(pl.col("tool.name") == "perch").then(LEAST_RATES).otherwise(LEAST_COARSE_RATES)
    return (
        records.filter(_there("bandwidth.bytes", "bandwidth.gbit_s") & (pl.col("kind") != "sum"))
        .group_by("flow", "pair", "tool.name", maintain_order=True)
        .agg(rates.str.join("\n").alias("rates"), pl.col("bandwidth.gbit_s").n_unique().alias("n"))
        .filter(pl.col("n") >= least)
    )


def _spread(records: pl.DataFrame) -> pl.DataFrame:
    """Rows whose tools print few digits, of a tail that is wide for them."""
    median, most = pl.col("latency_us.p50"), pl.col("latency_us.max")
    outcomes = (most - median) / STEP_US
    for one, higher in pairwise((pl.col("latency_us.p99"), pl.col("latency_us.p99_9"), most)):
        apart = pl.when(one < higher).then((one - median) / STEP_US).otherwise(1.0)
        outcomes *= pl.max_horizontal(apart, pl.lit(1.0))
    return records.filter(
        ~pl.col("tool.name").is_in(["perch", "iperf3"])
        & _there(*_ROW)
        & (outcomes >= LEAST_OUTCOMES)
    )


@check(
    family="copies",
    order=95,
    columns=(
        "flow",
        "place",
        "kind",
        "tool.name",
        "pair",
        "status",
        "times_mark",
        *dict.fromkeys((*_ROW, *_BANDWIDTH, *_INTERVALS)),
    ),
    criterion="evidence",
    source=design("each repeat is a measurement of its own"),
)
def copies(run: RunView) -> Iterator[Check]:
    """Outputs that are alike, or whose figures are alike to the last digit, are one measurement."""
    ok = run.records.filter(pl.col("status") == "ok")
    seen = run.seen.filter(pl.col("output").is_not_null()) if run.seen.height else run.seen
    finding = Check(
        id="copies",
        title="Each record is a measurement of its own",
        fault="Records are copies of one measurement",
        status="not_judged",
        measured="no output shows whether it is a copy",
    )
    latency, bandwidth, intervals = _fine(ok)
    tables, rates, wide = _tables(ok), _rates(ok), _spread(ok)
    marked = ok.filter(_there("times_mark"))
    sources = (latency, bandwidth, intervals, tables, rates, wide, marked)
    compared = pl.concat([one["flow"] for one in sources])
    if seen.height:
        compared = pl.concat([compared, seen["flow"]])
    if compared.len():
        alike = [
            _alike(latency, _LATENCY),
            _alike(bandwidth, _BANDWIDTH),
            _alike(intervals, _INTERVALS),
            tables.filter(pl.col("table").is_duplicated())["flow"],
            _alike(rates, ("pair", "rates")),
            _again(wide, _ROW),
            _again(marked, ("times_mark",)),
        ]
        if seen.height:
            alike.append(seen.filter(pl.col("output").is_duplicated())["flow"])
        again = pl.concat(alike).unique(maintain_order=True)
        finding.status = "inconclusive" if again.len() else "pass"
        finding.measured, finding.limit = again.len(), Bound(None, 0)
        finding.unit = f"flows of {compared.n_unique()} with the output or figures of another"
        if again.len():
            finding.evidence = first(again)
            finding.remedy = "one output was counted as several: measure these flows again"
    yield finding
