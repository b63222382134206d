"""The lines of a soak's agents, as tests edit them.

A sample has its counters by name: `counters{host,netdev}`, in the place of `values`. One to which a
test gives `values` again keeps those.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests import raw_lines

Document = dict[str, Any]
Change = Callable[[Document], object]


def read(path: Path) -> list[Document]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, lines: list[Document]) -> None:
    path.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in lines))


def samples(path: Path) -> list[Document]:
    """The samples of a file."""
    return list(_unfolded(read(path)[1:]))


def _unfolded(lines: list[Document]) -> Iterator[Document]:
    layout: Document = {}
    for line in lines:
        if line["kind"] == "layout":
            layout = line
            continue
        values = iter(line.pop("values").split(" "))
        line["counters"] = {
            "host": {name: next(values) for name in layout["host"]},
            "netdev": {
                of: {name: next(values) for name in names} for of, names in layout["netdev"].items()
            },
        }
        yield line


def write_samples(path: Path, found: list[Document]) -> None:
    """Puts samples in the place of a file's."""
    lines, layout = read(path)[:1], None
    for one in found:
        sample = dict(one)
        tables = sample.pop("counters")
        devices = [tables["host"], *tables["netdev"].values()]
        names = {of: list(table) for of, table in tables["netdev"].items()}
        of_sample = {"kind": "layout", "host": list(tables["host"]), "netdev": names}
        if of_sample != layout:
            layout = of_sample
            lines.append(layout)
        values = " ".join(value for table in devices for value in table.values())
        lines.append({"values": values, **sample})
    write(path, lines)


def edit_samples(path: Path, change: Callable[[Document, int], object]) -> None:
    """Changes each sample of a file; it gets the sample and its place from 0."""
    found = samples(path)
    for place, sample in enumerate(found):
        change(sample, place)
    write_samples(path, found)


def prints(root: Path, flow: str, *changes: Change) -> None:
    """Changes what a flow's client printed: the record of its whole."""

    def output(line: Document) -> None:
        whole = json.loads(line["stdout"])
        for change in changes:
            change(whole)
        line["stdout"] = json.dumps(whole, separators=(",", ":")) + "\n"

    raw_lines.edit_line(root, flow, "client", output)


def happened(path: Path, what: str, count: int) -> None:
    """Adds episodes to flows.jsonl, after its start."""
    lines = read(path)
    at = 1 + next(n for n, line in enumerate(lines) if line["kind"] == "start")
    lines[at:at] = [{"kind": "episode", "what": what, "message": "a test"}] * count
    write(path, lines)
