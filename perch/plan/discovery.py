"""Devices of a host that its inventory does not name: by pattern, by PCI address, or all active.

`perch_devices` may hold, between names, patterns such as "mlx5_*", PCI addresses such as
"0000:17:00.0", and the word active: every active device of the fabric that is not a management
port. What hosts said of their devices resolves them, and checks the names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import Any

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model.devices import Device, Devices
from perch.model.suite import Host
from perch.model.text import did_you_mean, names
from perch.plan.template import RAILS_MAX

ACTIVE = "active"

#: Of a fabric, which lines of `perch devices` are its RDMA devices: backend and layer.
_LINES = {
    "roce": ("verbs", "ethernet"),
    "infiniband": ("verbs", "infiniband"),
    "slingshot": ("cxi", "slingshot"),
}

_pci = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_digits = re.compile("([0-9]+)")

#: Why a device is no NIC under test.
MANAGEMENT = "a management port (default route)"

#: Devices or hosts that a message names.
NAMED = 3


class UndiscoveredError(PerchError):
    """Only the hosts can say which devices these are, and they were not asked yet."""


def is_choice(word: str) -> bool:
    """Whether it stands for devices that only the host knows."""
    return word == ACTIVE or any(one in word for one in "*?[") or _pci.fullmatch(word) is not None


def _refusal(host: Host, why: str, remedy: str) -> PerchError:
    return PerchError(ExitCode.USAGE, why, place=f"host {host.name}", remedy=remedy)


def _undiscovered(host: Host, word: str) -> PerchError:
    why = f"perch_devices has '{word}', and the host was not asked for its devices"
    remedy = "give plan_devices, the inputs/devices.json of a run; or run without plan_only"
    return UndiscoveredError(ExitCode.USAGE, why, place=f"host {host.name}", remedy=remedy)


def _limit(without: Iterable[str]) -> str:
    """What an operator adds to the command, to leave hosts out."""
    return f"--limit '{':!'.join(['all', *without])}'"


def _place(device: Device) -> tuple[Any, ...]:
    """By PCI address, which a host's twin shares, then by name: mlx5_2 before mlx5_10."""
    parts = [int(one) if one.isdigit() else one for one in _digits.split(device.device)]
    return device.pci_address or "~", device.port or 0, parts


def of_fabric(host: Host, found: Iterable[Device]) -> list[Device]:
    """The RDMA devices on the host's fabric, in the order of rails."""
    line = _LINES.get(host.fabric)
    return sorted((one for one in found if (one.backend, one.layer) == line), key=_place)


def _addresses(device: Device, found: Iterable[Device]) -> set[str | None]:
    """Those of the device, and of the interface over it."""
    over = {one.address for one in found if device.netdev and one.netdev == device.netdev}
    return over | {gid.gid for gid in device.gids}


def _ip(address: str) -> str | None:
    """An IP address in its shortest form; None of a name."""
    try:
        return str(ip_address(address))
    except ValueError:
        return None


def _is_management(host: Host, device: Device, found: Sequence[Device]) -> bool:
    """It has the default route, and not the address on the fabric under test."""
    address = _ip(host.address) or host.address
    return device.default_route is True and address not in _addresses(device, found)


def _why_not(host: Host, device: Device, found: Sequence[Device]) -> str | None:
    """Why `active` leaves a device out."""
    if _is_management(host, device, found):
        return MANAGEMENT
    if device.state != "up":
        return f"its state is {device.state or 'unknown'}"
    return None


def _shown(device: Device) -> str:
    return f"{device.device}/{device.port}" if (device.port or 1) > 1 else device.device


def _active(host: Host, found: Sequence[Device]) -> list[Device]:
    """Raises PerchError."""
    mine = of_fabric(host, found)
    taken = [one for one in mine if _why_not(host, one, found) is None]
    if not taken:
        has = [f"{_shown(one)} ({_why_not(host, one, found)})" for one in mine]
        raise _refusal(
            host,
            f"it has no active device on {host.fabric}" + (f": {names(has, NAMED)}" if has else ""),
            "see 'perch devices' there, or name the devices (perch_devices)",
        )
    return taken


