"""Nothing carries more than its link can."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, design, first
from perch.checks.figures import rounded_figures
from perch.model.figures import rounded
from perch.model.verdict import EVIDENCE_MAX, Bound, Check

#: Half a percent is granted for the clocks of two hosts (docs/definitions.md).
MOST_PERCENT = 100.5

_SOURCE = design("ceiling of a link: rate x payload / (payload + headers), +0.5 %")
_LINK = design("ceiling of a link")


def _faster_than_the_link(records: pl.DataFrame) -> pl.DataFrame:
    """Latencies in which not even the link's bits could have passed: a message of another size.

    Of a local completion of a write the bits may still be under way. Columns: id, percent.
    """
    arrived = (pl.col("definition") == "half_round_trip") | (pl.col("op") == "read")
    least_us = pl.col("latency_us.min")
    gbit_s = pl.col("params.size_bytes") * 8e-3 / least_us
    percent = rounded_figures(100 * gbit_s / pl.col("possible_gbit_s"))
    is_one = (pl.col("status") == "ok") & (pl.col("kind") == "latency") & arrived & (least_us > 0)
    timed = records.filter(is_one).select("id", percent.alias("percent")).drop_nulls()
    return timed.filter(pl.col("percent") > MOST_PERCENT)


def _unknown(records: pl.DataFrame) -> Iterator[Check]:
    """A card has a rate that can be read; without it an impossible figure stays unseen.

    The sets for hardware have a required share of the ceiling, which is then INCONCLUSIVE.
    """
    is_blind = pl.col("possible_gbit_s").is_null() & (pl.col("scope") == "hardware")
    blind = records.filter(is_blind)["id"].head(EVIDENCE_MAX).to_list()
    if not blind:
        return
    more = " or more" if len(blind) == EVIDENCE_MAX else ""
    yield Check(
        id="ceiling/unknown",
        title="The ceiling of hardware links is known",
        status="not_judged",
        measured=f"{len(blind)}{more} records: neither the tool nor both hosts tell the link's "
        "rate (or its MTU)",
        source=_LINK,
        evidence=blind,
        remedy="see that environment.json of both hosts has rate_gbit_s of the interface (ethtool "
        "shows the speed), and measure again",
    )


@check(
    family="ceiling",
    order=110,
    columns=("id", "scope", "status", "kind", "op", "definition", "link.layer", "params.size_bytes",
             "latency_us.min", "bandwidth.gbit_s", "possible_gbit_s"),
    criterion="possible",
    source=_SOURCE,
)  # fmt: skip
def ceiling(run: RunView) -> Iterator[Check]:
    """Averages above the link's payload ceiling were timed wrongly, or the rate is wrong."""
    figure = pl.col("bandwidth.gbit_s")
    measured = run.records.filter((pl.col("status") == "ok") & figure.is_not_null())
    percent = rounded_figures(100 * figure / pl.col("possible_gbit_s"))
    shares = measured.select("id", percent.alias("percent")).drop_nulls()
    shares = pl.concat([shares, _faster_than_the_link(run.records)])
    title = "No result above line rate"
    if shares.is_empty():
        layers = sorted(set(run.records["link.layer"].fill_null("unknown")))
        yield Check(
            id="ceiling",
            title=title,
            status="not_judged",
            measured=f"no link rate and MTU is known on: {', '.join(layers)}; loopback and shm "
            "have no ceiling",
            source=_LINK,
        )
    else:
        broken = shares.filter(pl.col("percent") > MOST_PERCENT)["id"]
        worst = shares.filter(pl.col("percent") == pl.col("percent").max())
        yield Check(
            id="ceiling",
            title=title,
            fault="Results above line rate",
            status="pass" if broken.is_empty() else "fail",
            measured=rounded(worst["percent"][0]),
            limit=Bound(None, MOST_PERCENT),
            unit="% of the link's payload ceiling",
            evidence=worst["id"].to_list()[:1] if broken.is_empty() else first(broken),
            remedy=None
            if broken.is_empty()
            else "do not use these figures: find what was timed wrongly, or correct the link's "
            "rate and MTU, then measure again",
        )
    yield from _unknown(measured)
