"""A comparison of two runs in words, for its template."""

from __future__ import annotations

from typing import Any

from perch.model.comparison import Comparison, Named, Range
from perch.model.text import plural
from perch.views import words
from perch.views.table import Table, left, right


def _value(value: float) -> str:
    return words.fixed(value, 3 if value < 10 else 2)


def _range(of: Range | None) -> str:
    return "-" if of is None else f"{_value(of.low)} to {_value(of.high)} ({of.of})"


def _side(name: str, side: Named) -> str:
    created = words.cell(side.created or "at an unknown time")
    return (
        f"{name}: {words.code(side.run)}, {side.verdict}, scope {side.scope}, measured {created}."
    )


def _only(name: str, keys: list[str]) -> list[str]:
    return [f"Measured by {name} only: {plural(len(keys), 'figure')}."] if keys else []


def _table(compared: Comparison) -> Table:
    columns = [
        *left("Figure", "Unit"),
        *right("A"),
        *left("A, 95 %"),
        *right("B"),
        *left("B, 95 %"),
        *right("Change"),
        *left("Verdict"),
    ]
    rows = [
        [
            words.cell(row.figure),
            words.unit_sign(row.unit),
            _value(row.a),
            _range(row.a_interval),
            _value(row.b),
            _range(row.b_interval),
            words.percent(row.change_percent),
            row.words,
        ]
        for row in compared.rows
    ]
    return Table(columns, rows)


def view(compared: Comparison) -> dict[str, Any]:
    """What comparison.md.j2 shows; every text is finished."""
    return {
        "title": words.cell(f"{compared.a.run} and {compared.b.run}"),
        "sides": [_side("A", compared.a), _side("B", compared.b)],
        "method": compared.method,
        "table": _table(compared),
        "refused": [
            f"{words.cell(one.figure)}: {words.cell(one.reason)}" for one in compared.refused
        ],
        "only": [*_only("A", compared.only_a), *_only("B", compared.only_b)],
    }
