"""The flows of a run -> records: one for each `expect` of a flow, in the plan's order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple

import msgspec

from perch.judge import as_planned, ends, events, links, origin, packets, path, scope
from perch.judge import round as rounds
from perch.judge.alike import Found, Kinds
from perch.judge.alike_flows import Alike
from perch.judge.asked import Asked, Asking
from perch.judge.counters import Counted, counted
from perch.judge.host_lines import Part as FilePart
from perch.judge.hosts import HostFacts
from perch.judge.outcome import Cause, belongs, cause, server_cause, with_server
from perch.judge.outputs import Outputs, UnusableError
from perch.judge.path import Proof
from perch.judge.raw import RawFiles, TooLargeError
from perch.judge.recorded import OfFlow, record
from perch.judge.seen import Seen, seen
from perch.judge.trail import End as ReadEnd
from perch.judge.trail import Trail
from perch.model.part import Part
from perch.model.plan import Flow, Plan, Round
from perch.model.raw import End, FlowFiles, Readings
from perch.model.record import ROLES, Path, Placement, Record, Role
from perch.tools import TOOLS, ToolOutput, read_many
from perch.tools.tool import shell_exit_code


class _Said(msgspec.Struct):
    """What both agents left of a flow, and the tool's output; `why` that is not everything.

    `foreign`: why the files are not of this flow. `has_output`: that tells something.
    """

    flow: Flow
    raw: FlowFiles
    parts: list[Part]
    why: Cause | None
    foreign: Cause | None = None
    has_output: bool = True


class _Heard(msgspec.Struct):
    """A flow before the other flows of its round are known."""

    flow: Flow
    asked: Asked
    parts: list[Part]
    client: Readings | None
    server: Readings | None
    proof: Proof
    routes: links.Routes
    of_flow: OfFlow
    seen: Seen
    ends: list[ReadEnd]


class _Looked(NamedTuple):
    """A flow that was looked at closely, and its records."""

    heard: _Heard
    records: list[Record]


class Read(NamedTuple):
    """What some rounds left: their records, and a row for each of their flows."""

    records: list[Record]
    seen: list[Seen]


def _readings(end: End | None) -> Readings | None:
    return end.counters if end else None


def _placement(end: End | None) -> Placement | None:
    return end.placement if end else None


def _route(side: Counted | None) -> str | None:
    return (side.route or side.address) if side else None


class FlowReader:
    """Reads the flows of one run. `hosts`: of every host of the plan."""

    def __init__(self, plan: Plan, hosts: Mapping[str, HostFacts], files: RawFiles) -> None:
        self._plan = plan
        self._hosts = hosts
        self._files = files
        self._outputs = Outputs(files, hosts, {})
        self._planned = origin.Planned(plan, hosts)
        self._asking = Asking(plan.hosts)
        self._kinds = Kinds(plan, hosts)

    def begin(self, parts: Mapping[str, FilePart]) -> None:
        """A piece, whose lines lie in these parts of the walks' folders."""
        self._outputs = Outputs(self._files, self._hosts, parts)

    def read(self, turns: Sequence[Round], trail: Trail) -> Read:
        """Some rounds that follow each other; `trail` goes on with them.

        Where flows of a round share a host, that host's counters hold the bytes of all: their paths
        are judged together.
        """
        whole = Read([], [])
        said = self._said([flow for turn in turns for flow in turn.flows])
        shared = [rounds.shared_hosts(turn.flows) for turn in turns]
        rows = iter(range(len(said)))
        of_rounds = [list(islice(rows, len(turn.flows))) for turn in turns]
        alone = [
            row for at, hosts in zip(of_rounds, shared, strict=True) if not hosts for row in at
        ]
        looked, alike = self._looked(said, alone)
        for of_round, hosts in zip(of_rounds, shared, strict=True):
            if hosts:
                self._read_together([said[row] for row in of_round], hosts, trail, whole)
                continue
            for row in of_round:
                if row in alike:
                    _follow_alike(said[row], alike[row], trail, whole)
                else:
                    _follow(trail, whole, [looked[row]])
        return whole

    def _looked(
        self, said: Sequence[_Said], alone: Sequence[int]
    ) -> tuple[dict[int, _Looked], dict[int, Alike]]:
        """Those that were looked at closely, and those that differ from these in figures alone.

        `alone`: of the flows whose hosts have no other one in their round.
        """
        looked: dict[int, _Looked] = {}
        alike: dict[int, Found] = {}
        for row in alone:
            found = self._found(said[row])
            if found and self._kinds.knows(found):
                alike[row] = found
                continue
            one = looked[row] = self._look(said[row])
            if found and one.heard.parts is found[1].parts:
                self._kinds.learn(found, one.heard.asked, one.records)
        sure = self._kinds.of(alike)
        looked |= {row: self._look(said[row]) for row in alike if row not in sure}
        return looked, sure

    def _found(self, said: _Said) -> Found | None:
        """What a flow shares with others of its kind; None of one that is looked at closely."""
        flow, raw = said.flow, said.raw
        if said.foreign or said.why or server_cause(flow, raw.server, raw.server_stderr):
            return None
        return self._kinds.key(flow, said.parts, raw)

    def _look(self, said: _Said) -> _Looked:
        one = self._hear(said, frozenset())
        return _Looked(one, list(self._records(one, one.proof.path)))

    def _read_together(
        self, said: Sequence[_Said], shared: set[str], trail: Trail, whole: Read
    ) -> None:
        """A round some of whose flows share hosts."""
        rails = rounds.shared_rails([one.flow for one in said])
        heard = [self._hear(one, shared, rails) for one in said]
        paths = rounds.judged(
            [rounds.Member(one.flow, one.client, one.server, one.proof) for one in heard]
        )
        looked = [
            _Looked(one, list(self._records(one, judged)))
            for one, judged in zip(heard, paths, strict=True)
        ]
        _follow(trail, whole, looked)

    def _said(self, flows: Sequence[Flow]) -> list[_Said]:
        """What was left of each flow; `parts` of all tools' outputs are read together."""
        found = list(map(self._left, flows))
        printed = [one for one in found if one.has_output]
        outputs = [
            ToolOutput(
                one.flow, one.raw.stdout, one.raw.stderr, self._hosts[one.flow.client].versions
            )
            for one in printed
        ]
        for one, parts in zip(printed, read_many(outputs), strict=True):
            one.parts = parts
        return found

    def _left(self, flow: Flow) -> _Said:
        """The same, without what the tool printed."""
        try:
            raw = self._outputs.of(flow)
        except (TooLargeError, UnusableError) as error:
            raw = FlowFiles(None, None, b"", b"")
            return _Said(flow, raw, [], Cause("error", 6, str(error)), has_output=False)
        foreign = belongs(self._plan.run, flow, raw.client, raw.server)
        if foreign:
            return _Said(flow, raw, [], foreign, foreign, has_output=False)
        tool = TOOLS.get(flow.tool)
        exit_code = tool.exit_code_of if tool else shell_exit_code
        agent = self._hosts[flow.client].walker(retry=flow.retry)
        why = cause(flow, raw.client, raw.server, agent, raw.stderr, exit_code)
        if why and raw.client and raw.client.state == "done":
            why = with_server(why, flow, raw.server, raw.server_stderr)
        silent = why and (why.state == "not_measured" or _says_nothing(flow, raw.stdout))
        return _Said(flow, raw, [], why, has_output=not silent)

    def _hear(
        self, said: _Said, shared_hosts: Set[str], shared_rails: Set[tuple[str, int]] = frozenset()
    ) -> _Heard:
        flow, raw = said.flow, said.raw
        asked = self._asking.of(flow)
        parts = as_planned.expected_parts(
            flow, said.parts, said.why, server_cause(flow, raw.server, raw.server_stderr), asked
        )
        timely = origin.check(self._planned, flow, parts, raw)
        readings = _readings(raw.client), _readings(raw.server)
        client, server = counted(readings[0]), counted(readings[1])
        shared = flow.client in shared_hosts or flow.server in shared_hosts
        proof = path.proof(
            self._plan, self._hosts, flow, parts, client, server, asked.uses, shared=shared
        )
        measured = any(part.status == "ok" for part in parts)
        of_flow = OfFlow(
            client=client,
            server=server,
            places=(_placement(raw.client), _placement(raw.server)),
            events=events.of_flow(flow, proof, measured=measured),
            packets=packets.of_flow(
                proof.ports["client"],
                proof.ports["server"],
                shared=any(
                    (flow.host(role), rail) in shared_rails
                    for role in ROLES
                    for rail in range(flow.rail, flow.rail + flow.devices)
                ),
            ),
            clock_skew_s=ends.skew_s(raw.client, raw.server, parts),
        )
        routes = links.Routes(_route(client), _route(server))
        follows = timely and not said.foreign and self._plan.soak is None
        read_ends = _read_ends(flow, raw) if follows else []
        row = seen(flow, raw)
        return _Heard(flow, asked, parts, *readings, proof, routes, of_flow, row, read_ends)

    def _records(self, heard: _Heard, judged: Path) -> Iterator[Record]:
        plan, hosts, flow, uses = self._plan, self._hosts, heard.flow, heard.asked.uses
        fabric = plan.hosts[flow.client].fabric
        ends = (plan.hosts[flow.client], plan.hosts[flow.server])
        expected = links.least([one.link_gbit_s for one in ends])
        known = hosts[flow.client].links, hosts[flow.server].links
        counts: dict[Role, Counted | None]
        counts = {"client": heard.of_flow.client, "server": heard.of_flow.server}
        for part, expect in zip(heard.parts, flow.expect, strict=True):
            shown = scope.shown(part, flow, fabric, hosts, counts, uses)
            worth = scope.weakest(flow.scope, shown)
            yield record(
                plan,
                flow,
                expect,
                part,
                scope=worth,
                link=links.of_part(part, flow, fabric, known, heard.routes, expected),
                path=scope.proven_hardware(judged, part, worth, flow, hosts, uses),
                of_flow=heard.of_flow,
            )


