"""`perchctl runs DIR`: gives a judged run its line in the list of all runs."""

from __future__ import annotations

import argparse

from perch.errors import ExitCode


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Gives the judged run DIR its line (perch.index/2) in index.jsonl beside it: added, or\n"
        "replaced where the run was judged again. A line that cannot be read is named and kept."
    )
    parser.epilog = (
        "Exit: 0 done, 1 done, but lines could not be read, 2 usage, 3 not a judged run,\n"
        "6 not writable."
    )
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")


def command(args: argparse.Namespace) -> int:
    """Writes the line."""
    from perch.history import index
    from perch.run import folder, lines

    root = folder.judged_folder(args.run)
    with lines.locked(root.parent):
        index.set_run(root)
    faulty = lines.report_unreadable("perchctl runs", root.parent / index.INDEX)
    return ExitCode.FAIL if faulty else ExitCode.PASS
