"""Did an end of a flow complain, although its client exited 0?"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, design, first, plural
from perch.model.verdict import Check


@check(
    family="said",
    order=98,
    criterion="evidence",
    source=design("words of a tool on standard error, and of its agent, are shown"),
)
def said(run: RunView) -> Iterator[Check]:
    """Words that are of no measurement that went well; its figures count all the same."""
    if run.seen.is_empty():
        return
    found = run.seen.filter(pl.col("said").is_not_null())
    if found.is_empty():
        return
    words = found.row(0, named=True)
    yield Check(
        id="said",
        title="Flows whose client exited 0 left no complaint",
        fault="Flows whose client exited 0 left complaints",
        status="advisory",
        measured=f"{plural(found.height, 'flow')}, such as {words['flow']}: {words['said']}",
        evidence=first(found["flow"]),
        remedy="read stderr and message of both ends: their figures may be of a measurement that "
        "did not go as planned",
    )
