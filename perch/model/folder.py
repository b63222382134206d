"""The folder of a run, as a command line names it."""

from __future__ import annotations

from pathlib import Path

from perch.errors import ExitCode, PerchError


def existing(name: str) -> Path:
    """Raises PerchError where there is no such folder. An empty name is not the current one."""
    if name and Path(name).is_dir():
        return Path(name)
    raise PerchError(
        ExitCode.USAGE,
        f"no such run: '{name}'",
        remedy="give the folder of a run, such as runs/latest",
    )
