"""What the devices of the flows counted between them, by class (docs/definitions.md).

The time between two flows of a host is judged as that of a flow is: a link that goes down there is
as bad. Counters that went back, or are missing, tell nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from perch.checks import RunView, check, design, first, names, plural
from perch.checks.counters import CLASSES, RARE_PPM
from perch.judge.trail import IDLE, Step
from perch.model.figures import rounded
from perch.model.verdict import Bound, Check, CheckStatus

_SCHEMA = {
    "host": pl.String(), "device": pl.String(), "earlier": pl.String(), "later": pl.String(),
    "seconds": pl.Float64(), "kind": pl.String(), "counter": pl.String(), "moved": pl.Float64(),
    "packets": pl.Float64(), "why": pl.String(),
}  # fmt: skip
assert tuple(_SCHEMA) == Step._fields


def _steps(run: RunView) -> pl.DataFrame:
    """The steps of devices that carried a flow, and whether one of these was of hardware.

    bad: more moved than is healthy.
    """
    carried = pl.DataFrame(
        [
            (host, device, hardware)
            for host, devices in run.trail.hardware.items()
            for device, hardware in devices.items()
        ],
        schema={"host": pl.String(), "device": pl.String(), "hardware": pl.Boolean()},
        orient="row",
    )
    rare = [name for name, about in CLASSES.items() if about.rare]
    ppm = pl.when(pl.col("packets") > 0).then(pl.col("moved") / (pl.col("packets") / 1e6))
    healthy = pl.col("kind").is_in(rare) & (ppm <= RARE_PPM).fill_null(value=False)
    return (
        pl.DataFrame(run.trail.steps, schema=_SCHEMA, orient="row")
        .join(carried, on=["host", "device"], how="inner", maintain_order="left")
        .with_columns(bad=pl.col("moved").is_not_null() & ~healthy)
    )


def _when(step: dict[str, Any]) -> str:
    """Both flows and the seconds between them."""
    seconds = f"{rounded(round(step['seconds'], 3))} s"
    if step["later"] == IDLE:
        return f"in the {seconds} of its idle time"
    earlier = "its idle time" if step["earlier"] == IDLE else step["earlier"]
    return f"in the {seconds} between {earlier} and {step['later']}"


def _evidence(steps: pl.DataFrame) -> list[str]:
    flows = pl.concat([steps["earlier"], steps["later"]]).unique(maintain_order=True)
    return first(flow for flow in flows if flow != IDLE)


def _moved(name: str, steps: pl.DataFrame) -> Check:
    """What a class counted, with the most that one counter moved by; hardware speaks first."""
    about = CLASSES[name]
    hard = steps.filter("hardware")
    spoken = steps if hard.is_empty() else hard
    worst = spoken.sort("moved", descending=True, maintain_order=True).row(0, named=True)
    intervals = spoken.select("host", "earlier", "later").n_unique()
    status: CheckStatus = "advisory" if hard.is_empty() or about.shown else "fail"
    total = float(spoken["moved"].sum())
    return Check(
        id=f"between/{name}",
        title=f"Between the flows: {about.title}",
        fault=f"Between the flows: {about.fault}",
        status=status,
        measured=f"{rounded(total)} in {plural(intervals, 'interval')}, the most "
        f"{rounded(worst['moved'])} of {worst['counter']} on {worst['host']}, {worst['device']}, "
        f"{_when(worst)}",
        limit=Bound(None, RARE_PPM if about.rare else 0),
        unit="in a million packets" if about.rare else "events",
        source=about.source,
        evidence=_evidence(steps),
        remedy=about.remedy,
    )


def _untold(steps: pl.DataFrame, intervals: int) -> Check:
    """Whether each reading goes on from the one before it."""
    finding = Check(
        id="between/readings",
        title="Counter readings continue from the reading before",
        fault="Counter readings do not continue from the reading before",
        status="pass",
        measured=intervals,
        unit="intervals between two readings of a device",
        source=design("counters are differences of two readings"),
    )
    if not steps.is_empty():
        one = steps.row(0, named=True)
        counter = one["counter"] or "its counters"
        hosts = steps["host"].unique(maintain_order=True).to_list()
        finding.status = "inconclusive"
        finding.measured = (
            f"{one['host']}: {one['device']} {counter} {one['why']}, {_when(one)}; "
            f"{plural(steps.height, 'counter')} of {names(hosts, 4)}"
        )
        finding.unit = None
        finding.evidence = _evidence(steps)
        finding.remedy = (
            "clear no counters, and reload no driver, during a run; see that the agent can read "
            "all counters each time; then measure again"
        )
    return finding


@check(family="between", order=201, criterion="counters")
def between(run: RunView) -> Iterator[Check]:
    """Each class of counters between the flows, and readings that do not follow each other."""
    if not run.trail.intervals:
        return
    steps = _steps(run)
    found = steps.filter("bad").group_by("kind", maintain_order=True)
    bad = {str(name): group for (name,), group in found}
    yield from (_moved(name, bad[name]) for name in CLASSES if name in bad)
    if not bad:
        yield Check(
            id="between",
            title="Between the flows, no device counted an error",
            status="pass",
            measured=0,
            limit=Bound(None, 0),
            unit="events",
            source=design("counters of both ends"),
        )
    yield _untold(steps.filter(pl.col("moved").is_null()), run.trail.intervals)
