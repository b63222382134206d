"""Figures that a tool prints: which of them are results, and how intervals are summed up."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from perch.model.figures import rounded
from perch.model.part import Part
from perch.model.record import Bandwidth, Error, Interval, Number
from perch.tools.tool import UNUSABLE

#: No figure of a measurement is larger: a thousand years at 100 Tb/s move 4e23 bytes.
LARGEST = 1e30

#: No link carries 100 Tb/s to a host today (site policy): a greater rate is a fault of the tool.
IMPOSSIBLE_GBIT_S = 1e5

#: Shorter intervals than this share of the longest are the ragged ends of a run.
WHOLE_INTERVAL = 0.9


class UnusableError(Exception):
    """An output, or a line of it, whose figures cannot be used; the text says why."""


def several(ends: Iterable[tuple[str, str]]) -> str:
    """Ends of streams, in words."""
    return ", ".join(f"{client} to {server}" for client, server in sorted(ends))


def shown(value: object) -> str:
    """A value of an output as JSON spells it, for a message."""
    if isinstance(value, float):
        return str(rounded(value)) if math.isfinite(value) else str(value)
    return json.dumps(value, ensure_ascii=False)


def positive(value: float | None, name: str) -> Number:
    """A result, rounded. Zero, negative, nan and inf are faults of the measurement."""
    if value is not None and 0 < value < LARGEST:
        return rounded(value)
    raise UnusableError(f"{name} is {shown(value)}, which is not a result")


def natural(value: float | None, name: str) -> Number:
    """A count or a cost, rounded, which may be 0."""
    if value is not None and 0 <= value < LARGEST:
        return rounded(value)
    raise UnusableError(f"{name} is {shown(value)}, which is not a result")


def positive_or_none(value: float | None, name: str) -> Number | None:
    """A result where the tool reports it."""
    return None if value is None else positive(value, name)


def natural_or_none(value: float | None, name: str) -> Number | None:
    """A count or a cost where the tool reports it."""
    return None if value is None else natural(value, name)


def whole(value: float | None, name: str) -> int | None:
    """A count that a tool may print as 1.5e6; one that is not whole is an error."""
    figure = natural_or_none(value, name)
    if figure is None or isinstance(figure, int):
        return figure
    raise UnusableError(f"{name} is {shown(value)}, which is not a whole number")


class Peaks(NamedTuple):
    """The best and the worst interval of a run; None of all where it has no intervals."""

    peak_gbit_s: Number | None = None
    peak_definition: str | None = None
    min_interval_gbit_s: Number | None = None


def interval_summary(intervals: Sequence[Interval]) -> Peaks:
    """Peaks over whole intervals; every interval has start_s, end_s and gbit_s.

    iperf3 ends with an interval of some 100 us, which is neither a peak nor a minimum.
    """
    spans = [((i.end_s or 0) - (i.start_s or 0), i.gbit_s or 0) for i in intervals]
    if not spans:
        return Peaks()
    longest = max(length for length, _ in spans)
    if longest < 0:
        raise UnusableError("its intervals end before they start")
    rates = [rate for length, rate in spans if length >= WHOLE_INTERVAL * longest]
    tenths = math.floor(longest * 10 + 0.5) / 10
    return Peaks(rounded(max(rates)), f"best_interval_{tenths:g}s", rounded(min(rates)))


def check_rate(bandwidth: Bandwidth, elapsed_s: float, tolerance: float) -> None:
    """Refuses a rate that no link carries, and one that its own bytes and time deny.

    `bandwidth` has gbit_s and bytes above 0, and `elapsed_s` is above 0.
    """
    rate, size = bandwidth.gbit_s or 0, bandwidth.bytes or 0
    if rate > IMPOSSIBLE_GBIT_S:
        raise UnusableError(f"bandwidth of {shown(rate)} Gb/s is impossible")
    if not abs(size * 8 / elapsed_s / 1e9 - rate) <= tolerance * rate:
        said = f"{shown(size)} bytes in {shown(elapsed_s)} s"
        raise UnusableError(f"{said} are not the {shown(rate)} Gb/s that it says")


def failed(message: str, *, code: int = UNUSABLE, traffic: bool) -> Error:
    """The error of an output that is no result. `traffic`: payload had begun to move."""
    return Error(code=code, message=message, traffic=traffic)


def failed_part(message: str, *, code: int = UNUSABLE, traffic: bool) -> Part:
    """A part of which nothing is known but its error."""
    return Part(status="error", error=failed(message, code=code, traffic=traffic))


class Found(NamedTuple):
    """A result of an output, and the line, counted from 0, where it stands or is missing."""

    part: Part
    line: int | None = None


class LineError(UnusableError):
    """The same of one line of an output, counted from 0."""

    def __init__(self, why: object, line: int) -> None:
        super().__init__(str(why))
        self.line = line


def unusable(why: UnusableError, *, traffic: bool, because: str = "") -> Found:
    """The fault of an output, with the tool's own words after it."""
    said = f"{why}: {because}" if because else str(why)
    return Found(failed_part(said, traffic=traffic), getattr(why, "line", None))


def told(results: Iterable[Found], program: str) -> list[Part]:
    """The results as a run has them: a fault names the program and the line of its output."""
    parts = []
    for part, line in results:
        if part.error is not None:
            place = "" if line is None else f"line {line + 1}: "
            part.error.message = f"{program}'s output cannot be used: {place}{part.error.message}"
        parts.append(part)
    return parts
