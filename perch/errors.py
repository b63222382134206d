"""Faults that a user can mend, and what a command's exit code says."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command of perchctl ends with; a verdict's codes are those of `perchctl judge`."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    NOT_WRITABLE = 6


class PerchError(Exception):
    """A fault outside of Perch: perchctl prints it as one line and exits with `code`.

    The line is `FILE, PLACE: WHAT; REMEDY`, without what is not given. `what` begins in lower case;
    `place` is a line, a key or a flow in `file`; `remedy` says what to do.
    """

    def __init__(
        self, code: ExitCode, what: str, *, file: object = "", place: str = "", remedy: str = ""
    ) -> None:
        super().__init__(code, what)  # pickle makes the error of a worker process anew from these
        self.code = code
        self.what = what
        self.file = str(file)
        self.place = place
        self.remedy = remedy

    def __str__(self) -> str:
        """The whole line."""
        where = ", ".join(part for part in (self.file, self.place) if part)
        said = ": ".join(part for part in (where, self.what) if part)
        return "; ".join(part for part in (said, self.remedy) if part)
