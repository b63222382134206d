"""The soak's commands on a host: start, status, stop, resume."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from perch.agent import soak_session, soak_unit
from perch.agent.asking import REASON, end_agent, last_lines, pack, running
from perch.agent.clock import Clock
from perch.agent.control import prepare
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import write_whole
from perch.agent.share import read
from perch.agent.soak_kept import Past, Session, claimed, fail, left_running, load, runs

#: The host's one soak.
STATE = "/var/lib/perch/soak.json"

#: Seconds that a stop takes at most, before what is left is killed and closed.
STOP_WITHIN = 9.0

#: Seconds between two looks at what other processes write.
LOOK_EVERY = 0.1

#: An interval stands within so many lines of the end: at most 64 stalls are kept of each.
LAST_LINES = 80


def _refuse_second(session: Session) -> None:
    """One soak a host. One whose folder is gone is none any more."""
    one = claimed(Path(session.state))
    if not one:
        return
    there, run, host = load(Path(one["out"])), one["run"], session.host
    if there is None:
        if left_running(one["out"]):
            raise fail(
                f"the soak of run {run} still runs on {host}, though {one['out']} has no"
                f" control/soak.json any more: {soak_unit.on_host('soak-stop', session)} ends it"
            )
        say(f"of the soak of run {run} nothing is left in {one['out']}; it is forgotten")
    elif runs(there.folder) or (there.supervisor == "systemd" and soak_unit.is_active()):
        raise fail(
            f"the soak of run {run} runs on {host} already, in {one['out']}: attach to it"
            " (playbooks/soak.yml), or stop it first (playbooks/soak_stop.yml)"
        )
    else:
        raise fail(
            f"the soak of run {run} on {host} was interrupted and is not over ({one['out']}):"
            f" {soak_unit.on_host('soak-resume', session)} goes on with it,"
            " playbooks/soak_stop.yml closes it"
        )


def _supervisor(session: Session) -> str:
    """Raises AgentError: what was asked for cannot be kept."""
    asked = session.supervisor
    if asked == "session" or (asked == "auto" and not soak_unit.has_systemd()):
        return "session"
    if not soak_unit.has_systemd():
        raise fail(
            f"systemd cannot keep the soak on {session.host}: it is not process 1, or this user is"
            " not root; use --supervisor session"
        )
    state = soak_unit.unit_state()
    if soak_unit.is_active(state) and not claimed(Path(session.state)):
        raise fail(
            f"the unit {soak_unit.UNIT} is {state} on {session.host}, and belongs to no soak known"
            f" here ({session.state}): `systemctl stop {soak_unit.UNIT}` ends it"
        )
    if state == "failed":
        soak_unit.forget_failed()
    return "systemd"


def _checked(session: Session) -> None:
    share = soak_session.share_of(session)
    soak = share.document.get("soak") or {}
    if not 0 < soak.get("interval_s", 0) <= soak.get("duration_s", 0):
        raise fail(
            f"the plan {session.plan} is no soak's, or its interval is longer than it lasts;"
            " `perch-agent run` walks other plans"
        )
    if not os.access(session.engine, os.X_OK):
        raise fail(
            f"there is no engine at {session.engine} on {session.host}: build it with"
            " `make engine`, or set agent_engine"
        )


def start(session: Session) -> Exit:
    """Returns when it serves and samples. Raises AgentError: it cannot, and nothing is left."""
    _checked(session)
    _refuse_second(session)
    prepare(session.folder)
    state = Path(session.state)
    try:
        state.parent.mkdir(parents=True, exist_ok=True)
        lock = state.with_name(state.name + ".lock").open("w")
    except OSError as error:
        raise fail(f"cannot write {state}: {error.strerror}; use another --state") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _refuse_second(session)
        session = session._replace(supervisor=_supervisor(session))
        session.save()
        session.claim()
    session.sync()
    why = _begun(session)
    if why is not None:
        soak_unit.end_unit() if session.supervisor == "systemd" else None
        _end_left(session.out)
        said = why or str(Past(session.folder).end.get("message", ""))
        if not said:
            with contextlib.suppress(OSError):
                said = " ".join(last_lines(session.folder / "agent.log")[-1:])
            said = said.rpartition(" perch-agent: ")[2]
        soak_session.release(session)
        raise fail(
            f"the soak of run {session.run} did not start on {session.host}:"
            f" {said or f'{session.out}/agent.log says why'}"
        )
    return status(session.out, state)


def _begun(session: Session) -> str | None:
    """None once it serves and samples; else why not, as far as its supervisor says."""
    started = session.control / "started"
    started.unlink(missing_ok=True)
    process, why = soak_unit.begin(session)
    if why:
        return why
    while not started.exists():
        if process.poll() is not None if process else not soak_unit.is_active():
            return None if started.exists() else ""
        time.sleep(LOOK_EVERY)
    return None


def resume(state: Path) -> Exit:
    """Goes on with the host's soak, as after a boot."""
    one = claimed(state)
    session = load(Path(one["out"])) if one else None
    if session is None:
        say(f"there is no soak to go on with on this host ({state})")
    elif runs(session.folder):
        say(f"the soak of run {session.run} runs already")
    else:
        why = _begun(session)
        if why is not None:
            raise fail(
                f"the soak of run {session.run} could not go on:"
                f" {why or f'{session.out}/agent.log says why'}"
            )
    return Exit.WALKED


