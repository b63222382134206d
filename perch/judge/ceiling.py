"""What a link can carry at most, as payload, in columns of records.

rate x payload / (payload + headers), summed over the packets of one message. Bytes of headers a
packet: InfiniBand Architecture Specification 1.7, sections 5 and 9 (LRH 8, BTH 12, ICRC 4, VCRC 2,
RETH 16, AETH 4, immediate 4, DETH 8) and Annex 17 (RoCEv2: Ethernet 14 + FCS 4, IPv4 20, UDP 8);
IEEE 802.3: preamble 8, gap 12; IEEE 802.1Q: tag 4. RFC 9293 and 7323: TCP 20 + 12 with timestamps.
"""

from __future__ import annotations

import polars as pl

INFINIBAND_PACKET = 26
ETHERNET_PACKET = 82
IPV6, VLAN = 20, 4
RETH, DATAGRAM = 16, 8

#: Of a stream's segment: the headers of IPv4 and TCP within the MTU, those of Ethernet around it.
STREAM_INSIDE, STREAM_AROUND = 52, 38
#: A smaller MTU leaves a segment no payload.
STREAM_LEAST_MTU = 72

#: Extra bytes a message. Of a read: AETH on the first and the last packet of the answer.
_MESSAGE = {"write": 16, "write-imm": 20, "send-imm": 4, "fetch-add": 28, "compare-swap": 28}

#: A bond sends each queue pair by a link that a hash chooses: fewer may well share one link of two.
#: All of so many do so in one run of 128 (2 x 2^-8).
SPREAD = 8

_layer = pl.col("link.layer")
_mtu = pl.col("link.mtu_bytes")
_size = pl.col("params.size_bytes")
_both_ways = pl.col("params.bidirectional").fill_null(value=False)
_is_stream = (pl.col("connection").eq_missing("stream")) | (pl.col("backend").eq_missing("tcp"))
_is_sum = pl.col("kind").eq_missing("sum")
_is_ethernet = _layer.is_in(["roce", "ethernet"])


def _extra(ipv6: int, vlan: int) -> pl.Expr:
    """Bytes of an IPv6 header beside IPv4's, and of a VLAN tag, where the link has them."""
    of_ip = pl.col("link.ipv6").fill_null(value=False).cast(pl.Int64) * ipv6
    return of_ip + pl.col("link.vlan").fill_null(value=False).cast(pl.Int64) * vlan


def _packet_overhead() -> pl.Expr:
    """Bytes of headers of one packet; null where the layer has none that is known."""
    return (
        pl.when(_layer == "infiniband")
        .then(INFINIBAND_PACKET)
        .when(_is_ethernet)
        .then(ETHERNET_PACKET + _extra(IPV6, VLAN))
        .when(_layer == "slingshot")
        .then(0)
    )


def _message_overhead(packets: pl.Expr) -> pl.Expr:
    of_read = pl.when(packets > 1).then(8).otherwise(4)
    op = pl.col("op")
    of_op = (
        pl.when(op == "read")
        .then(of_read)
        .otherwise(op.replace_strict(_MESSAGE, default=0, return_dtype=pl.Int64))
    )
    is_datagram = pl.col("connection").eq_missing("ud")
    return of_op.fill_null(0) + pl.when(is_datagram).then(DATAGRAM * packets).otherwise(0)


def rdma_efficiency() -> pl.Expr:
    """Share of the raw rate that payload can reach.

    Null where physics sets no ceiling (loopback, shared memory) or the MTU is unknown.
    """
    each = _packet_overhead()
    packets = (_size / _mtu).ceil()
    sent = _size + packets * each + _message_overhead(packets)
    share = pl.when(_layer == "slingshot").then(1.0).when(_mtu > 0).then(_size / sent)
    return pl.when(each.is_not_null() & (_size > 0)).then(share)


def stream_efficiency() -> pl.Expr:
    """A stream fills its segments whatever the message size: 1448 of 1538 bytes at MTU 1500."""
    payload = _mtu - STREAM_INSIDE - _extra(IPV6, 0)
    share = payload / (_mtu + STREAM_AROUND + _extra(0, VLAN))
    return pl.when(_is_ethernet & (_mtu > STREAM_LEAST_MTU)).then(share)


def _named(side: str) -> pl.Expr:
    """How many devices of one end a transfer's sum names; null: none."""
    count = pl.col(f"{side}.device").str.split(",").list.n_unique()
    return pl.when(pl.col(f"{side}.device").str.len_bytes() > 0).then(count)


def _devices() -> pl.Expr:
    """Of a transfer's sum: the devices that carry it, at the end that has fewer."""
    pairs = pl.col("transfer.pairs")
    fewest = pl.min_horizontal(pairs, _named("client"), _named("server"))
    return pl.when(_is_sum).then(pl.when(pairs.is_not_null()).then(fewest)).otherwise(1)


def _with_requests(share: pl.Expr) -> pl.Expr:
    """What a direction carries of the other one's traffic.

    A read asks in a packet of its own (BTH and RETH, no payload). Acknowledgements may stand for
    any number of packets, so that no least of them is known.
    """
    is_asked = _both_ways & pl.col("op").eq_missing("read") & (share < 1)
    return (
        pl.when(is_asked).then(_size / (_size / share + _packet_overhead() + RETH)).otherwise(share)
    )


def _ways() -> pl.Expr:
    return 1 + _both_ways.cast(pl.Int64)


#: Columns of shares().
_SHARE, _DEVICES = "ceiling.share", "ceiling.devices"


def shares() -> dict[str, pl.Expr]:
    """What ceilings() asks of each record, by column.

    The payload of a link's rate, both ways summed; null where nothing can be said. The devices of
    a transfer's sum.
    """
    rdma = _with_requests(rdma_efficiency())
    share = pl.when(_is_stream).then(stream_efficiency()).otherwise(rdma)
    return {_SHARE: share * _ways(), _DEVICES: _devices()}


def _links() -> pl.Expr:
    """The rate of a transfer's sum is that of all pairs: of so many links' rates one is real.

    Pairs that share a device, at either end, share its link.
    """
    devices = pl.col(_DEVICES)
    return pl.when(_is_sum).then(devices / pl.col("transfer.pairs")).otherwise(1.0)


def _bonded() -> pl.Expr:
    """The links of a bond that a flow fills for sure."""
    many = pl.col("params.queue_pairs") >= SPREAD
    return pl.when(many).then(pl.col("link.links").fill_null(1)).otherwise(1)


def ceilings() -> dict[str, pl.Expr]:
    """Gb/s of payload, both ways summed, by column; null where nothing can be said.

    - `ceiling_gbit_s`: what the network that was bought can carry. The rate is what the inventory
      expects of one link, else that of the link.
    - `host_ceiling_gbit_s`: what PCIe of the narrower end lets through; it lowers no limit.
    - `possible_gbit_s`: the least of what the links as they run can carry, and of what PCIe lets
      through.
    """
    running = _links() * pl.col("link.rate_gbit_s")
    expected = pl.col(_DEVICES) * pl.col("link.expected_gbit_s") * _bonded()
    of_host = pl.col(_DEVICES) * pl.col("link.pcie_gbit_s") * _ways()
    of_link = running * pl.col(_SHARE)
    least = pl.when(of_link.is_not_null()).then(pl.min_horizontal(of_link, of_host))
    return {
        "ceiling_gbit_s": pl.coalesce(expected, running) * pl.col(_SHARE),
        "host_ceiling_gbit_s": of_host,
        "possible_gbit_s": least,
    }
