"""What was planned -> plan.json, and rounds.jsonl with a line for each round."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from perch.model.plan import (
    SCHEMA,
    FlowKey,
    PlanDocument,
    PlanHost,
    PlanTest,
    RoundLine,
    RoundsFile,
    SoakPlan,
)
from perch.model.plan import Suite as PlanSuite
from perch.model.suite import Host
from perch.plan import discovery
from perch.plan.forms import form
from perch.plan.hosts import ports_of
from perch.plan.planner import Planned
from perch.plan.soak import space_bytes
from perch.plan.tests import PlannedTest

_encoder = msgspec.json.Encoder()


def text(line: RoundLine) -> bytes:
    """A line of rounds.jsonl."""
    return _encoder.encode(line) + b"\n"


def lines(planned: Planned) -> Iterator[RoundLine]:
    """The lines of rounds.jsonl."""
    names = [one.test.name for one in planned.tests]
    for number, (parts, times) in enumerate(
        zip(planned.rounds, planned.round_times(), strict=True)
    ):
        flows = [
            FlowKey(names[part.test], client, server, part.rail, part.repeat)
            for part in parts
            for client, server in part.pairs
        ]
        yield RoundLine(number, *times, flows)


def _host(host: Host) -> PlanHost:
    return PlanHost(
        address=host.address,
        fabric=host.fabric,
        scope=host.scope,
        port=host.port,
        backends=host.backends,
        tools=host.tools,
        devices=host.devices,
        left={nic: why for nic, why in host.left.items() if why != discovery.MANAGEMENT},
        link_gbit_s=host.link_gbit_s,
        traits=host.traits,
        group=host.group,
        switch=host.switch,
        ports=sorted({host.port, *ports_of(host.tool_ports, host.devices)}),
        tool_ports=host.tool_ports,
    )


def _test(one: PlannedTest) -> PlanTest:
    """With a form for each number of devices that its pairs of hosts have."""
    test = one.test
    devices = sorted({found.devices for found in one.pairings() if found.unfit is None})
    return PlanTest(
        title=test.title,
        tool=test.tool,
        kind=test.kind,
        op=test.op,
        carrier=one.command.carrier(test),
        forms={number: form(test, one.command, number) for number in devices},
        params=test.params,
        backend=test.backend,
        provider=test.provider,
        rails=test.rails,
    )


def _soak(planned: Planned) -> SoakPlan | None:
    if planned.soak is None:
        return None
    kinds = [one.test.kind for one in planned.tests]
    space = space_bytes(planned.soak, planned.rounds, kinds, planned.fleet.hosts)
    return msgspec.structs.replace(planned.soak.plan, space_bytes=space)


def plan_document(planned: Planned, rounds: bytes) -> PlanDocument:
    """plan.json. `rounds`: all of rounds.jsonl, which it vouches for."""
    inputs = planned.inputs
    return PlanDocument(
        schema=SCHEMA,
        run=inputs.run,
        created=inputs.created,
        suite=PlanSuite(inputs.suite.name, inputs.suite.title),
        limits=inputs.limits,
        hosts={name: _host(host) for name, host in planned.fleet.hosts.items()},
        tests={one.test.name: _test(one) for one in planned.tests if one.turns},
        rounds=RoundsFile(len(planned.rounds), planned.flows(), hashlib.sha256(rounds).hexdigest()),
        host_checks=True,
        switches=planned.switches or None,
        soak=_soak(planned),
        excluded=planned.excluded,
    )
