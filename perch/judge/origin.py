"""Where and when a flow was measured, compared with the plan and with its hosts' agents.

An output that names other ends, or a report of another time, is no evidence of its flow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from perch.judge.hosts import HostFacts
from perch.model.figures import rounded
from perch.model.moments import CLOSE_S, LOST_S, moment
from perch.model.plan import Flow, Plan
from perch.model.raw import Agent, End
from perch.model.record import ROLES, Error, Part, Role, Side
from perch.tools import TOOLS

#: Seconds by which `ended` may lie later than `started` and `elapsed_s` say: the agent reads the
#: counters in between. The slowest emulated host took 2.1 s (tests/fixtures/rxe).
READING_S = 3

_NO_SIDE = Side()


class _Window(NamedTuple):
    """Seconds since the epoch; `end` is infinite where the agent still runs."""

    begin: float
    end: float


@lru_cache(maxsize=4096)
def _address(text: str | None) -> str | None:
    """An address of IP in one spelling; None of anything else, such as a name or a NIC.

    A GID of RoCE v2 holds an IPv4 address in its last 32 bits (RFC 4291, 2.5.5.2).
    """
    try:
        address = ip_address(text or "")
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)


# ---- ends ----------------------------------------------------------------------------------------


def _side(part: Part, role: Role) -> Side:
    return (part.client if role == "client" else part.server) or _NO_SIDE


def _by_sockets(flow: Flow) -> bool:
    """Whether its output names the addresses that its command binds and connects to."""
    tool = TOOLS.get(flow.tool)
    return flow.backend == "tcp" or (tool is not None and tool.is_tcp)


class Planned:
    """The plan and what its hosts say, prepared once for all flows."""

    def __init__(self, plan: Plan, hosts: Mapping[str, HostFacts]) -> None:
        self.plan, self.hosts = plan, hosts
        #: The host at each address; the first of several.
        self.owners: dict[str, str] = {}
        for name, host in plan.hosts.items():
            address = _address(host.address)
            if address is not None:
                self.owners.setdefault(address, name)


def _foreign_address(planned: Planned, flow: Flow, part: Part, role: Role) -> str | None:
    """A stated address that is not this end's.

    Sockets use the planned address. An RDMA device may have one of its own, but not that of another
    host; both ends of a machine that measures itself may name one device.
    """
    stated = _address(_side(part, role).address)
    known = _address(planned.plan.hosts[flow.host(role)].address)
    if stated is None or known is None or stated == known:
        return None
    why = f"the plan has {role} {flow.host(role)} at {known}, the output says {stated}"
    if _by_sockets(flow):
        return why
    if _side(part, "client").address == _side(part, "server").address:
        return None
    owner = planned.owners.get(stated)
    return f"{why}, which is {owner}'s" if owner else None


def _foreign_version(hosts: Mapping[str, HostFacts], flow: Flow, part: Part) -> str | None:
    """Another version of the tool than the client's host has."""
    tool = TOOLS.get(flow.tool)
    had = hosts[flow.client].versions.get((tool and tool.version_key) or flow.tool)
    said = part.tool.version if part.tool else None
    if not said or not had or said == had:
        return None
    return f"host {flow.client} has {flow.tool} {had}, the output is of {said}"


def _foreign_end(planned: Planned, flow: Flow, part: Part, role: Role) -> str | None:
    said, known = _side(part, role).host, planned.hosts[flow.host(role)].hostname
    if said is not None and known is not None and said != known:
        return f"the {role} {flow.host(role)} is host '{known}', the output says '{said}'"
    return _foreign_address(planned, flow, part, role)


# ---- times ---------------------------------------------------------------------------------------


def _window(agent: Agent | None) -> _Window | None:
    if agent is None or agent.started is None:
        return None
    begin = moment(agent.started)
    end = float("inf") if agent.ended is None else moment(agent.ended)
    return None if begin is None or end is None else _Window(begin, end)


def _untimely(plan: Plan, end: End, window: _Window | None) -> Iterator[str]:
    """Why an end's times are not those of its flow. A soak's end may have had several agents."""
    begun, over = moment(end.started or ""), moment(end.ended or "")
    name = f"{end.role}.json"
    if begun is None or over is None or end.elapsed_s is None:
        yield f"{name} does not say when it ran"
        return
    if over < begun:
        yield f"{name} says that it ended at {end.ended}, before it started at {end.started}"
    beyond = over - begun - end.elapsed_s
    if plan.soak is None and not -CLOSE_S <= beyond <= READING_S:
        yield (
            f"{name} says that it took {rounded(end.elapsed_s)} s, but {rounded(over - begun)} s "
            "lie between its start and its end"
        )
    created = moment(plan.created)
    if created is not None and begun < created - LOST_S:
        yield f"{name} is of {end.started}, before the plan of {plan.created}"
    if window and not window.begin - CLOSE_S <= begun <= over <= window.end + CLOSE_S:
        yield f"{name} is of {end.started} to {end.ended}, when the agent on {end.host} did not run"


def _foreign_time(
    planned: Planned, flow: Flow, ends: Mapping[Role, End | str | None]
) -> str | None:
    for role, end in ends.items():
        if isinstance(end, End) and end.state == "done":
            facts = planned.hosts[flow.host(role)]
            window = _window(facts.retry_agent if flow.retry else facts.agent)
            why = next(_untimely(planned.plan, end, window), None)
            if why:
                return why
    return None


def check(
    planned: Planned,
    flow: Flow,
    parts: list[Part],
    client: End | str | None,
    server: End | str | None,
) -> None:
    """Spoils the parts of a flow that was measured between other ends, or at another time."""
    untimely = _foreign_time(planned, flow, {"client": client, "server": server})
    for part in parts:
        if part.status != "ok":
            continue
        why = (
            untimely
            or _foreign_version(planned.hosts, flow, part)
            or next(
                (found for role in ROLES if (found := _foreign_end(planned, flow, part, role))),
                None,
            )
        )
        if why:
            part.status, part.error = "error", Error(6, why, traffic=True)
