"""MORI-IO's benchmark -> parts, one for each row of its tables.

Columns and their units come from each table's own header. Formats and definitions: ROCm/mori,
tests/python/io/benchmark.py. MB and GB are 10^6 and 10^9 bytes. The highest bandwidth is bytes over
the fastest batch, the average is bytes over the mean time of a batch; neither includes the time
between batches. Each row must fit that: with GB of 2^30 bytes it would be off by 7 %.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from perch.model.figures import rounded
from perch.model.part import Part
from perch.model.record import Bandwidth, Latency, Number, Params, ToolName, Transfer
from perch.tools.results import (
    IMPOSSIBLE_GBIT_S,
    Found,
    LineError,
    UnusableError,
    positive,
    shown,
    told,
    unusable,
)
from perch.tools.text import figure, lines_of, option_value
from perch.tools.tool import Tool, ToolOutput

#: Half of the last printed decimal, and a little for the rounding of floating-point numbers.
HALF = 0.005 + 1e-9

TITLES = {
    "MsgSize (B)": "size",
    "BatchSize": "batch",
    "TotalSize (MB)": "total",
    "Max BW (GB/s)": "peak",
    "Avg Bw (GB/s)": "average",
    "Min Lat (us)": "min",
    "Avg Lat (us)": "mean",
}

# other lines are its configuration, or logs of torch and of the network library
_OF_TABLE = re.compile(r"[ \t]*[+|]")
_RULE = re.compile(r"[ \t]*\+[-+]+\+[ \t\r]*")
_RANK = re.compile("Initiator Rank (?P<n>[0-9]{1,18})")
_TITLE = re.compile(r"Initiator Rank")
_CELL = re.compile(r"[0-9]+(\.[0-9]+)?")
_SETTING = re.compile(
    "(?P<name>op_type|num_initiator_dev|transfer_batch_size|enable_batch_transfer|enable_sess"
    "|num_qp_per_transfer|num_worker_threads|poll_cq_mode|iters):(?P<value>.*)"
)
_JOINED = re.compile("(?P<option>--[a-z_-]+)=(?P<value>.*)")
_COUNT = re.compile("[1-9][0-9]{0,17}")


# ---- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """Figures as printed: bytes, MB, GB/s, microseconds."""

    line: int
    size: Number
    total: Number
    peak: Number
    average: Number
    min: Number
    mean: Number
    batch: Number | None = None


@dataclass(slots=True)
class _Table:
    rank: int
    names: tuple[str, ...] = ()
    rows: list[_Row] = field(default_factory=list)


def _cells(line: str) -> list[str]:
    text = line.strip(" \t\r")
    if not text.endswith("|"):
        raise UnusableError("it has no end: truncated?")
    return [cell.strip(" \t") for cell in text.removeprefix("|")[:-1].split("|")]


def _rank(line: str) -> int:
    found = _RANK.fullmatch(_cells(line)[0])
    if found is None:
        raise UnusableError('the title "Initiator Rank N" is missing here')
    return int(found["n"])


def _names(line: str) -> tuple[str, ...]:
    cells = _cells(line)
    for title in cells:
        if title not in TITLES:
            raise UnusableError(f"it has the unknown column {shown(title)}")
    missing = [title for title in TITLES if title not in cells and title != "BatchSize"]
    if missing:
        raise UnusableError(f"it lacks the column {', '.join(missing)}")
    if len(set(cells)) != len(cells):
        raise UnusableError("a column occurs twice")
    return tuple(TITLES[title] for title in cells)


def _figure(cell: str, name: str) -> Number:
    title = next(title for title, known in TITLES.items() if known == name)
    value = figure(cell, title)
    if _CELL.fullmatch(cell) is None:
        raise UnusableError(f"{title} is {shown(cell)}, which is not a number")
    return value


def _row(line: str, names: Sequence[str], i: int) -> _Row:
    cells = _cells(line)
    if len(cells) != len(names):
        counts = f"{len(cells)} figures under {len(names)} columns"
        raise UnusableError(f"it has {counts}: truncated?")
    figures = {name: _figure(cell, name) for name, cell in zip(names, cells, strict=True)}
    return _Row(line=i, **figures)


class _Reader:
    """Reads the lines of tables one after another; `expected`: the kind of the next line."""

    AFTER_RULE = {"rule under the title": "header", "rule under the header": "row"}

    def __init__(self) -> None:
        self.tables: list[_Table] = []
        self.expected = ""

    def rule(self) -> None:
        if not self.expected:
            self.expected = "title"
        elif self.expected == "row" and self.tables[-1].rows:
            self.expected = ""
        elif self.expected in self.AFTER_RULE:
            self.expected = self.AFTER_RULE[self.expected]
        else:
            raise UnusableError(f"a {self.expected} was expected here")

    def words(self, line: str, i: int) -> None:
        if self.expected == "title":
            self.tables.append(_Table(_rank(line)))
            self.expected = "rule under the title"
        elif self.expected == "header":
            self.tables[-1].names = _names(line)
            self.expected = "rule under the header"
        elif self.expected == "row":
            table = self.tables[-1]
            table.rows.append(_row(line, table.names, i))
        elif self.expected:
            raise UnusableError(f"a {self.expected} was expected here")
        else:
            raise UnusableError("it is outside of a table")


def _tables(lines: Sequence[str]) -> list[_Table]:
    reader = _Reader()
    for i, line in enumerate(lines):
        if not _OF_TABLE.match(line):
            continue
        try:
            if _RULE.fullmatch(line):
                reader.rule()
            else:
                reader.words(line, i)
        except UnusableError as why:
            raise LineError(why, i) from None
    if reader.expected:
        raise UnusableError("its last table has no end: truncated?")
    if not reader.tables:
        raise UnusableError("it has no table of results: truncated?")
    return reader.tables


# ---- settings ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Settings:
    """None: neither its configuration nor its command states it."""

    op: str | None
    devices: int | None
    batch: int | None
    batched: bool | None
    session: bool | None
    queue_pairs: int | None
    threads: int | None
    completion: str | None
    iterations: int | None


def _configured(lines: Sequence[str]) -> dict[str, str]:
    """The configuration, which each initiator prints; all must be the same."""
    said: dict[str, str] = {}
    for line in lines:
        found = _SETTING.match(line.lstrip(" "))
        if found is None:
            continue
        name, value = found["name"], found["value"].strip(" \t\r")
        if value and said.setdefault(name, value) != value:
            raise UnusableError(f"its initiators differ in {name}: {said[name]}, {value}")
    return said


def _words(argv: Sequence[str]) -> list[str]:
    """The words of a command; `--op-type=write` is two."""
    words: list[str] = []
    for word in argv:
        found = _JOINED.fullmatch(word)
        words += [found["option"], found["value"]] if found else [word]
    return words


def _settings(lines: Sequence[str], argv: Sequence[str]) -> _Settings:
    """From its configuration, else from its command with the benchmark's own defaults.

    The default number of queue pairs differs between versions, so it has none here.
    """
    said, words = _configured(lines), _words(argv)

    def value(name: str, option: str, default: str | None) -> str | None:
        asked = option_value(words, (option,)) or (default if words else None)
        return said.get(name) or asked

    def count(name: str, option: str, default: str | None) -> int | None:
        text = value(name, option, default)
        if text is not None and not _COUNT.fullmatch(text):
            raise UnusableError(f"{name} is {shown(text)}, which is not a whole number above 0")
        return None if text is None else int(text)

    def flag(name: str, option: str) -> bool | None:
        if name in said:
            return said[name] == "True"
        return option in words if words else None

    return _Settings(
        op=value("op_type", "--op-type", "read"),
        devices=count("num_initiator_dev", "--num-initiator-dev", "1"),
        batch=count("transfer_batch_size", "--transfer-batch-size", None),
        batched=flag("enable_batch_transfer", "--enable-batch-transfer"),
        session=flag("enable_sess", "--enable-sess"),
        queue_pairs=count("num_qp_per_transfer", "--num-qp-per-transfer", None),
        threads=count("num_worker_threads", "--num-worker-threads", "1"),
        completion=_completion(value("poll_cq_mode", "--poll_cq_mode", "polling")),
        iterations=count("iters", "--iters", "128"),
    )


def _completion(mode: str | None) -> str | None:
    if mode is None:
        return None
    for word, completion in (("polling", "busy"), ("event", "event")):
        if word in mode.lower():
            return completion
    raise UnusableError(f"poll_cq_mode is {shown(mode)}, neither polling nor event")


# ---- figures -------------------------------------------------------------------------------------


def _batch(table: _Table, settings: _Settings) -> int | None:
    """The batch of all rows; None where the table has a column for it.

    Without a setting it follows from TotalSize of the largest row, if rounding leaves one number.
    """
    if "batch" in table.names:
        return None
    if settings.batch is not None:
        return settings.batch
    row = max(table.rows, key=lambda row: row.size)
    if row.size > 0:
        least = math.ceil((row.total - HALF) * 1e6 / row.size)
        if least >= 1 and least == math.floor((row.total + HALF) * 1e6 / row.size):
            return least
    raise UnusableError(
        "its batch is unknown: no column, configuration or command states it, and TotalSize is "
        "too small"
    )


def _check_rate(name: str, size: float, us: float, gbyte_s: float) -> None:
    least = size / (us + HALF) / 1e3 - HALF
    most = size / max(us - HALF, 1e-9) / 1e3 + HALF
    if not least <= gbyte_s <= most:
        said = f"{shown(size)} bytes in {shown(us)} us are {shown(rounded(size / us / 1e3))}"
        raise UnusableError(f"{name} is {shown(gbyte_s)} GB/s, but {said}")


def _check(row: _Row, size: float) -> None:
    """Checks that the row's figures fit a batch of `size` bytes."""
    low, mean = positive(row.min, "Min Lat"), positive(row.mean, "Avg Lat")
    if low > mean:
        raise UnusableError("Min Lat is above Avg Lat")
    if abs(size / 1e6 - row.total) > HALF:
        batch = f"a batch has {shown(size)} bytes"
        raise UnusableError(f"TotalSize is {shown(row.total)} MB, but {batch}")
    _check_rate("Max BW", size, low, row.peak)
    _check_rate("Avg Bw", size, mean, row.average)
    if row.average * 8 > IMPOSSIBLE_GBIT_S:
        raise UnusableError(f"bandwidth of {shown(row.average)} GB/s is impossible")


