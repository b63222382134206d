"""perch-agent's command line.

    perch-agent run   --plan FILE --host NAME --out DIR --engine PATH
                      [--token-file FILE] [--lease S] [--start-window S] [--follow S]
    perch-agent start (the same options)    run, detached; returns when it serves
    perch-agent poll  --out DIR [--offset N]  for the controller: renews the lease
    perch-agent status --out DIR            one JSON object
    perch-agent stop  --out DIR
    perch-agent pack  --out DIR             stop, and pack results as DIR.tar.gz; prints its path

    perch-agent soak-start (those of run)   the plan of a soak, for hours; returns when it measures
                      [--begin EPOCH_S] [--supervisor auto|session] [--state FILE]
    perch-agent soak-status [--out DIR] [--state FILE] [--kept DIR --host NAME]
    perch-agent soak-stop [--out DIR] [--state FILE]
    perch-agent soak-pack --out DIR         packs results; what runs goes on

Exit: 0 walked to the end, 2 usage, 3 this host cannot, 4 stopped before the end, 6 results can no
longer be written.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from perch.agent import asking
from perch.agent.errors import AgentError, Exit, say

#: What the value of an option may be.
_PATHS = ("plan", "out", "engine", "token-file", "state", "kept")
_WORDS = {**dict.fromkeys((*_PATHS, "host"), ""), "supervisor": "auto|session"}
_NUMBERS = {"lease": 0, "start-window": 60, "follow": 0, "offset": 0, "begin": 0}
_PLAN = ("plan", "host", "out", "engine")
_NEEDED: dict[str, tuple[str, ...]] = {
    "run": _PLAN,
    "start": _PLAN,
    "soak-start": _PLAN,
    "soak-session": _PLAN,  # what systemd's unit runs
    "soak-status": (),
    "soak-stop": (),
    "soak-pack": ("out",),
    "poll": ("out",),
    "status": ("out",),
    "stop": ("out",),
    "pack": ("out",),
}


def _unknown(what: str, word: str, known: Iterable[str]) -> AgentError:
    from difflib import get_close_matches

    near = get_close_matches(word, known, 1)
    hint = f"did you mean '{near[0]}'?" if near else "`perch-agent --help` lists all"
    return AgentError(Exit.USAGE, f"unknown {what} '{word}'; {hint}")


def _options(command: str, words: list[str]) -> dict[str, Any]:
    """Paths are whole: an agent that is detached, or a unit, works elsewhere.

    Raises:
        AgentError: usage.
    """
    found: dict[str, Any] = dict(_NUMBERS)
    for name, value in zip(words[::2], [*words[1::2], None]):
        key = name[2:] if name.startswith("--") else ""
        if key not in _WORDS and key not in _NUMBERS:
            options = [f"--{one}" for one in (*_WORDS, *_NUMBERS)]
            raise _unknown("option", name, options)
        if value is None:
            raise AgentError(Exit.USAGE, f"option {name} needs a value")
        if key in _NUMBERS and not re.fullmatch(r"[0-9]{1,18}", value):
            raise AgentError(Exit.USAGE, f'option {name} takes a whole number, not "{value}"')
        accepted = _WORDS.get(key, "")
        if accepted and not re.fullmatch(accepted, value):
            raise AgentError(Exit.USAGE, f'option {name} takes {accepted}, not "{value}"')
        found[key] = int(value) if key in _NUMBERS else value
        if key in _PATHS and value:
            found[key] = os.path.abspath(value)  # noqa: PTH100, resolve() would follow links
    for key in _NEEDED[command]:
        if not found.get(key):
            raise AgentError(Exit.USAGE, f"option --{key} is required")
    return found


def _walk(command: str, options: dict[str, Any]) -> Exit:
    from perch.agent import control
    from perch.agent.agent import Settings
    from perch.agent.share import read

    out, engine, window_s = Path(options["out"]), options["engine"], options["start-window"]
    control.prepare(out)
    share = read(Path(options["plan"]), options["host"], engine, window_s)
    token_file = options.get("token-file", "")
    settings = Settings(out, engine, token_file, options["lease"], window_s, options["follow"])
    return control.start(share, settings) if command == "start" else control.run(share, settings)


def main(words: list[str]) -> int:
    command = words[0] if words else ""
    if command in ("", "--help", "-h"):
        usage = sys.stdout if command else sys.stderr
        usage.write((__doc__ or "").partition("\n\n")[2])
        return int(Exit.WALKED if command else Exit.USAGE)
    try:
        if command not in _NEEDED:
            raise _unknown("command", command, _NEEDED)
        options = _options(command, words[1:])
        if command.startswith("soak-"):
            from perch.agent import soak_control

            return soak_control.command(command[5:], options)
        out = Path(options["out"])
        if command == "poll":
            return int(asking.poll(out, options["offset"]))
        told = {"status": asking.status, "stop": asking.stop, "pack": asking.pack}
        if command in told:
            return int(told[command](out))
        return int(_walk(command, options))
    except AgentError as error:
        say(f"perch-agent: {error.message}")
        return int(error.code)
