"""How many bits of a link forward error correction (FEC) corrected from one reading to a later one.

Of each link the worst time between two readings is kept: in the average of a run, hours that are
well hide a flow that was not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from perch.judge.counter_table import CORRECTED_BITS
from perch.judge.counters import Difference, difference
from perch.model.raw import Layout, Reading
from perch.plan.counted import table


def _latest_s() -> float:
    """Seconds by which the slowest driver counts late (perch/agent/counters.json)."""
    lags = [lag for one in table() for lag in (one["lag_ms"], *one.get("lag_ms_of", {}).values())]
    return float(max(lags)) / 1000


#: Two readings may hold what a link corrected in so many seconds before the first one, too. These
#: count as time of the link: in a shorter time, a counter that moves once a second would seem to
#: correct many times as much. In so many seconds of 10 Gb/s, CORRECTED_RATIO is 110,000 bits, so
#: that chance moves it by 0.3 %, and no least count is needed.
LATE_S = _latest_s()


def share(bits: float, seconds: float, gbit_s: float) -> float:
    """Of a link's bits those that were corrected, at least."""
    return bits / (gbit_s * 1e9 * (seconds + LATE_S))


class Window(NamedTuple):
    """Bits that a link corrected between two readings: within a flow, or between two."""

    bits: int
    seconds: float
    earlier: str
    later: str

    def is_worse(self, other: Window) -> bool:
        """Whatever the rate of the link."""
        return share(self.bits, self.seconds, 1) > share(other.bits, other.seconds, 1)


class Gap(NamedTuple):
    """Two readings that do not tell what a link corrected: within a flow, or between two."""

    counter: str
    earlier: str
    later: str


class Corrected(NamedTuple):
    """Of one link its worst window, and the first gap."""

    worst: Window | None = None
    gap: Gap | None = None

    def joined(self, later: Corrected) -> Corrected:
        worst = self.worst or later.worst
        if self.worst and later.worst and later.worst.is_worse(self.worst):
            worst = later.worst
        return Corrected(worst, self.gap or later.gap)


NOTHING = Corrected()


@lru_cache(maxsize=4096)
def _counting(of: Layout) -> list[tuple[str, str, int]]:
    """Interfaces that count it: the name of the counter, and its place among the values."""
    found = (
        (name, block, next((one for one in CORRECTED_BITS if one in block.known), None))
        for name, block in of.netdev.items()
    )
    return [(name, counter, block.place(counter)) for name, block, counter in found if counter]


def is_counted(earlier: Reading, later: Reading) -> bool:
    """Whether one of two readings has such a counter."""
    return bool(_counting(earlier.layout) or _counting(later.layout))


class Moved(NamedTuple):
    """Of one interface what the counter moved by."""

    device: str
    counter: str
    bits: Difference


def moved(earlier: Reading, later: Reading) -> Iterator[Moved]:
    """Of each interface that counts them in one of two readings."""
    if earlier.layout is not later.layout:
        yield from _moved_of_others(earlier, later)
        return
    counting = _counting(later.layout)
    if counting and later.steps_on(earlier):
        places, by = later.step.places, later.step.moved
        for device, counter, place in counting:
            yield Moved(device, counter, by[places.index(place)] if place in places else 0)
    elif counting:
        before, after = earlier.values, later.values
        for device, counter, place in counting:
            yield Moved(device, counter, difference(counter, before[place], after[place]))


def _moved_of_others(earlier: Reading, later: Reading) -> Iterator[Moved]:
    """The same of readings that have not the same counters."""
    before, after = _counts(earlier), _counts(later)
    for device in before | after:
        counter, early = before.get(device, ("", None))
        counter, late = after.get(device, (counter, None))
        yield Moved(device, counter, difference(counter, early, late))


def _counts(of: Reading) -> dict[str, tuple[str, str]]:
    values = of.values
    return {device: (counter, values[place]) for device, counter, place in _counting(of.layout)}
