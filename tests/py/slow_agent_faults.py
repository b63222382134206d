"""Agents under attack, for minutes: `tests/run slow` has it as its part agent-faults."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from perch.agent.files import read_lines
from tests.py.agent_hosts import BUILT, ENGINE, QUICK, Hosts, began, gone, until
from tests.py.agent_soaks import Soaks

pytestmark = BUILT

#: More than any scanner of ports does in the seconds of a flow.
CONNECTS = 10_000


def test_connects_of_strangers_disturb_nobody(hosts: Callable[..., Hosts]) -> None:
    """Ten thousand at the port where hosts meet: some say nothing, some talk nonsense."""
    both = hosts({"params": {"size": 8, "duration": "2s"}}, QUICK)
    both.start("alpha")
    both.start("beta")
    asyncio.run(until(began(both, "alpha", "t1"), 60))

    def connect(number: int) -> None:
        with socket.socket() as one:
            reset = (1).to_bytes(4, sys.byteorder) + bytes(4)  # leaves no TIME_WAIT
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            one.connect(("127.0.0.2", both.port))
            if number % 2:
                with contextlib.suppress(ConnectionError):
                    one.sendall(b"GET / HTTP/1.0\r\n\r\n")

    with ThreadPoolExecutor(16) as strangers:
        assert len(list(strangers.map(connect, range(CONNECTS)))) == CONNECTS
    both.wait("alpha", "beta")
    for host in both.names:
        assert both.status(host) == {"state": "done", "flows_done": 2}
        assert [one.get("exit", 0) for one in both.flows(host).lines[1:-1]] == [0, 0]


#: Starts two agents and renews their leases, as the playbook does, until it is killed.
CONTROLLER = """
agent=("$1" -I "$2")
for host in alpha beta; do
  "${agent[@]}" start --plan "shares/$host.json" --host "$host" --out "$host" --engine "$3" \\
    --start-window 15 --lease 1
done
while :; do
  for host in alpha beta; do "${agent[@]}" poll --out "$host" --offset 0; done
done
"""


def left(mark: str) -> list[int]:
    """Processes that were started with this in their environment, and have not ended."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (one / "environ").read_bytes() and not gone(int(one.name)):
                found.append(int(one.name))
    return found


def check_nothing_lost(both: Hosts, host: str, was_killed: bool) -> None:
    """Each flow that was said to have ended has its whole line."""
    folder = both.folder / host
    told = set()
    with contextlib.suppress(FileNotFoundError):
        for one in read_lines(folder / "control/progress.jsonl").lines:
            told |= {one["flow"]} if one["event"] == "end" else set()
    if not (folder / "flows.jsonl").exists():
        assert not told
        return
    lines, torn = both.flows(host)
    ids = [one["id"] for one in lines if one["kind"] == "flow"]
    assert told <= set(ids) and len(ids) == len(set(ids))
    state = both.status(host)["state"]
    if lines and lines[-1]["kind"] == "end":
        assert state in ("done", "stopped") and lines[-1]["flows_done"] == len(ids)
    else:
        assert state == "gone"
        assert was_killed or not ids  # a controller takes an agent along that is not yet detached
    assert was_killed or not torn


def controlled(both: Hosts, script: str, seconds: float) -> None:
    """A controller for so long; then it is killed with all that it has not detached."""
    controller = subprocess.Popen(
        ["bash", "-c", script, "-", sys.executable, str(both.agent), str(ENGINE)],
        cwd=both.folder,
        env={**os.environ, "PERCH_TEST_MARK": str(both.folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(seconds)  # the moment is what this is about
    os.killpg(controller.pid, signal.SIGKILL)
    controller.wait()


@pytest.mark.parametrize("number", range(60))
def test_a_controller_that_is_killed_loses_nothing(
    hosts: Callable[..., Hosts], number: int
) -> None:
    """Every third time an agent is killed, too. The walk takes some two seconds."""
    moments = random.Random(number)
    both = hosts(QUICK, QUICK, QUICK)
    mark = f"PERCH_TEST_MARK={both.folder}"
    controlled(both, CONTROLLER, moments.uniform(0, 2.5))
    is_attacked = number % 3 == 0
    if is_attacked:
        time.sleep(moments.uniform(0, 1))
        with contextlib.suppress(OSError, ValueError):
            os.kill(both.pid("alpha"), signal.SIGKILL)
    asyncio.run(until(lambda: not left(mark), 60))
    for host in both.names:
        check_nothing_lost(both, host, is_attacked and host == "alpha")


#: The same of a soak.
SOAK_CONTROLLER = """
agent=("$1" -I "$2")
for host in alpha beta; do
  "${agent[@]}" soak-start --plan "shares/$host.json" --host "$host" --out "$host" --engine "$3" \\
    --start-window 15 --supervisor session --state "$host.state"
done
while :; do
  for host in alpha beta; do "${agent[@]}" soak-status --state "$host.state"; done
done
"""


@pytest.mark.parametrize("number", range(60))
def test_a_soak_whose_controller_is_killed_goes_on_and_loses_nothing(
    soaks: Callable[..., Soaks], number: int
) -> None:
    """Another controller stops what is there. Every third time an agent is killed before that."""
    moments = random.Random(number)
    both = soaks()
    controlled(both, SOAK_CONTROLLER, moments.uniform(0, 3))
    if number % 3 == 0:
        with contextlib.suppress(OSError, ValueError):
            os.kill(both.pid("alpha"), signal.SIGKILL)
    for host in both.names:
        was_claimed = (both.folder / f"{host}.state").is_symlink()
        assert both.soak("stop", host) == (f"stopped {both.folder}/{host}\n" if was_claimed else "")
        assert both.told(host)["state"] == "none"
        has_begun = (both.folder / host / "flows.jsonl").exists()
        assert was_claimed or not has_begun
        if not has_begun:  # its controller was killed first
            continue
        (*lines, end), torn = both.flows(host)
        assert (end["kind"], end["state"], torn) == ("end", "stopped", False)
        begun = {(one["id"], one["role"]) for one in lines if one["kind"] == "begin"}
        done = [(one["id"], one["role"]) for one in lines if one["kind"] == "flow"]
        was_closed = end["message"].endswith("after it had been interrupted")
        assert set(done) == (set() if was_closed else begun)
        assert len(done) == len(set(done)) == end["flows_done"]
    assert left(f"PERCH_TEST_MARK={both.folder}") == []
