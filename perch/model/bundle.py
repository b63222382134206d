"""perch.bundle/1: what a bundle is of, and what it was made with."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from perch.model.comparison import RunId, Time, Words
from perch.model.index import Digest
from perch.model.record import Scope
from perch.model.verdict import Word

Commit = Annotated[str, Meta(pattern=r"^[0-9a-f]{40}$")]
#: What `jq --version` prints.
JqVersion = Annotated[str, Meta(pattern=r"^jq-")]
HostDocument = Annotated[str, Meta(pattern=r"^raw/[^/]+/(environment|host_check)\.json$")]


class BundleTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`version`: null where no output of the tool names it."""

    name: Words
    version: str | None


class BundleVersions(msgspec.Struct, forbid_unknown_fields=True):
    """`perch_commit`: null outside a checkout. `jq`: null where it is not installed."""

    perch_commit: Commit | None
    jq: JqVersion | None
    tools: list[BundleTool]


class BundleDocument(msgspec.Struct, forbid_unknown_fields=True):
    """bundle.json of a packed run.

    `host_configuration`: SHA-256 of each host's configuration, without readings that differ from
    one moment to the next.
    """

    schema: Literal["perch.bundle/1"]
    run: RunId
    created: Time
    suite: str
    limits: str
    verdict: Word
    scope: Scope
    versions: BundleVersions
    host_configuration: dict[HostDocument, Digest]
