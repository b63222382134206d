"""Flows of one host that overlap in time, though the plan has them in turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.py.judging import Document, Run, check_of, later, status
from tests.raw_lines import Walk

MakeRun = Callable[[str], Path]


def test_rounds_that_follow_each_other_pass(run_copy: MakeRun) -> None:
    for name in ("loopback", "rxe", "perftest", "transfer"):
        assert status(Run(run_copy(name)).judge(), "turns") == "pass"


@pytest.mark.parametrize(("by_s", "expected"), [(0.9, "pass"), (2.5, "inconclusive")])
def test_a_flow_that_began_after_a_later_round_is_found(
    run_copy: MakeRun, by_s: float, expected: str
) -> None:
    """The first flow of both hosts, whose clocks may have been set by a second meanwhile."""
    run = Run(run_copy("loopback"))
    for role in ("client", "server"):
        run.flow("tcp-latency", role).edit(later(by_s))
    found = check_of(run.judge(), "turns")
    assert found.status == expected


def test_flows_of_one_round_may_share_a_host(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))

    def together(plan: Document) -> None:
        first, second, *rest = plan["rounds"]
        plan["rounds"] = [{"flows": first["flows"] + second["flows"]}, *rest]

    run.edit("plan.json", together)
    for role in ("client", "server"):
        run.flow("tcp-latency", role).edit(later(2.5))
    assert status(run.judge(), "turns") == "pass"


def test_the_evidence_names_both_flows_and_the_host(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    end = run.flow("tcp-latency")
    end.edit(later(10))
    found = check_of(run.judge(), "turns")
    assert end.flow in str(found.measured)
    assert "on alpha " in str(found.measured)
    assert found.evidence


@pytest.mark.parametrize(
    ("since", "by_ns", "expected"),
    [
        (5, -(10**15), "inconclusive"),
        (5, -(10**10), "inconclusive"),
        (0, -(10**15), "pass"),
        (5, 10**15, "pass"),  # asleep, it does not count everywhere
    ],
)
def test_the_monotonic_clock_goes_forward(
    run_copy: MakeRun, since: int, by_ns: int, expected: str
) -> None:
    run = Run(run_copy("loopback"))
    walk = Walk(run.root / "raw/alpha")
    for end in walk.ends[since:]:
        for key in ("started_monotonic_ns", "ended_monotonic_ns"):
            end[key] += by_ns
    walk.save()
    found = check_of(run.judge(), "turns")
    assert found.status == expected
    assert ("by the monotonic clock" in str(found.measured)) == (expected != "pass")
