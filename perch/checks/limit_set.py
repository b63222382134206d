"""Are the limits of a run those of the set that its plan names?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from perch.checks import RunView, design, plural
from perch.checks.limit_values import first_flows, speaks_of
from perch.model import limit_files
from perch.model.limits import Limit, LimitBound, Limits, fits
from perch.model.verdict import LOOSENED, Check

#: So many differences are named.
NAMED = 3

TITLE = "The limits are those of the set that the plan names"
FAULT = "The limits differ from the set that the plan names"


def _ends(bound: LimitBound) -> str:
    ends = ((name, getattr(bound, name)) for name in ("min", "max"))
    said = ", ".join(f"{name} {end:g}" for name, end in ends if end is not None)
    return said if bound.of is None else f"{said} of the {bound.of}"


def _is_as_strict(bound: LimitBound, than: LimitBound) -> bool:
    """Whether all that this bound lets pass passes the other, too."""
    return (
        bound.of == than.of
        and (than.min is None or (bound.min is not None and bound.min >= than.min))
        and (than.max is None or (bound.max is not None and bound.max <= than.max))
    )


def _loosened(limit: Limit, own: Limit) -> str | None:
    """How a run's limit asks less than the set's `own`; None where it does not."""
    for key in ("scope", "metric", "unit"):
        if getattr(limit, key) != getattr(own, key):
            return f"{own.id} has another {key}"
    if own.is_required and not limit.is_required:
        return f"{own.id} is advisory, not required"
    if not _is_as_strict(limit.bound, own.bound):
        return f"{own.id} has {_ends(limit.bound)} in place of {_ends(own.bound)}"
    return None


def _difference(limit: Limit | None, own: Limit) -> str | None:
    """How a run's limit differs from the set's without a site's file that says so."""
    if limit is None:
        return f"{own.id} is missing"
    was = limit.replaces
    if was is None:
        return _loosened(limit, own)
    if (was.severity, was.bound) != (own.severity, own.bound):
        return f"{own.id} replaces {was.severity} {_ends(was.bound)}, which the set does not have"
    return None


def differences(limits: Limits, shipped: tuple[Limit, ...]) -> list[str]:
    """How limits ask less than the set of which they are said to be.

    What a site's own file replaces or removes says so itself, with its source.
    """
    by_id = {limit.id: limit for limit in limits.limits}
    found = (_difference(by_id.get(own.id), own) for own in shipped)
    return [one for one in found if one is not None]


def _applying(run: RunView, shipped: tuple[Limit, ...]) -> tuple[Limit, ...]:
    """Those that speak of something in this run: what an earlier version lacked may not."""
    tests = first_flows(run.plan.flows())
    of_records = [one for one in shipped if not (one.is_soak or one.is_agreement)]
    spoken = run.records.select(
        speaks_of(limit, tests).any().alias(limit.id) for limit in of_records
    )
    return tuple(
        limit
        for limit in shipped
        if (
            run.plan.soak is not None
            if limit.is_soak
            else limit.is_agreement or spoken[limit.id].item()
        )
    )


def _is_named(limits: Limits, planned: str, *, is_shipped: bool) -> bool:
    """Whether these are of the plan's set; a site may call a file otherwise than its set."""
    if is_shipped:
        return limits.name == planned
    name = Path(planned).stem if planned.endswith((".yml", ".yaml", ".json")) else planned
    return name in (limits.name, *(Path(file).stem for file in limits.files[:1]))


def _takes_all(wanted: Any, own: Any) -> bool:
    """Whether a facet of a scope takes every value that the other one takes."""
    if isinstance(own, list):
        return all(fits(wanted, one) for one in own)
    if not isinstance(own, Mapping):
        return fits(wanted, own)
    return isinstance(wanted, Mapping) and _is_as_strict(
        LimitBound(own.get("min"), own.get("max")), LimitBound(wanted.get("min"), wanted.get("max"))
    )


def _asks_as_much(limit: Limit, own: Limit) -> bool:
    """Whether a limit of the run is required wherever the set's is, and is as strict."""
    return (
        limit.is_required
        and limit.removed is None
        and (limit.metric, limit.unit) == (own.metric, own.unit)
        and all(
            key in own.scope and _takes_all(wanted, own.scope[key])
            for key, wanted in limit.scope.items()
        )
        and _is_as_strict(limit.bound, own.bound)
    )


