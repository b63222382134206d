"""`perchctl compare-tuning DIR`: compares sub-runs, untuned against tuned, by their records."""

from __future__ import annotations

import argparse
from pathlib import Path

from perch.errors import ExitCode, PerchError
from perch.model.figures import pretty
from perch.model.text import clean

TUNING = "tuning.json"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Reads DIR/01-untuned, DIR/02-tuned, DIR/03-untuned, ... (each a judged run) and\n"
        "DIR/inputs/tuning.json, writes DIR/tuning.json (perch.tuning/1), and prints what came\n"
        "of the tuning. VIEW gets what the report shows, as finished text."
    )
    parser.epilog = (
        "Exit: 0 compared (also where no effect was seen), 2 usage, 3 something could not be\n"
        "compared, 6 not writable."
    )
    parser.add_argument("folder", metavar="DIR", help="the folder that holds 01-untuned, ...")
    parser.add_argument("view", metavar="VIEW", nargs="?", help="a file for the report's template")


def command(args: argparse.Namespace) -> int:
    """Compares them."""
    from perch.history import tuning, tuning_words
    from perch.model.tuning import MOST_REPEATS
    from perch.run import lines

    root = Path(args.folder)
    if not root.is_dir():
        raise PerchError(
            ExitCode.USAGE,
            f"no such comparison: '{args.folder}'",
            remedy="give the folder that holds 01-untuned, 02-tuned, ...",
        )
    found = tuning.compare(root)
    if found is None:
        raise PerchError(
            ExitCode.INCONCLUSIVE,
            f"it holds no sub-run such as 01-untuned, or more than {MOST_REPEATS} pairs",
            file=root,
        )
    try:
        lines.replace(root / TUNING, pretty(tuning.document(found)))
    except OSError as error:
        raise PerchError(
            ExitCode.NOT_WRITABLE,
            f"it is not writable ({error.strerror}); {TUNING} is written there",
            file=root,
        ) from None
    if args.view is not None:
        Path(args.view).write_bytes(pretty(tuning_words.view(found)))
    for line in tuning_words.summary(found):
        print(clean(line))
    return ExitCode.INCONCLUSIVE if found.gaps else ExitCode.PASS
