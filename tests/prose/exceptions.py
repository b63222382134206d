"""Files and sentences that the linter passes over, each with the reason."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from tests.prose.rules import Finding

_KEYS = {"files", "rule", "text", "reason"}


class Exceptions:
    """Entries of a YAML file: `files` (patterns) and `reason`; `rule` and `text` narrow them."""

    def __init__(self, path: Path) -> None:
        self.file = path.name
        self.entries = yaml.safe_load(path.read_text()) or []
        self._used: set[tuple[int, str]] = set()

    def faults(self) -> Iterator[str]:
        """What is wrong with the entries themselves; where something is, no file is read."""
        for number, entry in enumerate(self.entries, 1):
            where = f"{self.file}, entry {number}"
            if unknown := sorted(set(entry) - _KEYS):
                yield f"{where}: unknown key '{unknown[0]}'; known are {', '.join(sorted(_KEYS))}"
            if not entry.get("files"):
                yield f"{where}: no 'files'; list the files that it is for"
            if not str(entry.get("reason") or "").strip():
                yield f"{where}: no 'reason'; say why these words cannot change"

    def cover(self, finding: Finding) -> bool:
        """Whether an entry excuses the finding; entries and files that excuse one are used."""
        covered = False
        for number, entry in enumerate(self.entries):
            for pattern in entry["files"]:
                if fnmatch.fnmatch(finding.file, pattern) and _fits(entry, finding):
                    self._used.add((number, pattern))
                    covered = True
        return covered

    def unused(self, files: Iterable[str]) -> Iterator[str]:
        """Entries that excuse nothing: their words are right by now, or their file is gone."""
        known = set(files)
        for number, entry in enumerate(self.entries):
            for pattern in entry["files"]:
                if (number, pattern) not in self._used:
                    gone = not fnmatch.filter(known, pattern)
                    why = "no such file" if gone else "nothing in it needs an exception"
                    yield f"{self.file}, entry {number + 1}: '{pattern}': {why}; remove it"


def _fits(entry: dict[str, str], finding: Finding) -> bool:
    return (
        entry.get("rule", finding.rule) == finding.rule
        and entry.get("text", "") in finding.sentence
    )
