"""Whether the figures of one record can all be true: each against those that determine it.

A law says when figures contradict each other, over the columns of many records at once; what a
record lacks breaks none. Tools round what they print: GRAIN_US and PART are granted where they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import polars as pl

from perch.judge import histograms
from perch.judge.columns import COLUMNS, HOST_RETRANSMISSIONS, part, with_nulls
from perch.model.figures import rounded
from perch.model.record import Error, Interval, Latency, Record
from perch.tools.results import shown

_col = pl.col
Row = dict[str, Any]

#: perftest and the cxi tools print hundredths of a microsecond, rounded or cut off.
GRAIN_US = 0.01
#: Rates and times of one line are rounded each by itself.
PART = 0.01

#: Samples above a percentile that support it (perch.model.figures.supports).
TEN = 9.999999

#: Samples by which ranks of percentiles differ from tool to tool (perch/tools/perftest_figures.py).
RANKS = 3

#: A closed loop has nothing but clock readings between two messages: 1.0000 to 1.0002 of the sum in
#: the recorded runs. A hundredth is granted, and a tenth of a second in which a busy machine runs
#: something else before the first or after the last message (site policy).
BETWEEN, BETWEEN_S = 1.01, 0.1

#: Windows of a rate follow each other from the beginning. What is left of one at the end, and the
#: time in which both ends agree on what arrived, is in the mean alone (perch/soak/lines.py).
AGREEING_S = 1

#: Seconds of a window of the engine (RUN_WINDOW_NS).
WINDOW_S = 0.1

#: On a busy machine that rest ran at 3.2 times the rate of the best of two windows. Ten times are
#: granted (site policy).
REST = 10

#: Seconds of the whole host are counted by ticks of its clock, those of a process exactly. One that
#: sleeps may run between ticks; of one that polls a tenth and ten ticks are granted (site policy).
TICKS, TICKS_S = 1.1, 0.1

#: A warm-up is no faster than the best of what is measured after it: on a busy machine nine times
#: as fast as its mean. Twice the best is granted (site policy).
WARMUP = 2

#: Connections on which messages may be lost (docs/definitions.md, Losses).
UNRELIABLE = ("UC", "UD", "datagram")

#: Operations whose messages --verify checks byte by byte; an atomic has a word of its own.
PAYLOAD_OPS = ("send", "send-imm", "write", "write-imm", "read")

#: Times of one measurement are taken by two clocks (perch/tools/perch.py).
CLOCKS, CLOCKS_S = 1.05, 0.1

#: Percentiles with the least and the most, by the share of samples below them.
_KNOTS = {"min": 0.0, **Latency.PERCENTILES, "max": 1.0}


class Law(NamedTuple):
    """`broken`: of which records; `says`: why, of one of them."""

    broken: pl.Expr
    says: Callable[[Row], str]


def _us(name: str) -> pl.Expr:
    return _col(f"latency_us.{name}")


def _figure(row: Row, column: str) -> str:
    value = row[column]
    return shown(rounded(value) if isinstance(value, float) else value)


def _of(*columns: str, words: str) -> Callable[[Row], str]:
    """`words` with these columns of the record in the places of its braces."""
    return lambda row: words.format(*(_figure(row, column) for column in columns))


_IS_ENGINE = _col("tool.name") == "perch"
_IS_SOAK = _col("has.soak").fill_null(value=False)
_HAS_PAUSE = (_col("params.gap_us").fill_null(0) > 0) | _col("has.params.rate").fill_null(
    value=False
)
_IS_VERIFIED = _col("params.verify").fill_null(value=False)
_MESSAGES = _col("bandwidth.bytes") / _col("params.size_bytes")


# ---- times of messages ---------------------------------------------------------------------------


def _mean() -> Iterator[Law]:
    """Between two percentiles lie as many samples as their shares say, each within these two."""
    names = list(_KNOTS)
    low = {
        name: pl.coalesce(*map(_us, reversed(names[: n + 1])), 0.0) for n, name in enumerate(names)
    }
    high = {name: pl.coalesce(*map(_us, names[n:])) for n, name in enumerate(names)}
    shares = [(a, b, _KNOTS[b] - _KNOTS[a]) for a, b in pairwise(names)]
    least = sum((low[a] * share for a, _, share in shares), pl.lit(0.0))
    most = sum((high[b] * share for _, b, share in shares), pl.lit(0.0))
    ranks = RANKS * (_us("max") - _us("min").fill_null(0)) / _us("count")
    grant = ranks.fill_null(0) + GRAIN_US
    mean = _us("mean")
    words = "its mean of {} us is not one of these percentiles"
    yield Law(
        (mean < least * (1 - 1e-3) - grant) | (mean > most * (1 + 1e-3) + grant),
        _of("latency_us.mean", words=words),
    )


def _deviation() -> Iterator[Law]:
    """Bounds of a deviation by its mean, its extremes and its median.

    Greatest: Bhatia and Davis, A Better Bound on the Variance (2000); least: the two extremes are
    samples; the median is within one deviation of the mean (Hotelling and Solomons, 1932). The cxi
    tools cut the mean to nanoseconds before they square it. perftest's most is beyond the samples
    that it sums up, and it cuts each difference from the mean to whole microseconds.
    """
    n, mean, stddev = _us("count"), _us("mean"), _us("stddev")
    cut = pl.when(_col("tool.name") == "perftest").then(1.0).otherwise(0.0) + GRAIN_US
    up = (_us("max") - mean).clip(0) + GRAIN_US
    down = (mean - _us("min")).clip(0) + GRAIN_US
    spread = ((up * down + 0.002 * mean) * n / (n - 1).clip(1)).sqrt()
    words = "its deviation of {} us does not fit min, mean and max of {}, {} and {} us"
    says = _of(*(f"latency_us.{name}" for name in ("stddev", "min", "mean", "max")), words=words)
    yield Law(stddev > spread + GRAIN_US, says)
    farthest = (_us("max") - mean - GRAIN_US).clip(0)
    ends = pl.when(_col("tool.name") != "perftest").then(farthest**2).otherwise(0.0)
    ends += (mean - _us("min") - GRAIN_US).clip(0) ** 2
    yield Law(ends * (1 - 1e-3) > n * (stddev + cut) ** 2, says)
    words = "its median of {} us is farther from its mean of {} us than a deviation of {} us"
    yield Law(
        (_us("p50") - mean).abs() > stddev + cut + RANKS * (up + down) / n,
        _of("latency_us.p50", "latency_us.mean", "latency_us.stddev", words=words),
    )


def _percentiles() -> Iterator[Law]:
    """The engine writes each percentile that ten samples lie above."""
    for name, share in Latency.PERCENTILES.items():
        yield Law(
            _IS_ENGINE & _us(name).is_null() & (_us("count") * (1 - share) >= TEN),
            _of("latency_us.count", words=f"it has no {name}, which {{}} samples support"),
        )


def _closed_loop() -> Iterator[Law]:
    """One message after the other, without a pause: their times are the whole time."""
    trips = pl.when(_col("definition") == "half_round_trip").then(2).otherwise(1)
    total_s = _us("count") * _us("mean") * trips / 1e6
    is_closed = _IS_ENGINE & (_col("kind") == "latency") & ~_HAS_PAUSE & ~_IS_VERIFIED & ~_IS_SOAK
    yield Law(
        is_closed & (_col("elapsed_s") > BETWEEN * total_s + BETWEEN_S),
        _of(
            "latency_us.count", "latency_us.mean", "elapsed_s",
            words="{} messages of {} us in the mean do not take {} s",
        ),
    )  # fmt: skip


def _counts() -> Iterator[Law]:
    """The engine ends with the last of the messages that it was asked for."""
    asked = _col("params.iterations")
    counted = _IS_ENGINE & ~_IS_SOAK & asked.is_not_null()
    yield Law(
        counted & (_col("kind") == "latency") & (_us("count") != asked),
        _of("latency_us.count", "params.iterations", words="it measured {} messages of {}"),
    )
    moved = _MESSAGES + _col("loss.lost_messages").fill_null(0)
    yield Law(
        counted & (_col("kind") == "bandwidth") & (moved < asked),
        _of("bandwidth.bytes", "params.iterations", words="{} bytes are not those of {} messages"),
    )


# ---- rates ---------------------------------------------------------------------------------------


def _rates() -> Iterator[Law]:
    """A mean against the best and the worst window, whose length the definition of the peak has."""
    rate, elapsed = _col("bandwidth.gbit_s"), _col("elapsed_s")
    peak, least = _col("bandwidth.peak_gbit_s"), _col("bandwidth.min_interval_gbit_s")
    meaning = _col("bandwidth.peak_definition")
    window = meaning.str.extract(r"^best_interval_([0-9.]+)s$").cast(pl.Float64, strict=False)
    words = "its average of {} Gb/s is above its best window of {} Gb/s"
    yield Law(
        rate * (1 - PART) > peak * (1 + (REST - 1) * window / elapsed),
        _of("bandwidth.gbit_s", "bandwidth.peak_gbit_s", words=words),
    )
    yield Law(
        (meaning == "best_run_of_messages") & (rate > peak * (1 + PART) + GRAIN_US),
        _of("bandwidth.gbit_s", "bandwidth.peak_gbit_s", words=words),
    )
    words = "its average of {} Gb/s is below its worst window of {} Gb/s"
    yield Law(
        elapsed * (1 - rate / (least * (1 - PART))) > AGREEING_S + window,
        _of("bandwidth.gbit_s", "bandwidth.min_interval_gbit_s", words=words),
    )
    yield Law(
        # iperf3's windows are the sender's, its bytes the receiver's
        _IS_ENGINE
        & ~_col("has.loss").fill_null(value=False)
        & (peak * window > rate * elapsed * (1 + PART)),
        _of(
            "bandwidth.peak_gbit_s", "bandwidth.gbit_s", "elapsed_s",
            words="its best window of {} Gb/s alone moved more than {} Gb/s in {} s",
        ),
    )  # fmt: skip
    words = "its worst window of {} Gb/s is above its best of {} Gb/s"
    yield Law(
        least > peak * (1 + PART),
        _of("bandwidth.min_interval_gbit_s", "bandwidth.peak_gbit_s", words=words),
    )


def _windows() -> Iterator[Law]:
    """The engine's windows of a rate: it has some, and none carries more than the link."""
    peak, least = _col("bandwidth.peak_gbit_s"), _col("bandwidth.min_interval_gbit_s")
    is_one = _IS_ENGINE & (_col("kind") == "bandwidth")
    unlost = _col("loss.lost_messages").fill_null(0) == 0
    is_long = ~_IS_SOAK & unlost & (_col("elapsed_s") > AGREEING_S + 2 * WINDOW_S)
    yield Law(
        is_one & ((peak.is_null() != least.is_null()) | (is_long & peak.is_null())),
        _of("elapsed_s", words="it has no best or no worst window of its {} s"),
    )
    ways = 1 + _col("params.bidirectional").fill_null(value=False).cast(pl.Int64)
    under_way = _col("params.outstanding") * _col("params.queue_pairs") * _col("params.size_bytes")
    most = ways * (_col("link.rate_gbit_s") * (1 + PART) + under_way.fill_null(0) * 8e-9 / WINDOW_S)
    # elsewhere a local completion is a copy, or a rate was invented for the interface
    yield Law(
        is_one & (_col("scope") == "hardware") & (_col("completion_level") != "inject")
        & (peak > most),
        _of(
            "bandwidth.peak_gbit_s", "link.rate_gbit_s",
            words="its best window of {} Gb/s is above its link of {} Gb/s",
        ),
    )  # fmt: skip


