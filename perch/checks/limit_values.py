"""Which limit speaks of which record, and of what figure: expressions over columns of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import polars as pl

from perch.checks.figures import rounded_figures, supported
from perch.judge.columns import COLUMNS as ALL_COLUMNS
from perch.model.limits import FACETS, METRICS, Limit, fits
from perch.model.plan import Flow
from perch.model.record import Latency

_col = pl.col

#: The cxi tools print no median: their mean stands for it.
_MIDDLE = pl.coalesce(_col("latency_us.p50"), _col("latency_us.mean"))

#: Figures of METRICS that are made of others of a record: how, and what such a record must have.
#: A pause that was asked for is no stall, and a flow without an RDMA device has no packets of it.
_PER_MILLION = 1e6
_DERIVED: dict[str, tuple[pl.Expr, pl.Expr | None]] = {
    "mean_per_median": (
        _col("latency_us.mean") / _col("latency_us.p50"),
        _col("latency_us.p50").is_not_null(),
    ),
    **{
        f"{name}_per_median": (
            _col(f"latency_us.{name}") / _MIDDLE,
            _col(f"latency_us.{name}").is_not_null(),
        )
        for name in ("stddev", "max")
    },
    "p99_minus_p50_us": (_col("latency_us.p99") - _col("latency_us.p50"), None),
    "retransmissions_per_gb": (
        _col("tcp.retransmissions") / (_col("bandwidth.bytes") / 1e9),
        None,
    ),
    "stall_s": (_col("stall.longest_s"), _col("has.stall")),
    "loss_ppm": (
        _col("loss.lost_messages") / (_col("loss.sent_messages") / _PER_MILLION),
        _col("has.loss"),
    ),
    **{
        f"packets_{name}_ppm": (
            _col(f"packets.{column}") / (_col("packets.sent") / _PER_MILLION),
            _col("has.packets"),
        )
        for name, column in (("lost", "lost"), ("retried", "retries"), ("corrupted", "corrupted"))
    },
}


def figure(metric: str) -> pl.Expr:
    """A record's figure; null where it has none, or too few samples support a percentile."""
    room, name = metric.split(".", 1)
    if room == "derived":
        made = rounded_figures(_DERIVED[name][0])
        return pl.when(made.is_finite()).then(made)  # of nothing sent there is no share
    value = _col(metric).cast(pl.Float64)
    quantile = Latency.PERCENTILES.get(name) if room == "latency_us" else None
    if quantile is None:
        return value
    return pl.when(supported(quantile).fill_null(value=True)).then(value)


# ---- scope ---------------------------------------------------------------------------------------


def _facet_fits(key: str, wanted: Any) -> pl.Expr:
    column = _col(FACETS[key])
    if key == "tool":  # under another tool's name it is Perch that measured
        column = column.replace("perch-personality", "perch")
    if isinstance(wanted, Mapping):
        ends = {"min": column.ge, "max": column.le}
        return pl.all_horizontal(column.is_not_null(), *(ends[k](v) for k, v in wanted.items()))
    fitting = pl.any_horizontal(
        column.eq_missing(one) for one in (wanted if isinstance(wanted, list) else [wanted])
    )
    if key == "scope" and fits(wanted, "hardware"):
        # a figure from elsewhere that misses a bound of hardware must not slip by; that it meets
        # it is no PASS (the check `imported`)
        return fitting | column.eq_missing("imported")
    return fitting


def _open_keys(limit: Limit, flow: Flow) -> frozenset[str] | None:
    """The keys of a limit's scope that the plan does not settle; None: it never applies."""
    # a flow of transfers has records of two kinds
    kind = None if flow.kind == "transfer" else flow.kind
    known = {"tool": flow.tool, "op": flow.op, "kind": kind, "test": flow.test}
    settled = {key for key in limit.scope if known.get(key) is not None}
    if any(not fits(limit.scope[key], known[key]) for key in settled):
        return None
    return frozenset(limit.scope) - settled


def _cap_gbit_s() -> pl.Expr:
    """What --rate allows at most; null where nothing caps it."""
    asked, unit = _col("params.rate.asked"), _col("params.rate.unit")
    bits = asked * _col("params.size_bytes") * 8 / 1e9
    return pl.when(unit == "Gb/s").then(asked).when(unit == "messages/s").then(bits)


def _can_have(limit: Limit) -> Iterator[pl.Expr]:
    """A limit says nothing of a record that cannot have its figure."""
    metric, least = limit.metric, limit.bound.min
    needs = _DERIVED[metric.split(".", 1)[1]][1] if metric.startswith("derived.") else None
    if needs is not None:
        yield needs
    if metric.startswith("bandwidth."):
        # the time of a verified transfer has the checking in it, that of its batches has not
        is_verified = _col("has.transfer") & _col("params.verify")
        yield ~is_verified.fill_null(value=False)
    if metric == "bandwidth.gbit_s" and least is not None:
        # a flow that was asked for less than a limit wants cannot have it
        yield (_cap_gbit_s() >= least).fill_null(value=True)


def speaks_of(limit: Limit, tests: Mapping[str, Flow]) -> pl.Expr:
    """Which records this limit bounds. `tests`: by name the first flow of each."""
    by_keys: dict[frozenset[str], list[str]] = {}
    for test, flow in tests.items():
        keys = _open_keys(limit, flow)
        if keys is not None:
            by_keys.setdefault(keys, []).append(test)
    fitting = [
        pl.all_horizontal(
            _col("test").is_in(names), *(_facet_fits(key, limit.scope[key]) for key in sorted(keys))
        )
        for keys, names in by_keys.items()
    ]
    if not fitting:
        return pl.lit(value=False)
    return pl.all_horizontal(pl.any_horizontal(*fitting), *_can_have(limit))


def bounds_record(limit: Limit) -> pl.Expr:
    """Which records this limit bounds, where no plan with flows is at hand."""
    facets = [_facet_fits(key, wanted) for key, wanted in sorted(limit.scope.items())]
    return pl.all_horizontal(pl.lit(value=True), *facets, *_can_have(limit))


def first_flows(flows: Iterable[Flow]) -> dict[str, Flow]:
    """By test its first flow."""
    tests: dict[str, Flow] = {}
    for flow in flows:
        tests.setdefault(flow.test, flow)
    return tests


#: Columns that limits ask for.
COLUMNS = tuple(
    dict.fromkeys(
        (
            *FACETS.values(), "latency_us.count", *(one for one in METRICS if one in ALL_COLUMNS),
            "bandwidth.bytes", "stall.longest_s", "loss.lost_messages", "loss.sent_messages",
            *(f"packets.{name}" for name in ("sent", "lost", "retries", "corrupted")),
            *(f"has.{name}" for name in ("stall", "loss", "packets", "transfer")),
            "params.verify", "params.rate.asked", "params.rate.unit",
        )
    )
)  # fmt: skip
