"""A slope has its interval, and a step is no slope."""

from __future__ import annotations

import numpy as np
import pytest

from perch.soak import stats
from perch.soak.moments import dated


def noise(n: int) -> stats.Values:
    """Without order: 0 to 12."""
    return np.array([i * 7919 % 13 for i in range(n)], dtype=np.float64)


def course(seed: int) -> stats.Values:
    """A hundred intervals whose neighbours are alike: an AR(1) of 0.7.

    The generator is Park and Miller's (Communications of the ACM 31, 1988).
    """
    x, uniform = seed, []
    for _ in range(1200):
        x = x * 16807 % 2147483647
        uniform.append(x / 2147483647)
    level, values = 0.0, []
    for shock in np.array(uniform).reshape(100, 12).sum(axis=1) - 6:
        level = 0.7 * level + float(shock)
        values.append(10 + level)
    return np.array(values)


def test_a_slope_has_its_interval() -> None:
    times = np.arange(60.0)
    trend = stats.trend(times, 100 - 0.5 * times + noise(60) / 10, 0.001)
    assert trend is not None and trend.low is not None and trend.high is not None
    assert -0.52 < trend.slope < -0.48
    assert trend.low <= trend.slope <= trend.high < -0.4


def test_too_few_points_bear_no_interval() -> None:
    trend = stats.trend(np.arange(8.0), np.arange(8.0), 0.001)
    assert trend == (1, None, None)


def test_few_points_with_little_noise_bear_one_of_their_deviations() -> None:
    times = np.arange(12.0)
    trend = stats.trend(times, times * 2 + times % 2 / 100, 1e-5)
    assert trend is not None and trend.low is not None and trend.high is not None
    assert 1.9 < trend.low < trend.high < 2.1


def test_where_no_time_passes_there_is_no_slope() -> None:
    assert stats.trend(np.ones(20), np.arange(20.0), 0.001) is None


def test_equal_values_share_their_rank() -> None:
    assert stats.ranks(np.array([3.0, 1, 2, 2, 5])).tolist() == [4, 1, 2.5, 2.5, 5]


def test_a_step_has_its_place_and_its_medians() -> None:
    level = np.where(np.arange(60) >= 31, 0.5, 1)
    (step,) = stats.steps(level + noise(60) / 1000, 1e-4)
    assert (step.at, int(step.before * 10), int(step.after * 10)) == (31, 10, 5)


def test_what_returns_to_where_it_was_steps_twice() -> None:
    place = np.arange(90)
    level = np.where((place >= 30) & (place < 60), 0.5, 1)
    assert [step.at for step in stats.steps(level + noise(90) / 1000, 1e-4)] == [30, 60]


def test_noise_whose_neighbours_are_alike_neither_steps_nor_drifts() -> None:
    times = np.arange(100.0)
    for seed in range(7919, 41 * 7919, 7919):
        values = course(seed)
        trend = stats.trend(times, values, 0.0005)
        assert stats.steps(values, 0.0005) == []
        assert trend is not None and trend.low is not None and trend.high is not None
        assert trend.low <= 0 <= trend.high


@pytest.mark.parametrize(("p", "z"), [(0.025, 1.96), (0.005, 2.576), (0.0005, 3.291)])
def test_the_normal_quantile_is_that_of_a_printed_table(p: float, z: float) -> None:
    assert stats.normal_quantile(p) == pytest.approx(z, abs=5e-4)


# ---- moments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("s", "ms"), [(0.0005, "001"), (0.9996, "000"), (1.2345, "235")])
def test_halves_of_a_millisecond_are_rounded_up(s: float, ms: str) -> None:
    assert dated(s).endswith(f".{ms}Z")
