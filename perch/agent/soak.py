"""A soak's life on a host: `perch serve`, the samples, and turn after turn the keepers.

A soak has no meetings and no lease: the plan and its start tell each agent what to run. Keepers
(`perch lat|bw --soak`) try again while the other end is not there. The agent starts a process again
that has ended. After a crash or a boot it continues from its raw files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from perch.agent import serving
from perch.agent.children import Ended, Process, end
from perch.agent.clock import Clock
from perch.agent.errors import AgentError, say
from perch.agent.listening import members
from perch.agent.raw import Result
from perch.agent.share import ROUND_GRACE, Flow, Share
from perch.agent.soak_raw import Since, SoakRaw
from perch.agent.walk import ran

#: Seconds before what has ended is started again: no busy loop, and short beside a gap.
RESTART_AFTER = 1.0

#: Seconds that a server stays without a client after the last turn: a keeper elsewhere may be
#: between two attempts, at most 5 s apart (BACK_OFF_LAST_NS of engine/src/cli/soak.c). Where all
#: are stopped, the controller has 10 s.
LINGER, LINGER_STOPPED = 6.0, 2.0

#: Seconds without a client after which a server that was stopped may go.
QUIET_STOPPED = 0.5

#: Seconds that keepers have to end in; they take one (docs/soak.md).
KEEPERS_END = 3.0

#: Seconds between two looks: nothing reports that a client has gone, or that the host has slept.
LOOK_EVERY, WAKE_EVERY = 0.5, 60.0

#: Exit codes of the engine without a connection, and of one whose device is not there yet, as after
#: a boot; None of one that cannot be started, as on a full disk.
UNREACHED, EARLY = 4, (4, 3, None)

#: The key of `perch serve` among the processes that run.
SERVE = ""


class Tools(NamedTuple):
    """What a soak works with; a test has its own.

    `take`, `after`: a sample, and one once the slowest counter shows what has passed. `running`:
    `perch serve`, and the keepers by their flows. `members`: the processes of each group.
    """

    start: Callable[..., Process]
    serve: Callable[[], Awaitable[Process]]
    take: Callable[[], Awaitable[int]]
    after: Callable[[], Awaitable[int]]
    clock: Clock
    running: dict[str, Process]
    members: Callable[[], dict[int, list[int]]] = members


class Soak:
    def __init__(self, share: Share, raw: SoakRaw, at: Since, tools: Tools) -> None:
        self._share, self._raw, self._at, self._tools = share, raw, at, tools
        self._running = tools.running

    def passed(self) -> float:
        """Seconds of the soak; below 0 before it."""
        return self._at.passed(self._tools.clock)

    async def run(self) -> None:
        """To the end of its time."""
        tasks = [asyncio.ensure_future(one) for one in (self._sampling(), self._serving())]
        try:
            at, turns = 0.0, list(self._share.turns())
            for number, (long, flows) in enumerate(turns, start=1):
                await self._until(at)
                is_late = self.passed() > at + self._share.window_s  # this host was away
                until = (at if is_late else self.passed()) + long
                if self.passed() < until:
                    await self._turn(flows, until, is_last=number == len(turns))
                at += long
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _until(self, passed_s: float) -> None:
        while (left := passed_s - self.passed()) > 0:
            await asyncio.sleep(min(left, WAKE_EVERY))

    async def _serving(self) -> None:
        """A server that ended is started again: the keepers elsewhere note the gap."""
        why = ""
        while True:
            try:
                if SERVE not in self._running:
                    self._running[SERVE] = await self._tools.serve()
                    if why:
                        self._raw.episode("serve_restarted", f"{why}; it was started again")
                await asyncio.wait({self._running[SERVE].ended})
                why = serving.why(self._share.host, self._running.pop(SERVE))
            except AgentError as error:
                why = error.message
            say(why)
            await asyncio.sleep(RESTART_AFTER)

    async def _sampling(self) -> None:
        interval: float = self._share.document["soak"]["interval_s"]
        while True:
            passed = self.passed()
            await self._until(0.0 if passed < 0 else (passed // interval + 1) * interval)
            await self._tools.take()

    async def _linger(self, quiet_s: float, until: float) -> None:
        """Until `perch serve` has had no client for so long, or so much has passed."""
        quiet = 0.0
        while (serve := self._running.get(SERVE)) and quiet < quiet_s and self.passed() < until:
            await asyncio.sleep(LOOK_EVERY)
            alone = len(self._tools.members().get(serve.pid, [])) < 2
            quiet = quiet + LOOK_EVERY if alone else 0.0

    # ---- turns -----------------------------------------------------------------------------------

    async def _turn(self, flows: Sequence[Flow], until: float, is_last: bool) -> None:
        """All clients of a turn start at once. Servers' ends are over when it is."""
        flows = [one for one in flows if (one.id, one.role) not in self._raw.past.done]
        sample = await self._tools.take()
        for one in flows:
            self._raw.begin(one, sample, self.passed())
        clients = [one for one in flows if one.role == "client"]
        await asyncio.gather(*(self._client(one, until) for one in clients))
        await self._until(until)
        if is_last:  # others may still measure with this host
            await self._linger(LINGER, until + self._share.window_s + ROUND_GRACE)
        servers = [one for one in flows if one.role == "server"]
        await asyncio.gather(*(self._write(one, Result("done")) for one in servers))

    async def _client(self, flow: Flow, until: float) -> None:
        """Runs its keeper, again and again where that helps."""
        file, gives_up = self._raw.file(flow), self.passed() + self._share.window_s
        while True:
            result = await self._keeper(flow, until)
            code, by = result.ended or Ended(None, None)
            if by and not result.timed_out and self.passed() < until:  # a crash; its file goes on
                message = f"{flow.id} ended by signal {by}; it is started again"
                self._raw.episode("client_restarted", message, flow.id)
            elif by or file.exists() or code not in EARLY or self.passed() >= gives_up:
                break
            await asyncio.sleep(RESTART_AFTER)
        if code == UNREACHED and not file.exists():
            why = f"no connection within {self._share.window_s} s: {result.message}"
            result = Result("peer_dead", why)
        await self._write(flow, result)

    async def _keeper(self, flow: Flow, until: float) -> Result:
        limit_s = max(0.0, until - self.passed()) + self._share.window_s + ROUND_GRACE
        folder = self._raw.file(flow).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            process = self._tools.start(flow.argv, is_server=True, folder=folder)
        except OSError as error:  # a full disk has not even room for its folder
            return Result("not_run", f"cannot start {flow.argv[0]} in {folder}: {error.strerror}")
        self._running[flow.id] = process
        result = await ran(process, limit_s)
        del self._running[flow.id]
        return result

    async def _write(self, flow: Flow, result: Result) -> None:
        self._raw.outcome(flow, result, await self._tools.after())

    async def end(self, reason: str) -> None:
        """Keepers first, while all hosts' servers are there to agree on the last interval.

        Where somebody has a reason to stop it, every flow that has begun gets its line.
        """
        keepers = {key: one for key, one in self._running.items() if key != SERVE}
        ends = await asyncio.gather(*(end(one, KEEPERS_END) for one in keepers.values()))
        if reason:
            await self._linger(QUIET_STOPPED, self.passed() + LINGER_STOPPED)
        after = await self._tools.after()
        ended = {
            (key, "client"): Result("done", reason, by, process=one)
            for (key, one), by in zip(keepers.items(), ends)
        }
        for _, flows in self._share.turns() if reason else ():
            for flow in flows:
                key = (flow.id, flow.role)
                if key in self._raw.past.begun:
                    self._raw.outcome(flow, ended.get(key, Result("done", reason)), after)
