"""The worst interval and the longest tail."""

from __future__ import annotations

from typing import Any

import pytest

from perch.model.record import Record
from perch.model.verdict import Bound, Check
from tests.py.checks_built import found, record, run_of

SUPPORTED = {"count": 10000, "p50": 1}


def shape(*records: Record) -> dict[str, Check]:
    return found(run_of(list(records)), "shape")


def intervals(*rates: float) -> list[dict[str, Any]]:
    return [{"start_s": n, "end_s": n + 1, "gbit_s": rate} for n, rate in enumerate(rates)]


def test_one_bad_interval_is_advisory_on_software_and_fails_hardware() -> None:
    def checked(worst: float, scope: str) -> Check:
        return shape(record(scope=scope, intervals=intervals(10, 10, worst, 10)))["interval/t"]

    assert checked(5, "hardware").status == "pass"
    soft = checked(4, "software")
    assert (soft.status, soft.measured, soft.limit) == ("advisory", 0.4, Bound(0.5, None))
    assert soft.evidence == ["t/a/b/0/1#65536"]
    assert "(interval: 1s)" in str(soft.remedy)
    assert checked(4, "hardware").status == "fail"
    assert checked(0, "hardware").measured == 0


@pytest.mark.parametrize(
    ("elapsed", "window", "share"),
    [(2, 3, 0.3), (0.9, 3, None), (2, None, None), (1, 10, 1)],
)
def test_the_worst_window_is_compared_with_the_whole_where_there_are_ten(
    elapsed: float, window: float | None, share: float | None
) -> None:
    bandwidth = {"gbit_s": 10} | ({} if window is None else {"min_interval_gbit_s": window})
    checks = shape(record(elapsed_s=elapsed, bandwidth=bandwidth))
    assert [one.measured for one in checks.values()] == ([] if share is None else [share])


def test_the_worse_of_interval_and_window_counts() -> None:
    both = record(elapsed_s=4, bandwidth={"gbit_s": 10, "min_interval_gbit_s": 7},
                  intervals=intervals(10, 8, 10, 10))  # fmt: skip
    assert shape(both)["interval/t"].measured == 0.7


@pytest.mark.parametrize(
    ("latency", "tail", "unit"),
    [
        ({"count": 10000, "p50": 2, "p99": 4, "p99_9": 30}, 15, "p99.9"),
        ({"count": 9000, "p50": 2, "p99": 4, "p99_9": 30}, 2, "p99"),
        ({"count": 900, "p50": 2, "p99": 4}, None, ""),
        ({"count": 10000, "p99": 4, "p99_9": 5}, None, ""),
        ({"p50": 2, "p99": 4}, None, ""),
    ],
)
def test_the_tail_is_the_furthest_percentile_that_ten_samples_support(
    latency: dict[str, Any], tail: float | None, unit: str
) -> None:
    checks = shape(record(kind="latency", latency_us=latency))
    if tail is None:
        assert checks == {}
    else:
        check = checks["tail/t"]
        assert (check.measured, check.unit) == (tail, f"times the median, {unit}")
        assert check.status == ("advisory" if tail > 10 else "pass")


def test_what_breaks_on_hardware_decides_and_the_worst_is_told() -> None:
    tails = [(5, "hardware"), (30, "software"), (20, "hardware")]
    records = [
        record(f"t/a/b/0/{n}", kind="latency", scope=scope, latency_us={**SUPPORTED, "p99_9": p})
        for n, (p, scope) in enumerate(tails, 1)
    ]
    check = shape(*records)["tail/t"]
    assert (check.status, check.measured) == ("fail", 30)
    assert check.evidence == ["t/a/b/0/2#65536", "t/a/b/0/3#65536"]
    assert shape(*records[:2])["tail/t"].status == "advisory"


def test_shapes_stand_by_their_first_record_and_only_of_records_with_status_ok() -> None:
    lat: dict[str, Any] = {"kind": "latency", "latency_us": {"count": 10000, "p50": 1, "p99_9": 2}}
    bad = record("x/a/b/0/1", status="error", error={"code": 6}, intervals=intervals(1, 1, 1))
    checks = shape(
        record("z/a/b/0/1", **lat), record("y/a/b/0/1", intervals=intervals(1, 1, 1)), bad
    )
    assert list(checks) == ["tail/z", "interval/y"]


@pytest.mark.parametrize(("far", "status"), [(200, "pass"), (202, "fail"), (None, None)])
def test_a_tail_of_one_message_in_ten_thousand_is_judged_by_itself(
    far: float | None, status: str | None
) -> None:
    times = {"count": 100_000, "p50": 2, "p99": 3, "p99_9": 4}
    one = record(scope="hardware", kind="latency",
                 latency_us=times | ({} if far is None else {"p99_99": far}))  # fmt: skip
    checks = shape(one)
    assert checks["tail/t"].status == "pass"
    found_far = checks.get("far-tail/t")
    assert (found_far and found_far.status) == status
    if found_far is not None and far is not None:
        assert (found_far.measured, found_far.limit) == (far / 2, Bound(None, 100))
