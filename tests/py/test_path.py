"""perch.judge.path: the bytes that a flow claims against what the devices of both ends counted."""

from __future__ import annotations

from typing import Any

import pytest

from perch.judge.argv import option_value, planned, planned_devices
from perch.judge.counters import Counted
from perch.judge.hosts import HostFacts
from perch.judge.wire import lost_bytes
from perch.judge.wire import of_flow as claim_of
from perch.model.record import Role
from tests.py.path_built import flow, part, plan, proof, rxe, side, word

RXE = {
    "client": {"device": "rxe0"},
    "server": {"device": "rxe0"},
    "link": {"mtu_bytes": 1024, "layer": "roce"},
}
PINGPONG = RXE | {
    "params": {"size_bytes": 2048, "outstanding": 1},
    "claims": {"sent": 2048000, "received": 2048000},
}
WELL = rxe(3000, 3000, 2250000)


# ---- RDMA


@pytest.mark.parametrize(
    ("client", "server", "expected"),
    [
        (WELL, WELL, ("proven", None)),
        (
            rxe(0, 0, 5000),
            rxe(0, 0, 5000),
            (
                "contradicted",
                "client: rxe0 sent 0 packets, but at least 2,000 were claimed; eth0 carried as "
                "many bytes",
            ),
        ),
        (
            WELL,
            rxe(3000, 1999, 2250000),
            (
                "contradicted",
                "server: rxe0 received 1,999 packets, but at least 2,000 were claimed; eth0 "
                "carried as many bytes",
            ),
        ),
        (
            rxe(3000, 3000, 2000000),
            WELL,
            (
                "contradicted",
                "client: eth1 sent 2,000,000 bytes, but at least 2,164,000 were claimed; eth0 "
                "carried as many bytes",
            ),
        ),
        (
            rxe(9999, 3000, 2250000),
            WELL,
            (
                "exceeded",
                "client: rxe0 sent 9,999 packets, of which this flow explains 5,150 at most",
            ),
        ),
        (
            rxe(None, 3000, 2250000),
            WELL,
            (
                "unknown",
                "client: the counter of what rxe0 sent was reset, has wrapped or is full",
            ),
        ),
        (WELL, None, ("unknown", "server: its agent left no counters of this flow")),
    ],
)
def test_soft_device_is_judged_by_packets_and_by_the_interface_under_it(
    client: Counted, server: Counted | None, expected: tuple[str, str | None]
) -> None:
    assert word(proof(flow(), part(**PINGPONG), client, server)) == expected


def test_shared_hosts_explain_what_is_too_much() -> None:
    much = rxe(9999, 3000, 2250000)
    assert word(proof(flow(), part(**PINGPONG), much, WELL, shared=True)) == ("proven", None)


def test_record_says_what_was_claimed_counted_and_compared() -> None:
    found = proof(flow(), part(**PINGPONG), WELL, rxe(3000, 3000, 2250001)).path
    assert found.counted == "rxe0 packets, eth1 bytes"
    assert (found.claimed_bytes, found.client_device_bytes) == (4096000, 4500000)
    assert found.server_device_bytes == 4500002


