# SPDX-License-Identifier: Apache-2.0
"""Writes files on the controller; `copy` starts a Python for each host and file."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.text.converters import to_bytes

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction

DOCUMENTATION = r"""
module: perch_keep
short_description: Keep what a host said, in files on the controller
description: Each file appears whole or not at all. Its folders are made; it is readable by all.
options:
  files: {description: "The text of each file, by its path.", type: dict, required: true}
attributes:
  check_mode: {support: full, description: "Says whether files would change."}
author: [The Perch authors]
"""


def is_kept(path: Path, content: bytes) -> bool:
    """Whether the file is there as it should be. A link is none: it could lead out of the run."""
    return path.is_file() and not path.is_symlink() and path.read_bytes() == content


def make_folder(path: Path) -> None:
    """Makes a folder and those above it, open to readers whatever the umask says."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)  # the task of another host may be making it, too
    path.chmod(0o755)


def write(path: Path, content: bytes) -> None:
    """Replaces a file at once."""
    make_folder(path.parent)
    handle, new = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o644)
        Path(new).replace(path)
    except OSError:
        Path(new).unlink(missing_ok=True)
        raise


class ActionModule(PerchAction):
    OPTIONS = {"files": {"type": "dict", "required": True}}

    def act(self, options, task_vars):
        changed = []
        for name, text in options["files"].items():
            path, content = Path(name), to_bytes(text)
            try:
                if is_kept(path, content):
                    continue
                changed.append(name)
                if not self._task.check_mode:
                    write(path, content)
            except OSError as error:
                raise AnsibleActionFail(
                    f"'{path}' cannot be written: {error.strerror}; check its folder"
                ) from error
        return {"changed": bool(changed), "files": changed}
