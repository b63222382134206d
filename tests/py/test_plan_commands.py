"""The commands of tests, the records that they owe and the time that they take."""

from __future__ import annotations

from typing import Any

import pytest

from tests.py.planned import document, flows, hosts, planned, suite_test

RDMA: dict[str, dict[str, Any]] = {
    "a": {
        "perch_address": "192.0.2.1",
        "perch_devices": [{"name": "mlx5_0", "ib_port": 2, "gid_index": 3}],
    },
    "b": {
        "perch_address": "192.0.2.2",
        "perch_devices": [{"name": "mlx5_1", "gid_index": 1}],
        "perch_perftest_port": 19101,
    },
}


def rdma(**variables: Any) -> dict[str, dict[str, Any]]:
    """Two hosts with an RDMA device, the second of another name and GID index."""
    both = {
        "perch_fabric": "roce",
        "perch_link_gbit_s": 100,
        "perch_backends": ["verbs"],
        **variables,
    }
    return {name: {**own, **both} for name, own in RDMA.items()}


def slingshot(**variables: Any) -> dict[str, dict[str, Any]]:
    both = {
        "perch_fabric": "slingshot",
        "perch_link_gbit_s": 200,
        "perch_switch": "x1",
        "perch_backends": ["cxi"],
        "perch_tools": ["perch", "cxi"],
        "perch_devices": [{"name": "cxi0", "svc_id": 1, "vni": 10}],
        **variables,
    }
    return {f"n{i}": {"perch_address": f"192.0.2.{i}", **both} for i in (1, 2)}


def flow(test: dict[str, Any], inventory: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return flows(planned([test], inventory))[0]


def client(test: dict[str, Any], inventory: dict[str, dict[str, Any]]) -> str:
    return " ".join(flow(test, inventory)["client_argv"])


def sizes(found: dict[str, Any]) -> list[int]:
    return [expect["size_bytes"] for expect in found["expect"]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("8:64", [8, 16, 32, 64]),
        ("1K", [1024]),
        (8, [8]),
        ("1:3M:1M", [1, 1048577, 2097153]),
        ("6:50", [6, 12, 24, 48]),
    ],
)
def test_a_flow_owes_a_record_for_each_size(given: Any, expected: list[int]) -> None:
    assert sizes(flow(suite_test(params={"size": given}), hosts(2))) == expected


def test_the_engine_is_given_the_parameters_and_both_addresses_but_no_port() -> None:
    params = {"size": "64K", "duration": "1s", "completion": "event", "verify": True}
    test = suite_test(
        backend="ofi",
        provider="tcp;ofi_rxm",
        op="write",
        kind="bandwidth",
        params={**params, "bidirectional": False},
    )
    found = flow(test, hosts(2))
    assert " ".join(found["client_argv"]) == (
        "perch bw 192.0.2.2 --backend ofi --provider tcp;ofi_rxm --op write --size 64K "
        "--duration 1s --completion event --verify --bind 192.0.2.1 --json"
    )
    assert (found["server_argv"], found["ready"]) == ([], None)


@pytest.mark.parametrize(("asked", "word"), [(True, "on"), (False, "off"), (None, None)])
def test_relaxed_ordering_is_given_as_a_word(asked: bool | None, word: str | None) -> None:
    params = {"size": "64K", "relaxed_ordering": asked}
    argv = flow(suite_test(kind="bandwidth", params=params), hosts(2))
    words = argv["client_argv"]
    assert ("--relaxed-ordering" in words) is (word is not None)
    assert word is None or words[words.index("--relaxed-ordering") + 1] == word


def test_the_engine_is_told_where_each_end_works() -> None:
    params = {"size": 8, "cpu": 3, "server_cpu": "4-7,9", "numa": "off", "server_numa": 1}
    assert client(suite_test(params=params), hosts(2)) == (
        "perch lat 192.0.2.2 --backend tcp --op send --size 8 --cpu 3 --server-cpu 4-7,9 "
        "--numa off --server-numa 1 --bind 192.0.2.1 --json"
    )


def test_verbs_has_the_device_port_and_gid_index_of_each_end() -> None:
    params = {"size": "64K", "connection": "uc", "queue_pairs": 4, "rdma_cm": False}
    test = suite_test(backend="verbs", op="write", kind="bandwidth", params=params)
    assert client(test, rdma()) == (
        "perch bw 192.0.2.2 --backend verbs --op write --size 64K --connection uc --queue-pairs 4 "
        "--device mlx5_0 --ib-port 2 --gid-index 3 --server-device mlx5_1 --server-gid-index 1 "
        "--bind 192.0.2.1 --json"
    )


def test_verbs_has_the_partition_that_the_test_names() -> None:
    test = suite_test(backend="verbs", params={"size": 8, "pkey": 0x8001})
    assert " --pkey 32769 " in client(test, rdma())


