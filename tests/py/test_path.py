"""perch.judge.path: the bytes that a flow claims against what the devices of both ends counted."""

from __future__ import annotations

from typing import Any

import pytest

from perch.judge.asked import Use
from perch.judge.counters import Counted
from perch.judge.hosts import HostFacts
from perch.model.record import ROLES, Scope
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


def test_carriers_are_the_port_and_the_interface_beside_it_in_order_of_names() -> None:
    found = proof(flow(), part(**PINGPONG), WELL, WELL)
    assert list(found.carried["client"]) == ["eth1", "rxe0/1"]


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
        (2500, 0, 200, "unknown"),  # at the pace of the idle host fewer than the 1000 claimed
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


@pytest.mark.parametrize(
    ("scope", "names", "state"),
    [("hardware", ("mlx5_0/1",), "proven"), ("hardware", ("mlx5_1/1",), "unknown"),
     ("hardware", (), "unknown"), ("software", (), "proven")],
)  # fmt: skip
def test_a_device_of_hardware_was_read_while_idle(
    scope: Scope, names: tuple[str, ...], state: str
) -> None:
    words = {"port_xmit_data": 600_000, "port_rcv_data": 600_000}
    idle = side(rdma={name: dict.fromkeys(words, 0) for name in names}) if names else None
    both = side(rdma={"mlx5_0/1": words})
    card = {name: {"device": "mlx5_0"} for name in ROLES}
    found = proof(
        flow(), part(**(PINGPONG | card)), both, both, of_plan=plan(scope=scope),
        hosts={name: HostFacts(idle=idle) for name in "ab"},
    )  # fmt: skip
    assert found.path.state == state
    if state == "unknown":
        assert found.path.reason == "client: mlx5_0 was not read while idle"


def test_cassini_counts_octets_of_all_frames_of_its_port() -> None:
    def nic(octets: int) -> Counted:
        counts = {"hni_sts_tx_ok_octets": octets, "hni_sts_rx_ok_octets": octets}
        return side(cxi={"cxi0": counts}, netdev={"hsn0": {}}, under="hsn0")

    of_flow = flow(backend="cxi")
    uses = dict.fromkeys(ROLES, Use("cxi0"))
    claim = part(params={"size_bytes": 4096}, claims={"sent": 4096000, "received": 4096000})

    def found(octets: int) -> str:
        return word(proof(of_flow, claim, nic(octets), nic(octets), uses=uses))[0]

    assert [found(4200000), found(4000000), found(9000000)] == [
        "proven", "contradicted", "exceeded",
    ]  # fmt: skip
    assert set(proof(of_flow, claim, nic(1), nic(1), uses=uses).carried["client"]) == {
        "cxi0", "hsn0",
    }  # fmt: skip


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


@pytest.mark.parametrize(("seconds", "state"), [(3, "exceeded"), (60, "proven")])
def test_interface_may_carry_a_little_else_in_each_second(seconds: float, state: str) -> None:
    both = side(seconds=seconds, netdev={"eth1": {"tx_bytes": 9000000, "rx_bytes": 9000000}})
    answered = part(params={"size_bytes": 8}, claims={"sent": 80000, "received": 80000})
    found = proof(flow(backend="tcp"), answered, both, both, of_plan=plan("ethernet"))
    assert found.path.state == state


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
        (
            {"link": {"layer": "loopback"}},
            "both ends are one machine, so the counters of lo mix all traffic",
        ),
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


# ---- losses

UNKNOWN_LOSS = {"loss": {"sent_messages": 900}}
KNOWN_LOSS = {"loss": {"sent_messages": 1000, "lost_messages": 10}}


@pytest.mark.parametrize(
    ("more", "sent", "received", "state", "reason"),
    [
        (UNKNOWN_LOSS, 1000, 1000, "proven", None),
        (
            UNKNOWN_LOSS,
            1000,
            990,
            "unknown",
            "server: rxe0 received 990 packets, and 1,000 were sent; the rest was "
            "lost or went another way: with --verify losses are counted",
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
        (KNOWN_LOSS, 1000, 990, "proven", None),
        (
            KNOWN_LOSS,
            1000,
            989,
            "contradicted",
            "server: rxe0 received 989 packets, but at least 990 were claimed",
        ),
        (
            {"tool": {"name": "perftest"}},
            1000,
            990,
            "unknown",
            "server: rxe0 received 990 packets, and 1,000 were sent; the rest was "
            "lost or went another way: with --verify losses are counted",
        ),
    ],
)
def test_writes_without_a_check_are_neither_proven_nor_contradicted(
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


@pytest.mark.parametrize(
    ("received", "again", "state"),
    [(90000, 0, "proven"), (89999, 0, "contradicted"), (900000, 0, "exceeded"),
     (900000, 20, "proven")],
)  # fmt: skip
def test_bytes_of_a_card_lack_what_was_lost_and_have_what_was_repeated(
    received: int, again: int, state: str
) -> None:
    found = proof(
        flow(op="write", kind="bandwidth"),
        part(
            connection="UC",
            params={"size_bytes": 1000, "outstanding": 64},
            link={"mtu_bytes": 1024, "layer": "roce"},
            claims={"sent": 100000, "received": 0},
            **KNOWN_LOSS,
        ),
        side(
            rdma={"m0/1": {"tx_bytes": 100000, "rx_bytes": 0, "packet_seq_err": again}},
            under="eth1",
        ),
        side(rdma={"m0/1": {"tx_bytes": 0, "rx_bytes": received}}, under="eth1"),
    )
    assert found.path.state == state


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


def test_ports_of_a_transfer_are_known_together_or_not_at_all() -> None:
    one = side(rdma={"c0/1": {"tx_bytes": 0, "rx_bytes": 0}})
    found = proof(flow(kind="transfer", op="write"), [_pair(0), _pair(1)], one, one)
    assert found.ports == {"client": [], "server": []}
