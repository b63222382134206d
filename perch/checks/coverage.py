"""Was everything measured that was planned, and planned that was asked?"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, design, first
from perch.checks.remedies import for_soak
from perch.model.plan import Plan
from perch.model.verdict import Bound, Check


def idle_hosts(plan: Plan) -> list[str]:
    """Hosts of the plan that no flow uses, in the plan's order."""
    busy = {host for flow in plan.flows() for host in (flow.client, flow.server)}
    return [host for host in plan.hosts if host not in busy]


def planned_records(plan: Plan) -> int:
    return sum(len(flow.expect) for flow in plan.flows())


def _remedy(run: RunView, idle: list[str], *, whole: bool) -> str | None:
    if idle:
        return (
            f"no flow uses {', '.join(idle[:5])}: see what was excluded, correct its "
            "perch_backends and perch_tools, "
            "or take it out of the inventory"
        )
    if whole:
        return None
    missing = "see the findings of the missing flows, and measure again"
    return for_soak(run.soak_state) or missing


@check(
    family="coverage",
    order=10,
    columns=("flow", "status"),
    source=design("coverage is counted in what the plan expects"),
)
def coverage(run: RunView) -> Iterator[Check]:
    planned = planned_records(run.plan)
    ok = pl.col("status") == "ok"
    measured = run.records.filter(ok).height
    missing = sorted(set(run.records.filter(~ok)["flow"]))
    idle = idle_hosts(run.plan)
    whole = measured == planned and planned > 0
    yield Check(
        id="coverage",
        title="Every planned record was measured" + (", on every host" if not idle else ""),
        fault="Hosts were not measured" if idle else "Planned records are missing",
        status="pass" if whole and not idle else "inconclusive",
        measured=measured,
        limit=Bound(planned, planned),
        unit="records",
        evidence=first([*idle, *missing]),
        remedy=_remedy(run, idle, whole=measured == planned),
    )


@check(
    family="excluded",
    order=30,
    source=design("tests that the hosts cannot run are listed"),
)
def excluded(run: RunView) -> Iterator[Check]:
    """Tests that the hosts cannot run; a plan of nothing else proves nothing."""
    tests = sorted({one.test for one in run.plan.excluded if one.nic is None})
    real = any(flow.backend != "null" for flow in run.plan.flows())
    if not tests and real:
        return
    nothing = "" if real else "only the null backend was planned; left out: "
    yield Check(
        id="excluded",
        title="Tests that were left out of the plan",
        fault="No test of the suite was planned",
        status="not_judged" if real else "inconclusive",
        measured=nothing + ", ".join(tests),
        evidence=first(tests),
        remedy=None
        if real
        else "give the hosts the backends and tools that the suite asks for, and plan again",
    )
