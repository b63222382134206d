"""The JSON Schemas are those of the types, and what is judged is as they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from perch.model import schemas
from perch.run import judging
from tests.py import soak_built
from tests.py.conftest import FIXTURES


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
    assert verdict_of(root)["verdict"] in ("PASS", "INCONCLUSIVE")


@pytest.mark.parametrize("run", ["loopback", "rxe", "perftest", "transfer", "soak"])
def test_raw_lines_are_as_their_schemas_say(run: str, tmp_path: Path) -> None:
    root = FIXTURES / run / "run"
    if run == "soak":
        root = soak_built.composed(tmp_path / "run", "--duration 1200").root
    for name in ("flows", "samples"):
        lines = jsonschema.Draft202012Validator(schemas.schema(name))
        files = sorted(root.glob(f"raw/*/{name}.jsonl"))
        assert len(files) == 2
        for line in (line for file in files for line in file.read_bytes().splitlines()):
            lines.validate(msgspec.json.decode(line))
            assert not lines.is_valid(msgspec.json.decode(line) | {"kind": "other"})


def verdict_of(root: Path) -> dict[str, Any]:
    """The run's verdict, which is as its schema says."""
    found: dict[str, Any] = msgspec.json.decode((root / "verdict.json").read_bytes())
    jsonschema.Draft202012Validator(schemas.schema("verdict")).validate(found)
    return found


def test_the_verdict_of_a_soak_is_as_its_schema_says(tmp_path: Path) -> None:
    soak = soak_built.composed(tmp_path / "run", "--duration 1200")
    next((tmp_path / "run/raw").glob("*/flows/**/client.soak")).unlink()
    soak.judge()
    found = verdict_of(tmp_path / "run")["soak"]
    assert [one["id"] for one in found["anomalies"]] == ["a1"]


def test_the_verdict_of_an_unreadable_plan_is_as_its_schema_says(
    run_copy: Callable[[str], Path],
) -> None:
    root = run_copy("loopback")
    (root / "plan.json").write_text("{")
    judging.judge(root)
    assert verdict_of(root)["verdict"] == "INCONCLUSIVE"


@pytest.mark.parametrize(
    "change", [lambda found: found.pop("evidence"), lambda found: found.update(x=1)]
)
def test_a_verdict_has_every_key_and_no_other(
    change: Callable[[dict[str, Any]], object], run_copy: Callable[[str], Path]
) -> None:
    root = run_copy("loopback")
    judging.judge(root)
    found = verdict_of(root)
    change(found["checks"][0])
    assert not jsonschema.Draft202012Validator(schemas.schema("verdict")).is_valid(found)
