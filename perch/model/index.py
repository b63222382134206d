"""perch.index/2: a line of the list of runs."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from perch.model.comparison import Positive, RunId, Time, Words
from perch.model.limits import Severity
from perch.model.record import Scope
from perch.model.verdict import Word

Sizes = Annotated[str, Meta(pattern=r"^([0-9]+(x[0-9]+)?|null)$")]
Records = Annotated[int, Meta(ge=0)]
Fabric = Annotated[str, Meta(pattern=r"^[0-9a-f]{12}$")]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Terms = Annotated[list[Words], Meta(extra_json_schema={"uniqueItems": True})]
#: Each version once, in order.
Versions = Annotated[list[Words], Meta(extra_json_schema={"uniqueItems": True})]


class OfLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The strictest bounds of a test's figure at one size, in its unit.

    Shares of the link's ceiling are converted; shares of peers or of a baseline are left out. Only
    without a required bound does it hold the advisory ones.
    """

    min: Positive | None
    max: Positive | None
    severity: Severity


class OfTest(msgspec.Struct, forbid_unknown_fields=True):
    """The median over all pairs of hosts and repeats, by size in bytes.

    Of transfers by size and batch, 65536x8. `terms`: name=value words that figures must share to be
    compared, each text once. `ceilings`: what the link can carry, in Gb/s. Lines of earlier builds
    have none of these three.
    """

    metric: Literal["latency_us.p50", "bandwidth.gbit_s"]
    unit: Literal["us", "Gb/s"]
    by_size: dict[Sizes, Positive]
    terms: Terms = []
    limits: dict[Sizes, OfLimit] = {}
    ceilings: dict[Sizes, Positive] = {}


class OfHosts(msgspec.Struct, forbid_unknown_fields=True):
    """What ran on the hosts. `firmware`: device and version."""

    engine: Versions
    kernel: Versions
    firmware: Versions


class IndexLine(msgspec.Struct, forbid_unknown_fields=True):
    """runs/index.jsonl has one line for each judged run (perchctl runs).

    Lines of perch.index/1, which Perch 0.1 wrote, stay as they are: they have no medians and
    versions. `folder` is beside the list. `fabric`: the id under which accepted runs of it are
    kept. `digest`: SHA-256 of verdict.json. `accepted`: when this verdict became a baseline;
    `forced`: why, although it is not PASS.
    """

    schema: Literal["perch.index/2"]
    run: RunId
    folder: Words
    created: Time | None
    suite: str | None
    limits: str | None
    fabric: Fabric | None
    scope: Scope
    verdict: Word
    planned: Records | None
    measured: Records | None
    digest: Digest
    accepted: Time | None
    label: str | None
    forced: str | None
    medians: dict[str, OfTest]
    versions: OfHosts
