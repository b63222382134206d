"""CPUs and NUMA nodes that a suite names: each host that they are meant for must have them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from perch.errors import ExitCode, PerchError
from perch.model.devices import Machine
from perch.model.suite import SuiteTest
from perch.tools.perch_params import cpus

#: Who names no CPU and no node.
_CHOICES = ("auto", "off")


#: A list of the kernel: 0-3,8 (Documentation/admin-guide/cputopology.rst). Linux numbers at most
#: 8,192 CPUs (CONFIG_NR_CPUS).
_list = re.compile(r"[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*")


def check_list(key: str, named: str) -> None:
    """Raises ValueError where it is neither a choice nor a list of numbers."""
    if named not in _CHOICES and (
        not _list.fullmatch(named) or not all(map(cpus, named.split(",")))
    ):
        raise ValueError(f"{key} is {named}; write auto, off or numbers such as 0-3,8")


class _Fault(NamedTuple):
    why: str
    remedy: str


def _of_cpus(key: str, named: str, machine: Machine) -> Iterator[_Fault]:
    if machine.cpu_online and not set(cpus(named)) <= set(cpus(machine.cpu_online)):
        yield _Fault(
            f"{key} is {named}, and the host has CPUs {machine.cpu_online}", "name some of these"
        )


def _of_node(key: str, named: str, machine: Machine) -> Iterator[_Fault]:
    if machine.cpu_online and not machine.node_online:
        yield _Fault(f"{key} is {named}, and the host has no NUMA nodes", "leave it out")
    elif machine.node_online and int(named) not in cpus(machine.node_online):
        has = f"the host has NUMA nodes {machine.node_online}"
        yield _Fault(f"{key} is {named}, and {has}", "name one of these")
    elif machine.node_has_memory and int(named) not in cpus(machine.node_has_memory):
        remedy = f"name one that has: {machine.node_has_memory}"
        yield _Fault(f"{key} is {named}, a NUMA node without memory", remedy)


_KEYS = {
    "client": (("cpu", _of_cpus), ("numa", _of_node)),
    "server": (("server_cpu", _of_cpus), ("server_numa", _of_node)),
}


def names_places(test: SuiteTest) -> bool:
    return any(key in test.params for keys in _KEYS.values() for key, _ in keys)


def check_places(
    test: SuiteTest, pairs: Iterator[tuple[str, str]], machines: Mapping[str, Machine]
) -> None:
    """Raises PerchError where a host that was asked lacks what the test names."""
    for role, host in dict.fromkeys(end for pair in pairs for end in zip(_KEYS, pair, strict=True)):
        for key, of in _KEYS[role]:
            named = test.params.get(key)
            if host not in machines or named is None or named in _CHOICES:
                continue
            for fault in of(key, str(named), machines[host]):
                place = f"test {test.name}, host {host}"
                raise PerchError(ExitCode.USAGE, fault.why, place=place, remedy=fault.remedy)


def check_together(test: SuiteTest, rails: int) -> None:
    """Raises PerchError where the test names fewer CPUs than processes that work at once."""
    for key in ("cpu", "server_cpu"):
        named = test.params.get(key, "auto")
        if named not in _CHOICES and len(set(cpus(str(named)))) < rails:
            why = f"{key} is {named}, and {rails} rails together need a CPU each"
            remedy = f"name {rails} CPUs, or leave {key} out"
            raise PerchError(ExitCode.USAGE, why, place=f"test {test.name}", remedy=remedy)
