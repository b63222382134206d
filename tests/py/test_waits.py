"""A program that never ends is ended at its deadline, with what it started, and a person is told.

In each test the program is a stand-in that waits for ever, and the deadline is short.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perch.agent import soak_host
from perch.agent.errors import AgentError, Exit
from tests.py.test_agent_soak import session_of

#: It and its child stay until they are killed.
STUCK = """#!/bin/sh
[ "$1" = child ] || "$0" child &
exec tail -n 0 -f "$0"
"""

#: A deadline in the tests, and how long a killed program may take to be gone.
SHORT_S, GONE_S = 0.3, 30.0


def alive(program: Path) -> list[int]:
    """The processes that have it on their command lines."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(program) in one.read_bytes():
                found.append(int(one.parent.name))
        except OSError:  # it has ended meanwhile
            continue
    return found


Stuck = Callable[[str], Path]


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    """`stuck("tar")`: tar waits for ever. What is left of it in the end fails the test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    made: list[Path] = []

    def put(name: str) -> Path:
        program = folder / name
        program.write_text(STUCK)
        program.chmod(0o755)
        made.append(program)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return program

    yield put
    until = time.monotonic() + GONE_S
    while any(map(alive, made)):
        assert time.monotonic() < until, [program.name for program in made if alive(program)]


def test_systemctl_on_a_host(tmp_path: Path, stuck: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck("systemctl")
    monkeypatch.setattr(soak_host, "SYSTEMCTL_S", SHORT_S)
    with pytest.raises(AgentError) as error:
        soak_host.systemctl("start", soak_host.UNIT.name)
    assert error.value.code == Exit.HOST
    assert error.value.message == (
        "`systemctl start perch-soak.service` did not end within 0.3 s; "
        "see that systemd answers: `systemctl status`"
    )


def test_a_soak_is_released_although_systemctl_gives_no_answer(
    tmp_path: Path, stuck: Stuck, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stuck("systemctl")
    monkeypatch.setattr(soak_host, "SYSTEMCTL_S", SHORT_S)
    monkeypatch.setattr(soak_host, "UNIT", tmp_path / "perch-soak.service")
    soak_host.UNIT.touch()
    session = session_of(tmp_path)._replace(supervisor="systemd")
    session.claim()
    session.release()
    assert not soak_host.UNIT.exists() and not Path(session.state).exists()
    assert "disable --quiet perch-soak.service` did not end within 0.3 s" in capfd.readouterr().err
