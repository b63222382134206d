"""What the agents counted around a flow: readings before and after, as text, to differences."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from perch.judge.counter_table import FULL, NO_CLASS, STOPS_AT, TROUBLE, class_of
from perch.judge.readings import merged, values_as
from perch.model.raw import Block, Layout, Reading, Readings, Values

#: By how much a counter moved. None: it was reset, has wrapped, is full, or was read only once.
Difference = int | None


class Counts(msgspec.Struct, eq=False):
    """What a device counted, or the host itself. `moved`: its counters that do not stand still."""

    block: Block
    moved: dict[str, Difference]

    def __contains__(self, name: str) -> bool:
        return name in self.block.known

    def get(self, name: str) -> Difference:
        """None, too, where the device has no such counter."""
        if name in self.moved:
            return self.moved[name]
        return 0 if name in self.block.known else None


class Counted(msgspec.Struct, eq=False):
    """What one end counted over a flow, or a host while idle; equal to itself only.

    `layout`: of both readings together. `seconds` lie between them; None where their clock does not
    tell. `address` is the interface with the host's address, `route` the one towards the peer.
    `rdma` is by "NAME/PORT".
    """

    layout: Layout
    seconds: float | None
    address: str
    route: str
    host: Counts
    netdev: dict[str, Counts]
    rdma: dict[str, Counts]
    cxi: dict[str, Counts]


def counted(readings: Readings | None) -> Counted | None:
    """The differences between two readings; None where one of them is missing."""
    if readings is None or readings.before is None or readings.after is None:
        return None
    before, after = readings.before, readings.after
    layout = merged(before.layout, after.layout)
    counts = [Counts(block, {}) for block in layout.blocks]
    for (block, name), moved in _moved_between(layout, before, after):
        counts[block].moved[name] = moved
    devices = iter(counts[1:])
    return Counted(
        layout=layout,
        seconds=_seconds(before, after),
        address=readings.address_interface,
        route=readings.route_interface,
        host=counts[0],
        netdev={name: next(devices) for name in layout.netdev},
        rdma={name: next(devices) for name in layout.rdma},
        cxi={name: next(devices) for name in layout.cxi},
    )


def _seconds(before: Reading, after: Reading) -> float | None:
    begin, end = before.time, after.time
    return end - begin if begin is not None and end is not None and end > begin else None


def _moved_between(
    layout: Layout, before: Reading, after: Reading
) -> list[tuple[tuple[int, str], Difference]]:
    """The counters that moved, or do not tell, by their places in a layout of both readings."""
    places = layout.places
    if after.steps_on(before) and before.layout is after.layout:
        return [
            (places[at], moved)
            for at, moved in zip(after.step.places, after.step.moved, strict=True)
        ]
    both = zip(places, values_as(before, layout), values_as(after, layout), strict=True)
    found = ((place, difference(place[1], early, late)) for place, early, late in both)
    return [(place, moved) for place, moved in found if moved != 0]


def differences(before: Values, after: Values) -> dict[str, Difference]:
    """Of every counter that one of the readings has; None where the other lacks it."""
    return {name: difference(name, before.get(name), after.get(name)) for name in before | after}


#: Texts at which some counter is full.
_LAST = FULL | frozenset(STOPS_AT.values())


def difference(name: str, before: str | None, after: str | None) -> Difference:
    """By how much a counter moved; None where it does not tell.

    It was reset, has wrapped, is full, is no number, or was not read. Counters only grow: one that
    is read for the first time, at 0, has not moved.
    """
    if before is None or after is None:
        return 0 if after == "0" else None
    if after in _LAST and (after in FULL or STOPS_AT.get(name) == after):
        return None
    # decimal digits of at most 64 bits
    if len(after) > 20 or len(before) > 20 or not (before.isdigit() and after.isdigit()):
        return None
    if not (before.isascii() and after.isascii()):
        return None
    moved = int(after) - int(before)
    return moved if moved >= 0 else None


def unflushed(errors: Difference, flushed: Difference) -> Difference:
    """Of completions with errors (FLUSHED_OF) those that no queue pair flushed as it ended.

    A driver may count both a moment apart, so that more may be flushed.
    """
    return None if errors is None or flushed is None else max(errors - flushed, 0)


_DOT_OR_SPACE = str.maketrans(". ", "__")


def as_recorded(side: Counted | None, *, volumes: bool) -> dict[str, Any]:
    """One end of `Record.counters`: the host's counters by name, and for each device what moved.

    volumes: with its bytes and packets, too; without them no device that counted nothing else.
    """
    if side is None:
        return {}
    recorded: dict[str, Any] = {name: side.host.get(name) for name in side.host.block.names}
    for devices in (side.netdev, side.rdma, side.cxi):
        for name, counts in devices.items():
            moved = counts.moved
            if not volumes:
                known = classes(counts.block)
                if moved.keys().isdisjoint(known):
                    continue
                moved = {name: n for name, n in moved.items() if name in known}
            recorded[_key(name)] = moved
    return recorded


@lru_cache(maxsize=4096)
def _key(device: str) -> str:
    return device.translate(_DOT_OR_SPACE)


@lru_cache(maxsize=4096)
def classes(block: Block) -> dict[str, str]:
    """Of the counters of a device those that have a class, with it."""
    found = ((name, class_of(name)) for name in block.names)
    return {name: kind for name, kind in found if kind != NO_CLASS}


_trouble = re.compile(TROUBLE, re.IGNORECASE)


@lru_cache(maxsize=4096)
def is_trouble(name: str) -> bool:
    """Whether a counter of this name stands still on a healthy path."""
    return _trouble.search(name) is not None
