"""What is planned of the composed fabric: five hosts with a card of 100 Gb/s, all pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Document = dict[str, Any]

HOSTS = ("alpha", "beta", "gamma", "delta", "epsilon")
#: 2026-01-01T00:00:00Z
EPOCH = 1767225600

#: The circle method: ten pairs of five hosts in five rounds, none twice in one.
PAIRS = (
    ((0, 1), (2, 4)),
    ((1, 2), (3, 0)),
    ((2, 3), (4, 1)),
    ((3, 4), (0, 2)),
    ((4, 0), (1, 3)),
)
ONE_PAIR = (((0, 1),),)


def stamp(seconds: float) -> str:
    """A moment as the engine and the agents write it."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


@dataclass(frozen=True)
class Test:
    """A test of the suite. `seconds`: for how long, in the place of a number of messages.

    `params`: beside the sizes and the length.
    """

    name: str
    title: str
    tool: str
    op: str
    kind: str
    messages: int = 0
    sizes: tuple[int, ...] = (65536,)
    backend: str | None = None
    seconds: int = 0
    one_pair: bool = False
    rails: int = 1
    both_ways: bool = False
    repeats: int = 2
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def is_hardware(self) -> bool:
        """Whether its bytes go through the card."""
        return self.backend == "verbs" or self.tool == "perftest"

    def rounds(self) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
        """The rail, and the pairs of hosts that measure it at once, client first."""
        rounds = ONE_PAIR if self.one_pair else PAIRS
        for rail in range(self.rails):
            yield from ((rail, pairs) for pairs in rounds)
            if self.both_ways:
                for pairs in rounds:
                    yield rail, tuple((server, client) for client, server in pairs)


WRITES = Test(
    "write-bandwidth", "RDMA write bandwidth", "perch", "write", "bandwidth", 200000,
    backend="verbs", params={"outstanding": 16, "cq_moderation": 1, "inline": 0},
)  # fmt: skip
SENDS = Test(
    "send-latency", "RDMA send latency", "perch", "send", "latency", 4000, (64,), "verbs",
)  # fmt: skip
PERFTEST = Test(
    "perftest-write-bandwidth", "perftest, RDMA write bandwidth", "perftest", "write", "bandwidth",
    200000, one_pair=True, params={"tx_depth": 16, "cq_moderation": 1, "inline": 0},
)  # fmt: skip
STEADY = Test(
    "steady-bandwidth", "RDMA write bandwidth of ten minutes", "perch", "write", "bandwidth",
    backend="verbs", seconds=600, one_pair=True, repeats=1, params={"interval": "10s"},
)  # fmt: skip
TCP = (
    Test(
        "tcp-latency", "TCP latency", "perch", "send", "latency", 4000, (64,), "tcp", one_pair=True,
    ),
    Test(
        "tcp-bandwidth", "TCP bandwidth", "perch", "send", "bandwidth", 40000, backend="tcp",
        one_pair=True,
    ),
    Test(
        "iperf3", "iperf3, one stream", "iperf3", "send", "bandwidth", seconds=2, one_pair=True,
    ),
)  # fmt: skip

HEALTHY = (WRITES, SENDS, STEADY, *TCP)
WITH_PERFTEST = (WRITES, SENDS, PERFTEST, STEADY, *TCP)

#: Both ways of each pair, three sizes, and enough samples for p99.99.
SWEPT = (
    Test(
        "write-sizes", "RDMA write bandwidth of three sizes", "perch", "write", "bandwidth", 20000,
        (65536, 131072, 262144), "verbs", both_ways=True,
        params={"outstanding": 16, "cq_moderation": 1, "inline": 0},
    ),
    Test(
        "send-tail", "RDMA send latency, its tail", "perch", "send", "latency", 100000, (64,),
        "verbs", one_pair=True,
    ),
)  # fmt: skip

