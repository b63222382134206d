# SPDX-License-Identifier: Apache-2.0
"""RDMA devices, their interfaces and interrupts, and the interface that must not be touched."""

from __future__ import annotations

import ipaddress
import json
import os
import re

from .base import System, Trouble

NET = "/sys/class/net"
IB = "/sys/class/infiniband"


class Device:
    """A device of perch_devices on this host: its name, the ports asked for, its interface,
    and all that it touches.
    """

    def __init__(self, name: str, netdev: str, ports: list[int], touched: set[str]):
        self.name, self.netdev, self.ports, self.touched = name, netdev, ports, touched


def _interface_of(system: System, name: str) -> str:
    """The interface under an RDMA device, as the kernel says it."""
    for port in system.names(f"{IB}/{name}/ports"):
        for index in system.names(f"{IB}/{name}/ports/{port}/gid_attrs/ndevs"):
            if netdev := system.read(f"{IB}/{name}/ports/{port}/gid_attrs/ndevs/{index}"):
                return netdev
    for place in (f"{IB}/{name}/device/net", f"/sys/class/cxi/{name}/device/net"):
        for netdev in system.names(place):
            return netdev
    return system.read(f"{IB}/{name}/parent") or ""  # software devices


def devices(system: System, listed: list) -> tuple[list[Device], list[Trouble]]:
    """perch_devices holds names, and dictionaries with a name."""
    found, troubles = [], []
    for entry in listed:
        entry = {"name": entry} if isinstance(entry, str) else entry
        name = str(entry["name"])
        own = _interface_of(system, name)
        netdev = entry.get("netdev") or own
        here = [place for place in (IB, "/sys/class/cxi", NET) if system.exists(f"{place}/{name}")]
        if not here and not entry.get("netdev"):
            troubles.append(
                Trouble(
                    f"there is no RDMA device {name}",
                    f"correct perch_devices; {IB} has: {', '.join(system.names(IB)) or 'none'}",
                )
            )
        elif not netdev:
            troubles.append(
                Trouble(
                    f"no interface is known under {name}",
                    "name it in perch_devices (netdev); an InfiniBand port without IPoIB has none",
                )
            )
        elif not re.fullmatch(r"[^/\s]{1,15}", netdev) or not system.exists(f"{NET}/{netdev}"):
            troubles.append(
                Trouble(
                    f"there is no interface {netdev} (of {name})",
                    f"correct perch_devices; there are: {', '.join(system.names(NET))}",
                )
            )
        else:
            ports = [int(port) for port in system.names(f"{IB}/{name}/ports")]
            # whatever the inventory says: the kernel knows whose device it is
            touched = {netdev, own, name if system.exists(f"{NET}/{name}") else ""} - {""}
            found.append(
                Device(name, netdev, [entry["ib_port"]] if entry.get("ib_port") else ports, touched)
            )
    return found, troubles


# ---- the interface that carries Ansible's own
# connection --------------------------------------------------------


def _session() -> tuple[str, str]:
    """The addresses of the ssh session that we run in, the client's and ours.

    sudo drops SSH_CONNECTION, so ancestors are asked.
    """
    words = os.environ.get("SSH_CONNECTION", "").split()
    if len(words) == 4:
        return words[0], words[2]
    pid = os.getppid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                for word in file.read().split(b"\0"):
                    if word.startswith(b"SSH_CONNECTION="):
                        words = word.partition(b"=")[2].decode().split()
                        return words[0], words[2]
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            break
    return "", ""