def _matching(
    host: Host, word: str, found: Sequence[Device], port: int | None = None
) -> list[Device]:
    """The devices of a name, a pattern or an address, and `port` of them only where it is given.

    Raises PerchError where there is none, or one that `active` would leave out.
    """
    if word == ACTIVE:
        return _active(host, found)
    mine = of_fabric(host, found)
    taken = [
        one
        for one in mine
        if (fnmatchcase(one.device, word) or fnmatchcase(one.pci_address or "", word))
        and port in (None, one.port or 1)
    ]
    if not taken:
        has = [f"{_shown(one)} ({one.pci_address})" for one in mine]
        known = [ACTIVE, *(key for one in mine for key in (one.device, one.pci_address) if key)]
        near = did_you_mean(word, known) if word not in known else ""
        word = f"{word}/{port}" if (port or 1) > 1 else word
        raise _refusal(
            host,
            f"perch_devices has '{word}', which matches no device of its {host.fabric} fabric",
            f"it has {names(has, NAMED)}{near}" if has else "see what 'perch devices' says there",
        )
    # a host's name does not tell which port has its address: the site's choice of a device counts
    unsure = port is not None and _ip(host.address) is None
    for one in taken:
        if not (unsure and _is_management(host, one, found)):
            _check_usable(host, word, one, found)
    return taken


def _check_usable(host: Host, word: str, device: Device, found: Sequence[Device]) -> None:
    """Raises PerchError."""
    why = _why_not(host, device, found)
    if why is None:
        return
    remedy = "name the others, or give active instead"
    if _is_management(host, device, found):
        why = f"a management port, as {device.netdev} has the default route"
    else:
        remedy = f"bring it up, {remedy}"
    raise _refusal(
        host, f"perch_devices has '{word}', which matches {_shown(device)}: {why}", remedy
    )


def _settings(device: Device, ports: int) -> dict[str, Any]:
    """As an inventory would name it. The GID is what `perch devices` shows as its address."""
    found: dict[str, Any] = {"name": device.device}
    if device.netdev:
        found["netdev"] = device.netdev
    if ports > 1 or (device.port or 1) > 1:
        found["ib_port"] = device.port
    if device.layer == "ethernet":
        index = [
            gid.index for gid in device.gids if gid.gid == device.address and gid.type == "RoCE v2"
        ]
        found |= {"gid_index": index[0]} if index else {}
    return found


def _key(device: Mapping[str, Any]) -> tuple[str, int]:
    return str(device["name"]), int(device.get("ib_port") or 1)


def _port(device: Device) -> tuple[str, int]:
    """Like _key, of what a host said."""
    return device.device, device.port or 1


def _check_gid(host: Host, given: Mapping[str, Any], device: Device) -> None:
    """Raises PerchError where the device lacks the GID that the inventory names."""
    index, has = given.get("gid_index"), [str(gid.index) for gid in device.gids]
    if index is not None and has and str(index) not in has:
        raise _refusal(
            host,
            f"perch_devices has {device.device} with gid_index {index}, and its GIDs are "
            + names(has, NAMED),
            "see 'perch devices' there",
        )


def _resolved(host: Host, found: Devices | None) -> Iterator[dict[str, Any]]:
    """What is named before a choice is not chosen once more. Raises PerchError."""
    said = found.hosts.get(host.name) if found is not None else None
    seen = set()
    for given in host.devices:
        word = str(given["name"])
        if not is_choice(word):
            if said is not None and host.fabric in _LINES:
                for one in _matching(host, word, said, _key(given)[1]):
                    _check_gid(host, given, one)
            seen.add(_key(given))
            yield given
            continue
        if said is None:
            raise _undiscovered(host, word)
        for one in _matching(host, word, said):
            _check_gid(host, given, one)
            ports = sum(line.device == one.device for line in of_fabric(host, said))
            settings = _settings(one, ports) | {k: v for k, v in given.items() if k != "name"}
            if _key(settings) not in seen:
                yield settings
            seen.add(_key(settings))


def _left(host: Host, devices: Sequence[dict[str, Any]], said: Sequence[Device]) -> dict[str, str]:
    """The devices on the host's fabric that its inventory does not take, and why."""
    taken = set(map(_key, devices))
    return {
        _shown(one): _why_not(host, one, said) or "not in perch_devices"
        for one in of_fabric(host, said)
        if _port(one) not in taken
    }


