"""A table for each test in perftest's columns, what its figures are, and the summary of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perch.model.figures import is_finite
from perch.model.verdict import Check, Verdict
from perch.views import transfers, words
from perch.views.first_screen import STATUS_WORDS, gravity
from perch.views.flow_facts import Packets
from perch.views.measured import Point, Results
from perch.views.plan import PlannedTest
from perch.views.table import Table, left, right
from perch.views.words import Figure

# ---- one table a test, one row a size ------------------------------------------------------------


def _two(value: Figure) -> str:
    """perftest prints two decimals; below a tenth they would say nothing."""
    if not is_finite(value):
        return "-"
    return words.fixed(value, 2) if abs(value) >= 0.1 else words.figure(value)


def _million(value: Figure) -> str:
    if not is_finite(value):
        return "-"
    return words.fixed(value / 1e6, 6) if value >= 10 else words.figure(value / 1e6)


def _count(value: Figure) -> str:
    return words.fixed(value, 0) if is_finite(value) else "-"


#: perftest 4.5 and later, ib_send_lat and ib_send_bw --report_gbits, in its order; behind them what
#: the engine knows besides.
_LATENCY_COLUMNS = right(
    "#bytes", "#iterations", "t_min[usec]", "t_max[usec]", "t_typical[usec]", "t_avg[usec]",
    "t_stdev[usec]", "99%[usec]", "99.9%[usec]", "99.99%[usec]",
)  # fmt: skip
_BANDWIDTH_COLUMNS = right(
    "#bytes", "#iterations", "BW peak[Gb/sec]", "BW average[Gb/sec]", "MsgRate[Mpps]",
    "of the ceiling", "lowest interval[Gb/sec]", "CPU client[s/GB]", "CPU server[s/GB]",
    "retransmissions",
)  # fmt: skip


def _latency_row(point: Point) -> list[str]:
    names = ("min", "max", "p50", "mean", "stddev", "p99", "p99_9", "p99_99")
    times = [_two(point.get(name)) for name in names]
    return [_count(point.size_bytes), _count(point.get("count")), *times]


def _bandwidth_row(point: Point, *, over_tcp: bool) -> list[str]:
    share = point.of_ceiling
    return [
        _count(point.size_bytes),
        _count(point.get("messages")),
        _two(point.get("peak_gbit_s")),
        _two(point.get("gbit_s")),
        _million(point.get("messages_per_s")),
        "-" if share is None else words.percent(share),
        _two(point.get("min_interval_gbit_s")),
        words.figure(point.get("client_s_per_gb")),
        words.figure(point.get("server_s_per_gb")),
        words.whole(point.get("retransmissions")) if over_tcp else "-",
    ]


def _is_over_tcp(test: Results) -> bool:
    """The host's count of TCP's retransmissions says nothing of what an RDMA device sends."""
    tools, backends = ("perftest", "cxi"), ("verbs", "cxi")
    return test.about["tool.name"] not in tools and test.about["backend"] not in backends


def _table(test: Results) -> Table:
    if test.kind == "transfer":
        return transfers.table(test)
    if test.kind == "latency":
        return Table(_LATENCY_COLUMNS, [_latency_row(point) for point in test.sizes])
    over_tcp = _is_over_tcp(test)
    rows = [_bandwidth_row(point, over_tcp=over_tcp) for point in test.sizes]
    return Table(_BANDWIDTH_COLUMNS, rows)


# ---- what its figures are ------------------------------------------------------------------------

_PEAKS = {
    "best_run_of_messages": "the best run of messages",
    "best_interval_0.1s": "the best 0.1 s",
    "fastest_batch": "the fastest batch",
}


def _asked(about: dict[str, Any]) -> Iterator[str | None]:
    """What a test asked for, as far as its tool says it."""

    def of(name: str) -> Any:
        return about[f"params.{name}"]

    def above(name: str, least: float, said: str) -> str | None:
        return said.format(words.plain(of(name))) if (of(name) or 0) > least else None

    def known(name: str, said: str) -> str | None:
        return None if of(name) is None else said.format(of(name))

    connections = "connection" if about["connection"] == "stream" else "queue pair"
    yield words.optional(lambda number: words.plural(number, connections), of("queue_pairs"))
    each = " each" if (of("queue_pairs") or 1) > 1 else ""
    yield above("outstanding", 1, "{} outstanding" + each)
    if of("iterations") is None:
        yield words.optional(lambda seconds: f"{words.figure(seconds)} s a size", of("duration_s"))
    else:
        yield f"{words.whole(of('iterations'))} iterations a size"
    yield above("gap_us", 0, "a gap of {} µs")
    yield None if of("memory") == "host" else known("memory", "memory {}")
    yield known("traffic_class", "traffic class {}")
    yield above("sl", 0, "service level {}")
    yield known("gid_index", "GID index {}")
    yield "every byte checked" if of("verify") is True else None


def _link(about: dict[str, Any]) -> str | None:
    layer, rate, mtu = about["link.layer"], about["link.rate_gbit_s"], about["link.mtu_bytes"]
    if layer is None or (layer == "unknown" and rate is None):
        return None
    said = "over a link" if layer == "unknown" else f"over {layer}"
    said += "" if rate is None else f" at {words.plain(rate)} Gb/s"
    return said if mtu is None else f"{said}, MTU {words.fixed(mtu, 0)}"


def _packets(counted: Packets | None) -> str | None:
    if counted is None:
        return None
    said = (
        f"{words.whole(counted.sent)} packets counted by the devices, "
        f"{words.whole(counted.lost)} lost, {words.whole(counted.retries)} retransmitted"
    )
    return said if counted.whole else f"{said} as far as they count it"


def _peak(definition: str | None) -> str | None:
    if definition is None:
        return None
    return f"peak: {_PEAKS.get(definition) or definition.replace('_', ' ')}"


def _connected(about: dict[str, Any]) -> Iterator[str]:
    """What the socket says of its connection."""
    rtt, window = about["tcp.initial_rtt_us"], about["tcp.window_bytes"]
    congestion, segment = about["tcp.initial_cwnd_bytes"], about["tcp.mss_bytes"]
    if rtt is not None:
        yield f"initial round trip {words.figure(rtt)} µs"
    if window is not None:
        yield f"window {words.whole(window)} bytes"
    if congestion is not None:
        yield f"initial congestion window {words.whole(congestion)} bytes"
    if segment is not None:
        yield f"segments of at most {words.whole(segment)} bytes"


def _note(test: Results, counted: Packets | None) -> str:
    about = test.about
    tool, connection, provider = about["tool.name"], about["connection"], about["provider"]
    records = max((point.records for point in test.sizes), default=0)
    kind = "Latency" if test.kind == "latency" else "Bandwidth"
    waiting = words.waiting_words(about["params.completion"])
    parts = [
        f"{kind}: {words.definition_words(about['definition'])}",
        waiting if tool == "perch" else f"by {tool}",
        None if test.is_one_way else "both ways, summed",
        None if connection in (None, "stream") else f"connection {connection}",
        None if provider is None else f"provider {provider}",
        _link(about),
        *_asked(about),
        _peak(about["bandwidth.peak_definition"]),
        *_connected(about),
        _packets(counted),
        f"medians of {records} records a size, extremes and counts of all of them"
        if records > 1
        else None,
    ]
    return words.cell(words.joined(parts) + ".")


def tables(
    tests: list[Results], counted: dict[str, Packets], by_rail: dict[str, Table]
) -> list[Table]:
    """A table for each test; those of several rails have one by rail (perch.views.rails)."""
    found = []
    for test in tests:
        table = _table(test)
        table.title = words.cell(test.title)
        table.pairs = by_rail.get(test.name, table.pairs)
        is_transfer = test.kind == "transfer"
        table.note = transfers.note(test) if is_transfer else _note(test, counted.get(test.name))
        found.append(table)
    return found


# ---- the summary ---------------------------------------------------------------------------------


def _latency(point: Point) -> str:
    """A percentile without ten samples above it is missing; the mean stands for the median."""
    p50, p99 = point.get("p50"), point.get("p99")
    typical = (
        f"mean {words.figure(point.get('mean'))} µs"
        if p50 is None
        else f"median {words.figure(p50)} µs"
    )
    tail = (
        " (no p99: too few samples in a repeat)" if p99 is None else f", p99 {words.figure(p99)} µs"
    )
    return f"{typical}{tail} at {words.size(point.size_bytes)}"


def _size(kind: str, point: Point) -> str:
    size = words.size(point.size_bytes)
    if kind == "latency":
        return _latency(point)
    if kind == "transfer":
        rate = words.figure(point.get("gbyte_s"))
        return f"{rate} GB/s at {size}, batch {words.whole(point.batch)}"
    if kind == "rate":
        return f"{_million(point.get('messages_per_s'))} million messages/s at {size}"
    return f"{words.figure(point.get('gbit_s'))} Gb/s at {size}"


def _speaks_of(check: Check, test: str) -> bool:
    """Ids end in the test's name, or name one of its flows."""
    flows = (f"flow/{test}/", f"path/{test}/")
    return check.id.endswith(f"/{test}") or check.id.startswith(flows)


