"""A host's share of a plan: what its agent needs, its own flows with their tests and other ends."""

from __future__ import annotations

import msgspec

from perch.model.plan import PlanHost, PlanTest, Slot, SoakPlan
from perch.model.record import Model, Number

SCHEMA = "perch.share/1"


class ShareFlow(msgspec.Struct, array_like=True, frozen=True):
    """[place in the round from 0, test, client, server, rail, repeat, slots of both ends]."""

    place: int
    test: str
    client: str
    server: str
    rail: int
    repeat: int
    slots: list[Slot] = []


class ShareRound(Model):
    """Every round, so that an agent knows when the others have come to the next one.

    `size`: flows of all hosts; `flows`: the host's own.
    """

    estimate_s: Number
    deadline_s: Number
    size: int
    flows: list[ShareFlow] = []


class Share(Model):
    """`plan_sha256`: of the plan.json that it is a part of."""

    schema: str
    run: str
    plan_sha256: str
    host: str
    hosts: dict[str, PlanHost]
    tests: dict[str, PlanTest]
    rounds: list[ShareRound]
    soak: SoakPlan | None = None
