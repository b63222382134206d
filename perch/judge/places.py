"""Where one end of a flow counts its bytes: the device, its port, and their counters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import msgspec

from perch.judge.asked import Use
from perch.judge.counters import Counted, Counts
from perch.judge.hosts import HostFacts
from perch.model.part import Part
from perch.model.plan import Flow, PlanHost
from perch.model.raw import Layout
from perch.model.record import Role

#: What counts frames with their headers (`Counter.of`).
HAVE_HEADERS = ("interface", "under")


class Counter(msgspec.Struct):
    """A counter of bytes or packets, both ways; `by` is its name on the way out.

    `of`: what it belongs to. An "interface" counts all frames with their headers; so does the one
    "under" a soft RDMA device, where the device's packets are the proof. A "nic" counts the octets
    of all frames, Ethernet's too; a Cassini NIC's own headers are smaller than any of Ethernet's,
    and not known. A "port" counts RDMA only.
    """

    device: str
    by: str
    unit: Literal["bytes", "packets"]
    of: Literal["interface", "under", "nic", "port"]
    tx: int | None
    rx: int | None


class Place(msgspec.Struct):
    """One end of a flow, or of one pair of devices of a transfer.

    `idle`: for each counter the same one of the host's idle time. `ports`: the counters of the one
    RDMA port in use, empty where it is not known. `carriers`: the counters of all that carried the
    bytes, by name. `unknown`: why nothing can be compared here.
    """

    role: Role
    host: str
    side: Counted | None
    device: str | None
    port: str | None
    counters: list[Counter]
    idle: list[Counter | None]
    idle_seconds: float
    driver: str | None
    ports: list[Counts]
    carriers: list[tuple[str, Counts]]
    unknown: str | None = None


def by_device(flow: Flow, parts: Sequence[Part], role: Role) -> list[Sequence[Part]]:
    """The parts by the device that carried them.

    Only transfers have several devices; the parts with their sum would claim every byte twice.
    """
    if flow.kind != "transfer":
        return [parts]
    groups: dict[str, list[Part]] = {}
    for part in parts:
        if part.kind != "sum":
            groups.setdefault(_said_device(part, role) or "", []).append(part)
    return [groups[device] for device in sorted(groups)]


def place_of(
    flow: Flow,
    parts: Sequence[Part],
    role: Role,
    use: Use,
    planned_host: PlanHost,
    facts: HostFacts | None,
    side: Counted | None,
    *,
    rdma: bool,
) -> Place:
    """The place of one end that carried these parts."""
    planned = flow.used(planned_host.devices)
    device, port, where = spot(use, parts, role, planned, side, rdma=rdma)
    counters = [] if side is None else [source.of(side) for source in where.sources]
    idle, idle_seconds = at_rest(facts, where.sources, device, port, rdma=rdma)
    ports = where.ports
    place = Place(
        role,
        flow.host(role),
        side,
        device,
        port,
        counters,
        idle,
        idle_seconds,
        _driver(facts, where.sources),
        [side.rdma[ports[0]]] if side and len(ports) == 1 else [],
        [] if side is None else [(name, _table(side, of)[name]) for of, name in where.carriers],
    )
    if not counters or len(ports) > 1:
        place.unknown = _unknown(place, ports, rdma)
    return place


def _driver(facts: HostFacts | None, sources: Sequence[Source]) -> str | None:
    """That of the interface whose bytes count."""
    interfaces = [one.device for one in sources if one.belongs_to == "interface"]
    return facts.drivers.get(interfaces[0]) if facts and interfaces else None


def spot(
    use: Use,
    parts: Sequence[Part],
    role: Role,
    planned: Sequence[dict[str, Any]],
    side: Counted | None,
    *,
    rdma: bool,
) -> tuple[str | None, str | None, Where]:
    """The device and the port in use at one end, and what counts their bytes."""
    device = None if side is None else _device(use, parts, role, planned, side, rdma)
    port = _port(use, parts, role)
    if side is None or device is None:
        return device, port, _NOWHERE
    return device, port, _where(side.layout, device, port, rdma)


def at_rest(
    facts: HostFacts | None,
    sources: Sequence[Source],
    device: str | None,
    port: str | None,
    *,
    rdma: bool,
) -> tuple[list[Counter | None], float]:
    """Each of these counters in the host's idle time, and how long that was."""
    idle = facts.idle if facts else None
    known = {} if idle is None else _at_rest(idle, device, port, rdma)
    found = [known.get((one.device, one.tx[0])) for one in sources]
    return found, (idle.seconds if idle else None) or 1


