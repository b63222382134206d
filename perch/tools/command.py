"""What the planner asks of a tool: its commands, their records and their time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from perch.model import units
from perch.model.plan import Expect
from perch.model.suite import Carrier, Host, SuiteTest

#: A word of a command, or words that are left out together where the ends of the flow lack what
#: one of them names. A word may hold placeholders (perch/plan/template.py).
Word = str | list[str]

#: Bytes of a message -> seconds that it takes.
Cost = Callable[[int], float]


class Template(NamedTuple):
    """The command of each end; the server's is empty where the tool needs none."""

    client: Sequence[Word]
    server: Sequence[Word] = ()


def expect_sizes(test: SuiteTest, devices: int) -> list[Expect]:
    """A record for each size."""
    return [Expect(size_bytes=size) for size in units.sizes(test.params["size"])]


@dataclass(frozen=True, slots=True)
class Command:
    """How tests of one kind run. `devices` below is the number of each end's that a flow uses.

    template: (test, devices) -> the command of each end.
    measuring: (test, cost of a message, pairs of devices that share cores) -> seconds.
    refusals: why such a test can be measured nowhere. ValueError says the same.
    expect: (test, devices) -> the records that a flow must give, in the tool's order.
    carrier: what carries the test.
    lacks: why a host cannot take part in the test.
    unfit: (test, client, server, devices) -> why two hosts cannot do it with each other.
    is_engine: `perch check` knows the command's rules.
    """

    template: Callable[[SuiteTest, int], Template]
    measuring: Callable[[SuiteTest, Cost, int], float]
    refusals: Callable[[SuiteTest], Iterable[str]] = lambda test: ()
    expect: Callable[[SuiteTest, int], list[Expect]] = expect_sizes
    carrier: Callable[[SuiteTest], Carrier] = lambda test: "sockets"
    lacks: Callable[[SuiteTest, Host], str | None] = lambda test, host: None
    unfit: Callable[[SuiteTest, Host, Host, int], str | None] = lambda *_: None
    is_engine: bool = False


def flag(option: str, value: Any) -> list[str]:
    """An option with its value; True needs none, and None or False no option."""
    if value is None or value is False:
        return []
    return [option] if value is True else [option, units.shown(value)]


def whole(value: float) -> bool:
    return value == int(value)
