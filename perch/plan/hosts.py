"""Hosts of an inventory, with the defaults of what it leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from perch.errors import ExitCode, PerchError
from perch.model.record import Scope
from perch.model.suite import RDMA_BACKENDS, RDMA_FABRICS, Host
from perch.model.text import did_you_mean, explained, names
from perch.plan.template import RAILS_MAX
from perch.tools import TOOLS

TOOLS_OF_A_HOST = ["perch", "perftest", "iperf3", "iperf"]

#: The engine's default port.
PORT = 18600

#: The largest port of TCP (RFC 9293).
LAST_PORT = 65535

#: An address or a name, in no place an option.
_address = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]*|::[0-9A-Fa-f:.]*")

_Slowdown = Annotated[int, msgspec.Meta(ge=1)] | Annotated[float, msgspec.Meta(ge=1)]
_Rate = Annotated[int, msgspec.Meta(gt=0)] | Annotated[float, msgspec.Meta(gt=0)]

#: Hosts that a message names.
NAMED = 3

#: What to do about a device without a name.
NAME = "give that of /sys/class/infiniband or /sys/class/cxi"


class _Traits(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What the fabric does on purpose."""

    lossless: bool | None = None
    adaptive_routing: bool | None = None


class _OfFabric(msgspec.Struct):
    fabric_traits: _Traits | None = None


class _Variables(msgspec.Struct, rename=lambda name: f"perch_{name}"):
    """A host's variables (inventories/README.md)."""

    address: str
    fabric: str
    group: str | None = None
    switch: str | None = None
    scope: Scope | None = None
    backends: list[str] | None = None
    tools: list[str] | None = None
    devices: list[str | dict[str, Any]] | None = None
    port: int | None = None
    slowdown: _Slowdown | None = None
    link_gbit_s: _Rate | None = None
    fabric_traits: _Traits | None = None


def default_scope(scope: Scope | None, fabric: str | None) -> Scope:
    return scope or ("software" if fabric == "loopback" else "hardware")


def variables_of_a_host() -> list[str]:
    """The names of all variables that an inventory may give a host."""
    ports = [f"perch_{tool.name}_port" for tool in TOOLS.values() if tool.default_port is not None]
    return [*(f"perch_{name}" for name in _Variables.__struct_fields__), *ports]


def _is_port(text: str) -> bool:
    """Numbers are text where they were given on Ansible's command line."""
    return re.fullmatch("[0-9]{1,5}", text) is not None and 1 <= int(text) <= LAST_PORT


