"""The engine's rules, asked of the engine: `perch check` reads a command and runs nothing."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from perch.errors import ExitCode, PerchError
from perch.home import HOME

#: What `make -C engine check-tool` builds.
CHECKER = "engine/build-check/perch"
REMEDY = "run make setup; with the installed collection, run pip install on it"


def _program() -> Path:
    built = HOME / CHECKER
    if not built.exists():
        # a collection has no built files; pip built the checker from it (setup/wheel.py)
        with contextlib.suppress(PackageNotFoundError):
            return Path(str(distribution("perch-fabric").locate_file(f"perch/home/{CHECKER}")))
    return built


PROGRAM = _program()

#: A command of the engine -> why the engine refuses it; None where it takes it.
Check = Callable[[Sequence[str]], str | None]

USAGE = 2
LONGEST_S = 10


def _why(error: OSError | subprocess.SubprocessError, program: Path) -> str:
    if isinstance(error, OSError):
        return f"{program}: {error.strerror}"
    return f"{program} gave no answer within {LONGEST_S} s"


def checker(program: Path = PROGRAM) -> Check:
    """Asks this build of the engine.

    Raises:
        PerchError: it is not there, or gives no answer.
    """

    def refusal(argv: Sequence[str]) -> str | None:
        try:
            ended = subprocess.run(
                [program, "check", *argv[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LONGEST_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise PerchError(
                ExitCode.INCONCLUSIVE,
                f"the engine cannot be asked for its rules: {_why(error, program)}",
                remedy=REMEDY,
            ) from None
        said = ended.stderr.strip().removeprefix("perch: ")
        if ended.returncode == 0:
            return None
        if ended.returncode == USAGE:
            return said
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"{program} check ended with exit code {ended.returncode}: {said}",
            remedy=REMEDY,
        )

    return refusal
