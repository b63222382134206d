"""The engine's lines, and records of other runs (records.jsonl)."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from perch.imports.output import Output, Result, refused
from perch.model.part import Part
from perch.model.record import Latency, Record
from perch.model.text import explained
from perch.tools import perch
from perch.tools.results import (
    UnusableError,
    check_rate,
    natural_or_none,
    positive,
    positive_or_none,
)

#: perch.record/1 had a key for everything: null was what is left out now.
FIRST = "perch.record/1"

#: Rates and sizes of one record are rounded each by itself.
TOLERANCE = 0.02

_FLOW = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){3,4}")
_SHARED = [
    name
    for name in Part.__struct_fields__
    if name in Record.__struct_fields__ and name not in ("status", "error")
]


# ---- records -------------------------------------------------------------------------------------


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return [_without_nulls(one) for one in value]
    return value


def _record(document: dict[str, Any]) -> Record:
    """A record of either version. Raises UnusableError."""
    if document.get("schema") == FIRST:
        counts = (document.get("events") or {}).get("counts") or {}
        document = {"rail": 0, **_without_nulls(document)}
        if "events" in document:
            document["events"]["reset"] = [name for name, n in counts.items() if n is None]
    try:
        return msgspec.convert(document, Record)
    except msgspec.ValidationError as misfit:
        raise UnusableError(explained(misfit)) from None


def _check_latency(times: Latency) -> None:
    for name in Latency.__struct_fields__:
        check = natural_or_none if name == "stddev" else positive_or_none
        check(getattr(times, name), f"latency_us.{name}")
    if not times.is_ordered:
        raise UnusableError("its percentiles are out of order")
    # a mean is of a histogram's buckets, or has two decimals (tools/perch.py, tools/perftest.py)
    mean = positive(times.mean, "latency_us.mean")
    if times.min is not None and mean < times.min * 0.999 - 0.01:
        raise UnusableError("its mean lies below its least")


def _check_figures(record: Record) -> None:
    """A record's figures must hold together as a tool's; what it proved there is not here."""
    elapsed_s = positive_or_none(record.elapsed_s, "elapsed_s")
    times, bandwidth = record.latency_us, record.bandwidth
    if times is None and bandwidth is None:
        raise UnusableError("it has no figures")
    if times is not None:
        _check_latency(times)
    if bandwidth is not None:
        positive(bandwidth.gbit_s, "bandwidth.gbit_s")
        if bandwidth.bytes and elapsed_s and record.kind not in ("transfer", "sum"):
            check_rate(bandwidth, elapsed_s, TOLERANCE)


def _of_record(document: dict[str, Any], line: int) -> Result:
    try:
        record = _record(document)
        if not _FLOW.fullmatch(record.flow) or not record.client.host or not record.server.host:
            raise UnusableError("it has no flow, hosts or tool")
        if record.status != "ok" or record.error is not None:
            why = record.error.message if record.error else record.status
            return refused(f"the record is of what was not measured: {why}", line)
        _check_figures(record)
    except UnusableError as why:
        return refused(f"the record cannot be used: {why}", line)
    return Result(Part(**{name: getattr(record, name) for name in _SHARED}), line, record)


# ---- all lines -----------------------------------------------------------------------------------


def _of_line(text: str, line: int) -> list[Result]:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        document = None
    if isinstance(document, dict) and "flow" in document:
        return [_of_record(document, line)]
    results = [Result(part, line) for part in perch.parts([text.encode(errors="replace")])]
    for result in results:
        if result.part.error is not None:
            message = result.part.error.message.replace("line 1 of its output", "the line", 1)
            result.part.error.message = message
    return results


def read(output: Output) -> tuple[list[Result], None]:
    """A result for each line; the engine's lines have no command."""
    results = []
    for text, line in zip(output.lines, output.at, strict=True):
        results += _of_line(text, line)
    return results, None
