"""A change of a figure, by its repeats: noise is never sold as gain, a real change is found."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from perch.history import tuning_figures as figures
from perch.history.tuning_figures import Figure, Metric, Ratios, not_compared
from perch.history.tuning_runs import About, Key
from perch.history.tuning_words import verdict
from perch.model.tuning import Change, ChangeVerdict, Kind

POOL = Path(__file__).parent / "tuning_pool.json"

# ---- noise is never sold as gain -----------------------------------------------------------------
# 200 comparisons drawn by lot from real runs of one thing: between them there is no difference but
# noise, unless one is made.


def numbers(seed: int, n: int) -> list[int]:
    """Park and Miller's minimal standard generator (Communications of the ACM 31, 1988)."""
    found = []
    for _ in range(n):
        seed = seed * 16807 % 2147483647
        found.append(seed)
    return found


@cache
def drawn(repeats: int, factor: float) -> list[list[Change]]:
    """200 comparisons of all figures; tuned ones times `factor`."""
    runs = json.loads(POOL.read_text())["runs"]
    comparisons = []
    for seed in range(1, 201):
        lots = numbers(seed * 7919, 2 * repeats + 10)[10:]
        lot = [runs[number % len(runs)] for number in lots]
        comparisons.append(
            [
                figures.compared(
                    figures.log_ratios(column[::2], [factor * one for one in column[1::2]]),
                    "lower",
                    0.002,
                )
                for column in zip(*lot, strict=True)
            ]
        )
    return comparisons


def part(comparisons: list[list[Change]], word: str, column: int | None = None) -> float:
    changes = [
        change
        for one in comparisons
        for change in (one if column is None else one[column : column + 1])
    ]
    return sum(change.verdict == word for change in changes) / len(changes)


def test_the_draws_are_those_of_every_day() -> None:
    assert numbers(1, 3) == [16807, 282475249, 1622650073]
    assert numbers(1, 10000)[-1] == 1043618065


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_one_interval_in_twenty_misses(repeats: int) -> None:
    # the figures of one comparison go together, so that the share itself varies a little
    assert 1 - part(drawn(repeats, 1), "no_effect") <= 0.055


@pytest.mark.parametrize("repeats", [2, 3, 5])
def test_one_statement_in_twenty_is_wrong_at_most(repeats: int) -> None:
    wrong = 0
    for changes in drawn(repeats, 1):
        figures.correct(changes)
        wrong += any(one.is_sure and one.verdict != "no_effect" for one in changes)
    assert wrong / 200 <= 0.05


@pytest.mark.parametrize(
    ("repeats", "factor", "found", "never"),
    [(3, 0.8, "better", "worse"), (5, 0.8, "better", "worse"), (5, 1.25, "worse", "better")],
)
def test_a_real_change_of_the_median_is_found(
    repeats: int, factor: float, found: str, never: str
) -> None:
    median = 1  # its column
    assert part(drawn(repeats, factor), found, median) >= 0.9
    assert part(drawn(repeats, factor), never, median) == 0


# ---- one figure ----------------------------------------------------------------------------------


def test_ratios_are_of_neighbours_in_time() -> None:
    found = figures.log_ratios([10, 20, 40], [5, 10, 10])
    assert found.forth == pytest.approx([-0.693147, -0.693147, -1.386294], abs=1e-6)
    assert found.back == pytest.approx([-1.386294, -1.386294], abs=1e-6)


A, B = [10, 10, 10], [8, 8.1, 7.9]


def test_a_change_by_hand() -> None:
    # ratios 0.8, 0.81, 0.79: mean of logarithms -0.223196, error 0.007218, t 4.303
    found = figures.compared(figures.log_ratios(A, B), "lower", 0)
    assert found.change_percent == pytest.approx(-20, abs=0.01)
    assert found.low_percent == pytest.approx(-22.45, abs=0.01)
    assert found.high_percent == pytest.approx(-17.48, abs=0.01)
    assert found.smallest_percent == pytest.approx(3.06, abs=0.01)


