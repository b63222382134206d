"""How many bits of each link did forward error correction (FEC) have to correct?

A cable or a transceiver that fails shows here first: until FEC cannot correct any more, no packet
is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from perch.checks import RunView, check, design, first, names, plural
from perch.judge.corrected import NOTHING, Gap, Window, moved, share
from perch.judge.counter_table import CORRECTED_RATIO
from perch.judge.hosts import HostFacts
from perch.judge.trail import IDLE, Mark
from perch.model.verdict import Bound, Check

_SOURCE = "site policy: a 24th of the 2.4e-4 that IEEE Std 802.3 grants PAM4 links"
_TITLE = "Links need little error correction (FEC)"


class Link(NamedTuple):
    """A NIC's link. `ratio`: of all bits those that were corrected; None where it is not known.

    `when`: of the run, or of its worst time between two readings. `flows`: those beside it.
    """

    host: str
    device: str
    ratio: float | None
    when: str
    flows: tuple[str, ...]
    gap: Gap | None


def _whole(name: str, begin: Sequence[Mark], over: Sequence[Mark]) -> Window | None:
    """What an interface corrected between its first and its last reading."""
    early, late = (
        next((one for one in marks if name in one.reading.layout.netdev), None)
        for marks in (begin, over)
    )
    if early is None or late is None or late.time_s <= early.time_s:
        return None
    bits = next(
        (one.bits for one in moved(early.reading, late.reading) if one.device == name), None
    )
    return None if bits is None else Window(bits, late.time_s - early.time_s, "", "")


def _when(earlier: str, later: str) -> str:
    """Between two readings, which lie before and after one flow, or between two."""
    if earlier == later:
        return f"in {later}" if later != IDLE else "while idle"
    return f"between {earlier or 'its idle time'} and {later}"


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
            whole, rate = _whole(name, begin, over), facts.links[name].rate_gbit_s
            worst, gap = run.trail.corrected.get(host, {}).get(name, NOTHING)
            window, when = whole, "in the run"
            if worst is not None and (whole is None or worst.is_worse(whole)):
                window, when = worst, _when(worst.earlier, worst.later)
            ratio = share(window.bits, window.seconds, rate) if window and rate else None
            flows = () if window is None else (window.earlier, window.later)
            yield Link(host, name, ratio, when, tuple(filter(None, dict.fromkeys(flows))), gap)


def _worst(links: Sequence[Link]) -> str:
    one = max(links, key=lambda link: link.ratio or 0)
    return f"{one.ratio:.1e} of all bits were corrected, at most, on {one.host}, {one.device}"


def _uncounted(links: Sequence[Link]) -> Iterator[Check]:
    """Links of which some reading tells a count, and the next one none."""
    gaps = [(one, one.gap) for one in links if one.gap is not None]
    if gaps:
        one, gap = gaps[0]
        more = f", and {plural(len(gaps) - 1, 'more link')}" if len(gaps) > 1 else ""
        yield Check(
            id="fec/readings",
            title="Readings of corrected bits (FEC) continue from the reading before",
            fault="Readings of corrected bits (FEC) do not continue from the reading before",
            status="inconclusive",
            measured=f"{one.host}: {one.device} {gap.counter} went back, is full or was not read, "
            f"{_when(gap.earlier, gap.later)}{more}",
            source=design("counters are differences of two readings"),
            evidence=first(dict.fromkeys(link.host for link, _ in gaps)),
            remedy="clear no counters, and reload no driver, during a run; see that the agent can "
            "run ethtool -S each time; then measure again",
        )


@check(family="fec", order=202, criterion="counters", source=_SOURCE)
def fec(run: RunView) -> Iterator[Check]:
    """Each link whose card counts what it corrects: all of the run, and its worst time."""
    links = sorted(_links(run))
    known = [one for one in links if one.ratio is not None]
    bad = [one for one in known if one.ratio is not None and one.ratio > CORRECTED_RATIO]
    for one in bad:
        yield Check(
            id=f"fec/{one.host}/{one.device}",
            title=_TITLE,
            fault="A link needs much error correction (FEC)",
            status="fail",
            measured=f"{one.ratio:.1e} of all bits were corrected {one.when}",
            limit=Bound(None, CORRECTED_RATIO),
            unit="of all bits",
            evidence=[one.host, *one.flows],
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
    yield from _uncounted(links)
    unknown = [one for one in links if one.ratio is None and one.gap is None]
    if unknown:
        yield Check(
            id="fec/not_counted",
            title=_TITLE,
            status="not_judged",
            measured="no count of corrected bits, or no rate: "
            + names([f"{one.host} ({one.device})" for one in unknown], 3),
            evidence=first(one.host for one in unknown),
        )
