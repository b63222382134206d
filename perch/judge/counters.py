"""What the agents counted around a flow: readings before and after, as text, to differences."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

import msgspec

from perch.judge.counter_table import FULL, STOPS_AT, TROUBLE
from perch.judge.readings import merged, values_as
from perch.model.raw import Block, Layout, Reading, Readings, Values

#: Differences by name. None: the counter was reset, has wrapped, is full, or was read only once.
Counts = dict[str, int | None]


class PortCounts(msgspec.Struct):
    """Of an RDMA port or a Cassini NIC; `netdev` is the interface under or over it, or empty."""

    netdev: str
    counters: Counts


class Counted(msgspec.Struct, eq=False):
    """What one end counted over a flow, or a host while idle; equal to itself only.

    `seconds` lie between the two readings; None where their clock does not tell. `address` is the
    interface with the host's address, `route` the one towards the peer. `rdma` is by "NAME/PORT".
    """

    seconds: float | None
    address: str
    route: str
    host: Counts
    netdev: dict[str, Counts]
    rdma: dict[str, PortCounts]
    cxi: dict[str, PortCounts]


def counted(readings: Readings | None) -> Counted | None:
    """The differences between two readings; None where one of them is missing."""
    if readings is None or readings.before is None or readings.after is None:
        return None
    before, after = readings.before, readings.after
    layout = merged(before.layout, after.layout)
    changed = _moved_between(layout, before, after)

    def of(block: Block) -> Counts:
        counts = _still(block.names).copy()
        if changed:
            first = block.first
            end = first + len(block.names)
            for at, moved in changed:
                if first <= at < end:
                    counts[block.names[at - first]] = moved
        return counts

    return Counted(
        seconds=_seconds(before, after),
        address=readings.address_interface,
        route=readings.route_interface,
        host=of(layout.host),
        netdev={name: of(block) for name, block in layout.netdev.items()},
        rdma={key: PortCounts(one.netdev, of(one)) for key, one in layout.rdma.items()},
        cxi={key: PortCounts(one.netdev, of(one)) for key, one in layout.cxi.items()},
    )


@lru_cache(maxsize=4096)
def _still(names: tuple[str, ...]) -> Counts:
    """Counters of these names that have not moved: to be copied."""
    return dict.fromkeys(names, 0)


def moment(text: str) -> float | None:
    """Seconds since the epoch of a reading's `time_s`."""
    try:
        time = float(text)
    except ValueError:
        return None
    return time if math.isfinite(time) else None


def _seconds(before: Reading, after: Reading) -> float | None:
    begin, end = moment(before.time_s), moment(after.time_s)
    return end - begin if begin is not None and end is not None and end > begin else None


def _moved_between(layout: Layout, before: Reading, after: Reading) -> list[tuple[int, int | None]]:
    """The counters that moved, or do not tell, by their places in a layout of both readings."""
    alike = before.layout is layout and after.layout is layout
    if alike and before.plain and after.plain:
        return [
            (at, moved if (moved := int(late) - int(early)) >= 0 else None)
            for at, (early, late) in enumerate(zip(before.values, after.values, strict=True))
            if early != late
        ]
    names = [name for block in layout.blocks for name in block.names]
    both = zip(names, values_as(before, layout), values_as(after, layout), strict=True)
    found = enumerate(difference(name, early, late) for name, early, late in both)
    return [(at, moved) for at, moved in found if moved != 0]


def differences(before: Values, after: Values) -> Counts:
    """Of every counter that one of the readings has; None where the other lacks it."""
    return {name: difference(name, before.get(name), after.get(name)) for name in before | after}


#: Texts at which some counter is full.
_LAST = FULL | frozenset(STOPS_AT.values())


def difference(name: str, before: str | None, after: str | None) -> int | None:
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


_DOT_OR_SPACE = str.maketrans(". ", "__")


def as_recorded(counts: Counted | None) -> dict[str, Any]:
    """One end of `Record.counters`: the host's counters by name, and for each device what moved."""
    if counts is None:
        return {}
    recorded: dict[str, Any] = dict(counts.host)
    for name, table in counts.netdev.items():
        recorded[name.translate(_DOT_OR_SPACE)] = _moved(table)
    for ports in (counts.rdma, counts.cxi):
        for name, port in ports.items():
            recorded[name.translate(_DOT_OR_SPACE)] = _moved(port.counters)
    return recorded


def _moved(counts: Counts) -> Counts:
    return {name: n for name, n in counts.items() if n != 0}


_trouble = re.compile(TROUBLE, re.IGNORECASE)


@lru_cache(maxsize=4096)
def is_trouble(name: str) -> bool:
    """Whether a counter of this name stands still on a healthy path."""
    return _trouble.search(name) is not None
