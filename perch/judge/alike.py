"""Flows that differ in their figures alone: what words decide is decided once for all of them.

A flow is looked at closely (perch.judge.records). Where nothing was to be said of it, it stands for
those whose plan, hosts, readings and outputs say the same, but for figures, times and addresses.
Of such a flow these are compared; where one of them is not surely as it must be, it is looked at
closely itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeGuard

import msgspec
from msgspec.structs import replace

from perch.judge import bounds, ends, origin, places, times, wire
from perch.judge.asked import WHOLE_DURATION, Asked
from perch.judge.counter_table import NO_CLASS, RECEIVED, SENT, class_of
from perch.judge.counters import counted
from perch.judge.hosts import HostFacts
from perch.judge.path import over_rdma
from perch.judge.places import Counter, Source
from perch.model.plan import Flow, Plan, PlanHost
from perch.model.raw import End, FlowFiles, Layout, Reading
from perch.model.record import ROLES, Counters, Number, Packets, Part, Record, Role, Side

#: Kinds of flows that are remembered; a plan has a few for each test.
KINDS_MAX = 4096

Key = tuple[object, ...]
_encode = msgspec.json.Encoder().encode


class Read(NamedTuple):
    """An end whose readings tell what each counter did: `moved` of the counters at `places`."""

    end: End
    layout: Layout
    before: Reading
    after: Reading
    places: tuple[int, ...]
    moved: tuple[int, ...]


Found = tuple[Key, Read, Read]


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


class _Moved(NamedTuple):
    """A counter of bytes or packets: where among what moved its two ways stand, if they did."""

    source: Source
    tx: int | None
    rx: int | None

    def of(self, moved: Sequence[int]) -> Counter:
        one, each = self.source, self.source.each
        tx = 0 if self.tx is None else each * moved[self.tx]
        rx = 0 if self.rx is None else each * moved[self.rx]
        return Counter(one.device, one.tx, one.unit, one.belongs_to, tx, rx)


class _End(msgspec.Struct):
    """One end of such flows.

    `own`: the host's counters by name. `sent`, `received`: packets of its port. All by where they
    stand among what moved. `idle`: by host what its device counts at rest, and in which time.
    """

    device: str | None
    port: str | None
    counters: list[_Moved]
    own: list[tuple[str, int | None]]
    sent: list[int]
    received: list[int]
    carriers: list[str]
    idle: dict[str, tuple[list[Counter | None], float] | None]


class Kind(msgspec.Struct):
    """Flows that differ in their figures alone. `records`: of the one that was looked at."""

    records: list[Record]
    ends: dict[Role, _End]
    lasts_s: float | None
    rdma: bool
    hardware: bool


class Alike(NamedTuple):
    """What such a flow left: its records, and what carried it at each end."""

    records: list[Record]
    carriers: dict[Role, list[str]]
    hardware: bool


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
            flow.test, flow.rail, flow.devices, flow.rails_at_once, flow.scope, flow.hop_class,
            flow.estimate_s, self._like[flow.client], self._like[flow.server],
            client.layout, server.layout, client.places, server.places,
            client.end.counters and client.end.counters.route_interface,
            server.end.counters and server.end.counters.route_interface,
            _encode(said),
        )  # fmt: skip
        return key, client, server

    def of(
        self,
        flow: Flow,
        parts: Sequence[Part],
        found: Found,
    ) -> Alike | None:
        """The records of a flow; None where it must be looked at closely."""
        key, *both = found
        kind = self._known.get(key)
        if kind is None or not self._is_of_its_place(flow, parts):
            return None
        client, server = both
        if not self._is_of_its_time(flow, kind, parts, client, server):
            return None
        claim = wire.of_flow(flow, parts, rdma=kind.rdma)
        if claim is None or claim.total <= 0:
            return None
        counters: dict[Role, list[Counter]] = {}
        for role, read in zip(ROLES, both, strict=True):
            end = kind.ends[role]
            counters[role] = [one.of(read.moved) for one in end.counters]
            at_rest = self._at_rest(flow.host(role), end, kind.rdma)
            seconds = (read.after.time or 0) - (read.before.time or 0)
            if at_rest is None or not bounds.surely_hold(
                role, counters[role], *at_rest, seconds, claim, rdma=kind.rdma
            ):
                return None
        records = _records(flow, kind, parts, claim, client, server, counters)
        return Alike(
            records, {role: kind.ends[role].carriers for role in ROLES}, hardware=kind.hardware
        )

    def _is_of_its_place(self, flow: Flow, parts: Sequence[Part]) -> bool:
        for role in ROLES:
            name = flow.host(role)
            said = self._hosts[name].hostname, self._plan.hosts[name].address
            for part in parts:
                side = part.client if role == "client" else part.server
                if side is None or (side.host, side.address) != said:
                    return False
        return True

    def _is_of_its_time(
        self,
        flow: Flow,
        kind: Kind,
        parts: Sequence[Part],
        client: Read,
        server: Read,
    ) -> bool:
        mine, theirs = client.end, server.end
        for role, end in zip(ROLES, (mine, theirs), strict=True):
            facts = self._hosts[flow.host(role)]
            agent = facts.retry_agent if flow.retry else facts.agent
            if not times.surely_timely(self._plan, end, agent):
                return False
            if any(origin.too_busy(part, role, mine, facts) for part in parts):
                return False
        least = 0 if kind.lasts_s is None else WHOLE_DURATION * kind.lasts_s
        for part in parts:
            if (part.elapsed_s or 0) < least or times.not_in_process(flow, part, mine):
                return False
        if len(parts) > 1 and times.overlapping(flow, parts):
            return False
        return times.too_long(parts, mine, theirs) is None

    def _at_rest(
        self, host: str, end: _End, rdma: bool
    ) -> tuple[list[Counter | None], float] | None:
        """What an end's device counted in its host's idle time; None where that is not known."""
        if host not in end.idle:
            facts = self._hosts[host]
            rest, seconds = places.at_rest(
                facts, [one.source for one in end.counters], end.device, end.port, rdma=rdma
            )
            unread = None in rest and self._plan.hosts[host].scope == "hardware"
            end.idle[host] = None if unread else (rest, seconds)
        return end.idle[host]

    def learn(
        self,
        flow: Flow,
        parts: Sequence[Part],
        asked: Asked,
        found: Found,
        records: Sequence[Record],
    ) -> None:
        """A flow that was looked at: `parts` as its output has them, `records` as they came out."""
        key, *both = found
        paths = [record.path.state if record.path else None for record in records]
        good = all(record.status == "ok" and record.error is None for record in records)
        if not good or set(paths) != {"proven"} or asked.every_s is not None:
            return
        if len(self._known) >= KINDS_MAX or any(map(_had_events, both)):
            return
        if {record.kind for record in records} - {"latency", "bandwidth"}:
            return
        rdma = over_rdma(flow, parts)
        ends: dict[Role, _End] = {}
        for role, read in zip(ROLES, both, strict=True):
            ends[role] = self._end(flow, parts, role, asked, read, rdma)
        hardware = any(record.scope == "hardware" for record in records)
        own = [replace(record) for record in records]  # laws may spoil the others
        self._known[key] = Kind(own, ends, asked.lasts_s, rdma, hardware)

    def _end(
        self, flow: Flow, parts: Sequence[Part], role: Role, asked: Asked, read: Read, rdma: bool
    ) -> _End:
        planned = flow.used(self._plan.hosts[flow.host(role)].devices)
        side = counted(read.end.counters)
        device, port, where = places.spot(asked.uses[role], parts, role, planned, side, rdma=rdma)
        at = {place: n for n, place in enumerate(read.places)}
        layout = read.layout
        ports = [layout.rdma[key] for key in where.ports] if len(where.ports) == 1 else []

        def first(names: Sequence[str]) -> list[int]:
            found = [
                block.place(next(name for name in names if name in block.known))
                for block in ports
                if not block.known.isdisjoint(names)
            ]
            return [at[place] for place in found if place in at]

        return _End(
            device,
            port,
            [
                _Moved(one, at.get(one.place(layout, one.tx)), at.get(one.place(layout, one.rx)))
                for one in where.sources
            ],
            [(name, at.get(layout.host.place(name))) for name in layout.host.names],
            first(SENT),
            first(RECEIVED),
            sorted({name for _, name in where.carriers}),
            {},
        )


def _had_events(read: Read) -> bool:
    """Whether a counter moved that has a class; those of the host itself have none here."""
    at, first = read.layout.places, len(read.layout.host.names)
    return any(place >= first and class_of(at[place][1]) != NO_CLASS for place in read.places)


# ---- records -------------------------------------------------------------------------------------


def _records(
    flow: Flow,
    kind: Kind,
    parts: Sequence[Part],
    claim: wire.Claim,
    client: Read,
    server: Read,
    counters: Mapping[Role, Sequence[Counter]],
) -> list[Record]:
    """Those of the kind, with this flow's names and figures."""
    skew = ends.skew_s(client.end, server.end, parts)
    own = Counters(
        _host_counts(kind.ends["client"], client), _host_counts(kind.ends["server"], server)
    )
    octets = {
        "claimed_bytes": math.floor(claim.total),
        "client_device_bytes": _octets(counters["client"]),
        "server_device_bytes": _octets(counters["server"]),
    }
    records = []
    for like, part in zip(kind.records, parts, strict=True):
        mine, theirs = part.client or Side(), part.server or Side()
        if part.cpu is not None and like.kind == "latency":
            part.cpu.client_s_per_gb = part.cpu.server_s_per_gb = None
        record = replace(
            like,
            flow=flow.id,
            repeat=flow.repeat,
            client=replace(like.client, host=flow.client, address=mine.address),
            server=replace(like.server, host=flow.server, address=theirs.address),
            started=part.started,
            elapsed_s=part.elapsed_s,
            clock_skew_s=skew,
            latency_us=part.latency_us,
            bandwidth=part.bandwidth,
            histogram=part.histogram,
            cpu=part.cpu,
            integrity=part.integrity,
            tcp=part.tcp,
            loss=part.loss,
            stall=part.stall,
            counters=own,
            path=like.path and replace(like.path, **octets),
            packets=like.packets and _packets(like.packets, kind, client, server),
        )
        records.append(record)
    return records


def _packets(like: Packets, kind: Kind, client: Read, server: Read) -> Packets:
    mine, theirs = kind.ends["client"], kind.ends["server"]
    there, back = _sum(client, mine.sent), _sum(server, theirs.sent)
    if like.lost is None:
        return replace(like, sent=there + back)
    lost = max(there - _sum(server, theirs.received), 0)
    return replace(like, sent=there + back, lost=lost + max(back - _sum(client, mine.received), 0))


def _sum(read: Read, at: Sequence[int]) -> int:
    return sum(read.moved[n] for n in at)


def _host_counts(end: _End, read: Read) -> dict[str, Number]:
    return {name: 0 if at is None else read.moved[at] for name, at in end.own}


def _octets(counters: Sequence[Counter]) -> int | None:
    """Of the first counter of bytes, both ways."""
    one = next((one for one in counters if one.unit == "bytes"), None)
    return None if one is None else (one.tx or 0) + (one.rx or 0)
