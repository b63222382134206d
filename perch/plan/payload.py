"""The payload bytes that a plan moves, where its tests count messages."""

from __future__ import annotations

from typing import NamedTuple

from perch.model.text import plural
from perch.plan.planner import Planned
from perch.plan.tests import PlannedTest
from perch.tools import perch_params
from perch.tools.command import count, duration_s


class Payload(NamedTuple):
    """`least`: bytes that are certain. `open_flows`: flows that run for a time."""

    least: int
    open_flows: int


def _messages(one: PlannedTest) -> int | None:
    """Messages of each size; None where time ends the test."""
    test = one.test
    if one.is_soak or duration_s(test) is not None:
        return None
    default = perch_params.ITERATIONS.get(test.kind) if test.tool == "perch" else None
    return count(test, "iterations", default)


def _each(one: PlannedTest, devices: int) -> int | None:
    """Bytes of a flow, one way and without warm-up, each message counted once."""
    messages = _messages(one)
    if messages is None:
        return None
    sizes = [
        expect.size_bytes
        for expect in one.command.expect(one.test, devices)
        if expect.kind != "sum"  # of pairs of devices that are counted themselves
    ]
    return messages * sum(size for size in sizes if size is not None)


def payload(planned: Planned) -> Payload:
    """What all flows move. Answers and second directions come on top, so it is a minimum."""
    least = open_flows = 0
    known: dict[tuple[int, int], int | None] = {}
    for part in (part for parts in planned.rounds for part in parts):
        one = planned.tests[part.test]
        for pair in part.pairs:
            key = part.test, one.between(*pair, part.rail).devices
            if key not in known:
                known[key] = _each(one, key[1])
            found = known[key]
            least += found or 0
            open_flows += found is None
    return Payload(least, open_flows)


def said(found: Payload) -> str:
    """How much is known, in words."""
    timed = f"{plural(found.open_flows, 'flow')} at up to link rate for a set time"
    if found.least == 0:
        return f"Payload: not known; {timed}." if found.open_flows else "Payload: none."
    more = f", and {timed}" if found.open_flows else ""
    return f"Payload: at least {_size(found.least)}{more}."


def _size(number: int) -> str:
    """`1.2 GB`, in decimal units as rates have them."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 1000)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} B"
