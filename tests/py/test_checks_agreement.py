"""The engine beside perftest: which figures agree."""

from __future__ import annotations

from typing import Any

import pytest

from perch.checks import agreement
from perch.checks.agreement import ALLOWED_US
from perch.judge import columns
from perch.model.limits import Limit, LimitBound
from perch.model.record import Record
from tests.py.checks_built import record, run_of

LATENCY: dict[str, Any] = {
    "kind": "latency", "op": "write", "backend": "verbs", "connection": "RC",
    "definition": "half_round_trip", "params": {"size_bytes": 8},
}  # fmt: skip


def two(engine: dict[str, Any], peer: dict[str, Any], **alike: Any) -> list[Record]:
    given = LATENCY | alike
    return [
        record("mine/a/b/0/1", **given, **engine),
        record("other/a/b/0/1", **given, **peer, tool={"name": "perftest"}),
    ]


def state(records: list[Record], metric: str) -> str:
    limits = [
        Limit(
            id=metric, title="t", scope={}, metric=f"agreement.{metric}",
            bound=LimitBound(0.9, 1.1), unit="x", source="s", severity="required", remedy="r",
        )
    ]  # fmt: skip
    rows = agreement.rows(agreement.groups(columns.frame(records)), limits)
    [found] = [row["state"] for row in rows if row["metric"] == metric]
    return str(found)


@pytest.mark.parametrize(
    ("engine", "peer", "expected"),
    [
        # 10 % of 2 us is less than where a process was placed
        (2 + ALLOWED_US - 0.01, 2, "agree"),
        (2 - ALLOWED_US + 0.01, 2, "agree"),
        (2 + ALLOWED_US + 0.01, 2, "disagree"),
        (2 - ALLOWED_US - 0.01, 2, "disagree"),
        # 10 % of 10 us is more
        (10.9, 10, "agree"),
        (11.1, 10, "disagree"),
    ],
)
def test_latencies_agree_within_a_share_or_what_placement_moves(
    engine: float, peer: float, expected: str
) -> None:
    records = two({"latency_us": {"p50": engine}}, {"latency_us": {"p50": peer}})
    assert state(records, "p50_us") == expected


def test_bandwidths_have_no_such_allowance() -> None:
    rates = ({"bandwidth": {"gbit_s": 1.2}}, {"bandwidth": {"gbit_s": 1}})
    assert state(two(*rates, kind="bandwidth"), "gbit_s") == "disagree"


@pytest.mark.parametrize(
    ("engine", "peer", "expected"),
    [
        ({"cpu": "4", "node": 0}, {"cpu": "5", "node": 0}, "agree"),
        ({"unplaced": "few-cores"}, {"unplaced": "same-machine"}, "agree"),
        ({"cpu": "4"}, None, "agree"),  # an agent of another version said nothing
        ({"cpu": "4", "node": 0}, {"cpu": "20", "node": 1}, "not_judged"),
        ({"cpu": "4", "node": 0}, {"unplaced": "few-cores"}, "not_judged"),
    ],
)
@pytest.mark.parametrize("side", ["client", "server"])
def test_only_what_was_placed_alike_is_compared(
    engine: dict[str, Any], peer: dict[str, Any] | None, expected: str, side: str
) -> None:
    host = "ab"[side == "server"]
    mine, other = (
        {"latency_us": {"p50": 2}, side: {"host": host, "placement": place}}
        for place in (engine, peer)
    )
    assert state(two(mine, other), "p50_us") == expected


def test_two_tools_without_the_engine_are_one_finding() -> None:
    alone = [
        record(f"{tool}/a/b/0/1", **LATENCY | {"backend": backend}, tool={"name": tool})
        for tool, backend in (("perftest", "verbs"), ("cxi", "cxi"))
    ]
    [found] = agreement.agreement(run_of(alone))
    assert found.id == "agreement/latency-write-alone"
    assert found.title == "The engine, perftest and the cxi tools agree: write latency"
