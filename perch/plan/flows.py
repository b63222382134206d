"""The flows of a plan: lines of rounds.jsonl -> flows with their commands, one round at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model import units
from perch.model.plan import Expect, Flow, PlanHost
from perch.model.plan2 import FlowKey, Plan2, PlanTest, RoundLine
from perch.plan.places import hop_class, scope_of
from perch.plan.template import Facts, Template, facts_of
from perch.tools.transfer_command import DEVICES_MAX

ROUNDS = "rounds.jsonl"

_line = msgspec.json.Decoder(RoundLine)


class _Form:
    """A test's form, its templates read once."""

    def __init__(self, client: Template, server: Template, expect: list[Expect]) -> None:
        self.client, self.server, self.expect = client, server, expect


class Flows:
    """Makes the flows of a plan."""

    def __init__(self, plan: Plan2) -> None:
        self.plan = plan
        self._forms = {
            (name, number): _Form(Template(form.client), Template(form.server), form.expect)
            for name, test in plan.tests.items()
            for number, form in test.forms.items()
        }
        self._facts: dict[tuple[str, int], Facts] = {}

    def devices(self, test: PlanTest, client: PlanHost, server: PlanHost) -> int:
        """How many of each end's devices a flow uses, the first ones."""
        asked = test.params.get("devices") or 1
        if asked == "all":
            return min(len(client.devices), len(server.devices), DEVICES_MAX)
        return int(asked)

    def facts(self, host: str, devices: int) -> Facts:
        found = self._facts.get((host, devices))
        if found is None:
            document = msgspec.structs.asdict(self.plan.hosts[host])
            found = self._facts[host, devices] = facts_of(document, devices)
        return found

    def flow(self, key: FlowKey, line: RoundLine) -> Flow:
        """Raises KeyError where the plan has no such test, host or number of devices."""
        test = self.plan.tests[key.test]
        client, server = self.plan.hosts[key.client], self.plan.hosts[key.server]
        devices = self.devices(test, client, server)
        form = self._forms[key.test, str(devices)]
        facts: dict[str, Facts] = {
            "client": self.facts(key.client, devices),
            "server": self.facts(key.server, devices),
            "round": {"seconds": units.shown(line.estimate_s)},
        }
        port = server.tool_ports.get(test.tool)
        return Flow(
            id=key.id,
            test=key.test,
            tool=test.tool,
            kind=test.kind,
            client=key.client,
            server=key.server,
            scope=scope_of(test.carrier, client, server, devices),
            repeat=key.repeat,
            rail=key.rail,
            title=test.title,
            backend=test.backend,
            provider=test.provider,
            op=test.op,
            hop_class=hop_class(client, server),
            client_argv=form.client.expanded(facts),
            server_argv=form.server.expanded(facts),
            ready=None if port is None else {"port": port, "proto": "tcp"},
            deadline_s=line.deadline_s,
            estimate_s=line.estimate_s,
            expect=form.expect,
        )

    def round(self, line: RoundLine) -> list[Flow]:
        return [self.flow(key, line) for key in line.flows]


def _damaged(path: Path, what: str, place: str = "") -> PerchError:
    return PerchError(
        ExitCode.INCONCLUSIVE,
        f"it cannot be used: {what}",
        file=path.name,
        place=place,
        remedy="fetch the run's folder again, or restore it from a bundle",
    )


def rounds(path: Path, plan: Plan2) -> Iterator[RoundLine]:
    """The rounds of a plan, in order, lazily.

    Raises:
        PerchError: the file is missing, damaged, or not the one that the plan was written with.
    """
    digest, flows, seen = hashlib.sha256(), 0, 0
    try:
        with path.open("rb") as file:
            for text in file:
                digest.update(text)
                line = _line.decode(text)
                seen, flows = seen + 1, flows + len(line.flows)
                yield line
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(path, str(error), f"line {seen + 1}") from None
    except OSError as error:
        raise _damaged(path, str(error.strerror)) from None
    planned = plan.rounds
    if digest.hexdigest() != planned.sha256:
        said = f"it has {seen} rounds with {flows} flows, the plan {planned.rounds}"
        raise _damaged(path, f"{said} with {planned.flows}, or other ones")


def decoded(content: bytes, file: str = "plan.json") -> Plan2:
    """Raises PerchError; a plan of another version is refused by name."""
    try:
        plan = msgspec.json.decode(content, type=Plan2)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = _other_version(content) or f"it is damaged: {error}"
        raise PerchError(ExitCode.INCONCLUSIVE, why, file=file) from None
    if plan.schema != "perch.plan/2":
        raise PerchError(
            ExitCode.INCONCLUSIVE, _other_version(content) or "it has no schema", file=file
        )
    return plan


class _Head(msgspec.Struct):
    schema: Any = None


def _other_version(content: bytes) -> str | None:
    try:
        schema = msgspec.json.decode(content, type=_Head).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(schema, str) or schema == "perch.plan/2":
        return None
    return f"its schema is {schema}, and this Perch reads perch.plan/2"
