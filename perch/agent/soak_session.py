"""The process of a soak on a host, from its start or from where it was interrupted to its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
from pathlib import Path
from typing import Any

from perch.agent import devices, environment, serving, soak_unit
from perch.agent.agent import reason_of, until_ended
from perch.agent.asking import STOPPED, identity
from perch.agent.children import Children, Keeper
from perch.agent.clock import Clock, boot_id
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import Reserve, encoded, write_whole
from perch.agent.share import Share, read
from perch.agent.soak import Soak, Tools
from perch.agent.soak_flows import Flows
from perch.agent.soak_kept import Past, Session
from perch.agent.soak_raw import SoakRaw, since
from perch.agent.soak_samples import Samples, members

#: Bytes of the disk that are held back for the outcome of a flow: the record of its whole, twice
#: the largest that a latency's histogram makes (LINE_BYTES of perch/plan/soak.py).
OUTCOME_BYTES = 16 * 1024


def share_of(session: Session) -> Share:
    """Raises AgentError."""
    return read(Path(session.plan), session.host, session.engine, session.window_s)


def release(session: Session) -> None:
    """It is over: nothing resumes it, and the host may have another one."""
    if session.is_claimed():
        soak_unit.remove_resume(session.state)
        Path(session.state).unlink(missing_ok=True)


def last_word(session: Session, raw: SoakRaw, state: str, reason: str, **more: Any) -> None:
    """Raises AgentError: it cannot be written, and a soak that cannot be ended stays claimed."""
    if raw.unwritten:
        more["unwritten"] = raw.unwritten
        words = f"{raw.unwritten} could not be written when it was due"
        reason = f"{reason}; {words}" if reason else words
    raw.end(state, reason, **more)
    say(f"{session.host} is {state}: {raw.done} flows{f': {reason}' if reason else ''}")
    if raw.waiting:
        raise AgentError(
            Exit.INTERNAL,
            f"the soak's end could not be written in {session.out};"
            f" free space there, then run {soak_unit.on_host('soak-stop', session)}",
        )
    release(session)


def close(session: Session) -> None:
    """What an interrupted session has left gets its outcomes. Raises AgentError."""
    share, past, clock = share_of(session), Past(session.folder), Clock()
    if past.end:
        release(session)
        return
    raw = SoakRaw(share, session.folder, past, clock)
    boot = past.starts[-1]["boot_id"] if past.starts else ""
    seen = past.sample.get("number") if past.sample.get("boot_id") == boot else None
    Flows(share, past, raw, boot, {}).close(STOPPED, {}, seen)
    last_word(session, raw, "stopped", f"{STOPPED}, after it had been interrupted")


class Life:
    def __init__(self, session: Session) -> None:
        self._session, self._control = session, session.control
        self._share = share_of(session)
        self._clock = Clock()
        self._past = Past(session.folder)
        self._reserve = Reserve(self._control / "reserve", (self._share.own + 8) * OUTCOME_BYTES)
        self._raw = SoakRaw(self._share, session.folder, self._past, self._clock)
        token = {"PERCH_TOKEN_FILE": session.token_file} if session.token_file else {}
        self._children = Children(Keeper(), {**os.environ, **token})
        self._flows = Flows(self._share, self._past, self._raw, "", {})
        self._soak: Soak | None = None
        self._samples: Samples | None = None

    async def run(self) -> int:
        code, reason = await until_ended(self._measure(), self._raw, self._stop)
        if code is Exit.CRASHED:  # it can go on
            say(str(reason))
            reason = ""
        return await self._end(
            "done" if code is Exit.WALKED else "stopped", int(code), reason or ""
        )

    def _stop(self, number: int) -> str:
        """Who asks it to end, but for a reboot, or whatever else sends SIGTERM."""
        said = reason_of(self._control)
        return said or ("" if number == signal.SIGTERM else "ended by the keyboard")

    async def _measure(self) -> None:
        share, session, past = self._share, self._session, self._past
        is_first = not past.starts
        serve = await self._serve() if is_first else None
        found = await environment.collect(self._children, share, session.engine, self._clock)
        own, routes = await devices.roads(self._children, share.address, share.peers())
        if is_first:
            found["address_interface"] = own
            write_whole(session.folder / "environment.json", encoded(found))
        at = since(past, session, boot_id(), self._clock)
        wanted = [own, *routes.values(), *share.devices(), *share.devices("netdev")]
        self._flows = Flows(share, past, self._raw, at.boot_id, routes)
        soak = self._soak = Soak(self._flows, session, at)
        samples = Samples(self._children, self._raw, self._clock, soak.groups, wanted)
        self._samples = samples
        soak.use(Tools(self._children, self._serve, samples, self._clock, members), serve)
        cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        self._raw.started(at, session, cpus)
        if not is_first:
            self._raw.episode("resumed", f"the soak goes on, {soak.passed():.0f} s after it began")
        write_whole(self._control / "started", b"")
        say(f"{share.host} soaks: {share.own} flows")
        await soak.run()

    async def _end(self, state: str, code: int, reason: str) -> int:
        is_over = state == "done" or reason != ""
        ended, after, more = {}, None, {}
        if self._soak is not None and self._samples is not None:
            ended = await self._soak.end(is_stopped=reason != "")
            after = await self._samples.after()
            more["passed_s"] = self._soak.passed()
        with contextlib.suppress(OSError, ValueError):
            more["stop_asked_s"] = float((self._control / "stop_asked").read_text())
        await self._children.end_all()
        self._reserve.release()
        if not is_over:
            again = soak_unit.on_host("soak-resume", self._session)
            why = f"interrupted: the agent was ended (exit code {code}); {again} goes on with it"
            self._raw.episode("interrupted", why)
            self._raw.sync()
            return code
        self._flows.close(reason, ended, after)
        try:
            last_word(self._session, self._raw, state, reason, **more)
        except AgentError as error:
            say(f"perch-agent: {error.message}")
            return int(error.code)
        return code

    async def _serve(self) -> Any:
        share, engine = self._share, self._session.engine
        return await serving.start(self._children, share, engine, self._control)


def run(session: Session) -> int:
    """Raises AgentError."""
    control = session.control
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core of perch would have the token
    with contextlib.suppress(ValueError, OSError):  # RDMA pins memory; who may not has what is
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (-1, -1))
    for name in ("reason", "stop_asked"):  # of a stop that did not end it
        (control / name).unlink(missing_ok=True)
    write_whole(control / "pid", f"{os.getpid()} {identity(os.getpid())}\n".encode())
    return asyncio.run(_live(session))


async def _live(session: Session) -> int:
    return await Life(session).run()
