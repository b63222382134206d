"""Is each repeat a measurement of its own?"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, design, first
from perch.model.verdict import Bound, Check

#: What two measurements never have in common to the last digit: the engine times in ns, and reports
#: nine digits of each (perch/model/figures.py).
_FINE = (
    "elapsed_s", "bandwidth.gbit_s", "bandwidth.bytes", "latency_us.count", "latency_us.mean",
    "latency_us.stddev", "latency_us.min", "latency_us.max", "cpu.client_s", "cpu.server_s",
)  # fmt: skip

#: Samples of a latency whose figures do not repeat by chance. Site policy.
LEAST_SAMPLES = 100


def _timed() -> pl.Expr:
    """Records with figures that no two measurements share by chance."""
    of_latency = pl.col("latency_us.stddev").is_not_null() & (
        pl.col("latency_us.count") >= LEAST_SAMPLES
    )
    of_bandwidth = pl.col("bandwidth.bytes").is_not_null() & pl.col("cpu.client_s").is_not_null()
    return (
        (pl.col("tool.name") == "perch") & (pl.col("status") == "ok") & (of_latency | of_bandwidth)
    ).fill_null(value=False)


@check(
    family="copies",
    order=95,
    columns=("flow", "test", "place", "tool.name", "status", *_FINE),
    criterion="evidence",
    source=design("each repeat is a measurement of its own"),
)
def copies(run: RunView) -> Iterator[Check]:
    """Figures of one test and size that are alike to the last digit are one measurement."""
    timed = run.records.filter(_timed())
    finding = Check(
        id="copies",
        title="Each record is a measurement of its own",
        status="not_judged",
        measured="no record has figures that are fine enough to tell copies",
    )
    if timed.height:
        again = timed.filter(pl.struct("test", "place", *_FINE).is_duplicated())
        finding.status = "inconclusive" if again.height else "pass"
        finding.measured, finding.limit = again.height, Bound(None, 0)
        finding.unit = f"records of {timed.height} with the figures of another"
        if again.height:
            finding.evidence = first(again["flow"].unique(maintain_order=True))
            finding.remedy = "one output was counted as several: measure these flows again"
    yield finding
