"""A soak's life on a host: `perch serve`, the samples, and turn after turn the keepers.

A soak has no meetings and no lease: the plan and its start tell each agent what to run. Keepers
(`perch lat|bw --soak`) try again while the other end is not there. The agent starts a process again
that has ended. After a crash or a boot it continues from its raw files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from perch.agent import serving
from perch.agent.children import Ended, Process, end
from perch.agent.clock import Clock
from perch.agent.errors import AgentError
from perch.agent.listening import members
from perch.agent.raw import Result
from perch.agent.share import ROUND_GRACE, Flow, Share
from perch.agent.soak_raw import Since, SoakRaw, soak_end
from perch.agent.soak_samples import Group
from perch.agent.walk import ran

#: Seconds before what has ended is started again: doubled from the first to the last, as the
#: engine's own (BACK_OFF_FIRST_NS and BACK_OFF_LAST_NS of engine/src/cli/soak.c), and the first
#: again after it has lived for as long as the last.
RESTART_FIRST, RESTART_LAST = 0.2, 5.0

#: Seconds that a server stays without a client after the last turn: a keeper elsewhere may be
#: between two attempts, at most RESTART_LAST apart. Where all are stopped, the controller has 10 s.
LINGER, LINGER_STOPPED = 6.0, 2.0

#: Seconds without a client after which a server that was stopped may go.
QUIET_STOPPED = 0.5

#: Seconds that keepers have to end in; they take one (docs/soak.md).
KEEPERS_END = 3.0

#: Seconds between two looks: nothing reports that a client has gone, or that the host has slept.
LOOK_EVERY, WAKE_EVERY = 0.5, 60.0

#: Exit codes of the engine: no connection, and this host cannot.
UNREACHED, CANNOT = 4, 3


class Starts(Protocol):
    def start(
        self, argv: Sequence[str], *, is_server: bool = False, folder: Path | None = None
    ) -> Process: ...


class Samples(Protocol):
    groups: Callable[[], list[Group]]

    async def take(self) -> int: ...
    async def before(self) -> int: ...
    async def after(self) -> int: ...


class Tools(NamedTuple):
    """What a soak works with; a test has its own. `members`: the processes of each group."""

    children: Starts
    serve: Callable[[], Awaitable[Process]]
    samples: Samples
    clock: Clock
    members: Callable[[], dict[int, list[int]]] = members


class _Delays:
    """How long to wait before what has ended is started again."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._s, self._since = clock, 0.0, clock.monotonic()

    async def wait(self) -> None:
        lived_s = self._clock.monotonic() - self._since
        longer = self._s * 2 if self._s and lived_s < RESTART_LAST else RESTART_FIRST
        self._s = min(longer, RESTART_LAST)
        await asyncio.sleep(self._s)
        self._since = self._clock.monotonic()


