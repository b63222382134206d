"""Faults that a user can mend, and what a command's exit code says."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What a command of perchctl ends with; a verdict's codes are those of `perchctl judge`."""

    PASS = 0
    FAIL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    NOT_WRITABLE = 6


#: What to do where a file cannot be written; an error may give its own remedy instead.
WRITABLE = "see that this user can write there and that the disk has room"


class PerchError(Exception):
    """A fault outside of Perch: perchctl prints it as one line and exits with `code`.

    The line is `FILE, PLACE: WHAT; REMEDY`, without what is not given. `what` begins in lower case;
    `place` is a line, a key or a flow in `file`; `remedy` says what to do. `more`: further faults
    that the same remedy cures; each has a line, and the remedy the last one.
    """

    def __init__(
        self,
        code: ExitCode,
        what: str,
        *,
        file: object = "",
        place: str = "",
        remedy: str = "",
        more: Iterable[str] = (),
    ) -> None:
        super().__init__(code, what)  # pickle makes the error of a worker process anew from these
        self.code = code
        self.what = what
        self.file = str(file)
        self.place = place
        self.remedy = remedy or (WRITABLE if code == ExitCode.NOT_WRITABLE else "")
        self.more = list(more)

    @property
    def lines(self) -> list[str]:
        """What perchctl prints."""
        return [*self._faults(), self.remedy] if self.more else [str(self)]

    def __str__(self) -> str:
        """All on one line."""
        return "; ".join(part for part in (*self._faults(), self.remedy) if part)

    def _faults(self) -> list[str]:
        where = ", ".join(part for part in (self.file, self.place) if part)
        return [": ".join(part for part in (where, self.what) if part), *self.more]
