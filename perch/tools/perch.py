"""The engine's JSON lines (perch.record/1), one for each finished size.

They carry a record's key names and units already. Progress (kind "interval") and single samples
(kind "sample") make no record. A key whose value is null is as one that is absent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from perch.model.figures import encode, rounded, supports
from perch.model.part import Claims, Part
from perch.model.record import (
    Interval,
    Latency,
    Link,
    Model,
    Params,
    Stall,
    ToolName,
    Transfer,
)
from perch.tools import perch_command, rate_command, transfer_command
from perch.tools.claims import needed_bytes
from perch.tools.engine_columns import surely_results
from perch.tools.engine_figures import (
    ALWAYS,
    BANDWIDTH,
    BUCKETS,
    CLOCKS,
    CLOCKS_S,
    CPU,
    INTEGRITY,
    INTERVAL,
    LATENCY,
    LOSS,
    TCP,
    TOLERANCE,
    Check,
    check_cost,
)
from perch.tools.engine_line import EngineError, EngineLine, EnginePath, EngineStall, decoded
from perch.tools.results import (
    LARGEST,
    UnusableError,
    check_rate,
    failed,
    failed_part,
    natural,
    natural_or_none,
    positive,
    shown,
)
from perch.tools.tool import UNUSABLE, Tool, shell_exit_code
from perch.tools.transfer import check_line, is_transfer

SCHEMA = "perch.record/1"
NO_RESULTS = ("interval", "sample")
SAMPLE = b'{"kind":"sample"'

#: The engine's codes of --json lines and of its exit status (docs/definitions.md).
LIMIT_MISSED, CORRUPTED = 1, 5

#: The engine's words for what a figure means (engine/src), which it always writes: another word, or
#: none, would switch off what is judged by it. The null backend completes and connects nothing.
LEVELS = frozenset(("inject", "transmit", "delivery"))
NOTHING = frozenset((None,))
CONNECTIONS = {
    "tcp": frozenset(("stream",)),
    "verbs": frozenset(("RC", "UC", "UD")),
    "ofi": frozenset(("rdm",)),
    "cxi": frozenset(("rdm",)),
    "null": NOTHING,
}
LAYERS = frozenset(("ethernet", "infiniband", "slingshot", "loopback", "shm", "other", "none"))
KINDS_OF_CLOCK = frozenset(("monotonic", "cycles"))
PEAKS = {"bandwidth": "best_interval_0.1s", "transfer": "fastest_batch", "sum": "fastest_batch"}


def _checked(figures: Model | None, checks: Sequence[Check]) -> None:
    """Rounds the figures in place; UnusableError names one that is no result."""
    if figures is None:
        return
    for name, must_be, may_be_absent, place in checks:
        value = getattr(figures, name)
        if value is None and may_be_absent:
            continue
        if value is None or not 0 < value < LARGEST:
            setattr(figures, name, must_be(value, place))
        elif type(value) is float:  # whole numbers are counts, and stay
            setattr(figures, name, rounded(value))


# ---- one line ------------------------------------------------------------------------------------


def _heading(line: EngineLine) -> Part:
    """What a line says about itself, whether or not the measurement came out well."""
    if line.params is not None:
        line.params.mtu_bytes = None
    return Part(
        tool=ToolName("perch", line.tool.version or None if line.tool else None),
        backend=line.backend or None,
        provider=line.provider or None,
        op=line.op or None,
        kind=line.kind or None,
        definition=line.definition or None,
        completion_level=line.completion_level or None,
        connection=line.connection or None,
        simulated=line.simulated is True,
        environment=line.environment,
        client=line.client,
        server=line.server,
        link=line.link,
        queue_pairs=line.queue_pairs,
        params=line.params,
        started=line.started or None,
        soak=line.soak,
    )


def _latency(times: Latency | None) -> Latency | None:
    if times is not None:
        _checked(times, LATENCY)
        if not times.is_ordered:
            raise UnusableError("latency_us has its percentiles out of order")
        _check_mean(times)
    return times


def _check_mean(times: Latency) -> None:
    """Half of all samples lie at or above the median, and none below the least."""
    count, least, most, mean = times.count or 0, times.min or 0, times.max or 0, times.mean or 0
    if mean < least * (1 - BUCKETS) or mean > most * (1 + BUCKETS):
        raise UnusableError("latency_us.mean lies outside of min and max")
    if times.p50 is not None and mean < (least + times.p50) / 2 * (1 - BUCKETS):
        raise UnusableError("latency_us.mean is below what min and p50 allow")
    for name, quantile in Latency.PERCENTILES.items():
        if getattr(times, name) is not None and not supports(count, quantile):
            raise UnusableError(f"latency_us.{name} of {count} samples has not ten above it")


def _intervals(intervals: list[Interval] | None) -> list[Interval]:
    for interval in intervals or []:
        _checked(interval, INTERVAL)
        times = interval.latency_us
        interval.latency_us = None if times is None or times.count == 0 else _latency(times)
    return intervals or []


def _stall(stall: EngineStall | None, kind: str | None) -> Stall | None:
    """The longest time without a completion; that of a transfer counts where it has a date."""
    if stall is None or (is_transfer(kind) and stall.began is None):
        return None
    return Stall(
        longest_s=natural(stall.longest_s, "stall.longest_s"),
        start_s=natural(stall.start_s, "stall.start_s"),
        began=stall.began or None,
    )


def _claims(path: EnginePath | None) -> Claims | None:
    if path is None:
        return None
    sent = natural(path.client_sent_bytes, "path.client_sent_bytes")
    received = natural(path.client_received_bytes, "path.client_received_bytes")
    if path.claimed_bytes != sent + received:
        said = f"its path claims {shown(path.claimed_bytes)} bytes"
        raise UnusableError(f"{said}, but its ends sent {shown(sent + received)}")
    return Claims(sent, received, natural_or_none(path.lost_bytes, "path.lost_bytes"))


def _transfer(transfer: Transfer | None) -> Transfer | None:
    if transfer is not None:
        transfer.window_s = natural_or_none(transfer.window_s, "transfer.window_s")
    return transfer


def _check_word(name: str, word: str | None, known: Collection[str | None]) -> None:
    if word not in known:
        raise UnusableError(f"its {name} is {shown(word)}, a word that perch does not write")


def _check_words(part: Part) -> None:
    """What its figures mean, in the engine's own words."""
    link, params, bandwidth = part.link or Link(), part.params or Params(), part.bandwidth
    levels = NOTHING if part.backend == "null" else LEVELS
    _check_word("completion_level", part.completion_level, levels)
    connections = CONNECTIONS.get(part.backend or "")
    if connections is not None:  # the plan names the backend
        _check_word("connection", part.connection, connections)
    _check_word("link.layer", link.layer, LAYERS)
    _check_word("params.clock", params.clock, KINDS_OF_CLOCK)
    if bandwidth is not None:
        defined = PEAKS.get(part.kind or "")
        _check_word("bandwidth.peak_definition", bandwidth.peak_definition, (defined,))


