"""Do the hosts agree with what the inventory says of their fabric?"""

from __future__ import annotations

from collections.abc import Iterator

from perch.checks import RunView, check, design, first, names
from perch.model.verdict import Check

_PFC = "qos-pfc"


def _contradictions(run: RunView) -> Iterator[tuple[str, str]]:
    """Hosts, and in words what each of their interfaces has against the trait."""
    for name, planned in run.plan.hosts.items():
        lossless = planned.traits.get("lossless")
        facts = run.hosts.get(name)
        for finding in (facts.checks if facts else None) or []:
            has_pfc = finding.get("id") == _PFC and finding.get("value") is not None
            if lossless is not None and has_pfc and (finding["value"] == "off") == lossless:
                said = "lossless" if lossless else "not lossless"
                yield (
                    name,
                    f"{name} is said to be {said}, and flow control of {finding.get('device')} is "
                    f"{finding['value']}",
                )


@check(
    family="traits",
    order=72,
    source=design("traits of a fabric change what is required"),
)
def traits(run: RunView) -> Iterator[Check]:
    """A bound that rests on a wrong trait proves nothing."""
    if not any("lossless" in planned.traits for planned in run.plan.hosts.values()):
        return
    found = list(_contradictions(run))
    yield Check(
        id="traits",
        title="Hosts agree with the traits of their fabric",
        fault="Hosts contradict the traits of their fabric",
        status="inconclusive" if found else "pass",
        measured=names([said for _, said in found], 3) if found else None,
        evidence=first(name for name, _ in found),
        remedy="correct perch_fabric_traits, or the hosts' flow control (host_tune_pfc_priorities)"
        if found
        else None,
    )
