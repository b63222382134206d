"""Flows that differ in their figures alone: what words decide is decided once for all of them.

A flow is looked at closely (perch.judge.records). Where nothing was to be said of it, it stands for
those whose plan, hosts, readings and outputs say the same, but for figures, times and addresses.
Of such a flow these are compared; where one of them is not surely as it must be, it is looked at
closely itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

import msgspec
from msgspec.structs import replace

from perch.judge import origin, places
from perch.judge.alike_flows import Alike, Kind, KindEnd, Like, Moved, OfKind, Read
from perch.judge.asked import Asked
from perch.judge.counter_table import NO_CLASS, RECEIVED, SENT, class_of
from perch.judge.counters import counted
from perch.judge.hosts import HostFacts
from perch.judge.path import over_rdma
from perch.model.part import Part
from perch.model.plan import Flow, Plan, PlanHost
from perch.model.raw import End, FlowFiles
from perch.model.record import ROLES, Record, Role, Side

#: Kinds of flows that are remembered; a plan has a few for each test.
KINDS_MAX = 4096

Key = tuple[object, ...]
#: What a flow shares with others of its kind, and the flow.
Found = tuple[Key, Like]
_encode = msgspec.json.Encoder().encode


def _read(end: End | None) -> Read | None:
    if end is None or end.counters is None:
        return None
    before, after = end.counters.before, end.counters.after
    if before is None or after is None or before.layout is not after.layout:
        return None
    step = after.step
    if not step.places or not after.steps_on(before) or not _is_known(step.moved):
        return None
    return Read(end, after.layout, before, after, step.places, step.moved)


def _is_known(moved: tuple[int | None, ...]) -> TypeGuard[tuple[int, ...]]:
    return None not in moved


def _traits(plan: PlanHost, facts: HostFacts) -> bytes:
    """All that is asked of a host where one of its flows is judged, but for times and figures."""
    return _encode(
        (
            plan.fabric, plan.scope, plan.link_gbit_s, plan.devices,
            origin.is_loopback(plan.address), facts.environment, facts.versions, facts.drivers,
            facts.rdma_drivers, facts.cxi_drivers, facts.links, facts.address_interface,
        )
    )  # fmt: skip


def _words(part: Part) -> tuple[object, ...]:
    """What a part says beside its figures, but for the hosts' names and addresses."""
    client, server = part.client, part.server
    if client is None or server is None:
        return ()
    return (
        part.tool, part.backend, part.provider, part.op, part.kind, part.definition,
        part.completion_level, part.connection, part.simulated, part.reverse, part.environment,
        part.link, part.params, _but_name(client), _but_name(server),
    )  # fmt: skip


def _but_name(side: Side) -> Side:
    return replace(side, host=None, address=None)


def _has_figures_alone(part: Part) -> bool:
    """Whether all that it says is among its words, or compared here."""
    return (
        part.status == "ok"
        and part.error is None
        and not part.intervals
        and part.soak is None
        and part.transfer is None
        and part.client is not None
        and part.server is not None
    )


class Kinds:
    """The kinds of flows of one run, as they are met. `hosts`: of every host of the plan."""

    def __init__(self, plan: Plan, hosts: Mapping[str, HostFacts]) -> None:
        self._plan, self._hosts = plan, hosts
        self._known: dict[Key, Kind] = {}
        self._traits: dict[bytes, int] = {}
        self._like = {
            name: self._traits.setdefault(_traits(host, hosts[name]), len(self._traits))
            for name, host in plan.hosts.items()
        }

    def key(self, flow: Flow, parts: Sequence[Part], raw: FlowFiles) -> Found | None:
        """What a flow shares with others of its kind; None of one that is looked at closely."""
        client, server = _read(raw.client), _read(raw.server)
        if client is None or server is None or flow.tool != "perch" or self._plan.soak is not None:
            return None
        if not all(map(_has_figures_alone, parts)):
            return None
        said = [_words(part) for part in parts], client.end.placement, server.end.placement
        key = (
            flow.retry, flow.test, flow.rail, flow.devices, flow.rails_at_once, flow.scope,
            flow.hop_class, flow.estimate_s, self._like[flow.client], self._like[flow.server],
            client.layout, server.layout, client.places, server.places,
            client.end.counters and client.end.counters.route_interface,
            server.end.counters and server.end.counters.route_interface,
            _encode(said),
        )  # fmt: skip
        return key, Like(flow, parts, client, server)

    def knows(self, found: Found) -> bool:
        """Whether a flow of its kind was looked at."""
        return found[0] in self._known

    def of(self, flows: Mapping[int, Found]) -> dict[int, Alike]:
        """What flows of known kinds left, but for those that must be looked at closely."""
        of_key: dict[Key, dict[int, Like]] = {}
        for row, (key, like) in flows.items():
            of_key.setdefault(key, {})[row] = like
        whole: dict[int, Alike] = {}
        for key, likes in of_key.items():
            of_kind = OfKind(self._plan, self._hosts, self._known[key], list(likes.values()))
            found = zip(likes, of_kind.found(), strict=True)
            whole |= {row: one for row, one in found if one is not None}
        return whole

    def learn(self, found: Found, asked: Asked, records: Sequence[Record]) -> None:
        """A flow that was looked at, and its records as they came out."""
        key, (flow, parts, *both) = found
        paths = [record.path.state if record.path else None for record in records]
        good = all(record.status == "ok" and record.error is None for record in records)
        if not good or set(paths) != {"proven"} or asked.every_s is not None:
            return
        if len(self._known) >= KINDS_MAX or any(map(_had_events, both)):
            return
        if {record.kind for record in records} - {"latency", "bandwidth"}:
            return
        rdma = over_rdma(flow, parts)
        ends: dict[Role, KindEnd] = {}
        for role, read in zip(ROLES, both, strict=True):
            ends[role] = self._end(flow, parts, role, asked, read, rdma)
        hardware = any(record.scope == "hardware" for record in records)
        own = [replace(record) for record in records]  # laws may spoil the others
        self._known[key] = Kind(own, ends, asked.lasts_s, rdma, hardware)

    def _end(
        self, flow: Flow, parts: Sequence[Part], role: Role, asked: Asked, read: Read, rdma: bool
    ) -> KindEnd:
        planned = flow.used(self._plan.hosts[flow.host(role)].devices)
        side = counted(read.end.counters)
        device, port, where = places.spot(asked.uses[role], parts, role, planned, side, rdma=rdma)
        at = {place: n for n, place in enumerate(read.places)}
        layout = read.layout
        ports = [layout.rdma[key] for key in where.ports] if len(where.ports) == 1 else []

        def of(all_places: Sequence[int]) -> list[int]:
            return [at[place] for place in all_places if place in at]

        def first(names: Sequence[str]) -> list[int]:
            return of(
                [
                    block.place(next(name for name in names if name in block.known))
                    for block in ports
                    if not block.known.isdisjoint(names)
                ]
            )

        return KindEnd(
            device,
            port,
            [
                Moved(one, of(one.places(layout, one.tx)), of(one.places(layout, one.rx)))
                for one in where.sources
            ],
            [(name, at.get(layout.host.place(name))) for name in layout.host.names],
            first(SENT),
            first(RECEIVED),
            sorted({name for _, name in where.carriers}),
        )


def _had_events(read: Read) -> bool:
    """Whether a counter moved that has a class; those of the host itself have none here."""
    at, first = read.layout.places, len(read.layout.host.names)
    return any(place >= first and class_of(at[place][1]) != NO_CLASS for place in read.places)
