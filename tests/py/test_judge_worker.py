"""Processes that read raw outputs: one that is stuck ends the judging, one that works does not."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import pytest

from perch.errors import ExitCode, PerchError
from perch.judge import worker


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worker, "LOOK_S", 0.01)
    os.mkfifo(tmp_path / worker.SOURCE)  # a worker waits for ever for what it reads first


def test_a_worker_that_is_stopped_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "IDLE_S", 0.2)
    with worker._Worker(tmp_path, 0) as stopped:
        os.kill(stopped._process.pid, signal.SIGSTOP)
        with pytest.raises(PerchError, match="did nothing for 0 s") as found:
            stopped.read()
    assert found.value.code == ExitCode.NOT_WRITABLE
    assert stopped._process.returncode == -signal.SIGKILL


def test_a_worker_that_works_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes: here it works between any two looks, and is killed at the fifth."""
    looks = itertools.count(1)

    def ticks(pid: int) -> int:
        look = next(looks)
        if look == 5:
            os.kill(pid, signal.SIGKILL)
        return look

    monkeypatch.setattr(worker, "IDLE_S", 0.0)
    monkeypatch.setattr(worker, "_ticks", ticks)
    with worker._Worker(tmp_path, 0) as killed, pytest.raises(PerchError, match="ended with -9"):
        killed.read()
    assert next(looks) > 5