def _follow(trail: Trail, whole: Read, looked: Sequence[_Looked]) -> None:
    """Goes on with what the flows of one round read, and which devices carried them."""
    for one, records in looked:
        hardware = any(record.scope == "hardware" for record in records)
        _carry(trail, one.flow, one.proof.carried, hardware=hardware)
        whole.records.extend(records)
        whole.seen.append(one.seen)
    trail.read(end for one, _ in looked for end in one.ends)


def _follow_alike(said: _Said, alike: Alike, trail: Trail, whole: Read) -> None:
    """The same of a flow that differs in its figures alone from one that was looked at."""
    whole.records.extend(alike.records)
    whole.seen.append(seen(said.flow, said.raw))
    _carry(trail, said.flow, alike.carriers, hardware=alike.hardware)
    for end in _read_ends(said.flow, said.raw):
        if not trail.goes_on(*end):
            trail.read([end])


def _carry(
    trail: Trail, flow: Flow, devices: Mapping[Role, Iterable[str]], *, hardware: bool
) -> None:
    for role in ROLES:
        trail.carried(flow.host(role), devices[role], hardware=hardware)


def _read_ends(flow: Flow, raw: FlowFiles) -> list[ReadEnd]:
    """The ends of a flow whose counters were read."""
    found = ((role, _readings(raw.end(role))) for role in ROLES)
    return [ReadEnd(flow.host(role), flow.id, one) for role, one in found if one is not None]


def _says_nothing(flow: Flow, stdout: bytes) -> bool:
    """The engine's silence is an output of its own; that of other tools is told by their exit."""
    return flow.tool != "perch" and not stdout.strip()
