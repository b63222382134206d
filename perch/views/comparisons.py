"""Figures side by side: RDMA's interface and TCP, transfers, the engine and other tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from perch.model.imported import Stated
from perch.model.verdict import Verdict
from perch.views import words
from perch.views.flow_facts import Packets
from perch.views.measured import Point, Results, best_bandwidth, best_latency, typical
from perch.views.ranks import grouped, rank
from perch.views.table import Table, left, right
from perch.views.transfers import picked
from perch.views.words import Figure, quantity

Row = Mapping[str, Any]

#: A page, where many curves bend.
PAGE = 4096
AGREEMENT_MAX = 200

_LATENCY = ("p50_us", "stddev_us", "p99_minus_p50_us", "p99_us", "p99_9_us")
_BANDWIDTH = (
    "gbit_s", "client_s_per_gb", "server_s_per_gb", "client_system_s_per_gb",
    "server_system_s_per_gb", "retransmissions",
)  # fmt: skip
_TRANSFER = (
    "gbit_s", "messages_per_s", "mean_us", "p99_us", "client_s_per_gb", "server_s_per_gb",
)  # fmt: skip


def scoped(rdma: Row) -> str:
    """A provider's name; where it is not hardware, that too."""
    name, scope = rdma["name"], rdma["scope"]
    return words.cell(name if scope == "hardware" else f"{name}, {scope}")


def _absent(row: Row) -> str:
    """Why a figure is missing: percentiles need samples, retransmissions the host's counter."""
    if row["metric"] == "retransmissions":
        return "not counted on that host"
    return "too few samples" if row["kind"] == "latency" else "not reported"


def _cell(side: Row, row: Row) -> str:
    value = side.get("value")
    return _absent(row) if value is None else quantity(value, row["unit"])


def _row(row: Row) -> list[str]:
    title = words.cell(row["title"])
    if row["kind"] == "bandwidth":
        title += f", {words.waiting_words(row.get('completion'))}"
    sides = [_cell(row["rdma"], row), _cell(row["tcp"], row)]
    return [title, words.size(row["size_bytes"]), *sides, words.times(row.get("ratio"))]


def _sizes(rows: list[Row]) -> list[int]:
    """The smallest, a page and the largest show where curves start, bend and end."""
    sizes = sorted({row["size_bytes"] for row in rows})
    return sorted({size for size in [*sizes[:1], PAGE, *sizes[-1:]] if size in sizes})


def _provider(rows: list[Row]) -> Table:
    latency = [row for row in rows if row["kind"] == "latency" and row["completion"] == "busy"]
    bandwidth = [row for row in rows if row["kind"] == "bandwidth"]
    largest = max((row["size_bytes"] for row in bandwidth), default=None)
    name = scoped(rows[0]["rdma"])
    shown = [
        _row(row)
        for metric in _LATENCY
        for size in _sizes(latency)
        for row in latency
        if row["metric"] == metric and row["size_bytes"] == size
    ] + [
        _row(row)
        for metric in _BANDWIDTH
        for row in bandwidth
        if row["metric"] == metric and row["size_bytes"] == largest
    ]
    rdma = f"RDMA interface ({name})"
    columns = right("Size", rdma, "TCP (the engine's tcp backend)", "RDMA / TCP")
    return Table(left("Figure") + columns, shown, title=name)


def _by_provider(rows: list[Row]) -> list[list[Row]]:
    """Shared memory comes last: it is no network."""
    return grouped(rows, lambda row: (row["rdma"]["name"] == "shm", row["rdma"]["name"]))


# ---- transfers -----------------------------------------------------------------------------------

_SETTINGS = (
    "completion", "queue_pairs", "op", "devices", "threads", "consecutive", "session",
    "stride_bytes", "chunks",
)  # fmt: skip


