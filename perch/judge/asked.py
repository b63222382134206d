"""What the plan asks of a flow's output, compared with what the output says was done.

Each tool says what its outputs must state (`perch.tools.command.Command.wants`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from perch.judge.laws import AGREEING_S
from perch.model.part import Part
from perch.model.plan import Flow, PlanHost
from perch.model.record import (
    ROLES,
    Error,
    Link,
    Number,
    Params,
    Placement,
    Rate,
    Role,
    Side,
    Transfer,
)
from perch.model.units import GIBI, MEBI, seconds
from perch.plan.forms import command_of, test_of
from perch.tools.command import Ends, Want

#: A duration that ended earlier than this part of it was cut short.
WHOLE_DURATION = 0.9

#: The engine keeps as many intervals in its result (RUN_INTERVALS_MAX).
INTERVALS_MAX = 86400

#: The engine's names of huge pages, in bytes.
HUGE = {"huge:2M": 2 * MEBI, "huge:1G": GIBI}

#: Differently stated values of one test that are kept as good; there are a few.
GOOD_MAX = 1000

_NO_PARAMS, _NO_LINK, _NO_RATE = Params(), Link(), Rate()
_NO_SIDE, _NO_TRANSFER, _NO_PLACE = Side(), Transfer(), Placement()


def huge(params: Params) -> Number | None:
    """Bytes of a huge page, from the memory's name where it is not stated apart."""
    return HUGE.get(params.tx_memory or "") if params.huge is None else params.huge


# ---- what an output states -----------------------------------------------------------------------


def _layer(part: Part) -> str | None:
    """The layer below iWARP is Ethernet."""
    layer = (part.link or _NO_LINK).layer
    return "ethernet" if layer == "iwarp" else layer


def _rate(part: Part) -> Rate | None:
    return part.params.rate if part.params else None


def _side(part: Part, role: Role) -> Side:
    return (part.client if role == "client" else part.server) or _NO_SIDE


def _place(part: Part, role: Role) -> Placement:
    return _side(part, role).placement or _NO_PLACE


def _devices(part: Part, role: Role) -> str | None:
    """The device; of a sum all, sorted. A simulation has the name of what it stands for.

    The scope of a simulated device is never hardware's.
    """
    said = _side(part, role).device
    if said is None:
        return None
    return ",".join(sorted(one.removeprefix("sim_") for one in said.split(",")))


def _of_size(name: str) -> Callable[[Part], Any]:
    """A distance that is not stated is the size of a message."""

    def stated(part: Part) -> Any:
        params = part.params or _NO_PARAMS
        return getattr(params, name) or params.size_bytes

    return stated


#: What is not stated in a part's params under its own name.
STATED: dict[str, Callable[[Part], Any]] = {
    "backend": lambda part: part.backend,
    "provider": lambda part: part.provider,
    "op": lambda part: part.op,
    "kind": lambda part: part.kind,
    "definition": lambda part: part.definition,
    "connection": lambda part: part.connection,
    "reverse": lambda part: part.reverse,
    "layer": _layer,
    "mtu_bytes": lambda part: (part.link or _NO_LINK).mtu_bytes,
    "huge": lambda part: huge(part.params or _NO_PARAMS),
    "paced": lambda part: _rate(part) is not None,
    "rate": lambda part: (_rate(part) or _NO_RATE).asked,
    "rate_unit": lambda part: (_rate(part) or _NO_RATE).unit,
    "footprint_bytes": lambda part: (part.params or _NO_PARAMS).footprint_bytes or 0,
    "stride_bytes": _of_size("stride_bytes"),
    "chunk_bytes": _of_size("chunk_bytes"),
    "pairs": lambda part: (part.transfer or _NO_TRANSFER).pairs,
    "transfers": lambda part: (part.transfer or _NO_TRANSFER).asked or 0,
    "client.device": lambda part: _devices(part, "client"),
    "server.device": lambda part: _devices(part, "server"),
    "client.cpu": lambda part: _place(part, "client").cpu,
    "server.cpu": lambda part: _place(part, "server").cpu,
    "client.unplaced": lambda part: _place(part, "client").unplaced,
    "server.unplaced": lambda part: _place(part, "server").unplaced,
    "client.memory_node": lambda part: _place(part, "client").memory_node,
    "server.memory_node": lambda part: _place(part, "server").memory_node,
    "client.port": lambda part: (part.params or _NO_PARAMS).ib_port,
    "server.port": lambda part: (part.params or _NO_PARAMS).server_ib_port,
    "client.svc_id": lambda part: _side(part, "client").svc_id,
    "server.svc_id": lambda part: _side(part, "server").svc_id,
    "client.vni": lambda part: _side(part, "client").vni,
    "server.vni": lambda part: _side(part, "server").vni,
}


