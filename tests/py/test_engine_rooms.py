"""The rooms of `engine/src/`: headers are named with their room, and no rooms need each other."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ENGINE = Path(__file__).parents[2] / "engine"
SOURCES = ENGINE / "src"
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def rooms(sources: Path) -> dict[str, dict[str, str]]:
    """For each room, the rooms that it includes headers of, each with one file that does."""
    found: dict[str, dict[str, str]] = {}
    for file in sorted(sources.rglob("*.[ch]")):
        room = file.parent.relative_to(sources).as_posix()
        for header in INCLUDE.findall(file.read_text(encoding="utf-8")):
            if not (file.parent / header).exists():
                assert (sources / header).exists(), f"{file}: no {header}"
                other = Path(header).parent.as_posix()
                found.setdefault(room, {})[other] = f"{file.name} includes {header}"
    return found


def circle(found: dict[str, dict[str, str]]) -> list[str]:
    """The includes that close a circle of rooms; none where there is no circle."""
    try:
        TopologicalSorter({room: set(others) for room, others in found.items()}).prepare()
    except CycleError as error:
        path = error.args[1]
        return [found[b][a] for a, b in itertools.pairwise(path)]
    return []


def linked(built: Path) -> dict[str, dict[str, str]]:
    """For each object, those whose symbols it uses, each with a symbol; a header hides none."""
    sources = (path.relative_to(SOURCES) for path in SOURCES.rglob("*.c"))
    objects = sorted(filter(Path.exists, ((built / one).with_suffix(".o") for one in sources)))
    listed = subprocess.run(
        ["nm", "-A", "-g", *objects], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    symbols = re.findall(r"^(.*\.o):\S* +([A-Za-z]) (\w+)$", listed, re.MULTILINE)
    names = {str(path): path.relative_to(built).as_posix() for path in objects}
    defined = {name: names[path] for path, kind, name in symbols if kind != "U"}
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path, kind, name in symbols:
        if kind == "U" and defined.get(name, names[path]) != names[path]:
            found[names[path]][defined[name]] = f"{names[path]} uses {name}"
    return found


def between_rooms(found: dict[str, dict[str, str]]) -> list[str]:
    """The uses that close a circle of objects of different rooms."""
    # objects of one room may need each other; a circle through another room passes two of its own
    reached: dict[str, set[str]] = {}
    for start in found:
        seen, todo = set[str](), [start]
        while todo:
            new = found.get(todo.pop(), {}).keys() - seen
            seen |= new
            todo += new
        reached[start] = seen
    return sorted(
        use
        for one, uses in found.items()
        for other, use in uses.items()
        if Path(one).parent != Path(other).parent and one in reached.get(other, set())
    )


def test_no_rooms_need_each_other() -> None:
    found = rooms(SOURCES)
    assert len(found) > 10
    assert circle(found) == []


def test_no_objects_of_two_rooms_need_each_other() -> None:
    built = ENGINE / "build"
    if not (built / "main.o").exists():
        pytest.skip("NOT TESTED: engine/build is not built (make engine)")
    found = linked(built)
    assert len(found) > 80
    assert between_rooms(found) == []


def test_a_circle_of_objects_is_named_with_its_symbols() -> None:
    found = {
        "a/a.o": {"a/b.o": "a/a.o uses b"},
        "a/b.o": {"b/c.o": "a/b.o uses c", "a/a.o": "a/b.o uses a"},
        "b/c.o": {"a/a.o": "b/c.o uses a"},
    }
    assert between_rooms(found) == ["a/b.o uses c", "b/c.o uses a"]
    del found["b/c.o"]
    assert between_rooms(found) == []


def test_a_circle_is_named_with_its_files(tmp_path: Path) -> None:
    for file, header in (("a/a.h", "b/b.h"), ("b/b.h", "c/c.h"), ("c/c.h", "a/a.h")):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(f'#include "{header}"\n', encoding="utf-8")
    assert sorted(circle(rooms(tmp_path))) == [
        "a.h includes b/b.h",
        "b.h includes c/c.h",
        "c.h includes a/a.h",
    ]


def test_a_header_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text('#include "x/y.h"\n', encoding="utf-8")
    with pytest.raises(AssertionError, match=r"no x/y\.h"):
        rooms(tmp_path)


def undocumented(vtable: str, skeleton: str) -> list[str]:
    """The hooks of which no comment of the skeleton says whether they are required."""
    structs = re.findall(
        r"^struct (?:backend|\w+_hooks) \{\n.*?^\};", vtable, re.DOTALL | re.MULTILINE
    )
    words = r"(?:Required|Not required)\.\s*(?:\*/|\n\s*\* \.)"
    return [
        hook
        for hook in re.findall(r"\(\*(\w+)\)\(", "".join(structs))
        if not re.search(rf"{words}\nstatic [^\n]*null_{hook}\(", skeleton)
        and not re.search(rf"\.{hook}:(?:(?!\*/).)*?{words}", skeleton, re.DOTALL)
        and not re.search(rf"->{hook}:(?:(?!\*/).)*?{words}", skeleton, re.DOTALL)
    ]


def test_the_skeleton_says_of_each_hook_whether_it_is_required() -> None:
    vtable = (SOURCES / "backends" / "backend.h").read_text(encoding="utf-8")
    skeleton = (SOURCES / "backends" / "null" / "null.c").read_text(encoding="utf-8")
    assert "(*poll)" in vtable
    assert undocumented(vtable, skeleton) == []
    assert undocumented(vtable, skeleton.replace(".near:", ".far:")) == ["near"]
    forgotten = skeleton.replace(
        "too. Required. */\nstatic int null_poll", "*/\nstatic int null_poll"
    )
    assert undocumented(vtable, forgotten) == ["poll"]
