"""The readings of each host's counters, one after another: what moved between its flows.

A flow's counters say nothing of the time before and after it, and a link that goes down between two
flows is as bad as one within. Pieces of a plan are followed one by one, and joined in its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from perch.judge.corrected import NOTHING, Corrected, Gap, Window, is_counted, moved
from perch.judge.counter_table import FLUSHED_OF, NO_CLASS, SENT, class_of
from perch.judge.counters import difference, unflushed
from perch.judge.readings import WORK
from perch.model.figures import rounded
from perch.model.moments import CLOSE_S, SLEW
from perch.model.raw import Reading, Readings, Values

#: In the place of a flow: the time in which an agent measures nothing, before its first one.
IDLE = ""


class Mark(NamedTuple):
    """A host's counters at one moment. `flow`: before or after which they were read."""

    flow: str
    time_s: float
    reading: Reading


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


def _mark(flow: str, reading: Reading | None) -> Mark | None:
    """None where the reading does not say when it was made."""
    if reading is None or reading.time is None:
        return None
    return Mark(flow, reading.time, reading)


class Trail(msgspec.Struct):
    """What was read in one piece of a plan, or in all of it.

    `first`, `last`: marks of each host, so that each device is in one: its first one, its last one.
    Each begins with the host's own first or last one.
    Most hosts read the same devices each time, and have one mark. `intervals`: how many were
    compared. `hardware`: of each device of a host that carried a flow, whether one was of hardware.
    `corrected`: of each interface of a host what FEC corrected from one reading to the next.
    """

    first: dict[str, list[Mark]] = {}
    last: dict[str, list[Mark]] = {}
    intervals: int = 0
    steps: list[Step] = []
    hardware: dict[str, dict[str, bool]] = {}
    corrected: dict[str, dict[str, Corrected]] = {}

    def read(self, ends: Iterable[End]) -> None:
        """Goes on with the ends of one round.

        Flows of a round that share a host run at the same time: what moved from the first reading
        of all to the last one was counted within a flow.
        """
        hosts: dict[str, list[End]] = {}
        for end in ends:
            hosts.setdefault(end.host, []).append(end)
        for host, of_host in hosts.items():
            if len(of_host) == 1 and self.goes_on(host, of_host[0].flow, of_host[0].readings):
                continue
            begins = [_mark(one.flow, one.readings.before) for one in of_host]
            if marks := [mark for mark in begins if mark is not None]:
                self._meet(host, sorted(marks, key=_time))
            over = [_mark(one.flow, one.readings.after) for one in of_host]
            for earlier, later in zip(begins, over, strict=True):
                if earlier is not None and later is not None:
                    self._correct(host, earlier, later)
            if marks := [mark for mark in over if mark is not None]:
                self._leave(host, sorted(marks, key=_time, reverse=True))

    def goes_on(self, host: str, flow: str, readings: Readings) -> bool:
        """Whether an end read the devices that its host's last one did, which is then this one."""
        last, before, after = self.last.get(host), readings.before, readings.after
        if last is None or len(last) != 1 or before is None or after is None:
            return False
        if before.time is None or after.time is None:
            return False
        if not last[0].reading.layout is before.layout is after.layout:
            return False
        begin, end = Mark(flow, before.time, before), Mark(flow, after.time, after)
        self._compare(host, last[0], begin)
        self._correct(host, begin, end)
        last[0] = end
        return True

    def _meet(self, host: str, later: Sequence[Mark]) -> None:
        """Compares each device's first mark of these with its last one."""
        last, first = self.last.get(host, []), self.first.setdefault(host, [])
        if len(later) == len(last) == 1 and later[0].reading.layout is last[0].reading.layout:
            self._compare(host, last[0], later[0])
            return
        if last:
            self.steps += _vanished(host, last[0], later[0])
        seen: set[str] = set()
        for mark in later:
            new = not first
            for device in mark.reading.layout.devices:
                if device in seen:
                    continue
                known = next((one for one in last if device in one.reading.layout.devices), None)
                if known is not None:
                    self._compare_device(host, device, known, mark)
                elif not any(device in one.reading.layout.devices for one in first):
                    new = True
            seen |= mark.reading.layout.devices.keys()
            if new:
                first.append(mark)

    def _leave(self, host: str, marks: Sequence[Mark]) -> None:
        """These are the last marks of a host, the latest first."""
        last = self.last.get(host, [])
        if len(marks) == len(last) == 1 and marks[0].reading.layout is last[0].reading.layout:
            last[0] = marks[0]
            return
        kept: list[Mark] = []
        seen: set[str] = set()
        for mark in (*marks, *last):
            devices = mark.reading.layout.devices.keys()
            if not kept or not devices <= seen:
                kept.append(mark)
                seen |= devices
        self.last[host] = kept

    def _compare(self, host: str, known: Mark, mark: Mark) -> None:
        """Two readings of the same devices; most stand still between two flows, or grow."""
        devices = mark.reading.layout.devices
        if _is_same(known, mark):
            return
        before, after = known.reading, mark.reading
        if after.steps_on(before) and after.step.is_work and not _untimely(known, mark):
            self.intervals += len(devices)
            self._correct(host, known, mark)
            return
        for device in devices:
            self._compare_device(host, device, known, mark)

    def _compare_device(self, host: str, device: str, known: Mark, mark: Mark) -> None:
        if _is_same(known, mark):
            return
        self.intervals += 1
        if device in mark.reading.layout.netdev:
            self._correct(host, known, mark, device)
        before, after = _counters(known, device), _counters(mark, device)
        if before != after or _untimely(known, mark):
            self.steps += _steps(host, device, known, mark)

    def _correct(self, host: str, earlier: Mark, later: Mark, device: str | None = None) -> None:
        """What FEC corrected between two readings, of one device or of all.

        Readings that were not made one after the other tell nothing: other checks say so.
        """
        if not is_counted(earlier.reading, later.reading) or _untimely(earlier, later):
            return
        seconds = later.time_s - earlier.time_s
        known = self.corrected.setdefault(host, {})
        for one in moved(earlier.reading, later.reading):
            if device is None or one.device == device:
                where = earlier.flow, later.flow
                found = (
                    Corrected(gap=Gap(one.counter, *where))
                    if one.bits is None
                    else Corrected(Window(one.bits, seconds, *where))
                )
                known[one.device] = known.get(one.device, NOTHING).joined(found)

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
            self._leave(host, marks)
        for host, devices in piece.hardware.items():
            for device, hardware in devices.items():
                self.carried(host, [device], hardware=hardware)
        for host, devices_of in piece.corrected.items():
            known = self.corrected.setdefault(host, {})
            for device, found in devices_of.items():
                known[device] = known.get(device, NOTHING).joined(found)
        self.intervals += piece.intervals
        self.steps += piece.steps


