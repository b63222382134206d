"""What hosts said of their devices: inputs/devices.json, from `perch devices --json`."""

from __future__ import annotations

from typing import Literal

import msgspec


class Gid(msgspec.Struct, frozen=True):
    index: int
    gid: str
    type: str
    netdev: str | None = None


class Capabilities(msgspec.Struct, frozen=True):
    """What an RDMA device can do: types of queue pairs, and what a test may ask for besides.

    `peer_memory`: the kernel knows the memory of GPUs by its addresses.
    """

    rc: bool = True
    uc: bool = True
    ud: bool = True
    atomics: bool = True
    srq: bool = True
    dmabuf: bool = True
    peer_memory: bool = False
    inline_bytes: int = 0


class Device(msgspec.Struct, frozen=True):
    """A port of a device over one backend. `remedy`: what to do before it can be used.

    `default_route`: whether the host's default route leaves by its interface. `gpus`: of the host,
    the nearest first, as cuda:0000:3b:00.0; None where the engine is too old to say.
    """

    backend: str
    device: str
    provider: str | None = None
    layer: str | None = None
    state: str | None = None
    address: str | None = None
    mtu_bytes: int | None = None
    rate_gbit_s: float | None = None
    remedy: str | None = None
    netdev: str | None = None
    pci_address: str | None = None
    numa_node: int | None = None
    default_route: bool | None = None
    port: int | None = None
    lid: int | None = None
    firmware: str | None = None
    driver: str | None = None
    gids: list[Gid] = []
    capabilities: Capabilities | None = None
    gpus: list[str] | None = None


class Machine(msgspec.Struct, frozen=True):
    """CPUs and NUMA nodes that are online, and nodes with memory: lists of the kernel, as 0-3,8."""

    cpu_online: str = ""
    node_online: str = ""
    node_has_memory: str = ""


class Devices(msgspec.Struct, frozen=True):
    """The devices of each host that was asked. `recorded`: when.

    `machines`: of hosts that were asked, too, as the suite names CPUs or NUMA nodes.
    """

    schema: Literal["perch.devices/1"]
    recorded: str
    hosts: dict[str, list[Device]]
    machines: dict[str, Machine] = {}
