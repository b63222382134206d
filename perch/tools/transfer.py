"""Lines of `perch transfer`: what one says must hold together, and a sum must be that of its pairs.

For each size and batch there is a line of kind "transfer" for each pair of devices, and one of kind
"sum" for all pairs. A lane is one thread's work on one pair; its batches come one after another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from perch.model.figures import rounded
from perch.model.part import Part
from perch.model.plan import Expect, Flow
from perch.model.record import Latency, Number, Params, Transfer
from perch.tools.results import UnusableError, failed, shown

KINDS = ("transfer", "sum")

#: A hundredth: the figures of a line are rounded each by itself.
TOLERANCE = 0.01

#: Half of the last of six decimals, the fewest that a line keeps.
GRAIN = 5e-7

#: Batches of a lane may take this much longer than its window (parts, seconds): clocks differ.
CLOCKS, CLOCKS_S = 1.05, 1e-5


@dataclass(frozen=True, slots=True)
class _Line:
    """The figures that every whole line has. Times of batches in microseconds."""

    pairs: int
    batches: int
    completed: int
    batch_bytes: int
    window_s: Number
    elapsed_s: Number
    size: int
    batch: int
    lanes: float
    gbit_s: Number
    messages_per_s: Number
    bytes: Number
    count: int
    min: Number
    max: Number
    mean: Number
    stddev: Number


def is_transfer(kind: str | None) -> bool:
    """Whether lines of this kind are of `perch transfer`."""
    return kind in KINDS


def place(kind: str | None, pair: int | None, batch: int | None, size: int | None) -> str:
    """Where a line, or an entry of the plan's `expect`, stands within its flow, in words."""
    return f"kind {kind}, pair {shown(pair)}, batch {shown(batch)}, {shown(size)}"


def place_of_part(part: Part) -> str:
    """The place of a line."""
    params, transfer = part.params or Params(), part.transfer or Transfer()
    return place(part.kind, transfer.pair, params.batch, params.size_bytes)


def place_of_expect(expect: Expect) -> str:
    """The place of a record that the flow must give."""
    return place(expect.kind, expect.pair, expect.batch, expect.size_bytes)


def _near(value: float, other: float, tolerance: float = TOLERANCE) -> bool:
    return abs(value - other) <= tolerance * abs(other) + GRAIN


def _lanes(kind: str | None, threads: int, pairs: int) -> float:
    """Lanes of one pair; of the sum, of all pairs."""
    lanes = max(threads, pairs)
    return lanes if kind == "sum" else lanes / pairs


def _above_zero(value: Number | None, name: str) -> Number:
    if value is None or value <= 0:
        raise UnusableError(f"{name.replace('.', ' has no ')}")
    return value


def _count(value: int | None, name: str) -> int:
    return int(_above_zero(value, name))


def _line(part: Part) -> _Line:
    """The figures of a line; UnusableError names the first that it lacks."""
    transfer, times, bandwidth = part.transfer, part.latency_us, part.bandwidth
    if transfer is None or times is None or bandwidth is None:
        raise UnusableError(f"a line of kind {part.kind} without transfer, latency_us or bandwidth")
    params = part.params or Params()
    pairs = _count(transfer.pairs, "transfer.pairs")
    return _Line(
        pairs=pairs,
        batches=_count(transfer.batches, "transfer.batches"),
        completed=_count(transfer.completed, "transfer.completed"),
        batch_bytes=_count(transfer.batch_bytes, "transfer.batch_bytes"),
        window_s=_above_zero(transfer.window_s, "transfer.window_s"),
        elapsed_s=_above_zero(part.elapsed_s, "line.elapsed_s"),
        size=_count(params.size_bytes, "params.size_bytes"),
        batch=_count(params.batch, "params.batch"),
        lanes=_lanes(part.kind, params.threads or 1, pairs),
        gbit_s=_above_zero(bandwidth.gbit_s, "bandwidth.gbit_s"),
        messages_per_s=_above_zero(bandwidth.messages_per_s, "bandwidth.messages_per_s"),
        bytes=_above_zero(bandwidth.bytes, "bandwidth.bytes"),
        count=_count(times.count, "latency_us.count"),
        min=_above_zero(times.min, "latency_us.min"),
        max=_above_zero(times.max, "latency_us.max"),
        mean=_above_zero(times.mean, "latency_us.mean"),
        stddev=times.stddev or 0,
    )


