"""perch.raw/2: the lines of flows.jsonl and samples.jsonl, as docs/raw.md has them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from perch.model.record import Model, Number, Placement

SCHEMA = "perch.raw/2"

#: Nanoseconds since a host has started, up to 292 years.
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
#: What 64 bits hold: sums of such numbers are still numbers.
LARGEST_NUMBER = 2**63 - 1
_natural = msgspec.Meta(ge=0, le=LARGEST_NUMBER)
Natural = Annotated[int, _natural] | Annotated[float, _natural]
#: Of an uptime or of a soak, which may begin below 0: its first second may be an agreed one.
Seconds = Annotated[float, msgspec.Meta(ge=-(2**53), le=2**53)]
#: From 1, in the order of the lines.
SampleNumber = Annotated[int, msgspec.Meta(ge=1, lt=2**53)]


class Head(Model, tag_field="kind", tag="head"):
    """The first line of both files; `flows` and the times are in flows.jsonl only."""

    schema: str
    run: str
    plan_sha256: str
    host: str
    flows: Number | None = None
    started: str | None = None


class FlowLine(Model, tag_field="kind", tag="flow"):
    """One end of a flow. `samples`: the readings before and after it.

    `placement`: where the agent put a command that does not place itself.
    """

    id: str
    role: str
    state: str
    message: str | None = None
    argv: list[str] | None = None
    exit: int | None = None
    signal: str | None = None
    timed_out: bool = False
    placement: Placement | None = None
    started: str | None = None
    started_monotonic_ns: Nanoseconds | None = None
    ended: str | None = None
    ended_monotonic_ns: Nanoseconds | None = None
    samples: tuple[SampleNumber, SampleNumber] | None = None
    route_interface: str = ""
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None


class EndLine(Model, tag_field="kind", tag="end"):
    """The last line of flows.jsonl: without it the agent was still running, or was killed.

    Of a soak `passed_s` of it at its end, and at `stop_asked_s` somebody asked it to stop.
    `unwritten`: the first file that the disk refused for a while.
    """

    state: str
    flows_done: Number
    message: str | None = None
    ended: str | None = None
    passed_s: Seconds | None = None
    stop_asked_s: Seconds | None = None
    unwritten: str | None = None


class StartLine(Model, tag_field="kind", tag="start"):
    """An agent begins a soak or goes on: `passed_s` had passed at `uptime_s` of that boot.

    `begun`: when the soak began, by the wall.
    """

    boot_id: str
    uptime_s: Seconds
    passed_s: Seconds
    begun: str


class BeginLine(Model, tag_field="kind", tag="begin"):
    """A flow of a soak begins for the first time; the agent reads it when it goes on."""

    id: str
    role: str
    sample: SampleNumber
    boot_id: str
    passed_s: Seconds


class EpisodeLine(Model, tag_field="kind", tag="episode"):
    """What happened in a soak beside its plan."""

    what: str
    message: str


class Brief(Model):
    """What of a line tells where it belongs."""

    kind: str
    id: str = ""
    role: str = ""
    samples: tuple[SampleNumber, SampleNumber] | None = None


class Names(Model):
    """The counters of an RDMA port or a NIC; `netdev`: the interface under or over it."""

    counters: list[str]
    netdev: str = ""


class LayoutLine(Model, tag_field="kind", tag="layout"):
    """Which counter each value of the samples after it is of, in their order."""

    host: list[str] = []
    netdev: dict[str, list[str]] = {}
    rdma: dict[str, Names] = {}
    cxi: dict[str, Names] = {}


class SampleLine(Model, tag_field="kind", tag="sample"):
    """A reading of all counters; `time_s`: seconds since the epoch."""

    number: SampleNumber
    time_s: str
    monotonic_ns: Nanoseconds
    values: str
    settled: bool = False


# ---- samples of a soak ---------------------------------------------------------------------------


class Temperature(msgspec.Struct):
    name: str
    celsius: Number


class Process(msgspec.Struct):
    """`start`: the moment at which it began, in the kernel's words."""

    role: str
    pid: Number
    start: str
    resident_bytes: Natural
    flow: str | None = None
    handles: Natural | None = None


class SoakSampleLine(SampleLine, kw_only=True, tag_field="kind", tag="sample"):
    """The same of a soak, with more; `dropped`: samples before it that nothing had room for."""

    boot_id: str
    uptime_s: Seconds
    links: dict[str, dict[str, str]]
    temperatures: list[Temperature]
    processes: list[Process]
    dropped: Natural = 0
