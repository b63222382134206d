"""A soak's perch.raw/2: what it has come to, read again after a crash, and what it adds to a run's.

docs/raw.md has every key. Its lines wait while the disk takes none: that ends nothing.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from perch.agent.asking import last_lines
from perch.agent.clock import Clock, date, undated
from perch.agent.counters import Reading
from perch.agent.errors import say
from perch.agent.files import PatientLines
from perch.agent.raw import Moment, Raw, Result, moment, times
from perch.agent.share import Flow, Share

#: Samples that wait in memory while the disk takes none: some 3 KB each, 16 hours of minutes.
#: Later ones are dropped, and counted.
WAITING_MAX = 1000


def _whole(lines: Iterable[str | bytes]) -> Iterator[dict[str, Any]]:
    """Lines that are not whole are none: a crash may leave some."""
    for line in lines:
        with contextlib.suppress(ValueError):
            yield json.loads(line)


class Past:
    """What the raw files say: the head, the last start and sample, and each flow."""

    def __init__(self, folder: Path) -> None:
        self.head: dict[str, Any] = {}
        self.start: dict[str, Any] = {}
        self.begun: dict[tuple[str, str], dict[str, Any]] = {}
        self.done: dict[tuple[str, str], str] = {}
        self.has_ended = False
        self.sample: dict[str, Any] = {}
        with contextlib.suppress(OSError), (folder / "flows.jsonl").open("rb") as lines:
            for line in _whole(lines):
                kind = line["kind"]
                self.has_ended = kind == "end"
                if kind in ("head", "start"):
                    setattr(self, kind, line)
                elif kind == "begin":
                    self.begun[line["id"], line["role"]] = line
                elif kind == "flow":
                    self.done[line["id"], line["role"]] = line["state"]
        with contextlib.suppress(OSError):
            for one in _whole(last_lines(folder / "samples.jsonl")[-2:]):
                self.sample = one if one["kind"] == "sample" else self.sample


class Since(NamedTuple):
    """The soak began when this boot had lasted so long, and when the wall said `begun_ns`."""

    uptime_s: float
    begun_ns: int

    def passed(self, clock: Clock) -> float:
        return clock.uptime_ns() / 1e9 - self.uptime_s


def since(past: Past, clock: Clock, begin: int = 0, window_s: float = 0) -> Since:
    """Goes on where the last clock was. A new one begins at second `begin` of the epoch; 0: now.

    Across a reboot only the wall can say how long it took, and that since the last sample alone:
    one that was set before is no time that passed.
    """
    wall, uptime, last, sample = clock.wall_ns(), clock.uptime_ns() / 1e9, past.start, past.sample
    if not last:
        ahead_s = begin - wall / 1e9 if begin else 0.0
        if abs(ahead_s) > window_s:  # further away than hosts start apart: it is of another clock
            say(f"begins at once: {date(begin * 10**9)} is not within {window_s} s from now")
            ahead_s = 0.0
        return Since(uptime + ahead_s, wall + round(ahead_s * 1e9))
    begun, began_s = undated(last["begun"]), float(last["uptime_s"] - last["passed_s"])
    if last["boot_id"] == clock.boot():
        return Since(began_s, begun)
    passed = max(0.0, (wall - begun) / 1e9)
    if sample.get("boot_id") == last["boot_id"]:
        passed = sample["uptime_s"] - began_s + max(0.0, wall / 1e9 - float(sample["time_s"]))
    return Since(uptime - passed, begun)


class SoakRaw(Raw):
    """Goes on with what is there. `past`: what was before this agent, and each flow since."""

    def __init__(self, share: Share, folder: Path, clock: Clock) -> None:
        self.past = past = Past(folder)
        super().__init__(folder, share, clock, PatientLines)
        self.done = len(past.done)
        self.number = int(past.sample.get("number", 0))
        self._dropped = int(past.sample.get("dropped", 0))
        self._boot = clock.boot()
        self.routes: dict[str, str] = {}

    @property
    def unwritten(self) -> str:
        """The first file that the disk refused for a while."""
        files = self._flows, self._samples
        return next((one.path.name for one in files if one.refused), "")

    @property
    def waiting(self) -> int:
        """Lines that the disk has not taken."""
        return len(self._flows.waiting) + len(self._samples.waiting)

    def file(self, flow: Flow) -> Path:
        return self.folder / "flows" / flow.id / "client.soak"

    def start(self, at: Since, duration_s: float, supervisor: str) -> None:
        """The agent begins, or goes on."""
        uptime_s = self.clock.uptime_ns() / 1e9
        line = {"kind": "start", "boot_id": self._boot, "uptime_s": uptime_s}
        line.update(passed_s=uptime_s - at.uptime_s, duration_s=duration_s)
        line.update(begun=date(at.begun_ns), supervisor=supervisor)
        self._flows.write({**line, **times("started", moment(self.clock))})

    def begin(self, flow: Flow, sample: int, passed_s: float) -> None:
        """Once, whichever agent it was."""
        if (flow.id, flow.role) in self.past.begun:
            return
        line = {"kind": "begin", "id": flow.id, "role": flow.role, "sample": sample}
        line.update(boot_id=self._boot, passed_s=passed_s, **times("started", moment(self.clock)))
        self._flows.write(line)
        self.past.begun[flow.id, flow.role] = line

    def episode(self, what: str, message: str, flow: str = "") -> None:
        say(f"{what}: {message}")
        of = {"id": flow} if flow else {}
        now = times("time", moment(self.clock))
        self._flows.write({"kind": "episode", "what": what, **of, "message": message, **now})

    def sample(self, reading: Reading) -> int:
        """Of one that is dropped the number of the last that is kept."""
        if len(self._samples.waiting) > WAITING_MAX:
            self._dropped += 1
            return self.number
        if self._dropped:
            reading.line["dropped"] = self._dropped
        return super().sample(reading)

    def outcome(self, flow: Flow, result: Result, after: int) -> None:
        """Once. Counters begin at 0 with each boot: of a flow of an earlier one there are none."""
        key = (flow.id, flow.role)
        if key in self.past.done:
            return
        begin, before = self.past.begun[key], None
        started = Moment(undated(begin["started"]), 0)
        if begin["boot_id"] == self._boot:
            before = begin["sample"]
            started = started._replace(monotonic_ns=begin["started_monotonic_ns"])
        self.flow(flow, result, started, (before, after), self.routes.get(flow.peer, ""))
        self.past.done[key] = result.state