@lru_cache(maxsize=4096)
def _at_rest(
    idle: Counted, device: str | None, port: str | None, rdma: bool
) -> dict[tuple[str, str], Counter]:
    """The counters of a device in its host's idle time, which all flows are compared with."""
    counters = counters_of(idle, device, port, rdma=rdma)
    return {(c.device, c.by): c for c in reversed(counters)}


def _unknown(place: Place, ports: Sequence[str], rdma: bool) -> str:
    role, device, port = place.role, place.device, place.port
    if place.side is None:
        return f"{role}: its agent left no counters of this flow"
    if len(ports) > 1:
        return f"{role}: {device} has several ports, and neither plan nor tool names the one in use"
    which = f", port {port}," if rdma and port is not None else ""
    return f"{role}: no counter of {device or 'any device of this flow'}{which} could be read"


# ---- which device and port


def _said_device(part: Part, role: Role) -> str | None:
    side = part.client if role == "client" else part.server
    return side.device if side else None


def _device(
    use: Use,
    parts: Sequence[Part],
    role: Role,
    planned: Sequence[dict[str, Any]],
    side: Counted,
    rdma: bool,
) -> str | None:
    """The device whose counters must show the bytes.

    The one that the plan asks for; else the tool's; of RDMA the plan's, or the one over the
    interface with the host's address; without RDMA that interface itself.
    """
    said = use.device or next((name for part in parts if (name := _said_device(part, role))), None)
    if said or not rdma:
        return said or side.address
    for device in planned:
        name = device.get("name")
        if name in side.cxi or any(key.startswith(f"{name}/") for key in side.rdma):
            return str(name)
    for ports in (side.rdma, side.cxi):
        for key, port in ports.items():
            if port.block.netdev == side.address:
                return key.rpartition("/")[0] or key
    return None


def _port(use: Use, parts: Sequence[Part], role: Role) -> str | None:
    """The port in use, as plan or tool name it."""
    if use.port is not None:
        return use.port
    for part in parts:
        if part.params is not None:
            params = part.params
            number = params.ib_port if role == "client" else params.server_ib_port
            if number is not None and number >= 1 and number == int(number):
                return str(int(number))
    return None


# ---- its counters

_Table = Literal["netdev", "rdma", "cxi"]


def _table(side: Counted, of: _Table) -> dict[str, Counts]:
    return side.rdma if of == "rdma" else side.netdev if of == "netdev" else side.cxi


class Source(NamedTuple):
    """A counter of bytes or packets, by its place: `key` of a table, `tx` and `rx` of its device.

    Where these have several names, their sum counts. `each`: bytes of what it counts.
    """

    table: _Table
    key: str
    device: str
    tx: tuple[str, ...]
    rx: tuple[str, ...]
    unit: Literal["bytes", "packets"]
    belongs_to: Literal["interface", "under", "nic", "port"]
    each: int = 1

    def places(self, layout: Layout, names: tuple[str, ...]) -> list[int]:
        """Where counters of its device stand among a reading's values."""
        tables = {"netdev": layout.netdev, "rdma": layout.rdma, "cxi": layout.cxi}
        block = tables[self.table][self.key]
        return [block.place(name) for name in names]

    def of(self, side: Counted) -> Counter:
        counts = _table(side, self.table)[self.key]
        tx, rx = self._sum(counts, self.tx), self._sum(counts, self.rx)
        return Counter(self.device, self.tx[0], self.unit, self.belongs_to, tx, rx)

    def _sum(self, counts: Counts, names: tuple[str, ...]) -> int | None:
        total = 0
        for name in names:
            moved = counts.get(name)
            if moved is None:
                return None
            total += moved
        return self.each * total


class Where(NamedTuple):
    """What counts the bytes of a device: its counters, its RDMA ports, and all that carry them."""

    sources: list[Source]
    ports: list[str]
    carriers: list[tuple[_Table, str]]


_NOWHERE = Where([], [], [])


