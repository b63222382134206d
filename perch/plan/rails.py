"""Rails: the devices of two hosts that measure each other, one with one, by their places.

Rail i of two hosts is between device i of each in `perch_devices`. A test's `devices` says which
rails it measures: "all", the first N, names, or a pattern of names such as "mlx5_*".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from perch.model.suite import Host, SuiteTest
from perch.model.text import names

#: Eight dual-plane adapters of a host have 16 devices (real hosts with the most).
RAILS_MAX = 16


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


def _of_host(asked: Any, devices: Sequence[dict[str, Any]]) -> list[int]:
    """The places of the devices that a test asks for."""
    if asked is None:
        return [0]
    if asked == "all":
        return list(range(min(max(len(devices), 1), RAILS_MAX)))
    if isinstance(asked, int):
        return list(range(asked))
    patterns = _patterns(asked)
    return [
        at
        for at, device in enumerate(devices[:RAILS_MAX])
        if any(fnmatchcase(str(device["name"]), pattern) for pattern in patterns)
    ]


def used(test: SuiteTest, host: Host) -> list[dict[str, Any]]:
    """The devices of a host that the test asks for."""
    places = _of_host(test.get("devices"), host.devices)
    return [device for at, device in enumerate(host.devices) if at in places]


def lacking(test: SuiteTest, host: Host) -> str | None:
    """Why a host cannot take part; None where it can."""
    asked, has = test.params.get("devices"), [str(one["name"]) for one in host.devices]
    if asked is None:
        return None
    if asked == "all" and not has:
        return None  # the one that the engine chooses
    if not has:
        return "names no device (perch_devices), and the test chooses among them"
    if isinstance(asked, int) and asked > len(has):
        return f"names {len(has)} of the {asked} devices that the test takes (perch_devices)"
    return next(_unmatched(asked, has), None) or _twice(asked, host)


def _twice(asked: Any, host: Host) -> str | None:
    """One device as two rails would stand for another one, which nothing measures."""
    used = [host.devices[at] for at in _of_host(asked, host.devices)]
    ports = [(device["name"], str(device.get("ib_port") or 1)) for device in used]
    return "names a device twice (perch_devices)" if len(set(ports)) < len(ports) else None


def _unmatched(asked: Any, has: list[str]) -> Iterator[str]:
    """Each name or pattern that no device has."""
    if asked != "all" and not isinstance(asked, int):
        for pattern in _patterns(asked):
            if not any(fnmatchcase(name, pattern) for name in has):
                yield f"has no device {pattern}; perch_devices has {names(has, RAILS_MAX)}"


def between(test: SuiteTest, client: Host, server: Host) -> list[int]:
    """The rails that the test measures between two hosts, both of which can take part."""
    asked = test.params.get("devices")
    theirs = set(_of_host(asked, server.devices))
    return [rail for rail in _of_host(asked, client.devices) if rail in theirs]


def alone(test: SuiteTest, client: Host, server: Host) -> list[str]:
    """The devices that the test asks for and that have no partner at the other end, by name."""
    asked = test.params.get("devices")
    mine, theirs = _of_host(asked, client.devices), _of_host(asked, server.devices)
    return [
        str(host.devices[at]["name"])
        for host, own, other in ((client, mine, theirs), (server, theirs, mine))
        for at in own
        if at not in other and asked is not None
    ]
