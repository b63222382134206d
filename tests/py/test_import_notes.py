"""The report of a site's RDMA notes, which were measured elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.py.conftest import FIXTURES

NOTES = FIXTURES / "import/notes.md"


@pytest.fixture(name="report")
def _report(perchctl: Callable[..., Any], tmp_path: Path) -> str:
    run = tmp_path / "run"
    for words in (("import", "--run", run, NOTES), ("report", run)):
        ended = perchctl(*words)
        assert ended.code == 0, ended.stderr
    return (run / "report.md").read_text()


def test_the_report_shows_what_the_socket_said_of_its_connection(report: str) -> None:
    assert (
        "initial round trip 161 µs; window 16,384 bytes; initial congestion window 14,336 bytes; "
        "segments of at most 1,448 bytes"
    ) in report
