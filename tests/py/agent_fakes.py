"""Fakes for the agent: a clock that jumps to the next event, children, meetings, readings."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from perch.agent.children import Capture, Ended, Process
from perch.agent.clock import Clock
from perch.agent.meetings import Answer, Place
from perch.agent.place import Places
from perch.agent.share import Share

T = TypeVar("T")

CAME = Answer(0, "")
NOBODY = Answer(4, "1 of 2 parties came")
SILENT = Answer(4, "cannot connect")


class FakeLoop(asyncio.SelectorEventLoop):
    """Time passes only where all wait, and then at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None = None) -> Any:
            assert timeout is not None, "everybody waits for ever"
            self.now += timeout
            return select(0)

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self.now


class FakeClock(Clock):
    """The loop's time; the wall clock is a day ahead."""

    def boot(self) -> str:
        return "boot"

    def monotonic_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * 1e9)

    def wall_ns(self) -> int:
        return self.monotonic_ns() + 86400 * 10**9

    def uptime_ns(self) -> int:
        return self.monotonic_ns()


class JumpingClock(FakeClock):
    """Its wall clock is set an hour ahead, and back again, each time that it is read."""

    def __init__(self) -> None:
        self._jump_s = 3600

    def wall_ns(self) -> int:
        self._jump_s = -self._jump_s
        return super().wall_ns() + self._jump_s * 10**9


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs it in no time; its clock begins at 1000 s."""
    loop = FakeLoop()
    try:
        return loop.run_until_complete(work())
    finally:
        loop.close()


def now() -> float:
    return asyncio.get_running_loop().time() - 1000


def settle(asked: asyncio.Future[Answer], answer: Answer) -> None:
    """As the real ones: who has left is not answered."""
    if not asked.done():
        asked.set_result(answer)


class Script(NamedTuple):
    """What a child does: after so many seconds it has written this and ends so."""

    seconds: float = 0.1
    ended: Ended = Ended(0, None)
    stdout: bytes = b""
    stderr: bytes = b""
    ignores: tuple[int, ...] = ()


class FakeProcess(Process):
    def __init__(self, script: Script) -> None:
        super().__init__(0, Capture(100), Capture(100))
        self.script = script
        self.sent: list[int] = []
        self.stdout.add(script.stdout)
        self.stderr.add(script.stderr)
        asyncio.get_running_loop().call_later(script.seconds, self._end, script.ended)

    def send(self, number: int) -> None:
        self.sent.append(number)
        if number not in (*self.script.ignores, signal.SIGCONT):
            self._end(Ended(None, signal.Signals(number).name[3:]))

    def _end(self, ended: Ended) -> None:
        if not self.ended.done():
            self.ended.set_result(ended)


class World:
    """Everything around a walk. `log`: what it did, in order, with the second of each.

    meetings: by name or the end of it, what becomes of it and after how many seconds; probes are
    answered by `probe`. A meeting that is not named never takes place.
    """

    def __init__(
        self,
        meetings: dict[str, tuple[float, Answer]] | None = None,
        probe: Answer = CAME,
        scripts: Sequence[Script] = (),
        listens: bool = True,
    ) -> None:
        self.log: list[str] = []
        self.times: list[float] = []
        self.lines: list[dict[str, Any]] = []
        self.started: list[FakeProcess] = []
        self.cpus: list[list[int]] = []
        self.places = Places(allowed=[])
        self.reading_s = 0.0  # that the reading after a flow takes
        self.meetings = meetings or {}
        self.probe = probe
        self.answers = True  # whether this host's `perch meet` does, of probes
        self._scripts: Iterator[Script] = iter(scripts)
        self._listens = listens
        self._number = 0

    def say(self, what: str) -> None:
        self.log.append(what)
        self.times.append(now())

    def ask(
        self, place: Place, name: str, timeout_s: float, parties: int = 2
    ) -> asyncio.Future[Answer]:
        kind = name.rpartition("/")[2]
        delay, answer = timeout_s, NOBODY
        if parties == 1:
            delay, answer = 0.0 if self.answers else 1e9, self.probe
        else:
            self.say(f"ask {kind}")
            delay, answer = self.meetings.get(name, self.meetings.get(kind, (delay, answer)))
        loop = asyncio.get_running_loop()
        asked: asyncio.Future[Answer] = loop.create_future()
        loop.call_later(delay, settle, asked, answer)
        return asked

    async def close(self) -> None:
        self.say("close")
        self.answers = True

    def start(self, argv: Sequence[str], *, cpus: Sequence[int] = ()) -> Process:
        self.say(f"start {argv[0]}")
        self.cpus.append(list(cpus))
        self.started.append(FakeProcess(next(self._scripts)))
        return self.started[-1]

    def disturb(self) -> None:
        pass

    async def before(self) -> int:
        return self._read("before")

    async def after(self) -> int:
        number = self._read("after")
        await asyncio.sleep(self.reading_s)
        return number

    async def followed(self) -> int:
        return await self.after()

    def _read(self, which: str) -> int:
        self.say(which)
        self._number += 1
        return self._number

    def listening(self, process: Process, port: int, limit_s: float) -> Awaitable[bool]:
        async def answer() -> bool:
            return self._listens

        return answer()


def share_of(
    host: str,
    flows: int = 1,
    client: list[str] | None = None,
    server: list[str] | None = None,
    rails: int = 1,
) -> Share:
    """Rounds of a flow a rail, from alpha to beta; each has a deadline of 30 s."""
    hosts = {
        name: {
            "address": f"127.0.0.{number}",
            "port": 18600,
            "tool_ports": {"iperf3": 5201},
            "devices": [{"name": f"rail{rail}"} for rail in range(rails)],
        }
        for number, name in enumerate(("alpha", "beta"), start=1)
    }
    test = {
        "title": "T",
        "tool": "iperf3",
        "kind": "bandwidth",
        "forms": {"1": {"client": client or ["cat", "-u"], "server": server or []}},
    }
    rounds = [
        {
            "estimate_s": 2.5,
            "deadline_s": 30,
            "size": rails,
            "flows": [[rail, "t", "alpha", "beta", rail, number + 1, []] for rail in range(rails)],
        }
        for number in range(flows)
    ]
    head = {"schema": "perch.share/1", "run": "r", "plan_sha256": "0" * 64, "host": host}
    return Share({**head, "hosts": hosts, "tests": {"t": test}, "rounds": rounds}, "engine", 15)


def counted(layout: dict[str, Any], values: str) -> dict[str, Any]:
    """A sample's values by the names of its layout, of which each has one."""
    words = iter(values.split(" "))

    def named(names: list[str]) -> dict[str, str]:
        return {name: next(words) for name in names}

    found: dict[str, Any] = {"host": named(layout["host"])}
    found["netdev"] = {key: named(names) for key, names in layout["netdev"].items()}
    for of in ("rdma", "cxi"):
        found[of] = {
            key: {"netdev": port["netdev"], "counters": named(port["counters"])}
            for key, port in layout[of].items()
        }
    assert next(words, None) is None
    return found


def laid_out(root: Path, files: Mapping[str, str]) -> Path:
    """Writes files with these texts below a folder, and returns it."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root
