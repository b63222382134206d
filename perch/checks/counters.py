"""What the devices of the flows counted beside the payload, by class (docs/definitions.md).

A network that is well drops nothing, repeats next to nothing and stays up; pauses and congestion
marks are how it shares, and shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import polars as pl

from perch.checks import RunView, check, design, first, names, plural
from perch.checks.counters_alike import PATH, alike
from perch.checks.figures import rounded_figures
from perch.model.figures import rounded
from perch.model.plan import tolerated
from perch.model.record import Events
from perch.model.verdict import EVIDENCE_MAX, Bound, Check, CheckStatus

#: Of a million packets one that is sent again or out of order is what bit errors leave on a healthy
#: network: thirty times the 0.033 of a million packets of 4,178 bytes that a bit error ratio of
#: 1e-12 damages (IEEE Std 802.3).
RARE_PPM = 1

#: Of a link's bits after error correction so many are wrong on a healthy one (IEEE Std 802.3ck,
#: 802.3df: a frame loss ratio that is that of 1e-15 and less; InfiniBand HDR and later alike). Of
#: 400 Gb/s that is one in 42 minutes, and 35 a day.
ERROR_RATIO = 1e-15

#: What each device of a hardware flow must count, or nothing is known of the way. Not every driver
#: knows the others.
OWED = ("drops", "errors", "retransmissions", "link")

_SITE = "site policy: shown, as it explains other findings"
_HEALTHY = "IEEE 802.3, PCI Express: a healthy link has next to none within a run"
_TRAITS = "the inventory: perch_fabric_traits says that this fabric does so on purpose"
_RARE = "arithmetic: thirty times what a bit error ratio of 1e-12 damages (IEEE Std 802.3)"


class Class(NamedTuple):
    """A class of counters. `shown`: it explains other findings, and fails nothing."""

    title: str
    fault: str
    source: str
    remedy: str
    shown: bool = False
    rare: bool = False


#: Pauses and marks are how a network shares; a drop in the host's stack may be foreign traffic;
#: a corrected error did no harm.
CLASSES: dict[str, Class] = {
    "drops": Class(
        "No device dropped a packet",
        "Devices dropped packets",
        "site policy: lossless means no drop",
        "give the lossless class buffer on this device and on every switch of the way (PFC, ECN), "
        "and see that the receiver keeps up",
    ),
    "errors": Class(
        "No device saw a damaged packet",
        "Devices counted damaged packets or failed requests",
        _HEALTHY,
        "clean or replace cable and transceiver of this port on both ends; measure again. If "
        "requests failed (cqe, access, length), find the program on this device that sent them",
    ),
    "retransmissions": Class(
        "RDMA retransmissions are rare",
        "RDMA retransmitted too much",
        _RARE,
        "look for drops on hosts and switches of the way (ethtool -S, rdma statistic show), and "
        "for hosts that are too busy to answer",
        rare=True,
    ),
    "out-of-sequence": Class(
        "Packets arrived in order",
        "Too many packets arrived out of order",
        _RARE,
        "look for drops on the way, and for switches that spread one connection's packets over "
        "several paths",
        rare=True,
    ),
    "link": Class(
        "No link went down",
        "Links went down",
        _HEALTHY,
        "see the kernel's log of that time; replace cable and transceiver, and see what the switch "
        "says of the port",
    ),
    "pcie": Class(
        "No PCIe error",
        "PCIe errors occurred",
        _HEALTHY,
        "see dmesg for AER; reseat the card, try another slot, and compare the link's width and "
        "speed with the card's",
    ),
    "pause": Class(
        "Pauses for flow control",
        "Flow control paused traffic",
        _SITE,
        "find who pauses whom: a receiver that is slow (PCIe, memory) or a switch that is full; a "
        "little is no fault",
        shown=True,
    ),
    "congestion": Class(
        "Congestion marks and notices",
        "Congestion was marked",
        _SITE,
        "look for another sender into the same port; between two hosts alone, the ECN limits "
        "mark too early",
        shown=True,
    ),
    "host-drops": Class(
        "Receive drops (no buffer or listener)",
        "Receive drops (no buffer or listener)",
        _SITE,
        "see what arrives there beside the measurement (LLDP, VLANs that are not set up): tcpdump, "
        "nstat",
        shown=True,
    ),
    "pcie-corrected": Class(
        "PCIe errors that were corrected",
        "PCIe errors were corrected",
        _SITE,
        "see dmesg for AER; a correctable error now and then becomes a fatal one: reseat the card",
        shown=True,
    ),
}

#: What a verdict needs: a path's proof, and each class that is not merely shown.
_DECISIVE = frozenset((PATH, *(name for name, one in CLASSES.items() if not one.shown)))

_COLUMNS = (
    "flow", "scope", "status", "elapsed_s", "link.rate_gbit_s", "packets.sent",
    "events.stale", "events.reset",
    *(f"events.{kind}.{name}" for kind in ("counts", "moved") for name in CLASSES),
)  # fmt: skip


def _is_reset(name: str) -> pl.Expr:
    return pl.col("events.reset").list.contains(name).fill_null(value=False)


# ---- which flows counted what --------------------------------------------------------------------


class Counted(NamedTuple):
    """Flows of one scope whose ends both count these classes."""

    scope: str
    classes: frozenset[str]
    flows: int
    evidence: list[str]


def counted(records: pl.DataFrame) -> list[Counted]:
    """Flows by scope and by what was counted of them, in their order.

    Every size of a flow carries the flow's counters, so it counts once.
    """
    counts = [pl.col(f"events.counts.{name}").is_not_null() | _is_reset(name) for name in CLASSES]
    bits = pl.sum_horizontal(one.cast(pl.Int64) * 2**place for place, one in enumerate(counts))
    flows = records.select("scope", bits.alias("bits"), "flow").unique(maintain_order=True)
    by_kind = flows.group_by("scope", "bits", maintain_order=True).agg(
        pl.len(), pl.col("flow").head(EVIDENCE_MAX)
    )
    return [
        Counted(
            scope,
            frozenset(name for place, name in enumerate(CLASSES) if bits >> place & 1),
            flows,
            evidence,
        )
        for scope, bits, flows, evidence in by_kind.iter_rows()
    ]


# ---- a class that moved --------------------------------------------------------------------------


class Moved(msgspec.Struct, frozen=True):
    """What a class counted in the flows of one scope.

    `worst`: of one flow, in a million packets where `in_packets`, else events. `at`: where.
    `bad`: flows with more than is healthy.
    """

    scope: str
    flows: int
    bad: int
    total: float | None
    worst: float | None
    in_packets: bool
    at: str
    evidence: list[str]


def _errors_allowed() -> pl.Expr:
    """Whole errors that a healthy link may have in a flow's time; 0 where that is not known."""
    bits = pl.col("link.rate_gbit_s") * 1e9 * pl.col("elapsed_s")
    return (bits * ERROR_RATIO).floor().fill_null(0)


