"""The linter of sizes: what is too long, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import sizes


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.c", "x" * 120 + "\n", []),
        ("a.h", "\n" + "x" * 121 + "\n", ["a.h:2: 121 columns; limit 120"]),
        ("a.c", "\t" * 15 + "x\n", ["a.c:1: 121 columns; limit 120"]),
        ("a.c", "abc\t" * 15 + "\n", []),
        ("a.c", "\u00b7" * 120 + "\n", []),
        ("a.c", "\n" * 700, []),
        ("a.c", "\n" * 701, ["a.c: 701 lines; limit 700"]),
        (
            "a.py",
            "x" * 101 + "\n" * 501,
            ["a.py:1: 101 columns; limit 100", "a.py: 501 lines; limit 500"],
        ),
    ],
)
def test_lines_and_files_have_limits(name: str, text: str, found: list[str]) -> None:
    assert list(sizes.above(name, text)) == found


def test_each_file_above_a_limit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sizes, "ROOT", tmp_path)
    monkeypatch.setattr(sizes, "tree", lambda: ["a.c", "b.h", "gone.c", "c.svg"])
    (tmp_path / "a.c").write_text("short\n")
    (tmp_path / "b.h").write_text("x" * 121)
    (tmp_path / "c.svg").write_text("x" * 1000)
    assert sizes.main() == 1
    assert capsys.readouterr().out == "b.h:1: 121 columns; limit 120\n"
    (tmp_path / "b.h").write_text("x")
    assert sizes.main() == 0
