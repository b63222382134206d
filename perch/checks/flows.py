"""How flows ended, and whether their payload arrived as it was sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import polars as pl

from perch.checks import RunView, check, design, first
from perch.checks.remedies import AT_HOSTS, IMPORTED, for_code, for_origin, for_soak
from perch.judge.planned import is_imported
from perch.model.verdict import EVIDENCE_MAX, Bound, Check

_COLUMNS = (
    "row",
    "id",
    "flow",
    "test",
    "status",
    "has.error",
    "error.code",
    "error.message",
    "error.traffic",
    "error.about",
)


_FAULTS = {"fail": "Flow failed", "inconclusive": "Flow was not measured"}


def outcome(code: int | None, *, traffic: bool) -> Literal["fail", "inconclusive"]:
    """FAIL: a missed limit (1), corruption (5), a peer lost after traffic had begun (4).

    All else kept it from being measured.
    """
    failed = code in (1, 5) or (code == 4 and traffic)
    return "fail" if failed else "inconclusive"


def _flow(rows: list[dict[str, Any]], soak_state: str | None, *, imported: bool) -> Check:
    """One finding a flow; a failure outranks what merely kept later sizes from being measured."""
    outcomes = [outcome(row["error.code"], traffic=bool(row["error.traffic"])) for row in rows]
    at = outcomes.index("fail") if "fail" in outcomes else 0
    code, message = rows[at]["error.code"], rows[at]["error.message"] or ""
    client, server = (*rows[at]["flow"].split("/"), "", "")[1:3]
    named = code in (None, 0) or message.startswith("exit")
    return Check(
        id=f"flow/{rows[0]['flow']}",
        title=f"Flow {rows[0]['flow']}",
        fault=f"{_FAULTS[outcomes[at]]}: {rows[0]['flow']}",
        status=outcomes[at],
        measured=message if named else f"code {code}: {message}",
        evidence=[row["id"] for row in rows[:EVIDENCE_MAX]],
        remedy=(for_soak(soak_state) if code is None else None)
        or for_origin(rows[at]["error.about"], client, server)
        or (IMPORTED if imported and code in AT_HOSTS else for_code(code, client, server)),
    )


@check(family="flow", order=80, columns=_COLUMNS, source=design("exit codes"))
def flows(run: RunView) -> Iterator[Check]:
    bad: dict[str, list[dict[str, Any]]] = {}
    for row in run.records.filter(pl.col("has.error")).iter_rows(named=True):
        bad.setdefault(row["flow"], []).append(row)
    imported = bool(bad) and is_imported(run.plan)
    for rows in bad.values():
        yield _flow(rows, run.soak_state, imported=imported)
    clean = (pl.col("status") == "ok") & ~pl.col("has.error").fill_null(value=False)
    counts = (
        run.records.group_by("test")
        .agg(clean.all().alias("clean"), pl.len().alias("n"))
        .sort("test")
    )
    for test, n in counts.filter("clean").select("test", "n").iter_rows():
        yield Check(
            id=f"flows/{test}",
            title=f"All flows of test {test}",
            status="pass",
            measured=n,
            limit=Bound(n, None),
            unit="records",
        )


@check(
    family="integrity",
    order=90,
    columns=("id", "kind", "has.integrity", "integrity.checked_bytes", "integrity.bad_bytes"),
    source=design("a corrupted payload fails a run"),
)
def integrity(run: RunView) -> Iterator[Check]:
    """The sum of a transfer has checked nothing that its pairs have not."""
    rows = run.records.filter(
        pl.col("has.integrity") & (pl.col("kind") != "sum").fill_null(value=True)
    )
    checked, bad = (
        int(rows["integrity.checked_bytes"].sum()),
        int(rows["integrity.bad_bytes"].sum()),
    )
    one = Check(
        id="integrity",
        title="Payloads arrived intact",
        fault="Payloads were corrupted",
        status="not_judged",
        measured="no flow ran with --verify",
    )
    if checked or bad:
        one.status = "fail" if bad else "pass"
        one.measured, one.limit, one.unit = (
            bad,
            Bound(None, 0),
            f"corrupted bytes of {checked} checked",
        )
    if bad:
        one.evidence = first(rows.filter(pl.col("integrity.bad_bytes") > 0)["id"])
        one.remedy = for_code(5)
    yield one
