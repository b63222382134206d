"""The law of the path proof: what each counter of a flow must show at least, and at most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from perch.judge import wire
from perch.judge.places import Counter, Place
from perch.model.record import Number, Role

State = Literal["proven", "contradicted", "exceeded", "unknown", "not_judged"]

#: The gravest finding speaks for the flow.
GRAVITY: tuple[State, ...] = ("not_judged", "contradicted", "unknown", "exceeded", "proven")


class Header(NamedTuple):
    """Bytes of a packet beside its payload."""

    least: int
    most: int


#: At least: RoCEv2 over IPv4 (InfiniBand Architecture Specification 1.7, Annex 17: Ethernet 14,
#: IPv4 20, UDP 8, BTH 12, ICRC 4), or TCP (14, 20, 20). At most: preamble, FCS and gap 24, IPv6
#: 20 more, VLAN 4, and the longest extension headers (28) or TCP options (40).
RDMA_HEADER = Header(58, 134)
TCP_HEADER = Header(54, 142)

#: Connection management on an RDMA device, in datagrams of 256 bytes (section 13.4). Site policy:
#: 100 of them.
CONTROL_PACKETS = 100
DATAGRAM = 256

#: Packets that are smaller than they could be. Site policy: 1 % of the wire.
SLACK = 1.01


def control_bytes(sizes: int, seconds: float) -> float:
    """The engine's own traffic beside the payload, on the interface of the host's address.

    Connecting, the job, results and meetings. Counted over veth: 3.5 kB a flow, 0.9 kB a size and
    0.2 kB a second each way; four times that is granted.
    """
    return 16384 + 4096 * sizes + 1024 * seconds


def others_bytes(seconds: float) -> float:
    """What an idle interface may carry, such as the controller's ssh. Site policy: 64 KiB/s."""
    return 65536 * seconds


def counts_late(driver: str | None) -> bool:
    """Whether the last second's bytes may be missing from an interface's counters.

    Software interfaces and virtio count each packet as it passes; a card's driver may fetch its
    counters once a second (bnxt_en does).
    """
    return driver is not None and driver != "virtio_net"


class Finding(NamedTuple):
    """`why` it is not proven."""

    state: State
    why: str | None = None


PROVEN = Finding("proven")


def worst(findings: Iterable[Finding]) -> Finding:
    """The gravest one, the first of several; proven where there is none."""
    return min(findings, key=lambda finding: GRAVITY.index(finding.state), default=PROVEN)


class Bound(msgspec.Struct):
    """What one counter says of one way of a flow, in the counter's unit.

    `least` was claimed; `sure` of it was seen to arrive, or does not ask for it; `most` can be
    explained; up to `noise` nothing differs from control and idle traffic; `late` may be
    missing from the counter. `over` and `port`: the flow's device and port. `elsewhere`:
    interfaces that carried as many bytes, asked for by a contradiction only.
    """

    role: str
    host: str
    rdma: bool
    over: str | None
    port: str | None
    device: str
    by: str
    way: Literal["tx", "rx"]
    unit: str
    counted: int | None
    idle: float
    seconds: float
    least: Number
    sure: Number
    most: Number
    noise: Number
    late: Number
    elsewhere: list[str]

    @property
    def counter(self) -> tuple[str, str, str]:
        return self.device, self.by, self.way

    @property
    def verb(self) -> str:
        return "received" if self.way == "rx" else "sent"


def whole(value: Number) -> str:
    """A count in groups of three digits."""
    return f"{math.floor(value + 0.5):,}"


def judged(bound: Bound, explained_by: str | None) -> Finding:
    """`explained_by`: whose bytes these are; None where bytes of others are among them."""
    at, counted = bound, bound.counted
    if counted is None:
        counter = f"{at.role}: the counter of what {at.device} {at.verb}"
        return Finding("unknown", f"{counter} was reset, has wrapped or is full")
    if counted < at.sure:
        return _too_few(at, counted)
    if counted < at.least:
        return Finding(
            "unknown",
            f"{_subject(at, counted)}, and {whole(at.least)} were sent; the rest was "
            "lost or went another way: with --verify losses are counted",
        )
    if explained_by is not None and counted - at.idle > at.most:
        explained = f"of which {explained_by} {whole(at.most)} at most"
        return Finding("exceeded", f"{_subject(at, counted)}, {explained}")
    if at.least > 0 and counted <= at.noise:
        few = f"too few to tell from control traffic and idle ({whole(at.noise)})"
        return Finding("unknown", f"{_subject(at, counted)}, {few}")
    return PROVEN


def _too_few(at: Bound, counted: int) -> Finding:
    subject, sure = _subject(at, counted), whole(at.sure)
    if counted >= at.sure - at.late:
        return Finding(
            "unknown",
            f"{subject}, {sure} were claimed; its driver may count a second late, so measure for "
            "longer",
        )
    other = f"; {', '.join(at.elsewhere)} carried as many bytes" if at.elsewhere else ""
    return Finding("contradicted", f"{subject}, but at least {sure} were claimed{other}")


