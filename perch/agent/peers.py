"""The two ends of a flow meet at the server's host; who does not answer is dead."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from perch.agent.errors import say
from perch.agent.meetings import Answer, Place
from perch.agent.share import Flow

#: Who waits asks this often whether the other is alive. Meetings take milliseconds: few ask.
PROBE_EVERY = 5.0
PROBE_TIMEOUT = 3.0

#: Silence of so many seconds, after everyone had time to start, is death: twice the time after
#: which a lost SYN is repeated (1 s, then 2 s), for a host too busy to answer at once.
PEER_SILENCE = 6.0

#: A meeting that was refused is tried again after this.
RETRY_AFTER = 0.5


class NotMet(NamedTuple):
    """`state`: peer_dead, meeting_failed, or not_run where this host's server has ended."""

    state: str
    message: str


class Asks(Protocol):
    def ask(
        self, place: Place, name: str, timeout_s: float, parties: int = 2
    ) -> asyncio.Future[Answer]: ...

    async def close(self) -> None: ...


class Wait(NamedTuple):
    """Until when, by the loop's clock, and the seconds before anyone is asked: it disturbs."""

    until: float
    first_probe: float = PROBE_EVERY


class Peers:
    """`dead`: peers that will not come, and why. Their later flows are skipped."""

    def __init__(
        self, asks: Asks, host: str, everyone_by: float, serve_ended: asyncio.Future[str]
    ) -> None:
        self.dead: dict[str, str] = {}
        self.asks = asks
        self.host = host
        self.everyone_by = everyone_by
        self.serve_ended = serve_ended
        self._here: dict[str, bool] = {}

    async def is_here(self, flow: Flow) -> bool:
        """Whether the peer is this machine, under another name; False where it does not answer."""
        if flow.peer not in self._here:
            answer = await probe(self.asks, self.host, flow)
            if answer is None or answer.exit != 0:
                return False
            self._here[flow.peer] = answer.same_machine
        return self._here[flow.peer]

    async def meet(self, flow: Flow, names: Sequence[str], wait: Wait) -> str | NotMet:
        """Waits until the other end comes to one of these meetings; gives its name."""
        meeting = _Meeting(self, flow, names, wait)
        try:
            met = await meeting.wait()
        finally:
            meeting.leave()
        if isinstance(met, NotMet) and met.state != "not_run":
            self.dead[flow.peer] = met.message
            say(f"{flow.id}: {met.message}; its later flows are skipped")
        return met


class _Meeting:
    def __init__(self, peers: Peers, flow: Flow, names: Sequence[str], wait: Wait) -> None:
        self._peers, self._flow, self._names, self._wait = peers, flow, names, wait
        self._loop = asyncio.get_running_loop()
        self._asked: dict[asyncio.Future[Answer], str] = {}
        self._silent_since = -1.0
        self._said = ""

    async def wait(self) -> str | NotMet:
        ended = self._peers.serve_ended
        pause = self._wait.first_probe
        while not ended.done():
            if not self._asked:
                self._ask()
            futures: set[asyncio.Future[Any]] = {ended, *self._asked}
            await asyncio.wait(futures, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            answers = {name: one.result() for one, name in self._asked.items() if one.done()}
            for name, answer in answers.items():
                if answer.exit == 0:
                    return name
                self._said = answer.message
            pause = PROBE_EVERY
            if answers:
                self.leave()
                pause = 1.0
                await asyncio.wait({ended}, timeout=RETRY_AFTER)
            not_met = await self._will_not_come()
            if not_met is not None:
                return not_met
        return NotMet("not_run", ended.result())

    def leave(self) -> None:
        for one in self._asked:
            one.cancel()
        self._asked = {}

    def _ask(self) -> None:
        flow = self._flow
        seconds = max(1.0, self._wait.until - self._loop.time())
        place = Place(flow.server_address, flow.server_port)
        for name in self._names:
            self._asked[self._peers.asks.ask(place, f"{flow.id}/{name}", seconds)] = name

    async def _will_not_come(self) -> NotMet | None:
        flow = self._flow
        said = await self._probe()
        now = self._loop.time()
        is_late = now >= self._wait.until
        if said is None:
            self._silent_since = -1.0
            if not is_late:
                return None
            words = f": {self._said}" if self._said else ""
            message = f"{flow.peer} is alive but did not come in time{words}"
            return NotMet("meeting_failed", message)
        if self._silent_since < 0:
            self._silent_since = now
        is_dead = now >= self._peers.everyone_by and now >= self._silent_since + PEER_SILENCE
        if not is_dead and not is_late:
            return None
        at = f"{flow.peer_address} port {flow.peer_port}"
        return NotMet("peer_dead", f"{flow.peer} does not answer at {at}: {said}")

    async def _probe(self) -> str | None:
        """None: the peer answers with our token."""
        answer = await probe(self._peers.asks, self._peers.host, self._flow)
        if answer is None:
            return f"perch meet on {self._peers.host} gives no answer"
        return None if answer.exit == 0 else answer.message


async def probe(asks: Asks, host: str, flow: Flow) -> Answer | None:
    """What the peer answers, if it does. A meeting of one party takes place at once.

    This host's `perch meet` gives an answer for a silent peer, too. Where it gives none, it has
    stopped; another one is asked.
    """
    place = Place(flow.peer_address, flow.peer_port)
    for is_last in (False, True):
        asked = asks.ask(place, f"probe/{host}", PROBE_TIMEOUT, 1)
        await asyncio.wait({asked}, timeout=PROBE_TIMEOUT + 2)
        if asked.done():
            return asked.result()
        asked.cancel()
        if not is_last:
            say(f"perch meet on {host} gives no answer; it is ended, and started again")
            await asks.close()
    return None
