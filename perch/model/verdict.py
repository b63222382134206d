"""perch.verdict/1: every check with what was measured, its limit, its source and its evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, NotRequired, Protocol, TypedDict

import msgspec
from msgspec import Meta

from perch.model.imported import Documents
from perch.model.record import Scope
from perch.model.sections import AgreementRow, ComparisonSection, Fact, Outside, Switch

CheckStatus = Literal["pass", "fail", "inconclusive", "advisory", "not_judged"]
Word = Literal["PASS", "FAIL", "INCONCLUSIVE"]

#: A check names the first offenders; coverage.missing lists every one.
EVIDENCE_MAX = 20


class Bound(msgspec.Struct, frozen=True):
    min: float | int | None = None
    max: float | int | None = None


class Check(msgspec.Struct, kw_only=True):
    """One finding. Every key but `fault` is always there; `null` says that there is no such thing.

    title: a claim that is true when the check passes. fault: the words for when it is not.
    """

    id: str
    title: str
    fault: str | msgspec.UnsetType = msgspec.UNSET
    status: CheckStatus
    measured: str | float | int | None = None
    limit: Bound | None = None
    unit: str | None = None
    source: str | None = None
    evidence: Annotated[list[str], Meta(max_length=50)] = []
    remedy: str | None = None

    @property
    def headline(self) -> str:
        """The words for what was found: "Repeats differ" in place of "Repeats agree"."""
        return self.title if self.fault is msgspec.UNSET else self.fault


#: The fault of `limits/set` where a site's own file asks less than the set.
LOOSENED = "The site loosened required limits of the set"


def loosened(checks: Iterable[Check]) -> str:
    """`loosened by the site: 3 required limits removed, 1 weakened`; empty where none is."""
    found = (one for one in checks if one.id == "limits/set" and one.fault == LOOSENED)
    return next((str(one.measured).partition(";")[0] for one in found), "")


class HasStatus(Protocol):
    """A check, or what was read of one."""

    @property
    def status(self) -> CheckStatus: ...


def word(checks: Iterable[HasStatus]) -> Word:
    """A failure outranks what could not be judged."""
    statuses = {check.status for check in checks}
    if "fail" in statuses:
        return "FAIL"
    return "INCONCLUSIVE" if "inconclusive" in statuses else "PASS"


#: SHA-256, hexadecimal.
Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]

#: test/client/server/rail/repeat; also a path under raw/<host>/flows/.
FlowId = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){4}$")
]


class ExpectedRecord(TypedDict):
    """A record as the plan named it. The keys beside the size are those of transfers."""

    kind: NotRequired[Literal["transfer", "sum"]]
    size_bytes: Annotated[int, Meta(ge=0)] | None
    batch: NotRequired[Annotated[int, Meta(ge=1)]]
    pair: NotRequired[Annotated[int, Meta(ge=0)]]


class Missing(msgspec.Struct):
    flow: FlowId
    expect: ExpectedRecord
    status: Literal["error", "not_measured"]
    code: Annotated[int, Meta(ge=0)] | None
    message: str


class Coverage(msgspec.Struct):
    planned: Annotated[int, Meta(ge=0)]
    measured: Annotated[int, Meta(ge=0)]
    missing: list[Missing]


class Verdict(msgspec.Struct, kw_only=True):
    """`soak` is a perch.model.soak.SoakSection as objects; perch.model.sections has the others.

    files: the digests of records.jsonl and a soak's intervals.jsonl, as they were judged.
    """

    schema: str = "perch.verdict/1"
    run: str
    verdict: Word
    scope: Scope
    coverage: Coverage
    files: dict[str, Digest] | msgspec.UnsetType = msgspec.UNSET
    checks: list[Check]
    comparison: ComparisonSection
    agreement: list[AgreementRow] | msgspec.UnsetType = msgspec.UNSET
    switches: list[Switch] | msgspec.UnsetType = msgspec.UNSET
    facts: list[Fact] | msgspec.UnsetType = msgspec.UNSET
    outside: Outside | msgspec.UnsetType = msgspec.UNSET
    documents: Documents | msgspec.UnsetType = msgspec.UNSET
    soak: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
