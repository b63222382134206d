"""What the hosts say of the links that flows used: rate, MTU, and what PCIe lets through."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from perch.judge.counters import Counted
from perch.model.figures import is_finite, rounded
from perch.model.part import Part
from perch.model.plan import Flow
from perch.model.raw import Interface
from perch.model.record import Link, Number
from perch.tools import is_tcp

#: Bytes of a PCI Express packet beside its payload, at least: framing and sequence number 4, header
#: 12, LCRC 4 (PCI Express Base Specification 5.0, sections 2 and 4).
PCIE_PACKET = 20

#: Linux names an interface with a VLAN tag after its number (eth1.100). A wrong guess moves a
#: ceiling by less than its tolerance.
_tagged = re.compile(r"\.[0-9]{1,4}\Z")
#: A Cassini NIC's speed, such as BS_200G.
_cassini_speed = re.compile(r"([0-9]+)G")


class LinkFacts(msgspec.Struct, frozen=True):
    """Of a device or an interface.

    Rates in Gb/s, of a bond that of one of its `links`; MTU in bytes; a device has none, as its MTU
    is the path's.
    """

    rate_gbit_s: Number | None = None
    mtu_bytes: Number | None = None
    pcie_gbit_s: Number | None = None
    links: int = 1

    def of_flows(self, flows: int) -> LinkFacts:
        """With the links that so many flows may take, and their rate."""
        if self.links == 1:
            return self
        links = min(flows, self.links)
        rate = None if self.rate_gbit_s is None else self.rate_gbit_s * links
        return msgspec.structs.replace(self, rate_gbit_s=rate, links=links)


NOTHING = LinkFacts()


def _interfaces(interfaces: list[Interface]) -> dict[str, LinkFacts]:
    """Of each interface but the loopback.

    What has no driver (veth, tun, a bridge) says a rate that was invented for it.
    """
    return {
        interface.name: LinkFacts(
            interface.rate_gbit_s if interface.driver is not None else None, interface.mtu_bytes
        )
        for interface in interfaces
        if interface.name is not None and interface.name != "lo"
    }


def _devices(idle: Counted | None, interfaces: Mapping[str, LinkFacts]) -> dict[str, LinkFacts]:
    """Of each RDMA device and Cassini NIC: the rate of its interface.

    Of several ports it is not known which one is meant.
    """
    found: dict[str, LinkFacts] = {}
    for name, port in [*idle.rdma.items(), *idle.cxi.items()] if idle else []:
        device = re.sub(r"/[0-9]+\Z", "", name)
        rate = interfaces.get(port.block.netdev, NOTHING).rate_gbit_s
        found[device] = NOTHING if device in found else LinkFacts(rate)
    return found


def _values(checks: list[dict[str, Any]], check: str) -> list[tuple[str, float]]:
    """(device, figure) of each finding of one check."""
    return [
        (finding["device"], finding["value"])
        for finding in checks
        if finding.get("id") == check
        and finding.get("device") is not None
        and is_finite(finding.get("value"))
    ]


def _cassini_rates(checks: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [
        (finding["device"], int(speed[1]))
        for finding in checks
        if finding.get("id") == "slingshot-link-speed" and finding.get("device") is not None
        if (speed := _cassini_speed.search(finding.get("found") or ""))
    ]


def of_host(
    interfaces: list[Interface], idle: Counted | None, checks: list[dict[str, Any]]
) -> dict[str, LinkFacts]:
    """Everything that one host says, by the names of devices and interfaces.

    `checks`: its findings (reports/jq).
    """
    by_name = _interfaces(interfaces)
    facts = by_name | _devices(idle, by_name)
    for device, rate in [*_values(checks, "nic-link-speed"), *_cassini_rates(checks)]:
        facts[device] = msgspec.structs.replace(facts.get(device, NOTHING), rate_gbit_s=rate)
    for device, up in _values(checks, "nic-bond-links"):
        known = facts.get(device, NOTHING)
        facts[device] = msgspec.structs.replace(known, links=max(1, int(up)))
    payloads = dict(_values(checks, "nic-pcie-max-payload"))
    # Gb/s of the narrowest link to memory, rounded down
    for device, narrowest in _values(checks, "nic-pcie-bandwidth"):
        most = payloads.get(device)
        share = most / (most + PCIE_PACKET) if most else 1
        facts[device] = msgspec.structs.replace(
            facts.get(device, NOTHING), pcie_gbit_s=rounded((narrowest + 1) * share)
        )
    return facts


class Routes(msgspec.Struct, frozen=True):
    """The interfaces through which the two hosts reach each other."""

    client: str | None
    server: str | None


def _of_ends(
    links: tuple[Mapping[str, LinkFacts], Mapping[str, LinkFacts]],
    client: str | None,
    server: str | None,
    flows: int,
) -> LinkFacts:
    """Of several devices, with commas between them, each with so many flows."""
    return _narrowest(
        tuple(
            [
                of_host.get(name, NOTHING).of_flows(flows)
                for of_host, names in zip(links, (client, server), strict=True)
                for name in (names or "").split(",")
            ]
        )
    )


@lru_cache(maxsize=4096)
def _narrowest(ends: tuple[LinkFacts, ...]) -> LinkFacts:
    """The least rate and MTU, where all ends say one; the narrowest PCIe link that an end names.

    The links of a bond are those of all ends.
    """
    rates = [end.rate_gbit_s for end in ends]
    mtus = [end.mtu_bytes for end in ends]
    pcie = [end.pcie_gbit_s for end in ends if end.pcie_gbit_s is not None]
    links = min((end.links for end in ends), default=1)
    return LinkFacts(least(rates), least(mtus), min(pcie, default=None), links)


def least(values: Sequence[Number | None]) -> Number | None:
    """Of two ends the lower one; None where an end is not known."""
    known = [value for value in values if value is not None]
    return min(known) if len(known) == len(values) else None


def is_stream(part: Part, flow: Flow) -> bool:
    """Whether a byte stream of sockets carried the part."""
    backend = part.backend or flow.backend
    return part.connection == "stream" or backend == "tcp" or is_tcp(flow.tool)


def _positive(value: Number | None) -> Number | None:
    return rounded(value) if value is not None and is_finite(value) and value > 0 else None


def _is_ipv6(part: Part) -> bool:
    address = (part.client.address if part.client else None) or ""
    return ":" in address and not address.startswith("::ffff:")


def of_part(
    part: Part,
    flow: Flow,
    fabric: str,
    links: tuple[Mapping[str, LinkFacts], Mapping[str, LinkFacts]],
    routes: Routes,
    expected_gbit_s: Number | None,
) -> Link:
    """A part's link: what the tool said, and what the hosts know beside it.

    `links`: of the client's and the server's host.
    """
    said = part.link or Link()
    stream = is_stream(part, flow)
    flows = (part.params.queue_pairs if part.params else None) or 1
    if stream:
        facts = _of_ends(links, routes.client, routes.server, flows)
    else:
        client = part.client.device if part.client else None
        server = part.server.device if part.server else None
        facts = _of_ends(links, client, server, flows)
    # the rate of a transfer's sum is that of all its pairs, which only the tool adds up
    rate = said.rate_gbit_s or (None if part.kind == "sum" else facts.rate_gbit_s)
    mtu = said.mtu_bytes or (facts.mtu_bytes if stream else None)
    tagged = stream and all(_tagged.search(name or "") for name in (routes.client, routes.server))
    return Link(
        rate_gbit_s=_positive(rate),
        mtu_bytes=_positive(mtu),
        layer=said.layer or fabric,
        hop_class=said.hop_class or flow.hop_class,
        pcie_gbit_s=None if stream else facts.pcie_gbit_s,
        ipv6=True if stream and _is_ipv6(part) else None,
        vlan=True if tagged else None,
        expected_gbit_s=_positive(expected_gbit_s),
        links=facts.links if facts.links > 1 else None,
    )