#: Two cards a host, one after the other.
RAILED = (
    Test(
        "write-rails", "RDMA write bandwidth of each rail", "perch", "write", "bandwidth", 200000,
        backend="verbs", rails=2, repeats=1,
        params={"devices": "all", "outstanding": 16, "cq_moderation": 1, "inline": 0},
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Fabric:
    """A run to compose. `seed`: of its noise. `weak`: so much slower are flows whose id matches.

    begun: seconds since 1970. again: a flow that is measured twice more, as a retry is planned.
    """

    seed: int
    tests: tuple[Test, ...] = HEALTHY
    weak: tuple[str, float] = field(default=("$^", 1.0))
    begun: int = EPOCH
    again: str = ""

    @property
    def run(self) -> str:
        """The id of the run; it says that it is composed."""
        return f"{datetime.fromtimestamp(self.begun, UTC):%Y%m%dT%H%M%SZ}-healthy-{self.seed}"

    @property
    def rails(self) -> int:
        """How many cards each host has."""
        return max(test.rails for test in self.tests)

    def factor(self, flow: str) -> float:
        """What is left of a flow's rate."""
        pattern, factor = self.weak
        return factor if re.search(pattern, flow) else 1.0


def address(host: int, rail: int = 0) -> str:
    """Of documentation (RFC 5737)."""
    return f"{('192.0.2', '203.0.113')[rail]}.{host + 1}"


def device(rail: int) -> str:
    return f"mlx5_{rail}"


def netdev(rail: int) -> str:
    return f"enp{rail + 1}s0"


def _params(test: Test) -> Document:
    """The test's params as a suite has them."""
    sizes = [f"{size >> 10}K" if size % 1024 == 0 else size for size in test.sizes]
    size = sizes[0] if len(sizes) == 1 else f"{sizes[0]}:{sizes[-1]}"
    length = {"duration": f"{test.seconds}s"} if test.seconds else {"iterations": test.messages}
    return {"size": size, **length, **test.params}


def _flow(test: Test, repeat: int, rail: int, client: int, server: int) -> Document:
    ready = {"perftest": {"port": 18515, "proto": "tcp"}, "iperf3": {"port": 5201, "proto": "tcp"}}
    return {
        "id": f"{test.name}/{HOSTS[client]}/{HOSTS[server]}/{rail}/{repeat}",
        "test": test.name, "title": test.title, "repeat": repeat, "rail": rail, "tool": test.tool,
        "backend": test.backend, "provider": None, "op": test.op, "kind": test.kind,
        "client": HOSTS[client], "server": HOSTS[server],
        "scope": "hardware" if test.is_hardware else "software",
        "params": _params(test), "ready": ready.get(test.tool),
        "deadline_s": (test.seconds or 1) + 32, "estimate_s": (test.seconds or 1) + 1,
        "expect": [{"size_bytes": size} for size in test.sizes],
    }  # fmt: skip


def plan(fabric: Fabric) -> Document:
    """plan.json; the planner makes its commands."""
    rounds = [
        {"flows": [_flow(test, repeat, rail, *pair) for pair in pairs]}
        for repeat in (1, 2)
        for test in fabric.tests
        if repeat <= test.repeats
        for rail, pairs in test.rounds()
    ]
    title = "Composed: hardware that is not there, its noise resampled from recorded runs"
    return {**_head(fabric, title), "rounds": rounds, "excluded": []}


def retry_plan(fabric: Fabric, first: Document) -> Document:
    """plan.retry.json: the flow is measured twice more, in rounds of its own."""
    flows = [flow for round_ in first["rounds"] for flow in round_["flows"]]
    flow = next(flow for flow in flows if flow["id"] == f"{fabric.again}/0/1")
    rounds = [
        {"flows": [{**flow, "id": f"{fabric.again}/0/{repeat}", "repeat": repeat}]}
        for repeat in (3, 4)
    ]
    return {**first, "rounds": rounds}


def _head(fabric: Fabric, title: str) -> Document:
    return {
        "run": fabric.run,
        "created": stamp(fabric.begun)[:-5] + "Z",
        "limits": "roce",
        "suite": {"name": "healthy", "title": title},
        "hosts": {
            host: {
                "address": address(number), "group": None, "fabric": "roce", "scope": "hardware",
                "backends": ["tcp", "verbs"], "tools": ["perch", "perftest", "iperf3"],
                "devices": [
                    {"name": device(rail), "netdev": netdev(rail)} for rail in range(fabric.rails)
                ],
                "port": 18600,
                "link_gbit_s": 100,
            }
            for number, host in enumerate(HOSTS)
        },
    }  # fmt: skip
