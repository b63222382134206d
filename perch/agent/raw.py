"""perch.raw/2: what the agent leaves in a host's folder. docs/raw.md describes every key."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from perch.agent.children import Ended, Process
from perch.agent.clock import Clock, date
from perch.agent.counters import Reading
from perch.agent.errors import AgentError
from perch.agent.files import Lines
from perch.agent.share import Flow, Share

SCHEMA = "perch.raw/2"


class Moment(NamedTuple):
    """By both clocks, in nanoseconds. `monotonic_ns` 0: it is of another boot, and says nothing."""

    wall_ns: int
    monotonic_ns: int


def moment(clock: Clock) -> Moment:
    return Moment(clock.wall_ns(), clock.monotonic_ns())


class Result(NamedTuple):
    """What this host's end of a flow came to. `process`: of its command, where one has ended.

    `placement`: where the agent put a command that does not place itself.
    """

    state: str
    message: str = ""
    ended: Ended | None = None
    timed_out: bool = False
    process: Process | None = None
    placement: dict[str, Any] | None = None


class Raw:
    """flows.jsonl and samples.jsonl of a host."""

    def __init__(
        self, folder: Path, share: Share, clock: Clock, lines: Callable[[Path], Lines] = Lines
    ) -> None:
        self.folder = folder
        self.clock = clock
        self._flows = lines(folder / "flows.jsonl")
        self._samples = lines(folder / "samples.jsonl")
        self._layout: dict[str, Any] = {}
        self._refused: list[dict[str, Any]] = []
        self.number = 0
        self.done = 0
        if not self._flows.is_empty:
            return
        head = {
            "kind": "head",
            "schema": SCHEMA,
            "run": share.run,
            "plan_sha256": share.plan_sha256,
            "host": share.host,
        }
        started = moment(clock)
        try:
            self._flows.write({**head, "flows": share.own, **times("started", started)})
            self._samples.write(head)
        except AgentError:  # nothing is measured: these are not an earlier run's results
            self._flows.remove()
            self._samples.remove()
            raise

    def sample(self, reading: Reading) -> int:
        """Its number, from 1. Its layout goes first where it is not that of the sample before."""
        if reading.layout != self._layout:
            self._layout = reading.layout
            self._samples.write({"kind": "layout", **reading.layout})
        self.number += 1
        self._samples.write({"kind": "sample", "number": self.number, **reading.line})
        return self.number

    def flow(
        self,
        flow: Flow,
        result: Result,
        started: Moment,
        samples: tuple[int | None, int | None] = (None, None),
        route: str = "",
        ended: Moment | None = None,
    ) -> None:
        """An end of a flow that has run, or did not. `ended`: else now."""
        line: dict[str, Any] = {"kind": "flow", "id": flow.id, "role": flow.role}
        line["state"] = result.state
        if result.message:
            line["message"] = result.message
        if flow.argv:
            line["argv"] = flow.argv
        if result.ended is not None:
            line["exit" if result.ended.signal is None else "signal"] = (
                result.ended.exit if result.ended.signal is None else result.ended.signal
            )
        if result.timed_out:
            line["timed_out"] = True
        if result.placement is not None:
            line["placement"] = result.placement
        line.update(times("started", started), **times("ended", ended or moment(self.clock)))
        if None not in samples:
            line["samples"] = list(samples)
            line["route_interface"] = route
        if result.process is not None:
            line.update(_outputs(result.process))
        self._done(line)

    def _done(self, line: dict[str, Any]) -> None:
        try:
            self._flows.write(line)
        except AgentError:
            self._refused.append(line)
            raise
        self.done += 1

    def again(self) -> str:
        """Writes what a full disk has refused; the first flow whose line has no room even then."""
        refused, self._refused = self._refused, []
        for line in refused:
            with contextlib.suppress(AgentError):
                self._done(line)
        return self._refused[0]["id"] if self._refused else ""

    def end(self, state: str, message: str = "", **more: Any) -> None:
        """The last line: without it the files are a part of what there was.

        A flow that has no line then did not run, for the reason that `message` gives.
        """
        line: dict[str, Any] = {"kind": "end", "state": state, "flows_done": self.done, **more}
        if message:
            line["message"] = message
        self._flows.write({**line, **times("ended", moment(self.clock))})
        self.sync()

    def sync(self) -> None:
        self._flows.sync()
        self._samples.sync()


def times(name: str, at: Moment) -> dict[str, Any]:
    """As lines have them."""
    found: dict[str, Any] = {name: date(at.wall_ns)}
    return {**found, f"{name}_monotonic_ns": at.monotonic_ns} if at.monotonic_ns else found


def _outputs(process: Process) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, capture in (("stdout", process.stdout), ("stderr", process.stderr)):
        if capture.bytes:
            found[name] = capture.text()
        if capture.is_cut:
            found[f"{name}_bytes"] = capture.bytes
    return found
