"""RDMA against TCP: only figures with equal definition, waiting mode, depth and size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import msgspec
import polars as pl

from perch.checks import RunView, check, design
from perch.checks.figures import TIMES_COMPLETION
from perch.model.figures import encode, ratio, rounded
from perch.model.record import Scope
from perch.model.sections import Cell, ComparisonRow, ComparisonSection, OtherRow, RefusedRow
from perch.model.verdict import Check

_RDMA_TOOLS = ("perftest", "cxi", "perch-personality")

#: What makes two transfers the same question, beside `_TERMS`.
_TRANSFER_TERMS = tuple(
    f"params.{name}"
    for name in ("batch", "devices", "threads", "consecutive", "session", "stride_bytes", "chunks")
)


@dataclass(frozen=True)
class Metric:
    name: str
    title: str
    unit: str
    better: str
    value: pl.Expr


def _per_gigabyte(column: str) -> pl.Expr:
    """Seconds per 10^9 bytes; null where no byte moved."""
    gigabytes = pl.col("bandwidth.bytes") / 1e9
    figure = pl.when(gigabytes > 0).then(pl.col(column) / gigabytes)
    return figure.map_elements(lambda value: float(rounded(value)), return_dtype=pl.Float64)


#: One source a side: the host's counter for the engine, the tool's own count for other tools.
_RETRANSMISSIONS = (
    pl.when(pl.col("tool.name") == "perch")
    .then(pl.col("counters.client.TcpRetransSegs"))
    .otherwise(pl.col("tcp.retransmissions"))
)

_p50, _p99 = pl.col("latency_us.p50"), pl.col("latency_us.p99")

LATENCY = (
    Metric("p50_us", "Latency, median", "us", "lower", _p50),
    Metric("mean_us", "Latency, mean", "us", "lower", pl.col("latency_us.mean")),
    Metric("stddev_us", "Jitter, standard deviation", "us", "lower", pl.col("latency_us.stddev")),
    Metric("p99_minus_p50_us", "Jitter, p99 - p50", "us", "lower", _p99 - _p50),
    Metric("p99_us", "Tail, p99", "us", "lower", _p99),
    Metric("p99_9_us", "Tail, p99.9", "us", "lower", pl.col("latency_us.p99_9")),
)
BANDWIDTH = (
    Metric("gbit_s", "Bandwidth", "Gb/s", "higher", pl.col("bandwidth.gbit_s")),
    Metric("client_s_per_gb", "CPU of the client", "s/GB", "lower", pl.col("cpu.client_s_per_gb")),
    Metric("server_s_per_gb", "CPU of the server", "s/GB", "lower", pl.col("cpu.server_s_per_gb")),
    Metric("retransmissions", "Retransmissions", "segments", "lower", _RETRANSMISSIONS),
    Metric(
        "client_system_s_per_gb",
        "Whole host's CPU at the client",
        "s/GB",
        "lower",
        _per_gigabyte("cpu.client_system_s"),
    ),
    Metric(
        "server_system_s_per_gb",
        "Whole host's CPU at the server",
        "s/GB",
        "lower",
        _per_gigabyte("cpu.server_system_s"),
    ),
)
TRANSFER = (
    Metric("gbit_s", "Bandwidth of all pairs", "Gb/s", "higher", pl.col("bandwidth.gbit_s")),
    Metric("messages_per_s", "Transfers", "/s", "higher", pl.col("bandwidth.messages_per_s")),
    Metric("mean_us", "Time of a batch, mean", "us", "lower", pl.col("latency_us.mean")),
    Metric("p99_us", "Time of a batch, p99", "us", "lower", _p99),
    Metric("client_s_per_gb", "CPU of the client", "s/GB", "lower", pl.col("cpu.client_s_per_gb")),
    Metric("server_s_per_gb", "CPU of the server", "s/GB", "lower", pl.col("cpu.server_s_per_gb")),
)

#: By kind of the record; a transfer is compared by its sum.
METRICS = {"latency": LATENCY, "bandwidth": BANDWIDTH, "sum": TRANSFER}

_TERMS = (
    "kind", "definition", "completion_level", "params.completion", "params.queue_pairs",
    "params.outstanding", "params.gap_us", "params.rate.asked", "params.rate.unit",
    "params.size_bytes",
)  # fmt: skip

COLUMNS = (
    *_TERMS, *_TRANSFER_TERMS,
    "status", "op", "scope", "rails_at_once", "memory",
    "tool.name", "backend", "provider", "params.bidirectional",
    "params.verify", "latency_us.p50", "latency_us.mean", "latency_us.stddev", "latency_us.p99",
    "latency_us.p99_9", "bandwidth.gbit_s", "bandwidth.messages_per_s", "bandwidth.bytes",
    "cpu.client_s_per_gb", "cpu.server_s_per_gb", "cpu.client_system_s", "cpu.server_system_s",
    "tcp.retransmissions", "counters.client.TcpRetransSegs",
)  # fmt: skip


class Group(msgspec.Struct):
    """Records that answer one question alike. `medians`: null where one of them has no figure."""

    column: str
    name: str
    scope: Scope
    terms: list[Any]
    records: int
    medians: list[int | float | None]

    @property
    def kind(self) -> str:
        return str(self.terms[0])


def _side() -> pl.Expr:
    """rdma and tcp: the engine's backends. other: what is shown with them.

    Tools of RDMA are compared with the engine elsewhere (agreement); imported ones stand here.
    """
    tool, backend = pl.col("tool.name"), pl.col("backend")
    imported = (pl.col("scope") == "imported") & (pl.col("kind") == "bandwidth")
    return (
        pl.when(tool.is_in(_RDMA_TOOLS))
        .then(pl.when(imported).then(pl.lit("other")))
        .when(tool != "perch")
        .then(pl.lit("other"))
        .when(backend.is_in(["ofi", "verbs", "cxi"]))
        .then(pl.lit("rdma"))
        .when(backend == "tcp")
        .then(pl.lit("tcp"))
    )


def _legend() -> pl.Expr:
    """What a figure is called: the provider or backend, or the tool with its connections."""
    pairs = pl.col("params.queue_pairs")
    several = pairs > 1
    rdma = pl.concat_str(pl.col("tool.name"), pl.lit(" "), pl.col("op"), pl.lit(" (RDMA)"))
    return (
        pl.when(pl.col("tool.name") == "perch")
        .then(pl.coalesce("provider", "backend"))
        .when(pl.col("tool.name").is_in(["perftest", "cxi"]))
        .then(
            rdma + pl.when(several).then(pl.format(", {} queue pairs", pairs)).otherwise(pl.lit(""))
        )
        .otherwise(
            pl.col("tool.name")
            + pl.when(several).then(pl.format(", {} streams", pairs)).otherwise(pl.lit(""))
        )
    )


def _terms() -> dict[str, pl.Expr]:
    """What two figures must have in common, in the order of a verdict's rows."""
    terms = {name: pl.col(name) for name in _TERMS}
    timed = pl.col("definition").is_in(TIMES_COMPLETION)
    terms["completion_level"] = pl.when(timed).then(pl.col("completion_level"))
    return terms


