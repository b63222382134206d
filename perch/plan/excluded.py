"""What is not measured, and why."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from perch.model.plan import Excluded
from perch.model.text import names
from perch.plan import rails
from perch.plan.pairs import Pair
from perch.plan.tests import Fleet, PlannedTest

#: Hosts that a reason names.
HOSTS_NAMED = 5

EVERY_TEST = "every test"


def _of_test(one: PlannedTest) -> Iterator[Excluded]:
    likeness, unfit = one.fleet.likeness, dict(one.unfit)
    name = one.test.name
    for hosts, why in _by_hosts(unfit, likeness, lambda *pair: unfit[pair]):
        yield Excluded(name, f"{hosts}: {why}")
    if one.command.by_rail(one.test) and one.test.get("devices") is not None:
        yield from _rails_missing(one)
        yield from _incapable(one)
    elif one.test.kind == "transfer":
        yield from _alone(one, (pair for turn in one.turns for pair in turn.pairs))
    for host, lacks in one.unable:
        yield Excluded(name, f"{host} {lacks}")
    if len(one.able) < 2:
        yield Excluded(name, f"two hosts are needed and {len(one.able)} can take part")


def _hosts(words: Iterable[str]) -> str:
    listed = list(words)
    more = " hosts" if len(listed) > HOSTS_NAMED else ""
    return names(listed, HOSTS_NAMED) + more


def _by_hosts(
    pairs: Iterable[Pair], alike: Mapping[str, Hashable], why: Callable[[str, str], str | None]
) -> Iterator[tuple[str, str]]:
    """Hosts and what is wrong between them, said once of all pairs of two kinds of hosts.

    alike: equal values of two hosts make the same `why`, whose None says that nothing is wrong.
    """
    found: dict[tuple[Hashable, Hashable], str | None] = {}
    ends: dict[tuple[str, tuple[Hashable, Hashable]], tuple[set[str], set[str]]] = {}
    for one, other in pairs:
        key = alike[one], alike[other]
        if key not in found:
            found[key] = found[key[1], key[0]] = why(one, other)
        reason = found[key]
        if reason is None:
            continue
        if (reason, (key[1], key[0])) in ends:
            one, other, key = other, one, (key[1], key[0])
        left, right = ends.setdefault((reason, key), (set(), set()))
        left.add(one)
        right.add(other)
    for (reason, (mine, theirs)), (left, right) in ends.items():
        yield _between(alike, left, right, mine == theirs), reason


def _between(order: Iterable[str], left: set[str], right: set[str], same: bool) -> str:
    """Each of `left` with each of `right`; `same`: each two of all."""
    if len(left) == len(right) == 1:
        return " and ".join([*left, *right])
    if same:
        return f"between {_hosts(name for name in order if name in left | right)}"
    ends = ([name for name in order if name in hosts] for hosts in (left, right))
    return " with ".join(map(_hosts, ends))


def _rails_missing(one: PlannedTest) -> Iterator[Excluded]:
    """Hosts and pairs that have none of the rails, one where several are needed, or some only."""
    together, hosts = one.test.rails == "together", one.fleet.hosts
    asked, few = rails.asked(one.test), set()
    if together:
        few = {name for name in one.able if len(rails.used(one.test, hosts[name])) < 2}
    if few:
        why = f"fewer than 2 devices match '{asked}', and rails together needs 2"
        listed = _hosts(name for name in one.able if name in few)
        yield Excluded(one.test.name, f"{listed}: {why}; see perch_devices")
    pairs = [pair for pairs in one.asked for pair in pairs if few.isdisjoint(pair)]

    def why_none(client: str, server: str) -> str | None:
        shared = len(one.rails(client, server))
        if shared > together:
            return None
        if len(rails.between(one.test, hosts[client], hosts[server])) > together:
            return f"{shared or 'no'} rail is left, as devices lack what the test needs"
        needs = ", and rails together needs 2" if shared else ""
        return (
            f"'{asked}' has {shared or 'no'} common place in perch_devices{needs}; "
            "give its devices the same places"
        )

    alike = {
        name: (tuple(rails.places(one.test, hosts[name])), *one.without(name)) for name in one.able
    }
    for ends, why in _by_hosts(pairs, alike, why_none):
        yield Excluded(one.test.name, f"{ends}: {why}")
    yield from _alone(one, pairs)


def _incapable(one: PlannedTest) -> Iterator[Excluded]:
    """Devices that lack what the test needs, and those whose partners all lack it."""
    measured: dict[str, set[int]] = {name: set() for name in one.able}
    for pair in (pair for pairs in one.asked for pair in pairs):
        for name in pair:
            measured[name].update(one.rails(*pair))
    found: dict[tuple[str, str], list[str]] = {}
    for name in one.able:
        lacks, devices = one.without(name), one.fleet.hosts[name].devices
        for at in rails.places(one.test, one.fleet.hosts[name]):
            partners = any(at in one.without(other) for other in one.able if other != name)
            if at in lacks:
                found.setdefault((devices[at]["name"], f"it lacks {lacks[at]}"), []).append(name)
            elif at not in measured[name] and partners:
                why = "its partner lacks what the test needs"
                found.setdefault((devices[at]["name"], why), []).append(name)
    for (device, why), names_of in found.items():
        yield Excluded(f"{device} in {one.test.name}", f"{_hosts(names_of)}: {why}")


def _alone(one: PlannedTest, pairs: Iterable[Pair]) -> Iterator[Excluded]:
    """Devices that the test asks for, and that have no partner at the other end of a flow."""
    hosts, likeness = one.fleet.hosts, one.fleet.likeness
    # of two kinds of hosts: the devices of the first, and hosts of both
    found: dict[tuple[Hashable, Hashable], tuple[str, set[str], set[str]]] = {}
    for pair in pairs:
        for owner, other in (pair, pair[::-1]):
            key = likeness[owner], likeness[other]
            if key not in found:
                few = len(one.rails(*pair)) <= (one.test.rails == "together")
                unmet = [] if few else rails.alone(one.test, hosts[owner], hosts[other])
                found[key] = ", ".join(unmet), set(), set()
            if found[key][0]:
                found[key][1].add(owner)
                found[key][2].add(other)
    for left, owners, others in found.values():
        if left:
            mine, theirs = (
                _hosts(name for name in hosts if name in ends) for ends in (owners, others)
            )
            have = "has" if len(others) == 1 else "have"
            why = f"{theirs} {have} no partner at its place in perch_devices; add one there"
            yield Excluded(f"{left} in {one.test.name}", f"{mine}: {why}")


def _left_out(tests: Sequence[PlannedTest], fleet: Fleet) -> Iterator[Excluded]:
    """Said once more: a suite with nothing of the network left, and a host in no flow."""
    measured = [one for one in tests if one.turns]
    if any(one.test.backend != "null" for one in tests) and all(
        one.test.backend == "null" for one in measured
    ):
        why = "nothing of the network is measured: all its tests are excluded"
        yield Excluded("every test of the network", why)
    pairs = (pair for one in measured for turn in one.turns for pair in turn.pairs)
    taking_part = {host for pair in pairs for host in pair}
    for host in fleet.hosts:
        if host not in taking_part:
            yield Excluded(EVERY_TEST, f"host {host} is in no flow")


def _devices_in_use(tests: Sequence[PlannedTest]) -> dict[str, set[int]]:
    """Of each host the places of the devices that flows use; the null backend uses none."""
    return rails.in_use(
        (pair, turn.rail, one.between(*pair, turn.rail).devices)
        for one in tests
        if one.test.backend != "null"
        for turn in one.turns
        for pair in turn.pairs
    )


def _idle_nics(tests: Sequence[PlannedTest], fleet: Fleet) -> Iterator[Excluded]:
    used = _devices_in_use(tests)
    hosts_of: dict[str, dict[str, None]] = {}  # a device may be named twice
    for name, host in fleet.hosts.items():
        busy = {rails.port(one) for at, one in enumerate(host.devices) if at in used.get(name, ())}
        for device in host.devices:
            if rails.port(device) not in busy:
                hosts_of.setdefault(device["name"], {})[name] = None
    for nic, hosts in sorted(hosts_of.items()):
        yield Excluded(EVERY_TEST, f"no flow uses {nic} of {_hosts(hosts)}", nic)


def _left(fleet: Fleet) -> Iterator[Excluded]:
    """Devices on the fabric that the inventory does not take."""
    hosts_of: dict[tuple[str, str], list[str]] = {}
    for name, host in fleet.hosts.items():
        for nic, why in host.left.items():
            hosts_of.setdefault((nic, why), []).append(name)
    for (nic, why), hosts in hosts_of.items():
        yield Excluded(EVERY_TEST, f"no flow uses {nic} of {_hosts(hosts)}: {why}", nic)


def excluded(tests: Sequence[PlannedTest], fleet: Fleet) -> list[Excluded]:
    return [
        *(said for one in tests for said in _of_test(one)),
        *_left_out(tests, fleet),
        *_idle_nics(tests, fleet),
        *_left(fleet),
    ]
