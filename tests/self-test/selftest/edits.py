"""How a fault is planted: an edit changes files of the run in whose folder it is called.

An edit that leaves a file as it was raises NothingChangedError: a pattern that misses must not
look like a check that does.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perch.history.seal import seal
from perch.judge.manifest import MANIFEST
from selftest.files import Document, compact, documents, limit_set, write, write_lines
from selftest.paths import FIXTURES
from tests import raw_lines
from tests.py.judging import later as later
from tests.py.judging import more as more
from tests.py.judging import put as put
from tests.py.judging import times as times

#: Outputs of other tools where something was wrong.
TOOLS = FIXTURES / "tools"

Edit = Callable[[Path], None]
#: Changes a document in place; what it returns is not looked at.
Change = Callable[[Document], object]


class NothingChangedError(Exception):
    """An edit changed nothing."""


def _refuse(path: Path, root: Path) -> NothingChangedError:
    return NothingChangedError(f"the edit of {path.relative_to(root)} changed nothing")


def _files(root: Path, pattern: str) -> list[Path]:
    found = sorted(root.glob(pattern))
    if not found:
        raise NothingChangedError(f"no file is named {pattern}")
    return found


# ---- documents -----------------------------------------------------------------------------------


def edit(pattern: str, *changes: Change) -> Edit:
    """Changes each document of the files that match the pattern."""

    def every(found: list[Document]) -> list[Document]:
        for document in found:
            for change in changes:
                change(document)
        return found

    return rewrite(pattern, every)


def rewrite(pattern: str, change: Callable[[list[Document]], list[Document]]) -> Edit:
    """Puts other documents in the place of a file's."""

    def plant(root: Path) -> None:
        for path in _files(root, pattern):
            before = documents(path)
            after = change(copy.deepcopy(before))
            if after == before:
                raise _refuse(path, root)
            write(path, *after)

    return plant


def where(test: Callable[[Document], bool], *changes: Change) -> Change:
    """The changes, of documents that pass the test."""

    def change(document: Document) -> None:
        if test(document):
            for one in changes:
                one(document)

    return change


def drop(path: str) -> Change:
    """Removes a key by its path, such as soak or links.eth1."""
    *parents, key = path.split(".")

    def change(document: Document) -> None:
        for name in parents:
            document = document[name]
        del document[key]

    return change


def add(amount: float, *paths: str) -> Change:
    """Adds to numbers by their paths."""

    def change(document: Document) -> None:
        for path in paths:
            value: Any = document
            for name in path.split("."):
                value = value[name]
            put(path, value + amount)(document)

    return change


def all_times(factor: float) -> Change:
    """Multiplies all times of a latency, and leaves its count."""

    def change(document: Document) -> None:
        figures = document["latency_us"]
        for name, value in figures.items():
            if name != "count" and value is not None:
                figures[name] = value * factor

    return change


def fields(path: str, **values: object) -> Change:
    """Sets keys of the object at a path, or of the document ("")."""

    def change(document: Document) -> None:
        at: Any = document
        for name in filter(None, path.split(".")):
            at = at[name]
        at.update(values)

    return change


def slower(factor: float) -> Change:
    """A bandwidth of so much less in as much more time."""
    rates = ("gbit_s", "messages_per_s", "peak_gbit_s", "min_interval_gbit_s")
    less = times(factor, *(f"bandwidth.{name}" for name in rates))

    def change(document: Document) -> None:
        less(document)
        times(1 / factor, "elapsed_s")(document)

    return change


def says(name: str, change: Callable[[str], str]) -> Change:
    """Changes what a command of a host check or of a switch's reading printed."""

    def command(document: Document) -> None:
        said = document["commands"][name]
        said["stdout"] = change(said["stdout"])

    return command


def says_json(name: str, change: Change) -> Change:
    """The same of a command that printed a JSON document."""

    def parsed(text: str) -> str:
        document = json.loads(text)
        change(document)
        return compact(document)

    return says(name, parsed)


