"""What was measured over several rails: a slow one must not hide among its siblings."""

from __future__ import annotations

from typing import Any

from perch.checks import agreement
from perch.checks.figures import figures
from perch.checks.repeatability import variations
from perch.history import intervals, tuning_runs
from perch.judge import columns
from perch.judge.asked import Asking
from perch.model.plan import PlanHost
from perch.model.record import Record
from perch.views import flows as ranked
from perch.views.plan import PlannedTest
from tests.py.checks_built import found, record, run_of
from tests.py.path_built import flow


def rails(*rates: float, way: str = "a/b") -> list[Record]:
    """A record of each rail, in Gb/s."""
    return [
        record(f"t/{way}/{rail}/1", scope="hardware", bandwidth={"gbit_s": rate})
        for rail, rate in enumerate(rates)
    ]


def test_each_rail_is_a_figure_of_its_own() -> None:
    of = figures(run_of(rails(390, 390, 39)).records).filter(metric="bandwidth.gbit_s")
    assert dict(of.select("key", "value").iter_rows()) == {
        "t/a/b/65536/bandwidth.gbit_s": 390,
        "t/a/b/65536@rail1/bandwidth.gbit_s": 390,
        "t/a/b/65536@rail2/bandwidth.gbit_s": 39,
    }


def test_rails_are_no_repeats_of_each_other() -> None:
    assert variations(columns.frame(rails(390, 39))).is_empty()


def test_directions_are_compared_by_rail() -> None:
    run = run_of([*rails(390, 390), *rails(390, 200, way="b/a")])
    one = found(run, "directions")["directions/t"]
    assert (one.status, one.evidence) == ("fail", ["t/b/a#65536@rail1"])


def test_two_tools_are_compared_by_rail() -> None:
    about: dict[str, Any] = {
        "op": "write", "backend": "verbs", "connection": "RC", "definition": "initiator_completion",
    }  # fmt: skip
    records = [
        record(f"{test}/a/b/{rail}/1", tool={"name": tool}, bandwidth={"gbit_s": rate}, **about)
        for test, tool, rates in (("e", "perch", (390, 39)), ("p", "perftest", (390, 390)))
        for rail, rate in enumerate(rates)
    ]
    rows = agreement.rows(agreement.groups(columns.frame(records)), [])
    assert [row["ratio"] for row in rows] == [1, 0.1]


def test_flows_are_ranked_by_rail_and_the_worst_one_stands_for_its_pair() -> None:
    ways = (f"{a}/{b}" for a in "abc" for b in "abc" if a != b)
    records = [one for way in ways for one in rails(390, 39 if way == "a/b" else 380, way=way)]
    test = PlannedTest("t", "T", "bandwidth", flows=12)
    [one] = ranked.ranked(columns.frame(records), [test])
    assert (one.flows, one.among) == (12, "pairs and rails")
    assert [flow.ends for flow in one.slowest[:1]] == ["a to b, rail 1"]
    assert one.pairs is not None
    assert [flow.value for flow in one.pairs] == [39, 380, 380, 380, 380, 380]
    assert ranked.slowest_table([one]).rows[0][1:4] == ["a", "b", "1"]


def test_histories_know_the_rail() -> None:
    one, other = rails(390, 39)
    places = "t/a/b/65536", "t/a/b/65536@rail1"
    assert (intervals._place(one), intervals._place(other)) == places
    keys = [tuning_runs._line("r", record).key.place for record in (one, other)]
    assert keys == ["65536", "65536@rail1"]


def test_an_output_must_name_the_device_of_its_rail() -> None:
    devices = [{"name": f"mlx5_{i}"} for i in range(2)]
    host = PlanHost(address="", fabric="roce", scope="hardware", port=1, devices=devices)
    asking = Asking({"a": host, "b": host})
    asked = {"params": {"size": 8, "devices": "all"}, "expect": [{"size_bytes": 8}]}
    uses = [asking.of(flow(rail=rail, **asked)).uses["client"] for rail in range(2)]
    assert [use.device for use in uses] == ["mlx5_0", "mlx5_1"]


def test_a_nic_of_any_rail_counts_as_measured() -> None:
    run = run_of(rails(390, 390))
    for host in run.plan.hosts.values():
        host.devices[:] = [{"name": f"mlx5_{i}"} for i in range(2)]
    assert found(run, "nics")["nics"].status == "pass"
    second = run_of(rails(390, 390)[1:])
    second.plan.hosts["a"].devices[:] = [{"name": f"mlx5_{i}"} for i in range(2)]
    one = found(second, "nics")["nics"]
    assert one.measured == "1 of 2 NICs measured on a, b, not mlx5_0"


def test_a_nic_that_the_inventory_leaves_out_is_counted() -> None:
    run = run_of(rails(390, 390))
    for host in run.plan.hosts.values():
        host.devices[:] = [{"name": f"mlx5_{i}"} for i in range(2)]
    run.plan.hosts["b"].left["mlx5_2"] = "its state is down"
    one = found(run, "nics")["nics"]
    assert (one.status, one.measured) == ("advisory", "2 of 3 NICs measured on a, b, not mlx5_2")


def test_nics_of_a_host_whose_inventory_names_none_are_counted() -> None:
    run = run_of(rails(390, 390))
    for host in run.plan.hosts.values():
        host.devices.clear()
        host.left["mlx5_0"] = "not in perch_devices"
    one = found(run, "nics")["nics"]
    assert (one.status, one.measured) == ("advisory", "0 of 1 NIC measured on a, b, not mlx5_0")