def test_cxi_has_the_device_service_and_vni_of_each_end_where_the_test_names_none() -> None:
    params = {"size": 8, "no_idc": True, "fabric_class": "low-latency", "vni": 20}
    test = suite_test(backend="cxi", op="write", params=params)
    assert client(test, slingshot()) == (
        "perch lat 192.0.2.2 --backend cxi --op write --size 8 --no-idc --traffic-class "
        "low-latency --vni 20 --device cxi0 --server-device cxi0 --svc-id 1 --server-svc-id 1 "
        "--bind 192.0.2.1 --json"
    )


def test_iperf3_and_iperf_have_a_server_that_is_ready_when_its_port_listens() -> None:
    params = {"size": "128K", "duration": "2s", "streams": 4}
    inventory = hosts(2, perch_iperf3_port=6201)
    test = suite_test(tool="iperf3", backend=None, kind="bandwidth", params=params)
    found = flow(test, inventory)
    assert found["ready"] == {"port": 6201, "proto": "tcp"}
    assert " ".join(found["client_argv"]) == (
        "iperf3 -c 192.0.2.2 -B 192.0.2.1 -p 6201 -J -l 131072 -t 2 -P 4"
    )
    assert " ".join(found["server_argv"]) == "iperf3 -s -1 -B 192.0.2.2 -p 6201 -J"
    found = flow({**test, "tool": "iperf"}, inventory)
    assert found["ready"] == {"port": 5001, "proto": "tcp"}
    assert " ".join(found["server_argv"]) == "iperf -s -B 192.0.2.2 -p 5001 -e -i 1"


def test_iperf_is_told_of_addresses_of_ipv6() -> None:
    test = suite_test(
        tool="iperf", backend=None, kind="bandwidth", params={"size": 8, "duration": "1s"}
    )
    inventory = hosts(2)
    assert "-V" not in client(test, inventory).split()
    inventory["h1"]["perch_address"] = "fd00::2"
    found = flow(test, inventory)
    assert (found["client_argv"][-1], found["server_argv"][-1]) == ("-V", "-V")


def test_perftest_has_its_program_options_and_the_devices_of_both_ends() -> None:
    params = {"size": "1M", "iterations": 5000, "queue_pairs": 4, "mtu": 1024}
    test = suite_test(
        tool="perftest",
        backend=None,
        kind="bandwidth",
        params={**params, "report_gbits": True, "bidirectional": True},
    )
    found = flow(test, rdma())
    shared = "-p 19101 -F -c RC -s 1048576 -n 5000 -q 4 -m 1024 -b --report_gbits"
    assert " ".join(found["client_argv"]) == f"ib_send_bw -d mlx5_0 -i 2 -x 3 {shared} 192.0.2.2"
    assert " ".join(found["server_argv"]) == f"ib_send_bw -d mlx5_1 -i 1 -x 1 {shared}"
    assert (found["ready"], found["scope"]) == ({"port": 19101, "proto": "tcp"}, "hardware")


def test_perftest_is_told_of_addresses_of_ipv6() -> None:
    test = suite_test(tool="perftest", backend=None, params={"size": 8, "iterations": 1000})
    inventory = rdma()
    assert "--ipv6-addr" not in client(test, inventory)
    inventory["b"]["perch_address"] = "fd00::2"
    found = flow(test, inventory)
    assert found["client_argv"][-2:] == ["--ipv6-addr", "fd00::2"]
    assert found["server_argv"][-1] == "--ipv6-addr"


def test_perftest_measures_atomics_durations_and_all_of_its_sizes() -> None:
    test = suite_test(tool="perftest", backend=None, op="compare-swap")
    found = client({**test, "params": {"size": 8, "iterations": 1000}}, rdma())
    assert found.startswith("ib_atomic_lat ") and " -A CMP_AND_SWAP " in found
    found = client({**test, "op": "read", "params": {"size": 8, "duration": "10s"}}, rdma())
    assert " -D 10 -f 1 " in found
    everything = {**test, "op": "write", "params": {"size": "all", "iterations": 10}}
    assert sizes(flow(everything, rdma())) == [2**i for i in range(1, 24)]
    assert "-a" in flow(everything, rdma())["client_argv"]


def test_the_cxi_tools_have_the_device_and_service_of_each_end() -> None:
    params = {"size": 8, "iterations": 5, "report_all": True}
    found = flow(suite_test(tool="cxi", backend=None, params=params), slingshot())
    assert " ".join(found["client_argv"]) == (
        "cxi_send_lat -d cxi0 -v 1 -p 49194 -s 8 -n 5 --report-all 192.0.2.2"
    )
    assert " ".join(found["server_argv"]) == "cxi_send_lat -d cxi0 -v 1 -p 49194"
    assert (found["hop_class"], found["scope"]) == ("same_switch", "hardware")


