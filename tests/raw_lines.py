"""perch.raw/2 as documents: what an agent leaves, which tests compose, read and edit.

An end of a flow is its line with the two readings around it: `counters{before,after,
route_interface}` in the place of `samples`. Its `elapsed_s` is that of its monotonic clock. A
reading has a table for the host and for each device. An agent is what its first line and its last
one say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from perch.model.moments import moment
from perch.model.raw_lines import SCHEMA

Document = dict[str, Any]
Change = Callable[[Document], object]

FLOWS, SAMPLES = "flows.jsonl", "samples.jsonl"
#: The readings before and after a flow.
BOTH = ("before", "after")
#: Of a flow's line, in its order.
MEMBERS = (
    "id", "role", "state", "message", "argv", "exit", "signal", "timed_out", "placement",
    "started", "started_monotonic_ns", "ended", "ended_monotonic_ns", "samples",
    "route_interface", "stdout", "stderr", "stdout_bytes", "stderr_bytes",
)  # fmt: skip

_encode = msgspec.json.encode


def _line(file: BinaryIO, **members: Any) -> None:
    file.write(_encode({key: one for key, one in members.items() if one is not None}) + b"\n")


class HostFiles:
    """Writes flows.jsonl and samples.jsonl of one walk of a host."""

    def __init__(self, folder: Path, agent: Document) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._agent, self._done, self._samples = agent, 0, 0
        self._layout: Document = {}
        self._flows_file = (folder / FLOWS).open("wb")
        self._samples_file = (folder / SAMPLES).open("wb")
        head = {"kind": "head", "schema": agent.get("schema", SCHEMA), "run": agent["run"]}
        head |= {"plan_sha256": agent["plan_sha256"], "host": agent["host"]}
        more = {"flows": agent["flows_total"], "started": agent["started"]}
        _line(self._flows_file, **head, **more)
        _line(self._samples_file, **head)

    def sample(self, reading: Document) -> int:
        """The number of a reading."""
        tables = [("host", "", reading.get("host") or {})]
        tables += [("netdev", name, one) for name, one in (reading.get("netdev") or {}).items()]
        layout: Document = {"host": list(reading.get("host") or {}), "netdev": {}}
        layout["netdev"] = {name: list(one) for of, name, one in tables if of == "netdev"}
        for of in ("rdma", "cxi"):
            ports = reading.get(of) or {}
            tables += [(of, name, port["counters"]) for name, port in ports.items()]
            layout[of] = {
                name: {"netdev": port["netdev"], "counters": list(port["counters"])}
                for name, port in ports.items()
            }
        if layout != self._layout:
            self._layout = layout
            _line(self._samples_file, kind="layout", **layout)
        self._samples += 1
        _line(
            self._samples_file,
            kind="sample",
            number=self._samples,
            time_s=reading["time_s"],
            monotonic_ns=_monotonic_ns(reading),
            settled=reading.get("settled", True),
            values=" ".join(value for _, _, table in tables for value in table.values()),
        )
        return self._samples

    def end(self, end: Document, samples: list[int] | None = None) -> None:
        """One end of a flow. `samples`: numbers of its readings, if they are written already."""
        counters = end.get("counters")
        line = {
            key: end[key] for key in MEMBERS if end.get(key, "") != "" and end[key] is not False
        }
        if counters:
            line["samples"] = samples or [self.sample(counters[name]) for name in BOTH]
            line["route_interface"] = counters["route_interface"]
        if end.get("elapsed_s") is not None and (begun := _begun_ns(end)) is not None:
            lasted = round(end["elapsed_s"] * 1e9)
            line |= {"started_monotonic_ns": begun, "ended_monotonic_ns": begun + lasted}
        _line(self._flows_file, kind="flow", **{key: line.get(key) for key in MEMBERS})
        self._done += 1

    def close(self) -> None:
        agent = self._agent
        if agent["state"] != "running":
            done = agent.get("flows_done", self._done)
            last = {"state": agent["state"], "flows_done": done, "ended": agent["ended"]}
            _line(self._flows_file, kind="end", **last, message=agent.get("message"))
        self._flows_file.close()
        self._samples_file.close()


def _monotonic_ns(reading: Document) -> int:
    """Composed readings have one clock."""
    if "monotonic_ns" in reading:
        return int(reading["monotonic_ns"])
    return int(float(reading["time_s"]) * 1e9)


def _begun_ns(end: Document) -> int | None:
    if "started_monotonic_ns" in end:
        return int(end["started_monotonic_ns"])
    begun = moment(end.get("started"))
    return None if begun is None else int(begun * 1e9)


# ---- what there is -------------------------------------------------------------------------------


def _documents(path: Path) -> list[Document]:
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


class Walk:
    """What the agent left in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.samples = list(_readings(_documents(folder / SAMPLES)))
        head, *lines = _documents(folder / FLOWS)
        self.agent: Document = {
            **{key: head[key] for key in ("schema", "run", "plan_sha256", "host")},
            "flows_total": head["flows"],
            "started": head.get("started"),
            "state": "running",
        }
        self.ends: list[Document] = []
        for line in lines:
            kind = line.pop("kind")
            if kind == "end":
                self.agent |= line
            else:
                self.ends.append(self._joined(line))

    def _joined(self, line: Document) -> Document:
        numbers, interface = line.pop("samples", None), line.pop("route_interface", "")
        if numbers:
            readings = (self.samples[number - 1] for number in numbers)
            line["counters"] = dict(zip(BOTH, readings, strict=True), route_interface=interface)
        return line

    def idle(self) -> Document:
        """The readings of the host's idle time."""
        numbers = json.loads((self.folder / "environment.json").read_bytes())["idle_samples"]
        return dict(zip(BOTH, (self.samples[n - 1] for n in numbers), strict=True))

    def matching(self, flow: str = "*", role: str = "*") -> list[Document]:
        """The ends of flows and roles that match, in the order of their lines."""
        return [
            end
            for end in self.ends
            if fnmatchcase(end["id"], flow) and fnmatchcase(end["role"], role)
        ]

    def change(self, end: Document, *changes: Change) -> None:
        """Changes an end. A reading that another one replaces is replaced for other flows, too."""
        was = dict(end.get("counters") or {})
        for change in changes:
            change(end)
        counters = end.get("counters") or {}
        for name in BOTH:
            if name in counters and counters[name] is not was.get(name):
                self._replace(was.get(name), counters[name])

    def _replace(self, old: Document | None, new: Document) -> None:
        if any(one is new for one in self.samples):
            return
        if old is None:
            self.samples.append(new)
            return
        self.samples = [new if one is old else one for one in self.samples]
        for end in self.ends:
            counters = end.get("counters") or {}
            counters |= {name: new for name in BOTH if counters.get(name) is old}

    def save(self) -> None:
        files = HostFiles(self.folder, self.agent)
        numbers = {id(one): files.sample(one) for one in self.samples}
        for end in self.ends:
            counters = end.get("counters")
            files.end(end, [numbers[id(counters[name])] for name in BOTH] if counters else None)
        files.close()


