"""The JSON Schemas are those of the types, and what is judged is as they say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from perch.judge import run as judging
from perch.model import schemas


@pytest.mark.parametrize("name", schemas.GENERATED)
def test_a_schema_is_generated_from_its_type(name: str) -> None:
    assert schemas.path(name).read_text(encoding="utf-8") == schemas.text(name)


def test_each_schema_is_generated_or_says_why_it_is_not() -> None:
    files = {path.name.split(".")[0] for path in schemas.FOLDER.iterdir()}
    assert files == {*schemas.GENERATED, *schemas.BY_HAND}
    assert not schemas.GENERATED.keys() & schemas.BY_HAND.keys()


@pytest.mark.parametrize("name", ["loopback", "rxe", "perftest", "transfer"])
def test_records_and_verdict_are_as_their_schemas_say(
    name: str, run_copy: Callable[[str], Path]
) -> None:
    root = run_copy(name)
    judging.judge(root)
    record = jsonschema.Draft202012Validator(schemas.schema("record"))
    for line in (root / "records.jsonl").read_bytes().splitlines():
        record.validate(msgspec.json.decode(line))
    verdict = json.loads(schemas.path("verdict").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(verdict).validate(
        msgspec.json.decode((root / "verdict.json").read_bytes())
    )