def _of_the_set(limit: Limit, shipped: Mapping[str, Limit]) -> Limit:
    """The set's limit that a site's stands for, as far as it is known."""
    was = limit.replaces
    if limit.id in shipped:
        return shipped[limit.id]
    if was is None:
        return limit
    return msgspec.structs.replace(limit, severity=was.severity, bound=was.bound)


def _weaker(limit: Limit, own: Limit) -> str:
    """How a site's limit asks less than the set's."""
    if limit.removed is not None:
        return f"{own.id} is removed"
    return _loosened(limit, own) or f"{own.id} is weaker"


def _loosened_by_site(run: RunView, shipped: tuple[Limit, ...]) -> str:
    """What a site's own file asks less in this run than the set; empty where nothing.

    Another limit may ask as much in place of one that is removed.
    """
    limits = run.limits.limits
    known = {own.id: own for own in shipped}
    changed = [one for one in limits if one.removed is not None or one.replaces is not None]
    owns = (_of_the_set(one, known) for one in changed)
    required = tuple(
        own
        for own in owns
        if own.is_required and not any(_asks_as_much(one, own) for one in limits)
    )
    if not required:
        return ""
    by_id = {one.id: one for one in changed}
    less = [(by_id[own.id], own) for own in _applying(run, required)]
    removed = sum(limit.removed is not None for limit, _ in less)
    counts = ((removed, "removed"), (len(less) - removed, "weakened"))
    said = [(n, word) for n, word in counts if n]
    if not said:
        return ""
    (first, word), *rest = said
    counted = ", ".join(
        [f"{plural(first, 'required limit')} {word}", *(f"{n} {word}" for n, word in rest)]
    )
    named = "; ".join(_weaker(*one) for one in less[:NAMED])
    more = f" and {len(less) - NAMED} more" if len(less) > NAMED else ""
    return f"loosened by the site: {counted}; {named}{more}"


def _of_site(limits: Limits) -> str:
    """What a site's own file has changed in the set."""
    replaced = sum(limit.replaces is not None for limit in limits.limits)
    removed = sum(limit.removed is not None for limit in limits.limits)
    said = ((replaced, "replaced"), (removed, "removed"))
    parts = [f"{plural(n, 'limit')} {word} by the site" for n, word in said if n]
    return "".join(f", {part}" for part in parts)


def of_set(run: RunView) -> Iterator[Check]:
    """One finding, with the set's name and the digest of the limits as the run has them.

    What is advisory in the set changes no verdict, and neither does its lack.
    """
    limits, planned = run.limits, run.plan.limits
    if not limits.digest:
        return
    digest = f"inputs/limits.json has SHA-256 {limits.digest}"
    shipped = limit_files.shipped(planned)
    unlike = [] if shipped is None else differences(limits, shipped)
    required: list[str] = []
    if shipped is not None and unlike:
        applying = _applying(run, shipped)
        required = differences(limits, tuple(one for one in applying if one.is_required))
        unlike = required or differences(limits, applying)
    loosened = "" if required else _loosened_by_site(run, shipped or ())
    finding = Check(
        id="limits/set",
        title=TITLE,
        fault=FAULT,
        status="inconclusive",
        source=design("limits are copied to inputs/ when a run is planned"),
        evidence=["inputs/limits.json"],
        remedy="restore inputs/limits.json, or plan with a file of the site's own "
        "(plan_limits_site), which gives a source for each change",
    )
    if not _is_named(limits, planned, is_shipped=shipped is not None):
        finding.measured = f"the plan names the set '{planned}', its limits are of '{limits.name}'"
    elif loosened:
        finding.status, finding.fault = "advisory", LOOSENED
        finding.remedy = (
            "read the site's reasons in inputs/limits.json, or plan without these changes"
        )
        finding.measured = f"{loosened}; set '{planned}'{_of_site(limits)}; {digest}"
    elif unlike:
        finding.status = "inconclusive" if required else "advisory"
        more = f" and {len(unlike) - NAMED} more" if len(unlike) > NAMED else ""
        named = "; ".join(islice(unlike, NAMED))
        finding.measured = f"less than the set '{planned}' of this version: {named}{more}; {digest}"
    elif shipped is None:
        finding.status, finding.remedy = "not_judged", None
        finding.measured = f"'{planned}' is a set of the site's own; {digest}"
    else:
        finding.status, finding.remedy = "pass", None
        finding.measured = f"set '{planned}' of this version{_of_site(limits)}; {digest}"
    yield finding
