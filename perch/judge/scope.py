"""What an output shows of its own worth: hardware, software or simulated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from perch.judge.asked import Use
from perch.judge.counters import Counted
from perch.judge.hosts import HostFacts
from perch.model.part import Part
from perch.model.plan import Flow
from perch.model.record import ROLES, Path, Role, Scope

#: From the weakest to the strongest word for what figures are worth.
SCOPES: tuple[Scope, ...] = ("simulated", "software", "imported", "hardware")

#: Layers on which no network is crossed.
LOCAL_LAYERS = ("loopback", "shm")

_soft_name = re.compile(r"rxe|siw")
#: The kernel's two RDMA drivers without hardware; "software" is what an agent calls others.
_soft_driver = re.compile(r"(rdma_rxe|siw|software)\Z")
_cxi_provider = re.compile(r"(^|;)cxi(;|$)")
_socket_provider = re.compile(r"tcp|udp|shm|sm2|net|sockets")


def weakest(*scopes: Scope) -> Scope:
    """The word that claims least."""
    return min(scopes, key=SCOPES.index)


def device(part: Part, role: Role) -> str | None:
    """What the output says of an end's device; the sum of a transfer names several, by commas."""
    side = part.client if role == "client" else part.server
    return side.device if side else None


def _names(devices: str | None) -> list[str]:
    return devices.split(",") if devices else []


def _is_soft(devices: str | None, host: HostFacts) -> bool:
    """An RDMA device without hardware, by its name or by the driver that its host reports."""
    return any(
        _soft_name.match(name) or _soft_driver.match(host.rdma_drivers.get(name) or "")
        for name in _names(devices)
    )


def _counts_softly(counted: Counted | None, devices: str | None) -> bool:
    """No card counts under the names of rxe's own counters, whatever its device is called."""
    if counted is None:
        return False
    names = _names(devices)
    return any(
        ("sent_pkts" in counts.moved or "rcvd_pkts" in counts.moved)
        and (not names or any(key.startswith(name + "/") for name in names))
        for key, counts in counted.rdma.items()
    )


def _is_cxi(flow: Flow, backend: str | None, provider: str) -> bool:
    return flow.tool == "cxi" or backend == "cxi" or bool(_cxi_provider.search(provider))


def _lacks_cassini(
    part: Part, flow: Flow, hosts: Mapping[str, HostFacts], uses: Mapping[Role, Use]
) -> bool:
    """The provider cxi drives a Cassini device.

    What was measured on a host that lists none, or not the named one, is a simulation. A flow that
    did not measure ran on no device: a host that did not answer lists none, either.
    """
    if part.status != "ok":
        return False
    for role in ROLES:
        drivers = hosts[flow.host(role)].cxi_drivers
        name = device(part, role) or uses[role].device
        if not drivers if name is None else not drivers.get(name):
            return True
    return False


def shown(
    part: Part,
    flow: Flow,
    fabric: str,
    hosts: Mapping[str, HostFacts],
    counted: Mapping[Role, Counted | None],
    uses: Mapping[Role, Use],
) -> Scope:
    """Sockets, memory of one host and soft devices are software, whatever the plan calls them.

    `counted`: by both ends. `uses`: what the plan asks each end to use.
    """
    backend, provider = part.backend or flow.backend, part.provider or flow.provider or ""
    ends = [(role, device(part, role)) for role in ROLES]
    if part.simulated or any(name and name.startswith("sim_") for _, name in ends):
        return "simulated"
    if _is_cxi(flow, backend, provider) and _lacks_cassini(part, flow, hosts, uses):
        return "simulated"
    layer = (part.link.layer if part.link else None) or fabric
    if layer in LOCAL_LAYERS:
        return "software"
    for role, name in ends:
        if _is_soft(name, hosts[flow.host(role)]) or _counts_softly(counted[role], name):
            return "software"
    if flow.tool in ("perftest", "cxi"):
        return "hardware"
    sockets = backend in (None, "tcp", "null") or _socket_provider.match(provider)
    return "software" if flow.tool != "perch" or sockets else "hardware"


def _without_driver(
    part: Part, flow: Flow, hosts: Mapping[str, HostFacts], uses: Mapping[Role, Use]
) -> Iterator[str]:
    """Devices of which nothing shows that they are hardware, in words."""
    for role in ROLES:
        name = flow.host(role)
        host = hosts[name]
        devices = device(part, role) or uses[role].device
        for one in _names(devices) or [""]:
            if not host.rdma_drivers.get(one) and not host.cxi_drivers.get(one):
                yield (
                    f"nothing shows that {one or 'the device'} of {name} ({role}) is hardware: "
                    "its driver is not in environment.json"
                )


def proven_hardware(
    path: Path,
    part: Part,
    scope: Scope,
    flow: Flow,
    hosts: Mapping[str, HostFacts],
    uses: Mapping[Role, Use],
) -> Path:
    """A path is proven as hardware's only where both hosts name the drivers of its devices."""
    if scope != "hardware" or path.state != "proven":
        return path
    why = next(_without_driver(part, flow, hosts, uses), None)
    if why is None:
        return path
    return msgspec.structs.replace(path, state="unknown", reason=why)
