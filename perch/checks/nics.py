"""Which NICs of the hosts did the plan measure?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from perch.checks import RunView, check, design, first, names, plural
from perch.checks.remedies import for_soak
from perch.model.plan import Flow, Plan
from perch.model.verdict import Bound, Check
from perch.plan import rails


def used_by(plan: Plan, flows: Iterable[Flow]) -> dict[str, set[int]]:
    """Of each host the places of the devices that these flows use; the null backend uses none.

    A host without perch_devices has no places: its flows use sockets, or a provider's own choice.
    """
    used = rails.in_use(
        ((flow.client, flow.server), flow.rail, flow.devices)
        for flow in flows
        if flow.backend != "null"
    )
    return {host: places for host, places in used.items() if plan.hosts[host].devices}


def _devices(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The devices of each host that names some, and the NICs beside them."""
    named = {
        host: (*(one["name"] for one in planned.devices), *planned.left)
        for host, planned in plan.hosts.items()
    }
    return {host: devices for host, devices in named.items() if devices}


#: Alike hosts: their devices, and the places of those that were used.
_Use = tuple[tuple[str, ...], tuple[int, ...]]


def _unused(
    devices: dict[str, tuple[str, ...]], used: dict[str, set[int]]
) -> dict[_Use, list[str]]:
    """The hosts of which some devices were not used."""
    alike: dict[_Use, list[str]] = {}
    for host, of_host in devices.items():
        places = tuple(sorted(used.get(host, set()) & set(range(len(of_host)))))
        if len(places) < len(of_host):
            alike.setdefault((of_host, places), []).append(host)
    return alike


def _told(alike: dict[_Use, list[str]]) -> str:
    """How many were used of each host, and which were not."""
    return "; ".join(
        f"{len(places)} of {plural(len(of_host), 'NIC')} measured on {names(hosts, 5)}, not "
        + names([one for at, one in enumerate(of_host) if at not in places], 8)
        for (of_host, places), hosts in sorted(alike.items(), key=lambda one: one[0][::-1])
    )


def _in_vain(run: RunView, devices: dict[str, tuple[str, ...]]) -> Check | None:
    """NICs whose planned flows did not measure."""
    ok = set(run.records.filter(pl.col("status") == "ok")["flow"])
    used = used_by(run.plan, (flow for flow in run.plan.flows() if flow.id in ok))
    alike = _unused(devices, used)
    if not alike:
        return None
    return Check(
        id="nics",
        title="Every NIC was measured",
        fault="NICs were not measured",
        status="inconclusive",
        measured=_told(alike),
        evidence=first(host for hosts in alike.values() for host in hosts),
        remedy=for_soak(run.soak_state)
        or "mend what kept the flows of these hosts from being measured, and measure again",
    )


@check(
    family="nics",
    order=35,
    columns=("flow", "status"),
    source=design("NICs that no flow uses are named"),
)
def nics(run: RunView) -> Iterator[Check]:
    devices = _devices(run.plan)
    if not devices:
        return
    used = used_by(run.plan, run.plan.flows())
    alike = _unused(devices, used)
    every = sum(len(of_host) for of_host in devices.values())
    if not alike and (in_vain := _in_vain(run, devices)):
        yield in_vain
        return
    if not alike:
        yield Check(
            id="nics",
            title="Every NIC was measured",
            status="pass",
            measured=every,
            limit=Bound(every, None),
            unit="NICs",
        )
        return
    yield Check(
        id="nics",
        title="Every NIC was measured",
        fault="NICs were not measured",
        status="advisory",
        measured=_told(alike),
        evidence=first(host for hosts in alike.values() for host in hosts),
        remedy="give tests devices: all in their params, and perch_devices all NICs; mend "
        "ports that are down",
    )
