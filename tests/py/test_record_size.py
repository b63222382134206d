"""A latency record is at most 2 KB, and loses no evidence for it."""

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
from perch.model.record import Histogram, Latency, Placement, Record
from perch.run import judging

MOST = 2048
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