def discovered(host: Host, found: Devices | None) -> Host:
    """The host with the devices that it has. Raises PerchError."""
    devices = list(_resolved(host, found))
    if len(devices) > RAILS_MAX:
        why = f"perch_devices takes {len(devices)} devices, and a host has {RAILS_MAX} at most"
        raise _refusal(host, why, "choose fewer")
    said = found.hosts.get(host.name, []) if found is not None else []
    can = {one.device: one.capabilities for one in said if one.capabilities is not None}
    used = {device["name"] for device in devices}
    gpus = [one.gpus for one in said if one.gpus is not None]
    return msgspec.structs.replace(
        host,
        devices=devices,
        left=_left(host, devices, said),
        can=can,
        drivers=frozenset(one.driver for one in said if one.driver and one.device in used),
        gpus=frozenset(gpu.split(":")[0] for one in gpus for gpu in one) if gpus else None,
    )


def of_hosts(named: Mapping[str, Host], found: Devices | None, file: str) -> dict[str, Host]:
    """All hosts with the devices that they have, as `file` says, or they. Raises PerchError."""
    have, silent = {}, []
    for name, host in named.items():
        try:
            have[name] = discovered(host, found)
        except UndiscoveredError:
            if found is None:
                raise
            silent.append(name)
    if silent:
        raise UndiscoveredError(
            ExitCode.USAGE,
            f"neither perch_devices nor {file} names devices"
            if file
            else "'perch devices' gave no answer, and perch_devices names no devices",
            place=f"host {names(silent, NAMED)}",
            remedy=("name them" if file else "run it there, or name them")
            + f", or leave out: {_limit(silent)}",
        )
    return have


def _missing(hosts: Mapping[str, Host], found: Devices) -> dict[str, str]:
    """Hosts that lack a NIC where at least half of their fabric's hosts have one, and which.

    Twins have their NICs at the same PCI addresses; a host with other ones is another machine.
    """
    faults = {}
    for fabric in dict.fromkeys(host.fabric for host in hosts.values()):
        have = {
            name: frozenset(one.pci_address for one in of_fabric(host, found.hosts[name]))
            for name, host in hosts.items()
            if host.fabric == fabric and name in found.hosts
        }
        alike = Counter(have.values())
        usual = max(alike, key=lambda one: (alike[one], len(one)))
        for name, own in have.items():
            if own < usual and 2 * alike[usual] >= len(have):
                lacks = names(sorted(filter(None, usual - own)), NAMED)
                faults[name] = (
                    f"no NIC at {lacks}, where {alike[usual]} of {len(have)} hosts have one"
                )
    return faults


def check_rails(
    named: Mapping[str, Host], hosts: Mapping[str, Host], found: Devices | None
) -> None:
    """Raises PerchError where a NIC that is down or missing would shift the rails behind it.

    named: as the inventory has them. Its partners would be other NICs than at the other hosts. A
    port that no host measures shifts nothing.
    """
    if found is None:
        return
    chosen = {
        name: host
        for name, host in hosts.items()
        if any(is_choice(str(one["name"])) for one in named[name].devices)
    }
    measured = {_key(device) for host in hosts.values() for device in host.devices}
    lacking = _missing(hosts, found) if chosen else {}
    # which NICs count of a host that names them is the site's choice
    missing = {name: lacking[name] for name in chosen if name in lacking}
    faults = dict(missing)
    for name, host in chosen.items():
        own = set(map(_key, host.devices))
        mine = of_fabric(host, found.hosts[name])
        last = max(at for at, one in enumerate(mine) if _port(one) in own)
        for one in mine[:last]:
            if one.state != "up" and _port(one) in measured:
                state = one.state or "unknown"
                faults[name] = f"{_shown(one)} is {state} here only, so later rails would shift"
                break
    if faults:
        first, *others = faults
        raise PerchError(
            ExitCode.USAGE,
            faults[first],
            place=f"host {first}",
            remedy="mend it, "
            + ("name its perch_devices if it has fewer on purpose, " if missing else "")
            + f"or leave out: {_limit(faults)}",
            more=[f"host {name}: {faults[name]}" for name in others],
        )


def said(hosts: Mapping[str, Host], found: Devices | None, file: str) -> str:
    """Where the plan has its devices from; "" where no host has any."""
    if not any(host.devices for host in hosts.values()):
        return ""
    if found is None:
        return "Devices: as the inventory names them; no host was asked."
    unasked = [name for name in hosts if name not in found.hosts]
    where = f"of {file}, recorded {found.recorded}" if file else "as the hosts answered"
    but = f"; of {names(unasked, NAMED)} as the inventory names them" if unasked else ""
    return f"Devices: {where}{but}."