def _payload() -> Iterator[Law]:
    """The engine counts whole messages; what a gigabyte cost is of the same seconds and bytes."""
    size, payload = _col("params.size_bytes"), _col("bandwidth.bytes")
    polls = _IS_ENGINE & (_col("params.completion") == "busy") & ~_HAS_PAUSE
    yield Law(
        _IS_ENGINE & (size > 0) & (payload % size != 0),
        _of(
            "bandwidth.bytes", "params.size_bytes",
            words="{} bytes are no whole messages of {} bytes",
        ),
    )  # fmt: skip
    for side in ("client", "server"):
        cost, seconds = f"cpu.{side}_s_per_gb", f"cpu.{side}_s"
        whole = _col(cost) * payload / 1e9
        yield Law(
            (whole - _col(seconds)).abs() > PART * _col(seconds) + 1e-6,
            _of(cost, seconds, words=f"the {side}'s {{}} s a gigabyte are not its {{}} s"),
        )
        host = f"cpu.{side}_system_s"
        words = f"the {side}'s process took {{}} s of processors, its whole host {{}} s"
        yield Law(
            polls & (_col(seconds) > TICKS * _col(host) + TICKS_S),
            _of(seconds, host, words=words),
        )


def _retransmissions() -> Iterator[Law]:
    """Linux counts a segment at its socket and its host at once (net/ipv4/tcp_output.c).

    The host is read before the socket is opened and after it is closed.
    """
    own, host = "tcp.retransmissions", f"counters.client.{HOST_RETRANSMISSIONS}"
    yield Law(
        ~_IS_SOAK & (_col(own) > _col(host)),
        _of(own, host, words="its socket sent {} segments again, and the client's host {}"),
    )


