"""How the agent ends."""

from __future__ import annotations

import enum
import sys
import time


class Exit(enum.IntEnum):
    WALKED = 0
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


def say(text: str) -> None:
    """A line of agent.log, which standard error is."""
    print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), text, file=sys.stderr, flush=True)
