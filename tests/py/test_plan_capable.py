"""Tests of what a device cannot do are excluded by name, and the rest of the suite is planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from perch.plan.planner import Planned
from tests.py.discovered import DRIVERS, nic, recorded
from tests.py.planned import excluded, flows, hosts, planned, suite_test

RDMA = Path(__file__).parents[2] / "playbooks/suites/rdma.yml"

NO_UC = {"verbs-uc-write-latency"}
NO_UD = {"verbs-ud-send-latency"}
NO_ATOMICS = {"verbs-fetch-add-latency", "perftest-fetch-add-latency"}

#: What the suite rdma leaves out, by driver; none where a card can do all of it.
LEFT_OUT = {
    "bnxt_re": NO_UC,
    "bnxt_re without AtomicOps": NO_UC | NO_ATOMICS,
    "irdma": NO_UC | NO_ATOMICS,
    "ionic": NO_UC | NO_ATOMICS,
    "hns_roce": NO_UC,
    "erdma": NO_UC | NO_UD | NO_ATOMICS,
    "mana_ib": NO_UC | NO_ATOMICS,
    "qedr": NO_UC,
}


def plan(tests: list[dict[str, Any]], *found: dict[str, Any], **variables: Any) -> Planned:
    inventory = hosts(2, perch_backends=["verbs", "tcp"], perch_devices=["active"], **variables)
    devices = recorded({name: list(found) for name in inventory})
    return planned(tests, inventory, devices=devices)


@pytest.mark.parametrize("driver", DRIVERS)
def test_the_suite_rdma_leaves_out_what_a_card_cannot_do_and_no_more(driver: str) -> None:
    suite = yaml.safe_load(RDMA.read_text())["tests"]
    found = plan(suite, nic("d0", 1, driver), nic("d1", 2, driver))
    left_out = LEFT_OUT.get(driver, set())
    assert {name for name, _ in excluded(found)} == left_out
    assert {flow["test"] for flow in flows(found)} == {one["name"] for one in suite} - left_out


@pytest.mark.parametrize(
    ("params", "driver", "lacks"),
    [
        ({"connection": "uc", "op": "write"}, "bnxt_re", "UC queue pairs"),
        ({"connection": "ud"}, "erdma", "UD queue pairs"),
        ({"op": "compare-swap"}, "irdma", "atomics"),
        ({"srq": True}, "ionic", "shared receive queues"),
        ({"inline": 97}, "bnxt_re", "inline sends of 97 B"),
        ({"memory": "cuda:1"}, "rdma_rxe", "dmabufs of GPU memory"),
        ({"rx_memory": "rocm"}, "rdma_rxe", "dmabufs of GPU memory"),
        ({"memory": "cuda:near"}, "rdma_rxe", "dmabufs of GPU memory"),
    ],
)
def test_what_is_lacking_is_said_of_each_host_with_its_device(
    params: dict[str, Any], driver: str, lacks: str
) -> None:
    op = params.pop("op", "send")
    asked = suite_test(backend="verbs", op=op, params={"size": 8, **params})
    found = plan([asked], nic("d0", 1, driver))
    for host in ("h0", "h1"):
        assert ("t", f"{host} has d0 without {lacks}") in excluded(found)
    assert flows(plan([asked], nic("d0", 1, "mlx5_core")))


@pytest.mark.parametrize(
    ("params", "more"),
    [
        ({"inline": 96}, {}),
        ({"inline": 0}, {}),
        ({"memory": "cuda", "bounce": True}, {}),
        ({"memory": "huge:2M"}, {}),
        ({"connection": "uc"}, {"capabilities": None}),
    ],
)
def test_what_a_device_can_do_or_nobody_knows_is_planned(
    params: dict[str, Any], more: dict[str, Any]
) -> None:
    device = nic("d0", 1, "bnxt_re")
    device["capabilities"]["dmabuf"] = False
    test = suite_test(backend="verbs", params={"size": 8, **params})
    assert flows(plan([test], {**device, **more}))


def test_minutes_have_what_a_flow_waits_for_counters_that_lag() -> None:
    """A Thor's card writes them to the host once a second; one such host is enough."""
    test = suite_test(backend="verbs")
    soon, late = nic("d0", 1), {**nic("d0", 1, "bnxt_re"), "driver": "bnxt_en"}
    times = [flows(plan([test], one))[0]["estimate_s"] for one in (soon, late)]
    assert times[1] - times[0] == pytest.approx(1.1)
    inventory = hosts(2, perch_backends=["verbs"], perch_devices=["active"])
    mixed = planned([test], inventory, devices=recorded({"h0": [soon], "h1": [late]}))
    assert flows(mixed)[0]["estimate_s"] == times[1]


