"""`perchctl summary DIR`: a judged run in one screen."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from perch import terminal
from perch.errors import ExitCode
from perch.model.folder import existing
from perch.model.text import clean
from perch.model.verdict import loosened
from perch.views.inputs import Run
from perch.views.table import Table


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Prints a judged run in one screen: the verdict, a line for each test, the findings,\n"
        "and where the report is."
    )
    parser.epilog = (
        "Exit: 0 printed, 2 usage (also when the run was not judged), 3 its files are damaged."
    )
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")


def _texts(table: Table) -> list[list[str]]:
    """The cells without marks, the titles first."""
    from perch.views.words import unmarked

    rows = [[column.title for column in table.columns], *table.rows]
    return [[clean(unmarked(cell)) for cell in row] for row in rows]


def columns(texts: list[list[str]]) -> Iterator[str]:
    """Cells below each other, two spaces apart."""
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def parts(run: Run) -> Iterator[str | list[list[str]]]:
    """The screen: lines, and the cells of the table."""
    from perch.views import first_screen, results, soak
    from perch.views.document import measure
    from perch.views.table import slim
    from perch.views.words import NOTHING, unmarked

    found = measure(run)
    yield f"Verdict: {first_screen.verdict_word(run.verdict)}"
    yield unmarked(results.scope_line(run.verdict, found.tests))
    if run.soak is not None:
        yield unmarked(soak.headline(run.soak))
        yield unmarked(soak.anomaly_line(run.soak))
    yield unmarked(first_screen.coverage_line(run.verdict))
    less = loosened(run.verdict.checks)
    if less:
        yield f"Limits: {run.plan.limits}, {less}"
    excluded = first_screen.excluded_line(run.plan)
    if excluded:
        yield unmarked(excluded)
    table = slim(results.summary(run.plan.tests, found.tests, run.verdict))
    if table.rows:
        yield ""
        yield _texts(table)
    findings = first_screen.findings(run.verdict)
    most = first_screen.FINDINGS_MAX
    if findings:
        yield ""
    for one in findings[:most]:
        cells = one.cells
        where = f", {one.place}" if one.place else ""
        limit = "" if cells.limit == NOTHING else f" (limit: {cells.limit})"
        remedy = "" if cells.remedy == NOTHING else f". {cells.remedy}"
        said = f"{cells.status}{one.word}: {cells.title}: {cells.measured}{where}{limit}"
        yield unmarked(f"{said}{remedy}")
    if len(findings) > most:
        yield f"and {len(findings) - most} more in the report"
    yield ""
    yield f"Report: {run.root.resolve() / 'report.md'}"


def command(args: argparse.Namespace) -> int:
    """Prints the screen."""
    from perch.views.inputs import read_run

    root = existing(args.run)
    for part in parts(read_run(root)):
        if isinstance(part, str):
            print(clean(part))
        elif not terminal.show(part[0], part[1:]):
            for line in columns(part):
                print(line)
    return ExitCode.PASS
