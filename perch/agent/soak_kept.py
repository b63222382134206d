"""What is kept of a soak on its host: whose it is, what it was asked for, what it has come to.

`control/soak.json` is the session: what was asked. The host's state file names its one soak from
the moment that it is claimed until it is over. The rest is read from the raw files themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from perch.agent.asking import last_lines, running
from perch.agent.errors import AgentError, Exit, say
from perch.agent.files import encoded, write_whole


class Session(NamedTuple):
    """What a soak was asked for. `begin`: seconds since the epoch when it begins; 0: at once."""

    run: str
    host: str
    out: str
    plan: str
    engine: str
    state: str
    supervisor: str = "auto"
    token_file: str = ""
    start_window: str = "60"
    begin: str = "0"

    @property
    def window_s(self) -> int:
        return int(self.start_window)

    @property
    def folder(self) -> Path:
        return Path(self.out)

    @property
    def control(self) -> Path:
        return self.folder / "control"

    def save(self) -> None:
        write_whole(self.control / "soak.json", encoded(self._asdict()))

    def is_claimed(self) -> bool:
        """Whether the host's soak is still this one."""
        return claimed(Path(self.state)).get("out") == self.out

    def claim(self) -> None:
        told = {"run": self.run, "host": self.host, "out": self.out}
        write_whole(Path(self.state), encoded(told))

    def sync(self) -> None:
        """What a boot must find is on disk before there is any load: that may end this host."""
        files = [self.plan, self.state, *filter(None, [self.token_file])]
        folders = [self.control, self.folder, self.folder.parent, Path(self.state).parent]
        try:
            sync_all([self.control / "soak.json", *files, *folders])
        except OSError as error:
            say(f"the soak's beginning may not outlive a crash: {error.strerror}")


def sync_all(paths: list[Path | str]) -> None:
    for path in paths:
        held = os.open(path, os.O_RDONLY)
        try:
            os.fsync(held)
        finally:
            os.close(held)


def load(out: Path) -> Session | None:
    """None: its folder was removed, or a crash has taken what was just written."""
    try:
        return Session(**json.loads((out / "control/soak.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def claimed(state: Path) -> dict[str, str]:
    """The host's soak: run, host, out; {} where it has none."""
    try:
        found = json.loads(state.read_bytes())
        return found if isinstance(found["run"], str) and isinstance(found["out"], str) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def runs(out: Path) -> bool:
    found = running(out)
    if found is not None:
        os.close(found)
    return found is not None


def left_running(out: str) -> list[int]:
    """The processes of a session, whatever has become of its files."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = one.read_text(errors="replace").split("\0")[:-1]
            if words[-3:] == ["soak-session", "--out", out]:
                found.append(int(one.parent.name))
    return found


class Past:
    """What the raw files say. Lines that are not whole are none: a crash may leave some."""

    def __init__(self, folder: Path) -> None:
        self.starts: list[dict[str, Any]] = []
        self.begun: dict[tuple[str, str], dict[str, Any]] = {}
        self.done: dict[tuple[str, str], str] = {}
        self.end: dict[str, Any] = {}
        self.last: dict[str, Any] = {}
        with contextlib.suppress(OSError), (folder / "flows.jsonl").open("rb") as lines:
            for line in lines:
                with contextlib.suppress(ValueError, KeyError):
                    self._take(json.loads(line))
        self.sample: dict[str, Any] = {}
        with contextlib.suppress(OSError):
            for text in last_lines(folder / "samples.jsonl")[-2:]:
                with contextlib.suppress(ValueError):
                    one = json.loads(text)
                    self.sample = one if one["kind"] == "sample" else self.sample

    def _take(self, line: dict[str, Any]) -> None:
        self.last = line
        if line["kind"] == "start":
            self.starts.append(line)
        elif line["kind"] == "begin":
            self.begun[line["id"], line["role"]] = line
        elif line["kind"] == "flow":
            self.done[line["id"], line["role"]] = line["state"]
        elif line["kind"] == "end":
            self.end = line

    def passed_s(self) -> float:
        """As of its last sample, or of its end; 0 where neither says."""
        if "passed_s" in self.end or not self.starts:
            return float(self.end.get("passed_s", 0))
        since = self.starts[-1]
        if self.sample.get("boot_id") != since["boot_id"]:
            return max(0.0, float(since["passed_s"]))
        passed = since["passed_s"] + self.sample["uptime_s"] - since["uptime_s"]
        return max(0.0, float(passed))


def fail(message: str) -> AgentError:
    return AgentError(Exit.HOST, message)
