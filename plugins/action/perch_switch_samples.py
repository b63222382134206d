# SPDX-License-Identifier: Apache-2.0
"""Reads a switch again and again while flows run, in a process of its own on the controller.

The process keeps the connection and the settings of the task that began it. It ends with the
playbook, however that ends: it waits on a descriptor of Ansible's main process.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import json
import os
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from ansible.utils.display import Display

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction

DOCUMENTATION = r"""
module: perch_switch_samples
short_description: Read a switch while flows run
description:
  - With O(commands) it starts a process that appends a line a reading to O(path), one reading at a
    time. Where such a process runs already, it starts none. With O(into) it ends that process,
    waits until it is gone, and moves its file.
  - A reading begins O(interval) seconds after the one before. From a slow switch it begins later,
    after 20 times what all its answers took. In a process that has lasted long it begins later,
    too, after a 250th of that time.
options:
  path: {description: The file of readings while it grows., type: path, required: true}
  into: {description: The file of readings when it is whole., type: path}
  commands: {description: "The questions to the switch, by name.", type: dict}
  head: {description: "Run, switch and provider, for each line.", type: dict}
  interval: {description: Seconds between the beginnings of two readings., type: int}
  timeout: {description: Seconds that one reading may take., type: int}
author: [The Perch authors]
"""

# A counter was read at some moment of the wait for its answer. With this pause a rate between two
# such readings is known to 5 %, half of what reports/jq/switches/samples.jq allows (late).
PAUSE_PER_ANSWER = 20
# So that a week has some 1,600 readings: jq takes 0.2 s to judge one of 64 ports of NX-OS.
PAUSES_PER_TIME = 250
# What perch/judge/raw.py reads of one file; a playbook that hangs fills no disk.
LARGEST = 64 * 2**20
# struct flock of Linux: type, whence, start, length, pid
FLOCK = "hhqqi"


def holder(file: int) -> int:
    """The process that has locked the file; 0 without one."""
    asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, *_, pid = struct.unpack(FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return 0 if kind == fcntl.F_UNLCK else pid


def wall() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def answers(ask: Callable[[str], dict], commands: dict) -> dict:
    """What each command was answered, with the monotonic times of request and answer."""
    said = {}
    for name, command in commands.items():
        asked = time.monotonic()
        try:
            told = ask(command)
            answer = {"exit": told["rc"], "stdout": told["stdout"], "stderr": told["stderr"]}
        except Exception as error:  # whatever a connection plugin raises
            answer = {"exit": None, "stdout": "", "stderr": str(error)}
        said[name] = answer | {"asked_s": asked, "answered_s": time.monotonic()}
        if answer["exit"] is None:
            break  # the others would wait for nothing
    return said


class Reading:
    """One reading, in a process group of its own, which can be ended whatever it waits for."""

    def __init__(self, ask: Callable[[str], dict], commands: dict) -> None:
        self._commands = list(commands)
        self.asked_s = time.monotonic()
        self._pipe, end = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setpgid(0, 0)
            with os.fdopen(end, "w") as out:
                json.dump(answers(ask, commands), out)
            os._exit(0)
        os.close(end)
        with contextlib.suppress(OSError):  # it may have done so, and ended
            os.setpgid(self._pid, self._pid)

    def answers(self, timeout: float, ends: list[int]) -> dict | None:
        """None where the playbook or the process that reads is to end."""
        text, look = b"", select.poll()
        for one in (self._pipe, *ends):
            look.register(one, select.POLLIN)
        while True:
            left = max(self.asked_s + timeout - time.monotonic(), 0)
            ready = {one for one, _ in look.poll(left * 1000)}
            if ready & set(ends):
                return None
            if not ready:
                return self._silent(f"no answer within {timeout} s")
            block = os.read(self._pipe, 2**20)
            if not block:
                return json.loads(text) if text else self._silent("the reading was interrupted")
            text += block

    def _silent(self, why: str) -> dict:
        said = {"exit": None, "stdout": "", "stderr": why, "asked_s": self.asked_s}
        return {name: said | {"answered_s": time.monotonic()} for name in self._commands}

    def end(self) -> None:
        """Ends it and what it has begun, and waits for it."""
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._pipe)


def sample(ask: Callable[[str], dict], options: dict, file: int, ends: list[int]) -> None:
    """Appends readings until one of `ends` can be read, or the file is full."""
    wait = select.poll()
    for one in ends:
        wait.register(one, select.POLLIN)
    begun, begun_s = wall(), time.monotonic()
    while os.fstat(file).st_size < LARGEST:
        now = wall()
        reading = Reading(ask, options["commands"])
        said = reading.answers(options["timeout"], ends)
        reading.end()
        if said is None:
            return
        head = {"schema": "perch.switch/1", "phase": "during", "begun": begun, "collected": now}
        line = options["head"] | head | {"asked_s": reading.asked_s, "commands": said}
        os.write(file, gzip.compress(json.dumps(line).encode() + b"\n"))
        waited = max(one["answered_s"] for one in said.values()) - reading.asked_s
        pauses = [PAUSE_PER_ANSWER * waited, (reading.asked_s - begun_s) / PAUSES_PER_TIME]
        next_s = reading.asked_s + max(options["interval"], *pauses)
        if wait.poll(max(next_s - time.monotonic(), 0) * 1000):
            return


class ActionModule(PerchAction):
    OPTIONS = {
        "path": {"type": "path", "required": True},
        "into": {"type": "path"},
        "commands": {"type": "dict"},
        "head": {"type": "dict"},
        "interval": {"type": "int"},
        "timeout": {"type": "int"},
    }
    _requires_connection = True

    def act(self, options, task_vars):
        if self._task.check_mode:
            return {"skipped": True, "msg": "no switch is sampled in check mode"}
        if options["into"]:
            return {"changed": self._end(Path(options["path"]), options["into"])}
        return {"changed": self._start(options)}

    def _ask(self, command: str) -> dict:
        return self._low_level_execute_command(command, executable=False)

    def _start(self, options: dict) -> bool:
        """Returns when the process holds the file; False where another one does."""
        Path(options["path"]).parent.mkdir(exist_ok=True)
        file = os.open(options["path"], os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        if holder(file):
            os.close(file)
            return False
        playbook = os.pidfd_open(os.getppid())
        begun, begin = os.pipe()
        if os.fork() == 0:
            try:
                self._serve(options, file, playbook, begin)
            finally:
                os._exit(0)  # all above is another program's
        os.close(begin)
        os.read(begun, 1)
        return True

    def _serve(self, options: dict, file: int, playbook: int, begin: int) -> None:
        os.setsid()
        Display()._final_q = None  # Ansible's main process no longer listens
        stop, stopped = os.pipe()
        os.set_blocking(stopped, False)
        signal.set_wakeup_fd(stopped)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: None)
        fcntl.lockf(file, fcntl.LOCK_EX)
        os.close(begin)
        sample(self._ask, options, file, [playbook, stop])

    def _end(self, path: Path, into: str) -> bool:
        """Whether there was a file of readings."""
        if not path.exists():
            return False
        with path.open("r+b") as file:
            pid = holder(file.fileno())
            if pid:
                os.kill(pid, signal.SIGTERM)
            fcntl.lockf(file, fcntl.LOCK_EX)  # until it is gone
        path.replace(into)
        with contextlib.suppress(OSError):
            path.parent.rmdir()  # the last one leaves nothing
        return True
