"""perch.limits/1: the bounds that a run is judged by.

A metric is a figure's dotted path in a record (`latency_us.p50`), or a figure that is made of
several: `derived.*` of one record, `agreement.*` of two, `soak.*` of a soak's intervals.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from perch.model.record import Number

Severity = Literal["required", "advisory"]

#: What a bound may be relative to.
Relation = Literal["ceiling", "peers", "baseline"]


class LimitBound(msgspec.Struct, frozen=True):
    """`of`: the bounds are shares of the link's ceiling, of like flows' median, of the baseline."""

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
    """The limits of a run, or why they cannot be used."""

    limits: tuple[Limit, ...] = ()
    fault: str = ""