def _check_mtu(line: EngineLine) -> None:
    """A path has one MTU. The record has that of its link."""
    asked, link = line.params and line.params.mtu_bytes, line.link and line.link.mtu_bytes
    if asked is not None and link is not None and asked != link:
        raise UnusableError(f"its MTU is {shown(asked)} in params and {shown(link)} in link")


def _check_complete(line: EngineLine) -> None:
    for key in (line.kind, line.backend):
        for group, names in ALWAYS.get(key, ()):
            owner = getattr(line, group)
            for name in names:
                if owner is None or getattr(owner, name) is None:
                    raise UnusableError(f"it has no {group}.{name}, which perch always writes")


def _measured(line: EngineLine) -> Part:
    """The line with its figures, all of which hold together; else UnusableError."""
    _check_complete(line)
    _check_mtu(line)
    part = _heading(line)
    part.elapsed_s = positive(line.elapsed_s, "elapsed_s")
    part.latency_us = _latency(line.latency_us)
    _checked(line.bandwidth, BANDWIDTH)
    part.bandwidth = line.bandwidth
    part.intervals = _intervals(line.intervals)
    part.histogram = line.histogram
    _checked(line.cpu, CPU)
    part.cpu = line.cpu
    _checked(line.integrity, INTEGRITY)
    part.integrity = line.integrity
    _checked(line.tcp, TCP)
    part.tcp = line.tcp
    _checked(line.loss, LOSS)
    part.loss = line.loss
    part.stall = _stall(line.stall, line.kind)
    part.claims = _claims(line.path)
    part.transfer = _transfer(line.transfer)
    _check_words(part)
    _check_possible(part)
    return part


# ---- whether the figures of a line can be true ---------------------------------------------------


def _check_possible(part: Part) -> None:
    params = part.params or Params()
    if is_transfer(part.kind):
        _check_claims(part)
        _check_promises(part, params)
        check_line(part)
        return
    _check_within_elapsed(part, params)
    # the null backend moves nothing: its rate has no bound and its claims mean nothing
    if part.backend != "null":
        _check_bandwidth(part, params)
        _check_claims(part)
    _check_promises(part, params)
    check_cost(part, params)


