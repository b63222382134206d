"""perch.baseline/1: the figures of an accepted run, which later runs are compared with."""

from __future__ import annotations

from typing import Any

import msgspec

from perch.model.record import Number


class AcceptedFigure(msgspec.Struct, frozen=True):
    """One figure over all repeats: their median (of a maximum the greatest).

    `of`: index of the document's `terms` that it was measured under. `cv_percent`: None of one
    repeat.
    """

    value: Number
    n: int
    better: str
    of: int
    unit: str | None = None
    cv_percent: Number | None = None


class BaselineDocument(msgspec.Struct, kw_only=True):
    """`figures` by key: test/client/server/size/metric. `fabric`: hosts with their devices."""

    schema: str
    run: str
    created: str | None = None
    accepted: str
    label: str | None = None
    forced: str | None = None
    verdict: str | None = None
    fabric: dict[str, Any]
    terms: list[str]
    figures: dict[str, AcceptedFigure]


class Baseline(msgspec.Struct):
    """The accepted run that a run was planned with, or why it cannot be used.

    `given`: whether inputs/baseline.json is there at all.
    """

    document: BaselineDocument | None = None
    fault: str = ""
    given: bool = False
