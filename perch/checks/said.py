"""Did a tool say anything on standard error, although it exited 0?"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, design, first, plural
from perch.model.verdict import Check


@check(
    family="said",
    order=98,
    criterion="evidence",
    source=design("words of a tool on standard error are shown"),
)
def said(run: RunView) -> Iterator[Check]:
    """Words that no tool says of a measurement that went well; their figures count all the same."""
    if run.seen.is_empty():
        return
    found = run.seen.filter(pl.col("said").is_not_null())
    if found.is_empty():
        return
    words = found.row(0, named=True)
    yield Check(
        id="said",
        title="Tools that exited 0 wrote nothing to standard error",
        fault="Tools that exited 0 wrote to standard error",
        status="advisory",
        measured=f"{plural(found.height, 'flow')}, such as {words['flow']}: {words['said']}",
        evidence=first(found["flow"]),
        remedy="read the client's stderr of these flows: their figures may be of a measurement "
        "that did not go as planned",
    )
