"""One row of figures of perftest -> a part. Both ends count as src/perftest_parameters.c does."""

from __future__ import annotations

import math
from collections.abc import Sequence

from perch.model.figures import rounded, supports
from perch.model.part import Claims, Part
from perch.model.record import Bandwidth, Latency, Link, Number, Params, Side
from perch.tools.perftest_text import TAIL, About, Row
from perch.tools.results import (
    IMPOSSIBLE_GBIT_S,
    UnusableError,
    natural,
    natural_or_none,
    positive,
    positive_or_none,
    shown,
    whole,
)
from perch.tools.text import number, option_value

#: Two decimals are printed of microseconds and of rates.
GRAIN = 0.005

#: Single times have six digits.
DIGITS = 1e-5

#: perftest since 23.04 squares differences from t_avg as 32 bits (its commit 6234a09).
SQUARED_US = math.isqrt(2**31 - 1)

#: -D leaves the margins at both ends out of its count, and may carry more in them than between:
#: half as much again is granted (site policy).
MARGINS = 1.5

#: Operations whose time is from the post to the completion. The others answer one another: half of
#: the round trip is theirs (rtt_factor in print_report_lat).
ONE_SIDED = ("read", "fetch-add", "compare-swap")
ATOMIC = ("fetch-add", "compare-swap")

_LAYERS = {"Ethernet": "ethernet", "IB": "infiniband"}


# ---- what was asked and used ---------------------------------------------------------------------


def _asked(argv: Sequence[str], *names: str) -> Number | None:
    return number(option_value(argv, names))


def _first(*values: Number | None) -> Number | None:
    return next((value for value in values if value is not None), None)


def _layer(run: About) -> str | None:
    if run.is_raw:
        return None
    return "iwarp" if run.transport == "IW" else _LAYERS.get(run.link or "")


def _params(run: About, argv: Sequence[str], size: int | None) -> Params:
    pairs = 1 if run.queue_pairs is None else run.queue_pairs
    batch = 1 if run.batch is None else run.batch
    # 0 unless asked for (init_perftest_params); with rdma_cm what the connection manager finds, and
    # it is -T that sets the class
    unasked = None if run.rdma_cm else 0
    return Params(
        size_bytes=size,
        iterations=_whole_or_none(_asked(argv, "-n", "--iters")),
        duration_s=_asked(argv, "-D", "--duration"),
        warmup=0,
        queue_pairs=pairs,
        outstanding=1 if run.is_latency else run.depth,
        batch=None if run.is_latency else batch,
        threads=1,
        devices=1,
        inline_bytes=run.inline,
        bidirectional=run.bidirectional,
        completion="event" if run.event else "busy",
        memory="host",
        verify=False,
        clock="cycles",
        cq_moderation=run.moderation,
        srq=run.srq,
        rdma_cm=run.rdma_cm,
        relaxed_ordering=run.relaxed,
        gid_index=run.gid_index,
        sl=_first(_asked(argv, "-S", "--sl"), unasked),
        traffic_class=_first(_asked(argv, "--tclass"), _asked(argv, "-T", "--tos"), unasked),
    )


def _whole_or_none(value: Number | None) -> int | None:
    return value if isinstance(value, int) else None


def _count(value: Number | None, name: str) -> int:
    positive(value, name)
    count = whole(value, name)
    assert count is not None  # positive() has refused None
    return count


def _check_asked(run: About, params: Params, count: int) -> None:
    """The command's iterations are of each queue pair, the table's of all."""
    if params.iterations is None:
        return
    pairs = 1 if run.is_latency else params.queue_pairs or 1
    asked = params.iterations * pairs
    if count != asked:
        raise UnusableError(f"it measured {count} messages of {asked}")


# ---- latency -------------------------------------------------------------------------------------


def _round_trips(run: About) -> int:
    return 1 if run.op in ONE_SIDED else 2


def _deviation(row: Row) -> Number | None:
    """t_stdev, unless a sample may be too far from t_avg for perftest to square it."""
    stddev = natural_or_none(row.stddev, "t_stdev")
    return None if (row.max or 0) - (row.average_us or 0) > SQUARED_US else stddev


def _latency(row: Row, count: int) -> Latency:
    """-D prints an average only."""
    times = Latency(
        count=count,
        min=positive_or_none(row.min, "t_min"),
        max=positive_or_none(row.max, "t_max"),
        mean=positive(row.average_us, "t_avg"),
        stddev=_deviation(row),
        p50=positive_or_none(row.typical, "t_typical"),
        p99=positive_or_none(row.p99, "99% percentile"),
        p99_9=positive_or_none(row.p99_9, "99.9% percentile"),
    )
    if not times.is_ordered:
        raise UnusableError("its percentiles are out of order")
    _check_mean(times)
    _check_most(times)
    return times


