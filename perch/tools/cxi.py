"""The eight cxi tools (cxi_send_lat, _write_, _read_, _atomic_, and _bw) -> parts, one a row.

How they measure: HewlettPackard/shs-libcxi, man/cxi_*.1.md and utils/utils_common.c.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from perch.model.figures import rounded, supports
from perch.model.part import Claims, Part
from perch.model.record import Bandwidth, Latency, Link, Number, Params, Side, ToolName
from perch.tools import cxi_text as text
from perch.tools import perch
from perch.tools.cxi_command import COMMAND
from perch.tools.results import (
    IMPOSSIBLE_GBIT_S,
    Found,
    LineError,
    UnusableError,
    natural,
    positive,
    shown,
    told,
    unusable,
    whole,
)
from perch.tools.text import lines_of, option_value, tail
from perch.tools.tool import HOST_CANNOT, PEER_LOST, UNUSABLE, Tool, ToolOutput

#: Payload of a packet (PORTALS_MTU).
PACKET_BYTES = 2048

#: Two decimals of a truncated figure.
TRUNCATED = 0.011

#: HPE's page of cxi_write_lat shows 5 % between the listed times and their summary (an older print
#: lost a zero: 2.007 became 2.07); what is further apart belongs to another run.
APART = 0.1

#: The clocks of two ends, by which each times its own half of a test both ways (site policy).
CLOCKS = 1.02

# they exit 1 whatever happened (errx in their utils/)
_PEER = re.compile(
    "Connection refused|onnection timed out|Connection reset|No route to host|Failed to connect"
    "|ync timed out|version mismatch",
    re.IGNORECASE,
)
_HOST = re.compile(
    "Unable to open|Failed to open|No such device|Failed to allocate|nsufficient .*huge pages"
    "|Permission denied|Invalid device",
    re.IGNORECASE,
)
# Perch under the name of such a tool says on standard error that it is there, and whether the
# provider below it is a simulation
_IS_PERCH = re.compile(r"\bis perch in the place of\b")
_SIMULATED = re.compile(r"\bsimulated\b")


@dataclass(frozen=True, slots=True)
class _Run:
    """What the text says of its run. Seconds and microseconds; `both`: both ways at once."""

    about: text.Summary
    op: str
    kind: str
    atomic: text.Atomic | None
    both: bool
    sizes: list[int]
    iterations: int | None
    duration_s: int | None
    warmup: int | None
    gap_us: int | None
    list_size: int | None

    @property
    def is_latency(self) -> bool:
        return self.kind == "latency"

    @property
    def fetching(self) -> bool:
        return self.atomic is not None and self.atomic.fetching


def _run(lines: Sequence[str], title: int, about: text.Summary) -> _Run:
    heading = text.titled(lines[title])
    if heading is None:
        raise LineError(f"{text.quoted(lines[title])} is no test of the eight tools", title)
    op, kind = heading
    atomic, by = text.atomic(about), about.get("Test Type")
    if by not in ("Iteration", "Duration"):
        raise UnusableError(f"its test type is {shown(by)}")
    run = _Run(
        about=about,
        op=op,
        kind=kind,
        atomic=atomic,
        both=text.switch(about, "Bidirectional") is True,
        sizes=text.sizes(about, op),
        iterations=text.count(about, "Iterations"),
        duration_s=text.count(about, "Duration"),
        warmup=text.count(about, "Warmup Iters"),
        gap_us=text.count(about, "Inter-Iter Gap"),
        list_size=text.count(about, "List Size"),
    )
    if (run.duration_s if by == "Duration" else run.iterations) is None:
        raise UnusableError("its summary does not say how long it ran")
    return run


# ---- what was asked and used ---------------------------------------------------------------------


def _record_op(run: _Run) -> str:
    """As the engine names them: what compares, what answers, what does neither."""
    if run.atomic is None:
        return run.op
    if run.atomic.op == "cswap":
        return "compare-atomic"
    return "fetch-atomic" if run.fetching else "atomic-op"


def _atomic_word(atomic: text.Atomic) -> str:
    """Its SWAP is libfabric's atomic write, and CSWAP EQ its plain compare and swap."""
    if atomic.op == "swap":
        return "write"
    if atomic.op == "cswap" and atomic.compare != "eq":
        return f"cswap-{atomic.compare or 'eq'}"
    return atomic.op


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _params(run: _Run, size: int) -> Params:
    about, atomic = run.about, run.atomic
    kind, matching = about.get("Atomic Type"), text.switch(about, "Matching LEs")
    tx_memory = text.memory(about, "Client", "TX")
    return Params(
        size_bytes=size,
        iterations=run.iterations,
        duration_s=run.duration_s,
        warmup=run.warmup,
        gap_us=run.gap_us,
        queue_pairs=1,
        outstanding=1 if run.is_latency else run.list_size,
        batch=None if run.is_latency else run.list_size,
        threads=1,
        devices=1,
        bidirectional=run.both,
        completion="busy",
        memory=tx_memory,
        verify=False,
        svc_id=text.service(about),
        vni=text.nic(about, "Local (client)")[1],
        idc=text.switch(about, "IDC"),
        ll=text.switch(about, "LL Cmd Launch"),
        rdzv=text.switch(about, "Rendezvous PUTs"),
        hrp=text.switch(about, "HRP"),
        unrestricted=_negated(text.switch(about, "Restricted")),
        keys=None if matching is None else "matching" if matching else "client",
        atomic_op=None if atomic is None else _atomic_word(atomic),
        fetching=None if atomic is None else atomic.fetching,
        atomic_type=None if kind is None else kind.lower().replace("_", "-"),
        tx_memory=tx_memory,
        rx_memory=text.memory(about, "Server", "RX"),
    )


