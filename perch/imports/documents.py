"""Files -> documents: the results of each output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from perch.imports.cut import Cutter, is_markdown
from perch.imports.output import Argv, Output, Result, refused
from perch.imports.readers import READERS
from perch.imports.switches import stated
from perch.model.imported import Stated
from perch.tools.results import LARGEST, UnusableError
from perch.tools.text import lines_of


@dataclass(slots=True)
class Document:
    """An output and its results, at least one. `number`: its place among all outputs."""

    number: int
    output: Output
    command: Argv | None
    is_server: bool
    results: list[Result]


@dataclass(slots=True)
class ReadFile:
    """The content of a file. `rate`: Gb/s of its link, and the line that states it in prose.

    `is_known`: it has an output of a tool. `switches`: its statements about switches.
    """

    name: str
    documents: list[Document] = field(default_factory=list)
    rate: tuple[float, int] | None = None
    is_known: bool = False
    switches: list[Stated] = field(default_factory=list)


def _results(output: Output) -> tuple[list[Result], Argv | None]:
    try:
        results, argv = READERS[output.tool].read(output)
    except UnusableError as why:
        return [refused(why, output.line)], None
    results = results or [refused("it has no result", output.line)]
    return _without_twice([_measured(result) for result in results], output), argv


def _measured(result: Result) -> Result:
    """Readers reject zero, nan and inf; this is the last check."""
    part = result.part
    if not result.is_ok:
        return result
    figure = part.latency_us.mean if part.latency_us else None
    if figure is None and part.bandwidth:
        figure = part.bandwidth.gbit_s
    if figure is not None and 0 < figure < LARGEST:
        return result
    return refused("it has no result above 0", result.line)


def _without_twice(results: list[Result], output: Output) -> list[Result]:
    """Rejects two results of the same size, because either may be the valid one."""
    places = []
    for result in results:
        part = result.part
        pair = part.transfer.pair if part.transfer else None
        batch, size = (part.params.batch, part.params.size_bytes) if part.params else (None, None)
        if result.is_ok:
            places.append((part.kind, pair, batch, size))
    if len(set(places)) == len(places):
        return results
    why = "it has two results of one size, and either may be the valid one"
    return [*results, refused(why, output.line)]


def _document(output: Output, number: int) -> Document:
    server = READERS[output.tool].is_server
    if server and any(server.match(line) for line in output.lines):
        why = "it is the server's output; the figures are in its client's"
        return Document(number, output, None, True, [refused(why, output.line)])
    results, argv = _results(output)
    return Document(number, output, argv, False, results)


def _without_servers(documents: list[Document]) -> list[Document]:
    """A server's output is ignored beside its client's; without a client's it is an error."""
    clients = [document for document in documents if not document.is_server]
    return clients or documents


def read_files(files: Iterable[tuple[str, bytes]]) -> Iterator[ReadFile]:
    """Files by their names -> their content, in order. Outputs are numbered through all files."""
    number = 0
    for name, content in files:
        lines = lines_of(content)
        markdown = is_markdown(lines)
        cutter = Cutter(name, markdown=markdown)
        cutter.cut(lines)
        documents = [
            _document(output, n) for n, output in enumerate(cutter.outputs, start=number + 1)
        ]
        number += len(documents)
        yield ReadFile(
            name,
            _without_servers(documents),
            cutter.rate,
            bool(documents),
            stated(name, lines) if markdown else [],
        )
