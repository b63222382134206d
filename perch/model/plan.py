"""A plan: every flow that must be measured and every record that is expected of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from perch.model.record import Model, Number, Scope


class Expect(msgspec.Struct, frozen=True, omit_defaults=True):
    """One record that a flow must give: a size.

    Of a transfer size, batch, and a pair of devices or their sum.
    """

    size_bytes: int | None = None
    batch: int | None = None
    pair: int | None = None
    kind: Literal["transfer", "sum"] | None = None


class Imported(Model):
    """Where an imported output stands: file, number of the output, what is known of the link."""

    file: str
    output: int = 0
    link: dict[str, Any] | None = None


class Flow(msgspec.Struct, omit_defaults=True, rename={"imported": "import"}):
    """One measurement between two hosts.

    `retry` is set by the judge on flows of plan.retry.json.
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
    title: str = ""
    backend: str | None = None
    provider: str | None = None
    op: str | None = None
    hop_class: str | None = None
    client_argv: list[str] = []
    server_argv: list[str] = []
    ready: Any = None
    deadline_s: Number = 0
    estimate_s: Number = 0
    expect: list[Expect] = []
    imported: dict[str, Any] | None = None
    retry: bool = False
    soak: dict[str, Any] | None = None

    def host(self, role: str) -> str:
        return self.client if role == "client" else self.server


class Round(Model):
    """Flows that run at the same time."""

    flows: list[Flow] = []


class PlanHost(Model):
    """`tool_ports`: of the tools' own servers; `ports`: all that the host listens on."""

    address: str
    fabric: str
    scope: Scope
    port: int
    backends: list[str] = []
    tools: list[str] = []
    devices: list[Any] = []
    group: str | None = None
    switch: str | None = None
    ports: list[int] = []
    tool_ports: dict[str, int] = {}


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


class Plan(Model):
    schema: str
    run: str
    created: str
    suite: Suite
    limits: str
    hosts: dict[str, PlanHost]
    rounds: list[Round]
    host_checks: bool = False
    switches: dict[str, PlanSwitch] | None = None
    soak: SoakPlan | None = None
    excluded: list[Excluded] = []

    def flows(self) -> Iterator[Flow]:
        for turn in self.rounds:
            yield from turn.flows
