"""The figures by which runs are compared: of each record a few, with a key that every run shares.

A key is test/client/server/size/metric; a transfer has its batch beside the size, 65536x8. The
metric is named as in limits: latency_us.p50, bandwidth.gbit_s.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import Any, NamedTuple

import polars as pl

from perch.judge.columns import on_rail
from perch.model.figures import DIGITS, median, rounded
from perch.model.record import Latency, Number


class Metric(NamedTuple):
    """A figure that is compared: its column, unit and which direction is better."""

    name: str
    unit: str
    better: str


_LATENCY = tuple(
    Metric(f"latency_us.{name}", "us", "lower") for name in ("p50", "mean", "p99", "p99_9")
)
_BANDWIDTH = tuple(
    Metric(f"bandwidth.{name}", "Gb/s", "higher") for name in ("gbit_s", "min_interval_gbit_s")
)
#: What an accepted run keeps beside them for the report; it moves from run to run, so that no
#: check compares it.
_BESIDE = tuple(Metric(f"latency_us.{name}", "us", "lower") for name in ("stddev", "max"))

#: By the kind of record. A pair's figures are in its transfer's sum.
METRICS = {
    "latency": _LATENCY,
    "bandwidth": _BANDWIDTH,
    "sum": (*_BANDWIDTH[:1], *_LATENCY),
    "rate": (Metric("bandwidth.messages_per_s", "messages/s", "higher"),),
}
KEPT = {**METRICS, "latency": (*_LATENCY, *_BESIDE), "sum": (*METRICS["sum"], *_BESIDE)}

#: From this size on, and of transfers from this batch on, the link bounds a rate, and no processor
#: of one of the two hosts.
LARGE_BYTES, LARGE_BATCH_BYTES = 65536, 32 << 20

#: Where the time until a completion is what is measured, the level of that completion is part of
#: it; a ping-pong ends by receiving, an acknowledged stream by the receiver's word.
TIMES_COMPLETION = ("completion", "initiator_completion", "batch_completion")

#: What two figures must have in common to be compared: the word in a text of terms, the column.
#: The tool's version, the link's rate and its MTU are the fabric's (perch.checks.fabric).
_TERMS = {
    "kind": "kind", "definition": "definition", "completion_level": "completion_level",
    "scope": "scope", "tool": "tool.name", "backend": "backend", "provider": "provider", "op": "op",
    "connection": "connection", "completion": "params.completion",
    "bidirectional": "params.bidirectional", "verify": "params.verify",
    "queue_pairs": "params.queue_pairs", "outstanding": "params.outstanding",
    "gap_us": "params.gap_us", "warmup_s": "params.warmup_s",
}  # fmt: skip
_RATE = ("has.params.rate", "params.rate.asked", "params.rate.unit")
#: Where payload lies, said where it is not the host's ordinary pages.
_MEMORY = ("tx_memory", "rx_memory")
#: Of some kinds more: names of params.
_TERMS_OF = {
    "sum": ("batch", "devices", "threads", "consecutive", "session", "stride_bytes", "chunks"),
    "rate": ("batch", "threads", "cq_moderation", "inline_bytes"),
}
#: Of every kind, after those.
_LAST = ("footprint_bytes",)
_MORE = tuple(dict.fromkeys(name for names in (*_TERMS_OF.values(), _LAST) for name in names))

#: Columns that keys and terms are made of.
KEY_COLUMNS = (
    "kind", "test", "client.host", "server.host", "rail", "params.size_bytes", "params.batch",
)  # fmt: skip
TERM_COLUMNS = (
    *_TERMS.values(), *_RATE, "params.relaxed_ordering", "params.memory", "params.bounce",
    *(f"params.{name}" for name in (*_MEMORY, *_MORE)),
)  # fmt: skip
COLUMNS = tuple(
    dict.fromkeys(
        (
            "row", "status", "latency_us.count", *KEY_COLUMNS, *TERM_COLUMNS,
            *(metric.name for metrics in KEPT.values() for metric in metrics),
        )
    )
)  # fmt: skip


def speed() -> pl.Expr:
    """A record's figure, of which more is better: of a latency its inverse."""
    latency = 1 / pl.coalesce("latency_us.p50", "latency_us.mean")
    return pl.when(pl.col("kind") == "latency").then(latency).otherwise("bandwidth.gbit_s")


def is_bound_by_link() -> pl.Expr:
    """Whether the link bounds a record's rate, and no processor of one of the two hosts."""
    size, batch = pl.col("params.size_bytes"), pl.col("params.batch")
    of_batch = pl.when(pl.col("kind") == "transfer").then(size * batch >= LARGE_BATCH_BYTES)
    return (pl.col("kind") != "latency") & of_batch.otherwise(size >= LARGE_BYTES)


