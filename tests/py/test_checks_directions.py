"""A pair that is slow in one direction, and a size that is slower than both of its neighbours."""

from __future__ import annotations

import pytest

from perch.model.record import Record
from perch.model.verdict import Check
from tests.py.checks_built import found, record, run_of


def rate(flow: str, gbit_s: float, size: int = 65536, scope: str = "hardware") -> Record:
    return record(flow, scope=scope, bandwidth={"gbit_s": gbit_s}, params={"size_bytes": size})


def latency(flow: str, p50: float, size: int = 64) -> Record:
    return record(
        flow, scope="hardware", kind="latency", latency_us={"p50": p50},
        params={"size_bytes": size},
    )  # fmt: skip


def checked(family: str, *records: Record) -> Check | None:
    return found(run_of(list(records)), family).get(f"{family}/t")


# ---- directions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("back", "size", "scope", "status"),
    [
        (91, 65536, "hardware", "pass"),
        (89, 65536, "hardware", "fail"),
        (112, 65536, "hardware", "fail"),
        (89, 4096, "hardware", "advisory"),
        (60, 65536, "software", "pass"),
        (49, 65536, "software", "advisory"),
    ],
)
def test_a_pair_that_is_slow_one_way_is_outside(
    back: float, size: int, scope: str, status: str
) -> None:
    ways = rate("t/a/b/0/1", 100, size, scope), rate("t/b/a/0/1", back, size, scope)
    one = checked("directions", *ways)
    assert one is not None
    assert one.status == status
    assert one.measured == pytest.approx(min(back / 100, 100 / back))
    slower = "a/b" if back > 100 else "b/a"
    assert one.evidence == [f"t/{slower}#{size}"]


def moved(flow: str, gbit_s: float, **params: int) -> Record:
    return record(
        flow, scope="hardware", kind="transfer", op="write", bandwidth={"gbit_s": gbit_s},
        params={"size_bytes": 1 << 20, "batch": 128} | params, transfer={"pair": 1, "pairs": 2},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("params", "status"), [({}, "fail"), ({"batch": 8}, "advisory"), ({"cross_rail": 1}, None)]
)
def test_each_pair_of_a_transfer_is_compared_with_its_way_back(
    params: dict[str, int], status: str | None
) -> None:
    one = checked("directions", moved("t/a/b/0/1", 100, **params), moved("t/b/a/0/1", 40, **params))
    assert (one and one.status) == status
    if one is not None:
        assert one.evidence == [f"t/b/a#1048576x{params.get('batch', 128)}/1"]


def test_message_rates_are_compared_with_the_way_back() -> None:
    slow = [
        record(flow, scope="hardware", kind="rate", bandwidth={"gbit_s": gbit_s},
               params={"size_bytes": 64})
        for flow, gbit_s in (("t/a/b/0/1", 10), ("t/b/a/0/1", 2))
    ]  # fmt: skip
    one = checked("directions", *slow)
    assert one is not None and one.status == "advisory"


def test_a_latency_of_one_way_is_a_warning() -> None:
    one = checked("directions", latency("t/a/b/0/1", 2), latency("t/b/a/0/1", 10))
    assert one is not None and (one.status, one.measured) == ("advisory", 0.2)


def test_the_best_of_all_repeats_speaks() -> None:
    ways = rate("t/a/b/0/1", 100), rate("t/b/a/0/1", 50), rate("t/b/a/0/2", 99)
    one = checked("directions", *ways)
    assert one is not None and (one.status, one.measured) == ("pass", 0.99)


def test_one_way_or_other_sizes_are_not_compared() -> None:
    assert checked("directions", rate("t/a/b/0/1", 100), rate("t/b/a/0/1", 9, 4096)) is None


# ---- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rates", "status", "share"),
    [
        ((50, 81, 100), "pass", 1.62),
        ((99, 81, 100), "pass", 0.818181818),
        ((99, 79, 100), "fail", 0.797979798),
        ((100, 90, 60), "pass", 1.5),
    ],
)
def test_a_rate_below_both_neighbours_is_one_size_only(
    rates: tuple[float, ...], status: str, share: float
) -> None:
    sizes = [rate("t/a/b/0/1", one, 65536 << n) for n, one in enumerate(rates)]
    one = checked("sizes", *sizes)
    assert one is not None and (one.status, one.measured) == (status, share)


def test_a_latency_above_both_neighbours_is_one_size_only() -> None:
    sizes = [latency("t/a/b/0/1", one, 64 << n) for n, one in enumerate((2, 3, 2.1))]
    one = checked("sizes", *sizes)
    assert one is not None and (one.status, one.measured) == ("fail", 0.7)
    assert one.evidence == ["t/a/b#128"]


def test_two_sizes_have_no_middle() -> None:
    assert checked("sizes", rate("t/a/b/0/1", 9), rate("t/a/b/0/1", 1, 131072)) is None
