"""Did the flows of each host follow one another, as the rounds of the plan do?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from perch.checks import RunView, check, design, first
from perch.model.moments import CLOSE_S
from perch.model.plan import Plan
from perch.model.record import ROLES
from perch.model.verdict import Bound, Check


class _Clock(NamedTuple):
    """What tells when a host was busy. `ticks`: of a second; `granted`: so many of them.

    `suffix`: of its columns. `of`: what has one such clock; flows are repeated by another agent,
    maybe after a boot.
    """

    name: str
    suffix: str
    ticks: float
    granted: float
    of: list[str]


#: The wall may have been set by CLOSE_S meanwhile; the other one cannot be set.
_CLOCKS = (
    _Clock("the wall clock", "", 1, CLOSE_S, ["host"]),
    _Clock("the monotonic clock", "_ns", 1e9, 0, ["host", "retry"]),
)


def _planned(plan: Plan) -> pl.DataFrame:
    """The round and the two hosts of each flow, in the plan's order; repeats come last."""
    return pl.DataFrame(
        [
            (number, flow.client, flow.server, flow.retry)
            for number, turn in enumerate(plan.rounds)
            for flow in turn.flows
        ],
        schema={
            "round": pl.Int64, "client": pl.String, "server": pl.String, "retry": pl.Boolean,
        },
        orient="row",
    )  # fmt: skip


def _at_hosts(flows: pl.DataFrame, suffix: str) -> pl.DataFrame:
    """When a host was busy with a round: host, round, flow, begin, end, in the order of rounds."""
    ends = [
        flows.select(
            "round",
            "retry",
            "flow",
            host=role,
            begin=f"{role}_begin{suffix}",
            end=f"{role}_end{suffix}",
        ).drop_nulls()
        for role in ROLES
    ]
    return (
        pl.concat(ends)
        .group_by("host", "round", "retry")
        .agg(
            pl.col("flow").sort_by("begin", "flow").first(),
            pl.col("begin").min(),
            pl.col("end").max(),
        )
        .sort("host", "round")
    )


def _early(busy: pl.DataFrame, clock: _Clock) -> pl.DataFrame:
    """The rounds of hosts that began before an earlier one had ended."""
    return busy.with_columns(
        before=pl.col("end").cum_max().shift().over(clock.of),
        other=pl.col("flow").shift().over(clock.of),
    ).filter(pl.col("begin") < pl.col("before") - clock.granted)


@check(
    family="turns",
    order=96,
    criterion="evidence",
    source=design("flows of one round run at the same time; a host walks its rounds in turn"),
)
def turns(run: RunView) -> Iterator[Check]:
    """No flow of a host begins before its flows of the rounds before have ended, by both clocks.

    Keepers of a soak begin and end by themselves.
    """
    if run.plan.soak is not None or run.seen.is_empty():
        return
    flows = pl.concat([run.seen, _planned(run.plan)], how="horizontal")
    finding = Check(
        id="turns",
        title="Each host ran its rounds one after another",
        fault="Rounds of a host overlapped",
        status="pass",
        measured=0,
        limit=Bound(None, 0),
        unit=f"of {_at_hosts(flows, '').height} rounds of hosts began before an earlier one had "
        "ended",
    )
    for clock in _CLOCKS:
        early = _early(_at_hosts(flows, clock.suffix), clock)
        if early.height:
            _tell(finding, early, clock)
            break
    yield finding


def _tell(finding: Check, early: pl.DataFrame, clock: _Clock) -> None:
    worst = early.row(0, named=True)
    seconds = round((worst["before"] - worst["begin"]) / clock.ticks, 3)
    finding.status = "inconclusive"
    finding.measured = (
        f"on {worst['host']} {worst['flow']} began {seconds} s before {worst['other']} ended"
        f" by {clock.name}"
    )
    finding.unit = None
    finding.evidence = first(early["flow"].unique(maintain_order=True))
    finding.remedy = (
        "these outputs are not of one walk over the plan: remove raw/ and measure again"
    )