# ---- stop ----------------------------------------------------------------------------------------


def _end_left(out: str) -> None:
    """Ends a session whose files say nothing of it."""
    for pid in left_running(out):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            end_agent(os.pidfd_open(pid), STOP_WITHIN)


def _note_stop(session: Session) -> None:
    """From now on the servers of others may be gone before our keepers.

    Within the time that a stop may take, a second one is the same; an older one counts no more.
    """
    starts = Past(session.folder).starts
    if not starts:
        return
    passed = starts[-1]["passed_s"] + Clock().uptime_ns() / 1e9 - starts[-1]["uptime_s"]
    file = session.control / "stop_asked"
    with contextlib.suppress(OSError, ValueError):
        if float(file.read_text()) > passed - STOP_WITHIN:
            return
    write_whole(file, f"{passed:.3f}\n".encode())


def stop(out: str, state: Path) -> Exit:
    """Ends the soak in `out`, or the host's; prints "stopped" where there was one.

    Raises:
        AgentError: its end could not be written.
    """
    folder = out or claimed(state).get("out", "")
    session = load(Path(folder)) if folder else None
    if session is None:
        if not folder or (out and not left_running(folder)):
            return Exit.WALKED
        _end_left(folder)
        soak_unit.remove_resume(str(state))
        if claimed(state).get("out") == folder:
            state.unlink()
        print("stopped")
        return Exit.WALKED
    with contextlib.suppress(AgentError):  # a full disk ends no stop
        write_whole(session.control / "reason", REASON)
    process = running(session.folder)
    if process is not None:
        with contextlib.suppress(AgentError):
            _note_stop(session)
        end_agent(process, STOP_WITHIN)
    elif not session.is_claimed():
        return Exit.WALKED
    else:
        (session.control / "stop_asked").unlink(missing_ok=True)  # of one that did not end it
        _end_left(session.out)  # one that has not said its number yet
    if session.supervisor == "systemd":
        soak_unit.end_unit()
    if session.is_claimed():
        soak_session.close(session)
    print("stopped")
    return Exit.WALKED


# ---- status --------------------------------------------------------------------------------------


