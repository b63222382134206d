"""Moments: one format, read by one function."""

from __future__ import annotations

import pytest

from perch.model.moments import moment
from perch.soak.moments import dated


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:01:00Z", 60),
        ("1970-01-01T00:00:00.25Z", 0.25),
        ("2026-11-21T08:04:12.350Z", 1795248252.35),
        ("1970-13-01T00:00:00Z", None),
        ("1970-01-01 00:00:00Z", None),
        ("1970-01-01T00:00:00", None),
        ("1970-01-01T00:00:00+00:00", None),
        ("yesterday", None),
        (None, None),
        (5, None),
    ],
)
def test_a_moment_is_read_in_one_format(text: object, seconds: float | None) -> None:
    assert moment(text) == seconds


def test_a_moment_keeps_its_milliseconds_there_and_back() -> None:
    seconds = moment("2026-11-22T18:36:27.038Z")
    assert seconds == pytest.approx(1795372587.038, abs=1e-6)
    assert dated(seconds or 0) == "2026-11-22T18:36:27.038Z"
