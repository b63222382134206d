"""Names of flows and tests that no plan has, from files and headings."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import PurePath

from perch.imports.documents import Document
from perch.imports.output import Output
from perch.model.plan import Flow, FlowKey

#: The host that no output names.
UNKNOWN = "unknown"

#: Characters of a test's name.
LONGEST = 80

# headings that name no test: "Results", "Test Command"
_SAYS_NOTHING = re.compile(
    "((the|test|my|raw|full) )?(results?|outputs?|commands?|log|example [0-9]+|run)( used)?:?",
    re.IGNORECASE,
)
_OTHER = re.compile("[^A-Za-z0-9._-]+")


def _slug(text: str) -> str:
    """A name as the plan's schema has it."""
    name = re.sub("-{2,}", "-", _OTHER.sub("-", text)).lstrip(".-").rstrip(".-")
    return name[:LONGEST] or "output"


def headings(output: Output) -> list[str]:
    """Those above it that name something, but for the document's own; else its file's name."""
    named = [title for title in output.titles[1:] if not _SAYS_NOTHING.fullmatch(title)]
    headings = [re.sub("^[Tt]est: *", "", title) for title in named]
    return headings or [PurePath(output.file).name]


def title(document: Document) -> str:
    """What a report calls the test."""
    return ": ".join(headings(document.output))


def test_name(document: Document) -> str:
    """The name of its test: the lowest heading that names something, or the file."""
    return _slug(headings(document.output)[-1])


def flow(document: Document, test: str) -> Flow:
    """The flow of a document. A record that comes from another run keeps its names."""
    tool, result = document.output.tool, document.results[0]
    origin = next((one.record for one in document.results if one.record), None)
    kinds = [one.part.kind for one in document.results if one.part.kind]
    kind = kinds[0] if kinds else "transfer" if tool == "mori" else "bandwidth"
    part = next((one.part for one in document.results if one.is_ok), result.part)
    key, shown = FlowKey(test, UNKNOWN, UNKNOWN, rail=0, repeat=1), title(document)
    if origin is not None:
        client, server = origin.client.host or UNKNOWN, origin.server.host or UNKNOWN
        key = FlowKey(origin.test, client, server, origin.rail, origin.repeat)
        shown = origin.test
    return Flow(
        id=key.id,
        test=key.test,
        title=shown,
        tool=tool,
        backend=part.backend,
        provider=part.provider,
        op=part.op,
        kind=kind,
        client=key.client,
        server=key.server,
        repeat=key.repeat,
        rail=key.rail,
        scope="imported",
        client_argv=document.command or [],
    )


class Namer:
    """Names of tests must differ: outputs that are called alike are no repeats of one thing."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    def name(self, document: Document) -> str:
        name = test_name(document)
        self._taken[name] += 1
        return name if self._taken[name] == 1 else f"{name}-{self._taken[name]}"
