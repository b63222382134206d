"""A plan: every flow that must be measured and every record that is expected of it.

On disk plan.json (`PlanDocument`) has hosts and tests, and rounds.jsonl a line for each round
(`RoundLine`). A flow is five words of such a line; perch/plan/flows.py makes a `Flow` of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from perch.model.record import Count, Model, Number, Scope
from perch.model.suite import RDMA_FABRICS, Carrier

SCHEMA, RETRY_SCHEMA = "perch.plan/2", "perch.retry/1"


class Expect(msgspec.Struct, frozen=True, omit_defaults=True):
    """One record that a flow must give: a size.

    Of a transfer size, batch, and a pair of devices or their sum.
    """

    size_bytes: Count | None = None
    batch: Count | None = None
    pair: Count | None = None
    kind: Literal["transfer", "sum"] | None = None


class FlowKey(msgspec.Struct, array_like=True, frozen=True):
    """A flow in a line of rounds.jsonl: [test, client, server, rail, repeat]."""

    test: str
    client: str
    server: str
    rail: int
    repeat: int

    @property
    def id(self) -> str:
        return f"{self.test}/{self.client}/{self.server}/{self.rail}/{self.repeat}"


class RoundLine(msgspec.Struct):
    """Flows that run at the same time; seconds.

    `estimate_s`: what the longest takes, about; of a soak how long all of them last. `deadline_s`:
    when all have ended for certain.
    """

    round: int
    estimate_s: Number
    deadline_s: Number
    flows: list[FlowKey]


class Form(Model):
    """A test with so many devices of each end: the command of each, and the records it must give.

    A command is a template (perch/plan/template.py); the server's is empty where the client's tool
    reaches the engine.
    """

    client: list[str | list[str]]
    server: list[str | list[str]]
    expect: list[Expect]


class PlanTest(Model):
    """`forms` by the number of devices of each end that a flow uses; none of imported outputs.

    `rails`: as of a suite's test.
    """

    title: str
    tool: str
    kind: str
    op: str | None
    carrier: Carrier
    forms: dict[int, Form]
    params: dict[str, Any] = {}
    backend: str | None = None
    provider: str | None = None
    rails: Literal["alone", "together"] = "alone"


class Imported(Model):
    """An output that was measured elsewhere: where it begins, and what it must hold.

    `link`: what is known of its link: {rate_gbit_s, source}. `command`: of its client.
    """

    file: str
    line: int
    expect: list[Expect]
    link: dict[str, Any] | None = None
    command: list[str] = []


class Slot(msgspec.Struct, array_like=True, frozen=True):
    """[rails in use on the host, "K/N"]: each has N commands there, and this is number K of one."""

    rails: list[int]
    number: str


class Flow(msgspec.Struct, omit_defaults=True):
    """One measurement between two hosts.

    `params`: of its test. `together`: the rails of its pair in its round. `slots`: of client and
    server, in a soak. `retry`: it is of plan.retry.json. The commands are there where they are
    needed: `perch.plan.flows.Flows.fill`. A run has a million flows: what most lack is one object.
    """

    id: str
    test: str
    tool: str
    kind: str
    client: str
    server: str
    scope: Scope
    repeat: int = 1
    rail: int = 0
    together: Sequence[int] = ()
    slots: Sequence[Slot] = ()
    devices: int = 1
    title: str = ""
    backend: str | None = None
    provider: str | None = None
    op: str | None = None
    hop_class: str | None = None
    params: dict[str, Any] = {}
    client_argv: Sequence[str] = ()
    server_argv: Sequence[str] = ()
    deadline_s: Number = 0
    estimate_s: Number = 0
    expect: list[Expect] = []
    imported: Imported | None = None
    retry: bool = False

    @property
    def rails_at_once(self) -> int:
        return max(len(self.together), 1)

    @property
    def rails(self) -> Literal["alone", "together"]:
        """As of its test."""
        return "together" if self.rails_at_once > 1 else "alone"

    def host(self, role: str) -> str:
        return self.client if role == "client" else self.server

    def used(self, devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Of a host's devices those that the flow uses."""
        return devices[self.rail : self.rail + self.devices]

    @property
    def key(self) -> FlowKey:
        return FlowKey(self.test, self.client, self.server, self.rail, self.repeat)


