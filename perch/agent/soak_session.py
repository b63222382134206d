"""The agent of a soak, from its start or from where it was interrupted to its end."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perch.agent import control
from perch.agent.agent import Life, Settings, reason_of, until_ended
from perch.agent.asking import STOPPED
from perch.agent.clock import Clock, boot_id
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import Reserve
from perch.agent.raw import Result
from perch.agent.share import Share, read
from perch.agent.soak import Soak, Tools
from perch.agent.soak_host import Session, fail, on_host, taken
from perch.agent.soak_raw import SoakRaw, since
from perch.agent.soak_samples import Samples

#: Bytes of the disk that are held back for the outcome of a flow: the record of its whole, twice
#: the largest that a latency's histogram makes (LINE_BYTES of perch/plan/soak.py).
OUTCOME_BYTES = 16 * 1024


def share_of(session: Session) -> Share:
    """Raises AgentError."""
    return read(Path(session.plan), session.host, session.engine, session.start_window)


def last_word(session: Session, raw: SoakRaw, state: str, reason: str, **more: Any) -> None:
    """Raises AgentError: it cannot be written, and a soak that cannot be ended stays claimed."""
    if raw.unwritten:
        more["unwritten"] = raw.unwritten
    raw.end(state, reason, **more)
    say(f"perch-agent: {reason or state}")
    if raw.waiting:
        raise AgentError(
            Exit.INTERNAL,
            f"the soak's end could not be written in {session.out};"
            f" free space there, then run {on_host('soak-stop', session)}",
        )
    session.release()


def close(session: Session) -> None:
    """What an interrupted session has left gets its outcomes. Raises AgentError."""
    if not session.control.is_dir():  # nothing of it is left
        return session.release()
    raw = SoakRaw(share_of(session), session.folder, Clock())
    sample, boot = raw.past.sample, raw.past.start.get("boot_id")
    if raw.past.has_ended:
        return session.release()
    raw.close(STOPPED, {}, sample.get("number") if sample.get("boot_id") == boot else None)
    return last_word(session, raw, "stopped", f"{STOPPED}, after it had been interrupted")


class SoakAgent(Life):
    def __init__(self, session: Session, share: Share, ready: Callable[[], None]) -> None:
        where = session.folder, session.engine, session.token_file
        super().__init__(share, Settings(*where, 0, session.start_window), ready)
        self._session = session
        self._reserve = Reserve(session.control / "reserve", (share.own + 8) * OUTCOME_BYTES)
        self._raw = SoakRaw(share, session.folder, self._clock)
        self._soak: Soak | None = None
        self._end_line: dict[str, Any] = {}

    async def run(self) -> Exit:
        if self._raw.past.has_ended:  # the last one was killed just then
            self._session.release()
            return Exit.WALKED
        code, reason = await until_ended(self._measure(), self._raw, self._stop)
        if code is Exit.CRASHED:  # it can go on
            say(str(reason))
            reason = ""
        return await self._end(code, reason or "")

    def _stop(self, _number: int) -> str:
        """Who asks it to end, but for a reboot, or whatever else sends a signal."""
        if self._soak:
            self._end_line["stop_asked_s"] = round(self._soak.passed(), 3)
        return reason_of(self._settings.control)

    async def _measure(self) -> None:
        share, session, raw = self._share, self._session, self._raw
        is_first = not raw.past.start
        serve = await self._serve() if is_first else None
        own, routes, wanted = await self._roads()
        if is_first:
            self._keep({**await self._environment(), "address_interface": own})
        at = since(raw.past, session, boot_id(), self._clock)
        samples = Samples(self._children, raw, self._clock, wanted)
        tools = Tools(self._children, self._serve, samples, self._clock)
        self._soak = Soak(share, raw, at, tools, serve)
        raw.started(at, session.supervisor, routes)
        if not is_first:
            raw.episode("resumed", f"the soak goes on, {at.passed_s:.0f} s after it began")
        self._ready()
        say(f"{share.host} soaks: {share.own} flows")
        await self._soak.run()

    async def _end(self, code: Exit, reason: str) -> Exit:
        """Raises AgentError: the last line cannot be written."""
        ended: dict[str, Result] = {}
        after = None
        if self._soak is not None:
            ended, after = await self._soak.end(is_stopped=reason != "")
            self._end_line["passed_s"] = self._soak.passed()
        await self._children.end_all()
        self._reserve.release()
        if code is not Exit.WALKED and not reason:
            again = on_host("soak-resume", self._session)
            why = f"interrupted: the agent was ended (exit code {code:d}); {again} goes on with it"
            self._raw.episode("interrupted", why)
            self._raw.sync()
            return code
        self._raw.close(reason, ended, after)
        state = "done" if code is Exit.WALKED else "stopped"
        last_word(self._session, self._raw, state, reason, **self._end_line)
        return code


def live(state: Path, out: str, ready: Callable[[], None]) -> Exit:
    """Runs the host's soak. `out`: it must be that; "": any. Raises AgentError."""
    session = taken(state, out)
    if not session.control.is_dir():
        raise fail(f"nothing is left of the soak of run {session.run} in {session.out}")
    with contextlib.suppress(OSError):  # a full disk may lose it, and no more
        control.log_to(session.folder / "agent.log")
    with contextlib.suppress(ValueError, OSError):  # RDMA pins memory; who may not has what is
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (-1, -1))
    (session.control / "reason").unlink(missing_ok=True)  # of a stop that did not end it
    share = share_of(session)
    return control.lived(lambda: SoakAgent(session, share, ready))
