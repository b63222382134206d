"""The figures of one flow's intervals: their limits, their pace, and the sum that they make."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from perch.model.figures import rounded
from perch.model.record import Number
from perch.model.soak import Anomaly, BandwidthFigures, Figures, LatencyFigures
from perch.soak.flow import Flowing
from perch.soak.line_types import Connection, Gap, Interval, Stall, Whole
from perch.soak.lines import PERCENTILES
from perch.soak.stats import median

#: Seconds of its pace that a flow may be behind; a pacer that is behind by more gives up what is
#: due (RUN_RATE_BACKLOG_S of the engine).
BACKLOG_S = 1


class Medians(msgspec.Struct):
    """Of the flow's intervals; None of none."""

    gbit_s: float | None
    p50: float | None
    p99: float | None


def medians(of: Flowing) -> Medians:
    well = list(of.well)
    figures = (
        [value for line in well if (value := getattr(line, name)) is not None]
        for name in ("gbit_s", "p50", "p99")
    )
    return Medians(*[median(values) if values else None for values in figures])


def figure(value: float) -> str:
    """Three digits, and all of a large one: 28,738, 2.29, 0.0155."""
    if value == 0:
        return "0"
    decimals = next((d for d, least in enumerate((100, 10, 1, 0.1)) if abs(value) >= least), 4)
    return f"{value:,.{decimals}f}"


def intervals(of: Flowing, middle: Medians) -> Iterator[Anomaly]:
    """Figures of an interval beyond a limit, by itself or against the flow's median interval."""
    for line in of.well:
        if line.gbit_s is not None:
            yield from _low(of, line, line.gbit_s, middle.gbit_s)
        elif line.p99 is not None:
            yield from _slow(of, line, line.p99, middle.p99)


def _low(of: Flowing, line: Interval, gbit_s: float, middle: float | None) -> Iterator[Anomaly]:
    severity = of.bounds.broken("interval_gbit_s", gbit_s)
    if severity is not None:
        text = f"{figure(gbit_s)} Gb/s in this interval"
        yield of.found("low", "interval", severity, text, *line.at, gbit_s, "Gb/s")
    if not middle:
        return
    lowest = line.bandwidth.min_interval_gbit_s if line.bandwidth else None
    shares = (
        ("interval_share", gbit_s, ""),
        ("window_share", lowest, " in a window of this interval"),
    )
    for metric, value, where in shares:
        severity = None if value is None else of.bounds.broken(metric, value / middle)
        if value is not None and severity is not None:
            text = f"{figure(value)} Gb/s{where}, {value / middle * 100:.0f} % of the median "
            yield of.found("low", "interval", severity, text + "interval", *line.at, value, "Gb/s")


def _slow(of: Flowing, line: Interval, p99: float, middle: float | None) -> Iterator[Anomaly]:
    severity = of.bounds.broken("p99_us", p99)
    if severity is not None:
        text = f"p99 of {figure(p99)} us in this interval"
        yield of.found("slow", "latency", severity, text, *line.at, p99, "us")
    severity = of.bounds.broken("p99_times", p99 / middle) if middle else None
    if middle and severity is not None:
        text = f"p99 of {figure(p99)} us, {p99 / middle:.1f} times the median interval's"
        yield of.found("slow", "latency", severity, text, *line.at, p99, "us")


# ---- the pace ------------------------------------------------------------------------------------


def with_due(
    lines: Iterator[Interval | Connection], per_s: float, *, carries: bool
) -> Iterator[tuple[Interval, float]]:
    """Each interval with the messages that its pace allows in it.

    That is what the pace asks for, and what those before it lack. Bandwidth makes up for what it is
    behind, over ends of intervals (`carries`); latency starts again with each.
    """
    at: float | None = None
    owed = 0.0
    for line in lines:
        if isinstance(line, Connection) or not carries:
            at, owed = None, 0.0
        if isinstance(line, Interval):
            waited = line.start_s - (line.start_s if at is None else at)
            due = _owed(owed + per_s * waited, per_s) + per_s * line.long_s
            owed, at = _owed(due - line.messages, per_s), line.end_s
            yield line, due


def _owed(messages: float, per_s: float) -> float:
    return min(max(messages, 0), BACKLOG_S * per_s)


