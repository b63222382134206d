"""iperf3 -J: the receiver's figures, and the words of a document that has none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perch.model.part import Part
from perch.model.record import Tcp
from perch.tools import TOOLS
from perch.tools.iperf3 import parts

TOOLS_DIR = Path(__file__).parents[1] / "fixtures" / "tools"
BOTH = ("TCP", "UDP")

DOCUMENT: dict[str, Any] = {
    "start": {
        "version": "iperf 3.12",
        "connected": [{"local_host": "127.0.0.1", "remote_host": "127.0.0.2"}],
        "timestamp": {"timesecs": 1795246001},
        "sndbuf_actual": 0,
        "test_start": {"protocol": "TCP", "num_streams": 4, "blksize": 131072, "duration": 2},
    },
    "intervals": [],
    "end": {
        "streams": [{}, {}, {}, {}],
        "sum_sent": {"bits_per_second": 9e9, "retransmits": 7},
        "sum_received": {"seconds": 2, "bytes": 2000000000, "bits_per_second": 8e9},
        "cpu_utilization_percent": {"host_total": 50, "remote_total": 25},
    },
}


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The document with another value at a path like "end.sum_received.bytes"."""
    copy: dict[str, Any] = json.loads(json.dumps(document))
    *owners, last = path.split(".")
    place = copy
    for owner in owners:
        place = place.setdefault(owner, {})
    place[last] = value
    return copy


def part_of(document: dict[str, Any] | bytes, protocols: tuple[str, ...] = ("TCP",)) -> Part:
    output = document if isinstance(document, bytes) else json.dumps(document).encode()
    (part,) = parts(output, protocols)
    return part


def fixture(name: str) -> Part:
    return part_of((TOOLS_DIR / name).read_bytes(), BOTH)


def why(part: Part) -> str:
    message = part.error.message if part.error else part.status
    return message.removeprefix("iperf3's output cannot be used: ")


def test_the_rate_is_the_receivers_and_cpu_shares_become_seconds() -> None:
    part = part_of(DOCUMENT)
    assert part.bandwidth is not None and part.cpu is not None and part.params is not None
    assert (part.bandwidth.gbit_s, part.bandwidth.bytes) == (8, 2000000000)
    assert part.tcp == Tcp(retransmissions=7)
    assert (part.cpu.client_s, part.cpu.server_s, part.cpu.server_s_per_gb) == (1, 0.5, 0.25)
    assert (part.params.queue_pairs, part.params.size_bytes) == (4, 131072)
    assert part.started == "2026-11-21T07:26:41Z" and part.definition == "receiver_payload"
    assert part.tool is not None and part.tool.version == "3.12"
    assert part.client is not None and part.client.address == "127.0.0.1"


def test_a_refused_connection_is_told_by_the_document_alone() -> None:
    document = (
        b'{"start":{"connected":[],"version":"iperf 3.12"},"intervals":[],"end":{},'
        b'"error":"unable to connect to server: Connection refused"}'
    )
    part = part_of(document)
    assert part.error is not None and part.tool is not None and part.tool.version == "3.12"
    assert (part.error.code, part.error.traffic) == (4, False)
    assert part.error.message == "iperf3: unable to connect to server: Connection refused"


def test_a_server_that_died_is_a_peer_lost_after_traffic() -> None:
    died = {"intervals": [{"sum": {"bytes": 1000, "bits_per_second": 8000}}], "end": {},
            "error": "control socket has closed unexpectedly"}  # fmt: skip
    part = part_of(died)
    assert part.error is not None and (part.error.code, part.error.traffic) == (4, True)


@pytest.mark.parametrize("error", ["parameter exchange failed", ""])
def test_another_error_is_6(error: str) -> None:
    part = part_of({"error": error})
    assert part.error is not None and part.error.code == 6


