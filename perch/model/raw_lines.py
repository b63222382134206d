"""perch.raw/2: the lines of flows.jsonl and samples.jsonl, as docs/raw.md has them."""

from __future__ import annotations

from typing import Annotated

import msgspec

from perch.model.record import Model, Number, Placement

SCHEMA = "perch.raw/2"

#: Nanoseconds since a host has started, up to 292 years.
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
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
    """The last line of flows.jsonl: without it the agent was still running, or was killed."""

    state: str
    flows_done: Number
    message: str | None = None
    ended: str | None = None


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
