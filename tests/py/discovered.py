"""What hosts say of their devices (`perch devices --json`), by the cards that they have."""

from __future__ import annotations

from typing import Any

#: Of each driver what its cards cannot do. UC: bnxt_re, irdma, ionic, erdma, mana and qedr make
#: none (their create_qp); atomics: of E810, ionic, erdma and mana none. Bytes of an inline send are
#: those of perftest's table (src/perftest_parameters.c, ctx_set_max_inline).
_CANNOT: dict[str, dict[str, Any]] = {
    "mlx5_core": {"inline_bytes": 828},
    "mlx4_core": {"inline_bytes": 460},
    "bnxt_re": {"uc": False, "inline_bytes": 96},
    "bnxt_re without AtomicOps": {"uc": False, "atomics": False, "inline_bytes": 96},
    "irdma": {"uc": False, "atomics": False, "srq": False, "inline_bytes": 101},
    "ionic": {"uc": False, "atomics": False, "srq": False, "inline_bytes": 32},
    "hns_roce": {"uc": False, "inline_bytes": 32},
    "erdma": {"uc": False, "ud": False, "atomics": False, "srq": False, "inline_bytes": 96},
    "mana_ib": {"uc": False, "atomics": False, "srq": False, "inline_bytes": 0},
    "qedr": {"uc": False, "inline_bytes": 128},
    "rdma_rxe": {"dmabuf": False, "inline_bytes": 384},
}

DRIVERS = sorted(_CANNOT)


def nic(name: str, bus: int = 0, driver: str = "mlx5_core", **more: Any) -> dict[str, Any]:
    """An active RoCE port. `bus`: its PCI bus; its address is 198.51.100.BUS."""
    address = f"198.51.100.{bus}"
    return {
        "backend": "verbs",
        "device": name,
        "layer": "ethernet",
        "state": "up",
        "address": address,
        "mtu_bytes": 4096,
        "rate_gbit_s": 100.0,
        "netdev": f"eth{bus}",
        "pci_address": f"0000:{bus:02x}:00.0",
        "numa_node": 0,
        "default_route": False,
        "port": 1,
        "driver": driver.split()[0],
        "gids": [
            {"index": 2, "gid": address, "type": "RoCE v1", "netdev": f"eth{bus}"},
            {"index": 3, "gid": address, "type": "RoCE v2", "netdev": f"eth{bus}"},
        ],
        "capabilities": {
            **dict.fromkeys(("rc", "uc", "ud", "atomics", "srq", "dmabuf"), True),
            **_CANNOT[driver],
        },
        **more,
    }


def cassini(name: str, bus: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "backend": "cxi",
        "provider": "cxi",
        "device": name,
        "layer": "slingshot",
        "state": "up",
        "address": f"NIC 0x{bus:x}",
        "netdev": f"hsn{bus}",
        "pci_address": f"0000:{bus:02x}:00.0",
        "default_route": False,
        **more,
    }


def interface(name: str, address: str, **more: Any) -> dict[str, Any]:
    return {"backend": "tcp", "device": name, "netdev": name, "address": address, **more}


def recorded(hosts: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """A file inputs/devices.json."""
    return {"schema": "perch.devices/1", "recorded": "2026-01-01T00:00:00Z", "hosts": hosts}
