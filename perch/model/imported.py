"""What documents say beside their outputs: stages of one measurement, and words about switches."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

NotNegative = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
Measure = Literal["utilisation", "bandwidth", "packets", "drops", "errors", "pause", "ecn"]


class Stage(msgspec.Struct):
    """One of several outputs of the same command. `title`: the heading that tells it apart."""

    test: str
    title: str


class Stages(msgspec.Struct):
    """In the document's order. `title`: the heading that they share, or the file."""

    title: str
    stages: Annotated[list[Stage], Meta(min_length=2)]


class Stated(msgspec.Struct, omit_defaults=True):
    """A figure of a switch in a person's words; Perch read no switch.

    `switch`: the heading that names it. `part`: the queue or port that it is of. `name`: what the
    document calls the figure. `low` and `high` are one number unless it is a range, in `unit` (%,
    Mb/s, packets/s, or "" for a count); `about`: the document says so. `place`: file and line.
    """

    switch: str
    name: str
    measure: Measure
    low: NotNegative
    high: NotNegative
    place: Annotated[str, Meta(pattern="^raw/import/[^/]+:[1-9][0-9]*$")]
    part: str = ""
    unit: Annotated[str, Meta(extra_json_schema={"enum": ["%", "Mb/s", "packets/s"]})] = ""
    about: Annotated[bool, Meta(extra_json_schema={"const": True})] = False

    @property
    def figure(self) -> str:
        """`about 100 %`, `7,854 to 9,979 Mb/s`, `0`."""
        numbers = [f"{one:,}" for one in dict.fromkeys((self.low, self.high))]
        return f"{'about ' if self.about else ''}{' to '.join(numbers)} {self.unit}".rstrip()

    @property
    def words(self) -> str:
        """With its name and what it is of."""
        of = f" of {self.part}" if self.part else ""
        return f"{self.name}{of}: {self.figure}"


class Documents(msgspec.Struct):
    stages: list[Stages] = []
    switches: list[Stated] = []

    @property
    def holds_any(self) -> bool:
        return bool(self.stages or self.switches)
