#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""The host's half of the action perch_engine: looks at the installed engine, or builds another."""

from __future__ import annotations

DOCUMENTATION = r"""
module: perch_engine
short_description: Compare the engine on a host with its sources, or build it
description:
  - Without O(archive) it says why the engine of this host must be built. With it, it builds there
    and runs what was built. Only then it replaces the installed engine.
  - The action of this name packs the sources and calls the module.
options:
  prefix: {description: The engine's folder., type: path, required: true}
  owner: {description: Owner of the installed files., type: str, required: true}
  group: {description: Group of the installed files., type: str, required: true}
  version: {description: What C(perch --version) must say., type: str, required: true}
  key: {description: A hash over sources and options., type: str, required: true}
  make: {description: Arguments of make., type: list, elements: str, default: []}
  environment: {description: More variables of make's environment., type: dict, default: {}}
  archive:
    description: The sources, a tar archive compressed by zlib, as base64. Never shown.
    type: str
attributes:
  check_mode: {support: full, description: Nothing is built.}
author: [The Perch authors]
"""

EXAMPLES = r"""
- name: Compare the engine with its sources
  perch.fabric.perch_engine:
    {prefix: /opt/perch, owner: root, group: root, version: 1.0.0, key: 2c26b46b68ffc68f}
"""

RETURN = r"""
reasons:
  description: Why the engine must be built, sentences.
  returned: without archive
  type: list
  elements: str
left:
  description: The state of the installed engine.
  returned: where a build failed
  type: str
lines:
  description: The last lines of what failed.
  returned: where a build failed
  type: list
  elements: str
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

LINES = 20  # of a step that failed: a compiler's errors are about this many
PROGRAM_MODE, FILE_MODE = 0o755, 0o644
# make takes half a minute of one processor; an emulated host is some 30 times as slow, and a busy
# one has half of a processor. What else is run ends in a moment.
MAKE_S, MOMENT_S = 1800, 60
ENDING_S = 10  # for the output of what was killed


class StepError(Exception):
    def __init__(self, step: str, lines: list[str]) -> None:
        super().__init__(step)
        self.step, self.lines = step, lines[-LINES:]


def outputs(process: subprocess.Popen, given: bytes, limit_s: float) -> tuple[bytes, bytes] | None:
    """What it wrote; None: it was killed with all that it had started, as it did not end."""
    with suppress(subprocess.TimeoutExpired):
        return process.communicate(given, timeout=limit_s)
    os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=ENDING_S)
    return None


def run(
    step: str,
    argv: list[str],
    given: bytes = b"",
    environment: dict | None = None,
    limit_s: float = MOMENT_S,
) -> str:
    """What the program wrote to standard output."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    try:
        process = subprocess.Popen(argv, env=environment, start_new_session=True, **pipes)
    except OSError as error:
        raise StepError(step, [f"{argv[0]} cannot be run: {error.strerror}"]) from error
    both = outputs(process, given, limit_s)
    if both is None:
        lines = ["It was killed. See that the host's disks answer, and how busy it is"]
        raise StepError(f"{step} did not end within {limit_s} s", lines)
    out, err = (text.decode(errors="replace").rstrip() for text in both)
    if process.returncode:
        lines = (err or out or "(it said nothing)").splitlines()
        raise StepError(f"{step} failed with exit code {process.returncode}", lines)
    return out


