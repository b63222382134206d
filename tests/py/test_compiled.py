"""tests/compiled: what Python imports from archives is compiled once, and again when it changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

HOOK = Path(__file__).parents[1] / "compiled/sitecustomize.py"


@pytest.fixture
def hook(tmp_path: Path) -> Path:
    """A copy of the folder in a tree of its own, whose .cache is empty."""
    folder = tmp_path / "tree/tests/compiled"
    folder.mkdir(parents=True)
    shutil.copy(HOOK, folder)
    return folder


def imported(hook: Path, archive: Path, source: str) -> str:
    """What a module that lies in an archive prints when it is imported."""
    with ZipFile(archive, "w") as file:
        file.writestr("once.py", source)
    ended = subprocess.run(
        [sys.executable, "-c", "import once"],
        env=os.environ | {"PYTHONPATH": f"{hook}:{archive}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout


def kept(hook: Path) -> dict[str, int]:
    """The files of compiled code, and when each was written."""
    found = (hook.parents[1] / ".cache/compiled").glob("*")
    return {path.name: path.stat().st_mtime_ns for path in found}


def test_the_same_source_is_compiled_once_whatever_its_archive(hook: Path, tmp_path: Path) -> None:
    assert imported(hook, tmp_path / "a.zip", "print(1)") == "1\n"
    first = kept(hook)
    assert len(first) == 1
    assert imported(hook, tmp_path / "b.zip", "print(1)") == "1\n"
    assert kept(hook) == first


def test_what_was_kept_is_what_runs(hook: Path, tmp_path: Path) -> None:
    imported(hook, tmp_path / "a.zip", "print(1)")
    other = hook.parent / "other"
    imported(hook, tmp_path / "b.zip", "print(2)")
    one, two = sorted((hook.parents[1] / ".cache/compiled").iterdir())
    one.rename(other)
    two.rename(one)
    other.rename(two)
    assert imported(hook, tmp_path / "c.zip", "print(1)") == "2\n"


def test_a_changed_source_is_compiled_anew(hook: Path, tmp_path: Path) -> None:
    assert imported(hook, tmp_path / "a.zip", "print(1)") == "1\n"
    assert imported(hook, tmp_path / "a.zip", "print(2)") == "2\n"


def test_torn_code_is_compiled_anew(hook: Path, tmp_path: Path) -> None:
    imported(hook, tmp_path / "a.zip", "print(1)")
    for path in (hook.parents[1] / ".cache/compiled").iterdir():
        path.write_bytes(path.read_bytes()[:20])
    assert imported(hook, tmp_path / "a.zip", "print(1)") == "1\n"