def flow_told(folder: Path, key: str, state: str) -> dict[str, Any]:
    """Of a client's flow. A day has some 10 MB, so bytes are counted, and no JSON is read."""
    file = folder / "flows" / key / "client.soak"
    try:
        content = file.read_bytes()
    except OSError:  # a keeper that connected to no server removes it, at any moment
        content = b""
    told: dict[str, Any] = {"id": key, "state": state or ("running" if content else "waiting")}
    for name in ("interval", "gap", "stall"):
        told[f"{name}s"] = content.count(b'"kind":"%s"' % name.encode())
    for line in reversed(content.splitlines()[-LAST_LINES:]):
        if b'"kind":"interval"' in line:
            with contextlib.suppress(ValueError, KeyError):
                last = json.loads(line)
                if last.get("latency_us"):
                    told["last"] = {"p99_us": last["latency_us"]["p99"]}
                elif last.get("bandwidth"):
                    told["last"] = {"gbit_s": last["bandwidth"]["gbit_s"]}
            break
    return told


def _without(folder: str, run: str) -> dict[str, Any]:
    """Where no session can be read. What runs all the same is no soak that is over."""
    if folder and left_running(folder):
        message = "it has no control/soak.json any more; playbooks/soak_stop.yml ends it"
        return {"state": "running", "run": run, "out": folder, "message": message}
    message = "no soak on this host"
    if folder:
        message = (
            "nothing of this soak can be read here; playbooks/soak_stop.yml removes what is left"
        )
    return {"state": "none", "message": message}


def status(out: str, state: Path) -> Exit:
    """One JSON object, of the soak in `out` or of the host's."""
    one = {"out": out, "run": ""} if out else claimed(state)
    session = load(Path(one["out"])) if one else None
    if session is None:
        print(json.dumps(_without(one.get("out", ""), one.get("run", ""))))
        return Exit.WALKED
    past = Past(session.folder)
    told: dict[str, Any] = {"state": past.end.get("state", "interrupted"), "run": session.run}
    message = past.end.get("message", "")
    passed = past.passed_s()
    if runs(session.folder):
        is_begun = (session.control / "started").exists()
        told["state"] = "running" if is_begun else "starting"
        if past.starts:
            start = past.starts[-1]
            passed = start["passed_s"] + Clock().uptime_ns() / 1e9 - start["uptime_s"]
    elif not past.end:
        message = past.last.get("message") or (
            "no process of it runs, and it is not over:"
            f" {soak_unit.on_host('soak-resume', session)} on {session.host} goes on with it,"
            " playbooks/soak_stop.yml closes it"
        )
    soak = soak_session.share_of(session).document["soak"]
    clients = [key for key, role in past.begun if role == "client"]
    told.update(
        host=session.host,
        out=session.out,
        supervisor=session.supervisor,
        passed_s=max(0.0, passed),
        duration_s=soak["duration_s"],
        remaining_s=max(0.0, soak["duration_s"] - passed),
        flows=[
            flow_told(session.folder, one, past.done.get((one, "client"), "")) for one in clients
        ],
        **({"message": message} if message else {}),
    )
    print(json.dumps(told))
    return Exit.WALKED


def command(name: str, options: dict[str, str]) -> int:
    """Runs soak-NAME. Raises AgentError."""
    words = {key.replace("-", "_"): value for key, value in options.items()}
    for key in ("plan", "out", "engine", "token_file", "state"):
        if words.get(key):
            words[key] = os.path.abspath(words[key])  # noqa: PTH100, resolve() would follow links
    out, state = words.get("out", ""), Path(words.setdefault("state", STATE))
    if name == "status":
        return status(out, state)
    if name == "stop":
        return stop(out, state)
    if name == "resume":
        return resume(state)
    if name == "pack":
        os.nice(19)  # what goes on comes first
        return pack(Path(out), ends=False)
    if name == "start":
        run = read(Path(words["plan"]), words["host"], words["engine"], 0).run
        return start(Session(run, **words))
    session = load(Path(out))
    if session is None:
        raise fail(f"there is no soak in {out}: control/soak.json is missing or unreadable")
    return soak_session.run(session)
