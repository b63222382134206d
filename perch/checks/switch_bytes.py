"""Did a host's ports count the bytes that its flows moved through them?

A switch whose counters stood still, or a port that is another host's, would pass every other check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from perch.checks import RunView, first
from perch.judge.switches import SwitchFacts
from perch.model.figures import rounded
from perch.model.verdict import Check

COLUMNS = ("flow", "scope", "path.state", "path.claimed_bytes", "path.counted")

#: A switch may show counters that are so old: six times the slowest that SONiC asks its chip by
#: default (FLEX_COUNTER_TABLE, queues: 10 s). Site policy.
OLD_S = 60

#: Rates of a row have nine digits, and the largest counters lose a few bytes.
GRANTED = 0.99


def _ports(run: RunView) -> dict[str, tuple[list[str], float, float]]:
    """Of each host its ports on switches of hardware, their bytes, and until when they are whole.

    Only hosts with a port for each device: flows of the others may have passed another switch.
    """
    facts = run.switches or SwitchFacts()
    found: dict[str, list[tuple[str, float | None, float]]] = {}
    for row in facts.rows:
        until = facts.read_s.get(row["name"])
        if until is None or row["faults"] or row["scope"] != "hardware":
            continue
        for port in row["rows"]:
            rates = port["rx_mbit_s"], port["tx_mbit_s"]
            moved = None if None in rates else sum(rates) * 1e6 / 8 * row["seconds"]
            place = f"{row['name']} {port['port']}"
            found.setdefault(port["host"], []).append((place, moved, until - OLD_S))
    whole = {}
    for host, ports in found.items():
        amounts = [moved for _, moved, _ in ports if moved is not None]
        if len(amounts) == len(ports) >= len(run.plan.hosts[host].devices):
            until = min(until for _, _, until in ports)
            whole[host] = [place for place, _, _ in ports], sum(amounts), until
    return whole


def _flows(run: RunView) -> pl.DataFrame:
    """The flows of hardware that were proven: client, server, end, claimed_bytes."""
    of = pl.col("flow").str.split("/").list
    ends = run.seen.select("flow", end=pl.max_horizontal("client_end", "server_end"))
    flows = (
        run.records.filter(
            (pl.col("scope") == "hardware") & (pl.col("path.state") == "proven")
        )
        .unique("flow", keep="first", maintain_order=True)
        .select(
            "flow", client=of.get(1), server=of.get(2), counted="path.counted",
            claimed="path.claimed_bytes",
        )
        .join(ends, on="flow", maintain_order="left")
    )  # fmt: skip
    ways = flows.select("client", "counted").unique(maintain_order=True).rows()
    own = pl.DataFrame(
        [way for way in ways if _is_planned(run, *way)],
        schema={"client": pl.String(), "counted": pl.String()},
        orient="row",
    )
    return flows.join(own, on=["client", "counted"], how="semi", maintain_order="left")


def _is_planned(run: RunView, client: str, counted: str | None) -> bool:
    """Whether "mlx5_0 bytes, mlx5_1 bytes" are of devices that the plan names."""
    devices: list[dict[str, Any]] = run.plan.hosts[client].devices
    known = {one.get(key) for one in devices for key in ("name", "netdev")}
    return counted is not None and {one.rpartition(" ")[0] for one in counted.split(", ")} <= known


def moved(run: RunView) -> Iterator[Check]:
    """Whether the ports of each host counted what its flows moved."""
    ports = _ports(run)
    if not ports or run.seen.is_empty():
        return
    flows = _flows(run)
    judged, short = 0, {}
    for host, (places, counted, until) in ports.items():
        own = flows.filter(
            (pl.col("client") == host) != (pl.col("server") == host), pl.col("end") <= until
        )
        claimed = float(own["claimed"].sum())
        judged += bool(claimed)
        if counted < claimed * GRANTED:
            short[host] = (
                f"{', '.join(places)}: {rounded(round(counted)):,} bytes, but flows of {host} "
                f"moved {rounded(round(claimed)):,}"
            )
    if not judged:
        return
    yield Check(
        id="switch/moved",
        title="Switches: ports counted the bytes of their hosts' flows",
        fault="Switches: ports counted fewer bytes than their hosts' flows moved",
        status="inconclusive" if short else "pass",
        measured="; ".join(list(short.values())[:2]) if short else judged,
        unit=None if short else "hosts",
        source="arithmetic: what passes a port is counted there",
        evidence=first(short),
        remedy="name this host's ports (switch_check_ports), and read all its switches; see that "
        "their counters move with traffic"
        if short
        else None,
    )
