"""What the planner asks of a tool: its commands, their records and their time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from perch.model import units
from perch.model.plan import Expect
from perch.model.record import Role
from perch.model.suite import Carrier, Host, SuiteTest

#: Whose GPUs have a kind of memory.
MAKERS = {"cuda": "NVIDIA", "rocm": "AMD", "ze": "Intel"}

#: A word of a command, or words that are left out together where the ends of the flow lack what
#: one of them names. A word may hold placeholders (perch/plan/template.py).
Word = str | list[str]

#: Bytes of a message -> seconds that it takes.
Cost = Callable[[int], float]


class Template(NamedTuple):
    """The command of each end; the server's is empty where the tool needs none."""

    client: Sequence[Word]
    server: Sequence[Word] = ()


class Want(NamedTuple):
    """A value that the output must state.

    `name`: of `Params`, or one of `perch.judge.asked.STATED`. `value`: None asks for nothing, a
    tuple for any of its values. `optional`: the output may also leave it out.
    """

    name: str
    value: Any
    optional: bool = False


#: Of a fabric of the inventory, the link layer of its ports (IBV_LINK_LAYER_*; Soft-RoCE and iWARP
#: have Ethernet's). Others have no verbs, or any.
LINK_LAYERS = {"roce": "ethernet", "infiniband": "infiniband"}


class Ends(NamedTuple):
    """The devices of each end that a flow uses, as the inventory names them.

    `pairs`: of devices that measure, one also where the inventory names none. `fabric`: the
    client's, whose link an output states.
    """

    client: Sequence[Mapping[str, Any]] = ()
    server: Sequence[Mapping[str, Any]] = ()
    pairs: int = 1
    fabric: str | None = None

    def first(self, role: Role, key: str) -> Any:
        """A setting of an end's first device; None where the inventory has none.

        A command has what is no number as text.
        """
        devices = self.client if role == "client" else self.server
        value = numeral(devices[0].get(key)) if devices else None
        return value if value is None or isinstance(value, int | float) else str(value)


def numeral(value: Any) -> Any:
    """A number that was written as text, as a number: quoted, or on Ansible's command line."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def gpu_kinds(param: Callable[[str], Any]) -> list[str]:
    """Kinds of GPU memory (cuda, rocm, ze) that a test or flow names."""
    words = [str(param(key)).split(":")[0] for key in ("memory", "tx_memory", "rx_memory")]
    return [word for word in dict.fromkeys(words) if word in MAKERS]


def in_gpu_memory(param: Callable[[str], Any]) -> bool:
    """Whether a device itself reaches GPU memory: --bounce copies through the host's memory.

    `param`: a parameter of the test, None where it has none.
    """
    return not param("bounce") and bool(gpu_kinds(param))


def count(test: SuiteTest, name: str, default: int | None = None) -> int | None:
    """A number, or bytes such as "64K"; None where the test does not say it. Raises ValueError."""
    value = test.get(name, default)
    return None if value is None else units.size_bytes(units.shown(value))


def duration_s(test: SuiteTest) -> float | None:
    """How long the test measures; None where it counts messages. Raises ValueError."""
    duration = test.get("duration")
    return None if duration is None else units.seconds(duration)


def named_first(ends: Ends) -> Iterator[Want]:
    """Each end's first device, which the output must name."""
    yield Want("client.device", ends.first("client", "name"))
    yield Want("server.device", ends.first("server", "name"))


def layer_want(ends: Ends) -> Want:
    """Verbs name the link layer of their port. Headers, and so the ceiling, depend on it."""
    return Want("layer", LINK_LAYERS.get(ends.fabric or ""), optional=True)


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
    wants: (test, ends, expected record) -> what the output must state. ValueError as refusals.
    lasts: (test) -> seconds that the output must have measured; None: no such time is known.
    carrier: what carries the test.
    lacks: why a host cannot take part in the test.
    unfit: (test, client, server, devices) -> why two hosts cannot do it with each other.
    is_engine: `perch check` knows the command's rules.
    by_rail: (test) -> whether a flow is of one device of each end, which its command names.
    """

    template: Callable[[SuiteTest, int], Template]
    measuring: Callable[[SuiteTest, Cost, int], float]
    refusals: Callable[[SuiteTest], Iterable[str]] = lambda test: ()
    expect: Callable[[SuiteTest, int], list[Expect]] = expect_sizes
    wants: Callable[[SuiteTest, Ends, Expect], Iterable[Want]] = lambda *_: ()
    lasts: Callable[[SuiteTest], float | None] = duration_s
    carrier: Callable[[SuiteTest], Carrier] = lambda test: "sockets"
    lacks: Callable[[SuiteTest, Host], str | None] = lambda test, host: None
    unfit: Callable[[SuiteTest, Host, Host, int], str | None] = lambda *_: None
    is_engine: bool = False
    by_rail: Callable[[SuiteTest], bool] = lambda test: False


def flag(option: str, value: Any) -> list[str]:
    """An option with its value; True needs none, and None or False no option."""
    if value is None or value is False:
        return []
    return [option] if value is True else [option, units.shown(value)]


def whole(value: float) -> bool:
    return value == int(value)
