"""What could not be read of a file, for people: one message for a fault that repeats."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perch.imports.documents import Document
from perch.imports.output import Result
from perch.model.text import clean, names

#: A message names so many of the lines that have the same fault.
MOST_LINES = 5

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?")

#: Part of a message, and the remedy; the first that fits.
_REMEDIES = (
    (re.compile("server's"), "give the output of the client"),
    (
        re.compile("truncated|no end|no result|not a JSON|is empty"),
        "give the whole output of the client",
    ),
    (re.compile("rate of UDP"), "measure with iperf3 -u -J"),
    (re.compile("bidirectional output of iperf 2"), "measure with iperf3 --bidir -J"),
    (re.compile("JSON of iperf3"), "measure with iperf3 -J"),
    (re.compile("UDP both ways"), "measure one direction at a time"),
    (
        re.compile("command|unit"),
        "give the output with the command that printed it, in one Markdown file, or another format",
    ),
)
_OTHERWISE = "give the output as the tool printed it, or measure again"


def remedy(message: str) -> str:
    """What a person can do about a fault."""
    return next((what for fits, what in _REMEDIES if fits.search(message)), _OTHERWISE)


def _alike(result: Result) -> str:
    """The message without its figures, by which faults of one kind are one."""
    return _NUMBER.sub("#", result.part.error.message if result.part.error else "")


def messages(file: str, documents: list[Document]) -> Iterator[str]:
    """`FILE:LINE: WHAT; REMEDY`, and the other lines with the same fault."""
    kinds: dict[str, list[Result]] = {}
    for document in documents:
        for result in document.results:
            if not result.is_ok:
                kinds.setdefault(_alike(result), []).append(result)
    for first, *others in kinds.values():
        what = clean(first.part.error.message if first.part.error else "")
        lines = [str(result.line) for result in others if result.line != first.line]
        word = "line" if len(lines) == 1 else "lines"
        again = f" (the like in {word} {names(lines, MOST_LINES)})" if lines else ""
        yield f"{file}:{first.line}: {what}{again}; {remedy(what)}"
