"""The interfaces and RDMA devices of this host, and what lies over and under each other."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from perch.agent.children import Children, end
from perch.agent.kernel_files import FILES

#: Seconds for the routes to all peers; a thousand take 12 ms.
ROUTES_WITHIN = 5.0

#: A device with another name is not counted.
_safe = re.compile(r"[A-Za-z0-9_.:@-]+")


class Devices(NamedTuple):
    """`rdma`: by device/port, and `cxi`: the interface under it, "" where there is none."""

    netdevs: list[str]
    rdma: dict[str, str]
    cxi: dict[str, str]


def first_line(path: Path) -> str:
    """Empty where it is not there, or where the driver answers with an error, or not."""
    return (FILES.text(path) or "").partition("\n")[0]


def _names(folder: Path) -> list[str]:
    try:
        return sorted(one.name for one in folder.iterdir() if _safe.fullmatch(one.name))
    except OSError:
        return []


def find(wanted: Iterable[str], root: Path = Path("/")) -> Devices:
    """Of the names those that exist, with RDMA devices over interfaces, and interfaces under."""
    names = {name for name in wanted if _safe.fullmatch(name)}
    classes = root / "sys/class"
    cxi, rdma = {}, {}
    for name in _names(classes / "cxi"):
        under = next(iter(_names(classes / "cxi" / name / "device/net")), "")
        if names & {name, under}:
            cxi[name] = under
            names |= {under} - {""}
    for device in _names(classes / "infiniband"):
        for port in _names(classes / "infiniband" / device / "ports"):
            under = _netdev_under(classes / "infiniband" / device, port)
            if names & {device, under}:
                rdma[f"{device}/{port}"] = under
                names |= {under} - {""}
    netdevs = [name for name in sorted(names) if (classes / "net" / name / "statistics").is_dir()]
    return Devices(netdevs, rdma, cxi)


def _netdev_under(device: Path, port: str) -> str:
    """rxe and siw name their parent, a card its port's GIDs; InfiniBand's lies beside it."""
    gids = device / "ports" / port / "gid_attrs/ndevs"
    for path in (device / "parent", *(gids / str(number) for number in range(4))):
        name = first_line(path)
        if name:
            return name if _safe.fullmatch(name) else ""
    return next(iter(reversed(_names(device / "device/net"))), "")


def resolved(name: str) -> str:
    """An address of a name; an address is its own."""
    try:
        return str(socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return name


async def own_interface(children: Children, address: str) -> str:
    """The interface with the host's own address; "" if `ip` names none."""
    address = resolved(address)
    if address.startswith("127.") or address == "::1":
        return "lo"  # 127.0.0.2 stands on no list
    return _named(await children.answer(["ip", "-j", "addr", "show", "to", address]), "ifname")


async def routes_to(children: Children, addresses: Iterable[str], own: str) -> dict[str, str]:
    """The interfaces through which this host reaches them, by address; none where `ip` names none.

    One `ip` for all: a host of a large plan has a thousand peers.
    """
    places = {address: resolved(address) for address in addresses}
    source = resolved(own)
    batch = "".join(f"route get {place} from {source}\n" for place in places.values())
    words = os.memfd_create("routes")
    try:
        os.write(words, batch.encode())
        os.lseek(words, 0, os.SEEK_SET)
        process = children.start(["ip", "-j", "-force", "-batch", "-"], words)
    except OSError:
        return {}
    finally:
        os.close(words)
    await asyncio.wait({process.ended}, timeout=ROUTES_WITHIN)
    await end(process, 1.0)
    found: dict[str, str] = {}
    for line in process.stdout.text().splitlines():
        found.setdefault(_named(line, "dst"), _named(line, "dev"))
    return {address: found[place] for address, place in places.items() if place in found}


async def roads(
    children: Children, address: str, peers: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """The interface of this host's address, and that to each peer. `peers`: their addresses."""
    own = await own_interface(children, address)
    found = await routes_to(children, peers.values(), address)
    return own, {name: found.get(place, "") for name, place in peers.items()}


def _named(text: str, key: str) -> str:
    with contextlib.suppress(ValueError, AttributeError):
        for one in json.loads(text):
            name = str(one.get(key, ""))
            if _safe.fullmatch(name):
                return name
    return ""
