"""`perchctl import FILE...`: records of what tools printed elsewhere, or a run of them."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISREG

from perch.errors import ExitCode, PerchError
from perch.model.record import Number
from perch.model.text import plural

_RATE = re.compile(r"[1-9][0-9]*(\.[0-9]+)?")

_TOOLS = "perftest, iperf, iperf3 -J, a cxi tool, MORI-IO or perch"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        "Prints the records of the outputs in FILE..., one JSON object a line. A file may hold\n"
        "several outputs: a log, or Markdown with outputs in its code blocks. Each output begins\n"
        "with its tool's own heading. Give whole outputs of the clients."
    )
    parser.epilog = (
        "Exit: 0 all read, 1 outputs could not be read (standard error names them), 2 usage,\n"
        "6 not writable."
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="a file of outputs")
    parser.add_argument(
        "--run",
        metavar="DIR",
        help="make the folder of a run instead, from copies of the files, for `perchctl judge DIR`",
    )
    parser.add_argument(
        "--limits",
        metavar="NAME|FILE",
        help="the limits of that run: a set of reports/limits, or a file of limits (YAML or JSON)",
    )
    parser.add_argument(
        "--link-rate",
        metavar="GBIT",
        help="Gb/s of the link between the hosts, for its ceiling, where no output says it",
    )


def _rate(text: str | None) -> Number | None:
    if text is None:
        return None
    if not _RATE.fullmatch(text):
        raise PerchError(
            ExitCode.USAGE, f"--link-rate '{text}' is no rate", remedy="give Gb/s, such as 100"
        )
    return float(text) if "." in text else int(text)


class _Files:
    """The files that were given. `failed`: something could not be read, and was named."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.failed = False

    def say(self, message: str) -> None:
        print(f"perchctl import: {message}", file=sys.stderr)
        self.failed = True

    def read(self) -> Iterator[tuple[str, bytes]]:
        """The files that can be read, one after another."""
        seen: set[str] = set()
        for name in self._names:
            path = Path(name)
            try:
                # reading a named pipe without a writer would never end
                content = path.read_bytes() if S_ISREG(path.stat().st_mode) else None
            except OSError as error:
                self.say(f"{name}:1: {error.strerror}; give the file of an output")
                continue
            if content is None:
                self.say(f"{name}:1: it is not a regular file; give the file of an output")
            elif name in seen:
                self.say(f"{name}:1: it is given twice; give it once")
            elif not content:
                self.say(f"{name}:1: it is empty; give the whole output of the client")
            else:
                seen.add(name)
                yield name, content


def _print_records(files: _Files, rate_gbit_s: Number | None) -> None:
    from perch.imports import faults, names
    from perch.imports.documents import read_files
    from perch.imports.imported import expected, record
    from perch.model.figures import encode
    from perch.model.plan import Plan, PlanHost, Suite

    namer = names.Namer()
    for read in read_files(files.read()):
        if not read.is_known:
            files.say(f"{read.name}:1: no output of a known tool; give one of {_TOOLS}")
        rate = rate_gbit_s or (read.rate[0] if read.rate else None)
        for document in read.documents:
            flow = names.flow(document, namer.name(document))
            host = PlanHost(address="", fabric="", scope="imported", port=1)
            plan = Plan(
                schema="",
                run="imported",
                created="",
                suite=Suite("", ""),
                limits="",
                hosts={flow.client: host, flow.server: host},
                rounds=[],
            )
            for result in document.results:
                if result.is_ok:
                    made = record(plan, flow, expected(result), result, rate)
                    print(encode(made).decode())
        for message in faults.messages(read.name, read.documents):
            files.say(message)


def _make_run(args: argparse.Namespace, files: _Files, rate_gbit_s: Number | None) -> None:
    from perch.imports import limits, run

    root = Path(args.run)
    run.check_name(root)
    judged_by = limits.read(args.limits) if args.limits else None
    made = run.make(
        root,
        (run.Given(*file) for file in files.read()),
        limits_name=Path(args.limits).stem if args.limits else "none",
        limits=judged_by,
        rate_gbit_s=rate_gbit_s,
    )
    for message in made.messages:
        files.say(message)
    read = f"{plural(made.outputs, 'output')} of {plural(made.files, 'file')}"
    print(f"{root}: {read}; judge it: perchctl judge {root}")


def command(args: argparse.Namespace) -> int:
    """Prints records, or makes a run; 1 where something could not be read."""
    rate = _rate(args.link_rate)
    if args.limits and not args.run:
        raise PerchError(ExitCode.USAGE, "--limits requires --run", remedy="give --run DIR, too")
    files = _Files(args.files)
    if args.run:
        _make_run(args, files, rate)
    else:
        _print_records(files, rate)
    return ExitCode.FAIL if files.failed else ExitCode.PASS
