"""verdict.json with the type of every section, for its schema."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from perch.model.soak import SoakSection
from perch.model.verdict import Check, Verdict


class VerdictDocument(Verdict, kw_only=True):
    """Every check of a run with its limit, the limit's source and its evidence.

    Evidence: flows, flow#size, flow#sizexbatch/pair, hosts. `facts`, `switches`, `documents`,
    `outside` and `soak` are absent where there is nothing of the kind. `files` has the SHA-256 of
    records.jsonl and of a soak's intervals.jsonl, as they were judged.
    """

    schema: Literal["perch.verdict/1"] = "perch.verdict/1"
    checks: Annotated[list[Check], Meta(min_length=1)]
    soak: SoakSection | UnsetType = UNSET  # type: ignore[assignment]  # reports take it as objects
