"""What was measured of each test, by size: what tables, charts and conclusions show.

The median stands for repeats and pairs; extremes are those of all of them, and so is the count of
samples. A figure that one record lacks, for want of samples, all lack: the others alone would
flatter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import polars as pl

from perch.checks.figures import TERM_COLUMNS, terms
from perch.tools import is_tcp
from perch.views import words
from perch.views.plan import PlannedTest
from perch.views.words import Figure

Figures = dict[str, Figure]

#: Figures of a latency and of a bandwidth, each with its column in the records.
LATENCY = {
    name: f"latency_us.{name}"
    for name in (
        "count", "min", "mean", "stddev", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max",
    )
}  # fmt: skip
BANDWIDTH = {
    "gbit_s": "bandwidth.gbit_s",
    "min_interval_gbit_s": "bandwidth.min_interval_gbit_s",
    "peak_gbit_s": "bandwidth.peak_gbit_s",
    "messages_per_s": "bandwidth.messages_per_s",
    "client_s_per_gb": "cpu.client_s_per_gb",
    "server_s_per_gb": "cpu.server_s_per_gb",
    "retransmissions": "retransmissions",
    "messages": "messages",
    "ceiling_gbit_s": "ceiling_gbit_s",
    "host_ceiling_gbit_s": "host_ceiling_gbit_s",
}
LEAST, MOST = ("min", "min_interval_gbit_s"), ("max", "peak_gbit_s")
TOTAL = ("count", "messages")

SIZE = "params.size_bytes"

#: A frame of results: their places, what they were asked, their figures.
PLACE_COLUMNS = ("row", "flow", "test", SIZE, "client.host", "server.host", "rail", "definition")

#: What a test is, from its first result, as all of a test are asked alike.
ABOUT_COLUMNS = (
    "kind", "definition", "completion_level", "params.completion", "backend", "provider", "op",
    "tool.name", "tool.version", "params.bidirectional", "link.layer", "link.mtu_bytes",
    "link.rate_gbit_s", "link.expected_gbit_s", "tcp.initial_rtt_us",
    "tcp.window_bytes", "tcp.initial_cwnd_bytes",
    "tcp.mss_bytes", "bandwidth.peak_definition", "connection",
    "scope", "params.queue_pairs", "params.outstanding", "params.iterations",
    "params.duration_s", "params.inline_bytes", "params.memory", "params.verify",
    "params.traffic_class", "params.sl", "params.gid_index", "params.gap_us", "params.threads",
    "params.devices", "params.consecutive", "params.session", "params.stride_bytes",
    "params.chunk_bytes", "params.cross_rail",
)  # fmt: skip


class Point(msgspec.Struct):
    """A test at one size. `worst`: of all pairs and repeats; a figure that one lacks is None.

    Of a transfer `figures` are of all pairs of devices together, None where no tool measured them;
    `pairs` has each.
    """

    size_bytes: int | None
    records: int
    figures: Figures | None
    worst: Figures = {}
    batch: int | None = None
    pairs: dict[int, Figures] = {}

    def get(self, name: str) -> Figure:
        return self.figures.get(name) if self.figures else None

    @property
    def of_ceiling(self) -> float | None:
        """Percent of what its link can carry at most."""
        rate, top = self.get("gbit_s"), self.get("ceiling_gbit_s")
        return None if rate is None or not top else 100 * rate / top


class Results(msgspec.Struct):
    """A planned test with results. `about`: ABOUT_COLUMNS of its first one. `sizes` in order."""

    test: PlannedTest
    kind: str
    about: dict[str, Any]
    terms: str
    sizes: list[Point]
    devices: dict[int, tuple[str | None, str | None] | None] = {}

    @property
    def title(self) -> str:
        return self.test.title

    @property
    def name(self) -> str:
        return self.test.name

    @property
    def is_rdma(self) -> bool:
        """RDMA's interface, with any driver; over which network the scope says."""
        tools = ("perftest", "cxi", "perch-personality")
        about = self.about
        return bool(about["tool.name"] in tools or about["backend"] in ("verbs", "ofi", "cxi"))

    @property
    def is_tcp(self) -> bool:
        return self.about["backend"] == "tcp" or is_tcp(self.about["tool.name"])

    @property
    def is_network(self) -> bool:
        return bool(self.about["link.layer"] != "shm" and self.about["backend"] != "null")

    @property
    def is_one_way(self) -> bool:
        return self.about["params.bidirectional"] is not True

    @property
    def is_verified(self) -> bool:
        return self.about["params.verify"] is True


