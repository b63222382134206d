"""A plan says how many payload bytes it moves, as far as it determines them."""

from __future__ import annotations

from typing import Any

import pytest

from perch.plan.payload import Payload, payload, said
from tests.py.planned import hosts, planned, suite_test


def moved(params: dict[str, Any], number: int = 2, **members: Any) -> Payload:
    return payload(planned([suite_test(params=params, **members)], hosts(number)))


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"size": 8, "iterations": 100}, Payload(800, 0)),
        ({"size": "1K:4K", "iterations": 10}, Payload(10 * (1024 + 2048 + 4096), 0)),
        ({"size": 8, "duration": "2s"}, Payload(0, 1)),
        ({"size": 8}, Payload(8000, 0)),
    ],
)
def test_bytes_are_messages_by_size_and_unknown_where_time_ends_a_test(
    params: dict[str, Any], found: Payload
) -> None:
    assert moved(params) == found


def test_each_pair_and_each_repeat_counts() -> None:
    assert moved({"size": 8, "iterations": 100}, 3, repeat=2) == Payload(3 * 2 * 800, 0)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Payload(1_234_000_000, 0), "Payload: at least 1.23 GB."),
        (
            Payload(800, 2),
            "Payload: at least 800 B, and 2 flows at up to link rate for a set time.",
        ),
        (Payload(0, 1), "Payload: not known; 1 flow at up to link rate for a set time."),
    ],
)
def test_the_words_name_what_is_not_known(found: Payload, words: str) -> None:
    assert said(found) == words
