"""iperf3 -J: the document of a TCP or UDP run -> one part.

The rate is the receiver's; iperf3 sums up all streams by itself. With -P iperf3 3.12 writes keys of
one object twice: the later one holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import msgspec

from perch.model.figures import ratio, rounded
from perch.model.part import Claims, Part
from perch.model.record import (
    Bandwidth,
    Cpu,
    Interval,
    Loss,
    Number,
    Params,
    Rate,
    Side,
    Tcp,
    ToolName,
)
from perch.model.text import explained
from perch.tools.iperf_command import IPERF3
from perch.tools.results import (
    UnusableError,
    check_rate,
    failed,
    interval_summary,
    natural,
    natural_or_none,
    positive,
    several,
    shown,
    whole,
)
from perch.tools.tool import PEER_LOST, UNUSABLE, Connection, Tool

#: Rates and sizes of one document are rounded each by itself.
TOLERANCE = 0.01

#: A receiver has at most the bytes that were sent. What was sent while --omit still ran may arrive
#: after it (5 %, site policy).
MOST_RECEIVED, MOST_RECEIVED_WITH_OMIT = 1.001, 1.05

#: Datagrams are counted at both ends of their flight: some are under way at the end (site policy).
IN_FLIGHT = 0.05

#: iperf3 exits 0 with -J even where it could not connect: only its words tell.
_PEER = re.compile(
    "refused|connect|timed out|closed|reset|unreachable|no route|broken pipe|busy", re.IGNORECASE
)

_PORT = {side: re.compile(rf'"{side}_port":\s*([0-9]+)'.encode()) for side in ("local", "remote")}


# ---- what iperf3 writes --------------------------------------------------------------------------


class _Sum(msgspec.Struct):
    """Of one stream or of all, over an interval or the whole run."""

    start: Number | None = None
    end: Number | None = None
    seconds: Number | None = None
    bytes: Number | None = None
    bits_per_second: Number | None = None
    retransmits: Number | None = None
    omitted: bool | None = None
    jitter_ms: Number | None = None
    lost_packets: Number | None = None
    packets: Number | None = None


class _Interval(msgspec.Struct):
    sum: _Sum | None = None
    sum_bidir_reverse: _Sum | None = None


class _Stream(msgspec.Struct):
    sender: _Sum | None = None
    receiver: _Sum | None = None


class _Cpu(msgspec.Struct):
    host_total: Number | None = None
    remote_total: Number | None = None


class _End(msgspec.Struct):
    streams: list[_Stream] | None = None
    sum_sent: _Sum | None = None
    sum_received: _Sum | None = None
    sum_sent_bidir_reverse: _Sum | None = None
    sum_received_bidir_reverse: _Sum | None = None
    cpu_utilization_percent: _Cpu | None = None


class _Connection(msgspec.Struct):
    local_host: str | None = None
    remote_host: str | None = None


class _Timestamp(msgspec.Struct):
    timesecs: Number | None = None


class _TestStart(msgspec.Struct):
    protocol: str | None = None
    num_streams: Number | None = None
    blksize: Number | None = None
    omit: Number | None = None
    duration: Number | None = None
    target_bitrate: Number | None = None
    bidir: Number | None = None
    reverse: Number | None = None


class _Start(msgspec.Struct):
    version: str | None = None
    connected: list[_Connection] = []
    timestamp: _Timestamp = msgspec.field(default_factory=_Timestamp)
    sndbuf_actual: Number | None = None
    test_start: _TestStart = msgspec.field(default_factory=_TestStart)


class _Document(msgspec.Struct):
    start: _Start = msgspec.field(default_factory=_Start)
    intervals: list[_Interval] = []
    end: _End = msgspec.field(default_factory=_End)
    error: str | None = None


_decode = msgspec.json.Decoder(_Document).decode
_NONE = _Sum()


# ---- figures -------------------------------------------------------------------------------------


def _both_ways(forth: Number | None, back: Number | None) -> Number | None:
    return None if forth is None else forth + (back or 0)


def _received(end: _End) -> tuple[_Sum, _Sum]:
    return end.sum_received or _NONE, end.sum_received_bidir_reverse or _NONE


def _intervals(document: _Document) -> list[Interval]:
    return [
        _interval(interval.sum or _NONE, interval.sum_bidir_reverse or _NONE)
        for interval in document.intervals
        if interval.sum is None or interval.sum.omitted is not True
    ]


def _check_interval(one: _Sum) -> None:
    moved, seconds, rate = one.bytes, one.seconds, one.bits_per_second
    if moved is None or not seconds or rate is None:
        return
    if abs(moved * 8 / seconds - rate) > TOLERANCE * rate:
        said = f"{shown(moved)} bytes in {shown(seconds)} s"
        raise UnusableError(f"an interval's {said} are not its {shown(rate)} b/s")


def _interval(forth: _Sum, back: _Sum) -> Interval:
    _check_interval(forth)
    _check_interval(back)
    name = "intervals.sum.bits_per_second"
    rate = natural(forth.bits_per_second, name) + natural(back.bits_per_second or 0, name)
    return Interval(
        start_s=natural(forth.start, "intervals.sum.start"),
        end_s=positive(forth.end, "intervals.sum.end"),
        gbit_s=rounded(rate / 1e9),
    )


def _bandwidth(end: _End, intervals: Sequence[Interval]) -> Bandwidth:
    forth, back = _received(end)
    rate = _both_ways(forth.bits_per_second, back.bits_per_second)
    size = _both_ways(forth.bytes, back.bytes)
    return Bandwidth(
        gbit_s=rounded(positive(rate, "sum_received.bits_per_second") / 1e9),
        bytes=positive(size, "sum_received.bytes"),
        **interval_summary(intervals)._asdict(),
    )


def _cpu(end: _End, elapsed_s: Number, size: Number | None) -> Cpu:
    """CPU is given in percent of the run's wall time; both ends time the same run."""

    def seconds(percent: Number | None) -> Number | None:
        share = natural_or_none(percent, "cpu_utilization_percent")
        return None if share is None else rounded(share / 100 * elapsed_s)

    said = end.cpu_utilization_percent or _Cpu()
    client, server = seconds(said.host_total), seconds(said.remote_total)
    gigabytes = None if size is None else size / 1e9
    return Cpu(
        client_s=client,
        server_s=server,
        client_s_per_gb=ratio(client, gigabytes),
        server_s_per_gb=ratio(server, gigabytes),
    )


