"""A copy of a recorded run in which a test plants faults, and the verdict that it then gets."""

from __future__ import annotations

import json
import shutil
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

Document = dict[str, Any]
Change = Callable[[Document], object]


def put(path: str, value: object) -> Change:
    """Sets a leaf by its path, such as latency_us.count."""
    *parents, key = path.split(".")

    def change(document: Document) -> None:
        at: Any = document
        for name in parents:
            at = at[int(name)] if isinstance(at, list) else at[name]
        at[int(key) if isinstance(at, list) else key] = value

    return change


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
    """Moves all times of a flow's end, of an agent, of the engine's line or iperf3's document."""

    def change(document: Document) -> None:
        for key in ("started", "ended"):
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


def ends_of(root: Path, host: str) -> list[Path]:
    """The host's ends of flows, client.json or server.json, as they followed each other."""
    begun = {
        path: float(counters["before"]["time_s"])
        for name in ("client", "server")
        for path in (root / "raw" / host).rglob(f"{name}.json")
        if (counters := json.loads(path.read_text()).get("counters")) and counters.get("before")
    }
    return sorted(begun, key=lambda path: (begun[path], path))


def go_on(root: Path, end: Path, change: Change, *, since: str = "after") -> None:
    """Changes a reading of a flow's end, and all that its host read later: counters go on.

    `end`: client.json or server.json. `since`: before or after the flow. The change is of one
    reading, such as `more("rdma.mlx5_0/1.counters.link_downed", 1)`.
    """
    document = json.loads(end.read_text())
    host, begin = document["host"], float(document["counters"][since]["time_s"])
    changed = 0
    for path in ends_of(root, host):
        found = json.loads(path.read_text())
        readings = found["counters"]
        late = [
            readings[when] for when in ("before", "after")
            if readings.get(when) and float(readings[when]["time_s"]) >= begin
        ]  # fmt: skip
        for reading in late:
            change(reading)
            changed += 1
        if late:
            path.write_text(json.dumps(found) + "\n")
    if not changed:
        raise LookupError(f"no reading of {host} is as late as {end.name}")


def rested(root: Path, host: str) -> None:
    """Gives a host, whose devices stood still until its first flow, readings of an idle second."""
    first = json.loads(ends_of(root, host)[0].read_text())["counters"]
    begun = float(first["before"]["time_s"])
    times = {"before": begun - 1.5, "after": begun - 0.5}
    idle = {when: first["before"] | {"time_s": f"{at:.6f}"} for when, at in times.items()}
    path = root / "raw" / host / "environment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"idle": idle}) + "\n")


def more(path: str, by: int) -> Change:
    """Adds to a counter, which is text; one that was not there began at 0."""
    *parents, name = path.split(".")

    def change(reading: Document) -> None:
        at = reading
        for parent in parents:
            at = at[parent]
        at[name] = str(int(at.get(name, "0")) + by)

    return change


def counts(root: Path, end: Path, path: str, before: int, after: int) -> None:
    """Sets what a counter showed before a flow and after it, and in all other readings of the host.

    `end`: client.json or server.json; `path`: such as rdma.mlx5_0/1.counters.link_downed.
    """
    document = json.loads(end.read_text())
    over = float(document["counters"]["after"]["time_s"])
    environment = root / "raw" / document["host"] / "environment.json"
    for file in (environment, *ends_of(root, document["host"])):
        found = json.loads(file.read_text())
        readings = found.get("idle" if file == environment else "counters") or {}
        for when in ("before", "after"):
            if reading := readings.get(when):
                late = float(reading["time_s"]) >= over
                put(path, str(after if late else before))(reading)
        file.write_text(json.dumps(found) + "\n")


class Run:
    """A run's folder. `fetched`: it is sealed whenever it is judged, as by the playbook."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.fetched = False

    def flow(self, test: str, role: str = "client") -> Path:
        """The folder of the test's first flow on one host."""
        host = {"client": "alpha", "server": "beta"}[role]
        return self.root / f"raw/{host}/flows/{test}/alpha/beta/0/1"

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


def walked_again(run: Run, host: str, flows: int = 2) -> None:
    """The host's agent walked plan.retry.json, which has so many flows of it, within 10 minutes."""
    agent = json.loads((run.root / f"raw/{host}/agent.json").read_text())
    agent |= {"started": agent["ended"], "flows_total": flows, "flows_done": flows}
    agent["ended"] = dated((moment(agent["started"]) or 0) + 600)
    (run.root / f"raw/{host}/retry/agent.json").write_text(json.dumps(agent))


def measured_again(run: Run, pair: str, n: int, *changes: Change, raw: Path | None = None) -> Path:
    """Repeat n of a pair and rail, measured as the first one, a minute after the one before it.

    `changes`: of both ends' outputs; `raw`: where the first one lies. Returns the client's folder.
    """
    begin = later(60 * (n - 1))
    folders = {host: run.root / f"raw/{host}/retry/flows/{pair}/{n}" for host in ("alpha", "beta")}
    for (host, folder), role in zip(folders.items(), ("client", "server"), strict=True):
        shutil.copytree((raw or run.root / "raw") / host / "flows" / pair / "1", folder)
        run.edit(folder / f"{role}.json", put("flow", f"{pair}/{n}"), begin)
        walked_again(run, host)
    run.edit(folders["alpha"] / "client.stdout", begin, *changes)
    served = folders["beta"] / "server.stdout"
    if served.exists():  # of tools whose servers print something
        run.edit(served, begin, *changes)
    return folders["alpha"]


def status(verdict: Verdict, check: str) -> str | None:
    """The status of the check with this id; None where there is none."""
    return next((one.status for one in verdict.checks if one.id == check), None)


def check_of(verdict: Verdict, check: str) -> Check:
    """The check with this id."""
    return next(one for one in verdict.checks if one.id == check)


def missing(verdict: Verdict) -> set[str]:
    """The flows that coverage lists."""
    return {one.flow for one in verdict.coverage.missing}