def _readings(lines: list[Document]) -> Iterator[Document]:
    """The readings of samples.jsonl, with their names."""
    layout: Document = {}
    for line in lines[1:]:
        if line.pop("kind") == "layout":
            layout = line
            continue
        values = iter(line.pop("values").split())
        del line["number"]
        line["host"] = {name: next(values) for name in layout["host"]}
        line["netdev"] = {
            of: {name: next(values) for name in names} for of, names in layout["netdev"].items()
        }
        for of in ("rdma", "cxi"):
            line[of] = {
                name: {
                    "netdev": port["netdev"],
                    "counters": {one: next(values) for one in port["counters"]},
                }
                for name, port in layout[of].items()
            }
        yield line


# ---- all of a run --------------------------------------------------------------------------------


class End(NamedTuple):
    """One end of a flow in a run's folder."""

    root: Path
    flow: str
    role: str = "client"

    def _found(self) -> tuple[Walk, Document]:
        walked = walks(self.root, self.host)
        found = [(walk, end) for walk in walked for end in walk.matching(self.flow, self.role)]
        if len(found) != 1:
            raise LookupError(f"{self.root} has {len(found)} {self.role}s of {self.flow}")
        return found[0]

    @property
    def host(self) -> str:
        return self.flow.split("/")[-4 if self.role == "client" else -3]

    def document(self) -> Document:
        return self._found()[1]

    def edit(self, *changes: Change) -> None:
        walk, end = self._found()
        walk.change(end, *changes)
        walk.save()

    def remove(self) -> None:
        walk, end = self._found()
        walk.ends.remove(end)
        walk.save()

    def read(self, name: str = "stdout") -> str:
        """What it wrote."""
        return str(self.document().get(name, ""))

    def write(self, text: str, name: str = "stdout") -> None:
        """Gives it another output."""
        self.edit(lambda end: end.update({name: text}))

    def lines(self) -> list[Document]:
        """The documents of its standard output: one, or one in each line."""
        return parsed(self.read())

    def prints(self, *changes: Change) -> None:
        """Changes each document of its standard output."""
        found = self.lines()
        for document in found:
            for change in changes:
                change(document)
        self.write(printed(found))


