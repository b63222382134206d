"""HdrHistogram's encoding, against PyPI's hdrhistogram; and what is no histogram."""

from __future__ import annotations

import base64
import random
import struct
import zlib

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from perch.model import histogram

SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)


def made(seed: int, samples: int) -> HdrHistogram:
    chance = random.Random(seed)
    one = HdrHistogram(1, histogram.HIGHEST_NS, histogram.DIGITS)
    for _ in range(samples):
        one.record_value(int(chance.lognormvariate(9, 1.5)) + 1)
    return one


def text(one: HdrHistogram) -> str:
    return str(one.encode().decode())


def encoded(counts: bytes, digits: int = histogram.DIGITS) -> str:
    header = struct.pack(
        ">IIIIQQQ", 0x1C849313, len(counts), 0, digits, 1, histogram.HIGHEST_NS, 0x3FF0000000000000
    )
    body = zlib.compress(header + counts)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(body)) + body).decode()


def test_counts_and_quantiles_are_those_of_another_reader() -> None:
    others = [made(seed, samples) for seed, samples in enumerate([1, 50, 3000, 7] * 80)]
    decoded = histogram.decode([text(one) for one in others])
    assert decoded.damaged == []
    assert decoded.totals().tolist() == [one.total_count for one in others]
    expected = [[one.get_value_at_percentile(100 * share) for share in SHARES] for one in others]
    assert decoded.quantiles(*SHARES).tolist() == expected


def test_merged_counts_are_the_sum() -> None:
    others = [made(seed, 500) for seed in range(3)]
    merged = histogram.decode([text(one) for one in others]).merged()
    places = np.flatnonzero(merged)
    for one in others[1:]:
        others[0].add(one)
    expected = [
        (step.value_iterated_to, step.count_added_in_this_iter_step)
        for step in others[0].get_recorded_iterator()
    ]
    assert list(zip(histogram.highest(places), merged[places], strict=True)) == expected


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param("", id="nothing"),
        pytest.param("no base64 *", id="no base64"),
        pytest.param(text(made(1, 9))[:-8], id="cut"),
        pytest.param(encoded(b"\x82"), id="ends within a number"),
        pytest.param(encoded(b"\xff" * 8 + b"\x01"), id="number too long"),
        pytest.param(encoded(b"\xff\xff\x7f\x02"), id="beyond the last place"),
        pytest.param(encoded(b"\x02", digits=2), id="another precision"),
        pytest.param(encoded(bytes(10**6)), id="more than any has"),
    ],
)
def test_a_damaged_text_is_named_and_leaves_the_others_alone(damaged: str) -> None:
    good = made(2, 100)
    decoded = histogram.decode([text(good), damaged, text(good)])
    assert decoded.damaged == [1]
    assert decoded.totals().tolist() == [100, 0, 100]
    assert decoded.quantiles(1.0)[1, 0] == 0


def test_no_histograms_have_no_samples() -> None:
    assert histogram.decode([]).merged().sum() == 0
    assert histogram.distribution(histogram.decode([]).merged()) == []


def test_a_distribution_ends_at_the_greatest_value_and_has_few_points() -> None:
    one = made(3, 20000)
    points = histogram.distribution(histogram.decode([text(one)]).merged())
    assert points[-1] == (one.get_value_at_percentile(100), 20000)
    assert 100 < len(points) < 200
    assert points == sorted(points)
