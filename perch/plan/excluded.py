"""What is not measured, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from perch.model.plan import Excluded
from perch.model.text import names
from perch.plan import rails
from perch.plan.pairs import Pair
from perch.plan.tests import Fleet, PlannedTest

#: Hosts that are named of a NIC that no flow uses.
HOSTS_NAMED = 5

EVERY_TEST = "every test"


def _of_test(one: PlannedTest) -> Iterator[Excluded]:
    name = one.test.name
    for pair, why in one.unfit:
        yield Excluded(name, f"{' and '.join(pair)}: {why}")
    yield from _alone(one)
    yield from _one_rail(one)
    for host, lacks in one.unable:
        yield Excluded(name, f"{host} {lacks}")
    if len(one.able) < 2:
        yield Excluded(name, f"two hosts are needed and {len(one.able)} can take part")


def _alone(one: PlannedTest) -> Iterator[Excluded]:
    """Devices that the test asks for, and that have no partner at the other end."""
    if one.test.get("devices") is None:
        return
    hosts = one.fleet.hosts
    for pair in _once(pair for turn in one.turns for pair in turn.pairs):
        left = rails.alone(one.test, *(hosts[host] for host in pair))
        if left:
            why = "the other host has no partner for it; add one to its perch_devices"
            yield Excluded(f"{', '.join(left)} in {one.test.name}", f"{' and '.join(pair)}: {why}")


def _one_rail(one: PlannedTest) -> Iterator[Excluded]:
    """Hosts without a second rail, where the test measures several together."""
    if one.test.rails == "together":
        used = {host for turn in one.turns for pair in turn.pairs for host in pair}
        left = [host for host in one.able if host not in used]
        if left:
            why = "the test measures several rails together, and there is one"
            yield Excluded(one.test.name, f"{names(left, HOSTS_NAMED)}: {why}")


def _once(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Each two hosts once, in the order of their first direction."""
    seen: set[frozenset[str]] = set()
    for pair in pairs:
        if frozenset(pair) not in seen:
            seen.add(frozenset(pair))
            yield pair


def _left_out(tests: Sequence[PlannedTest], fleet: Fleet) -> Iterator[Excluded]:
    """Said once more: a suite with nothing of the network left, and a host in no flow."""
    measured = [one for one in tests if one.turns]
    if any(one.test.backend != "null" for one in tests) and all(
        one.test.backend == "null" for one in measured
    ):
        why = "nothing of the network is measured: all its tests are excluded"
        yield Excluded("every test of the network", why)
    taking_part = {name for one in measured for name in one.able}
    for host in fleet.hosts:
        if host not in taking_part:
            yield Excluded(EVERY_TEST, f"host {host} is in no flow")


def _devices_in_use(tests: Sequence[PlannedTest]) -> dict[str, set[int]]:
    """Of each host the places of the devices that flows use.

    A flow that names none goes where the host's address lies, over the first; the null backend
    uses none.
    """
    used: dict[str, set[int]] = {}
    for one in tests:
        if one.test.backend == "null":
            continue
        for turn in one.turns:
            for pair in turn.pairs:
                devices = one.between(*pair, turn.rail).devices
                for host in pair:
                    used.setdefault(host, set()).update(range(turn.rail, turn.rail + devices))
    return used


def _idle_nics(tests: Sequence[PlannedTest], fleet: Fleet) -> Iterator[Excluded]:
    used = _devices_in_use(tests)
    hosts_of: dict[str, list[str]] = {}
    for name, host in fleet.hosts.items():
        for at, device in enumerate(host.devices):
            if at not in used.get(name, ()):
                hosts_of.setdefault(device["name"], []).append(name)
    for nic, hosts in sorted(hosts_of.items()):
        more = " hosts" if len(hosts) > HOSTS_NAMED else ""
        yield Excluded(EVERY_TEST, f"no flow uses {nic} of {names(hosts, HOSTS_NAMED)}{more}", nic)


def _left(fleet: Fleet) -> Iterator[Excluded]:
    """Devices on the fabric that the inventory does not take."""
    hosts_of: dict[tuple[str, str], list[str]] = {}
    for name, host in fleet.hosts.items():
        for nic, why in host.left.items():
            hosts_of.setdefault((nic, why), []).append(name)
    for (nic, why), hosts in hosts_of.items():
        more = " hosts" if len(hosts) > HOSTS_NAMED else ""
        reason = f"no flow uses {nic} of {names(hosts, HOSTS_NAMED)}{more}: {why}"
        yield Excluded(EVERY_TEST, reason, nic)


def excluded(tests: Sequence[PlannedTest], fleet: Fleet) -> list[Excluded]:
    return [
        *(said for one in tests for said in _of_test(one)),
        *_left_out(tests, fleet),
        *_idle_nics(tests, fleet),
        *_left(fleet),
    ]
