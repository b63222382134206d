"""Does every link run at the rate that was bought?"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from perch.checks import RunView, check, design, first
from perch.model.figures import rounded
from perch.model.verdict import Bound, Check
from perch.plan.bought import CODED

#: A rate is the sum of a transfer's pairs in its sum, which says nothing of one link.
_is_link = (pl.col("kind") != "sum") & pl.col("link.rate_gbit_s").is_not_null()

TITLE = "Every link runs at the rate that was bought"


def _shown(rates: pl.Series) -> str:
    return ", ".join(f"{rounded(rate):g}" for rate in rates.unique().sort())


def _by_device(links: pl.DataFrame) -> Iterator[Check]:
    """Without a file that says what was bought, the devices are compared."""
    yield Check(
        id="expected",
        title=TITLE,
        status="not_judged",
        measured="the inventory does not say what was bought; the devices have "
        f"{_shown(links['link.rate_gbit_s'])} Gb/s",
        evidence=first(links["id"]),
        remedy="set perch_link_gbit_s to the rate of each measured link as it was bought",
    )


@check(
    family="expected",
    order=108,
    columns=(
        "id",
        "kind",
        "scope",
        "link.rate_gbit_s",
        "link.expected_gbit_s",
        "link.links",
    ),
    source=design("floors are shares of what was bought"),
)
def expected(run: RunView) -> Iterator[Check]:
    """A link that came up slower lowers no floor; one that is faster was given too low a floor."""
    links = run.records.filter(_is_link)
    open_links = links.filter(pl.col("link.expected_gbit_s").is_null())
    if not open_links.is_empty():
        yield from _by_device(open_links)
    known = links.filter(pl.col("link.expected_gbit_s").is_not_null())
    if known.is_empty():
        return
    rate, wanted = pl.col("link.rate_gbit_s"), pl.col("link.expected_gbit_s")
    of_bond = pl.col("link.links").fill_null(1)
    slow, fast = known.filter(rate < CODED * wanted), known.filter(rate > wanted * of_bond / CODED)
    hardware = slow["scope"].eq("hardware").any()
    worst = (slow if len(slow) else known).sort(rate / wanted, maintain_order=True)
    yield Check(
        id="expected/rate",
        title=TITLE,
        fault="A link is slower than what was bought",
        status=("fail" if hardware else "advisory") if len(slow) else "pass",
        measured=worst["link.rate_gbit_s"][0],
        limit=Bound(worst["link.expected_gbit_s"][0], None),
        unit="Gb/s",
        evidence=first(slow["id"]) if len(slow) else worst["id"].to_list()[:1],
        remedy="check cable, transceiver and switch port (lanes, error correction), or correct "
        "perch_link_gbit_s"
        if len(slow)
        else None,
    )
    if len(fast):
        yield Check(
            id="expected/faster",
            title="No link is faster than what was bought",
            fault="A link is faster than what was bought, so floors are too low",
            status="inconclusive" if fast["scope"].eq("hardware").any() else "advisory",
            measured=_shown(fast["link.rate_gbit_s"]) + " Gb/s",
            limit=Bound(None, fast["link.expected_gbit_s"].sort()[0]),
            unit="Gb/s",
            evidence=first(fast["id"]),
            remedy="correct perch_link_gbit_s, and measure again",
        )