# ---- losses, checking, standing still ------------------------------------------------------------


def _losses() -> Iterator[Law]:
    """Reliable connections lose nothing; others count what was sent, lost and moved."""
    lost, sent = _col("loss.lost_messages"), _col("loss.sent_messages")
    yield Law(
        _col("has.loss") & _col("connection").is_in(UNRELIABLE).not_(),
        _of("connection", "loss.lost_messages", words="a reliable connection ({}) has losses: {}"),
    )
    unreliable = _IS_ENGINE & ~_IS_SOAK & _col("connection").is_in(["UC", "UD"])
    yield Law(
        unreliable
        & _col("kind").is_in(["latency", "bandwidth"])
        & ~_col("has.loss").fill_null(value=False),
        _of("connection", words="an unreliable connection ({}) says nothing of losses"),
    )
    yield Law(lost > sent, _of(
        "loss.lost_messages", "loss.sent_messages", words="{} of {} messages were lost"
    ))  # fmt: skip
    one_way = ~_col("params.bidirectional").fill_null(value=False)
    arrived = sent - lost.fill_null(0)
    yield Law(
        _IS_ENGINE & one_way & ~_IS_SOAK & (_col("kind") == "bandwidth") & (arrived != _MESSAGES),
        _of(
            "loss.sent_messages", "loss.lost_messages", "bandwidth.bytes",
            words="of {} messages {} were lost, which leaves other bytes than {}",
        ),
    )  # fmt: skip


