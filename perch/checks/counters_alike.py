"""Do devices of one driver count the same on every host?

A counter that is lacking on one host alone would be judged there by nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from perch.checks import RunView, design, first, names, plural
from perch.judge.counter_table import CORRECTED_BITS, COUNTED_BY
from perch.judge.counters import classes
from perch.judge.hosts import HostFacts
from perch.judge.places import VOLUMES
from perch.model.raw import Block, Layout
from perch.model.verdict import Check

#: The class of counters that prove a path.
PATH = "path"

_CORRECTED = frozenset(CORRECTED_BITS)


class _Device(NamedTuple):
    """One that carried a flow. `kind`: its fabric, table of counters, and driver.

    classes: those that are counted there, and PATH where a path can be proven.
    """

    host: str
    name: str
    kind: tuple[str, str, str]
    counters: frozenset[str]
    classes: frozenset[str]
    hardware: bool


class _Lack(NamedTuple):
    """Counters that a device lacks, and `other` of its kind has."""

    device: _Device
    other: _Device
    counters: list[str]

    def is_decisive(self, classes: frozenset[str]) -> bool:
        """Whether the device has no counter of one of these; drivers rename counters.

        One that lacks what FEC corrected, and nothing else, is no other card: virtual functions and
        older cards of a driver lack more.
        """
        lacking = self.other.classes - self.device.classes
        only_fec = _CORRECTED.issuperset(self.counters)
        return self.device.hardware and (only_fec or not classes.isdisjoint(lacking))

    @property
    def said(self) -> str:
        device, other = self.device, self.other
        return (
            f"{device.host}: {device.name} has no {names(self.counters, 3)}, but {other.host}: "
            f"{other.name} does"
        )


def _counted(block: Block) -> Iterator[str]:
    for name, counted_by in COUNTED_BY.items():
        if not counted_by.isdisjoint(block.known):
            yield name


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
                    proving = VOLUMES & block.known
                    judged = proving | (_CORRECTED & block.known) | classes(block).keys()
                    yield _Device(
                        host,
                        name,
                        (fabric, table, driver),
                        frozenset(judged),
                        frozenset(_counted(block)) | ({PATH} if proving else set()),
                        carried[name],
                    )


def _examples(devices: list[_Device]) -> list[_Device]:
    """Of each set of counters the first device, and the first on another host."""
    examples: dict[frozenset[str], list[_Device]] = {}
    for one in devices:
        found = examples.setdefault(one.counters, [])
        if len(found) < 2 and all(one.host != other.host for other in found):
            found.append(one)
    return [one for found in examples.values() for one in found]


def _lacks(devices: list[_Device], decisive: frozenset[str]) -> Iterator[_Lack]:
    """Of each device the counters that one on another host has, by the first that has the most."""
    of_kind: dict[tuple[str, str, str], list[_Device]] = {}
    for one in devices:
        of_kind.setdefault(one.kind, []).append(one)
    for kind in of_kind.values():
        examples = _examples(kind)
        for one in kind:
            lacks = [
                _Lack(one, other, sorted(other.counters - one.counters))
                for other in examples
                if other.host != one.host and not other.counters <= one.counters
            ]
            if lacks:
                yield max(lacks, key=lambda lack: (lack.is_decisive(decisive), len(lack.counters)))


def alike(run: RunView, decisive: frozenset[str]) -> Iterator[Check]:
    """Devices of one driver and fabric, on several hosts.

    decisive: the classes that a verdict needs; the rest are extras of some drivers and firmwares.
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
    found = sorted(_lacks(devices, decisive), key=lambda lack: not lack.is_decisive(decisive))
    if found:
        more = f"; {plural(len(found) - 1, 'more device')}" if len(found) > 1 else ""
        finding.status = "inconclusive" if found[0].is_decisive(decisive) else "advisory"
        finding.measured = found[0].said + more
        finding.unit = None
        finding.evidence = first(dict.fromkeys(one.device.host for one in found))
        finding.remedy = (
            "give both hosts the same driver, firmware and kernel, and see that the agent can run "
            "ethtool -S and read /sys/class/infiniband/*/ports/*/{counters,hw_counters} and "
            "/sys/class/net/*/statistics"
        )
    yield finding
