"""Fixtures of all tests of the package."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from selftest.kept import Kept
from selftest.work import Judged, remembered

from perch.cli import main
from perch.judge import findings
from perch.views import vega
from tests.py.cards import put_cards
from tests.py.drawing import Pictures
from tests.py.judging import Run

pytest_plugins = ["tests.py.tap", "tests.py.agent_hosts", "tests.py.agent_soaks"]

#: Objects between two collections. Python's 700 would look through all collected tests again and
#: again: a third of the time in which they are collected.
gc.set_threshold(50_000)

FIXTURES = Path(__file__).parents[1] / "fixtures"


def pytest_collection_finish() -> None:
    """Leaves the collected tests, which stay to the end, out of later collections."""
    gc.freeze()


class Ended(NamedTuple):
    """What a command left when it had ended."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def run_copy(tmp_path: Path) -> Callable[[str], Path]:
    """Copies tests/fixtures/NAME/run: `run_copy(NAME)` is a folder that the test may change."""

    def copy(name: str) -> Path:
        return shutil.copytree(FIXTURES / name / "run", tmp_path / name, symlinks=True)

    return copy


@pytest.fixture(scope="session")
def findings_once() -> Judged:
    """perch.judge.findings.judged, which asks jq once for all hosts that answered alike."""
    return remembered(findings.judged)


@pytest.fixture(scope="session")
def kept_jq() -> Iterator[Kept]:
    """jq that has compiled the checks of hosts, for all tests of a process."""
    kept = Kept()
    yield kept
    kept.end()


@pytest.fixture(autouse=True)
def hosts_once(monkeypatch: pytest.MonkeyPatch, findings_once: Judged, kept_jq: Kept) -> None:
    """Judges hosts that answered alike once for all tests of a process."""
    monkeypatch.setattr(findings, "_answers", kept_jq.answers)
    monkeypatch.setattr(findings, "judged", findings_once)


@pytest.fixture(scope="session")
def pictures() -> Iterator[Pictures]:
    pictures = Pictures()
    yield pictures
    pictures.end()


@pytest.fixture(autouse=True)
def pictures_once(monkeypatch: pytest.MonkeyPatch, pictures: Pictures) -> None:
    """Draws the pictures of reports that are alike once for all tests of a process."""
    monkeypatch.setattr(vega, "Process", pictures.of_a_report())


@pytest.fixture
def loopback(run_copy: Callable[[str], Path]) -> Run:
    """The recorded run over loopback."""
    return Run(run_copy("loopback"))


@pytest.fixture
def judged(loopback: Run) -> Path:
    """Its folder, judged."""
    loopback.judge()
    return loopback.root


@pytest.fixture
def rxe(run_copy: Callable[[str], Path]) -> Run:
    """The recorded run over Soft-RoCE."""
    return Run(run_copy("rxe"))


@pytest.fixture
def cards(rxe: Run, hosts_once: None) -> Run:
    """The same, as if cards of hardware had made it."""
    return put_cards(rxe)


@pytest.fixture
def perchctl(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs perchctl in this process: `perchctl(WORD...)` gives what it ended with."""

    def run(*words: object) -> Ended:
        capsys.readouterr()  # what the test printed before
        code = main([str(word) for word in words])
        return Ended(code, *capsys.readouterr())

    return run
