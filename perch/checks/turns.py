"""Did the flows of each host follow one another, as the rounds of the plan do?"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, design, first
from perch.model.moments import CLOSE_S
from perch.model.plan import Plan
from perch.model.record import ROLES
from perch.model.verdict import Bound, Check


def _planned(plan: Plan) -> pl.DataFrame:
    """The round and the two hosts of each flow, in the plan's order; repeats come last."""
    return pl.DataFrame(
        [
            (number, flow.client, flow.server)
            for number, turn in enumerate(plan.rounds)
            for flow in turn.flows
        ],
        schema={"round": pl.Int64, "client": pl.String, "server": pl.String},
        orient="row",
    )


def _at_hosts(run: RunView) -> pl.DataFrame:
    """When a host was busy with a round: host, round, flow, begin, end, in the order of rounds."""
    flows = pl.concat([run.seen, _planned(run.plan)], how="horizontal")
    ends = [
        flows.select(
            "round", "flow", host=role, begin=f"{role}_begin", end=f"{role}_end"
        ).drop_nulls()
        for role in ROLES
    ]
    return (
        pl.concat(ends)
        .group_by("host", "round")
        .agg(
            pl.col("flow").sort_by("begin", "flow").first(),
            pl.col("begin").min(),
            pl.col("end").max(),
        )
        .sort("host", "round")
    )


@check(
    family="turns",
    order=96,
    criterion="evidence",
    source=design("flows of one round run at the same time; a host walks its rounds in turn"),
)
def turns(run: RunView) -> Iterator[Check]:
    """No flow of a host begins before its flows of the rounds before have ended.

    The times are of one clock, which may have been set by CLOSE_S meanwhile. Keepers of a soak
    begin and end by themselves.
    """
    if run.plan.soak is not None or run.seen.is_empty():
        return
    busy = _at_hosts(run).with_columns(
        before=pl.col("end").cum_max().shift().over("host"),
        other=pl.col("flow").shift().over("host"),
    )
    early = busy.filter(pl.col("begin") < pl.col("before") - CLOSE_S)
    finding = Check(
        id="turns",
        title="Each host ran its rounds one after another",
        fault="Rounds of a host overlapped",
        status="inconclusive" if early.height else "pass",
        measured=0,
        limit=Bound(None, 0),
        unit=f"of {busy.height} rounds of hosts began before an earlier one had ended",
    )
    if early.height:
        worst = early.row(0, named=True)
        seconds = round(worst["before"] - worst["begin"], 3)
        finding.measured = (
            f"on {worst['host']} {worst['flow']} began {seconds} s before {worst['other']} ended"
        )
        finding.unit = None
        finding.evidence = first(early["flow"].unique(maintain_order=True))
        finding.remedy = (
            "these outputs are not of one walk over the plan: remove raw/ and measure again"
        )
    yield finding
