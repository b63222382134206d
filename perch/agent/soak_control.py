"""The soak's commands on a host: start, session, status, stop, pack."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perch.agent import soak_host, soak_session
from perch.agent.agent import Settings
from perch.agent.asking import STOPPED, end, ended, last_lines, pack
from perch.agent.clock import Clock
from perch.agent.control import detached, prepare
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import Lines
from perch.agent.raw import moment, times
from perch.agent.serving import require
from perch.agent.share import Share, read
from perch.agent.soak_host import fail, held, release, running, runs
from perch.agent.soak_raw import Past, since

#: The link to the host's one soak.
STATE = "/var/lib/perch/soak"

#: Seconds that a stop takes at most, before what is left is killed and closed.
STOP_WITHIN = 9.0


def _claim(state: Path, out: Path, host: str) -> None:
    """One soak a host; one whose folder is gone does not count. Raises AgentError."""
    one = held(state)
    if one is not None and (runs(state) or one.is_dir()):
        what = "runs already" if runs(state) else "was interrupted and is not over"
        raise fail(
            f"a soak on {host} {what}, in {one}: attach to it (playbooks/soak.yml), or end it"
            " (playbooks/soak_stop.yml)"
        )
    try:
        if one is not None:
            say(f"of the soak in {one} nothing is left; it is forgotten")
            state.unlink(missing_ok=True)
        state.parent.mkdir(parents=True, exist_ok=True)
        state.symlink_to(out)
    except OSError as error:
        why = f"cannot write {state}: {error.strerror}; use another --state"
        raise fail(why) from None


def start(share: Share, settings: Settings, options: Mapping[str, Any]) -> Exit:
    """Returns when it serves and samples. Raises AgentError: it cannot, and nothing is left."""
    state, out, soak = Path(options["state"]), settings.out, share.document.get("soak") or {}
    if not 0 < soak.get("interval_s", 0) <= soak.get("duration_s", 0):
        raise fail(
            f"the plan {options['plan']} is no soak's, or its interval is longer than it lasts;"
            " `perch-agent run` walks other plans"
        )
    require(settings.engine, share.host)
    _claim(state, out, share.host)
    try:
        prepare(out)
        _begin(share, settings, state, options)
    except AgentError:
        with contextlib.suppress(AgentError):  # why it did not start is said
            soak_host.stop_unit(out)
        release(state, out)
        raise
    return status(state, str(out))


def _begin(share: Share, settings: Settings, state: Path, options: Mapping[str, Any]) -> None:
    """Returns when it measures. Raises AgentError: it does not, and why."""
    log = settings.out / "agent.log"
    if options.get("supervisor") != "session" and soak_host.has_systemd():
        code: int | None = soak_host.start_unit(state, options)
    else:
        live, begin = soak_session.live, options["begin"]
        code = detached(lambda ready: live(share, settings, state, begin, ready), log)
    if code:
        why = f"{log} says why"
        with contextlib.suppress(OSError, IndexError):  # a full disk may have no log
            why = last_lines(log)[-1].rpartition(" perch-agent: ")[2]
        raise fail(f"the soak of run {share.run} did not start on {share.host}: {why}")


def stop(state: Path, out: str) -> Exit:
    """Ends the host's soak, or that in `out`; prints "stopped DIR" where there was one.

    Raises:
        AgentError: its end could not be written.
    """
    found = held(state)
    if found is None or out not in ("", str(found)):
        return Exit.WALKED
    state.unlink(missing_ok=True)  # nothing begins it from now on
    end(running(state), found / "control", STOP_WITHIN)
    try:
        soak_host.stop_unit(found)  # it may be about to run
        _close(found)
    except AgentError:
        state.symlink_to(found)
        raise
    release(state, found)
    print(f"stopped {found}")
    return Exit.WALKED


def _close(out: Path) -> None:
    """What was interrupted gets its end. Raises AgentError: it cannot be written."""
    past = Past(out)
    if past.head and not past.has_ended:
        line = {"kind": "end", "state": "stopped", "flows_done": len(past.done)}
        line["message"] = f"{STOPPED}, after it had been interrupted"
        lines = Lines(out / "flows.jsonl", goes_on=True)
        lines.write({**line, **times("ended", moment(Clock()))})
        lines.close()


def status(state: Path, out: str, kept: str = "", host: str = "") -> Exit:
    """One JSON object: of the host's soak, or of that in `out`, whose end is there.

    kept: a folder, whose runs are named that have results of this host's soaks, as role agent has
    marked them.
    """
    found = held(state)
    if found is not None and out in ("", str(found)):
        told = _told(state, found)
    else:
        gone = "nothing of this soak can be read here; playbooks/soak_stop.yml removes what is left"
        none = {"state": "none", "message": gone if out else "no soak on this host"}
        told = (ended(Path(out)) if out else {}) or none
    if kept:
        marks = Path(kept).glob(f"*/soak-of-{host}")
        told["kept"] = [one.parent.name.removesuffix(f"-{host}") for one in marks]
    print(json.dumps(told))
    return Exit.WALKED


def _told(state: Path, out: Path) -> dict[str, Any]:
    past, clock = Past(out), Clock()
    start, duration_s = past.start, past.start.get("duration_s", 0.0)
    passed_s = max(0.0, since(past, clock).passed(clock)) if start else 0.0
    told = {
        "state": "running" if runs(state) else "interrupted",
        **{key: past.head.get(key, "") for key in ("run", "host", "plan_sha256")},
        "out": str(out),
        "supervisor": start.get("supervisor", "session"),
        "passed_s": passed_s,
        "duration_s": duration_s,
        "remaining_s": max(0.0, duration_s - passed_s),
    }
    if told["state"] == "interrupted":
        why = "no process of it runs, and it is not over: systemd goes on with it, or"
        told["message"] = f"{why} playbooks/soak_stop.yml closes it"
    return told


def command(name: str, options: dict[str, Any]) -> int:
    """Runs soak-NAME. Raises AgentError."""
    options = {"state": STATE, **options}
    out, state = options.get("out", ""), Path(options["state"])
    if name == "status":
        return status(state, out, options.get("kept", ""), options.get("host", ""))
    if name == "stop":
        return stop(state, out)
    if name == "pack":
        os.nice(19)  # what goes on comes first
        return pack(Path(out), ends=False)
    engine, window_s = options["engine"], options["start-window"]
    share = read(Path(options["plan"]), options["host"], engine, window_s)
    settings = Settings(Path(out), engine, options.get("token-file", ""), 0, window_s)
    if name == "session":
        begin = options["begin"]
        return soak_session.live(share, settings, state, begin, soak_host.notify)
    return start(share, settings, options)
