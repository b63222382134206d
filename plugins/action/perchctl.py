# SPDX-License-Identifier: Apache-2.0
"""Runs perchctl on the controller; a module would start another Python only to start it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction

DOCUMENTATION = r"""
module: perchctl
short_description: Run perchctl on the controller
description: >-
  Its result is that of M(perch.fabric.perch_command). After two hours it is killed with all that
  it started, and the task fails.
options:
  argv:
    description: A command of perchctl and its arguments.
    type: list
    elements: str
    required: true
  home: {description: The folder that has the package perch., type: path, required: true}
  python: {description: A Python that has what perch needs., type: path, required: true}
  stdin: {description: "Its standard input. Without it there is nothing to read.", type: str}
attributes:
  check_mode:
    support: partial
    description: "Skips the program, unless the task says C(check_mode: false)."
author: [The Perch authors]
"""

#: Seconds: twice what perchctl gives tar, the longest of its own deadlines (perch.history.packed).
LIMIT_S = 7200
LATE = 124  # the exit code of timeout(1) then
ENDING_S = 10  # what waits for a dead file system does not even end when it is killed


def outputs(process: subprocess.Popen, given: bytes, limit_s: float) -> tuple[bytes, bytes] | None:
    """What it wrote; None: it did not end, and was killed with all that it had started."""
    try:
        return process.communicate(given, timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=ENDING_S)


def said(text: bytes) -> str:
    """What a program wrote, without the newlines at the end."""
    return text.decode(errors="replace").rstrip("\r\n")


class ActionModule(PerchAction):
    OPTIONS = {
        "argv": {"type": "list", "elements": "str", "required": True},
        "home": {"type": "path", "required": True},
        "python": {"type": "path", "required": True},
        "stdin": {"type": "str"},
    }

    def act(self, options, task_vars):
        # -P: a folder perch where the playbook was started is another program
        argv = [options["python"], "-P", "-m", "perch", *options["argv"]]
        if self._task.check_mode:
            return {"skipped": True, "msg": "not run in check mode", "rc": 0, "stdout": ""}
        try:
            environment = os.environ | {"PYTHONPATH": options["home"]}
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            process = subprocess.Popen(argv, env=environment, start_new_session=True, **pipes)
        except OSError as error:
            why = f"{argv[0]} cannot be run: {error.strerror}"
            return {"failed": True, "rc": error.errno, "cmd": argv, "msg": why}
        given = (options["stdin"] or "").encode(errors="surrogateescape")
        both = outputs(process, given, LIMIT_S)
        if both is None:
            why = (
                f"perchctl {' '.join(options['argv'][:1])} did not end within {LIMIT_S} s and was "
                "killed; see that this machine's disks answer, and run the playbook again"
            )
            return {"failed": True, "rc": LATE, "cmd": argv, "msg": why}
        out, err = map(said, both)
        return {
            "changed": True, "cmd": argv, "rc": process.returncode,
            "stdout": out, "stdout_lines": out.splitlines(),
            "stderr": err, "stderr_lines": err.splitlines(),
        }  # fmt: skip