# ---- one line ------------------------------------------------------------------------------------


def check_line(part: Part) -> None:
    """UnusableError where a line of a transfer cannot be what it says."""
    line = _line(part)
    for check in (
        _misplaced, _miscounted, _mislisted, _unverified, _mistimed, _misjudged_peak, _too_long,
    ):  # fmt: skip
        why = next(check(part, line), None)
        if why is not None:
            raise UnusableError(why)


def _misplaced(part: Part, line: _Line) -> Iterator[str]:
    pair = part.transfer.pair if part.transfer else None
    if (part.kind == "sum") != (pair is None) or (pair is not None and pair >= line.pairs):
        yield f"a line of kind {part.kind} is of pair {shown(pair)}"


def _miscounted(part: Part, line: _Line) -> Iterator[str]:
    asked = part.transfer.asked if part.transfer else None
    if line.batch_bytes != line.batch * line.size:
        yield f"a batch of {line.batch} x {line.size} bytes is not {line.batch_bytes}"
    # more than asked for is possible: all go on until the last pair has its batches
    if asked is not None and line.completed < asked:
        yield f"{line.completed} of {asked} transfers were completed"
    if line.completed != line.batches * line.batch:
        yield f"{line.completed} transfers are not {line.batches} batches of {line.batch}"
    if line.count != line.batches:
        yield f"{line.batches} batches have {line.count} times"
    if line.bytes != line.completed * line.size:
        yield f"{shown(line.bytes)} bytes are not those of {line.completed} transfers"


def _mislisted(part: Part, line: _Line) -> Iterator[str]:
    """Work requests of a batch, shared out to queue pairs, each in lists of what it holds."""
    params, lists = part.params or Params(), part.transfer.lists if part.transfer else None
    if lists is None or not params.outstanding:
        return
    each = line.batch if params.consecutive else line.batch * (params.chunks or 1)
    shared = math.ceil(each / (params.queue_pairs or 1))
    needed = shared if params.consecutive else math.ceil(shared / params.outstanding)
    if lists != needed:
        yield f"a batch of {line.batch} takes {needed} lists on each queue pair, not {lists}"


def _unverified(part: Part, line: _Line) -> Iterator[str]:
    verify = part.params is not None and part.params.verify is True
    checked = (part.integrity.checked_bytes if part.integrity else None) or 0
    if verify and checked < line.completed * line.size:
        yield f"--verify checked {checked} of {line.completed * line.size} bytes"


def _mistimed(part: Part, line: _Line) -> Iterator[str]:
    """A lane works until its duration is over: only clocks and rounding are granted."""
    window, duration = line.window_s, part.params.duration_s if part.params else None
    if not _near(window, line.elapsed_s):
        yield (f"its window of {shown(window)} s is not the {shown(line.elapsed_s)} s that it took")
    if duration is not None and duration > 1.02 * window:
        yield f"it lasted {shown(window)} s of {shown(duration)} s"
    if not _near(line.messages_per_s * line.size * 8e-9, line.gbit_s):
        rate = shown(line.messages_per_s)
        yield f"{rate} transfers a second are not {shown(line.gbit_s)} Gb/s"
    if not _near(line.bytes * 8e-9 / window, line.gbit_s, TOLERANCE + GRAIN / window):
        rate = shown(line.gbit_s)
        yield f"{rate} Gb/s for {shown(window)} s are not {shown(line.bytes)} bytes"


def _misjudged_peak(part: Part, line: _Line) -> Iterator[str]:
    """The peak is that of the fastest batch, of one lane: several lanes have one each."""
    peak = part.bandwidth.peak_gbit_s if part.bandwidth else None
    if peak is None:
        return
    if line.lanes > 1:
        yield f"{line.lanes:g} lanes have a peak, of which each has its own"
    if not _near(line.batch_bytes * 8e-3 / line.min, peak):
        size = shown(line.batch_bytes)
        yield f"{size} bytes in {shown(line.min)} us are no peak of {shown(peak)} Gb/s"
    if line.gbit_s > peak * (1 + TOLERANCE) + GRAIN:
        average = shown(line.gbit_s)
        yield f"its average of {average} Gb/s is above its peak of {shown(peak)} Gb/s"


def _too_long(part: Part, line: _Line) -> Iterator[str]:
    total_s = line.count * line.mean / 1e6
    if total_s > CLOCKS * line.window_s * line.lanes + CLOCKS_S:
        yield f"batches sum up to {shown(rounded(total_s))} s of {shown(line.window_s)} s"


