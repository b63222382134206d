"""What a flow's planned command asks for, compared with what the output says was done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from perch.judge import commands
from perch.judge.argv import option_value, planned
from perch.judge.commands import Asked, seconds
from perch.model.plan import Flow
from perch.model.record import ROLES, Error, Link, Number, Params, Part, Rate, Role, Side
from perch.model.units import GIBI, MEBI

#: A duration that ended earlier than this part of it was cut short.
WHOLE_DURATION = 0.9

#: The engine's names of huge pages, in bytes.
HUGE = {"huge:2M": 2 * MEBI, "huge:1G": GIBI}

_port = re.compile(r"[1-9][0-9]*")

_NO_PARAMS, _NO_LINK, _NO_RATE, _NO_SIDE = Params(), Link(), Rate(), Side()


def huge(params: Params) -> Number | None:
    """Bytes of a huge page, from the memory's name where it is not stated apart."""
    return HUGE.get(params.tx_memory or "") if params.huge is None else params.huge


def _rate_of(part: Part) -> Rate | None:
    return part.params.rate if part.params else None


def _of_params(name: str) -> Callable[[Part], Any]:
    return lambda part: getattr(part.params, name, None)


#: What is not stated in a part's params under its own name.
_STATED: dict[str, Callable[[Part], Any]] = {
    "connection": lambda part: part.connection,
    "mtu_bytes": lambda part: (part.link or _NO_LINK).mtu_bytes,
    "reverse": lambda part: part.reverse,
    "huge": lambda part: huge(part.params or _NO_PARAMS),
    "paced": lambda part: _rate_of(part) is not None,
    "rate": lambda part: (_rate_of(part) or _NO_RATE).asked,
    "rate_unit": lambda part: (_rate_of(part) or _NO_RATE).unit,
    "client.svc_id": lambda part: (part.client or _NO_SIDE).svc_id,
    "server.svc_id": lambda part: (part.server or _NO_SIDE).svc_id,
    "client.vni": lambda part: (part.client or _NO_SIDE).vni,
    "server.vni": lambda part: (part.server or _NO_SIDE).vni,
}


class Requests:
    """What one command asks for, ready to be compared with many outputs."""

    def __init__(self, asked: Iterable[Asked]) -> None:
        self._wanted = [
            (_STATED.get(one.name) or _of_params(one.name), *one)
            for one in asked
            if one.value is not None
        ]

    def unlike(self, part: Part) -> str | None:
        """The first thing that the output states otherwise, in words."""
        for stated_by, name, value, optional in self._wanted:
            stated = stated_by(part)
            if stated == value or (stated is None and optional) or near(stated, value):
                continue
            return f"the plan asks for {name} {spoken(value)}, the output says {spoken(stated)}"
        return None


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
    return f"{value:.9g}" if isinstance(value, float) else str(value)


@lru_cache(maxsize=4096)
def _requests(tool: str, argv: tuple[str, ...], server_argv: tuple[str, ...]) -> Requests:
    return Requests(commands.of_flow(tool, argv, server_argv))


def without(addresses: Sequence[str], argv: Sequence[str]) -> tuple[str, ...]:
    """A command without the addresses of its two ends, in which flows of one test differ."""
    return tuple(["" if word in addresses else word for word in argv])


def _known_definitions(part: Part) -> tuple[str, ...]:
    """What an operation may be timed by."""
    if part.kind != "latency":
        return ("receiver_acknowledged",) if part.op == "send" else ("initiator_completion",)
    if part.op == "write":
        return ("half_round_trip", "completion")
    return ("half_round_trip",) if part.op == "send" else ("completion",)


def fits_plan(key: str, stated: str | None, wanted: str) -> bool:
    """libfabric names a provider with the layer on it: "tcp" is answered by "tcp;ofi_rxm"."""
    if stated == wanted:
        return True
    return key == "provider" and stated is not None and stated.startswith(wanted + ";")


