"""What a fault is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from selftest.edits import Edit

FAIL, INCONCLUSIVE, PASS = "FAIL", "INCONCLUSIVE", "PASS"


@dataclass(frozen=True)
class Fault:
    """One fault.

    base: the good run (selftest.runs.BASES). word: the verdict that it must have then; PASS where
    it must warn. checks: the check that must flip it, then those that must flip, warn or judge no
    longer besides ("*" at the end of one stands for any rest). edits: what plants it, in order.
    """

    id: str
    base: str
    word: str
    checks: tuple[str, ...]
    title: str
    edits: tuple[Edit, ...]

    def plant(self, root: Path) -> None:
        """Plants it in the run's folder.

        Raises NothingChangedError, or OSError, KeyError and the like where the run has not what
        the edit changes.
        """
        for edit in self.edits:
            edit(root)

    @property
    def kind(self) -> str:
        """The family of the check that must find it."""
        return self.checks[0].partition("/")[0]


def fault(id_: str, base: str, word: str, checks: str, title: str, *edits: Edit) -> Fault:
    """A fault; its checks are parted by spaces."""
    return Fault(id_, base, word, tuple(checks.split()), title, edits)
