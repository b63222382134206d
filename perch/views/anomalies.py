"""What was out of the ordinary, with its time, flow and evidence.

Of the records: stalls, bad intervals, lost peers, corrupted payloads, single late messages. Of the
verdict: checks that tell of something that happened.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import polars as pl

from perch.model.moments import moment
from perch.model.verdict import Check
from perch.views import words
from perch.views.details import DIP, Dip
from perch.views.table import Table, capped, left
from perch.views.words import figure

#: One transport timeout at the default exponent of 14, 4.096 us x 2^14: what stalls for longer has
#: lost a packet and waited for it (InfiniBand Architecture Specification 1.7, section
#: 9.9.2.1.1; limits/roce.yml judges by the same).
STALL_S = 0.067
#: A single message that took so many medians, the rarest of which a mean still shows. Source: site
#: policy.
SPIKE = 100

ROWS_MAX = 60
_KINDS = ("error", "stall", "interval", "check", "spike")


class Anomaly(msgspec.Struct):
    """`when`: UTC, where it is known. `flow`: its record's, or `evidence` says where it shows."""

    kind: str
    what: str
    when: str | None = None
    where: str | None = None
    flow: str = ""
    evidence: str = ""
    phase: str = "not known"


def later(started: str | None, seconds: float | None) -> str | None:
    """That much after a time such as 2026-11-21T14:08:06.381Z, in whole seconds."""
    begun = moment(started)
    if begun is None:
        return None
    try:
        at = datetime.fromtimestamp(int(begun) + int(seconds or 0), UTC)
    except (ValueError, OverflowError):
        return None
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- of the records ------------------------------------------------------------------------------


def _place(flow: str, size: int | None) -> str:
    return flow if size is None else f"{flow}#{size}"


def _stalls(records: pl.DataFrame) -> Iterator[Anomaly]:
    found = records.filter(pl.col("stall.longest_s") >= STALL_S).select(
        "flow", "params.size_bytes", "started", "stall.longest_s", "stall.start_s", "stall.began"
    )
    for flow, size, started, longest, start, began in found.iter_rows():
        yield Anomaly(
            "stall",
            f"nothing was completed for {figure(longest)} s",
            when=began if began is not None else later(started, start),
            where=_place(flow, size),
            flow=flow,
        )


def _errors(records: pl.DataFrame) -> Iterator[Anomaly]:
    """Corrupted payloads, limits of the command line, peers that were lost under traffic."""
    code, traffic = pl.col("error.code"), pl.col("error.traffic").fill_null(value=False)
    found = records.filter(code.is_in([1, 5]) | ((code == 4) & traffic)).select(
        "flow", "params.size_bytes", "started", "error.message"
    )
    for flow, size, started, message in found.iter_rows():
        where = _place(flow, size)
        yield Anomaly("error", message or "", when=started, where=where, flow=flow)


def _spikes(records: pl.DataFrame) -> Iterator[Anomaly]:
    """Of each test only the worst: every long measurement has one."""
    median, longest = pl.col("latency_us.p50"), pl.col("latency_us.max")
    found = (
        records.filter((median > 0) & (longest > SPIKE * median))
        .with_columns(times=longest / median)
        .sort("times", descending=True, maintain_order=True)
        .unique("test", keep="first", maintain_order=True)
        .select(
            "flow", "params.size_bytes", "started", "latency_us.count", "latency_us.max", "times"
        )
    )
    for flow, size, started, count, longest_us, times in found.iter_rows():
        yield Anomaly(
            "spike",
            f"one of {words.whole(count)} messages took {figure(longest_us)} µs, "
            f"{figure(times)} times the median",
            when=started,
            where=_place(flow, size),
            flow=flow,
        )


def _dip(dip: Dip) -> Anomaly:
    intervals = words.plural(dip.intervals, "interval")
    return Anomaly(
        "interval",
        f"{intervals} below {words.plain(100 * DIP)} % of the flow's average, the lowest "
        f"{figure(dip.gbit_s)} of {figure(dip.average)} Gb/s, {figure(dip.start_s)} s after its "
        "start",
        when=later(dip.started, dip.start_s),
        where=_place(dip.flow, dip.size_bytes),
        flow=dip.flow,
    )


def of_records(records: pl.DataFrame, dips: Iterable[Dip]) -> list[Anomaly]:
    return [
        *_stalls(records), *_errors(records), *_spikes(records), *map(_dip, dips),
    ]  # fmt: skip


# ---- of the verdict ------------------------------------------------------------------------------

#: Checks that tell of something that happened, not of how something is set.
_tells = re.compile(
    r"(counters|interval|tail|clock|drift)/"
    r"|switch/(drops|drops-elsewhere|stated|pause-storms|errors|link-up)"
    r"|host_check/(machine-(link-flaps|pcie-log|pcie-log-others|hardware-log|memory-errors"
    r"|throttled)|nic-(port|interface)-errors|nic-pcie-errors"
    r"|slingshot-(link-flaps|codewords|retry-handler))"
)
_moment = re.compile(r" at ([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z)")


def _of_check(check: Check) -> Anomaly:
    measured = words.value(check.measured, check.unit)
    limit = "" if check.limit is None else f" (limit: {words.bound(check.limit, check.unit)})"
    moments = (_moment.search(text) for text in check.evidence)
    before = check.id.startswith("host_check/")
    return Anomaly(
        "check",
        f"{check.headline}: {measured}{limit}",
        when=next((found[1] for found in moments if found), None),
        where=", ".join(check.evidence[:2]) or None,
        evidence=f"check {words.code(check.id)}",
        phase="before the run" if before else "during the run",
    )


def of_checks(checks: Iterable[Check]) -> Iterator[Anomaly]:
    for check in checks:
        if check.status in ("fail", "inconclusive", "advisory") and _tells.match(check.id):
            yield _of_check(check)


# ---- the section ---------------------------------------------------------------------------------


def _evidence(one: Anomaly) -> str:
    if one.evidence:
        return one.evidence
    client = one.flow.split("/")[1] if "/" in one.flow else "-"
    return f"record {words.code(one.where)}, {words.code(f'raw/{client}/flows/{one.flow}/')}"


def _row(one: Anomaly) -> list[str]:
    where = "-" if one.where is None else words.code(one.where)
    return [words.cell(one.when or one.phase), where, words.cell(one.what), _evidence(one)]


def _order(one: Anomaly) -> tuple[Any, ...]:
    return _KINDS.index(one.kind), one.when or "~", one.where is not None, one.where or ""


def table(found: Iterable[Anomaly]) -> Table:
    ordered = sorted(found, key=_order)
    shown = capped(left("When", "Where", "What", "Evidence"), [[] for _ in ordered], ROWS_MAX)
    shown.rows = [_row(one) for one in ordered[:ROWS_MAX]]
    return shown