def _check_asked(run: _Run, count: int) -> None:
    """Each iteration of a bandwidth test is a whole list."""
    if run.duration_s is not None:
        return
    asked = (run.iterations or 0) * (1 if run.is_latency else run.list_size or 1)
    if count != asked:
        raise UnusableError(f"it measured {count} messages of {asked}")


# ---- latency -------------------------------------------------------------------------------------


def _latency(row: text.Row, count: int, samples: Sequence[float] | None) -> Latency:
    times = Latency(
        count=count,
        min=positive(row.min, "Min"),
        max=positive(row.max, "Max"),
        mean=positive(row.mean, "Mean"),
        stddev=natural(row.stddev, "StdDev"),
    )
    if row.min > row.mean + TRUNCATED or row.mean > row.max + TRUNCATED:
        figures = f"{shown(row.min)}, {shown(row.mean)} and {shown(row.max)}"
        raise UnusableError(f"Min, Mean and Max are {figures}, out of order")
    # it takes the mean as whole nanoseconds before it squares it, which adds the root of twice the
    # mean at most
    if row.stddev > (row.max - row.min) / 2 + math.sqrt(2 * row.mean / 1000) + TRUNCATED:
        raise UnusableError(f"StdDev is {shown(row.stddev)}, which Min and Max do not allow")
    if samples is not None:
        _with_samples(times, row, sorted(samples))
    return times


def _with_samples(times: Latency, row: text.Row, samples: Sequence[float]) -> None:
    """Percentiles of the single times under one table, where they are those that it sums up."""
    n = len(samples)
    if n != times.count:
        raise UnusableError(f"it lists {n} measurements of {times.count}")
    if samples[0] <= 0:
        raise UnusableError("a measurement is 0")
    pairs = ((samples[0], row.min), (samples[-1], row.max), (sum(samples) / n, row.mean))
    apart = max(abs(listed / said - 1) for listed, said in pairs)
    if apart > APART:
        raise UnusableError(
            f"its single measurements and its summary are {shown(rounded(apart * 100))} % apart"
        )
    if any(abs(listed - said) > TRUNCATED for listed, said in pairs):
        return
    for name, quantile in Latency.PERCENTILES.items():
        if supports(n, quantile):
            # within the two decimals of what it calls the least and the most
            value = samples[max(math.ceil(quantile * n) - 1, 0)]
            setattr(times, name, positive(max(min(value, row.max), row.min), name))


