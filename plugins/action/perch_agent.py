# SPDX-License-Identifier: Apache-2.0
"""Puts perch-agent on a host: packed here, copied only where the host has another one."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction

DOCUMENTATION = r"""
module: perch_agent
short_description: Put perch-agent on a host
description:
  - Packs the agent as C(make agent) does, as one file, and copies it. The same sources give the
    same bytes, so a host that has them is left alone.
options:
  dest: {description: The agent on the host., type: path, required: true}
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
    OPTIONS = {"dest": {"type": "path", "required": True}}
    _requires_connection = True

    def act(self, options, task_vars):
        dest = Path(options["dest"])
        with tempfile.TemporaryDirectory(prefix="perch-agent.") as folder:
            source = Path(folder) / dest.name
            source.write_bytes(packed())
            task = self._task.copy()
            # a directory as destination is made where it is absent
            task.args = {
                "src": str(source),
                "dest": f"{dest.parent}/",
                "mode": "0755",
                "directory_mode": "0755",
            }
            copy = self._shared_loader_obj.action_loader.get(
                "ansible.legacy.copy",
                task=task,
                connection=self._connection,
                play_context=self._play_context,
                loader=self._loader,
                templar=self._templar,
                shared_loader_obj=self._shared_loader_obj,
            )
            return copy.run(task_vars=task_vars)
