#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Runs a program on a host and brings all that it says."""

from __future__ import annotations

DOCUMENTATION = r"""
module: perch_command
short_description: Run a program and lose nothing that it says
description:
  - As M(ansible.builtin.command) with O(ansible.builtin.command#module:argv), for programs whose words decide something. That module
    may see a program's end before its last words, and give success without them (ansible/ansible issue 51393).
  - What the program left running and may still write is not waited for.
options:
  argv: {description: "The program and its arguments; as there, ~ and $NAME at home in the environment are expanded.", type: list, elements: path, required: true}
  stdin: {description: "What the program reads, a newline added. Without it there is nothing to read.", type: str}
attributes:
  check_mode: {support: partial, description: "Skips the program, unless the task says C(check_mode: false)."}
author: [The Perch authors]
"""

EXAMPLES = r"""
- name: Judge a run
  perch.fabric.perch_command:
    argv: [reports/judge, runs/latest]
  register: judged
  changed_when: true
  failed_when: judged.rc not in [0, 1, 3]
"""

RETURN = r"""
cmd: {description: What was run., returned: always, type: list, elements: str}
rc: {description: "Its exit code, negative where a signal ended it. Of a program that could not be run the errno.", returned: always, type: int}
stdout: {description: All that it wrote there but newlines at the end., returned: always, type: str}
stderr: {description: Likewise., returned: always, type: str}
"""

import os
import subprocess

from ansible.module_utils.basic import AnsibleModule


def run(argv: list[str], stdin: str | None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error; OSError where the program cannot be run."""
    # Memory that looks like files: a pipe would have to be emptied beside the wait for the end, which is where words are lost, and would
    # be waited for as long as a daemon that the program left behind keeps it.
    files = [os.fdopen(os.memfd_create(name), "w+b", buffering=0) for name in ("stdin", "stdout", "stderr")]
    given, *said = files
    try:
        if stdin is not None:
            given.write(f"{stdin}\n".encode(errors="surrogateescape"))
            given.seek(0)
        code = subprocess.run(argv, stdin=given, stdout=said[0], stderr=said[1], check=False).returncode
        for file in said:
            file.seek(0)
        out, err = (file.read().decode(errors="replace").rstrip("\r\n") for file in said)
    finally:
        for file in files:
            file.close()
    return code, out, err


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "argv": {"type": "list", "elements": "path", "required": True},
            "stdin": {"type": "str"},
        },
        supports_check_mode=True,
    )
    argv = module.params["argv"]
    result = {"cmd": argv, "rc": 0, "stdout": "", "stderr": ""}
    if not argv:
        module.fail_json(msg="argv is empty: name a program", **result | {"rc": 2})
    if module.check_mode:
        module.exit_json(skipped=True, msg="not run in check mode", **result)
    try:
        code, out, err = run(argv, module.params["stdin"])
    except OSError as error:
        module.fail_json(msg=f"{argv[0]} cannot be run: {error.strerror}", **result | {"rc": error.errno})
    result |= {"rc": code, "stdout": out, "stderr": err}
    if code:
        module.fail_json(msg="non-zero return code", **result)
    module.exit_json(changed=True, **result)


if __name__ == "__main__":
    main()
