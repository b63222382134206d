"""What a flow says that it moved, and in how many packets: all sizes and the warm-up included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from perch.model.part import Part
from perch.model.plan import Flow
from perch.model.record import Link, Number, Params
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

_NO_PARAMS, _NO_LINK = Params(), Link()


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


class Claim(msgspec.Struct, frozen=True, eq=False):
    """`sent` by the client, and `received` by it. Parts that claim the same share one.

    `window`: packets that may be outstanding; `room`: payload bytes of a packet; `lost` bytes were
    sent and did not arrive.
    """

    sizes: int
    sent: Way
    received: Way
    messages: Number
    lost: Number
    lost_packets: Number
    window: int
    room: Number

    @property
    def total(self) -> Number:
        return self.sent.bytes + self.received.bytes


@lru_cache(maxsize=4096)
def _sum(one: Claim, other: Claim) -> Claim:
    return Claim(
        one.sizes + other.sizes,
        one.sent.plus(other.sent),
        one.received.plus(other.received),
        one.messages + other.messages,
        one.lost + other.lost,
        one.lost_packets + other.lost_packets,
        max(one.window, other.window),
        max(one.room, other.room),
    )


def seconds(parts: Sequence[Part]) -> Number:
    """How long all sizes of a flow took."""
    return sum(part.elapsed_s or 0 for part in parts)


def of_flow(flow: Flow, parts: Sequence[Part], *, rdma: bool) -> Claim | None:
    """All sizes of a flow together; None where one of them does not tell, or there is none."""
    total: Claim | None = None
    for part in parts:
        claim = _of_part(flow, part, rdma)
        if claim is None:
            return None
        total = claim if total is None else _sum(total, claim)
    return total


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
    params, link = part.params or _NO_PARAMS, part.link or _NO_LINK
    return _claim(
        (claims.sent, claims.most_sent),
        (claims.received, claims.most_received),
        (params.size_bytes, params.chunks, params.outstanding, params.queue_pairs),
        _room(link, rdma),
        kind == "latency",
        rdma,
        _loss_is_unknown(part, kind),
        claims.lost,
        lost_messages(part),
    )


@lru_cache(maxsize=4096)
def _claim(
    of_sent: tuple[Number, Number | None],
    of_received: tuple[Number, Number | None],
    shape: tuple[int | None, int | None, int | None, int | None],
    room: Number,
    answered: bool,
    rdma: bool,
    unseen: bool,
    lost_bytes: Number | None,
    lost_messages: Number,
) -> Claim:
    """`of_sent`, `of_received`: claimed, and at most. `shape`: of the part's params.

    `lost_bytes`: on the way, warm-up included, where the tool tells.
    """
    size_bytes, chunks, outstanding, queue_pairs = shape
    sizes = _sizes(size_bytes, chunks, room, answered, rdma)
    sent, received = (_way(*claimed, sizes, unseen) for claimed in (of_sent, of_received))
    lost = lost_messages * sizes.size if lost_bytes is None else lost_bytes
    depth = DEPTH if outstanding is None else max(outstanding, 1)
    return Claim(
        sizes=1,
        sent=sent,
        received=received,
        messages=max(sent.most, received.most) / sizes.size * sizes.pieces,
        lost=lost,
        lost_packets=lost / sizes.size * sizes.least,
        window=depth * max(queue_pairs or 1, 1) * sizes.each,
        room=sizes.room,
    )


def _sizes(
    size_bytes: int | None, chunks: int | None, room: Number, answered: bool, rdma: bool
) -> _Sizes:
    """An RDMA message has packets of its own.

    A message of a stream has one packet at least where it waits for its answer: a card or veth may
    carry all that it fills beyond that as one large segment (TSO). Other messages may share
    segments, or lie in one more than they fill. A transfer's message may go in several pieces, each
    with packets of its own.
    """
    size = room if size_bytes is None or size_bytes < 1 else size_bytes
    each = math.ceil(size / room)
    pieces = max(chunks or 1, 1)
    return _Sizes(
        size=size,
        room=room,
        pieces=pieces,
        each=each,
        least=each if rdma else int(answered),
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