@pytest.mark.parametrize(
    ("words", "state", "reason"),
    [
        (16700000, "proven", None),
        (
            16300000,
            "contradicted",
            "client: mlx5_0 sent 65,200,000 bytes, but at least 65,536,000 were claimed",
        ),
        (
            65536000,
            "exceeded",
            "client: mlx5_0 sent 262,144,000 bytes, of which this flow explains 68,517,740 at most",
        ),
    ],
)
def test_port_counters_of_a_card_are_words_of_four_bytes(
    words: int, state: str, reason: str | None
) -> None:
    idle = {"eth1": {"tx_bytes": 0, "rx_bytes": 0}}

    def card(sent: int, received: int) -> Counted:
        port: dict[str, int | None] = {"port_xmit_data": sent, "port_rcv_data": received}
        return side(netdev=idle, rdma={"mlx5_0/1": port}, under="eth1")

    found = proof(
        flow(op="write", kind="bandwidth"),
        part(
            link={"mtu_bytes": 4096, "layer": "roce"},
            params={"size_bytes": 65536, "outstanding": 64},
            claims={"sent": 65536000, "received": 0},
        ),
        card(words, words // 50),
        card(words // 50, words),
    )
    assert word(found) == (state, reason)
    assert found.path.counted == "mlx5_0 bytes"
    assert found.path.client_device_bytes == 4 * (words + words // 50)


@pytest.mark.parametrize(
    ("packets", "again", "idle_packets", "state"),
    [
        (5000, 0, None, "exceeded"),
        (5000, 0, 200, "proven"),  # 2000 in 10 s, at the pace of the idle host
        (5000, 20, None, "proven"),  # each event may have repeated the whole window
        (1500, 0, 200, "unknown"),
    ],
)
def test_idle_traffic_and_events_explain_packets(
    packets: int, again: int, idle_packets: int | None, state: str
) -> None:
    def port(n: int, events: int, seconds: float) -> Counted:
        counts = {"sent_pkts": n, "rcvd_pkts": n, "duplicate_request": events}
        return side(seconds=seconds, rdma={"rxe0/1": counts})

    idle = None if idle_packets is None else port(idle_packets, 0, 1)
    facts = {name: HostFacts(idle=idle) for name in "ab"}
    claim = {
        "params": {"size_bytes": 8, "outstanding": 64},
        "claims": {"sent": 8000, "received": 8000},
    }
    both = port(packets, again, 10), port(packets, again, 10)
    assert word(proof(flow(), part(**RXE, **claim), *both, hosts=facts))[0] == state


def test_cassini_counts_octets_of_all_frames_of_its_port() -> None:
    def nic(octets: int) -> Counted:
        counts = {"hni_sts_tx_ok_octets": octets, "hni_sts_rx_ok_octets": octets}
        return side(cxi={"cxi0": counts}, netdev={"hsn0": {}}, under="hsn0")

    of_flow = flow(backend="cxi", client_argv=["--device", "cxi0", "--server-device", "cxi0"])
    claim = part(params={"size_bytes": 4096}, claims={"sent": 4096000, "received": 4096000})

    def found(octets: int) -> str:
        return word(proof(of_flow, claim, nic(octets), nic(octets)))[0]

    assert [found(4200000), found(4000000), found(9000000)] == [
        "proven", "contradicted", "exceeded",
    ]  # fmt: skip
    assert set(proof(of_flow, claim, nic(1), nic(1)).carried["client"]) == {"cxi0", "hsn0"}


# ---- sockets


@pytest.mark.parametrize(
    ("counted", "driver", "elapsed", "shared", "state"),
    [
        (700000, None, 2, False, "proven"),
        (610000, None, 2, False, "contradicted"),  # each answered message is a packet at least
        (610000, "virtio_net", 2, False, "contradicted"),
        (350000, "bnxt_en", 2, False, "unknown"),  # the last second may be missing
        (300000, "bnxt_en", 2, False, "contradicted"),
        (9000000, None, 2, False, "exceeded"),
        (9000000, None, 2, True, "proven"),
    ],
)
def test_sockets_are_judged_by_the_interface(
    counted: int, driver: str | None, elapsed: float, shared: bool, state: str
) -> None:
    eth1 = {"eth1": {"tx_bytes": counted, "rx_bytes": counted}}
    both = side(seconds=3, netdev=eth1, host={"TcpRetransSegs": 0})
    found = proof(
        flow(backend="tcp"),
        part(
            elapsed_s=elapsed,
            client={"device": "eth1"},
            server={"device": "eth1"},
            link={"mtu_bytes": 1500, "layer": "ethernet"},
            params={"size_bytes": 8},
            claims={"sent": 80000, "received": 80000},
        ),
        both,
        both,
        hosts={name: HostFacts(drivers={"eth1": driver}) for name in "ab"},
        of_plan=plan("ethernet"),
        shared=shared,
    )
    assert word(found)[0] == state


TCP = {"params": {"size_bytes": 65536}, "claims": {"sent": 100_000_000, "received": 0}}


def test_retransmissions_explain_more_bytes() -> None:
    def interface(sent: int, received: int, retransmissions: int) -> Counted:
        eth1 = {"eth1": {"tx_bytes": sent, "rx_bytes": received}}
        return side(netdev=eth1, host={"TcpRetransSegs": retransmissions})

    def state(n: int) -> str:
        client, server = interface(120_000_000, 2_000_000, n), interface(2_000_000, 120_000_000, 0)
        of_flow = flow(backend="tcp", kind="bandwidth")
        return word(proof(of_flow, part(**TCP), client, server, of_plan=plan("ethernet")))[0]

    assert [state(0), state(10_000)] == ["exceeded", "proven"]


def test_interface_that_carried_the_bytes_instead_is_named() -> None:
    def host(p0: int, p1: int) -> Counted:
        tables = {"p0": {"tx_bytes": p0, "rx_bytes": p0}, "p1": {"tx_bytes": p1, "rx_bytes": p1}}
        return side(address="p0", netdev=tables | {"lo": tables["p1"]})

    of_flow = flow(backend="tcp", kind="bandwidth")
    astray = host(4000, 110_000_000)
    found = proof(of_flow, part(**TCP), astray, astray, of_plan=plan("ethernet"))
    state, reason = word(found)
    assert state == "contradicted"
    assert reason is not None
    assert reason.endswith("; p1 carried as many bytes")
    assert list(found.carried["client"]) == ["p0"]


def test_interface_without_counters_proves_nothing() -> None:
    nothing = side(address="p0", netdev={})
    found = proof(flow(backend="tcp"), part(**TCP), nothing, nothing, of_plan=plan("ethernet"))
    assert word(found) == ("unknown", "client: no counter of p0 could be read")


# ---- where nothing can be proven


@pytest.mark.parametrize(
    ("of_part", "reason"),
    [
        ({"link": {"layer": "loopback"}}, "both ends are one machine"),
        ({"client": {"device": "lo"}}, "both ends are one machine"),
        ({"provider": "shm"}, "the bytes went through memory"),
        ({"provider": "sm2"}, "the bytes went through memory"),
        ({"link": {"layer": "shm"}}, "the bytes went through memory"),
        ({"simulated": True}, "a simulated provider"),
        ({"status": "error"}, "the flow was not measured to its end"),
    ],
)
def test_flow_is_not_judged_where_no_counter_can_prove_it(
    of_part: dict[str, Any], reason: str
) -> None:
    found = proof(flow(backend="ofi"), part(**of_part), None, None, of_plan=plan("ethernet"))
    assert found.path.state == "not_judged"
    assert (found.path.reason or "").startswith(reason)


def test_null_backend_moves_no_bytes() -> None:
    found = proof(flow(backend="null"), part(**PINGPONG), WELL, WELL)
    assert word(found) == ("not_judged", "the null backend moves no bytes")
    assert found.carried == {"client": {}, "server": {}}


def test_loopback_has_carriers_all_the_same() -> None:
    lo = side(address="lo", netdev={"lo": {"tx_bytes": 1, "rx_bytes": 1}})
    found = proof(flow(backend="tcp"), part(**TCP), lo, lo, of_plan=plan("loopback"))
    assert found.loopback
    assert list(found.carried["client"]) == ["lo"]


def test_tool_that_claims_nothing_is_unknown() -> None:
    silent, none = part(**RXE), part(**RXE, claims={"sent": 0, "received": 0})
    assert word(proof(flow(), silent, WELL, WELL)) == (
        "unknown", "perch does not say how many bytes it moved",
    )  # fmt: skip
    assert word(proof(flow(), none, WELL, WELL)) == (
        "unknown", "perch claims no byte, so that no counter can show any",
    )  # fmt: skip
    assert proof(flow(), [], WELL, WELL).path.state == "unknown"


# ---- which device and port

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


@pytest.mark.parametrize(
    ("devices", "carrier"),
    [([{"name": "rxe1"}], "rxe1/1"), (["rxe1"], "rxe1/1"), (["absent"], "rxe0/1"), ([], "rxe0/1")],
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
    of_flow: Any, role: Role, device: str | None, port: str | None
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


# ---- what is claimed


def test_sizes_add_up_and_one_that_does_not_tell_spoils_the_claim() -> None:
    def size(n: int, moved: int, **more: Any) -> dict[str, Any]:
        return {
            "params": {"size_bytes": n, "outstanding": 16},
            "link": {"mtu_bytes": 1024},
            "claims": {"sent": moved, "received": 0},
        } | more

    bandwidth = flow(kind="bandwidth")
    both = [part(**size(8, 80)), part(**size(4000, 40000))]
    claim = claim_of(bandwidth, both, rdma=True)
    assert claim is not None
    assert (claim.sent.bytes, claim.sent.least_packets) == (40080, 50)
    assert (claim.sizes, claim.window) == (2, 64)
    stream = claim_of(bandwidth, both, rdma=False)
    assert stream is not None
    assert stream.sent.least_packets == 0
    assert claim_of(bandwidth, [*both, part(**size(8, 80, claims=None))], rdma=True) is None
    infinite = {"sent": float("inf"), "received": 0}
    assert claim_of(bandwidth, [part(**size(8, 80, claims=infinite))], rdma=True) is None


@pytest.mark.parametrize(("chunks", "packets", "messages"), [(None, 30, 10), (4, 60, 40)])
def test_pieces_of_a_transfer_have_packets_of_their_own(
    chunks: int | None, packets: int, messages: int
) -> None:
    params = {"size_bytes": 10000, "outstanding": 4, "queue_pairs": 2, "chunks": chunks}
    whole = part(params=params, link={"mtu_bytes": 4096}, claims={"sent": 100000, "received": 0})
    claim = claim_of(flow(kind="transfer"), [whole], rdma=True)
    assert claim is not None
    assert (claim.sent.least_packets, claim.sent.packets) == (30, packets)
    assert (claim.messages, claim.window) == (messages, 24)


def test_losses_of_the_warm_up_are_no_claim_on_the_receiver() -> None:
    loss = {"sent_messages": 10, "lost_messages": 1}
    assert lost_bytes(part(loss=loss), 8) == 8
    assert lost_bytes(part(loss=loss, claims={"lost": 24}), 8) == 24
    assert lost_bytes(part(), 8) == 0


UNKNOWN_LOSS = {"loss": {"sent_messages": 900}}


@pytest.mark.parametrize(
    ("more", "sent", "received", "state", "reason"),
    [
        (UNKNOWN_LOSS, 1000, 1000, "proven", None),
        (
            UNKNOWN_LOSS,
            1000,
            990,
            "unknown",
            "server: rxe0 received 990 packets, and 1,000 were sent; nobody saw whether the rest "
            "was lost or went another way: with --verify losses are counted",
        ),
        (
            UNKNOWN_LOSS,
            990,
            990,
            "contradicted",
            "client: rxe0 sent 990 packets, but at least 1,000 were claimed",
        ),
        (
            UNKNOWN_LOSS,
            1000,
            9000,
            "exceeded",
            "server: rxe0 received 9,000 packets, of which this flow explains 2,120 at most",
        ),
        ({"loss": {"sent_messages": 1000, "lost_messages": 10}}, 1000, 990, "proven", None),
        (
            {"tool": {"name": "perftest"}},
            1000,
            990,
            "unknown",
            "server: rxe0 received 990 packets, and 1,000 were sent; nobody saw whether the rest "
            "was lost or went another way: with --verify losses are counted",
        ),
    ],
)
def test_writes_that_nobody_saw_arrive_are_neither_proven_nor_contradicted(
    more: dict[str, Any], sent: int, received: int, state: str, reason: str | None
) -> None:
    claim = {
        "params": {"size_bytes": 1024, "outstanding": 64},
        "claims": {"sent": 1024000, "received": 0},
    }
    found = proof(
        flow(op="write", kind="bandwidth"),
        part(connection="UC", **RXE, **claim, **more),
        rxe(sent, 0),
        rxe(0, received),
    )
    assert word(found) == (state, reason)


# ---- transfers


def _pair(n: int, kind: str = "transfer") -> Any:
    devices = ("c0,c1", "s0,s1") if kind == "sum" else (f"c{n}", f"s{n}")
    return part(
        kind=kind,
        client={"device": devices[0]},
        server={"device": devices[1]},
        link={"mtu_bytes": 4096, "layer": "roce"},
        params={"size_bytes": 65536, "outstanding": 64},
        claims={"sent": 65536000, "received": 0},
    )


@pytest.mark.parametrize(
    ("words", "state", "reason"),
    [
        ([17e6, 17e6, 17e6, 17e6], "proven", None),
        (
            [34e6, 0, 17e6, 17e6],
            "contradicted",
            "client: c1 sent 0 bytes, but at least 65,536,000 were claimed",
        ),
        (
            [17e6, 17e6, 17e6, 15e6],
            "contradicted",
            "server: s1 received 60,000,000 bytes, but at least 65,536,000 were claimed",
        ),
        ([17e6, 30e6, 17e6, 17e6], "exceeded", "client: c1 sent 120,000,000 bytes, of which "),
    ],
)
def test_each_device_of_a_transfer_has_its_own_claim(
    words: list[float], state: str, reason: str | None
) -> None:
    def ports(host: str, first: float, second: float, out: bool) -> Counted:
        def card(n: float) -> dict[str, int | None]:
            there, back = int(n), int(n / 50)
            return {
                "port_xmit_data": there if out else back,
                "port_rcv_data": back if out else there,
            }

        return side(rdma={f"{host}0/1": card(first), f"{host}1/1": card(second)})

    parts = [_pair(0), _pair(1), _pair(0, "sum")]
    found = proof(
        flow(kind="transfer", op="write"),
        parts,
        ports("c", words[0], words[1], True),
        ports("s", words[2], words[3], False),
    )
    assert found.path.state == state
    assert (found.path.reason or "").startswith(reason or "")
    assert found.path.claimed_bytes == 2 * 65536000
    assert found.path.counted == "c0 bytes, c1 bytes"
    assert len(found.ports["client"]) == 2