def _claims(document: _Document) -> Claims:
    """At least what the receiver counted; at most what was written, with the seconds of --omit."""
    forth, back = _received(document.end)
    sent = [i.sum.bytes or 0 for i in document.intervals if i.sum]
    returned = [i.sum_bidir_reverse.bytes or 0 for i in document.intervals if i.sum_bidir_reverse]
    said = (document.end.sum_sent or _NONE).bytes or 0
    return Claims(
        sent=forth.bytes,
        received=back.bytes or 0,
        most_sent=max(sum(sent), said, forth.bytes or 0),
        most_received=max(sum(returned), back.bytes or 0),
    )


def _params(document: _Document) -> Params:
    """Queue pairs count connections: for TCP tools those are the streams."""
    test, rate = document.start.test_start, document.start.test_start.target_bitrate or 0
    # the key `bidir` came after 3.12
    both_ways = document.end.sum_received_bidir_reverse is not None or test.bidir == 1
    return Params(
        size_bytes=whole(test.blksize, "blksize"),
        duration_s=natural_or_none(test.duration, "duration"),
        queue_pairs=whole(test.num_streams, "num_streams"),
        bidirectional=both_ways,
        completion="event",
        memory="host",
        verify=False,
        rate=Rate(asked=rounded(rate / 1e9), unit="Gb/s") if rate > 0 else None,
    )


def _retransmissions(end: _End) -> int | None:
    """Those of all streams, which a sum over one direction adds up."""
    total = whole((end.sum_sent or _NONE).retransmits, "sum_sent.retransmits")
    each = [(one.sender or _NONE).retransmits for one in end.streams or []]
    counted = [one for one in each if one is not None]
    if total is None or len(counted) < len(each) or end.sum_sent_bidir_reverse is not None:
        return total
    if each and sum(counted) != total:
        raise UnusableError(
            f"sum_sent.retransmits is {total}, and {shown(sum(counted))} of its streams"
        )
    return total


def _tcp(document: _Document) -> Tcp:
    return Tcp(
        retransmissions=_retransmissions(document.end),
        window_bytes=natural_or_none(document.start.sndbuf_actual, "sndbuf_actual") or None,
    )


