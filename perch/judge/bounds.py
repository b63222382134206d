"""The law of the path proof: what each counter of a flow must show at least, and at most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

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
    place: Place
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
    if at.idle > at.law.quiet(at.of.unit, at.of.of) and counted - at.idle < at.least * (2 - SLACK):
        idle = f"of which {whole(at.idle)} may be traffic as before the first flow"
        return Finding("unknown", f"{_subject(at, counted)}, {idle}; {whole(at.least)} are claimed")
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
    """What a flow claims, over so many seconds.

    `again`: events after which packets were sent again. Bytes beside the payload: `control` of the
    engine's own, `others` of other programs.
    """

    claim: wire.Claim
    rdma: bool
    again: int
    seconds: float
    header: Header
    control: float
    others: float

    def limits(self, unit: str, of: str, way: _Way) -> tuple[Number, Number, Number]:
        """The least, the sure and the most."""
        return self._packets(way) if unit == "packets" else self._bytes(of, way)

    def _packets(self, way: _Way) -> tuple[Number, Number, Number]:
        least = way.least_packets
        most = (way.packets + self.again * self.claim.window) * SLACK + CONTROL_PACKETS
        return max(least, 0), max(least - way.unseen_packets, 0), most

    def _bytes(self, of: str, way: _Way) -> tuple[Number, Number, Number]:
        claim, header = self.claim, self.header
        around = header.least if of in HAVE_HEADERS else 0
        least = max(way.claimed.bytes - way.lost + around * way.least_packets, 0)
        sure = max(least - way.unseen - around * way.unseen_packets, 0)
        payload = way.claimed.most + header.most * way.packets
        window = claim.window if self.rdma else 1
        repeated = self.again * window * (claim.room + header.most)
        if of == "port":
            return least, sure, payload * SLACK + repeated + DATAGRAM * CONTROL_PACKETS
        return least, sure, payload * SLACK + repeated + self.control + self.others

    def noise(self, of: str) -> float:
        """Under a soft RDMA device the packets are the proof, and they are RDMA's only."""
        return self.control if of in ("interface", "nic") else 0

    def quiet(self, unit: str, of: str) -> float:
        """What a device moves while idle; more may stand for bytes that went another way."""
        if of != "port":
            return self.others
        return CONTROL_PACKETS * (1 if unit == "packets" else DATAGRAM)


def _law(claim: wire.Claim, *, rdma: bool, again: int, seconds: float) -> Law:
    header = RDMA_HEADER if rdma else TCP_HEADER
    control, others = control_bytes(claim.sizes, seconds), others_bytes(seconds)
    return Law(claim, rdma, again, seconds, header, control, others)


def bounds(
    place: Place, claim: wire.Claim, elapsed: Number, *, rdma: bool, again: int
) -> list[Bound]:
    """Of each counter of a place and each way. `elapsed`: seconds of what is claimed."""
    law = _law(claim, rdma=rdma, again=again, seconds=seconds_of(place))
    late = counts_late(place.driver)
    found = []
    for counter, rest in zip(place.counters, place.idle, strict=True):
        for way, counted, at_rest in zip(
            _ways(place.role, claim), _both(counter), _both(rest), strict=True
        ):
            least, sure, most = law.limits(counter.unit, counter.of, way)
            idle = (at_rest or 0) * law.seconds / place.idle_seconds
            found.append(
                Bound(
                    place.role,
                    place,
                    law,
                    counter,
                    way.way,
                    counted,
                    idle,
                    least,
                    sure,
                    most,
                    idle + law.noise(counter.of),
                    _late(least, elapsed) if late and counter.unit == "bytes" else 0,
                    () if counted is None or counted >= sure else _elsewhere(place, way),
                )
            )
    return found


def seconds_of(place: Place) -> float:
    """Between the readings of a place; 0 where that is not known."""
    return (place.side.seconds if place.side else None) or 0


def _both(counter: Counter | None) -> tuple[int | None, int | None]:
    """Of the two ways of `_ways`."""
    return (None, None) if counter is None else (counter.tx, counter.rx)


def _late(least: Number, elapsed: Number) -> Number:
    return least / elapsed if elapsed > 1 else least


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


# ---- where nothing has to be said ----------------------------------------------------------------

#: Figures nearer than this to a bound are compared with the bound itself.
NEAR = 1e-9


#: A number, or a column of numbers.
Column = Any


class Margin(NamedTuple):
    """The bounds of one counter and way of a claim, without anything that was sent again.

    At 0 seconds, and what each second adds.
    """

    least: Column
    most: Column
    most_s: Column
    noise: Column
    noise_s: Column
    quiet: Column
    quiet_s: Column


@lru_cache(maxsize=4096)
def _margins(claim: wire.Claim, role: Role, unit: str, of: str, rdma: bool) -> list[Margin]:
    at_once, later = (_law(claim, rdma=rdma, again=0, seconds=n) for n in (0, 1))
    found = []
    for way in _ways(role, claim):
        least, _, most = at_once.limits(unit, of, way)
        noise, quiet = at_once.noise(of), at_once.quiet(unit, of)
        found.append(
            Margin(
                least,
                most,
                later.limits(unit, of, way)[2] - most,
                noise,
                later.noise(of) - noise,
                quiet,
                later.quiet(unit, of) - quiet,
            )
        )
    return found


def margins_of(
    claims: Sequence[wire.Claim], role: Role, unit: str, of: str, rdma: bool
) -> list[Margin]:
    """Of both ways out of many claims, a row for each."""
    places = {claim: n for n, claim in enumerate(dict.fromkeys(claims))}
    each = [_margins(claim, role, unit, of, rdma) for claim in places]
    if len(each) == 1:
        return each[0]
    rows = [places[claim] for claim in claims]
    return [Margin(*np.array(way, float)[rows].T) for way in zip(*each, strict=True)]


def surely_holds(at: Margin, counted: Column, idle: Column, seconds: Column) -> Column:
    """Whether `judged` has nothing to say of a counter and way, whatever was sent again.

    `idle`: of what was counted. False decides nothing: the bounds do.
    """
    return (
        (counted >= at.least)
        & (counted - idle <= (at.most + at.most_s * seconds) * (1 - NEAR))
        & (counted > (idle + at.noise + at.noise_s * seconds) * (1 + NEAR))
        & (idle <= (at.quiet + at.quiet_s * seconds) * (1 - NEAR))
    )


def surely_hold(
    role: Role,
    counters: Sequence[Counter],
    rests: Sequence[Counter | None],
    idle_seconds: float,
    seconds: float,
    claim: wire.Claim,
    *,
    rdma: bool,
) -> bool:
    """The same of all counters of a place. `rests`: each counter in the host's idle time."""
    for counter, rest in zip(counters, rests, strict=True):
        margins = _margins(claim, role, counter.unit, counter.of, rdma)
        for at, counted, at_rest in zip(margins, _both(counter), _both(rest), strict=True):
            idle = (at_rest or 0) * seconds / idle_seconds
            if counted is None or not surely_holds(at, counted, idle, seconds):
                return False
    return True
