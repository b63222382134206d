"""perch.raw/1 -> perch.raw/2: a host's folder of files for each flow as lines of two files."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from perch.model.moments import moment
from perch.model.raw_lines import SCHEMA

Document = dict[str, Any]

_encode = msgspec.json.encode


def _line(file: BinaryIO, **members: Any) -> None:
    file.write(_encode({key: one for key, one in members.items() if one is not None}) + b"\n")


class HostFiles:
    """flows.jsonl and samples.jsonl of one walk of a host."""

    def __init__(self, folder: Path, agent: Document) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._agent, self._done, self._samples = agent, 0, 0
        self._layout: Document = {}
        self._flows_file = (folder / "flows.jsonl").open("wb")
        self._samples_file = (folder / "samples.jsonl").open("wb")
        head = {"kind": "head", "schema": SCHEMA, "host": agent["host"], "run": agent["run"]}
        head["plan_sha256"] = agent["plan_sha256"]
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
            monotonic_ns=int(float(reading["time_s"]) * 1e9),
            settled=True,
            values=" ".join(value for _, _, table in tables for value in table.values()),
        )
        return self._samples

    def end(self, end: Document, stdout: bytes = b"", stderr: bytes = b"") -> None:
        """One end of a flow, as client.json or server.json has it."""
        counters = end.get("counters")
        samples = counters and [self.sample(counters[name]) for name in ("before", "after")]
        begun = moment(end.get("started"))
        started_ns = None if begun is None else int(begun * 1e9)
        lasted = end.get("elapsed_s")
        _line(
            self._flows_file,
            kind="flow",
            id=end["flow"],
            role=end["role"],
            state=end["state"],
            message=end.get("message"),
            argv=end.get("argv"),
            exit=end.get("exit"),
            signal=end.get("signal"),
            timed_out=end.get("timed_out") or None,
            started=end.get("started"),
            started_monotonic_ns=started_ns,
            ended=end.get("ended"),
            ended_monotonic_ns=started_ns and lasted and started_ns + round(lasted * 1e9),
            samples=samples,
            route_interface=counters and counters.get("route_interface"),
            stdout=stdout.decode() or None,
            stderr=stderr.decode() or None,
        )
        self._done += 1

    def close(self) -> None:
        agent = self._agent
        if agent["state"] != "running":
            last = {"state": agent["state"], "flows_done": self._done, "ended": agent["ended"]}
            _line(self._flows_file, kind="end", **last, message=agent.get("message"))
        self._flows_file.close()
        self._samples_file.close()


def convert(root: Path) -> None:
    """All hosts of a run. The files that a host had for each flow are gone then."""
    plan = hashlib.sha256((root / "plan.json").read_bytes()).hexdigest()
    for folder in sorted((root / "raw").iterdir()):
        for walk in (folder, folder / "retry"):
            if (walk / "agent.json").is_file():
                _convert_walk(walk, plan)


def _convert_walk(walk: Path, plan: str) -> None:
    """`plan`: SHA-256 of the plan, which older agents did not write."""
    agent = {"plan_sha256": plan} | json.loads((walk / "agent.json").read_text())
    files = HostFiles(walk, agent)
    environment = walk / "environment.json"
    if environment.is_file():
        document = json.loads(environment.read_text()) | {"schema": "perch.environment/2"}
        idle = document.pop("idle", None)
        ends = list(walk.rglob("*.json"))
        interface = (idle or {}).get("address_interface") or _interface(ends)
        document |= {"address_interface": interface, "run": agent["run"]}
        if idle:
            document["idle_samples"] = [files.sample(idle[one]) for one in ("before", "after")]
        environment.write_bytes(_encode(document) + b"\n")
    found = [
        (json.loads(path.read_text()), path)
        for name in ("client", "server")
        for path in (walk / "flows").rglob(f"{name}.json")
    ]
    for end, path in sorted(found, key=lambda one: one[0].get("started") or ""):
        outputs = (path.with_suffix(name) for name in (".stdout", ".stderr"))
        files.end(end, *(one.read_bytes() if one.is_file() else b"" for one in outputs))
    files.close()
    (walk / "agent.json").unlink()
    shutil.rmtree(walk / "flows", ignore_errors=True)


def _interface(ends: list[Path]) -> str:
    for path in ends:
        counters = json.loads(path.read_text()).get("counters")
        if counters and counters.get("address_interface"):
            return str(counters["address_interface"])
    return ""
