"""The clocks of a flow's two ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from perch.checks import RunView, check, first
from perch.model.figures import rounded
from perch.model.moments import CLOSE_S, LOST_S
from perch.model.verdict import Bound, Check, CheckStatus


def _status(seconds: float) -> CheckStatus:
    if seconds > LOST_S:
        return "inconclusive"
    return "advisory" if seconds > CLOSE_S else "pass"


class Skew(NamedTuple):
    """Of a pair of hosts the flow whose clocks differ the most; above 0 the server is ahead."""

    client: str
    server: str
    flow: str
    skew_s: float

    @property
    def seconds(self) -> int | float:
        return rounded(abs(self.skew_s))


def _worst_of_pairs(records: pl.DataFrame) -> list[Skew]:
    """By pair, in the order of the records."""
    skew = pl.col("clock_skew_s")
    of_worst = pl.col("flow", "clock_skew_s").filter(skew.abs() == skew.abs().max()).first()
    pairs = (
        records.filter(skew != 0)
        .group_by("client.host", "server.host", maintain_order=True)
        .agg(of_worst)
    )
    return [Skew(*row) for row in pairs.iter_rows()]


@check(
    family="clock",
    order=210,
    columns=("flow", "client.host", "server.host", "clock_skew_s"),
    criterion="evidence",
    source="site policy, as of the hosts' clocks; beyond 300 s nothing shows that the files are of "
    "this run",
)
def clock(run: RunView) -> Iterator[Check]:
    """The server cannot begin after its client nor end before it."""
    finding = Check(
        id="clock/ends",
        title="The clocks of a flow's ends agree",
        fault="The clocks of client and server differ",
        status="not_judged",
        measured="no flow's ends gave their times",
        limit=Bound(None, CLOSE_S),
        unit="s",
    )
    if run.records["clock_skew_s"].count():
        pairs = _worst_of_pairs(run.records)
        worst = max(reversed(pairs), key=lambda pair: pair.seconds, default=None)
        most = worst.seconds if worst else 0
        finding.status = _status(most)
        finding.measured = most
        if worst and most > CLOSE_S:
            side = "ahead of" if worst.skew_s > 0 else "behind"
            finding.measured = (
                f"{worst.server} is {most} s {side} {worst.client}, or one of them was set "
                "meanwhile"
            )
            finding.evidence = first(pair.flow for pair in pairs if pair.seconds > CLOSE_S)
            finding.remedy = (
                "have one time server keep both hosts (systemctl enable --now chronyd), and "
                "measure again"
            )
    yield finding
