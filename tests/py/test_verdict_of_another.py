"""A verdict beside another plan or other records than those that it judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.judge.manifest import digest
from tests.py.conftest import Ended
from tests.py.soak_built import judged as soak_judged

Command = Callable[..., Ended]

EDITED = "records.jsonl: it changed after verdict.json was made; judge the run again"
#: What shows figures beside a verdict, or hands both over.
READERS = ("summary", "runs", "compare", "bundle", "first-day")


def words(command: str, run: Path) -> list[object]:
    return [command, run, run] if command == "compare" else [command, run]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("command", READERS)
def test_a_figure_that_was_edited_after_judging_is_not_shown(
    perchctl: Command, judged: Path, command: str
) -> None:
    edit(judged / "records.jsonl", '"gbit_s":', '"gbit_s":1')
    done = perchctl(*words(command, judged))
    assert done.code == 3
    assert f"{judged}/{EDITED}: perchctl judge {judged}\n" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", READERS)
def test_a_verdict_of_another_run_is_not_shown(
    perchctl: Command, judged: Path, command: str
) -> None:
    edit(judged / "verdict.json", '"run":"', '"run":"other-')
    done = perchctl(*words(command, judged))
    assert done.code == 3
    assert "verdict.json: it is of run other-" in done.stderr


def test_a_verdict_names_the_bytes_that_it_judged(judged: Path) -> None:
    files = json.loads((judged / "verdict.json").read_text())["files"]
    assert files == {"records.jsonl": digest(judged / "records.jsonl")}


def test_a_verdict_of_an_older_perch_is_judged_again(perchctl: Command, judged: Path) -> None:
    edit(judged / "verdict.json", '"files"', '"others"')
    done = perchctl("summary", judged)
    assert done.code == 3
    assert "it has no digest of records.jsonl, as an older Perch made it" in done.stderr


def test_a_soaks_intervals_that_are_missing_are_told(perchctl: Command, tmp_path: Path) -> None:
    root = soak_judged(tmp_path / "run", "--duration 1800").root
    files = json.loads((root / "verdict.json").read_text())["files"]
    assert files["intervals.jsonl"] == digest(root / "intervals.jsonl")
    (root / "intervals.jsonl").unlink()
    done = perchctl("summary", root)
    assert done.code == 3
    assert "intervals.jsonl: it is missing, or cannot be read; judge" in done.stderr


def test_a_run_that_cannot_be_judged_has_a_verdict_of_no_records(
    perchctl: Command, judged: Path
) -> None:
    (judged / "plan.json").write_text("{")
    perchctl("judge", judged)
    assert perchctl("summary", judged).stdout.startswith("Verdict: INCONCLUSIVE")
    (judged / "records.jsonl").write_text("{}\n")
    assert perchctl("summary", judged).code == 3