def _gbit_s(size: float, us: float, gbyte_s: float) -> Number:
    """Below 1 GB/s two decimals are 0.5 % and coarser, so the rate is computed from the time."""
    return positive(gbyte_s * 8 if gbyte_s >= 1 else size * 8 / us / 1e3, "GB/s")


def _measured(row: _Row, rank: int, batch: Number | None, settings: _Settings) -> Part:
    length = positive(row.size, "MsgSize")
    messages = positive(row.batch if batch is None else batch, "BatchSize")
    size, n, devices = int(length * messages), settings.iterations, settings.devices
    _check(row, size)
    return Part(
        op=settings.op,
        kind="transfer",
        definition="batch_completion",
        params=Params(
            size_bytes=int(length),
            batch=int(messages),
            iterations=n,
            queue_pairs=settings.queue_pairs,
            threads=settings.threads,
            devices=devices,
            bidirectional=False,
            completion=settings.completion,
            consecutive=None if settings.batched is None else not settings.batched,
            session=settings.session,
        ),
        elapsed_s=None if n is None else rounded(n * row.mean / 1e6),
        latency_us=Latency(count=n, min=rounded(row.min), mean=rounded(row.mean)),
        bandwidth=Bandwidth(
            gbit_s=_gbit_s(size, row.mean, row.average),
            peak_gbit_s=_gbit_s(size, row.min, row.peak),
            peak_definition="fastest_batch",
            messages_per_s=rounded(messages / row.mean * 1e6),
            bytes=None if n is None else n * size,
        ),
        transfer=Transfer(
            pair=rank,
            pairs=devices,
            batches=n,
            completed=None if n is None else n * int(messages),
            asked=None if n is None else n * int(messages),
            batch_bytes=size,
        ),
    )


# ---- reading -------------------------------------------------------------------------------------


def _rows(lines: Sequence[str], argv: Sequence[str]) -> list[Found]:
    settings = _settings(lines, argv)
    results: list[Found] = []
    for table in _tables(lines):
        batch = _batch(table, settings)
        for row in table.rows:
            try:
                part = _measured(row, table.rank, batch, settings)
                results.append(Found(part, row.line))
            except UnusableError as why:
                results.append(unusable(LineError(why, row.line), traffic=True))
    return results


def found(lines: Sequence[str], argv: Sequence[str]) -> list[Found]:
    """The benchmark's output, and its command if it is known -> its results."""
    if not any(line.strip() for line in lines):
        return [unusable(UnusableError("it is empty"), traffic=False)]
    try:
        return _rows(lines, argv)
    except UnusableError as why:
        return [unusable(why, traffic=any(_TITLE.search(line) for line in lines))]


def read(output: ToolOutput) -> list[Part]:
    """The parts of the benchmark's output, which does not name its version."""
    parts = told(found(lines_of(output.stdout), output.flow.client_argv), "MORI-IO")
    for part in parts:
        part.tool = ToolName("mori")
    return parts


TOOL = Tool(name="mori", read=read)
