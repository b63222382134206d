"""environment.json: what this host is. Read only; what cannot be read is null."""

from __future__ import annotations

import asyncio
import os
import re
import resource
from pathlib import Path
from typing import Any

from perch.agent.children import Children, end
from perch.agent.clock import Clock, date
from perch.agent.devices import first_line
from perch.agent.share import Share

SCHEMA = "perch.environment/2"

#: Each tool's key, and a program that says its version.
TOOLS = {
    "libfabric": "fi_info",
    "iperf": "iperf",
    "iperf3": "iperf3",
    "perftest": "ib_send_lat",
    "cxi": "cxi_send_lat",
    "jq": "jq",
}

_SYS, _PROC = Path("/sys"), Path("/proc")


def _line(path: Path) -> str | None:
    return first_line(path) or None


def _matched(path: Path, pattern: str) -> str | None:
    try:
        found = re.search(pattern, path.read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return found[1] if found else None


def _linked(path: Path) -> str | None:
    try:
        return path.readlink().name or None
    except OSError:
        return None


def _flag(path: Path, true: str) -> bool | None:
    line = _line(path)
    return None if line is None else line == true


def _words(path: Path) -> str | None:
    return " ".join(first_line(path).split()) or None


async def _version(children: Children, program: str) -> str | None:
    """The first dotted number that it says about itself, on either output."""
    try:
        process = children.start([program, "--version"])
    except OSError:
        return None
    await asyncio.wait({process.ended}, timeout=5)
    await end(process, 1.0)
    found = re.search(r"[0-9]+(\.[0-9]+)+", process.stdout.text() + process.stderr.text())
    return found[0] if found else None


def _tuning() -> dict[str, Any]:
    cpu, ipv4 = _SYS / "devices/system/cpu", _PROC / "sys/net/ipv4"
    pages = r"\[(\w+)\]"
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = soft == resource.RLIM_INFINITY
    return {
        "governor": _line(cpu / "cpu0/cpufreq/scaling_governor"),
        "smt_active": _flag(cpu / "smt/active", "1"),
        "turbo": _flag(cpu / "intel_pstate/no_turbo", "0"),
        "isolated_cpus": _line(cpu / "isolated"),
        "numa_balancing": _line(_PROC / "sys/kernel/numa_balancing"),
        "transparent_hugepages": _matched(_SYS / "kernel/mm/transparent_hugepage/enabled", pages),
        "tcp_congestion_control": _line(ipv4 / "tcp_congestion_control"),
        "tcp_rmem": _words(ipv4 / "tcp_rmem"),
        "tcp_wmem": _words(ipv4 / "tcp_wmem"),
        "memlock_limit_kib": "unlimited" if unlimited else str(soft // 1024),
        "virtual_machine": _matched(_PROC / "cpuinfo", r"^flags.*\b(hypervisor)\b") is not None,
    }


def _devices(kind: str) -> list[Path]:
    folder = _SYS / "class" / kind
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _interfaces() -> list[dict[str, Any]]:
    found = []
    for one in _devices("net"):
        mtu, speed = first_line(one / "mtu"), first_line(one / "speed")
        if mtu:  # a link that is down or has no rate answers with an error or -1
            found.append(
                {
                    "name": one.name,
                    "mtu_bytes": int(mtu),
                    "state": first_line(one / "operstate"),
                    "rate_gbit_s": int(speed) / 1000 if speed.isdecimal() else None,
                    "driver": _linked(one / "device/driver"),
                }
            )
    return found


def _rdma_driver(one: Path) -> str | None:
    """The kernel's two soft ones have no hardware below; siw may lie over an interface's."""
    kind = first_line(one / "node_desc")
    if "Software iWARP" in first_line(one / "node_type") or kind.startswith("siw"):
        return "siw"
    driver = _linked(one / "device/driver")
    if driver is None and "/devices/virtual/" in str(one.resolve()):
        return "rdma_rxe"
    return driver


def _rdma() -> list[dict[str, Any]]:
    return [
        {"name": one.name, "driver": _rdma_driver(one), "firmware": _line(one / "fw_ver")}
        for one in _devices("infiniband")
        if (one / "node_type").exists()
    ]


def _cxi() -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "driver": _linked(one / "device/driver"),
            "firmware": _line(one / "device/uc/qspi_blob_version"),
        }
        for one in _devices("cxi")
        if (one / "device").is_dir()
    ]


async def collect(children: Children, share: Share, engine: str, clock: Clock) -> dict[str, Any]:
    programs = {"perch": engine, **TOOLS}
    versions = await asyncio.gather(*(_version(children, one) for one in programs.values()))
    kib = _matched(_PROC / "meminfo", r"^MemTotal:\s+([0-9]+)")
    return {
        "schema": SCHEMA,
        "run": share.run,
        "host": share.host,
        "hostname": os.uname().nodename,
        "boot_id": _line(_PROC / "sys/kernel/random/boot_id"),
        "kernel": os.uname().release,
        "os": _matched(Path("/etc/os-release"), r'^PRETTY_NAME="?([^"\n]*)'),
        "cpu": {
            "model": _matched(_PROC / "cpuinfo", r"^model name[^:]*: (.*)$"),
            "cores": len(os.sched_getaffinity(0)),
        },
        "memory_bytes": int(kib) * 1024 if kib else None,
        "versions": dict(zip(programs, versions)),
        "tuning": _tuning(),
        "interfaces": _interfaces(),
        "rdma": _rdma(),
        **({"cxi": _cxi()} if _cxi() else {}),
        "collected": date(clock.wall_ns()),
    }
