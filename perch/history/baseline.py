"""A judged run as perch.baseline/1: its fabric, and each figure over its repeats."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import polars as pl

from perch.checks import fabric
from perch.checks import figures as figure
from perch.model.baseline import AcceptedFigure, BaselineDocument
from perch.model.plan import Plan
from perch.model.record import Number, Scope
from perch.model.verdict import Word


class _Found(msgspec.Struct):
    """One figure, as its repeats come. `whole`: all of them are alike, and have it."""

    metric: str
    unit: str
    better: Literal["higher", "lower"]
    terms: str
    values: list[Number]
    whole: bool = True


def _found(records: pl.DataFrame) -> dict[str, _Found]:
    """By key. A figure that only some repeats report has no median that could be compared."""
    found: dict[str, _Found] = {}
    for row in figure.figures(records, figure.KEPT).iter_rows(named=True):
        one = found.setdefault(
            row["key"], _Found(row["metric"], row["unit"], row["better"], row["terms"], [])
        )
        one.whole &= row["value"] is not None and row["terms"] == one.terms
        one.values.append(row["value"])
    return {key: one for key, one in found.items() if one.whole}


def is_extreme(metric: str) -> bool:
    """The longest of all messages is that of all repeats; other figures have their median."""
    return metric.endswith(".max")


def _accepted(one: _Found, terms: list[str]) -> AcceptedFigure:
    over = figure.of_repeats(one.values)
    value = max(one.values) if is_extreme(one.metric) else over.value
    assert value is not None  # there is at least one repeat
    return AcceptedFigure(
        value=int(value) if float(value).is_integer() else value,
        n=over.n,
        better=one.better,
        of=terms.index(one.terms),
        unit=one.unit,
        cv_percent=over.cv_percent,
    )


def document(
    plan: Plan, records: pl.DataFrame, verdict: Word, scope: Scope, **accepted: Any
) -> BaselineDocument:
    """The run's figures. `accepted`: id, accepted, label and forced of an accepted run."""
    shown = fabric.ends(records.filter(pl.col("status") == "ok"))
    found = _found(records)
    terms = sorted({one.terms for one in found.values()})
    return BaselineDocument(
        schema="perch.baseline/1",
        run=plan.run,
        created=plan.created,
        accepted=accepted.get("accepted", ""),
        label=accepted.get("label"),
        forced=accepted.get("forced"),
        verdict=verdict,
        fabric=fabric.identity(plan, shown, scope, accepted.get("id", "")),
        terms=terms,
        figures={key: _accepted(one, terms) for key, one in found.items()},
    )