# ---- as planned or not ---------------------------------------------------------------------------


def near(stated: object, value: object) -> bool:
    """Whether two numbers are the same but for how they were written."""
    return (
        isinstance(stated, int | float)
        and isinstance(value, int | float)
        and abs(stated - value) < 1e-6
    )


def spoken(value: object) -> str:
    """A value within a sentence."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " or ".join(map(spoken, value))
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _fits(want: Want, stated: object) -> bool:
    """libfabric names a provider with the layer on it: "tcp" is answered by "tcp;ofi_rxm"."""
    name, value, optional = want
    if isinstance(value, tuple):
        return stated in value
    if name == "provider" and isinstance(stated, str) and stated.startswith(f"{value};"):
        return True
    return stated == value or (stated is None and optional) or near(stated, value)


def _unlike(want: Want, stated: object) -> str:
    role, _, key = want.name.rpartition(".")
    asked = f"{key} {spoken(want.value)}" + (f" on the {role}" if role else "")
    return f"the plan asks for {asked}, the output says {spoken(stated)}"


class Requests:
    """What one record must state, ready to be compared with many outputs."""

    def __init__(self, wants: Iterable[Want]) -> None:
        asked = [want for want in wants if want.value is not None]
        own = [want for want in asked if want.name not in STATED]
        self._wants = [*(want for want in asked if want.name in STATED), *own]
        self._order = [self._wants.index(want) for want in asked]
        self._others = [STATED[want.name] for want in asked if want.name in STATED]
        # several names give a tuple, one alone would give its value
        self._of_params = attrgetter(*(want.name for want in own), "size_bytes", "size_bytes")
        self._good: set[tuple[Any, ...]] = set()

    def unlike(self, part: Part) -> str | None:
        """The first thing that the output states otherwise, in words."""
        others = tuple([stated(part) for stated in self._others])
        own = self._of_params(part.params or _NO_PARAMS)
        said: tuple[Any, ...] = others + own[:-2]
        if said in self._good:  # nearly all outputs of a test say the same
            return None
        for at in self._order:
            if not _fits(self._wants[at], said[at]):
                return _unlike(self._wants[at], said[at])
        if len(self._good) < GOOD_MAX:
            self._good.add(said)
        return None


def _too_short(part: Part, planned_s: float | None) -> Error | None:
    """Less time than was asked for.

    A soak that was stopped on request ends with exit code 0.
    """
    if planned_s is None or part.elapsed_s is None or part.elapsed_s >= WHOLE_DURATION * planned_s:
        return None
    if part.soak and part.soak.stopped:
        passed = part.soak.passed_s
        brief = round(passed) if passed >= 100 else round(passed, 1)
        return Error(0, f"it was stopped after {spoken(brief)} s of {spoken(planned_s)} s")
    return Error(6, f"it lasted {spoken(part.elapsed_s)} s of {spoken(planned_s)} s")


def _uncovered(part: Part, every_s: float | None) -> Error | None:
    """Less time in intervals than was asked for; one that is not whole at the end is not written.

    That they follow each other is one of perch.judge.laws.
    """
    if every_s is None or part.elapsed_s is None or part.soak:
        return None
    covered = max((one.end_s or 0 for one in part.intervals), default=0)
    left = part.elapsed_s - covered
    if left <= every_s + AGREEING_S or len(part.intervals) >= INTERVALS_MAX:
        return None
    return Error(6, f"the last {spoken(left)} s have no interval of {spoken(every_s)} s")


# ---- a flow --------------------------------------------------------------------------------------


class Use(NamedTuple):
    """The device and the port that a flow must use at one end; None leaves it to the tool."""

    device: str | None = None
    port: str | None = None


NO_USES: Mapping[Role, Use] = {role: Use() for role in ROLES}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the plan asks of a flow.

    `requests`: of its expected records, in their order. `lasts_s`: seconds that each must have
    measured. `every_s`: seconds of each of its intervals, None where none were asked for.
    """

    requests: Sequence[Requests]
    uses: Mapping[Role, Use]
    lasts_s: float | None = None
    every_s: float | None = None

    def judge(self, at: int, part: Part) -> None:
        """Turns the part of an expected record into an error where it is not as planned."""
        if part.status != "ok":
            return
        unlike = self.requests[at].unlike(part)
        why = Error(6, unlike) if unlike else _too_short(part, self.lasts_s)
        why = why or _uncovered(part, self.every_s)
        if why is not None:
            why.traffic = True
            part.status, part.error = "error", why


