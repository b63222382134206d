"""`perchctl judge DIR`."""

from __future__ import annotations

import argparse
import sys

from perch.model import derived
from perch.model.folder import existing
from perch.model.text import clean


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Recomputes DIR/records.jsonl and DIR/verdict.json from DIR/plan.json, DIR/raw/,\n"
        "DIR/inputs/limits.json, DIR/inputs/hosts/ and, where there is one, "
        "DIR/inputs/baseline.json,\nand prints the verdict in one line. "
        "DIR/records.parquet has the same records for databases."
    )
    parser.epilog = (
        "Exit: 0 PASS, 1 FAIL, 2 usage, 3 INCONCLUSIVE (also when the folder cannot be judged),\n"
        "6 output not writable."
    )
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")


def command(args: argparse.Namespace) -> int:
    """Judges the run and returns its verdict's exit code."""
    root = existing(args.run)
    with derived.loading(root):
        from perch.run import judging

    verdict, fault = judging.judge(root)
    if (reason := judging.reason(verdict, fault)) is not None:
        print(f"perchctl judge: {root}: {clean(reason)}", file=sys.stderr)
    print(judging.line(verdict))
    return judging.CODES[verdict.verdict]
