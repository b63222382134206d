"""iperf 2 (2.1 and newer): the text of `-e -i 1`, or the table of `-y C`, -> one part.

The rate is the sender's, as its client prints it. Nothing is guessed: a line whose unit or shape is
unknown is an error, for 5.09 may be GBytes or MBytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from perch.model.figures import rounded
from perch.model.part import Claims, Part
from perch.model.record import Bandwidth, Interval, Number, Params, Rate, Side, Tcp, ToolName
from perch.tools.iperf_command import IPERF
from perch.tools.results import (
    IMPOSSIBLE_GBIT_S,
    UnusableError,
    failed,
    interval_summary,
    positive,
    several,
    shown,
)
from perch.tools.text import lines_of, number, option_value, tail
from perch.tools.tool import PEER_LOST, UNUSABLE, Connection, Tool, ToolOutput

#: Bytes count in powers of 1024, bits in powers of 1000 (iperf 2.1.8, src/stdio.c: kKilo_to_Unit).
BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
BITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

#: Three digits are printed: each figure may be off by 0.5 %, and two by 1 %; a misread prefix would
#: be off by 2.4 % and more.
ROUNDED, DISAGREE = 0.005, 0.02

#: Times of intervals have one decimal or more: each may be off by half of it, and two by all.
TENTH_S = 0.1

# no measurement prints a longer number
_WHOLE = "[0-9]{1,18}"
_DECIMAL = rf"{_WHOLE}(?:\.{_WHOLE})?"
_ROW = re.compile(r"\[ *(?:[0-9]+|SUM)\] +[0-9.]+- *[0-9.]+ +sec")
_REPORT = re.compile(
    r"\[ *(?P<id>[0-9]+|SUM)\]"
    rf" +(?P<start>{_WHOLE}\.{_WHOLE})- *(?P<end>{_WHOLE}\.{_WHOLE}) sec"
    rf" +(?P<amount>{_DECIMAL}) (?P<amount_prefix>[KMGT]?)Bytes"
    rf" +(?P<rate>{_DECIMAL}) (?P<rate_prefix>[KMGT]?)(?P<rate_unit>bits|Bytes)/sec"
    rf"(?: +[0-9]+/[0-9]+ +(?P<retries>{_WHOLE}))?"
)
_RETRY_HEADING = re.compile(r"\[ ID\].* Rtry ")
_ENDS_WITH_RETRIES = re.compile(r"/[0-9]+ +[0-9]+$")
_RATE = re.compile(r"(?:bits|Bytes)/sec")
_CONNECTED = re.compile(
    rf"icwnd/mss/irtt=(?P<cwnd_kib>{_WHOLE})/(?P<mss_bytes>{_WHOLE})/(?P<rtt_us>{_WHOLE})"
)
_ENDS = re.compile(
    r"^\[ *[0-9]+\] local (?P<client>[^ %]+)(?:%[^ ]+)? port [0-9]+"
    r" connected with (?P<server>[^ ]+) port"
)
_PORTS = re.compile(
    rb"^\[ *[0-9]+\] local [^ ]+ port ([0-9]+) connected with [^ ]+ port ([0-9]+)", re.MULTILINE
)
_LOCAL = re.compile(r"\[ *(?P<id>[0-9]+)\] local ")
_FLOWS = re.compile(rf"\((?P<count>{_WHOLE}) flows?\)")
_STARTED = re.compile(r" on (?P<day>[0-9-]+) (?P<time>[0-9:]+)(?:\.[0-9]+)? \(UTC\)")
_PEER = re.compile("failed|refused|reset|timed out|unreachable", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Row:
    """A result line: of one stream, or of all ("SUM"). `start_s` is 0 in totals."""

    id: str
    start_s: Number
    end_s: Number
    bytes: float
    gbit_s: float
    retries: int | None


def _row(line: str, *, has_retries: bool) -> _Row:
    found = _REPORT.match(line)
    if found is None:
        raise UnusableError(f"its line {shown(line)} has an unknown shape or unit")
    retries = found["retries"]
    # under the heading of -e half a number would be another one; only a sum ends with it
    cut_off = retries is None or (found["id"] != "SUM" and _ENDS_WITH_RETRIES.search(line))
    if has_retries and cut_off:
        raise UnusableError(f"its line {shown(line)} has no end: truncated?")
    return _Row(
        id=found["id"],
        start_s=rounded(float(found["start"])),
        end_s=rounded(float(found["end"])),
        bytes=float(found["amount"]) * BYTES[found["amount_prefix"]],
        gbit_s=float(found["rate"]) * _bits(found["rate_prefix"], found["rate_unit"]) / 1e9,
        retries=None if retries is None else int(retries),
    )


def _bits(prefix: str, unit: str) -> float:
    return 8 * BYTES[prefix] if unit == "Bytes" else BITS[prefix]


def _rows(lines: Sequence[str]) -> list[_Row]:
    has_retries = any(_RETRY_HEADING.match(line) for line in lines)
    return [_row(line, has_retries=has_retries) for line in lines if _ROW.match(line)]


# ---- what its other lines say --------------------------------------------------------------------


def _size_in(lines: Sequence[str], heading: str) -> int | None:
    """The first figure of a line like "TCP window size: 16.0 KByte (default)", in bytes."""
    pattern = re.compile(rf"{heading}: +({_DECIMAL}) ([KMG]?)Byte")
    for line in lines:
        if found := pattern.match(line):
            return math.floor(float(found[1]) * BYTES[found[2]])
    return None


def _first(lines: Sequence[str], pattern: re.Pattern[str]) -> re.Match[str] | None:
    return next((found for line in lines if (found := pattern.search(line))), None)


def _tcp(lines: Sequence[str], retransmissions: int | None) -> Tcp:
    """Of several connections the mean round trip, the least window and segment.

    icwnd is whole KiB, rounded down: 10 segments of 1448 bytes are 14 (iperf 2,
    src/gettcpinfo.c: tcpi_snd_cwnd * tcpi_snd_mss / 1024). A window below one KiB is unknown.
    """
    tcp = Tcp(retransmissions=retransmissions, window_bytes=_size_in(lines, "TCP window size"))
    found = [one for line in lines if (one := _CONNECTED.search(line))]
    if found:
        rtt_us = sum(float(one["rtt_us"]) for one in found) / len(found)
        tcp.initial_rtt_us = positive(rtt_us, "irtt")
        tcp.initial_cwnd_bytes = min(int(one["cwnd_kib"]) for one in found) * BYTES["K"] or None
        tcp.mss_bytes = min(int(one["mss_bytes"]) for one in found) or None
    return tcp


def _streams(lines: Sequence[str]) -> int:
    """With -e iperf says how many; else each has a line of its connection."""
    if found := _first(lines, _FLOWS):
        return int(found["count"])
    ids = {found["id"] for line in lines if (found := _LOCAL.match(line))}
    return max(len(ids), 1)


def _both_ends(lines: Sequence[str]) -> tuple[Side, Side]:
    """Of all streams. Raises UnusableError where they have several."""
    found = {(ends["client"], ends["server"]) for line in lines if (ends := _ENDS.search(line))}
    if len(found) > 1:
        raise UnusableError(f"its streams have several ends: {several(found)}")
    client, server = next(iter(found), (None, None))
    return Side(address=client), Side(address=server)


def connections(output: bytes) -> frozenset[Connection]:
    """The ports of each stream that an output of either end names."""
    return frozenset(_PORTS.findall(output))


def contradiction(part: Part, served: bytes) -> str | None:
    """Whether the server received other bytes than its client sent, both rounded to three digits.

    A server that was terminated may have no total.
    """
    streams = part.params.queue_pairs if part.params else None
    try:
        rows = _rows(lines_of(served))
        rows = [row for row in rows if (row.id == "SUM") == ((streams or 1) > 1)]
    except UnusableError as why:
        return f"the server's stdout cannot be used: {why}"
    sent = part.bandwidth.bytes if part.bandwidth else None
    if not rows or rows[-1].start_s != 0 or sent is None:
        return None
    if abs(rows[-1].bytes - sent) <= DISAGREE * sent:
        return None
    received = shown(rows[-1].bytes)
    return f"the server's stdout has {received} bytes received, the client's {shown(sent)}"


def _params(lines: Sequence[str], argv: Sequence[str]) -> Params:
    """Queue pairs count connections: for TCP tools those are the streams."""
    streams, rate = _streams(lines), option_value(argv, ("-b", "--bandwidth"))
    return Params(
        size_bytes=_size_in(lines, "Write buffer size"),
        duration_s=number(option_value(argv, ("-t", "--time"))),
        queue_pairs=streams,
        threads=streams,
        bidirectional=False,
        completion="event",
        memory="host",
        verify=False,
        rate=None if rate is None else Rate(unit=rate),
    )


# ---- whether the text is whole -------------------------------------------------------------------


def _total(rows: Sequence[_Row], duration_s: Number | None) -> _Row:
    """The last line, from 0 to the end.

    Where output stops early, an interval stands last: the duration asked for (-t) tells a total
    from the first second.
    """
    if not rows:
        raise UnusableError("it holds no result line")
    *intervals, total = rows
    if total.start_s != 0:
        raise UnusableError("its last line is an interval, not the total: truncated?")
    if duration_s is not None and total.end_s < 0.9 * duration_s:
        end = f"{shown(total.end_s)} s of {shown(duration_s)} s"
        raise UnusableError(f"its last line ends at {end}: truncated?")
    _check_course(intervals, total)
    return total


def _check_course(intervals: Sequence[_Row], total: _Row) -> None:
    """Intervals of one id follow each other up to the total; none stands there twice."""
    before: Number = 0
    for row in intervals:
        if row == total or row.start_s < before or row.end_s > total.end_s + TENTH_S:
            span = f"{shown(row.start_s)} to {shown(row.end_s)} s"
            raise UnusableError(f"its line of {span} does not follow the one before: twice?")
        before = row.end_s


def _check_columns(total: _Row) -> None:
    rate = total.gbit_s
    expected = total.bytes * 8 / positive(total.end_s, "elapsed_s") / 1e9
    if rate > 0 and abs(expected / rate - 1) > DISAGREE:
        rates = f"{shown(rounded(expected))} against {shown(rounded(rate))} Gb/s"
        raise UnusableError(f"transfer and bandwidth disagree ({rates})")
    if rate > IMPOSSIBLE_GBIT_S:
        raise UnusableError(f"bandwidth of {shown(rate)} Gb/s is impossible")


def _check_streams(total: _Row, rows: Sequence[_Row]) -> None:
    """The sum of all streams against each one's own total, which stands before it."""
    last = {row.id: row for row in rows if row.id != "SUM"}
    if not last:
        return
    for row in last.values():
        if row.start_s != 0:
            ending = "ends with an interval, not with its total: truncated?"
            raise UnusableError(f"stream {row.id} {ending}")
    if abs(sum(row.bytes for row in last.values()) - total.bytes) > DISAGREE * total.bytes:
        raise UnusableError("the sum of its streams is not that of its last line: truncated?")
    retries = sum(row.retries or 0 for row in last.values())
    if total.retries is not None and retries != total.retries:
        raise UnusableError("the retries of its streams are not those of its last line: truncated?")


