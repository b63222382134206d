"""A table of the report: columns with a title and a Markdown rule, rows of finished cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from perch.views.words import NOTHING

LEFT, RIGHT = "---", "---:"


class Column(msgspec.Struct, frozen=True):
    title: str
    rule: str


class Table(msgspec.Struct):
    """`more`: rows that are not shown. `title`, `note`: what stands above it, where it has such.

    `pairs`: a second table below it.
    """

    columns: list[Column]
    rows: list[list[str]]
    more: int = 0
    title: str = ""
    note: str = ""
    pairs: Table | None = None


def left(*titles: str) -> list[Column]:
    return [Column(title, LEFT) for title in titles]


def right(*titles: str) -> list[Column]:
    return [Column(title, RIGHT) for title in titles]


def slim(table: Table) -> Table:
    """Without the columns in which no row says anything; the first one names the row."""
    keep = [
        i
        for i in range(len(table.columns))
        if i == 0 or any(row[i] != NOTHING for row in table.rows)
    ]
    return msgspec.structs.replace(
        table,
        columns=[table.columns[i] for i in keep],
        rows=[[row[i] for i in keep] for row in table.rows],
        pairs=slim(table.pairs) if table.pairs else None,
    )


def capped(columns: list[Column], rows: Sequence[list[str]], most: int) -> Table:
    """The first rows, and how many more there are."""
    return Table(columns, list(rows[:most]), max(len(rows) - most, 0))


def slimmed(part: Any) -> Any:
    """A document with all of its tables slim, other structs as objects."""
    if isinstance(part, Table):
        return slim(part)
    if isinstance(part, msgspec.Struct):
        return {name: slimmed(getattr(part, name)) for name in part.__struct_fields__}
    if isinstance(part, dict):
        return {key: slimmed(value) for key, value in part.items()}
    if isinstance(part, list):
        return [slimmed(value) for value in part]
    return part
