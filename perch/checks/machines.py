"""Is each host a machine of its own?"""

from __future__ import annotations

from collections.abc import Iterator

from perch.checks import RunView, check, design, first
from perch.model.verdict import Bound, Check


@check(
    family="machines",
    order=45,
    source=design("a fabric is measured between machines; a boot id is that of one running kernel"),
)
def machines(run: RunView) -> Iterator[Check]:
    """Two hosts of hardware with one boot id measure a machine against itself."""
    booted: dict[str, list[str]] = {}
    for name, planned in run.plan.hosts.items():
        facts = run.hosts.get(name)
        if planned.scope == "hardware" and facts is not None and facts.boot_id:
            booted.setdefault(facts.boot_id, []).append(name)
    if not booted:
        return
    alike = [names for names in booted.values() if len(names) > 1]
    finding = Check(
        id="machines",
        title="Each host is a machine of its own",
        status="inconclusive" if alike else "pass",
        measured=len(booted),
        limit=Bound(sum(map(len, booted.values())), None),
        unit="machines",
    )
    if alike:
        finding.measured = "; ".join(f"{', '.join(names)} are one machine" for names in alike)
        finding.evidence = first(name for names in alike for name in names)
        finding.remedy = "correct ansible_host of these hosts in the inventory, and measure again"
    yield finding
