"""perch.verdict/1: every check with what was measured, its limit, its source and its evidence."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from perch.model.imported import Documents
from perch.model.record import Scope

CheckStatus = Literal["pass", "fail", "inconclusive", "advisory", "not_judged"]
Word = Literal["PASS", "FAIL", "INCONCLUSIVE"]

#: A check names the first offenders; coverage.missing lists every one.
EVIDENCE_MAX = 20


class Bound(msgspec.Struct, frozen=True):
    min: float | int | None = None
    max: float | int | None = None


class Check(msgspec.Struct, kw_only=True):
    """One finding. Every key is always there: `null` says that there is no such thing."""

    id: str
    title: str
    status: CheckStatus
    measured: str | float | int | None = None
    limit: Bound | None = None
    unit: str | None = None
    source: str | None = None
    evidence: list[str] = []
    remedy: str | None = None


def word(checks: list[Check]) -> Word:
    """A failure outranks what could not be judged."""
    statuses = {check.status for check in checks}
    if "fail" in statuses:
        return "FAIL"
    return "INCONCLUSIVE" if "inconclusive" in statuses else "PASS"


class Missing(msgspec.Struct):
    flow: str
    expect: dict[str, Any]
    status: str
    code: int | None
    message: str | None


class Coverage(msgspec.Struct):
    planned: int
    measured: int
    missing: list[Missing]


class Verdict(msgspec.Struct, kw_only=True):
    """The sections from `comparison` on are made by perch.checks and perch.soak."""

    schema: str = "perch.verdict/1"
    run: str
    verdict: Word
    scope: Scope
    coverage: Coverage
    checks: list[Check]
    comparison: dict[str, Any]
    agreement: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    switches: list[Any] | msgspec.UnsetType = msgspec.UNSET
    facts: Any = msgspec.UNSET
    outside: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    documents: Documents | msgspec.UnsetType = msgspec.UNSET
    soak: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
