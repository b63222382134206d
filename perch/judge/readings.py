"""Readings of counters: names once for many, values as text in their order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from perch.judge.counter_table import CLASS_OF, FULL, NO_CLASS, STOPS_AT
from perch.model.raw import Block, Layout, Moves, Reading, Readings, Tables, TablesAround
from perch.model.raw_lines import SampleLine

#: Digits of a number of 64 bits, at most.
_DIGITS_MAX = 20
_SPACE = ord(" ")
_FULL = [np.uint64(full) for full in FULL]

#: Counters that go on between flows, too, as other programs send.
WORK = frozenset(name for name, kind in CLASS_OF.items() if kind == NO_CLASS)

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


@lru_cache(maxsize=4096)
def _works(of: Layout) -> npt.NDArray[np.bool_]:
    """Of each value of a reading whether other programs move it, too; those of the host do."""
    own = [True] * len(of.host.names)
    return np.array(own + [name in WORK for one in of.blocks[1:] for name in one.names], bool)


def moment(text: str) -> float | None:
    """Seconds since the epoch of a reading's `time_s`."""
    try:
        time = float(text)
    except ValueError:
        return None
    return time if math.isfinite(time) else None


def series(of: Layout, lines: Sequence[SampleLine]) -> list[Reading | None]:
    """Readings of one layout that followed each other; None where values do not fit."""
    found: list[Reading | None] = []
    texts, count = [line.values for line in lines], len(of.places)
    fits = [(text.count(" ") + 1 if text else 0) == count for text in texts]
    steps = _steps(of, texts) if count and all(fits) else [None] * len(texts)
    before: SampleLine | None = None
    for line, step, is_whole in zip(lines, steps, fits, strict=True):
        if not is_whole:
            found.append(None)
            before = None
            continue
        at = moment(line.time_s)
        one = Reading(of, line.time_s, at, line.values, line.number, line.monotonic_ns)
        if step is not None and before is not None and _follows(before, line):
            one.since, one.step = before.time_s, step
        found.append(one)
        before = line
    return found


def _follows(before: SampleLine, line: SampleLine) -> bool:
    return before.number == line.number - 1 and before.monotonic_ns < line.monotonic_ns


def _steps(of: Layout, texts: Sequence[str]) -> list[Moves | None]:
    """What moved from each of these values to the next; `texts`: as many of each as places.

    None where one is no number of at most 64 bits, or its counter is full.
    """
    unknown: list[Moves | None] = [None] * len(texts)
    values = _numbers_of(texts, len(of.places))
    if values is None:
        return unknown
    full = (values == _FULL[0]) | (values == _FULL[1])
    for at, last in _narrow(of):
        full[:, at] |= values[:, at] == int(last)
    odd = full.any(axis=1)
    early, late = values[:-1], values[1:]
    rows, places = np.nonzero(early != late)
    went_back = late[rows, places] < early[rows, places]
    by: list[int | None] = (late[rows, places] - early[rows, places]).tolist()
    for at in np.flatnonzero(went_back).tolist():
        by[at] = None
    is_work = np.ones(len(texts) - 1, bool)
    is_work[rows[went_back | ~_works(of)[places]]] = False
    where = places.tolist()
    ends = np.searchsorted(rows, np.arange(len(texts))).tolist()
    known = (~(odd[1:] | odd[:-1])).tolist()
    return [None] + [
        Moves(tuple(where[begin:end]), tuple(by[begin:end]), works) if is_known else None
        for (begin, end), is_known, works in zip(
            pairwise(ends), known, is_work.tolist(), strict=True
        )
    ]


def _numbers_of(texts: Sequence[str], count: int) -> npt.NDArray[np.uint64] | None:
    """So many values of each text, a row for each."""
    whole = " ".join(texts)
    if not whole.isascii() or whole.encode().translate(None, b"0123456789 "):
        return None
    # digits of each number: a space lies before and behind it
    spaces = np.flatnonzero(np.frombuffer(f" {whole} ".encode(), np.uint8) == _SPACE)
    digits = np.diff(spaces) - 1
    if digits.min() < 1 or digits.max() > _DIGITS_MAX:
        return None
    # more than 64 bits are read as the largest number of 64, at which a counter is full
    return np.fromstring(whole, np.uint64, sep=" ").reshape(len(texts), count)


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
    return Reading(of, tables.time_s, moment(tables.time_s), values)


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
