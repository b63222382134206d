"""Did the bytes use the devices that the flows claim?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from perch.checks import RunView, check, design, first, plural
from perch.model.verdict import Check, CheckStatus
from perch.tools.claims import is_rdma

TITLE = "Traffic used the intended NIC"
_FAULTS = {
    "contradicted": "Traffic bypassed the intended NIC",
    "exceeded": "Other traffic used the NIC",
    "unknown": "Path not proven",
    "not_judged": "Path not proven",
}

_COLUMNS = ("flow", "scope", "path.state", "path.reason", "backend", "tool.name", "provider")


def _status(scope: str, state: str, *, rdma: bool) -> CheckStatus:
    """Too few bytes on the device went another way.

    Too many mean that it carried other traffic, too: its counters then prove nothing on hardware,
    and elsewhere disturb at most. Every RDMA device counts what it carries, so without its
    counters there is no proof in any scope.
    """
    if state == "contradicted":
        return "fail"
    if scope == "hardware" or (rdma and state == "unknown"):
        return "inconclusive"
    return "advisory" if state == "exceeded" else "not_judged"


def _remedy(status: CheckStatus, scope: str, state: str, reason: str) -> str | None:
    if state == "contradicted":
        return (
            "check route, device and provider of this flow (ip route get, --device, "
            "--provider): its bytes did not pass the claimed device"
        )
    if state == "exceeded":
        return "find what else uses the device on both hosts, stop it, and measure again"
    if reason.startswith("nothing shows that"):
        return (
            "do not accept the hardware on these figures. Find out why raw/HOST/environment.json "
            "names no RDMA driver for this device; on that host read "
            "/sys/class/infiniband/DEVICE/device/driver; then measure again"
        )
    if status != "inconclusive":
        return None
    if scope != "hardware":
        return (
            "name device and port (perch_devices), see that the agents can read "
            "/sys/class/infiniband/*/ports/*/{counters,hw_counters} on both hosts, install "
            "ethtool, and measure again"
        )
    return (
        "do not accept the hardware on these figures, because no counter proves the path. Name "
        "the devices (perch_devices), check that /sys/class/infiniband/*/ports/*/counters can be "
        "read on both hosts, install ethtool, and measure again"
    )


def _unproven(state: str, scope: str, rdma: bool, flows: list[dict[str, Any]]) -> Check:
    """Flows that cannot be judged for one reason together; any other flow by itself."""
    status = _status(scope, state, rdma=rdma)
    reason = flows[-1]["path.reason"]
    count = f"{plural(len(flows), 'flow')}: " if state == "not_judged" else ""
    part = "not_judged/" if status == "not_judged" else ""
    return Check(
        id=f"path/{part}{flows[0]['flow']}",
        title=f"{TITLE} ({scope} scope)",
        fault=f"{_FAULTS[state]} ({scope} scope)",
        status=status,
        measured=count + (reason or state),
        source=design("the path is proven: claimed <= counted <= wire"),
        evidence=first(flow["flow"] for flow in flows),
        remedy=_remedy(status, scope, state, reason or ""),
    )


@check(family="path", order=140, columns=_COLUMNS, source=design("the path is proven"))
def path(run: RunView) -> Iterator[Check]:
    """The proof is the flow's, and each of its records carries it: a flow is counted once."""
    flows = run.records.filter(pl.col("path.state").is_not_null()).unique(
        ["flow", "scope", "path.state", "path.reason"], keep="first", maintain_order=True
    )
    if flows.is_empty():
        yield Check(id="path", title=TITLE, status="not_judged", measured="no flow was measured")
        return
    proven = flows.filter(pl.col("path.state") == "proven")
    for scope, n in sorted(proven.group_by("scope").len().iter_rows()):
        yield Check(
            id=f"path/proven/{scope}",
            title=f"{TITLE} ({scope} scope)",
            status="pass",
            measured=n,
            unit="flows whose bytes both devices counted",
        )
    others: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in flows.filter(pl.col("path.state") != "proven").iter_rows(named=True):
        state = row["path.state"]
        rdma = is_rdma(row["backend"], row["tool.name"], row["provider"])
        which = row["path.reason"] if state == "not_judged" else row["flow"]
        others.setdefault((state, row["scope"], rdma, which), []).append(row)
    for (state, scope, rdma, _), rows in others.items():
        yield _unproven(state, scope, rdma, rows)
