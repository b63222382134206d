"""A soak as its verdict has it: flows, hosts and anomalies.

Times named _s are seconds since the soak began, where nothing else is said. Every key is always
there: `null` says that there is no such thing.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from perch.model.record import Number
from perch.model.verdict import EVIDENCE_MAX

#: Anomalies in a verdict.
ANOMALIES_MAX = 500

Severity = Literal["fail", "inconclusive", "advisory"]


AnomalyKind = Literal[
    "gap", "stall", "low", "slow", "drift", "change", "leak", "handles", "counter", "corrupt",
    "link", "clock", "reboot", "rate", "hole", "overlap", "length", "dropped", "sum", "damaged",
    "foreign", "host",
]  # fmt: skip
SoakState = Literal["done", "running", "stopped", "short", "none"]
FlowState = SoakState | Literal["waiting", "foreign"]
Whole = Annotated[int, Meta(ge=0)]


class Anomaly(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A flow's, or a host's where there is no flow. `check`: the check that it belongs to.

    `id`: empty until the verdict numbers it. `messages`: outstanding meanwhile. `evidence`:
    FILE:LINE.
    """

    id: Annotated[str, Meta(pattern="^a[1-9][0-9]*$")]
    kind: AnomalyKind
    check: Annotated[str, Meta(pattern="^soak/")]
    severity: Severity
    host: str
    flow: str | None
    start: str | None
    end: str | None
    start_s: Number | None
    end_s: Number | None
    duration_s: Number | None
    messages: Number | None
    value: Number | None
    unit: str | None
    text: str
    evidence: Annotated[list[str], Meta(min_length=1, max_length=EVIDENCE_MAX)]


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


CourseMetric = Literal["bandwidth", "p50", "p99"]


class Course(msgspec.Struct):
    """How one figure goes over all turns of a test between two hosts.

    Slopes are shares of the median, by the hour and over the whole soak.
    """

    metric: CourseMetric
    judged: bool = False
    per_hour: Number | None = None
    low: Number | None = None
    high: Number | None = None
    over_soak: Number | None = None
    over_low: Number | None = None
    over_high: Number | None = None
    why: str | None = None
    change: Change | None = None


class FlowTold(msgspec.Struct, kw_only=True):
    """A flow; `soak_s`: where its own 0 lies since the soak began.

    `stall_limit_s`: a longer stall is an anomaly; null: the flow's stalls have no limit.
    """

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
    state: FlowState
    soak_s: Number | None
    started: str | None
    planned_s: Number | None
    passed_s: Number
    measured_s: Number
    intervals: Whole
    connections: int
    gaps: Whole
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
    anomalies: Whole = 0
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
    samples: Whole
    boots: Whole
    first_s: Number | None
    last_s: Number | None
    temperature_highest: Hottest | None
    temperatures: bool
    processes: list[ProcessTold]
    counters: dict[str, int]


# ---- the section ---------------------------------------------------------------------------------


class Blind(msgspec.Struct):
    """What the soak could not have seen."""

    id: str
    text: str


class SoakSection(msgspec.Struct, kw_only=True):
    """The verdict's `soak`, from the lines of its flows and the samples of its hosts.

    `stall_limits_s`: a stall longer than its flow's limit is an anomaly; stalls from `stall_s` on
    are counted. `anomalies`: the gravest first; of each kind and flow or host the first 20.
    `passed_s`: in intervals and gaps, of the flow that has least; of turns the sum. `measured_s`:
    the same without gaps.
    """

    mode: Literal["mixed", "alternating"]
    duration_s: Number
    interval_s: Number
    stall_s: Number | None
    reconnect_s: Number | None
    turn_s: Number | None
    stall_limits_s: list[Number]
    started: str | None
    ended: str | None
    flows: list[FlowTold]
    hosts: list[HostTold]
    anomalies: Annotated[list[Anomaly], Meta(max_length=ANOMALIES_MAX)]
    anomaly_counts: dict[str, Annotated[int, Meta(ge=1)]]
    anomalies_left_out: Whole
    blind: list[Blind]
    passed_s: Number | None
    measured_s: Number | None
    state: SoakState
    running: bool
