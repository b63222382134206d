"""Text from outside."""

from __future__ import annotations

import pytest

from perch.model.text import clean, did_you_mean, one_line


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain é µs", "plain é µs"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x7f\x9b\x00", r"\x7f\x9b\x00"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\u2028", r"\u2028"),
        ("\udc80", r"\udc80"),
    ],
)
def test_what_moves_a_cursor_or_turns_signs_is_seen_as_its_escape(text: str, seen: str) -> None:
    assert clean(text) == seen


def test_the_nearest_valid_word_is_offered_where_one_is_close() -> None:
    assert did_you_mean("latency_us.p98", ["latency_us.p99", "x"]) == (
        ", did you mean 'latency_us.p99'?"
    )
    assert did_you_mean("sky", ["ceiling"]) == ""


def test_several_lines_become_one_with_spaces() -> None:
    assert one_line(" a\r\n  b\u2028c\td  e\x1b ") == r"a b c d  e\x1b"