class Engine:
    def __init__(self, module: AnsibleModule) -> None:
        self.module, self.options = module, module.params
        self.prefix = Path(self.options["prefix"])
        self.program = self.prefix / "bin/perch"
        self.manual = self.prefix / "share/man/man1/perch.1"
        self.record = self.prefix / "engine.json"
        self.says = f"perch {self.options['version']}"
        self.replaced = False

    # ---- is it the one that is wanted? ----

    def recorded(self) -> dict:
        try:
            found = json.loads(self.record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def is_owned(self) -> bool:
        there = self.program.stat()
        try:
            owners = self.program.owner(), self.program.group()
        except KeyError:  # numbers without a name
            return False
        wanted = self.options["owner"], self.options["group"]
        return owners == wanted and there.st_mode & 0o7777 == PROGRAM_MODE

    def is_right_version(self) -> bool:
        try:
            return run("", [str(self.program), "--version"]).partition("\n")[0] == self.says
        except StepError:
            return False

    def reasons(self) -> list[str]:
        """Why it must be built."""
        if not self.program.exists():
            return ["no engine is installed"]
        recorded = self.recorded()
        right = {
            "sources or options are others than those that it was built from": recorded.get("key")
            == self.options["key"],
            "it is not the program that was installed": recorded.get("sha1")
            == self.module.sha1(str(self.program)),
            "its owner or its mode was changed": self.is_owned(),
            f"it does not say that it is {self.says}": self.is_right_version(),
        }
        return [reason for reason, holds in right.items() if not holds]

    # ---- build, try, install ----

    def own(self, path: Path, mode: int) -> None:
        path.chmod(mode)
        shutil.chown(path, self.options["owner"], self.options["group"])

    def make_folder(self, path: Path) -> None:
        if not path.is_dir():
            self.make_folder(path.parent)
            path.mkdir(exist_ok=True)  # two hosts that are one machine make it at once
            self.own(path, PROGRAM_MODE)

    def install(self, source: Path, path: Path, mode: int) -> None:
        """Renames a whole file to the name: who starts the engine gets the old or the new one."""
        self.make_folder(path.parent)
        self.own(path.parent, PROGRAM_MODE)
        self.own(source, mode)
        self.module.atomic_move(str(source), str(path))
        self.own(path, mode)  # it may have those of the file that it replaced

    def build(self) -> None:
        self.make_folder(self.prefix)
        with tempfile.TemporaryDirectory(prefix="build.", dir=self.prefix) as folder:
            self.build_in(Path(folder))

    def build_in(self, folder: Path) -> None:
        sources = zlib.decompress(base64.b64decode(self.options["archive"]))
        run("tar", ["tar", "--extract", "--no-same-owner", f"--directory={folder}"], sources)
        more = {name: str(value) for name, value in self.options["environment"].items()}
        make = ["make", f"--directory={folder}", *self.options["make"]]
        run("make", make, environment=os.environ | more, limit_s=MAKE_S)
        new = folder / "build/perch"
        said = run("the new engine", [str(new), "--version"])
        if said.partition("\n")[0] != self.says:
            lines = said.splitlines()
            raise StepError(f"the new engine does not say that it is {self.says}", lines)
        sha1 = self.module.sha1(str(new))
        self.install(new, self.program, PROGRAM_MODE)
        self.replaced = True
        self.install(folder / "build/perch.1", self.manual, FILE_MODE)
        if run("the installed engine", [str(self.program), "--version"]) != said:
            raise StepError("the installed engine does not say what the new one did", [])
        record = folder / "engine.json"
        kept = {"key": self.options["key"], "said": said, "sha1": sha1}
        record.write_text(json.dumps(kept, indent=4) + "\n", encoding="utf-8")
        # last, so that whatever is interrupted before is done again
        self.install(record, self.record, FILE_MODE)

    def left(self) -> str:
        """What a build that failed has left."""
        if self.replaced:
            return "The installed engine was replaced before that"
        if self.program.exists():
            return "The installed engine was left as it is"
        return "No engine is installed"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "prefix": {"type": "path", "required": True},
            "owner": {"type": "str", "required": True},
            "group": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
            "key": {"type": "str", "required": True, "no_log": False},
            "make": {"type": "list", "elements": "str", "default": []},
            "environment": {"type": "dict", "default": {}},
            "archive": {"type": "str", "no_log": True},
        },
        supports_check_mode=True,
    )
    engine = Engine(module)
    if not module.params["archive"]:
        module.exit_json(changed=False, reasons=engine.reasons())
    if module.check_mode:
        module.exit_json(changed=True)
    try:
        engine.build()
    except StepError as error:
        module.fail_json(msg=error.step, left=engine.left(), lines=error.lines)
    except (OSError, LookupError) as error:
        module.fail_json(msg=str(error), left=engine.left(), lines=[])
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
