"""perftest: what its programs print, or write as JSON (--out_json) -> parts, one a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from perch.model.part import Part
from perch.model.record import Number, ToolName
from perch.model.text import explained
from perch.tools.perftest_command import COMMAND
from perch.tools.perftest_figures import measured
from perch.tools.perftest_served import contradiction
from perch.tools.perftest_text import (
    EVENTS,
    GBIT,
    SETTINGS,
    About,
    Columns,
    Row,
    TextRow,
    about,
    about_text,
    header_at,
    mended,
    table,
    title,
)
from perch.tools.results import Found, LineError, UnusableError, told, unusable
from perch.tools.text import lines_of
from perch.tools.tool import (
    HOST_CANNOT,
    PEER_LOST,
    UNUSABLE,
    Connection,
    Tool,
    ToolOutput,
    shell_exit_code,
)

_COMPLAINT = re.compile(
    "fail|error|unable|couldn't|can't|invalid|cannot|not support|refused|unrecognized",
    re.IGNORECASE,
)
# perftest exits 1 whatever happened. 12 and 13: completions whose retries ran out
_PEER = re.compile(
    r"Failed status (12|13)\b|Couldn't connect to|Connection refused|onnection timed out"
    "|Failed to exchange data|Unexpected CM event"
)
_HOST = re.compile(
    "Unable to find the Infiniband/RoCE device|Couldn't get context|not found|Failed to modify QP"
    "|Couldn't allocate|Couldn't create|Couldn't register|exceeds|Permission denied"
    "|Invalid (GID|MTU)|unrecognized option"
)


def _check_argv(argv: Sequence[str]) -> None:
    """-C counts cycles of the processor under a header that says usec."""
    for word in argv:
        if word in ("-C", "--report-cycles"):
            raise UnusableError(f"with {word} its figures are cycles, not usec")


# ---- text ----------------------------------------------------------------------------------------


def _check_columns(run: About, columns: Columns) -> None:
    if run.kind == "bandwidth" and columns.unit is None:
        raise UnusableError("its table has no average bandwidth")
    if run.is_latency and "average_us" not in columns.names:
        raise UnusableError("its table has no latency")


def _text(
    lines: Sequence[str], argv: Sequence[str], server_argv: Sequence[str], complaint: str
) -> Iterator[Found]:
    _check_argv(argv)
    run, read = about_text(lines), table(lines)
    _check_columns(run, read.columns)
    if not read.rows:
        raise LineError("its table is empty", header_at(lines) or 0)
    unit = GBIT[read.columns.unit or "Gb"]

    def found(row: TextRow, *, ended: bool) -> Found:
        try:
            figures = read.columns.row(row.text)
            part = measured(figures, run, argv, server_argv, unit, row.times)
            if not ended:
                raise UnusableError("its table has no end: truncated?")
        except UnusableError as why:
            return unusable(LineError(why, row.line), traffic=True, because=complaint)
        return Found(part, row.line)

    for row in read.rows:
        yield found(row, ended=read.whole or row is not read.rows[-1])


# ---- JSON ----------------------------------------------------------------------------------------


class _Results(msgspec.Struct):
    """Figures of one size: each overwrites the last. Names: REPORT_FMT*_JSON."""

    size: Number | None = msgspec.field(name="MsgSize", default=None)
    iterations: Number | None = msgspec.field(name="n_iterations", default=None)
    min: Number | None = msgspec.field(name="t_min", default=None)
    max: Number | None = msgspec.field(name="t_max", default=None)
    typical: Number | None = msgspec.field(name="t_typical", default=None)
    average_us: Number | None = msgspec.field(name="t_avg", default=None)
    stddev: Number | None = msgspec.field(name="t_stdev", default=None)
    p99: Number | None = msgspec.field(name="percentile_99", default=None)
    p99_9: Number | None = msgspec.field(name="percentile_99.9", default=None)
    transactions: Number | None = msgspec.field(name="tps_average", default=None)
    peak: Number | None = msgspec.field(name="BW_peak", default=None)
    average: Number | None = msgspec.field(name="BW_average", default=None)
    messages: Number | None = msgspec.field(name="MsgRate", default=None)

    def row(self) -> Row:
        return Row(**msgspec.structs.asdict(self))


class _Document(msgspec.Struct):
    test_info: dict[str, Any]
    results: _Results


_document = msgspec.json.Decoder(_Document)


def _decoded(lines: Sequence[str]) -> _Document:
    for text in ("\n".join(lines), mended(lines)):
        try:
            return _document.decode(text.encode())
        except msgspec.ValidationError as misfit:
            raise UnusableError(f"its document does not fit: {explained(misfit)}") from None
        except (msgspec.DecodeError, RecursionError):
            continue
    raise UnusableError("it is not a JSON document: truncated?")


def _json(lines: Sequence[str], argv: Sequence[str], server_argv: Sequence[str]) -> Part:
    """The document has no unit: --report_gbits in the command says it."""
    document = _decoded(lines)
    _check_argv(argv)
    said = {key.replace(" ", "_"): str(value) for key, value in document.test_info.items()}
    settings = {name: said[key] for name in SETTINGS if (key := name.replace(" ", "_")) in said}
    event = EVENTS.replace(" ", "_") in said
    run = about(title(said.get("test", "")), settings, event=event)
    unit = GBIT["Gb" if "--report_gbits" in argv else "MiB"]
    return measured(document.results.row(), run, argv, server_argv, unit)


# ---- queue pairs ---------------------------------------------------------------------------------

_TEST = re.compile(rb"^ +([A-Za-z_ ]+ Test) *$", re.MULTILINE)
_QUEUE_PAIR = {
    side: re.compile(
        rf"^ *{side} address:.* (QPN 0x[0-9a-f]+ PSN 0x[0-9a-f]+)".encode(), re.MULTILINE
    )
    for side in ("local", "remote")
}


def connections(output: bytes) -> frozenset[Connection]:
    """Number and first packet of both queue pairs of each connection, by either end's text.

    Both ends name their test, too.
    """
    own, peers = (_QUEUE_PAIR[side].findall(output) for side in ("local", "remote"))
    test = b" ".join(_TEST.findall(output))
    return frozenset((test + mark, test + peer) for mark, peer in zip(own, peers, strict=False))


# ---- all of it -----------------------------------------------------------------------------------


def _complaint(lines: Sequence[str], errors: Sequence[str]) -> str:
    """perftest's own words where it failed: on either stream, between other lines."""
    words = [line.strip(" \t") for line in (*errors, *lines) if _COMPLAINT.search(line)]
    return "; ".join(dict.fromkeys(words[-2:]))[:300]