def _check_mean(times: Latency) -> None:
    """Half of all lie at or above the median, and none below t_min.

    t_max is no bound: perftest leaves the two slowest out of it.
    """
    mean, least = times.mean or 0, times.min or 0
    median = least if times.p50 is None else times.p50
    bound = (least + median) / 2
    if mean < bound - 2 * GRAIN:
        allowed = shown(rounded(bound))
        raise UnusableError(
            f"t_avg of {shown(mean)} us is below what t_min and t_typical allow, {allowed}"
        )


def _check_most(times: Latency) -> None:
    """t_max is the first time beyond those that are summed up, and so is a percentile of few.

    Ranks are those of print_report_lat: iters_99 and iters_99_9.
    """
    summed = (times.count or 0) - 1 - TAIL
    for name, quantile in Latency.PERCENTILES.items():
        said, most = getattr(times, name), times.max
        if said is None or most is None or math.ceil(summed * quantile) < summed:
            continue
        if abs(said - most) > 2 * GRAIN:
            raise UnusableError(f"t_max is {shown(most)} us, and {name} {shown(said)} us")


def _slack(measured: float) -> float:
    """What rounding may change in a figure of the row and in the list's."""
    return 2 * GRAIN + DIGITS * measured


def _ranked(ordered: Sequence[float], summed: int, quantile: float) -> tuple[float, float]:
    """The bounds of a percentile: perftest's own rank, open above where the list leaves it out."""
    rank = math.ceil(summed * quantile)
    return (ordered[rank],) * 2 if rank < len(ordered) else (ordered[-1], math.inf)


def _deviations(kept: Sequence[float], mean: float) -> tuple[float, float]:
    """The bounds of t_stdev: since 23.04 perftest squares whole microseconds (6234a09)."""
    apart = [abs(time - mean) for time in kept]
    whole_us = [math.floor(max(abs(time - mean) - _slack(time), 0)) for time in kept]
    least, most = (math.sqrt(sum(one * one for one in of) / len(of)) for of in (whole_us, apart))
    return least, most


def _with_list(times: Latency, listed: Sequence[float]) -> None:
    """Completes the percentiles from single times (-H, -U), which must be those of the row."""
    count = times.count or 0
    ordered = sorted(listed)
    kept = ordered[:-TAIL] if len(listed) == count - 1 else ordered
    if len(kept) != count - 1 - TAIL:
        raise UnusableError(f"it lists {len(listed)} times of {count - 1}: truncated?")
    if len(listed) == len(kept) and list(listed) != ordered:
        raise UnusableError("the times of its sorted list (-H) are out of order")
    middle = len(kept) // 2
    median = kept[middle] if len(kept) % 2 else (kept[middle - 1] + kept[middle]) / 2
    mean = sum(kept) / len(kept)
    for name, said, least, most in (
        ("t_min", times.min, kept[0], kept[0]),
        ("t_typical", times.p50, median, median),
        ("t_avg", times.mean, mean, mean),
        ("99% percentile", times.p99, *_ranked(ordered, len(kept), 0.99)),
        ("99.9% percentile", times.p99_9, *_ranked(ordered, len(kept), 0.999)),
        ("t_stdev", times.stddev, *_deviations(kept, mean)),
    ):
        if said is not None and not least - _slack(least) <= said <= most + _slack(most):
            listed_as = shown(rounded(least if said < least else most))
            raise UnusableError(f"{name} is {shown(said)} us, and {listed_as} us in its list")
    for name, quantile in Latency.PERCENTILES.items():
        if getattr(times, name) is None and supports(len(kept), quantile):
            # perftest's own rank, one above the nearest (iters_99)
            setattr(times, name, rounded(kept[math.ceil(len(kept) * quantile)]))


def _check_transactions(row: Row, run: About, mean: float) -> None:
    """Both columns have two decimals."""
    each = _round_trips(run) * mean
    rate = row.transactions
    if rate is not None and abs(rate * each / 1e6 - 1) > 0.01 + GRAIN / mean:
        said = f"{shown(rate)} transactions a second"
        raise UnusableError(f"t_avg of {shown(mean)} us and {said} do not fit")


# ---- bandwidth -----------------------------------------------------------------------------------


def _ways(run: About, duration_s: Number | None) -> int:
    """How often the counted messages are in the rate.

    Both ways at once the rate is the sum of both, the iterations are one end's; only a send test by
    duration counts what it receives among its iterations, too.
    """
    return 2 if run.bidirectional and (run.op != "send" or duration_s is None) else 1


