"""Runs a program with a deadline; at its deadline it is killed, with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from perch.errors import ExitCode, PerchError

#: Seconds until what was killed is gone; what waits for a dead file system does not even end then.
KILLED_S = 10.0


def kill(process: subprocess.Popen[Any]) -> None:
    """With its process group, where that is its own."""
    if process.returncode is None:  # not poll(), which frees the number of the group
        is_leader = os.getpgid(process.pid) == process.pid
        (os.killpg if is_leader else os.kill)(process.pid, signal.SIGKILL)


def end(process: subprocess.Popen[Any]) -> None:
    """Kills it, and returns when it has ended."""
    kill(process)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=KILLED_S)


def run(
    argv: Sequence[str], limit_s: float, *, own_session: bool = True, **more: Any
) -> subprocess.CompletedProcess[bytes]:
    """What it wrote, and its exit code. `more`: for Popen.

    `own_session`: False for a program that may ask a person at the terminal; then what it started
    is not killed.

    Raises:
        OSError: it cannot be run.
        subprocess.TimeoutExpired: it was killed.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    opened: dict[str, Any] = pipes | more
    process: subprocess.Popen[bytes] = subprocess.Popen(
        argv, start_new_session=own_session, **opened
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except BaseException:  # Ctrl-C, too, of which another session gets nothing
        end(process)
        raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def finished(
    argv: Sequence[str],
    limit_s: float,
    remedy: str,
    *,
    package: str,
    file: object = "",
    **more: Any,
) -> subprocess.CompletedProcess[bytes]:
    """The same. Raises PerchError: it is missing, or was killed; `remedy` is for the latter."""
    try:
        return run(argv, limit_s, **more)
    except FileNotFoundError:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"{argv[0]} is not installed",
            remedy=f"install the package {package} and try again",
        ) from None
    except subprocess.TimeoutExpired:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"{argv[0]} did not end within {limit_s:g} s and was killed",
            file=file,
            remedy=remedy,
        ) from None
