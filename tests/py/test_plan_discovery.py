"""Devices that the inventory does not name, but by pattern, PCI address or as all active ones."""

from __future__ import annotations

from typing import Any

import pytest

from perch.errors import ExitCode, PerchError
from perch.plan.discovery import UndiscoveredError, said
from perch.plan.planner import Planned
from perch.plan.rounds import plan_document
from tests.py.discovered import cassini, interface, nic, recorded
from tests.py.planned import excluded, flows, hosts, planned, suite_test

#: Their names do not sort as their buses do; mlx5_2 has the default route, mlx5_3 no link.
OF_A_HOST = [
    nic("mlx5_10", 2),
    nic("mlx5_9", 1),
    nic("mlx5_2", 3, default_route=True),
    nic("mlx5_3", 4, state="down"),
    nic("ib0", 5, layer="infiniband"),
    interface("eth1", "192.0.2.99"),
]


def plan(choice: Any, *found: dict[str, Any], **members: Any) -> Planned:
    """Two alike hosts, or those that were asked."""
    fabric = members.pop("fabric", "roce")
    asked = members.pop("asked", {name: list(found) or OF_A_HOST for name in ("h0", "h1")})
    four = hosts(
        4, perch_backends=["verbs", "cxi"], perch_devices=choice, perch_fabric=fabric,
        perch_link_gbit_s=100,
    )  # fmt: skip
    inventory = {name: one for name, one in four.items() if name in {"h0", "h1", *(asked or ())}}
    test = suite_test(**{"backend": "verbs", "params": {"size": 8, "devices": "all"}} | members)
    more = {} if asked is None else {"devices": recorded(asked)}
    return planned([test], inventory, **more)


def taken(found: Planned) -> list[str]:
    return [device["name"] for device in found.fleet.hosts["h0"].devices]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (["active"], ["mlx5_9", "mlx5_10"]),
        (["mlx5_[91]*"], ["mlx5_9", "mlx5_10"]),
        (["mlx5_10", "active"], ["mlx5_10", "mlx5_9"]),
        (["0000:02:00.0"], ["mlx5_10"]),
        (["0000:02:*", "mlx5_9*"], ["mlx5_10", "mlx5_9"]),
        ([{"name": "mlx5_9"}], ["mlx5_9"]),
    ],
)
def test_choices_are_resolved_in_the_order_of_buses(choice: Any, names: list[str]) -> None:
    assert taken(plan(choice)) == names


@pytest.mark.parametrize("gbit_s", [25, 200, 400])
def test_a_rate_that_no_recorded_device_has_is_refused(gbit_s: int) -> None:
    """Of a bond of two the device has twice what was bought of each link."""
    inventory = hosts(2, perch_devices=["active"], perch_link_gbit_s=gbit_s)
    inventory["h1"]["perch_link_gbit_s"] = 100
    found = recorded(dict.fromkeys(inventory, OF_A_HOST))
    with pytest.raises(PerchError) as error:
        planned([suite_test()], inventory, devices=found)
    assert str(error.value) == (
        f"host h0: perch_link_gbit_s is {gbit_s}, and devices have 100 Gb/s; "
        "correct it, or mend the links"
    )
    inventory["h0"]["perch_link_gbit_s"] = 50
    assert planned([suite_test()], inventory, devices=found).flows()