def _checking() -> Iterator[Law]:
    """With --verify every byte of every message is checked, of an echo at both ends."""
    trips = pl.when(_col("definition") == "half_round_trip").then(2).otherwise(1)
    size = _col("params.size_bytes")
    moved = pl.coalesce(_us("count") * trips * size, _col("bandwidth.bytes"))
    has_payload = _col("op").is_in(PAYLOAD_OPS)
    moves = (_col("backend") != "null") & _col("kind").is_in(["latency", "bandwidth"])
    is_one = _IS_ENGINE & has_payload & moves & ~_IS_SOAK
    yield Law(
        is_one & _IS_VERIFIED & (_col("integrity.checked_bytes") < moved),
        _of("integrity.checked_bytes", words="--verify checked {} bytes, less than arrived"),
    )
    best = pl.coalesce(size * 1e6 / _us("min"), _col("bandwidth.peak_gbit_s") * 1e9 / 8)
    warmup_s = _col("params.warmup_s")
    warming = pl.when(warmup_s > 0).then(WARMUP * warmup_s * best).otherwise(0)
    under_way = _col("params.outstanding") * _col("params.queue_pairs")
    beside = (_col("params.warmup").fill_null(0) + under_way.fill_null(0)) * 2 * size
    yield Law(
        is_one & (_col("integrity.checked_bytes") > moved * (1 + PART) + warming + beside),
        _of("integrity.checked_bytes", words="--verify checked {} bytes, more than arrived"),
    )


def _stalls() -> Iterator[Law]:
    """Nothing stands still for longer than it is measured, nor before or after that."""
    longest, start, elapsed = (
        _col(one) for one in ("stall.longest_s", "stall.start_s", "elapsed_s")
    )
    words = "it stood still for {} s from {} s on, and was measured for {} s"
    says = _of("stall.longest_s", "stall.start_s", "elapsed_s", words=words)
    most = CLOCKS * elapsed + CLOCKS_S
    yield Law(longest > most, says)
    yield Law(~_IS_SOAK & (longest + start > most), says)
    yield Law(
        (_col("stall.began") < _col("started")) & ~_IS_SOAK,
        _of("stall.began", "started", words="it stood still at {}, before it started at {}"),
    )