def _check_end(lines: Sequence[str]) -> None:
    """Behind the total there are at most summaries of its own ("[ CT] final connect times")."""
    last = max((i for i, line in enumerate(lines) if _RATE.search(line)), default=0)
    for line in lines[last:]:
        if line.strip() and not line.startswith("["):
            raise UnusableError(f"it ends with {shown(line)}")


# ---- the part ------------------------------------------------------------------------------------


def _heading(version: str | None) -> Part:
    return Part(
        tool=ToolName("iperf", version),
        kind="bandwidth",
        definition="sender_payload",
        connection="stream",
    )


def _bandwidth(gbit_s: float, size: float, intervals: Sequence[Interval]) -> Bandwidth:
    return Bandwidth(
        gbit_s=positive(gbit_s, "bandwidth"),
        bytes=positive(math.floor(size), "transfer"),
        **interval_summary(intervals)._asdict(),
    )


def _measured(lines: Sequence[str], argv: Sequence[str], version: str | None) -> Part:
    part, params, every_row = _heading(version), _params(lines, argv), _rows(lines)
    several = (params.queue_pairs or 0) > 1
    rows = [row for row in every_row if (row.id == "SUM") == several]
    total = _total(rows, params.duration_s)
    _check_columns(total)
    if several:
        _check_streams(total, every_row)
    _check_end(lines)
    started = _first(lines, _STARTED)
    part.client, part.server = _both_ends(lines)
    part.params = params
    part.started = f"{started['day']}T{started['time']}Z" if started else None
    part.elapsed_s = total.end_s
    part.intervals = [
        Interval(start_s=row.start_s, end_s=row.end_s, gbit_s=rounded(row.gbit_s))
        for row in rows[:-1]
    ]
    part.bandwidth = _bandwidth(total.gbit_s, total.bytes, part.intervals)
    part.tcp = _tcp(lines, total.retries)
    part.claims = Claims(
        sent=rounded(total.bytes * (1 - ROUNDED)),
        received=0,
        most_sent=rounded(total.bytes * (1 + ROUNDED)),
    )
    return part


