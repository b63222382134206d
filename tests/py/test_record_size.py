"""A latency record is at most 2,048 bytes beside a narrow histogram, and loses no evidence for it.

reports/README.md has the figures of wide histograms and of long names.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from perch.model.figures import encode, rounded
from perch.model.histogram import DIGITS, HIGHEST_NS
from perch.model.record import (
    Events,
    Histogram,
    Latency,
    Placement,
    QueuePair,
    Record,
    Role,
    Side,
)
from perch.run import judging

MOST = 2048
#: Beside its histogram: of a record with names of 64 characters that has every key.
MOST_BESIDE = 2450
SAMPLES = 10_000


def round_trips(median_ns: float, spread: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """SAMPLES round trips around a median, one in 200 of them up to some times as long."""
    rng = np.random.default_rng(1)
    times = median_ns * np.exp(rng.normal(0, spread, SAMPLES))
    late = rng.random(SAMPLES) < 0.005
    times[late] *= 1 + rng.exponential(1, int(late.sum()))
    return np.floor(times)


def measured(record: Record, median_ns: float, spread: float) -> Record:
    """The record with latencies of its own and their histogram."""
    times = round_trips(median_ns, spread)
    histogram = HdrHistogram(1, HIGHEST_NS, DIGITS)
    for time in times:
        histogram.record_value(int(time))
    half = times / 2000
    shares = {
        name: rounded(float(np.quantile(half, share)))
        for name, share in Latency.PERCENTILES.items()
        if SAMPLES * (1 - share) >= 10
    }
    figures = {"min": half.min(), "max": half.max(), "mean": half.mean(), "stddev": half.std()}
    latency = Latency(SAMPLES, **{name: rounded(float(one)) for name, one in figures.items()})
    for name, value in shares.items():
        setattr(latency, name, value)
    text = histogram.encode().decode()
    return msgspec.structs.replace(
        record,
        latency_us=latency,
        histogram=Histogram("hdr-v2-zlib-base64", "ns_round_trip", text),
    )


def healthy(run_copy: Callable[[str], Path]) -> Record:
    """A record of verbs, proven by what both hosts' devices counted, on which nothing went wrong.

    The recorded one's retransmissions are those of two hosts on one busy machine.
    """
    root = run_copy("rxe")
    judging.judge(root)
    lines = (root / "records.jsonl").read_bytes().splitlines()
    record = next(
        one
        for one in (msgspec.json.decode(line, type=Record) for line in lines)
        if one.test == "verbs-send-latency"
    )
    assert record.events and record.counters
    record.events.counts["retransmissions"] = 0
    record.events.moved = {}
    for side in (record.counters.client, record.counters.server):
        side.pop("rxe0/1", None)
    for end in (record.client, record.server):
        end.placement = Placement("4", 1)
    return record


@pytest.mark.parametrize(("median_ns", "spread"), [(3400, 0.01), (4600, 0.01), (16000, 0.01)])
def test_a_latency_record_of_10000_samples_is_at_most_2_kb(
    median_ns: float, spread: float, run_copy: Callable[[str], Path]
) -> None:
    record = measured(healthy(run_copy), median_ns, spread)
    line = encode(record)
    sizes = {name: len(json.dumps(value)) for name, value in json.loads(line).items()}
    largest = sorted(sizes.items(), key=lambda one: -one[1])[:6]
    print(f"{len(line)} bytes, of them {largest}")
    assert len(line) <= MOST, largest


def hard(record: Record) -> Record:
    """The same with names of 64 characters, IPv6, every key of a latency record, and trouble."""
    assert record.link and record.events and record.counters
    names = {"alpha": "a" * 64, "beta": "b" * 64}
    ends: list[tuple[Role, Side]] = [("client", record.client), ("server", record.server)]
    for role, end in ends:
        assert end.host
        end.host = names[end.host]
        end.device = "mlx5_bond_0"
        end.address = "2001:db8:1111:2222:3333:4444:5555:6666"
        end.placement = Placement("127,255", 7, 6)
        record.queue_pairs[role] = [QueuePair(16777215, 16777215)]
    link = record.link
    link.rate_gbit_s = link.expected_gbit_s = 400
    link.pcie_gbit_s, link.hop_class, link.ipv6 = 252.062992, "same_switch", True
    record.flow = f"{record.test}/{names['alpha']}/{names['beta']}/0/1"
    record.events.counts = {**dict.fromkeys(Events.CLASSES, 0), "retransmissions": 14}
    record.events.moved = {"retransmissions": f"{names['alpha']}: rxe0/1 completer_retry_err"}
    for side in (record.counters.client, record.counters.server):
        side["rxe0/1"] = {"completer_retry_err": 7, "duplicate_request": 7}
    return record


@pytest.mark.parametrize("spread", [0.01, 1.0])
def test_all_but_the_histogram_keeps_within_its_bound(
    spread: float, run_copy: Callable[[str], Path]
) -> None:
    record = measured(hard(healthy(run_copy)), 16000, spread)
    record.histogram = None
    assert len(encode(record)) <= MOST_BESIDE
