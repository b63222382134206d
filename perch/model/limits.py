"""perch.limits/1: the bounds that a run is judged by.

A metric is a figure's dotted path in a record (`latency_us.p50`), or a figure that is made of
several: `derived.*` of one record, `agreement.*` of two, `soak.*` of a soak's intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from perch.model.figures import is_finite
from perch.model.record import Bandwidth, Cpu, Latency, Number, Tcp

Severity = Literal["required", "advisory"]

#: What a bound may be relative to.
Relation = Literal["ceiling", "peers", "baseline"]

#: Figures that are made of others of the same record.
DERIVED = (
    "p99_minus_p50_us", "mean_per_median", "stddev_per_median", "max_per_median",
    "retransmissions_per_gb", "stall_s", "loss_ppm",
    "packets_lost_ppm", "packets_retried_ppm", "packets_corrupted_ppm",
)  # fmt: skip
AGREEMENT = ("p50_us", "mean_us", "gbit_s")
SOAK = (
    "gaps", "stall_s", "interval_share", "interval_gbit_s", "window_share", "p99_times", "p99_us",
    "bandwidth_percent", "p50_percent", "p99_percent", "leak_mb_per_hour", "handles_per_hour",
    "rate_percent", "clock_s",
)  # fmt: skip

#: Every figure that a limit may bound.
METRICS = (
    *(f"latency_us.{name}" for name in Latency.__struct_fields__),
    *(f"bandwidth.{name}" for name in Bandwidth.__struct_fields__ if name != "peak_definition"),
    *(f"cpu.{name}" for name in Cpu.__struct_fields__),
    *(f"tcp.{name}" for name in Tcp.__struct_fields__),
    *(f"derived.{name}" for name in DERIVED),
    *(f"agreement.{name}" for name in AGREEMENT),
    *(f"soak.{name}" for name in SOAK),
)

#: What a scope may have, and each key's path in a record.
FACETS = {
    "tool": "tool.name", "backend": "backend", "provider": "provider", "op": "op", "kind": "kind",
    "definition": "definition", "test": "test", "scope": "scope", "client": "client.host",
    "server": "server.host", "layer": "link.layer", "hop_class": "link.hop_class",
    "size_bytes": "params.size_bytes", "completion": "params.completion",
    "queue_pairs": "params.queue_pairs", "batch": "params.batch", "devices": "params.devices",
    "bidirectional": "params.bidirectional", "memory": "memory",
}  # fmt: skip


class LimitBound(msgspec.Struct, frozen=True):
    """`of`: the bounds are shares of this: ceiling, median of comparable pairs, baseline."""

    min: Number | None = None
    max: Number | None = None
    of: Relation | None = None


class Replaced(msgspec.Struct, frozen=True):
    """The set's limit that a site's own stands in place of."""

    file: str = msgspec.field(name="from")
    severity: Severity
    bound: LimitBound
    source: str


class Removed(msgspec.Struct, frozen=True):
    """The site's file that took a limit out of the judging, and why."""

    file: str
    source: str


class Limit(msgspec.Struct, frozen=True):
    """One limit. `scope`: facets of a record, each a value, a list or a range of numbers."""

    id: str
    title: str
    scope: dict[str, Any]
    metric: str
    bound: LimitBound
    unit: str
    source: str
    severity: Severity
    remedy: str
    file: str | None = msgspec.field(name="from", default=None)
    replaces: Replaced | None = None
    removed: Removed | None = None

    @property
    def is_required(self) -> bool:
        return self.severity == "required"

    @property
    def is_agreement(self) -> bool:
        """Judged where two tools' records stand side by side."""
        return self.metric.startswith("agreement.")

    @property
    def is_soak(self) -> bool:
        """Judged on a soak's intervals."""
        return self.metric.startswith("soak.")


class Limits(msgspec.Struct, frozen=True):
    """The limits of a run, or why they cannot be used.

    name: of the set. files: that it was made of, the set's first; () where it does not say so.
    digest: SHA-256 of inputs/limits.json in hexadecimal, "" of limits that were no file.
    """

    limits: tuple[Limit, ...] = ()
    fault: str = ""
    name: str | None = None
    files: tuple[str, ...] = ()
    digest: str = ""


def fits(wanted: Any, value: Any) -> bool:
    """Whether a value is what a scope wants: that value, one of a list, within a range."""
    if isinstance(wanted, list):
        return value in wanted
    if isinstance(wanted, Mapping):
        least, most = wanted.get("min"), wanted.get("max")
        return (
            is_finite(value)
            and (least is None or value >= least)
            and (most is None or value <= most)
        )
    return bool(wanted == value)
