"""Memory and handles of Perch's processes over their lives: do they grow?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import msgspec
import numpy as np

from perch.model.figures import rounded
from perch.model.soak import Anomaly, AnomalyKind, ProcessTold, Severity
from perch.soak import stats
from perch.soak.bounds import Bounds
from perch.soak.facts import Finder
from perch.soak.samples import SampleLine

MEGABYTE = 1e6
HOUR_S = 3600

#: Seconds, and the share of a shorter life, in which what a process touches for the first time is
#: no leak. Site policy.
WARM_UP_S, WARM_UP_SHARE = 300, 0.25

#: Growth of less is pages that are touched as buffers come round: the engine's memory after an hour
#: is that after a minute, within 1 MB (docs/soak.md).
GRANTED_BYTES = 1e6
#: Before Linux 5.14 the rings of libfabric's tcp provider are touched over some 100,000 messages,
#: 48 bytes each as measured on a loopback; twice that is granted.
GRANTED_BYTES_OF_ENGINE = 9.6e6
ENGINE = ("measurer", "job")

#: A handle or two come and go with a file that is written.
GRANTED_HANDLES = 3


class Life(msgspec.Struct):
    """A process as samples saw it; NaN where its handles were not read."""

    role: str
    flow: str | None
    pid: int | float
    times: list[float] = []
    memory: list[float] = []
    handles: list[float] = []
    lines: list[int] = []

    @property
    def warm_from(self) -> float:
        return self.times[0] + min(WARM_UP_S, (self.times[-1] - self.times[0]) * WARM_UP_SHARE)

    @property
    def name(self) -> str:
        return self.role if self.flow is None else f"{self.role} of {self.flow}"


class Lives:
    """All processes of a host; one is its number and the moment of its start."""

    def __init__(self) -> None:
        self._lives: dict[tuple[str, int | float, str, str | None], Life] = {}

    def add(self, line: SampleLine) -> None:
        for one in line.processes:
            key = (one.role, one.pid, one.start, one.flow)
            life = self._lives.get(key)
            if life is None:
                life = self._lives[key] = Life(one.role, one.flow, one.pid)
            life.times.append(line.end_s)
            life.memory.append(one.resident_bytes)
            life.handles.append(np.nan if one.handles is None else one.handles)
            life.lines.append(line.line)

    def all(self) -> list[Life]:
        by_name = sorted(self._lives.items(), key=lambda one: " ".join(map(str, one[0])))
        return [life for _, life in by_name]


class Growth(msgspec.Struct):
    """How a part of a life grows: by the hour, and from its first batch to its last."""

    trend: stats.Trend
    rise: float
    hours: float
    start: float
    end: float
    lines: list[int]

    @property
    def ends(self) -> tuple[float, float]:
        return (self.trend.low or 0, self.trend.high or 0)


class Course(msgspec.Struct):
    """Points of one figure after the warm-up."""

    times: stats.Values
    values: stats.Values
    lines: list[int]

    def part(self, start: int) -> Course:
        return Course(self.times[start:], self.values[start:], self.lines[start:])

    def spread(self) -> float | None:
        return float(np.ptp(self.values)) if len(self.values) else None

    def growth(self, alpha: float) -> Growth | None:
        """None where its points are too few."""
        if len(self.times) < stats.BATCHES_LEAST:
            return None
        trend = stats.trend(self.times / HOUR_S, self.values, alpha)
        if trend is None or trend.low is None:
            return None
        _, level = stats.batched(self.times, self.values, stats.BATCHES_LEAST)
        start, end = float(self.times[0]), float(self.times[-1])
        rise, hours = float(level[-1] - level[0]), (end - start) / HOUR_S
        return Growth(trend, rise, hours, start, end, [self.lines[0], self.lines[-1]])

    def parts(self, alpha: float, enough: float) -> list[Growth]:
        """A leak may begin after hours: the whole, then its last half and its last quarter.

        A third of alpha for each. What never differs by `enough` needs no look at its parts.
        """
        n = len(self.times)
        spread = self.spread()
        is_still = spread is not None and spread < enough
        starts = (0,) if is_still else (0, n // 2, n * 3 // 4)
        grown = (self.part(start).growth(alpha / 3) for start in starts)
        return [one for one in grown if one is not None]


class Beyond(msgspec.Struct):
    growth: Growth
    severity: Severity
    is_sure: bool


def _beyond(
    parts: list[Growth], bounds: Bounds, metric: str, unit: float, enough: float, *, tells: bool
) -> Beyond | None:
    """The part that grows beyond a limit, the gravest first.

    Else, where `tells`, the one that is in doubt: it ends higher by `enough`, and its growth
    may lie beyond, or does from one end to the other: steps, or a slope that is just beginning.
    """
    sure, unsure = [], []
    for part in parts:
        low, high = part.ends
        if part.rise < enough:
            continue
        severity = bounds.broken(metric, low / unit)
        if severity is not None:
            sure.append(Beyond(part, severity, is_sure=True))
        severity = bounds.broken(metric, max(high, part.rise / part.hours) / unit)
        if severity is not None and tells:
            mild: Severity = "inconclusive" if severity == "fail" else severity
            unsure.append(Beyond(part, mild, is_sure=False))
    return min(sure or unsure, key=lambda one: one.severity == "advisory", default=None)


class ProcessJudge:
    def __init__(self, bounds: Bounds, alpha: float, found: Finder) -> None:
        self.bounds, self.alpha, self.found = bounds, alpha, found

    def judge(self, life: Life, *, tells: bool = True) -> tuple[ProcessTold, list[Anomaly]]:
        times, memory, handles = (
            np.array(one, dtype=np.float64) for one in (life.times, life.memory, life.handles)
        )
        late = times >= life.warm_from
        lines = np.array(life.lines)
        hours = float(np.ptp(times[late])) / HOUR_S if late.any() else 0.0
        told = ProcessTold(
            life.role, life.flow, life.pid, len(times), rounded(hours), rounded(life.memory[-1]),
            None if np.isnan(handles[-1]) else rounded(float(handles[-1])),
        )  # fmt: skip
        granted = GRANTED_BYTES_OF_ENGINE if life.role in ENGINE else GRANTED_BYTES
        of_memory = Course(times[late], memory[late], lines[late].tolist())
        memory_parts = of_memory.parts(self.alpha, granted)
        if memory_parts:
            whole = memory_parts[0].trend
            told.mb_per_hour, told.low, told.high = (
                rounded((one or 0) / MEGABYTE) for one in whole
            )
            self._tell(told, granted, hours)
        else:
            told.why = f"{int(late.sum())} samples after its warm-up bear no slope"
        # of handles that were not always read those are judged that were
        read = late & ~np.isnan(handles)
        handle_parts = self._handles(told, Course(times[read], handles[read], lines[read].tolist()))
        # in a short life a few pages are a step, and no leak that could be told
        beyond = _beyond(memory_parts, self.bounds, "leak_mb_per_hour", MEGABYTE, granted,
                         tells=tells and told.judged)  # fmt: skip
        found = [self._leak(life, beyond)] if beyond else []
        beyond = _beyond(handle_parts, self.bounds, "handles_per_hour", 1, GRANTED_HANDLES,
                         tells=tells)  # fmt: skip
        return told, [*found, *([self._gathers(life, beyond)] if beyond else [])]

    def _tell(self, told: ProcessTold, granted: float, hours: float) -> None:
        """A leak of the limit's size must have had the time to grow beyond what is granted."""
        most = self.bounds.most("leak_mb_per_hour")
        told.judged = (1 if most is None else most) * MEGABYTE * hours >= granted
        if not told.judged:
            least = granted / MEGABYTE / hours if hours else np.inf
            told.why = f"in {hours:.2f} h only growth above {least:.1f} MB/h differs from a warm-up"

    def _handles(self, told: ProcessTold, course: Course) -> list[Growth]:
        """They mostly stand still, and then need no slope."""
        spread = course.spread()
        if spread is not None and spread < GRANTED_HANDLES:
            told.handles_per_hour = told.handles_low = told.handles_high = 0
            return []
        parts = course.parts(self.alpha, GRANTED_HANDLES)
        if parts:
            told.handles_per_hour, told.handles_low, told.handles_high = (
                rounded(one or 0) for one in parts[0].trend
            )
        return parts

    def _leak(self, life: Life, beyond: Beyond) -> Anomaly:
        part = beyond.growth
        slope, low, high = (f"{(one or 0) / MEGABYTE:.1f}" for one in part.trend)
        rise, hours = f"{part.rise / MEGABYTE:.1f} MB", f"{part.hours:.1f} h"
        text = f"{life.name} grows by {slope} MB/h ({low} to {high}), {rise} in {hours}"
        if not beyond.is_sure:
            text = f"{life.name} has grown by {rise} in {hours}, and it is not clear whether "
            text += f"it goes on ({low} to {high} MB/h)"
        return self._grows("leak", "memory", life, beyond, text, MEGABYTE, "MB/h")

    def _gathers(self, life: Life, beyond: Beyond) -> Anomaly:
        part = beyond.growth
        goes_on = "and more and more"
        if not beyond.is_sure:
            goes_on = "and it is not clear whether it takes more and more"
        text = f"{life.name} has {part.rise:.0f} handles more than {part.hours:.1f} h before, "
        return self._grows("handles", "handles", life, beyond, text + goes_on, 1, "handles/h")

    def _grows(
        self,
        kind: AnomalyKind,
        check: str,
        life: Life,
        beyond: Beyond,
        text: str,
        unit: float,
        name: str,
    ) -> Anomaly:
        part = beyond.growth
        one = self.found(
            kind, check, beyond.severity, text, part.start, part.end, part.lines,
            part.trend.slope / unit, name,
        )  # fmt: skip
        one.flow = life.flow
        return one


def _by_kind(life: Life) -> tuple[str, str]:
    return life.role, life.flow or ""


def successive(lives: Iterable[Life]) -> Iterator[Life]:
    """Processes of one role and flow, one after another, as one: restarts hide leaks.

    Each after its own warm-up. Of jobs several run at once, and nothing says which follows which.
    """
    named = sorted((life for life in lives if life.role != "job"), key=_by_kind)
    for _, group in groupby(named, key=_by_kind):
        of_kind = sorted(group, key=lambda life: life.times[0])
        if len(of_kind) < 2:
            continue
        points = sorted(
            point
            for life in of_kind
            for point in zip(life.times, life.memory, life.handles, life.lines, strict=True)
            if point[0] >= life.warm_from
        )
        if points:
            columns = [list(column) for column in zip(*points, strict=True)]
            yield Life(of_kind[0].role, of_kind[0].flow, of_kind[-1].pid, *columns)
