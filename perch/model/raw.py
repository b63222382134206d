"""What agents leave in raw/<host>/.

One end of a flow, readings of counters, the host's environment.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

import msgspec

from perch.model.moments import moment
from perch.model.raw_lines import EndLine, StartLine
from perch.model.record import Model, Number, Placement, Role

#: A duration; 10^9 s are 31 years.
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]

#: Counters as the kernel prints them: decimal text, as they may lie above 2^53.
Values = dict[str, str]


class Port(Model):
    """An RDMA port or a Cassini NIC, and the network interface under or over it."""

    netdev: str = ""
    counters: Values = {}


class Tables(Model):
    """All counters of one host at one moment, as perch.environment/1 has them."""

    time_s: str = ""
    host: Values = {}
    netdev: dict[str, Values] = {}
    rdma: dict[str, Port] = {}
    cxi: dict[str, Port] = {}


class TablesAround(Model):
    """Before and after a flow, or a host's idle time."""

    before: Tables | None = None
    after: Tables | None = None
    address_interface: str = ""
    route_interface: str = ""


class Block(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The counters of a device, or of the host itself, among a reading's values: from `first` on.

    `netdev`: of an RDMA port or a NIC, the interface under or over it.
    """

    name: str
    first: int
    names: tuple[str, ...]
    netdev: str = ""

    @cached_property
    def known(self) -> frozenset[str]:
        return frozenset(self.names)

    def place(self, name: str) -> int:
        """Of one of its counters, among a reading's values."""
        return self.first + self.names.index(name)


class Layout(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Which counter each value of a reading is of."""

    host: Block
    netdev: dict[str, Block]
    rdma: dict[str, Block]
    cxi: dict[str, Block]

    @cached_property
    def blocks(self) -> list[Block]:
        return [self.host, *self.netdev.values(), *self.rdma.values(), *self.cxi.values()]

    @cached_property
    def places(self) -> list[tuple[int, str]]:
        """Of each value of a reading its block, as a number of `blocks`, and its name."""
        return [(n, name) for n, block in enumerate(self.blocks) for name in block.names]

    @cached_property
    def devices(self) -> dict[str, Block]:
        return self.netdev | self.rdma | self.cxi


class Moves(msgspec.Struct, frozen=True):
    """What moved between two readings of one layout.

    `places`: of the values that did; `moved`: by how much each, None of what went back. `is_work`:
    only counters that other programs move, too, and none of them went back.
    """

    places: tuple[int, ...]
    moved: tuple[int | None, ...]
    is_work: bool


class Reading(msgspec.Struct):
    """All counters of one host at one moment.

    `time_s`: seconds since the epoch as they were written; `time` is the same as a number, None
    where they tell no time. `text`: the values, with spaces between them. `number`: where one
    reading may end a flow and begin the next. `step`: what moved since the reading with the number
    before it, which was made at `since`. Without `since` that is not known.
    """

    layout: Layout
    time_s: str
    time: float | None
    text: str | list[str]
    number: int | None = None
    clock_ns: int | None = None
    since: str | None = None
    step: Moves = Moves((), (), is_work=True)

    @property
    def values(self) -> list[str]:
        if isinstance(self.text, list):
            return self.text
        return self.text.split(" ") if self.text else []

    def table(self, block: Block) -> Values:
        """The counters of a block of its layout."""
        values = self.values[block.first : block.first + len(block.names)]
        return dict(zip(block.names, values, strict=True))

    def steps_on(self, before: Reading) -> bool:
        """Whether `step` is what moved since this reading."""
        if self.since is None or self.number is None:
            return False
        return (before.number, before.time_s) == (self.number - 1, self.since)


class Readings(msgspec.Struct):
    """Before and after a flow, or a host's idle time."""

    before: Reading | None = None
    after: Reading | None = None
    address_interface: str = ""
    route_interface: str = ""


class End(Model):
    """What one host's agent did for one flow, in the form that the judge compares.

    `begun_ns`, `over_ns`: by the monotonic clock of the agent's boot.
    """

    run: str | None = None
    flow: str | None = None
    role: str | None = None
    host: str | None = None
    argv: list[str] | None = None
    started: str | None = None
    ended: str | None = None
    elapsed_s: Seconds | None = None
    exit: int | None = None
    signal: str | int | None = None
    timed_out: bool = False
    state: str | None = None
    message: str | None = None
    counters: Readings | None = None
    placement: Placement | None = None
    begun_ns: int | None = None
    over_ns: int | None = None
    begun: float | None = None
    over: float | None = None

    def __post_init__(self) -> None:
        self.begun, self.over = moment(self.started), moment(self.ended)


class SoakAgent(msgspec.Struct):
    """What the agent of a soak says beside the ends of its flows.

    `episodes`: by what happened the numbers of their lines; `end_at`: that of the last line.
    `clients`: of each flow that had its client there the number of the line, and where its bytes
    begin and end.
    """

    starts: list[StartLine] = []
    episodes: dict[str, list[int]] = {}
    end: EndLine | None = None
    end_at: int = 0
    clients: dict[str, tuple[int, int, int]] = {}


class Agent(Model):
    """What an agent says of itself in flows.jsonl. `plan_sha256`: of the plan that it ran.

    `fault`: why the file cannot be used, or where it breaks off; such an agent has no `run` where
    its first line cannot be used.
    """

    schema: str = ""
    fault: str = ""
    run: str | None = None
    plan_sha256: str = ""
    host: str | None = None
    started: str | None = None
    ended: str | None = None
    state: str | None = None
    flows_total: Number | None = None
    flows_done: Number | None = None
    message: str | None = None
    soak: SoakAgent | None = None


class Interface(Model):
    name: str | None = None
    driver: str | None = None
    rate_gbit_s: Number | None = None
    mtu_bytes: Number | None = None


class Device(Model):
    name: str | None = None
    driver: str | None = None


class Processors(Model):
    """`cores`: those that the agent, and what it starts, may run on."""

    cores: Number | None = None


class Environment(Model):
    """perch.environment/1 or /2, as far as the judge asks for it; views read the whole document.

    `idle` is of the first; `run`, `address_interface` and `idle_samples` are of the second.
    """

    schema: str = ""
    run: str | None = None
    host: str | None = None
    hostname: str | None = None
    boot_id: str | None = None
    cpu: Processors | None = None
    versions: dict[str, Any] = {}
    interfaces: list[Interface] = []
    rdma: list[Device] = []
    cxi: list[Device] = []
    collected: str | None = None
    idle: TablesAround | None = None
    address_interface: str = ""
    idle_samples: tuple[int, int] | None = None


class FlowFiles(msgspec.Struct):
    """What both agents left of one flow.

    An end is None where it has no line, or none that can be read. `server_stdout`: of
    tools whose server prints its connections. `server_stderr`: of those whose server is theirs.
    """

    client: End | None
    server: End | None
    stdout: bytes
    stderr: bytes
    server_stdout: bytes = b""
    server_stderr: bytes = b""

    def end(self, role: Role) -> End | None:
        return self.client if role == "client" else self.server
