"""One document of finished text for the templates, and the charts: a judged run as it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import polars as pl

from perch.model.plan import by_reason
from perch.model.verdict import Missing, loosened
from perch.views import (
    anomalies,
    charts,
    comparisons,
    configuration,
    evolution,
    fabric,
    first_screen,
    flow_facts,
    flows,
    glance,
    key_findings,
    loaded,
    rails,
    readiness,
    references,
    repeatability,
    results,
    switches,
    transfers,
    uses,
    words,
)
from perch.views import measured as measuring
from perch.views import plan as plan_view
from perch.views.charts import Chart
from perch.views.details import Details
from perch.views.flow_facts import Packets
from perch.views.inputs import INTERVALS, Run
from perch.views.measured import Results
from perch.views.plan import PlannedTest
from perch.views.table import Table, capped, left, right, slimmed

Document = dict[str, Any]

MISSING_MAX = 50
MOVED_MAX = 20


class Measured(msgspec.Struct):
    """What the records hold. rows: those with status ok."""

    rows: pl.DataFrame
    transfers: pl.DataFrame
    tests: list[Results]
    packets: dict[str, Packets]
    flows: pl.DataFrame
    rails: pl.DataFrame


def measure(run: Run) -> Measured:
    rows = measuring.results(run.records)
    entries = transfers.entries(rows)
    flows_once = flow_facts.once(run.records)
    return Measured(
        rows=rows,
        transfers=entries,
        tests=measuring.measured(rows, run.plan.tests, transfers.by_test(entries)),
        packets=flow_facts.packets(flows_once),
        flows=flows_once,
        rails=rails.results(rows),
    )


# ---- parts ---------------------------------------------------------------------------------------


def _first_lines(run: Run, found: Measured, ranked: list[flows.Ranked]) -> Document:
    findings = first_screen.findings(run.verdict)
    return {
        "title": f"Fabric report: {words.cell(run.plan.suite)}",
        "verdict_line": first_screen.verdict_line(run.verdict),
        "scope_line": results.scope_line(run.verdict, found.tests),
        "what_line": first_screen.what_line(run.plan, loosened(run.verdict.checks)),
        "coverage_line": first_screen.coverage_line(run.verdict),
        "excluded_line": first_screen.excluded_line(run.plan),
        "glance": glance.lines(run.verdict, run.plan.pairs, found.tests, ranked),
        "findings": findings[: first_screen.FINDINGS_MAX],
        "findings_more": first_screen.more_line(findings),
        "summary": results.summary(run.plan.tests, found.tests, run.verdict),
    }


def _missing_place(one: Missing) -> str:
    """A transfer that is missing is one of several of its size."""
    expect = one.expect
    said = words.size(expect.get("size_bytes"))
    said += f", batch {expect['batch']}" if expect.get("batch") is not None else ""
    if expect.get("pair") is not None:
        return f"{said}, pair {expect['pair']}"
    return f"{said}, all pairs" if expect.get("kind") == "sum" else said


def _missing(missing: list[Missing]) -> Table:
    rows = [[words.code(one.flow), _missing_place(one), words.cell(one.message)] for one in missing]
    return capped(left("Flow") + right("Size") + left("Why"), rows, MISSING_MAX)


def _moved(details: Details, lost: pl.DataFrame, tests: Iterable[PlannedTest]) -> Document:
    """Counters that should stand still, and messages that an unreliable connection lost."""
    titles = {test.name: test.title for test in tests}
    moved = {place: (one.total, one.flows) for place, one in details.moved.items()}
    for test, size, total, count in lost.iter_rows():
        moved[test, "both ends", f"lost messages of {size} bytes"] = total, count
    ordered = sorted(moved.items(), key=lambda one: (-one[1][0], one[0]))
    rows = []
    for (test, role, name), (total, count) in ordered[:MOVED_MAX]:
        said = f"{words.cell(titles.get(test))}, {role}: {words.cell(name)} {words.whole(total)}"
        rows.append(f"{said} in {count} flows" if count > 1 else said)
    return {"rows": rows, "more": max(len(ordered) - MOVED_MAX, 0)}


def lost_messages(records: pl.DataFrame) -> pl.DataFrame:
    """test, size, messages lost, records; in order."""
    lost = pl.col("loss.lost_messages")
    return (
        records.filter(lost > 0)
        .group_by("test", measuring.SIZE)
        .agg(lost.sum().alias("lost"), pl.len().alias("records"))
        .sort("test", measuring.SIZE)
    )


def _conclusions(
    run: Run, found: Measured, ranked: list[flows.Ranked], past: evolution.Evolution
) -> Document:
    verdict = run.verdict
    criteria = readiness.judged(verdict.checks, run.limits, found.tests)
    line, table = uses.section(criteria, found.tests, verdict)
    return {
        "key_findings": key_findings.sentences(verdict, found.tests, ranked, found.packets, past),
        "readiness": {
            "headline": readiness.headline(criteria, verdict),
            "table": readiness.table(criteria, verdict.scope),
        },
        "uses": {"line": line, "table": table},
        "against_tcp": comparisons.against_tcp(
            verdict.comparison, found.tests, found.packets, run.documents.switches
        ),
        "comparison": comparisons.comparison(verdict.comparison),
        "agreement": comparisons.agreement(verdict),
    }


def _of_run(run: Run, devices: fabric.Devices) -> Document:
    return {
        "devices": devices,
        "device_line": devices.line if run.verdict.coverage.measured else "",
        "topology": fabric.topology(run),
        "switches": switches.switches(run.switches),
        "stated": switches.stated(run.documents.switches),
        "configuration": configuration.configuration(run),
        "environment": configuration.hosts_table(run),
        "checks": first_screen.table_of_checks(run.verdict, of_hosts=False),
        "host_checks": first_screen.table_of_checks(run.verdict, of_hosts=True),
        "excluded": [
            {"tests": words.some(map(words.code, tests), 8), "reason": words.cell(reason)}
            for reason, tests in by_reason(run.plan.excluded).items()
        ],
        "commands": plan_view.commands(run.plan.tests),
        "flow_files": plan_view.flow_files(is_soak=run.soak is not None),
        "missing": _missing(run.verdict.coverage.missing),
    }


def _of_records(
    run: Run,
    found: Measured,
    details: Details,
    ranked: list[flows.Ranked],
    matrices: list[rails.Matrix],
) -> Document:
    names = [(test.name, test.title) for test in run.plan.tests]
    odd = anomalies.of_records(run.records, details.dips)
    return {
        "tests": results.tables(found.tests, found.packets, rails.tables(found.rails)),
        "seen": flow_facts.ends_table(run.records),
        "slowest": flows.slowest_table(ranked),
        "rails": rails.section(matrices),
        "anomalies": anomalies.table([*odd, *anomalies.of_checks(run.verdict.checks)]),
        "moved": _moved(details, lost_messages(run.records), run.plan.tests),
        "repeatability": repeatability.section(run.plan.tests, found.rows, found.transfers),
        "path": flow_facts.path_table(names, flow_facts.paths(found.flows)),
    }


def _shown_chart(one: Chart) -> Document:
    return {
        "name": one.name,
        "title": one.title,
        "alternative": one.alternative,
        "caption": one.caption,
    }


def _soak(run: Run) -> tuple[Document | None, list[Chart]]:
    """A soak's section with its charts over time; nothing where the run is no soak."""
    if run.soak is None:
        return None, []
    from perch.views import soak, soak_charts, soak_rows

    rows = soak_rows.read(run.root / INTERVALS, run.soak)
    drawn = soak_charts.charts(run.soak, rows, run.plan.tests, run.limits.limits)
    shown = soak.section(run.soak, run.plan.tests, rows.fault)
    return shown | {"charts": list(map(_shown_chart, drawn))}, drawn