class Soak:
    """`serve`: the first server, where it runs already."""

    def __init__(
        self, share: Share, raw: SoakRaw, at: Since, tools: Tools, serve: Process | None = None
    ) -> None:
        self._share, self._raw, self._at, self._tools = share, raw, at, tools
        self._soak: dict[str, Any] = share.document["soak"]
        self._running: dict[str, Process] = {}
        self._serve = serve
        tools.samples.groups = self._groups

    def _groups(self) -> list[Group]:
        serve = [] if self._serve is None else [("serve", "", self._serve.pid)]
        return serve + [("keeper", key, one.pid) for key, one in self._running.items()]

    def passed(self) -> float:
        """Seconds of the soak; below 0 before it."""
        uptime = self._tools.clock.uptime_ns() / 1e9
        return self._at.passed_s + uptime - self._at.uptime_s

    async def run(self) -> None:
        """To the end of its time."""
        duration: float = self._soak["duration_s"]
        tasks = [asyncio.ensure_future(one) for one in (self._sampling(), self._serving())]
        try:
            at = 0.0
            turns = list(self._share.turns())
            for number, (long, flows) in enumerate(turns, start=1):
                await self._until(at)
                late = self.passed() > at + self._share.window_s
                until = (at if late else self.passed()) + long
                await self._turn(flows, until, is_last=number == len(turns))
                at += long
            await self._until(duration)
            await self._linger(LINGER, duration + self._share.window_s + ROUND_GRACE)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _until(self, passed_s: float) -> None:
        while (left := passed_s - self.passed()) > 0:
            await asyncio.sleep(min(left, WAKE_EVERY))

    # ---- the host's own --------------------------------------------------------------------------

    async def _serving(self) -> None:
        """A server that ended is started again: the keepers elsewhere note the gap."""
        delays, why = _Delays(self._tools.clock), ""
        while True:
            try:
                if self._serve is None:
                    self._serve = await self._tools.serve()
                if why:
                    self._raw.episode("serve_restarted", "perch serve was started again")
                await asyncio.wait({self._serve.ended})
                why = serving.why(self._share.host, self._serve)
            except AgentError as error:
                why = error.message
            self._serve = None
            self._raw.episode("serve_ended", why)
            await delays.wait()

    async def _sampling(self) -> None:
        interval: float = self._soak["interval_s"]
        while True:
            passed = self.passed()
            await self._until(0.0 if passed < 0 else (passed // interval + 1) * interval)
            await self._tools.samples.take()

    async def _linger(self, quiet_s: float, until: float) -> None:
        """Until `perch serve` has had no client for so long, or so much has passed."""
        quiet = 0.0
        while (serve := self._serve) and quiet < quiet_s and self.passed() < until:
            await asyncio.sleep(LOOK_EVERY)
            alone = len(self._tools.members().get(serve.pid, [])) < 2
            quiet = quiet + LOOK_EVERY if alone else 0.0

    # ---- turns -----------------------------------------------------------------------------------

    async def _turn(self, flows: Sequence[Flow], until: float, is_last: bool) -> None:
        """All clients of a turn start at once."""
        flows = [one for one in flows if (one.id, one.role) not in self._raw.past.done]
        if not flows:
            return
        sample = await self._tools.samples.before()
        servers = [one for one in flows if one.role == "server"]
        for one in servers:
            self._raw.begin(one, sample, self.passed())
        clients = [one for one in flows if one.role == "client"]
        await asyncio.gather(*(self._client(one, until, sample) for one in clients))
        if servers and not is_last:  # in the last one others may still measure with this host
            await self._until(until)
            await asyncio.gather(*(self._write(one, Result("done")) for one in servers))

    async def _client(self, flow: Flow, until: float, sample: int) -> None:
        found, reason = soak_end(self._raw.file(flow)), ""
        if found.isdecimal():
            reason = "its agent ended before it kept the exit code; this is the record's"
        elif found == "none" and self.passed() >= until:
            reason = f"no agent ran on {self._share.host} in its turn"
        if reason:
            return await self._write(flow, self._raw.left(flow, reason))
        self._raw.begin(flow, sample, self.passed())
        return await self._write(flow, await self._kept(flow, until))

    async def _kept(self, flow: Flow, until: float) -> Result:
        """Runs its keeper, again and again where that helps."""
        delays, gives_up = _Delays(self._tools.clock), self.passed() + self._share.window_s
        while True:
            result = await self._keeper(flow, until)
            found, ended = soak_end(self._raw.file(flow)), result.ended or Ended(None, None)
            # a signal that this agent did not send is a crash: the file goes on
            is_over = result.timed_out or found.isdecimal() or self.passed() >= until
            crashed = f"ended by signal {ended.signal}" if ended.signal and not is_over else ""
            # after a boot an address or a device may not be there yet
            is_early = result.process is None or (ended.exit == CANNOT and self._raw.past.start)
            is_silent = ended.exit == UNREACHED
            if not crashed and (found != "none" or not (is_early or is_silent)):
                return result
            if not crashed and self.passed() >= gives_up:
                why = f"no connection within {self._share.window_s} s: {result.message}"
                return Result("peer_dead", why) if is_silent else result
            if not is_silent:
                why = crashed or f"cannot run yet: {result.message}"
                message = f"{flow.id} {why}; it is started again"
                self._raw.episode("client_restarted", message, flow.id)
            await delays.wait()

    async def _keeper(self, flow: Flow, until: float) -> Result:
        limit_s = max(0.0, until - self.passed()) + self._share.window_s + ROUND_GRACE
        folder = self._raw.file(flow).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            process = self._tools.children.start(flow.argv, is_server=True, folder=folder)
        except OSError as error:  # a full disk has not even room for its folder
            why = f"cannot start {flow.argv[0]} in {folder}: {error.strerror}"
            return Result("not_run", why)
        self._running[flow.id] = process
        result = await ran(process, limit_s)
        del self._running[flow.id]
        return result

    async def _write(self, flow: Flow, result: Result) -> None:
        has_begun = (flow.id, flow.role) in self._raw.past.begun
        after = await self._tools.samples.after() if has_begun else None
        self._raw.outcome(flow, result, after)

    # ---- the end ---------------------------------------------------------------------------------

    async def end(self, is_stopped: bool) -> tuple[dict[str, Result], int]:
        """Keepers first, while all hosts' servers are there to agree on the last interval.

        Returns what they came to, and the last sample.
        """
        ended: dict[str, Result] = {}

        async def one(key: str, process: Process) -> None:
            ended[key] = Result("done", ended=await end(process, KEEPERS_END), process=process)

        await asyncio.gather(*(one(key, process) for key, process in self._running.items()))
        if is_stopped:
            await self._linger(QUIET_STOPPED, self.passed() + LINGER_STOPPED)
        return ended, await self._tools.samples.after()