def file_says(*values: tuple[str, str], part: str = "files") -> Change:
    """Sets what files of a host held, by their whole names."""

    def change(document: Document) -> None:
        document[part].update(values)

    return change


def substitute(pattern: str, replacement: str) -> Callable[[str], str]:
    """re.sub over all lines of a text."""
    return lambda text: re.sub(pattern, replacement, text, flags=re.MULTILINE)


# ---- what agents left ----------------------------------------------------------------------------


def ends(flow: str, *changes: Change, role: str = "client", host: str = "*") -> Edit:
    """Changes the ends of flows that match, with the readings around them (tests/raw_lines.py)."""

    def plant(root: Path) -> None:
        for walk, found in _ends_of(root, flow, role, host):
            for end in found:
                before = copy.deepcopy(end)
                walk.change(end, *changes)
                if end == before:
                    raise NothingChangedError(f"the edit of {end['id']}'s {role} changed nothing")
            walk.save()

    return plant


def _ends_of(
    root: Path, flow: str, role: str, host: str
) -> list[tuple[raw_lines.Walk, list[Document]]]:
    """The ends that match, with what else their agent left."""
    found = [(walk, walk.matching(flow, role)) for walk in raw_lines.walks(root, host)]
    if not any(some for _, some in found):
        raise NothingChangedError(f"no {role} of a flow is named {flow}")
    return [(walk, some) for walk, some in found if some]


def output(
    flow: str, change: Callable[[str], str], *, role: str = "client", name: str = "stdout"
) -> Edit:
    """Changes the text that the flow's tool wrote."""

    def written(end: Document) -> None:
        end[name] = change(end.get(name, ""))

    return ends(flow, written, role=role)


def printed(flow: str, change: Callable[[list[Document]], list[Document]], host: str = "*") -> Edit:
    """Puts other documents in the place of those that a flow's client printed."""

    def documents(end: Document) -> None:
        before = raw_lines.parsed(end["stdout"])
        after = change(copy.deepcopy(before))
        if after == before:
            raise NothingChangedError(f"the edit of {end['id']}'s output changed nothing")
        end["stdout"] = raw_lines.printed(after)

    return ends(flow, documents, host=host)


def prints(flow: str, *changes: Change, host: str = "*") -> Edit:
    """Changes each document that a flow's client printed."""

    def every(found: list[Document]) -> list[Document]:
        for document in found:
            for change in changes:
                change(document)
        return found

    return printed(flow, every, host)


def wrote(flow: str, source: str | Path, *, role: str = "client", name: str = "stdout") -> Edit:
    """Gives a flow the output of another flow, or of a fixture (a path)."""

    def plant(root: Path) -> None:
        if isinstance(source, Path):
            text = source.read_text()
        else:
            text = raw_lines.End(root, source).read()
        output(flow, lambda _: text, role=role, name=name)(root)

    return plant


def unreported(flow: str, role: str = "*") -> Edit:
    """Removes the lines of flows."""

    def plant(root: Path) -> None:
        for walk, found in _ends_of(root, flow, role, "*"):
            for end in found:
                walk.ends.remove(end)
            walk.save()

    return plant


def agent(host: str, *changes: Change) -> Edit:
    """Changes what an agent says of itself in its first and its last line."""

    def plant(root: Path) -> None:
        walk = next(raw_lines.walks(root, host))
        before = dict(walk.agent)
        for change in changes:
            change(walk.agent)
        if walk.agent == before:
            raise NothingChangedError(f"the edit of {host}'s agent changed nothing")
        walk.save()

    return plant


def idle(host: str, *changes: Change) -> Edit:
    """Changes the readings of a host's idle time."""

    def plant(root: Path) -> None:
        walk = next(raw_lines.walks(root, host))
        readings = walk.idle()
        for change in changes:
            change(readings)
        walk.save()

    return plant


def readings(host: str, change: Change) -> Edit:
    """Changes each reading of a host's counters."""

    def plant(root: Path) -> None:
        for walk in raw_lines.walks(root, host):
            for reading in walk.samples:
                change(reading)
            walk.save()

    return plant