@pytest.mark.parametrize(
    ("output", "message", "traffic"),
    [
        (b"", "it is empty", False),
        (b" \n", "it is empty", False),
        (b"{\n  \"start\": {},\n  \"intervals\": [{\"sum\": {\"bits_per_second\": 1",
         "it is not a JSON document: truncated?", True),
        (b"Connecting to host x", "it is not a JSON document: truncated?", False),
        (b'{"end":{"sum_sent":{"bytes":-nan}}}', "it is not a JSON document: truncated?", False),
        (b'{"a":' + b"[" * 100_000, "it is not a JSON document: truncated?", False),
        (b"[]", "expected object, got list", True),
        (b'{"end":{"sum_received":{"bytes":"1"}}}',
         "end.sum_received.bytes: expected number, got string", True),
    ],
)  # fmt: skip
def test_what_is_no_document_is_told(output: bytes, message: str, traffic: bool) -> None:
    part = part_of(output)
    assert why(part) == message
    assert part.error is not None and (part.error.code, part.error.traffic) == (6, traffic)


def test_of_a_key_that_stands_twice_the_later_one_holds() -> None:
    text = json.dumps(DOCUMENT).replace(
        '"sum_sent":', '"sum_sent": {"retransmits": 1}, "sum_sent":'
    )
    assert text.count('"sum_sent"') == 2
    tcp = part_of(text.encode()).tcp
    assert tcp is not None and tcp.retransmissions == 7


RECEIVED = "end.sum_received."


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (RECEIVED + "bits_per_second", 0,
         "sum_received.bits_per_second is 0, which is not a result"),
        (RECEIVED + "bits_per_second", None, "sum_received.bits_per_second is null"),
        (RECEIVED + "bytes", 0, "sum_received.bytes is 0, which is not a result"),
        (RECEIVED + "bytes", 2100000000, "2100000000 bytes in 2 s are not the 8 Gb/s"),
        (RECEIVED + "seconds", 0, "sum_received.seconds is 0, which is not a result"),
        ("start.test_start.duration", 3, "it lasted 2 s of 3 s: truncated?"),
        ("start.test_start.num_streams", 5, "it has 4 streams, and 5 were asked for: truncated?"),
        ("start.test_start.protocol", "SCTP", 'protocol "SCTP" is not read, only TCP'),
        ("start.test_start.protocol", "UDP", 'protocol "UDP" is not read, only TCP'),
        ("start.timestamp", {}, "start.timestamp.timesecs is null, which is not a result"),
        ("start.timestamp.timesecs", 1e20, "start.timestamp.timesecs is 1e+20"),
        ("end.sum_sent.bytes", 1900000000, "more was received than was sent"),
        ("end.sum_sent.retransmits", 1.5,
         "sum_sent.retransmits is 1.5, which is not a whole number"),
        ("end.streams", [{"receiver": {"bytes": 10}}] * 4,
         "its streams received 40 bytes, which are not those of their sum"),
        ("end.streams", [{"sender": {"retransmits": 2}}] * 4,
         "sum_sent.retransmits is 7, and 8 of its streams"),
        ("end.sum_sent.bytes", int("9" * 309), "end.sum_sent.bytes: expected whole number"),
        ("intervals", [{"sum": {"start": 0, "end": 1, "bits_per_second": -1}}],
         "intervals.sum.bits_per_second is -1, which is not a result"),
        ("intervals", [{}], "intervals.sum.bits_per_second is null, which is not a result"),
    ],
)  # fmt: skip
def test_what_both_ends_counted_must_hold_together(path: str, value: Any, message: str) -> None:
    assert why(part_of(changed(DOCUMENT, path, value))).startswith(message)


def edited(name: str, change: Callable[[list[dict[str, Any]]], object], omit: int = 0) -> str:
    """What is wrong with a recorded document whose intervals were changed."""
    document = json.loads((TOOLS_DIR / name).read_text())
    document["start"]["test_start"]["omit"] = omit
    change(document["intervals"])
    return why(part_of(document, BOTH))


def scaled(kind: str, factor: float, *keys: str) -> Callable[[list[dict[str, Any]]], object]:
    def change(intervals: list[dict[str, Any]]) -> None:
        intervals[0][kind] |= {key: intervals[0][kind][key] * factor for key in keys}

    return change


