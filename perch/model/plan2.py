"""perch.plan/2: a plan of hosts and tests, and rounds.jsonl with a line for each round.

A flow is five words of a line; its commands come of its test's templates (perch/plan/template.py).
"""

from __future__ import annotations

from typing import Any

import msgspec

from perch.model.plan import Excluded, Expect, PlanHost, PlanSwitch, SoakPlan, Suite
from perch.model.record import Model, Number
from perch.model.suite import Carrier

SCHEMA = "perch.plan/2"


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

    A command is a template; the server's is empty where the client's tool reaches the engine.
    """

    client: list[str | list[str]]
    server: list[str | list[str]]
    expect: list[Expect]


class PlanTest(Model):
    """`forms` by the number of devices of each end that a flow uses."""

    title: str
    tool: str
    kind: str
    op: str
    carrier: Carrier
    forms: dict[str, Form]
    params: dict[str, Any] = {}
    backend: str | None = None
    provider: str | None = None


class RoundsFile(Model):
    """What rounds.jsonl must be: its lines, their flows, and its hash."""

    rounds: int
    flows: int
    sha256: str


class Plan2(Model):
    schema: str
    run: str
    created: str
    suite: Suite
    limits: str
    hosts: dict[str, PlanHost]
    tests: dict[str, PlanTest]
    rounds: RoundsFile
    host_checks: bool = False
    switches: dict[str, PlanSwitch] | None = None
    soak: SoakPlan | None = None
    excluded: list[Excluded] = []
