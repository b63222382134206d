"""Outputs of one command under one heading: the stages of a measurement, before and after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from perch.imports import names
from perch.imports.documents import Document
from perch.model.imported import Stage, Stages


class Candidate(NamedTuple):
    """An output that may be a stage: headings that it shares, and the one of its own.

    `asked` is equal of outputs that answer one question. `test`: its name in the plan.
    """

    test: str
    asked: tuple[object, ...]
    shared: str
    own: str


def candidate(test: str, document: Document) -> Candidate | None:
    """None without headings or a command: nothing shows that outputs are of the same thing."""
    output, results = document.output, document.results
    if not output.titles[1:] or document.command is None:
        return None
    if not all(one.is_ok and one.record is None for one in results):
        return None
    *shared, own = names.headings(output)
    part = results[0].part
    sizes = tuple(one.part.params.size_bytes if one.part.params else None for one in results)
    asked = (output.file, *shared, output.tool, part.kind, part.op, *document.command, sizes)
    return Candidate(test, asked, ": ".join(shared) or output.titles[0], own)


def _numbered(group: Sequence[Candidate]) -> list[Stage]:
    """Of outputs under one heading each has a number."""
    seen: dict[str, int] = {}
    found = []
    for one in group:
        n = seen[one.own] = seen.get(one.own, 0) + 1
        found.append(Stage(one.test, one.own if n == 1 else f"{one.own} ({n})"))
    return found


def stages(candidates: Iterable[Candidate]) -> list[Stages]:
    """In the document's order. Outputs that are called alike are repeats, not stages."""
    groups: dict[tuple[object, ...], list[Candidate]] = {}
    for one in candidates:
        groups.setdefault(one.asked, []).append(one)
    return [
        Stages(group[0].shared, _numbered(group))
        for group in groups.values()
        if len({one.own for one in group}) > 1
    ]
