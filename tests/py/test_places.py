"""perch.judge.places, perch.judge.argv: the device and port whose counters must show bytes."""

from __future__ import annotations

from typing import Any

import pytest

from perch.judge.argv import option_value, planned, planned_devices
from perch.model.plan import Flow
from perch.model.record import Role
from tests.py.path_built import flow, part, plan, proof, side, word

_MOVED = {"tx_bytes": 110000, "rx_bytes": 110000}
_THREE = side(rdma={"m0/1": {"tx_bytes": 0, "rx_bytes": 0}, "m0/2": _MOVED, "m1/1": _MOVED})


@pytest.mark.parametrize(
    ("argv", "device", "params", "expected"),
    [
        ("", "m1", {}, ("proven", None)),
        (
            "--device m0 --ib-port 1 --server-device m1",
            "m1",
            {},
            ("contradicted", "client: m0 sent 0 bytes, but at least 100,000 were claimed"),
        ),
        ("--ib-port 2 --server-ib-port 2", "m0", {}, ("proven", None)),
        ("--ib-port 0", "m0", {"ib_port": 2, "server_ib_port": 2}, ("proven", None)),
        (
            "--ib-port 2",
            "m0",
            {},
            (
                "unknown",
                "server: m0 has several ports, and neither plan nor tool names the one in use",
            ),
        ),
        (
            "--ib-port 3",
            "m0",
            {"server_ib_port": 2},
            ("unknown", "client: no counter of m0, port 3, could be read"),
        ),
    ],
)
def test_planned_device_and_port_count_whatever_the_tool_names(
    argv: str, device: str, params: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    found = proof(
        flow(op="write", kind="bandwidth", client_argv=argv.split()),
        part(
            client={"device": device},
            server={"device": device},
            link={"mtu_bytes": 1024, "layer": "roce"},
            params={"size_bytes": 1000, "outstanding": 8} | params,
            claims={"sent": 100000, "received": 100000},
        ),
        _THREE,
        _THREE,
    )
    assert word(found) == expected


@pytest.mark.parametrize(
    ("argv", "device", "ports"),
    [("--ib-port 2", "m0", [_MOVED]), ("", "m0", []), ("", "m1", [_MOVED])],
)
def test_packets_of_a_device_with_several_ports_are_those_of_the_flows_own(
    argv: str, device: str, ports: list[dict[str, int]]
) -> None:
    of_flow = flow(client_argv=argv.split())
    found = proof(of_flow, part(client={"device": device}), _THREE, _THREE)
    assert found.ports["client"] == ports
    assert found.path.client_device_bytes == (220000 if ports else None)


@pytest.mark.parametrize(
    ("devices", "carrier"),
    [([{"name": "rxe1"}], "rxe1/1"), ([{"name": "absent"}], "rxe0/1"), ([], "rxe0/1")],
)
def test_device_of_the_plan_or_over_the_hosts_address_where_nobody_names_one(
    devices: list[Any], carrier: str
) -> None:
    port: dict[str, int | None] = {"sent_pkts": 1, "rcvd_pkts": 1}
    both = side(rdma={"rxe2/1": port})
    both.rdma = {
        "rxe1/1": side(rdma={"x": port}, under="eth2").rdma["x"],
        "rxe0/1": side(rdma={"x": port}, under="eth1").rdma["x"],
    }
    found = proof(flow(), part(), both, both, of_plan=plan(devices=devices))
    assert list(found.carried["client"]) == [carrier]


PERFTEST = flow(
    tool="perftest",
    client_argv=["ib_send_lat", "-d", "rxe0", "-i", "2"],
    server_argv=["ib_send_lat", "--ib-dev", "rxe1", "--ib-port", "1"],
)
CXI = flow(tool="cxi", client_argv=["cxi_write_bw", "-d", "cxi0"], server_argv=["cxi_write_bw"])
PERCH = flow(client_argv=["perch", "bw", "--device", "m0", "--server-ib-port", "2"])


@pytest.mark.parametrize(
    ("of_flow", "role", "device", "port"),
    [
        (PERFTEST, "client", "rxe0", "2"),
        (PERFTEST, "server", "rxe1", "1"),
        (CXI, "client", "cxi0", None),
        (CXI, "server", None, None),
        (PERCH, "client", "m0", None),
        (PERCH, "server", None, "2"),
        (flow(tool="iperf3", client_argv=["-d", "x", "--device", "y"]), "client", None, None),
    ],
)
def test_each_tool_names_its_device_and_port_in_its_own_command(
    of_flow: Flow, role: Role, device: str | None, port: str | None
) -> None:
    assert planned(of_flow, role, "device") == device
    assert planned(of_flow, role, "port") == port


def test_last_option_with_a_value_counts() -> None:
    assert option_value(["-d", "a", "--ib-dev", "b"], "-d", "--ib-dev") == "b"
    assert option_value(["-d", "a", "-d"], "-d") == "a"
    assert option_value(["-x"], "-d") is None
    transfer = flow(kind="transfer", client_argv=["--devices", "c0,c1", "--server-device", "s0"])
    assert planned_devices(transfer, "client") == ["c0", "c1"]
    assert planned_devices(transfer, "server") == ["s0"]
    assert planned_devices(flow(), "client") is None
