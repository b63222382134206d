"""Pairs that fell outside, and what their repeats showed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from perch.checks import RunView, retries
from perch.model.record import Record
from perch.model.verdict import Bound, Check
from tests.py.checks_built import found, limit, record, run_of

LOST: dict[str, Any] = {"status": "not_measured", "error": {"code": 4, "traffic": False}}
AGAIN = (2, 3)
FLOOR = limit(bound={"min": 10})


def rates(*values: float | None, test: str = "t") -> list[Record]:
    return [
        record(f"{test}/a/b/0/{n}", **(LOST if rate is None else {"bandwidth": {"gbit_s": rate}}))
        for n, rate in enumerate(values, 1)
    ]


def finding(name: str, status: Any = "fail", **more: Any) -> Check:
    return Check(id=name, title="", status=status, **more)


# ---- what to repeat ------------------------------------------------------------------------------


def outside(run: RunView, *checks: Check) -> list[tuple[str, list[str]]]:
    section = retries.outside(run, checks)
    if section is None:
        return []
    return [
        ("/".join((one["test"], one["client"], one["server"])), one["why"])
        for one in section["first"]
    ]


def test_a_pair_outside_a_required_limit_may_be_repeated() -> None:
    records = [*rates(9), *rates(11, test="u")]
    run = run_of(records, FLOOR)
    assert outside(run) == [("t/a/b", ["limit/l/t"])]
    section = retries.outside(run, [])
    assert section and (section["pairs"], section["of"]) == (1, 2)


def test_an_advisory_limit_and_a_tail_of_software_are_no_reason() -> None:
    lat: dict[str, Any] = {"kind": "latency", "latency_us": {"count": 10000, "p50": 1, "p99_9": 99}}
    soft = [*rates(9), record("lat/a/b/0/1", **lat)]
    assert outside(run_of(soft, limit(bound={"min": 10}, severity="advisory"))) == []
    hard = [record("lat/a/b/0/1", scope="hardware", **lat)]
    assert outside(run_of(hard)) == [("lat/a/b", ["tail/lat"])]


def test_a_flow_that_was_lost_before_traffic_may_be_repeated() -> None:
    assert outside(run_of(rates(None))) == [("t/a/b", ["flow/t/a/b/0/1"])]
    died = record(**{**LOST, "status": "error", "error": {"code": 4, "traffic": True}})
    assert outside(run_of([died])) == []


@pytest.mark.parametrize(
    "final",
    [finding("flow/t/a/b/0/1"), finding("ceiling", evidence=["t/a/b/0/1#65536"])],
)
def test_no_repeat_cures_a_corrupted_payload_or_an_impossible_figure(final: Check) -> None:
    run = run_of(rates(9), FLOOR)
    assert outside(run, final) == []
    passed = finding(final.id, "pass", evidence=final.evidence)
    assert outside(run, passed) == [("t/a/b", ["limit/l/t"])]


def test_a_run_is_repeated_once() -> None:
    run = run_of(rates(9, 9, 9), FLOOR, retried=AGAIN)
    assert retries.outside(run, []) is None


# ---- what repeats showed -------------------------------------------------------------------------


def judged(*values: float | None, **more: Any) -> dict[str, Check]:
    run = run_of(rates(*values), more.pop("limit", FLOOR), retried=AGAIN, **more)
    return found(run, "limit", "retry")


def test_one_stray_of_three_no_longer_decides_and_stays_visible() -> None:
    checks = judged(9, 11, 12)
    assert checks["limit/l/t"].status == "pass"
    assert checks["limit/l/t"].measured == 11
    check = checks["retry/t/a/b"]
    assert (check.status, check.measured) == ("advisory", "limit/l/t at 65536: 9, 11, 12")
    assert check.evidence == ["t/a/b/0/2", "t/a/b/0/3"]


@pytest.mark.parametrize("values", [(9, 9.5, 11), (9, 11, 9.5), (9, 9, 9)])
def test_two_of_three_outside_fail_whichever_they_are(values: tuple[float, ...]) -> None:
    assert judged(*values)["limit/l/t"].status == "fail"


def test_of_an_even_number_the_worse_of_the_middle_speaks() -> None:
    records = rates(12, 9, 11, 8)
    check = found(run_of(records, FLOOR, retried=(3, 4)), "limit")["limit/l/t"]
    assert (check.status, check.measured) == ("fail", 9)


def test_a_repeat_without_the_figure_speaks_for_all() -> None:
    records = [*rates(9, 11), record("t/a/b/0/3")]
    checks = found(run_of(records, FLOOR, retried=AGAIN), "limit", "retry")
    assert checks["limit/l/t"].status == "inconclusive"
    assert checks["retry/t/a/b"].measured == "limit/l/t at 65536: 9, 11, nothing"


def test_a_pair_that_was_repeated_for_nothing_is_inconclusive() -> None:
    check = judged(11, 9, 12)["retry/t/a/b"]
    assert (check.status, "although nothing" in str(check.measured)) == ("inconclusive", True)
    assert "perchctl retry" in str(check.remedy)
    mild = judged(9, 11, 12, limit=limit(bound={"min": 10}, severity="advisory"))
    assert mild["retry/t/a/b"].status == "inconclusive"


def test_other_pairs_are_judged_by_each_of_their_records() -> None:
    records = [*rates(9, 11, 12), record("t/c/d/0/1", bandwidth={"gbit_s": 9.5})]
    check = found(run_of(records, FLOOR, retried=AGAIN), "limit")["limit/l/t"]
    assert (check.status, check.evidence) == ("fail", ["t/c/d/0/1#65536"])


def test_repeats_among_peers_are_told_as_shares_of_the_median() -> None:
    peers = limit(bound={"min": 0.9, "of": "peers"}, unit="of the median")
    others = [
        record(f"t/{one}/{other}/0/1", bandwidth={"gbit_s": 10})
        for one, other in ("ac", "ad", "ae", "bc", "bd", "be", "cd", "ce", "de")
    ]
    run = run_of([*rates(5, 10, 10), *others], peers, retried=AGAIN)
    checks = found(run, "limit", "retry")
    assert checks["limit/l/t"].status == "pass"
    assert checks["retry/t/a/b"].measured == "limit/l/t at 65536: 0.5, 1, 1"


def test_repeats_that_are_not_this_verdicts_are_named() -> None:
    run = dataclasses.replace(run_of(rates(11)), retry_fault="it belongs to run 'x', not 'r'")
    check = found(run, "retry")["retry/plan"]
    assert (check.status, check.measured) == (
        "inconclusive", "plan.retry.json: it belongs to run 'x', not 'r'")  # fmt: skip
    assert "perchctl retry" in str(check.remedy)


# ---- what repeats cured --------------------------------------------------------------------------


def excused(run: RunView) -> dict[str, Check]:
    checks = [
        finding("coverage", "inconclusive", measured=2, limit=Bound(3, 3), evidence=["t/a/b/0/1"]),
        finding("flow/t/a/b/0/1", "inconclusive"),
        finding("flow/u/a/b/0/1", "inconclusive"),
    ]
    return {one.id: one for one in retries.with_excused(run, checks)}


def test_a_flow_that_was_lost_before_traffic_is_cured_by_whole_repeats_and_stays_listed() -> None:
    run = run_of(rates(None, 11, 12), FLOOR, retried=AGAIN)
    checks = excused(run)
    assert checks["coverage"].status == "pass"
    assert checks["coverage"].measured == "2, and in repeats what was lost of 1 flow"
    assert checks["flow/t/a/b/0/1"].status == "advisory"
    assert checks["flow/u/a/b/0/1"].status == "inconclusive"
    retry = found(run, "retry")["retry/t/a/b"]
    assert (retry.status, retry.measured) == ("advisory", "t/a/b/0/1: lost before traffic")


def test_a_repeat_that_is_missing_or_another_missing_flow_cures_nothing() -> None:
    missing = run_of(rates(None, 11, None), retried=AGAIN)
    assert excused(missing)["coverage"].status == "inconclusive"
    other = run_of([*rates(None, 11, 12), *rates(None, test="u")], retried=AGAIN)
    checks = excused(other)
    assert checks["coverage"].status == "inconclusive"
    assert checks["flow/t/a/b/0/1"].status == "advisory"
