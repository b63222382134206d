"""Figures of host memory and of GPU memory: neither is judged by, or compared with, the other's."""

from __future__ import annotations

from typing import Any

import pytest

from perch.checks import agreement, comparison, figures
from perch.judge import columns
from perch.model import limit_files
from perch.model.record import Record
from tests.py.checks_built import found, limit, record, run_of

SIZE = {"size_bytes": 65536}
GPU = {"memory": "cuda:near", "tx_memory": "cuda:near", "rx_memory": "cuda:near"}
ONE_WAY = {"memory": "mixed", "tx_memory": "host", "rx_memory": "rocm:1"}


def of(params: dict[str, Any], **more: Any) -> Record:
    return record(params={**SIZE, **params}, **{"bandwidth": {"gbit_s": 10}, **more})


@pytest.mark.parametrize(
    ("params", "memory"),
    [
        ({}, "host"),
        ({"memory": "host", "tx_memory": "host", "rx_memory": "host"}, "host"),
        ({"memory": "huge:2M"}, "host"),
        ({"memory": "mixed", "tx_memory": "host", "rx_memory": "huge:1G"}, "host"),
        (GPU, "gpu"),
        (ONE_WAY, "gpu"),
        ({"memory": "ze:0000:3b:00.0"}, "gpu"),
    ],
)
@pytest.mark.parametrize("asked", ["host", "gpu"])
def test_a_limit_of_one_memory_does_not_judge_the_other(
    params: dict[str, Any], memory: str, asked: str
) -> None:
    low = limit(bound={"min": 20}, scope={"memory": asked})
    [check] = found(run_of([of(params)], low), "limit").values()
    assert check.status == ("fail" if memory == asked else "not_judged")
    anywhere = limit(bound={"min": 20})
    assert [one.status for one in found(run_of([of(params)], anywhere), "limit").values()] == [
        "fail"
    ]


def test_records_of_both_in_one_test_are_told_apart() -> None:
    slow = limit(bound={"min": 20}, scope={"memory": "gpu"})
    both = [of({}), of(GPU, bandwidth={"gbit_s": 30})]
    [check] = found(run_of(both, slow), "limit").values()
    assert (check.status, check.measured) == ("pass", 30)


@pytest.mark.parametrize("name", ["roce-400", "ib-ndr"])
def test_shipped_latencies_of_host_memory_do_not_judge_gpus_and_bandwidths_do(name: str) -> None:
    shipped = limit_files.shipped(name)
    assert shipped is not None
    layer = "ethernet" if name.startswith("roce") else "infiniband"
    about: dict[str, Any] = {
        "scope": "hardware", "backend": "verbs", "op": "write-imm",
        "link": {"rate_gbit_s": 400, "expected_gbit_s": 400, "mtu_bytes": 4096, "layer": layer},
        "client": {"host": "a", "device": "m"}, "server": {"host": "b", "device": "m"},
    }  # fmt: skip
    latency: dict[str, Any] = {
        "kind": "latency", "definition": "half_round_trip", "bandwidth": None,
        "latency_us": {"p50": 30, "count": 100000},
    }  # fmt: skip

    def failed(memory: dict[str, Any], **members: Any) -> set[str]:
        given = about | members
        size = 64 if given["kind"] == "latency" else 1 << 20
        one = of({"size_bytes": size, "bidirectional": False, **memory}, **given)
        checks = found(run_of([one], *shipped), "limit").items()
        return {name for name, check in checks if check.status in ("fail", "advisory")}

    assert "limit/small-message-median/t" in failed({}, **latency)
    assert not any("small-message" in name for name in failed(GPU, **latency))
    slow = {"kind": "bandwidth", "op": "write", "bandwidth": {"gbit_s": 40}}
    assert "limit/large-message-share/t" in failed(GPU, **slow)


# ---- compared --------------------------------------------------------------------------------


def terms(params: dict[str, Any]) -> str:
    text: str = figures.terms(columns.frame([of(params)]))[0]
    return text


@pytest.mark.parametrize(
    ("was", "now", "odd"),
    [
        ({}, GPU, "tx_memory: none and cuda:near"),
        ({"memory": "host", "tx_memory": "host", "rx_memory": "host"}, ONE_WAY,
         "rx_memory: none and rocm:1"),
        ({}, {"memory": "huge:2M"}, "tx_memory: none and huge:2M"),
        (GPU, {**GPU, "tx_memory": "cuda:0"}, "tx_memory: cuda:near and cuda:0"),
        (GPU, {**GPU, "bounce": True}, "bounce: none and true"),
        ({}, {"memory": "host", "bounce": False}, None),
        (GPU, GPU, None),
    ],
)  # fmt: skip
def test_a_baseline_under_another_memory_is_not_comparable(
    was: dict[str, Any], now: dict[str, Any], odd: str | None
) -> None:
    assert figures.unlike(terms(was), terms(now)) == odd


def test_a_tool_in_host_memory_does_not_check_the_engine_in_a_gpu() -> None:
    alike: dict[str, Any] = {"kind": "latency", "op": "write", "backend": "verbs",
                             "latency_us": {"p50": 2, "count": 1000}}  # fmt: skip
    mine = record("mine/a/b/0/1", **alike, params={**SIZE, **GPU})
    other = record("other/a/b/0/1", **alike, params=SIZE, tool={"name": "perftest"})
    [pair] = agreement.groups(columns.frame([mine, other]))
    sides = {group.side: group for group in pair}
    assert "memory: engine gpu, perftest host" in agreement.unlike(
        sides["engine"], sides["perftest"], "perftest"
    )


def test_rdma_into_gpus_is_not_compared_with_tcp() -> None:
    sends = [of(params, backend="verbs", op="send") for params in ({}, GPU)]
    found = comparison.groups(columns.frame(sends))
    assert [group.records for group in found] == [1]
