"""`perchctl compare A B`: lays two judged runs side by side."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perch.errors import ExitCode, PerchError
from perch.model.figures import pretty
from perch.model.text import clean

if TYPE_CHECKING:
    from perch.history.side_by_side import Side

COMPARISON = "comparison"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Compares the judged runs A and B: each figure of both with its 95 % interval. Prints\n"
        "the table. Writes comparison.json, comparison.md and comparison.html to a new\n"
        "folder compare-A-B beside A. Figures with different definitions, completion levels or\n"
        "scopes are listed, not compared."
    )
    parser.epilog = (
        "Exit: 0 compared, 1 no comparable figure, 2 usage, 3 not judged runs, 6 not writable."
    )
    parser.add_argument("a", metavar="A", help="the folder of a run")
    parser.add_argument("b", metavar="B", help="the folder of another run")


def command(args: argparse.Namespace) -> int:
    """Compares them."""
    from perch.history import comparison_words, side_by_side
    from perch.run import folder
    from perch.views import markdown, page

    roots = [folder.judged_folder(name) for name in (args.a, args.b)]
    compared = side_by_side.compare(*map(_side, roots))
    text = markdown.filled("comparison.md.j2", comparison_view=comparison_words.view(compared))
    out = _new_folder(roots[0].parent, f"compare-{roots[0].name}-{roots[1].name}")
    (out / f"{COMPARISON}.json").write_bytes(pretty(compared))
    (out / f"{COMPARISON}.md").write_text(text, encoding="utf-8")
    try:
        page.make(out, COMPARISON)
    except PerchError as error:  # the Markdown has the same content
        print(f"perchctl compare: {clean(str(error))}", file=sys.stderr)
    print(f"{text}\n{out}/{COMPARISON}.md")
    return ExitCode.PASS if compared.rows else ExitCode.FAIL


def _side(root: Path) -> Side:
    from perch.history import baseline, intervals, side_by_side
    from perch.judge import columns
    from perch.run import folder

    verdict, records = folder.verdict_head(root), folder.records(root)
    document = baseline.document(
        folder.plan_head(root / folder.PLAN),
        columns.frame(records),
        verdict.verdict,
        verdict.scope,
    )
    return side_by_side.Side(document, intervals.of(records))


def _new_folder(parent: Path, name: str) -> Path:
    """Nothing of an earlier comparison is written over. Raises PerchError."""
    number = 1
    while True:
        out = parent / (name if number == 1 else f"{name}-{number}")
        try:
            out.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise PerchError(
                ExitCode.NOT_WRITABLE, f"it cannot be made ({error.strerror})", file=out
            ) from None
        else:
            return out
