"""JSON Schemas that are generated from the types: `python -m perch.model.schemas`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from perch.model.baseline import BaselineDocument
from perch.model.bundle import BundleDocument
from perch.model.comparison import Comparison
from perch.model.index import IndexLine
from perch.model.plan import PlanDocument, RetryDocument, RoundLine
from perch.model.record import Record
from perch.model.share import Share
from perch.model.tuning import TuningDocument

FOLDER = Path(__file__).parents[2] / "reports/schema"

#: Name, identifier and type of each.
GENERATED: dict[str, tuple[str, type]] = {
    "baseline": ("perch.baseline/1", BaselineDocument),
    "bundle": ("perch.bundle/1", BundleDocument),
    "comparison": ("perch.comparison/1", Comparison),
    "index": ("perch.index/2", IndexLine),
    "plan": ("perch.plan/2", PlanDocument),
    "record": ("perch.record/2", Record),
    "retry": ("perch.retry/1", RetryDocument),
    "rounds": ("perch.rounds/2", RoundLine),
    "share": ("perch.share/1", Share),
    "tuning": ("perch.tuning/1", TuningDocument),
}

#: Why the others are written by hand.
BY_HAND = {
    "environment": "the agent's jq writes it; the types read a part of it, and forgive the rest",
    "flow": "the agent's jq writes it; the types read a part of it, and forgive the rest",
    "host_check": "roles/host_check's script writes it, and jq reads it",
    "line": "the engine writes it; the readers of perch/tools take what each version has",
    "sample": "the agent's sampler writes it; the types read a part of it, and forgive the rest",
    "switch": "Ansible writes it, and jq reads it",
    "wanted": "Ansible writes it, and jq reads it",
    "limits": "people write it; perch/model/limit_faults.py says where and what to do, and knows "
    "rules between keys that no type has",
    "reference": "people write it; perch/views/references.py reads what it draws",
    "verdict": "not yet: comparison, facts, switches and soak have no types",
}

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
