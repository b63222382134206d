"""Records, and what their outputs show of their own worth, their links and their clocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from perch.judge import ends, links, recorded, scope, times
from perch.judge.asked import NO_USES
from perch.judge.counters import Counted
from perch.judge.hosts import HostFacts
from perch.judge.links import LinkFacts
from perch.model.figures import encode
from perch.model.part import Part
from perch.model.plan import Expect, Flow, Plan, PlanHost, Suite
from perch.model.raw import End, Interface
from perch.model.record import ROLES, Counters, Link, Path, Placement, Record, Role, SoakSummary
from tests.py.path_built import Table, counts, side

FLOW = Flow(
    id="t/a/b/0/1", test="t", tool="perch", kind="latency", client="a", server="b", scope="software"
)
PLAN = Plan(
    schema="perch.plan/2", run="r", created="", suite=Suite("s", "S"), limits="x", rounds=[],
    hosts={name: PlanHost(address, "loopback", "software", 1) for name, address in
           (("a", "1"), ("b", "2"))},
)  # fmt: skip


def part(said: dict[str, Any]) -> Part:
    return msgspec.convert(said, Part)


def record(said: dict[str, Any]) -> Record:
    return recorded.record(
        PLAN, FLOW, Expect(size_bytes=8), part(said), scope="software", link=Link(layer="loopback"),
        path=None, of_flow=recorded.OfFlow(),
    )  # fmt: skip


# ---- the record ----------------------------------------------------------------------------------


def test_an_end_was_where_it_says_or_where_its_agent_put_it() -> None:
    agents = (Placement(cpu="2", node=0), Placement(unplaced="few-cores"))
    said = part({"status": "ok", "client": {"placement": {"cpu": "5"}}})
    of_flow = recorded.OfFlow(places=agents)
    found = recorded.record(
        PLAN, FLOW, Expect(size_bytes=8), said, scope="software", link=Link(), path=None,
        of_flow=of_flow,
    )  # fmt: skip
    assert (found.client.placement, found.server.placement) == (Placement(cpu="5"), agents[1])


def test_a_record_without_figures_has_its_place_and_no_empty_keys() -> None:
    error = {"message": "x", "traffic": False}
    line = msgspec.json.decode(encode(record({"status": "not_measured", "error": error})))
    assert list(line)[:6] == ["schema", "run", "flow", "test", "repeat", "rail"]
    assert line["params"] == {"size_bytes": 8}
    assert line["client"] == {"host": "a", "address": "1"}
    assert line["error"] == error
    assert "latency_us" not in line


def test_service_vni_gpu_and_environment_stay_where_the_tool_tells_them() -> None:
    side = {"device": "cxi0", "address": "x", "svc_id": 2, "vni": 20, "gpu": "H",
            "environment": {"FI_CXI_LLRING_MODE": "never"}}  # fmt: skip
    made = record({"client": side, "server": side, "params": {"gpu_path": "dmabuf"}})
    assert msgspec.to_builtins(made.client) == {"host": "a", **side}
    assert msgspec.to_builtins(made.server) == {"host": "b", **side}
    assert made.params and made.params.gpu_path == "dmabuf"


def test_huge_pages_have_their_bytes() -> None:
    made = record({"params": {"tx_memory": "huge:2M"}})
    assert made.params and made.params.huge == 2097152


@pytest.mark.parametrize(
    ("code", "traffic", "status"),
    [
        (2, False, "not_measured"), (3, False, "not_measured"), (4, False, "not_measured"),
        (4, True, "error"), (5, True, "error"), (6, False, "error"), (1, True, "error"),
    ],
)  # fmt: skip
def test_what_could_not_be_run_was_not_measured(code: int, traffic: bool, status: str) -> None:
    error = {"code": code, "traffic": traffic}
    assert recorded.final_status(part({"status": "error", "error": error})) == status


def test_a_transfer_that_was_not_measured_has_its_place() -> None:
    made = recorded.record(
        PLAN, FLOW, Expect(size_bytes=8, batch=4, pair=1, kind="transfer"), Part(status="error"),
        scope="software", link=Link(), path=None, of_flow=recorded.OfFlow(),
    )  # fmt: skip
    assert made.place == "8x4/1"
    assert made.id == "t/a/b/0/1#8x4/1"


# ---- its worth -----------------------------------------------------------------------------------


def verbs(tool: str = "perch", **said: Any) -> Flow:
    return msgspec.structs.replace(FLOW, tool=tool, **{"backend": "verbs", **said})


def worth(
    flow: Flow,
    said: dict[str, Any],
    hosts: dict[str, HostFacts] | None = None,
    rdma: Mapping[str, dict[str, Table]] | None = None,
) -> str:
    facts = {"a": HostFacts(), "b": HostFacts()} | (hosts or {})
    counted: dict[Role, Counted | None] = {"client": None, "server": None}
    for role in ROLES:
        if rdma and role in rdma:
            counted[role] = side(rdma=rdma[role])
    return scope.shown(part(said), flow, "roce", facts, counted, NO_USES)


CARDS: dict[str, Any] = {"client": {"device": "mlx5_0"}, "server": {"device": "mlx5_0"}}


@pytest.mark.parametrize(
    ("rdma", "shown"),
    [
        ({}, "hardware"),
        ({"client": {"mlx5_0/1": {"port_xmit_data": 5}}}, "hardware"),
        ({"server": {"mlx5_0/1": {"rcvd_pkts": 5}}}, "software"),
        ({"client": {"rxe9/1": {"sent_pkts": 5}}}, "hardware"),
    ],
)
def test_rxes_own_counters_are_soft_under_any_name(
    rdma: dict[str, dict[str, Table]], shown: str
) -> None:
    assert worth(verbs(), CARDS, rdma=rdma) == shown


@pytest.mark.parametrize(
    ("flow", "said", "shown"),
    [
        (verbs(), {"client": {"device": "rxe0"}}, "software"),
        (verbs(), {"server": {"device": "siw1"}}, "software"),
        (verbs(), {**CARDS, "simulated": True}, "simulated"),
        (verbs(), {"client": {"device": "sim_cxi0"}}, "simulated"),
        (verbs(), {**CARDS, "link": {"layer": "loopback"}}, "software"),
        (verbs(backend="tcp"), CARDS, "software"),
        (verbs(backend="ofi", provider="tcp;ofi_rxm"), CARDS, "software"),
        (verbs("iperf3", backend=None), {}, "software"),
        (verbs("perftest", backend=None), CARDS, "hardware"),
        (verbs(backend="cxi"), {"client": {"device": "cxi0"}}, "simulated"),
    ],
)
def test_an_output_shows_its_worth(flow: Flow, said: dict[str, Any], shown: str) -> None:
    assert worth(flow, said) == shown


def test_a_devices_driver_can_be_soft_and_a_cassini_needs_its_driver() -> None:
    soft = HostFacts(rdma_drivers={"mlx5_0": "rdma_rxe"})
    assert worth(verbs(), CARDS, {"b": soft}) == "software"
    nic = HostFacts(cxi_drivers={"cxi0": "cxi_ss1"})
    said = {"client": {"device": "cxi0"}, "server": {"device": "cxi0"}}
    assert worth(verbs(backend="cxi"), said, {"a": nic, "b": nic}) == "hardware"


def test_the_weakest_word_counts() -> None:
    assert scope.weakest("hardware", "software") == "software"
    assert scope.weakest("imported", "simulated") == "simulated"


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ({"m0": "mlx5_core"}, {"m1": "mlx5_core"}, None),
        ({"m0": "mlx5_core"}, {"m0": "mlx5_core"}, "m1 of b (server)"),
        ({}, {"m1": "mlx5_core"}, "m0 of a (client)"),
    ],
)
def test_hardware_needs_a_drivers_name_on_both_hosts(
    a: dict[str, str], b: dict[str, str], reason: str | None
) -> None:
    hosts = {"a": HostFacts(rdma_drivers=dict(a)), "b": HostFacts(rdma_drivers=dict(b))}
    said = part({"client": {"device": "m0"}, "server": {"device": "m1"}})
    found = scope.proven_hardware(Path(state="proven"), said, "hardware", FLOW, hosts, NO_USES)
    assert found.state == ("proven" if reason is None else "unknown")
    assert found.reason == (
        reason and f"nothing shows that {reason} is hardware: its driver is not in environment.json"
    )


# ---- its link ------------------------------------------------------------------------------------


def test_a_hosts_checks_say_rate_and_pcie_of_its_devices() -> None:
    checks: list[dict[str, Any]] = [
        {"id": "nic-link-speed", "device": "mlx5_0", "value": 200},
        {"id": "nic-pcie-bandwidth", "device": "mlx5_0", "value": 251},
        {"id": "nic-pcie-max-payload", "device": "mlx5_0", "value": 256},
        {"id": "slingshot-link-speed", "device": "cxi0", "found": "BS_200G"},
        {"id": "nic-link-speed", "device": None, "value": 100},
    ]
    found = links.of_host([], None, checks)
    assert found == {
        "mlx5_0": LinkFacts(200, None, 233.73913),
        "cxi0": LinkFacts(200),
    }


def test_queue_pairs_take_as_many_links_of_a_bond_as_are_up() -> None:
    checks: list[dict[str, Any]] = [
        {"id": "nic-link-speed", "device": "m0", "value": 100},
        {"id": "nic-bond-links", "device": "m0", "value": 2},
    ]
    known = links.of_host([], None, checks)
    assert known == {"m0": LinkFacts(100, links=2)}
    one_link = {"m0": LinkFacts(100)}
    for queue_pairs, server, rate in ((1, known, 100), (8, known, 200), (8, one_link, 100)):
        ends = {"client": {"device": "m0"}, "server": {"device": "m0"}}
        rdma = part({**ends, "params": {"queue_pairs": queue_pairs}})
        found = links.of_part(rdma, verbs(), "roce", (known, server), links.Routes(None, None), 100)
        assert (found.rate_gbit_s, found.links) == (rate, 2 if rate == 200 else None)


def test_an_rdma_device_has_its_interfaces_rate_unless_it_has_several_ports() -> None:
    under = {"mlx5_0/1": "eth1", "mlx5_1/1": "eth1", "mlx5_1/2": "eth2"}
    idle = side()
    idle.rdma = {port: counts({}, interface) for port, interface in under.items()}
    interfaces = [
        Interface("eth1", "mlx5_core", 100, 9000),
        Interface("tun0", None, 10, 1500),
        Interface("lo", None, None, 65536),
    ]
    assert links.of_host(interfaces, idle, []) == {
        "eth1": LinkFacts(100, 9000),
        "tun0": LinkFacts(None, 1500),
        "mlx5_0": LinkFacts(100),
        "mlx5_1": LinkFacts(),
    }


def test_a_stream_has_the_link_of_its_route_and_rdma_that_of_its_device() -> None:
    known = {"eth1.100": LinkFacts(25, 1500), "m0": LinkFacts(100, None, 90)}
    routes = links.Routes("eth1.100", "eth1.100")
    sockets = part({"connection": "stream", "client": {"address": "fd00::1"}})
    assert links.of_part(sockets, FLOW, "roce", (known, known), routes, None) == Link(
        25, 1500, "roce", None, None, True, True
    )
    rdma = part({"client": {"device": "m0"}, "server": {"device": "m0"}})
    assert links.of_part(rdma, verbs(), "roce", (known, known), routes, None) == Link(
        100, None, "roce", None, 90
    )
    bought = links.of_part(rdma, verbs(), "roce", (known, known), routes, 400)
    assert (bought.rate_gbit_s, bought.expected_gbit_s) == (100, 400)
    # the rate of a sum is that of all pairs, which only the tool adds up
    rdma.kind = "sum"
    assert links.of_part(rdma, verbs(), "roce", (known, known), routes, None).rate_gbit_s is None


# ---- its clocks ----------------------------------------------------------------------------------


def end(started: str, ended: str, **said: Any) -> End:
    day = "2026-11-21T08:"
    return msgspec.convert({"started": f"{day}{started}Z", "ended": f"{day}{ended}Z", **said}, End)


@pytest.mark.parametrize(
    ("client", "server", "skew"),
    [
        (end("00:01", "00:05"), end("00:01", "00:05"), 0),
        (end("00:01", "00:05"), end("00:03.5", "00:07"), 2.5),
        (end("00:01", "00:05"), end("00:00", "00:04.75"), -0.25),
    ],
)
def test_an_order_told_the_other_way_round_is_the_clocks(
    client: End, server: End, skew: float
) -> None:
    assert ends.skew_s(client, server, []) == skew


def test_an_end_without_times_tells_no_skew() -> None:
    assert ends.skew_s(End(), end("00:01", "00:05"), []) is None
    assert ends.skew_s(None, end("00:01", "00:05"), []) is None


def test_sizes_took_no_longer_than_their_process_lived() -> None:
    parts = [Part(elapsed_s=6), Part(elapsed_s=6), Part(status="not_measured", elapsed_s=9)]
    assert times.too_long(parts, End(elapsed_s=10.5), None) is None
    why = times.too_long(parts, End(elapsed_s=10), None)
    assert why == "its sizes took 12 s, but its process lived 10 s"
    # the second that is granted is no more than the process lived
    assert times.too_long([Part(elapsed_s=0.9)], End(elapsed_s=0.001), None) is not None


def test_a_soak_may_have_begun_in_an_earlier_process() -> None:
    """It goes on after a reboot."""
    part = Part(started="2026-11-21T08:00:01.000Z", elapsed_s=1)
    client = end("00:05", "00:09")
    assert times.not_in_process(FLOW, part, client) is not None
    part.soak = SoakSummary(9, 9, 1, 9, 1, 0, 0, 0, 0, False, True, 0)
    assert times.not_in_process(FLOW, part, client) is None


# ---- its length ----------------------------------------------------------------------------------

VOLUMES = {"rx_bytes": 9, "sent_pkts": 3}


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ("proven", {"TcpRetransSegs": 1, "rxe0/1": {"duplicate_request": 2}}),
        ("exceeded", {"TcpRetransSegs": 1, "eth1": VOLUMES,
                      "rxe0/1": {**VOLUMES, "duplicate_request": 2}, "eth2": {}}),
    ],
)  # fmt: skip
def test_bytes_and_packets_that_a_proven_path_sums_up_are_not_said_twice(
    state: Any, kept: dict[str, Any]
) -> None:
    end = side(
        host={"TcpRetransSegs": 1},
        netdev={"eth1": VOLUMES, "eth2": {"rx_bytes": 0}},
        rdma={"rxe0/1": {**VOLUMES, "duplicate_request": 2}},
    )
    made = recorded.record(
        PLAN, FLOW, Expect(size_bytes=8), Part(), scope="software", link=Link(),
        path=Path(state=state), of_flow=recorded.OfFlow(client=end, server=end),
    )  # fmt: skip
    assert made.counters == Counters(kept, kept)


def test_settings_at_their_usual_value_and_cpu_by_gigabyte_of_a_ping_pong_are_left_out() -> None:
    said = {"params": {"retry": 7, "rnr_retry": 3, "clock": "monotonic", "verify": False},
            "cpu": {"client_s": 1, "client_s_per_gb": 5}}  # fmt: skip
    line = msgspec.json.decode(encode(record(said)))
    assert line["params"] == {"size_bytes": 8, "rnr_retry": 3}
    assert line["cpu"] == {"client_s": 1}
    assert "client_s_per_gb" in encode(record({"kind": "bandwidth", **said})).decode()
