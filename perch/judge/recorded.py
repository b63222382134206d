"""A part, the plan and what both ends counted -> the record, in the order of its keys."""

from __future__ import annotations

import msgspec

from perch.judge.asked import huge
from perch.judge.counters import Counted, as_recorded
from perch.model.figures import rounded
from perch.model.part import Part
from perch.model.plan import Expect, Flow, Plan
from perch.model.record import (
    Counters,
    Cpu,
    Error,
    Events,
    Link,
    Number,
    Packets,
    Params,
    Path,
    Placement,
    Record,
    Scope,
    Side,
    Status,
    ToolName,
    Transfer,
)
from perch.model.text import one_line
from perch.tools.transfer import is_transfer

SCHEMA = "perch.record/2"

#: Exit codes of a host, device or peer that cannot run it, before any traffic: nothing was
#: measured.
CANNOT_RUN = (2, 3, 4)

#: Settings that no check, view or comparison reads, left out at the engine's own value (its options
#: table), and such that all of them read as that value where they are not stated.
#: The raw line has them; a record is at most 2 KB.
USUAL = {
    "clock": "monotonic", "retry": 7, "rnr_retry": 7, "timeout_exponent": 14, "huge": 0,
    "verify": False, "srq": False, "rdma_cm": False, "cq_moderation": 1,
}  # fmt: skip

#: The same but of transfers, which have several threads and devices.
USUAL_FLOW = USUAL | {"threads": 1, "devices": 1}


class OfFlow(msgspec.Struct):
    """What all records of a flow have in common, from what its two ends counted and said.

    `places`: of client and server, where an agent placed them.
    """

    client: Counted | None = None
    server: Counted | None = None
    places: tuple[Placement | None, Placement | None] = (None, None)
    events: Events | None = None
    packets: Packets | None = None
    clock_skew_s: Number | None = None


def _error(part: Part) -> Error | None:
    """Its message may be of anybody who answered: on one line, without control characters."""
    error = part.error
    if error is None or error.message is None:
        return error
    return msgspec.structs.replace(error, message=one_line(error.message))


def final_status(part: Part) -> Status:
    """What could not be run has measured nothing."""
    error = part.error
    if part.status == "error" and error and not error.traffic and error.code in CANNOT_RUN:
        return "not_measured"
    return part.status


def _side(said: Side | None, host: str, address: str, place: Placement | None) -> Side:
    """A tool that says where it worked knows better than the agent that placed it."""
    side = said or Side()
    side.host = host
    side.address = side.address or address
    side.placement = place = side.placement or place
    if place is not None and place.memory_node == place.node:
        place.memory_node = None
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
    for name, value in (USUAL if is_transfer(part.kind) else USUAL_FLOW).items():
        if getattr(params, name) == value:
            setattr(params, name, None)
    return params


def _cpu(part: Part, kind: str | None) -> Cpu | None:
    """Seconds a gigabyte say nothing of a ping-pong, which moves none."""
    if part.cpu is not None and kind == "latency":
        part.cpu.client_s_per_gb = part.cpu.server_s_per_gb = None
    return part.cpu


# ---- counters ------------------------------------------------------------------------------------


def _counters(flow: OfFlow, path: Path | None, kind: str | None) -> Counters | None:
    """Without the bytes and packets that a proven path sums up.

    Where the path is not proven they are evidence; of a transfer they tell its devices apart.
    """
    if flow.client is None and flow.server is None:
        return None
    proven = path is not None and path.state == "proven"
    volumes = not proven or kind not in ("latency", "bandwidth", "rate")
    return Counters(
        as_recorded(flow.client, volumes=volumes), as_recorded(flow.server, volumes=volumes)
    )


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
    kind = part.kind or expect.kind or flow.kind
    return Record(
        schema=SCHEMA,
        run=plan.run,
        flow=flow.id,
        test=flow.test,
        repeat=flow.repeat,
        rail=flow.rail,
        scope=scope,
        tool=part.tool or ToolName(flow.tool),
        client=_side(part.client, flow.client, plan.hosts[flow.client].address, of_flow.places[0]),
        server=_side(part.server, flow.server, plan.hosts[flow.server].address, of_flow.places[1]),
        status=final_status(part),
        rails_at_once=flow.rails_at_once if flow.rails_at_once > 1 else None,
        backend=part.backend or flow.backend,
        provider=part.provider or flow.provider,
        op=part.op or flow.op,
        kind=kind,
        definition=part.definition,
        completion_level=part.completion_level,
        connection=part.connection,
        link=link,
        queue_pairs=part.queue_pairs,
        params=_params(part, expect),
        started=part.started,
        elapsed_s=part.elapsed_s,
        clock_skew_s=of_flow.clock_skew_s,
        latency_us=part.latency_us,
        bandwidth=part.bandwidth,
        intervals=part.intervals,
        histogram=part.histogram,
        cpu=_cpu(part, kind),
        path=path,
        integrity=part.integrity,
        tcp=part.tcp,
        loss=part.loss,
        stall=part.stall,
        packets=of_flow.packets,
        events=of_flow.events,
        counters=_counters(of_flow, path, kind),
        transfer=_transfer(part, expect),
        soak=part.soak,
        environment=part.environment,
        error=_error(part),
    )
