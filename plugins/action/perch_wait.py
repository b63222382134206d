# SPDX-License-Identifier: Apache-2.0
"""Waits for the agent of one host and shows which flow is being measured meanwhile.

One task for the whole plan: it asks `perch-agent poll` again and again,
which also renews the agent's lease. When the playbook ends early, for whatever reason,
it is not renewed, and the agent ends by itself.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction, told

DOCUMENTATION = r"""
module: perch_wait
short_description: Wait for a host's perch-agent, showing its progress
description:
  - Polls the agent until it has ended, or until O(limit) seconds have passed.
    Fails unless the agent walked its plan to the end.
options:
  agent:
    description: The agent on the host, and what runs it.
    type: list
    elements: str
    required: true
  out: {description: The directory that the agent writes., type: str, required: true}
  limit: {description: Seconds after which waiting is given up., type: int, required: true}
  interval: {description: Seconds between two looks., type: float, default: 1}
  lost_after:
    description: Seconds without a connection after which the host is lost.
    type: int
    default: 60
author: [The Perch authors]
"""

LOG_LINES = 10  # of agent.log in a failure's message: the end of one flow's story


def time_left(planned: float, planned_passed: float, passed: float) -> float:
    """Seconds left: the plan's, times what its past has taken compared
    with what was planned for it.
    """
    return planned * passed / planned_passed if planned_passed > 0 else planned


def progress_line(event: dict, left: float) -> str:
    """'[ 3/14] TCP latency, alpha -> beta, about 40 s left'; after beta a rail other than 0"""
    width = len(str(event["total"]))
    rail = event["flow"].split("/")[3]
    return (
        f"[{event['index']:>{width}}/{event['total']}] {event['title']}, "
        f"{event['client']} -> {event['server']}, "
        + (f"rail {rail}, " if rail != "0" else "")
        + f"about {round(left)} s left"
    )


class ActionModule(PerchAction):
    OPTIONS = {
        "agent": {"type": "list", "elements": "str", "required": True},
        "out": {"type": "str", "required": True},
        "limit": {"type": "int", "required": True},
        "interval": {"type": "float", "default": 1.0},
        "lost_after": {"type": "int", "default": 60},
    }
    _requires_connection = True

    def act(self, options, task_vars):
        self._options = options
        # the first flow's remaining seconds and when it began
        self._first: tuple[float, float] | None = None
        if self._task.check_mode:
            return {"skipped": True, "msg": "no agent runs in check mode"}
        self._wait()
        agent = self._agent_state()
        if agent.get("state") != "done":
            why = agent.get("message") or "the agent ended without a word (killed?)"
            raise AnsibleActionFail(f"perch-agent: {why}\nThe end of its log:\n{self._log()}")
        return {"changed": False, "flows": agent["flows_done"]}

    def _command(self, *words: str) -> dict:
        return self._low_level_execute_command(shlex.join(words), sudoable=True)

    def _ask(self, command: str, *more: str) -> dict:
        agent, out = self._options["agent"], self._options["out"]
        return self._command(*agent, command, "--out", out, *more)

    def _wait(self) -> None:
        options = self._options
        offset = 0
        heard = began = time.monotonic()
        while True:
            try:
                alive, text = self._poll(offset)
                heard = time.monotonic()
            except AnsibleConnectionFailure as error:
                if time.monotonic() - heard > options["lost_after"]:
                    raise AnsibleActionFail(
                        f"no connection for {options['lost_after']} s: {error}"
                    ) from error
                alive, text = True, ""
            offset += self._show(text)
            if not alive:
                return
            if time.monotonic() - began > options["limit"]:
                raise AnsibleActionFail(
                    f"perch-agent has not ended after {options['limit']} s, "
                    f"when its plan must be over.\n{self._log()}"
                )
            time.sleep(options["interval"])

    def _poll(self, offset: int) -> tuple[bool, str]:
        answer = self._ask("poll", "--offset", str(offset))
        # over ssh it may come through a terminal, which ends lines its own way,
        # and has an empty one before where sudo was slow
        state, _, text = answer["stdout"].replace("\r\n", "\n").lstrip("\n").partition("\n")
        if answer["rc"] != 0 or state.strip() not in ("alive", "gone"):
            raise AnsibleActionFail(
                f"perch-agent poll failed: {answer['stderr'] or answer['stdout']}"
            )
        return state.strip() == "alive", text

    def _show(self, text: str) -> int:
        """Shows the beginnings of flows at their client's end;
        answers how many bytes were whole lines.
        """
        whole = text[: text.rfind("\n") + 1]
        for line in whole.splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue  # a line of a terminal's making, not of the agent's
            if event["event"] == "start" and event["role"] == "client":
                left = self._left(event["remaining_s"], time.monotonic())
                told(progress_line(event, left))
        return len(whole.encode())

    def _left(self, planned: float, now: float) -> float:
        if self._first is None:
            self._first = (planned, now)
        return time_left(planned, self._first[0] - planned, now - self._first[1])

    def _agent_state(self) -> dict:
        answer = self._ask("status")
        try:
            return json.loads(answer["stdout"])
        except ValueError:
            return {"message": f"perch-agent status failed: {answer['stderr'].strip()}"}

    def _log(self) -> str:
        answer = self._command("tail", "-n", str(LOG_LINES), f"{self._options['out']}/agent.log")
        return answer["stdout"].strip() or "(nothing)"
