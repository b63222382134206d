"""RDMA against TCP in a verdict."""

from __future__ import annotations

import msgspec
import pytest

from perch.checks.comparison import compare
from perch.judge import columns
from perch.model.sections import ComparisonSection
from tests.py.checks_built import record


@pytest.mark.parametrize(("seconds", "per_gigabyte"), [(0, 0), (1, 0.5), (2, 1)])
def test_the_hosts_cpu_may_be_a_whole_number_of_seconds(
    seconds: float, per_gigabyte: float
) -> None:
    """As of an idle host over a short flow: its kernel counts in hundredths of a second."""
    figures = {
        "bandwidth": {"gbit_s": 1, "bytes": 2 * 10**9},
        "cpu": {"client_system_s": seconds, "server_system_s": 0},
    }
    both = [record(f"{one}/a/b/0/1", backend=one, **figures) for one in ("ofi", "tcp")]
    rows = {row["metric"]: row for row in compare(columns.frame(both))["rows"]}
    assert rows["client_system_s_per_gb"]["rdma"]["value"] == per_gigabyte
    assert rows["server_system_s_per_gb"]["tcp"]["value"] == 0


def test_transfers_that_were_timed_otherwise_are_refused_as_the_schema_says() -> None:
    both = [
        record(f"{one}/a/b/0/1", backend=one, kind="sum", op="write", definition=definition,
               bandwidth={"gbit_s": 1, "bytes": 2 * 10**9})
        for one, definition in (("ofi", "batch_completion"), ("tcp", "completion"))
    ]  # fmt: skip
    section = compare(columns.frame(both))
    msgspec.convert(section, ComparisonSection)
    (refused,) = section["refused"]
    assert refused["kind"] == "sum" and "batch_completion" in refused["reason"]