def is_transfer() -> pl.Expr:
    return pl.col("kind").is_in(["transfer", "sum"])


#: What views need of a result: of a million records each column takes a few megabytes.
RESULT_COLUMNS = tuple(
    dict.fromkeys(
        (
            *PLACE_COLUMNS, *ABOUT_COLUMNS, *TERM_COLUMNS, *LATENCY.values(),
            *(name for name in BANDWIDTH.values() if name not in ("retransmissions", "messages")),
            "bandwidth.bytes", "tcp.retransmissions", "counters.client.TcpRetransSegs",
            "client.device", "server.device", "params.batch", "transfer.pair",
        )
    )
)  # fmt: skip


def results(records: pl.DataFrame) -> pl.DataFrame:
    """The records that were measured, with the figures that views make of others."""
    size = pl.col(SIZE)
    messages = (pl.col("bandwidth.bytes") / size).round()
    measured = records.lazy().filter(pl.col("status") == "ok").select(RESULT_COLUMNS).collect()
    return measured.with_columns(
        retransmissions=pl.coalesce("tcp.retransmissions", "counters.client.TcpRetransSegs"),
        messages=pl.when(size > 0).then(messages),
    )


def tidy(value: Any) -> Any:
    """A value out of a frame: whole figures as integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def whole_median(value: pl.Expr) -> pl.Expr:
    """Null where one of them is missing."""
    return pl.when(value.null_count() == 0).then(value.median())


def _merged(name: str, column: str) -> pl.Expr:
    value = pl.col(column)
    if name in LEAST:
        one = value.min()
    elif name in MOST:
        one = value.max()
    elif name in TOTAL:
        one = pl.when(value.count() > 0).then(value.sum())
    else:
        one = whole_median(value)
    return one.alias(name)


def _complete(value: pl.Expr, worst: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    return pl.when(value.null_count() == 0).then(worst(value))


_of_ceiling = 100 * pl.col("bandwidth.gbit_s") / pl.col("ceiling_gbit_s")

_WORST: dict[str, dict[str, pl.Expr]] = {
    "latency": {
        name: _complete(pl.col(f"latency_us.{name}"), pl.Expr.max) for name in ("p50", "p99", "max")
    },
    "bandwidth": {"of_ceiling": _complete(_of_ceiling, pl.Expr.min)},
}


def _points(rows: pl.DataFrame, kind: str) -> Iterator[tuple[str, Point]]:
    """Of all tests of a kind, in order of size: test and point."""
    columns = LATENCY if kind == "latency" else BANDWIDTH
    worst = _WORST["latency" if kind == "latency" else "bandwidth"]
    groups = rows.group_by("test", SIZE).agg(
        pl.len().alias("records"),
        *(_merged(name, column) for name, column in columns.items()),
        *(value.alias(f"worst.{name}") for name, value in worst.items()),
    )
    for row in groups.sort("test", SIZE, nulls_last=False).iter_rows(named=True):
        yield (
            row["test"],
            Point(
                size_bytes=row[SIZE],
                records=row["records"],
                figures={name: tidy(row[name]) for name in columns},
                worst={name: tidy(row[f"worst.{name}"]) for name in worst},
            ),
        )


def firsts(rows: pl.DataFrame, *columns: str) -> dict[str, dict[str, Any]]:
    """Of each test the first row: {test: {column: value}}."""
    first = rows.group_by("test", maintain_order=True).first()
    return {
        row["test"]: {name: tidy(row[name]) for name in columns}
        for row in first.iter_rows(named=True)
    }


def terms_of(rows: pl.DataFrame) -> dict[str, str]:
    """What each test's first figure was measured under (perch.checks.figures)."""
    first = rows.select("test", *dict.fromkeys(TERM_COLUMNS)).unique(
        "test", keep="first", maintain_order=True
    )
    return dict(zip(first["test"], terms(first), strict=True))


