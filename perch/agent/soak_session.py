"""The agent of a soak, from its start or from where it was interrupted to its end."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perch.agent import control
from perch.agent.agent import Life, Settings, reason_of, until_ended
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import Reserve
from perch.agent.share import Share
from perch.agent.soak import SERVE, Soak, Tools
from perch.agent.soak_host import fail, has_unit, release, take
from perch.agent.soak_raw import SoakRaw, since
from perch.agent.soak_samples import Samples

#: Bytes of the disk that are held back for the outcome of a flow: the record of its whole, twice
#: the largest that a latency's histogram makes (LINE_BYTES of perch/plan/soak.py).
OUTCOME_BYTES = 16 * 1024


class SoakAgent(Life):
    """`state`: the link to the host's soak; `begin`: when it begins, in seconds of the epoch."""

    def __init__(
        self, share: Share, settings: Settings, state: Path, begin: int, ready: Callable[[], None]
    ) -> None:
        super().__init__(share, settings, ready)
        self._state, self._begin = state, begin
        size = (share.own + 8) * OUTCOME_BYTES
        self._reserve = Reserve(settings.control / "reserve", size)
        self._raw = SoakRaw(share, settings.out, self._clock)
        self._soak: Soak | None = None
        self._end_line: dict[str, Any] = {}

    async def run(self) -> Exit:
        if self._raw.past.has_ended:  # the last one was killed just then
            release(self._state, self._settings.out)
            return Exit.WALKED
        code, reason = await until_ended(self._measure(), self._raw, self._stop)
        if code is Exit.CRASHED:  # it can go on
            say(str(reason))
            reason = None
        if self._soak is not None:
            await self._soak.end(reason or "")
            self._end_line["passed_s"] = self._soak.passed()
        await self._children.end_all()
        self._reserve.release()
        if code is Exit.WALKED or reason:
            self._close("stopped" if reason else "done", reason or "")
        self._raw.sync()
        return code

    def _stop(self, _number: int) -> str:
        """Who asks it to end, but for a reboot, or whatever else sends a signal."""
        if self._soak:
            self._end_line["stop_asked_s"] = round(self._soak.passed(), 3)
        return reason_of(self._settings.control)

    async def _measure(self) -> None:
        share, raw, out = self._share, self._raw, self._settings.out
        running = {}
        if not raw.past.start:  # a first one that cannot serve begins no soak
            running[SERVE] = await self._serve()
        own, raw.routes, wanted = await self._roads()
        if not raw.past.start:
            self._keep({**await self._environment(), "address_interface": own})
        at = since(raw.past, self._clock, self._begin, share.window_s)
        samples = Samples(self._children, raw, self._clock, wanted, running)
        tools = Tools(
            self._children.start, self._serve, samples.take, samples.after, self._clock, running
        )
        self._soak = Soak(share, raw, at, tools)
        duration_s = share.document["soak"]["duration_s"]
        raw.start(at, duration_s, "systemd" if has_unit(out) else "session")
        self._ready()
        say(f"{share.host} soaks: {share.own} flows")
        await self._soak.run()

    def _close(self, state: str, reason: str) -> None:
        """Raises AgentError: it cannot be written, and a soak without its end is not over."""
        if self._raw.unwritten:
            self._end_line["unwritten"] = self._raw.unwritten
        self._raw.end(state, reason, **self._end_line)
        say(f"perch-agent: {reason or state}")
        if self._raw.waiting:
            out = self._settings.out
            why = f"the soak's end could not be written in {out}; free space there, then run"
            raise AgentError(Exit.INTERNAL, f"{why} playbooks/soak_stop.yml")
        release(self._state, self._settings.out)


def live(
    share: Share, settings: Settings, state: Path, begin: int, ready: Callable[[], None]
) -> Exit:
    """Raises AgentError."""
    take(state, settings.out)
    if not settings.control.is_dir():
        raise fail(f"nothing is left of the soak of run {share.run} in {settings.out}")
    with contextlib.suppress(OSError):  # a full disk may lose it, and no more
        control.log_to(settings.out / "agent.log")
    with contextlib.suppress(ValueError, OSError):  # RDMA pins memory; who may not has what is
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (-1, -1))
    (settings.control / "reason").unlink(missing_ok=True)  # of a stop that did not end it
    return control.lived(lambda: SoakAgent(share, settings, state, begin, ready))
