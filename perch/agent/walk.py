"""Walks the host's flows: this host's end of each, in the plan's order."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from perch.agent.children import Ended, Process, end
from perch.agent.clock import Clock
from perch.agent.errors import AgentError, Exit, say
from perch.agent.peers import PROBE_EVERY, NotMet, Peers, Wait
from perch.agent.place import Seat, Wish
from perch.agent.raw import Moment, Raw, Result, moment
from perch.agent.share import ROUND_GRACE, Flow, Share

T = TypeVar("T")

#: Programs whose package has another name.
PACKAGES = {
    **dict.fromkeys(("ib_send", "ib_write", "ib_read", "ib_atomic"), "perftest"),
    **dict.fromkeys(("cxi_send", "cxi_write", "cxi_read", "cxi_atomic"), "cray-libcxi-utils"),
}

#: Seconds that a one-shot server has to end by itself once its client is gone.
SERVER_ENDS = 2.0


class Starts(Protocol):
    def start(self, argv: Sequence[str], *, cpus: Sequence[int] = ()) -> Process: ...


class Reads(Protocol):
    def disturb(self) -> None: ...
    def before(self) -> Coroutine[Any, Any, int]: ...
    def after(self) -> Coroutine[Any, Any, int]: ...
    def followed(self) -> Coroutine[Any, Any, int]: ...


class Tools(NamedTuple):
    """What a walk works with; a test has its own.

    `listening`: whether an external server listens within so many seconds. `routes`: the interface
    to each peer. `seats`: cores for commands. `progress`: tells who watches.
    """

    children: Starts
    peers: Peers
    readings: Reads
    raw: Raw
    clock: Clock
    listening: Callable[[Process, int, float], Awaitable[bool]]
    routes: dict[str, str]
    seats: Callable[[Sequence[Wish]], list[Seat]]
    progress: Callable[[dict[str, Any]], None]


class _Gate:
    """Opens for a role when all ends of it have come."""

    def __init__(self, roles: Iterable[str]) -> None:
        self._missing = Counter(roles)
        self._open = {role: asyncio.Event() for role in self._missing}

    def come(self, turn: _Turn) -> None:
        role = turn.flow.role
        self._missing[role] -= 1
        if self._missing[role] == 0:
            self._open[role].set()

    async def wait(self, turn: _Turn) -> None:
        await self._open[turn.flow.role].wait()


class _Group:
    """The flows of a round, which run at the same time.

    Its clients start together. One reading comes before all of them, and one after all ends of a
    role: a client's end awaits no server's, as those await the clients of other hosts.
    """

    def __init__(self, flows: Sequence[Flow], readings: Reads) -> None:
        self.flows = flows
        self.seats: dict[str, Seat] = {}
        self._readings = readings
        self._done: dict[str, asyncio.Future[Any]] = {}
        roles = [flow.role for flow in flows]
        self.ready, self._over = _Gate(roles), _Gate(roles)

    async def before(self) -> int:
        return await self.once("before", self._readings.before)

    async def over(self, turn: _Turn) -> None:
        """Until all ends of its role are over. Each turn asks once."""
        self._over.come(turn)
        if turn.before is not None:
            await self._over.wait(turn)

    async def after(self, turn: _Turn) -> int | None:
        """None where it has no reading before it."""
        if turn.before is None:
            return None
        role = turn.flow.role  # a server learns of the end of its flow later than its client
        readings = self._readings
        return await self.once(role, readings.followed if role == "client" else readings.after)

    async def once(self, what: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What is done for all of them by the first that comes."""
        if what not in self._done:
            self._done[what] = asyncio.ensure_future(work())
        done: T = await self._done[what]
        return done


class _Turn:
    """A flow that is under way."""

    def __init__(self, flow: Flow, group: _Group, started: Moment) -> None:
        self.flow = flow
        self.group = group
        self.started = started
        self.before: int | None = None
        self.has_begun = False