LAWS: tuple[Law, ...] = tuple(
    law
    for laws in (
        _percentiles, _mean, _deviation, _closed_loop, _counts, _rates, _windows, _payload,
        _retransmissions, _losses, _checking, _stalls,
    )
    for law in laws()
)  # fmt: skip


# ---- intervals -----------------------------------------------------------------------------------


def _bits(one: Interval) -> float:
    return (one.gbit_s or 0) * ((one.end_s or 0) - (one.start_s or 0))


def _disordered(intervals: Sequence[Interval], elapsed_s: float) -> str | None:
    end = 0.0
    for one in intervals:
        start, end_s = one.start_s or 0, one.end_s or 0
        if end_s < start or start < end - CLOCKS_S:
            return f"the interval from {shown(start)} to {shown(end_s)} s overlaps the one before"
        if start > end + CLOCKS_S:
            return f"it has no interval from {shown(end)} to {shown(start)} s"
        end = end_s
    if end > CLOCKS * elapsed_s + AGREEING_S:
        return f"its intervals end at {shown(end)} s, and it was measured for {shown(elapsed_s)} s"
    return None


def intervals_contradict(record: Record) -> str | None:
    """Why a record's intervals are not parts of its whole; None where they can be."""
    intervals, elapsed = record.intervals, record.elapsed_s
    if not intervals or elapsed is None:
        return None
    why = _disordered(intervals, elapsed)
    if why:
        return why
    whole, times = record.bandwidth, record.latency_us
    if whole is not None and whole.gbit_s is not None:
        covered = sum(((one.end_s or 0) - (one.start_s or 0)) for one in intervals)
        best = max(one.gbit_s or 0 for one in intervals)
        rest = max(elapsed - covered, 0)
        most = sum(map(_bits, intervals)) + REST * best * rest
        if whole.gbit_s * elapsed > most * (1 + PART):
            said = shown(rounded(most / elapsed))
            return f"its average of {shown(whole.gbit_s)} Gb/s is above the {said} of its intervals"
        if sum(map(_bits, intervals)) > whole.gbit_s * (elapsed + AGREEING_S) * (1 + PART):
            return f"its intervals moved more than its average of {shown(whole.gbit_s)} Gb/s"
    if times is not None and times.count is not None:
        counted = sum(one.count or 0 for one in intervals)
        if counted > times.count:
            return f"its intervals have {counted} of {times.count} samples"
        slowest = max(((one.latency_us and one.latency_us.max) or 0) for one in intervals)
        if times.max is not None and slowest > times.max:
            return f"an interval has a max of {shown(slowest)} us, the whole {shown(times.max)} us"
    return None


# ---- all of them ---------------------------------------------------------------------------------


def contradictions(records: Sequence[Record], frame: pl.DataFrame) -> dict[int, str]:
    """By row why its figures contradict each other. frame: columns of these records."""
    found: dict[int, str] = {}
    whole = with_nulls(frame.with_row_index("at").filter(_col("status") == "ok"))
    is_broken = whole.select(law.broken.any().alias(str(n)) for n, law in enumerate(LAWS)).row(0)
    broken = [n for n, is_one in enumerate(is_broken) if is_one]  # mostly none
    if broken:
        first = pl.coalesce(pl.when(LAWS[n].broken.fill_null(value=False)).then(n) for n in broken)
        of_law = whole.with_columns(law=first).filter(_col("law").is_not_null())
        for row in of_law.iter_rows(named=True):
            found[row["at"]] = LAWS[row["law"]].says(row)
    for at, one in enumerate(records):
        if one.intervals and one.status == "ok" and (why := intervals_contradict(one)):
            found.setdefault(at, why)
    return found


def judged(records: Sequence[Record]) -> pl.DataFrame:
    """Columns of some of a run's records (perch.judge.columns.part).

    Records that contradict themselves become errors first.
    """
    if not records:
        return part(records)
    frame = part(records)
    found, marks = histograms.judged(records, frame)
    mark = pl.Series("times_mark", marks, dtype=COLUMNS["times_mark"])
    for at, why in contradictions(records, frame).items():
        found.setdefault(at, why)
    if not found:
        return frame.with_columns(mark)
    for at, why in found.items():
        records[at].status = "error"
        records[at].error = Error(6, f"its figures contradict each other: {why}", traffic=True)
    return part(records).with_columns(mark)