RATE, BYTES = "bits_per_second", "bytes"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("iperf3_streams.json", "sum"), ("iperf3_reverse.json", "sum"), ("iperf3_udp.json", "sum"),
        ("iperf3_bidir.json", "sum"), ("iperf3_bidir.json", "sum_bidir_reverse"),
    ],
)  # fmt: skip
def test_intervals_are_those_of_their_sum(name: str, kind: str) -> None:
    assert edited(name, scaled(kind, 1.0, RATE)) == "ok"
    assert "are not its" in edited(name, scaled(kind, 1.2, RATE))
    for factor in (0.9, 1.2):
        said = edited(name, scaled(kind, factor, RATE, BYTES))
        assert said.startswith("its intervals moved"), said
    assert edited(name, scaled(kind, 1.05, RATE, BYTES), omit=1) == "ok"
    assert edited(name, lambda intervals: intervals.pop(0)).startswith("its intervals moved")


def test_what_was_sent_while_omit_ran_may_arrive_after_it() -> None:
    omitting = changed(DOCUMENT, "start.test_start.omit", 1)
    assert why(part_of(changed(omitting, "end.sum_sent.bytes", 1950000000))) == "ok"
    assert "more was received" in why(part_of(changed(omitting, "end.sum_sent.bytes", 1.8e9)))


def test_both_ways_are_the_sum_of_what_both_receivers_counted() -> None:
    part = fixture("iperf3_bidir.json")
    assert part.bandwidth is not None and part.params is not None and part.claims is not None
    assert part.bandwidth.bytes == 1450835968 + 1821507584
    assert part.bandwidth.gbit_s == 13.0553324
    assert part.params.bidirectional is True
    assert (part.claims.sent, part.claims.received) == (1450835968, 1821507584)


def test_omitted_intervals_are_left_out_of_the_peak_and_claimed_at_most() -> None:
    second = {"start": 0, "end": 1, "bits_per_second": 8e9, "bytes": 1000000000}
    warm = changed(DOCUMENT, "intervals", [{"sum": second | {"omitted": True}}, {"sum": second}])
    part = part_of(warm)
    assert part.claims is not None and len(part.intervals) == 1
    assert (part.claims.sent, part.claims.most_sent) == (2000000000, 2000000000)
    more = changed(warm, "intervals", [{"sum": second | {"omitted": True}}] * 3)
    claims = part_of(more).claims
    assert claims is not None and claims.most_sent == 3000000000


def test_a_rate_that_was_asked_for_is_kept() -> None:
    part = part_of(changed(DOCUMENT, "start.test_start.target_bitrate", 5e9))
    assert part.params is not None and part.params.rate is not None
    assert (part.params.rate.asked, part.params.rate.unit) == (5, "Gb/s")


@pytest.mark.parametrize(
    "name", ["iperf3_streams.json", "iperf3_bidir.json", "iperf3_reverse.json"]
)
def test_recorded_outputs_are_read(name: str) -> None:
    part = fixture(name)
    assert part.status == "ok", why(part)
    assert part.bandwidth is not None and part.bandwidth.peak_definition == "best_interval_1s"


def test_udp_tells_what_was_lost() -> None:
    part = fixture("iperf3_udp.json")
    assert part.status == "ok" and part.connection == "datagram" and part.tcp is None
    assert part.loss is not None and part.loss.sent_messages == 17265
    assert part.loss.lost_messages is not None and part.loss.jitter_us is not None


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (RECEIVED + "lost_packets", None, "it does not say what its receiver got"),
        (RECEIVED + "lost_packets", 17265, "it lost 17265 packets of 17265"),
        (RECEIVED + "lost_packets", -1, "it lost -1 packets of 17265"),
        (RECEIVED + "lost_packets", 9000, "8265 packets of"),
        ("end.sum_received_bidir_reverse", {"bytes": 0, "bits_per_second": 0},
         "Perch cannot read UDP both ways at once"),
    ],
)  # fmt: skip
def test_datagrams_must_be_those_that_arrived(path: str, value: Any, message: str) -> None:
    document = json.loads((TOOLS_DIR / "iperf3_udp.json").read_text())
    assert why(part_of(changed(document, path, value), BOTH)).startswith(message)


def test_killed_and_refused_outputs_are_errors() -> None:
    killed, refused = fixture("iperf3_killed.json"), fixture("iperf3_refused.json")
    assert killed.status == "error" and refused.error is not None and refused.error.code == 4


def test_iperf3_is_a_tool_over_tcp() -> None:
    assert (TOOLS["iperf3"].is_tcp, TOOLS["iperf3"].default_port) == (True, 5201)