class Walk:
    """`current`: the flows under way, for the lines that they get should the agent stop."""

    def __init__(self, share: Share, tools: Tools) -> None:
        self._share = share
        self._tools = tools
        self._began = asyncio.get_running_loop().time()
        self.current: list[_Turn] = []

    async def run(self) -> None:
        for flows in self._share.rounds():
            if self._tools.peers.serve_ended.done():
                raise AgentError(Exit.HOST, self._tools.peers.serve_ended.result())
            group, started = _Group(flows, self._tools.readings), moment(self._tools.clock)
            self.current = [_Turn(flow, group, started) for flow in flows]
            await _all(map(self._turn, self.current))
            self.current = []
            for seat in group.seats.values():
                seat.leave()

    async def _turn(self, turn: _Turn) -> None:
        flow = turn.flow
        self._tell(flow, "start", None)
        if flow.peer in self._tools.peers.dead:
            turn.group.ready.come(turn)
            reason = f"skipped: {self._tools.peers.dead[flow.peer]}"
            result = await self._write(turn, Result("peer_dead", reason))
        elif flow.role == "client":
            result = await self._client(turn)
        else:
            result = await self._server(turn)
        self._tell(flow, "end", result.ended.exit if result.ended else None)

    def stopped(self, message: str) -> None:
        """The lines of servers' ends that had begun: their clients may have measured to the end."""
        for turn in self.current:
            if turn.has_begun:
                self._tools.raw.flow(turn.flow, Result("done", _unseen(message)), turn.started)
        self.current = []

    async def _client(self, turn: _Turn) -> Result:
        """Its result is written before the ends meet again: it stays, whatever the server does."""
        flow = turn.flow
        names = ["start", "refused"] if flow.is_external else ["start"]
        met = await self._meet_start(turn, names)
        turn.group.ready.come(turn)
        if isinstance(met, NotMet):
            return await self._write(turn, Result(*met))
        if met == "refused":
            message = f"the server's end on {flow.peer} could not start; its own line says why"
            return await self._write(turn, Result("not_run", message))
        await turn.group.ready.wait(turn)
        turn.started = moment(self._tools.clock)
        result = await self._command(turn)
        await self._write(turn, result)
        await self._meet_done(turn)  # who does not come is remembered; the result stands
        return result

    async def _command(self, turn: _Turn) -> Result:
        flow, tools = turn.flow, self._tools
        missing = self._missing(flow)
        if missing:
            return Result("not_run", missing)
        cpus = await self._cpus(turn)
        turn.before = await turn.group.before()
        tools.readings.disturb()
        try:
            process = tools.children.start(flow.argv, cpus=cpus)
        except OSError as error:
            return Result("not_run", f"cannot start {flow.argv[0]}: {error.strerror}")
        return await ran(process, flow.deadline_s)

    async def _server(self, turn: _Turn) -> Result:
        """perch's clients use the `perch serve` that runs; others have a server of their own."""
        flow = turn.flow
        process: Process | None = None
        if flow.is_external:
            started = await self._start_server(turn)
            if isinstance(started, Result):
                await self._meet_start(turn, ["refused"])  # the client need not wait for nothing
                return started
            process = started
        turn.before = await turn.group.before()
        met = await self._meet_start(turn, ["start"])
        if isinstance(met, NotMet):
            turn.before = None
            ended = await end(process) if process else None
            return await self._write(turn, Result(*met, ended=ended, process=process))
        turn.has_begun = True
        met = await self._meet_done(turn)
        result = await self._server_ends(met, process)
        await self._write(turn, result)
        return result

    async def _server_ends(self, met: str | NotMet, process: Process | None) -> Result:
        if process is not None and not isinstance(met, NotMet):
            await asyncio.wait({process.ended}, timeout=SERVER_ENDS)
        ended = None
        if process is not None:
            ended = process.ended.result() if process.ended.done() else await end(process)
        if not isinstance(met, NotMet):
            return Result("done", "", ended, process=process)
        # where this side failed, the client may have measured all the same: it says so itself
        state = "done" if met.state == "not_run" else met.state
        return Result(state, _unseen(met.message), ended, process=process)

    async def _start_server(self, turn: _Turn) -> Process | Result:
        flow = turn.flow
        missing = self._missing(flow)
        if missing:
            return await self._write(turn, Result("not_run", missing))
        cpus = await self._cpus(turn)
        self._tools.readings.disturb()
        try:
            process = self._tools.children.start(flow.argv, cpus=cpus)
        except OSError as error:
            message = f"cannot start {flow.argv[0]}: {error.strerror}"
            return await self._write(turn, Result("not_run", message))
        if await self._tools.listening(process, flow.listen_port, ROUND_GRACE):
            return process
        ended = await end(process)
        words = " ".join((process.stderr.text() + process.stdout.text()).split())[:300]
        message = (
            f"{flow.argv[0]} did not come to listen on port {flow.listen_port} of"
            f" {self._share.host} (is another program using it?): {words}"
        )
        return await self._write(turn, Result("not_run", message, ended, process=process))

    async def _cpus(self, turn: _Turn) -> list[int]:
        """Where a command goes that does not place itself, as perch does."""
        if not turn.flow.is_external:
            return []
        await turn.group.once("seats", lambda: self._take_seats(turn.group))
        return turn.group.seats[turn.flow.id].cpus

    async def _take_seats(self, group: _Group) -> None:
        flows = [flow for flow in group.flows if flow.is_external]
        if any([await self._tools.peers.is_here(flow) for flow in flows]):
            seats = [Seat([], unplaced="same-machine")] * len(flows)
        else:
            seats = self._tools.seats([flow.near for flow in flows])
        group.seats.update((flow.id, seat) for flow, seat in zip(flows, seats))

    async def _meet_start(self, turn: _Turn, names: list[str]) -> str | NotMet:
        """As long as a living peer could take to come to this round."""
        wait = Wait(self._began + turn.flow.latest_s)
        met = await self._tools.peers.meet(turn.flow, names, wait)
        self._tools.readings.disturb()
        return met

    async def _meet_done(self, turn: _Turn) -> str | NotMet:
        """The client's deadline and its last grace.

        The peer is first asked when the flow should be over, at about a third of its deadline.
        """
        deadline = turn.flow.deadline_s
        until = asyncio.get_running_loop().time() + deadline + ROUND_GRACE
        wait = Wait(until, deadline / 2 + PROBE_EVERY)
        met = await self._tools.peers.meet(turn.flow, ["done"], wait)
        self._tools.readings.disturb()
        return met

    async def _write(self, turn: _Turn, result: Result) -> Result:
        flow = turn.flow
        await turn.group.over(turn)
        ended = moment(self._tools.clock)  # a slow host reads its counters for seconds
        try:
            after = await turn.group.after(turn)
        except AgentError:  # a full disk: without a reading the line may still have room
            turn.has_begun = False
            self._tools.raw.flow(flow, result, turn.started, ended=ended)
            raise
        turn.has_begun = False  # it has its line now
        seat = turn.group.seats.get(flow.id)
        if seat is not None and result.process is not None:
            result = result._replace(placement=seat.line())
        route = self._tools.routes.get(flow.peer, "")
        self._tools.raw.flow(flow, result, turn.started, (turn.before, after), route, ended)
        if result.message:
            say(f"{flow.id} ({flow.role}): {result.state}: {result.message}")
        return result

    def _missing(self, flow: Flow) -> str:
        program = flow.argv[0]
        if shutil.which(program):
            return ""
        package = PACKAGES.get(program.rpartition("_")[0], "of that name")
        return (
            f"{program} is not installed on {self._share.host}: install the package {package},"
            " or leave it out of perch_tools"
        )

    def _tell(self, flow: Flow, event: str, code: int | None) -> None:
        names = ("title", "client", "server", "role", "total")
        told = {name: getattr(flow, name) for name in names}
        self._tools.progress(
            {"event": event, "flow": flow.id, **told, "index": flow.number, "exit": code}
            | {"remaining_s": round(flow.remaining_s)}
        )


async def ran(process: Process, limit_s: float) -> Result:
    """What a command comes to within so many seconds; then it is ended."""
    await asyncio.wait({process.ended}, timeout=limit_s)
    timed_out = not process.ended.done()
    ended = await end(process) if timed_out else process.ended.result()
    said = "" if ended == Ended(0, None) else process.stderr.last_line()
    if timed_out:
        said = f"ended at its deadline of {limit_s:g} s" + (f": {said}" if said else "")
    return Result("done", said, ended, timed_out, process)


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """At the same time; where one fails, the others end."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _unseen(message: str) -> str:
    return f"the flow had begun, and its end was not seen here: {message}"
