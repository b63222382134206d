"""Which NICs of the hosts did the plan measure?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import polars as pl

from perch.checks import RunView, check, design, first, names, plural
from perch.checks.remedies import for_soak
from perch.model.plan import Flow, Plan
from perch.model.verdict import Bound, Check


def used_by(flows: Iterable[Flow]) -> Counter[str]:
    """How many of its devices each host uses in these flows: always the first ones.

    A transfer takes as many as it has pairs. A flow that names none goes where the host's address
    is, which is the first.
    """
    used: Counter[str] = Counter()
    for flow in flows:
        if flow.backend == "null":
            continue
        pairs = 1 + max((one.pair for one in flow.expect if one.pair is not None), default=0)
        for host in (flow.client, flow.server):
            used[host] = max(used[host], pairs)
    return used


def _devices(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The devices of each host that names some."""
    named = {
        host: tuple(one["name"] for one in planned.devices) for host, planned in plan.hosts.items()
    }
    return {host: devices for host, devices in named.items() if devices}


def _unused(
    devices: dict[str, tuple[str, ...]], used: Counter[str]
) -> dict[tuple[int, tuple[str, ...]], list[str]]:
    """The hosts of which some devices were not used, by their devices and how many were."""
    alike: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for host, of_host in devices.items():
        if used[host] < len(of_host):
            alike.setdefault((used[host], of_host), []).append(host)
    return alike


def _in_vain(run: RunView, devices: dict[str, tuple[str, ...]]) -> Check | None:
    """NICs whose planned flows did not measure."""
    ok = set(run.records.filter(pl.col("status") == "ok")["flow"])
    used = used_by(flow for flow in run.plan.flows() if flow.id in ok)
    alike = _unused(devices, used)
    if not alike:
        return None
    return Check(
        id="nics",
        title="Every NIC was measured",
        fault="NICs were not measured",
        status="inconclusive",
        measured="; ".join(
            f"{n} of {plural(len(of_host), 'NIC')} measured on {names(hosts, 5)}"
            for (n, of_host), hosts in sorted(alike.items())
        ),
        evidence=first(host for host in devices if used[host] < len(devices[host])),
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
    used = used_by(run.plan.flows())
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
        measured="; ".join(
            f"{n} of {plural(len(of_host), 'NIC')} measured on {names(hosts, 5)}, "
            f"not {names(list(of_host[n:]), 8)}"
            for (n, of_host), hosts in sorted(alike.items())
        ),
        evidence=first(host for host in devices if used[host] < len(devices[host])),
        remedy="measure all of them with a suite of transfers "
        "(plan_suite=transfer-read-many-nics), or take them out of perch_devices",
    )