def _worst(checks: Sequence[Check], test: str) -> str:
    """Of the checks that judged it."""
    judged = [one for one in checks if one.status != "not_judged" and _speaks_of(one, test)]
    return min(judged, key=gravity).status if judged else "not_judged"


def _of(flow: dict[str, Any], kind: str, name: str) -> Figure:
    value = ((flow.get("figures") or {}).get(kind) or {}).get(name)
    return value if is_finite(value) else None


def _so_far(flows: list[dict[str, Any]]) -> str:
    """A soak that runs: the worst of its flows so far, where each has a figure."""
    means = [one for flow in flows if (one := _of(flow, "bandwidth", "mean")) is not None]
    tails = [one for flow in flows if (one := _of(flow, "latency", "p99_highest")) is not None]
    if flows and len(means) == len(flows):
        return f"so far {words.figure(min(means))} Gb/s in the mean"
    if flows and len(tails) == len(flows):
        return f"so far a p99 of {words.figure(max(tails))} µs at most"
    return "not measured"


def _named(test: PlannedTest) -> str:
    """Its title, and the name by which checks and records call it."""
    return f"{words.cell(test.title)} ({words.cell(test.name)})"


def summary(planned: list[PlannedTest], tests: list[Results], verdict: Verdict) -> Table:
    """A row for each planned test."""
    of = {test.name: test for test in tests}
    soak = verdict.soak if isinstance(verdict.soak, dict) else {}
    rows = []
    for test in planned:
        sizes = of[test.name].sizes if test.name in of else []
        smallest = (
            _size(test.kind, sizes[0])
            if sizes
            else _so_far([one for one in soak.get("flows") or [] if one.get("test") == test.name])
        )
        largest = _size(test.kind, sizes[-1]) if len(sizes) > 1 else "-"
        status = STATUS_WORDS[_worst(verdict.checks, test.name)]
        rows.append([_named(test), smallest, largest, status])
    if all(row[2] == "-" for row in rows):
        return Table(left("Test", "Result", "Largest message", "Checks of the test"), rows)
    return Table(left("Test", "Smallest message", "Largest message", "Checks of the test"), rows)