def test_a_port_that_is_down_at_one_host_would_shift_its_rails() -> None:
    names = ["mlx5_0", "mlx5_1", "mlx5_2"]
    whole = [nic(name, at) for at, name in enumerate(names)]

    def of(down: str) -> list[dict[str, Any]]:
        return [nic(one, n, state="down" if one == down else "up") for n, one in enumerate(names)]

    with pytest.raises(PerchError) as error:
        plan(["active"], asked={"h0": whole, "h1": of("mlx5_1")})
    assert str(error.value) == (
        "host h1: mlx5_1 is down here only, so later rails would shift; "
        "mend it, or leave out: --limit 'all:!h1'"
    )
    # all such hosts at once, and the limit is the way on
    some = {"h0": whole, "h1": whole, "h2": of("mlx5_1"), "h3": of("mlx5_0")}
    with pytest.raises(PerchError) as error:
        plan(["active"], asked=some)
    assert error.value.lines == [
        "host h2: mlx5_1 is down here only, so later rails would shift",
        "host h3: mlx5_0 is down here only, so later rails would shift",
        "mend it, or leave out: --limit 'all:!h2:!h3'",
    ]
    rails = plan(["active"], asked={"h0": whole, "h1": whole})
    assert {flow["rail"] for flow in flows(rails)} == {0, 1, 2}
    # the last one shifts nothing, nor does one that is down everywhere
    assert taken(plan(["active"], asked={"h0": whole, "h1": of("mlx5_2")})) == names
    alike = {name: of("mlx5_1") for name in ("h0", "h1")}
    assert taken(plan(["active"], asked=alike)) == ["mlx5_0", "mlx5_2"]


def test_a_nic_that_fell_off_the_bus_would_shift_its_rails() -> None:
    whole = [nic(f"mlx5_{n}", n) for n in range(4)]
    # the kernel numbers those that are left, so that no name is missing
    left = [nic(f"mlx5_{n}", bus) for n, bus in enumerate((0, 2, 3))]
    last = whole[:3]
    with pytest.raises(PerchError) as error:
        plan(["active"], asked={"h0": whole, "h1": left, "h2": whole, "h3": last})
    assert error.value.lines == [
        "host h1: no NIC at 0000:01:00.0, where 2 of 4 hosts have one",
        "host h3: no NIC at 0000:03:00.0, where 2 of 4 hosts have one",
        "mend it, name its perch_devices if it has fewer on purpose, "
        "or leave out: --limit 'all:!h1:!h3'",
    ]
    with pytest.raises(PerchError, match=r"^host h1: no NIC at 0000:01:00.0, where 1 of 2 "):
        plan(["active"], asked={"h0": whole, "h1": left})
    # another machine has its NICs elsewhere
    other = [nic("mlx5_0", 65), nic("mlx5_1", 66)]
    assert plan(["active"], asked={"h0": whole, "h1": whole, "h2": other}).flows()


def test_a_twin_that_names_its_nics_shows_which_one_fell_off_the_bus() -> None:
    whole, left = [nic("mlx5_0", 0), nic("mlx5_1", 1)], [nic("mlx5_0", 1)]
    inventory = hosts(2, perch_backends=["verbs"], perch_devices=["mlx5_0", "mlx5_1"])
    inventory["h1"]["perch_devices"] = ["active"]
    test = suite_test(backend="verbs", params={"size": 8, "devices": "all"})
    devices = recorded({"h0": whole, "h1": left})
    with pytest.raises(PerchError, match=r"^host h1: no NIC at 0000:00:00.0, where 1 of 2 "):
        planned([test], inventory, devices=devices)
    # who names what is left has said so
    inventory["h1"]["perch_devices"] = ["mlx5_0"]
    assert planned([test], inventory, devices=devices).flows() == 1


@pytest.mark.parametrize("word", ["active", "mlx4_*"])
def test_the_second_port_alone_may_be_on_the_fabric(word: str) -> None:
    """Of a card whose first port is on InfiniBand."""
    card = [nic("mlx4_0", 1, layer="infiniband"), nic("mlx4_0", 1, port=2)]
    found = plan([word], *card)
    assert [one["ib_port"] for one in found.fleet.hosts["h0"].devices] == [2]


def test_a_discovered_device_is_as_an_inventory_would_name_it() -> None:
    found = plan([{"name": "mlx5_9*", "gid_index": 2}, "mlx5_10*"])
    assert found.fleet.hosts["h0"].devices == [
        {"name": "mlx5_9", "netdev": "eth1", "gid_index": 2},
        {"name": "mlx5_10", "netdev": "eth2", "gid_index": 3},
    ]
    argv = flows(found)[1]["client_argv"]
    assert argv[argv.index("--gid-index") + 1] == "3"


