"""What is kept of each flow beside its records: a row a flow, in the plan's order.

Checks compare these with each other: whether the flows of a host followed one another, and whether
an output was counted twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import polars as pl

from perch.model.moments import moment
from perch.model.plan import Flow
from perch.model.raw import End, FlowFiles

#: Bytes of an output's digest: of a million outputs, two share it by chance once in 10^26 runs.
DIGEST_BYTES = 16


class Seen(NamedTuple):
    """One flow. Seconds since the epoch, None where an end did not run; None of an empty output."""

    flow: str
    client_begin: float | None
    client_end: float | None
    server_begin: float | None
    server_end: float | None
    output: str | None


SCHEMA = {
    "flow": pl.String(), "client_begin": pl.Float64(), "client_end": pl.Float64(),
    "server_begin": pl.Float64(), "server_end": pl.Float64(), "output": pl.String(),
}  # fmt: skip


def _times(end: End | str | None) -> tuple[float | None, float | None]:
    if not isinstance(end, End) or end.state != "done":
        return None, None
    return moment(end.started), moment(end.ended)


def seen(flow: Flow, raw: FlowFiles) -> Seen:
    """What both ends left of a flow."""
    output = raw.stdout.strip()
    digest = blake2b(output, digest_size=DIGEST_BYTES).hexdigest() if output else None
    return Seen(flow.id, *_times(raw.client), *_times(raw.server), digest)


def frame(rows: Sequence[Seen]) -> pl.DataFrame:
    """The rows as columns."""
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")