def _check_duration(run: _Run, times: Latency) -> None:
    """A send's time is half of a round trip; the others end when the last byte was written."""
    count, mean = times.count or 0, times.mean or 0
    busy = (2 if run.op == "send" else 1) * count * mean / 1e6
    if run.duration_s is not None and busy > 1.05 * run.duration_s:
        said = f"{count} measurements of {shown(mean)} us"
        raise UnusableError(f"{said} take longer than {run.duration_s} s")


# ---- bandwidth -----------------------------------------------------------------------------------


def _messages_per_s(row: text.Row, gbit: float) -> float | None:
    """Two columns come from one division: a misread unit, or another table's row, shows here."""
    millions: float | None = row.messages
    if row.packets is not None:
        millions = row.packets / math.ceil(row.size / PACKET_BYTES)
    if millions is None:
        return None
    gbit_s, other = row.rate * gbit, millions * row.size * 0.008
    rounding = 0.005 * gbit + 5e-7 * row.size * 0.008 + 1e-4 * gbit_s
    if abs(gbit_s - other) > rounding:
        rates = f"{shown(rounded(gbit_s))} against {shown(rounded(other))} Gb/s"
        raise UnusableError(f"bandwidth and rate disagree ({rates})")
    return millions * 1e6


def _bytes(run: _Run, own: int, gbit_s: float) -> int:
    """Both ways at once the rate is the sum of both, the count that of this end.

    By duration the other end has a count of its own.
    """
    if not run.both:
        return own
    if run.duration_s is None:
        return 2 * own
    return math.floor(max(gbit_s * run.duration_s / 8 * 1e9, own))


def _bandwidth(row: text.Row, run: _Run, own: int, gbit: float) -> tuple[Bandwidth, Number]:
    """With the time that its bytes took. `own`: bytes that this end moved."""
    messages_per_s = _messages_per_s(row, gbit)
    gbit_s = positive(row.rate * gbit, "BW")
    if gbit_s > IMPOSSIBLE_GBIT_S:
        raise UnusableError(f"bandwidth of {shown(gbit_s)} Gb/s is impossible")
    size = _bytes(run, own, gbit_s)
    elapsed, asked = size * 8 / gbit_s / 1e9, run.duration_s
    if asked is not None and not 0.9 * asked <= elapsed <= 1.5 * asked + 1:
        raise UnusableError(f"{size} bytes at {shown(gbit_s)} Gb/s are not {asked} s")
    bandwidth = Bandwidth(
        gbit_s=gbit_s,
        messages_per_s=None if messages_per_s is None else rounded(messages_per_s),
        bytes=positive(size, "bytes"),
    )
    return bandwidth, positive(elapsed, "elapsed time")


# ---- a row ---------------------------------------------------------------------------------------


def _claims(run: _Run, count: int, row_size: int, moved: Number) -> Claims:
    """Payload on the wire, from the client (sent) and to it (received).

    A latency's warm-up is beside its count; what the other end moved by duration is known from the
    rate, within `CLOCKS`. `moved`: bytes of both ends in a test of bandwidth.
    """
    own = (count + ((run.warmup or 0) if run.is_latency else 0)) * row_size
    theirs = max(moved - own, 0) if run.both else 0
    slack = CLOCKS if run.both and run.duration_s is not None else 1.0
    # an echo, or what was there before
    answered = (run.is_latency and run.op == "send") or run.fetching
    sent, received = own, (own if answered else 0) + theirs
    if run.op == "read":
        sent, received = math.floor(theirs), own
    elif run.fetching:
        sent = received = own + math.floor(theirs)
    return Claims(
        sent=math.floor(sent / slack),
        received=math.floor(received / slack),
        most_sent=math.ceil(sent * slack),
        most_received=math.ceil(received * slack),
    )


def _definition(run: _Run) -> str:
    if run.is_latency:
        return "half_round_trip" if run.op == "send" else "completion"
    return "initiator_completion"


def _size(run: _Run, row: text.Row) -> int:
    positive(row.size, "the size")
    if row.size not in run.sizes:
        raise UnusableError(f"{shown(row.size)} bytes are not among the sizes of its summary")
    return int(row.size)


def _count(row: text.Row) -> int:
    positive(row.count, "the count")
    return whole(row.count, "the count") or 0


