"""Noise of composed figures: resampled from recorded runs (data/pool.json).

Whatever is made here agrees with itself: a latency's count, mean, deviation, percentiles, histogram
and elapsed time are those of the same samples.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np

from perch.model import histogram
from perch.model.figures import rounded, supports
from perch.model.histogram import Ints
from perch.model.record import Latency
from selftest.paths import HERE

Document = dict[str, Any]

#: Round trips beside what a client does between two of them: so much more than their sum passes.
BETWEEN = 1.0001


@cache
def _pool() -> Document:
    found: Document = json.loads((HERE / "data/pool.json").read_bytes())
    return found


@cache
def _recorded() -> tuple[Ints, ...]:
    """Round trips in ns of each recorded run."""
    decoded = histogram.decode([one["histogram"]["data"] for one in _pool()["latency"]])
    values = histogram.highest(decoded.place)
    return tuple(
        np.repeat(values[decoded.row == row], decoded.count[decoded.row == row])
        for row in range(decoded.n)
    )


def generator(seed: int, name: str) -> np.random.Generator:
    """Random numbers of one flow of one run."""
    return np.random.default_rng([seed, crc32(name.encode())])


def ratio(random: np.random.Generator) -> float:
    """A rate as a part of the median of its like; no two draws are the same."""
    return float(random.choice(_pool()["ratios"])) * float(random.uniform(0.9999, 1.0001))


def round_trips(random: np.random.Generator, count: int) -> Ints:
    """So many round trips in ns, as one of the recorded runs has them, or a mixture of all."""
    recorded = _recorded()
    whole = np.concatenate(recorded) if count > len(recorded[0]) else random.choice(recorded)
    drawn = random.choice(whole, count) * random.uniform(0.99, 1.01)
    return np.rint(drawn).astype(np.int64)


# ---- figures of samples --------------------------------------------------------------------------


def latency(samples: Ints) -> Document:
    """The keys of an engine's line that speak of these round trips: halves in µs.

    elapsed_s: they came one after the other.
    """
    counts = np.bincount(_places(samples))
    return {
        "elapsed_s": rounded(float(samples.sum()) * BETWEEN / 1e9),
        "latency_us": _figures(samples, counts),
        "histogram": {
            "encoding": "hdr-v2-zlib-base64",
            "unit": "ns_round_trip",
            "data": encoded(counts),
        },
    }


def samples_of(line: Document) -> Ints:
    """The round trips in ns of an engine's line, as exactly as its histogram has them."""
    decoded = histogram.decode([line["histogram"]["data"]])
    return np.repeat(histogram.highest(decoded.place), decoded.count)


def longer(factor: float) -> Callable[[Document], None]:
    """Makes each round trip of an engine's line longer; all its figures are those of its times."""

    def change(line: Document) -> None:
        line |= latency(np.rint(samples_of(line) * factor).astype(np.int64))

    return change


def _figures(samples: Ints, counts: Ints) -> Document:
    """counts: of the samples, by their place."""
    half_us = samples / 2000
    up_to = np.cumsum(counts)
    percentiles: Document = dict.fromkeys(Latency.PERCENTILES)
    for name, share in Latency.PERCENTILES.items():
        if supports(len(samples), share):
            at = np.searchsorted(up_to, [int(share * len(samples) + 0.5)])
            percentiles[name] = rounded(float(histogram.highest(at)[0]) / 2000)
    return {
        "count": len(samples),
        "min": rounded(float(half_us.min())),
        "max": rounded(float(half_us.max())),
        "mean": rounded(float(half_us.mean())),
        "stddev": rounded(float(half_us.std(ddof=1))),
        **percentiles,
    }


# ---- HdrHistogram's encoding ---------------------------------------------------------------------


#: Values at a time whose places are found within a processor's cache.
CACHED = 2**15


def _places(values: Ints) -> Ints:
    """The place of each value in ns; perch.model.histogram.lowest is the inverse."""
    place = np.empty_like(values)
    for first in range(0, len(values), CACHED):
        some = values[first : first + CACHED]
        # a double's exponent, biased by 1023 (IEEE 754), is far faster than a logarithm
        bits = (np.maximum(some, 1).astype(np.float64).view(np.int64) >> 52) - 1022
        bucket = np.maximum(bits - histogram.HALF_BITS - 1, 0)
        place[first : first + CACHED] = (bucket << histogram.HALF_BITS) + (some >> bucket)
    return place


def _leb128(value: int) -> bytes:
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    found = bytearray()
    while zigzag >= 0x80:
        found.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    found.append(zigzag)
    return bytes(found)


def encoded(counts: Ints) -> str:
    """The text of a histogram with these counts by place (perch.model.histogram decodes it)."""
    body, last = b"", -1
    for place in np.flatnonzero(counts).tolist():
        if place > last + 1:
            body += _leb128(last + 1 - place)
        body += _leb128(int(counts[place]))
        last = place
    head = struct.pack(">IIIIQQd", 0x1C849313, len(body), 0, 3, 1, histogram.HIGHEST_NS, 1.0)
    packed = zlib.compress(head + body)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()
