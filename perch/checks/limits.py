"""The limits of inputs/limits.json, absolute and relative, compared with every record."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec
import polars as pl
from msgspec import UNSET

from perch.checks import RunView, check, design, fabric, limit_set, limit_shares, plural, scope
from perch.checks.held import groups
from perch.checks.limit_shares import held_limits
from perch.checks.limit_words import missed
from perch.checks.remedies import for_soak
from perch.model.figures import rounded
from perch.model.limits import Limit
from perch.model.verdict import Bound, Check, CheckStatus

#: Columns that these checks take.
COLUMNS = tuple(
    dict.fromkeys((*limit_shares.COLUMNS, *fabric.COLUMNS, *scope.COLUMNS, "status", "stall.began"))
)

#: Remedies where no required limit judged a record.
PUT_LIMITS = "put the run's limits (perch.limits/1, as JSON) at inputs/limits.json and judge again"
IMPORT_AGAIN = "import the outputs again with --limits SET, a set of reports/limits or a file"
MEASURE = "see the findings of the missing flows, and measure again"

#: So many differences of two fabrics are named.
DIFFERENCES_MAX = 3


class Group(msgspec.Struct, frozen=True):
    """What a limit says of a test (perch.checks.held.groups)."""

    name: str
    test: str
    judged: int
    unknown: int
    broken: int
    worst: float | None
    at: int | None
    why: str | None
    rows: list[int]


def status_of(limit: Limit, *, judged: int, unknown: int, broken: int) -> CheckStatus:
    """A required limit whose figure was not reported cannot pass; an advisory one only says so.

    Where a loopback has no ceiling, or there are no comparable pairs, a relative limit is not
    judged, but the absolute limit beside it is.
    """
    if broken:
        return "fail" if limit.is_required else "advisory"
    if unknown and limit.is_required:
        return "inconclusive"
    return "pass" if judged else "not_judged"


# ---- words ---------------------------------------------------------------------------------------


def _bound(limit: Limit) -> Bound:
    return Bound(limit.bound.min, limit.bound.max)


def _origin(limit: Limit) -> str:
    """Where a site's own file speaks in the set's place, what stood there before."""
    was = limit.replaces
    if was is None:
        return limit.source
    ends = [
        f"{name} {end}" for name in ("min", "max") if (end := getattr(was.bound, name)) is not None
    ]
    of = f" of the {was.bound.of}" if was.bound.of else ""
    return (
        f"{limit.source} (the site's {limit.file}, in place of "
        f"{was.severity} {', '.join(ends)}{of} of {was.file})"
    )


def _remedy(limit: Limit, group: Group, status: CheckStatus) -> str | None:
    if status == "pass":
        return None
    if status == "inconclusive" and limit.bound.of == "ceiling" and group.why is not None:
        return (
            "see that environment.json of both hosts has rate_gbit_s of the interface (ethtool "
            "shows the speed; a virtual machine does not know it), and measure again"
        )
    if status == "inconclusive" and limit.bound.of == "baseline":
        return (
            "accept a run of this fabric as it is now (make accept RUN=), and measure again; until "
            "then only the absolute limits judge"
        )
    return limit.remedy


def _measured(limit: Limit, group: Group, status: CheckStatus) -> str | int | float | None:
    if not group.judged:
        return group.why or f"not reported by {plural(group.unknown, 'record')} in scope"
    if status == "inconclusive":
        why = "" if group.why is None else f": {group.why}"
        return f"{group.unknown} of {group.unknown + group.judged} records in scope lack it{why}"
    return None if group.worst is None else rounded(group.worst)


def _of_another_fabric(group: Group, foreign: str) -> Group:
    """A share of another fabric's figure says nothing."""
    return msgspec.structs.replace(
        group,
        unknown=group.unknown + group.judged,
        judged=0,
        broken=0,
        why=f"the baseline was measured on another fabric: {foreign}",
    )


def _names(limit: Limit, rows: list[int], records: pl.DataFrame) -> list[str]:
    """Ids of records; a stall is of use only with its time: other logs of that moment say why."""
    asked = records[rows].select("id", "stall.began")
    is_stall = limit.metric == "derived.stall_s"
    return [
        f"{name} at {began}" if is_stall and began else name for name, began in asked.iter_rows()
    ]


