"""The course of all turns of one test between two hosts: how its figures drift and step."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from perch.model.figures import rounded
from perch.model.soak import Anomaly, Change, Course, CourseMetric
from perch.soak import stats
from perch.soak.bounds import Bounds
from perch.soak.facts import Facts, Finder
from perch.soak.told import Doubt, Group

#: Longer courses are halved in their detail until they fit: what a step costs grows faster than its
#: length. A step is then dated to so many intervals.
POINTS_MOST = 2000

#: A figure, and the sign of what is worse: a bandwidth that fell, a latency that rose.
METRICS: tuple[tuple[CourseMetric, int], ...] = (("bandwidth", -100), ("p50", 100), ("p99", 100))

HOUR_S = 3600


class Points(msgspec.Struct):
    """One figure of the intervals of all turns; `finders`: of the flows of these intervals."""

    times: list[float] = []
    values: list[float] = []
    lines: list[int] = []
    finders: list[Finder] = []

    def add(self, time: float, value: float | None, line: int, finder: Finder) -> None:
        if value is not None:
            self.times.append(time)
            self.values.append(value)
            self.lines.append(line)
            self.finders.append(finder)


class Series(msgspec.Struct):
    """`times`: middles of intervals, in seconds since the soak began."""

    bandwidth: Points = msgspec.field(default_factory=Points)
    p50: Points = msgspec.field(default_factory=Points)
    p99: Points = msgspec.field(default_factory=Points)


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def of_group(
    test: str, series: Series, bounds: Bounds, facts: Facts
) -> tuple[Group, list[Anomaly]]:
    """`bounds`: of the flow of the last turn."""
    group, found = Group(test, [], []), []
    for name, sign in METRICS:
        points: Points = getattr(series, name)
        # without any figure it is a course of the kind that the test measures
        if points.times or (name == "bandwidth") == bool(series.bandwidth.times):
            course = _Judged(name, sign, points, bounds, facts)
            found += course.judge()
            group.courses.append(course.told)
            group.doubts += course.doubts
    return group, found


class _Judged:
    """One course while it is judged."""

    def __init__(
        self, name: CourseMetric, sign: int, points: Points, bounds: Bounds, facts: Facts
    ) -> None:
        self.metric, self.sign, self.points = f"{name}_percent", sign, points
        self.bounds, self.facts = bounds, facts
        self.told = Course(name)
        self.doubts: list[Doubt] = []
        self.times, self.values = np.array(points.times), np.array(points.values)
        self.median = 0.0

    def judge(self) -> list[Anomaly]:
        n = len(self.times)
        if not self.bounds.of(self.metric):
            self.told.why = "no limit applies to it"
        elif n < stats.BATCHES_LEAST:
            self.told.why = f"{n} intervals have it, and a drift needs {stats.BATCHES_LEAST}"
        else:
            self.median = stats.median(self.values)
            if self.median > 0:
                return [*self._drift(), *self._steps()]
            self.told.why = "its median is 0"
        return []

    def _finder(self, place: int) -> Finder:
        """Of the flow of an interval; its times are the soak's."""
        finder = self.points.finders[place]
        return Finder(finder.facts, finder.host, finder.path, flow=finder.flow, more=finder.more)

    def _drift(self) -> Iterator[Anomaly]:
        """Judges the slope; where it drifts, `slope` is taken out before steps are looked for."""
        self.slope = 0.0
        trend = stats.trend(self.times, self.values, self.facts.alpha)
        if trend is None or trend.low is None or trend.high is None:
            self.told.why = (
                "neighbouring intervals are so alike that these bear no interval of their slope"
            )
            return
        long_s = float(self.times[-1] - self.times[0])
        slopes = (trend.slope, trend.low, trend.high)
        told = self.told
        told.judged = True
        told.per_hour, told.low, told.high = (rounded(one * HOUR_S / self.median) for one in slopes)
        over, low, high = (one * long_s / self.median for one in slopes)
        told.over_soak, told.over_low, told.over_high = rounded(over), rounded(low), rounded(high)
        # the mildest and the gravest that the interval allows
        mild, grave = sorted((low * self.sign, high * self.sign))
        severity = self.bounds.broken(self.metric, mild)
        doubt = self.bounds.broken(self.metric, grave)
        between = f"{_percent(low)} to {_percent(high)}"
        if severity is not None:
            self.slope = trend.slope
            text = f"{told.metric} drifts by {_percent(over)} over the soak ({between})"
            yield self._finder(-1)(
                "drift", "drift", severity, text, float(self.times[0]), float(self.times[-1]),
                [self.points.lines[0], self.points.lines[-1]], over * 100, "% over the soak",
            )  # fmt: skip
        elif doubt is not None:
            flow = self.points.finders[0].flow
            between = between.replace(" to ", " and ")
            text = f"{told.metric} of {flow}: between {between} over the soak"
            self.doubts.append(Doubt(text, doubt == "fail"))

    def _steps(self) -> Iterator[Anomaly]:
        times, values = stats.batched(self.times, self.values, POINTS_MOST)
        level = values - self.slope * (times - times[0])
        for step in stats.steps(level, self.facts.alpha):
            share = (step.after - step.before) / (step.before or self.median)
            severity = self.bounds.broken(self.metric, share * self.sign)
            if severity is None:
                continue
            at = float(times[step.at])
            place = int(np.searchsorted(self.times, at - 1e-6))
            before, after = rounded(step.before), rounded(step.after)
            if self.told.change is None:
                self.told.change = Change(
                    rounded(at), before, after, rounded(share), self.facts.date(at) or ""
                )
            text = f"{self.told.metric} steps by {_percent(share)}, from {before} to {after}"
            yield self._finder(place)(
                "change", "change", severity, text, at, at, [self.points.lines[place]], share * 100,
                "%",
            )  # fmt: skip
