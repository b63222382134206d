"""What a flow says that it moved, and in how many packets: all sizes and the warm-up included."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from perch.model.plan import Flow
from perch.model.record import Link, Number, Params, Part
from perch.tools.claims import lost_messages

#: PORTALS_MTU (HewlettPackard's shs-libcxi, utils/utils_common.h).
PORTALS_MTU = 2048
#: InfiniBand's smallest path MTU, for where no MTU is known.
LEAST_RDMA_MTU = 256
ETHERNET_MTU = 1500
#: Bytes of headers in front of a TCP segment's payload at most (RFC 8200, 9293 and 7323).
SEGMENT_HEADERS = 72
#: perftest's depth of queues, for where no depth is known.
DEPTH = 128


class Way(msgspec.Struct):
    """Payload bytes of one way, at least (`bytes`) and at most; packets likewise.

    `unseen`: what was sent, without a sign that it arrived.
    """

    bytes: Number
    most: Number
    least_packets: Number
    packets: Number
    unseen: Number
    unseen_packets: Number

    def plus(self, other: Way) -> Way:
        return Way(
            self.bytes + other.bytes,
            self.most + other.most,
            self.least_packets + other.least_packets,
            self.packets + other.packets,
            self.unseen + other.unseen,
            self.unseen_packets + other.unseen_packets,
        )


class Claim(msgspec.Struct):
    """`sent` by the client, and `received` by it.

    `window`: packets that may be outstanding; `room`: payload bytes of a packet; `elapsed` in
    seconds; `lost` bytes were sent and did not arrive.
    """

    sizes: int
    sent: Way
    received: Way
    messages: Number
    elapsed: Number
    lost: Number
    lost_packets: Number
    window: int
    room: Number

    @property
    def total(self) -> Number:
        return self.sent.bytes + self.received.bytes

    def plus(self, other: Claim) -> Claim:
        return Claim(
            self.sizes + other.sizes,
            self.sent.plus(other.sent),
            self.received.plus(other.received),
            self.messages + other.messages,
            self.elapsed + other.elapsed,
            self.lost + other.lost,
            self.lost_packets + other.lost_packets,
            max(self.window, other.window),
            max(self.room, other.room),
        )


def of_flow(flow: Flow, parts: Sequence[Part], *, rdma: bool) -> Claim | None:
    """All sizes of a flow together; None where one of them does not tell, or there is none."""
    total: Claim | None = None
    for part in parts:
        claim = _of_part(flow, part, rdma)
        if claim is None:
            return None
        total = claim if total is None else total.plus(claim)
    return total


def lost_bytes(part: Part, size: Number) -> Number:
    """What was lost on the way, warm-up included where the tool tells."""
    if part.claims is not None and part.claims.lost is not None:
        return part.claims.lost
    return lost_messages(part) * size


class _Sizes(msgspec.Struct):
    """How the messages of a part lie in packets: packets of one message at least and at most."""

    size: Number
    room: Number
    pieces: int
    each: int
    least: int
    most: int


def _of_part(flow: Flow, part: Part, rdma: bool) -> Claim | None:
    claims = part.claims
    if claims is None or claims.sent is None or claims.received is None:
        return None
    if not (math.isfinite(claims.sent) and math.isfinite(claims.received)):
        return None
    kind = flow.kind if part.kind is None else part.kind
    params = part.params or Params()
    sizes = _sizes(params, part.link or Link(), kind, rdma)
    unseen = _loss_is_unknown(part, kind)
    sent = _way(claims.sent, claims.most_sent, sizes, unseen)
    received = _way(claims.received, claims.most_received, sizes, unseen)
    lost = lost_bytes(part, sizes.size)
    depth = DEPTH if params.outstanding is None else max(params.outstanding, 1)
    return Claim(
        sizes=1,
        sent=sent,
        received=received,
        messages=max(sent.most, received.most) / sizes.size * sizes.pieces,
        elapsed=part.elapsed_s or 0,
        lost=lost,
        lost_packets=lost / sizes.size * sizes.least,
        window=depth * max(params.queue_pairs or 1, 1) * sizes.each,
        room=sizes.room,
    )


def _sizes(params: Params, link: Link, kind: str, rdma: bool) -> _Sizes:
    """An RDMA message has packets of its own.

    A message of a stream has one packet at least where it waits for its answer: a card or veth may
    carry all that it fills beyond that as one large segment (TSO). Other messages may share
    segments, or lie in one more than they fill. A transfer's message may go in several pieces, each
    with packets of its own.
    """
    room = _room(link, rdma)
    size = room if params.size_bytes is None or params.size_bytes < 1 else params.size_bytes
    each = math.ceil(size / room)
    pieces = max(params.chunks or 1, 1)
    return _Sizes(
        size=size,
        room=room,
        pieces=pieces,
        each=each,
        least=each if rdma else int(kind == "latency"),
        most=(each if rdma else each + 1) + pieces - 1,
    )


def _way(claimed: Number, most: Number | None, sizes: _Sizes, unseen: bool) -> Way:
    at_most = claimed if most is None else most
    packets = claimed / sizes.size * sizes.least
    return Way(
        bytes=claimed,
        most=at_most,
        least_packets=packets,
        packets=at_most / sizes.size * sizes.most,
        unseen=claimed if unseen else 0,
        unseen_packets=packets if unseen else 0,
    )


def _room(link: Link, rdma: bool) -> Number:
    """Payload bytes that fit one packet."""
    if not rdma:
        return max((link.mtu_bytes or ETHERNET_MTU) - SEGMENT_HEADERS, 1)
    if link.layer == "slingshot":
        return PORTALS_MTU
    return link.mtu_bytes or LEAST_RDMA_MTU


def _loss_is_unknown(part: Part, kind: str) -> bool:
    """Whether no end saw the messages arrive. The engine says so; perftest says nothing at all."""
    if part.loss is not None:
        return part.loss.lost_messages is None
    return kind == "bandwidth" and part.connection in ("UC", "UD")