def test_ports_of_one_device_are_rails() -> None:
    ports = [nic("mlx4_0", 1, port=2), nic("mlx4_0", 1)]
    found = plan(["mlx4_*"], *ports)
    assert [one["ib_port"] for one in found.fleet.hosts["h0"].devices] == [1, 2]


def test_slingshot_and_infiniband_have_devices_of_their_own() -> None:
    found = plan(
        ["active"], cassini("cxi1", 2), cassini("cxi0", 1), nic("m", 3), fabric="slingshot",
        backend="cxi",
    )  # fmt: skip
    assert found.fleet.hosts["h0"].devices == [
        {"name": "cxi0", "netdev": "hsn1"},
        {"name": "cxi1", "netdev": "hsn2"},
    ]
    assert taken(plan(["active"], *OF_A_HOST, fabric="infiniband")) == ["ib0"]


def test_a_device_with_the_address_under_test_is_no_management_port() -> None:
    found = {
        f"h{i}": [
            nic("m0", 1, default_route=True),
            interface("eth1", f"192.0.2.{i + 1}"),
        ]
        for i in range(2)
    }
    assert taken(plan(["active"], asked=found)) == ["m0"]


def test_each_device_that_is_left_out_is_excluded_by_name() -> None:
    made = plan(["mlx5_9*"])
    left = {"mlx5_10": "not in perch_devices", "mlx5_3": "its state is down"}
    assert plan_document(made, b"").hosts["h1"].left == left
    found = excluded(made)
    assert ("every test", "no flow uses mlx5_10 of h0, h1: not in perch_devices") in found
    management = "no flow uses mlx5_2 of h0, h1: a management port (default route)"
    assert ("every test", management) in found
    assert ("every test", "no flow uses mlx5_3 of h0, h1: its state is down") in found
    assert not any("ib0" in why for _, why in found)


@pytest.mark.parametrize("asked", [{"h0": OF_A_HOST, "h1": OF_A_HOST}, None])
def test_a_host_that_says_not_which_nics_are_under_test_is_refused(asked: Any) -> None:
    with pytest.raises(PerchError) as refused:
        plan([], asked=asked)
    assert refused.value.code == ExitCode.USAGE
    assert str(refused.value) == (
        "host h0, h1: perch_devices is missing, and verbs needs it; "
        "name the NICs under test, or give [active]"
    )


def test_without_rdma_among_its_backends_a_host_need_name_none() -> None:
    """Its NICs are named as not measured."""
    said = {"schema": "perch.devices/1", "recorded": "2026-01-01T00:00:00Z"}
    found = planned([suite_test()], hosts(2), devices=said | {"hosts": {"h0": OF_A_HOST}})
    assert ("every test", "no flow uses mlx5_9 of h0: not in perch_devices") in excluded(found)


@pytest.mark.parametrize(
    ("choice", "found", "why"),
    [
        (
            ["bnxt*"],
            OF_A_HOST[:2],
            "host h0: perch_devices has 'bnxt*', which matches no device of its roce fabric; "
            "it has mlx5_9 (0000:01:00.0), mlx5_10 (0000:02:00.0)",
        ),
        (
            ["mlx5_*"],
            OF_A_HOST,
            "host h0: perch_devices has 'mlx5_*', which matches mlx5_2: a management port, as eth3 "
            "has the default route; name the others, or give active instead",
        ),
        (
            ["active"],
            OF_A_HOST[2:],
            "host h0: it has no active device on roce: mlx5_2 (a management port (default route)), "
            "mlx5_3 (its state is down); see 'perch devices' there, or name the devices "
            "(perch_devices)",
        ),
        (
            ["bnxt*"],
            [nic(f"m{i}", i) for i in range(5)],
            "host h0: perch_devices has 'bnxt*', which matches no device of its roce fabric; "
            "it has m0 (0000:00:00.0), m1 (0000:01:00.0), m2 (0000:02:00.0) and 2 more",
        ),
        (
            ["active"],
            [nic(f"m{i}", i) for i in range(17)],
            "host h0: perch_devices takes 17 devices, and a host has 16 at most; choose fewer",
        ),
    ],
)
def test_a_choice_that_cannot_be_is_refused(choice: Any, found: Any, why: str) -> None:
    with pytest.raises(PerchError) as refused:
        plan(choice, *found)
    assert str(refused.value) == why