def wrong_ports(variables: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a host's ports, in words."""
    for key, value in variables.items():
        is_port = key.startswith("perch_") and key.endswith("_port")
        if is_port and value is not None and not _is_port(str(value)):
            yield f"{key} is '{value}', not a port from 1 to {LAST_PORT}"


def tool_ports(variables: Mapping[str, Any]) -> dict[str, int]:
    """The port of each tool's server: perch_TOOL_port, or the tool's own default."""
    ports = {}
    for tool in TOOLS.values():
        if tool.default_port is not None:
            given = variables.get(f"perch_{tool.name}_port")
            ports[tool.name] = int(tool.default_port if given is None else given)
    return ports


def traits(variables: Mapping[str, Any]) -> dict[str, bool]:
    """What perch_fabric_traits says. Raises msgspec.ValidationError."""
    said = {"fabric_traits": variables.get("perch_fabric_traits")}
    read = msgspec.convert(said, _OfFabric, strict=False).fabric_traits
    return msgspec.to_builtins(read) if read else {}


def ports_of(tool_ports: Mapping[str, int], devices: Sequence[Any]) -> list[int]:
    """All ports that tools' servers listen on: those of devices follow each other."""
    return [
        port + rail
        for tool, port in tool_ports.items()
        for rail in range(1 if TOOLS[tool].is_tcp else min(max(len(devices), 1), RAILS_MAX))
    ]


def _misspelt(variables: Mapping[str, Any]) -> str:
    """Of a missing variable the unknown one that is near to it."""
    known = variables_of_a_host()
    for key in variables:
        near = did_you_mean(key, known) if key not in known else ""
        if near:
            return f"there is no variable '{key}'{near}"
    return ""


def host(name: str, variables: Mapping[str, Any]) -> Host:
    """Raises PerchError where a variable is missing or no plan can hold it."""
    for why in wrong_ports(variables):
        raise PerchError(ExitCode.USAGE, why, place=f"host {name}")
    try:
        # numbers are text where they were given on Ansible's command line
        read = msgspec.convert(variables, _Variables, strict=False)
    except msgspec.ValidationError as error:
        why = _misspelt(variables) or explained(error)
        raise PerchError(ExitCode.USAGE, why, place=f"host {name}") from None
    devices = [{"name": one} if isinstance(one, str) else one for one in read.devices or []]
    for number, one in enumerate(devices):
        if not isinstance(one.get("name"), str) or not one["name"]:
            place = f"host {name}, perch_devices[{number}]"
            raise PerchError(ExitCode.USAGE, "the device has no name", place=place, remedy=NAME)
    return Host(
        name=name,
        address=read.address,
        fabric=read.fabric,
        scope=default_scope(read.scope, read.fabric),
        backends=read.backends or [],
        tools=TOOLS_OF_A_HOST if read.tools is None else read.tools,
        devices=devices,
        port=read.port or PORT,
        tool_ports=tool_ports(variables),
        slowdown=read.slowdown or 1,
        link_gbit_s=read.link_gbit_s,
        traits=msgspec.to_builtins(read.fabric_traits) if read.fabric_traits else {},
        group=read.group,
        switch=read.switch,
    )


def refused_fabric(fabric: str) -> tuple[str, str] | None:
    """Why there is no such fabric, and what to do."""
    known = ("loopback", "ethernet", *RDMA_FABRICS)
    if fabric in known:
        return None
    return f"there is no perch_fabric '{fabric}'", f"give {' or '.join(known)}"


def _refused(host: Host) -> tuple[str, str] | None:
    """What is wrong with a host, and what to do."""
    fault = refused_fabric(host.fabric)
    if fault is not None:
        return fault
    if not _address.fullmatch(host.address):
        why = f"perch_address is '{host.address}', not an address or a name"
        return why, "give one without a prefix length"
    return _shared_port(host) or _without_devices(host)


def _shared_port(host: Host) -> tuple[str, str] | None:
    """Of the servers that the host runs."""
    of_tools = {tool: port for tool, port in host.tool_ports.items() if tool in host.tools}
    servers = {"perch": host.port, **of_tools}
    for port in servers.values():
        same = [tool for tool, its in servers.items() if its == port]
        if len(same) > 1:
            return f"{' and '.join(same)} have the same port {port}", "give each its own"
    return None


def _without_devices(host: Host) -> tuple[str, str] | None:
    """Fabric, backends and devices that do not fit each other."""
    rdma = [one for one in RDMA_BACKENDS if one in host.backends]
    if rdma and host.fabric == "ethernet" and host.scope == "hardware":
        why = f"perch_fabric is ethernet, and perch_backends has {rdma[0]}"
        return why, f"give perch_fabric {' or '.join(RDMA_FABRICS)}"
    if rdma and host.fabric in RDMA_FABRICS and not host.devices:
        why = f"perch_devices is missing, and {rdma[0]} needs it"
        return why, "name the NICs under test, or give [active]"
    return None


def check(hosts: Iterable[Host]) -> None:
    """Raises PerchError of the first fault, with the hosts that have it."""
    of_fault: dict[tuple[str, str], list[str]] = {}
    for host in hosts:
        fault = _refused(host)
        if fault is not None:
            of_fault.setdefault(fault, []).append(host.name)
    for (why, remedy), alike in of_fault.items():
        place = f"host {names(alike, NAMED)}"
        raise PerchError(ExitCode.USAGE, why, place=place, remedy=remedy)
