"""`perchctl report DIR`: judges a run anew and writes its report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path

from perch.errors import ExitCode, PerchError
from perch.model import derived
from perch.model.derived import CHARTS, JUNIT, MARKDOWN, PROM
from perch.model.text import clean
from perch.views.charts import Chart
from perch.views.draw import Drawer
from perch.views.inputs import Run


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Judges a run again and writes its report: DIR/report.md, DIR/report.html,\n"
        "DIR/charts/, DIR/junit.xml for CI systems, and DIR/perch.prom for Prometheus."
    )
    parser.epilog = (
        "Exit: 0 the report is written, whatever the verdict is (perchctl judge returns it),\n"
        "2 usage, 6 not writable."
    )
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")


def write(path: Path, text: str) -> None:
    """Writes a file that appears whole or not at all; others (node exporter, CI) may read it."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    new.write_text(text, encoding="utf-8")
    new.chmod(0o644)
    new.replace(path)


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


def write_report(run: Run, drawer: Drawer) -> list[str]:
    """Writes everything that is drawn from a judged run; returns what could not be made."""
    from perch.exports import junit, prom
    from perch.views import details, document, flow_facts, markdown, page

    root = run.root
    found = document.measure(run)
    read = details.read(root, run.plan.latency_size)
    shown, charts = document.build(run, found, read)
    drawn = drawer.draw(charts)
    write(root / MARKDOWN, markdown.filled("run.md.j2", report=shown))
    times = flow_facts.times(run.records)
    write(root / JUNIT, junit.document(run, times))
    write(root / PROM, prom.document(run, found.rows, read, times))
    faults = write_charts(root, drawn)
    try:
        page.make(root)
    except PerchError as error:
        faults.append(str(error))
    return faults


def command(args: argparse.Namespace) -> int:
    """Judges, and writes the report."""
    root = Path(args.run)
    if not root.is_dir():
        raise PerchError(
            ExitCode.USAGE,
            f"no such run: '{args.run}'",
            remedy="give the folder of a run, such as runs/latest",
        )
    with Drawer() as drawer:
        from perch.judge import run as judging
        from perch.views import inputs

        derived.remove(root, *derived.DERIVED)
        judged, fault = judging.judged(root)
        faults = [str(fault)] if fault else []
        if isinstance(judged, judging.Judged):
            plan, limits, verdict = judged.plan, judged.limits, judged.verdict
            run = inputs.of_judged(root, plan, verdict, judged.records, limits)
        else:
            run = inputs.read_run(root)
        faults += write_report(run, drawer)
    for one in faults:
        print(f"perchctl report: {clean(one)}", file=sys.stderr)
    print(clean(judging.line(run.verdict)))
    return ExitCode.PASS
