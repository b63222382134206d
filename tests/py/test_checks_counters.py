"""Counters before and after a flow, and the clocks of its ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.checks.counters import CLASSES, OWED
from perch.model.record import Link, Record
from perch.model.verdict import Bound, Check
from tests.py.checks_built import found, record, run_of

WELL = dict.fromkeys(CLASSES, 0)


def flow(n: int = 1, scope: str = "hardware", **events: Any) -> Record:
    """A flow whose ends count every class, and that saw these events."""
    given: dict[str, Any] = {"counts": {**WELL, **events.pop("counts", {})}, **events}
    packets = {"packets": {"sent": given.pop("sent")}} if "sent" in given else {}
    return record(f"t/a/b/0/{n}", scope=scope, events=given, **packets)


def moved(name: str, count: float | None, n: int = 1, **more: Any) -> Record:
    at: dict[str, Any] = {"moved": {name: f"b: m0 {name}"}}
    if count is None:
        one = flow(n, reset=[name], **at, **more)
        assert one.events
        del one.events.counts[name]
        return one
    return flow(n, counts={name: count}, **at, **more)


def counters(*records: Record) -> dict[str, Check]:
    return found(run_of(list(records)), "counters")


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_that_moved_fails_hardware_or_is_shown_where_it_only_explains(name: str) -> None:
    check = counters(moved(name, 2))[f"counters/{name}"]
    shown = name in ("pause", "congestion", "host-drops", "pcie-corrected")
    assert check.status == ("advisory" if shown else "fail")
    assert check.measured == f"2 in 1 flow, b: m0 {name}"
    assert (check.evidence, check.remedy is not None) == (["t/a/b/0/1"], True)
    kept = counters(flow())[f"counters/{name}"]
    assert (kept.status, kept.measured, kept.remedy) == ("pass", 0, None)


def test_on_software_the_same_counters_are_advisory() -> None:
    checks = counters(moved("drops", 9, scope="software"))
    assert checks["counters/drops"].status == "advisory"
    assert checks["counters/errors"].status == "pass"


@pytest.mark.parametrize("name", ["retransmissions", "out-of-sequence"])
def test_what_was_sent_again_is_compared_with_the_packets_one_in_a_million(name: str) -> None:
    kept = counters(moved(name, 12, sent=12_000_000))[f"counters/{name}"]
    assert (kept.status, kept.limit, kept.unit) == (
        "pass", Bound(None, 1), "in a million packets")  # fmt: skip
    broken = counters(moved(name, 13, sent=12_000_000))[f"counters/{name}"]
    assert broken.status == "fail"
    assert str(broken.measured).endswith("; in the worst flow 1.08 per million packets")
    # without a count of packets, one is too many
    assert counters(moved(name, 1))[f"counters/{name}"].status == "fail"


def test_every_size_of_a_flow_carries_its_counters_and_they_count_once() -> None:
    sizes = [moved("drops", 3) for _ in range(2)]
    check = counters(*sizes, moved("drops", 5, n=2))["counters/drops"]
    assert check.measured == "8 in 2 flows, b: m0 drops"
    assert check.evidence == ["t/a/b/0/1", "t/a/b/0/2"]


def test_hardware_speaks_before_software() -> None:
    check = counters(moved("drops", 9, scope="software"), moved("drops", 1, n=2))["counters/drops"]
    assert check.status == "fail"
    assert str(check.measured).startswith("1 in 1 flow")
    assert check.evidence == ["t/a/b/0/1", "t/a/b/0/2"]


def test_classes_that_no_device_counts_are_named_in_one_check() -> None:
    checks = counters(record(scope="software", events={"counts": {"drops": 0}}))
    assert list(checks) == ["counters/drops", "counters/not_counted", "counters/still"]
    assert checks["counters/not_counted"].measured == ", ".join(
        name for name in CLASSES if name != "drops"
    )


def test_a_counter_that_was_reset_is_inconclusive_and_counts_as_counted() -> None:
    checks = counters(moved("errors", None), flow(2))
    check = checks["counters/reset"]
    assert (check.status, check.measured) == ("inconclusive", "errors: b: m0 errors")
    assert check.evidence == ["t/a/b/0/1"]
    assert checks["counters/errors"].status == "pass"
    assert "counters/missing" not in checks


@pytest.mark.parametrize("name", OWED)
def test_hardware_whose_devices_do_not_count_what_goes_wrong_is_inconclusive(name: str) -> None:
    counts = {one: 0 for one in CLASSES if one != name}
    hard = record(scope="hardware", events={"counts": counts})
    soft = record("t/a/b/0/2", scope="software", events={"counts": counts})
    check = counters(hard, soft)["counters/missing"]
    assert check.status == "inconclusive"
    assert check.measured == f"1 flow on hardware whose devices count no {name}"
    assert check.evidence == ["t/a/b/0/1"]
    assert "counters/missing" not in counters(soft)


@pytest.mark.parametrize(
    ("errors", "gbit_s", "hours", "status"),
    [
        # 1e-15 of the bits: one symbol of a week's soak is no fault, the same in a minute is one
        (1, 400, 168, "pass"), (241, 400, 168, "pass"), (242, 400, 168, "fail"),
        (1, 400, 1, "pass"), (1, 400, 0.02, "fail"), (1, None, 168, "fail"),
    ],
)  # fmt: skip
def test_errors_are_judged_by_their_rate(
    errors: int, gbit_s: float | None, hours: float, status: str
) -> None:
    one = flow(counts={"errors": errors}, moved={"errors": "a mlx5_0 symbol_error"})
    one.elapsed_s, one.link = hours * 3600, Link(rate_gbit_s=gbit_s)
    assert counters(one)["counters/errors"].status == status


@pytest.mark.parametrize(
    ("traits", "spared"),
    [
        ({}, set()),
        ({"adaptive_routing": True, "lossless": True}, {"out-of-sequence"}),
        ({"lossless": False}, {"drops", "retransmissions", "out-of-sequence"}),
    ],
)
def test_what_a_fabric_does_on_purpose_is_shown_and_fails_nothing(
    traits: dict[str, bool], spared: set[str]
) -> None:
    moving = ("drops", "errors", "retransmissions", "out-of-sequence")
    one = flow(counts=dict.fromkeys(moving, 500), moved=dict.fromkeys(moving, "a mlx5_0 x"))
    run = run_of([one])
    run.plan.hosts["a"].traits = traits
    checks = found(run, "counters")
    statuses = {name: checks[f"counters/{name}"].status for name in moving}
    assert statuses == {name: "advisory" if name in spared else "fail" for name in moving}


def test_one_host_alone_excuses_nothing_that_the_network_does() -> None:
    one = flow(counts={"drops": 500}, moved={"drops": "a mlx5_0 x"})
    run = run_of([one])
    run.plan.hosts["b"] = msgspec.structs.replace(run.plan.hosts["a"], fabric="roce")
    run.plan.hosts["a"].fabric = "roce"
    run.plan.hosts["b"].traits = {"lossless": False}
    assert found(run, "counters")["counters/drops"].status == "fail"
    run.plan.hosts["a"].traits = {"lossless": False}
    assert found(run, "counters")["counters/drops"].status == "advisory"
    # a host without RDMA has no say
    run.plan.hosts["c"] = msgspec.structs.replace(run.plan.hosts["a"], fabric="ethernet", traits={})
    assert found(run, "counters")["counters/drops"].status == "advisory"


def test_hardware_without_any_counter_is_inconclusive() -> None:
    check = counters(record(scope="hardware"))["counters/missing"]
    assert str(check.measured).endswith("drops, errors, link, retransmissions")


def test_counters_that_contradict_each_other_are_inconclusive() -> None:
    stale = "a: eth1 counted 900 bytes in no packet"
    checks = counters(flow(1, stale=stale), flow(1, stale=stale), flow(2, stale=stale), flow(3))
    check = checks["counters/still"]
    assert (check.status, check.measured) == ("inconclusive", f"{stale}, and 1 more")
    assert check.evidence == ["t/a/b/0/1", "t/a/b/0/2"]
    kept = counters(flow(1), flow(2))["counters/still"]
    assert (kept.status, kept.measured, kept.unit) == ("pass", 2, "flows")


# ---- clocks --------------------------------------------------------------------------------------


def clock(*skews: float | None) -> Check:
    records = [
        record(f"t/a/b{n}/0/1", **({} if skew is None else {"clock_skew_s": skew}))
        for n, skew in enumerate(skews)
    ]
    return found(run_of(records), "clock")["clock/ends"]


@pytest.mark.parametrize(
    ("skews", "status", "measured"),
    [
        ((None,), "not_judged", "no flow's ends gave their times"),
        ((0, None), "pass", 0),
        ((0, 0.5, -0.75), "pass", 0.75),
        ((0, 90), "advisory", "b1 is 90 s ahead of a, or one of them was set meanwhile"),
        ((-90.5, 3), "advisory", "b0 is 90.5 s behind a, or one of them was set meanwhile"),
        ((5, -5), "advisory", "b1 is 5 s behind a, or one of them was set meanwhile"),
        ((4000,), "inconclusive", "b0 is 4000 s ahead of a, or one of them was set meanwhile"),
    ],
)
def test_clocks_of_both_ends_that_differ_are_shown_and_too_far_apart_inconclusive(
    skews: tuple[float | None, ...], status: str, measured: str | float
) -> None:
    check = clock(*skews)
    assert (check.status, check.measured) == (status, measured)


def test_each_pair_of_hosts_whose_clocks_differ_is_evidence_once() -> None:
    records = [record(f"t/a/b/0/{n}", clock_skew_s=skew) for n, skew in enumerate((2, 9, 3), 1)]
    check = found(run_of([*records, record("t/a/c/0/1", clock_skew_s=4)]), "clock")["clock/ends"]
    assert check.evidence == ["t/a/b/0/2", "t/a/c/0/1"]
