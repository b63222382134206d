"""Where and when a flow was measured, compared with the plan and with its hosts.

An output that names other ends, or a report of another time, is no evidence of its flow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import ip_address

from perch.judge import times
from perch.judge.hosts import HostFacts
from perch.model.figures import rounded
from perch.model.part import Part
from perch.model.plan import Flow, Plan
from perch.model.raw import End, FlowFiles
from perch.model.record import ROLES, About, Error, Number, Role, Side
from perch.tools import TOOLS

_NO_SIDE = Side()

#: Providers of libfabric whose endpoints are sockets, also below a utility (fi_provider(7)).
_ip_provider = re.compile(r"(tcp|udp|net|sockets)(;|$)")
#: An end of InfiniBand in the engine's words.
_lid = re.compile(r"lid [0-9]{1,5}")


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


@lru_cache(maxsize=4096)
def is_loopback(text: str) -> bool:
    """Whether an address stays within its host."""
    try:
        return ip_address(text).is_loopback
    except ValueError:
        return False


# ---- ends ----------------------------------------------------------------------------------------


def _side(part: Part, role: Role) -> Side:
    return (part.client if role == "client" else part.server) or _NO_SIDE


def _by_sockets(flow: Flow, part: Part) -> bool:
    """Whether its output names the addresses that its command binds and connects to.

    Devices that a transfer names over libfabric have addresses of their own.
    """
    tool = TOOLS.get(flow.tool)
    if flow.backend == "ofi" and flow.params.get("devices") is None:
        return _ip_provider.match(part.provider or "") is not None
    return flow.backend == "tcp" or bool(tool and tool.is_tcp and tool.connections)


def _is_no_address(flow: Flow, said: str | None) -> bool:
    """Whether the engine's word for an address is none that a queue pair has: a GID or a LID.

    A transfer's end may have several devices, which have no one address.
    """
    if flow.backend != "verbs" or (said is None and flow.kind == "transfer"):
        return False
    return said is None or not _lid.fullmatch(said)


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
    said = _side(part, role).address
    stated, known = _address(said), _address(planned.plan.hosts[flow.host(role)].address)
    if known is None or stated == known:
        return None
    says = f"says {stated or said}" if said else "names no address"
    why = f"the plan has {role} {flow.host(role)} at {known}, the output {says}"
    if _by_sockets(flow, part):
        return why
    if stated is None:  # a NIC, or shared memory
        return why if _is_no_address(flow, said) else None
    if _side(part, "client").address == _side(part, "server").address:
        return None
    owner = planned.owners.get(stated)
    return f"{why}, which is {owner}'s" if owner else None


def _foreign_version(hosts: Mapping[str, HostFacts], flow: Flow, part: Part) -> str | None:
    """Another version of the tool than its hosts have; the engine's ends refuse another one.

    Of a tool whose output tells none, the host's own record is the only one.
    """
    tool = TOOLS.get(flow.tool)
    if tool is None or tool.version_key is not None:
        return None
    said = part.tool.version if part.tool else None
    if not said:
        return f"the output names no version of {flow.tool}"
    for host in (flow.client, flow.server) if flow.tool == "perch" else (flow.client,):
        had = hosts[host].versions.get(flow.tool)
        if hosts[host].environment and said != had:
            has = f"has {flow.tool} {had}" if had else f"names no version of {flow.tool}"
            return f"host {host} {has}, the output is of {said}"
    return None


def _foreign_end(planned: Planned, flow: Flow, part: Part, role: Role) -> str | None:
    side, host = _side(part, role), flow.host(role)
    said, known = side.host, planned.hosts[host].hostname
    if said == known and side.address == planned.plan.hosts[host].address:
        return None  # as nearly all outputs say it
    if known is not None and said != known and (said is not None or flow.tool == "perch"):
        says = f"says '{said}'" if said else "names no host"
        return f"the {role} {flow.host(role)} is host '{known}', the output {says}"
    return _foreign_address(planned, flow, part, role)


def _other_interface(
    planned: Planned, flow: Flow, part: Part, role: Role, end: End | None
) -> str | None:
    """An engine's socket of another interface than the one with the address that it is bound to.

    An alias is named behind a colon. A loopback address needs no reading of counters.
    """
    device = _side(part, role).device
    if flow.backend != "tcp" or device is None:
        return None
    counters = end.counters if end else None
    interface = counters.address_interface if counters else ""
    if is_loopback(planned.plan.hosts[flow.host(role)].address):
        interface = "lo"
    if not interface or device.partition(":")[0] == interface:
        return None
    return f"the output says device {device} on the {role}, whose address is on {interface}"


def processor_s(part: Part, role: Role) -> Number | None:
    """Seconds of processors that one end took."""
    if part.cpu is None:
        return None
    return part.cpu.client_s if role == "client" else part.cpu.server_s


def processors_s(cores: times.Column, lived: times.Column) -> times.Column:
    """Seconds that so many of them have while a process lives so long."""
    return cores * (lived + times.GRANTED_S)


def ran_s(part: Part, lived: float) -> float:
    """Seconds in which a part took its processors' time, while its process lived so long.

    Where messages may be lost, the last ones are waited for beside what is measured; of a transfer
    each pair has a time of its own.
    """
    if part.loss is not None or part.transfer is not None or part.elapsed_s is None:
        return lived
    return min(lived, part.elapsed_s)


def too_busy(part: Part, role: Role, client: End | None, facts: HostFacts) -> str | None:
    """More seconds of processors than a host has while the part was measured."""
    seconds = processor_s(part, role)
    if seconds is None or client is None or client.elapsed_s is None or not facts.cores:
        return None
    lived = ran_s(part, client.elapsed_s)
    if seconds <= processors_s(facts.cores, lived):
        return None
    return (
        f"its {role} took {rounded(seconds)} s of processors, but the flow {rounded(lived)} s on "
        f"{facts.cores} of them"
    )


def _unaddressed(planned: Planned, flow: Flow, role: Role, end: End | None) -> str | None:
    """Whether no interface of a host has its planned address, as far as its counters were read."""
    host, facts = planned.plan.hosts[flow.host(role)], planned.hosts[flow.host(role)]
    if host.scope != "hardware" or not facts.environment or end is None:
        return None
    if end.counters is None:
        return None
    interface = end.counters.address_interface
    if interface in facts.drivers and interface != "lo":
        return None
    return f"no interface of host {flow.host(role)} has the address {host.address}"


def _other_connections(planned: Planned, flow: Flow, part: Part, raw: FlowFiles) -> str | None:
    """Why both ends' outputs are not of the same connections; None of tools that name none.

    A server that its agent terminated may have lost what it had not written yet.
    """
    tool = TOOLS.get(flow.tool)
    if tool is None or tool.connections is None:
        return None
    mine, served = tool.connections(raw.stdout), tool.connections(raw.server_stdout)
    streams = part.params.queue_pairs if part.params and tool.is_tcp else None
    if streams is not None and len(mine) != streams:
        return f"the client's stdout names {len(mine)} connections of {streams}"
    ports = planned.plan.hosts[flow.server].tool_ports
    port = ports.get(flow.tool) if tool.is_tcp else None
    if port is not None and any(peer != b"%d" % port for _, peer in mine):
        return f"the client's stdout names another port than {port}, which was planned"
    by_itself = raw.server and raw.server.exit == 0 and not raw.server.signal
    if mine and not served and by_itself:
        return "the server's stdout names no connection"
    if mine and served and not mine.issubset({(own, peer) for peer, own in served}):
        return "the server's stdout names other connections than the client's"
    return tool.contradiction(part, raw.server_stdout) if served and tool.contradiction else None


def _foreign(
    planned: Planned,
    flow: Flow,
    part: Part,
    raw: FlowFiles,
    hosts: Sequence[tuple[Role, HostFacts]],
) -> tuple[About, str | None]:
    """What of a result is not that of its flow, and why; None of one that is its."""
    why = times.not_in_process(flow, part, raw.client)
    if why:
        return "times", why
    why = _foreign_version(planned.hosts, flow, part)
    if why:
        return "version", why
    for role, _ in hosts:
        why = why or _foreign_end(planned, flow, part, role)
    for role, _ in hosts:
        why = why or _unaddressed(planned, flow, role, raw.end(role))
    for role, _ in hosts:
        why = why or _other_interface(planned, flow, part, role, raw.end(role))
    for role, facts in hosts:
        why = why or too_busy(part, role, raw.client, facts)
    return "ends", why or _other_connections(planned, flow, part, raw)


def check(planned: Planned, flow: Flow, parts: list[Part], raw: FlowFiles) -> bool:
    """Spoils the parts of a flow that was measured between other ends, or at another time.

    Returns whether its ends are of its time.
    """
    hosts = [(role, planned.hosts[flow.host(role)]) for role in ROLES]
    agents = {role: facts.retry_agent if flow.retry else facts.agent for role, facts in hosts}
    untimely = (
        times.foreign(planned.plan, agents, {role: raw.end(role) for role in ROLES})
        or times.too_long(parts, raw.client, raw.server)
        or times.overlapping(flow, parts)
    )
    for part in parts:
        if part.status != "ok":
            continue
        about: About = "times"
        why = untimely
        if not why:
            about, why = _foreign(planned, flow, part, raw, hosts)
        if why:
            part.status, part.error = "error", Error(6, why, traffic=True, about=about)
    return untimely is None
