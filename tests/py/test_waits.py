"""A program that never ends is ended at its deadline, with what it started, and a person is told.

In each test the program is a stand-in that waits for ever, and the deadline is short.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perch import programs
from perch.agent import soak_host
from perch.agent.errors import AgentError, Exit
from perch.errors import ExitCode, PerchError
from perch.history import bundle, packed, signature
from perch.home import HOME
from perch.views import draw, page, vega
from perch.views.charts import Chart

#: It and its child stay until they are killed; the child holds its output open.
STUCK = """#!/bin/sh
[ "$1" = child ] || "$0" child 3>&1 &
exec tail -n 0 -f "$0" >/dev/null
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
    state, out = tmp_path / "state", tmp_path / "out"
    soak_host.UNIT.write_text(f'ExecStart="--out" "{out}"')
    state.symlink_to(out)
    soak_host.release(state, out)
    assert not soak_host.UNIT.exists() and soak_host.held(state) is None
    assert "disable --quiet perch-soak.service` did not end within 0.3 s" in capfd.readouterr().err


def refused(call: Callable[[], object]) -> str:
    """What a person is told. The exit code is that of a missing tool."""
    with pytest.raises(PerchError) as error:
        call()
    assert error.value.code == ExitCode.INCONCLUSIVE
    return str(error.value)


def test_pandoc(tmp_path: Path, stuck: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck("pandoc")
    monkeypatch.setattr(page, "PAGE_S", SHORT_S)
    (tmp_path / "report.md").touch()
    assert refused(lambda: page.make(tmp_path)) == (
        f"{tmp_path}: pandoc did not end within 0.3 s and was killed; "
        "read report.md, which is complete"
    )


def test_tar(tmp_path: Path, stuck: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck("tar")
    monkeypatch.setattr(packed, "TAR_S", SHORT_S)
    target = tmp_path / "run.tar"
    assert refused(lambda: packed.archive(tmp_path, target)) == (
        f"{target}: tar did not end within 0.3 s and was killed; "
        "see that the disk of the temporary folder (TMPDIR) answers"
    )


def test_a_signature_that_is_checked(
    tmp_path: Path, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck("ssh-keygen")
    monkeypatch.setattr(signature, "VERIFY_S", SHORT_S)
    for name in (packed.MANIFEST, packed.SIGNATURE):
        (tmp_path / name).touch()
    said = refused(lambda: signature.check(tmp_path / "bundle", tmp_path, None))
    assert said.endswith(
        "ssh-keygen did not end within 0.3 s and was killed; "
        "see that the disk answers, and verify again"
    )


def test_a_signature_that_is_made(
    tmp_path: Path, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ssh-keygen stays in the terminal's session, where it may ask for a passphrase."""
    program = stuck("ssh-keygen")
    program.write_text(STUCK.replace('"$0" child 3>&1 &', ":"))
    monkeypatch.setattr(bundle, "SIGN_S", SHORT_S)
    assert refused(lambda: bundle._sign(tmp_path / "manifest", "key")) == (
        "key: ssh-keygen did not end within 0.3 s and was killed; "
        "see that the key's agent or token answers, and sign again"
    )


def test_a_version_that_is_not_said_is_unknown(
    stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck("git")
    monkeypatch.setattr(bundle, "VERSION_S", SHORT_S)
    assert bundle.checkout_commit() is None


def test_the_process_that_draws(stuck: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the process of a report, not that of all tests
    monkeypatch.setattr(sys, "executable", str(stuck("python")))
    monkeypatch.setattr(vega, "CHART_S", SHORT_S)
    chart = Chart("latency", "latency", "t", "c", "a", [], [{"series": 1}])
    with vega.Process() as process:
        for _ in range(2):  # those after it, too
            assert refused(lambda: draw.svg(chart, process.svg)) == (
                "chart latency cannot be drawn: the process that draws gave no answer within 0.3 s "
                "and was killed; draw again while this machine is idle: perchctl report"
            )


def test_what_a_program_left_with_its_output_open_is_ended_with_it(stuck: Stuck) -> None:
    program = stuck("leader")
    program.write_text(STUCK.replace("exec tail", '[ "$1" = child ] || exit\nexec tail'))
    with pytest.raises(subprocess.TimeoutExpired):
        programs.run([str(program)], SHORT_S)


def test_a_command_on_a_host(stuck: Stuck) -> None:
    of_module = runpy.run_path(str(HOME / "plugins/modules/perch_command.py"))
    with pytest.raises(of_module["LateError"]):
        of_module["run"]([str(stuck("agent"))], None, SHORT_S)


def test_perchctl_in_a_playbook(stuck: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    of_action = runpy.run_path(str(HOME / "plugins/action/perchctl.py"))
    act = of_action["ActionModule"].act
    act.__globals__["LIMIT_S"] = SHORT_S
    action = types.SimpleNamespace(_task=types.SimpleNamespace(check_mode=False))
    python = str(stuck("python"))
    options = {"argv": ["report", "runs/latest"], "home": "/", "python": python, "stdin": "{}"}
    assert act(action, options, {}) == {
        "failed": True,
        "rc": 124,
        "cmd": [python, "-P", "-m", "perch", "report", "runs/latest"],
        "msg": "perchctl report did not end within 0.3 s and was killed; see that this machine's "
        "disks answer, and run the playbook again",
    }
