"""What was bought: the rate of each host's links, and the set of limits for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from perch.errors import ExitCode, PerchError
from perch.model import limit_files
from perch.model import plan as plans
from perch.model.devices import Devices
from perch.model.limit_files import RateSet
from perch.model.suite import RDMA_FABRICS, Host
from perch.model.text import names

#: Gb/s of one link or of a bond of two, by what carries it: IEEE Std 802.3 (1 to 1600); the
#: InfiniBand Architecture Specification, SDR to XDR of 1, 2 and 4 lanes; HPE Slingshot, Cassini 1
#: and 2.
_ETHERNET = (1, 2.5, 5, 10, 20, 25, 40, 50, 80, 100, 200, 400, 800, 1600)
RATES: dict[str, tuple[float, ...]] = {
    "ethernet": _ETHERNET,
    "roce": _ETHERNET,
    "infiniband": (10, 14, 20, 25, 28, 40, 50, 54, 56, 100, 200, 400, 800, 1600),
    "slingshot": (100, 200, 400),
}

#: Hosts, rates or sets that a message names.
NAMED = 3

#: Of links without a named rate, which are no hardware.
_UNRATED = {
    "loopback": "local", "ethernet": "tcp", "roce": "rxe", "infiniband": "rxe",
    "slingshot": "slingshot-200",
}  # fmt: skip


def _refusal(why: str, place: str = "", remedy: str = "") -> PerchError:
    return PerchError(ExitCode.USAGE, why, place=place, remedy=remedy)


def check_rates(hosts: Iterable[Host]) -> None:
    """Raises PerchError where nothing says what was bought, or no device has such a rate."""
    unsaid = [host.name for host in hosts if host.scope == "hardware" and host.link_gbit_s is None]
    if unsaid:
        raise _refusal(
            "perch_link_gbit_s is missing on hardware",
            f"host {names(unsaid, NAMED)}",
            "set it to the rate of each link as bought, in Gb/s, such as 400",
        )
    for host in hosts:
        rates, bought = RATES.get(host.fabric, ()), host.link_gbit_s
        if bought is not None and rates and bought not in rates:
            near = sorted(rates, key=lambda rate: abs(rate - bought))
            raise _refusal(
                f"perch_link_gbit_s is {bought:g}, and no device on {host.fabric} has such a rate",
                f"host {host.name}",
                f"give one of {names([f'{rate:g}' for rate in near], NAMED)}",
            )


def check_traits(hosts: Iterable[Host]) -> None:
    """Raises PerchError where hosts of one fabric contradict each other about a trait of it."""
    said: dict[tuple[str, str], dict[bool, list[str]]] = {}
    for host in hosts:
        for trait, value in host.traits.items():
            said.setdefault((host.fabric, trait), {}).setdefault(value, []).append(host.name)
    for (fabric, trait), by_value in said.items():
        if len(by_value) > 1:
            fewer, more = sorted(by_value, key=lambda value: len(by_value[value]))
            raise _refusal(
                f"perch_fabric_traits says {trait} {str(fewer).lower()}, and {fabric} hosts "
                f"{names(by_value[more], NAMED)} say {str(more).lower()}",
                f"host {names(by_value[fewer], NAMED)}",
                "give all the same",
            )


#: FDR's port states 56 Gb/s of signals and carries 54.5 of data (64b/66b); later rates are of data.
CODED = 0.96
#: Links of a bond, whose device has the rate of them all.
BOND = 2


def check_devices(hosts: Iterable[Host], found: Devices | None) -> None:
    """Raises PerchError where no device of any host has the rate that was bought."""
    if found is None:
        return
    has: set[float] = set()
    said: dict[float, list[str]] = {}
    for host in hosts:
        measured = {one["name"] for one in host.devices}
        rates = {
            one.rate_gbit_s
            for one in found.hosts.get(host.name, [])
            if one.device in measured and one.state == "up" and one.rate_gbit_s
        }
        if rates and host.link_gbit_s is not None:
            said.setdefault(host.link_gbit_s, []).append(host.name)
            has |= rates
    for gbit_s, named in said.items():
        if not any(_is_of(gbit_s, rate) for rate in has):
            raise _refusal(
                f"perch_link_gbit_s is {gbit_s:g}, and devices have "
                f"{', '.join(f'{rate:g}' for rate in sorted(has))} Gb/s",
                f"host {names(named, NAMED)}",
                "correct it, or mend the links",
            )


def _is_of(bought: float, rate: float) -> bool:
    return any(CODED * links * bought <= rate <= links * bought / CODED for links in (1, BOND))


def limit_set(named: str, folder: Path, hosts: Iterable[Host]) -> str:
    """The set that is named, or where none is, that of the slowest link of the RDMA fabric.

    Raises:
        PerchError: the named set is of other rates than any link, or no set is of the link, or of
        all RDMA fabrics.
    """
    sets = limit_files.rate_sets(folder)
    rated = [(host.fabric, host.link_gbit_s) for host in hosts if host.link_gbit_s is not None]
    if named:
        _check_named(named, sets, rated)
        return named
    if not rated:
        return next((_UNRATED[host.fabric] for host in hosts if host.fabric in _UNRATED), "local")
    of_rdma = [link for link in rated if link[0] in RDMA_FABRICS]
    if not of_rdma:
        return _UNRATED[rated[0][0]]
    fabric, gbit_s = min(of_rdma, key=lambda one: one[1])
    other = next((one for one, _ in of_rdma if one != fabric), None)
    if other is not None:
        raise _refusal(
            f"hosts are on {fabric} and {other}, and no set is of both",
            "plan_limits",
            "name a set, or plan one fabric at a time (--limit)",
        )
    found = next((one.name for one in sets if one.takes(fabric, gbit_s)), None)
    if found is None:
        raise _refusal(
            f"no set of limits is of {gbit_s:g} Gb/s on {fabric}",
            "plan_limits",
            f"name one, such as {fabric}",
        )
    return found


#: Limits of what a network loses, which one that is not lossless does on purpose.
_OF_LOSSLESS = ("packets-retried", "messages-lost", "large-messages-lost")


def with_traits(limits: dict[str, Any], hosts: Iterable[Host]) -> dict[str, Any]:
    """The run's limits, where a fabric that is not lossless is only shown what it loses.

    Where some of its hosts do not say so, all are held to the bounds of one that is.
    """
    if plans.trait(hosts, "lossless") is not False:
        return limits
    return {**limits, "limits": [_of_lossy(one) for one in limits["limits"]]}


def _of_lossy(limit: dict[str, Any]) -> dict[str, Any]:
    """A site's own limit stays as it is."""
    if limit["id"] not in _OF_LOSSLESS or "replaces" in limit or "removed" in limit:
        return limit
    was = {key: limit[key] for key in ("severity", "bound", "source")}
    return {
        **limit,
        "severity": "advisory",
        "from": "perch_fabric_traits",
        "replaces": {"from": limit["from"], **was},
    }


def _check_named(named: str, sets: list[RateSet], rated: list[tuple[str, float]]) -> None:
    of = next((one for one in sets if one.name == named), None)
    if of is None or not rated or any(of.takes(*link) for link in rated):
        return
    links = sorted({f"{gbit_s:g} Gb/s on {fabric}" for fabric, gbit_s in rated})
    fitting = sorted({one.name for one in sets for link in rated if one.takes(*link)})
    raise _refusal(
        f"the set {named} is of links above {of.above_gbit_s:g} up to {of.up_to_gbit_s:g} Gb/s on "
        f"{of.fabric}; the inventory has {names(links, NAMED)}",
        "plan_limits",
        f"name {names(fitting, NAMED)}" if fitting else "leave plan_limits out",
    )
