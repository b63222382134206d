"""The sections of a verdict beside its checks, as perch.checks and reports/jq/switches make them.

They are objects as JSON has them: a report takes their rows as they come.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from perch.model.record import Number, Scope

Kind = Literal["latency", "bandwidth", "sum"]
Whole = Annotated[int, Meta(ge=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]

# ---- comparison: RDMA beside TCP -----------------------------------------------------------------


class Cell(TypedDict):
    """One side's median over its records."""

    name: str
    scope: Scope
    value: Number | None
    records: AtLeastOne


class ComparisonRow(TypedDict):
    """`ratio`: rdma / tcp. The keys from `queue_pairs` on are those of transfers."""

    kind: Kind
    metric: str
    title: str
    unit: str
    better: Literal["lower", "higher"]
    definition: str | None
    completion: str | None
    size_bytes: Whole | None
    queue_pairs: NotRequired[int | None]
    op: NotRequired[str]
    batch: NotRequired[AtLeastOne]
    devices: NotRequired[AtLeastOne]
    threads: NotRequired[int | None]
    consecutive: NotRequired[bool | None]
    session: NotRequired[bool | None]
    stride_bytes: NotRequired[int | None]
    chunks: NotRequired[int | None]
    rdma: Cell
    tcp: Cell
    ratio: Number | None


class RefusedRow(TypedDict):
    kind: Kind
    size_bytes: Whole | None
    reason: str


class OtherRow(TypedDict):
    """What is shown beside the engine: other tools."""

    name: str
    definition: str | None
    completion: str | None
    size_bytes: Whole | None
    gbit_s: Number | None
    client_s_per_gb: Number | None
    server_s_per_gb: Number | None
    retransmissions: Number | None
    records: AtLeastOne


class ComparisonSection(TypedDict):
    """`transfers`: sums of transfers that were asked alike; absent where there are none."""

    statistic: str | None
    rows: list[ComparisonRow]
    refused: list[RefusedRow]
    others: list[OtherRow]
    transfers: NotRequired[list[ComparisonRow]]


# ---- agreement: the engine beside another tool ---------------------------------------------------


class AgreementRow(TypedDict):
    """One figure. `peer`: whose it is under `perftest`, where it is not perftest's.

    `ratio`: engine / perftest; null unless definition and settings are the same.
    """

    kind: Literal["latency", "bandwidth"]
    op: str
    connection: str | None
    client: str
    server: str
    bidirectional: bool
    size_bytes: AtLeastOne
    metric: Literal["p50_us", "p99_us", "mean_us", "gbit_s"]
    title: str
    unit: str
    scope: Scope
    definition: str | None
    engine: Number | None
    perftest: Number | None
    ratio: Number | None
    limit: str | None
    evidence: list[str]
    peer: NotRequired[str]
    state: Literal["agree", "disagree", "not_judged"]
    reason: str | None


# ---- outside: what may be repeated ---------------------------------------------------------------


class OutsidePair(TypedDict):
    """`why`: ids of checks."""

    test: str
    client: str
    server: str
    why: Annotated[list[str], Meta(min_length=1)]


class Outside(TypedDict):
    """Pairs of hosts and test that failed in a way that a repeat may cure; `of` were planned."""

    pairs: AtLeastOne
    of: AtLeastOne
    first: Annotated[list[OutsidePair], Meta(min_length=1, max_length=500)]


# ---- hosts and switches --------------------------------------------------------------------------


class Fact(TypedDict):
    """What the hosts' checks found of a device or setting, whatever was wanted.

    `id`: of the host's check. `hosts`: where it was found; null: on all of the plan's.
    """

    id: str
    device: str | None
    status: Literal["ok", "bad", "unknown", "info", "not_applicable"]
    found: str | None
    hosts: list[str] | None


class SwitchFault(TypedDict):
    command: str
    why: str


class SwitchPort(TypedDict):
    host: str
    port: str


class SwitchQueue(TypedDict):
    queue: str
    priority: int | None
    mbit_s: Number | None
    packets_per_s: Number | None
    drops: Number | None
    ecn_marked: Number | None


class SwitchRow(TypedDict):
    """A port. `lost`: counters that shrank or were cleared in between.

    Where there is one, all growth of the port's counters is null.
    """

    host: str
    port: str
    up: bool | None
    speed_gbit_s: Number | None
    priorities: list[int] | None
    rx_mbit_s: Number | None
    tx_mbit_s: Number | None
    utilisation_percent: Number | None
    pause: dict[str, Any]
    pause_by_priority: NotRequired[dict[str, Any]]
    storms: Number | None
    errors: dict[str, Any]
    queues: list[SwitchQueue]
    lost: list[str]


class Mark(TypedDict):
    """Why a reading, or of one only a port, gave no rate. `at`: when it was asked for."""

    at: str | None
    port: str | None
    why: str


class Range(TypedDict):
    min: Number | None
    median: Number | None
    max: Number | None


class Peak(TypedDict):
    """The interval that lost most, or else the busiest; the first of its `of` flows."""

    begin: str
    end: str
    flows: list[str]
    of: AtLeastOne


class DuringRow(TypedDict):
    """A port (`queue` null) or queue in the intervals in which flows of its host ran.

    `figures`: utilisation_percent, mbit_s, packets_per_s, and how many drops, ecn_marked, pause_in
    and pause_out an interval had.
    """

    host: str
    port: str
    queue: str | None
    priority: int | None
    intervals: AtLeastOne
    figures: dict[str, Range | None]
    peak: Peak


class During(TypedDict):
    """A switch while flows ran. `within_percent`: how far from true a rate may be.

    `covered_percent`: of the flows' time, what lies between readings of one playbook.
    """

    readings: AtLeastOne
    intervals: Whole
    covered_percent: Number | None
    within_percent: Number | None
    marked: Whole
    marks: list[Mark]
    rows: list[DuringRow]


class Switch(TypedDict):
    """What the hosts' ports carried and lost between two readings; null: the switch has no answer.

    `faults`: why it was not judged. `gaps`: optional answers that it did not give. `not_found`:
    ports of the inventory that the switch does not have.
    """

    name: str
    provider: str
    scope: Scope
    priorities: list[Annotated[int, Meta(ge=0, le=7)]]
    seconds: Number | None
    faults: list[SwitchFault]
    gaps: list[SwitchFault]
    not_found: list[SwitchPort]
    rows: list[SwitchRow]
    during: NotRequired[During]
