"""intervals.jsonl -> what is drawn of it. Times are milliseconds since the soak began."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from perch.model.record import Number
from perch.views import soak_chosen as chosen
from perch.views.words import Figure


class IntervalRow(NamedTuple):
    """`way`: of soak_chosen. `mean`, `low` (its lowest 0.1 s): Gb/s. `p50`, `p99`: us."""

    way: str
    start: int
    end: int
    mean: Figure
    low: Figure
    p50: Figure
    p99: Figure


class Silence(NamedTuple):
    """A gap, or a stall that is an anomaly; the verdict has the first ones only."""

    test: str
    kind: str
    start: int
    end: int


class Memory(NamedTuple):
    """A process that is drawn; `start` tells it from one with the same number."""

    host: str
    role: str
    flow: str | None
    pid: int
    start: str
    time: int
    bytes: Number


class Heat(NamedTuple):
    """A sensor; `name` is None for the hottest of those that are not drawn."""

    host: str
    name: str | None
    time: int
    celsius: Number


class Count(NamedTuple):
    """Counters of a class that moved between two samples."""

    host: str
    name: str
    time: int
    number: Number


class Rows(msgspec.Struct):
    """`intervals` by test. `fault`: why there are none."""

    intervals: dict[str, list[IntervalRow]] = {}
    silences: list[Silence] = []
    memory: list[Memory] = []
    heat: list[Heat] = []
    counts: list[Count] = []
    fault: str = ""

    @property
    def last(self) -> int:
        """The last moment that anything is known of."""
        ends = [row.end for rows in self.intervals.values() for row in rows]
        ends += [row.end for row in self.silences]
        ends += [one.time for rows in (self.memory, self.heat, self.counts) for one in rows]
        return max(ends, default=0)


# ---- the lines -----------------------------------------------------------------------------------


class _Bandwidth(msgspec.Struct):
    gbit_s: Number | None = None
    min_interval_gbit_s: Number | None = None


class _Latency(msgspec.Struct):
    p50: Number | None = None
    p99: Number | None = None


class _Temperature(msgspec.Struct):
    name: str | None = None
    celsius: Number | None = None


class _Line(msgspec.Struct, gc=False):
    """The keys of all kinds of lines that are read here."""

    kind: str = ""
    test: str = ""
    flow: str | None = None
    soak_s: Number | None = None
    start_s: Number | None = None
    end_s: Number | None = None
    bandwidth: _Bandwidth | None = None
    latency_us: _Latency | None = None
    host: str = ""
    processes: list[dict[str, Any]] | None = None
    temperatures: list[_Temperature] | None = None
    events: dict[str, Number] | None = None


_decoder = msgspec.json.Decoder(_Line)
_NO_BANDWIDTH, _NO_LATENCY = _Bandwidth(), _Latency()


def _ms(seconds: float) -> int:
    return math.floor(seconds * 1000)


class _Reader:
    """Reads lines one by one; soak is the verdict's."""

    def __init__(self, soak: Mapping[str, Any]) -> None:
        self.rows = Rows()
        self._processes = chosen.processes(soak)
        self._sensors = chosen.sensors(soak)
        self._limits = {flow["flow"]: flow.get("stall_limit_s") for flow in soak.get("flows") or []}

    def add(self, line: _Line) -> None:
        if line.kind == "sample":
            self._add_sample(line)
            return
        soak_s, start_s, end_s = line.soak_s, line.start_s, line.end_s
        if soak_s is None or start_s is None or end_s is None:
            return
        if line.kind == "interval":
            self._add_interval(line, _ms(soak_s + start_s), _ms(soak_s + end_s))
        elif line.kind == "gap" or (
            line.kind == "stall"
            and (limit := self._limits.get(line.flow)) is not None
            and end_s - start_s > limit
        ):
            silence = Silence(line.test, line.kind, _ms(soak_s + start_s), _ms(soak_s + end_s))
            self.rows.silences.append(silence)

    def _add_interval(self, line: _Line, start: int, end: int) -> None:
        bandwidth = line.bandwidth or _NO_BANDWIDTH
        latency = line.latency_us or _NO_LATENCY
        self.rows.intervals.setdefault(line.test, []).append(
            IntervalRow(
                chosen.way(line.flow), start, end, bandwidth.gbit_s,
                bandwidth.min_interval_gbit_s, latency.p50, latency.p99,
            )
        )  # fmt: skip

    def _add_sample(self, line: _Line) -> None:
        if line.end_s is None:
            return
        at, host = _ms(line.end_s), line.host
        for one in line.processes or []:
            size = one.get("resident_bytes")
            if size is not None and chosen.process(host, one) in self._processes:
                begun = str(one.get("start"))
                self.rows.memory.append(
                    Memory(host, one["role"], one.get("flow"), one["pid"], begun, at, size)
                )
        others = []
        for heat in line.temperatures or []:
            if heat.celsius is None:
                continue
            if (host, heat.name or "") in self._sensors:
                self.rows.heat.append(Heat(host, heat.name, at, heat.celsius))
            else:
                others.append(heat.celsius)
        if others:
            self.rows.heat.append(Heat(host, None, at, max(others)))
        for name, number in (line.events or {}).items():
            if number > 0:
                self.rows.counts.append(Count(host, name, at, number))


def read(path: Path, soak: Mapping[str, Any]) -> Rows:
    """All rows; none where the file is missing or damaged, so that no part stands for the whole."""
    reader = _Reader(soak)
    try:
        with path.open("rb") as file:
            for line in file:
                reader.add(_decoder.decode(line))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError):
        return Rows(
            fault="intervals.jsonl is missing or damaged, so nothing is drawn over time; "
            "judge the run again"
        )
    return reader.rows
