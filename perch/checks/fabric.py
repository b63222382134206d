"""What a fabric is, as far as figures of two runs may be compared.

Hosts, their devices with rate and MTU, the set of limits and the scope.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from perch.model.baseline import End, Fabric, FabricHost
from perch.model.figures import rounded
from perch.model.plan import Plan
from perch.model.record import ROLES, Scope

#: Columns that ends() takes.
COLUMNS = (
    "client.host", "client.device", "server.host", "server.device",
    "link.rate_gbit_s", "link.mtu_bytes", "link.layer",
)  # fmt: skip


def planned_identity(plan: Plan) -> dict[str, Any]:
    """What is known of a fabric before anything is measured: accepted runs are found by it.

    The suite is part of it, because runs of different suites have few figures in common.
    """
    hosts = {
        name: {"fabric": host.fabric, "scope": host.scope} for name, host in plan.hosts.items()
    }
    return {"suite": plan.suite.name, "limits": plan.limits, "hosts": hosts}


def _number(value: float | None) -> int | float | None:
    return None if value is None else rounded(value)


def ends(records: pl.DataFrame) -> dict[str, list[End]]:
    """By host the ends that records show. Sockets' tools name no device."""
    shown: dict[str, list[End]] = {}
    for role in ROLES:
        of_role = records.select(
            pl.col(f"{role}.host").alias("host"),
            pl.col(f"{role}.device").alias("device"),
            "link.rate_gbit_s",
            "link.mtu_bytes",
            "link.layer",
        ).filter(pl.col("device").is_not_null())
        for host, device, rate, mtu, layer in of_role.unique(maintain_order=True).iter_rows():
            end = End(device, _number(rate), _number(mtu), layer)
            known = shown.setdefault(host, [])
            if end not in known:
                known.append(end)
    return {host: sorted(known, key=_end_order) for host, known in shown.items()}


def _end_order(end: End) -> tuple[Any, ...]:
    """What is not known comes first."""
    values = (end.device, end.layer, end.mtu_bytes, end.rate_gbit_s)
    return tuple(() if value is None else (value,) for value in values)


def identity(plan: Plan, shown: dict[str, list[End]], scope: Scope, fabric_id: str = "") -> Fabric:
    """The same with the ends that records showed. `scope`: the verdict's."""
    hosts = {
        name: FabricHost(host.fabric, host.scope, shown.get(name, []))
        for name, host in plan.hosts.items()
    }
    return Fabric(fabric_id, plan.suite.name, plan.limits, scope, hosts)


def _said(end: End) -> str:
    rate, mtu = end.rate_gbit_s, end.mtu_bytes
    speed = "an unknown rate" if rate is None else f"{rate} Gb/s"
    return f"{end.device} at {speed}, MTU {'unknown' if mtu is None else mtu}"


def _host_differences(name: str, was: FabricHost, now: FabricHost) -> Iterator[str]:
    if now.fabric != was.fabric:
        yield f"{name} was on {was.fabric} and is on {now.fabric}"
    new = [end for end in now.ends if end not in was.ends]
    if new and was.ends:
        yield f"{name} has {'; '.join(map(_said, new))}; it had {'; '.join(map(_said, was.ends))}"


def differences(was: Fabric, now: Fabric) -> Iterator[str]:
    """Where the fabric `now` is another one than `was`.

    What was measured then and is not now is the plan's affair.
    """
    if was.limits != now.limits:
        yield f"the limits were {was.limits} and are {now.limits}"
    if was.scope != now.scope:
        yield f"the scope was {was.scope} and is {now.scope}"
    before, after = sorted(was.hosts), sorted(now.hosts)
    if before != after:
        yield f"the hosts were {', '.join(before)} and are {', '.join(after)}"
    for name, host in now.hosts.items():
        if name in was.hosts:
            yield from _host_differences(name, was.hosts[name], host)
