"""Is each host a machine of its own?"""

from __future__ import annotations

from collections.abc import Iterator

from perch.checks import RunView, check, design, first, names
from perch.model.verdict import Bound, Check


@check(
    family="machines",
    order=45,
    source=design("a fabric is measured between machines; a boot id is that of one running kernel"),
)
def machines(run: RunView) -> Iterator[Check]:
    """Two hosts of hardware with one boot id measure a machine against itself.

    Every agent writes its host's boot id: a host without one may be any machine.
    """
    booted: dict[str, list[str]] = {}
    for name, planned in run.plan.hosts.items():
        if planned.scope == "hardware":
            facts = run.hosts.get(name)
            booted.setdefault((facts and facts.boot_id) or "", []).append(name)
    if not booted:
        return
    hosts = sum(map(len, booted.values()))
    unknown = booted.pop("", [])
    alike = [group for group in booted.values() if len(group) > 1]
    finding = Check(
        id="machines",
        title="Each host is a machine of its own",
        status="inconclusive" if alike or unknown else "pass",
        measured=len(booted),
        limit=Bound(hosts, None),
        unit="machines",
    )
    if alike:
        finding.measured = "; ".join(f"{', '.join(group)} are one machine" for group in alike)
        finding.evidence = first(name for group in alike for name in group)
        finding.remedy = "correct ansible_host of these hosts in the inventory, and measure again"
    elif unknown:
        finding.measured = f"{names(unknown, 3)} left no boot id in environment.json"
        finding.evidence = first(unknown)
        finding.remedy = "measure these hosts again"
    yield finding
