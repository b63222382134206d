"""Published curves that a run has chosen (inputs/reference/*.json, perch.reference/1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from perch.model.figures import is_finite
from perch.views import words
from perch.views.words import Figure

ROW_KEYS = ("size_bytes", "batch", "avg_gbyte_s")


class Row(NamedTuple):
    """A point of a curve; `gbyte_s`: the published average."""

    size_bytes: int
    batch: int
    gbyte_s: Figure


class Curve(msgspec.Struct):
    """A curve that can be drawn: along sizes at one batch, or along batches at one size."""

    title: str
    source: str
    cite: str
    configuration: str | None
    along: str
    rows: list[Row]

    @property
    def legend(self) -> str:
        return f"{self.title} ({self.cite})"


class Reference(msgspec.Struct):
    """A file of the run: its curve, or why it cannot be drawn."""

    file: str
    curve: Curve | None = None
    fault: str = ""


def _sweeps(axis: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(axis) >= 2 and list(axis) == sorted(set(axis)) and len(set(other)) == 1


def along(rows: Sequence[Row]) -> str | None:
    sizes, batches = [row.size_bytes for row in rows], [row.batch for row in rows]
    if _sweeps(sizes, batches):
        return "size"
    return "batch" if _sweeps(batches, sizes) else None


def _row_fault(row: Any) -> str | None:
    of = row if isinstance(row, dict) else {}
    for key in ROW_KEYS:
        if not (is_finite(of.get(key)) and of[key] > 0):
            return f"a row of it has no positive {key}"
    return None


def _curve(document: Any) -> Curve | str:
    """The curve, or what is wrong with its document."""
    if not isinstance(document, dict) or document.get("schema") != "perch.reference/1":
        return "it is not a perch.reference/1 document"
    rows = document.get("rows")
    if not isinstance(rows, list) or len(rows) < 2:
        return "it has no rows"
    for key in ("title", "source", "cite"):
        if not isinstance(document.get(key), str) or not document[key]:
            return f"it has no {key}"
    for row in rows:
        fault = _row_fault(row)
        if fault:
            return fault
    points = [Row(*(row[key] for key in ROW_KEYS)) for row in rows]
    way = along(points)
    if way is None:
        return "its rows go neither along the size at one batch nor along the batch at one size"
    configuration = document.get("configuration")
    return Curve(
        title=document["title"],
        source=document["source"],
        cite=document["cite"],
        configuration=configuration if isinstance(configuration, str) else None,
        along=way,
        rows=points,
    )


def reference(file: str, document: Any) -> Reference:
    found = _curve(document)
    return Reference(file, fault=found) if isinstance(found, str) else Reference(file, found)


def read_references(root: Path) -> list[Reference]:
    """Those of DIR/inputs/reference, regular files only, in order of their names."""
    folder = root / "inputs/reference"
    found = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        if path.is_file() and not path.is_symlink():
            try:
                document = msgspec.json.decode(path.read_bytes())
            except (OSError, msgspec.DecodeError, UnicodeDecodeError):
                document = None
            found.append(reference(f"inputs/reference/{path.name}", document))
    return found


def points(references: Iterable[Reference], way: str) -> Iterator[dict[str, Any]]:
    """What a chart along sizes or batches draws of them."""
    for one in references:
        if one.curve and one.curve.along == way:
            for size, batch, rate in one.curve.rows:
                yield {
                    "series": one.curve.legend, "gbyte_s": rate, "size_bytes": size,
                    "batch": batch, "origin": "published",
                    "said": f"{one.curve.legend}: {rate} GB/s",
                }  # fmt: skip


def lines(references: Sequence[Reference], drawn: Sequence[str]) -> list[str]:
    """Each curve with its source; `drawn`: what the charts go along. The broken ones last."""
    said = []
    for one in references:
        if one.curve:
            curve = one.curve
            text = f"*{words.cell(curve.title)}*: {words.cell(curve.source)}"
            text += f"; {words.cell(curve.configuration)}."
            if curve.along not in drawn:
                text += f" Not drawn: this run has no transfers along the {curve.along}."
            said.append(text)
    faults = [
        f"{words.code(one.file)} cannot be drawn: {words.cell(one.fault)}."
        for one in references
        if one.fault
    ]
    return said + faults
