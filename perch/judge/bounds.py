"""The law of the path proof: what each counter of a flow must show at least, and at most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from perch.judge import wire
from perch.judge.places import HAVE_HEADERS, Counter, Place
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
    doubts = [finding for finding in findings if finding is not PROVEN]
    return min(doubts, key=lambda finding: GRAVITY.index(finding.state), default=PROVEN)


class Bound(msgspec.Struct):
    """What one counter says of one way of a flow, in the counter's unit.

    `least` was claimed; `sure` of it was seen to arrive, or does not ask for it; `most` can be
    explained; up to `noise` nothing differs from control and idle traffic; `late` may be
    missing from the counter. `role`: of the end, in words. `elsewhere`: interfaces that carried as
    many bytes, asked for by a contradiction only.
    """

    role: str
    law: Law
    of: Counter
    way: Literal["tx", "rx"]
    counted: int | None
    idle: float
    least: Number
    sure: Number
    most: Number
    noise: Number
    late: Number
    elsewhere: Sequence[str] = ()

    @property
    def counter(self) -> tuple[str, str, str]:
        return self.of.device, self.of.by, self.way

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
        counter = f"{at.role}: the counter of what {at.of.device} {at.verb}"
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
    if at.idle > _quiet(at) and counted - at.idle < at.least * (2 - SLACK):
        idle = f"of which {whole(at.idle)} may be traffic as before the first flow"
        return Finding("unknown", f"{_subject(at, counted)}, {idle}; {whole(at.least)} are claimed")
    return PROVEN


def _quiet(at: Bound) -> float:
    """What a device moves while idle; more may stand for bytes that went another way."""
    if at.of.of != "port":
        return at.law.others
    return CONTROL_PACKETS * (1 if at.of.unit == "packets" else DATAGRAM)


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
    return f"{at.role}: {at.of.device} {at.verb} {whole(counted)} {at.of.unit}"


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
    # the receiver counts no packet lost on the way, and unchecked writes may have been lost
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


class Law(msgspec.Struct):
    """One end of a flow with its claim.

    `again`: events after which packets were sent again. Bytes beside the payload: `control` of the
    engine's own, `others` of other programs.
    """

    place: Place
    claim: wire.Claim
    rdma: bool
    again: int
    seconds: float
    header: Header
    control: float
    others: float

    def bound(self, counter: Counter, rest: Counter | None, way: _Way) -> Bound:
        """`rest`: the same counter of the host's idle time."""
        sent = way.way == "tx"
        counted = counter.tx if sent else counter.rx
        at_rest = 0 if rest is None else (rest.tx if sent else rest.rx) or 0
        idle = at_rest * self.seconds / self.place.idle_seconds
        if counter.unit == "packets":
            least, sure, most = self._packets(way)
        else:
            least, sure, most = self._bytes(counter, way)
        return Bound(
            self.place.role,
            self,
            counter,
            way.way,
            counted,
            idle,
            least,
            sure,
            most,
            # under a soft RDMA device the packets are the proof, and they are RDMA's only
            idle + (self.control if counter.of in ("interface", "nic") else 0),
            self._late(least) if counter.unit == "bytes" else 0,
            () if counted is None or counted >= sure else _elsewhere(self.place, way),
        )

    def _packets(self, way: _Way) -> tuple[Number, Number, Number]:
        """The least, the sure and the most."""
        least = way.least_packets
        most = (way.packets + self.again * self.claim.window) * SLACK + CONTROL_PACKETS
        return max(least, 0), max(least - way.unseen_packets, 0), most

    def _bytes(self, counter: Counter, way: _Way) -> tuple[Number, Number, Number]:
        claim, header = self.claim, self.header
        around = header.least if counter.of in HAVE_HEADERS else 0
        least = max(way.claimed.bytes - way.lost + around * way.least_packets, 0)
        sure = max(least - way.unseen - around * way.unseen_packets, 0)
        payload = way.claimed.most + header.most * way.packets
        window = claim.window if self.rdma else 1
        repeated = self.again * window * (claim.room + header.most)
        if counter.of == "port":
            return least, sure, payload * SLACK + repeated + DATAGRAM * CONTROL_PACKETS
        return least, sure, payload * SLACK + repeated + self.control + self.others

    def _late(self, least: Number) -> Number:
        if self.rdma or not counts_late(self.place.driver):
            return 0
        return least / self.claim.elapsed if self.claim.elapsed > 1 else least


def bounds(place: Place, claim: wire.Claim, *, rdma: bool, again: int) -> list[Bound]:
    """Of each counter of a place and each way."""
    seconds = (place.side.seconds if place.side else None) or 0
    header = RDMA_HEADER if rdma else TCP_HEADER
    control, others = control_bytes(claim.sizes, seconds), others_bytes(seconds)
    law = Law(place, claim, rdma, again, seconds, header, control, others)
    ways = _ways(place.role, claim)
    return [
        law.bound(counter, rest, way)
        for counter, rest in zip(place.counters, place.idle, strict=True)
        for way in ways
    ]


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
