"""Transfers: devices of both ends, the records that a flow owes, hosts that do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from perch.plan.planner import Planned
from tests.py.planned import excluded, flows, hosts, planned, suite_test

HOSTS: dict[str, dict[str, Any]] = {
    "a": {
        "perch_address": "192.0.2.1",
        "perch_devices": [{"name": f"m{i}", "netdev": f"e{i}", "gid_index": 3} for i in range(3)],
    },
    "b": {
        "perch_address": "192.0.2.2",
        "perch_devices": [{"name": f"n{i}", "netdev": f"f{i}"} for i in range(2)],
    },
}


def plan(
    params: dict[str, Any], devices: dict[str, list[Any]] | None = None, **members: Any
) -> Planned:
    """A transfer between hosts with three and two devices, or those in `devices`."""
    inventory = {
        name: {
            **own,
            "perch_fabric": "roce",
            "perch_link_gbit_s": 100,
            "perch_backends": ["verbs", "ofi", "cxi", "tcp"],
        }
        for name, own in HOSTS.items()
    }
    for name, given in (devices or {}).items():
        inventory[name]["perch_devices"] = given
    test = {"backend": "verbs", "op": "write", "kind": "transfer", **members}
    return planned([suite_test(**test, params={"size": 8, **params})], inventory)


def command(planned: Planned) -> str:
    return " ".join(flows(planned)[0]["client_argv"])


def test_a_flow_owes_a_record_for_each_pair_of_devices_and_one_for_their_sum() -> None:
    owed = flows(plan({"size": "8:16", "batch": "1:4", "devices": 2}))[0]["expect"]
    assert len(owed) == 18
    assert owed[:4] == [
        {"kind": "transfer", "size_bytes": 8, "batch": 1, "pair": 0},
        {"kind": "transfer", "size_bytes": 8, "batch": 1, "pair": 1},
        {"kind": "sum", "size_bytes": 8, "batch": 1},
        {"kind": "transfer", "size_bytes": 8, "batch": 2, "pair": 0},
    ]
    assert owed[-1] == {"kind": "sum", "size_bytes": 16, "batch": 4}


def test_batches_double() -> None:
    owed = flows(plan({"size": 1024, "batch": "3:100"}))[0]["expect"]
    assert [one["batch"] for one in owed if one["kind"] == "sum"] == [3, 6, 12, 24, 48, 96]


def test_the_command_names_the_first_devices_of_each_host() -> None:
    params = {"size": "1K:64K", "batch": 128, "devices": 2, "session": True, "consecutive": False}
    assert command(plan({**params, "duration": "1s"})) == (
        "perch transfer 192.0.2.2 --backend verbs --op write --size 1K:64K --batch 128 "
        "--duration 1s --devices m0::3,m1::3 --server-devices n0,n1 --bind 192.0.2.1 --json"
    )
    params = {"size": "1M", "batch": 4, "session": False, "consecutive": True}
    assert command(plan(params, op="read")) == (
        "perch transfer 192.0.2.2 --backend verbs --op read --size 1M --batch 4 --consecutive "
        "--no-session --device m0 --gid-index 3 --server-device n0 --bind 192.0.2.1 --json"
    )


def test_libfabric_knows_a_card_by_what_its_provider_drives() -> None:
    found = command(plan({"devices": 2}, backend="ofi", provider="tcp;ofi_rxm"))
    assert "--devices e0,e1 --server-devices f0,f1 --bind" in found
    found = command(plan({"devices": 1}, backend="ofi", provider="tcp;ofi_rxm"))
    assert "--device e0 --server-device f0 --bind" in found
    found = command(plan({"devices": 2}, backend="ofi", provider="verbs;ofi_rxm"))
    assert "--devices m0,m1 --server-devices n0,n1 --bind" in found
    assert "device" not in command(plan({}, backend="tcp"))


#: A node with two Cassini NICs, whose service and VNI the inventory names.
NIDS = {
    name: [{"name": f"cxi{i}", "netdev": f"hsn{i}", "svc_id": service, "vni": 10} for i in range(2)]
    for name, service in (("a", 5), ("b", 6))
}


def test_over_cxi_each_end_names_its_nic_service_and_vni() -> None:
    services = "--svc-id 5 --server-svc-id 6 --vni 10 --bind 192.0.2.1 --json"
    found = plan({}, NIDS, backend="cxi")
    assert command(found).endswith(f"--device cxi0 --server-device cxi0 {services}")
    assert flows(found)[0]["scope"] == "hardware"
    assert command(plan({"devices": 1}, NIDS, backend="cxi")) == command(found)
    found = plan({"devices": "all"}, NIDS, backend="cxi", op="read")
    assert command(found).endswith(f"--devices cxi0,cxi1 --server-devices cxi0,cxi1 {services}")
    assert len(flows(found)[0]["expect"]) == 3
    own = {"svc_id": 1, "server_svc_id": 2, "vni": 11}
    assert command(plan(own, NIDS, backend="cxi")).endswith(
        "--size 8 --svc-id 1 --server-svc-id 2 --vni 11 --device cxi0 --server-device cxi0 "
        "--bind 192.0.2.1 --json"
    )
    # what the inventory does not name libfabric's provider chooses
    assert command(plan({}, backend="cxi")).endswith(
        "--device m0 --server-device n0 --bind 192.0.2.1 --json"
    )


def test_all_devices_are_as_many_as_both_hosts_name() -> None:
    found = plan({"devices": "all"})
    assert "--devices m0::3,m1::3 --server-devices n0,n1 " in command(found)
    assert excluded(found) == [
        ("m2 in t", "a: b has no partner at its place in perch_devices; add one there"),
        ("every test", "no flow uses m2 of a"),
    ]


def test_one_software_device_among_those_in_use_makes_all_of_it_software() -> None:
    soft = {"b": ["n0", "rxe1"]}
    assert flows(plan({"devices": "all"}))[0]["scope"] == "hardware"
    assert flows(plan({"devices": "all"}, soft))[0]["scope"] == "software"
    assert flows(plan({}, soft))[0]["scope"] == "hardware"


@pytest.mark.parametrize(
    ("reason", "params", "devices"),
    [
        ("b names 2 of the 3 devices that the test takes (perch_devices)", {"devices": 3}, {}),
        ("b names a device twice (perch_devices)", {"devices": 2}, {"b": ["n0", "n0"]}),
        ("a has no device n1*; perch_devices has m0, m1, m2", {"devices": ["?0", "n1*"]}, {}),
        (
            "a has m0, m2 not in a row (perch_devices), and one transfer takes a row of devices",
            {"devices": ["?0", "?2"]},
            {"b": ["n0", "n1", "n2"]},
        ),
        (
            "a and b: the test's devices have other places in perch_devices of the other host",
            {"devices": "?1"},
            {"b": ["n1", "n0"]},
        ),
        (
            "a and b: 4 threads are neither a multiple nor a divisor of 3 device pairs",
            {"devices": "all", "threads": 4},
            {"b": ["n0", "n1", "n2"]},
        ),
        (
            "a and b: cross_rail 2 needs more than 2 devices, and there are 2",
            {"devices": "all", "cross_rail": 2},
            {},
        ),
    ],
)
def test_hosts_whose_devices_do_not_fit_are_left_out_in_words(
    reason: str, params: dict[str, Any], devices: dict[str, list[Any]]
) -> None:
    found = plan(params, devices)
    assert found.rounds == []
    assert excluded(found)[0] == ("t", reason)


def test_a_thread_waits_by_events_for_all_of_its_devices() -> None:
    found = plan({"devices": "all", "threads": 1, "completion": "event"}, {})
    assert [name for name, _ in excluded(found) if name == "t"] == []
    assert found.rounds != []


def test_a_transfer_over_cxi_has_one_service_a_host() -> None:
    devices = {"b": [{"name": "cxi0", "svc_id": 1}, {"name": "cxi1", "svc_id": 2}]}
    found = plan({"devices": 2}, devices, backend="cxi")
    assert excluded(found)[0] == (
        "t",
        "a and b: devices of a host differ in svc_id: 1, 2; a transfer takes one for all",
    )
    # a service that the test names is every device's
    assert excluded(plan({"devices": 2, "server_svc_id": 1}, devices, backend="cxi"))[0][0] != "t"


def test_a_device_whose_interface_is_not_known_is_left_out() -> None:
    devices = {"b": [{"name": "n0", "netdev": "f0"}, {"name": "n1"}]}
    found = plan({"devices": 2}, devices, backend="ofi", provider="tcp")
    why = "b does not say which interface is over n1 (netdev in perch_devices)"
    assert excluded(found)[0] == ("t", why)


def test_each_device_has_a_port_and_a_gid_index_of_its_own() -> None:
    devices: dict[str, list[Any]] = {
        "a": [{"name": "m0", "gid_index": 1}, {"name": "m1", "ib_port": 2, "gid_index": 3}],
        "b": [{"name": "n0", "ib_port": 1}, {"name": "n1"}],
    }
    found = command(plan({"devices": "all"}, devices))
    assert "--devices m0::1,m1:2:3 --server-devices n0:1,n1 --bind" in found


def test_a_transfer_takes_names_or_a_pattern() -> None:
    sixteen = {"a": [f"m{i}" for i in range(16)], "b": [f"n{i}" for i in range(16)]}
    for chosen, pairs, rail in (
        ("all", 16, 0),
        (["?4", "?5"], 2, 4),
        ("?[23]", 2, 2),
        ("?7", 1, 7),
    ):
        (flow,) = flows(plan({"devices": chosen}, sixteen))
        assert flow["id"] == f"t/a/b/{rail}/1"
        one = flow["client_argv"]
        ours = one[one.index("--devices" if pairs > 1 else "--device") + 1]
        assert ours == ",".join(f"m{i}" for i in range(rail, rail + pairs))
        assert len(flow["expect"]) == pairs + 1


def test_one_device_is_the_engines_choice_where_none_is_named() -> None:
    params = {"size": 8, "devices": 1}
    test = suite_test(backend="ofi", provider="tcp", op="write", kind="transfer", params=params)
    assert command(planned([test], hosts(2))) == (
        "perch transfer 192.0.2.2 --backend ofi --provider tcp --op write --size 8 "
        "--bind 192.0.2.1 --json"
    )


@pytest.mark.parametrize(
    ("params", "members", "why"),
    [
        ({}, {"backend": "null"}, "plans know no transfers over backend null"),
        ({}, {"op": "send"}, "a transfer is a write or a read, not op send"),
        ({"devices": 1}, {"backend": "ofi", "provider": "shm"}, "provider shm has no devices"),
        ({"devices": 17}, {}, "devices is all, a number from 1 to 16, names of devices, or"),
        ({"devices": []}, {}, "devices is all, a number from 1 to 16, names of devices, or"),
        ({"batch": "4:2"}, {}, 'batch "4:2": write N or MIN:MAX'),
        ({"batch": "1K"}, {}, 'batch "1K": write N or MIN:MAX'),
    ],
)
def test_what_plans_do_not_know_is_refused(
    params: dict[str, Any], members: dict[str, Any], why: str
) -> None:
    with pytest.raises(Exception, match=why):
        plan(params, **members)


def test_a_longer_sweep_a_larger_batch_and_more_batches_have_later_deadlines() -> None:
    sweeps: list[dict[str, Any]] = [
        {"size": "64K"},
        {"size": "32K:64K"},
        {"size": "32K:64K", "batch": 1024},
        {"size": "32K:64K", "batch": "1:32768"},
        {"size": "32K:64K", "batch": "1:32768", "iterations": 1000},
    ]
    found = [flows(plan(params))[0] for params in sweeps]
    deadlines = [flow["deadline_s"] for flow in found]
    assert deadlines == sorted(set(deadlines))
    assert all(flow["deadline_s"] >= 30 + flow["estimate_s"] for flow in found)


def test_a_transfer_by_time_takes_its_time() -> None:
    estimate = flows(plan({"size": 64, "batch": 1024, "duration": "7s"}))[0]["estimate_s"]
    assert 7 < estimate < 9