def parts(
    lines: Sequence[str], errors: Sequence[str], argv: Sequence[str], version: str | None
) -> list[Part]:
    """The text of a client, its standard error and its command -> its one part.

    iperf 2 exits 0 where it could not connect, and says so on standard error.
    """
    words = tail(errors, 1)
    because = f" ({words})" if words else ""
    code = PEER_LOST if _PEER.search(words) else UNUSABLE
    part = _heading(version)
    if not any(line.strip() for line in lines):
        why, traffic = f"iperf's output is empty{because}", False
    else:
        try:
            return [_measured(lines, argv, version)]
        except UnusableError as fault:
            why = f"iperf's output cannot be used: {fault}{because}"
            traffic = any(_RATE.search(line) for line in lines)
    part.status, part.error = "error", failed(why, code=code, traffic=traffic)
    return [part]


def read(output: ToolOutput) -> list[Part]:
    """What iperf's client printed; only the host's own record of its tools tells the version."""
    lines, errors = lines_of(output.stdout), lines_of(output.stderr)
    return parts(lines, errors, output.flow.client_argv, output.version("iperf"))


TOOL = Tool(
    name="iperf",
    read=read,
    is_tcp=True,
    default_port=5001,
    version_key="iperf",
    connections=connections,
    contradiction=contradiction,
    commands={"bandwidth": IPERF},
)
