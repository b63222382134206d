"""Repeats of one figure agree."""

from __future__ import annotations

from typing import Any

import pytest

from perch.checks.repeatability import variations
from perch.judge import columns
from perch.model.record import Record
from tests.py.checks_built import found, record, run_of


def repeats(*rates: float, test: str = "t", **more: Any) -> list[Record]:
    return [
        record(f"{test}/a/b/0/{n}", bandwidth={"gbit_s": rate}, **more)
        for n, rate in enumerate(rates, 1)
    ]


@pytest.mark.parametrize(
    ("rates", "percent"),
    [((10, 11, 12), 100 / 11), ((5, 5, 5), 0), ((0, 0), None)],
)
def test_the_coefficient_of_variation_is_the_sample_deviation_by_the_mean(
    rates: tuple[float, ...], percent: float | None
) -> None:
    [value] = variations(columns.frame(repeats(*rates)))["percent"]
    assert value == (None if percent is None else pytest.approx(percent, rel=1e-8))


def test_only_repeats_of_one_place_between_one_pair_are_compared() -> None:
    other_size = repeats(99, params={"size_bytes": 8})
    other_pair = [record("t/a/c/0/1", bandwidth={"gbit_s": 99})]
    failed = [record("t/a/b/0/9", status="error", error={"code": 6}, bandwidth={"gbit_s": 99})]
    found_ones = variations(columns.frame([*repeats(10, 10), *other_size, *other_pair, *failed]))
    assert found_ones.rows() == [("t", "t/a/b#65536", 0.0)]


def test_latency_is_compared_by_its_median_else_its_mean() -> None:
    lat: dict[str, Any] = {"kind": "latency"}
    one = [record(f"t/a/b/0/{n}", latency_us={"p50": 4, "mean": n}, **lat) for n in (1, 2)]
    two = [record(f"u/a/b/0/{n}", latency_us={"mean": 4}, **lat) for n in (1, 2)]
    assert variations(columns.frame(one + two))["percent"].to_list() == [0, 0]


def test_unstable_figures_are_advisory_with_the_worst_first() -> None:
    sizes = {8: (10, 12), 16: (10, 10.1), 32: (10, 20)}
    records = [
        one for size, rates in sizes.items() for one in repeats(*rates, params={"size_bytes": size})
    ]
    checks = found(run_of([*records, *repeats(1, 1, test="a")]), "repeatability")
    assert list(checks) == ["repeatability/a", "repeatability/t"]
    assert checks["repeatability/a"].status == "pass"
    check = checks["repeatability/t"]
    assert (check.status, check.evidence) == ("advisory", ["t/a/b#32", "t/a/b#8"])
    assert check.measured == pytest.approx(47.1404521)
    assert "2 of its 3 figures" in str(check.remedy)


def test_where_nothing_was_repeated_nothing_is_judged() -> None:
    assert found(run_of(repeats(1)), "repeatability")["repeatability"].status == "not_judged"