def test_the_cxi_tools_have_words_of_their_own_for_atomics() -> None:
    params = {"duration": "2s", "atomic_op": "cswap-ne", "atomic_type": "uint128"}
    test = suite_test(
        tool="cxi",
        backend=None,
        op="compare-atomic",
        kind="bandwidth",
        params={**params, "bidirectional": True},
    )
    found = flow(test, slingshot())
    assert " ".join(found["client_argv"]) == (
        "cxi_atomic_bw -d cxi0 -v 1 -p 49194 -A cswap -C ne -T uint128 --fetching -D 2 -b 192.0.2.2"
    )
    assert sizes(found) == [16]


# ---- what figures are worth ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "scope"),
    [
        ({"backend": "tcp"}, "software"),
        ({"backend": "ofi", "provider": "tcp;ofi_rxm"}, "software"),
        ({"backend": "ofi", "provider": "verbs;ofi_rxm"}, "hardware"),
        ({"backend": "ofi"}, "software"),
        ({"backend": "ofi", "provider": "net"}, "software"),
        ({"backend": "ofi", "provider": "cxi"}, "hardware"),
    ],
)
def test_software_is_never_called_hardware(members: dict[str, Any], scope: str) -> None:
    assert flow(suite_test(**members), hosts(2))["scope"] == scope
    assert flow(suite_test(**members), hosts(2, perch_fabric="loopback"))["scope"] == "software"
    assert flow(suite_test(**members), hosts(2, perch_scope="simulated"))["scope"] == "simulated"


def test_a_software_device_is_known_by_its_name() -> None:
    test = suite_test(backend="verbs")
    assert flow(test, rdma())["scope"] == "hardware"
    assert flow(test, rdma(perch_devices=["rxe0"]))["scope"] == "software"


@pytest.mark.parametrize(
    ("ends", "hop_class"),
    [
        ([("g", "s"), ("g", "s")], "same_switch"),
        ([("g", "s"), ("g", "t")], "same_group"),
        ([("g", "s"), ("h", "t")], "cross_group"),
        ([("g", None), ("g", None)], None),
        ([("g", "s"), (None, None)], None),
    ],
)
def test_how_far_hosts_are_apart_is_said_where_the_inventory_says_it(
    ends: list[tuple[str | None, str | None]], hop_class: str | None
) -> None:
    inventory = hosts(2)
    for host, (group, switch) in zip(inventory.values(), ends, strict=True):
        host.update(perch_group=group, perch_switch=switch)
    assert flow(suite_test(), inventory).get("hop_class") == hop_class


# ---- times ---------------------------------------------------------------------------------------


def times(test: dict[str, Any], inventory: dict[str, dict[str, Any]]) -> tuple[float, float]:
    found = flow(test, inventory)
    return found["estimate_s"], found["deadline_s"]


def test_a_deadline_is_later_than_the_estimate_by_the_time_without_progress() -> None:
    estimate, deadline = times(suite_test(params={"size": "8:64", "duration": "2s"}), hosts(2))
    assert estimate == 9.3
    assert deadline >= 30 + estimate


@pytest.mark.parametrize(
    ("params", "estimate_s", "deadline_s"),
    [
        ({"iterations": 1000000}, 20, 1000),  # a millisecond a message on a busy machine
        ({"iterations": 1000, "gap": "100ms"}, 100, 330),
        ({"iterations": 1000, "rate": "10msg/s"}, 100, 330),
        ({"iterations": 1000, "rate": "640b/s"}, 100, 330),
        ({"duration": "1s", "gap": "10ms", "warmup": 6000}, 60, 210),
    ],
)
def test_iterations_gap_rate_and_warm_up_take_time(
    params: dict[str, Any], estimate_s: float, deadline_s: float
) -> None:
    estimate, deadline = times(suite_test(params={"size": 8, **params}), hosts(2))
    assert estimate > estimate_s and deadline > deadline_s


@pytest.mark.parametrize(("tool", "backend"), [("perftest", None), ("perch", "verbs")])
def test_a_slow_host_has_later_deadlines(tool: str, backend: str | None) -> None:
    test = suite_test(tool=tool, backend=backend, params={"size": 8, "iterations": 10000})
    laptop = times(test, rdma(perch_devices=["rxe0"]))
    assert flow(test, rdma(perch_devices=["rxe0"]))["scope"] == "software"
    emulated = times(test, rdma(perch_devices=["rxe0"], perch_slowdown=10))
    assert emulated[0] >= 5 * laptop[0] and emulated[1] >= 5 * laptop[1]


def test_a_plan_names_the_ports_that_a_host_listens_on() -> None:
    plan = document(planned([suite_test()], hosts(2, perch_port="18700", perch_cxi_port=49200)))
    assert plan["hosts"]["h0"]["ports"] == [5001, 5201, 18515, 18700, 49200]
    assert plan["hosts"]["h0"]["port"] == 18700
