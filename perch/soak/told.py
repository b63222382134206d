"""What is known of a soak once its files are read: the types of the verdict's section `soak`.

Times named _s are seconds since the soak began, where nothing else is said. Every key is always
there: `null` says that there is no such thing.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from perch.model.limits import Limit
from perch.model.record import Number

Severity = Literal["fail", "inconclusive", "advisory"]


class Anomaly(msgspec.Struct, kw_only=True):
    """`check`: the check that it belongs to. A flow's, or a host's where there is no flow."""

    kind: str
    check: str
    severity: Severity
    host: str
    flow: str | None = None
    start: str | None = None
    end: str | None = None
    start_s: Number | None = None
    end_s: Number | None = None
    duration_s: Number | None = None
    messages: Number | None = None
    value: Number | None = None
    unit: str | None = None
    text: str
    evidence: list[str]


# ---- flows ---------------------------------------------------------------------------------------


class BandwidthFigures(msgspec.Struct):
    """Gb/s; `lowest_at_s`: since the flow began."""

    mean: Number | None
    median: Number | None
    lowest_interval: Number | None
    lowest_at_s: Number
    lowest_window: Number | None
    highest: Number | None


class LatencyFigures(msgspec.Struct):
    """Microseconds; `p99_highest_at_s`: since the flow began."""

    p50_median: Number | None
    p99_median: Number | None
    p99_highest: Number | None
    p99_highest_at_s: Number | None
    max: Number | None
    samples_least: Number | None
    samples_median: Number | None


class Figures(msgspec.Struct):
    bandwidth: BandwidthFigures | None = None
    latency: LatencyFigures | None = None
    corrupt_bytes: Number | None = None
    checked_bytes: Number | None = None


class Change(msgspec.Struct):
    """The first step of a course."""

    at_s: Number
    before: Number
    after: Number
    share: Number
    at: str


class Course(msgspec.Struct):
    """How one figure goes over all turns of a test between two hosts.

    Slopes are shares of the median, by the hour and over the whole soak.
    """

    metric: str
    judged: bool = False
    per_hour: Number | None = None
    low: Number | None = None
    high: Number | None = None
    over_soak: Number | None = None
    over_low: Number | None = None
    over_high: Number | None = None
    why: str | None = None
    change: Change | None = None


class Doubt(msgspec.Struct):
    """A drift that may be one beyond its limit; `binding`: a required one."""

    text: str
    binding: bool


class Group(msgspec.Struct):
    """The courses of one test between two hosts."""

    test: str
    courses: list[Course]
    doubts: list[Doubt]


class FlowTold(msgspec.Struct, kw_only=True):
    """A flow; `soak_s`: where its own 0 lies since the soak began."""

    flow: str
    test: str
    kind: str
    client: str
    server: str
    turn: int
    size_bytes: int | None
    scope: str
    backend: str | None
    provider: str | None
    op: str | None
    state: str
    soak_s: Number | None
    started: str | None
    planned_s: Number | None
    passed_s: Number
    measured_s: Number
    intervals: int
    connections: int
    gaps: int
    gap_s: Number
    stalls: Number
    stall_s: Number
    stall_messages: Number
    messages: Number
    bytes: Number
    resumed: bool
    stopped: bool
    dropped_lines: Number
    figures: Figures
    stall_limit_s: Number | None
    anomalies: int = 0
    drift: list[Course] = []


# ---- hosts ---------------------------------------------------------------------------------------


class ProcessTold(msgspec.Struct):
    """Memory and handles of a process of Perch; slopes by the hour, after its warm-up."""

    role: str
    flow: str | None
    pid: Number
    samples: int
    hours: Number
    resident_bytes_last: Number
    handles_last: Number | None
    mb_per_hour: Number | None = None
    low: Number | None = None
    high: Number | None = None
    handles_per_hour: Number | None = None
    handles_low: Number | None = None
    handles_high: Number | None = None
    judged: bool = False
    why: str | None = None


class Hottest(msgspec.Struct):
    name: str
    celsius: Number
    at_s: Number


class HostTold(msgspec.Struct, kw_only=True):
    host: str
    samples: int
    boots: int
    first_s: Number | None
    last_s: Number | None
    temperature_highest: Hottest | None
    temperatures: bool
    processes: list[ProcessTold]
    counters: dict[str, int]


class Watch(msgspec.Struct):
    """What checks ask of a host beside the section.

    watched, links_read: the most counters of trouble and links that a sample had.
    limits: of memory and of handles.
    """

    told: HostTold
    watched: int
    links_read: int
    limits: dict[str, list[Limit]]


# ---- all of it -----------------------------------------------------------------------------------


class Soak(msgspec.Struct):
    """A soak as it was judged.

    lines: of all client.soak. limits: of each flow by metric.
    """

    section: dict[str, Any]
    state: str
    passed_s: Number
    lines: int
    flows: list[FlowTold]
    limits: dict[str, dict[str, list[Limit]]]
    hosts: list[Watch]
    groups: list[Group]
    anomalies: list[Anomaly]