def from_then_on(flow: str, *changes: Change, role: str = "client", since: str = "after") -> Edit:
    """Changes a reading of a flow's end, and all later ones of its host; counters go on."""

    def plant(root: Path) -> None:
        for change in changes:
            raw_lines.go_on(raw_lines.End(root, flow, role), change, since=since)

    return plant


def counting(flow: str, path: str, before: int, after: int, role: str = "client") -> Edit:
    """Sets what a counter showed before a flow and after it, in all readings of its host."""
    return lambda root: raw_lines.counts(raw_lines.End(root, flow, role), path, before, after)


# ---- text ----------------------------------------------------------------------------------------


def text(pattern: str, change: Callable[[str], str]) -> Edit:
    """Changes the text of files."""

    def plant(root: Path) -> None:
        for path in _files(root, pattern):
            before = path.read_text()
            after = change(before)
            if after == before:
                raise _refuse(path, root)
            path.write_text(after)

    return plant


def replaced(path: str, pattern: str, replacement: str) -> Edit:
    """re.sub over all lines of a file."""
    return text(path, substitute(pattern, replacement))


def lines(path: str, change: Callable[[list[str]], list[str]]) -> Edit:
    """Changes the lines of a file."""
    return text(path, lambda all_: "".join(change(all_.splitlines(keepends=True))))


def first_lines(path: str, count: int) -> Edit:
    """Leaves the first lines of a file."""
    return lines(path, lambda all_: all_[:count])


def without_lines(path: str, first: int, last: int) -> Edit:
    """Takes lines out of a file; the first line is 1."""
    return lines(path, lambda all_: all_[: first - 1] + all_[last:])


def doubled_line(path: str, number: int) -> Edit:
    """Repeats a line of a file."""
    return lines(path, lambda all_: all_[:number] + all_[number - 1 :])


def cut_at(path: str, size: int) -> Edit:
    """Leaves the first bytes of a file; a negative number is cut from its end."""

    def plant(root: Path) -> None:
        file = root / path
        before = file.read_bytes()
        if before[:size] == before:
            raise _refuse(file, root)
        file.write_bytes(before[:size])

    return plant


# ---- files ---------------------------------------------------------------------------------------


def remove(*paths: str) -> Edit:
    """Removes files and folders."""

    def plant(root: Path) -> None:
        for name in paths:
            path = root / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    return plant


def content(path: str, source: str | Path) -> Edit:
    """Gives a file the content of another one of the run, or of a fixture (an absolute path)."""

    def plant(root: Path) -> None:
        file, other = root / path, (root / source).read_bytes()
        if file.exists() and file.read_bytes() == other:
            raise _refuse(file, root)
        file.write_bytes(other)

    return plant


def line(path: str, said: str) -> Edit:
    """Makes this one line all that a file holds."""
    return lambda root: write_lines(root / path, [said])


def folder(path: str) -> Edit:
    """Puts a folder in the place of a file."""

    def plant(root: Path) -> None:
        (root / path).unlink()
        (root / path).mkdir()

    return plant


def sealed_again(root: Path) -> None:
    """Makes the manifest again, of the files that are there now."""
    (root / MANIFEST).unlink()
    seal(root)


def limits_of(name: str) -> Edit:
    """Plans with another set of limits."""

    def planted(root: Path) -> None:
        write(root / "inputs/limits.json", limit_set(name))
        edit("plan.json", put("limits", name))(root)

    return planted


def posing_as(line: Document, other: Document) -> Document:
    """A line's figures under the size and at the time of another, by which a gigabyte cost more."""
    own = {name: other[name] for name in ("params", "started")}
    smaller = line["params"]["size_bytes"] / other["params"]["size_bytes"]
    cpu = {
        name: value * smaller if name.endswith("_per_gb") else value
        for name, value in line["cpu"].items()
    }
    return line | own | {"cpu": cpu}
