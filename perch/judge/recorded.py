"""A part, the plan and what both ends counted -> the record, in the order of its keys."""

from __future__ import annotations

import msgspec

from perch.judge.asked import huge
from perch.model.figures import rounded
from perch.model.plan import Expect, Flow, Plan
from perch.model.record import (
    Counters,
    Events,
    Link,
    Number,
    Packets,
    Params,
    Part,
    Path,
    Record,
    Scope,
    Side,
    Status,
    ToolName,
    Transfer,
)

SCHEMA = "perch.record/2"

#: Exit codes of a host, device or peer that cannot run it, before any traffic: nothing was
#: measured.
CANNOT_RUN = (2, 3, 4)


class OfFlow(msgspec.Struct):
    """What all records of a flow have in common, from what its two ends counted and told."""

    counters: Counters | None = None
    events: Events | None = None
    packets: Packets | None = None
    clock_skew_s: Number | None = None


def final_status(part: Part) -> Status:
    """What could not be run has measured nothing."""
    error = part.error
    if part.status == "error" and error and not error.traffic and error.code in CANNOT_RUN:
        return "not_measured"
    return part.status


def _side(said: Side | None, host: str, address: str) -> Side:
    side = said or Side()
    side.host = host
    side.address = side.address or address
    return side


def _params(part: Part, expect: Expect) -> Params:
    """The tool's, completed by the plan's size and batch."""
    params = part.params or Params()
    if params.size_bytes is None:
        params.size_bytes = expect.size_bytes
    if params.batch is None:
        params.batch = expect.batch
    params.huge = huge(params)
    if params.duration_s is not None:
        params.duration_s = rounded(params.duration_s)
    if params.gap_us is not None:
        params.gap_us = rounded(params.gap_us)
    if params.rate is not None and params.rate.asked is not None:
        params.rate.asked = rounded(params.rate.asked)
    return params


def _transfer(part: Part, expect: Expect) -> Transfer | None:
    """A transfer that was never measured has its place, and nothing else."""
    if part.transfer is None and expect.kind is not None:
        return Transfer(pair=expect.pair)
    return part.transfer


def record(
    plan: Plan,
    flow: Flow,
    expect: Expect,
    part: Part,
    *,
    scope: Scope,
    link: Link,
    path: Path | None,
    of_flow: OfFlow,
) -> Record:
    """One record of a flow.

    The part becomes a part of it: its objects are completed, not copied.
    """
    return Record(
        schema=SCHEMA,
        run=plan.run,
        flow=flow.id,
        test=flow.test,
        repeat=flow.repeat,
        rail=flow.rail,
        scope=scope,
        tool=part.tool or ToolName(flow.tool),
        client=_side(part.client, flow.client, plan.hosts[flow.client].address),
        server=_side(part.server, flow.server, plan.hosts[flow.server].address),
        status=final_status(part),
        backend=part.backend or flow.backend,
        provider=part.provider or flow.provider,
        op=part.op or flow.op,
        kind=part.kind or expect.kind or flow.kind,
        definition=part.definition,
        completion_level=part.completion_level,
        connection=part.connection,
        link=link,
        params=_params(part, expect),
        started=part.started,
        elapsed_s=part.elapsed_s,
        clock_skew_s=of_flow.clock_skew_s,
        latency_us=part.latency_us,
        bandwidth=part.bandwidth,
        intervals=part.intervals,
        histogram=part.histogram,
        cpu=part.cpu,
        path=path,
        integrity=part.integrity,
        tcp=part.tcp,
        loss=part.loss,
        stall=part.stall,
        packets=of_flow.packets,
        events=of_flow.events,
        counters=of_flow.counters,
        transfer=_transfer(part, expect),
        soak=part.soak,
        environment=part.environment,
        error=part.error,
    )
