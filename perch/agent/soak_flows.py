"""A soak's flows on a host: their beginnings and outcomes, whichever agent writes them."""

from __future__ import annotations

import json
from pathlib import Path

from perch.agent.asking import last_lines
from perch.agent.children import Ended
from perch.agent.raw import Result, moment
from perch.agent.share import Flow, Share
from perch.agent.soak_kept import Past
from perch.agent.soak_raw import SoakRaw, moment_of


def soak_end(file: Path) -> str:
    """How a keeper's file ends: none (no file), open (it can go on), stopped, or its exit code.

    A stopped one was told to end, and can go on.
    """
    try:
        lines = last_lines(file)
        if not lines:
            return "none"
        last = json.loads(lines[-1])
        if last["kind"] not in ("latency", "bandwidth"):
            return "open"
        return (
            "stopped" if last["soak"]["stopped"] else str((last.get("error") or {}).get("code", 0))
        )
    except FileNotFoundError:
        return "none"
    except (OSError, ValueError, KeyError, TypeError):
        return "open"


class Flows:
    """`boot`: of this agent. `routes`: the interface to each peer."""

    def __init__(
        self, share: Share, past: Past, raw: SoakRaw, boot: str, routes: dict[str, str]
    ) -> None:
        self.share, self.past, self.raw, self.boot = share, past, raw, boot
        self._routes = routes

    def file(self, flow: Flow) -> Path:
        return self.raw.folder / "flows" / flow.id / "client.soak"

    def begin(self, flow: Flow, sample: int, passed_s: float) -> None:
        """Once, whichever agent it was."""
        key = (flow.id, flow.role)
        if key not in self.past.begun:
            self.past.begun[key] = self.raw.began(flow, sample, self.boot, passed_s)

    def outcome(self, flow: Flow, result: Result, after: int | None) -> None:
        """Counters begin at 0 with each boot: then it has no readings."""
        key = (flow.id, flow.role)
        if key in self.past.done:
            return
        begin = self.past.begun.get(key)
        before = begin["sample"] if begin and begin["boot_id"] == self.boot else None
        started = moment_of(begin, self.boot) if begin else moment(self.raw.clock)
        route = self._routes.get(flow.peer, "")
        self.raw.flow(flow, result, started, (before, after), route)
        self.past.done[key] = result.state

    def close(self, reason: str, ended: dict[str, Result], after: int | None) -> None:
        """Every flow that has begun gets its outcome, and nothing goes on any more.

        ended: what keepers came to that were told to end.
        """
        for _, flows in self.share.turns():
            for flow in flows:
                if (flow.id, flow.role) in self.past.begun:
                    self.outcome(flow, self._closed(flow, reason, ended.get(flow.id)), after)

    def _closed(self, flow: Flow, reason: str, last: Result | None) -> Result:
        found = soak_end(self.file(flow))
        if flow.role == "server":
            return Result("done", reason)
        if found == "none":
            return Result("not_run", reason or "it had not begun")
        code = Ended(int(found), None) if found.isdecimal() else last.ended if last else None
        if code is None and found == "stopped":
            code = Ended(0, None)
        words = [reason, "it ended without the record of its whole" if found == "open" else ""]
        message = "; ".join(filter(None, words)) or ("stopped" if found == "stopped" else "")
        return Result("done", message, code, process=last.process if last else None)
