"""How many bits of each link did forward error correction (FEC) have to correct?

A cable or a transceiver that fails shows here first: until FEC cannot correct any more, no packet
is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perch.checks import RunView, check, first, names
from perch.judge.counter_table import CORRECTED_BITS, CORRECTED_RATIO
from perch.judge.counters import difference
from perch.judge.hosts import HostFacts
from perch.judge.trail import Mark
from perch.model.verdict import Bound, Check

_SOURCE = "site policy: a 24th of the 2.4e-4 that IEEE Std 802.3 grants PAM4 links"
_TITLE = "Links need little error correction (FEC)"


class Link(NamedTuple):
    """A NIC's link. `ratio`: of all bits those that were corrected; None where it is not known."""

    host: str
    device: str
    ratio: float | None


def _corrected(name: str, begin: Sequence[Mark], over: Sequence[Mark]) -> tuple[int, float] | None:
    """Bits that an interface corrected between its first and its last reading, and the seconds."""
    early, late = (
        next((one for one in marks if name in one.reading.layout.netdev), None)
        for marks in (begin, over)
    )
    if early is None or late is None:
        return None
    before, after = (one.reading.table(one.reading.layout.netdev[name]) for one in (early, late))
    for counter in CORRECTED_BITS:
        if counter in before and counter in after:
            bits = difference(counter, before[counter], after[counter])
            seconds = late.time_s - early.time_s
            return None if bits is None or seconds <= 0 else (bits, seconds)
    return None


def _links(run: RunView) -> Iterator[Link]:
    """The interfaces beside what carried flows over hardware."""
    for host, devices in run.trail.hardware.items():
        facts = run.hosts.get(host) or HostFacts()
        begin, over = run.trail.first.get(host, []), run.trail.last.get(host, [])
        for name, hardware in sorted(devices.items()):
            if not hardware or name not in facts.links:
                continue
            if not any(name in mark.reading.layout.netdev for mark in begin):
                continue
            found, rate = _corrected(name, begin, over), facts.links[name].rate_gbit_s
            ratio = found[0] / (rate * 1e9 * found[1]) if found and rate else None
            yield Link(host, name, ratio)


def _worst(links: Sequence[Link]) -> str:
    one = max(links, key=lambda link: link.ratio or 0)
    return f"{one.ratio:.1e} of all bits were corrected, at most, on {one.host}, {one.device}"


@check(family="fec", order=202, criterion="counters", source=_SOURCE)
def fec(run: RunView) -> Iterator[Check]:
    """Each link whose card counts what it corrects, from the first reading to the last one."""
    links = sorted(_links(run))
    known = [one for one in links if one.ratio is not None]
    bad = [one for one in known if one.ratio is not None and one.ratio > CORRECTED_RATIO]
    for one in bad:
        yield Check(
            id=f"fec/{one.host}/{one.device}",
            title=_TITLE,
            fault="A link needs much error correction (FEC)",
            status="fail",
            measured=f"{one.ratio:.1e} of all bits were corrected",
            limit=Bound(None, CORRECTED_RATIO),
            unit="of all bits",
            evidence=[one.host],
            remedy="clean or replace cable and transceiver of this port on both ends (mlxlink -m, "
            "ethtool -m); measure again",
        )
    if known and not bad:
        yield Check(
            id="fec",
            title=_TITLE,
            status="pass",
            measured=_worst(known),
            limit=Bound(None, CORRECTED_RATIO),
            unit="of all bits",
        )
    unknown = [f"{one.host} ({one.device})" for one in links if one.ratio is None]
    if unknown:
        yield Check(
            id="fec/not_counted",
            title=_TITLE,
            status="not_judged",
            measured=f"no count of corrected bits, or no rate: {names(unknown, 3)}",
            evidence=first(one.host for one in links if one.ratio is None),
        )
