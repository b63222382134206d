"""Student's t against a second table and by hand, and Holm's correction."""

from __future__ import annotations

import pytest

from perch.model import student


@pytest.mark.parametrize("n", range(2, student.MOST + 1))
def test_chance_exceeds_the_critical_value_in_one_case_of_twenty(n: int) -> None:
    # the table has three decimals
    assert student.p_value(student.critical(n), n - 1) == pytest.approx(0.05, abs=6e-5)


@pytest.mark.parametrize(
    ("t", "df", "p"),
    [
        (6.31, 1, 0.1), (2.92, 2, 0.1), (2.02, 5, 0.1), (1.81, 10, 0.1), (1.72, 20, 0.1),
        (63.66, 1, 0.01), (9.92, 2, 0.01), (5.84, 3, 0.01), (4.60, 4, 0.01), (3.17, 10, 0.01),
    ],
)  # fmt: skip
def test_p_values_are_those_of_nist_tn_1297(t: float, df: int, p: float) -> None:
    # table B.1, 0.90 and 0.99 two-sided, two decimals
    assert student.p_value(t, df) == pytest.approx(p, rel=0.02)


def test_an_interval_by_hand() -> None:
    # mean 2, standard deviation 1, error 1/sqrt(3), t = 3.4641 with 2 degrees of freedom
    found = student.interval([1, 2, 3], 0)
    assert (found.n, found.mean) == (3, 2)
    assert found.half_width == pytest.approx(2.4843, abs=5e-5)
    assert found.p == pytest.approx(0.0742, abs=5e-5)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.01, 0.01], (0.01, 0.01, 1)), ([0.5, 0.5], (0.5, 0.01, 0)), ([0, 0, 0], (0, 0.01, 1))],
)
def test_values_that_agree_are_known_to_a_digit(
    values: list[float], expected: tuple[float, float, float]
) -> None:
    assert student.interval(values, 0.01)[1:] == expected


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([0.03, 0.01, 0.2, 0.02], [0.06, 0.04, 0.2, 0.06]),
        ([], []),
        ([0.7, 0.6], [1, 1]),
    ],
)
def test_holms_correction(p: list[float], adjusted: list[float]) -> None:
    assert student.holm(p) == pytest.approx(adjusted)
