# SPDX-License-Identifier: Apache-2.0
"""Runs perchctl on the controller; a module would start another Python only to start it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction

DOCUMENTATION = r"""
module: perchctl
short_description: Run perchctl on the controller
description: Its result is that of M(perch.fabric.perch_command).
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
            ended = subprocess.run(
                argv,
                input=(options["stdin"] or "").encode(errors="surrogateescape"),
                capture_output=True,
                check=False,
                env=os.environ | {"PYTHONPATH": options["home"]},
            )
        except OSError as error:
            why = f"{argv[0]} cannot be run: {error.strerror}"
            return {"failed": True, "rc": error.errno, "cmd": argv, "msg": why}
        out, err = said(ended.stdout), said(ended.stderr)
        return {
            "changed": True, "cmd": argv, "rc": ended.returncode,
            "stdout": out, "stdout_lines": out.splitlines(),
            "stderr": err, "stderr_lines": err.splitlines(),
        }  # fmt: skip
