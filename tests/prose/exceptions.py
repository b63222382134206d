"""Files and sentences that the linter passes over, each with the reason."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.prose.rules import Finding

_KEYS = {"files", "rule", "text", "reason"}


class Exceptions:
    """Entries of a YAML file: `files` (patterns) and `reason`; `rule` and `text` narrow them."""

    def __init__(self, path: Path) -> None:
        self.file = path.name
        self.entries, self._fault = _entries(path)
        self._used: set[tuple[int, str]] = set()

    def faults(self) -> Iterator[str]:
        """What is wrong with the entries themselves; where something is, no file is read."""
        if self._fault:
            yield f"{self.file}: {self._fault}"
        for number, entry in enumerate(self.entries, 1):
            yield from (f"{self.file}, entry {number}: {fault}" for fault in _faults(entry))

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


def _entries(path: Path) -> tuple[list[Any], str]:
    """The entries of a file, or none and why."""
    try:
        found = yaml.safe_load(path.read_text()) or []
    except yaml.YAMLError as error:
        return [], f"it is not YAML ({' '.join(str(error).split())}); correct it"
    if not isinstance(found, list):
        return [], "it is not a list of entries; begin each with '- files:'"
    return found, ""


def _faults(entry: Any) -> Iterator[str]:
    """What is wrong with an entry."""
    if not isinstance(entry, dict):
        yield "it is not a mapping; write files and reason"
        return
    if unknown := sorted(map(str, set(entry) - _KEYS)):
        yield f"unknown key '{unknown[0]}'; known are {', '.join(sorted(_KEYS))}"
    files = entry.get("files")
    if not files:
        yield "no 'files'; list the files that it is for"
    elif not (isinstance(files, list) and all(isinstance(one, str) for one in files)):
        yield "'files' is not a list of patterns; write [README.md]"
    for key in ("rule", "text"):
        if not isinstance(entry.get(key, ""), str):
            yield f"'{key}' is not a text; write it in quotes"
    if not str(entry.get("reason") or "").strip():
        yield "no 'reason'; say why these words cannot change"


def _fits(entry: dict[str, str], finding: Finding) -> bool:
    return (
        entry.get("rule", finding.rule) == finding.rule
        and entry.get("text", "") in finding.sentence
    )
