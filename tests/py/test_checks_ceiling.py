"""What a link can carry, and the check that nothing carried more."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from perch.judge import columns
from perch.judge.ceiling import rdma_efficiency, stream_efficiency
from perch.model.verdict import Bound
from tests.py.checks_built import found, record, run_of

ROCE: dict[str, Any] = {"layer": "roce", "mtu_bytes": 4096}
MIB = 1048576


def share(
    expression: pl.Expr, link: dict[str, Any], op: str = "send", size: int = MIB, **more: Any
) -> float | None:
    one = record(link=link, op=op, params={"size_bytes": size}, **more)
    value: float | None = columns.frame([one]).select(v=expression)["v"][0]
    return value


@pytest.mark.parametrize(("mtu", "percent"), [(1024, 92.59), (2048, 96.15), (4096, 98.04)])
def test_roce_has_82_bytes_a_packet(mtu: int, percent: float) -> None:
    size = 1073741824
    assert share(rdma_efficiency(), {**ROCE, "mtu_bytes": mtu}, size=size) == pytest.approx(
        percent / 100, abs=5e-5
    )


@pytest.mark.parametrize(
    ("link", "op", "size", "more", "expected"),
    [
        (ROCE, "send", 5000, {}, 5000 / (5000 + 2 * 82)),  # the last packet is a partial one
        (ROCE, "write", 4096, {}, 4096 / (4096 + 82 + 16)),  # RETH
        (ROCE, "send", 4096, {"connection": "ud"}, 4096 / (4096 + 82 + 8)),  # DETH
        (ROCE, "read", 4096, {}, 4096 / (4096 + 82 + 4)),  # AETH
        (ROCE, "read", 8192, {}, 8192 / (8192 + 2 * 82 + 8)),
        (ROCE, "fetch-add", 8, {}, 8 / (8 + 82 + 28)),
        (
            {**ROCE, "mtu_bytes": 1024, "ipv6": True, "vlan": True},
            "send", 1024, {}, 1024 / (1024 + 106),
        ),
        ({"layer": "infiniband", "mtu_bytes": 4096}, "send", 4096, {}, 4096 / 4122),
        ({"layer": "infiniband", "mtu_bytes": 4096}, "send-imm", 4096, {}, 4096 / 4126),
        ({"layer": "infiniband", "mtu_bytes": 4096}, "write-imm", 4096, {}, 4096 / 4142),
        ({"layer": "slingshot", "mtu_bytes": 9000}, "send", 8, {}, 1),
        ({"layer": "slingshot"}, "send", 8, {}, 1),
        ({"layer": "loopback", "mtu_bytes": 65536}, "send", 4096, {}, None),
        ({"layer": "shm"}, "send", 4096, {}, None),
        ({"layer": "roce"}, "send", 4096, {}, None),
        ({"mtu_bytes": 1500}, "send", 4096, {}, None),
        (ROCE, "send", 0, {}, None),
    ],
)  # fmt: skip
def test_headers_of_each_layer_and_operation(
    link: dict[str, Any], op: str, size: int, more: dict[str, Any], expected: float | None
) -> None:
    found_share = share(rdma_efficiency(), link, op, size, **more)
    assert found_share == (None if expected is None else pytest.approx(expected, rel=1e-12))


@pytest.mark.parametrize(
    ("link", "percent"),
    [
        ({"layer": "ethernet", "mtu_bytes": 1500}, 94.15),
        ({"layer": "ethernet", "mtu_bytes": 9000}, 99.00),
        ({"layer": "ethernet", "mtu_bytes": 1500, "ipv6": True}, 92.85),
        ({"layer": "ethernet", "mtu_bytes": 1500, "vlan": True}, 93.90),
        ({"layer": "ethernet", "mtu_bytes": 72}, None),
        ({"layer": "infiniband", "mtu_bytes": 1500}, None),
    ],
)
def test_a_stream_fills_its_segments(link: dict[str, Any], percent: float | None) -> None:
    value = share(stream_efficiency(), link)
    assert value == (None if percent is None else pytest.approx(percent / 100, abs=5e-5))


def top(link: dict[str, Any], column: str = "ceiling_gbit_s", **more: Any) -> float | None:
    given: dict[str, Any] = {"backend": "verbs", "connection": "rc", "op": "send"} | more
    given["params"] = {"size_bytes": MIB} | given.get("params", {})
    value: float | None = columns.frame([record(link=link, **given)])[column][0]
    return value


BOND: dict[str, Any] = {**ROCE, "rate_gbit_s": 200, "expected_gbit_s": 100, "links": 2}
EIGHT: dict[str, Any] = {"params": {"queue_pairs": 8}}
BOTH_WAYS: dict[str, Any] = {"bidirectional": True}
CARD: dict[str, Any] = {**ROCE, "rate_gbit_s": 100}
SUM: dict[str, Any] = {
    "kind": "sum", "client": {"host": "a", "device": "a,b"},
    "server": {"host": "b", "device": "c,d"}, "transfer": {"pairs": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("link", "more", "gbit_s"),
    [
        (CARD, {}, 98.037),
        (CARD, {"params": BOTH_WAYS}, 196.075),
        (ROCE, {}, None),
        ({**CARD, "layer": "ethernet", "mtu_bytes": 1500}, {"backend": "tcp"}, 94.148),
        # neither a slower way to memory nor a slower link lowers what was bought
        ({**CARD, "pcie_gbit_s": 58}, {}, 98.037),
        ({**CARD, "expected_gbit_s": 200}, {}, 196.075),
        ({**ROCE, "expected_gbit_s": 200}, {}, 196.075),
        # a bond: many queue pairs fill its links, few may all be on one
        (BOND, EIGHT, 196.075),
        (BOND, {"params": {"queue_pairs": 7}}, 98.037),
        # a link of twice the rate that was bought is no bond
        ({**BOND, "links": None}, EIGHT, 98.037),
        ({**BOND, "rate_gbit_s": 400}, {**SUM, **EIGHT}, 392.149),
        # of a sum, each device has its own
        ({**CARD, "rate_gbit_s": 200, "expected_gbit_s": 400}, SUM, 784.299),
        ({**CARD, "rate_gbit_s": 200}, SUM, 196.075),
        # pairs that share a device share its link
        (
            {**CARD, "rate_gbit_s": 200},
            {**SUM, "server": {"host": "b", "device": "c,c"}}, 98.037,
        ),
        # both ways, a read's requests share the way with the other's answers
        (CARD, {"op": "read", "params": {**BOTH_WAYS, "size_bytes": 4096}}, 191.402),
        (
            {**CARD, "layer": "infiniband"},
            {"op": "read", "params": {**BOTH_WAYS, "size_bytes": 4096}}, 196.545,
        ),
        ({**CARD, "layer": "infiniband"}, {"op": "read", "params": {"size_bytes": 4096}}, 99.273),
    ],
)  # fmt: skip
def test_the_ceiling_of_a_record(
    link: dict[str, Any], more: dict[str, Any], gbit_s: float | None
) -> None:
    assert top(link, **more) == (None if gbit_s is None else pytest.approx(gbit_s, abs=6e-4))


@pytest.mark.parametrize(
    ("link", "more", "host", "possible"),
    [
        (CARD, {}, None, 98.037),
        (BOND, EIGHT, None, 196.075),
        # 8 GT/s x8 let 58 Gb/s through
        ({**CARD, "pcie_gbit_s": 58}, {}, 58, 58),
        ({**CARD, "pcie_gbit_s": 58}, {"params": BOTH_WAYS}, 116, 116),
        ({**CARD, "rate_gbit_s": 200, "pcie_gbit_s": 58}, SUM, 116, 116),
        ({**CARD, "pcie_gbit_s": 250, "expected_gbit_s": 50}, {}, 250, 98.037),
        ({**ROCE, "pcie_gbit_s": 58, "expected_gbit_s": 100}, {}, 58, None),
    ],
)
def test_the_ceiling_of_the_host_and_what_is_possible_at_all(
    link: dict[str, Any], more: dict[str, Any], host: float | None, possible: float | None
) -> None:
    assert top(link, "host_ceiling_gbit_s", **more) == host
    found_top = top(link, "possible_gbit_s", **more)
    assert found_top == (None if possible is None else pytest.approx(possible, abs=6e-4))


# ---- the check -----------------------------------------------------------------------------------


def measured(*percents: float, link: dict[str, Any] = CARD, scope: str = "hardware") -> Any:
    """Records at these parts of 98.04 Gb/s."""
    known = top(CARD)
    assert known
    return run_of(
        [
            record(
                f"t/a/b/0/{n}", link=link, scope=scope, backend="verbs", params={"size_bytes": MIB},
                bandwidth={"gbit_s": percent / 100 * known},
            )
            for n, percent in enumerate(percents, 1)
        ]
    )  # fmt: skip


def test_a_bandwidth_above_the_ceiling_fails_and_half_a_percent_is_granted() -> None:
    check = found(measured(100.4, 100.6, 99), "ceiling")["ceiling"]
    assert (check.status, check.measured) == ("fail", 100.6)
    assert check.evidence == [f"t/a/b/0/2#{MIB}"]
    assert check.limit == Bound(None, 100.5)
    kept = found(measured(100.4, 100), "ceiling")["ceiling"]
    assert (kept.status, kept.measured, kept.evidence) == ("pass", 100.4, [f"t/a/b/0/1#{MIB}"])


def test_where_no_ceiling_is_known_nothing_is_judged_and_hardware_is_named() -> None:
    checks = found(measured(50, link=ROCE), "ceiling")
    assert checks["ceiling"].status == "not_judged"
    assert "roce" in str(checks["ceiling"].measured)
    assert checks["ceiling/unknown"].evidence == [f"t/a/b/0/1#{MIB}"]
    assert list(found(measured(50, link=ROCE, scope="software"), "ceiling")) == ["ceiling"]


def test_only_measured_bandwidths_are_held_to_a_ceiling() -> None:
    failed = record(link=CARD, status="error", error={"code": 6}, bandwidth={"gbit_s": 1e6})
    lat = record("lat/a/b/0/1", kind="latency", link=CARD, latency_us={"p50": 1})
    assert found(run_of([failed, lat]), "ceiling")["ceiling"].status == "not_judged"


@pytest.mark.parametrize(
    ("definition", "op", "least", "status"),
    [
        ("half_round_trip", "send", 2.7, "pass"),
        ("half_round_trip", "send", 2.6, "fail"),
        ("completion", "read", 2.6, "fail"),
        ("completion", "write", 0.2, "pass"),
    ],
)
def test_a_message_does_not_arrive_before_its_link_has_carried_it(
    definition: str, op: str, least: float, status: str
) -> None:
    """32 KiB take 2.67 us at 98 Gb/s, whatever a line of 8 B says under their name."""
    link = {"layer": "roce", "mtu_bytes": 4096, "rate_gbit_s": 100}
    one = record(kind="latency", definition=definition, op=op, latency_us={"min": least},
                 params={"size_bytes": 32768}, link=link, scope="hardware")  # fmt: skip
    whole = record("t/a/b/0/2", link=link, bandwidth={"gbit_s": 90}, scope="hardware")
    assert found(run_of([one, whole]), "ceiling")["ceiling"].status == status
