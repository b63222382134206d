"""What views need of records beside their columns, in one pass over records.jsonl.

Intervals (anomalies, the course of a bandwidth), counters that should stand still, and histograms.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from perch.judge.counters import is_trouble
from perch.model.record import ROLES, Interval, Number
from perch.views.inputs import RECORDS

#: Fewer intervals have no course.
LEAST_INTERVALS = 3
#: An interval below this share of its flow's average is an anomaly. Source: site policy; the
#: verdict has limits of its own.
DIP = 0.8
#: Points of one line of a chart.
POINTS_MAX = 200

#: Histograms that are decoded together.
BATCH = 1024
ENCODING = "hdr-v2-zlib-base64"


class _Params(msgspec.Struct):
    size_bytes: int | None = None


class _Bandwidth(msgspec.Struct):
    gbit_s: Number | None = None


class _Histogram(msgspec.Struct):
    encoding: str
    data: str


class _Side(msgspec.Struct):
    host: str | None = None


class _Path(msgspec.Struct):
    state: str = ""


class _Record(msgspec.Struct, gc=False):
    """The keys of a record that are read here."""

    flow: str
    test: str
    status: str
    client: _Side
    server: _Side
    kind: str | None = None
    definition: str | None = None
    backend: str | None = None
    started: str | None = None
    params: _Params | None = None
    bandwidth: _Bandwidth | None = None
    intervals: list[Interval] = []
    histogram: _Histogram | None = None
    path: _Path | None = None
    counters: dict[str, dict[str, Any]] | None = None

    @property
    def size_bytes(self) -> int | None:
        return self.params.size_bytes if self.params else None


class Dip(msgspec.Struct):
    """A record with intervals far below its average: how many, and the lowest."""

    test: str
    flow: str
    size_bytes: int | None
    started: str | None
    intervals: int
    start_s: Number
    gbit_s: Number
    average: Number


class Course(msgspec.Struct):
    """A flow's bandwidth over time: seconds and Gb/s. `rank`: its lowest against its average."""

    rank: float
    points: list[tuple[Number, Number]]


class Moved(msgspec.Struct):
    total: float = 0
    flows: int = 0

    def add(self, count: float) -> None:
        self.total += count
        self.flows += 1


class Details(msgspec.Struct):
    """What the pass found.

    dips: in the run's order. courses: of each test the flow with the deepest fall. moved: by test,
    role and counter, of flows with a path. trouble: by host, device and counter. distributions: of
    each test its merged histograms at the smallest size, by place.
    """

    dips: list[Dip] = []
    courses: dict[str, Course] = {}
    moved: dict[tuple[str, str, str], Moved] = {}
    trouble: dict[tuple[str, str, str], Moved] = {}
    distributions: dict[str, Any] = {}


_decoder = msgspec.json.Decoder(_Record)


# ---- intervals -----------------------------------------------------------------------------------


def _dip(record: _Record, average: Number) -> Dip | None:
    first = record.intervals[0]
    # the last interval may be a short one
    least = ((first.end_s or 0) - (first.start_s or 0)) / 2
    low = [
        (one.gbit_s, one.start_s or 0)
        for one in record.intervals
        if one.gbit_s is not None
        and one.gbit_s < DIP * average
        and (one.end_s or 0) - (one.start_s or 0) >= least
    ]
    if not low:
        return None
    gbit_s, start_s = min(low, key=lambda one: one[0])
    return Dip(
        record.test, record.flow, record.size_bytes, record.started, len(low), start_s, gbit_s,
        average,
    )  # fmt: skip


def thinned(points: list[tuple[Number, Number]]) -> list[tuple[Number, Number]]:
    """Of neighbours the lowest stays, where there are more than can be drawn."""
    each = -(-len(points) // POINTS_MAX)
    if each <= 1:
        return points
    groups = (points[i : i + each] for i in range(0, len(points), each))
    return [min(group, key=lambda one: one[1]) for group in groups]


def _add_intervals(found: Details, record: _Record) -> None:
    average = record.bandwidth.gbit_s if record.bandwidth else None
    if average is None or len(record.intervals) < LEAST_INTERVALS:
        return
    dip = _dip(record, average)
    if dip:
        found.dips.append(dip)
    points = [(one.end_s or 0, one.gbit_s) for one in record.intervals if one.gbit_s is not None]
    measured = record.kind == "bandwidth" and record.status == "ok" and average > 0
    if not measured or len(points) < LEAST_INTERVALS:
        return
    rank = min(rate for _, rate in points) / average
    known = found.courses.get(record.test)
    if known is None or rank < known.rank:
        found.courses[record.test] = Course(rank, thinned(points))


# ---- counters ------------------------------------------------------------------------------------


class _Names:
    """Which counters should stand still, asked once a name."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def is_trouble(self, name: str) -> bool:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = is_trouble(name)
        return known


def _counts(counters: dict[str, Any]) -> Iterable[tuple[str, str, Any]]:
    """Device ("": the host itself), name and count."""
    for name, count in counters.items():
        if isinstance(count, dict):
            for counter, of_device in count.items():
                yield name, counter, of_device
        else:
            yield "", name, count


def _add_counters(found: Details, record: _Record, names: _Names) -> None:
    for role in ROLES:
        host = (record.client if role == "client" else record.server).host or ""
        for device, name, count in _counts((record.counters or {}).get(role) or {}):
            if count and count > 0 and names.is_trouble(name):
                found.trouble.setdefault((host, device, name), Moved()).add(count)
                if record.path:
                    counter = f"{device} {name}" if device else name
                    found.moved.setdefault((record.test, role, counter), Moved()).add(count)


# ---- histograms ----------------------------------------------------------------------------------


class _Histograms:
    """Merges histograms test by test without keeping their texts."""

    def __init__(self, merged: dict[str, Any]) -> None:
        self._merged = merged
        self._texts: dict[str, list[str]] = {}

    def add(self, test: str, text: str) -> None:
        texts = self._texts.setdefault(test, [])
        texts.append(text)
        if len(texts) == BATCH:
            self._merge(test)

    def _merge(self, test: str) -> None:
        from perch.model.histogram import decode

        counts = decode(self._texts.pop(test)).merged()
        self._merged[test] = self._merged.get(test, 0) + counts

    def finish(self) -> None:
        for test in list(self._texts):
            self._merge(test)


def _is_distribution(record: _Record, size: int) -> bool:
    """A histogram of round trips at the size whose distribution is drawn."""
    return (
        record.histogram is not None
        and record.status == "ok"
        and record.kind == "latency"
        and record.definition == "half_round_trip"
        and record.backend != "null"
        and record.size_bytes == size
        and record.histogram.encoding == ENCODING
    )


# ---- all -----------------------------------------------------------------------------------------


def read(root: Path, latency_size: int) -> Details:
    """Reads DIR/records.jsonl, which was just judged or is known to be whole."""
    found = Details()
    names, histograms = _Names(), _Histograms(found.distributions)
    flow = None
    with (root / RECORDS).open("rb") as file:
        for line in file:
            record = _decoder.decode(line)
            if record.intervals:
                _add_intervals(found, record)
            # a flow's counters stand on all of its records
            if record.counters and record.flow != flow:
                _add_counters(found, record, names)
            flow = record.flow
            if record.histogram and _is_distribution(record, latency_size):
                histograms.add(record.test, record.histogram.data)
    histograms.finish()
    return found
