"""Flows of one kind, as columns: which of them have nothing said of them, and their records.

perch.judge.alike finds the kinds. Each law is that of perch.judge.times, origin and bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from perch.judge import bounds, ends, origin, places, times, wire
from perch.judge.asked import WHOLE_DURATION
from perch.judge.hosts import HostFacts
from perch.judge.places import Source
from perch.model.moments import moment
from perch.model.part import Part
from perch.model.plan import Flow, Plan
from perch.model.raw import End, Layout, Reading
from perch.model.record import ROLES, Counters, Record, Role, Side

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Every whole number below is a float, too.
EXACT = 2.0**53
#: Sums nearer than this to a bound are compared with the bound itself.
NEAR = 1e-9


class Read(NamedTuple):
    """An end whose readings tell what each counter did: `moved` of the counters at `places`."""

    end: End
    layout: Layout
    before: Reading
    after: Reading
    places: tuple[int, ...]
    moved: tuple[int, ...]


class Like(NamedTuple):
    """A flow that may be of a kind, with its parts and what both ends read."""

    flow: Flow
    parts: Sequence[Part]
    client: Read
    server: Read


class Moved(NamedTuple):
    """A counter of bytes or packets: where among what moved its two ways stand, if they did."""

    source: Source
    tx: list[int]
    rx: list[int]


class KindEnd(msgspec.Struct):
    """One end of such flows.

    `own`: the host's counters by name. `sent`, `received`: packets of its port. All by where they
    stand among what moved. `idle`: by host what its device counts at rest, both ways of each
    counter, and in how many seconds. `sides`: by host those of its records.
    """

    device: str | None
    port: str | None
    counters: list[Moved]
    own: list[tuple[str, int | None]]
    sent: list[int]
    received: list[int]
    carriers: list[str]
    idle: dict[str, tuple[float, ...]] = {}
    sides: dict[str, list[Side]] = {}


class Kind(msgspec.Struct):
    """Flows that differ in their figures alone. `records`: of the one that was looked at."""

    records: list[Record]
    ends: dict[Role, KindEnd]
    lasts_s: float | None
    rdma: bool
    hardware: bool


class Alike(NamedTuple):
    """What such a flow left: its records, and what carried it at each end."""

    records: list[Record]
    carriers: dict[Role, list[str]]
    hardware: bool


class _Side:
    """One end of many flows, a row for each: times in seconds, nan where there is none.

    `moved`: a column for each counter that did.
    """

    def __init__(self, hosts: Sequence[str], reads: Sequence[Read]) -> None:
        self.hosts = hosts
        told = [
            (one.end.begun, one.end.over, one.end.elapsed_s, one.before.time, one.after.time)
            for one in reads
        ]
        self.times = times.Times(*np.array(told, float).T)
        self.seconds: Floats = self.times.after - self.times.before
        self.moved: Floats = np.array([one.moved for one in reads], float).T

    def counts(self, at: int | None) -> Floats:
        """Of one counter."""
        found: Floats = np.zeros(len(self.hosts)) if at is None else self.moved[at]
        return found

    def sum(self, at: Sequence[int]) -> Floats:
        """Of several counters together."""
        return sum(map(self.counts, at), np.zeros(len(self.hosts)))


class OfKind:
    """Many flows of one kind. `hosts`: of every host of the plan."""

    def __init__(
        self, plan: Plan, hosts: Mapping[str, HostFacts], kind: Kind, flows: Sequence[Like]
    ) -> None:
        self._plan, self._hosts, self._kind, self._flows = plan, hosts, kind, flows
        self._is_retry = flows[0].flow.retry
        self._sides: dict[Role, _Side] = {
            "client": _Side([one.flow.client for one in flows], [one.client for one in flows]),
            "server": _Side([one.flow.server for one in flows], [one.server for one in flows]),
        }
        self._claims = [wire.of_flow(one.flow, one.parts, rdma=kind.rdma) for one in flows]

    def found(self) -> list[Alike | None]:
        """What each flow left; None where it must be looked at closely."""
        sure = np.ones(len(self._flows), bool)
        with np.errstate(invalid="ignore"):
            for holds in (self._in_place(), *self._in_time(), *self._within_bounds()):
                sure &= holds
        carriers = {role: end.carriers for role, end in self._kind.ends.items()}
        records = self._records(np.flatnonzero(sure).tolist())
        return [
            Alike(next(records), carriers, self._kind.hardware) if is_sure else None
            for is_sure in sure.tolist()
        ]

    # ---- place and time

    def _in_place(self) -> Mask:
        """Whether the outputs name both ends as plan and hosts do."""
        known = {
            name: (self._hosts[name].hostname, host.address)
            for name, host in self._plan.hosts.items()
        }
        return np.array(
            [
                all(
                    (mine.host, mine.address) == known[one.flow.client]
                    and (theirs.host, theirs.address) == known[one.flow.server]
                    for mine, theirs in map(_both, one.parts)
                )
                for one in self._flows
            ]
        )

    def _in_time(self) -> Iterator[Mask]:
        mine, theirs = self._sides["client"], self._sides["server"]
        created = moment(self._plan.created) or math.nan
        for side in (mine, theirs):
            begin, stop = np.array([self._walked(host) for host in side.hosts], float).T
            yield times.surely_timely(created, begin, stop, side.times)
        lasted = np.zeros(len(self._flows))
        for parts in zip(*(one.parts for one in self._flows), strict=True):
            seconds = np.array([part.elapsed_s or 0 for part in parts], float)
            begun = np.array([moment(part.started) for part in parts], float)
            yield times.in_process(begun, seconds, mine.times.begun, mine.times.over)
            yield seconds >= WHOLE_DURATION * (self._kind.lasts_s or 0)
            lasted += seconds
        yield from self._idle_enough()
        yield np.array(
            [
                len(one.parts) == 1 or times.overlapping(one.flow, one.parts) is None
                for one in self._flows
            ]
        )
        for lived in (mine.times.lasted, mine.seconds, theirs.seconds):
            yield times.fits(lasted * (1 + NEAR), lived)

    def _walked(self, host: str) -> tuple[float, float]:
        """When the host's agent began and ended the walk of these flows."""
        facts = self._hosts[host]
        return times.walked(facts.retry_agent if self._is_retry else facts.agent)

    def _idle_enough(self) -> Iterator[Mask]:
        """Whether no part took more seconds of processors than its hosts have."""
        lived = self._sides["client"].times.lasted
        for role, side in self._sides.items():
            cores = np.array([self._hosts[host].cores or math.inf for host in side.hosts], float)
            for parts in zip(*(one.parts for one in self._flows), strict=True):
                used = [origin.processor_s(part, role) for part in parts]
                ran = np.array([origin.ran_s(*one) for one in zip(parts, lived, strict=True)])
                yield ~(np.array(used, float) > origin.processors_s(cores, ran))

    # ---- bounds

    def _within_bounds(self) -> Iterator[Mask]:
        """Whether no counter of either end has anything to say (perch.judge.bounds)."""
        yield np.array([one is not None and one.total > 0 for one in self._claims])
        claims = [one for one in self._claims if one is not None]
        if len(claims) < len(self._claims):  # a few of a run: all are looked at closely
            yield np.zeros(len(self._claims), bool)
            return
        for role, side in self._sides.items():
            yield np.all(side.moved < EXACT, axis=0)
            end = self._kind.ends[role]
            rest = np.array([self._at_rest(host, end) for host in side.hosts], float).T
            for n, counter in enumerate(end.counters):
                one = counter.source
                margins = bounds.margins_of(claims, role, one.unit, one.belongs_to, self._kind.rdma)
                for way, at in enumerate((counter.tx, counter.rx)):
                    idle = rest[2 * n + way] * side.seconds / rest[-1]
                    counted = one.each * side.sum(at)
                    yield bounds.surely_holds(margins[way], counted, idle, side.seconds)

    def _at_rest(self, host: str, end: KindEnd) -> tuple[float, ...]:
        """Of each counter both ways in its host's idle time, and its seconds.

        Of hardware that was not read, nan.
        """
        found = end.idle.get(host)
        if found is None:
            facts = self._hosts[host]
            rest, seconds = places.at_rest(
                facts,
                [one.source for one in end.counters],
                end.device,
                end.port,
                rdma=self._kind.rdma,
            )
            unread = None in rest and self._plan.hosts[host].scope == "hardware"
            ways = [way or 0 for one in rest for way in ((one.tx, one.rx) if one else (0, 0))]
            found = (*((math.nan,) * len(ways) if unread else ways), seconds)
            end.idle[host] = found
        return found

    # ---- records

    def _records(self, rows: Sequence[int]) -> Iterator[list[Record]]:
        """Those of these flows: the kind's, with each flow's names and figures."""
        kind, mine, theirs = self._kind, self._sides["client"], self._sides["server"]
        skews = ends.skews_s(mine.times, theirs.times)
        octets = [self._octets(role, rows) for role in ROLES]
        own = [self._own(role, rows) for role in ROLES]
        sent, lost = (figure.astype(int)[rows].tolist() for figure in self._packets())
        for n, row in enumerate(rows):
            flow, parts = self._flows[row].flow, self._flows[row].parts
            claim = self._claims[row]
            counters = Counters(own[0][n], own[1][n])
            sides = self._sides_of("client", flow.client), self._sides_of("server", flow.server)
            found = []
            for at, (like, part) in enumerate(zip(kind.records, parts, strict=True)):
                if part.cpu is not None and like.kind == "latency":
                    part.cpu.client_s_per_gb = part.cpu.server_s_per_gb = None
                record = replace(
                    like,
                    flow=flow.id,
                    repeat=flow.repeat,
                    client=sides[0][at],
                    server=sides[1][at],
                    queue_pairs=part.queue_pairs,
                    started=part.started,
                    elapsed_s=part.elapsed_s,
                    clock_skew_s=skews[row],
                    latency_us=part.latency_us,
                    bandwidth=part.bandwidth,
                    histogram=part.histogram,
                    cpu=part.cpu,
                    integrity=part.integrity,
                    tcp=part.tcp,
                    loss=part.loss,
                    stall=part.stall,
                    counters=counters,
                )
                if record.path is not None and claim is not None:
                    record.path = replace(
                        record.path,
                        claimed_bytes=math.floor(claim.total),
                        client_device_bytes=octets[0][n],
                        server_device_bytes=octets[1][n],
                    )
                if record.packets is not None:
                    lose = record.packets.lost is not None
                    record.packets = replace(
                        record.packets, sent=sent[n], lost=lost[n] if lose else None
                    )
                found.append(record)
            yield found

    def _sides_of(self, role: Role, host: str) -> list[Side]:
        """One end of each of a flow's records."""
        end = self._kind.ends[role]
        found = end.sides.get(host)
        if found is None:
            address = self._plan.hosts[host].address
            like = [one.client if role == "client" else one.server for one in self._kind.records]
            found = [replace(side, host=host, address=address) for side in like]
            end.sides[host] = found
        return found

    def _octets(self, role: Role, rows: Sequence[int]) -> list[int] | list[None]:
        """Of the first counter of bytes, both ways."""
        side = self._sides[role]
        for one in self._kind.ends[role].counters:
            if one.source.unit == "bytes":
                both = one.source.each * (side.sum(one.tx) + side.sum(one.rx))
                return _whole(both, rows)
        return [None] * len(rows)

    def _own(self, role: Role, rows: Sequence[int]) -> list[dict[str, int]]:
        """What each host itself counted."""
        own, side = self._kind.ends[role].own, self._sides[role]
        names = [name for name, _ in own]
        columns = [_whole(side.counts(at), rows) for _, at in own]
        if not names:
            return [{} for _ in rows]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def _packets(self) -> tuple[Floats, Floats]:
        """Packets that both ends sent, and those that did not arrive."""
        mine, theirs = self._sides["client"], self._sides["server"]
        here, there = self._kind.ends["client"], self._kind.ends["server"]
        to, back = mine.sum(here.sent), theirs.sum(there.sent)
        lost = np.maximum(to - theirs.sum(there.received), 0)
        return to + back, lost + np.maximum(back - mine.sum(here.received), 0)


def _both(part: Part) -> tuple[Side, Side]:
    return part.client or Side(), part.server or Side()


def _whole(counts: Floats, rows: Sequence[int]) -> list[int]:
    found: list[int] = counts[rows].astype(int).tolist()
    return found
