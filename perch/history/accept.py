"""`perchctl accept DIR`: makes a judged run the baseline of its fabric."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from perch.errors import ExitCode, PerchError
from perch.model.figures import pretty
from perch.model.text import clean, plural

if TYPE_CHECKING:
    from perch.model.baseline import BaselineDocument
    from perch.model.verdict import Verdict


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Judges DIR again. If the verdict is unchanged and PASS, DIR becomes the baseline of\n"
        "its fabric. It writes, in the folder that holds DIR:\n\n"
        "  baseline/FABRIC/baseline.json    figures to compare later runs with.\n"
        "  baseline/FABRIC/history.jsonl    a line for each accepted run.\n"
        "  index.jsonl                      the time at which DIR was accepted."
    )
    parser.epilog = (
        "Exit: 0 accepted, 1 refused, 2 usage, 3 the run cannot be read, 6 not writable."
    )
    parser.add_argument("--label", metavar="TEXT", help="a name for the run, such as a ticket")
    parser.add_argument(
        "--force", metavar="REASON", help="accept a verdict other than PASS; the reason is kept"
    )
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")


def _one_line(option: str, text: str | None) -> None:
    if text is not None and (not text or clean(text) != text):
        raise PerchError(ExitCode.USAGE, f"{option} must be one line of text, and not empty")


def command(args: argparse.Namespace) -> int:
    """Accepts the run."""
    from perch.history import index
    from perch.run import folder, lines

    _one_line("--label", args.label)
    _one_line("--force", args.force)
    root = folder.judged_folder(args.run)
    verdict = folder.judged_again(root, args.run)
    if verdict.verdict != "PASS" and args.force is None:
        raise PerchError(
            ExitCode.FAIL,
            f"the verdict is {verdict.verdict}; only a PASS is accepted",
            remedy="mend what the report names, or give a reason with --force (make: FORCE=)",
        )
    found = _document(root, args, verdict)
    with lines.locked(root.parent):
        index.set_run(root)
        kept = keep(root.parent, found)
    faulty = [
        lines.report_unreadable("perchctl accept", path)
        for path in (kept / folder.HISTORY, root.parent / index.INDEX)
    ]
    hosts = ", ".join(sorted(found.fabric.hosts))
    print(
        f"{found.run} ({found.verdict}) is the baseline of {hosts}, suite "
        f"{found.fabric.suite}, limits {found.fabric.limits}: "
        f"{plural(len(found.figures), 'figure')}, kept in {kept}"
    )
    return ExitCode.FAIL if any(faulty) else ExitCode.PASS


def _document(root: Path, args: argparse.Namespace, verdict: Verdict) -> BaselineDocument:
    from perch.history import baseline
    from perch.run import folder

    plan = folder.plan_head(root / folder.PLAN)
    found = baseline.document(
        plan,
        folder.frame(root),
        verdict.verdict,
        verdict.scope,
        id=folder.fabric_id(plan),
        accepted=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        label=args.label,
        forced=None if verdict.verdict == "PASS" else args.force,
    )
    if not found.figures:
        raise PerchError(
            ExitCode.FAIL, "it has no figure that a later run could be compared with", file=args.run
        )
    return found


def keep(runs: Path, found: BaselineDocument) -> Path:
    """Writes the accepted run into the history of `runs`; returns its folder there.

    The caller holds the lock.
    """
    import msgspec

    from perch.history import index
    from perch.run import folder, lines

    kept = runs / "baseline" / found.fabric.id
    kept.mkdir(parents=True, exist_ok=True)
    past = {**msgspec.to_builtins(found), "schema": "perch.history/1"}
    lines.set_line(kept / folder.HISTORY, found.run, past)
    lines.replace(kept / folder.BASELINE, pretty(found))
    line = lines.of_run(lines.read(runs / index.INDEX), found.run)
    assert line is not None  # set_run has just written it
    line |= {"accepted": found.accepted, "label": found.label, "forced": found.forced}
    lines.set_line(runs / index.INDEX, found.run, line)
    return kept