def _measured(run: _Run, found: text.TextRow, server_argv: Sequence[str]) -> Part:
    row = found.columns.row(found.text)
    count = _count(row)
    _check_asked(run, count)
    size = _size(run, row)
    part = Part(
        op=_record_op(run),
        kind=run.kind,
        definition=_definition(run),
        connection="rdm",
        link=Link(layer="slingshot"),
        client=Side(
            device=run.about.get("Device"), address=text.nic(run.about, "Local (client)")[0]
        ),
        server=Side(
            device=option_value(server_argv, ("-d", "--device")),
            address=text.nic(run.about, "Remote (server)")[0],
        ),
        params=_params(run, size),
    )
    moved: Number = 0
    if run.is_latency:
        part.latency_us = _latency(row, count, found.samples)
        _check_duration(run, part.latency_us)
        part.elapsed_s = run.duration_s
    else:
        part.bandwidth, part.elapsed_s = _bandwidth(row, run, count * size, found.columns.gbit)
        moved = part.bandwidth.bytes or 0
    part.claims = _claims(run, count, size, moved)
    return part


# ---- all of it -----------------------------------------------------------------------------------


def _rows(lines: Sequence[str], server_argv: Sequence[str], because: str) -> list[Found]:
    title = text.title_at(lines)
    if title is None:
        raise UnusableError("it does not say which test it is")
    about, rule = text.summary(lines, title)
    run = _run(lines, title, about)
    tables = text.tables(lines, rule, run.kind)
    if not tables.rows:
        raise UnusableError("it has no table of results: truncated?")

    def found(row: text.TextRow) -> Found:
        try:
            return Found(_measured(run, row, server_argv), row.line)
        except text.ServerError:
            raise
        except UnusableError as why:
            return unusable(LineError(why, row.line), traffic=True, because=because)

    rows = [found(row) for row in tables.rows]
    counted, sizes = len(rows), [p.params.size_bytes for p, _ in rows if p.params]
    if counted != len(run.sizes):
        why = UnusableError(f"its table has {counted} rows for {len(run.sizes)} sizes: truncated?")
        return [*rows, unusable(why, traffic=True, because=because)]
    if not tables.closed:
        why = UnusableError("its table has no end: truncated?")
        return [*rows[:-1], unusable(why, traffic=True, because=because)]
    if len(set(sizes)) < len(sizes):
        why = UnusableError("its table has a size twice")
        return [*rows[:-1], unusable(why, traffic=True, because=because)]
    return rows


def found(lines: Sequence[str], errors: Sequence[str], server_argv: Sequence[str]) -> list[Found]:
    """A client's output, its standard error, and its server's command -> its results."""
    because = tail(errors, 2)[:300]
    if not any(line.strip() for line in lines):
        return [unusable(UnusableError("it is empty"), traffic=False, because=because)]
    try:
        return _rows(lines, server_argv, because)
    except UnusableError as why:
        traffic = any(text.is_header(line) for line in lines)
        return [unusable(why, traffic=traffic, because=because)]


def read(output: ToolOutput) -> list[Part]:
    """What the client printed. Where that was Perch, the host's version is of no tool's."""
    lines, errors = lines_of(output.stdout), lines_of(output.stderr)
    name = ToolName("cxi", output.version("cxi"))
    if any(_IS_PERCH.search(line) for line in errors):
        name = ToolName("perch-personality")
    simulated = any(_SIMULATED.search(line) for line in errors)
    parts = told(found(lines, errors, output.flow.server_argv), "the cxi tool")
    for part in parts:
        part.tool, part.simulated = name, simulated
    return parts


def exit_code(exit_status: int, words: str) -> int:
    """The cxi tools exit 1 whatever happened; Perch under one of their names has its own codes."""
    if exit_status != 1:
        return perch.exit_code(exit_status, words)
    if _PEER.search(words):
        return PEER_LOST
    return HOST_CANNOT if _HOST.search(words) else UNUSABLE


TOOL = Tool(
    name="cxi",
    read=read,
    exit_code_of=exit_code,
    default_port=49194,
    version_key="cxi",
    commands=dict.fromkeys(("latency", "bandwidth"), COMMAND),
)
