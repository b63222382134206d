"""A soak's samples: beside the counters links, temperatures, and what Perch's processes hold."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perch.agent import devices
from perch.agent.asking import RESIDENT_PAGES, START, stat_of
from perch.agent.children import Process
from perch.agent.clock import Clock
from perch.agent.counters import Answers, Counters, Reading, Readings, Writes
from perch.agent.devices import Devices, first_line
from perch.agent.listening import members

_SYS = Path("/sys/class")


def links(found: Devices) -> dict[str, dict[str, str]]:
    """State, changes and rate of each interface and RDMA port; what cannot be read is left out."""
    net, rdma = ("operstate", "carrier_changes", "speed"), ("state", "phys_state", "rate")
    places = [(key, f"net/{key}", net) for key in found.netdevs]
    places += [(key, f"infiniband/{key.replace('/', '/ports/')}", rdma) for key in found.rdma]
    return {
        key: {name: line for name in names if (line := first_line(_SYS / folder / name))}
        for key, folder, names in places
    }


def temperatures() -> list[dict[str, Any]]:
    """Of every sensor that answers (Documentation/hwmon/sysfs-interface.rst: millidegrees)."""
    files = sorted((_SYS / "hwmon").glob("hwmon*/temp*_input"))
    return [
        {"name": f"{first_line(file.parent / 'name')}.{place}", "celsius": int(value) / 1000}
        for file in files
        if re.fullmatch("-?[0-9]{1,9}", value := first_line(file))
        for place in [f"{file.parent.name}/{file.name[:-6]}"]
    ]


def _process(role: str, flow: str, pid: int) -> dict[str, Any] | None:
    """What it holds; None where it has ended meanwhile."""
    stat = stat_of(pid)
    if not stat:
        return None
    told: dict[str, Any] = {"role": role, **({"flow": flow} if flow else {}), "pid": pid}
    told["start"] = stat[START]
    told["resident_bytes"] = int(stat[RESIDENT_PAGES]) * resource.getpagesize()
    with contextlib.suppress(OSError):
        told["handles"] = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208, no objects of names
    return told


def processes(running: Mapping[str, Process]) -> list[dict[str, Any]]:
    """The agent, and what it runs: a server and its jobs, or a flow's keeper and its measurer."""
    found, of_group = [_process("agent", "", os.getpid())], members()
    for flow, one in running.items():
        leader, other = ("keeper", "measurer") if flow else ("serve", "job")
        pids = of_group.get(one.pid, [])
        found += [_process(leader if pid == one.pid else other, flow, pid) for pid in pids]
    return [one for one in found if one is not None]


class Samples(Readings):
    """`running`: the processes of that moment; `wanted`: devices, looked for again each time."""

    def __init__(
        self, answers: Answers, raw: Writes, clock: Clock, wanted: list[str],
        running: Mapping[str, Process],
    ) -> None:  # fmt: skip
        self._answers, self._clock, self._wanted, self._running = answers, clock, wanted, running
        self._one = asyncio.Lock()
        super().__init__(self._found(), raw, clock)

    def _found(self) -> Counters:
        return Counters(devices.find(self._wanted), self._answers, self._clock)

    async def take(self) -> int:
        """One at a time: they are written in the order in which they are read."""
        async with self._one:
            return await super().take()

    async def read(self, settled: bool) -> Reading:
        self.counters = self._found()
        uptime_s = self._clock.uptime_ns() / 1e9  # beside the wall, so that they show its steps
        is_idle = not any(self._running)  # no key but the server's, ""
        reading = await super().read(settled and is_idle)
        reading.line.update(
            boot_id=self._clock.boot(),
            uptime_s=uptime_s,
            links=links(self.counters.devices),
            temperatures=temperatures(),
            processes=processes(self._running),
        )
        return reading
