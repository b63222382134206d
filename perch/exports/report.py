"""`perchctl report DIR`: judges a run and writes its report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from perch.errors import ExitCode, PerchError
from perch.model import derived
from perch.model.derived import CHARTS, JUNIT, MARKDOWN, PROM
from perch.model.folder import existing
from perch.model.text import clean
from perch.run import lines
from perch.views import vega

if TYPE_CHECKING:
    from perch.views.charts import Chart
    from perch.views.details import Details
    from perch.views.document import Measured
    from perch.views.inputs import Run


class Drawing(NamedTuple):
    """What a report shows: its figures, what is read for it, its finished words, its charts."""

    measured: Measured
    details: Details
    document: dict[str, Any]
    charts: list[Chart]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Judges a run again and writes its report: DIR/report.md, DIR/report.html,\n"
        "DIR/charts/, DIR/junit.xml for CI systems, and DIR/perch.prom for Prometheus."
    )
    parser.epilog = (
        "Exit: 0 the report is written, also after a FAIL (perchctl judge returns it),\n"
        "2 usage, 3 a Python package is missing, 6 not writable."
    )
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")


def write(path: Path, text: str) -> None:
    """Writes a file that appears whole or not at all; others (node exporter, CI) may read it."""
    lines.replace(path, text.encode())


def write_charts(root: Path, drawn: Iterable[tuple[Chart, Future[str]]]) -> list[str]:
    """Writes DIR/charts; returns what could not be drawn."""
    faults = []
    (root / CHARTS).mkdir(exist_ok=True)
    for chart, done in drawn:
        try:
            write(root / CHARTS / f"{chart.name}.svg", done.result())
        except PerchError as error:
            faults.append(str(error))
    return faults


def texts(run: Run, drawing: Drawing) -> Iterator[tuple[str, str]]:
    """The files without pictures: name and content. The same run gives the same ones."""
    from perch.exports import junit, prom
    from perch.views import flow_facts

    times = flow_facts.times(run.records)
    yield JUNIT, junit.document(run, times)
    yield PROM, prom.document(run, drawing.measured.rows, drawing.details, times)
    from perch.views import markdown  # jinja2, which a set-up for verifying does not have

    yield MARKDOWN, markdown.filled("run.md.j2", report=drawing.document)


def draw(run: Run) -> Drawing:
    """What the report shows."""
    from perch.views import details, document

    found = document.measure(run)
    read = details.read(run.root, run.plan.latency_size)
    return Drawing(found, read, *document.build(run, found, read))


def write_report(run: Run, process: vega.Process) -> list[str]:
    """Writes everything that is drawn from a judged run; returns what could not be made."""
    from perch.views import page
    from perch.views.draw import drawn

    root = run.root
    drawing = draw(run)
    charts = drawn(drawing.charts, process)
    for name, text in texts(run, drawing):
        write(root / name, text)
    faults = write_charts(root, charts)
    try:
        page.make(root)
    except PerchError as error:
        faults.append(str(error))
    return faults


def _judged(root: Path) -> tuple[Run, list[str]]:
    """The run as views see it, without the flows of its plan, and why it could not be judged."""
    from perch.run import judging
    from perch.views import inputs

    judged, fault = judging.judged(root)
    verdict = judged.verdict if isinstance(judged, judging.Judged) else judged
    reason = judging.reason(verdict, fault)
    faults = [] if reason is None else [f"{root}: {reason}"]
    if not isinstance(judged, judging.Judged):
        return inputs.read_run(root), faults
    plan, limits = judged.plan, judged.limits
    return inputs.of_judged(root, plan, verdict, judged.records, limits), faults


def command(args: argparse.Namespace) -> int:
    """Judges, and writes the report."""
    root = existing(args.run)
    with derived.loading(root):
        from perch.run import judging

    derived.remove(root, *derived.DERIVED)
    run, faults = _judged(root)
    with vega.Process() as process:
        faults += write_report(run, process)
    for one in faults:
        print(f"perchctl report: {clean(one)}", file=sys.stderr)
    print(clean(judging.line(run.verdict)))
    return ExitCode.PASS