class Round(Model):
    """Flows that run at the same time."""

    flows: list[Flow] = []


class PlanHost(Model):
    """`tool_ports`: of the tools' own servers; `ports`: all that the host listens on.

    `link_gbit_s`: the rate of each measured link that was bought. `traits`: of its fabric, lossless
    and adaptive_routing, where the inventory says so. `left`: NICs of its fabric that are not among
    `devices`, and why; management ports are none.
    """

    address: str
    fabric: str
    scope: Scope
    port: int
    backends: list[str] = []
    tools: list[str] = []
    devices: list[dict[str, Any]] = []
    left: dict[str, str] = {}
    link_gbit_s: Number | None = None
    traits: dict[str, bool] = {}
    group: str | None = None
    switch: str | None = None
    ports: list[int] = []
    tool_ports: dict[str, int] = {}


class HasTraits(Protocol):
    """A host of a plan, or of an inventory."""

    @property
    def fabric(self) -> str: ...
    @property
    def traits(self) -> dict[str, bool]: ...


def trait(hosts: Iterable[HasTraits], name: str) -> bool | None:
    """What all hosts of RDMA fabrics, else all hosts, say of a trait; None where some do not."""
    every = list(hosts)
    rdma = [host for host in every if host.fabric in RDMA_FABRICS]
    said = {host.traits.get(name) for host in rdma or every}
    return said.pop() if len(said) == 1 else None


def tolerated(hosts: Iterable[PlanHost]) -> set[str]:
    """The classes of counters that move on purpose on a fabric with these traits.

    Adaptive routing reorders packets (openucx/ucx #10013, #10149). A lossy fabric drops packets,
    and its cards send them again.
    """
    every = list(hosts)
    found: set[str] = set()
    if trait(every, "adaptive_routing"):
        found.add("out-of-sequence")
    if trait(every, "lossless") is False:
        found |= {"drops", "retransmissions", "out-of-sequence"}
    return found


class PlanSwitch(Model):
    """`priorities` must be lossless; `ports`: of each host, where the inventory names them."""

    provider: str
    scope: Scope
    priorities: list[int] = []
    ports: dict[str, list[str]] = {}


class Suite(Model):
    name: str
    title: str


class SoakPlan(Model):
    """Seconds. `mode` alternating: a round for each turn; mixed: one round with all flows."""

    duration_s: Number
    interval_s: Number
    stall_s: Number
    reconnect_s: Number
    mode: Literal["mixed", "alternating"]
    turn_s: Number | None = None
    space_bytes: dict[str, int] = {}


class Excluded(Model):
    """What is not measured, and why. `nic`: a device that no flow uses."""

    test: str
    reason: str
    nic: str | None = None


def by_reason(excluded: Iterable[Excluded]) -> dict[str, list[str]]:
    """What is not measured for one reason, by the reason."""
    found: dict[str, list[str]] = {}
    for one in excluded:
        found.setdefault(one.reason, []).append(one.test)
    return found


class RoundsFile(Model):
    """What rounds.jsonl must be: its lines, their flows, and its hash."""

    rounds: int
    flows: int
    sha256: str


class _Head(Model, kw_only=True):
    schema: str
    run: str
    created: str
    suite: Suite
    limits: str
    hosts: dict[str, PlanHost]
    tests: dict[str, PlanTest] = {}
    imports: dict[str, Imported] = {}
    host_checks: bool = False
    switches: dict[str, PlanSwitch] | None = None
    soak: SoakPlan | None = None
    excluded: list[Excluded] = []


class PlanDocument(_Head, kw_only=True):
    """plan.json. `imports`: by the ids of flows, of a run whose outputs were measured elsewhere."""

    rounds: RoundsFile


class Plan(_Head, kw_only=True):
    """A plan whose rounds were read. `sha256`: of plan.json; "" where it was not read from it."""

    rounds: list[Round]
    sha256: str = ""

    def flows(self) -> Iterator[Flow]:
        for turn in self.rounds:
            yield from turn.flows


class RetryDocument(Model):
    """plan.retry.json: repeats of a plan's flows. `plan_sha256`: of its plan.json."""

    schema: str
    run: str
    plan_sha256: str
    rounds: list[RoundLine]
