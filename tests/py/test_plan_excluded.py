"""What is not measured is listed, with the reason."""

from __future__ import annotations

from typing import Any

import pytest

from perch.errors import PerchError
from perch.run.plan import said
from tests.py.planned import document, excluded, flows, hosts, planned, suite_test

NOTHING = (
    "every test of the network",
    "nothing of the network is measured: all its tests are excluded",
)


def test_what_a_host_lacks_is_excluded_and_the_others_are_measured() -> None:
    inventory = hosts(3)
    inventory["h2"]["perch_backends"] = ["ofi"]
    plan = planned([suite_test()], inventory)
    assert excluded(plan) == [
        ("t", "h2 has no backend tcp"),
        ("every test", "host h2 is in no flow"),
    ]
    assert [flow["id"] for flow in flows(plan)] == ["t/h0/h1/0/1"]


def test_a_test_that_too_few_hosts_can_take_part_in_is_excluded_whole() -> None:
    plan = planned([suite_test(backend="null")], hosts(2))
    assert plan.rounds == []
    assert excluded(plan)[:3] == [
        ("t", "h0 has no backend null"),
        ("t", "h1 has no backend null"),
        ("t", "two hosts are needed and 0 can take part"),
    ]


def test_shared_memory_is_not_measured_between_machines() -> None:
    plan = planned([suite_test(backend="ofi", provider="shm")], hosts(2))
    assert excluded(plan)[0] == ("t", "h0 shares no memory with another host (provider shm)")
    inventory = hosts(2, perch_fabric="loopback")
    assert planned([suite_test(backend="ofi", provider="shm")], inventory).flows() == 1


def test_perftest_needs_a_named_device_and_to_be_at_hand() -> None:
    test = suite_test(tool="perftest", backend=None, params={"size": 8, "iterations": 1000})
    reason = excluded(planned([test], hosts(2)))[0][1]
    assert reason == "h0 names no RDMA device (perch_devices), and perftest would take any"
    inventory = hosts(2, perch_tools=["perch"], perch_devices=["mlx5_0"])
    assert excluded(planned([test], inventory))[0] == ("t", "h0 has no tool perftest")


def test_a_suite_with_nothing_of_the_network_left_says_so() -> None:
    inventory = hosts(2, perch_backends=["null"])
    tests = [suite_test(name="n", backend="null"), suite_test(name="t")]
    assert NOTHING in excluded(planned(tests, inventory))
    assert NOTHING not in excluded(planned(tests[:1], inventory))


def idle(tests: list[dict[str, Any]]) -> list[tuple[str | None, str]]:
    backends = ["tcp", "verbs", "null"]
    inventory = hosts(2, perch_backends=backends, perch_devices=[f"mlx5_{i}" for i in range(8)])
    return [(one.nic, one.reason) for one in planned(tests, inventory).excluded if one.nic]


def test_nics_that_no_flow_uses_are_listed_with_their_hosts() -> None:
    assert idle([suite_test(backend="verbs")]) == [
        (f"mlx5_{i}", f"no flow uses mlx5_{i} of h0, h1") for i in range(1, 8)
    ]
    six = suite_test(
        name="u", backend="verbs", op="write", kind="transfer", params={"size": 8, "devices": 6}
    )
    assert [nic for nic, _ in idle([suite_test(), six])] == ["mlx5_6", "mlx5_7"]
    assert len(idle([suite_test(backend="null")])) == 8


def test_a_device_that_is_named_twice_is_idle_once_or_not_at_all() -> None:
    inventory = hosts(2, perch_backends=["tcp", "verbs"], perch_devices=["m0", "m0", "m1", "m1"])
    found = planned([suite_test(backend="verbs")], inventory).excluded
    assert [one.reason for one in found if one.nic] == ["no flow uses m1 of h0, h1"]


def test_of_many_hosts_with_an_idle_nic_five_are_named() -> None:
    inventory = hosts(7, perch_devices=["m0", "m1"])
    reasons = [one.reason for one in planned([suite_test()], inventory).excluded]
    assert reasons == ["no flow uses m1 of h0, h1, h2, h3, h4 and 2 more hosts"]


# ---- rails that hosts do not share ---------------------------------------------------------------

PLACES = "common place in perch_devices"
REMEDY = "give its devices the same places"


def by_name(asked: Any, *devices: list[str], **members: Any) -> list[tuple[str, str]]:
    """Of hosts with these devices what test b excludes; test a measures all rails."""
    inventory = hosts(len(devices), perch_backends=["verbs"])
    for host, names in zip(inventory.values(), devices, strict=True):
        host["perch_devices"] = names
    soak = {key: members.pop(key) for key in ("soak", "soak_duration") if key in members}
    tests = [
        suite_test(name="a", backend="verbs", params={"size": 8, "devices": "all"}),
        suite_test(name="b", backend="verbs", params={"size": 8, "devices": asked}, **members),
    ]
    return [one for one in excluded(planned(tests, inventory, **soak)) if one[0].endswith("b")]


THERE, SWAPPED = ["m0", "m1"], ["m1", "m0"]


