"""The engine's rules, asked of the engine: `perch check` reads a command and runs nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from perch.errors import ExitCode, PerchError

#: What `make -C engine check-tool` builds.
PROGRAM = Path(__file__).parents[2] / "engine/build-check/perch"

#: A command of the engine -> why the engine refuses it; None where it takes it.
Check = Callable[[Sequence[str]], str | None]

USAGE = 2
LONGEST_S = 10


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
                f"the engine cannot be asked for its rules: {error}",
                remedy="run make -C engine check-tool",
            ) from None
        said = ended.stderr.strip().removeprefix("perch: ")
        if ended.returncode == 0:
            return None
        if ended.returncode == USAGE:
            return said
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"{program} check ended with exit code {ended.returncode}: {said}",
            remedy="run make -C engine check-tool",
        )

    return refusal