def _loss(document: _Document) -> Loss:
    """UDP: `packets` are those that the receiver knows of, lost ones included.

    Versions that sum up the sender's side alone (before 3.10 or so) do not say what arrived.
    """
    received, back = _received(document.end)
    packets, lost = whole(received.packets, "packets"), received.lost_packets
    if packets is None or lost is None or document.end.sum_received is None:
        raise UnusableError(
            "it does not say what its receiver got: "
            "UDP needs sum_received with packets and lost_packets"
        )
    if back is not _NONE:
        raise UnusableError("Perch cannot read UDP both ways at once")
    if not 0 <= lost < packets:
        raise UnusableError(f"it lost {shown(lost)} packets of {packets}")
    arrived, size = packets - lost, document.start.test_start.blksize or 0
    if size > 0 and abs(arrived * size / (received.bytes or 1) - 1) > IN_FLIGHT:
        said = f"{shown(arrived)} packets of {shown(size)} bytes"
        raise UnusableError(f"{said} are not the {shown(received.bytes)} bytes that arrived")
    jitter = None if received.jitter_ms is None else received.jitter_ms * 1000
    return Loss(
        sent_messages=packets,
        lost_messages=whole(lost, "lost_packets"),
        jitter_us=natural_or_none(jitter, "jitter_ms"),
    )


# ---- whether the document is whole ---------------------------------------------------------------


def _check_whole(document: _Document, elapsed_s: Number) -> None:
    """What both ends counted must hold together, else streams or figures were lost on the way."""
    test, end = document.start.test_start, document.end
    if test.duration and elapsed_s < 0.9 * test.duration:
        raise UnusableError(
            f"it lasted {shown(elapsed_s)} s of {shown(test.duration)} s: truncated?"
        )
    _check_streams(test, end)
    most = MOST_RECEIVED_WITH_OMIT if test.omit else MOST_RECEIVED
    for sent, received in (
        (end.sum_sent, end.sum_received),
        (end.sum_sent_bidir_reverse, end.sum_received_bidir_reverse),
    ):
        least, bytes_ = (sent or _NONE).bytes, (received or _NONE).bytes
        if least is not None and bytes_ is not None and bytes_ > least * most:
            raise UnusableError("more was received than was sent")
    _check_sum(end)
    _check_intervals(document)


def _check_streams(test: _TestStart, end: _End) -> None:
    if test.protocol != "TCP" or test.num_streams is None:
        return
    streams, both_ways = len(end.streams or []), end.sum_received_bidir_reverse is not None
    if streams != test.num_streams * (2 if both_ways else 1):
        asked = f"{shown(test.num_streams)} were asked for"
        raise UnusableError(f"it has {streams} streams, and {asked}: truncated?")


def _check_sum(end: _End) -> None:
    forth, back = _received(end)
    total = _both_ways(forth.bytes, back.bytes) or 0
    streams = [(stream.receiver or _NONE).bytes for stream in end.streams or []]
    received = sum(size for size in streams if size is not None)
    if streams and None not in streams and abs(received - total) > 0.001 * total:
        raise UnusableError(
            f"its streams received {shown(received)} bytes, which are not those of their sum"
        )


def _check_intervals(document: _Document) -> None:
    """A client's intervals have the bytes that it sent, or, in reverse, received."""
    test, end = document.start.test_start, document.end
    kept = [one for one in document.intervals if one.sum is None or one.sum.omitted is not True]
    granted = MOST_RECEIVED_WITH_OMIT - 1 if test.omit else TOLERANCE
    mine = end.sum_received if test.reverse == 1 else end.sum_sent
    for sums, whole_run in (
        ([one.sum for one in kept if one.sum], mine),
        ([one.sum_bidir_reverse for one in kept if one.sum_bidir_reverse],
         end.sum_received_bidir_reverse),
    ):  # fmt: skip
        said = (whole_run or _NONE).bytes
        if not sums or said is None or any(one.bytes is None for one in sums):
            continue
        moved = sum(one.bytes or 0 for one in sums)
        if abs(moved - said) > granted * said:
            raise UnusableError(
                f"its intervals moved {shown(moved)} bytes, and their sum {shown(said)}"
            )


def _both_ends(connected: Sequence[_Connection]) -> tuple[Side, Side]:
    """Of all streams. Raises UnusableError where they have several."""
    found = {(str(one.local_host), str(one.remote_host)) for one in connected}
    if len(found) > 1:
        raise UnusableError(f"its streams have several ends: {several(found)}")
    one = connected[0] if connected else _Connection()
    return Side(address=one.local_host), Side(address=one.remote_host)


