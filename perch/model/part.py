"""One result as a tool printed it, before Perch knows of which flow it is."""

from __future__ import annotations

from perch.model.record import (
    Bandwidth,
    Cpu,
    Error,
    Histogram,
    Integrity,
    Interval,
    Latency,
    Link,
    Loss,
    Model,
    Number,
    Params,
    QueuePair,
    Role,
    Side,
    SoakSummary,
    Stall,
    Status,
    Tcp,
    ToolName,
    Transfer,
)


class Claims(Model):
    """Payload bytes, with warm-up, that a part says it put on the wire from and to the client."""

    sent: Number | None = None
    received: Number | None = None
    lost: Number | None = None
    most_sent: Number | None = None
    most_received: Number | None = None


class Part(Model):
    """One result as a tool printed it; it knows nothing of the plan.

    `reverse`: its server sent the payload.
    """

    tool: ToolName | None = None
    backend: str | None = None
    provider: str | None = None
    op: str | None = None
    kind: str | None = None
    definition: str | None = None
    completion_level: str | None = None
    connection: str | None = None
    simulated: bool = False
    reverse: bool = False
    environment: dict[str, str] | None = None
    client: Side | None = None
    server: Side | None = None
    link: Link | None = None
    queue_pairs: dict[Role, list[QueuePair]] = {}
    params: Params | None = None
    started: str | None = None
    elapsed_s: Number | None = None
    latency_us: Latency | None = None
    bandwidth: Bandwidth | None = None
    intervals: list[Interval] = []
    histogram: Histogram | None = None
    cpu: Cpu | None = None
    integrity: Integrity | None = None
    tcp: Tcp | None = None
    loss: Loss | None = None
    stall: Stall | None = None
    claims: Claims | None = None
    transfer: Transfer | None = None
    soak: SoakSummary | None = None
    status: Status = "ok"
    error: Error | None = None
