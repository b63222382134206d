"""The version and its date stand in engine/src/version.h; what states them too agrees with it."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

TOP = Path(__file__).parents[2]
HEADER = (TOP / "engine/src/version.h").read_text(encoding="utf-8")


def defined(name: str) -> str:
    found = re.findall(rf'^#define {name} "([^"]+)"', HEADER, re.MULTILINE)
    assert len(found) == 1
    return str(found[0])


VERSION, DATE = defined("PERCH_VERSION"), defined("PERCH_DATE")


def test_the_version_is_semantic() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(-[0-9a-z.]+)?", VERSION)


def test_the_collection_has_the_version() -> None:
    galaxy = yaml.safe_load((TOP / "galaxy.yml").read_text(encoding="utf-8"))
    assert galaxy["version"] == VERSION, "run make version"


def test_the_python_package_reads_the_version() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    source = project["tool"]["hatch"]["version"]
    found = re.search(source["pattern"], (TOP / source["path"]).read_text(encoding="utf-8"))
    assert found is not None
    assert found["version"] == VERSION


def test_perchctl_states_the_version(perchctl: Callable[..., Any]) -> None:
    assert perchctl("--version") == (0, f"perchctl {VERSION}\n", "")


def test_the_engine_states_the_version() -> None:
    checker = TOP / "engine/build-check/perch"
    done = subprocess.run([checker, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == f"perch {VERSION}"


def test_the_newest_release_in_the_changelog_has_version_and_date() -> None:
    changelog = (TOP / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\d\S*) - (\S+)$", changelog, re.MULTILINE)
    assert releases[0] == (VERSION, DATE)


@pytest.mark.parametrize("name", ["README.md", "docs/guide.md", "pyproject.toml", "Makefile"])
def test_no_other_file_states_the_version(name: str) -> None:
    assert VERSION not in (TOP / name).read_text(encoding="utf-8")
