"""The lines of one flow against the plan: what time they cover, and what single lines show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from perch.model.moments import SLEW, moment
from perch.model.plan import Flow, SoakPlan
from perch.model.raw import SoakAgent
from perch.model.soak import Anomaly, Severity
from perch.model.text import plural
from perch.soak.bounds import Bounds
from perch.soak.facts import Facts, Finder
from perch.soak.line_types import (
    Connection,
    Damaged,
    Gap,
    Head,
    Interval,
    Job,
    Line,
    Stall,
    Timed,
    Whole,
)
from perch.soak.lines import CORRUPTED, near
from perch.soak.moments import APART_MOST

#: Lines have nine digits of a number.
DIGITS = 1e-8

#: So many stalls of an interval have lines, the longest of them (docs/soak.md).
STALL_LINES_MAX = 64


def spoken_s(seconds: float) -> str:
    return f"{seconds:.{3 if abs(seconds) < 1 else 1}f} s"


class Flowing(msgspec.Struct):
    """One flow while it is judged."""

    flow: Flow
    soak: SoakPlan
    lines: list[Line]
    bounds: Bounds
    found: Finder
    duration_s: float
    slack_s: float

    @property
    def intervals(self) -> Iterator[Interval]:
        return (line for line in self.lines if isinstance(line, Interval))

    @property
    def well(self) -> Iterator[Interval]:
        return (line for line in self.intervals if line.ok)

    @property
    def heads(self) -> list[Head]:
        return [line for line in self.lines if isinstance(line, Head)]

    @property
    def started_s(self) -> float | None:
        """Seconds since 1970."""
        heads = self.heads
        return heads[0].started_ms / 1000 if heads and heads[0].started_ms else None

    @property
    def whole(self) -> Whole | None:
        wholes = [line for line in self.lines if isinstance(line, Whole)]
        return wholes[-1] if wholes else None

    @property
    def job(self) -> Job:
        heads = self.heads
        return heads[0].job if heads else Job()

    @property
    def in_order(self) -> list[Line]:
        """Without stalls, which stand before their interval, and what cannot be used."""
        return [line for line in self.lines if not isinstance(line, Stall | Damaged)]

    def asks(self, name: str) -> bool:
        return self.flow.params.get(name) not in (None, False)


# ---- is it this flow's file? ---------------------------------------------------------------------


def foreign(of: Flowing, server: str) -> str | None:
    """Why the first line differs from the planned test. `server`: the address of its host."""
    head, soak, flow = of.lines[0], of.soak, of.flow
    if not isinstance(head, Head):
        return "its first line is not the description of a measurement"
    job = head.job
    sizes = job.sizes or []
    words = ", ".join(str(size) for size in sizes)
    verified = "" if job.verify else "not "
    unlike = {
        f"its duration is {head.duration_s} s, not {of.duration_s} s": not near(
            head.duration_s, of.duration_s, DIGITS
        ),
        f"its interval is {head.interval_s} s, not {soak.interval_s} s": not near(
            head.interval_s, soak.interval_s, DIGITS
        ),
        f"its shortest stall is {head.stall_s} s, not {soak.stall_s} s": not near(
            head.stall_s, soak.stall_s, DIGITS
        ),
        f"its server is {head.server!r}, not {server!r}": head.server != server,
        f"it measured {job.kind} of {job.op} over {job.backend}; the plan has another test": (
            (job.kind, job.op, job.backend) != (flow.kind, flow.op, flow.backend)
        ),
        f"its messages have {words} bytes, not the planned size": (
            sizes != [one.size_bytes for one in flow.expect]
        ),
        "its pace differs from the plan": of.asks("rate") != ((job.rate or 0) > 0),
        f"its payload was {verified}verified; the plan has the opposite": (
            job.verify != of.asks("verify")
        ),
        "its directions differ from the plan": job.bidirectional != of.asks("bidirectional"),
    }
    return next((why for why, is_so in unlike.items() if is_so), None)


# ---- coverage ------------------------------------------------------------------------------------


class Chain(msgspec.Struct):
    """Seconds. `at`: end of the covered time; `between`: outside of intervals and gaps."""

    at: float = 0
    measured: float = 0
    gap_s: float = 0
    between: float = 0
    covered: float = 0
    found: list[Anomaly] = []


def chain(of: Flowing) -> Chain:
    """The time that lines cover, with holes, overlaps and lengths."""
    c = Chain()
    for line in of.lines:
        if isinstance(line, Stall):
            c.covered = max(c.covered, line.end_s)
        elif isinstance(line, Interval | Gap):
            _linked(of, c, line)
    return c


def _linked(of: Flowing, c: Chain, line: Interval | Gap) -> None:
    s, e, interval_s = line.start_s, line.end_s, of.soak.interval_s
    known = max(c.at, min(c.covered, s))
    c.between += max(0, s - c.at)
    if isinstance(line, Interval) and line.loss is None:
        c.between += max(0, line.long_s - (line.elapsed_s or 0))
    if s < c.at - 0.001:
        text = f"it overlaps the line before it by {spoken_s(c.at - s)}: "
        text += "a line occurs twice, or lines are out of order"
        c.found.append(of.found("overlap", "coverage", "inconclusive", text, *line.at))
    elif s - known > of.slack_s:
        text = f"{spoken_s(s - c.at)} before this line are outside of intervals and gaps"
        c.found.append(
            of.found("hole", "coverage", "inconclusive", text, c.at, s, [line.n], s - c.at, "s")
        )
    if isinstance(line, Interval):
        if line.long_s > 1.1 * interval_s + of.slack_s + line.stall_s:
            text = f"an interval of {spoken_s(line.long_s)}; the plan has {interval_s} s"
            c.found.append(
                of.found("length", "coverage", "inconclusive", text, *line.at, line.long_s, "s")
            )
        c.measured += line.long_s
    else:
        c.gap_s += line.long_s
    c.at = max(c.at, e)


def short(of: Flowing) -> Iterator[Anomaly]:
    """Many short intervals in place of a few whole ones.

    One that is more than a tenth shorter than planned needs a reason next to it: a gap, a stall
    before it, or the end.
    """
    interval_s = of.soak.interval_s
    lines = of.in_order
    brief = [
        line
        for before, line, after in zip(lines, lines[1:], lines[2:], strict=False)
        if isinstance(line, Interval)
        and line.ok
        and line.long_s < 0.9 * interval_s - of.slack_s
        and isinstance(after, Interval)
        and isinstance(before, Interval)
        and before.stall_s < 0.1
        and before.long_s < 1.1 * interval_s
    ]
    if len(brief) > 1:
        text = f"{len(brief)} intervals are shorter than the planned {interval_s} s, without "
        text += "a gap or stall next to them"
        yield of.found(
            "length", "coverage", "inconclusive", text, brief[0].start_s, brief[-1].end_s,
            [line.n for line in brief], len(brief), "intervals",
        )  # fmt: skip


# ---- gaps ----------------------------------------------------------------------------------------


def began(of: Flowing, facts: Facts) -> float | None:
    """When the flow began, in seconds since its agent did.

    Both know the uptime of their host, which no clock setting changes. None: the last connection
    was of another boot, or it is not known.
    """
    own = facts.told[of.flow.client]
    last = next((line for line in reversed(of.lines) if isinstance(line, Connection)), None)
    if last is None or not own.starts or last.boot_id != own.starts[-1].boot_id:
        return None
    if last.start_s is None or last.uptime_s is None:
        return None
    start = own.starts[-1]
    at = start.passed_s + last.uptime_s - start.uptime_s - last.start_s
    over = own.end.passed_s if own.end else None
    return at if at >= 0 and (over is None or at <= over) else None


def stop_asked(of: Flowing, facts: Facts, begun: float | None) -> float | None:
    """When the first host of the flow was asked to stop, in seconds since the flow began.

    None: neither was, or it is not known. Of the two agents only their walls tell what lies between
    their beginnings.
    """
    own_begun = _agent_began(facts.told[of.flow.client])
    asked = []
    for host in (of.flow.client, of.flow.server):
        told = facts.told[host]
        its_begun, end = _agent_began(told), told.end
        if begun is None or own_begun is None or its_begun is None or end is None:
            continue
        if end.state != "stopped" or end.passed_s is None or end.stop_asked_s is None:
            continue
        apart = its_begun - own_begun
        if 0 <= end.stop_asked_s <= end.passed_s and abs(apart) <= APART_MOST:
            asked.append(end.stop_asked_s + apart - begun)
    return min(asked, default=None)


def _agent_began(told: SoakAgent) -> float | None:
    return moment(told.starts[0].begun) if told.starts else None


def gaps(of: Flowing, asked: float | None) -> Iterator[Anomaly]:
    """`asked`: the time of the flow's stop.

    The stop explains a connection that is lost after it and does not return: servers do not wait
    for a client whose agent is slow.
    """
    starts = [line.start_s or 0 for line in of.lines if isinstance(line, Interval | Connection)]
    latest = max(starts, default=0)
    lost = [line for line in of.lines if isinstance(line, Gap)]
    by_stop = [asked is not None and gap.start_s >= asked and gap.end_s > latest for gap in lost]
    broken = of.bounds.broken("gaps", by_stop.count(False))
    for gap, is_stop in zip(lost, by_stop, strict=True):
        severity = "advisory" if is_stop else broken
        if severity is not None:
            after = ", after the request to stop" if is_stop else ""
            text = f"no connection for {spoken_s(gap.long_s)}{after}: {str(gap.reason)[:200]}"
            yield of.found("gap", "gaps", severity, text, *gap.at, gap.long_s, "s")


# ---- stalls --------------------------------------------------------------------------------------


def stalls(of: Flowing) -> Iterator[Anomaly]:
    for line in of.lines:
        severity = of.bounds.broken("stall_s", line.long_s) if isinstance(line, Stall) else None
        if isinstance(line, Stall) and severity is not None:
            said = spoken_s(line.long_s)
            waiting = plural(line.messages or 0, "message")
            text = f"no completion for {said}, {waiting} outstanding"
            if line.messages == 0:
                text = f"no completion for {said} between two intervals"
            yield of.found(
                "stall", "stalls", severity, text, *line.at, line.long_s, "s", line.messages
            )


def _with_stalls(lines: Iterable[Line]) -> Iterator[tuple[Interval, list[Stall]]]:
    """Intervals, each with the lines of its stalls, which precede it."""
    waiting: list[Stall] = []
    for line in lines:
        if isinstance(line, Stall):
            waiting.append(line)
            continue
        if isinstance(line, Interval):
            yield line, waiting
        waiting = []


def stalls_left(of: Flowing) -> Iterator[Anomaly]:
    """Stalls without a line, because one of them could break a limit.

    The sum of an interval's stalls bounds them: at least one is as long as their mean, and none is
    longer than the shortest that has a line.
    """
    bounds = of.bounds
    for line, told in _with_stalls(of.lines):
        own = [one.long_s for one in told]
        told_s = sum(own)
        left, rest = line.stall_count - len(own), line.stall_s - told_s
        grace = 0.001 + 2e-8 * line.end_s * len(own)  # times are written with nine digits
        if len(own) != min(line.stall_count, STALL_LINES_MAX):
            text = f"{plural(line.stall_count, 'stall')} in this interval, but {len(own)} "
            yield of.found("sum", "sum", "inconclusive", text + "with a line", *line.at)
        elif (
            (left == 0 and abs(rest) > grace)
            or rest < -grace
            or (left > 0 and rest > left * min(own) + grace)
        ):
            text = f"{spoken_s(line.stall_s)} of stalls in this interval, but its {len(own)} "
            text += f"lines of stalls sum to {spoken_s(told_s)}"
            yield of.found("sum", "sum", "inconclusive", text, *line.at)
        if left > 0:
            is_sure = bounds.fails("stall_s", rest / left)
            may_be = bounds.fails("stall_s", rest - (left - 1) * of.soak.stall_s)
            severity: Severity = "fail" if is_sure else "inconclusive" if may_be else "advisory"
            text = f"{line.stall_count} stalls, together {spoken_s(line.stall_s)}, in one "
            text += f"interval; {len(own)} of them have a line"
            yield of.found("stall", "stalls", severity, text, *line.at, line.stall_s, "s")


def silent(of: Flowing) -> Iterator[Anomaly]:
    """An interval without a completion, although its pace required some."""
    per_s, gap_s = of.job.per_second, (of.job.gap_ns or 0) * 1e-9
    for line in of.well:
        if line.messages != 0 or line.stall_s >= (line.elapsed_s or 0) / 2:
            continue
        long_s = line.long_s
        is_due = per_s == 0 or per_s * long_s > 1
        if long_s > of.soak.stall_s and is_due and gap_s < long_s:
            is_long = of.bounds.fails("stall_s", long_s)
            severity: Severity = "fail" if is_long else "inconclusive"
            text = f"no completion in an interval of {spoken_s(long_s)}, and no stall reported"
            yield of.found("stall", "stalls", severity, text, *line.at, long_s, "s", 0)


# ---- invalid lines -------------------------------------------------------------------------------


def damaged(of: Flowing, last: int) -> Iterator[Anomaly]:
    """Lines that cannot be used.

    A half one at the end of the file (`last`) is what a power cut leaves, and the engine cuts it
    off; it is one only while nothing follows.
    """
    for line in of.lines:
        if isinstance(line, Damaged) and (line.n, line.why) != (last, "not JSON"):
            text = f"line {line.n} cannot be used: {line.why}"
            yield of.found("damaged", "lines", "inconclusive", text, lines=[line.n])


def out_of_order(of: Flowing) -> Iterator[Anomaly]:
    """Lines in an order that no engine writes.

    A failed interval in the middle of a connection, or a new connection without a lost one before.
    """
    lines = of.in_order
    is_connected = False
    for i, line in enumerate(lines):
        after = lines[i + 1] if i + 1 < len(lines) else None
        if isinstance(line, Interval) and not line.ok and line.code != CORRUPTED:
            if after is not None and not isinstance(after, Gap | Whole):
                text = f"line {line.n} is a failed interval, and no gap follows it"
                yield of.found("damaged", "lines", "inconclusive", text, *line.at)
        elif isinstance(line, Connection):
            if is_connected and not isinstance(lines[i - 1], Gap):
                text = f"line {line.n} is a new connection, and no gap precedes it"
                at = line.start_s
                yield of.found("damaged", "lines", "inconclusive", text, at, at, [line.n])
            is_connected = True


def corrupt(of: Flowing) -> Iterator[Anomaly]:
    """Payload that was changed on its way."""
    for line in of.intervals:
        if line.bad_bytes:
            text = f"{line.bad_bytes} of {line.checked_bytes} bytes arrived corrupted"
            first = line.integrity.first_bad if line.integrity else None
            if first is not None:
                text += f", the first at byte {first.offset} of message {first.message}, "
                text += f"{first.at}: {first.found} instead of {first.expected}"
            yield of.found("corrupt", "integrity", "fail", text, *line.at, line.bad_bytes, "bytes")
        elif line.code == CORRUPTED:
            text = "its error reports corrupted bytes"
            yield of.found("corrupt", "integrity", "fail", text, *line.at, unit="bytes")


# ---- the wall clock ------------------------------------------------------------------------------


def _walls(lines: Sequence[Line]) -> Iterator[tuple[float, float, int]]:
    """Moments in the flow's time, the wall clock's offset from it, and the line that has both."""
    for line in lines:
        if isinstance(line, Timed | Connection):
            at, wall = line.start_s, moment(line.started)
            if at is not None and wall is not None:
                yield at, wall - at, line.n
        if isinstance(line, Timed):
            wall = moment(line.ended)
            if wall is not None:
                yield line.end_s, wall - line.end_s, line.n


def clock(of: Flowing) -> Iterator[Anomaly]:
    """Where the wall clock moved relative to the monotonic clock.

    Times are written in milliseconds.
    """
    for (since, before, _), (at, off, n) in pairwise(sorted(_walls(of.lines), key=lambda x: x[0])):
        severity = of.bounds.broken("clock_s", abs(off - before) - 0.002 - SLEW * (at - since))
        if severity is not None:
            text = f"the wall clock was set by {off - before:.3f} s"
            yield of.found("clock", "clock", severity, text, since, at, [n], off - before, "s")
