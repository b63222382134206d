"""All checks of a run -> its verdict (perch.verdict/1)."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import polars as pl

from perch.checks import RunView, agreement, comparison, hosts, retries, scope
from perch.checks.coverage import planned_records
from perch.model.sections import AgreementRow
from perch.model.text import one_line
from perch.model.verdict import Check, Coverage, ExpectedRecord, Missing, Verdict, word

_MISSING = (
    "flow", "kind", "status", "params.size_bytes", "params.batch", "transfer.pair", "error.code",
    "error.message",
)  # fmt: skip


def _expected(row: dict[str, Any]) -> ExpectedRecord:
    """A missing record as the plan named it."""
    kind, size = row["kind"], row["params.size_bytes"]
    if kind not in ("transfer", "sum"):
        return {"size_bytes": size}
    named: ExpectedRecord = {"kind": kind, "size_bytes": size, "batch": row["params.batch"]}
    if kind == "transfer":
        named["pair"] = row["transfer.pair"]
    return named


def coverage(run: RunView) -> Coverage:
    """What the plan expects, what was measured, and every record that is missing."""
    ok = pl.col("status") == "ok"
    missing = [
        Missing(
            row["flow"],
            _expected(row),
            row["status"],
            row["error.code"],
            one_line(row["error.message"] or ""),
        )
        for row in run.records.filter(~ok).select(_MISSING).iter_rows(named=True)
    ]
    measured = run.records.height - len(missing)
    return Coverage(planned=planned_records(run.plan), measured=measured, missing=missing)


def assemble(run: RunView, checks: list[Check]) -> Verdict:
    """`checks`: all of the run, in their order."""
    checks = retries.with_excused(run, checks)
    compared = agreement.rows(run.once(agreement.questions), run.limits.limits)
    verdict = Verdict(
        run=one_line(run.plan.run),
        verdict=word(checks),
        scope=scope.weakest_scope(run.plan, run.records),
        coverage=coverage(run),
        checks=checks,
        comparison=run.once(comparison.compared),
        agreement=cast(list[AgreementRow], compared),
    )
    facts = hosts.facts(run)
    optional = {
        "switches": run.switches.rows if run.switches else None,
        "facts": facts or None,
        "outside": retries.outside(run, checks),
        "documents": run.documents if run.documents and run.documents.holds_any else None,
        "soak": run.soak.section if run.soak else None,
    }
    present = {name: value for name, value in optional.items() if value is not None}
    return msgspec.structs.replace(verdict, **present)
