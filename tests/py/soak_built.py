"""Composed soaks (tests/soak_compose.py), altered and judged in this process."""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from perch.run.judging import judge
from tests import raw_lines, soak_lines, spelled

Document = dict[str, Any]

main: Callable[[list[str]], None] = importlib.import_module("tests.soak_compose").main


class Soak:
    """A composed run; `verdict` is the last one of `judge()`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.verdict: Document = {}

    # ---- altering --------------------------------------------------------------------------------

    def edit(self, path: str, change: Callable[[Document], None]) -> None:
        """Changes a JSON document; of plan.json the plan with its flows spelled out."""
        if path == "plan.json":
            spelled.edit(self.root, change)
            return
        document = json.loads((self.root / path).read_text())
        change(document)
        (self.root / path).write_text(json.dumps(document, separators=(",", ":")) + "\n")

    def edit_lines(self, files: str, change: Callable[[Document, int], None]) -> None:
        """Changes each line of files under raw/; it gets the line and its place from 0."""
        for path in sorted(self.root.glob(f"raw/{files}")):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for place, line in enumerate(lines):
                change(line, place)
            path.write_text("".join(json.dumps(x, separators=(",", ":")) + "\n" for x in lines))

    def samples(self, change: Callable[[Document, int], None], host: str = "*") -> None:
        """Changes each sample; it gets the sample, with names for its counters, and its place."""
        for path in sorted(self.root.glob(f"raw/{host}/samples.jsonl")):
            soak_lines.edit_samples(path, change)

    def lines(self, test: str, change: Callable[[Document, int], None]) -> None:
        """Of the flows of a test, and what their clients printed, which is the same."""
        self.edit_lines(f"*/flows/{test}/*/*/*/*/client.soak", change)
        for path in self.root.glob("raw/*/flows/*/*/*/*/*/client.soak"):
            flow = "/".join(path.parts[-6:-1])
            self.printed(flow, path.read_text().splitlines(keepends=True)[-1])

    def printed(self, flow: str, text: str) -> None:
        """Gives a client another output."""
        raw_lines.edit_line(self.root, flow, "client", lambda line: line.update(stdout=text))

    def agent(self, host: str, kind: str, **said: Any) -> None:
        """Changes a host's lines of flows.jsonl of a kind; None takes a key away."""

        def change(line: Document, _: int) -> None:
            if line["kind"] == kind:
                line.update(said)
                for key in [key for key in said if said[key] is None]:
                    del line[key]

        self.edit_lines(f"{host}/flows.jsonl", change)

    def happened(self, host: str, what: str, count: int) -> None:
        """So many episodes of a host."""
        soak_lines.happened(self.root / f"raw/{host}/flows.jsonl", what, count)

    def limit(self, *limits: Document) -> None:
        """Adds limits to those of the run."""

        def change(document: Document) -> None:
            for one in limits:
                name = f"limit-{len(document['limits'])}"
                about = {"id": name, "title": "a test", "scope": {}, "unit": "%"}
                why = {"source": "site policy: a test", "remedy": "none"}
                document["limits"].append(about | why | one)

        self.edit("inputs/limits.json", change)

    # ---- what was judged -------------------------------------------------------------------------

    def judge(self) -> str:
        verdict, error = judge(self.root)
        assert error is None or verdict.verdict == "INCONCLUSIVE"
        self.verdict = json.loads((self.root / "verdict.json").read_text())
        return verdict.verdict

    @property
    def soak(self) -> Document:
        section: Document = self.verdict["soak"]
        return section

    def check(self, name: str) -> Document:
        found = [one for one in self.verdict["checks"] if one["id"] == f"soak/{name}"]
        assert len(found) == 1, name
        return dict(found[0])

    def status(self, name: str) -> str:
        return str(self.check(name)["status"])

    def said(self, name: str) -> str:
        one = self.check(name)
        return f"{one['status']}: {one['measured']}"

    def anomalies(self, kind: str) -> list[Document]:
        return [one for one in self.soak["anomalies"] if one["kind"] == kind]

    def texts(self, kind: str) -> list[str]:
        return [
            f"{one['severity']} {one['flow'] or one['host']}: {one['text']}"
            for one in self.anomalies(kind)
        ]

    def found(self, kind: str, at: str) -> str | None:
        """The severity of the first of a kind, in a flow or on a host."""
        return next(
            (one["severity"] for one in self.anomalies(kind) if (one["flow"] or one["host"]) == at),
            None,
        )

    def intervals(self) -> Iterator[Document]:
        with (self.root / "intervals.jsonl").open() as lines:
            yield from map(json.loads, lines)


@cache
def _files(words: str) -> list[tuple[Path, bytes]]:
    """What a composed run holds. The same words give the same bytes, so once in a process."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        main([folder, *words.split()])
        return [
            (path.relative_to(root), path.read_bytes())
            for path in sorted(root.rglob("*"))
            if path.is_file()
        ]


def composed(root: Path, words: str) -> Soak:
    for path, content in _files(words):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return Soak(root)


def judged(root: Path, words: str) -> Soak:
    soak = composed(root, words)
    soak.judge()
    return soak
