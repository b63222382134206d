"""perch.judge.places and what tests ask of the ends: whose counters must show a flow's bytes."""

from __future__ import annotations

from typing import Any

import pytest

from perch.judge.asked import NO_USES, Use, asked
from perch.model.plan import Expect, Flow
from perch.tools.command import Ends
from tests.py.path_built import counted, counts, flow, part, plan, proof, side, table, word

_MOVED = {"tx_bytes": 110000, "rx_bytes": 110000}
_THREE = side(rdma={"m0/1": {"tx_bytes": 0, "rx_bytes": 0}, "m0/2": _MOVED, "m1/1": _MOVED})


@pytest.mark.parametrize(
    ("client", "server", "device", "params", "expected"),
    [
        (Use(), Use(), "m1", {}, ("proven", None)),
        (
            Use("m0", "1"),
            Use("m1"),
            "m1",
            {},
            ("contradicted", "client: m0 sent 0 bytes, but at least 100,000 were claimed"),
        ),
        (Use(port="2"), Use(port="2"), "m0", {}, ("proven", None)),
        (Use(), Use(), "m0", {"ib_port": 2, "server_ib_port": 2}, ("proven", None)),
        (
            Use(port="2"),
            Use(),
            "m0",
            {},
            (
                "unknown",
                "server: m0 has several ports, and neither plan nor tool names the one in use",
            ),
        ),
        (
            Use(port="3"),
            Use(),
            "m0",
            {"server_ib_port": 2},
            ("unknown", "client: no counter of m0, port 3, could be read"),
        ),
    ],
)
def test_planned_device_and_port_count_whatever_the_tool_names(
    client: Use,
    server: Use,
    device: str,
    params: dict[str, Any],
    expected: tuple[str, str | None],
) -> None:
    found = proof(
        flow(op="write", kind="bandwidth"),
        part(
            client={"device": device},
            server={"device": device},
            link={"mtu_bytes": 1024, "layer": "roce"},
            params={"size_bytes": 1000, "outstanding": 8} | params,
            claims={"sent": 100000, "received": 100000},
        ),
        _THREE,
        _THREE,
        uses={"client": client, "server": server},
    )
    assert word(found) == expected


@pytest.mark.parametrize(
    ("port", "device", "ports"), [("2", "m0", [_MOVED]), (None, "m0", []), (None, "m1", [_MOVED])]
)
def test_packets_of_a_device_with_several_ports_are_those_of_the_flows_own(
    port: str | None, device: str, ports: list[dict[str, int]]
) -> None:
    uses = {**NO_USES, "client": Use(port=port)}
    found = proof(flow(), part(client={"device": device}), _THREE, _THREE, uses=uses)
    assert list(map(table, found.ports["client"])) == ports
    assert found.path.client_device_bytes == (220000 if ports else None)


@pytest.mark.parametrize(
    ("devices", "carrier"),
    [([{"name": "rxe1"}], "rxe1/1"), ([{"name": "absent"}], "rxe0/1"), ([], "rxe0/1")],
)
def test_device_of_the_plan_else_the_one_with_the_hosts_address(
    devices: list[Any], carrier: str
) -> None:
    port: dict[str, int | None] = {"sent_pkts": 1, "rcvd_pkts": 1}
    rdma = {"rxe1/1": counts(port, "eth2"), "rxe0/1": counts(port, "eth1")}
    both = counted(counts({}), {}, rdma, {})
    found = proof(flow(), part(), both, both, of_plan=plan(devices=devices))
    assert list(found.carried["client"]) == [carrier]


ENDS = Ends(
    [{"name": "m0", "netdev": "e0", "ib_port": "2"}, {"name": "m1", "netdev": "e1"}],
    [{"name": "n0", "netdev": "f0"}, {"name": "n1", "netdev": "f1"}],
)


def of_test(tool: str, *, kind: str = "latency", backend: str | None = None, **params: Any) -> Flow:
    known = {"size": 8, "iterations": 9, "duration": "4s"} | params
    return flow(tool=tool, kind=kind, backend=backend, params=known, expect=[Expect(8, 1, 0)])


@pytest.mark.parametrize(
    ("of_flow", "client", "server"),
    [
        (of_test("perftest"), Use("m0", "2"), Use("n0", "1")),
        (of_test("cxi"), Use("m0"), Use("n0")),
        (of_test("iperf3", kind="bandwidth"), Use(), Use()),
        (of_test("perch", backend="verbs"), Use("m0", "2"), Use("n0")),
        (of_test("perch", backend="cxi"), Use("m0"), Use("n0")),
        (of_test("perch", backend="tcp"), Use(), Use()),
        (of_test("perch", kind="transfer", backend="tcp"), Use(), Use()),
        (of_test("perch", kind="transfer", backend="ofi", devices=1), Use("e0"), Use("f0")),
    ],
)
def test_each_tool_says_which_device_and_port_an_end_must_use(
    of_flow: Flow, client: Use, server: Use
) -> None:
    assert asked(of_flow, ENDS).uses == {"client": client, "server": server}


def test_an_inventory_without_devices_leaves_them_to_the_tool() -> None:
    assert asked(of_test("perch", backend="verbs"), Ends()).uses == NO_USES
    zero = Ends([{"name": "m0", "ib_port": 0}], [{"name": "n0"}])
    assert asked(of_test("perch", backend="verbs"), zero).uses["client"] == Use("m0")


def test_a_setting_of_an_inventory_that_is_no_number_is_a_word() -> None:
    odd = Ends([{"name": "m0", "ib_port": [1], "gid_index": {"a": 1}}], [{"name": "n0"}])
    assert asked(of_test("perch", backend="verbs"), odd).uses["client"] == Use("m0", "[1]")


def test_of_a_transfer_with_several_devices_none_is_the_flows() -> None:
    two = of_test("perch", kind="transfer", backend="verbs", devices=2)
    two.expect = [Expect(8, 1, 0), Expect(8, 1, 1), Expect(8, 1, kind="sum")]
    assert asked(two, ENDS._replace(pairs=2)).uses["server"] == Use()
