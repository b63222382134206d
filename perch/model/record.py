"""A measurement (`Record`, perch.record/2). What it is made of is a tool's `Part` (part.py).

Units stand in the names; rates are decimal (1 Gb/s = 1e9 bit/s), sizes in bytes, latencies in
microseconds. A key without a value is left out, never 0. Definitions: docs/definitions.md.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

#: JSON has whole numbers of any length; 64 bits hold every one that a tool means.
Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | float
#: A count: whole, not negative, at most what 64 bits hold.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Scope = Literal["hardware", "software", "simulated", "imported"]
Status = Literal["ok", "error", "not_measured"]
Role = Literal["client", "server"]
ROLES: tuple[Role, Role] = ("client", "server")


class Model(msgspec.Struct, omit_defaults=True):
    """What has no value is left out."""


class ToolName(Model):
    name: str
    version: str | None = None


class Placement(Model):
    """Where an end worked.

    `cpu`: one of a core for each thread, as a list; `node`: theirs; `memory_node`: of its buffers,
    where it is another. `unplaced`: why its threads were not pinned. `gpu`: PCI addresses of the
    GPUs that hold its buffers, as a list.
    """

    cpu: str | None = None
    node: Count | None = None
    memory_node: Count | None = None
    unplaced: Literal["off", "same-machine", "few-cores", "no-core"] | None = None
    gpu: str | None = None


class Side(Model):
    """One end of a flow.

    `svc_id` and `vni` are in use; `environment` is what its provider read; `placement`: if known.
    """

    host: str | None = None
    device: str | None = None
    address: str | None = None
    driver: str | None = None
    svc_id: int | None = None
    vni: int | None = None
    gpu: str | None = None
    placement: Placement | None = None
    idc: bool | None = None
    ll: bool | None = None
    environment: dict[str, str] | None = None


class QueuePair(Model):
    """`psn`: the sequence number of its first packet; a connection manager tells none."""

    number: Count
    psn: Count | None = None


class Link(Model):
    """`pcie_gbit_s`: payload that PCIe lets through at the narrower end, one way.

    `expected_gbit_s`: the rate of each link that the inventory says was bought. `links`: of a bond,
    as many as the flow's queue pairs may take.
    """

    rate_gbit_s: Number | None = None
    mtu_bytes: Number | None = None
    layer: str | None = None
    hop_class: str | None = None
    pcie_gbit_s: Number | None = None
    ipv6: bool | None = None
    vlan: bool | None = None
    expected_gbit_s: Number | None = None
    links: Count | None = None


class Rate(Model):
    """A pace that was asked for; `skipped` messages did not keep to it."""

    asked: Number | None = None
    unit: str | None = None
    skipped: Number | None = None
    overloaded: bool | None = None


class Params(Model):
    """What was asked of the tool, or what it says that it used."""

    size_bytes: Count | None = None
    iterations: Count | None = None
    duration_s: Number | None = None
    warmup: Count | None = None
    warmup_s: Number | None = None
    gap_us: Number | None = None
    queue_pairs: Count | None = None
    outstanding: Count | None = None
    batch: Count | None = None
    threads: Count | None = None
    devices: Count | None = None
    inline_bytes: Count | None = None
    bidirectional: bool | None = None
    completion: str | None = None
    memory: str | None = None
    verify: bool | None = None
    clock: str | None = None
    rate: Rate | None = None
    cq_moderation: Number | None = None
    srq: bool | None = None
    rdma_cm: bool | None = None
    relaxed_ordering: bool | None = None
    data_in_order: bool | None = None
    ib_port: Number | None = None
    server_ib_port: Number | None = None
    gid_index: Number | None = None
    pkey: Number | None = None
    sl: Number | None = None
    traffic_class: Number | None = None
    retry: Number | None = None
    rnr_retry: Number | None = None
    timeout_exponent: Number | None = None
    huge: Number | None = None
    svc_id: Number | None = None
    server_svc_id: Number | None = None
    vni: Number | None = None
    rdzv_from_bytes: Number | None = None
    idc: bool | None = None
    ll: bool | None = None
    rdzv: bool | None = None
    unrestricted: bool | None = None
    hrp: bool | None = None
    fetching: bool | None = None
    barrier: bool | None = None
    bounce: bool | None = None
    fabric_class: str | None = None
    keys: str | None = None
    atomic_op: str | None = None
    atomic_type: str | None = None
    tx_memory: str | None = None
    rx_memory: str | None = None
    gpu_path: str | None = None
    footprint_bytes: Count | None = None
    buffer_bytes: Count | None = None
    stride_bytes: Count | None = None
    chunk_bytes: Count | None = None
    chunks: Count | None = None
    cross_rail: Count | None = None
    consecutive: bool | None = None
    session: bool | None = None


class Latency(Model):
    """Microseconds. A percentile is there only where ten of `count` samples or more lie above."""

    PERCENTILES: ClassVar[dict[str, float]] = {
        "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999,
    }  # fmt: skip

    count: Count | None = None
    min: Number | None = None
    max: Number | None = None
    mean: Number | None = None
    stddev: Number | None = None
    p50: Number | None = None
    p90: Number | None = None
    p95: Number | None = None
    p99: Number | None = None
    p99_9: Number | None = None
    p99_99: Number | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether the known figures rise, from the least over the percentiles to the greatest."""
        figures = [getattr(self, name) for name in ("min", *self.PERCENTILES, "max")]
        known = [figure for figure in figures if figure is not None]
        return known == sorted(known)


