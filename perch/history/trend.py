"""`perchctl trend`: draws each test's median over the runs of a fabric, as one page."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from perch.errors import ExitCode, PerchError
from perch.model.text import clean, did_you_mean, explained, plural

if TYPE_CHECKING:
    from perch.model.index import IndexLine
    from perch.views.trend import Trend

PAGE = "trend.html"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Draws each test's median over the runs of a fabric as one page, from DIR/index.jsonl.\n"
        "It shows limits, ceilings, accepted runs, and changes of firmware, kernel and engine."
    )
    parser.epilog = (
        "Exit: 0 written, 1 written without unreadable index lines, 2 usage, 3 nothing to draw,\n"
        "or pandoc is missing, 6 not writable."
    )
    parser.add_argument(
        "--fabric", metavar="ID", help="the fabric to draw (default: that of the latest run)"
    )
    parser.add_argument("--output", metavar="FILE", help=f"the page to write (default: DIR/{PAGE})")
    parser.add_argument(
        "runs", metavar="DIR", nargs="?", default="runs", help="the folder of runs (default: runs)"
    )


def command(args: argparse.Namespace) -> int:
    """Draws the page."""
    from perch.history.index import INDEX
    from perch.views import trend

    path = Path(args.runs) / INDEX
    output = Path(args.output or Path(args.runs) / PAGE)
    if output.suffix != ".html":
        raise PerchError(ExitCode.USAGE, f"--output '{output}' must end in .html")
    lines, faults = read(path)
    _say(f"{path}, {fault}" for fault in faults)
    drawn, fabric = _chosen(lines, args.fabric, path)
    found = trend.build(drawn)
    _say(found.notes)
    written = _write(found, faults, trend.others(lines, fabric), output)
    if not written:
        return ExitCode.INCONCLUSIVE
    print(f"{output}: trend of {plural(len(found.runs), 'run')} of fabric {fabric}")
    return ExitCode.FAIL if faults else ExitCode.PASS


def _say(messages: Iterable[str]) -> None:
    for one in messages:
        print(f"perchctl trend: {clean(one)}", file=sys.stderr)


# ---- the index -----------------------------------------------------------------------------------


def read(path: Path) -> tuple[list[IndexLine], list[str]]:
    """Its lines, oldest run first, and what cannot be shown of it. Raises PerchError."""
    from perch.run import lines

    if not path.exists():
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            "no such list of runs",
            file=path,
            remedy="add a judged run to it with perchctl runs DIR",
        )
    found: dict[str, IndexLine] = {}
    faults = []
    for number, text in enumerate(lines.read(path), 1):
        line = _line(text)
        if isinstance(line, str):
            faults.append(f"line {number}: {line}")
        elif line.run in found:
            faults.append(f"line {number}: run '{line.run}' appears twice; the first line is used")
        else:
            found[line.run] = line
    return sorted(found.values(), key=lambda one: one.created or ""), faults


def _line(text: bytes) -> IndexLine | str:
    """The line, or why it cannot be shown."""
    import msgspec

    from perch.model.index import IndexLine
    from perch.run import lines

    found = lines.parsed(text)
    if found is None:
        return "not a line of a run, left out"
    if found.get("schema") == "perch.index/1":
        return f"run '{found['run']}' was listed by Perch 0.1 without medians, left out"
    try:
        return msgspec.convert(found, IndexLine)
    except msgspec.ValidationError as error:
        return f"not a valid perch.index/2 line, left out ({explained(error)})"


def _chosen(lines: list[IndexLine], wanted: str | None, path: Path) -> tuple[list[IndexLine], str]:
    """The runs of one fabric, and its id. Raises PerchError."""
    usable = [line for line in lines if line.fabric is not None and line.medians]
    if not usable:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            "no run with medians is listed",
            file=path,
            remedy="judge a run and add it with perchctl runs DIR",
        )
    fabrics = {line.fabric: None for line in usable if line.fabric is not None}
    fabric = wanted or str(usable[-1].fabric)
    if fabric not in fabrics:
        raise PerchError(
            ExitCode.USAGE,
            f"no run of fabric '{fabric}'{did_you_mean(fabric, fabrics)}",
            file=path,
            remedy=f"its fabrics are {', '.join(fabrics)}",
        )
    return [line for line in usable if line.fabric == fabric], fabric


# ---- the page ------------------------------------------------------------------------------------


def _write(found: Trend, faults: list[str], others: list[str], output: Path) -> bool:
    """Writes the page whole or not at all; whether it is there.

    Without pandoc there is its text, as Markdown.
    """
    from perch.exports.report import write_charts
    from perch.run import lines
    from perch.views import markdown, page, table, trend, trend_charts, vega
    from perch.views.draw import drawn

    charts = list(trend_charts.charts(found))
    document = table.slimmed(trend.document(found, faults, others))
    text = markdown.filled("trend.md.j2", trend=document, charts=charts)
    with tempfile.TemporaryDirectory(prefix="perch-trend.") as name, vega.Process() as process:
        work = Path(name)
        (work / "trend.md").write_text(text, encoding="utf-8")
        problems = write_charts(work, drawn(charts, process))
        try:
            page.make(work, "trend")
            lines.replace(output, (work / PAGE).read_bytes())
        except PerchError as error:
            lines.replace(output.with_suffix(".md"), text.encode())
            problems.append(f"{output}: {error.what}; {error.remedy}")
    _say(problems)
    return not problems
