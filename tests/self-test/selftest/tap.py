"""TAP on standard output."""

from __future__ import annotations


class Tap:
    """Numbered lines; each is printed at once."""

    def __init__(self) -> None:
        self.number = self.bad = 0

    def plan(self, total: int) -> None:
        print(f"1..{total}", flush=True)

    def note(self, text: str) -> None:
        """A line that is no test."""
        print(f"# {text}", flush=True)

    def told(self, ok: bool, text: str, why: str = "") -> None:
        """One test."""
        self.number += 1
        print(f"{'ok' if ok else 'not ok'} {self.number} - {text}", flush=True)
        if not ok:
            self.bad += 1
            for line in why.splitlines():
                self.note(line)
