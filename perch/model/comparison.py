"""perch.comparison/1: the figures that two judged runs have in common, side by side."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from perch.model.record import Scope
from perch.model.verdict import Word

RunId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")]
#: UTC.
Time = Annotated[
    str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z$")
]
Words = Annotated[str, Meta(min_length=1)]
FigureKey = Annotated[
    str,
    Meta(
        pattern=r"^[^/]+/[^/]+/[^/]+/([0-9]+(x[0-9]+)?|null)/[a-z0-9_]+\.[a-z0-9_]+$",
        description="test/client/server/size_bytes/metric; of transfers the size has the batch "
        "beside it, 65536x8; null: the tool names no size",
    ),
]
#: Integers and floats have bounds of their own in a schema.
Positive = Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)]
NotNegative = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
#: A figure cannot become less than nothing.
Change = Annotated[int, Meta(ge=-100)] | Annotated[float, Meta(ge=-100)]


class Range(msgspec.Struct, forbid_unknown_fields=True):
    """Of 95 %, in the figure's unit.

    Repeats tell how runs differ; a latency's samples and the intervals of a stream only what
    happened within one.
    """

    low: NotNegative
    high: Positive
    of: Literal["repeats", "samples", "intervals"]


class Named(msgspec.Struct, forbid_unknown_fields=True):
    """One of the two runs."""

    run: RunId
    created: Time | None
    verdict: Word
    scope: Scope


class Row(msgspec.Struct, forbid_unknown_fields=True):
    """A figure of both runs.

    An interval is null where there was one value, or where the figure is an extreme.
    `change_percent` is of B against A; `words`: what may be said of it.
    """

    figure: FigureKey
    unit: str | None
    better: Literal["higher", "lower"]
    a: Positive
    a_interval: Range | None
    b: Positive
    b_interval: Range | None
    change_percent: Change
    words: Literal[
        "no interval: one value",
        "no interval: an extreme",
        "no difference seen",
        "better",
        "worse",
        "better, within these two runs",
        "worse, within these two runs",
    ]


class Refused(msgspec.Struct, forbid_unknown_fields=True):
    """A figure that was measured otherwise in the two runs, and so not compared."""

    figure: FigureKey
    reason: Words


class Comparison(msgspec.Struct, forbid_unknown_fields=True):
    """What perchctl compare says of the figures that two judged runs have in common.

    `method`: how the intervals were made, in words.
    """

    schema: Literal["perch.comparison/1"]
    a: Named
    b: Named
    method: Words
    rows: list[Row]
    refused: list[Refused]
    only_a: list[FigureKey]
    only_b: list[FigureKey]
