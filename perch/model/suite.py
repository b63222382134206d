"""What is planned: the tests of a suite, and the hosts of an inventory that they run between."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from perch.model.devices import Capabilities
from perch.model.record import Number, Scope

#: What carries a test: an RDMA device of the host (hardware or, by its name, software), a card that
#: no software stands in for, a provider of libfabric that drives one, or the host's sockets.
Carrier = Literal["rdma", "card", "provider", "sockets"]

#: Fabrics that carry RDMA, and the engine's backends that drive their NICs.
RDMA_FABRICS = ("roce", "infiniband", "slingshot")
RDMA_BACKENDS = ("verbs", "cxi")


class SuiteTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One test of a suite. `params` are its tool's options (playbooks/suites/suite.schema.json).

    `rails`: whether those of a pair work one after another, or all together. `directions`: both:
    each pair once more with its ends exchanged.
    """

    name: str
    title: str
    tool: str
    kind: str
    backend: str | None = None
    provider: str | None = None
    op: str = "send"
    params: dict[str, Any] = {}
    repeat: Annotated[int, msgspec.Meta(ge=1)] = 1
    rails: Literal["alone", "together"] = "alone"
    directions: Literal["one", "both"] = "one"

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter; `default` where it is not given or false."""
        value = self.params.get(name)
        return default if value is None or value is False else value

    def first_of(self, names: tuple[str, ...]) -> str | None:
        """The first of these parameters that is given."""
        return next((name for name in names if self.params.get(name) is not None), None)


class SoakSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A suite's `soak`, times as it writes them."""

    mode: Literal["mixed", "alternating"] = "mixed"
    pairs: Literal["ring", "all"] | None = None
    turn: str = "10m"
    interval: str = "60s"
    stall: str = "20ms"
    reconnect: str = "30m"


class Suite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    tests: list[SuiteTest]
    soak: SoakSettings | None = None


class Host(msgspec.Struct, frozen=True, eq=False):
    """A host that takes part, with the defaults of what its inventory leaves out.

    `devices`: {name, netdev, ib_port, gid_index, svc_id, vni}, of which the name is certain.
    `tool_ports`: of each tool with a server of its own; `port` is the engine's.
    `link_gbit_s`: the rate of each measured link that was bought. `traits`: of its fabric, lossless
    and adaptive_routing, where the inventory says so. `slowdown`: how much slower
    than a laptop it is. Of a host that was asked for its devices, `can`: what those that it named
    can do, `left`: those on its fabric that `devices` has not, and why, `drivers` of its `devices`,
    and `gpus`: kinds of memory that its GPUs have (cuda, rocm, ze), None where it did not say.
    """

    name: str
    address: str
    fabric: str
    scope: Scope
    backends: list[str]
    tools: list[str]
    devices: list[dict[str, Any]]
    port: int
    tool_ports: dict[str, int]
    slowdown: Number = 1
    link_gbit_s: Number | None = None
    traits: dict[str, bool] = {}
    group: str | None = None
    switch: str | None = None
    can: dict[str, Capabilities] = {}
    left: dict[str, str] = {}
    drivers: frozenset[str] = frozenset()
    gpus: frozenset[str] | None = None
