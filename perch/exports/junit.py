"""A verdict as JUnit XML, for CI systems: one testcase a check.

A check that failed is a failure, one that could not be judged an error, an advisory one has passed
with a word, and one that does not apply is skipped with its reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from perch.exports.samples import nearest
from perch.model.figures import rounded
from perch.model.text import clean
from perch.model.verdict import Check, CheckStatus, Verdict
from perch.views import words
from perch.views.flow_facts import Times
from perch.views.inputs import Run

#: Anomalies of a soak that a check names, so that who reads no report has their times.
TOLD_MAX = 20

_ELEMENTS = {"fail": "failure", "inconclusive": "error"}
_STATUS: Mapping[str, CheckStatus] = {"PASS": "pass", "FAIL": "fail"}

_text = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def text(value: object) -> str:
    """One line, as content of an element or as an attribute.

    What XML has no place for (XML 1.0, section 2.2, Char) clean() escapes.
    """
    return clean(str(value)).translate(_text)


def _headline(check: Check) -> str:
    limit = words.bound(check.limit, check.unit)
    said = f"{check.headline}: {words.value(check.measured, check.unit)}"
    return said if limit == words.NOTHING else f"{said} (limit: {limit})"


def _anomaly(one: Mapping[str, Any]) -> str:
    start, end = one.get("start"), one.get("end")
    when = (start or "time not known") + ("" if end in (None, start) else f" to {end}")
    where = " at ".join(place for place in (one.get("flow"), one.get("host")) if place)
    evidence = ", ".join(one.get("evidence") or [])
    return f"{when}{f', {where}' if where else ''}: {one.get('text')} ({evidence})"


def _details(check: Check, told: Iterable[Mapping[str, Any]]) -> str:
    """In XML, a line each."""
    lines = [
        _headline(check),
        None if check.source is None else f"source: {check.source}",
        f"evidence: {', '.join(check.evidence)}" if check.evidence else None,
        None if check.remedy is None else f"to do: {check.remedy}",
        *map(_anomaly, told),
    ]
    return words.joined([line and text(line) for line in lines], "\n")


def _outcome(check: Check, told: Iterable[Mapping[str, Any]]) -> str:
    if check.status in _ELEMENTS:
        element = _ELEMENTS[check.status]
        message = text(_headline(check))
        details = _details(check, told)
        return f'<{element} type="{check.status}" message="{message}">{details}</{element}>'
    if check.status == "not_judged":
        return f'<skipped message="{text(_headline(check))}"/>'
    if check.status == "advisory":
        return f"<system-out>{_details(check, told)}</system-out>"
    return ""


def _time(seconds: float | None) -> str:
    return "" if seconds is None else f' time="{rounded(nearest(seconds * 1000) / 1000)}"'


def testcase(
    check: Check, seconds: Mapping[str, float], told: Iterable[Mapping[str, Any]] = ()
) -> str:
    """seconds: that the flows of each test measured; the check of all its flows has them."""
    family, _, rest = check.id.partition("/")
    time = _time(seconds.get(rest)) if family == "flows" else ""
    name = f'classname="perch.{text(family)}" name="{text(check.id)}"{time}'
    outcome = _outcome(check, told)
    return f"    <testcase {name}>{outcome}</testcase>" if outcome else f"    <testcase {name}/>"


def _of_verdict(verdict: Verdict) -> Check:
    """The verdict itself, so that a run without PASS is never green."""
    return Check(
        id="verdict",
        title="The verdict is PASS",
        fault="The verdict is not PASS",
        status=_STATUS.get(verdict.verdict, "inconclusive"),
        measured=verdict.verdict,
        source="design, the verdict",
        remedy="see the other checks, and report.md",
    )


def _told(soak: Mapping[str, Any] | None) -> dict[str, list[Mapping[str, Any]]]:
    """The first anomalies of each check of a soak."""
    told: dict[str, list[Mapping[str, Any]]] = {}
    for one in (soak or {}).get("anomalies") or []:
        if one.get("check") is not None:
            of_check = told.setdefault(one["check"], [])
            if len(of_check) < TOLD_MAX:
                of_check.append(one)
    return told


def _lines(run: Run, seconds: Mapping[str, float]) -> Iterator[str]:
    verdict = run.verdict
    checks = [_of_verdict(verdict), *verdict.checks]
    statuses = [check.status for check in checks]
    counts = (
        f' tests="{len(checks)}" failures="{statuses.count("fail")}"'
        f' errors="{statuses.count("inconclusive")}"'
    )
    time = _time(sum(seconds.values()) if seconds else None)
    created = run.plan.created
    stamp = "" if created is None else f' timestamp="{text(created)}"'
    skipped = f' skipped="{statuses.count("not_judged")}"'
    told = _told(run.soak)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="perch"{counts}{time}>'
    yield f'  <testsuite name="{text(verdict.run)}"{counts}{skipped}{time}{stamp}>'
    yield (
        f'    <properties><property name="verdict" value="{text(verdict.verdict)}"/>'
        f'<property name="scope" value="{text(verdict.scope)}"/>'
        f'<property name="verdict_sha256" value="{run.mark}"/></properties>'
    )
    for check in checks:
        yield testcase(check, seconds, told.get(check.id, []))
    yield "  </testsuite>"
    yield "</testsuites>"


def document(run: Run, times: Mapping[str, Times]) -> str:
    """times: by test."""
    seconds = {test: one.seconds for test, one in times.items()}
    return "\n".join(_lines(run, seconds)) + "\n"