@pytest.mark.parametrize("word", ["mlx5_9", "mlx5_9*", "0000:01:00.0"])
def test_a_gid_that_its_device_lacks_is_refused(word: str) -> None:
    with pytest.raises(PerchError) as refused:
        plan([{"name": word, "gid_index": 77}])
    assert str(refused.value) == (
        "host h0: perch_devices has mlx5_9 with gid_index 77, and its GIDs are 2, 3; "
        "see 'perch devices' there"
    )
    assert plan([{"name": word, "gid_index": "3"}]).flows()


HAS = "; it has mlx5_9 (0000:01:00.0), mlx5_10 (0000:02:00.0)"
ROUTE = "a management port, as eth3 has the default route; name the others, or give active instead"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        *[
            (name, f"'{name}', which matches no device of its roce fabric{HAS}{near}")
            for name, near in (
                ("mlx5_77", ", did you mean 'mlx5_9'?"),
                ("Active", ", did you mean 'active'?"),
                ("all", ""),
                ("02:00.0", ", did you mean '0000:02:00.0'?"),
                ("eth1", ""),
                ("ib0", ""),
            )
        ],
        ("mlx5_2", f"'mlx5_2', which matches mlx5_2: {ROUTE}"),
        *[
            (
                word,
                f"'{word}', which matches mlx5_3: its state is down; "
                "bring it up, name the others, or give active instead",
            )
            for word in ("mlx5_3", "mlx5_3*")
        ],
    ],
)
def test_a_name_is_checked_as_a_pattern_is(name: str, why: str) -> None:
    found = OF_A_HOST if "matches mlx5" in why else [*OF_A_HOST[:2], *OF_A_HOST[4:]]
    with pytest.raises(PerchError) as refused:
        plan([name], *found)
    assert str(refused.value) == f"host h0: perch_devices has {why}"


def test_a_named_port_is_one_of_the_device() -> None:
    ports = [nic("mlx4_0", 1, port=2), nic("mlx4_0", 1)]
    assert len(taken(plan([{"name": "mlx4_0", "ib_port": 2}, "mlx4_0"], *ports))) == 2
    with pytest.raises(PerchError, match="'mlx4_0/3', which matches no device"):
        plan([{"name": "mlx4_0", "ib_port": 3}], *ports)


def test_a_named_device_may_have_the_default_route_and_the_address_under_test() -> None:
    for address, found in (("node1", "198.51.100.3"), ("2001:DB8:0::3", "2001:db8::3")):
        inventory = hosts(
            2, perch_backends=["verbs"], perch_devices=["mlx5_2"], perch_address=address
        )
        card = nic("mlx5_2", 3, default_route=True, address=found)
        asked = {name: [card] for name in inventory}
        assert taken(planned([suite_test()], inventory, devices=recorded(asked))) == ["mlx5_2"]


def test_names_of_a_fabric_without_rdma_devices_are_the_sites_own() -> None:
    given = [{"name": "nic0", "netdev": "eth1"}]
    inventory = hosts(2, perch_fabric="ethernet", perch_devices=given)
    asked = recorded({name: [interface("eth1", "192.0.2.1")] for name in inventory})
    assert taken(planned([suite_test()], inventory, devices=asked)) == ["nic0"]


def test_a_choice_needs_a_host_that_was_asked() -> None:
    with pytest.raises(UndiscoveredError, match="give plan_devices"):
        plan(["mlx5_*"], asked=None)
    for asked, silent, limit in (({"h0": OF_A_HOST}, "h1", "!h1"), ({}, "h0, h1", "!h0:!h1")):
        with pytest.raises(UndiscoveredError) as refused:
            plan(["active"], asked=asked)
        assert str(refused.value) == (
            f"host {silent}: 'perch devices' gave no answer, and perch_devices names no devices; "
            f"run it there, or name them, or leave out: --limit 'all:{limit}'"
        )
    assert taken(plan(["mlx5_0"], asked=None)) == ["mlx5_0"]


