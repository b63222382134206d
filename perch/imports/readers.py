"""Outputs of each tool -> results, with the client's command where one precedes them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from perch.imports import perftest, records
from perch.imports.output import Argv, Output, Result, placed, refused
from perch.tools import cxi, iperf, iperf3, iperf_csv, mori
from perch.tools.results import UnusableError

#: The results of an output, and its client's command. Raises UnusableError.
Read = Callable[[Output], tuple[list[Result], Argv | None]]


class Reader(NamedTuple):
    """`is_server`: matches a line of a server's output; the figures are in its client's."""

    read: Read
    is_server: re.Pattern[str] | None = None


# ---- iperf ---------------------------------------------------------------------------------------

_IPERF = re.compile("(^|/)iperf( |$)")
_IPERF_CLIENT = re.compile("-c[0-9a-zA-Z]*|--client.*")
_IPERF_UDP = re.compile("Client connecting to .* UDP port |.*datagrams")
_IPERF_BOTH = re.compile(r"\[(\*|FD)")
_IPERF_ROW = re.compile(r"\[ *(?P<id>[0-9]+)\] +[0-9.]+- *[0-9.]+ +sec")
_WHOLE_SECOND = re.compile(r".*- *[0-9]+\.0+ +sec")
_IPERF_CSV = re.compile("[0-9]{8,}|time,srcaddress,")


def _is_iperf_client(argv: Argv) -> bool:
    return any(_IPERF_CLIENT.fullmatch(word) for word in argv)


def _iperf_text(output: Output, argv: Argv | None) -> list[Result]:
    lines = output.lines
    for i, line in enumerate(lines):
        if _IPERF_UDP.match(line):
            return [refused(iperf_csv.UDP, output.line_of(i))]
    if any(_IPERF_BOTH.match(line) for line in lines):
        why = "Perch cannot read bidirectional output of iperf 2"
        return [refused(why, output.line)]
    rows = [(i, found["id"]) for i, line in enumerate(lines) if (found := _IPERF_ROW.match(line))]
    if argv is None and _may_be_interval(lines, rows):
        one = "one line" if len(rows) == 1 else "one line of each stream"
        why = f"its {one} may be an interval, not the total, as no command states the duration"
        return [refused(why, output.line_of(rows[-1][0]))]
    last = max((i for i, line in enumerate(lines) if line.strip()), default=0)
    parts = iperf.parts(lines, [], argv or [], None)
    return [Result(part, output.line_of(last)) for part in parts]


def _may_be_interval(lines: list[str], rows: list[tuple[int, str]]) -> bool:
    """Whether the last line may be the first second and not the total.

    iperf 2 prints one line of each stream without -i, and also when it is cut off after one
    interval. Only a command, which has the duration, would distinguish them.
    """
    ids = [stream for _, stream in rows]
    return (
        bool(rows)
        and len(set(ids)) == len(ids)
        and all(_WHOLE_SECOND.match(lines[i]) for i, _ in rows)
    )


def _iperf(output: Output) -> tuple[list[Result], Argv | None]:
    argv = output.command(_IPERF, _is_iperf_client)
    if not _IPERF_CSV.match(output.lines[0]):
        return _iperf_text(output, argv), argv
    results = []
    for part in iperf_csv.parts(output.lines, None):
        said = part.error.message if part.error else ""
        results.append(Result(part, _said_line(output, said)))
    return results, argv


_SAID_LINE = re.compile("line (?P<n>[0-9]{1,9})")


def _said_line(output: Output, message: str) -> int:
    """The file's line that a message of a reader names."""
    found = _SAID_LINE.search(message)
    return output.line_of(int(found["n"]) - 1 if found else None)


# ---- iperf3 --------------------------------------------------------------------------------------

_IPERF3 = re.compile("(^|/)iperf3( |$)")
_IPERF3_CLIENT = re.compile("-c|--client.*")
_IPERF3_FAULTS = (re.compile(r'\s*"error"\s*:'), re.compile(r'\s*"end"\s*:'))


def _is_iperf3_client(argv: Argv) -> bool:
    return any(_IPERF3_CLIENT.fullmatch(word) for word in argv)


def _iperf3_line(output: Output) -> int:
    """Where the document ends too early; else its own error, or its summary."""
    try:
        json.loads("\n".join(output.lines))
    except ValueError as why:
        stopped = why.lineno if isinstance(why, json.JSONDecodeError) else 1
        return output.line_of(min(stopped, len(output.lines)) - 1)
    except RecursionError:
        return output.line
    for mark in _IPERF3_FAULTS:
        for i, line in enumerate(output.lines):
            if mark.match(line):
                return output.line_of(i)
    return output.line


def _iperf3(output: Output) -> tuple[list[Result], Argv | None]:
    try:
        argv = output.command(_IPERF3, _is_iperf3_client)
    except UnusableError:
        argv = None  # the document has the parameters
    if output.lines[0].startswith("Connecting to host "):
        why = "Perch reads only the JSON of iperf3"
        return [refused(why, output.line)], argv
    parts = iperf3.parts("\n".join(output.lines).encode(), ("TCP", "UDP"))
    return [
        Result(part, output.line if part.status == "ok" else _iperf3_line(output)) for part in parts
    ], argv


# ---- cxi, MORI-IO --------------------------------------------------------------------------------

_CXI = re.compile("(^|/)cxi_(send|write|read|atomic)_(bw|lat)( |$)")
_ADDRESS = re.compile(r"[A-Za-z0-9_-]*\.[A-Za-z0-9_.-]+")


def _is_cxi_client(argv: Argv) -> bool:
    """A client names its server; options with a value are -d, -p, -n and the like."""
    return any(_ADDRESS.fullmatch(word) for word in argv[1:])


def _cxi(output: Output) -> tuple[list[Result], Argv | None]:
    argv = output.command(_CXI, _is_cxi_client)
    return placed(output, cxi.found(output.lines, [], [])), argv


_MORI = re.compile("(^|/)(torchrun|python3?)( |$)")


def _mori(output: Output) -> tuple[list[Result], Argv | None]:
    """Rejects results whose number of batches is in neither configuration nor command."""
    argv = output.command(_MORI, lambda _: True)
    results = placed(output, mori.found(output.lines, argv or []))
    for result in results:
        if result.is_ok and result.part.latency_us and result.part.latency_us.count is None:
            why = "the number of timed batches is unknown without its configuration or command"
            return [refused(why, output.line)], argv
    return results, argv


READERS: Mapping[str, Reader] = {
    "perftest": Reader(perftest.read),
    "iperf": Reader(_iperf, re.compile("Server listening on ")),
    "iperf3": Reader(_iperf3),
    "cxi": Reader(_cxi, re.compile(r"Local \(server\)|See client for results")),
    "mori": Reader(_mori),
    "perch": Reader(records.read),
}
