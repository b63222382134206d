"""How a flow ended, from what its two agents left and what each agent says of itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import msgspec

from perch.model.plan import Flow
from perch.model.raw import Agent, End
from perch.model.record import Role
from perch.tools.tool import UNUSABLE

#: An end's signal and exit code where the agent ended an external tool's server, which does not end
#: by itself.
TERMINATED_EXIT = 143
TERMINATED_SIGNALS = ("TERM", 15)

#: Characters of a tool's last words that a message repeats.
WORDS_MAX = 400
#: Bytes from the end of standard error among which the last words are looked for.
WORDS_WITHIN = 65536

#: What says on standard error that a work request failed: libibverbs' words for the states of a
#: completion (ibv_wc_status_str in rdma-core), and perftest's own.
_FAILED = re.compile(
    rb"[Cc]ompletion with error|Failed status [1-9]"
    rb"|local (length|QP operation|EE context operation|protection|access|RDD violation) error"
    rb"|remote (invalid request|access|operation) error|bad response error|response timeout error"
    rb"|memory management operation error|Work Request Flushed Error"
    rb"|(transport|RNR) retry counter exceeded"
)

#: A tool's exit code and its last words -> the design's exit codes.
ExitCode = Callable[[int, str], int]


class Cause(msgspec.Struct, frozen=True):
    """Why a flow has no whole result.

    `code`: the design's exit codes, None where nothing was ever started.
    """

    state: Literal["error", "not_measured"]
    code: int | None
    message: str


def last_words(stderr: bytes, lines: int = 2) -> str:
    """The last lines of standard error that are not blank, in one line."""
    text = stderr[-WORDS_WITHIN:].decode("utf-8", "replace")
    words = "; ".join([line for line in text.split("\n") if line.strip()][-lines:])
    return words if len(words) <= WORDS_MAX else words[:WORDS_MAX] + "..."


@lru_cache(maxsize=256)  # most ends say the same, or nothing
def _failed_completion(stderr: bytes) -> str | None:
    """The first line of standard error that names a failed completion."""
    found = _FAILED.search(stderr) if stderr else None
    if found is None:
        return None
    line = stderr[stderr.rfind(b"\n", 0, found.start()) + 1 :].partition(b"\n")[0]
    return last_words(line)


def _said(end: End) -> str:
    return f": {end.message}" if end.message else ""


# ---- whose files they are ------------------------------------------------------------------------


def _bare(argv: Sequence[str]) -> list[str]:
    """A command without the program's path and the port, in which it may differ from the plan's."""
    ports = ("--port", "-p")
    return [word for before, word in pairwise(argv) if word not in ports and before not in ports]


def _is_planned(argv: list[str], planned: Sequence[str]) -> bool:
    # most commands are the planned one with its port at the end
    if argv[1:-2] == planned[1:] and len(argv) > 2 and argv[-2] == "--port":
        return True
    return _bare(argv) == _bare(planned)


def _stranger(run: str, flow: Flow, end: End, role: Role) -> str | None:
    """Which other measurement a raw file says that it is of; None where it is of this one."""
    host = flow.host(role)
    if end.run != run:
        return f"run {end.run!r}, not {run}"
    if end.flow != flow.id:
        return f"flow {end.flow!r}"
    if end.role != role:
        return f"role {end.role!r}, not {role}"
    if end.host != host:
        return f"host {end.host!r}, not {host}"
    planned = flow.client_argv if role == "client" else flow.server_argv
    ran = end.state == "done" and bool(planned)  # the engine's server is a service of its host
    if ran and (end.argv is None or not _is_planned(end.argv, planned)):
        return "another command than planned"
    return None


def belongs(run: str, flow: Flow, client: End | None, server: End | None) -> Cause | None:
    """Why the files are not of this flow in this run.

    Raw files are fetched, copied and moved about.
    """
    ends: tuple[tuple[Role, End | None], ...] = (("client", client), ("server", server))
    for role, end in ends:
        stranger = _stranger(run, flow, end, role) if end else None
        if stranger:
            why = f"raw file belongs to another measurement: the {role}'s line is of {stranger}"
            return Cause("error", 6, why)
    return None


# ---- the client ----------------------------------------------------------------------------------


def _absent(host: str, agent: Agent | None) -> str:
    """Why the client's end is not there: the agent's own report tells the three cases apart."""
    if agent is None:
        return f"host {host} returned no raw data"
    if agent.fault:
        return agent.fault
    if agent.state == "running":
        return f"the agent on {host} was still running, or was killed: its flows.jsonl has no end"
    return f"the agent on {host} left no line of this flow"


def _server_story(server: End | None) -> str:
    """The server's side of a meeting that failed: port in use, tool not installed."""
    if server is None:
        return ""
    if server.exit or _said(server):
        return f"; server on {server.host}: exit {server.exit}{_said(server)}"
    return ""


