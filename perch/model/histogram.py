"""HdrHistogram's compressed V2 encoding, decoded in batches.

    base64( cookie, length, zlib( cookie, length, 0, digits, lowest, highest, ratio, counts ) )

Numbers are big-endian. Counts are ZigZag LEB128, and a negative one -n stands for n places without
a count (HdrHistogram, AbstractHistogram.encodeIntoByteBuffer). The engine's layout: 3 significant
digits, 1 ns to 1 h; place 0 to 2047 are single nanoseconds, each later 1,024 places twice as wide.
"""

from __future__ import annotations

import binascii
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

DIGITS = 3
HALF_BITS = 10
BUCKETS = 32
PLACES = (BUCKETS + 1) << HALF_BITS
HIGHEST_NS = 3600 * 10**9

_COOKIE, _COMPRESSED = 0x1C849303 | 0x10, 0x1C849304 | 0x10
_RATIO_ONE = 0x3FF0000000000000
_outer = struct.Struct(">II")
_header = struct.Struct(">IIIIQQQ")

#: A count of up to 2^53 fits eight bytes of seven bits; what is longer is damaged.
_LEB128_MAX = 8
_PAYLOAD_MAX = _header.size + PLACES * _LEB128_MAX
#: JSON's exact integers end here.
_COUNT_MAX = 2**53
_TOO_LONG = -(2**62)
#: Histograms of one batch: some megabytes, which stay in the processor's cache.
_BATCH = 256

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Moments(NamedTuple):
    """Of each histogram in ns: bounds of the mean, and the deviation with its greatest error.

    Each sample lies within its place. From the middles of their places the samples differ by half
    a width at most, so their deviation (divided by count - 1) does by no more than the root of the
    mean square of these (the triangle inequality).
    """

    least_mean: Floats
    most_mean: Floats
    deviation: Floats
    error: Floats


class Decoded(msgspec.Struct):
    """The counts of n histograms, sparse: `count` samples of histogram `row` at `place`.

    Ordered by row and place. damaged: rows whose text is no histogram of this layout.
    """

    n: int
    row: Ints
    place: Ints
    count: Ints
    damaged: list[int]

    def totals(self) -> Ints:
        """Samples of each histogram."""
        return np.bincount(self.row, self.count, self.n).astype(np.int64)

    def moments(self) -> Moments:
        """What the samples of each histogram sum up to, as far as their places tell."""
        low, high = lowest(self.place).astype(float), highest(self.place).astype(float)
        totals = np.maximum(self.totals(), 1)

        def summed(values: Floats) -> Floats:
            sums: Floats = np.bincount(self.row, self.count * values, self.n).astype(np.float64)
            return sums

        least, most = summed(low) / totals, summed(high) / totals
        middle = (low + high) / 2 - ((least + most) / 2)[self.row]
        freedom = np.maximum(totals - 1, 1)
        squares = summed(middle**2) - summed(middle) ** 2 / totals
        return Moments(
            least,
            most,
            np.sqrt(np.maximum(squares, 0) / freedom),
            np.sqrt(summed(((high - low) / 2) ** 2) / freedom),
        )

    def ends(self) -> tuple[Ints, Ints]:
        """The first and the last place of each histogram with a sample; 0 of one without."""
        ordered = np.flatnonzero(np.diff(self.row, prepend=-1))
        first, last = np.zeros(self.n, np.int64), np.zeros(self.n, np.int64)
        first[self.row[ordered]] = self.place[ordered]
        last[self.row[ordered]] = self.place[np.append(ordered[1:], len(self.row)) - 1]
        return first, last

    def merged(self) -> Ints:
        """The counts of all of them together, by place."""
        return np.bincount(self.place, self.count, PLACES).astype(np.int64)

    def quantiles(self, *shares: float) -> Ints:
        """Of each histogram the highest value in ns of the place of each share of its samples.

        HdrHistogram's getValueAtPercentile: the sample at share x count, rounded to the nearest, at
        least the first. Shape (n, shares); 0 where a histogram has no sample.
        """
        totals = self.totals()
        ends = np.cumsum(self.count)
        before = np.concatenate([[0], np.cumsum(totals)])[:-1]
        found = np.zeros((self.n, len(shares)), np.int64)
        some = totals > 0
        for column, share in enumerate(shares):
            nearest = (share * 100 * totals / 100 + 0.5).astype(np.int64)
            wanted = np.clip(nearest, 1, totals)
            at = np.searchsorted(ends, (before + wanted)[some])
            found[some, column] = highest(self.place[at])
        return found


def lowest(place: Ints) -> Ints:
    """The least value in ns that is counted at a place."""
    bucket = np.maximum((place >> HALF_BITS) - 1, 0)
    value: Ints = (place - (bucket << HALF_BITS)) << bucket
    return value


