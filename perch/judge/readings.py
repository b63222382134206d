"""Readings of counters: names once for many, values as text in their order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from perch.judge.counter_table import FULL, STOPS_AT
from perch.model.raw import Block, Layout, Reading, Readings, Tables, TablesAround

#: The most digits that a counter of 64 bits has.
DIGITS_MAX = 20

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


def _is_plain(of: Layout, values: list[str]) -> bool:
    text = "".join(values)
    if not (text.isdigit() and text.isascii()) or max(map(len, values)) > DIGITS_MAX:
        return not values
    if not FULL.isdisjoint(values) or "" in values:
        return False
    return all(values[at] != full for at, full in _narrow(of))


def reading(of: Layout, time_s: str, values: list[str], number: int | None = None) -> Reading:
    """A reading; `values` has one of each name of the layout."""
    return Reading(of, time_s, values, _is_plain(of, values), number)


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
    return reading(of, tables.time_s, values)


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
