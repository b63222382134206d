"""A verdict beside another plan or other records than those that it judged."""

from __future__ import annotations

import json
import os
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


@pytest.mark.parametrize("command", READERS)
def test_a_word_that_does_not_follow_from_the_checks_is_not_shown(
    perchctl: Command, judged: Path, command: str
) -> None:
    edit(judged / "verdict.json", '"verdict":"PASS"', '"verdict":"FAIL"')
    done = perchctl(*words(command, judged))
    assert done.code == 3
    assert "verdict.json: it says FAIL, but its checks say PASS" in done.stderr


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("gone", ["coverage", "manifest"])
def test_a_pass_without_a_check_that_every_run_has_is_not_shown(
    perchctl: Command, judged: Path, command: str, gone: str
) -> None:
    verdict = judged / "verdict.json"
    document = json.loads(verdict.read_text())
    kept = [one for one in document["checks"] if one["id"].split("/")[0] != gone]
    verdict.write_text(json.dumps({**document, "checks": kept}))
    done = perchctl(*words(command, judged))
    assert done.code == 3
    assert f"verdict.json: it says PASS without the check '{gone}'" in done.stderr


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("is_said", [True, False])
def test_a_pass_of_fewer_records_than_planned_is_not_shown(
    perchctl: Command, judged: Path, command: str, is_said: bool
) -> None:
    verdict = judged / "verdict.json"
    document = json.loads(verdict.read_text())
    document["coverage"]["measured"] -= 1
    if is_said:
        [covered] = [one for one in document["checks"] if one["id"] == "coverage"]
        covered["measured"] -= 1
    verdict.write_text(json.dumps(document))
    done = perchctl(*words(command, judged))
    counted = document["coverage"]
    assert done.code == 3
    assert (
        f"verdict.json: it says PASS, but its coverage says {counted['measured']} of "
        f"{counted['planned']} records" in done.stderr
    )


def test_a_pass_whose_lost_records_repeats_cured_is_shown(perchctl: Command, judged: Path) -> None:
    verdict = judged / "verdict.json"
    document = json.loads(verdict.read_text())
    document["coverage"]["measured"] -= 1
    [covered] = [one for one in document["checks"] if one["id"] == "coverage"]
    count = document["coverage"]["measured"]
    covered["measured"] = f"{count}, and in repeats what was lost of 1 flow"
    verdict.write_text(json.dumps(document))
    assert perchctl("summary", judged).code == 0


def test_a_verdict_names_the_bytes_that_it_judged(judged: Path) -> None:
    files = json.loads((judged / "verdict.json").read_text())["files"]
    assert files == {"records.jsonl": digest(judged / "records.jsonl")}


def test_a_verdict_of_an_older_perch_is_judged_again(perchctl: Command, judged: Path) -> None:
    edit(judged / "verdict.json", '"files"', '"others"')
    done = perchctl("summary", judged)
    assert done.code == 3
    assert "it has no digest of records.jsonl, as an older Perch made it" in done.stderr


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/dev/zero", "raw/alpha/flows.jsonl"])
def test_a_verdict_that_names_another_file_is_refused_unread(
    perchctl: Command, judged: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    verdict = judged / "verdict.json"
    document = json.loads(verdict.read_text())
    document["files"][name] = "0" * 64
    verdict.write_text(json.dumps(document))
    looked: list[Path] = []
    monkeypatch.setattr("perch.run.folder.file_digest", looked.append)
    done = perchctl("summary", judged)
    assert done.code == 3
    assert f"verdict.json: 'files' names '{name}', which judging does not write" in done.stderr
    assert f"judge the run again: perchctl judge {judged}" in done.stderr
    assert looked == []


@pytest.mark.parametrize("is_named", [True, False])
def test_a_pipe_in_the_place_of_intervals_is_not_waited_for(
    perchctl: Command, judged: Path, is_named: bool
) -> None:
    os.mkfifo(judged / "intervals.jsonl")
    if is_named:
        edit(judged / "verdict.json", '"files":{', f'"files":{{"intervals.jsonl":"{"0" * 64}",')
    done = perchctl("summary", judged)
    assert done.code == 3
    why = "it is missing, or cannot be read" if is_named else "verdict.json has no digest of it"
    assert f"intervals.jsonl: {why}; judge the run again" in done.stderr


def test_a_pipe_in_the_place_of_the_plan_is_not_waited_for(perchctl: Command, judged: Path) -> None:
    (judged / "plan.json").unlink()
    os.mkfifo(judged / "plan.json")
    done = perchctl("summary", judged)
    assert done.code == 3
    assert "plan.json: it is missing, or is not a regular file" in done.stderr


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
