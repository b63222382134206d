"""`perchctl first-day DIR`: which questions of a first hardware day a run of that suite answers."""

from __future__ import annotations

import argparse
import gzip
import ipaddress
import re
from collections.abc import Iterable
from pathlib import Path

from perch.errors import ExitCode, PerchError
from perch.model.derived import FIRST_DAY, mark

_address = re.compile(
    r"(?<![0-9A-Za-z.:-])(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|(?:[0-9a-f]{2}:){5,19}[0-9a-f]{2}"
    r"|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}|0x[0-9a-f]{16}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}"
    r"|[0-9]{1,3}(?::[0-9]{1,3}){15})(?![0-9A-Za-z.:-])",
    re.IGNORECASE,
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what the command takes."""
    parser.description = (
        f"Writes {FIRST_DAY} into DIR, a judged run of the suite first-day: its questions, what\n"
        "is missing and why, and how late counters were. Prints it, and every address that the\n"
        "run's files hold: read them before you hand over the run."
    )
    parser.epilog = "Exit: 0 written, 2 usage, 3 not a judged run, 6 not writable."
    parser.add_argument("run", metavar="DIR", help="the folder of a run, such as runs/latest")


def command(args: argparse.Namespace) -> int:
    """Writes and prints the page."""
    from perch.history.bundle import run_files
    from perch.run import folder

    root = folder.judged_folder(args.run)
    folder.verdict_head(root)
    made = text(root)
    try:
        (root / FIRST_DAY).write_text(made)
    except OSError as error:
        raise PerchError(
            ExitCode.NOT_WRITABLE, f"it cannot be written ({error.strerror})", file=root / FIRST_DAY
        ) from None
    print(made)
    found = addresses(_content(root / name) for name in run_files(root))
    print(f"Addresses in this run's files ({len(found)}): {', '.join(found) or 'none'}")
    return ExitCode.PASS


def text(root: Path) -> str:
    """The page of a judged run. Raises PerchError."""
    from perch.judge import planned
    from perch.judge.lag import lags
    from perch.judge.raw import RawFiles
    from perch.run import folder
    from perch.views.first_day import page

    plan, records = planned.read_plan(root / folder.PLAN), folder.records(root)
    files = RawFiles(root)
    late = {host: list(lags(files, host)) for host in plan.hosts}
    return page(plan, records, late, mark(root))


# ---- addresses -----------------------------------------------------------------------------------

#: Line ends and tabs within JSON's texts: they part words.
_escape = re.compile(rb"\\+[nrt]")


def _content(path: Path) -> bytes:
    """The text of a file, unpacked."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _is_of_a_network(word: str) -> bool:
    """IPv4 and IPv6 addresses and those of cards; none that every machine has, and no mask.

    Cards also have GUIDs (0x... or four groups), and perftest prints GIDs as 16 numbers.
    """
    octets = word.split(":")
    if len(octets) in (6, 20) and all(len(one) == 2 for one in octets):
        return set(octets) not in ({"00"}, {"ff"})
    if len(octets) == 16 or (len(octets) == 4 and all(len(one) == 4 for one in octets)):
        return set(word) > {":", "0"}
    if word.startswith("0x") or re.fullmatch(r"([0-9a-f]{4}\.){2}[0-9a-f]{4}", word):
        return set(word) - set("0x.") not in (set(), {"f"})
    try:
        found = ipaddress.ip_address(word)
    except ValueError:
        return False
    return not (found.is_loopback or found.is_unspecified or word.startswith("255."))


def addresses(contents: Iterable[bytes]) -> list[str]:
    """The addresses in these files, each once, in the order of their letters."""
    words = {
        match[0].lower()
        for content in contents
        for match in _address.finditer(_escape.sub(b" ", content).decode(errors="replace"))
    }
    return sorted(filter(_is_of_a_network, words))