def connections(output: bytes) -> frozenset[Connection]:
    """The ports of each stream that a document of either end names."""
    own, peers = (_PORT[side].findall(output) for side in ("local", "remote"))
    return frozenset(zip(own, peers, strict=False))


def contradiction(part: Part, served: bytes) -> str | None:
    """Whether the server's own document has an error, or other bytes than it told the client.

    Both ways at once, and in reverse, its client has counted a part of them.
    """
    try:
        document = _decode(served)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "the server's stdout is not a JSON document: truncated?"
    if document.error is not None:
        return f"the server's stdout has the error {shown(document.error)}"
    received = (document.end.sum_received or _NONE).bytes
    said = part.bandwidth.bytes if part.bandwidth else None
    both_ways = part.params is not None and part.params.bidirectional
    if both_ways or part.reverse or said == received:
        return None
    return f"the server's stdout has {shown(received)} bytes received, the client's {shown(said)}"


def _started(start: _Start) -> str:
    seconds = positive(start.timestamp.timesecs, "start.timestamp.timesecs")
    try:
        moment = datetime.fromtimestamp(int(seconds), UTC)
    except (OverflowError, ValueError):
        raise UnusableError(f"start.timestamp.timesecs is {shown(seconds)}, no time") from None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- the part ------------------------------------------------------------------------------------


def _heading(document: _Document) -> Part:
    version = (document.start.version or "").removeprefix("iperf ")
    return Part(
        tool=ToolName("iperf3", version or None),
        kind="bandwidth",
        definition="receiver_payload",
        connection="stream",
    )


def _measured(document: _Document, protocols: Collection[str]) -> Part:
    start = document.start
    if start.test_start.protocol not in protocols:
        known = " and ".join(protocols)
        raise UnusableError(
            f"protocol {shown(start.test_start.protocol)} is not read, only {known}"
        )
    part = _heading(document)
    received, _ = _received(document.end)
    part.intervals = _intervals(document)
    part.elapsed_s = positive(received.seconds, "sum_received.seconds")
    part.bandwidth = _bandwidth(document.end, part.intervals)
    check_rate(part.bandwidth, part.elapsed_s, TOLERANCE)
    _check_whole(document, part.elapsed_s)
    part.client, part.server = _both_ends(start.connected)
    part.params = _params(document)
    part.reverse = start.test_start.reverse == 1
    part.started = _started(start)
    part.cpu = _cpu(document.end, part.elapsed_s, part.bandwidth.bytes)
    if start.test_start.protocol == "UDP":
        part.connection, part.loss = "datagram", _loss(document)
    else:
        part.tcp = _tcp(document)
    part.claims = _claims(document)
    return part


def _failed(document: _Document, error: str) -> Part:
    part = _heading(document)
    moved = any(interval.sum and interval.sum.bytes for interval in document.intervals)
    code = PEER_LOST if _PEER.search(error) else UNUSABLE
    part.status, part.error = "error", failed(f"iperf3: {error}", code=code, traffic=moved)
    return part


def _unusable(part: Part, why: object, *, traffic: bool) -> Part:
    message = f"iperf3's output cannot be used: {why}"
    part.status, part.error = "error", failed(message, traffic=traffic)
    return part


def parts(output: bytes, protocols: Collection[str] = ("TCP",)) -> list[Part]:
    """A document -> its one part. Plans ask for TCP alone."""
    unknown = _heading(_Document())
    if not output.strip():
        return [_unusable(Part(tool=unknown.tool), "it is empty", traffic=False)]
    try:
        document = _decode(output)
    except msgspec.ValidationError as error:
        return [_unusable(unknown, explained(error), traffic=True)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # iperf3 died while it wrote the document: bytes had moved if it lists any
        why, traffic = "it is not a JSON document: truncated?", b'"bits_per_second"' in output
        return [_unusable(Part(tool=unknown.tool), why, traffic=traffic)]
    if document.error is not None:
        return [_failed(document, document.error)]
    try:
        return [_measured(document, protocols)]
    except OverflowError:
        return [_unusable(_heading(document), "a number in it is too large", traffic=True)]
    except UnusableError as why:
        return [_unusable(_heading(document), why, traffic=True)]


TOOL = Tool(
    name="iperf3",
    read=lambda output: parts(output.stdout),
    is_tcp=True,
    default_port=5201,
    connections=connections,
    contradiction=contradiction,
    commands={"bandwidth": IPERF3},
)
