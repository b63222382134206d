"""How late the counters of a NIC are, by the readings that follow a flow of its client."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import msgspec

from perch.judge.host_lines import FLOWS, SAMPLES, flow_line, names_of
from perch.judge.raw import UNREADABLE, RawFiles
from perch.model.raw import Layout
from perch.model.raw_lines import FlowLine, SampleLine

#: A counter is settled once it shows so much of what it counted in all: others' traffic, which goes
#: on, is smaller.
SETTLED = 0.999
#: Counts of a flow of which a thousandth is a count.
LEAST = 1000
#: Fewer readings after a flow do not follow it.
READINGS = 3

_sample = msgspec.json.Decoder(SampleLine)
_numbers = re.compile(r"[0-9]{1,20}( [0-9]{1,20})*")


class Lag(NamedTuple):
    """Milliseconds from the end of a client's process to the reading that showed the whole flow."""

    device: str
    counter: str
    ms: float


class _Reading(NamedTuple):
    layout: Layout
    line: SampleLine


def _readings(files: RawFiles, host: str) -> dict[int, _Reading]:
    """By their numbers; lines that cannot be used tell nothing."""
    found: dict[int, _Reading] = {}
    layout = None
    for text in files.read(f"raw/{host}/{SAMPLES}").splitlines():
        layout = names_of(text) or layout
        try:
            line = _sample.decode(text)
        except UNREADABLE:
            continue
        if layout is not None and _fits(layout, line.values):
            found[line.number] = _Reading(layout, line)
    return found


def _fits(layout: Layout, values: str) -> bool:
    return _numbers.fullmatch(values) is not None and values.count(" ") + 1 == len(layout.places)


def _clients(files: RawFiles, host: str) -> Iterator[tuple[FlowLine, int | None]]:
    """The ends of flows of a host's client, and the first reading that is of the next flow."""
    ends = map(flow_line, files.read(f"raw/{host}/{FLOWS}").splitlines())
    known = sorted((end for end in ends if end and end.samples), key=_first)
    rounds = [list(of_round) for _, of_round in groupby(known, _first)]
    for of_round, later in pairwise([*rounds, []]):
        for end in of_round:
            if end.role == "client" and end.ended_monotonic_ns:
                yield end, _first(later[0]) if later else None


def _first(end: FlowLine) -> int:
    return end.samples[0] if end.samples else 0


def _of_flow(before: _Reading, after: Sequence[_Reading], ended_ns: int) -> Iterator[Lag]:
    """Of the counters of devices that counted in the flow."""
    rows = [list(map(int, one.line.values.split())) for one in (before, *after)]
    for block in before.layout.blocks[1:]:
        for at, name in enumerate(block.names, block.first):
            moved = [row[at] - rows[0][at] for row in rows[1:]]
            if moved[-1] < LEAST:
                continue
            seen = next(n for n, by in enumerate(moved) if by >= SETTLED * moved[-1])
            yield Lag(block.name, name, (after[seen].line.monotonic_ns - ended_ns) / 1e6)


def lags(files: RawFiles, host: str) -> Iterator[Lag]:
    """Of every flow of this host's client that was followed."""
    readings = _readings(files, host)
    for end, later in _clients(files, host):
        ended_ns, first = end.ended_monotonic_ns or 0, _first(end)
        numbers = range(first + 1, later if later is not None else max(readings, default=0) + 1)
        after = [readings[n] for n in numbers if n in readings]
        after = [one for one in after if one.line.monotonic_ns >= ended_ns]
        before = readings.get(first)
        if before is None or len(after) < READINGS:
            continue
        if all(one.layout is before.layout for one in after):
            yield from _of_flow(before, after, ended_ns)
