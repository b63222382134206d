"""The histograms of a flow's intervals, many decoded together, against the figures beside them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from perch.judge import histograms
from perch.model.record import Histogram, Latency

#: Decoded at a time: some megabytes (perch.model.histogram).
TOGETHER = 256


def _frame(times: Sequence[Latency]) -> pl.DataFrame:
    names = ("count", "min", "max", "mean", "stddev", *Latency.PERCENTILES)
    kinds = {"count": pl.Int64()}
    return pl.DataFrame(
        [
            pl.Series(
                f"latency_us.{name}",
                [getattr(one, name) for one in times],
                dtype=kinds.get(name, pl.Float64()),
                strict=False,
            )
            for name in names
        ]
    )


def misfits(found: Sequence[tuple[Latency, Histogram]]) -> dict[int, str]:
    """By place why a histogram is not that of the times beside it."""
    if not found:
        return {}
    texts = [text for _, text in found]
    strange = {
        at: "its histogram is in another unit"
        for at, text in enumerate(texts)
        if text.encoding != histograms.ENCODING or text.unit not in histograms.UNITS
    }
    return histograms.misfits(texts, _frame([times for times, _ in found])) | strange