class Bandwidth(Model):
    """Payload only. `peak_gbit_s` means what `peak_definition` says: tools differ."""

    gbit_s: Number | None = None
    peak_gbit_s: Number | None = None
    peak_definition: str | None = None
    min_interval_gbit_s: Number | None = None
    messages_per_s: Number | None = None
    bytes: Number | None = None


class Interval(Model):
    start_s: Number | None = None
    end_s: Number | None = None
    count: Count | None = None
    gbit_s: Number | None = None
    latency_us: Latency | None = None


class Histogram(Model):
    """HdrHistogram's compressed V2 encoding.

    Of observed round trips or single times, in nanoseconds.
    """

    encoding: str
    unit: str
    data: str


class Cpu(Model):
    """Seconds of the processes, and of the whole host while they ran."""

    client_s: Number | None = None
    server_s: Number | None = None
    client_system_s: Number | None = None
    server_system_s: Number | None = None
    client_s_per_gb: Number | None = None
    server_s_per_gb: Number | None = None


class FirstBad(Model):
    """The first corrupted byte.

    Message number in its phase, offset in the message, the word around it as hexadecimal.
    """

    found_by: Role
    message: Count
    offset: Count
    at: str | None = None
    expected: str | None = None
    found: str | None = None
    start_s: Number | None = None


class Integrity(Model):
    checked_bytes: Count | None = None
    bad_bytes: Count | None = None
    first_bad: FirstBad | None = None


class Tcp(Model):
    """`initial_cwnd_bytes`, `mss_bytes`: congestion window and segment once connected."""

    retransmissions: Count | None = None
    initial_rtt_us: Number | None = None
    window_bytes: Number | None = None
    initial_cwnd_bytes: Count | None = None
    mss_bytes: Count | None = None


class Loss(Model):
    """Of an unreliable connection. `lost_messages` is left out where the receiver did not count."""

    sent_messages: Count | None = None
    lost_messages: Count | None = None
    jitter_us: Number | None = None


class Stall(Model):
    """The longest time without a completion while messages were outstanding."""

    longest_s: Number
    start_s: Number
    began: str | None = None


class Packets(Model):
    """What became of a flow's packets, from the RDMA counters of both ends."""

    sent: Number | None = None
    lost: Number | None = None
    retries: Number | None = None
    gaps: Number | None = None
    corrupted: Number | None = None


class Events(Model):
    """Counters of the devices that carried a flow, by class.

    `reset`: classes whose counter was reset, has wrapped or is full.

    `moved`: of each class that moved, the first host, device and counter that did. `stale`: a
    device whose counters contradict each other.
    """

    CLASSES: ClassVar[tuple[str, ...]] = (
        "drops", "errors", "retransmissions", "out-of-sequence", "link", "pcie", "pause",
        "congestion", "host-drops", "pcie-corrected",
    )  # fmt: skip

    counts: dict[str, Number] = {}
    reset: list[str] = []
    moved: dict[str, str] = {}
    stale: str | None = None