def moved(records: pl.DataFrame, name: str, *, reset: bool = False) -> list[Moved]:
    """By scope the flows in which this class moved, or in which it was reset."""
    if records[f"events.moved.{name}"].null_count() == records.height:
        return []
    n, at = pl.col(f"events.counts.{name}"), pl.col(f"events.moved.{name}")
    sent = pl.col("packets.sent") if CLASSES[name].rare else pl.lit(None, dtype=pl.Float64)
    allowed = _errors_allowed() if name == "errors" else pl.lit(0)
    ppm = pl.when(sent > 0).then(rounded_figures(n / (sent / 1e6)))
    flows = (
        records.lazy()
        .filter(at.is_not_null() & (_is_reset(name) == reset))
        .select(
            "scope",
            "flow",
            n.alias("n"),
            at.alias("at"),
            ppm.alias("ppm"),
            allowed.alias("allowed"),
        )
        .unique(["scope", "flow"], keep="first", maintain_order=True)
        .with_columns(worst=pl.coalesce("ppm", "n"))
    )
    worst = pl.col("worst")
    is_worst = (worst == worst.max()).fill_null(value=reset)
    by_scope = flows.group_by("scope", maintain_order=True).agg(
        pl.len().alias("flows"),
        (
            (pl.col("ppm").fill_null(RARE_PPM + 1) > RARE_PPM)
            & (pl.col("n") > pl.col("allowed")).fill_null(value=True)
        )
        .sum()
        .alias("bad"),
        pl.col("n").sum().alias("total"),
        worst.max(),
        pl.col("ppm").is_not_null().any().alias("in_packets"),
        pl.col("at").filter(is_worst).first(),
        pl.col("flow").head(EVIDENCE_MAX).alias("evidence"),
    )
    return msgspec.convert(by_scope.collect().to_dicts(), list[Moved])


def _gravest(groups: Sequence[Moved]) -> Moved | None:
    """The one with the worst flow; of several the last."""
    return max(reversed(groups), key=lambda group: group.worst or 0, default=None)


def _said(worst: Moved | None) -> str | int:
    if worst is None:
        return 0
    total = f"{rounded(worst.total or 0)} in {plural(worst.flows, 'flow')}, {worst.at}"
    if not worst.in_packets or worst.worst is None:
        return total
    most = f"{worst.worst:,.0f}" if worst.worst >= 100 else f"{worst.worst:.3g}"
    return f"{total}; in the worst flow {most} per million packets"