@pytest.mark.parametrize(
    ("untuned", "tuned", "better", "word"),
    [
        (A, B, "lower", "better"),
        (A, B, "higher", "worse"),
        (B, A, "higher", "better"),
        # an interval that holds "no change"
        (A, [5, 11, 9], "lower", "no_effect"),
        # a tuning that works on drifting machines
        ([10, 9.9, 9.8, 9.7], [7, 6.92, 6.87, 6.78], "lower", "better"),
    ],
)
def test_words_of_a_change(
    untuned: list[float], tuned: list[float], better: str, word: str
) -> None:
    assert figures.compared(figures.log_ratios(untuned, tuned), better, 0).verdict == word


def test_drift_is_no_gain() -> None:
    ratios = figures.log_ratios([10, 8.1, 6.561, 5.31441], [9, 7.29, 5.9049, 4.782969])
    found = figures.compared(ratios, "lower", 0)
    assert (found.verdict, found.p) == ("no_effect", 1)
    assert found.why is not None


def test_no_figure_is_known_better_than_its_digits() -> None:
    assert figures.resolution("perch 0.1", 5) == 0.002
    assert figures.resolution("perftest 4.5", 1) == 0.01
    assert figures.resolution("perftest 4.5", 100) == 0.002
    ratios = figures.log_ratios([1.02, 1.02], [1.01, 1.01])
    assert figures.compared(ratios, "lower", 0.02).verdict == "no_effect"


@pytest.mark.parametrize(
    ("word", "p_holm", "said"),
    [
        ("better", 0.049, "better"),
        ("worse", 0.049, "**worse**"),
        ("better", 0.05, "better (may be chance)"),
        ("worse", None, "worse (may be chance)"),
        ("no_effect", 1, "no effect seen"),
        ("not_compared", None, "not compared"),
    ],
)
def test_what_does_not_remain_after_the_correction_is_marked(
    word: ChangeVerdict, p_holm: float | None, said: str
) -> None:
    assert verdict(replace(not_compared(None), verdict=word, p_holm=p_holm)) == said


@pytest.mark.parametrize(
    ("values", "metric", "why"),
    [
        ([None, 1], "p99", "too few samples in 01-untuned"),
        ([1, None], "gbit_s", "not reported in 02-tuned"),
        ([0, 1], "stddev", "0 in 01-untuned"),
        ([1, 2], "min", None),
    ],
)
def test_what_keeps_a_figure_from_being_compared(
    values: list[float | None], metric: str, why: str | None
) -> None:
    assert figures.obstacle(values, metric, ["01-untuned", "02-tuned"]) == why


def test_a_percentile_that_one_repeat_lacks_is_not_the_runs() -> None:
    assert figures.of_run([5, None], "p99") is None
    assert figures.of_run([1, 2], "min") == 1
    assert figures.of_run([9, 12], "max") == 12
    assert figures.of_run([3, 4], "mean") == 3.5


# ---- over all flows ------------------------------------------------------------------------------


def _flow(kind: Kind, metric: str, better: str, *ratio: float) -> figures.FlowChange:
    ratios = Ratios(list(ratio), list(ratio[:1]))
    known = next(one for one in figures.METRICS[kind] if one.name == metric)
    assert known.better == better
    figure = Figure(Metric(*known), 1, 1, not_compared(None), ratios)
    return figures.FlowChange(Key("t", "a", "b", "8"), "t", About(kind), None, [figure])


def test_over_all_flows_the_repeat_stays_the_unit() -> None:
    flows = [
        _flow("bandwidth", "gbit_s", "higher", 0.1, 0.1),
        _flow("latency", "p50", "lower", -0.2, -0.2),
        _flow("latency", "p50", "lower", 0, 0),
    ]
    found = [
        (one.metric.name, one.flows, round(one.change.change_percent or 0))
        for one in figures.overall(flows)
    ]
    assert found == [("p50", 2, -10), ("gbit_s", 1, 11)]


def test_the_correction_is_over_all_figures_that_were_compared() -> None:
    changes = [replace(not_compared(None), p=p) for p in (0.03, None, None, 0.01, 0.2)]
    figures.correct(changes)
    assert [change.p_holm for change in changes] == [0.06, None, None, 0.03, 0.2]
