# SPDX-License-Identifier: Apache-2.0
"""Waits for the soak of one host, and shows now and then how it goes.

The soak goes on by itself: a connection that is lost, or a playbook that ends,
changes nothing on the host.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction, told

DOCUMENTATION = r"""
module: perch_soak_wait
short_description: Wait for a host's soak, showing its progress
description:
  - Asks perch-agent for the soak's status until it is over. Never fails for what the soak is like,
    as that is the verdict's to say; RV(state) and RV(message) tell how it ended.
options:
  agent:
    description: The agent on the host, and what runs it.
    type: list
    elements: str
    required: true
  out: {description: The directory that the agent writes., type: str, required: true}
  state: {description: The link to the host's soak., type: str, required: true}
  wait: {description: Whether to wait at all; otherwise one look., type: bool, default: true}
  lead:
    description: Whether this host shows the time that is left.
      The others only say when their state changes.
    type: bool
    default: false
  interval: {description: Seconds between two looks., type: float, default: 10}
  progress:
    description: Seconds between two lines of the host that leads.
    type: float
    default: 60
  grace:
    description: Seconds beyond the soak's own time before it is given up.
    type: float
    default: 600
author: [The Perch authors]
"""

OVER = ("done", "stopped", "none")
TIMES = ("passed", "duration", "remaining")
# Seconds in which a host that has rebooted, or whose session has crashed, is given time to go on by
# itself: systemd's own DefaultTimeoutStartSec is 90 s, and the unit starts when the network is up.
RESUME_WITHIN = 300


def clock(seconds: float) -> str:
    """'23:59:05'"""
    whole = max(0, round(seconds))
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


class NoAnswer(Exception):
    """The host was reached, and its agent said nothing that makes sense."""


class ActionModule(PerchAction):
    OPTIONS = {
        "agent": {"type": "list", "elements": "str", "required": True},
        "out": {"type": "str", "required": True},
        "state": {"type": "str", "required": True},
        "wait": {"type": "bool", "default": True},
        "lead": {"type": "bool", "default": False},
        "interval": {"type": "float", "default": 10.0},
        "progress": {"type": "float", "default": 60.0},
        "grace": {"type": "float", "default": 600.0},
    }
    _requires_connection = True

    def act(self, options, task_vars):
        self._options = options
        if self._task.check_mode:
            return {"skipped": True, "msg": "no soak runs in check mode"}
        self._host = task_vars["inventory_hostname"]
        self._before: dict | None = None
        self._shown = self._end = float("-inf")
        status = self._wait()
        return {
            "changed": False,
            "state": status["state"],
            "message": status.get("message") or "",
            "status": status,
        }

    def _say(self, text: str) -> None:
        told(f"[{self._host}] {text}")

    def _wait(self) -> dict:
        options = self._options
        lost = interrupted = None
        while True:
            now = time.monotonic()
            try:
                status = self._status()
                if lost is not None:
                    self._say("answers again")
                lost = None
                self._show(status, now)
                if status["state"] in OVER or not options["wait"]:
                    return status
                left = status.get("remaining_s") or 0
                if left > 0 or self._end == float("-inf"):
                    self._end = now + left
                interrupted = (interrupted or now) if status["state"] == "interrupted" else None
                if interrupted is not None and not self._comes_back(status, now - interrupted):
                    return status
            except (AnsibleConnectionFailure, NoAnswer) as error:
                if lost is None:
                    self._say(f"does not answer; its soak goes on without us ({error})")
                    lost = now
                if not options["wait"] or self._end == float("-inf"):
                    return {"state": "unreachable", "message": f"no connection: {error}"}
            if now > self._end + options["grace"]:
                return self._given_up(lost, now)
            time.sleep(options["interval"])

    def _given_up(self, lost: float | None, now: float) -> dict:
        if lost is not None:
            return {
                "state": "unreachable",
                "message": f"no connection for {round(now - lost)} s, and its time is over",
            }
        return {
            "state": "running",
            "message": f"it should have been over {round(now - self._end)} s ago, and is not",
        }

    def _comes_back(self, status: dict, waited_s: float) -> bool:
        """An interrupted soak goes on by itself where systemd looks after it."""
        return status.get("supervisor") == "systemd" and waited_s < RESUME_WITHIN

    def _status(self) -> dict:
        asked = [word for key in ("out", "state") for word in (f"--{key}", self._options[key])]
        command = [*self._options["agent"], "soak-status", *asked]
        answer = self._low_level_execute_command(shlex.join(command), sudoable=True)
        try:
            status = json.loads(answer["stdout"])
            if answer["rc"] == 0 and isinstance(status["state"], str):
                return status
        except (ValueError, KeyError, TypeError):
            pass
        raise NoAnswer(
            "perch-agent soak-status failed: "
            f"{answer['stderr'].strip() or answer['stdout'].strip() or answer['rc']}"
        )

    def _show(self, status: dict, now: float) -> None:
        before, self._before = self._before, status
        if status["state"] != (before or {}).get("state", "running"):
            message = status.get("message")
            self._say(f"{status['state']}: {message}" if message else status["state"])
        due = now - self._shown >= self._options["progress"] or not self._options["wait"]
        if (
            self._options["lead"]
            and due
            and status["state"] == "running"
            and (status.get("remaining_s") or 0) > 0
        ):
            passed, whole, left = (clock(status.get(f"{key}_s") or 0) for key in TIMES)
            self._say(f"{passed} of {whole}, {left} left")
            self._shown = now
