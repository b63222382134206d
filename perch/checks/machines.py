"""Is each host a machine of its own, with the devices that the plan gives it?"""

from __future__ import annotations

from collections.abc import Iterator

from perch.checks import RunView, check, design, first, names
from perch.judge.hosts import HostFacts
from perch.model.plan import PlanHost
from perch.model.verdict import Bound, Check


def _machine(facts: HostFacts) -> str:
    """Its boot id in one spelling; "" where it left none."""
    return (facts.boot_id or "").strip().casefold()


def _own(booted: dict[str, list[str]]) -> Check:
    """`booted`: hosts by boot id. Two with one are one machine; one without may be any."""
    hosts = sum(map(len, booted.values()))
    unknown = booted.pop("", [])
    alike = [group for group in booted.values() if len(group) > 1]
    finding = Check(
        id="machines",
        title="Each host is a machine of its own",
        fault="Hosts may be one machine",
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
    return finding


def _strange(planned: PlanHost, facts: HostFacts) -> str | None:
    """What of the plan a host does not have. Interfaces of a Cassini NIC may have any name."""
    there = {*facts.drivers, *facts.rdma_drivers, *facts.cxi_drivers}
    for device in planned.devices:
        for name in (device.get("name"), device.get("netdev")):
            if name is not None and name not in there:
                return f"environment.json names no device {name}"
    return None


@check(
    family="machines",
    order=45,
    source=design("a fabric is measured between machines; a boot id is that of one running kernel"),
)
def machines(run: RunView) -> Iterator[Check]:
    """Two hosts of hardware with one boot id measure a machine against itself.

    Every agent writes its host's boot id and devices.
    """
    booted: dict[str, list[str]] = {}
    strange: dict[str, str] = {}
    for name, planned in run.plan.hosts.items():
        facts = run.hosts.get(name) or HostFacts()
        if planned.scope != "hardware":
            continue
        booted.setdefault(_machine(facts), []).append(name)
        why = _strange(planned, facts) if facts.environment else None
        if why is not None:
            strange[name] = why
    if not booted:
        return
    hosts = sum(map(len, booted.values()))
    yield _own(booted)
    finding = Check(
        id="machines/devices",
        title="Each host has its planned devices",
        fault="Planned devices are missing on hosts",
        status="inconclusive" if strange else "pass",
        measured=hosts - len(strange),
        limit=Bound(hosts, None),
        unit="hosts",
        source=design("the measured devices are those of the inventory"),
    )
    if strange:
        finding.measured = "; ".join(f"{name}: {why}" for name, why in list(strange.items())[:3])
        finding.evidence = first(strange)
        finding.remedy = (
            "compare perch_devices of these hosts with the hosts themselves, and measure again"
        )
    yield finding
