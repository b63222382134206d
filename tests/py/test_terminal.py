"""perch.terminal: tables and progress on a terminal, nothing elsewhere."""

from __future__ import annotations

import io
import sys
from threading import Event

import pytest

from perch import terminal

#: Seconds after which a bar that follows nothing fails the test.
DEADLINE_S = 30


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_is_drawn_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not terminal.show(["Test", "Checks"], [["tcp [latency]", "warning"]])
    assert capsys.readouterr().out == ""
    drawn = Terminal()
    monkeypatch.setattr(sys, "stdout", drawn)
    assert terminal.show(["Test", "Checks"], [["tcp [latency]", "warning"]])
    assert "tcp [latency]" in drawn.getvalue()
    assert "warning" in drawn.getvalue()


def test_progress_follows_what_is_done_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, drawn = Event(), Terminal()
    monkeypatch.setattr(sys, "stderr", drawn)

    def done() -> int:
        seen.set()
        return 3

    with terminal.progress("outputs read", 24, done):
        assert seen.wait(DEADLINE_S)
    assert "outputs read" in drawn.getvalue()


def test_progress_says_nothing_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress("outputs read", 24, lambda: pytest.fail("nobody looks")):
        pass
    assert capsys.readouterr().err == ""