def _check_within_elapsed(part: Part, params: Params) -> None:
    """Messages come one after another: their times cannot sum up to more than passed.

    A paced message counts from when it was due, so that paced sums may.
    """
    times, elapsed = part.latency_us, part.elapsed_s or 0
    if times is None or params.rate is not None:
        return
    trips = 2 if part.definition == "half_round_trip" else 1
    total_s = (times.count or 0) * (times.mean or 0) * trips / 1e6
    if total_s > CLOCKS * elapsed + CLOCKS_S:
        raise UnusableError(f"latencies sum up to {shown(total_s)} s of {shown(elapsed)} s")


def _check_bandwidth(part: Part, params: Params) -> None:
    """Messages a second are another way to the same rate."""
    bandwidth, size = part.bandwidth, params.size_bytes
    if bandwidth is None:
        return
    check_rate(bandwidth, part.elapsed_s or 0, TOLERANCE)
    messages, rate = bandwidth.messages_per_s, bandwidth.gbit_s or 0
    if messages is None or size is None:
        return
    if abs(messages * size * 8e-9 / rate - 1) > TOLERANCE:
        said = f"{shown(messages)} messages a second of {size} bytes"
        raise UnusableError(f"{said} are not the {shown(rate)} Gb/s that it says")


def _check_claims(part: Part) -> None:
    if part.claims is None:
        return
    if (lost := part.claims.lost) and part.loss is None:
        raise UnusableError(f"its path lost {shown(lost)} bytes, but its connection has no losses")
    claimed, needed = (part.claims.sent or 0) + (part.claims.received or 0), needed_bytes(part)
    if claimed < needed:
        said = f"its path claims {shown(claimed)} bytes"
        raise UnusableError(f"{said}, but its figures need {shown(needed)}")


def _check_promises(part: Part, params: Params) -> None:
    if params.rate is not None and params.rate.overloaded is True:
        raise UnusableError("the pace that was asked for could not be kept")
    if params.verify is True and not (part.integrity and part.integrity.checked_bytes):
        raise UnusableError("--verify checked no byte")


# ---- status --------------------------------------------------------------------------------------


def _damaged(line: EngineLine, why: str) -> Part:
    part = _heading(line)
    part.status, part.error = "error", failed(why, traffic=True)
    return part


def _failed(line: EngineLine) -> Part:
    """An error of the engine, with the bytes that it checked and the transfers it completed."""
    part, error = _heading(line), line.error or EngineError()
    try:
        _checked(line.integrity, INTEGRITY)
        part.integrity = line.integrity
    except UnusableError:
        part.integrity = None
    try:
        part.transfer = _transfer(line.transfer)
    except UnusableError:
        part.transfer = None
    code = UNUSABLE if error.code is None else error.code
    message = error.message or "perch gave no reason"
    part.status, part.error = "error", failed(message, code=code, traffic=error.traffic is True)
    return part


def _is_failure(line: EngineLine) -> bool:
    """A missed limit of the command line (code 1) leaves a measurement with all its figures."""
    return line.status == "error" and (line.error is None or line.error.code != LIMIT_MISSED)


def _part(line: EngineLine) -> Part:
    """A line of the engine -> its part."""
    if _is_failure(line):
        return _failed(line)
    if line.tool is not None and line.tool.name not in (None, "perch"):
        return _damaged(line, f"perch's line is of the tool {shown(line.tool.name)}")
    if line.status not in ("ok", "error"):
        return _damaged(line, f"perch's line has the status {shown(line.status)}")
    if line.error is not None and line.error.code != LIMIT_MISSED:
        error = encode(line.error).decode()
        return _damaged(line, f"perch's line says ok and has the error {error[:100]}")
    try:
        return _judged(_measured(line), line.error)
    except UnusableError as why:
        return _damaged(line, f"perch's line cannot be used: {why}")


def _judged(part: Part, missed: EngineError | None) -> Part:
    """Corrupted bytes are an error, even in a line that calls itself ok."""
    integrity = part.integrity
    if integrity is not None and integrity.bad_bytes:
        why = f"{integrity.bad_bytes} of {integrity.checked_bytes} bytes arrived corrupted"
        part.status, part.error = "error", failed(why, code=CORRUPTED, traffic=True)
    elif missed is not None:
        part.error = failed(missed.message or "", code=LIMIT_MISSED, traffic=True)
    return part


