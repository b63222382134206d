"""Flows, parts and counters of tests of the path proof, built with what a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from perch.judge import path
from perch.judge.asked import NO_USES, Use
from perch.judge.counters import Counted, Counts
from perch.judge.hosts import HostFacts
from perch.model.part import Part
from perch.model.plan import Flow, Plan, PlanHost, Suite
from perch.model.raw import Block, Layout
from perch.model.record import Role, Scope

Table = Mapping[str, int | None]


def flow(**more: Any) -> Flow:
    known: dict[str, Any] = {
        "id": "t/a/b/0/1", "test": "t", "tool": "perch", "kind": "latency", "client": "a",
        "server": "b", "scope": "hardware", "backend": "verbs", "op": "send",
    }  # fmt: skip
    return msgspec.convert(known | more, Flow)


def part(**more: Any) -> Part:
    """A part that was measured; nested values as in JSON."""
    return msgspec.convert(more, Part)


def plan(
    fabric: str = "roce",
    hosts: str = "ab",
    devices: Sequence[Any] = (),
    scope: Scope = "software",
) -> Plan:
    return Plan(
        schema="perch.plan/2",
        run="run",
        created="2026-01-01T00:00:00Z",
        suite=Suite("s", "S"),
        limits="none",
        hosts={name: PlanHost(name, fabric, scope, 19150, devices=list(devices)) for name in hosts},
        rounds=[],
    )


def counts(table: Table, netdev: str = "") -> Counts:
    """What one device counted. `netdev`: of an RDMA port or a NIC, the interface under it."""
    moved = {name: n for name, n in table.items() if n != 0}
    return Counts(Block("", 0, tuple(table), netdev), moved)


def table(of: Counts) -> dict[str, int | None]:
    """All counters of a device."""
    return {name: of.get(name) for name in of.block.names}


def side(
    *,
    seconds: float | None = 1,
    address: str = "eth1",
    host: Table | None = None,
    netdev: Mapping[str, Table] | None = None,
    rdma: Mapping[str, Table] | None = None,
    cxi: Mapping[str, Table] | None = None,
    under: str = "",
) -> Counted:
    """What one end counted. `under`: the interface of each RDMA port and NIC."""
    own = counts(host or {})
    tables = [
        {name: counts(table, below) for name, table in (of or {}).items()}
        for of, below in ((netdev, ""), (rdma, under), (cxi, under))
    ]
    return counted(own, *tables, seconds=seconds, address=address)


def counted(
    host: Counts,
    netdev: dict[str, Counts],
    rdma: dict[str, Counts],
    cxi: dict[str, Counts],
    *,
    seconds: float | None = 1,
    address: str = "eth1",
) -> Counted:
    blocks = ({name: one.block for name, one in of.items()} for of in (netdev, rdma, cxi))
    layout = Layout(host.block, *blocks)
    return Counted(layout, seconds, address, address, host, netdev, rdma, cxi)


def rxe(sent: int | None, received: int | None, interface_bytes: int | None = None) -> Counted:
    """A soft device over eth1; `interface_bytes` passed it each way. eth0 was busy, too."""
    if interface_bytes is None:
        return side(rdma={"rxe0/1": {"sent_pkts": sent, "rcvd_pkts": received}})
    return side(
        netdev={
            "eth1": {"tx_bytes": interface_bytes, "rx_bytes": interface_bytes},
            "eth0": {"tx_bytes": 9_000_000, "rx_bytes": 9_000_000},
        },
        rdma={"rxe0/1": {"sent_pkts": sent, "rcvd_pkts": received}},
        under="eth1",
    )


def proof(
    of_flow: Flow,
    parts: Part | Sequence[Part],
    client: Counted | None,
    server: Counted | None,
    *,
    hosts: Mapping[str, HostFacts] | None = None,
    of_plan: Plan | None = None,
    uses: Mapping[Role, Use] = NO_USES,
    shared: bool = False,
) -> path.Proof:
    return path.proof(
        of_plan or plan(),
        hosts or {},
        of_flow,
        [parts] if isinstance(parts, Part) else parts,
        client,
        server,
        uses,
        shared=shared,
    )


def word(found: path.Proof) -> tuple[str, str | None]:
    return found.path.state, found.path.reason
