"""What jq finds on hosts and switches is alike under its versions 1.6 and 1.7.

Debian 12 has jq 1.6; the package `jq` brings a newer one, which keeps a number's spelling.
"""

from __future__ import annotations

import runpy
from collections.abc import Mapping

import jq
import pytest

from perch.home import HOME
from perch.judge import findings
from perch.judge.jq_program import whole


def newer(programs: Mapping[str, str], text: bytes) -> list[bytes]:
    return [
        jq.compile(whole(program)).input_text(text.decode()).text().encode()
        for program in programs.values()
    ]


def test_every_recorded_host_and_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # what the tests of this process have asked jq before
    document = runpy.run_path(str(HOME / "tests/debian13/findings.py"))["document"]
    installed = document()
    assert len(installed["hosts"]) > 40

    monkeypatch.setattr(findings, "_answers", newer)
    found = document()
    assert found["hosts"] == installed["hosts"]
    assert found["switches"] == installed["switches"]


def test_a_spelling_is_kept() -> None:
    """Otherwise this is the older jq twice."""
    assert newer({"area": '"\\(.value)"'}, b'{"value": 32.0}') == [b'"32.0"']