# ---- all -----------------------------------------------------------------------------------------


def build(run: Run, found: Measured, details: Details) -> tuple[Document, list[Chart]]:
    """What the template shows, with every table slim, and the charts in its order."""
    ranked = flows.ranked(found.rows, run.plan.tests)
    matrices = rails.matrices(found.rails, run.plan.tests, run.plan.hosts)
    under_load = loaded.loaded(found.rows, run.plan, found.tests)
    past = evolution.evolution(run.history, found.tests, run.documents)
    drawn = charts.charts(
        found.tests,
        run.plan.tests,
        details,
        ranked,
        matrices,
        run.references,
        run.plan.latency_size,
        loaded.points(under_load),
        past.chart,
        run.verdict.checks,
        run.limits,
    )
    along = [chart.spec.removeprefix("transfer_") for chart in drawn if "transfer_" in chart.spec]
    soak, over_time = _soak(run)
    document = {
        **_first_lines(run, found, ranked),
        **_of_run(run, fabric.devices(run)),
        **_of_records(run, found, details, ranked, matrices),
        **_conclusions(run, found, ranked, past),
        "evolution": past,
        "loaded": loaded.section(under_load),
        "charts": list(map(_shown_chart, drawn)),
        "references": references.lines(run.references, along),
        "soak": soak,
        "judged_dir": plan_view.command([f"runs/{run.verdict.run}"]),
        "mark": run.mark,
    }
    return slimmed(document), drawn + over_time
