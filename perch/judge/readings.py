"""Readings of counters: names once for many, values as text in their order."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache

from perch.judge.counter_table import FULL, STOPS_AT
from perch.model.raw import Block, Layout, Reading, Readings, Tables, TablesAround

#: Numbers of at most 64 bits, which have 20 digits, with a space between them.
_numbers = re.compile(r"(?:[0-9]{1,20}+ )*+[0-9]{1,20}+")

#: The names of each table: of the host, and by device with the interface beside it.
Names = tuple[str, ...]
_Named = tuple[tuple[str, str, Names], ...]


@lru_cache(maxsize=4096)
def layout(host: Names, netdev: _Named, rdma: _Named, cxi: _Named) -> Layout:
    """A layout of these names: (device, interface, names) of each table."""
    at = len(host)

    def blocks(tables: _Named) -> dict[str, Block]:
        nonlocal at
        found = {}
        for name, interface, names in tables:
            found[name] = Block(name, at, names, interface)
            at += len(names)
        return found

    return Layout(Block("", 0, host), blocks(netdev), blocks(rdma), blocks(cxi))


@lru_cache(maxsize=4096)
def _narrow(of: Layout) -> list[tuple[int, str]]:
    """Places of narrow counters, with the text at which each is full."""
    return [
        (block.first + n, STOPS_AT[name])
        for block in of.blocks
        for n, name in enumerate(block.names)
        if name in STOPS_AT
    ]


def _is_plain(of: Layout, text: str, values: list[str]) -> bool:
    if not _numbers.fullmatch(text):
        return not values
    if any(full in text for full in FULL) and not FULL.isdisjoint(values):
        return False
    return all(values[at] != full for at, full in _narrow(of))


def moment(text: str) -> float | None:
    """Seconds since the epoch of a reading's `time_s`."""
    try:
        time = float(text)
    except ValueError:
        return None
    return time if math.isfinite(time) else None


def reading(of: Layout, time_s: str, text: str, number: int | None = None) -> Reading | None:
    """A reading. `text`: its values, with spaces between them; None where they do not fit."""
    values = text.split(" ") if text else []
    if len(values) != len(of.places):
        return None
    return Reading(of, time_s, moment(time_s), values, _is_plain(of, text, values), number)


def of_tables(tables: Tables) -> Reading:
    """A reading that was left with its names."""
    of = layout(
        tuple(tables.host),
        tuple((name, "", tuple(one)) for name, one in tables.netdev.items()),
        tuple((name, one.netdev, tuple(one.counters)) for name, one in tables.rdma.items()),
        tuple((name, one.netdev, tuple(one.counters)) for name, one in tables.cxi.items()),
    )
    values = list(tables.host.values())
    for table in tables.netdev.values():
        values += table.values()
    for ports in (tables.rdma, tables.cxi):
        for port in ports.values():
            values += port.counters.values()
    return Reading(of, tables.time_s, moment(tables.time_s), values, plain=False)


def around(found: TablesAround | None) -> Readings | None:
    """The same of readings before and after a flow."""
    if found is None:
        return None
    return Readings(
        of_tables(found.before) if found.before else None,
        of_tables(found.after) if found.after else None,
        found.address_interface,
        found.route_interface,
    )


# ---- two readings --------------------------------------------------------------------------------


def merged(before: Layout, after: Layout) -> Layout:
    """All counters of two layouts, those of the first one first."""
    if before is after:
        return before

    def named(first: dict[str, Block], second: dict[str, Block]) -> _Named:
        both = first | second
        return tuple(
            (name, block.netdev, _names(first.get(name), second.get(name)))
            for name, block in both.items()
        )

    return layout(
        _names(before.host, after.host),
        named(before.netdev, after.netdev),
        named(before.rdma, after.rdma),
        named(before.cxi, after.cxi),
    )


def _names(*blocks: Block | None) -> Names:
    return tuple(dict.fromkeys(name for block in blocks if block for name in block.names))


def values_as(found: Reading, of: Layout) -> Sequence[str | None]:
    """The values of a reading in another layout's order; None where it has none."""
    if found.layout is of:
        return found.values
    values: list[str | None] = []
    devices = found.layout.devices
    for block in of.blocks:
        own = devices.get(block.name) if block.name else found.layout.host
        table = found.table(own) if own else {}
        values += [table.get(name) for name in block.names]
    return values