def _use(wants: Sequence[Sequence[Want]], role: Role) -> Use:
    """Of a transfer with several devices none is the flow's."""

    def only(name: str) -> str | None:
        found = {want.value for each in wants for want in each if want.name == f"{role}.{name}"}
        value = found.pop() if len(found) == 1 else None
        return None if value is None else str(value)

    return Use(only("device"), only("port"))


class Asking:
    """What a plan asks of its flows, made once for all pairs of hosts with the same devices."""

    def __init__(self, hosts: Mapping[str, PlanHost]) -> None:
        self._hosts = hosts
        self._alike: dict[bytes, int] = {}
        self._kinds: dict[tuple[str, int, int], int] = {}
        self._asked: dict[tuple[object, ...], Asked] = {}

    def of(self, flow: Flow) -> Asked:
        ends = self._kind(flow, flow.client), self._kind(flow, flow.server)
        key = flow.test, flow.devices, *ends, flow.estimate_s
        found = self._asked.get(key)
        if found is None:
            found = self._asked[key] = self._made(flow)
        return found

    def _kind(self, flow: Flow, host: str) -> int:
        """A number that ends of flows with the same fabric and devices share."""
        key = host, flow.rail, flow.devices
        found = self._kinds.get(key)
        if found is None:
            of = self._hosts[host]
            alike = msgspec.json.encode((of.fabric, flow.used(of.devices)))
            found = self._kinds[key] = self._alike.setdefault(alike, len(self._alike))
        return found

    def _made(self, flow: Flow) -> Asked:
        client, server = self._hosts[flow.client], self._hosts[flow.server]
        used = flow.used(client.devices), flow.used(server.devices)
        return asked(flow, Ends(*used, flow.devices, client.fabric))


def asked(flow: Flow, ends: Ends) -> Asked:
    """What a flow between such ends must give; of a tool without commands that is nothing."""
    test, command = test_of(flow.test, flow, flow.estimate_s), command_of(flow)
    if command is None:
        return Asked([Requests(()) for _ in flow.expect], NO_USES)
    wants = [list(command.wants(test, ends, expect)) for expect in flow.expect]
    uses: dict[Role, Use] = {role: _use(wants, role) for role in ROLES}
    every = test.get("interval") if command.is_engine else None
    every_s = None if every is None else seconds(every)
    return Asked(_requests(wants), uses, command.lasts(test), every_s)


def _requests(wants: Sequence[list[Want]]) -> list[Requests]:
    """Sizes of one test ask for the same, as a rule."""
    made: dict[tuple[Want, ...], Requests] = {}
    return [made.setdefault(tuple(one), Requests(one)) for one in wants]
