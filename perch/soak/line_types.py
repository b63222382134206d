"""What each line of a soaking flow holds, as far as it is judged."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from perch.model.raw_lines import Natural
from perch.model.record import (
    Bandwidth,
    Cpu,
    Histogram,
    Integrity,
    Latency,
    Link,
    Number,
    Params,
    Side,
    ToolName,
)
from perch.soak.moments import LAST_MOMENT

#: Seconds since the flow began, and milliseconds since 1970, that have a date.
_dated, _dated_ms = msgspec.Meta(ge=0, lt=LAST_MOMENT), msgspec.Meta(ge=0, lt=LAST_MOMENT * 1000)
Moment = Annotated[int, _dated] | Annotated[float, _dated]
MomentMs = Annotated[int, _dated_ms] | Annotated[float, _dated_ms]


class Line(msgspec.Struct):
    """Any line. `n`: its number; those that the client printed follow those of client.soak."""

    kind: ClassVar[str]
    n: int = 0


class Damaged(Line):
    """What is no line, or could not have been measured."""

    kind = "damaged"
    why: str = ""


class Timed(Line):
    """Seconds since the flow began, and the same on the wall."""

    start_s: Moment = -1
    end_s: Moment = -1
    started: Any = None
    ended: Any = None

    @property
    def long_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def at(self) -> tuple[float, float, list[int]]:
        """Its time and its number, as anomalies have them."""
        return self.start_s, self.end_s, [self.n]


class LineError(msgspec.Struct):
    code: Number | None = None


class Stalls(msgspec.Struct):
    count: Natural | None = None
    total_s: Natural | None = None


class Interval(Timed):
    kind = "interval"
    status: Any = None
    error: LineError | None = None
    connection_number: Natural = -1
    elapsed_s: Natural | None = None
    loss: Any = None
    messages: Natural = -1
    bytes: Natural = -1
    bandwidth: Bandwidth | None = None
    latency_us: Latency | None = None
    histogram: Histogram | None = None
    cpu: Cpu | None = None
    integrity: Integrity | None = None
    stalls: Stalls | None = None

    @property
    def ok(self) -> bool:
        return bool(self.status == "ok")

    @property
    def code(self) -> Number | None:
        return self.error.code if self.error else None

    @property
    def gbit_s(self) -> Number | None:
        return self.bandwidth.gbit_s if self.bandwidth else None

    @property
    def p50(self) -> Number | None:
        return self.latency_us.p50 if self.latency_us else None

    @property
    def p99(self) -> Number | None:
        return self.latency_us.p99 if self.latency_us else None

    @property
    def samples(self) -> int:
        return (self.latency_us.count or 0) if self.latency_us else 0

    @property
    def bad_bytes(self) -> int:
        return (self.integrity.bad_bytes or 0) if self.integrity else 0

    @property
    def checked_bytes(self) -> int:
        return (self.integrity.checked_bytes or 0) if self.integrity else 0

    @property
    def stall_count(self) -> Number:
        return (self.stalls.count or 0) if self.stalls else 0

    @property
    def stall_s(self) -> Number:
        return (self.stalls.total_s or 0) if self.stalls else 0


class Gap(Timed):
    kind = "gap"
    reason: Any = None
    attempts: Natural | None = None


class Stall(Timed):
    kind = "stall"
    messages: Natural | None = None


class Described(Line):
    """A line that says what was measured, as a record does."""

    tool: ToolName | None = None
    backend: str | None = None
    provider: str | None = None
    simulated: bool = False
    op: str | None = None
    definition: str | None = None
    completion_level: str | None = None
    connection: str | None = None
    client: Side | None = None
    server: Side | None = None
    link: Link | None = None
    params: Params | None = None


class Connection(Described):
    kind = "connection"
    connection_number: Natural = -1
    start_s: Moment | None = None
    started: Any = None
    boot_id: Any = None
    uptime_s: Natural | None = None


class Job(msgspec.Struct):
    """The command as the engine understood it."""

    kind: Any = None
    op: Any = None
    backend: Any = None
    sizes: list[Natural] | None = None
    rate: Natural | None = None
    rate_unit: Any = None
    outstanding: Natural | None = None
    queue_pairs: Natural | None = None
    completion: Any = None
    gap_ns: Natural | None = None
    verify: Any = None
    bidirectional: Any = None

    @property
    def per_second(self) -> float:
        """How many messages it asks for; 0: as many as there can be."""
        rate, size = self.rate or 0, (self.sizes or [1])[0] or 1
        if self.rate_unit == "messages":
            return rate
        return rate / size if self.rate_unit == "bytes" else rate / 8 / size


class Head(Line, kw_only=True):
    """The first line of a soak."""

    kind = "soak"
    started_ms: MomentMs | None = None
    duration_s: Natural | None = None
    interval_s: Natural | None = None
    stall_s: Natural | None = None
    server: Any = None
    job: Job


class Summary(msgspec.Struct):
    intervals: Natural
    connections: Natural
    gaps: Natural
    gap_s: Natural
    stalls: Natural
    stall_s: Natural
    passed_s: Natural
    dropped_lines: Natural
    stopped: Any = None
    resumed: Any = None


class Whole(Described, kw_only=True):
    """The last line: the record of the flow (`measured`: bandwidth or latency)."""

    kind = "whole"
    soak: Summary
    measured: str = msgspec.field(name="kind")
    elapsed_s: Natural | None = None
    bandwidth: Bandwidth | None = None
    latency_us: Latency | None = None
    integrity: Integrity | None = None
