"""A verdict and its figures in Prometheus' text format 0.0.4, for the node exporter's textfiles.

Base units, as Prometheus' naming rules ask: seconds and bytes a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from perch.exports import soak_prom
from perch.exports.samples import family, from_gbit_s, from_us, gauge, sample
from perch.model.figures import median
from perch.model.moments import moment
from perch.model.verdict import Verdict
from perch.views.details import Details
from perch.views.flow_facts import Times
from perch.views.inputs import Run
from perch.views.measured import SIZE, is_transfer, tidy
from perch.views.words import Figure

#: Above so many groups of figures (test, pair of hosts, size) only their extremes a test and size
#: are written: with some seven series a group this keeps a run below 10,000 series, where a scrape
#: stays small.
GROUPS_MAX = 1000
#: Checks by name.
CHECKS_MAX = 100

STATUSES = ("pass", "advisory", "not_judged", "inconclusive", "fail")
VERDICTS = ("PASS", "FAIL", "INCONCLUSIVE")
SCOPES = ("hardware", "software", "simulated", "imported")
QUANTILES = {
    "p50": "0.5", "p90": "0.9", "p95": "0.95", "p99": "0.99", "p99_9": "0.999", "p99_99": "0.9999",
}  # fmt: skip

_FIGURES = {
    **{name: f"latency_us.{name}" for name in ("count", "mean", "max", *QUANTILES)},
    "gbit_s": "bandwidth.gbit_s",
}
_LABELS = (
    "test", SIZE, "params.batch", "pair", "client.host", "server.host", "rail", "definition",
)  # fmt: skip


class Group(msgspec.Struct):
    """A pair of hosts at one size: its labels, and each figure of all its repeats."""

    labels: dict[str, Any]
    figures: dict[str, list[Figure]]

    def whole(self, name: str) -> list[float]:
        """Nothing where one repeat lacks it: the others alone would flatter."""
        values = self.figures[name]
        known = [value for value in values if value is not None]
        return known if len(known) == len(values) else []


def _one_hot(name: str, text: str, label: str, known: Sequence[str], word: str) -> str:
    return gauge(name, text, (sample(name, {label: one}, int(one == word)) for one in known))


def _checks(verdict: Verdict) -> str:
    statuses: list[str] = [check.status for check in verdict.checks]
    bad = [check for check in verdict.checks if check.status in ("fail", "inconclusive")]
    name = "perch_check_not_passed"
    return gauge(
        "perch_checks",
        "Checks of the run by their status.",
        (sample("perch_checks", {"status": one}, statuses.count(one)) for one in STATUSES),
    ) + gauge(
        name,
        f"A check that failed or could not be judged, the first {CHECKS_MAX} of them.",
        (sample(name, {"id": one.id, "status": one.status}, 1) for one in bad[:CHECKS_MAX]),
    )


# ---- figures -------------------------------------------------------------------------------------


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """Transfers have a batch, and a pair of devices or their sum, which is kept apart."""
    of_pair = pl.when(pl.col("kind") == "transfer").then(pl.col("transfer.pair").cast(pl.String))
    return rows.with_columns(
        pair=pl.when(pl.col("kind") == "sum").then(pl.lit("sum")).otherwise(of_pair),
        **{"params.batch": pl.when(is_transfer()).then(pl.col("params.batch"))},
    )


def _labels(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "test": row["test"],
        "size_bytes": row[SIZE],
        "batch": row["params.batch"],
        "client": row.get("client.host"),
        "server": row.get("server.host"),
        "rail": row.get("rail") or None,
        "definition": row.get("definition"),
        "pair": row["pair"],
    }


def groups(rows: pl.DataFrame) -> list[Group] | None:
    """None where there are more than are written. rows: results, labelled."""
    if rows.select(pl.struct(_LABELS).n_unique()).item() > GROUPS_MAX:
        return None
    found = rows.group_by(_LABELS, maintain_order=True).agg(
        pl.col(column).alias(f"={name}") for name, column in _FIGURES.items()
    )
    return [
        Group(_labels(row), {name: list(map(tidy, row[f"={name}"])) for name in _FIGURES})
        for row in found.iter_rows(named=True)
    ]


def _quantiles(found: Sequence[Group]) -> Iterator[str]:
    name = "perch_latency_seconds"
    for group in found:
        mean = group.figures["mean"]
        if mean[0] is None:
            continue
        for key, quantile in QUANTILES.items():
            middle = median(group.whole(key))
            if middle is not None:
                yield sample(name, group.labels | {"quantile": quantile}, from_us(middle))
        counts = group.figures["count"]
        pairs = zip(mean, counts, strict=True)
        total = sum((one or 0) * (count or 0) for one, count in pairs)
        yield sample(f"{name}_sum", group.labels, from_us(total))
        if None not in counts:
            yield sample(f"{name}_count", group.labels, sum(group.whole("count")))


def _of_pairs(found: Sequence[Group]) -> str:
    longest, rate = "perch_latency_max_seconds", "perch_bandwidth_bytes_per_second"
    return (
        family(
            "perch_latency_seconds",
            "summary",
            "Latency, as its definition says; quantiles are medians over the repeats, count and "
            "sum hold all samples.",
            _quantiles(found),
        )
        + gauge(
            longest,
            "The longest latency of all repeats.",
            (
                sample(longest, group.labels, from_us(max(values)))
                for group in found
                if (values := group.whole("max"))
            ),
        )
        + gauge(
            rate,
            "Payload, median over the repeats.",
            (
                sample(rate, group.labels, from_gbit_s(middle))
                for group in found
                if (middle := median(group.whole("gbit_s"))) is not None
            ),
        )
    )


def _extremes(
    rows: pl.DataFrame, column: str, name: str, text: str, convert: Callable[[float], float]
) -> str:
    """Of each size over pairs and repeats; none where a record lacks the figure."""
    value = pl.col(column).cast(pl.Float64)
    by_size = rows.with_columns(pair=pl.when(pl.col("kind") == "sum").then(pl.lit("sum"))).group_by(
        "test", SIZE, "params.batch", "pair", maintain_order=True
    )
    found = by_size.agg(
        value.min().alias("min"),
        value.mean().round_sig_figs(12).alias("mean"),
        value.max().alias("max"),
        value.null_count().alias("missing"),
    ).filter(pl.col("missing") == 0)
    return gauge(
        name,
        text,
        (
            sample(name, _labels(row) | {"statistic": one}, convert(tidy(row[one])))
            for row in found.iter_rows(named=True)
            for one in ("min", "mean", "max")
        ),
    )


def _of_sizes(rows: pl.DataFrame) -> str:
    latency = "perch_test_latency"
    return (
        _extremes(
            rows,
            "latency_us.p50",
            f"{latency}_median_seconds",
            "Median latencies over all pairs and repeats of a test.",
            from_us,
        )
        + _extremes(
            rows,
            "latency_us.p99",
            f"{latency}_p99_seconds",
            "99th percentiles of latency over all pairs and repeats of a test.",
            from_us,
        )
        + _extremes(
            rows.filter(pl.col("kind") != "latency"),
            "bandwidth.gbit_s",
            "perch_test_bandwidth_bytes_per_second",
            "Payload over all pairs and repeats of a test.",
            from_gbit_s,
        )
    )


# ---- the run -------------------------------------------------------------------------------------


def _one(name: str, text: str, value: float | None) -> str:
    return gauge(name, text, [] if value is None else [sample(name, {}, value)])


def _times(times: Iterable[Times]) -> str:
    timed = [one for one in times if one.began is not None]
    began = moment(min((one.began for one in timed if one.began), default=None))
    last, seconds = max((one.last for one in timed), default=(None, 0), key=_last)
    ended = moment(last)
    return _one(
        "perch_run_start_timestamp_seconds", "When the first flow began, since 1970.", began
    ) + _one(
        "perch_run_end_timestamp_seconds",
        "When the flow that began last ended, since 1970.",
        None if ended is None else ended + seconds,
    )


def _last(one: tuple[str | None, float]) -> tuple[str, float]:
    return one[0] or "", one[1]


def _trouble(details: Details) -> str:
    name = "perch_trouble_counter"
    return gauge(
        name,
        "Increase of an error counter during the run's flows; 0 on a healthy path.",
        (
            sample(name, {"host": host, "device": device or None, "counter": counter}, one.total)
            for (host, device, counter), one in sorted(details.trouble.items())
        ),
    )


def document(run: Run, results: pl.DataFrame, details: Details, times: Mapping[str, Times]) -> str:
    """results: perch.views.measured.results. times: by test."""
    verdict, plan = run.verdict, run.plan
    rows = _labelled(results)
    of_pairs = groups(rows)
    known = plan.created is not None  # no plan, no names
    info = {
        "run": verdict.run,
        "suite": plan.suite_name if known else None,
        "limits": plan.limits if known else None,
        "verdict_sha256": run.mark,
    }
    left_out = "perch_pairs_left_out"
    return (
        gauge(
            "perch_run_info",
            "Names of run, suite and limits; the value is always 1.",
            [sample("perch_run_info", info, 1)],
        )
        + _one_hot(
            "perch_verdict",
            "1 at the run's verdict, 0 at the others.",
            "verdict",
            VERDICTS,
            verdict.verdict,
        )
        + _one_hot(
            "perch_scope", "1 at the run's scope, 0 at the others.", "scope", SCOPES, verdict.scope
        )
        + _times(times.values())
        + _one("perch_planned_records", "Records that the plan expects.", verdict.coverage.planned)
        + _one("perch_measured_records", "Records that were measured.", verdict.coverage.measured)
        + _checks(verdict)
        + _one(
            left_out,
            f"1 where the run has more than {GROUPS_MAX} groups of figures, so that those of pairs "
            "are left out.",
            int(of_pairs is None),
        )
        + _of_pairs(of_pairs or [])
        + _of_sizes(rows)
        + _trouble(details)
        + soak_prom.families(run.soak)
    )
