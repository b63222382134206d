"""records.parquet holds the records of records.jsonl, with one schema for all runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from perch.errors import PerchError
from perch.judge import columns, parquet, planned
from perch.model import derived
from perch.run import judging

Copy = Callable[[str], Path]


def left_out(value: Any) -> Any:
    """Without keys that have no value; an object of text is an object again."""
    if isinstance(value, dict):
        kept = {name: left_out(one) for name, one in value.items()}
        return {name: one for name, one in kept.items() if one not in (None, {}, [])}
    if isinstance(value, list):
        return [left_out(one) for one in value]
    if isinstance(value, str) and value.startswith("{"):
        return left_out(json.loads(value))
    return value


def read(root: Path) -> pl.DataFrame:
    return pl.read_parquet(root / derived.PARQUET)


@pytest.mark.parametrize("name", ["loopback", "rxe", "perftest", "transfer"])
def test_every_value_of_every_record_is_in_it_in_the_same_order(
    name: str, run_copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = run_copy(name)
    monkeypatch.setattr(parquet, "_ROWS", 10)  # several groups of rows
    judging.judge(root)
    records = [json.loads(line) for line in (root / "records.jsonl").read_text().splitlines()]
    found = read(root)
    assert found.schema == pl.Schema(parquet.SCHEMA)
    assert [left_out(row) for row in found.iter_rows(named=True)] == [left_out(r) for r in records]


def test_runs_are_read_together_also_one_that_could_not_be_judged(run_copy: Copy) -> None:
    roots = [run_copy(name) for name in ("loopback", "rxe")]
    (run_copy("transfer") / "plan.json").write_bytes(b"")
    roots.append(roots[0].parent / "transfer")
    for root in roots:
        judging.judge(root)
    together = pl.read_parquet(roots[0].parent / "*" / derived.PARQUET)
    lines = [len((root / "records.jsonl").read_bytes().splitlines()) for root in roots]
    assert (together.height, lines[2]) == (sum(lines), 0)


def test_a_judge_that_ends_in_the_middle_leaves_no_earlier_one(
    run_copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = run_copy("rxe")
    judging.judge(root)
    assert (root / derived.PARQUET).is_file()

    def killed(_: object) -> None:
        raise SystemExit(137)

    monkeypatch.setattr(planned, "read_plan", killed)
    with pytest.raises(SystemExit):
        judging.judge(root)
    assert not (root / derived.PARQUET).exists()


def test_a_table_that_cannot_be_written_leaves_no_verdict(
    run_copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    root = run_copy("rxe")
    monkeypatch.setattr(parquet, "write", full)
    with pytest.raises(PerchError, match="it has no verdict"):
        judging.judge(root)
    assert not (root / "verdict.json").exists()


def test_a_table_without_records_on_a_full_disk_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match=r"^full could not be written whole$"):
        parquet.write(columns.joined([]), [], Path("/dev/full"))
