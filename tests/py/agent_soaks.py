"""Soaks with real processes: two hosts of this machine, and what their tests ask of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from perch.agent.soak_host import runs
from tests.py.agent_hosts import ENGINE, Hosts, children_of, until
from tests.py.planned import suite_test

LOAD = suite_test(
    name="bw", kind="bandwidth", params={"size": "64K", "rate": "50Mb/s", "completion": "event"}
)
PROBE = suite_test(name="lat", params={"size": 8, "rate": "50msg/s", "completion": "event"})
BW, LAT = "bw/alpha/beta/0/1", "lat/alpha/beta/0/1"


class Soaks(Hosts):
    """Hosts with a soak each."""

    def __init__(self, folder: Path, port: int, duration: str, **more: Any) -> None:
        settings = {"interval": "1s", "stall": "500ms", "reconnect": "20s", **more}
        super().__init__(
            folder, [LOAD, PROBE], port, ("alpha", "beta"), soak=settings, soak_duration=duration
        )

    def begin(
        self, host: str, *more: str, before: Sequence[str] = (), expect: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """`before`: what runs the command."""
        words = [*self.words(host), "--supervisor", "session", *more]
        return self.call("soak-start", *words, before=before, expect=expect)

    def words(self, host: str) -> list[str]:
        words = ["--plan", f"shares/{host}.json", "--host", host, "--out", host]
        words += ["--engine", str(ENGINE), "--start-window", "15"]
        return [*words, "--state", f"{host}.state"]

    def resume(self, host: str) -> subprocess.Popen[bytes]:
        """What systemd starts after a crash or a boot; there is nothing to tell it here."""
        command = [sys.executable, "-I", str(self.agent), "soak-session", *self.words(host)]
        return subprocess.Popen(command, cwd=self.folder)

    def pid(self, host: str) -> int:
        try:
            return int((self.folder / f"{host}.state.pid").read_text().split()[0])
        except FileNotFoundError:
            raise ProcessLookupError(host) from None

    def wait(self, *hosts: str) -> None:
        """Until none of them runs, over or not."""
        states = [self.folder / f"{host}.state" for host in hosts]
        asyncio.run(until(lambda: not any(map(runs, states)), 90))

    def soak(self, command: str, host: str, expect: int = 0) -> str:
        return self.call(f"soak-{command}", "--state", f"{host}.state", expect=expect).stdout

    def told(self, host: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.soak("status", host))
        return found

    def lines(self, host: str, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.flows(host).lines if one["kind"] == kind]

    def outcome(self, host: str, flow: str, role: str = "client") -> dict[str, Any]:
        (found,) = [
            one for one in self.lines(host, "flow") if (one["id"], one["role"]) == (flow, role)
        ]
        return found

    def file(self, flow: str) -> Path:
        return self.folder / flow.split("/")[1] / "flows" / flow / "client.soak"

    def kinds(self, flow: str) -> list[str]:
        try:
            lines = self.file(flow).read_text().splitlines()
        except FileNotFoundError:
            return []
        return [json.loads(line)["kind"] for line in lines if line.endswith("}")]

    def measure(self, *flows: str) -> None:
        asyncio.run(until(lambda: all("interval" in self.kinds(one) for one in flows), 60))

    def process(self, host: str, word: str) -> int:
        """The number of a child of the agent whose command has this word."""
        (found,) = [pid for pid, words in children_of(self.pid(host)) if word in words[1:3]]
        return found

    def left(self) -> list[str]:
        """Processes of these soaks."""
        found = []
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = one.read_text()
            except OSError:
                continue
            if str(self.folder) in words or f"\0{self.port}\0" in words:
                found.append(words)
        return found


@pytest.fixture
def soaks(tmp_path: Path, free: Callable[[], int]) -> Iterator[Callable[..., Soaks]]:
    made: list[Soaks] = []

    def make(duration: str = "60s", **more: Any) -> Soaks:
        made.append(Soaks(tmp_path, free(), duration, **more))
        return made[-1]

    yield make
    for one in made:
        for host in one.names:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid(host), signal.SIGKILL)