def _settings(row: Row) -> str:
    """What was asked of both, beside size and batch."""
    chunks, stride = row.get("chunks"), row.get("stride_bytes")
    parts = [
        row.get("op"),
        words.waiting_words(row.get("completion")),
        words.plural(row["devices"], "pair"),
        f"{words.plural(row['queue_pairs'], 'queue pair')} each",
        words.plural(row["threads"], "thread"),
        "posted one by one" if row.get("consecutive") is True else None,
        "no session" if row.get("session") is False else None,
        None if stride is None else f"{words.size(stride)} apart",
        f"in {chunks} chunks" if (chunks or 1) > 1 else None,
    ]
    return words.joined(parts, ", ")


def _transfer_cell(side: Row, row: Row) -> str:
    value = side.get("value")
    if value is not None:
        return quantity(value, row["unit"])
    return "too few batches" if row["metric"] == "p99_us" else "not reported"


def _transfer_row(row: Row) -> list[str]:
    place = f"{words.size(row['size_bytes'])} x {words.whole(row['batch'])}"
    sides = [_transfer_cell(row["rdma"], row), _transfer_cell(row["tcp"], row)]
    return [words.cell(row["title"]), place, *sides, words.times(row.get("ratio"))]


def _transfer_table(rows: list[Row]) -> Table:
    name = scoped(rows[0]["rdma"])
    shown = [
        _transfer_row(row)
        for metric in _TRANSFER
        for point in picked([(row["size_bytes"], row["batch"]) for row in rows])
        for row in rows
        if row["metric"] == metric and (row["size_bytes"], row["batch"]) == point
    ]
    columns = right(
        "Size x batch", f"RDMA interface ({name})", "TCP (the engine's tcp backend)", "RDMA / TCP"
    )
    title = f"{name}, transfers: {words.cell(_settings(rows[0]))}"
    return Table(left("Figure") + columns, shown, title=title)


# ---- all figures ---------------------------------------------------------------------------------


class Comparison(msgspec.Struct):
    """`others`: what other tools say. `refused`: why figures were not compared."""

    tables: list[Table]
    others: Table
    statistic: str
    refused: list[str]


def _other_row(one: Row) -> list[str]:
    cpu = [words.figure(one.get(f"{side}_s_per_gb")) for side in ("client", "server")]
    return [
        words.cell(one["name"]),
        words.cell(words.definition_words(one.get("definition"))),
        words.size(one["size_bytes"]),
        words.figure(one.get("gbit_s")),
        *cpu,
        words.whole(one.get("retransmissions")),
    ]


def comparison(found: Row) -> Comparison:
    """found: `comparison` of a verdict."""
    transfers = grouped(
        found.get("transfers") or [],
        lambda row: (row["rdma"]["name"], *(row.get(name) for name in _SETTINGS)),
    )
    others = Table(
        left("Tool", "Definition")
        + right("Size", "Gb/s", "CPU client, s/GB", "CPU server, s/GB", "Retransmissions"),
        [_other_row(one) for one in found["others"]],
    )
    return Comparison(
        tables=[
            *map(_provider, _by_provider(found["rows"])),
            *map(_transfer_table, transfers),
        ],
        others=others,
        statistic=found.get("statistic") or "median",
        refused=[words.cell(one) for one in sorted({one["reason"] for one in found["refused"]})],
    )


# ---- the engine beside other tools ---------------------------------------------------------------


def _agreement_row(row: Row) -> list[str]:
    peer = f"beside {row['peer']}: " if row.get("peer") else ""
    ways = ", both ways" if row.get("bidirectional") else ""
    said = {"agree": "agree", "disagree": "**disagree**"}.get(str(row.get("state")))
    connection = words.cell(row.get("connection"))
    return [
        f"{peer}{row['op']} {row['kind']}, {connection}{ways}: {words.cell(row['title'])}",
        words.size(row["size_bytes"]),
        quantity(row.get("engine"), row["unit"]),
        quantity(row.get("perftest"), row["unit"]),
        words.times(row.get("ratio")),
        said or words.cell(row.get("reason")),
    ]


