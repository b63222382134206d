#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Runs a program on a host and brings all that it says."""

from __future__ import annotations

DOCUMENTATION = r"""
module: perch_command
short_description: Run a program and lose nothing that it says
description:
  - As M(ansible.builtin.command) with O(ansible.builtin.command#module:argv), for programs
    whose words decide something. That module may see a program's end before its last words,
    and give success without them (ansible/ansible issue 51393).
  - Programs that it left running are not waited for.
  - A program that has not ended after half an hour is killed with all that it started, and the
    task fails.
options:
  argv:
    description: "The program and its arguments;
      as there, ~ and $NAME at home in the environment are expanded."
    type: list
    elements: path
    required: true
  stdin:
    description: "The standard input of the program, a newline added.
      Without it there is nothing to read."
    type: str
attributes:
  check_mode:
    support: partial
    description: "Skips the program, unless the task says C(check_mode: false)."
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
cmd: {description: The command that ran., returned: always, type: list, elements: str}
rc:
  description: "Its exit code, negative where a signal ended it.
    Of a program that could not be run the errno; of one that was killed at the deadline 124."
  returned: always
  type: int
stdout: {description: All that it wrote there but newlines at the end., returned: always, type: str}
stderr: {description: Likewise., returned: always, type: str}
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time

from ansible.module_utils.basic import AnsibleModule


# seconds until an end is seen where something that the program left behind keeps its output open
TICK = 0.2
# seconds for a program: as perch_engine gives make, which takes longest of all that hosts are asked
LIMIT_S = 1800
LATE = 124  # the exit code of timeout(1) then
ENDING_S = 10  # what waits for a dead file system does not even end when it is killed
PIPE_MOST = 2**20  # bytes that a pipe holds at most (pipe(7), pipe-max-size)


class LateError(Exception):
    pass


def feed(process: subprocess.Popen, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # it need not read all of it
        process.stdin.write(data)
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


def listen(process: subprocess.Popen, until: float) -> list[bytes]:
    """All that it wrote to standard output and standard error.

    What it left running is not waited for. Raises LateError: it runs after `until`.
    """
    said = {process.stdout: b"", process.stderr: b""}
    left = PIPE_MOST
    with selectors.DefaultSelector() as selector:
        for pipe in said:
            selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map() and left > 0:
            # asked before the look: all that an ended program wrote lies in its pipes
            ended = process.poll() is not None
            ready = selector.select(0 if ended else TICK)
            if ended and not ready:
                break
            if not ended and time.monotonic() > until:
                raise LateError
            for key, _ in ready:
                # not the file's own read, whose buffer the selector does not see
                chunk = os.read(key.fd, 65536)
                said[key.fileobj] += chunk
                left -= len(chunk) if ended else 0
                if not chunk:
                    selector.unregister(key.fileobj)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0, until - time.monotonic()))
        return list(said.values())
    raise LateError


def run(argv: list[str], stdin: str | None, limit_s: float = LIMIT_S) -> tuple[int, str, str]:
    """Exit code, standard output and standard error.

    Raises OSError: it cannot be run; LateError: it was killed.
    """
    until = time.monotonic() + limit_s
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    given = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    process = subprocess.Popen(argv, stdin=given, start_new_session=True, **pipes)
    if stdin is not None:
        threading.Thread(
            target=feed, args=(process, f"{stdin}\n".encode(errors="surrogateescape")), daemon=True
        ).start()
    with process.stdout, process.stderr:
        try:
            both = listen(process, until)
        except LateError:
            os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(ENDING_S)
            raise
        out, err = (text.decode(errors="replace").rstrip("\r\n") for text in both)
    return process.returncode, out, err


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
        module.fail_json(
            msg=f"{argv[0]} cannot be run: {error.strerror}", **result | {"rc": error.errno}
        )
    except LateError:
        msg = (
            f"{argv[0]} did not end within {LIMIT_S} s and was killed; see that this host's disks "
            "answer, and how busy it is"
        )
        module.fail_json(msg=msg, **result | {"rc": LATE})
    result |= {"rc": code, "stdout": out, "stderr": err}
    if code:
        module.fail_json(msg="non-zero return code", **result)
    module.exit_json(changed=True, **result)


if __name__ == "__main__":
    main()