@lru_cache(maxsize=4096)
def _where(layout: Layout, device: str, port: str | None, rdma: bool) -> Where:
    """The carriers are the RDMA ports or the NIC with the interfaces beside them.

    Of sockets it is the interface.
    """
    ports = _ports(layout, device, port) if rdma else []
    own: list[tuple[_Table, str]] = []
    if device in layout.cxi:
        sources, beside = _cassini(layout, device), [layout.cxi[device].netdev]
        own.append(("cxi", device))
    elif rdma:
        sources, beside = (
            _of_rdma(layout, device, ports),
            [layout.rdma[key].netdev for key in ports],
        )
        own += [("rdma", key) for key in ports]
    else:
        sources, beside = _interface(layout, device, "interface", _FRAMES), [device]
    carriers = own + [("netdev", name) for name in beside if name in layout.netdev]
    return Where(sources, ports, carriers)


def counters_of(
    side: Counted | None, device: str | None, port: str | None, *, rdma: bool
) -> list[Counter]:
    """The counters that show a device's bytes; none where the host does not count them."""
    if side is None or device is None:
        return []
    return [source.of(side) for source in _where(side.layout, device, port, rdma).sources]


_Of = Literal["interface", "under"]

#: The bytes of RDMA ports, by their names on the way out and in; the first that a port has are
#: compared. InfiniBand's port counters, which cards keep for RoCE, too, count words of 4 bytes;
#: bnxt_re and efa count bytes, irdma the octets of IP packets by their version, and an ionic card
#: the bytes of its packets. `hw_counters` of each driver has the names.
_PORT_BYTES: Final = (
    (("port_xmit_data",), ("port_rcv_data",), 4),
    (("tx_bytes",), ("rx_bytes",), 1),
    (("ip4OutOctets", "ip6OutOctets"), ("ip4InOctets", "ip6InOctets"), 1),
    (("tx_rdma_ucast_bytes",), ("rx_rdma_ucast_bytes",), 1),
)

#: What an interface says of the bytes that passed its port, RDMA's among them: mlx5's and ice's
#: names in `ethtool -S`.
_WIRE_BYTES: Final = (("tx_bytes_phy", "rx_bytes_phy"), ("tx_bytes.nic", "rx_bytes.nic"))


def _interface(layout: Layout, name: str, of: _Of, by: Sequence[tuple[str, str]]) -> list[Source]:
    """`by`: names of its bytes, of which the first that it has count."""
    block = layout.netdev.get(name)
    if block is None:
        return []
    found = ((tx, rx) for tx, rx in by if {tx, rx} <= block.known)
    return [Source("netdev", name, name, (tx,), (rx,), "bytes", of) for tx, rx in found][:1]


_FRAMES: Final = (("tx_bytes", "rx_bytes"),)


_OCTETS: Final = ("hni_sts_tx_ok_octets", "hni_sts_rx_ok_octets")
_PACKETS: Final = ("sent_pkts", "rcvd_pkts")

#: All counters that a path is proven by.
VOLUMES: Final = frozenset(
    (
        *_OCTETS, *_PACKETS, *(name for pair in (*_WIRE_BYTES, *_FRAMES) for name in pair),
        *(name for tx, rx, _ in _PORT_BYTES for name in (*tx, *rx)),
    )
)  # fmt: skip


def _cassini(layout: Layout, name: str) -> list[Source]:
    if not layout.cxi[name].known.issuperset(_OCTETS):
        return []
    tx, rx = _OCTETS
    return [Source("cxi", name, name, (tx,), (rx,), "bytes", "nic")]


def _of_rdma(layout: Layout, device: str, ports: Sequence[str]) -> list[Source]:
    """RDMA devices differ in what they count.

    rxe counts packets, and its bytes are those of the interface under it. Of a device without a
    known counter the interface's port counts. Of several ports, of which none is named, none is
    known to have carried the flow.
    """
    if len(ports) != 1:
        return []
    (key,) = ports
    block = layout.rdma[key]
    for tx, rx, each in _PORT_BYTES:
        if block.known.issuperset((*tx, *rx)):
            return [Source("rdma", key, device, tx, rx, "bytes", "port", each)]
    if block.known.issuperset(_PACKETS):
        sent, received = _PACKETS
        packets = Source("rdma", key, device, (sent,), (received,), "packets", "port")
        return [packets, *_interface(layout, block.netdev, "under", _FRAMES)]
    return _interface(layout, block.netdev, "interface", _WIRE_BYTES)


def _ports(layout: Layout, device: str, port: str | None) -> list[str]:
    """The ports of a device that were counted; of a named one, that port."""
    if port is not None:
        key = f"{device}/{port}"
        return [key] if key in layout.rdma else []
    return [key for key in layout.rdma if key.startswith(device + "/")]