#: The meaning of every scope but hardware for the person who signs.
_NOT_TO_SIGN = " Do not accept network cards, cables or switches by it."


def scope_line(verdict: Verdict, tests: list[Results]) -> str:
    """The scope, and what the reader may conclude: only hardware may read like hardware."""
    layers = sorted({layer for test in tests if (layer := test.about["link.layer"]) is not None})
    inside = ""
    if layers and all(layer in ("loopback", "shm") for layer in layers):
        inside = f" Everything stayed inside one machine ({', '.join(layers)})."
    software = sum(test.about["scope"] == "software" for test in tests)
    if any(check.id == "plan" for check in verdict.checks):
        said = "**Nothing was judged**, because the run cannot be judged: see the finding."
    elif not verdict.coverage.measured:
        said = f"**Nothing was measured.** Scope: {verdict.scope}, as planned."
    elif verdict.scope == "hardware":
        said = "Scope: hardware. The verdict applies to the network cards and links of this run."
        if software:
            count = words.plural(software, "test")
            said += f" The kernel's TCP was measured for comparison ({count})."
    elif verdict.scope == "simulated":
        said = (
            "**Scope: simulated. The network cards were simulated, so this run is no proof of "
            f"hardware.**{inside}{_NOT_TO_SIGN}"
        )
    elif verdict.scope == "imported":
        said = (
            "**Scope: imported. Perch did not measure these figures, so this run is no proof of "
            f"hardware.**{_NOT_TO_SIGN}"
        )
    else:
        said = (
            "**Scope: software. Only the kernel's TCP and software providers were measured, so "
            f"this run is no proof of hardware.**{inside}{_NOT_TO_SIGN}"
        )
    if any(check.id == "imported" for check in verdict.checks):
        return f"**Imported: measured elsewhere, and not seen by Perch.** {said}"
    return said