def pace(of: Flowing, total: Total) -> Iterator[Anomaly]:
    """No interval may carry more than its pace, and all of them together what it asks for.

    But for what one message and what was under way may add, and for times in which nothing could
    move.
    """
    per_s, depth = of.job.per_second, of.job.outstanding
    under_way = 1 if depth is None else depth * (of.job.queue_pairs or 1)
    if per_s <= 0:
        return
    unit = "of the pace"
    lines = (line for line in of.lines if isinstance(line, Interval | Connection))
    for line, due in with_due(lines, per_s, carries=of.flow.kind == "bandwidth"):
        over = (line.messages - 1 - under_way) / max(due, 1e-9) - 1
        severity = of.bounds.broken("rate_percent", over * 100)
        if severity is not None:
            elapsed_s = line.elapsed_s or math.inf
            text = f"{line.messages} messages in {elapsed_s} s, where the pace allows "
            text += str(math.floor(due))
            share = line.messages / elapsed_s / per_s
            yield of.found("rate", "rate", severity, text, *line.at, share, unit)
    if total.elapsed_s <= 0 or total.messages <= 1:
        return
    least = (total.messages - total.intervals - under_way) / total.elapsed_s / per_s
    moving_s = total.elapsed_s - total.stall_s
    most = total.messages / (moving_s if moving_s > 0 else 1e-9) / per_s
    more = of.bounds.broken("rate_percent", (least - 1) * 100)
    less = of.bounds.broken("rate_percent", (1 - most) * 100)
    if more is not None:
        text = f"the flow sent {least * 100:.1f} % of its pace"
        yield of.found("rate", "rate", more, text, 0, total.end_s, value=least, unit=unit)
    elif less is not None:
        severity = "inconclusive" if less == "fail" else less
        text = f"the flow kept {most * 100:.1f} % of its pace only"
        yield of.found("rate", "rate", severity, text, 0, total.end_s, value=most, unit=unit)


# ---- the sum -------------------------------------------------------------------------------------


class Total(msgspec.Struct):
    """Of all intervals, those that failed among them."""

    intervals: int = 0
    connections: int = 0
    messages: Number = 0
    bytes: Number = 0
    elapsed_s: Number = 0
    samples: int = 0
    bad_bytes: int = 0
    checked_bytes: int = 0
    gaps: int = 0
    gap_s: Number = 0
    stalls: Number = 0
    stall_s: Number = 0
    stall_messages: Number = 0
    end_s: Number = 0
    max: Number | None = None


def total(of: Flowing) -> Total:
    t = Total()
    for line in of.lines:
        if isinstance(line, Interval):
            t.intervals += 1
            t.messages += line.messages
            t.bytes += line.bytes
            t.elapsed_s += line.elapsed_s or 0
            t.samples += line.samples
            t.bad_bytes += line.bad_bytes
            t.checked_bytes += line.checked_bytes
            t.stalls += line.stall_count
            t.stall_s += line.stall_s
            if line.latency_us is not None and line.latency_us.max is not None:
                t.max = max(t.max or 0, line.latency_us.max)
        elif isinstance(line, Gap):
            t.gaps += 1
            t.gap_s += line.long_s
        elif isinstance(line, Stall):
            t.stall_messages += line.messages or 0
        elif isinstance(line, Connection):
            t.connections += 1
        if isinstance(line, Interval | Gap):
            t.end_s = max(t.end_s, line.end_s)
    return t


