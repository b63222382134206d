"""What the switches said while flows ran: rates between readings, joined to the flows of that time.

reports/jq/switches/samples.jq computes each interval; here are their ranges. Of an interval that
cannot be measured (an answer that was late, a counter that went back, a clock that jumped) there
is a mark and no figure.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import msgspec
import polars as pl

from perch.judge import findings
from perch.judge.jq_program import JQ
from perch.judge.raw import LARGEST, UNREADABLE, RawFiles
from perch.model.figures import encode, rounded
from perch.model.moments import moment
from perch.model.sections import During, DuringRow, Mark, Peak, Range

Document = dict[str, Any]

#: Marks that a verdict shows; all are counted.
MARKS_MAX = 20
#: Flows of one interval that a verdict names.
FLOWS_MAX = 3


class _Answer(msgspec.Struct):
    exit: int | None
    stdout: str
    stderr: str
    asked_s: float
    answered_s: float


class _Reading(msgspec.Struct):
    """perch.switch/1 of phase during."""

    schema: str
    run: str
    switch: str
    phase: str
    provider: str
    collected: str
    asked_s: float
    commands: dict[str, _Answer]
    begun: str | None = None


class _Row(msgspec.Struct):
    """A port in one interval; `why`: why nothing of it is known, or nothing of its queues."""

    host: str
    port: str
    why: str | None
    rx_mbit_s: float | None = None
    tx_mbit_s: float | None = None
    utilisation_percent: float | None = None
    pause: dict[str, float | None] = {}
    pause_by_priority: dict[str, list[float | None]] = {}
    queues: list[Document] = []


class _Interval(msgspec.Struct):
    """Between the reading at `at` and the one before it; `why`: what is wrong with all of it."""

    switch: str
    at: str | None
    why: str | None
    rows: list[_Row]
    within: float = 0
    from_: str | None = msgspec.field(default=None, name="from")


#: Bytes of one switch's readings that are judged: LARGEST of gzip, in which such text is a tenth.
READINGS_MAX = 10 * LARGEST
#: What samples.jq has to know of a port.
PORT = ("host", "port", "speed_gbit_s")

_reading = msgspec.json.Decoder(_Reading)
_interval = msgspec.json.Decoder(_Interval)


# ---- readings ------------------------------------------------------------------------------------


def _lines(files: RawFiles, path: str) -> Iterator[bytes]:
    """Readings as JSON; `null` for what is none, such as a line that was cut off or the rest."""
    file = files.stream(path)
    if file is None:
        return
    with file, gzip.open(file) as lines:
        try:
            while line := lines.readline(LARGEST):
                if lines.tell() > READINGS_MAX:
                    raise EOFError
                try:
                    yield encode(_reading.decode(line))
                except UNREADABLE:
                    yield b"null"
        except (OSError, EOFError, zlib.error):
            yield b"null"


def _intervals(
    files: RawFiles, run: str, switches: Iterable[Document]
) -> dict[str, list[_Interval]]:
    """Of each switch that was read, by its name. jq judges one at a time on each processor."""
    program = (JQ / "switches/samples.jq").read_text(encoding="utf-8")

    def of(row: Document) -> list[_Interval]:
        lines = list(_lines(files, f"raw/{row['name']}/samples.jsonl.gz"))
        if not lines:
            return []
        ports = [{key: port[key] for key in PORT} for port in row["rows"]]
        head = {"name": row["name"], "provider": row["provider"], "ports": ports}
        asked = b"\n".join([encode({"run": run}), encode(head), *lines])
        said = findings.answer(f"switch {row['name']}", program, asked)
        return [_interval.decode(line) for line in said.splitlines()]

    rows = list(switches)
    with ThreadPoolExecutor(os.cpu_count()) as beside:
        found = dict(zip((row["name"] for row in rows), beside.map(of, rows), strict=True))
    return {name: intervals for name, intervals in found.items() if intervals}


# ---- ranges --------------------------------------------------------------------------------------


class Flows:
    """When the flows of each host ran, by the clocks of the hosts."""

    def __init__(self, seen: pl.DataFrame) -> None:
        of = pl.col("flow").str.split("/").list
        times = {
            "begin": pl.min_horizontal("client_begin", "server_begin"),
            "end": pl.max_horizontal("client_end", "server_end"),
        }
        frame = (
            seen.with_columns(client=of.get(1), server=of.get(2), **times) if len(seen) else seen
        )
        self._frame = frame
        self._of_host: dict[str, pl.DataFrame] = {}
        self._span: tuple[float | None, float | None] = (
            frame.select(pl.min("begin"), pl.max("end")).row(0) if len(frame) else (None, None)
        )

    def share(self, times: Iterable[tuple[float, float]]) -> float | None:
        """Of the time from the first flow's begin to the last one's end; None where it is unknown.

        `times`: begins and ends, none of which overlap.
        """
        first, last = self._span
        if first is None or last is None or first >= last:
            return None
        within = sum(max(0.0, min(end, last) - max(begin, first)) for begin, end in times)
        return min(1, within / (last - first))

    def between(self, host: str, begin: float, end: float) -> list[str]:
        """The flows of a host that ran at any time in between."""
        if not len(self._frame):
            return []
        if host not in self._of_host:
            mine = (pl.col("client") == host) | (pl.col("server") == host)
            self._of_host[host] = self._frame.filter(mine)
        ran = (pl.col("begin") < end) & (pl.col("end") > begin)
        return self._of_host[host].filter(ran)["flow"].to_list()


#: Host, port, queue and its priority.
_Key = tuple[str, str, str | None, int | None]


class _Seen(msgspec.Struct):
    """A port or queue in one interval in which flows of its host ran."""

    begin: str
    end: str
    flows: list[str]
    figures: Mapping[str, Any]


#: Of a row, the figures that have a range.
FIGURES = (
    "utilisation_percent", "mbit_s", "packets_per_s", "drops", "ecn_marked", "pause_in",
    "pause_out",
)  # fmt: skip


def _range(values: Iterable[float | None]) -> Range | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {
        "min": rounded(min(known)),
        "median": rounded(median(known)),
        "max": rounded(max(known)),
    }


def _pauses(row: _Row, priority: int | None) -> dict[str, float | None]:
    """Pause frames of a queue's priority; of a port all that it counts."""
    if priority is None:
        return {"pause_in": row.pause.get("rx"), "pause_out": row.pause.get("tx")}
    ways = (row.pause_by_priority.get(way) or [None] * 8 for way in ("rx", "tx"))
    return dict(zip(("pause_in", "pause_out"), (way[priority] for way in ways), strict=True))


