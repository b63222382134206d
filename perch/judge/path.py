"""The path proof: the bytes that a flow claims against what the devices of both ends counted.

For each end and each way: claimed <= counted, and counted - idle <= wire. docs/definitions.md,
"Path proof", has it in words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from perch.judge import wire
from perch.judge.asked import Use
from perch.judge.bounds import (
    PROVEN,
    Bound,
    Finding,
    bounds,
    judged,
    seconds_of,
    surely_hold,
    worst,
)
from perch.judge.counter_table import GOES_BACK, class_of
from perch.judge.counters import Counted, Counts
from perch.judge.hosts import HostFacts
from perch.judge.places import Place, by_device, place_of
from perch.model.part import Part
from perch.model.plan import Flow, Plan
from perch.model.record import Path, Role
from perch.tools.claims import is_rdma


class Proof(msgspec.Struct):
    """What a record says of the path, and what the rest of the judge needs of it.

    `bounds`: of flows that share a host (perch.judge.round). `ports`: the counters of the RDMA
    ports that carried the flow, empty where one of them is not known. `carried`: the counters of
    all that carried it, by the name of the device, in the order of the names. `loopback`: both ends
    are one machine.
    """

    path: Path
    bounds: list[Bound]
    ports: dict[Role, list[Counts]]
    carried: dict[Role, dict[str, Counts]]
    loopback: bool


class _End(msgspec.Struct):
    """One place of a flow, with what is claimed of it, by these parts."""

    place: Place
    claim: wire.Claim | None
    parts: Sequence[Part]


def proof(
    plan: Plan,
    hosts: Mapping[str, HostFacts],
    flow: Flow,
    parts: Sequence[Part],
    client: Counted | None,
    server: Counted | None,
    uses: Mapping[Role, Use],
    *,
    shared: bool,
) -> Proof:
    """`client` and `server`: what both ends counted. `parts`: the results that the plan expects.

    `uses`: what the plan asks each end to use.

    `shared`: another flow of the round uses one of the two hosts, so that their devices count its
    bytes, too.
    """
    fabric = plan.hosts[flow.client].fabric
    rdma = over_rdma(flow, parts)
    layer = _layer(parts, fabric)
    loopback = _is_loopback(parts, layer)
    claiming = parts if flow.kind != "transfer" else [p for p in parts if p.kind != "sum"]
    claim = wire.of_flow(flow, claiming, rdma=rdma)

    def ends(role: Role, side: Counted | None) -> list[_End]:
        use, name = uses[role], flow.host(role)
        planned, facts = plan.hosts[name], hosts.get(name)
        return [
            _End(
                place_of(flow, own, role, use, planned, facts, side, rdma=rdma),
                claim if own is parts else wire.of_flow(flow, own, rdma=rdma),
                own,
            )
            for own in by_device(flow, parts, role) or [[]]
        ]

    of_client, of_server = ends("client", client), ends("server", server)
    uncounted = _uncounted(flow, parts, layer)
    finding = _without_law(flow, parts, claim, uncounted, loopback=loopback)
    held: list[Bound] = []
    if finding is None:
        unread = _unread(plan, [*of_client, *of_server])
        finding, held = _by_law([*of_client, *of_server], unread, rdma, shared)
    return Proof(
        path=_path(finding, claim, of_client, of_server),
        bounds=held,
        ports={"client": _ports(of_client), "server": _ports(of_server)},
        carried={
            "client": {} if uncounted else _carried(of_client),
            "server": {} if uncounted else _carried(of_server),
        },
        loopback=loopback,
    )


def _path(
    finding: Finding, claim: wire.Claim | None, client: Sequence[_End], server: Sequence[_End]
) -> Path:
    return Path(
        claimed_bytes=None if claim is None else math.floor(claim.total),
        client_device_bytes=_device_bytes(client),
        server_device_bytes=_device_bytes(server),
        state=finding.state,
        reason=finding.why,
        counted=_counted(client),
    )


def over_rdma(flow: Flow, parts: Sequence[Part]) -> bool:
    """Whether an RDMA device or a Cassini NIC carried a part."""
    return any(_is_rdma(flow, part) for part in parts)


def _is_rdma(flow: Flow, part: Part) -> bool:
    return is_rdma(
        flow.backend if part.backend is None else part.backend,
        flow.tool if part.tool is None else part.tool.name,
        flow.provider if part.provider is None else part.provider,
    )


# ---- where no law holds


def _without_law(
    flow: Flow,
    parts: Sequence[Part],
    claim: wire.Claim | None,
    uncounted: str | None,
    *,
    loopback: bool,
) -> Finding | None:
    """Why nothing is compared with the counters; None where the law holds."""
    why = uncounted or _not_judged(parts, loopback=loopback)
    if why is not None:
        return Finding("not_judged", why)
    if claim is None:
        return Finding("unknown", f"{flow.tool} does not say how many bytes it moved")
    # any counter would prove a claim of nothing
    if claim.total <= 0:
        return Finding("unknown", f"{flow.tool} claims no byte, so that no counter can show any")
    return None


def _uncounted(flow: Flow, parts: Sequence[Part], layer: str) -> str | None:
    """Why no device counts anything of this flow."""
    if flow.backend == "null":
        return "the null backend moves no bytes"
    if flow.scope == "simulated" or any(part.simulated for part in parts):
        return "a simulated provider moved the bytes, which no device counts"
    providers = [flow.provider or "", *[part.provider or "" for part in parts]]
    if layer == "shm" or any(p.startswith(("shm", "sm2")) for p in providers):
        return "the bytes went through memory of one host, which no device counts"
    return None


def _not_judged(parts: Sequence[Part], *, loopback: bool) -> str | None:
    """Why no counter can prove the path, although devices may count it."""
    if loopback:
        return "both ends are one machine, so the counters of lo mix all traffic"
    if any(part.status != "ok" for part in parts):
        return "the flow was not measured to its end, so that its claim is not whole"
    return None


def _layer(parts: Sequence[Part], fabric: str) -> str:
    for part in parts:
        if part.link is not None and part.link.layer is not None:
            return part.link.layer
    return fabric


def _is_loopback(parts: Sequence[Part], layer: str) -> bool:
    return layer == "loopback" or any(
        part.client is not None and part.client.device == "lo" for part in parts
    )


# ---- the law


def _unread(plan: Plan, ends: Sequence[_End]) -> list[Finding]:
    """Devices of hardware that were not read while idle: agents read all of a host's devices.

    A soak has samples of its own.
    """
    return [
        Finding("unknown", f"{end.place.role}: {end.place.device} was not read while idle")
        for end in ends
        if None in end.place.idle
        and plan.soak is None
        and plan.hosts[end.place.host].scope == "hardware"
    ]


def _by_law(
    ends: Sequence[_End], unread: list[Finding], rdma: bool, shared: bool
) -> tuple[Finding, list[Bound]]:
    if not (shared or unread) and all(_surely_holds(end, rdma) for end in ends):
        return PROVEN, []
    again = _sent_again(ends, rdma)
    held = [
        bound
        for end in ends
        if end.place.unknown is None and end.claim is not None
        for bound in bounds(end.place, end.claim, wire.seconds(end.parts), rdma=rdma, again=again)
    ]
    explained_by = None if shared else "this flow explains"
    unknown = [Finding("unknown", end.place.unknown) for end in ends if end.place.unknown]
    return worst([*unknown, *unread, *(judged(bound, explained_by) for bound in held)]), held


def _surely_holds(end: _End, rdma: bool) -> bool:
    return (
        end.place.unknown is None
        and end.claim is not None
        and surely_hold(
            end.place.role,
            end.place.counters,
            end.place.idle,
            end.place.idle_seconds,
            seconds_of(end.place),
            end.claim,
            rdma=rdma,
        )
    )


def _sent_again(ends: Sequence[_End], rdma: bool) -> int:
    """Events on either end after which packets were sent again."""
    if rdma:
        return sum(
            n
            for end in ends
            for counters in end.place.ports
            for name, n in counters.moved.items()
            if n and class_of(name) in GOES_BACK
        )
    sides = {end.place.role: end.place.side for end in ends}
    return sum(side.host.get("TcpRetransSegs") or 0 for side in sides.values() if side)


# ---- what both ends counted, for the record and the rest of the judge


def _counted(ends: Sequence[_End]) -> str | None:
    return ", ".join(f"{c.device} {c.unit}" for end in ends for c in end.place.counters) or None


def _device_bytes(ends: Sequence[_End]) -> int | None:
    """Of the first counter of bytes of each place, both ways; None where one is not known."""
    total = 0
    for end in ends:
        for counter in end.place.counters:
            if counter.unit == "bytes":
                if counter.tx is None or counter.rx is None:
                    return None
                total += counter.tx + counter.rx
                break
        else:
            return None
    return total


def _ports(ends: Sequence[_End]) -> list[Counts]:
    ports = [end.place.ports for end in ends]
    return [counters for of_end in ports for counters in of_end] if all(ports) else []


def _carried(ends: Sequence[_End]) -> dict[str, Counts]:
    carriers: dict[str, Counts] = {}
    for end in ends:
        for name, counts in end.place.carriers:
            carriers.setdefault(name, counts)
    return dict(sorted(carriers.items()))