def agreement(verdict: Verdict) -> Table:
    rows = verdict.agreement if isinstance(verdict.agreement, list) else []
    ordered = sorted(
        rows,
        key=lambda row: rank(
            row["kind"] != "latency", row["op"], row.get("connection"), row["size_bytes"],
            row["metric"],
        ),
    )  # fmt: skip
    columns = right("Size", "perch", "the other tool", "perch / other")
    return Table(
        left("Figure") + columns + left("They"),
        [_agreement_row(row) for row in ordered[:AGREEMENT_MAX]],
    )


# ---- RDMA against TCP on one page ----------------------------------------------------------------

#: Repeats of one figure vary by as much: draft-calabria-bmwg-ai-fabric-training-bench-02 recommends
#: under 5 %.
NOISE = 0.05

#: Metric, kind, title, and the waiting mode in which it is compared. Busy pollers burn a whole
#: CPU whatever they carry: CPU is compared where the flow waits by events, all else where it polls.
_WANTED = (
    ("gbit_s", "bandwidth", "Bandwidth", None),
    ("p50_us", "latency", "Latency, median", None),
    ("stddev_us", "latency", "Jitter, standard deviation", None),
    ("p99_us", "latency", "Tail, p99", None),
    ("client_s_per_gb", "bandwidth", "CPU of the client", "event"),
    ("server_s_per_gb", "bandwidth", "CPU of the server", "event"),
)


def advantage(ratio: Figure, better: str) -> str:
    """1.98: `+98 % (1.98 times as much)`; 0.73: `-27 % (0.730 times as much)`; better is bold."""
    if ratio is None:
        return "-"
    if words.percent(abs(100 * (ratio - 1)), 0) == words.percent(0, 0):
        return "none"
    change = (
        "> +1000 %"
        if ratio > 11
        else ("+" if ratio >= 1 else "") + words.percent(100 * (ratio - 1), 0)
    )
    is_better = ratio >= 1 + NOISE if better == "higher" else ratio <= 1 - NOISE
    said = f"{change} ({words.figure(ratio)} times as much)"
    return f"**{said}**" if is_better else said


def _pick(rows: list[Row], metric: str, kind: str, completion: str | None) -> Row | None:
    """Latency at its smallest size, bandwidth at its largest."""
    found = [
        row
        for row in rows
        if row["metric"] == metric
        and row["kind"] == kind
        and completion in (None, row["completion"])
    ]
    if completion is None:
        found = [row for row in found if row["completion"] == "busy"] or found
    if not found:
        return None
    if kind == "latency":
        return min(found, key=lambda row: row["size_bytes"])
    return max(reversed(found), key=lambda row: row["size_bytes"])


def _short_cell(side: Row, row: Row) -> str:
    value = side.get("value")
    if value is not None:
        return quantity(value, row["unit"])
    return "too few samples" if row["metric"].startswith("p9") else "not measured"


def _short_row(rows: list[Row], metric: str, kind: str, title: str, mode: str | None) -> list[str]:
    row = _pick(rows, metric, kind, mode)
    if row is None:
        waiting = ", waiting by events" if mode == "event" else ""
        return [title + waiting, "-", "not measured", "not measured", "-"]
    return [
        f"{words.cell(row['title'])}, {words.waiting_words(row['completion'])}",
        words.size(row["size_bytes"]),
        _short_cell(row["tcp"], row),
        _short_cell(row["rdma"], row),
        advantage(row.get("ratio"), row["better"]),
    ]


def _counted(mine: list[Packets]) -> str:
    lost, retries, sent = (
        words.whole(sum(getattr(one, name) for one in mine)) for name in ("lost", "retries", "sent")
    )
    return f"{lost} lost, {retries} retransmitted, of {sent}"


