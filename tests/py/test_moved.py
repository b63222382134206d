"""Each test of bats that 784ecbd had is still there, or has a successor: tests/moved.tsv."""

from __future__ import annotations

import ast
import hashlib
import re
from functools import cache
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
HEAD, *LINES = (TOP / "tests/moved.tsv").read_text().splitlines()
ROWS = [line.split("\t") for line in LINES]

#: Of the files and titles in their order, `FILE<tab>TITLE<newline>` of each @test below tests/bats.
#: 914 lines there name @test; one of them is an XPath.
NAMES = "a66c2d70e14fe5912839e15fe1c068d2aa9fb08220046c1cb2a983d95f40a076"
COUNT = 913

_TITLE = re.compile(r"""^@test\s+(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*\{""", re.MULTILINE)


@cache
def titles(file: str) -> frozenset[str]:
    """Of the tests in a file of bats."""
    path = TOP / file
    found = _TITLE.findall(path.read_text()) if path.is_file() else []
    return frozenset(one or other for one, other in found)


@cache
def functions(file: str) -> frozenset[str]:
    """The tests in a file of pytest."""
    path = TOP / file
    body = ast.parse(path.read_text()).body if path.is_file() else []
    return frozenset(
        one.name
        for one in body
        if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")
    )


def is_there(file: str, title: str, successor: str) -> bool:
    if successor == "itself":
        return title in titles(file)
    if "::" in successor:
        name, _, function = successor.partition("::")
        return function in functions(name)
    name, _, other = successor.partition(": ")
    return other in titles(name)


def test_no_test_is_missing_from_the_list() -> None:
    assert HEAD.split("\t")[:3] == ["file of 784ecbd", "test of 784ecbd", "successors"]
    assert len(ROWS) == COUNT
    names = "".join(f"{row[0]}\t{row[1]}\n" for row in ROWS)
    assert hashlib.sha256(names.encode()).hexdigest() == NAMES


def test_each_successor_is_in_the_tree() -> None:
    gone = [
        f"{row[0]}: {row[1]}: {successor}"
        for row in ROWS
        for successor in row[2].split(" + ")
        if not is_there(row[0], row[1], successor)
    ]
    assert gone == []


@pytest.mark.parametrize(
    "successor",
    ["itself", "", "tests/py/test_moved.py::test_x", "tests/py/none.py::test_x",
     "tests/bats/judge.bats: none", "tests/bats/none.bats: none"],
)  # fmt: skip
def test_a_successor_that_is_not_there_is_seen(successor: str) -> None:
    assert not is_there("tests/bats/judge.bats", "a test that never was", successor)
