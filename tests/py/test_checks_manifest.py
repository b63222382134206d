"""The manifest of a run's evidence, as the judge reads it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.history.seal import seal
from tests.py.cards import put_cards
from tests.py.judging import Run, check_of, status

LOG = "raw/alpha/agent.log"


@pytest.fixture
def run(run_copy: Callable[[str], Path]) -> Run:
    """The recorded run over loopback, unsealed."""
    run = Run(run_copy("loopback"))
    for host in ("alpha", "beta"):
        (run.root / f"raw/{host}/agent.log").write_text("started\n")
    return run


@pytest.fixture
def sealed(run: Run) -> Run:
    seal(run.root)
    return run


def test_a_run_without_a_manifest_says_so(run: Run) -> None:
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, "manifest")) == ("PASS", "not_judged")


def test_a_run_of_hardware_must_have_its_manifest(run_copy: Callable[[str], Path]) -> None:
    cards = put_cards(Run(run_copy("rxe")))
    assert cards.judge().verdict == "PASS"
    (cards.root / "raw/manifest.sha256").unlink()
    cards.fetched = False
    verdict = cards.judge()
    assert (verdict.verdict, status(verdict, "manifest")) == ("INCONCLUSIVE", "inconclusive")


def test_a_sealed_run_passes(sealed: Run) -> None:
    verdict = sealed.judge()
    assert (verdict.verdict, status(verdict, "manifest")) == ("PASS", "pass")


def edited(root: Path) -> None:
    with (root / LOG).open("a") as file:
        file.write(" ")


def loosened(root: Path) -> None:
    path = root / "inputs/limits.json"
    path.write_text(path.read_text().replace('"required"', '"advisory"'))


def removed(root: Path) -> None:
    (root / LOG).unlink()


def added(root: Path) -> None:
    (root / "raw/beta/added").write_text("\n")


@pytest.mark.parametrize(
    ("change", "check", "file"),
    [
        (edited, "changed", LOG),
        (loosened, "changed", "inputs/limits.json"),
        (removed, "missing", LOG),
        (added, "new", "raw/beta/added"),
    ],
)
def test_what_changed_after_sealing_is_inconclusive_and_named(
    sealed: Run, change: Callable[[Path], None], check: str, file: str
) -> None:
    change(sealed.root)
    verdict = sealed.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    found = check_of(verdict, f"manifest/{check}")
    assert (found.status, found.evidence) == ("inconclusive", [file])


def link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def junk(manifest: Path) -> None:
    manifest.write_text(manifest.read_text() + "junk\n")


def empty(manifest: Path) -> None:
    manifest.write_text("")


def folder(manifest: Path) -> None:
    manifest.unlink()
    manifest.mkdir()


def pipe(manifest: Path) -> None:
    manifest.unlink()
    os.mkfifo(manifest)


@pytest.mark.parametrize(
    ("change", "check"), [(junk, "line"), (empty, "new"), (folder, "line"), (pipe, "line")]
)
def test_what_is_no_manifest_is_inconclusive(
    sealed: Run, change: Callable[[Path], None], check: str
) -> None:
    change(sealed.root / "raw/manifest.sha256")
    verdict = sealed.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, f"manifest/{check}") == "inconclusive"


def test_a_raw_file_that_is_a_pipe_or_a_link_now_is_missing(sealed: Run) -> None:
    for host, put in (("alpha", os.mkfifo), ("beta", link)):
        path = sealed.root / f"raw/{host}/agent.log"
        path.unlink()
        put(path)
    verdict = sealed.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert len(check_of(verdict, "manifest/missing").evidence) == 2


def test_sealing_again_changes_no_hash(sealed: Run) -> None:
    edited(sealed.root)
    added(sealed.root)
    seal(sealed.root)
    verdict = sealed.judge()
    found = [one.id for one in verdict.checks if one.id.startswith("manifest/")]
    assert found == ["manifest/changed"]