def _plain(address: str) -> str:
    """One spelling of an address: without zone, IPv4 not as IPv6. Empty for a name."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    mapped = getattr(parsed, "ipv4_mapped", None)
    return str(mapped or parsed)


def _neighbours(system: System, netdev: str, side: str) -> set[str]:
    """All devices below (lower) or above (upper) one, however deep: of a bond,
    a bridge, a VLAN, a macvlan.
    """
    seen: set[str] = set()
    left = [netdev]
    while left:
        for link in system.names(f"{NET}/{left.pop()}"):
            name = link.removeprefix(side + "_")
            if name != link and name not in seen:
                seen.add(name)
                left.append(name)
    return seen


def _asked(system: System, *words: str) -> list[dict]:
    """The rows of an answer of ip(8); none where it has no answer, or a damaged one."""
    code, out, _ = system.command("ip", "-json", *words)
    try:
        rows = json.loads(out) if code == 0 else []
    except ValueError:
        return []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _carriers(system: System, reached_at: str) -> set[str]:
    """The interfaces that have an address of Ansible's connection,
    and the one by which answers leave.
    """
    client, server = _session()
    wanted = {_plain(server), _plain(reached_at)} - {""}
    found = set()
    for link in _asked(system, "address", "show"):
        addresses = link.get("addr_info") or []
        if wanted & {
            _plain(str(address.get("local", "")))
            for address in addresses
            if isinstance(address, dict)
        }:
            found.add(str(link.get("ifname", "")))
    if _plain(client):
        found |= {
            str(route.get("dev", "")) for route in _asked(system, "route", "get", _plain(client))
        }
    # a session that ends at a loopback address came through a tunnel,
    # and its interface is not known
    return found - {"lo", ""}


def protected(
    system: System, connection: str, reached_at: str, more: list[str], named: str = ""
) -> set[str] | None:
    """The interfaces that are never altered. `named` carries the connection, as the inventory says.
    None: over the network, by an unknown one of them."""

    def below(netdev: str) -> set[str]:
        return {netdev} | _neighbours(system, netdev, "lower")

    found = _carriers(system, reached_at)
    if named:
        known = system.exists(f"{NET}/{named}")
        found.add(named)
    else:
        # WireGuard, a port inside Open vSwitch, a dummy that is routed to:
        # below them no link leads to a real NIC
        known = all(
            any(system.exists(f"{NET}/{part}/device") for part in below(netdev)) for netdev in found
        )
        known = known and bool(found or connection in ("local", "ansible.builtin.local"))
    found |= set(more)
    if not known:
        return None
    return found.union(
        *(_neighbours(system, netdev, side) for netdev in found for side in ("lower", "upper"))
    )


def check_untouched(held: set[str] | None, netdev: str) -> None:
    """Refuses an interface that must not be altered."""
    if held is None:
        raise Trouble(
            "it is not known which interface carries Ansible's connection, "
            f"so {netdev} is not altered",
            "name it: host_tune_connection_interface: eth0",
        )
    if netdev in held:
        raise Trouble(
            f"{netdev} carries Ansible's own connection, "
            "or a part of it, or is in host_tune_protected: it is never altered",
            "reach the host another way, or leave this device out of perch_devices",
        )


# ---- interrupts
# -------------------------------------------------------------------------------------------------


def interrupts(system: System, netdev: str) -> tuple[list[tuple[int, str]], str]:
    """Number and name of each interrupt of an interface,
    and the sysfs directory of the function that has them.
    """
    directory = os.path.realpath(system.path(f"{NET}/{netdev}/device"))
    top = system.path("/sys")
    # virtio's and auxiliary devices hang below the PCI function that owns the vectors
    while directory.startswith(top + "/") and not os.path.isdir(f"{directory}/msi_irqs"):
        directory = os.path.dirname(directory)
    if not os.path.isdir(f"{directory}/msi_irqs"):
        raise Trouble(
            f"{netdev} has no interrupts of its own",
            "leave host_tune_irq_affinity at null here; software devices have none",
        )
    found = []
    for number in sorted(int(name) for name in os.listdir(f"{directory}/msi_irqs")):
        name = (system.read(f"/sys/kernel/irq/{number}/actions") or "").split(",")[0]
        if name and system.exists(f"/proc/irq/{number}/smp_affinity_list"):
            found.append((number, name))
    return found, directory[len(system.root) :]


def running(system: System, program: str) -> bool:
    return any(
        system.read(f"/proc/{pid}/comm") == program
        for pid in system.names("/proc")
        if pid.isdigit()
    )
