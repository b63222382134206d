# SPDX-License-Identifier: Apache-2.0
"""Brings the engine to a host: packed here, built there, and only where the host has another."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import sys
import tarfile
import zlib
from pathlib import Path

from ansible.errors import AnsibleActionFail

# Ansible itself imports plugin_utils only from an installed collection
sys.path.append(str(Path(__file__).parents[1] / "plugin_utils"))
from perch_action import PerchAction, told

DOCUMENTATION = r"""
module: perch_engine
short_description: Build and install the engine on a host
description:
  - Compares the engine of the host with the sources of the controller, and says why it is built.
    A change of O(variables) or O(environment) is a reason, too.
  - The sources go to the host as one archive, and only where they are needed.
options:
  source: {description: The engine's sources on the controller., type: path, required: true}
  prefix: {description: The engine's folder on the host., type: path, required: true}
  owner: {description: Owner of the installed files., type: str, required: true}
  group: {description: Group of the installed files., type: str, required: true}
  jobs: {description: Number of compilers at a time., type: int, required: true}
  variables: {description: Further variables for make., type: list, elements: str, default: []}
  environment: {description: More variables of make's environment., type: dict, default: {}}
  reasons:
    description: Further reasons to build, sentences.
    type: list
    elements: str
    default: []
author: [The Perch authors]
"""

PARTS = ("Makefile", "src")  # tests are not needed there
VERSION = re.compile(r'PERCH_VERSION "(.+)"')


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without times, owners and rights of the controller's file, which are no change."""
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() or member.mode & 0o111 else 0o644
    return member


def packed(source: Path) -> bytes:
    """The same bytes for the same sources."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for part in PARTS:
            archive.add(source / part, part, filter=plain)  # sorted by name
    return content.getvalue()


class ActionModule(PerchAction):
    OPTIONS = {
        "source": {"type": "path", "required": True},
        "prefix": {"type": "path", "required": True},
        "owner": {"type": "str", "required": True},
        "group": {"type": "str", "required": True},
        "jobs": {"type": "int", "required": True},
        "variables": {"type": "list", "elements": "str", "default": []},
        "environment": {"type": "dict", "default": {}},
        "reasons": {"type": "list", "elements": "str", "default": []},
    }
    _requires_connection = True

    def act(self, options, task_vars):
        source = Path(options["source"])
        try:
            header = (source / "src/version.h").read_text(encoding="utf-8")
            archive = packed(source)
        except OSError as error:
            raise AnsibleActionFail(
                f"engine_source: '{error.filename}' cannot be read: {error.strerror}"
            ) from error
        version = VERSION.search(header).group(1)
        made = [hashlib.sha256(archive).hexdigest(), options["variables"], options["environment"]]
        asked = {name: options[name] for name in ("prefix", "owner", "group")} | {
            "version": version,
            "key": hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest(),
            "make": [f"--jobs={options['jobs']}", *options["variables"]],
            "environment": options["environment"],
        }
        compared = self._execute_module(module_args=asked, task_vars=task_vars)
        if compared.get("failed"):
            return compared
        reasons = [*compared["reasons"], *options["reasons"]]
        if not reasons:
            return {"changed": False}
        told(
            f"{task_vars['inventory_hostname']}: perch {version} is built for "
            f"{options['prefix']}/bin/perch: {'; '.join(reasons)}."
        )
        if self._task.check_mode:
            return {"changed": True, "reasons": reasons}
        asked["archive"] = base64.b64encode(zlib.compress(archive)).decode()
        built = self._execute_module(module_args=asked, task_vars=task_vars)
        if "left" in built:
            built["msg"] = (
                f"{task_vars['inventory_hostname']}: perch {version} could not be built: "
                f"{built['msg']}. {built['left']}. Its last lines:\n" + "\n".join(built["lines"])
            )
        return built | {"reasons": reasons}
