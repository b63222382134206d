"""What a bundle shows of its verdict is drawn again, and compared."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.cli import main
from perch.views import markdown
from tests.py.bundle_built import closed, opened, sealed_again
from tests.py.conftest import FIXTURES, Ended

Perchctl = Callable[..., Ended]

PICTURES = ("report.html", "charts/bandwidth.svg", "first-day.md")


@pytest.fixture(scope="module")
def whole_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run with all that is drawn from it."""
    work = tmp_path_factory.mktemp("whole")
    root = shutil.copytree(FIXTURES / "loopback/run", work / "loopback", symlinks=True)
    for words in (["report"], ["first-day"], ["bundle"]):
        assert main([*words, str(root)]) == 0
    return root.with_name("loopback.bundle.tar.gz")


@pytest.fixture
def whole(whole_bundle: Path, tmp_path: Path) -> Callable[..., Path]:
    """`whole(change)`: its bundle after `change(folder)`, with a new manifest."""

    def edit(change: Callable[[Path], object]) -> Path:
        root = opened(whole_bundle, tmp_path / "opened")
        change(root)
        sealed_again(root)
        closed(root, tmp_path / "whole.tar.gz")
        return tmp_path / "whole.tar.gz"

    return edit


def edits(name: str, *pairs: tuple[str, str]) -> Callable[[Path], None]:
    """Replaces in a file; each must be there."""

    def edit(root: Path) -> None:
        text = (root / name).read_text()
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        (root / name).write_text(text)

    return edit


def test_pages_and_charts_are_drawn_again(whole_bundle: Path, perchctl: Perchctl) -> None:
    ended = perchctl("verify", whole_bundle)
    assert (ended.code, ended.stderr) == (0, "")
    for name in PICTURES:
        assert f"{name}: the same" in ended.stdout


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("report.html", "PASS", "FAIL"),
        ("charts/bandwidth.svg", "iperf3", "engine"),
        ("charts/bandwidth.svg", ' d="M', ' d="M1,1L'),
        ("first-day.md", "not run", "measured"),
    ],
)
def test_a_forged_picture_is_found(
    whole: Callable[..., Path], perchctl: Perchctl, name: str, old: str, new: str
) -> None:
    ended = perchctl("verify", whole(edits(name, (old, new))))
    assert ended.code == 1
    assert f"{name}: it does not show this verdict" in ended.stderr


def test_a_chart_that_no_report_has_is_found(
    whole: Callable[..., Path], perchctl: Perchctl
) -> None:
    ended = perchctl("verify", whole(lambda root: (root / "charts/more.svg").write_text("<svg/>")))
    assert ended.code == 1
    assert "charts/more.svg: it does not show this verdict" in ended.stderr


def test_a_page_of_a_newer_pandoc_is_the_same(
    whole: Callable[..., Path], perchctl: Perchctl
) -> None:
    # pandoc 3.9 gives rows no class
    rows = [(f'<tr class="{name}">', "<tr>") for name in ("header", "odd", "even")]
    ended = perchctl("verify", whole(edits("report.html", *rows)))
    assert (ended.code, ended.stderr) == (0, "")


def test_the_same_words_in_other_markup_prove_nothing(
    whole: Callable[..., Path], perchctl: Perchctl
) -> None:
    edit = edits("report.html", ("<strong>PASS", "<strong hidden>PASS"))
    ended = perchctl("verify", whole(edit))
    assert ended.code == 3
    assert "not compared: report.html (the page has the same words in other" in ended.stderr


def test_a_page_that_cannot_be_made_here_is_named(
    whole_bundle: Path, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perch.views.page.shutil.which", lambda _: None)
    ended = perchctl("verify", whole_bundle)
    assert ended.code == 3
    assert "not compared: report.html (pandoc is not installed" in ended.stderr
    assert "charts/bandwidth.svg: the same, to the byte" in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith("PASS: ")


def test_without_jinja2_exports_are_drawn_again_all_the_same(
    whole_bundle: Path, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> str:
        raise ModuleNotFoundError("No module named 'jinja2'", name="jinja2")

    monkeypatch.setattr(markdown, "filled", missing)
    ended = perchctl("verify", whole_bundle)
    assert ended.code == 3
    assert "not compared: report.md, report.html, first-day.md" in ended.stderr
    assert "the Python package 'jinja2' is missing" in ended.stderr
    assert "perch.prom: the same, to the byte" in ended.stdout
