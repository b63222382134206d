"""One measurement that is counted as several."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.py.judging import Run, check_of, put, status

MakeRun = Callable[[str], Path]


def test_an_output_that_was_copied_to_another_repeat_is_found(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    first = run.flow("tcp-latency")
    shutil.copy(first / "client.stdout", first.parent / "2/client.stdout")
    run.edit(first.parent / "2/client.stdout", put("started", "2026-11-21T08:04:47.900Z"))
    found = check_of(run.judge(), "copies")
    assert (found.status, found.measured) == ("inconclusive", 8)
    assert found.evidence == [f"tcp-latency/alpha/beta/{repeat}" for repeat in (1, 2)]


def test_a_copy_with_another_start_is_found(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    first = run.flow("tcp-latency")
    shutil.copy(first / "client.stdout", first.parent / "2/client.stdout")
    run.edit(first.parent / "2/client.stdout", put("started", "2026-11-21T08:04:47.900Z"))
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, "copies")) == ("INCONCLUSIVE", "inconclusive")


def test_recorded_repeats_are_measurements_of_their_own(run_copy: MakeRun) -> None:
    for name in ("loopback", "rxe", "transfer"):
        assert status(Run(run_copy(name)).judge(), "copies") == "pass"