def _plain(value: Any) -> Any:
    """Whole floats as integers, as JSON has them."""
    return rounded(value) if isinstance(value, float) else value


def _median(value: pl.Expr) -> pl.Expr:
    """Null unless every record reports it: a p99 that only the busiest repeat has would flatter."""
    return pl.when(value.null_count() == 0).then(value.median())


def groups(records: pl.DataFrame) -> list[Group]:
    """Results by question: one-way, unverified sends of one rail, and sums of transfers.

    In host memory: TCP reaches no other.
    """
    eligible = records.lazy().filter(  # lazy: only the columns that are asked for are copied
        (pl.col("status") == "ok")
        & ((pl.col("kind") == "sum") | pl.col("op").is_null() | (pl.col("op") == "send"))
        & ~pl.col("params.bidirectional").fill_null(value=False)
        & ~pl.col("params.verify").fill_null(value=False)
        & pl.col("rails_at_once").is_null()
        & (pl.col("memory") == "host")
    )
    found = []
    kinds = set(records["kind"].unique())
    for kind, metrics in METRICS.items():
        if kind not in kinds:
            continue
        terms = _terms()
        if kind == "sum":
            terms |= {name: pl.col(name) for name in ("op", *_TRANSFER_TERMS)}
        names = {"side": _side(), "legend": _legend(), "worth": pl.col("scope")}
        keys = [one.alias(f"key.{name}") for name, one in (names | terms).items()]
        medians = [_median(metric.value).alias(metric.name) for metric in metrics]
        rows = (
            eligible.filter((pl.col("kind") == kind) & _side().is_not_null())
            .group_by(keys, maintain_order=True)
            .agg(pl.len(), *medians)
            .collect()
        )
        found += [_group(row, len(terms)) for row in rows.iter_rows()]
    return sorted(found, key=lambda one: (one.column, one.name, one.scope, encode(one.terms)))


