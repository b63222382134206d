"""Each room of `perch/` imports only rooms before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]

#: The rooms in their order; a line has the modules and packages that may import each other.
ROOMS = (
    ("errors", "home", "programs", "terminal"),
    ("model",),
    ("tools",),
    ("plan",),
    ("agent",),
    ("judge",),
    ("imports",),
    ("soak",),
    ("checks",),
    ("run",),
    ("views",),
    ("exports",),
    ("history",),
    ("cli", "completion", "__main__"),
)
RANK = {name: rank for rank, names in enumerate(ROOMS) for name in names}


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each module of perch that is imported, also within functions."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found = [alias.name for alias in names]
            case ast.ImportFrom(module="perch", level=0, names=names):
                found = [f"perch.{alias.name}" for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                found = [module]
            case ast.ImportFrom():
                found = ["perch.relative"]  # no room: absolute imports name theirs
            case _:
                continue
        yield from ((node.lineno, name) for name in found if name.startswith("perch."))


def violations(file: str, source: str) -> list[str]:
    """The imports of a later room, or of what is no room."""
    room = Path(file).parts[1].removesuffix(".py")
    return [
        f"{file}:{line}: {room} imports {name}"
        for line, name in imported(source)
        if RANK.get(name.split(".")[1], len(ROOMS)) > RANK[room]
    ]


FILES = sorted(
    path for path in (TOP / "perch").rglob("*.py") if path != TOP / "perch" / "__init__.py"
)


def test_no_room_imports_a_later_one() -> None:
    found = [
        line
        for path in FILES
        for line in violations(path.relative_to(TOP).as_posix(), path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


def test_every_room_of_the_order_exists() -> None:
    rooms = {path.relative_to(TOP).parts[1].removesuffix(".py") for path in FILES}
    assert rooms == RANK.keys()


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("from perch.views import words", "perch.views"),
        ("import os\n\nimport perch.run.judging", "perch.run.judging"),
        ("def late() -> None:\n    from perch import history", "perch.history"),
        ("from .later import word", "perch.relative"),
        ("if TYPE_CHECKING:\n    from perch.cli import Parser", "perch.cli"),
    ],
)
def test_an_import_of_a_later_room_is_named_with_its_line(source: str, named: str) -> None:
    line = source.count("\n") + 1
    found = violations("perch/judge/raw.py", source)
    assert found == [f"perch/judge/raw.py:{line}: judge imports {named}"]


def test_imports_of_earlier_rooms_are_allowed() -> None:
    source = "import perch\nfrom perch.model import raw\nfrom perch.judge import ends\n"
    assert violations("perch/judge/raw.py", source) == []


def test_the_layout_names_the_rooms_in_this_order() -> None:
    order = ", ".join(f"`{name}`" for names in ROOMS[1:-1] for name in names)
    layout = " ".join((TOP / "CONTRIBUTING.md").read_text("utf-8").split())
    assert f"{order}, `cli`." in layout
