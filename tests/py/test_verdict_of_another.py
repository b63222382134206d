"""A verdict beside another plan or other records than those that it judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.py.conftest import Ended

Command = Callable[..., Ended]
Copy = Callable[[str], Path]


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("verdict.json", '"run":"', '"run":"other-', "verdict.json: it is of run other-"),
        ("records.jsonl", None, "", "verdict.json: it counts 29 records, and records.jsonl has 0"),
    ],
)
def test_a_verdict_of_other_records_or_of_another_run_is_not_summed_up(
    perchctl: Command, run_copy: Copy, file: str, old: str | None, new: str, said: str
) -> None:
    run = run_copy("loopback")
    perchctl("judge", run)
    path = run / file
    path.write_text(new if old is None else path.read_text().replace(old, new, 1))
    done = perchctl("summary", run)
    assert done.code == 3
    assert said in done.stderr


def test_a_bundle_takes_no_verdict_of_another_run(perchctl: Command, run_copy: Copy) -> None:
    run = run_copy("loopback")
    perchctl("judge", run)
    verdict = run / "verdict.json"
    verdict.write_text(verdict.read_text().replace('"run":"', '"run":"other-', 1))
    done = perchctl("bundle", run)
    assert done.code == 3
    assert "it is of run other-" in done.stderr
