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
from perch.agent.children import Ended
from perch.agent.clock import Clock, date, undated
from perch.agent.counters import Reading
from perch.agent.errors import say
from perch.agent.files import PatientLines
from perch.agent.raw import Moment, Raw, Result, moment, times
from perch.agent.share import Flow, Share
from perch.agent.soak_host import Session

#: Samples that wait in memory while the disk takes none: some 3 KB each, 16 hours of minutes.
#: Later ones are dropped, and counted.
WAITING_MAX = 1000


def _whole(lines: Iterable[str | bytes]) -> Iterator[dict[str, Any]]:
    """Lines that are not whole are none: a crash may leave some."""
    for line in lines:
        with contextlib.suppress(ValueError):
            yield json.loads(line)


class Past:
    """What the raw files say: the last start, sample and line, and each flow."""

    def __init__(self, folder: Path) -> None:
        self.start: dict[str, Any] = {}
        self.begun: dict[tuple[str, str], dict[str, Any]] = {}
        self.done: dict[tuple[str, str], str] = {}
        self.last: dict[str, Any] = {}
        self.sample: dict[str, Any] = {}
        with contextlib.suppress(OSError), (folder / "flows.jsonl").open("rb") as lines:
            for line in _whole(lines):
                self.last = line
                if line["kind"] == "start":
                    self.start = line
                elif line["kind"] == "begin":
                    self.begun[line["id"], line["role"]] = line
                elif line["kind"] == "flow":
                    self.done[line["id"], line["role"]] = line["state"]
        with contextlib.suppress(OSError):
            for one in _whole(last_lines(folder / "samples.jsonl")[-2:]):
                self.sample = one if one["kind"] == "sample" else self.sample

    @property
    def has_ended(self) -> bool:
        return self.last.get("kind") == "end"


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
    wall, uptime, last, sample = clock.wall_ns(), clock.uptime_ns() / 1e9, past.start, past.sample
    if not last:
        begin, window_s = session.begin, session.start_window
        ahead_s = begin - wall / 1e9
        # a moment further away than hosts start apart is of another clock
        if begin and abs(ahead_s) <= window_s:
            return Since(boot, uptime, -ahead_s, begin * 10**9)
        if begin:
            say(f"begins at once: {date(begin * 10**9)} is not within {window_s} s from now")
        return Since(boot, uptime, 0.0, wall)
    begun = undated(last["begun"])
    if last["boot_id"] == boot:
        passed = last["passed_s"] + uptime - last["uptime_s"]
    elif sample.get("boot_id") == last["boot_id"]:
        passed = last["passed_s"] + sample["uptime_s"] - last["uptime_s"]
        passed += max(0.0, wall / 1e9 - float(sample["time_s"]))
    else:
        passed = max(0.0, (wall - begun) / 1e9)
    return Since(boot, uptime, passed, begun)


def soak_end(file: Path) -> str:
    """How a keeper's file ends: none (no file), open (it can go on), stopped, or its exit code.

    A stopped one was told to end, and can go on.
    """
    try:
        lines = last_lines(file)
        if not lines:
            return "none"
        last = json.loads(lines[-1])
        if last["kind"] not in ("latency", "bandwidth"):
            return "open"
        is_stopped = last["soak"]["stopped"]
        return "stopped" if is_stopped else str((last.get("error") or {}).get("code", 0))
    except FileNotFoundError:
        return "none"
    except (OSError, ValueError, KeyError, TypeError):
        return "open"


class SoakRaw(Raw):
    """Goes on with what is there. `past`: what was before this agent, and each flow since."""

    def __init__(self, share: Share, folder: Path, clock: Clock) -> None:
        self.past = past = Past(folder)
        super().__init__(folder, share, clock, PatientLines)
        self.done = len(past.done)
        self.number = int(past.sample.get("number", 0))
        self._dropped = int(past.sample.get("dropped", 0))
        self._share = share
        self._boot = past.start.get("boot_id", "")
        self._routes: dict[str, str] = {}

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

    def started(self, at: Since, supervisor: str, routes: dict[str, str]) -> None:
        """The agent begins, or goes on. `routes`: the interface to each peer."""
        self._boot, self._routes = at.boot_id, routes
        line = {"boot_id": at.boot_id, "uptime_s": at.uptime_s, "passed_s": at.passed_s}
        line.update(begun=date(at.begun_ns), supervisor=supervisor)
        self._flows.write({"kind": "start", **line, **times("started", moment(self.clock))})

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

    def outcome(self, flow: Flow, result: Result, after: int | None) -> None:
        """Counters begin at 0 with each boot: then it has no readings."""
        key = (flow.id, flow.role)
        if key in self.past.done:
            return
        begin, before = self.past.begun.get(key), None
        started = Moment(undated(begin["started"]), 0) if begin else moment(self.clock)
        if begin and begin["boot_id"] == self._boot:
            before = begin["sample"]
            started = started._replace(monotonic_ns=begin["started_monotonic_ns"])
        self.flow(flow, result, started, (before, after), self._routes.get(flow.peer, ""))
        self.past.done[key] = result.state

    def close(self, reason: str, ended: dict[str, Result], after: int | None) -> None:
        """Every flow that has begun gets its outcome, and nothing goes on any more.

        ended: what keepers came to that were told to end.
        """
        for _, flows in self._share.turns():
            for flow in flows:
                if (flow.id, flow.role) in self.past.begun:
                    self.outcome(flow, self.left(flow, reason, ended.get(flow.id)), after)

    def left(self, flow: Flow, reason: str, last: Result | None = None) -> Result:
        """As its file says. `last`: what its keeper came to."""
        found = soak_end(self.file(flow))
        if flow.role == "server":
            return Result("done", reason)
        if found == "none":
            return Result("not_run", reason or "it had not begun")
        code = Ended(int(found), None) if found.isdecimal() else last.ended if last else None
        if code is None and found == "stopped":
            code = Ended(0, None)
        words = [reason, "it ended without the record of its whole" if found == "open" else ""]
        message = "; ".join(filter(None, words)) or ("stopped" if found == "stopped" else "")
        return Result("done", message, code, process=last.process if last else None)
