"""The soak's commands on a host: start, status, stop, resume."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from perch.agent import soak_host, soak_session
from perch.agent.asking import alive, end, ended, last_lines, pack
from perch.agent.clock import Clock, boot_id
from perch.agent.control import detached, prepare
from perch.agent.errors import AgentError, Exit, say
from perch.agent.serving import require
from perch.agent.soak_host import UNIT, Session, fail, load, locked, on_host, systemctl
from perch.agent.soak_raw import Past, since

#: The host's one soak.
STATE = "/var/lib/perch/soak.json"

#: Seconds that a stop takes at most, before what is left is killed and closed.
STOP_WITHIN = 9.0


def _refuse_second(session: Session, one: Session) -> None:
    """One soak a host. One whose folder is gone is none any more."""
    if one.runs():
        raise fail(
            f"the soak of run {one.run} runs on {session.host} already, in {one.out}: attach to it"
            " (playbooks/soak.yml), or stop it first (playbooks/soak_stop.yml)"
        )
    if one.control.is_dir():
        raise fail(
            f"the soak of run {one.run} on {session.host} was interrupted and is not over"
            f" ({one.out}): {on_host('soak-resume', session)} goes on with it,"
            " playbooks/soak_stop.yml closes it"
        )
    say(f"of the soak of run {one.run} nothing is left in {one.out}; it is forgotten")


def _supervisor(session: Session) -> str:
    """Raises AgentError: the unit is somebody else's."""
    if session.supervisor == "session" or not soak_host.has_systemd():
        return "session"
    if systemctl("is-active", "--quiet", UNIT.name) == 0:
        raise fail(
            f"the unit {UNIT.name} is active on {session.host}, and belongs to no soak of this"
            f" state: `systemctl stop {UNIT.name}` ends it"
        )
    return "systemd"


def start(session: Session) -> Exit:
    """Returns when it serves and samples. Raises AgentError: it cannot, and nothing is left."""
    share = soak_session.share_of(session)
    soak = share.document.get("soak") or {}
    if not 0 < soak.get("interval_s", 0) <= soak.get("duration_s", 0):
        raise fail(
            f"the plan {session.plan} is no soak's, or its interval is longer than it lasts;"
            " `perch-agent run` walks other plans"
        )
    require(session.engine, session.host)
    with locked(Path(session.state)) as other:
        if other is not None:
            _refuse_second(session, other)
        supervisor = _supervisor(session)
        prepare(session.folder)
        session = session._replace(
            run=share.run, supervisor=supervisor, duration_s=soak["duration_s"]
        )
        session.claim()
    try:
        _begin(session, "did not start")
    except AgentError:
        if session.supervisor == "systemd":
            with contextlib.suppress(AgentError):  # why it did not start is said
                systemctl("stop", UNIT.name)
        session.release()
        raise
    return status(session.out, Path(session.state))


def _begin(session: Session, failed: str) -> None:
    """Returns when it measures. Raises AgentError: it does not, and why."""
    log, state = session.folder / "agent.log", Path(session.state)
    if session.supervisor == "systemd":
        soak_host.install_unit(session)
        session.sync()
        code: int | None = systemctl("start", UNIT.name)
    else:
        session.sync()
        code = detached(lambda ready: soak_session.live(state, session.out, ready), log)
    if code:
        why = f"{log} says why"
        with contextlib.suppress(OSError, IndexError):  # a full disk may have no log
            why = last_lines(log)[-1].rpartition(" perch-agent: ")[2]
        raise fail(f"the soak of run {session.run} {failed} on {session.host}: {why}")


def resume(state: Path) -> Exit:
    """Goes on with the host's soak, as after a boot. Raises AgentError: it cannot."""
    session = load(state)
    if session is None or session.runs():
        say(f"no soak of this host is interrupted ({state})")
    else:
        _begin(session, "could not go on")
    return Exit.WALKED


def stop(out: str, state: Path) -> Exit:
    """Ends the host's soak, or that in `out`; prints "stopped DIR" where there was one.

    Raises:
        AgentError: its end could not be written.
    """
    if load(state) is None:
        return Exit.WALKED
    with locked(state) as session:
        if session is None or out not in ("", session.out):
            return Exit.WALKED
        end(alive(session.process), session.control, STOP_WITHIN)
        if session.supervisor == "systemd":  # it may be about to run
            systemctl("stop", UNIT.name)
        if load(state) is not None:
            soak_session.close(session)
    print(f"stopped {session.out}")
    return Exit.WALKED


# ---- status --------------------------------------------------------------------------------------


def status(out: str, state: Path, kept: str = "", host: str = "") -> Exit:
    """One JSON object: of the host's soak, or of that in `out`, whose end is there.

    kept: a folder, whose runs are named that have results of this host's soaks, as role agent has
    marked them; the soak's share of the plan is named by its hash.
    """
    session = load(state)
    if session is not None and out in ("", session.out):
        told = _told(session)
    else:
        gone = "nothing of this soak can be read here; playbooks/soak_stop.yml removes what is left"
        none = {"state": "none", "message": gone if out else "no soak on this host"}
        told = (ended(Path(out)) if out else {}) or none
    if kept:
        marks = Path(kept).glob(f"*/soak-of-{host}")
        told["kept"] = [one.parent.name.removesuffix(f"-{host}") for one in marks]
        with contextlib.suppress(OSError):
            if session is not None:
                told["plan"] = hashlib.sha256(Path(session.plan).read_bytes()).hexdigest()
    print(json.dumps(told))
    return Exit.WALKED


def _told(session: Session) -> dict[str, Any]:
    past, runs = Past(session.folder), session.runs()
    passed = max(0.0, since(past, session, boot_id(), Clock()).passed_s)
    why = (
        f"no process of it runs, and it is not over: {on_host('soak-resume', session)} on"
        f" {session.host} goes on with it, playbooks/soak_stop.yml closes it"
    )
    if past.last.get("what") == "interrupted":
        why = past.last["message"]
    return {
        "state": "running" if runs else "interrupted",
        **{key: getattr(session, key) for key in ("run", "host", "out", "supervisor")},
        "passed_s": passed,
        "duration_s": session.duration_s,
        "remaining_s": max(0.0, session.duration_s - passed),
        **({} if runs else {"message": why}),
    }


def command(name: str, options: dict[str, Any]) -> int:
    """Runs soak-NAME. Raises AgentError."""
    words = {"state": STATE, **{key.replace("-", "_"): one for key, one in options.items()}}
    out, state = words.get("out", ""), Path(words["state"])
    if name == "status":
        return status(out, state, words.get("kept", ""), words.get("host", ""))
    if name == "stop":
        return stop(out, state)
    if name == "resume":
        return resume(state)
    if name == "session":
        return soak_session.live(state, out, soak_host.notify)
    if name == "pack":
        os.nice(19)  # what goes on comes first
        return pack(Path(out), ends=False)
    return start(Session("", **{key: words[key] for key in Session._fields if key in words}))
