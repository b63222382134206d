"""A soak's samples: beside the counters links, temperatures, and what Perch's processes hold."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from perch.agent import devices
from perch.agent.asking import RESIDENT_PAGES, START, stat_of
from perch.agent.clock import Clock, boot_id
from perch.agent.counters import Answers, Counters, Reading, Readings, Writes
from perch.agent.devices import Devices, first_line
from perch.agent.listening import members

#: Seconds in which the ends of flows share a reading: those of a turn end together.
GATHER = 0.1

_SYS = Path("/sys/class")

#: Role, flow ("" of a server) and process group of what the agent has started.
Group = tuple[str, str, int]


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
    found: dict[str, float] = {}
    for chip in sorted((_SYS / "hwmon").glob("hwmon*")):
        name = first_line(chip / "name")
        for file in sorted(chip.glob("temp*_input")):
            value = first_line(file)
            if name and re.fullmatch("-?[0-9]{1,9}", value):
                place = f"{name}/{file.name[:-6]}"
                if place in found:  # two chips of a kind: of the second the device is named
                    place = f"{name}.{(chip / 'device').resolve().name}/{file.name[:-6]}"
                found[place] = int(value) / 1000
    return [{"name": name, "celsius": value} for name, value in found.items()]


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


def processes(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """The agent, and of each group its leader and what that has started: a job, or a measurer."""
    found, of_group = [_process("agent", "", os.getpid())], members()
    for role, flow, group in groups:
        other = "job" if role == "serve" else "measurer"
        pids = of_group.get(group, [])
        found += [_process(role if pid == group else other, flow, pid) for pid in pids]
    return [one for one in found if one is not None]


class Samples(Readings):
    """`groups`: what runs at that moment; `wanted`: devices, looked for again each time."""

    groups: Callable[[], list[Group]] = list

    def __init__(self, answers: Answers, raw: Writes, clock: Clock, wanted: list[str]) -> None:
        self._answers, self._clock, self._wanted, self._boot = answers, clock, wanted, boot_id()
        self._after: asyncio.Future[int] | None = None
        super().__init__(self._found(), raw, clock)

    def _found(self) -> Counters:
        return Counters(devices.find(self._wanted), self._answers, self._clock)

    async def after(self) -> int:
        """One for all flows that end by then."""
        if self._after is None:
            self._after = asyncio.ensure_future(self._gathered())
        return await asyncio.shield(self._after)

    async def _gathered(self) -> int:
        await asyncio.sleep(GATHER)
        self._after = None
        return await super().after()

    async def read(self, settled: bool) -> Reading:
        self.counters = self._found()
        uptime_s = self._clock.uptime_ns() / 1e9  # beside the wall, so that they show its steps
        groups = self.groups()
        is_idle = not any(role == "keeper" for role, *_ in groups)
        reading = await super().read(settled and is_idle)
        reading.line.update(
            boot_id=self._boot,
            uptime_s=uptime_s,
            links=links(self.counters.devices),
            temperatures=temperatures(),
            processes=processes(groups),
        )
        return reading
