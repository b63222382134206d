"""A copy of a recorded run in which a test plants faults, and the verdict that it then gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perch.history.seal import seal
from perch.judge.manifest import MANIFEST
from perch.model.moments import moment
from perch.model.verdict import Check, Verdict
from perch.run import judging
from perch.soak.moments import dated
from tests import spelled
from tests.raw_lines import BOTH, End, Walk, parsed, printed
from tests.raw_lines import counts as counts
from tests.raw_lines import go_on as go_on
from tests.raw_lines import put as put

Document = dict[str, Any]
Change = Callable[[Document], object]


def times(factor: float, *paths: str) -> Change:
    """Multiplies leaves."""

    def change(document: Document) -> None:
        for path in paths:
            value: Any = document
            for name in path.split("."):
                value = value[name]
            put(path, value * factor)(document)

    return change


def later(seconds: float) -> Change:
    """Moves all times of a flow's end, an agent, a host, the engine's line or iperf3's document."""

    def change(document: Document) -> None:
        for key in ("started", "ended", "collected"):
            at = moment(document.get(key))
            if at is not None:
                document[key] = dated(at + seconds)
        counters = document.get("counters") or {}
        for name in ("before", "after"):
            reading = counters.get(name)
            if reading:
                reading["time_s"] = f"{float(reading['time_s']) + seconds:.6f}"
        if "start" in document:
            document["start"]["timestamp"]["timesecs"] += seconds

    return change


def more(path: str, by: int) -> Change:
    """Adds to a counter, which is text; one that was not there began at 0."""
    *parents, name = path.split(".")

    def change(reading: Document) -> None:
        at = reading
        for parent in parents:
            at = at[parent]
        at[name] = str(int(at.get(name, "0")) + by)

    return change


class Run:
    """A run's folder. `fetched`: it is sealed whenever it is judged, as by the playbook."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.fetched = False

    def flow(self, test: str, role: str = "client", repeat: int = 1) -> End:
        """An end of the test's first flow."""
        return End(self.root, f"{test}/alpha/beta/0/{repeat}", role)

    def agent(self, host: str, *changes: Change, retry: bool = False) -> None:
        """Changes what an agent says of itself."""
        walk = Walk(self.root / "raw" / host / ("retry" if retry else ""))
        for change in changes:
            change(walk.agent)
        walk.save()

    def edit(self, path: Path | str, *changes: Change) -> None:
        """Changes a JSON document; of an output with a line for each size, each line.

        plan.json is changed with its flows spelled out.
        """
        if path == "plan.json":
            for change in changes:
                spelled.edit(self.root, change)
            return
        file = self.root / path
        try:
            documents = [json.loads(file.read_text())]
        except json.JSONDecodeError:
            documents = [json.loads(line) for line in file.read_text().splitlines()]
        for document in documents:
            for change in changes:
                change(document)
        file.write_text("".join(json.dumps(document) + "\n" for document in documents))

    def plan(self) -> Document:
        """The plan, its flows spelled out."""
        return spelled.read(self.root)

    def names(self) -> list[str]:
        """What lies in the folder."""
        return sorted(path.name for path in self.root.iterdir())

    def judge(self) -> Verdict:
        """The verdict of the run as it is now."""
        if self.fetched:
            (self.root / MANIFEST).unlink(missing_ok=True)
            seal(self.root)
        return judging.judge(self.root)[0]

    def records(self) -> list[Document]:
        """What records.jsonl holds."""
        lines = (self.root / "records.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def walked_again(run: Run, host: str, *ends: Document) -> None:
    """The host's agent walked plan.retry.json within 10 minutes, and left these ends, too."""
    folder = run.root / "raw" / host
    walk = Walk(folder)
    again = Walk(folder / "retry") if (folder / "retry").exists() else None
    walk.folder, walk.ends = folder / "retry", [*(again.ends if again else []), *ends]
    walk.samples = [
        end["counters"][when] for end in walk.ends if "counters" in end for when in BOTH
    ]
    walk.agent |= {"started": walk.agent["ended"], "flows_total": 2, "flows_done": 2}
    walk.agent["ended"] = dated((moment(walk.agent["started"]) or 0) + 600)
    walk.save()


def measured_again(run: Run, pair: str, n: int, *changes: Change, root: Path | None = None) -> None:
    """Repeat n of a pair and rail, measured as the first one, a minute after the one before it.

    `changes`: of both ends' outputs; `root`: of the run where the first one lies.
    """
    begin = later(60 * (n - 1))
    for host, role in (("alpha", "client"), ("beta", "server")):
        end = End(root or run.root, f"{pair}/1", role).document()
        begin(end)
        for key in ("started_monotonic_ns", "ended_monotonic_ns"):
            end[key] += 60 * (n - 1) * 10**9
        end["id"] = f"{pair}/{n}"
        if "stdout" in end:  # of servers, those of tools that print something
            lines = parsed(end["stdout"])
            for line in lines:
                for change in (begin, *changes):
                    change(line)
            end["stdout"] = printed(lines)
        walked_again(run, host, end)


def status(verdict: Verdict, check: str) -> str | None:
    """The status of the check with this id; None where there is none."""
    return next((one.status for one in verdict.checks if one.id == check), None)


def check_of(verdict: Verdict, check: str) -> Check:
    """The check with this id."""
    return next(one for one in verdict.checks if one.id == check)


def missing(verdict: Verdict) -> set[str]:
    """The flows that coverage lists."""
    return {one.flow for one in verdict.coverage.missing}
