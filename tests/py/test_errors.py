"""perch.errors: one line that says file, place, what and what to do."""

from __future__ import annotations

import pickle

import pytest

from perch.errors import ExitCode, PerchError


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "the plan has no hosts"),
        ({"file": "plan.json"}, "plan.json: the plan has no hosts"),
        ({"file": "plan.json", "place": "line 3"}, "plan.json, line 3: the plan has no hosts"),
        ({"place": "$.hosts"}, "$.hosts: the plan has no hosts"),
        ({"remedy": "plan again"}, "the plan has no hosts; plan again"),
    ],
)
def test_a_line_holds_what_is_given_and_no_empty_places(given: dict[str, str], line: str) -> None:
    assert str(PerchError(ExitCode.INCONCLUSIVE, "the plan has no hosts", **given)) == line


def test_faults_of_one_file_are_a_line_each_and_the_remedy_comes_last() -> None:
    error = PerchError(
        ExitCode.USAGE, "no unit", file="own.yml", place="line 3", remedy="correct it",
        more=["own.yml, line 9: no source"],
    )  # fmt: skip
    assert error.lines == ["own.yml, line 3: no unit", "own.yml, line 9: no source", "correct it"]
    assert str(error) == "; ".join(error.lines)
    one = PerchError(ExitCode.USAGE, "no unit", remedy="correct it")
    assert one.lines == ["no unit; correct it"]


def test_what_cannot_be_written_always_has_a_remedy() -> None:
    assert str(PerchError(ExitCode.NOT_WRITABLE, "it is full", file="x")) == (
        "x: it is full; see that this user can write there and that the disk has room"
    )
    own = PerchError(ExitCode.NOT_WRITABLE, "it is full", remedy="empty it")
    assert str(own) == "it is full; empty it"


def test_an_error_of_a_worker_process_arrives_whole() -> None:
    error = PerchError(ExitCode.USAGE, "no such run", file="runs/x", place="raw/", remedy="seal it")
    arrived = pickle.loads(pickle.dumps(error))
    assert str(arrived) == "runs/x, raw/: no such run; seal it"
    assert arrived.code is ExitCode.USAGE
