"""What a soak adds to perch.raw/2: starts of the agent and of flows, episodes, and patience.

docs/raw.md has every key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from perch.agent.clock import Clock, date, undated
from perch.agent.counters import Reading
from perch.agent.errors import say
from perch.agent.files import PatientLines
from perch.agent.raw import Moment, Raw, moment, times
from perch.agent.share import Flow, Share
from perch.agent.soak_kept import Past, Session

#: Samples that wait in memory while the disk takes none: some 3 KB each, 16 hours of minutes.
#: Later ones are dropped, and counted.
WAITING_MAX = 1000


class Since(NamedTuple):
    """`passed_s` had passed at `uptime_s` of the boot; it began when the wall said `begun_ns`."""

    boot_id: str
    uptime_s: float
    passed_s: float
    begun_ns: int


def since(past: Past, session: Session, boot: str, clock: Clock) -> Since:
    """Goes on where the last clock was.

    Across a reboot only the wall can say how long it took, and that since the last sample alone:
    one that was set before is no time that passed.
    """
    wall, uptime = clock.wall_ns(), clock.uptime_ns() / 1e9
    if not past.starts:
        begin = int(session.begin)
        ahead_s = begin - wall / 1e9
        # a moment further away than hosts start apart is of another clock
        if begin and abs(ahead_s) <= session.window_s:
            return Since(boot, uptime, -ahead_s, begin * 10**9)
        if begin:
            say(
                f"begins at once: {date(begin * 10**9)} is not within {session.window_s} s from now"
            )
        return Since(boot, uptime, 0.0, wall)
    last, sample = past.starts[-1], past.sample
    begun = undated(last["begun"])
    if last["boot_id"] == boot:
        return Since(boot, uptime, last["passed_s"] + uptime - last["uptime_s"], begun)
    if sample.get("boot_id") == last["boot_id"] and sample["uptime_s"] >= last["uptime_s"]:
        away = max(0.0, wall / 1e9 - float(sample["time_s"]))
        return Since(boot, uptime, past.passed_s() + away, begun)
    return Since(boot, uptime, max(0.0, (wall - begun) / 1e9), begun)


class SoakRaw(Raw):
    """A soak's lines wait while the disk takes none: it ends nothing."""

    def __init__(self, share: Share, folder: Path, past: Past, clock: Clock) -> None:
        self._patient: list[PatientLines] = []
        super().__init__(folder, share, clock, self._open)
        self.done = len(past.done)
        self.number = int(past.sample.get("number", 0))
        self._dropped = int(past.sample.get("dropped", 0))

    @property
    def unwritten(self) -> str:
        """The first file that the disk refused for a while."""
        return next((one.path.name for one in self._patient if one.refused), "")

    @property
    def waiting(self) -> int:
        """Lines that the disk has not taken."""
        return sum(len(one.waiting) for one in self._patient)

    def _open(self, path: Path) -> PatientLines:
        self._patient.append(PatientLines(path))
        return self._patient[-1]

    def started(self, at: Since, session: Session, cpus: str) -> None:
        unit = {"unit": "perch-soak.service"} if session.supervisor == "systemd" else {}
        line = {"boot_id": at.boot_id, "uptime_s": at.uptime_s, "passed_s": at.passed_s}
        line.update(begun=date(at.begun_ns), supervisor=session.supervisor)
        now = times("started", moment(self.clock))
        self._flows.write({"kind": "start", **line, **unit, "cpus": cpus, **now})

    def began(self, flow: Flow, sample: int, boot: str, passed_s: float) -> dict[str, Any]:
        line = {"kind": "begin", "id": flow.id, "role": flow.role, "sample": sample}
        line.update(boot_id=boot, passed_s=passed_s, **times("started", moment(self.clock)))
        self._flows.write(line)
        return line

    def episode(self, what: str, message: str, flow: str = "") -> None:
        say(f"{what}: {message}")
        of = {"id": flow} if flow else {}
        now = times("time", moment(self.clock))
        self._flows.write({"kind": "episode", "what": what, **of, "message": message, **now})

    def sample(self, reading: Reading) -> int:
        """Of one that is dropped the number of the last that is kept."""
        if len(self._patient[1].waiting) > WAITING_MAX:
            self._dropped += 1
            return self.number
        if self._dropped:
            reading.line["dropped"] = self._dropped
        return super().sample(reading)

    def sync(self) -> None:
        for one in self._patient:
            one.flush()
        super().sync()


def moment_of(begin: dict[str, Any], boot: str) -> Moment:
    """When a flow began, as its line says, for an agent of this boot."""
    is_same = begin["boot_id"] == boot
    return Moment(undated(begin["started"]), begin["started_monotonic_ns"] if is_same else 0)
