"""The histograms of many records, decoded together, against the figures beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from perch.model import histogram
from perch.model.figures import rounded
from perch.model.histogram import Floats
from perch.model.record import Histogram, Latency, Record
from perch.tools.results import shown

ENCODING = "hdr-v2-zlib-base64"

#: Nanoseconds of a histogram's unit in one of the record's figure: a round trip is halved there.
UNITS = {"ns_round_trip": 2, "ns": 1}

#: A figure has nine digits (perch/model/figures.py).
DIGITS = 1e-8

#: Filled places of a histogram that no other measurement has by chance. Where k samples lie, k lie
#: again at most 37 times of 100 (Poisson, e^-1 for k = 1), and the total tells one place: 30 places
#: agree once in 10^12.
LEAST_PLACES = 30

Mask = npt.NDArray[np.bool_]
#: What is wrong where; a mask over the histograms, and the words for one of them.
Misfit = tuple[Mask, Callable[[int], str]]


def _unit_fits(record: Record) -> bool:
    """The engine halves round trips, and nothing else."""
    one = record.histogram
    if one is None or one.encoding != ENCODING:
        return False
    halved = record.definition == "half_round_trip"
    return one.unit == ("ns_round_trip" if halved else "ns")


def _far(said: Floats, found: Floats) -> Mask:
    """Whether figures differ by more than their digits; one that is missing differs in nothing."""
    far: Mask = np.abs(said - found) > DIGITS * found
    return far


class _Compared:
    """Figures of a frame's rows, in ns of their histograms, and what these hold."""

    def __init__(
        self, histograms: Sequence[Histogram], decoded: histogram.Decoded, frame: pl.DataFrame
    ) -> None:
        self.decoded = decoded
        self.scale = 1000.0 * np.array([UNITS.get(one.unit, 1) for one in histograms], float)
        self.frame = frame

    def said(self, name: str) -> Floats:
        """A time in ns; nan where a record has none."""
        column = f"latency_us.{name}"
        if column not in self.frame.columns:
            return np.full(len(self.scale), np.nan)
        times: Floats = self.frame[column].to_numpy().astype(float, copy=False)
        return times * self.scale

    def _words(self, name: str, said: Floats, found: Floats) -> Callable[[int], str]:
        def words(row: int) -> str:
            us = [shown(rounded(float(ns[row] / self.scale[row]))) for ns in (said, found)]
            return f"{name} is {us[0]} us, and {us[1]} us in its histogram"

        return words

    def misfits(self) -> Iterator[Misfit]:
        damaged = np.zeros(len(self.scale), bool)
        damaged[self.decoded.damaged] = True
        yield damaged, lambda row: "its histogram cannot be decoded"
        yield from self._count()
        yield from self._quantiles()
        yield from self._ends()
        yield from self._moments()

    def _count(self) -> Iterator[Misfit]:
        totals = self.decoded.totals()
        count = self.frame["latency_us.count"].fill_null(0).to_numpy()
        yield (
            count != totals,
            lambda row: f"its histogram has {totals[row]} of {count[row]} samples",
        )

    def _quantiles(self) -> Iterator[Misfit]:
        """The engine's own arithmetic: never above the exact maximum."""
        quantiles = self.decoded.quantiles(*Latency.PERCENTILES.values())
        most = self.said("max")
        for name, column in zip(Latency.PERCENTILES, quantiles.T, strict=True):
            said, found = self.said(name), np.fmin(column.astype(float), most)
            yield _far(said, found), self._words(name, said, found)

    def _ends(self) -> Iterator[Misfit]:
        """The exact least and most lie in the first and the last place."""
        for name, place in zip(("min", "max"), self.decoded.ends(), strict=True):
            said = self.said(name)
            low = histogram.lowest(place).astype(float)
            high = histogram.highest(place).astype(float)
            capped = np.fmin(said, float(histogram.HIGHEST_NS))  # what is longer counts as an hour
            outside = (capped < low * (1 - DIGITS)) | (capped > high * (1 + DIGITS))
            yield outside, self._words(name, said, high)

    def _moments(self) -> Iterator[Misfit]:
        moments = self.decoded.moments()
        mean, stddev = self.said("mean"), self.said("stddev")
        outside = (mean < moments.least_mean * (1 - DIGITS)) | (
            mean > moments.most_mean * (1 + DIGITS)
        )
        is_clipped = self.said("max") > histogram.HIGHEST_NS
        yield outside & ~is_clipped, self._words("mean", mean, moments.most_mean)
        far = np.abs(stddev - moments.deviation) > moments.error + DIGITS * moments.deviation
        yield far & ~is_clipped, self._words("stddev", stddev, moments.deviation)


def _misfits(compared: _Compared) -> dict[int, str]:
    found: dict[int, str] = {}
    for mask, words in compared.misfits():
        for at in np.flatnonzero(mask).tolist():
            found.setdefault(at, words(at))
    return found


def misfits(histograms: Sequence[Histogram], frame: pl.DataFrame) -> dict[int, str]:
    """By row why its histogram is not that of its latency. frame: its columns latency_us.*."""
    decoded = histogram.decode([one.data for one in histograms])
    return _misfits(_Compared(histograms, decoded, frame))


class Judged(NamedTuple):
    """The histograms of records.

    contradictions: by row why one is not that of its latency. marks: equal for equal histograms;
    null where fewer than LEAST_PLACES are filled.
    """

    contradictions: dict[int, str]
    marks: list[int | None]


def marks(texts: Sequence[str], decoded: histogram.Decoded) -> list[int | None]:
    """A number for each histogram that tells measurements apart; None where few are filled."""
    filled = np.bincount(decoded.row, minlength=decoded.n)
    found = pl.Series(texts, dtype=pl.String).hash()
    return [
        mark if places >= LEAST_PLACES else None
        for mark, places in zip(found, filled.tolist(), strict=True)
    ]


def judged(records: Sequence[Record], frame: pl.DataFrame) -> Judged:
    """The histograms of records. frame: their columns.

    The engine writes one beside each latency.
    """
    timed = [
        (row, one)
        for row, one in enumerate(records)
        if one.status == "ok" and one.latency_us is not None
    ]
    found = {
        row: "its times have no histogram"
        for row, one in timed
        if one.histogram is None and one.tool.name == "perch"
    }
    mine = [(row, one.histogram) for row, one in timed if one.histogram is not None]
    marked: list[int | None] = [None] * len(records)
    if not mine:
        return Judged(found, marked)
    rows, texts = [row for row, _ in mine], [text for _, text in mine]
    decoded = histogram.decode([one.data for one in texts])
    for row in rows:
        if not _unit_fits(records[row]):
            found[row] = "its histogram is in another unit than its definition says"
    for at, why in _misfits(_Compared(texts, decoded, frame[rows])).items():
        found.setdefault(rows[at], why)
    for row, mark in zip(rows, marks([one.data for one in texts], decoded), strict=True):
        marked[row] = mark
    return Judged(found, marked)
