"""The suites that ship, for the inventories that ship; the engine takes every command of theirs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from perch.plan import engine
from perch.plan.planner import Planned
from tests.py.planned import flows, planned

TOP = Path(__file__).parents[2]
SUITES = {path.stem: path for path in sorted(TOP.glob("playbooks/suites/*.yml"))}
INVENTORIES = {path.parent.name: path for path in sorted(TOP.glob("inventories/*/hosts.yml"))}

VERBS_AND_TCP = ["verbs", "tcp", "ofi"]


@cache
def refusal(argv: tuple[str, ...]) -> str | None:
    return engine.checker()(argv)


@pytest.fixture(autouse=True)
def _built() -> None:
    if not engine.PROGRAM.exists():
        pytest.skip("NOT TESTED: engine/build-check/perch is not built (make -C engine check-tool)")


def inventory(path: Path) -> dict[str, dict[str, Any]]:
    """The hosts with their variables and those of their groups; switches are none."""
    found: dict[str, dict[str, Any]] = {}

    def walk(group: dict[str, Any], inherited: dict[str, Any]) -> None:
        own = {**inherited, **(group.get("vars") or {})}
        for name, variables in (group.get("hosts") or {}).items():
            found[name] = {**own, **(variables or {})}
        for name, child in (group.get("children") or {}).items():
            if name != "switches":
                walk(child or {}, own)

    walk(yaml.safe_load(path.read_text())["all"], {})
    return found


def suite_plan(suite: str, hosts: dict[str, dict[str, Any]]) -> Planned:
    given = yaml.safe_load(SUITES[suite].read_text())
    soak = given.get("soak")
    return planned(
        given["tests"],
        hosts,
        lambda argv: refusal(tuple(argv)),
        soak=soak,
        soak_duration="" if soak is None else "24h",
    )


def backends(suite: str, hosts: dict[str, dict[str, Any]]) -> set[str]:
    """Names of the suite's tests of backends that hosts have."""
    have = {backend for host in hosts.values() for backend in host.get("perch_backends", [])}
    tests = yaml.safe_load(SUITES[suite].read_text())["tests"]
    return {test["name"] for test in tests if test.get("backend") in have}


@pytest.mark.parametrize("name", SUITES)
@pytest.mark.parametrize("where", INVENTORIES)
def test_the_shipped_suites_become_plans_for_every_inventory_that_ships(
    name: str, where: str
) -> None:
    hosts = inventory(INVENTORIES[where])
    plan = suite_plan(name, hosts)
    assert {flow["test"] for flow in flows(plan)} | {one.test for one in plan.excluded} >= backends(
        name, hosts
    )


@pytest.mark.parametrize("where", INVENTORIES)
@pytest.mark.parametrize("name", [name for name in SUITES if name.startswith("transfer")])
def test_transfers_are_planned_over_every_backend_of_the_hosts(name: str, where: str) -> None:
    hosts = inventory(INVENTORIES[where])
    assert {flow["test"] for flow in flows(suite_plan(name, hosts))} == backends(name, hosts)


def test_the_quick_suite_takes_about_a_minute_on_one_machine() -> None:
    hosts = inventory(INVENTORIES["local"])
    plan = suite_plan("quick", hosts)
    assert plan.excluded == []
    assert 30 < plan.seconds() < 70
    assert suite_plan("full", hosts).excluded == []


def eight_devices(suite: str, backend: str = "verbs", nic: str = "mlx5_") -> dict[str, Any]:
    """Flows of a suite over a backend, by test, between hosts with eight devices."""
    host = {
        "perch_fabric": "infiniband",
        "perch_link_gbit_s": 400,
        "perch_backends": [backend, "tcp", "ofi"],
        "perch_devices": [{"name": f"{nic}{i}", "netdev": f"e{i}"} for i in range(8)],
    }
    plan = suite_plan(
        suite, {name: {**host, "perch_address": f"192.0.2.{i}"} for i, name in enumerate("ab", 1)}
    )
    other = {"verbs": "cxi-", "cxi": "verbs-"}[backend]
    assert all(one.test.startswith(other) for one in plan.excluded)
    return {flow["test"]: flow for flow in flows(plan) if flow["backend"] == backend}


def sums(flow: dict[str, Any], key: str) -> list[int]:
    return [one[key] for one in flow["expect"] if one["kind"] == "sum"]


def test_the_transfer_suites_measure_eight_devices() -> None:
    """As MORI-IO's page of published figures does."""
    read, one = eight_devices("transfer-read-many-nics").values()
    command = " ".join(read["client_argv"])
    assert (read["op"], read["scope"], len(read["expect"])) == ("read", "hardware", 18 * 9)
    assert "--size 8:1M --batch 256 " in command and "--queue-pairs 2 " in command
    assert "mlx5_7 --server-devices" in command and len(one["expect"]) == 18 * 2
    sizes = eight_devices("transfer-write-sizes").values()
    assert [len(flow["expect"]) for flow in sizes] == [18 * 2, 18 * 9]
    batches = sums(eight_devices("transfer-write-batches")["verbs-write"], "batch")
    assert batches == [2**i for i in range(16)]
    single = eight_devices("transfer-one-at-a-time")["verbs-read"]
    assert sums(single, "size_bytes") == [2**i for i in range(10, 27)]


@pytest.mark.parametrize("name", [name for name in SUITES if name.startswith("transfer")])
def test_transfers_ask_the_same_of_cxi_as_of_verbs(name: str) -> None:
    def asked(flow: dict[str, Any]) -> tuple[object, ...]:
        return flow["op"], flow["scope"], flow["expect"]

    of_verbs, of_cxi = eight_devices(name), eight_devices(name, "cxi", "cxi")
    assert {test.replace("cxi-", "verbs-") for test in of_cxi} == set(of_verbs)
    for test, flow in of_cxi.items():
        same = of_verbs[test.replace("cxi-", "verbs-")]
        words = " ".join(flow["client_argv"]).replace("cxi", "mlx5_")
        assert words.replace("--backend mlx5_", "--backend verbs") == " ".join(same["client_argv"])
        assert asked(flow) == asked(same)


@pytest.mark.parametrize("name", [name for name in SUITES if name.startswith("soak")])
def test_the_soaks_leave_out_only_tests_of_backends_that_no_host_has(name: str) -> None:
    host = {
        "perch_fabric": "roce",
        "perch_link_gbit_s": 100,
        "perch_backends": VERBS_AND_TCP,
        "perch_devices": ["mlx5_0"],
    }
    hosts = {f"h{i}": {**host, "perch_address": f"192.0.2.{i}"} for i in range(1, 5)}
    plan = suite_plan(name, hosts)
    assert all(one.test.startswith("cxi") for one in plan.excluded)
    assert len(plan.rounds[0][0].pairs) > 1