def _figures(row: _Row) -> Iterator[tuple[str | None, int | None, Document]]:
    """Queue, priority and figures; the port's own first."""
    own = {"utilisation_percent": row.utilisation_percent, "mbit_s": row.tx_mbit_s}
    yield None, None, own | _pauses(row, None)
    for queue in row.queues:
        priority = queue["priority"]
        pauses = {} if priority is None else _pauses(row, priority)
        yield queue["queue"], priority, queue | pauses


def _peak(seen: list[_Seen]) -> Peak:
    """The interval that lost most; without a loss the busiest."""
    one = max(seen, key=lambda of: (of.figures.get("drops") or 0, of.figures.get("mbit_s") or 0))
    return {
        "begin": one.begin, "end": one.end, "flows": one.flows[:FLOWS_MAX], "of": len(one.flows),
    }  # fmt: skip


def _loaded(found: list[_Interval], flows: Flows) -> dict[_Key, list[_Seen]]:
    """What ports and queues carried in the intervals in which flows of their hosts ran."""
    loaded: dict[_Key, list[_Seen]] = {}
    for one in found:
        begin, end = moment(one.from_), moment(one.at)
        if begin is None or end is None:
            continue
        for port in one.rows:
            ran = flows.between(port.host, begin, end)
            for queue, priority, figures in _figures(port) if ran else ():
                if any(figures.get(name) is not None for name in FIGURES):
                    key = port.host, port.port, queue, priority
                    seen = _Seen(str(one.from_), str(one.at), ran, figures)
                    loaded.setdefault(key, []).append(seen)
    return loaded


def _row(key: _Key, seen: list[_Seen]) -> DuringRow:
    host, port, queue, priority = key
    figures = {name: _range(one.figures.get(name) for one in seen) for name in FIGURES}
    return {
        "host": host, "port": port, "queue": queue, "priority": priority,
        "intervals": len(seen), "figures": figures, "peak": _peak(seen),
    }  # fmt: skip


def _during(found: list[_Interval], flows: Flows) -> During:
    marks: list[Mark] = [
        {"at": one.at, "port": None, "why": one.why} for one in found if one.why is not None
    ]
    marks += [
        {"at": one.at, "port": port.port, "why": port.why}
        for one in found
        for port in one.rows
        if port.why is not None
    ]
    measured = [one for one in found if any(port.pause for port in one.rows)]
    times = [(moment(one.from_), moment(one.at)) for one in found]
    covered = flows.share((begin, end) for begin, end in times if begin and end)
    return {
        "readings": len(found),
        "intervals": len(measured),
        "covered_percent": None if covered is None else rounded(100 * covered),
        "within_percent": rounded(100 * max((one.within for one in measured), default=0)),
        "marked": len(marks),
        "marks": sorted(marks, key=lambda one: one["at"] or "")[:MARKS_MAX],
        "rows": [_row(key, seen) for key, seen in _loaded(found, flows).items()],
    }


def during(
    files: RawFiles, run: str, switches: Iterable[Document], flows: Flows
) -> dict[str, During]:
    """Of each switch that was read while flows ran; `switches` as readings.jq made them.

    Raises PerchError where jq is missing, fails or does not end.
    """
    found = _intervals(files, run, switches)
    return {name: _during(intervals, flows) for name, intervals in found.items()}