def other_words(flow: Flow, part: Part, keys: Sequence[str]) -> str | None:
    """The first of these keys in which a part differs from what its flow states."""
    for key in keys:
        wanted, stated = getattr(flow, key), getattr(part, key)
        if wanted is not None and not fits_plan(key, stated, wanted):
            return f"the plan asks for {key} {wanted}, the output says {spoken(stated)}"
    return None


_KEYS = {
    "perch": ("backend", "provider", "op", "kind"),
    "perftest": ("op", "kind"),
    "cxi": ("op", "kind"),
}


def _unlike(flow: Flow, part: Part, addresses: Sequence[str]) -> str | None:
    why = other_words(flow, part, _KEYS.get(flow.tool, ("kind",)))
    if why:
        return why
    asked = _requests(
        flow.tool, without(addresses, flow.client_argv), without(addresses, flow.server_argv)
    )
    why = asked.unlike(part)
    if why or flow.tool != "perch" or part.definition in _known_definitions(part):
        return why
    return f"{part.kind} of {part.op} has no definition {spoken(part.definition)}"


def _margins_s(flow: Flow, duration: Number) -> float:
    """What perftest leaves out at both ends of its duration.

    Without the option each version has its own.
    """
    if flow.tool != "perftest":
        return 0
    margin = seconds(option_value(flow.client_argv, "-f", "--margin"))
    return duration if margin is None else 2 * margin


def _too_short(flow: Flow, part: Part) -> Error | None:
    """Less time than was asked for.

    A soak that was stopped on request ends with exit code 0.
    """
    duration = part.params.duration_s if part.params else None
    if duration is None or part.elapsed_s is None:
        return None
    planned_s = duration - _margins_s(flow, duration)
    if part.elapsed_s >= WHOLE_DURATION * planned_s:
        return None
    if part.soak and part.soak.stopped:
        passed = part.soak.passed_s
        brief = round(passed) if passed >= 100 else round(passed, 1)
        return Error(0, f"it was stopped after {spoken(brief)} s of {spoken(planned_s)} s")
    return Error(6, f"it lasted {spoken(part.elapsed_s)} s of {spoken(planned_s)} s")


def _end_of(part: Part, role: Role) -> tuple[str | None, Number | None]:
    """The device and the port that the output names for one end."""
    params = part.params or _NO_PARAMS
    if role == "client":
        return (part.client or _NO_SIDE).device, params.ib_port
    return (part.server or _NO_SIDE).device, params.server_ib_port


def real_name(device: str) -> str:
    """A simulated device has the name of the one that it stands for; its scope is no hardware's."""
    return device.removeprefix("sim_")


def _other_device(flow: Flow, part: Part) -> str | None:
    """Another device or port than planned, whose counters would prove the wrong path.

    Verbs' tools always name theirs.
    """
    names_device = flow.backend == "verbs" or flow.tool in ("perftest", "cxi")
    for role in ROLES:
        device, port = _end_of(part, role)
        said = None if device is None else real_name(device)
        asked = planned(flow, role, "device")
        if asked is not None and said != asked and (said is not None or names_device):
            return f"the plan asks for device {asked} on the {role}, the output says {spoken(said)}"
        wanted = planned(flow, role, "port")
        if wanted and port is not None and _port.fullmatch(wanted) and spoken(port) != wanted:
            return f"the plan asks for port {wanted} on the {role}, the output says {spoken(port)}"
    return None


def _error(message: str | None) -> Error | None:
    return None if message is None else Error(6, message)


def as_planned(flow: Flow, part: Part, addresses: Sequence[str]) -> None:
    """Turns a part into an error if it is not what its flow planned.

    `addresses`: of the flow's two ends.
    """
    if part.status != "ok":
        return
    why = (
        _error(_unlike(flow, part, addresses))
        or _too_short(flow, part)
        or _error(_other_device(flow, part))
    )
    if why is not None:
        why.traffic = True
        part.status, part.error = "error", why
