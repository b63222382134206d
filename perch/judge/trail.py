"""The readings of each host's counters, one after another: what moved between its flows.

A flow's counters say nothing of the time before and after it, and a link that goes down between two
flows is as bad as one within. Pieces of a plan are followed one by one, and joined in its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from perch.judge.counter_table import CLASS_OF, NO_CLASS, SENT
from perch.judge.counters import difference, moment
from perch.judge.events import class_of
from perch.model.moments import CLOSE_S
from perch.model.raw import Reading, Readings, Values

#: In the place of a flow: the time in which an agent measures nothing, before its first one.
IDLE = ""


class Mark(NamedTuple):
    """One device's counters at one moment. `flow`: before or after which they were read."""

    flow: str
    time_s: float
    counters: Values


class Step(NamedTuple):
    """What one counter says of the time between two flows of a host.

    `moved`: by how much; None where it does not tell, and `why`. `packets`: that the
    device sent meanwhile, None where it does not count them.
    """

    host: str
    device: str
    earlier: str
    later: str
    seconds: float
    kind: str
    counter: str
    moved: int | None
    packets: int | None
    why: str


class End(NamedTuple):
    """What one end of a flow read."""

    host: str
    flow: str
    readings: Readings


def _marks(flow: str, reading: Reading | None) -> dict[str, Mark]:
    """By device; none where the reading does not say when it was made."""
    time = moment(reading.time_s) if reading else None
    if reading is None or time is None:
        return {}
    marks = {name: Mark(flow, time, counters) for name, counters in reading.netdev.items()}
    for ports in (reading.rdma, reading.cxi):
        for name, port in ports.items():
            marks[name] = Mark(flow, time, port.counters)
    return marks


def _earliest(known: dict[str, Mark], marks: Mapping[str, Mark]) -> None:
    for device, mark in marks.items():
        if device not in known or mark.time_s < known[device].time_s:
            known[device] = mark


def _latest(known: dict[str, Mark], marks: Mapping[str, Mark]) -> None:
    for device, mark in marks.items():
        if device not in known or mark.time_s > known[device].time_s:
            known[device] = mark


class Trail(msgspec.Struct):
    """What was read in one piece of a plan, or in all of it.

    `first`, `last`: the marks of each host's devices by name. `intervals`: how many were compared.
    `hardware`: of each device of a host that carried a flow, whether one was of hardware.
    """

    first: dict[str, dict[str, Mark]] = {}
    last: dict[str, dict[str, Mark]] = {}
    intervals: int = 0
    steps: list[Step] = []
    hardware: dict[str, dict[str, bool]] = {}

    def read(self, ends: Iterable[End]) -> None:
        """Goes on with the ends of one round.

        Flows of a round that share a host run at the same time: what moved from the first reading
        of all to the last one was counted within a flow.
        """
        begins: dict[str, dict[str, Mark]] = {}
        over: dict[str, dict[str, Mark]] = {}
        for host, flow, readings in ends:
            begin, end = _marks(flow, readings.before), _marks(flow, readings.after)
            if host in begins:
                _earliest(begins[host], begin)
                _latest(over[host], end)
            else:
                begins[host], over[host] = begin, end
        for host, marks in begins.items():
            self._meet(host, marks)
            self.last.setdefault(host, {}).update(over[host])

    def _meet(self, host: str, later: Mapping[str, Mark]) -> None:
        last, first = self.last.setdefault(host, {}), self.first.setdefault(host, {})
        for device, mark in later.items():
            known = last.get(device)
            if known is not None:
                self.intervals += 1
                # most devices stand still between two flows
                if known.counters != mark.counters or known.time_s >= mark.time_s:
                    self.steps += _steps(host, device, known, mark)
            elif device not in first:
                first[device] = mark

    def carried(self, host: str, devices: Iterable[str], *, hardware: bool) -> None:
        """These devices carried a flow."""
        known = self.hardware.setdefault(host, {})
        for device in devices:
            known[device] = hardware or known.get(device, False)

    def follow(self, piece: Trail) -> None:
        """Goes on with the next piece, whose marks are then this one's."""
        for host, marks in piece.first.items():
            self._meet(host, marks)
        for host, marks in piece.last.items():
            self.last.setdefault(host, {}).update(marks)
        for host, devices in piece.hardware.items():
            for device, hardware in devices.items():
                self.carried(host, [device], hardware=hardware)
        self.intervals += piece.intervals
        self.steps += piece.steps


def of_idle(idle: Mapping[str, Readings | None]) -> Trail:
    """The trail before the first flow. `idle`: the readings of each host's idle time."""
    trail = Trail()
    for host, readings in idle.items():
        if readings is not None:
            trail.last[host] = _marks(IDLE, readings.before)
            trail._meet(host, _marks(IDLE, readings.after))
            trail.last[host] |= _marks(IDLE, readings.after)
    return trail


# ---- one device between two flows ----------------------------------------------------------------

#: Counters that go on between flows, too, as other programs send: of those only a reset counts.
_WORK = frozenset(name for name, kind in CLASS_OF.items() if kind == NO_CLASS)


def _steps(host: str, device: str, earlier: Mark, later: Mark) -> Iterable[Step]:
    before, after = earlier.counters, later.counters
    seconds = round(later.time_s - earlier.time_s, 6)
    where = host, device, earlier.flow, later.flow, seconds
    if seconds == 0 or seconds < -CLOSE_S:
        why = "were read at the same time" if seconds == 0 else "were read before"
        yield Step(*where, NO_CLASS, "", None, None, why)
        return
    changed = [name for name, late in after.items() if before.get(name) != late]
    for name in changed:
        early, late = before.get(name), after[name]
        if early is not None and name in _WORK and _grew(early, late):
            continue
        kind, moved = class_of(name), difference(name, early, late)
        if moved is None:
            why = "is missing before" if early is None else "went back, or is full"
            yield Step(*where, kind, name, None, None, why)
        elif moved and kind != NO_CLASS:
            yield Step(*where, kind, name, moved, _sent(before, after), "")
    if len(before) > len(after) or None in map(before.get, changed):
        for name in before:
            if name not in after:
                yield Step(*where, class_of(name), name, None, None, "is missing later")


def _grew(early: str, late: str) -> bool:
    return early < late if len(early) == len(late) else len(early) < len(late)


def _sent(before: Values, after: Values) -> int | None:
    """The packets that a port sent, as perch.judge.packets has it."""
    for name in SENT:
        if name in before and name in after:
            return difference(name, before[name], after[name])
    return None
