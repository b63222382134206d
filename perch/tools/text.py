"""Lines of an output, and the words of a command line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from perch.model.record import Number
from perch.tools.results import LARGEST, UnusableError, shown

#: A number as tools print it; Python's float() would take nan, inf and 1_000, too.
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")

#: What C prints for a floating-point value that is not a number.
_NOT_FINITE = re.compile("-?(inf|nan)", re.IGNORECASE)

#: Characters of a tool's last words that a message quotes.
QUOTED = 400


def lines_of(output: bytes) -> list[str]:
    """The lines without their ends. Bytes that are not UTF-8 become U+FFFD."""
    text = output.decode(errors="replace")
    return text.removesuffix("\n").split("\n") if text else []


def tail(lines: Iterable[str], count: int) -> str:
    """The last lines that are not blank, joined by semicolons."""
    words = "; ".join([line for line in lines if line.strip()][-count:])
    return words if len(words) <= QUOTED else words[:QUOTED] + "..."


def number(text: str | None) -> int | float | None:
    """The number that the whole text is, or None; one beyond any measurement is no number."""
    if text is None or not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    if abs(value) >= LARGEST:
        return None
    if text.isdecimal():
        return int(text)
    return int(value) if value.is_integer() else value


def figure(cell: str, title: str) -> Number:
    """The number in a table's cell. Raises UnusableError where it is none."""
    if _NOT_FINITE.match(cell):
        raise UnusableError(f"{title} is {cell}, which is not a result")
    value = number(cell)
    if value is None:
        raise UnusableError(f"{title} is {shown(cell)}, which is not a number")
    return value


def option_value(argv: Sequence[str], names: Collection[str]) -> str | None:
    """What follows an option in a command line, or None. The last one counts."""
    for i in range(len(argv) - 2, -1, -1):
        if argv[i] in names:
            return argv[i + 1]
    return None
