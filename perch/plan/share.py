"""What one agent needs of a plan: its own flows, the hosts at their other ends, and all rounds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from perch.model.plan import PlanHost, SoakPlan
from perch.model.plan2 import Plan2, PlanTest, RoundLine
from perch.model.record import Model, Number

SCHEMA = "perch.share/1"


class ShareFlow(msgspec.Struct, array_like=True, frozen=True):
    """[place in the round from 0, test, client, server, rail, repeat]."""

    place: int
    test: str
    client: str
    server: str
    rail: int
    repeat: int


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


def shares(plan: Plan2, content: bytes, lines: Iterable[RoundLine]) -> Iterator[Share]:
    """Every host's share, in one pass over the rounds.

    content: plan.json as it is written. lines: of rounds.jsonl.
    """
    digest = hashlib.sha256(content).hexdigest()
    all_rounds: list[ShareRound] = []
    own: dict[str, dict[int, list[ShareFlow]]] = {host: {} for host in plan.hosts}
    for number, line in enumerate(lines):
        all_rounds.append(ShareRound(line.estimate_s, line.deadline_s, len(line.flows)))
        for place, flow in enumerate(line.flows):
            mine = ShareFlow(place, flow.test, flow.client, flow.server, flow.rail, flow.repeat)
            for host in (flow.client, flow.server):
                own[host].setdefault(number, []).append(mine)
    for host, flows in own.items():
        yield _share(plan, digest, host, all_rounds, flows)


def _share(
    plan: Plan2,
    digest: str,
    host: str,
    rounds: list[ShareRound],
    own: dict[int, list[ShareFlow]],
) -> Share:
    flows = [flow for one in own.values() for flow in one]
    named = {host, *(flow.client for flow in flows), *(flow.server for flow in flows)}
    tests = {flow.test for flow in flows}
    return Share(
        schema=SCHEMA,
        run=plan.run,
        plan_sha256=digest,
        host=host,
        hosts={name: one for name, one in plan.hosts.items() if name in named},
        tests={name: test for name, test in plan.tests.items() if name in tests},
        rounds=[
            msgspec.structs.replace(one, flows=own[number]) if number in own else one
            for number, one in enumerate(rounds)
        ],
        soak=plan.soak,
    )