def test_peer_memory_does_for_a_dmabuf() -> None:
    device = nic("d0", 1, "rdma_rxe")
    device["capabilities"]["peer_memory"] = True
    assert flows(plan([suite_test(backend="verbs", params={"size": 8, "memory": "cuda"})], device))


def test_only_the_rails_of_a_test_count() -> None:
    devices = [nic("d0", 1), nic("d1", 2, "bnxt_re")]
    for rails, lacks in ((1, False), (["d1"], True), (None, False)):
        params = {"size": 8, "connection": "uc"} | ({"devices": rails} if rails else {})
        found = plan([suite_test(backend="verbs", params=params)], *devices)
        assert (("t", "h0 has d1 without UC queue pairs") in excluded(found)) == lacks


UC = {"size": 8, "connection": "uc", "devices": "all"}


def of_hosts(*lacking: set[int], **test: Any) -> tuple[list[tuple[Any, ...]], list[Any]]:
    """Flows, and what is excluded, of hosts with three devices; of each the places without UC."""
    inventory = hosts(len(lacking), perch_backends=["verbs"], perch_devices=["active"])
    found = recorded(
        {
            name: [nic(f"d{at}", at, "bnxt_re" if at in bad else "mlx5_core") for at in range(3)]
            for name, bad in zip(inventory, lacking, strict=True)
        }
    )
    made = planned([suite_test(backend="verbs", params=UC, **test)], inventory, devices=found)
    ways = sorted((one["client"], one["server"], one["rail"]) for one in flows(made))
    return ways, [one for one in excluded(made) if one[0] != "every test"]


def test_a_device_that_cannot_is_left_out_and_the_other_rails_of_its_host_are_measured() -> None:
    ways, left_out = of_hosts({1}, set())
    assert ways == [("h0", "h1", 0), ("h0", "h1", 2)]
    assert left_out == [
        ("d1 in t", "h0: it lacks UC queue pairs"),
        ("d1 in t", "h1: its partner lacks what the test needs"),
    ]
    # of three, the other two still measure the rail
    ways, left_out = of_hosts({1}, set(), set())
    assert {way for way in ways if way[2] == 1} == {("h1", "h2", 1)}
    assert {way[:2] for way in ways if way[2] == 0} == {way[:2] for way in ways if way[2] == 2}
    assert left_out == [("d1 in t", "h0: it lacks UC queue pairs")]


def test_hosts_whose_devices_leave_no_rail_or_one_of_two_say_so() -> None:
    ways, left_out = of_hosts({0, 1}, {2})
    assert ways == []
    assert ("t", "h0 and h1: no rail is left, as devices lack what the test needs") in left_out
    ways, left_out = of_hosts({0, 1}, set(), rails="together")
    assert ways == []
    assert ("t", "h0 and h1: 1 rail is left, as devices lack what the test needs") in left_out
    ways, left_out = of_hosts({0, 1, 2}, set())
    assert ("t", "h0 has d0, d1, d2 without UC queue pairs") in left_out


def test_tcp_does_not_ask_the_cards() -> None:
    test = suite_test(backend="tcp", params={"size": 8})
    device = nic("d0", 1)
    device["capabilities"]["rc"] = False
    assert flows(plan([test], device))
