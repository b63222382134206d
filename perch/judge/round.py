"""Flows of one round that share a host (incast): their bytes are in the same counters.

So the law of the path proof holds for all of them together. What they claim of a device must lie
within what it counted from the beginning of the first flow to the end of the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from perch.judge.bounds import Bound, Finding, worst
from perch.judge.bounds import judged as by_law
from perch.judge.counters import Counted, counted
from perch.judge.path import Proof
from perch.judge.places import counters_of
from perch.model.plan import Flow
from perch.model.raw import Reading, Readings
from perch.model.record import Path


class Member(msgspec.Struct):
    """One flow of a round, with what both ends read and its own proof."""

    flow: Flow
    client: Readings | None
    server: Readings | None
    proof: Proof


def shared_hosts(flows: Sequence[Flow]) -> set[str]:
    """The hosts that more than one flow uses, or one flow at both ends."""
    uses = Counter(host for flow in flows for host in (flow.client, flow.server))
    return {host for host, n in uses.items() if n > 1}


def shared_rails(flows: Sequence[Flow]) -> set[tuple[str, int]]:
    """The hosts and rails that more than one flow uses: a device's counters hold both."""
    uses = Counter(
        (host, rail)
        for flow in flows
        for host in (flow.client, flow.server)
        for rail in range(flow.rail, flow.rail + flow.devices)
    )
    return {used for used, n in uses.items() if n > 1}


def judged(members: Sequence[Member]) -> list[Path]:
    """The path of each flow, with the round's word where that is graver than the flow's own."""
    found: dict[str, list[Finding]] = {member.flow.id: [] for member in members}
    for host in sorted(shared_hosts([member.flow for member in members])):
        for flows, finding in _of_host(host, members):
            for flow in flows:
                found[flow].append(finding)
    return [_last_word(member.proof.path, found[member.flow.id]) for member in members]


def _last_word(path: Path, findings: Sequence[Finding]) -> Path:
    finding = worst([Finding(path.state, path.reason), *findings])
    return msgspec.structs.replace(path, state=finding.state, reason=finding.why)


def _of_host(host: str, members: Sequence[Member]) -> Iterator[tuple[set[str], Finding]]:
    """The ids of the flows that claim bytes of one counter of a host, and what it says of them.

    Only where each flow tells what it moved can bytes be left over.
    """
    here = [member for member in members if host in (member.flow.client, member.flow.server)]
    side = _whole_time(host, here)
    if side is None:
        return
    told = all(member.proof.bounds for member in here)
    claims: dict[tuple[str, str, str], list[tuple[str, Bound]]] = {}
    for member in here:
        for bound in member.proof.bounds:
            if bound.place.host == host:
                claims.setdefault(bound.counter, []).append((member.flow.id, bound))
    for counter in sorted(claims):
        flows = {flow for flow, _ in claims[counter]}
        if len(flows) > 1:
            together = _together([bound for _, bound in claims[counter]], len(flows), side)
            if together is not None:
                yield flows, by_law(together, "these flows explain" if told else None)


def _whole_time(host: str, members: Sequence[Member]) -> Counted | None:
    """What a host counted from the earliest reading to the latest; None where one is missing."""
    here = [m.client for m in members if m.flow.client == host]
    here += [m.server for m in members if m.flow.server == host]
    begins = [readings.before for readings in here if readings and readings.before]
    ends = [readings.after for readings in here if readings and readings.after]
    untold = any(reading.time is None for reading in (*begins, *ends))
    if len(begins) < len(here) or len(ends) < len(here) or untold:
        return None
    # max() takes the first of equal times: the last flow's reading is the latest of them
    return counted(Readings(before=min(begins, key=_time), after=max(reversed(ends), key=_time)))


def _time(reading: Reading) -> float:
    return reading.time or 0


def _together(claims: Sequence[Bound], flows: int, side: Counted) -> Bound | None:
    """Bounds of several flows on one counter as one; None where the host does not count it."""
    one, place, law = claims[0], claims[0].place, claims[0].law
    counters = counters_of(side, place.device, place.port, rdma=law.rdma)
    counter = next((c for c in counters if (c.device, c.by) == (one.of.device, one.of.by)), None)
    if counter is None:
        return None
    idle = one.idle / (law.seconds or 1) * (side.seconds or 0)
    return msgspec.structs.replace(
        one,
        role=f"{place.host}, {flows} flows at once",
        counted=counter.tx if one.way == "tx" else counter.rx,
        idle=idle,
        elsewhere=(),
        least=sum(bound.least for bound in claims),
        sure=sum(bound.sure for bound in claims),
        most=sum(bound.most for bound in claims),
        late=sum(bound.late for bound in claims),
        noise=idle + sum(bound.noise - bound.idle for bound in claims),
    )