def edit_line(root: Path, flow: str, role: str, change: Change) -> None:
    """Changes the line of one end as it stands, of a soak, too; all others stay as they are."""
    for path in (root / "raw").rglob(FLOWS):
        lines = _documents(path)
        for line in lines:
            if (line["kind"], line.get("id"), line.get("role")) == ("flow", flow, role):
                change(line)
                path.write_text(printed(lines))
                return
    raise LookupError(f"{root} has no {role} of {flow}")


def parsed(text: str) -> list[Document]:
    """A document, or one in each line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def printed(documents: list[Document]) -> str:
    return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in documents)


def walks(root: Path, host: str = "*") -> Iterator[Walk]:
    """The first walk of each host, then those of repeats."""
    for pattern in (f"raw/{host}/{FLOWS}", f"raw/{host}/retry/{FLOWS}"):
        for path in sorted(root.glob(pattern)):
            yield Walk(path.parent)


def ends(root: Path, flow: str = "*", role: str = "*", host: str = "*") -> list[End]:
    """The ends whose flow and role match, host by host in the order of their lines."""
    return [
        End(root, end["id"], end["role"])
        for walk in walks(root, host)
        for end in walk.matching(flow, role)
    ]


# ---- counters that go on -------------------------------------------------------------------------


def put(path: str, value: object) -> Change:
    """Sets a leaf by its path, such as latency_us.count."""
    *parents, key = path.split(".")

    def change(document: Document) -> None:
        at: Any = document
        for name in parents:
            at = at[int(name)] if isinstance(at, list) else at[name]
        at[int(key) if isinstance(at, list) else key] = value

    return change


def go_on(end: End, change: Change, *, since: str = "after") -> None:
    """Changes a reading of a flow's end, and all that its host read later: counters go on.

    `since`: before or after the flow. The change is of one reading, such as
    `more("rdma.mlx5_0/1.counters.link_downed", 1)`.
    """
    begin = float(end.document()["counters"][since]["time_s"])
    for walk in walks(end.root, end.host):
        for reading in walk.samples:
            if float(reading["time_s"]) >= begin:
                change(reading)
        walk.save()


def rested(walk: Walk) -> None:
    """Gives a host, whose devices stood still until its first flow, readings of an idle second."""
    first = walk.ends[0]["counters"]["before"]
    begun = float(first["time_s"])
    for reading, early in zip(walk.idle().values(), (1.5, 0.5), strict=True):
        clock = _monotonic_ns(first) - int(early * 1e9)
        reading |= first | {"time_s": f"{begun - early:.6f}", "monotonic_ns": clock}


def counts(end: End, path: str, before: int, after: int) -> None:
    """Sets what a counter showed before a flow and after it, and in all other readings of the host.

    `path`: such as rdma.mlx5_0/1.counters.link_downed.
    """
    over = float(end.document()["counters"]["after"]["time_s"])
    for walk in walks(end.root, end.host):
        for reading in walk.samples:
            late = float(reading["time_s"]) >= over
            put(path, str(after if late else before))(reading)
        walk.save()


# ---- for bats ------------------------------------------------------------------------------------


def main() -> None:
    """`raw_lines show|put ROOT FLOW ROLE [NAME]`: an end as a document, or the text that it wrote.

    `put` takes it from standard input.
    """
    verb, root, flow, role, *name = sys.argv[1:]
    end = End(Path(root), flow, role)
    if verb == "show":
        print(end.read(*name) if name else json.dumps(end.document()), end="" if name else "\n")
    elif name:
        end.write(sys.stdin.read(), *name)
    else:
        new = json.load(sys.stdin)
        end.edit(lambda old: [old.clear(), old.update(new)])


if __name__ == "__main__":
    main()
