"""iperf 2's table (-y C) -> one part, of one or several TCP streams.

Without a heading its columns are those of reportCSV_bw_format (iperf 2.1.8, src/Locale.c); a
heading (2.2, -e) names them. Bytes and bits a second are whole numbers, times have one decimal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from perch.model.figures import rounded
from perch.model.part import Part
from perch.model.record import Bandwidth, Interval, Number, Params, Side, Tcp, ToolName
from perch.tools.results import (
    IMPOSSIBLE_GBIT_S,
    UnusableError,
    failed,
    interval_summary,
    positive,
    shown,
)
from perch.tools.text import number

PLAIN = (
    "time",
    "srcaddress",
    "srcport",
    "dstaddr",
    "dstport",
    "transferid",
    "interval",
    "bytes",
    "speed",
)
#: Columns that UDP has besides: jitter, lost and all datagrams, their share, those out of order.
OF_UDP = 5
UDP = "iperf 2 reports only the sender's rate of UDP"

#: The sum of all streams, which some versions print and others do not.
SUM = "-1"

#: The sum and the streams are rounded, and end at times of their own (site policy).
SUM_TOLERANCE = 0.05

_INTERVAL = re.compile(r"([0-9.]+)-([0-9.]+)")
_ROW = re.compile(r"[0-9]{8,}")


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the table; `line` counts from 1."""

    line: int
    id: str
    client: str
    server: str
    start_s: Number
    end_s: Number
    bytes: Number
    gbit_s: float
    retries: Number | None


def is_heading(line: str) -> bool:
    """Whether the line names the table's columns."""
    return line.startswith("time,srcaddress,")


def is_row(line: str) -> bool:
    """Whether the line belongs to the table: it begins with a date."""
    return _ROW.match(line) is not None


def _cells(line: str, names: Sequence[str]) -> dict[str, str]:
    cells = line.split(",")
    if names == PLAIN and len(cells) == len(PLAIN) + OF_UDP:
        raise UnusableError(UDP)
    if len(cells) != len(names):
        raise UnusableError(f"it has {len(cells)} columns instead of {len(names)}: truncated?")
    cell = dict(zip(names, cells, strict=True))
    if "jitter" in cell:
        raise UnusableError(UDP)
    return cell


def _number(cell: dict[str, str], name: str) -> Number:
    text = cell.get(name)
    value = number(text)
    if value is None:
        raise UnusableError(f"{name} is {shown(text)}, which is not a number")
    return value


def _times(cell: dict[str, str]) -> tuple[Number, Number]:
    """Start and end of a line's interval, seconds."""
    if "interval" in cell:
        found = _INTERVAL.fullmatch(cell["interval"])
        if found is None:
            raise UnusableError(f"its interval is {shown(cell['interval'])}, not START-END")
        cell = {"istart": found[1], "iend": found[2]}
    return _number(cell, "istart"), _number(cell, "iend")


def _row(line: int, cell: dict[str, str]) -> _Row:
    start, end = _times(cell)
    row = _Row(
        line=line,
        id=cell.get("transferid", ""),
        client=cell.get("srcaddress", ""),
        server=cell.get("dstaddr", ""),
        start_s=start,
        end_s=end,
        bytes=_number(cell, "bytes"),
        gbit_s=_number(cell, "speed") / 1e9,
        retries=_number(cell, "tcpretry") if "tcpretry" in cell else None,
    )
    _check_row(row)
    return row


def _check_row(row: _Row) -> None:
    seconds, rate = row.end_s - row.start_s, row.gbit_s
    if seconds <= 0:
        raise UnusableError("its interval is empty")
    if row.bytes <= 0 or rate <= 0:
        raise UnusableError(f"its rate is {shown(rate)}, which is not a result")
    if rate > IMPOSSIBLE_GBIT_S:
        raise UnusableError(f"bandwidth of {shown(rate)} Gb/s is impossible")
    # times have one decimal: each end may be off by half of it
    if abs(row.bytes * 8 / 1e9 / seconds / rate - 1) > 0.1 / seconds + 0.005:
        raise UnusableError("its bytes and its rate disagree")