def _subject(at: Bound, counted: int) -> str:
    return f"{at.role}: {at.device} {at.verb} {whole(counted)} {at.unit}"


class _Way(msgspec.Struct):
    """What is known of one way at one end, whichever counter shows it."""

    way: Literal["tx", "rx"]
    claimed: wire.Way
    packets: Number
    least_packets: Number
    unseen_packets: Number
    unseen: Number
    lost: Number


def _ways(role: Role, claim: wire.Claim) -> tuple[_Way, _Way]:
    to_wire, from_wire = (
        (claim.sent, claim.received) if role == "client" else (claim.received, claim.sent)
    )
    # acknowledgements of the other way, and requests for what is read, share a way
    packets = to_wire.packets + from_wire.packets + claim.messages
    # what was lost on the way left its sender only; nor does its receiver show what nobody saw
    return (
        _Way("tx", to_wire, packets, to_wire.least_packets, 0, 0, 0),
        _Way(
            "rx",
            from_wire,
            packets,
            from_wire.least_packets - claim.lost_packets,
            from_wire.unseen_packets,
            from_wire.unseen,
            claim.lost,
        ),
    )


class _Law(msgspec.Struct):
    """One end of a flow with its claim; `again`: events after which packets were sent again."""

    place: Place
    claim: wire.Claim
    rdma: bool
    again: int
    seconds: float

    @property
    def header(self) -> Header:
        return RDMA_HEADER if self.rdma else TCP_HEADER

    def bound(self, counter: Counter, idle_counter: Counter | None, way: _Way) -> Bound:
        place = self.place
        counted = counter.tx if way.way == "tx" else counter.rx
        idle = self._idle(idle_counter, way.way)
        of_packets = counter.unit == "packets"
        least, sure = self._least_packets(way) if of_packets else self._least_bytes(counter, way)
        few = counted is not None and counted < sure
        return Bound(
            role=place.role,
            host=place.host,
            rdma=self.rdma,
            over=place.device,
            port=place.port,
            device=counter.device,
            by=counter.by,
            way=way.way,
            unit=counter.unit,
            counted=counted,
            idle=idle,
            seconds=self.seconds,
            least=least,
            sure=sure,
            most=self._most_packets(way) if of_packets else self._most_bytes(counter, way),
            noise=idle + self._control(counter),
            late=0 if of_packets else self._late(least),
            elsewhere=_elsewhere(place, way) if few else [],
        )

    def _idle(self, counter: Counter | None, way: str) -> float:
        rest = None if counter is None else counter.tx if way == "tx" else counter.rx
        return (rest or 0) * self.seconds / self.place.idle_seconds

    def _least_packets(self, way: _Way) -> tuple[Number, Number]:
        least = way.least_packets
        return max(least, 0), max(least - way.unseen_packets, 0)

    def _most_packets(self, way: _Way) -> Number:
        return (way.packets + self.again * self.claim.window) * SLACK + CONTROL_PACKETS

    def _least_bytes(self, counter: Counter, way: _Way) -> tuple[Number, Number]:
        header = self.header.least if counter.has_headers else 0
        least = max(way.claimed.bytes - way.lost + header * way.least_packets, 0)
        return least, max(least - way.unseen - header * way.unseen_packets, 0)

    def _most_bytes(self, counter: Counter, way: _Way) -> Number:
        claim, header = self.claim, self.header.most
        payload = way.claimed.most + header * way.packets
        window = claim.window if self.rdma else 1
        repeated = self.again * window * (claim.room + header)
        if counter.of == "port":
            return payload * SLACK + repeated + DATAGRAM * CONTROL_PACKETS
        control = control_bytes(claim.sizes, self.seconds)
        return payload * SLACK + repeated + control + others_bytes(self.seconds)

    def _control(self, counter: Counter) -> Number:
        """Under a soft RDMA device the packets are the proof, and they are RDMA's only."""
        if counter.of in ("interface", "nic"):
            return control_bytes(self.claim.sizes, self.seconds)
        return 0

    def _late(self, least: Number) -> Number:
        if self.rdma or not counts_late(self.place.driver):
            return 0
        return least / self.claim.elapsed if self.claim.elapsed > 1 else least


def bounds(place: Place, claim: wire.Claim, *, rdma: bool, again: int) -> Iterator[Bound]:
    """Of each counter of a place and each way."""
    seconds = (place.side.seconds if place.side else None) or 0
    law = _Law(place, claim, rdma, again, seconds)
    ways = _ways(place.role, claim)
    for counter, idle in zip(place.counters, place.idle, strict=True):
        for way in ways:
            yield law.bound(counter, idle, way)


def _elsewhere(place: Place, way: _Way) -> list[str]:
    """Interfaces that carried the claimed bytes while the claimed device did not."""
    if place.side is None or not way.claimed.bytes > 0:
        return []
    known = {"lo", *(counter.device for counter in place.counters)}
    return sorted(
        name
        for name, counts in place.side.netdev.items()
        if name not in known and (counts.get(f"{way.way}_bytes") or 0) >= way.claimed.bytes
    )