def _loss_row(
    rows: list[Row], provider: str, tests: list[Results], counted: dict[str, Packets]
) -> list[str]:
    """What the devices counted of a provider's packets, or the host's TCP under it."""
    mine = [
        counted[test.name]
        for test in tests
        if test.name in counted and (test.about["provider"] or test.about["backend"]) == provider
    ]
    tcp = _pick(rows, "retransmissions", "bandwidth", None)
    of_tcp = tcp["tcp"].get("value") if tcp else None
    of_rdma = tcp["rdma"].get("value") if tcp else None
    if mine:
        said = f"{_counted(mine)} (all tests)"
    elif of_rdma is not None:
        said = f"{words.plural(of_rdma, 'segment')} of TCP under it retransmitted"
    else:
        said = "not measured"
    waiting = f", {words.waiting_words(tcp['completion'])}" if tcp else ""
    return [
        f"Packets lost or retransmitted{waiting}",
        words.size(tcp["size_bytes"]) if tcp else "-",
        "not measured" if of_tcp is None else f"{words.plural(of_tcp, 'segment')} retransmitted",
        said,
        "-",
    ]


def _short(rows: list[Row], tests: list[Results], counted: dict[str, Packets]) -> Table:
    provider = rows[0]["rdma"]["name"]
    shown = [_short_row(rows, *wanted) for wanted in _WANTED]
    modes = {row["completion"] for row in rows if row["metric"] == "gbit_s"}
    if modes >= {"busy", "event"}:
        shown.insert(1, _short_row(rows, "gbit_s", "bandwidth", "Bandwidth", "event"))
    shown.append(_loss_row(rows, provider, tests, counted))
    rdma = f"RDMA send ({words.cell(provider)})"
    columns = right("Size", "TCP (the engine)", rdma, "RDMA's change")
    return Table(left("Metric") + columns, shown, title=scoped(rows[0]["rdma"]))


def _by_definition(test: Results, point: Point) -> str:
    definition = (test.about["definition"] or "no definition").replace("_", " ")
    return f"{_test_at(test, point)}: {words.cell(definition)}"


def _test_at(test: Results, point: Point) -> str:
    return f"{words.cell(test.title)}, {words.size(point.size_bytes)}"


#: A figure and how it was measured; None: no output has it.
_Found = tuple[str, str] | None

_NOT_MEASURED = "not measured"


def _unlike_row(title: str, tcp: _Found, rdma: _Found, why: str) -> list[str]:
    """`why`: both have a figure, but by definitions of their own."""
    missing = [name for name, found in (("TCP", tcp), ("RDMA", rdma)) if found is None]
    said = [found[1] for found in (tcp, rdma) if found is not None and found[1]]
    if missing:
        said.append(f"no output has it for {' or '.join(missing)}")
    else:
        said.append(why)
    cells = [_NOT_MEASURED if found is None else found[0] for found in (tcp, rdma)]
    return [title, *cells, "; ".join(one for one in said if one)]


def _rates(tests: list[Results]) -> tuple[_Found, _Found]:
    of_tcp = [
        (test, point)
        for test in tests
        if test.test.kind == "bandwidth" and test.is_tcp
        for point in test.sizes
        if point.get("gbit_s") is not None
    ]
    tcp = max(reversed(of_tcp), key=lambda one: one[1].get("gbit_s") or 0, default=None)

    def found(one: tuple[Results, Point] | None) -> _Found:
        if one is None:
            return None
        return f"{words.figure(one[1].get('gbit_s'))} Gb/s", _by_definition(*one)

    return found(tcp), found(best_bandwidth(tests))


def _of_latency(latency: tuple[Results, Point] | None, name: str) -> _Found:
    value = latency[1].get(name) if latency else None
    return None if value is None else (f"{words.figure(value)} µs", "")


def _in_all(tests: list[Results], name: str, unit: str) -> _Found:
    """A figure of bandwidth tests: the largest, as none flatters."""
    known = [
        value
        for test in tests
        if test.test.kind == "bandwidth"
        for point in test.sizes
        if (value := point.get(name)) is not None
    ]
    return (quantity(max(known), unit), "the largest of all tests and sizes") if known else None


