#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Writes several files on a host at once; `copy` starts two Pythons for each."""

from __future__ import annotations

DOCUMENTATION = r"""
module: perch_put
short_description: Write files and programs on a host
description:
  - Each file appears whole or not at all. Folders that are missing are made, with its rights.
options:
  files:
    description: "The text of each file, by its path. It may be secret: it is for the owner alone
      and never shown."
    type: dict
    default: {}
  programs:
    description: "The content of each program, in base64, by its path. All may read and run it."
    type: dict
    default: {}
attributes:
  check_mode: {support: full, description: Says whether files would change.}
author: [The Perch authors]
"""

EXAMPLES = r"""
- name: Write the token
  perch.fabric.perch_put:
    files: {/var/lib/perch/run/token: "{{ token }}\n"}
"""

RETURN = r"""
paths: {description: The files that changed., returned: success, type: list, elements: str}
free_bytes:
  description: Free space of the file system of the first file, for this user.
  returned: where there are files
  type: int
"""

import base64
import os
import shutil
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

FILE_MODE, FOLDER_MODE = 0o600, 0o700
PROGRAM_MODE = 0o755  # its folder's, too


def is_there(path: Path, content: bytes, mode: int) -> bool:
    """Whether the file is as it should be, and no link."""
    if path.is_symlink() or not path.is_file() or path.stat().st_mode & 0o777 != mode:
        return False
    return path.read_bytes() == content


def make_folder(path: Path, mode: int) -> None:
    """Makes a folder and those above it, whatever the umask says."""
    if path.is_dir():
        return
    make_folder(path.parent, mode)
    path.mkdir(exist_ok=True)  # two hosts that are one machine make it at once
    path.chmod(mode)


def write(path: Path, content: bytes, mode: int) -> None:
    """Replaces a file at once."""
    make_folder(path.parent, FOLDER_MODE if mode == FILE_MODE else PROGRAM_MODE)
    handle, new = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
        Path(new).replace(path)
    except OSError:
        Path(new).unlink()
        raise


def free_bytes(path: Path) -> int:
    """In check mode its folder may still be missing."""
    return shutil.disk_usage(path).free if path.exists() else free_bytes(path.parent)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "dict", "default": {}, "no_log": True},
            "programs": {"type": "dict", "default": {}, "no_log": True},
        },
        supports_check_mode=True,
    )
    wanted = [(name, text.encode(), FILE_MODE) for name, text in module.params["files"].items()]
    wanted += [
        (name, base64.b64decode(content), PROGRAM_MODE)
        for name, content in module.params["programs"].items()
    ]
    changed = []
    for name, content, mode in wanted:
        path = Path(name)
        try:
            if is_there(path, content, mode):
                continue
            changed.append(name)
            if not module.check_mode:
                write(path, content, mode)
        except OSError as error:
            module.fail_json(msg=f"'{name}' cannot be written: {error.strerror}; check its folder")
    free = {"free_bytes": free_bytes(Path(name)) for name, *_ in wanted[:1]}
    module.exit_json(changed=bool(changed), paths=changed, **free)


if __name__ == "__main__":
    main()