def _class_check(name: str, groups: list[Moved], *, tolerated: bool) -> Check:
    about = CLASSES[name]
    bad = [group for group in groups if group.bad]
    hard = [group for group in bad if group.scope == "hardware"]
    status: CheckStatus = "pass"
    if bad:
        status = "fail" if hard and not about.shown and not tolerated else "advisory"
    return Check(
        id=f"counters/{name}",
        title=about.title,
        fault=about.fault,
        status=status,
        measured=_said(_gravest(hard or bad or groups)),
        limit=Bound(None, RARE_PPM if about.rare else 0),
        unit="in a million packets" if about.rare else "events",
        source=_TRAITS if tolerated else about.source,
        evidence=first(flow for group in bad for flow in group.evidence),
        remedy=about.remedy if bad else None,
    )


def _classes(records: pl.DataFrame, known: list[Counted], tolerated: set[str]) -> Iterator[Check]:
    """Each class; those without a counter are named in one check."""
    uncounted = []
    for name in CLASSES:
        groups = moved(records, name)
        if any(group.bad for group in groups) or any(name in one.classes for one in known):
            yield _class_check(name, groups, tolerated=name in tolerated)
        else:
            uncounted.append(name)
    if uncounted:
        yield Check(
            id="counters/not_counted",
            title="Errors without a counter on these devices",
            status="not_judged",
            measured=", ".join(uncounted),
            source=design("a check that cannot apply is not judged, and shown"),
        )


# ---- counters that prove nothing -----------------------------------------------------------------


def _reset(records: pl.DataFrame) -> Iterator[Check]:
    found = [(name, one) for name in CLASSES for one in moved(records, name, reset=True)]
    if found:
        yield Check(
            id="counters/reset",
            title="No counter was reset or lost during a flow",
            fault="Counters were reset or lost during a flow",
            status="inconclusive",
            measured=names([f"{name}: {one.at}" for name, one in found], 4),
            source=design("counters are differences over a flow"),
            evidence=first(sorted({flow for _, one in found for flow in one.evidence})),
            remedy="clear no counters during a run, and those that are full before it (perfquery "
            "-R, or the driver); see that the agent can read them each time; then measure again",
        )


def _missing(records: pl.DataFrame) -> Iterator[Check]:
    """A flow that did not measure says nothing of what a device counts."""
    known = counted(records.filter(pl.col("status") == "ok"))
    blind = [one for one in known if one.scope == "hardware" and not one.classes.issuperset(OWED)]
    if blind:
        flows = sum(one.flows for one in blind)
        without = sorted({name for one in blind for name in OWED if name not in one.classes})
        yield Check(
            id="counters/missing",
            title="Devices have error counters",
            fault="Devices have no error counters",
            status="inconclusive",
            measured=f"{plural(flows, 'flow')} on hardware whose devices count no "
            f"{names(without, 4)}",
            limit=Bound(None, 0),
            unit="flows",
            source=design("never a PASS by omission"),
            evidence=first(flow for one in blind for flow in one.evidence),
            remedy="see that the agents can read /sys/class/infiniband/*/ports/*/{counters,"
            "hw_counters} and /sys/class/net/*/statistics on both hosts",
        )


def _still(records: pl.DataFrame, known: list[Counted]) -> Iterator[Check]:
    stale = (
        records.filter(pl.col("events.stale").is_not_null())
        .select("flow", "events.stale")
        .unique("flow", keep="first", maintain_order=True)
    )
    flows = sum(one.flows for one in known if one.classes)
    finding = Check(
        id="counters/still",
        title="Counters move with the traffic",
        fault="Counters did not move with the traffic",
        status="pass",
        source="arithmetic: no byte goes without a packet",
    )
    if not stale.is_empty():
        finding.status = "inconclusive"
        more = f", and {stale.height - 1} more" if stale.height > 1 else ""
        finding.measured = stale["events.stale"][0] + more
        finding.evidence = first(stale["flow"])
        finding.remedy = (
            "do not trust this device's counters: read them by hand beside a transfer (ip -s link, "
            "perfquery), and update its driver"
        )
        yield finding
    elif flows:
        finding.measured = flows
        finding.unit = "flows"
        yield finding


@check(family="counters", order=200, columns=_COLUMNS, criterion="counters")
def counters(run: RunView) -> Iterator[Check]:
    """Each class of counters, and counters that went backwards, stand still or are missing."""
    known = counted(run.records)
    yield from _classes(run.records, known, tolerated(run.plan.hosts.values()))
    yield from _reset(run.records)
    yield from _missing(run.records)
    yield from alike(run, _DECISIVE)
    yield from _still(run.records, known)


assert tuple(CLASSES) == Events.CLASSES