def of_idle(idle: Mapping[str, Readings | None]) -> Trail:
    """The trail before the first flow. `idle`: the readings of each host's idle time."""
    trail = Trail()
    for host, readings in idle.items():
        if readings is not None:
            for reading in (readings.before, readings.after):
                mark = _mark(IDLE, reading)
                if mark is not None:
                    trail._meet(host, [mark])
                    trail._leave(host, [mark])
    return trail


# ---- one device between two flows ----------------------------------------------------------------


def _is_same(one: Mark, other: Mark) -> bool:
    """Whether they are one reading, which ended a flow and began the next: nothing lies between."""
    number = one.reading.number
    return number is not None and (number, one.time_s) == (other.reading.number, other.time_s)


def _time(mark: Mark) -> float:
    return mark.time_s


def _untimely(earlier: Mark, later: Mark) -> str:
    """Why a reading was not made after the one before it; "" where it was, as nearly all are.

    The wall clock may have been set by CLOSE_S meanwhile, and have slewed. The
    monotonic clock cannot be set; another agent may read after a boot: its readings begin at 1.
    """
    seconds = round(later.time_s - earlier.time_s, 6)
    if seconds == 0:
        return "were read at the same time"
    if seconds < -CLOSE_S:
        return "were read before"
    before, after = earlier.reading, later.reading
    if before.clock_ns is None or after.clock_ns is None:
        return ""
    if before.number is None or after.number is None or after.number <= before.number:
        return ""
    passed = (after.clock_ns - before.clock_ns) / 1e9
    if passed <= 0:
        return "were read before by the monotonic clock"
    if abs(seconds - passed) > CLOSE_S + SLEW * passed:
        return f"were read {rounded(passed)} s later by the monotonic clock"
    return ""


def _counters(mark: Mark, device: str) -> Values:
    return mark.reading.table(mark.reading.layout.devices[device])


def _vanished(host: str, earlier: Mark, later: Mark) -> Iterable[Step]:
    """Devices that the next reading lacks.

    An agent reads the same devices each time, and numbers its readings. Another agent, which
    repeats some flows, begins at 1 and may need fewer devices.
    """
    before, after = earlier.reading, later.reading
    if before.layout is after.layout or before.number is None or after.number is None:
        return
    if after.number > before.number:
        seconds = round(later.time_s - earlier.time_s, 6)
        for device in before.layout.devices:
            if device not in after.layout.devices:
                where = host, device, earlier.flow, later.flow, seconds
                yield Step(*where, NO_CLASS, "", None, None, "are missing later")


def _steps(host: str, device: str, earlier: Mark, later: Mark) -> Iterable[Step]:
    before, after = _counters(earlier, device), _counters(later, device)
    seconds = round(later.time_s - earlier.time_s, 6)
    where = host, device, earlier.flow, later.flow, seconds
    if why := _untimely(earlier, later):
        yield Step(*where, NO_CLASS, "", None, None, why)
        return
    changed = [name for name, late in after.items() if before.get(name) != late]
    for name in changed:
        early, late = before.get(name), after[name]
        if early is not None and name in WORK and _grew(early, late):
            continue
        kind, moved = class_of(name), difference(name, early, late)
        if moved and name in FLUSHED_OF:
            flushed = FLUSHED_OF[name]
            moved = unflushed(moved, difference(flushed, before.get(flushed), after.get(flushed)))
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