def test_a_plan_says_where_its_devices_are_from() -> None:
    for asked, file, words in (
        (None, "", "Devices: as the inventory names them; no host was asked."),
        ({}, "", "Devices: as the hosts answered; of h0, h1 as the inventory names them."),
        (
            {"h0": [nic("mlx5_0")], "h1": [nic("mlx5_0")]},
            "old.json",
            "Devices: of old.json, recorded 2026-01-01T00:00:00Z.",
        ),
    ):
        found = plan(["mlx5_0"], asked=asked)
        assert said(found.fleet.hosts, found.inputs.devices, file) == words
    found = planned([suite_test()], hosts(2))
    assert said(found.fleet.hosts, None, "") == ""


# ---- CPUs and NUMA nodes -------------------------------------------------------------------------

MACHINES = {
    "h0": {"cpu_online": "0-15", "node_online": "0-1", "node_has_memory": "0"},
    "h1": {"cpu_online": "0-7"},
}


def placed(**params: Any) -> Planned:
    said = {"schema": "perch.devices/1", "recorded": "2026-01-01T00:00:00Z", "hosts": {}}
    tests = [suite_test(params={"size": 8, **params})]
    return planned(tests, hosts(2), devices=said | {"machines": MACHINES})


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({"cpu": "14-16"}, "test t, host h0: cpu is 14-16, and the host has CPUs 0-15"),
        ({"server_cpu": 8}, "test t, host h1: server_cpu is 8, and the host has CPUs 0-7"),
        ({"numa": 2}, "test t, host h0: numa is 2, and the host has NUMA nodes 0-1"),
        ({"numa": 1}, "test t, host h0: numa is 1, a NUMA node without memory"),
        ({"server_numa": 0}, "test t, host h1: server_numa is 0, and the host has no NUMA nodes"),
    ],
)
def test_a_place_that_a_host_lacks_is_refused_by_name(params: Any, why: str) -> None:
    with pytest.raises(PerchError) as error:
        placed(**params)
    assert why in str(error.value)
    assert error.value.remedy


def test_each_end_is_asked_for_its_own_places_only() -> None:
    assert placed(cpu="8-15", numa=0, server_cpu="0-7").flows() == 1
    assert placed(cpu="off", numa="auto", server_cpu="auto").flows() == 1


def test_rails_together_need_a_cpu_each() -> None:
    inventory = hosts(
        2, perch_backends=["verbs"], perch_devices=[{"name": f"m{i}"} for i in range(2)]
    )

    def together(**params: Any) -> Planned:
        test = {"backend": "verbs", "kind": "bandwidth", "rails": "together"}
        params |= {"size": 8, "devices": "all"}
        return planned([suite_test(**test, params=params)], inventory)

    for key in ("cpu", "server_cpu"):
        with pytest.raises(PerchError) as error:
            together(**{key: "2"})
        assert str(error.value) == (
            f"test t: {key} is 2, and 2 rails together need a CPU each; "
            f"name 2 CPUs, or leave {key} out"
        )
        with pytest.raises(PerchError, match="need a CPU each"):
            together(**{key: "2,2"})
        assert together(**{key: "2,4"}).flows() == 2
        assert together(**{key: "off"}).flows() == 2


@pytest.mark.parametrize("key", ["cpu", "server_cpu", "numa", "server_numa"])
@pytest.mark.parametrize("named", ["x", "7-0", "0-99999999999", "1,,2", "-1"])
def test_what_is_no_list_of_cpus_is_refused_of_every_tool(key: str, named: str) -> None:
    perftest = suite_test(tool="perftest", backend=None, params={"size": 8, key: named})
    with pytest.raises(PerchError) as error:
        planned([perftest], hosts(2))
    assert str(error.value) == (
        f"test t: {key} is {named}; write auto, off or numbers such as 0-3,8"
    )
