"""JSON Schemas that are generated from the types: `python -m perch.model.schemas`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from perch.model.record import Record

FOLDER = Path(__file__).parents[2] / "reports/schema"

#: Name, identifier and type of each.
GENERATED = {"record": ("perch.record/2", Record)}

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document, by the name of its file."""
    identifier, model = GENERATED[name]
    return {"$schema": _DIALECT, "$id": identifier, **msgspec.json.schema(model)}


def text(name: str) -> str:
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


def path(name: str) -> Path:
    return FOLDER / f"{name}.schema.json"


if __name__ == "__main__":
    for one in GENERATED:
        path(one).write_text(text(one), encoding="utf-8")
