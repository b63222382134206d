"""Records, limits and runs as checks see them, made by tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from perch.checks import RunView, families
from perch.judge import columns
from perch.model.limits import Limit, Limits
from perch.model.plan import Flow, Plan, PlanHost, Round, Suite
from perch.model.record import Record
from perch.model.verdict import Check


def record(flow: str = "t/a/b/0/1", **more: Any) -> Record:
    """A record of 64 KiB with status ok; `more` are keys of it, objects as dicts."""
    test, client, server, rail, repeat = flow.split("/")
    made: dict[str, Any] = {
        "schema": "perch.record/2", "run": "r", "flow": flow, "test": test, "rail": int(rail),
        "repeat": int(repeat), "scope": "software", "tool": {"name": "perch"},
        "client": {"host": client}, "server": {"host": server}, "status": "ok",
        "kind": "bandwidth", "op": "send", "backend": "ofi", "params": {"size_bytes": 65536},
    } | more  # fmt: skip
    return msgspec.convert(made, Record)


def limit(**more: Any) -> Limit:
    """A required limit of bandwidth; `more` are keys of it."""
    made: dict[str, Any] = {
        "id": "l", "title": "Bandwidth", "scope": {}, "metric": "bandwidth.gbit_s",
        "bound": {"min": 1}, "unit": "Gb/s", "source": "site policy", "severity": "required",
        "remedy": "look",
    } | more  # fmt: skip
    return msgspec.convert(made, Limit)


def flow_of(one: Record, **more: Any) -> Flow:
    """The flow that a record is of."""
    made: dict[str, Any] = {
        "id": one.flow, "test": one.test, "tool": one.tool.name, "kind": one.kind, "op": one.op,
        "client": one.client.host, "server": one.server.host, "scope": one.scope,
        "repeat": one.repeat, "rail": one.rail,
        "hop_class": one.link.hop_class if one.link else None,
    } | more  # fmt: skip
    return msgspec.convert(made, Flow)


def plan_of(flows: Iterable[Flow]) -> Plan:
    """A plan of one round; its hosts are those of the flows."""
    known = {flow.id: flow for flow in flows}
    names = sorted({flow.host(role) for flow in known.values() for role in ("client", "server")})
    host = PlanHost(address="", fabric="roce", scope="hardware", port=1)
    return Plan(
        schema="perch.plan/2",
        run="r",
        created="2026-01-01T00:00:00Z",
        suite=Suite("s", "S"),
        limits="local",
        hosts=dict.fromkeys(names, host),
        rounds=[Round(list(known.values()))],
    )


def run_of(records: list[Record], *limits: Limit, **more: Any) -> RunView:
    """A run of these records; `retried`: numbers of the repeats that are of plan.retry.json."""
    retried = more.pop("retried", ())
    flows = [flow_of(one, retry=one.repeat in retried) for one in records]
    return RunView(
        plan=plan_of(flows), records=columns.frame(records), limits=Limits(limits), **more
    )


def found(run: RunView, *names: str) -> dict[str, Check]:
    """The findings of these families, by id."""
    return {
        one.id: one for family in families() if family.name in names for one in family.findings(run)
    }