def measured(
    rows: pl.DataFrame,
    tests: list[PlannedTest],
    transfers: Mapping[str, tuple[list[Point], dict[int, Any]]],
) -> list[Results]:
    """The planned tests that have results, in the plan's order.

    transfers: of perch.views.transfers.by_test.
    """
    plain = rows.filter(~is_transfer())
    about = firsts(rows, *ABOUT_COLUMNS)
    of_terms = terms_of(rows)
    points: dict[str, list[Point]] = {}
    kinds = {name: of["kind"] for name, of in about.items()}
    for kind in ("latency", "bandwidth"):
        names = [name for name, one in kinds.items() if (one == "latency") == (kind == "latency")]
        for name, point in _points(plain.filter(pl.col("test").is_in(names)), kind):
            points.setdefault(name, []).append(point)
    found = []
    for test in tests:
        if test.name not in about:
            continue
        one = Results(
            test, kinds[test.name], about[test.name], of_terms[test.name],
            points.get(test.name, []),
        )  # fmt: skip
        if test.name in transfers:
            one.kind = "transfer"
            one.sizes, one.devices = transfers[test.name]
        found.append(one)
    return found


# ---- the best of RDMA's interface ----------------------------------------------------------------


def rdma_points(tests: list[Results], kind: str) -> Iterator[tuple[Results, Point]]:
    """Its figures without verification: what an application may expect."""
    for test in tests:
        if test.test.kind == kind and test.is_rdma and test.is_network and not test.is_verified:
            for point in test.sizes:
                yield test, point


def _rates(tests: list[Results]) -> Iterator[tuple[Results, Point]]:
    """RDMA's bandwidths one way, the last first: of equals the last one counts, as everywhere."""
    for test, point in reversed(list(rdma_points(tests, "bandwidth"))):
        if test.is_one_way and point.get("gbit_s") is not None:
            yield test, point


def fastest(tests: list[Results]) -> tuple[Results, Point] | None:
    """One way, whether or not its ceiling is known."""
    return max(_rates(tests), key=lambda one: one[1].get("gbit_s") or 0, default=None)


def best_bandwidth(tests: list[Results]) -> tuple[Results, Point] | None:
    """One way, the nearest to its ceiling; of those without one the fastest."""
    return max(
        _rates(tests),
        key=lambda one: (one[1].of_ceiling or 0, one[1].get("gbit_s") or 0),
        default=None,
    )


def named(test: Results, point: Point) -> str:
    """What a single figure must name, as others stand beside it; words of the title not again."""
    op, completion = test.about["op"], test.about["params.completion"]
    said = [op, words.waiting_words(completion) if completion else None]
    title = words.cell(test.title)
    parts = [title, *(one for one in said if one and one not in title)]
    parts.append(words.size(point.size_bytes))
    if point.records > 1:
        parts.append(f"median of {words.plural(point.records, 'record')}")
    return ", ".join(parts)


def typical(point: Point) -> Figure:
    """The median; the mean where too few samples were taken for one."""
    p50 = point.get("p50")
    return point.get("mean") if p50 is None else p50


def best_latency(tests: list[Results]) -> tuple[Results, Point] | None:
    """Half of a round trip at the smallest size."""
    found = [
        (test, point)
        for test, point in rdma_points(tests, "latency")
        if test.about["definition"] == "half_round_trip" and typical(point) is not None
    ]
    if not found:
        return None
    least = min(point.size_bytes or 0 for _, point in found)
    at_least = [one for one in found if (one[1].size_bytes or 0) == least]
    return min(at_least, key=lambda one: _mean(one[1]))


def _mean(point: Point) -> float:
    mean = point.get("mean")
    return float((point.get("p50") if mean is None else mean) or 0)