def sums(of: Flowing, whole: Whole, t: Total) -> Iterator[str]:
    """How the whole is not the sum of its lines, but for those that were dropped."""
    soak = whole.soak
    is_whole = soak.dropped_lines == 0
    bad = whole.integrity.bad_bytes if whole.integrity else None
    checked = whole.integrity.checked_bytes if whole.integrity else None
    pairs: list[tuple[str, Number, Number | None, float]] = [
        ("intervals", t.intervals, soak.intervals, 0),
        ("gaps", t.gaps, soak.gaps, 0),
        ("stalls", t.stalls, soak.stalls, 0),
        ("s of gaps", t.gap_s, soak.gap_s, 0.01 + 1e-6 * t.gap_s),
        ("s of stalls", t.stall_s, soak.stall_s, 0.01 + 1e-6 * t.stall_s),
        ("s", t.elapsed_s, whole.elapsed_s, 0.01 + 1e-6 * t.elapsed_s),
        ("s passed", t.end_s, soak.passed_s, of.slack_s),
        ("connections", t.connections, soak.connections, 0),
        ("verified bytes", t.checked_bytes, checked, 0),
        ("corrupted bytes", t.bad_bytes, bad, 0),
    ]
    if whole.measured == "bandwidth":
        said = whole.bandwidth.bytes if whole.bandwidth else None
        pairs.insert(-2, ("bytes", t.bytes, said, 0))
    else:
        samples = whole.latency_us.count if whole.latency_us else None
        pairs.insert(-2, ("samples", t.samples, samples, 0))
    for what, of_lines, said, grace in pairs:
        if said is None:
            if of_lines > 0:
                yield f"no {what} in the whole, {rounded(of_lines)} in the lines"
        elif of_lines - said > grace or (is_whole and said - of_lines > grace):
            yield f"{said} {what} in the whole, {rounded(of_lines)} in the lines"
    if is_whole:
        yield from _unlike_tail(of, whole, t)


def _unlike_tail(of: Flowing, whole: Whole, t: Total) -> Iterator[str]:
    """Percentiles of the whole outside of those of its intervals.

    Of all intervals together a percentile is at least the least of theirs. It is at most the most
    of the next one's, as each is that of its nearest rank. Three digits of each. Where an interval
    has none its samples lie anywhere above the percentile below.
    """
    tails = [line.latency_us for line in of.intervals if line.latency_us is not None]
    if whole.latency_us is None:
        return
    least: list[float] = []
    most: list[float | None] = []
    for name in PERCENTILES if tails else ():
        these = [getattr(one, name) for one in tails]
        is_told = None not in these
        least.append(min(these) if is_told else least[-1] if least else 0)
        most.append(max(these) if is_told else None)
    ends = [*most[1:], None]
    for name, low, high in zip(PERCENTILES, least, ends, strict=False):
        value = getattr(whole.latency_us, name)
        bound = next((one for one in (high, t.max) if one is not None), math.inf)
        if value is not None and not low * 0.99 <= value <= bound * 1.01:
            said = name.replace("_", ".")
            yield f"a {said} of {value} us, outside of those of its intervals"
    said_max = whole.latency_us.max
    if t.max is not None and said_max and abs(t.max / said_max - 1) > 0.001:
        yield f"a maximum of {said_max} us, and one of {t.max} us in the lines"


# ---- in the verdict ------------------------------------------------------------------------------


def _rounded(value: float | None) -> Number | None:
    return None if value is None else rounded(value)


def told(of: Flowing, middle: Medians, t: Total) -> Figures:
    well = list(of.well)
    bandwidth = [(line.gbit_s, line) for line in well if line.gbit_s is not None]
    latency = [line for line in well if line.p50 is not None and line.latency_us is not None]
    figures = Figures(
        corrupt_bytes=t.bad_bytes if t.checked_bytes or t.bad_bytes else None,
        checked_bytes=t.checked_bytes or None,
    )
    if bandwidth:
        lowest, at = min(bandwidth, key=lambda one: one[0])
        windows = [
            value
            for _, line in bandwidth
            if line.bandwidth and (value := line.bandwidth.min_interval_gbit_s) is not None
        ]
        figures.bandwidth = BandwidthFigures(
            mean=rounded(t.bytes * 8e-9 / t.elapsed_s) if t.elapsed_s > 0 else None,
            median=_rounded(middle.gbit_s),
            lowest_interval=rounded(lowest),
            lowest_at_s=at.start_s,
            lowest_window=_rounded(min(windows, default=None)),
            highest=rounded(max(one for one, _ in bandwidth)),
        )
    if latency:
        tails = [(line.p99, line.start_s) for line in latency if line.p99 is not None]
        highest, at_s = max(tails, key=lambda one: one[0], default=(None, None))
        counts = [line.samples for line in latency]
        figures.latency = LatencyFigures(
            p50_median=_rounded(middle.p50),
            p99_median=_rounded(middle.p99),
            p99_highest=_rounded(highest),
            p99_highest_at_s=at_s,
            max=_rounded(t.max),
            samples_least=min(counts),
            samples_median=rounded(median(counts)),
        )
    return figures
