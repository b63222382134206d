"""The process that reads a switch while flows run: one reading at a time, and always an end."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from perch.home import HOME

PLAYBOOK = HOME / ".venv/bin/ansible-playbook"
PYTHON = f"ansible_python_interpreter={sys.executable}"
#: A bound of the test itself, on a machine that is busy.
LIMIT_S = 120

Document = dict[str, Any]

# ---- readings ------------------------------------------------------------------------------------

#: Samples into argv[1] until standard input is closed; the commands are argv[2]'s lines of a shell.
DRIVER = f"""
import json, os, subprocess, sys
sys.path.insert(0, {str(HOME / "plugins/action")!r})
import perch_switch_samples as samples

def ask(command):
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    if ended.returncode == 9:
        raise OSError("no route to host")
    return {{"rc": ended.returncode, "stdout": ended.stdout, "stderr": ended.stderr}}

file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_APPEND)
options = {{"head": {{"run": "r"}}, "interval": 0, "timeout": 2}}
samples.PAUSES_PER_TIME = float(sys.argv[3])
samples.sample(ask, options | {{"commands": json.loads(sys.argv[2])}}, file, [0])
"""


def read(path: Path) -> list[Document]:
    if not path.exists():
        return []
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def has_ended(pid: int) -> bool:
    """Also one that nobody has waited for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def pid_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def sampled(
    folder: Path,
    commands: dict[str, str],
    over: Callable[[list[Document]], object],
    pauses: float = 1e9,
) -> list[Document]:
    """The readings until `over` holds of them."""
    path = folder / "readings"
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, path, json.dumps(commands), str(pauses)],
        stdin=subprocess.PIPE,
    )
    try:
        until(lambda: driver.poll() is not None or over(read(path)))
        driver.communicate(timeout=LIMIT_S)
    finally:
        driver.kill()
        driver.wait()
    assert driver.returncode == 0
    return read(path)


def test_a_reading_follows_the_one_before_at_twenty_times_its_slowest_answer(
    tmp_path: Path,
) -> None:
    lines = sampled(
        tmp_path, {"fast": "echo 1", "slow": "sleep 0.05; echo 2"}, lambda lines: len(lines) > 2
    )
    assert [line["commands"]["slow"]["stdout"] for line in lines] == ["2\n"] * len(lines)
    for one, after in pairwise(lines):
        waits = [of["answered_s"] - of["asked_s"] for of in one["commands"].values()]
        assert after["asked_s"] - one["asked_s"] >= 20 * max(waits) >= 1
        assert after["asked_s"] > one["commands"]["slow"]["answered_s"]


def test_readings_are_farther_apart_the_longer_they_last(tmp_path: Path) -> None:
    lines = sampled(tmp_path, {"one": "echo 1"}, lambda lines: len(lines) > 3, pauses=0.5)
    began_s = lines[0]["asked_s"]
    for one, after in pairwise(lines):
        assert after["asked_s"] - one["asked_s"] >= 2 * (one["asked_s"] - began_s)
    assert len({line["begun"] for line in lines}) == 1


def test_a_switch_that_does_not_answer_in_time_is_left_and_named(tmp_path: Path) -> None:
    hang = f"echo $$ >{tmp_path}/pid; exec sleep 600"
    (line,) = sampled(tmp_path, {"fast": "echo 1", "hang": hang}, len)
    assert {(one["exit"], one["stderr"]) for one in line["commands"].values()} == {
        (None, "no answer within 2 s")
    }
    assert has_ended(pid_in(tmp_path / "pid"))


def test_after_a_lost_connection_the_other_commands_are_not_asked(tmp_path: Path) -> None:
    (line,) = sampled(tmp_path, {"lost": "exit 9", "never": "echo 1"}, len)[:1]
    assert list(line["commands"]) == ["lost"]
    assert line["commands"]["lost"]["stderr"] == "no route to host"


def test_a_reading_under_way_ends_with_the_process(tmp_path: Path) -> None:
    hang = f"echo $$ >{tmp_path}/pid; exec sleep 600"
    assert sampled(tmp_path, {"hang": hang}, lambda _: (tmp_path / "pid").exists()) == []
    assert has_ended(pid_in(tmp_path / "pid"))


# ---- in a play -----------------------------------------------------------------------------------


def play(folder: Path, *tasks: Document) -> subprocess.Popen[bytes]:
    book = folder / "book.yml"
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    return subprocess.Popen(
        [PLAYBOOK, "-i", "localhost,", "-c", "local", "-e", PYTHON, book],
        env=os.environ | {"ANSIBLE_CONFIG": str(HOME / "ansible.cfg"), "LC_ALL": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def begun(folder: Path, command: str) -> Document:
    options = {"commands": {"one": command}, "head": {"run": "r"}, "interval": 1, "timeout": 600}
    return {"perch_switch_samples": {"path": f"{folder}/sampling/leaf1", **options}}


def wait_for(path: Path) -> Document:
    return {"ansible.builtin.wait_for": {"path": str(path), "timeout": LIMIT_S}}


@pytest.mark.parametrize("command", ["echo 1", "echo $$ >{pid}; exec sleep 600"])
def test_the_last_task_ends_the_readings_and_keeps_them(tmp_path: Path, command: str) -> None:
    pid = tmp_path / "pid"
    into = tmp_path / "readings"
    started = tmp_path / "sampling/leaf1" if command == "echo 1" else pid
    end = {"perch_switch_samples": {"path": f"{tmp_path}/sampling/leaf1", "into": str(into)}}
    begin = begun(tmp_path, command.format(pid=pid))
    # a second playbook of the same run, and one that ends what has ended
    book = play(tmp_path, begin, begin, wait_for(started), end, end)
    said = book.communicate(timeout=LIMIT_S)[0].decode()
    assert book.returncode == 0, said
    assert not (tmp_path / "sampling").exists()
    if command == "echo 1":
        assert all(line["commands"]["one"]["stdout"] == "1\n" for line in read(into))
        assert len({line["begun"] for line in read(into)}) <= 1
    else:
        assert read(into) == []
        assert has_ended(pid_in(pid))


def test_the_readings_end_with_a_playbook_that_is_killed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    book = play(
        tmp_path, begun(tmp_path, f"echo $$ >{pid}; exec sleep 600"), wait_for(tmp_path / "never")
    )
    under_way = pid_in(pid)
    book.send_signal(signal.SIGKILL)
    book.communicate(timeout=LIMIT_S)
    with (tmp_path / "sampling/leaf1").open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)  # until the process is gone
    assert has_ended(under_way)
