"""What a run's figures are worth: the scope of its verdict."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from perch.judge.scope import LOCAL_LAYERS, SCOPES
from perch.model.plan import Flow, Plan
from perch.model.record import Scope
from perch.tools import is_tcp

#: Columns that weakest_scope() takes.
COLUMNS = ("test", "scope", "link.layer")

#: Scopes of hosts whose figures could be those of real cards.
_REAL = ("hardware", "imported")


def weakest(scopes: Iterable[str]) -> Scope:
    known = set(scopes)
    return next((scope for scope in SCOPES if scope in known), "software")


def is_beside(flow: Flow, plan: Plan) -> bool:
    """TCP between hosts of hardware, or of an imported run, is what RDMA is compared with.

    It says nothing of what RDMA's figures are worth.
    """
    over_tcp = flow.backend == "tcp" or is_tcp(flow.tool)
    hosts = [plan.hosts[flow.client], plan.hosts[flow.server]]
    return (
        over_tcp
        and flow.scope in ("software", "imported")
        and all(host.scope in _REAL and host.fabric != "loopback" for host in hosts)
    )


def weakest_scope(plan: Plan, records: pl.DataFrame) -> Scope:
    """The least word of all flows but those of TCP beside RDMA, by the plan and the records.

    One flow of RDMA in software, or one that stayed within a host, keeps a run from reading like
    hardware.
    """
    flows = list(plan.flows())
    shown = records.select("test", "scope", pl.col("link.layer")).unique(maintain_order=True)
    least = weakest([flow.scope for flow in flows] + shown["scope"].to_list())
    if least != "software" or not any(flow.scope in _REAL for flow in flows):
        return least
    beside = {flow.test for flow in flows if is_beside(flow, plan)}
    scopes = [flow.scope for flow in flows if not is_beside(flow, plan)]
    for test, scope, layer in shown.iter_rows():
        if scope != "software" or test not in beside or layer in LOCAL_LAYERS:
            scopes.append(scope)
    return weakest(scopes)
