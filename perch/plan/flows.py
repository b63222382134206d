"""The flows of a plan: lines of rounds.jsonl -> flows with their commands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model import units
from perch.model.plan import (
    Expect,
    Flow,
    FlowKey,
    Plan,
    PlanDocument,
    PlanHost,
    PlanTest,
    Round,
    RoundLine,
    RoundsFile,
)
from perch.model.text import explained
from perch.plan.places import hop_class, scope_of
from perch.plan.slots import pair_of, slots
from perch.plan.template import Facts, Template, facts_of, places_of

#: Lies beside plan.json.
FILE = "rounds.jsonl"

_line = msgspec.json.Decoder(RoundLine)


class _Form:
    """A test's form, its templates read once."""

    def __init__(self, client: Template, server: Template, expect: list[Expect]) -> None:
        self.client, self.server, self.expect = client, server, expect


class Flows:
    """Makes the flows of a plan."""

    def __init__(self, plan: PlanDocument | Plan) -> None:
        self.plan = plan
        self._forms = {
            (name, number): _Form(Template(form.client), Template(form.server), form.expect)
            for name, test in plan.tests.items()
            for number, form in test.forms.items()
        }
        #: Each name once: that of a line is another text in each flow.
        self._names = {name: name for name in (*plan.tests, *plan.hosts)}
        self._facts: dict[tuple[str, int, int, tuple[int, ...], str], Facts] = {}

    def devices(self, test: PlanTest, client: PlanHost, server: PlanHost) -> int:
        """How many of each end's devices a flow uses: more than one only of a transfer."""
        if test.kind != "transfer":
            return 1
        asked = test.params.get("devices")
        return min(len(places_of(asked, end.devices)) for end in (client, server))

    def facts(self, host: str, flow: Flow) -> Facts:
        """What the placeholders of a host's end stand for."""
        at_once, slot = tuple(flow.together), ""
        if flow.slots:
            own = flow.slots[host == flow.server]
            at_once, slot = tuple(own.rails), own.number
        key = host, flow.devices, flow.rail, at_once, slot
        found = self._facts.get(key)
        if found is None:
            document = msgspec.structs.asdict(self.plan.hosts[host])
            found = self._facts[key] = facts_of(document, *key[1:])
        return found

    def flow(self, key: FlowKey, line: RoundLine, *, retry: bool = False) -> Flow:
        """A flow without its commands.

        Raises KeyError where the plan has no such test, host or number of devices.
        """
        test = self.plan.tests[key.test]
        client, server = self.plan.hosts[key.client], self.plan.hosts[key.server]
        name = self._names
        imported = self.plan.imports.get(key.id) if self.plan.imports else None
        devices = self.devices(test, client, server)
        return Flow(
            id=key.id,
            test=name[key.test],
            tool=test.tool,
            kind=test.kind,
            client=name[key.client],
            server=name[key.server],
            scope="imported"
            if imported
            else scope_of(test.carrier, client, server, devices, key.rail),
            repeat=key.repeat,
            rail=key.rail,
            devices=devices,
            title=test.title,
            backend=test.backend,
            provider=test.provider,
            op=test.op,
            hop_class=hop_class(client, server),
            params=test.params,
            deadline_s=line.deadline_s,
            estimate_s=line.estimate_s,
            expect=imported.expect if imported else self._forms[key.test, devices].expect,
            imported=imported,
            retry=retry,
        )

    def round(self, line: RoundLine, *, retry: bool = False) -> Round:
        """The flows of a line, without their commands. Raises KeyError as `flow`."""
        flows = [self.flow(key, line, retry=retry) for key in line.flows]
        if any(key.rail for key in line.flows):
            rails: dict[tuple[str, str, str], list[int]] = {}
            for one in flows:
                one.together = of_pair = rails.setdefault((one.test, one.client, one.server), [])
                of_pair.append(one.rail)
        if self.plan.soak is not None:
            found = slots(line.flows, self.plan.tests)
            for key, one in zip(line.flows, flows, strict=True):
                one.slots = found.get(pair_of(key), ())
        return Round(flows)

    def commands(self, flow: Flow) -> tuple[list[str], list[str]]:
        """What client and server of a flow run.

        Raises PerchError where the plan does not say what a command names.
        """
        if flow.imported is not None:
            return flow.imported.command, []
        form = self._forms[flow.test, flow.devices]
        facts: dict[str, Facts] = {
            "client": self.facts(flow.client, flow),
            "server": self.facts(flow.server, flow),
            "round": {"seconds": units.shown(flow.estimate_s)},
        }
        try:
            return form.client.expanded(facts), form.server.expanded(facts)
        except KeyError as error:
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                f"its test's command needs {error}, which the plan does not say",
                file="plan.json",
                place=f"flow {flow.id}",
            ) from None

    def fill(self, flows: Iterable[Flow]) -> None:
        """Gives flows their commands."""
        for flow in flows:
            flow.client_argv, flow.server_argv = self.commands(flow)


def _damaged(what: str, place: str = "") -> PerchError:
    return PerchError(
        ExitCode.INCONCLUSIVE,
        f"it cannot be used: {what}",
        file=FILE,
        place=place,
        remedy="fetch the run's folder again, or restore it from a bundle",
    )


def lines(content: bytes, wanted: RoundsFile) -> Iterator[RoundLine]:
    """The rounds of a plan, in order. `content`: of rounds.jsonl. `wanted`: as plan.json has it.

    Raises:
        PerchError: the file is damaged, or not the one that the plan was written with.
    """
    seen = flows = 0
    try:
        for text in content.splitlines():
            line = _line.decode(text)
            seen, flows = seen + 1, flows + len(line.flows)
            yield line
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(explained(error), f"line {seen + 1}") from None
    found = RoundsFile(seen, flows, hashlib.sha256(content).hexdigest())
    if found != wanted:
        said = f"it has {seen} rounds with {flows} flows, plan.json says {wanted.rounds}"
        raise _damaged(f"{said} with {wanted.flows}, or other ones")
