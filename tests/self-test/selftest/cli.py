"""The command: what is chosen, judged side by side, and reported in order."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NoReturn

from perch.errors import ExitCode
from perch.model.verdict import Verdict
from selftest import healthy, kinds
from selftest import work as working
from selftest.fault import PASS, Fault
from selftest.faults import all_faults
from selftest.jobs import Jobs, workers
from selftest.table import page
from selftest.tap import Tap

DESCRIPTION = """\
Plants every fault (or those whose id matches REGEX) in a good run, judges it, and says for each
whether the named check flipped the verdict. Then judges N healthy runs (200), and with --power N
weakened ones of each strength, of which it says how many fail. A check that no fault flips fails
the test, too."""
EPILOG = "Exit: 0 all as named, 1 not, 2 usage, 6 not writable."


class _UsageError(Exception):
    """The command line is wrong."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(message)


def _amount(text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of runs")
    return int(text)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no pattern: {error}") from None


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="tests/self-test/run",
        description=DESCRIPTION,
        epilog=EPILOG,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    quick = "one fault of each family and few runs, as a part of `make test`"
    add("--quick", action="store_true", help=f"{quick}; what is left out is counted")
    add("--faults", metavar="REGEX", type=_pattern, default=re.compile(""))
    add("--healthy", metavar="N", type=_amount)
    add("--power", metavar="N", type=_amount, default=0)
    kept = "write what --power found to data/power.tsv, and so to the page that --table prints"
    add("--keep", action="store_true", help=kept)
    add("--good", metavar="DIR", type=Path, help="leave the good runs in DIR, which must not exist")
    add("--table", action="store_true", help="print docs/self-test.md, and judge nothing")
    add("--list", action="store_true", help="print the faults, and judge nothing")
    args = parser.parse_args(words)
    if args.healthy is None:
        args.healthy = healthy.FEW if args.quick else healthy.HEALTHY
    if args.good is not None and args.good.exists():
        parser.error(f"{args.good} exists; give the name of a new folder")
    return args


# ---- which faults --------------------------------------------------------------------------------


def chosen(faults: Sequence[Fault], pattern: re.Pattern[str], quick: bool) -> list[Fault]:
    """The faults whose id matches; with `quick` the first of each family.

    Rather one of a good run that others need as well: a good run costs as much as a fault.
    """
    found = [fault for fault in faults if pattern.search(fault.id)]
    if not quick:
        return found
    families: dict[str, list[Fault]] = defaultdict(list)
    for fault in found:
        families[fault.kind].append(fault)
    bases = [{fault.base for fault in some} for some in families.values()]
    wanted = {base for some in bases if len(some) == 1 for base in some}
    first = [
        next((fault for fault in some if fault.base in wanted), some[0])
        for some in families.values()
    ]
    return sorted(first, key=found.index)


# ---- what is told --------------------------------------------------------------------------------


def _tell_faults(jobs: Jobs, tap: Tap, faults: list[Fault]) -> list[Verdict]:
    """Judges good runs and faults; returns the verdicts of the good runs."""
    bases = sorted({fault.base for fault in faults})
    good = []
    for base, told in jobs.each(working.judge_base, bases):
        tap.told(told.ok, f"the good run {base} passes", told.why)
        if told.verdict is not None:
            good.append(told.verdict)
    ids = [fault.id for fault in faults]
    for fault, (_, told) in zip(faults, jobs.each(working.judge_fault, ids), strict=True):
        to = "warned of, and still PASS" if fault.word == PASS else f"flips to {fault.word}"
        tap.told(told.ok, f"{fault.title}: {to} ({fault.checks[0]})", told.why)
    return good


def _tell_kinds(tap: Tap, faults: Sequence[Fault], good: Sequence[Verdict]) -> None:
    """Whether each check has a fault."""
    bare = kinds.without_fault(faults, good)
    tap.told(not bare, "each check has a planted fault", f"without a fault: {', '.join(bare)}")


def _test(args: argparse.Namespace, work: Path) -> int:
    """Judges all that was asked for."""
    faults = all_faults()
    some = chosen(faults, args.faults, args.quick)
    if not some and not (args.healthy or args.power):
        raise _UsageError(f"no fault matches '{args.faults.pattern}'")
    tap = Tap()
    is_whole = len(some) == len(faults)
    bases = len({fault.base for fault in some})
    total = bases + len(some) + is_whole + (healthy.TESTS if args.healthy else 0)
    tap.plan(total)
    if not is_whole:
        left = len(faults) - len(some)
        tap.note(f"{left} of {len(faults)} faults are left out here; make self-test plants all")
    if args.quick:
        left = healthy.HEALTHY - args.healthy
        tap.note(f"{left} of {healthy.HEALTHY} healthy runs are left out here")
    with workers(work, os.cpu_count() or 1) as jobs:
        good = _tell_faults(jobs, tap, some)
        if is_whole:
            _tell_kinds(tap, faults, good)
        if args.healthy:
            healthy.tell_healthy(jobs, tap, args.healthy)
        if args.power:
            healthy.tell_power(jobs, tap, args.power, healthy.POWER if args.keep else None)
    if args.good is not None:
        shutil.copytree(work / "base", args.good, symlinks=True)
    return ExitCode.FAIL if tap.bad else ExitCode.PASS


# ---- the command ---------------------------------------------------------------------------------


def _ended(number: int, _frame: FrameType | None) -> NoReturn:
    """A signal ends the test as an exception does, so that its folder is removed."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def main(words: Sequence[str]) -> int:
    """Runs the command and returns its exit code."""
    try:
        args = _arguments(words)
        if args.table:
            print("\n".join(page(all_faults())))
            return ExitCode.PASS
        if args.list:
            for fault in chosen(all_faults(), args.faults, args.quick):
                checks = " ".join(fault.checks)
                print(fault.id, fault.base, fault.word, checks, fault.title, sep="\t")
            return ExitCode.PASS
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _ended)
        with TemporaryDirectory(prefix="perch-self-test.", ignore_cleanup_errors=True) as work:
            (Path(work) / "base").mkdir()
            return _test(args, Path(work))
    except _UsageError as error:
        print(f"self-test: {error}; see tests/self-test/run --help", file=sys.stderr)
        return ExitCode.USAGE
    except OSError as error:
        print(f"self-test: {error}", file=sys.stderr)
        return ExitCode.NOT_WRITABLE
