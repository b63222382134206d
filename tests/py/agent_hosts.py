"""Agents with real processes: hosts of a plan on this machine, and what they run in."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from perch.agent.children import Children, Keeper
from perch.agent.files import Read, read_lines
from perch.plan import rounds, share
from setup import zipapp
from tests.py.planned import planned, suite_test

TOP = Path(__file__).parents[2]
ENGINE = TOP / "engine/build/perch"

#: Marks modules that need it.
BUILT = pytest.mark.skipif(
    not ENGINE.exists(), reason="NOT TESTED: engine/build/perch is not built (make engine)"
)

T = TypeVar("T")

QUICK = {"params": {"size": "8:16", "duration": "100ms"}}
LONG = {"params": {"size": 8, "duration": "60s"}}


def gone(pid: int) -> bool:
    """A zombie has ended; its parent here may be slow to collect it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    except OSError:
        return True


async def until(condition: Callable[[], object], limit_s: float = 20) -> None:
    async def look() -> None:
        while not condition():
            await asyncio.sleep(0.02)

    await asyncio.wait_for(look(), limit_s)


def children_of(pid: int) -> list[tuple[int, list[str]]]:
    """Number and command of each."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (one / "stat").read_text().rpartition(") ")[2].split()
            if int(fields[1]) == pid:
                found.append((int(one.name), (one / "cmdline").read_text().split("\0")[:-1]))
    return found


def child(pid: int, word: str) -> int:
    """The one child whose command has this word."""
    (found,) = [number for number, command in children_of(pid) if word in command[1:]]
    return found


def with_children(work: Callable[[Children], Awaitable[T]]) -> T:
    async def run() -> T:
        children = Children(Keeper())
        try:
            return await asyncio.wait_for(work(children), 30)
        finally:
            await children.end_all()

    return asyncio.run(run())


class Hosts:
    """Hosts of a plan on this machine, with their shares of it."""

    def __init__(
        self,
        folder: Path,
        tests: list[dict[str, Any]],
        port: int,
        names: Sequence[str],
        **soak: Any,
    ) -> None:
        """`soak`: settings and soak_duration of one."""
        self.names = names
        self.port = port
        self.folder = folder
        self.agent = folder / "perch-agent"
        self.agent.write_bytes(zipapp.packed())
        inventory = {
            name: {
                "perch_address": f"127.0.0.{number}",
                "perch_fabric": "loopback",
                "perch_backends": ["tcp"],
                "perch_port": port,
            }
            for number, name in enumerate(names, start=1)
        }
        plan = planned(tests, inventory, **soak)
        lines = list(rounds.lines(plan))
        document = rounds.plan_document(plan, b"".join(map(rounds.text, lines)))
        text = msgspec.json.encode(document)
        (folder / "plan.json").write_bytes(text)
        (folder / "rounds.jsonl").write_bytes(b"".join(map(rounds.text, lines)))
        share.write(folder / "shares", share.shares(document, text, lines))

    def call(
        self, *words: str, before: Sequence[str] = (), expect: int = 0
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*before, sys.executable, "-I", str(self.agent), *words],
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=60,
        )
        assert done.returncode == expect, done.stderr
        return done

    def start(self, host: str, *more: str, expect: int = 0) -> str:
        words = ["--plan", f"shares/{host}.json", "--host", host, "--out", host]
        window = ["--engine", str(ENGINE), "--start-window", "15"]
        return self.call("start", *words, *window, *more, expect=expect).stderr

    def status(self, host: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.call("status", "--out", host).stdout)
        return found

    def pid(self, host: str) -> int:
        return int((self.folder / host / "control/pid").read_text().split()[0])

    def wait(self, *hosts: str) -> None:
        asyncio.run(until(lambda: all(gone(self.pid(host)) for host in hosts), 90))

    def flows(self, host: str) -> Read:
        return read_lines(self.folder / host / "flows.jsonl")

    def samples(self, host: str) -> Read:
        return read_lines(self.folder / host / "samples.jsonl")


def began(both: Hosts, host: str, flow: str) -> Callable[[], bool]:
    """Whether its command runs."""
    return lambda: (
        f'"start","flow":"{flow}/' in (both.folder / host / "control/progress.jsonl").read_text()
        and any("lat" in command for _, command in children_of(both.pid(host)))
    )


@pytest.fixture
def free() -> Iterator[Callable[[], int]]:
    """Ports that are free for 127.0.0.1 and its neighbours."""
    held = []

    def port() -> int:
        one = socket.socket()
        one.bind(("", 0))
        held.append(one)
        number: int = one.getsockname()[1]
        one.close()
        return number

    yield port


@pytest.fixture
def hosts(tmp_path: Path, free: Callable[[], int]) -> Iterator[Callable[..., Hosts]]:
    """Of tests: their agents are ended with the test."""
    made: list[Hosts] = []

    def make(*tests: dict[str, Any], names: Sequence[str] = ("alpha", "beta")) -> Hosts:
        named = [suite_test(name=f"t{n}", **one) for n, one in enumerate(tests, start=1)]
        made.append(Hosts(tmp_path, named, free(), names))
        return made[0]

    yield make
    for one in made:
        for host in one.names:
            with contextlib.suppress(OSError, ValueError, ProcessLookupError):
                if not gone(one.pid(host)):
                    os.kill(one.pid(host), signal.SIGKILL)


@pytest.fixture(scope="module")
def within() -> list[str]:
    """What runs a command where it may mount file systems."""
    words = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*words, "mount", "-t", "tmpfs", "t", "/mnt"], timeout=10).returncode != 0:
        pytest.skip("NOT TESTED: no user namespaces here")
    return words
