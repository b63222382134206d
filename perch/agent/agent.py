"""An agent's life: from the first file to the last line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from perch.agent import devices, environment, listening, serving, watch
from perch.agent.children import Children, Keeper, Process
from perch.agent.clock import Clock, date
from perch.agent.counters import Counters, Readings
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import Lines, Reserve, encoded, write_whole
from perch.agent.meetings import Meetings
from perch.agent.peers import Peers
from perch.agent.place import Places
from perch.agent.raw import Raw
from perch.agent.share import Share
from perch.agent.walk import Tools, Walk

#: Seconds of the idle baseline: what the devices carry while nothing is measured.
IDLE_SECONDS = 1.0

SYNC_EVERY = 1.0


class Settings(NamedTuple):
    """`lease_s`: seconds without the controller after which the agent ends; 0: no bound.

    `follow_s`: seconds for which a client's counters are read again and again after each flow.
    """

    out: Path
    engine: str
    token_file: str
    lease_s: float
    start_window_s: float
    follow_s: float = 0

    @property
    def control(self) -> Path:
        return self.out / "control"


class Life:
    """What the agents of a run and of a soak have in common.

    `ready` is called once this host serves.
    """

    def __init__(self, share: Share, settings: Settings, ready: Callable[[], None]) -> None:
        self._share = share
        self._settings = settings
        self._ready = ready
        self._clock = Clock()
        token = {"PERCH_TOKEN_FILE": settings.token_file} if settings.token_file else {}
        self._children = Children(Keeper(), {**os.environ, **token})

    async def run(self) -> Exit:
        raise NotImplementedError

    async def _serve(self) -> Process:
        """Raises AgentError: it cannot."""
        settings = self._settings
        return await serving.start(self._children, self._share, settings.engine, settings.control)

    async def _environment(self) -> dict[str, Any]:
        return await environment.collect(
            self._children, self._share, self._settings.engine, self._clock
        )

    def _keep(self, environment: dict[str, Any]) -> None:
        write_whole(self._settings.out / "environment.json", encoded(environment))

    async def _roads(self) -> tuple[str, dict[str, str], list[str]]:
        """The interface of this host's address, that to each peer, and devices to be read."""
        share = self._share
        own, routes = await devices.roads(self._children, share.address, share.peers())
        return own, routes, [own, *routes.values(), *share.devices(), *share.devices("netdev")]


class Agent(Life):
    def __init__(self, share: Share, settings: Settings, ready: Callable[[], None]) -> None:
        super().__init__(share, settings, ready)
        self._reserve = Reserve(settings.control / "reserve")
        try:
            self._progress = Lines(settings.control / "progress.jsonl")
            self._raw = Raw(settings.out, share, self._clock)
        except AgentError:
            self._reserve.release()
            raise
        self._walk: Walk | None = None

    async def run(self) -> Exit:
        say(f"{self._share.host} walks {self._share.own} flows, at most {self._share.limit_s:g} s")
        lease, limit = self._settings.control / "lease", self._share.limit_s
        abandoned = watch.until_abandoned(lease, self._settings.lease_s, limit, self._clock)
        code, reason = await until_ended(self._measure(), self._raw, self._stop, abandoned)
        return await self._end(Exit.INTERNAL if code is Exit.CRASHED else code, reason)

    async def _end(self, code: Exit, reason: str | None) -> Exit:
        """Children first, then the last line."""
        await self._children.end_all()
        self._reserve.release()
        with contextlib.suppress(AgentError):
            if code is Exit.WALKED:
                say(f"{self._share.host} is done: {self._raw.done} flows")
                self._raw.end("done")
            else:
                lost = self._raw.again()
                if lost:
                    reason = f"{reason}. The reserve has no room for the result of {lost}"
                say(f"perch-agent: stopped: {reason}")
                if self._walk is not None:
                    self._walk.stopped(str(reason))
                self._raw.end("stopped", str(reason))
            return code
        return Exit.INTERNAL

    def _stop(self, number: int) -> str:
        return reason_of(self._settings.control) or "a signal ended the agent"

    def _tell(self, event: dict[str, Any]) -> None:
        self._progress.write({"time": date(self._clock.wall_ns()), **event})

    async def _measure(self) -> None:
        share, engine = self._share, self._settings.engine
        loop = asyncio.get_running_loop()
        everyone_by = loop.time() + self._settings.start_window_s
        serving.require(engine, share.host)
        found = await self._environment()
        self._keep(found)
        serve = await self._serve()
        self._ready()
        own, routes, wanted = await self._roads()
        counters = Counters(devices.find(wanted), self._children, self._clock)
        readings = Readings(counters, self._raw, self._clock, self._settings.follow_s)
        found["address_interface"] = own
        if own != "lo":  # over loopback counters prove nothing
            found["idle_samples"] = await _idle(readings)
        self._keep(found)
        places = Places()
        meetings = Meetings(self._children, engine, sys.stderr.fileno())
        tools = Tools(
            self._children,
            Peers(meetings, share.host, everyone_by, serving.ended(share.host, serve)),
            readings,
            self._raw,
            self._clock,
            self._listening,
            routes,
            lambda wishes: places.seats([one._replace(device=one.device or own) for one in wishes]),
            self._tell,
        )
        self._walk = Walk(share, tools)
        await self._walk.run()

    async def _listening(self, process: Process, port: int, limit_s: float) -> bool:
        return await listening.until_listening(self._children, process, port, limit_s)


def reason_of(control: Path) -> str:
    """The reason of a request to end; "" where none was given."""
    try:
        return (control / "reason").read_text().strip()
    except OSError:
        return ""


async def _synced(raw: Raw) -> None:
    while True:
        await asyncio.sleep(SYNC_EVERY)
        raw.sync()


async def until_ended(
    measure: Awaitable[Any], raw: Raw, stop: Callable[[int], str], *bounds: Awaitable[str]
) -> tuple[Exit, str | None]:
    """How an agent ends, and why: it has measured, a bound is reached, it fails, or by a signal.

    stop: the reason of a signal.
    """
    loop = asyncio.get_running_loop()
    told: asyncio.Future[str] = loop.create_future()

    def heed(number: int) -> None:
        if not told.done():
            told.set_result(stop(number))

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, heed, number)
    every: list[Awaitable[Any]] = [measure, told, _synced(raw), *bounds]
    tasks = [asyncio.ensure_future(one) for one in every]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    ended = next(one for one in tasks if one.done())
    try:
        reason = ended.result()
        code = Exit.WALKED if ended is tasks[0] else Exit.STOPPED
    except AgentError as error:
        code, reason = error.code, error.message
    except Exception as error:  # whatever it is, what was measured is kept
        code, reason = Exit.CRASHED, f"the agent failed: {error!r}"
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return code, reason


async def _idle(readings: Readings) -> list[int]:
    """Peers may measure already, but not with this host."""
    before = await readings.before()
    await asyncio.sleep(IDLE_SECONDS)  # a measurement of nothing has no event to wait for
    return [before, await readings.after()]
