"""perftest's lists of times (-H, -U)."""

from __future__ import annotations

import re

import pytest

from perch.model.record import Latency
from tests.py.test_tools_perftest import fixture, part_of, parts_of, times, why


def test_a_sorted_list_stands_between_the_header_and_the_header_again() -> None:
    part = part_of(fixture("formats/send_lat_histogram.txt"), "-n", "1000", "-H")
    assert times(part) == Latency(
        count=1000, min=2.1, max=260.5, mean=5.2, stddev=17.31,
        p50=3.11, p90=5.60731, p95=6.85, p99=96.25, p99_9=260.5,
    )  # fmt: skip


def test_an_unsorted_list_has_the_slowest_too() -> None:
    part = part_of(fixture("formats/read_lat_unsorted.txt"), "-n", "200", "-U")
    assert (times(part).p50, times(part).p90, times(part).p95) == (5.23, 7.53038, None)


def test_each_size_of_a_sweep_has_both_lists() -> None:
    parts = parts_of(fixture("formats/send_lat_all_both_lists.txt"), "-n", "12", "-a", "-U", "-H")
    assert [why(part) for part in parts] == ["ok"] * 23
    assert [part.params and part.params.size_bytes for part in parts] == [
        2**n for n in range(1, 24)
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\n500, ", "\n501, ", "time 500 of its list is"),
        ("#, usec", "#, cycles", 'its list has the title "#, cycles"'),
        ("\n997, {last}\n", "\n", "it lists 996 times of 999: truncated?"),
        ("       3.11  ", "       3.51  ", "t_typical is 3.51 us, and 3.10962"),
        ("96.25   ", "6.90    ", "99% percentile is 6.9 us, and 96.2523 us in its list"),
        ("17.31  ", "1.31  ", "t_stdev is 1.31 us, and "),
        ("17.31  ", "18.31  ", "t_stdev is 18.31 us, and 17.41"),
        ("\n500, 3.", "\n500, 9.", "the times of its sorted list (-H) are out of order"),
    ],
)
def test_a_list_must_be_that_of_its_row(old: str, new: str, said: str) -> None:
    text = "\n".join(fixture("formats/send_lat_histogram.txt"))
    last = re.search(r"\n997, ([0-9.]+)", text)
    assert last is not None
    changed = text.replace(old.replace("{last}", last[1]), new, 1)
    assert changed != text
    assert said in why(part_of(changed.split("\n"), "-n", "1000"))
