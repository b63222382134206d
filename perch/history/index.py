"""`perchctl runs DIR`: gives a judged run its line in index.jsonl, the list of all runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from perch.errors import ExitCode, PerchError

INDEX = "index.jsonl"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Gives the judged run DIR its line (perch.index/1) in index.jsonl beside it: added, or\n"
        "replaced where the run was judged again. A line that cannot be read is named and kept."
    )
    parser.epilog = (
        "Exit: 0 done, 1 done, but lines could not be read, 2 usage, 3 not a judged run,\n"
        "6 not writable."
    )
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")


def command(args: argparse.Namespace) -> int:
    """Writes the line."""
    from perch.history import folder, lines

    root = folder.judged_folder(args.run)
    with lines.locked(root.parent):
        set_run(root)
    faulty = lines.report_unreadable("perchctl runs", root.parent / INDEX)
    return ExitCode.FAIL if faulty else ExitCode.PASS


def set_run(root: Path) -> None:
    """Writes the run's line; the caller holds the lock. Raises PerchError."""
    from perch.history import lines

    path = root.parent / INDEX
    line = line_of(root, lines.read(path))
    lines.set_line(path, line["run"], line)


def line_of(root: Path, index: list[bytes]) -> dict[str, Any]:
    """The run's line (perch.index/1); what was accepted before stays so with the same verdict."""
    from perch.history import folder, lines

    verdict = folder.verdict_head(root)
    digest = folder.digest((root / folder.VERDICT).read_bytes())
    was = lines.of_run(index, verdict.run) or {}
    kept = was if was.get("digest") == digest else {}
    return {
        "schema": "perch.index/1",
        "run": verdict.run,
        "folder": root.name,
        **_of_plan(root),
        "scope": verdict.scope,
        "verdict": verdict.verdict,
        "planned": verdict.coverage.planned,
        "measured": verdict.coverage.measured,
        "digest": digest,
        **{name: kept.get(name) for name in ("accepted", "label", "forced")},
    }


def _of_plan(root: Path) -> dict[str, Any]:
    """A run whose plan cannot be read has a verdict, and so a line."""
    from perch.history import folder

    try:
        plan = folder.plan_head(root / folder.PLAN)
    except PerchError:
        return dict.fromkeys(("created", "suite", "limits", "fabric"))
    return {
        "created": plan.created,
        "suite": plan.suite.name,
        "limits": plan.limits,
        "fabric": folder.fabric_id(plan),
    }