def highest(place: Ints) -> Ints:
    """The greatest value in ns that is counted at a place."""
    bucket = np.maximum((place >> HALF_BITS) - 1, 0)
    value: Ints = lowest(place) + (np.int64(1) << bucket) - 1
    return value


def _payload(text: str) -> bytes | None:
    """The bytes of the counts; None of a text that is no histogram of this layout."""
    try:
        binary = binascii.a2b_base64(text, strict_mode=True)
        cookie, length = _outer.unpack_from(binary)
        inflate = zlib.decompressobj()
        payload = inflate.decompress(binary[_outer.size :], _PAYLOAD_MAX)
        header = _header.unpack_from(payload)
    except (ValueError, struct.error, zlib.error):
        return None
    whole = inflate.eof and not inflate.unused_data
    if not whole or (cookie, length) != (_COMPRESSED, len(binary) - _outer.size):
        return None
    counts = payload[_header.size :]
    *expected, top, ratio = _COOKIE, len(counts), 0, DIGITS, 1, HIGHEST_NS, _RATIO_ONE
    if list(header[:5]) != expected or header[5] > top or header[6] != ratio:
        return None
    return None if counts and counts[-1] & 0x80 else counts


def _numbers(data: npt.NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """The values of a sequence of ZigZag LEB128 numbers, and where each ends.

    What is longer than any count is `_TOO_LONG`.
    """
    ends = np.flatnonzero(data < 0x80)
    raw = data[ends].astype(np.int64)
    lengths = np.diff(ends, prepend=-1)
    longer = np.flatnonzero(lengths > 1)
    lengths = lengths[longer]
    starts = ends[longer] - lengths + 1
    whole = np.zeros(len(longer), np.int64)
    for i in range(min(int(lengths.max(initial=0)), _LEB128_MAX)):
        has = np.flatnonzero(lengths > i)
        whole[has] |= (data[starts[has] + i].astype(np.int64) & 0x7F) << (7 * i)
    raw[longer] = whole
    values = (raw >> 1) ^ -(raw & 1)
    values[longer[lengths > _LEB128_MAX]] = _TOO_LONG
    return values, ends


def _damaged_rows(values: Ints, row: Ints, place: Ints) -> set[int]:
    """Rows with a number that is too large, or a count beyond the last place."""
    is_gap = values < 0
    bad = np.where(is_gap, place - values > PLACES, (place >= PLACES) | (values > _COUNT_MAX))
    return set(row[bad].tolist())


def _decode_batch(texts: Sequence[str]) -> Decoded:
    payloads = [_payload(text) for text in texts]
    damaged = {n for n, payload in enumerate(payloads) if payload is None}
    sizes = np.array([len(payload or b"") for payload in payloads], np.int64)
    values, ends = _numbers(np.frombuffer(b"".join(filter(None, payloads)), np.uint8))
    until = np.searchsorted(ends, np.cumsum(sizes))  # numbers up to the end of each histogram
    numbers = np.diff(until, prepend=0)
    row = np.repeat(np.arange(len(texts)), numbers)
    steps = np.where(values < 0, np.minimum(-np.maximum(values, -PLACES), PLACES), 1)
    passed = np.concatenate([[0], np.cumsum(steps)])
    place = passed[:-1] - np.repeat(passed[until - numbers], numbers)
    damaged |= _damaged_rows(values, row, place)
    keep = values > 0
    if damaged:
        keep &= ~np.isin(row, list(damaged))
    return Decoded(len(texts), row[keep], place[keep], values[keep], sorted(damaged))


def decode(texts: Sequence[str]) -> Decoded:
    """All of these histograms; the damaged ones are empty, and named."""
    starts = range(0, len(texts), _BATCH)
    parts = [_decode_batch(texts[start : start + _BATCH]) for start in starts]
    none = np.zeros(0, np.int64)
    return Decoded(
        len(texts),
        np.concatenate([none, *(part.row + at for at, part in zip(starts, parts, strict=True))]),
        np.concatenate([none, *(part.place for part in parts)]),
        np.concatenate([none, *(part.count for part in parts)]),
        [at + row for at, part in zip(starts, parts, strict=True) for row in part.damaged],
    )


def distribution(counts: Ints) -> list[tuple[int, int]]:
    """(value in ns, samples up to it) in few points.

    One for each hundredth up to p99, then four for each halving of what remains (HdrHistogram's
    percentile iterator), so that the tail is drawn as finely as the rest.
    """
    total = int(counts.sum())
    places = np.flatnonzero(counts)
    seen = np.cumsum(counts[places])
    points = []
    rest = 1.0  # what may still lie above the next point
    quarter = 2**-0.25
    for value, below in zip(highest(places).tolist(), seen.tolist(), strict=True):
        above = (total - below) / total
        if above > rest:
            continue
        points.append((value, below))
        while above > 0 and rest >= above:
            rest = rest - 0.01 if rest > 0.01 + 1e-9 else rest * quarter
    return points