def _group(row: tuple[Any, ...], n: int) -> Group:
    column, name, scope, *rest = row
    terms = [_plain(value) for value in rest[:n]]
    asked = _TERMS.index("params.rate.asked")
    pace = terms[asked : asked + 2]
    terms[asked : asked + 2] = [None if pace == [None, None] else pace]
    records, *medians = rest[n:]
    return Group(column, name, scope, terms, records, [_plain(value) for value in medians])


def _cell(group: Group, i: int) -> Cell:
    return {
        "name": group.name, "scope": group.scope, "value": group.medians[i],
        "records": group.records,
    }  # fmt: skip


def _row(rdma: Group, tcp: Group, metric: Metric, i: int) -> ComparisonRow:
    terms = rdma.terms
    row: dict[str, Any] = {
        "kind": terms[0], "metric": metric.name, "title": metric.title, "unit": metric.unit,
        "better": metric.better, "definition": terms[1], "completion": terms[3],
        "size_bytes": terms[8],
    }  # fmt: skip
    if rdma.kind == "sum":
        row |= {"queue_pairs": terms[4], "op": terms[9]}
        row |= dict(
            zip((name.removeprefix("params.") for name in _TRANSFER_TERMS), terms[10:], strict=True)
        )
    value = ratio(rdma.medians[i], tcp.medians[i]) if metric.name != "retransmissions" else None
    row |= {"rdma": _cell(rdma, i), "tcp": _cell(tcp, i), "ratio": value}
    return cast(ComparisonRow, row)


def _measured(group: Group) -> str:
    return f"{group.name} measured {group.terms[1] or 'no definition'}"


def _refused(rdma: list[Group], tcp: list[Group], others: list[Group]) -> list[RefusedRow]:
    """Pairs whose definitions differ are named, not compared; so are other tools' RDMA and TCP."""
    pairs = [
        (one, other)
        for one in rdma
        if all(other.terms != one.terms for other in tcp)
        for other in tcp
        if [other.terms[i] for i in (0, 3, 8)] == [one.terms[i] for i in (0, 3, 8)]
        and other.terms[1] != one.terms[1]
    ]
    foreign = [
        (one, other)
        for one in others
        if "(RDMA)" in one.name
        for other in others
        if "(RDMA)" not in other.name
    ]
    return [
        {
            "kind": one.kind,
            "size_bytes": one.terms[8],
            "reason": f"{_measured(one)}, {_measured(other).replace(' measured', '', 1)}",
        }
        for one, other in pairs
    ] + [
        {
            "kind": "bandwidth",
            "size_bytes": one.terms[8],
            "reason": f"{_measured(one)}, {_measured(other).replace(' measured', '', 1)}",
        }
        for one, other in foreign
    ]


def _other(group: Group) -> OtherRow:
    return {
        "name": group.name, "definition": group.terms[1], "completion": group.terms[3],
        "size_bytes": group.terms[8], "gbit_s": group.medians[0],
        "client_s_per_gb": group.medians[1], "server_s_per_gb": group.medians[2],
        "retransmissions": group.medians[3], "records": group.records,
    }  # fmt: skip


def compare(records: pl.DataFrame) -> ComparisonSection:
    """The verdict's `comparison`: rows, what was refused, other tools, transfers."""
    found = groups(records)
    rdma, tcp, others = (
        [group for group in found if group.column == side] for side in ("rdma", "tcp", "other")
    )
    rows = [
        _row(one, other, metric, i)
        for one in rdma
        for other in tcp
        if other.terms == one.terms
        for i, metric in enumerate(METRICS[one.kind])
    ]
    transfers = [row for row in rows if row["kind"] == "sum"]
    section: ComparisonSection = {
        "statistic": "median over the records of all pairs and repeats",
        "rows": [row for row in rows if row["kind"] != "sum"],
        "refused": _refused(rdma, tcp, others),
        "others": [_other(group) for group in others],
    }
    if transfers:
        section["transfers"] = transfers
    return section


def compared(run: RunView) -> ComparisonSection:
    return compare(run.records)


@check(
    family="definitions",
    order=170,
    columns=COLUMNS,
    source=design("records with different definitions are never compared"),
)
def definitions(run: RunView) -> Iterator[Check]:
    section = run.once(compared)
    refused = sorted({row["reason"] for row in section["refused"]})
    yield Check(
        id="definitions",
        title="Only equal definitions are compared",
        status="not_judged" if refused else "pass",
        measured=f"not compared: {'; '.join(refused)}"
        if refused
        else f"{len(section['rows'])} comparisons",
    )
