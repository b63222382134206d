"""jq that is kept for many runs (selftest.kept): it answers as one that was started for the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selftest.kept import Kept

from perch.judge.findings import UnjudgeableError

PROGRAMS = {
    "sum": '[if . == [2] then error("two\\nlines") else add end]',
    "count": "[length]",
}


@pytest.fixture
def kept() -> Iterator[Kept]:
    made = Kept()
    yield made
    made.end()


def test_a_kept_jq_answers_each_time(kept: Kept) -> None:
    assert kept.answers(PROGRAMS, b"[1,2]") == [b"[3]\n", b"[2]\n"]
    asked = dict(kept.running)
    assert kept.answers(PROGRAMS, b"[4]") == [b"[4]\n", b"[1]\n"]
    assert kept.running == asked


def test_an_error_is_the_judges_and_the_next_answers_are_right(kept: Kept) -> None:
    with pytest.raises(UnjudgeableError, match="sum"):
        kept.answers(PROGRAMS, b"[2]")
    for number in range(3, 6):
        assert kept.answers(PROGRAMS, b"[%d]" % number) == [b"[%d]\n" % number, b"[1]\n"]
