"""What is kept of each flow beside its records: a row a flow, in the plan's order.

Checks compare these with each other: whether the flows of a host followed one another, and whether
an output was counted twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

import polars as pl

from perch.judge.outcome import WORDS_WITHIN, last_words
from perch.model.plan import Flow
from perch.model.raw import End, FlowFiles

#: Bytes of an output's digest: of a million outputs, two share it by chance once in 10^26 runs.
DIGEST_BYTES = 16

#: What tools say on standard error of measurements that went well: the engine its choices, perftest
#: what it does without (`perftest/src`: inline on unknown devices, a clock that it cannot fit).
_USUAL = re.compile(
    rb"perch: |Device not recognized to implement inline feature|Correlation coefficient r\^2"
    rb"|Conflicting CPU frequency values|\s*$"
)


class Seen(NamedTuple):
    """One flow. Seconds since the epoch, None where an end did not run; None of an empty output.

    `..._ns`: by the monotonic clock of the host's boot.

    `said`: last words of a client that exited 0, or of its server, which neither tool nor agent
    has for a measurement that went well.
    """

    flow: str
    client_begin: float | None
    client_end: float | None
    server_begin: float | None
    server_end: float | None
    output: str | None
    said: str | None = None
    client_begin_ns: int | None = None
    client_end_ns: int | None = None
    server_begin_ns: int | None = None
    server_end_ns: int | None = None


SCHEMA = {
    "flow": pl.String(), "client_begin": pl.Float64(), "client_end": pl.Float64(),
    "server_begin": pl.Float64(), "server_end": pl.Float64(), "output": pl.String(),
    "said": pl.String(), "client_begin_ns": pl.Int64(), "client_end_ns": pl.Int64(),
    "server_begin_ns": pl.Int64(), "server_end_ns": pl.Int64(),
}  # fmt: skip


def _times(end: End | None) -> tuple[float | None, float | None]:
    if end is None or end.state != "done":
        return None, None
    return end.begun, end.over


def _counted(end: End | None) -> tuple[int | None, int | None]:
    if end is None or end.state != "done":
        return None, None
    return end.begun_ns, end.over_ns


def _said(raw: FlowFiles) -> str | None:
    if raw.client is None or raw.client.exit != 0:
        return None
    return _unusual(raw.stderr) or _served(raw)


def _served(raw: FlowFiles) -> str | None:
    """A server that its agent ended may have said that."""
    server = raw.server
    if server is None or server.state != "done":
        return None
    words = server.message or (None if server.signal else _unusual(raw.server_stderr))
    return f"server: {words}" if words else None


@lru_cache(maxsize=256)  # most ends say the same, or nothing
def _unusual(stderr: bytes) -> str | None:
    lines = stderr[-WORDS_WITHIN:].splitlines(keepends=True)
    return last_words(b"".join(line for line in lines if not _USUAL.match(line))) or None


def seen(flow: Flow, raw: FlowFiles) -> Seen:
    """What both ends left of a flow."""
    output = raw.stdout.strip()
    digest = sha256(output).digest()[:DIGEST_BYTES].hex() if output else None
    times = *_times(raw.client), *_times(raw.server)
    counted = *_counted(raw.client), *_counted(raw.server)
    return Seen(flow.id, *times, digest, _said(raw), *counted)


def frame(rows: Sequence[Seen]) -> pl.DataFrame:
    """The rows as columns."""
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
