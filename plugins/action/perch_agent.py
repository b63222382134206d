# SPDX-License-Identifier: Apache-2.0
"""Puts perch-agent on a host: packed here, written only where the host has another one."""

from __future__ import annotations

import base64
import importlib.util
import sys
from pathlib import Path

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction

DOCUMENTATION = r"""
module: perch_agent
short_description: Put perch-agent on a host
description:
  - Packs the agent as C(make agent) does, as one file. The same sources give the same bytes, so a
    host that has them is left alone.
options:
  dest: {description: The agent on the host., type: path, required: true}
  files:
    description: "The text of more files, by their paths, as M(perch.fabric.perch_put) writes them."
    type: dict
    default: {}
author: [The Perch authors]
"""

PACKER = Path(__file__).parents[2] / "setup/zipapp.py"


def packed() -> bytes:
    """The standard library has a zipapp, too, so this one is named by its path."""
    spec = importlib.util.spec_from_file_location("perch_zipapp", PACKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.packed()


class ActionModule(PerchAction):
    OPTIONS = {
        "dest": {"type": "path", "required": True},
        "files": {"type": "dict", "default": {}},
    }
    _requires_connection = True

    def act(self, options, task_vars):
        programs = {options["dest"]: base64.b64encode(packed()).decode()}
        return self._execute_module(
            module_name="perch_put",
            module_args={"files": options["files"], "programs": programs},
            task_vars=task_vars,
        )