# ---- a sum against its pairs ---------------------------------------------------------------------


def summed(flow: Flow, parts: Sequence[Part]) -> list[Part]:
    """A flow's parts in the order of its `expect`, where a sum unlike its pairs became an error.

    Pairs stand before their sum. Sums beside a pair that is not ok are left as they are.
    """
    checked = list(parts)
    if flow.kind != "transfer":
        return checked
    pairs = max((owed.pair or 0 for owed in flow.expect), default=0) + 1
    for i in range(pairs, len(checked)):
        group = checked[i - pairs : i + 1]
        if flow.expect[i].kind != "sum" or any(part.status != "ok" for part in group):
            continue
        why = next(_unlike_sum(group[-1], group[:-1]), None)
        if why is not None:
            error = failed(why, traffic=True)
            checked[i] = msgspec.structs.replace(group[-1], status="error", error=error)
    return checked


def _unlike_sum(part: Part, pair_parts: Sequence[Part]) -> Iterator[str]:
    """A sum has all transfers of its pairs, in the longest of their times, which start together."""
    total, pairs = _line(part), [_line(pair) for pair in pair_parts]
    for name in ("batches", "completed"):
        said, added = getattr(total, name), sum(getattr(pair, name) for pair in pairs)
        if said != added:
            yield f"the sum has {said} {name}, its pairs have {added}"
    slowest = max(pair.window_s for pair in pairs)
    if total.window_s < slowest - 2 * GRAIN or not _near(total.window_s, slowest):
        yield f"the sum took {shown(total.window_s)} s, the slowest pair {shown(slowest)}"
    yield from _unlike_times(total, pairs)
    times = [pair.latency_us for pair in pair_parts]
    yield from _unlike_percentiles(part.latency_us or Latency(), [t for t in times if t])


def _unlike_times(total: _Line, pairs: Sequence[_Line]) -> Iterator[str]:
    """Extremes, mean and deviation of a sum come from exact sums."""
    fastest, slowest = min(pair.min for pair in pairs), max(pair.max for pair in pairs)
    count = sum(pair.count for pair in pairs)
    mean = sum(pair.count * pair.mean for pair in pairs) / count
    deviation = _deviation(pairs, mean, count)
    if total.min != fastest:
        took = f"{shown(total.min)} us, that of its pairs {shown(fastest)} us"
        yield f"the sum's fastest batch took {took}"
    if total.max != slowest:
        took = f"{shown(total.max)} us, that of its pairs {shown(slowest)} us"
        yield f"the sum's slowest batch took {took}"
    if not _near(total.mean, mean):
        took = f"{shown(total.mean)} us, of its pairs {shown(rounded(mean))} us"
        yield f"a batch of the sum took {took}"
    if not _near(total.stddev, deviation):
        said = f"{shown(total.stddev)} us, those of its pairs by {shown(rounded(deviation))} us"
        yield f"the sum's batches deviate by {said}"


def _deviation(pairs: Sequence[_Line], mean: float, count: int) -> float:
    """The standard deviation of all samples together, about their `mean`."""
    squares = sum(
        (pair.count - 1) * pair.stddev**2 + pair.count * (pair.mean - mean) ** 2 for pair in pairs
    )
    return math.sqrt(squares / max(count - 1, 1))


def _unlike_percentiles(total: Latency, pairs: Sequence[Latency]) -> Iterator[str]:
    """A percentile of the sum lies between those of its pairs.

    A histogram's rank is rounded to the nearest sample: where two pairs have rounded down, the sum
    may lie one sample above both, but never under both. The next percentile bounds it for sure.
    """
    names = [*Latency.PERCENTILES, "max"]
    for name, above in pairwise(names):
        value, each = getattr(total, name), [getattr(pair, name) for pair in pairs]
        if value is None or any(figure is None for figure in each):
            continue
        least = min(each)
        most = max(_percentile(pair, above) or pair.max or 0 for pair in pairs)
        if value < least * (1 - TOLERANCE) or value > most * (1 + TOLERANCE):
            bounds = f"{shown(least)} and {shown(most)} us, as its pairs' are"
            yield f"the sum's {name} of {shown(value)} us is not between {bounds}"


def _percentile(times: Latency, name: str) -> Number | None:
    value: Number | None = getattr(times, name)
    return value