def key(metric: str) -> pl.Expr:
    """The key of a record's figure. A rail that is not the first stands behind the size."""
    size, batch = (
        pl.col(f"params.{name}").cast(pl.String).fill_null("null")
        for name in ("size_bytes", "batch")
    )
    is_sum = pl.col("kind").eq_missing("sum")
    place = pl.when(is_sum).then(pl.concat_str(size, pl.lit("x"), batch)).otherwise(size)
    ends = pl.concat_str("test", "client.host", "server.host", place + on_rail(), separator="/")
    return pl.concat_str(ends, pl.lit(metric), separator="/")


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(rounded(value)) if isinstance(value, float) else str(value)


def _terms(row: dict[str, Any]) -> str:
    words = {name: row[column] for name, column in _TERMS.items()}
    if words["definition"] not in TIMES_COMPLETION:
        words["completion_level"] = None
    for name in ("bidirectional", "verify"):
        words[name] = words[name] is True
    if row["has.params.rate"]:
        asked, unit = row["params.rate.asked"], row["params.rate.unit"]
        words["rate"] = f"{'null' if asked is None else _word(asked)}{unit or 'null'}"
    if words["kind"] == "bandwidth" and (words["queue_pairs"] or 1) > 1:
        # of each; where a baseline says `outstanding`, they shared it
        words["outstanding_each"] = words.pop("outstanding")
    if row["params.relaxed_ordering"]:  # off where a baseline does not say it
        words["relaxed_ordering"] = True
    for name in _MEMORY:
        memory = row[f"params.{name}"] or row["params.memory"]
        words[name] = None if memory == "host" else memory
    if row["params.bounce"]:
        words["bounce"] = True
    more = (*_TERMS_OF.get(words["kind"], ()), *_LAST)
    words |= {name: row[f"params.{name}"] for name in more}
    return " ".join(f"{name}={_word(value)}" for name, value in words.items() if value is not None)


def terms(records: pl.DataFrame) -> pl.Series:
    """Of each record what its figures were measured under, as `name=value` words."""
    asked = records.select(*TERM_COLUMNS)
    kinds = asked.unique(maintain_order=True)
    texts = pl.Series("terms", [_terms(row) for row in kinds.iter_rows(named=True)], pl.String)
    told = asked.join(
        kinds.with_columns(texts), on=TERM_COLUMNS, how="left", nulls_equal=True,
        maintain_order="left",
    )  # fmt: skip
    return told["terms"]


def unlike(a: str, b: str) -> str | None:
    """The first thing in which two texts of terms differ, in words."""
    if a == b:
        return None
    x, y = a.split(" "), b.split(" ")
    odd = [word for word in x if word not in y] + [word for word in y if word not in x]
    name = odd[0].split("=")[0]
    values = [
        next((word.partition("=")[2] for word in side if word.startswith(f"{name}=")), "none")
        for side in (x, y)
    ]
    return f"{name}: {' and '.join(values)}"


def _value(metric: str) -> pl.Expr:
    """An imported tool's percentile counts where ten samples are above it."""
    figure = pl.col(metric).cast(pl.Float64)
    quantile = Latency.PERCENTILES.get(metric.removeprefix("latency_us."))
    is_one = figure > 0
    if metric.startswith("latency_us.") and quantile is not None:
        is_one &= supported(quantile).fill_null(value=False)
    return pl.when(is_one).then(figure)


def supported(quantile: float) -> pl.Expr:
    """Whether ten of a record's samples are above this quantile; null: it has no count."""
    return pl.col("latency_us.count") * (1 - quantile) >= 9.999999


def figures(
    records: pl.DataFrame, metrics: dict[str, tuple[Metric, ...]] = METRICS
) -> pl.DataFrame:
    """Every figure of the records with status ok, in their order.

    Columns: row, test, key, metric, unit, better, value (null: the record has none), terms.
    """
    ok = records.filter(pl.col("status") == "ok")
    ok = ok.with_columns(terms(ok))
    found = [
        ok.filter(pl.col("kind") == kind).select(
            "row",
            pl.lit(place).alias("place"),
            "test",
            key(metric.name).alias("key"),
            pl.lit(metric.name).alias("metric"),
            pl.lit(metric.unit).alias("unit"),
            pl.lit(metric.better).alias("better"),
            _value(metric.name).alias("value"),
            "terms",
        )
        for kind, of_kind in metrics.items()
        for place, metric in enumerate(of_kind)
    ]
    return pl.concat(found).sort("row", "place").drop("place")


class Repeats(NamedTuple):
    """A figure over its repeats: median, coefficient of variation in percent, how many."""

    value: Number | None
    cv_percent: Number | None
    n: int


def of_repeats(values: Sequence[Number]) -> Repeats:
    """Their median, and the sample standard deviation as a part of the mean."""
    n = len(values)
    mean = fsum(values) / n
    middle = median(values)
    if n < 2 or mean == 0:
        return Repeats(middle, None, n)
    deviation = sqrt(fsum((value - mean) ** 2 for value in values) / (n - 1))
    return Repeats(middle, rounded(100 * deviation / mean), n)


def rounded_figures(figure: pl.Expr) -> pl.Expr:
    """Like perch.model.figures.rounded, of a column."""
    return figure.cast(pl.Float64).round_sig_figs(DIGITS)