def _not_started(flow: Flow, client: End, server: End | None) -> Cause | None:
    """Of a client whose agent says that it started nothing."""
    if client.state == "not_run":
        # where the other end could not start, that end knows why
        other = server if server and server.state == "not_run" else None
        return Cause("not_measured", None, f"not run{_said(client)}{_said(other) if other else ''}")
    if client.state == "peer_dead":
        return Cause("not_measured", 4, f"host {flow.server} could not be reached{_said(client)}")
    if client.state == "meeting_failed":
        story = f"the two ends did not meet{_said(client)}{_server_story(server)}"
        return Cause("not_measured", 4, story)
    if client.state != "done":
        return Cause("error", 6, f"the client's line has the unknown state {client.state!r}")
    return None


def _badly_ended(flow: Flow, client: End, stderr: bytes, exit_code: ExitCode) -> Cause | None:
    """Of a client that was started; None where it exited 0, and no completion had failed."""
    if client.exit == 0 and not client.timed_out and not client.signal:
        failed = _failed_completion(stderr)
        if failed is None and client.message:  # no agent has a word for what ended well
            return Cause(
                "error", UNUSABLE, f"it exited 0, but the client's line has{_said(client)}"
            )
        if failed is None:
            return None
        code = exit_code(UNUSABLE, last_words(stderr))
        return Cause("error", code, f"it exited 0, but said: {failed}")
    words = last_words(stderr)
    after = f": {words}" if words else ""
    if client.timed_out:
        return Cause("error", 4, f"stopped at its deadline of {flow.deadline_s} s{after}")
    if client.signal:
        return Cause("error", 6, f"{flow.tool} was ended by signal {client.signal}{after}")
    if client.exit is None:
        return Cause("error", 6, "the client's line has no exit code")
    return Cause("error", exit_code(client.exit, words), f"exit {client.exit}{after}")


def cause(
    flow: Flow,
    client: End | None,
    server: End | None,
    agent: Agent | None,
    stderr: bytes,
    exit_code: ExitCode,
) -> Cause | None:
    """Why the client measured nothing, or not all; None where it ran and exited 0.

    `agent`: that of the client's host.
    """
    if client is None:
        return Cause("not_measured", None, _absent(flow.client, agent))
    return _not_started(flow, client, server) or _badly_ended(flow, client, stderr, exit_code)


# ---- the server ----------------------------------------------------------------------------------


def server_cause(flow: Flow, server: End | None, stderr: bytes = b"") -> Cause | None:
    """Why no result of the flow counts, from what the server's side left; None where it may count.

    An external tool's server ends by itself (one client, then exit 0) or by the agent's TERM.
    """
    if server is None:
        return Cause("error", 6, f"host {flow.server} left no server's line of this flow")
    if server.state != "done":
        why = f"the server's side ended in state {server.state!r}{_said(server)}"
        return Cause("error", 6, why)
    ended = f"exit {server.exit}, signal {server.signal}{_after(server, stderr)}"
    if flow.tool == "perch":
        if not server.exit and not server.signal and not server.timed_out:
            return None
        return Cause("error", 6, f"the server's side ended with {ended}")
    by_itself = server.exit == 0 and server.signal is None
    terminated = server.exit == TERMINATED_EXIT and server.signal in TERMINATED_SIGNALS
    if not server.timed_out and (by_itself or terminated):
        failed = _failed_completion(stderr)
        if failed is None:
            return None
        return Cause("error", UNUSABLE, f"{flow.tool}'s server said: {failed}")
    return Cause("error", 6, f"{flow.tool}'s server ended with {ended}")


def _after(server: End, stderr: bytes) -> str:
    """What a server said at its end, behind how it ended."""
    words = last_words(stderr) or server.message
    return f": {words}" if words else ""


def with_server(why: Cause, flow: Flow, server: End | None, stderr: bytes) -> Cause:
    """Why a client failed, with what the server's side says.

    A client often knows only that the other end went away.
    """
    found = server_cause(flow, server, stderr)
    words = _after(server, stderr) if server else ""
    said = found.message if found else words and f"server{words}"
    return msgspec.structs.replace(why, message=f"{why.message}; {said}") if said else why
