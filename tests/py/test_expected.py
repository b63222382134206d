"""What was bought: links below it are named, and nothing lowers what they must carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perch.errors import PerchError
from perch.model.limit_files import SETS
from perch.plan import bought
from perch.plan.hosts import host
from tests.py.checks_built import found, record, run_of
from tests.py.planned import excluded, flows, hosts, planned, suite_test


def expected(
    *links: tuple[float | None, float | None],
    scope: str = "hardware",
    queue_pairs: int = 1,
    bonded: int | None = None,
) -> Any:
    records = [
        record(
            f"t/a/b/0/{n}", kind="bandwidth", scope=scope,
            params={"size_bytes": 65536, "queue_pairs": queue_pairs},
            link={"rate_gbit_s": rate, "expected_gbit_s": wanted, "links": bonded},
        )
        for n, (rate, wanted) in enumerate(links, 1)
    ]  # fmt: skip
    return list(found(run_of(records), "expected").values())


def test_a_link_below_what_was_bought_fails_whatever_it_carries() -> None:
    checks = expected((400, 400), (200, 400))
    assert [(one.id, one.status) for one in checks] == [("expected/rate", "fail")]
    assert (checks[0].measured, checks[0].limit.min) == (200, 400)
    assert checks[0].evidence == ["t/a/b/0/2#65536"]
    assert [one.status for one in expected((400, 400))] == ["pass"]
    assert [one.status for one in expected((200, 400), scope="software")] == ["advisory"]


@pytest.mark.parametrize(
    ("scope", "status"), [("hardware", "inconclusive"), ("software", "advisory")]
)
def test_a_link_above_what_was_bought_has_floors_that_are_too_low(scope: str, status: str) -> None:
    checks = expected((400, 200), scope=scope)
    assert [(one.id, one.status) for one in checks] == [
        ("expected/rate", "pass"), ("expected/faster", status),
    ]  # fmt: skip


def test_queue_pairs_may_take_as_many_links_of_a_bond() -> None:
    assert [one.id for one in expected((400, 200), bonded=2)] == ["expected/rate"]
    assert [one.id for one in expected((600, 200), bonded=2)][1:] == ["expected/faster"]


def test_queue_pairs_of_one_link_hide_no_rate_that_is_too_low() -> None:
    assert [one.id for one in expected((400, 200), queue_pairs=8)][1:] == ["expected/faster"]


def test_where_nobody_says_what_was_bought_the_report_says_what_the_devices_have() -> None:
    (check,) = expected((100, None), (25, None), scope="software")
    assert (check.id, check.status) == ("expected", "not_judged")
    assert "does not say what was bought; the devices have 25, 100 Gb/s" in str(check.measured)
    assert expected((None, None)) == expected((None, 100)) == []


# ---- the plan ------------------------------------------------------------------------------------


def test_hardware_without_a_rate_is_refused_by_name() -> None:
    inventory = hosts(3, perch_link_gbit_s=None)
    inventory["h1"]["perch_link_gbit_s"] = 400
    with pytest.raises(PerchError) as error:
        planned([suite_test()], inventory)
    assert str(error.value).startswith("host h0, h2: perch_link_gbit_s is missing")
    assert "such as 400" in str(error.value)
    for spared in ({"perch_scope": "software"}, {"perch_fabric": "loopback"}):
        assert planned([suite_test()], hosts(2, perch_link_gbit_s=None, **spared)).flows() == 1


def test_a_rate_that_no_device_has_is_refused_by_name() -> None:
    with pytest.raises(PerchError) as error:
        planned([suite_test()], hosts(2, perch_link_gbit_s=410))
    assert str(error.value).startswith("host h0: perch_link_gbit_s is 410, and no device on roce")


def test_hosts_of_one_fabric_that_contradict_each_other_about_a_trait_are_named() -> None:
    inventory = hosts(6, perch_fabric_traits={"lossless": True})
    inventory["h4"]["perch_fabric_traits"] = {"lossless": False, "adaptive_routing": True}
    with pytest.raises(PerchError) as error:
        planned([suite_test()], inventory)
    assert str(error.value) == (
        "host h4: perch_fabric_traits says lossless false, and roce hosts h0, h1, h2 and 2 more "
        "say true; give all the same"
    )
    # another fabric has traits of its own, and silence contradicts nobody
    inventory["h4"]["perch_fabric"] = "infiniband"
    inventory["h5"]["perch_fabric_traits"] = {}
    assert planned([suite_test()], inventory).flows()


def test_a_fabric_that_is_none_or_cannot_carry_rdma_is_refused_by_name() -> None:
    for fabric, backends, why in (
        ("rocee", ["tcp"], "there is no perch_fabric 'rocee'; give loopback or ethernet or"),
        ("ethernet", ["verbs"], "perch_fabric is ethernet, and perch_backends has verbs; give "),
    ):
        with pytest.raises(PerchError) as error:
            planned([suite_test()], hosts(2, perch_fabric=fabric, perch_backends=backends))
        assert str(error.value).startswith(f"host h0, h1: {why}")


def test_rdma_stays_within_a_fabric_and_the_slowest_link_of_it_has_the_limits() -> None:
    named = {"perch_backends": ["verbs", "tcp"], "perch_devices": ["m"]}
    inventory = hosts(4, **named)
    for name in ("h2", "h3"):
        inventory[name] |= {"perch_fabric": "infiniband", "perch_link_gbit_s": 200}
    of = planned([suite_test(backend="verbs"), suite_test(name="u")], inventory)
    assert {(one["client"], one["server"]) for one in flows(of) if one["test"] == "t"} == {
        ("h0", "h1"), ("h2", "h3"),
    }  # fmt: skip
    assert ("t", "h0, h1 with h2, h3: one is on roce, the other on infiniband") in excluded(of)
    assert sum(one["test"] == "u" for one in flows(of)) == 6

    two = [host(name, given) for name, given in inventory.items()]
    with pytest.raises(PerchError) as error:
        bought.limit_set("", SETS, two)
    assert str(error.value) == (
        "plan_limits: hosts are on roce and infiniband, and no set is of both; "
        "name a set, or plan one fabric at a time (--limit)"
    )
    tcp_only = {"perch_fabric": "ethernet", "perch_backends": ["tcp"], "perch_link_gbit_s": 10}
    three = hosts(3, **named)
    three["h2"] |= tcp_only
    assert bought.limit_set("", SETS, [host(*one) for one in three.items()]) == "roce-100"


def test_bounds_of_losses_stay_unless_every_host_has_a_lossy_network() -> None:
    packets_retried = {"id": "packets-retried", "severity": "required", "bound": {"max": 0}}
    limits = {"limits": [{**packets_retried, "source": "S", "from": "roce.yml"}]}
    said = planned([suite_test()], hosts(2, perch_fabric_traits={"lossless": False}))
    inventory = hosts(2)
    inventory["h0"]["perch_fabric_traits"] = {"lossless": False}
    one_says = planned([suite_test()], inventory)

    def severity(of: Any) -> str:
        return str(bought.with_traits(limits, of.fleet.hosts.values())["limits"][0]["severity"])

    assert (severity(said), severity(one_says)) == ("advisory", "required")


def of_hosts(fabric: str, *rates: float | None, **more: Any) -> list[Any]:
    given = {
        name: {**one, "perch_link_gbit_s": rate}
        for (name, one), rate in zip(
            hosts(len(rates), perch_fabric=fabric, **more).items(), rates, strict=True
        )
    }
    return [host(name, one) for name, one in given.items()]


@pytest.mark.parametrize(
    ("fabric", "rates", "more", "name"),
    [
        ("roce", (400, 400), {}, "roce-400"),
        ("roce", (400, 100), {}, "roce-100"),
        ("infiniband", (400,), {}, "ib-ndr"),
        ("slingshot", (400,), {}, "slingshot-400"),
        ("ethernet", (100,), {}, "tcp"),
        ("loopback", (None,), {}, "local"),
        ("roce", (None,), {"perch_scope": "software"}, "rxe"),
        ("slingshot", (None,), {"perch_scope": "simulated"}, "slingshot-200"),
    ],
)
def test_the_set_of_limits_is_that_of_fabric_and_rate(
    fabric: str, rates: tuple[float | None, ...], more: dict[str, Any], name: str
) -> None:
    assert bought.limit_set("", SETS, of_hosts(fabric, *rates, **more)) == name


def test_a_set_that_no_link_has_is_refused_by_name() -> None:
    links = of_hosts("roce", 100, 100)
    assert bought.limit_set("roce-100", SETS, links) == "roce-100"
    assert bought.limit_set("mine", Path("/nowhere"), links) == "mine"
    with pytest.raises(PerchError) as error:
        bought.limit_set("roce-400", SETS, links)
    assert str(error.value) == (
        "plan_limits: the set roce-400 is of links above 200 up to 400 Gb/s on roce; the "
        "inventory has 100 Gb/s on roce; name roce-100"
    )
    with pytest.raises(PerchError, match="no set of limits is of 1600 Gb/s on roce; name one"):
        bought.limit_set("", SETS, of_hosts("roce", 1600))