# ---- all lines -----------------------------------------------------------------------------------


def _read_line(read: tuple[EngineLine, str | None] | None, number: int) -> Part | None:
    """`read`: a line as `decoded` has it."""
    if read is None:
        return failed_part(f"line {number} of its output is not JSON: truncated?", traffic=True)
    line, misfit = read
    if line.kind in NO_RESULTS:
        return None
    if line.schema != SCHEMA:
        why = f"line {number} of its output has schema {shown(line.schema)}"
        return failed_part(why, traffic=True)
    if misfit is not None and not _is_failure(line):
        return _damaged(line, f"line {number} of its output: {misfit}")
    return _part(line)


def _words(line: EngineLine) -> tuple[object, ...]:
    """All that `_part` asks of a line beside its figures."""
    tool, link, params, bandwidth = line.tool, line.link, line.params, line.bandwidth
    return (
        line.schema, line.status, tool and tool.name, line.kind, line.backend,
        line.completion_level, line.connection, line.definition, link and link.layer,
        link and link.mtu_bytes, params and params.mtu_bytes, params and params.clock,
        bandwidth and bandwidth.peak_definition,
    )  # fmt: skip


#: Words of lines that were results, and how many are kept.
_usual: set[tuple[object, ...]] = set()
USUAL_MAX = 4096


def _plain(read: tuple[EngineLine, str | None] | None) -> EngineLine | None:
    """A line of a kind of which many are looked at together."""
    if read is None or read[1] is not None:
        return None
    line = read[0]
    is_plain = (
        line.error is None
        and line.transfer is None
        and line.soak is None
        and not line.intervals
        and line.kind in ("latency", "bandwidth")
    )
    return line if is_plain else None


def _sure(line: EngineLine) -> Part | None:
    """A line whose figures surely hold together, and whose words are usual ones."""
    part = _heading(line)
    part.elapsed_s, part.latency_us, part.bandwidth = (
        line.elapsed_s,
        line.latency_us,
        line.bandwidth,
    )
    part.histogram, part.cpu, part.integrity = line.histogram, line.cpu, line.integrity
    part.tcp, part.loss = line.tcp, line.loss
    try:
        part.stall, part.claims = _stall(line.stall, line.kind), _claims(line.path)
        _check_claims(part)
    except UnusableError:
        return None
    return part


def of_many(outputs: Sequence[bytes]) -> list[list[Part]]:
    """The parts of each of many outputs; most lines are seen to be results all at once."""
    texts = {
        (n, number): text
        for n, output in enumerate(outputs)
        for number, text in enumerate(output.split(b"\n"), start=1)
        if text and not text.startswith(SAMPLE)
    }
    read = {place: decoded(text) for place, text in texts.items()}
    plain = {place: line for place, one in read.items() if (line := _plain(one)) is not None}
    words = {place: _words(line) for place, line in plain.items()}
    sure = dict(zip(plain, surely_results(list(plain.values())), strict=True))
    found: list[list[Part]] = [[] for _ in outputs]
    for place, text in texts.items():
        part = None
        if sure.get(place) and words[place] in _usual:
            part = _sure(plain[place])
            if part is None:
                read[place] = decoded(text)  # as `_sure` has changed it
        if part is None:
            part = _read_line(read[place], place[1])
            is_usual = part is not None and part.status == "ok" and part.error is None
            if is_usual and place in words and len(_usual) < USUAL_MAX:
                _usual.add(words[place])
        if part is not None:
            found[place[0]].append(part)
    return found


def parts(lines: Iterable[bytes]) -> list[Part]:
    """The engine's lines -> parts, in their order."""
    read = (
        _read_line(decoded(line), number)
        for number, line in enumerate(lines, start=1)
        # single samples (--report-all) are by far the longest output
        if line and not line.startswith(SAMPLE)
    )
    return [part for part in read if part is not None]


def exit_code(exit_status: int, words: str) -> int:
    """The engine's exit status is Perch's code already."""
    return exit_status if 1 <= exit_status <= 6 else shell_exit_code(exit_status, words)


TOOL = Tool(
    name="perch",
    read=lambda output: parts(output.stdout.split(b"\n")),
    read_many=of_many,
    exit_code_of=exit_code,
    server_outlives_client=False,
    commands={
        "latency": perch_command.COMMAND,
        "bandwidth": perch_command.COMMAND,
        "transfer": transfer_command.COMMAND,
        "rate": rate_command.COMMAND,
    },
)
