"""JSON Schemas that are generated from the types: `python -m perch.model.schemas`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from perch.home import HOME
from perch.model.baseline import BaselineDocument
from perch.model.bundle import BundleDocument
from perch.model.comparison import Comparison
from perch.model.index import IndexLine
from perch.model.plan import PlanDocument, RetryDocument, RoundLine
from perch.model.raw_lines import (
    SCHEMA,
    BeginLine,
    EndLine,
    EpisodeLine,
    FlowLine,
    Head,
    LayoutLine,
    SampleLine,
    StartLine,
)
from perch.model.record import Record
from perch.model.share import Share
from perch.model.tuning import TuningDocument
from perch.model.verdict_document import VerdictDocument

FOLDER = HOME / "reports/schema"

#: Name, identifier and type of each.
GENERATED: dict[str, tuple[str, Any]] = {
    "baseline": ("perch.baseline/1", BaselineDocument),
    "bundle": ("perch.bundle/1", BundleDocument),
    "comparison": ("perch.comparison/1", Comparison),
    "flows": (f"{SCHEMA}/flows", Head | StartLine | BeginLine | FlowLine | EpisodeLine | EndLine),
    "index": ("perch.index/2", IndexLine),
    "plan": ("perch.plan/2", PlanDocument),
    "record": ("perch.record/2", Record),
    "retry": ("perch.retry/1", RetryDocument),
    "rounds": ("perch.rounds/2", RoundLine),
    "samples": (f"{SCHEMA}/samples", Head | LayoutLine | SampleLine),
    "share": ("perch.share/1", Share),
    "tuning": ("perch.tuning/1", TuningDocument),
    "verdict": ("perch.verdict/1", VerdictDocument),
}

#: Why the others are written by hand.
BY_HAND = {
    "environment": "the agent writes it; the types read a part of it and ignore the rest",
    "host_check": "roles/host_check's script writes it, and jq reads it",
    "line": "the engine writes it; the readers of perch/tools accept each version's keys",
    "switch": "Ansible writes it, and jq reads it",
    "wanted": "Ansible writes it, and jq reads it",
    "limits": "people write it; perch/model/limit_faults.py names place and remedy, and checks "
    "rules between keys that types cannot express",
    "reference": "people write it; perch/views/references.py reads the values that it draws",
}

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


#: Documents in which every object has every key that is written, and no other.
WHOLE = ("verdict",)


def _objects(info: Any) -> Iterator[inspect.StructType | inspect.TypedDictType]:
    """The types of objects in a type, itself included."""
    if isinstance(info, tuple):
        for one in info:
            yield from _objects(one)
    elif isinstance(info, inspect.Type | inspect.Field):
        if isinstance(info, inspect.StructType | inspect.TypedDictType):
            yield info
        for name in info.__struct_fields__:
            yield from _objects(getattr(info, name))


def _written(info: inspect.StructType | inspect.TypedDictType) -> list[str]:
    """The keys that such an object always has.

    A field with a default may be missing when a document is read, but it is always written; a
    field that may be unset has no default here.
    """
    omits = isinstance(info, inspect.StructType) and info.cls.__struct_config__.omit_defaults
    return [
        field.encode_name
        for field in info.fields
        if field.required
        or not (omits or field.default is field.default_factory is msgspec.NODEFAULT)
    ]


def _whole(model: type) -> dict[str, Any]:
    """A schema that requires every written key and rejects others."""
    document = msgspec.json.schema(model)
    for one in _objects(inspect.type_info(model)):
        definition = document["$defs"][one.cls.__name__]
        definition |= {"required": _written(one), "additionalProperties": False}
    return document


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document, by the name of its file."""
    identifier, model = GENERATED[name]
    document = _whole(model) if name in WHOLE else msgspec.json.schema(model)
    return {"$schema": _DIALECT, "$id": identifier, **document}


def text(name: str) -> str:
    return json.dumps(schema(name), indent=2, ensure_ascii=False) + "\n"


def path(name: str) -> Path:
    return FOLDER / f"{name}.schema.json"


if __name__ == "__main__":
    for one in GENERATED:
        path(one).write_text(text(one), encoding="utf-8")
