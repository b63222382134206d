"""Do devices of one driver count the same on every host?

A counter that is lacking on one host alone would be judged there by nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perch.checks import RunView, design, first, names, plural
from perch.judge.counters import classes
from perch.judge.hosts import HostFacts
from perch.judge.places import VOLUMES
from perch.model.raw import Block, Layout
from perch.model.verdict import Check


class _Device(NamedTuple):
    """One that carried a flow. `kind`: its fabric, table of counters, and driver."""

    host: str
    name: str
    kind: tuple[str, str, str]
    counters: frozenset[str]
    hardware: bool


class _Lack(NamedTuple):
    """Counters that a device lacks, and `other` of its kind has."""

    device: _Device
    other: _Device
    counters: list[str]

    def is_decisive(self, counters: frozenset[str]) -> bool:
        return self.device.hardware and not counters.isdisjoint(self.counters)

    @property
    def said(self) -> str:
        device, other = self.device, self.other
        return (
            f"{device.host}: {device.name} has no {names(self.counters, 3)}, but {other.host}: "
            f"{other.name} does"
        )


def _judged(block: Block) -> frozenset[str]:
    """Those of its counters that are judged."""
    return frozenset(VOLUMES & block.known | classes(block).keys())


def _found(layout: Layout, facts: HostFacts) -> Iterator[tuple[str, str, str | None, Block]]:
    """Each device of a host: its name, its table of counters, and its driver."""
    for name, block in layout.rdma.items():
        yield name, "rdma", facts.rdma_drivers.get(name.partition("/")[0]), block
    for name, block in layout.cxi.items():
        yield name, "cxi", facts.cxi_drivers.get(name), block
    for name, block in layout.netdev.items():
        yield name, "netdev", facts.drivers.get(name), block


def _devices(run: RunView) -> Iterator[_Device]:
    """Those that carried flows, of a known driver, as they were read at last."""
    for host, carried in run.trail.hardware.items():
        facts, fabric = run.hosts.get(host) or HostFacts(), run.plan.hosts[host].fabric
        for mark in run.trail.last.get(host, []):
            for name, table, driver, block in _found(mark.reading.layout, facts):
                if name in carried and driver is not None:
                    kind = (fabric, table, driver)
                    yield _Device(host, name, kind, _judged(block), carried[name])


def _examples(devices: list[_Device]) -> list[_Device]:
    """Of each set of counters the first device, and the first on another host."""
    examples: dict[frozenset[str], list[_Device]] = {}
    for one in devices:
        found = examples.setdefault(one.counters, [])
        if len(found) < 2 and all(one.host != other.host for other in found):
            found.append(one)
    return [one for found in examples.values() for one in found]


def _lacks(devices: list[_Device]) -> Iterator[_Lack]:
    """Of each device the counters that one on another host has, by the first that has the most."""
    of_kind: dict[tuple[str, str, str], list[_Device]] = {}
    for one in devices:
        of_kind.setdefault(one.kind, []).append(one)
    for kind in of_kind.values():
        examples = _examples(kind)
        for one in kind:
            others = (other for other in examples if other.host != one.host)
            richest = max(others, key=lambda other: len(other.counters - one.counters), default=one)
            if lacking := sorted(richest.counters - one.counters):
                yield _Lack(one, richest, lacking)


def alike(run: RunView, decisive: frozenset[str]) -> Iterator[Check]:
    """Devices of one driver and fabric, on several hosts.

    decisive: the counters that a verdict needs; the rest are extras of some drivers and firmwares.
    """
    devices = list(_devices(run))
    compared = {one.kind for one in devices}
    if len({(one.host, one.kind) for one in devices}) == len(compared):
        return
    finding = Check(
        id="counters/alike",
        title="Devices of one driver have the same counters",
        fault="Devices of one driver have different counters",
        status="pass",
        measured=len(devices),
        unit="devices",
        source=design("never a PASS by omission"),
    )
    found = sorted(_lacks(devices), key=lambda lack: not lack.is_decisive(decisive))
    if found:
        more = f"; {plural(len(found) - 1, 'more device')}" if len(found) > 1 else ""
        finding.status = "inconclusive" if found[0].is_decisive(decisive) else "advisory"
        finding.measured = found[0].said + more
        finding.unit = None
        finding.evidence = first(dict.fromkeys(one.device.host for one in found))
        finding.remedy = (
            "give both hosts the same driver, firmware and kernel, and see that the agent can read "
            "/sys/class/infiniband/*/ports/*/{counters,hw_counters} and /sys/class/net/*/statistics"
        )
    yield finding