def _rows(lines: Sequence[str]) -> list[_Row]:
    headings = (tuple(line.split(",")) for line in lines if is_heading(line))
    names = next(headings, PLAIN)
    rows = []
    for i, line in enumerate(lines, start=1):
        if not line.strip() or is_heading(line):
            continue
        try:
            if not is_row(line):
                raise UnusableError("it does not belong to the table: truncated?")
            rows.append(_row(i, _cells(line, names)))
        except UnusableError as why:
            raise UnusableError(f"line {i}: {why}") from None
    return rows


def _total(rows: Sequence[_Row]) -> _Row:
    """The total of one stream: its last line, from 0 to the end, after its intervals."""
    *intervals, total = rows
    place = f"line {total.line}: stream {total.id}"
    if total.start_s != 0:
        raise UnusableError(f"{place} ends with an interval, not with its total: truncated?")
    if len(rows) > 2 and any(i.start_s == 0 and i.end_s == total.end_s for i in intervals):
        raise UnusableError(f"{place} has two totals")
    if any(interval.end_s > total.end_s + 0.05 for interval in intervals):
        raise UnusableError(f"{place} begins again: give each output a file of its own")
    return total


def _intervals(streams: Sequence[Sequence[_Row]]) -> list[Interval]:
    """Intervals of all streams that begin together, summed."""
    by_start: dict[Number, list[_Row]] = {}
    for rows in streams:
        for row in rows[:-1]:
            by_start.setdefault(row.start_s, []).append(row)
    return [
        Interval(
            start_s=start,
            end_s=max(row.end_s for row in rows),
            gbit_s=rounded(sum(row.gbit_s for row in rows)),
        )
        for start, rows in sorted(by_start.items())
        if len(rows) == len(streams)
    ]


def _check_together(totals: Sequence[_Row], sums: Sequence[_Row]) -> None:
    """Checks that the streams end together and add up to the sum."""
    gbit_s, elapsed_s = sum(total.gbit_s for total in totals), max(t.end_s for t in totals)
    if sums and abs(sums[-1].gbit_s / gbit_s - 1) > SUM_TOLERANCE:
        sum_gbit_s, added = shown(sums[-1].gbit_s), shown(rounded(gbit_s))
        raise UnusableError(
            f"line {sums[-1].line}: the sum is {sum_gbit_s} Gb/s, but its streams add to {added}"
        )
    whole = [one for one in sums[:-1] if (one.start_s, one.end_s) == (0, sums[-1].end_s)]
    if whole and len(sums) > 2:
        raise UnusableError(f"line {sums[-1].line}: the sum occurs twice")
    if any(total.end_s < 0.9 * elapsed_s for total in totals):
        raise UnusableError(f"line {totals[0].line}: its streams do not end together: truncated?")


def _retransmissions(totals: Sequence[_Row]) -> int | None:
    retries = [total.retries for total in totals]
    return None if None in retries else int(sum(count for count in retries if count is not None))


def _measured(lines: Sequence[str], version: str | None) -> Part:
    rows = _rows(lines)
    by_stream: dict[str, list[_Row]] = {}
    for row in rows:
        if row.id != SUM:
            by_stream.setdefault(row.id, []).append(row)
    streams = [by_stream[name] for name in sorted(by_stream)]
    if not streams:
        raise UnusableError("it has no stream")
    totals = [_total(stream) for stream in streams]
    _check_together(totals, [row for row in rows if row.id == SUM])
    intervals = _intervals(streams)
    return Part(
        tool=ToolName("iperf", version),
        kind="bandwidth",
        definition="sender_payload",
        connection="stream",
        client=Side(address=totals[0].client),
        server=Side(address=totals[0].server),
        params=Params(
            queue_pairs=len(streams),
            threads=len(streams),
            bidirectional=False,
            completion="event",
        ),
        elapsed_s=positive(max(total.end_s for total in totals), "elapsed_s"),
        bandwidth=Bandwidth(
            gbit_s=positive(sum(total.gbit_s for total in totals), "speed"),
            bytes=sum(total.bytes for total in totals),
            **interval_summary(intervals)._asdict(),
        ),
        intervals=intervals,
        tcp=Tcp(retransmissions=_retransmissions(totals)),
    )


def parts(lines: Sequence[str], version: str | None) -> list[Part]:
    """The lines of a table -> its one part."""
    try:
        return [_measured(lines, version)]
    except UnusableError as why:
        error = failed(f"iperf's table cannot be used: {why}", traffic=True)
        return [Part(tool=ToolName("iperf", version), status="error", error=error)]
