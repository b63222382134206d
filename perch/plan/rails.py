"""Rails: the devices of two hosts that measure each other, one with one, by their places.

Rail i of two hosts is between device i of each in `perch_devices`. A test's `devices` says which
rails it measures: "all", the first N, names, or a pattern of names such as "mlx5_*".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model.suite import Host, SuiteTest
from perch.model.text import names
from perch.plan.template import RAILS_MAX, places_of

#: Devices that a message names of all hosts.
NAMED = 3


def _patterns(asked: Any) -> list[str]:
    return asked if isinstance(asked, list) else [asked]


def refusal(test: SuiteTest) -> str | None:
    """Why `devices` of a test can be no choice of rails; None where it can."""
    asked = test.params.get("devices")
    if asked is None and test.rails == "together":
        return "rails together needs devices, which says the rails: all, a number, names, a pattern"
    if asked is None or asked == "all":
        return None
    if isinstance(asked, int) and not isinstance(asked, bool) and 1 <= asked <= RAILS_MAX:
        return None
    if isinstance(asked, str) and asked:
        return None
    if isinstance(asked, list) and asked and all(isinstance(one, str) and one for one in asked):
        return None
    return f"devices is all, a number from 1 to {RAILS_MAX}, names of devices, or a pattern"


def asked(test: SuiteTest) -> str:
    """The `devices` of a test, as a message shows them."""
    return ", ".join(map(str, _patterns(test.params["devices"])))


def places(test: SuiteTest, host: Host) -> list[int]:
    """Of the devices that the test asks for."""
    return places_of(test.params.get("devices"), host.devices)


def row(host: Host, rail: int, devices: int) -> Host:
    """The host with so many of its devices only."""
    return msgspec.structs.replace(host, devices=host.devices[rail : rail + devices])


def apart(test: SuiteTest, client: Host, server: Host) -> str | None:
    """Why devices of two hosts cannot be the rails of one transfer."""
    if test.kind != "transfer" or places(test, client)[:1] == places(test, server)[:1]:
        return None
    return "the test's devices have other places in perch_devices of the other host"


def used(test: SuiteTest, host: Host) -> list[dict[str, Any]]:
    """The devices of a host that the test asks for."""
    at = places(test, host)
    return [device for place, device in enumerate(host.devices) if place in at]


def lacking(test: SuiteTest, host: Host) -> str | None:
    """Why a host cannot take part; None where it can."""
    asked, has = test.params.get("devices"), [str(one["name"]) for one in host.devices]
    if asked is None:
        return None
    if asked in ("all", 1) and not has:
        return None  # the one that the engine chooses
    if not has:
        return "names no device (perch_devices), and the test chooses among them"
    if isinstance(asked, int) and asked > len(has):
        return f"names {len(has)} of the {asked} devices that the test takes (perch_devices)"
    unmatched = next(_unmatched(asked, has), None)
    if unmatched is not None:
        return unmatched
    return _apart(asked, host) if test.kind == "transfer" else _twice(asked, host)


def _apart(asked: Any, host: Host) -> str | None:
    """A flow is of devices in a row, from its rail on."""
    places = places_of(asked, host.devices)
    if places[-1] - places[0] < len(places):
        return None
    named = names([str(host.devices[at]["name"]) for at in places], NAMED)
    return f"has {named} not in a row (perch_devices), and one transfer takes a row of devices"


def port(device: dict[str, Any]) -> tuple[str, str]:
    """A device, of which a card may have two under one name."""
    return str(device["name"]), str(device.get("ib_port") or 1)


def _twice(asked: Any, host: Host) -> str | None:
    """One device as two rails would stand for another one, which nothing measures."""
    used = [host.devices[at] for at in places_of(asked, host.devices)]
    ports = [port(device) for device in used]
    return "names a device twice (perch_devices)" if len(set(ports)) < len(ports) else None


def _unmatched(asked: Any, has: list[str]) -> Iterator[str]:
    """Each name or pattern that no device has."""
    if asked != "all" and not isinstance(asked, int):
        for pattern in _patterns(asked):
            if not any(fnmatchcase(name, pattern) for name in has):
                yield f"has no device {pattern}; perch_devices has {names(has, NAMED)}"


def check_matched(test: SuiteTest, hosts: Iterable[Host]) -> None:
    """Raises PerchError where the test names devices that no host has."""
    has = list(dict.fromkeys(str(device["name"]) for host in hosts for device in host.devices))
    given = test.params.get("devices")
    if given in (None, "all") or isinstance(given, int):
        return
    for pattern in _patterns(given):
        if not any(fnmatchcase(name, pattern) for name in has):
            raise PerchError(
                ExitCode.USAGE,
                f"devices '{pattern}' match no device of any host",
                place=f"test {test.name}",
                remedy=f"perch_devices has {names(has, NAMED) or 'none'}; change either",
            )


def between(test: SuiteTest, client: Host, server: Host) -> list[int]:
    """The rails that the test measures between two hosts, both of which can take part."""
    asked = test.params.get("devices")
    theirs = set(places_of(asked, server.devices))
    return [rail for rail in places_of(asked, client.devices) if rail in theirs]


def alone(test: SuiteTest, host: Host, other: Host) -> list[str]:
    """The devices of `host` that the test asks for and that have no partner at `other`, by name."""
    asked = test.params.get("devices")
    theirs = places_of(asked, other.devices)
    return [
        str(host.devices[at]["name"])
        for at in places_of(asked, host.devices)
        if at not in theirs and asked is not None
    ]


def in_use(parts: Iterable[tuple[Iterable[str], int, int]]) -> dict[str, set[int]]:
    """Of each host the places of its devices that are used.

    parts: the hosts of a flow, its first rail, and how many devices it uses. A flow that names none
    goes where the host's address is, which is the first.
    """
    spans: dict[str, set[tuple[int, int]]] = {}
    for hosts, rail, devices in parts:
        for host in hosts:
            spans.setdefault(host, set()).add((rail, devices))
    return {
        host: {place for rail, devices in of_host for place in range(rail, rail + devices)}
        for host, of_host in spans.items()
    }
