"""Core slots of a soak: where many commands work on a host at the same time, which one each is.

A host's commands of a round share out its cores together: each device in use has as many slots as
the host has pairs of tests, and the devices of a pair have the same slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perch.model.plan import FlowKey, PlanTest, Slot

#: Test, client, server.
Pair = tuple[str, str, str]


def pair_of(key: FlowKey) -> Pair:
    return key.test, key.client, key.server


def _takes_one(test: PlanTest) -> bool:
    """Whether its commands name one."""
    return any("{client.slot}" in word for form in test.forms.values() for word in form.client)


def slots(flows: Iterable[FlowKey], tests: Mapping[str, PlanTest]) -> dict[Pair, list[Slot]]:
    """Of each pair of a round the slot at the client's host and that at the server's."""
    taking = {name for name, test in tests.items() if _takes_one(test)}
    pairs: dict[str, list[Pair]] = {}
    rails: dict[str, set[int]] = {}
    places: dict[Pair, list[tuple[str, int]]] = {}
    for key in flows:
        if key.test not in taking:
            continue
        pair, ends = pair_of(key), (key.client, key.server)
        for host in ends:
            rails.setdefault(host, set()).add(key.rail)
        if pair not in places:
            of_hosts = [pairs.setdefault(host, []) for host in ends]
            places[pair] = [
                (host, len(of_host)) for host, of_host in zip(ends, of_hosts, strict=True)
            ]
            for of_host in of_hosts:
                of_host.append(pair)
    return {
        pair: [Slot(sorted(rails[host]), f"{at + 1}/{len(pairs[host])}") for host, at in ends]
        for pair, ends in places.items()
    }
