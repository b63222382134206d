"""perch.plan/1: every flow with its own commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from perch.model import units
from perch.model.suite import Host
from perch.plan.places import hop_class
from perch.plan.planner import Planned
from perch.plan.soak import Part, space_bytes
from perch.plan.template import Facts, Template, facts_of

SCHEMA = "perch.plan/1"


def host_document(host: Host) -> dict[str, Any]:
    document = {
        "address": host.address,
        "group": host.group,
        "fabric": host.fabric,
        "scope": host.scope,
        "backends": host.backends,
        "tools": host.tools,
        "devices": host.devices,
        "port": host.port,
        "ports": sorted({host.port, *host.tool_ports.values()}),
    }
    return document | ({"switch": host.switch} if host.switch is not None else {})


def _flow(planned: Planned, part: Part, client: str, server: str) -> dict[str, Any]:
    one, hosts = planned.tests[part.test], planned.fleet.hosts
    test, (sender, receiver) = one.test, (hosts[client], hosts[server])
    pairing = one.between(client, server)
    facts: dict[str, Facts] = {
        "client": facts_of(msgspec.structs.asdict(sender), pairing.devices),
        "server": facts_of(msgspec.structs.asdict(receiver), pairing.devices),
        "round": {"seconds": units.shown(part.seconds)},
    }
    commands = one.command.template(test, pairing.devices)
    estimate, deadline = planned.times(part, client, server)
    port = receiver.tool_ports.get(test.tool)
    flow = {
        "id": f"{test.name}/{client}/{server}/{part.repeat}",
        **{key: getattr(test, key) for key in ("title", "tool", "backend", "provider", "op")},
        "test": test.name,
        "repeat": part.repeat,
        "kind": test.kind,
        "client": client,
        "server": server,
        "scope": pairing.scope,
        "client_argv": Template(commands.client).expanded(facts),
        "server_argv": Template(commands.server).expanded(facts),
        "ready": None if port is None else {"port": port, "proto": "tcp"},
        "deadline_s": deadline,
        "estimate_s": estimate,
        "expect": one.command.expect(test, pairing.devices),
    }
    hop = hop_class(sender, receiver)
    return flow | ({"hop_class": hop} if hop is not None else {})


def _rounds(planned: Planned) -> Iterator[dict[str, Any]]:
    for parts in planned.rounds:
        yield {"flows": [_flow(planned, part, *pair) for part in parts for pair in part.pairs]}


def _soak_document(planned: Planned) -> dict[str, Any]:
    soak = planned.soak
    if soak is None:
        return {}
    kinds = [one.test.kind for one in planned.tests]
    space = space_bytes(soak, planned.rounds, kinds, planned.fleet.hosts)
    return {"soak": {**msgspec.structs.asdict(soak.plan), "space_bytes": space}}


def document(planned: Planned) -> dict[str, Any]:
    """plan.json, for msgspec.json.encode."""
    inputs = planned.inputs
    switches = {name: msgspec.structs.asdict(one) for name, one in planned.switches.items()}
    return {
        "schema": SCHEMA,
        "run": inputs.run,
        "created": inputs.created,
        "suite": {"name": inputs.suite.name, "title": inputs.suite.title},
        "limits": inputs.limits,
        "host_checks": True,  # every host owes them; plans of before did not say so
        "hosts": {name: host_document(host) for name, host in planned.fleet.hosts.items()},
        "excluded": planned.excluded,
        "rounds": list(_rounds(planned)),
        **_soak_document(planned),
        **({"switches": switches} if switches else {}),
    }
