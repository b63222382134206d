"""The type of the engine's JSON lines (`perch ... --json`), and the one decoder of them.

The lines carry a record's key names and units already. A key whose value is null is as one that is
absent; keys that no record has are passed over.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from perch.model.json_keys import repeated_key
from perch.model.record import (
    Bandwidth,
    Cpu,
    Histogram,
    Integrity,
    Interval,
    Latency,
    Link,
    Loss,
    Number,
    Params,
    QueuePair,
    Role,
    Side,
    SoakSummary,
    Tcp,
    Transfer,
)
from perch.model.text import explained


class EngineTool(msgspec.Struct):
    name: str | None = None
    version: str | None = None


class EnginePath(msgspec.Struct):
    """Payload that this size put on the wire, and what of it was lost, warm-up included.

    claimed_bytes: of both ends.
    """

    claimed_bytes: Number | None = None
    client_sent_bytes: Number | None = None
    client_received_bytes: Number | None = None
    lost_bytes: Number | None = None


class EngineError(msgspec.Struct):
    code: int | None = None
    message: str | None = None
    traffic: bool | None = None


class EngineStall(msgspec.Struct):
    longest_s: Number | None = None
    start_s: Number | None = None
    began: str | None = None


class EngineParams(Params):
    """With what a record has in its link alone; None once the two were compared."""

    mtu_bytes: Number | None = None


class EngineLine(msgspec.Struct):
    """A line of `perch ... --json`, as far as a record is made of it."""

    schema: str | None = None
    tool: EngineTool | None = None
    backend: str | None = None
    provider: str | None = None
    simulated: bool | None = None
    environment: dict[str, str] | None = None
    op: str | None = None
    kind: str | None = None
    definition: str | None = None
    completion_level: str | None = None
    connection: str | None = None
    client: Side | None = None
    server: Side | None = None
    link: Link | None = None
    queue_pairs: dict[Role, list[QueuePair]] = {}
    params: EngineParams | None = None
    started: str | None = None
    elapsed_s: Number | None = None
    latency_us: Latency | None = None
    bandwidth: Bandwidth | None = None
    intervals: list[Interval] | None = None
    histogram: Histogram | None = None
    cpu: Cpu | None = None
    path: EnginePath | None = None
    integrity: Integrity | None = None
    transfer: Transfer | None = None
    loss: Loss | None = None
    stall: EngineStall | None = None
    tcp: Tcp | None = None
    soak: SoakSummary | None = None
    status: str | None = None
    error: EngineError | None = None


_decode = msgspec.json.Decoder(EngineLine).decode
_STEP = re.compile(r"\.(\w+)")


def decoded(text: bytes) -> tuple[EngineLine, str | None] | None:
    """A line, and why a part of it was left out; None where the text is no JSON object."""
    try:
        line = _decode(text)
        repeated = repeated_key(text)
        return line, repeated and f"it has the key '{repeated}' twice in one object"
    except msgspec.ValidationError as error:
        return _misfit(text, error)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _in_range(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _misfit(text: bytes, error: msgspec.ValidationError) -> tuple[EngineLine, str] | None:
    """A line with a value of another type: an engine's error must still be shown."""
    try:
        # unlike msgspec's, the library's decoder goes on behind a number that is out of range
        document = json.loads(text, parse_float=_in_range, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return (_without_misfits(document, error), explained(error)) if type(document) is dict else None


def _without_misfits(document: dict[str, Any], error: msgspec.ValidationError) -> EngineLine:
    """The line without the values that do not fit, the first of which `error` names."""
    while True:
        _remove(document, str(error).partition(" - at `$")[2])
        try:
            return msgspec.convert(document, EngineLine)
        except msgspec.ValidationError as next_error:
            error = next_error


def _remove(document: dict[str, Any], path: str) -> None:
    """Removes what lies at a path like ".intervals[0].gbit_s"; of a list, the whole list."""
    *owners, last = _STEP.findall(path.partition("[")[0])
    for owner in owners:
        document = document[owner]
    del document[last]