class Path(Model):
    """Whether the bytes used the devices that the flow claims.

    `counted`: devices and units that were compared.
    """

    state: Literal["proven", "contradicted", "exceeded", "unknown", "not_judged"]
    claimed_bytes: Number | None = None
    client_device_bytes: Number | None = None
    server_device_bytes: Number | None = None
    reason: str | None = None
    counted: str | None = None


class Counters(Model):
    """Differences over the flow.

    By host: the host's own counters by name, a device's as an object of what moved.
    """

    client: dict[str, Any] = {}
    server: dict[str, Any] = {}


class Transfer(Model):
    """`pair`.

    Index of the pair of devices, absent in their sum; `window_s`: from the common start to the last
    completion.
    """

    pair: Count | None = None
    pairs: Count | None = None
    batches: Count | None = None
    completed: Count | None = None
    asked: Count | None = None
    batch_bytes: Count | None = None
    lists: Count | None = None
    window_s: Number | None = None
    numa_node: Count | None = None
    post_api: str | None = None


class SoakSummary(Model):
    """The whole of a soak; its intervals are lines of their own (intervals.jsonl)."""

    planned_s: Number
    passed_s: Number
    interval_s: Number
    intervals: int
    connections: int
    gaps: int
    gap_s: Number
    stalls: int
    stall_s: Number
    stopped: bool
    resumed: bool
    dropped_lines: int


#: What of a result is not that of its flow.
About = Literal["ends", "times", "version"]


class Error(Model):
    """`code`.

    The design's exit codes, absent where nothing was started; `traffic`: payload had begun to move.
    `about`: what of the output contradicts the plan, its hosts or their agents.
    """

    code: int | None = None
    message: str = ""
    traffic: bool = msgspec.field(default_factory=bool)  # a factory's value is never left out
    about: About | None = None


class Record(Model):
    """perch.record/2: one measurement of one flow and size, in the order of its keys.

    `rails_at_once`: of its pair that worked at the same time, where there were several.
    """

    schema: str
    run: str
    flow: str
    test: str
    repeat: int
    rail: int
    scope: Scope
    tool: ToolName
    client: Side
    server: Side
    status: Status
    rails_at_once: Count | None = None
    backend: str | None = None
    provider: str | None = None
    op: str | None = None
    kind: str | None = None
    definition: str | None = None
    completion_level: str | None = None
    connection: str | None = None
    link: Link | None = None
    queue_pairs: dict[Role, list[QueuePair]] = {}
    params: Params | None = None
    started: str | None = None
    elapsed_s: Number | None = None
    clock_skew_s: Number | None = None
    latency_us: Latency | None = None
    bandwidth: Bandwidth | None = None
    intervals: list[Interval] = []
    histogram: Histogram | None = None
    cpu: Cpu | None = None
    path: Path | None = None
    integrity: Integrity | None = None
    tcp: Tcp | None = None
    loss: Loss | None = None
    stall: Stall | None = None
    packets: Packets | None = None
    events: Events | None = None
    counters: Counters | None = None
    transfer: Transfer | None = None
    soak: SoakSummary | None = None
    environment: dict[str, str] | None = None
    error: Error | None = None

    @property
    def place(self) -> str:
        """Within its flow: the size; of a transfer 1024x128/0 (batch and pair) or 1024x128/sum."""
        params = self.params or Params()
        if self.kind == "sum":
            return f"{params.size_bytes}x{params.batch}/sum"
        if self.kind == "transfer":
            pair = self.transfer.pair if self.transfer else None
            return f"{params.size_bytes}x{params.batch}/{pair}"
        return "null" if params.size_bytes is None else str(params.size_bytes)

    @property
    def id(self) -> str:
        return f"{self.flow}#{self.place}"

    @property
    def on_rail(self) -> str:
        """What stands behind the place of a figure: nothing on rail 0, else @railN."""
        return f"@rail{self.rail}" if self.rail else ""
