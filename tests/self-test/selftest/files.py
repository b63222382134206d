"""JSON documents in files: of one document, or of one in each line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from perch.model import limit_files
from selftest.paths import LIMITS
from tests import spelled

Document = dict[str, Any]

PLAN = "plan.json"


def document(path: Path) -> Document:
    """The document of a file; of plan.json the plan with its flows spelled out."""
    if path.name == PLAN:
        return spelled.read(path.parent)
    found: Document = json.loads(path.read_bytes())
    return found


def documents(path: Path) -> list[Document]:
    """The documents of a file; a file of one document may have it over several lines."""
    if path.name == PLAN:
        return [document(path)]
    text = path.read_text()
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def compact(value: object) -> str:
    """A document as tools print it, in one line."""
    return json.dumps(value, separators=(",", ":"))


def write(path: Path, *found: object) -> None:
    """Writes a file of documents, with its folder; of a spelled-out plan its two files."""
    if path.name == PLAN:
        path.parent.mkdir(parents=True, exist_ok=True)
        spelled.write(path.parent, dict(*found))
        return
    write_lines(path, map(compact, found))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes a file of lines, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def limit_set(name: str) -> Document:
    """A set of limits, as a plan copies it into inputs/limits.json."""
    found: Document = limit_files.read(LIMITS / f"{name}.yml").document
    return found
