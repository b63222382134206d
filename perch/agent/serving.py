"""This host's `perch serve`: every perch flow and every meeting on this host goes through it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from perch.agent.children import Children, Process
from perch.agent.errors import AgentError, Exit
from perch.agent.share import Share

#: Seconds between two looks for the ready file: no event reports that it was written.
LOOK_EVERY = 0.02

#: Seconds for it to serve. It takes milliseconds; 32 agents that start on two cores took 5 s.
READY_WITHIN = 30.0


def require(engine: str, host: str) -> None:
    """Raises AgentError: it is not there."""
    if not os.access(engine, os.X_OK):
        raise AgentError(
            Exit.HOST,
            f"there is no engine at {engine} on {host}: build it with `make engine`,"
            " or set agent_engine",
        )


def why(host: str, process: Process) -> str:
    """How it has ended."""
    ended = process.ended.result()
    if ended.signal:
        return f"perch serve on {host} ended: by signal {ended.signal}"
    said = process.stderr.last_line() or "it gave no reason"
    return f"perch serve on {host} ended with exit code {ended.exit}: {said}"


async def start(children: Children, share: Share, engine: str, folder: Path) -> Process:
    """Returns once it serves.

    Raises:
        AgentError: it cannot serve.
    """
    ready = folder / "ready"
    ready.unlink(missing_ok=True)
    argv = [engine, "serve", "--bind", share.address, "--port", str(share.port)]
    argv += ["--timeout", share.longest_timeout]
    try:
        process = children.start([*argv, "--ready-file", str(ready)], is_server=True)
    except OSError as error:
        raise AgentError(Exit.HOST, f"cannot start {engine}: {error.strerror}") from None
    loop = asyncio.get_running_loop()
    until = loop.time() + READY_WITHIN
    while not ready.exists():
        await asyncio.wait({process.ended}, timeout=LOOK_EVERY)
        if process.ended.done():
            raise AgentError(Exit.HOST, why(share.host, process))
        if loop.time() > until:
            words = f"perch serve on {share.host} does not serve after {READY_WITHIN:g} s"
            raise AgentError(Exit.HOST, words)
    return process


def ended(host: str, process: Process) -> asyncio.Future[str]:
    """What is done when it has ended, with the reason."""
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    process.ended.add_done_callback(lambda _: told.set_result(why(host, process)))
    return told