def _check_messages(average: float, messages: float, size: float, unit: float) -> None:
    """Messages a second are another way to the same rate: a misread unit shows here.

    0.000000 is a rate below half a message a second, rounded.
    """
    gbit_s, other = average * unit, messages * 1e6 * size * 8 / 1e9
    rounding = GRAIN * unit + 0.5 * size * 8 / 1e9 + 0.005 * gbit_s
    if abs(gbit_s - other) > rounding:
        rates = f"{shown(rounded(gbit_s))} against {shown(rounded(other))} Gb/s"
        raise UnusableError(f"bandwidth and message rate disagree ({rates})")


def rate_gbit_s(average: float, messages: float | None, size: float, unit: float) -> float:
    """The rate, of the column that has more digits.

    Below 1 two decimals are off by more than 0.5 %, and small messages are printed as 0.00 MiB/s.
    """
    if messages and average < 1 and 1e-4 * average < messages:
        return messages * 1e6 * size * 8 / 1e9
    return average * unit


def _bandwidth(row: Row, run: About, params: Params, count: int, unit: float) -> Bandwidth:
    average, size = natural(row.average, "BW average"), params.size_bytes or 0
    messages = natural_or_none(row.messages, "MsgRate")
    if messages is not None:
        _check_messages(average, messages, size, unit)
    gbit_s = positive(rate_gbit_s(average, messages, size, unit), "BW average")
    if gbit_s > IMPOSSIBLE_GBIT_S:
        raise UnusableError(f"bandwidth of {shown(gbit_s)} Gb/s is impossible")
    # a peak of 0 was not measured (-D, or more than 20,000 iterations)
    peak = positive(row.peak * unit, "BW peak") if row.peak else None
    return Bandwidth(
        gbit_s=gbit_s,
        peak_gbit_s=peak,
        peak_definition=None if peak is None else "best_run_of_messages",
        messages_per_s=rounded(messages * 1e6) if messages else None,
        bytes=positive(count * size * _ways(run, params.duration_s), "bytes"),
    )


# ---- a row ---------------------------------------------------------------------------------------


def _claims(run: About, params: Params, count: int, elapsed_s: float) -> Claims:
    """Payload on the wire, from the client (sent) and to it (received)."""
    least = count * (params.size_bytes or 0)
    most: float = least
    if params.duration_s is not None:
        most = least * max(params.duration_s / elapsed_s, 1) * MARGINS
    if run.bidirectional and _ways(run, params.duration_s) == 1:
        least //= 2
    both = run.op not in ONE_SIDED if run.is_latency else run.bidirectional
    sent = run.op != "read" or both
    received = run.op == "read" or run.op in ATOMIC or both
    return Claims(
        sent=least if sent else 0,
        received=least if received else 0,
        most_sent=rounded(most) if sent else 0,
        most_received=rounded(most) if received else 0,
    )


def _definition(run: About) -> str:
    if run.is_latency:
        return "completion" if run.op in ONE_SIDED else "half_round_trip"
    return "frame_completion" if run.is_raw else "initiator_completion"


def measured(
    row: Row,
    run: About,
    argv: Sequence[str],
    server_argv: Sequence[str],
    unit: float,
    listed: Sequence[float] | None = None,
) -> Part:
    """One row of figures. `unit`: Gb/s of one unit of its rates; `listed`: its single times."""
    params = _params(run, argv, _count(row.size, "#bytes"))
    count = _count(row.iterations, "#iterations")
    _check_asked(run, params, count)
    part = Part(
        op=run.op,
        kind=run.kind,
        definition=_definition(run),
        connection=run.connection,
        client=Side(device=run.device, address=run.client_address),
        server=Side(
            device=option_value(server_argv, ("-d", "--ib-dev")), address=run.server_address
        ),
        link=Link(mtu_bytes=run.mtu, layer=_layer(run)),
        queue_pairs=run.pairs,
        params=params,
    )
    if run.is_latency:
        part.latency_us = _latency(row, count)
        mean = part.latency_us.mean or 0
        _check_transactions(row, run, mean)
        if listed is not None:
            _with_list(part.latency_us, listed)
        elapsed_s = count * _round_trips(run) * mean / 1e6
    else:
        part.bandwidth = _bandwidth(row, run, params, count, unit)
        elapsed_s = (part.bandwidth.bytes or 0) * 8 / (part.bandwidth.gbit_s or 1) / 1e9
    part.elapsed_s = positive(elapsed_s, "elapsed time")
    part.claims = _claims(run, params, count, part.elapsed_s)
    return part