def found(
    lines: Sequence[str], errors: Sequence[str], argv: Sequence[str], server_argv: Sequence[str]
) -> list[Found]:
    """A client's output, its standard error, and the commands of both ends -> its results."""
    said = [line for line in lines if line.strip()]
    if not said:
        why = UnusableError("it is empty")
        return [unusable(why, traffic=False, because=_complaint([], errors))]
    is_json = said[0].lstrip(" \t").startswith("{")
    try:
        if is_json:
            return [Found(_json(said, argv, server_argv))]
        return list(_text(lines, argv, server_argv, _complaint(lines, errors)))
    except UnusableError as fault:
        because, header = _complaint(lines, errors), header_at(lines)
        if is_json:
            return [unusable(fault, traffic=True, because=because)]
        # what is at fault: the table, or where it should have been
        at = header if header is not None else len(lines) - 1
        placed = fault if isinstance(fault, LineError) else LineError(fault, at)
        return [unusable(placed, traffic=header is not None, because=because)]


def read(output: ToolOutput) -> list[Part]:
    """What perftest's client printed; only the host's own record of its tools tells the version."""
    flow = output.flow
    lines, errors = lines_of(output.stdout), lines_of(output.stderr)
    parts = told(found(lines, errors, flow.client_argv, flow.server_argv), "perftest")
    for part in parts:
        part.tool = ToolName("perftest", output.version("perftest"))
    return parts


def exit_code(exit_status: int, words: str) -> int:
    """perftest exits 1 whatever happened: its words tell."""
    if exit_status >= 126:
        return shell_exit_code(exit_status, words)
    if _PEER.search(words):
        return PEER_LOST
    return HOST_CANNOT if _HOST.search(words) else UNUSABLE


TOOL = Tool(
    name="perftest",
    read=read,
    exit_code_of=exit_code,
    default_port=18515,
    version_key="perftest",
    connections=connections,
    contradiction=contradiction,
    commands=dict.fromkeys(("latency", "bandwidth"), COMMAND),
)