def _limit_check(limit: Limit, group: Group, run: RunView) -> Check:
    counts = {"judged": group.judged, "unknown": group.unknown, "broken": group.broken}
    status = status_of(limit, **counts)
    worst = [] if group.at is None else [group.at]
    others = [row for row in group.rows if row != group.at] if group.broken else []
    return Check(
        id=f"limit/{limit.id}/{group.test}",
        title=f"{limit.title}, test {group.test}",
        fault=f"{missed(limit, group.worst)}, test {group.test}" if group.broken else UNSET,
        status=status,
        measured=_measured(limit, group, status),
        limit=_bound(limit),
        unit=limit.unit,
        source=_origin(limit),
        evidence=_names(limit, [*worst, *others], run.records),
        remedy=_remedy(limit, group, status),
    )


def _unused_check(limit: Limit) -> Check:
    return Check(
        id=f"limit/{limit.id}",
        title=limit.title,
        status="not_judged",
        measured="no record in its scope",
        limit=_bound(limit),
        unit=limit.unit,
        source=_origin(limit),
    )


def _removed_check(limit: Limit, file: str, reason: str) -> Check:
    """A site may take a limit out of its set. It is then not judged, and every verdict says so."""
    of = "" if limit.file is None else f", of {limit.file}"
    return Check(
        id=f"limit/{limit.id}",
        title=limit.title,
        status="not_judged",
        measured=f"removed by the site ({file}): {reason}",
        limit=_bound(limit),
        unit=limit.unit,
        source=f"{limit.source} ({limit.severity}{of})",
        remedy=f"remove its entry from {file} to have it judged again",
    )


# ---- checks --------------------------------------------------------------------------------------


def _foreign(run: RunView, held: pl.DataFrame) -> str:
    """How the accepted run's fabric differs; "" where it does not, or no limit asks."""
    document = run.baseline.document
    relative = [limit.id for limit in run.limits.limits if limit.bound.of == "baseline"]
    if document is None or not relative:
        return ""
    rows = held.filter(pl.col("name").is_in(relative))["row"].unique().sort()
    worth = scope.weakest_scope(run.plan, run.records)
    now = fabric.identity(run.plan, fabric.ends(run.records[rows]), worth)
    return "; ".join(islice(fabric.differences(document.fabric, now), DIFFERENCES_MAX))


def _groups(run: RunView) -> list[Group]:
    held = held_limits(run).spoken
    found = msgspec.convert(groups(held).to_dicts(), list[Group])
    foreign = _foreign(run, held)
    if not foreign:
        return found
    relative = {limit.id for limit in run.limits.limits if limit.bound.of == "baseline"}
    return [_of_another_fabric(one, foreign) if one.name in relative else one for one in found]


@check(
    family="limits",
    order=0,
    columns=COLUMNS,
    criterion="limits",
    source=design("limits are copied to inputs/ when a run is planned"),
)
def limits_to_judge_by(run: RunView) -> Iterator[Check]:
    """A run without a required limit that judged a record proves nothing.

    Nor does one whose limits ask less than the set that its plan names.
    """
    yield from limit_set.of_set(run)
    required = [limit.id for limit in run.limits.limits if limit.is_required]
    spoken = held_limits(run).spoken
    is_judged = pl.col("v").is_not_null() & pl.col("name").is_in(required)
    if not run.limits.fault and spoken.select(is_judged.any()).item():
        return
    if not run.limits.fault and not run.records["status"].eq("ok").any():
        yield Check(
            id="limits",
            title="There are limits to judge by",
            fault="Nothing was measured, so no limit could judge",
            status="inconclusive",
            measured=0,
            limit=Bound(1, None),
            unit="measured records",
            remedy=for_soak(run.soak_state) or MEASURE,
        )
        return
    first = next(run.plan.flows(), None)
    put_limits = IMPORT_AGAIN if first is not None and first.imported else PUT_LIMITS
    yield Check(
        id="limits",
        title="There are limits to judge by",
        fault="There are no limits to judge by",
        status="inconclusive",
        measured=run.limits.fault or "no required limit judged any record",
        remedy=(None if run.limits.fault else for_soak(run.soak_state)) or put_limits,
    )


@check(family="limit", order=100, columns=COLUMNS)
def limits(run: RunView) -> Iterator[Check]:
    """Each limit by test; then those that were removed or speak of no record."""
    by_id = {limit.id: limit for limit in run.limits.limits}
    found = _groups(run)
    for group in found:
        yield _limit_check(by_id[group.name], group, run)
    used = {group.name for group in found}
    for limit in run.limits.limits:
        if limit.removed is not None:
            yield _removed_check(limit, limit.removed.file, limit.removed.source)
        elif not (limit.is_agreement or limit.is_soak or limit.id in used):
            yield _unused_check(limit)
