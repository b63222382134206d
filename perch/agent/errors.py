"""How the agent ends."""

from __future__ import annotations

import contextlib
import enum
import os
import sys
import time


class Exit(enum.IntEnum):
    WALKED = 0
    CRASHED = 1  # a mistake of the agent's own
    USAGE = 2
    HOST = 3  # this host cannot: no engine, port in use, directory not writable
    STOPPED = 4
    INTERNAL = 6  # results can no longer be written


class AgentError(Exception):
    """The agent cannot go on. `args[0]`: the exit code, `args[1]`: why, for people."""

    def __init__(self, code: Exit, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


#: The last line of agent.log, which a full disk may have lost.
said = ""


def say(text: str) -> None:
    """A line of agent.log, which standard error is. A full disk may lose it, and no more."""
    global said
    said = text
    line = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) + f" {text}\n"
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), line.encode(errors="replace"))
