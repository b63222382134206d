"""What agents leave in raw/<host>/.

One end of a flow, readings of counters, the host's environment.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from perch.model.record import Model

#: A duration; 10^9 s are 31 years.
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]

#: A number that a float can hold, too: JSON has whole numbers of any length.
Number = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)] | float

#: Counters as the kernel prints them: decimal text, as they may lie above 2^53.
Values = dict[str, str]


class Port(Model):
    """An RDMA port or a Cassini NIC, and the network interface under or over it."""

    netdev: str = ""
    counters: Values = {}


class Reading(Model):
    """All counters of one host at one moment: `time_s` is text, seconds since the epoch."""

    time_s: str = ""
    host: Values = {}
    netdev: dict[str, Values] = {}
    rdma: dict[str, Port] = {}
    cxi: dict[str, Port] = {}


class Readings(Model):
    """Before and after a flow, or a host's idle time."""

    before: Reading | None = None
    after: Reading | None = None
    address_interface: str = ""
    route_interface: str = ""


class End(Model):
    """perch.flow/1: what one host's agent did for one flow."""

    schema: str = ""
    run: str | None = None
    flow: str | None = None
    role: str | None = None
    host: str | None = None
    argv: list[str] | None = None
    started: str | None = None
    ended: str | None = None
    elapsed_s: Seconds | None = None
    exit: int | None = None
    signal: str | int | None = None
    timed_out: bool = False
    state: str | None = None
    message: str | None = None
    counters: Readings | None = None


class Agent(Model):
    """perch.agent/1: what an agent says of itself. `plan_sha256`: of the plan that it ran."""

    schema: str = ""
    run: str | None = None
    plan_sha256: str | None = None
    host: str | None = None
    started: str | None = None
    ended: str | None = None
    state: str | None = None
    flows_total: Number | None = None
    flows_done: Number | None = None
    message: str | None = None
    soak: dict[str, Any] | None = None


class Interface(Model):
    name: str | None = None
    driver: str | None = None
    rate_gbit_s: Number | None = None
    mtu_bytes: Number | None = None


class Device(Model):
    name: str | None = None
    driver: str | None = None


class Processors(Model):
    """`cores`: those that the agent, and what it starts, may run on."""

    cores: Number | None = None


class Environment(Model):
    """perch.environment/1, as far as the judge asks for it; views read the whole document."""

    schema: str = ""
    host: str | None = None
    hostname: str | None = None
    boot_id: str | None = None
    cpu: Processors | None = None
    versions: dict[str, Any] = {}
    interfaces: list[Interface] = []
    rdma: list[Device] = []
    cxi: list[Device] = []
    collected: str | None = None
    idle: Readings | None = None


class FlowFiles(msgspec.Struct):
    """What both agents left of one flow.

    An end is None where its file is missing, "damaged" where it cannot be read. `server_stdout`: of
    tools whose server prints its connections. `server_stderr`: of those whose server is theirs.
    """

    client: End | str | None
    server: End | str | None
    stdout: bytes
    stderr: bytes
    server_stdout: bytes = b""
    server_stderr: bytes = b""
