#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Writes several files on a host at once; `copy` starts two Pythons for each."""

from __future__ import annotations

DOCUMENTATION = r"""
module: perch_put
short_description: Write files on a host that only their owner may read
description:
  - Each file appears whole or not at all. Folders that are missing are made, for the owner alone.
options:
  files:
    description: "The text of each file, by its path. It may be secret and is never shown."
    type: dict
    required: true
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
"""

import os
import tempfile
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def is_there(path: Path, content: bytes) -> bool:
    """Whether the file is as it should be, and no link."""
    if path.is_symlink() or not path.is_file() or path.stat().st_mode & 0o777 != FILE_MODE:
        return False
    return path.read_bytes() == content


def make_folder(path: Path) -> None:
    """Makes a folder and those above it, whatever the umask says."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)  # two hosts that are one machine make it at once
    path.chmod(FOLDER_MODE)


def write(path: Path, content: bytes) -> None:
    """Replaces a file at once."""
    make_folder(path.parent)
    handle, new = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # its mode is 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(new).replace(path)
    except OSError:
        Path(new).unlink()
        raise


def main() -> None:
    module = AnsibleModule(
        argument_spec={"files": {"type": "dict", "required": True, "no_log": True}},
        supports_check_mode=True,
    )
    changed = []
    for name, text in module.params["files"].items():
        path, content = Path(name), text.encode()
        try:
            if is_there(path, content):
                continue
            changed.append(name)
            if not module.check_mode:
                write(path, content)
        except OSError as error:
            module.fail_json(msg=f"'{name}' cannot be written: {error.strerror}; check its folder")
    module.exit_json(changed=bool(changed), paths=changed)


if __name__ == "__main__":
    main()
