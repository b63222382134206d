"""perch.baseline/1: the figures of an accepted run, which later runs are compared with."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from perch.model.comparison import FigureKey, RunId, Time
from perch.model.index import Fabric as FabricId
from perch.model.record import Number, Scope
from perch.model.verdict import Word

#: A time without parts of a second: such texts have the order of their times.
Second = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
#: No integer is larger than 64 bits hold.
Value = Annotated[int, Meta(gt=0, le=2**63 - 1)] | Annotated[float, Meta(gt=0)]
Percent = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]


class AcceptedFigure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure over all repeats: their median (of a maximum the greatest).

    `of`: index of the document's `terms` that it was measured under. `cv_percent`: null of one
    repeat.
    """

    value: Value
    n: Annotated[int, Meta(ge=1)]
    better: Literal["higher", "lower"]
    of: Annotated[int, Meta(ge=0)]
    unit: str
    cv_percent: Percent | None


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A device that records showed at a host."""

    device: str
    rate_gbit_s: Number | None
    mtu_bytes: Number | None
    layer: str | None


class FabricHost(msgspec.Struct, forbid_unknown_fields=True):
    fabric: str
    scope: str
    ends: list[End]


class Fabric(msgspec.Struct, forbid_unknown_fields=True):
    """What figures are of. `id`: of suite, limits and hosts, which a plan has before a run."""

    id: FabricId
    suite: str
    limits: str
    scope: Scope
    hosts: Annotated[dict[str, FabricHost], Meta(min_length=1)]


class BaselineDocument(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The figures of an accepted run. A run has the one of its fabric in inputs/baseline.json.

    inputs/history.jsonl has a line for each accepted run of that fabric, oldest first
    (perch.history/1, the same keys). `label`: the site's name for it. `forced`: why it was
    accepted although its verdict is not PASS. `terms`: name=value words that figures must share
    to be compared.
    """

    schema: Literal["perch.baseline/1", "perch.history/1"]
    run: RunId
    created: Time
    accepted: Second
    label: str | None
    forced: str | None
    verdict: Word
    fabric: Fabric
    terms: list[str]
    figures: Annotated[dict[FigureKey, AcceptedFigure], Meta(min_length=1)]


class Baseline(msgspec.Struct):
    """The accepted run that a run was planned with, or why it cannot be used.

    `given`: whether inputs/baseline.json is there at all.
    """

    document: BaselineDocument | None = None
    fault: str = ""
    given: bool = False