def _lost(stated: list[Stated]) -> str:
    """What a document says of drops, where no output counts any."""
    drops = dict.fromkeys(one.words for one in stated if one.measure == "drops")
    return f"of its switch the document says: {words.cell('; '.join(drops))}" if drops else ""


def _loss(
    tcp: list[Results], rdma: list[Results], counted: dict[str, Packets], stated: list[Stated]
) -> list[str]:
    of_rdma = [counted[test.name] for test in rdma if test.name in counted]
    row = _unlike_row(
        "Packets lost or retransmitted",
        _in_all(tcp, "retransmissions", "segments"),
        (_counted(of_rdma), "") if of_rdma else None,
        "TCP's are segments of its host, RDMA's packets of its devices",
    )
    row[-1] = "; ".join(one for one in (row[-1], _lost(stated)) if one)
    return row


def _unlike(tests: list[Results], counted: dict[str, Packets], stated: list[Stated]) -> Table:
    """Figures of tools by definitions of their own, without a ratio, and which are missing."""
    tcp = [test for test in tests if test.is_tcp]
    rdma = [test for test in tests if test.is_rdma and test.is_network and not test.is_verified]
    columns = left("Metric") + right("TCP", "RDMA") + left("Why there is no ratio")
    if not tcp or not rdma:
        return Table(columns, [])
    latency = best_latency(tests)
    trips = [rtt for test in tcp if (rtt := test.about["tcp.initial_rtt_us"]) is not None]
    rows = [
        _unlike_row("Bandwidth", *_rates(tests), ""),
        _unlike_row(
            "Latency",
            (f"{words.figure(min(trips))} µs", "") if trips else None,
            (f"{words.figure(typical(latency[1]))} µs", _test_at(*latency)) if latency else None,
            "TCP's is a whole round trip of the handshake, RDMA's half of one",
        ),
        _unlike_row("Jitter, standard deviation", None, _of_latency(latency, "stddev"), ""),
        _unlike_row("Tail, p99", None, _of_latency(latency, "p99"), ""),
        _unlike_row(
            "CPU of the client",
            _in_all(tcp, "client_s_per_gb", "s/GB"),
            _in_all(rdma, "client_s_per_gb", "s/GB"),
            "each tool accounts for itself",
        ),
        _loss(tcp, rdma, counted, stated),
    ]
    return Table(columns, rows)


def _metric(row: list[str]) -> str:
    """Bandwidth, of `Bandwidth, busy polling`: the tables qualify it in different ways."""
    return row[0].partition(",")[0]


def _say_once(short: list[Table], unlike: Table) -> None:
    """Leaves each metric in one table: a blank row would contradict the figures of the other."""
    compared = {_metric(row) for table in short for row in table.rows if _has_both(row)}
    unlike.rows = [row for row in unlike.rows if _metric(row) not in compared]
    elsewhere = set(map(_metric, unlike.rows))
    for table in short:
        table.rows = [row for row in table.rows if _metric(row) not in elsewhere]


def _has_both(row: list[str]) -> bool:
    """Of a short table's row: TCP's figure and RDMA's."""
    return _NOT_MEASURED not in row[2:4]


class AgainstTcp(msgspec.Struct):
    """A short table for each provider; `unlike`: what nothing can be divided by."""

    short: list[Table]
    unlike: Table


def against_tcp(
    found: Row,
    tests: list[Results],
    counted: dict[str, Packets],
    stated: list[Stated] | None = None,
) -> AgainstTcp:
    """Shared memory is no network. `stated`: what documents say of switches."""
    rows = [row for row in found["rows"] if row["rdma"]["name"] != "shm"]
    short = [_short(mine, tests, counted) for mine in _by_provider(rows)]
    unlike = _unlike(tests, counted, stated or [])
    if any(row["metric"] == "gbit_s" for row in rows):
        unlike.rows = []
    _say_once(short, unlike)
    return AgainstTcp(short, unlike)