def test_pairs_that_share_no_rail_are_excluded_by_name() -> None:
    why = f"'m1' has no {PLACES}; {REMEDY}"
    assert by_name("m1", THERE, SWAPPED) == [("b", f"h0 and h1: {why}")]
    assert by_name("m1", THERE, THERE, SWAPPED) == [("b", f"h0, h1 with h2: {why}")]
    assert by_name("m1", THERE, THERE, THERE) == []


def test_pairs_that_share_one_rail_of_several_are_excluded_by_name() -> None:
    three = ["m0", "m1", "n2"], ["n0", "m1", "m2"], ["m0", "n1", "m2"]
    why = f"'m*' has 1 {PLACES}, and rails together needs 2; {REMEDY}"
    pairs = ("h0 and h1", "h0 and h2", "h1 and h2")
    found = by_name("m*", *three, rails="together")
    assert sorted(found) == [("b", f"{pair}: {why}") for pair in pairs]
    few = "fewer than 2 devices match 'm*', and rails together needs 2; see perch_devices"
    found = by_name("m*", THERE, THERE, ["m0", "n1"], rails="together")
    assert found == [("b", f"h2: {few}")]


def test_a_hundred_hosts_in_two_orders_are_one_line() -> None:
    (found,) = by_name("m1", *[THERE, SWAPPED] * 50)
    assert found[0] == "b" and found[1].count("45 more hosts") == 2
    assert found[1].endswith(f": 'm1' has no {PLACES}; {REMEDY}")
    (found,) = by_name("m*", *[["m0", "m1"], ["m0", "m1", "m2"]] * 50)
    assert found[0] == "m2 in b" and found[1].startswith("h1, h3, h5, h7, h9 and 45 more hosts: h0")


# ---- switches and hosts --------------------------------------------------------------------------


def test_a_switch_has_its_ports_to_hosts_that_take_part() -> None:
    switch = {
        **dict.fromkeys(["switch_check_provider"], "nxos"),
        "switch_check_ports": {"h0": "Ethernet1/1", "h1": ["1", 2], "other": 3},
        "host_check_pfc_priorities": [3],
    }
    plan = document(planned([suite_test()], hosts(2), switches={"leaf": switch}))
    assert plan["switches"] == {
        "leaf": {
            "provider": "nxos",
            "scope": "hardware",
            "priorities": [3],
            "ports": {"h0": ["Ethernet1/1"], "h1": ["1", "2"]},
        }
    }
    assert "switches" not in document(planned([suite_test()], hosts(2)))


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"switch_check_provider": "ios"}, 'switch_check_provider is "ios", not nxos, eos'),
        ({}, "switch_check_provider is null"),
        ({"switch_check_provider": "eos", "switch_check_ports": [1]}, "switch_check_ports is"),
        ({"switch_check_provider": "eos", "switch_check_priorities": [8]}, "from 0 to 7"),
    ],
)
def test_a_switch_that_cannot_be_read_is_refused(variables: dict[str, Any], why: str) -> None:
    with pytest.raises(PerchError, match=why) as caught:
        planned([suite_test()], hosts(2), switches={"leaf": variables})
    assert caught.value.place == "switch leaf"


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"perch_address": None}, "perch_address"),
        ({"perch_port": "many"}, "perch_port"),
        ({"perch_iperf_port": "many"}, "perch_iperf_port is 'many', not a port from 1 to 65535"),
        ({"perch_iperf3_port": [1]}, "perch_iperf3_port is '.1.', not a port"),
        ({"perch_iperf3_port": 5.7}, "perch_iperf3_port is '5.7', not a port"),
        ({"perch_iperf3_port": -1}, "perch_iperf3_port is '-1', not a port"),
        ({"perch_port": 99999}, "perch_port is '99999', not a port"),
        ({"perch_iperf3_port": 18600}, "perch and iperf3 have the same port 18600; give each its"),
        ({"perch_address": ""}, "perch_address is '', not an address or a name; give one without"),
        ({"perch_address": "-x; rm"}, "perch_address is '-x; rm', not an address"),
        ({"perch_address": "192.0.2.1/24"}, "; give one without a prefix length"),
        ({"perch_slowdown": -1}, "perch_slowdown: expected whole number >= 1"),
        ({"perch_slowdown": 0.5}, "perch_slowdown: expected number >= 1"),
        ({"perch_link_gbit_s": 0}, "perch_link_gbit_s: expected whole number >= 1"),
        ({"perch_link_gbit_s": -0.5}, "perch_link_gbit_s: expected number > 0"),
        ({"perch_devices": [5]}, "perch_devices"),
    ],
)
def test_a_host_that_cannot_be_planned_is_refused_by_name(
    variables: dict[str, Any], why: str
) -> None:
    inventory = hosts(2)
    inventory["h1"].update(variables)
    with pytest.raises(PerchError, match=why) as caught:
        planned([suite_test()], inventory)
    assert caught.value.place == "host h1"


def test_one_reason_is_printed_once_of_all_its_tests() -> None:
    tests = [suite_test(name=name, backend="verbs") for name in "abcde"]
    line = said(planned(tests, hosts(2, perch_backends=["tcp"])))
    assert "Excluded: a, b, c and 2 more: h0 has no backend verbs; a, b" in line
