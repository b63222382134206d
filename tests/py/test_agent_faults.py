"""Faults around agents with real processes: each has its message, and nothing hangs or stays."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from perch.agent import serving
from perch.agent.children import Children
from perch.agent.control import prepare
from perch.agent.errors import AgentError, Exit
from perch.agent.files import Lines, write_whole
from tests.py.agent_fakes import share_of
from tests.py.agent_hosts import (
    BUILT,
    LONG,
    QUICK,
    TOP,
    Hosts,
    began,
    child,
    gone,
    until,
    with_children,
)

pytestmark = BUILT


def rewritten(both: Hosts, change: Callable[[dict[str, Any]], None]) -> None:
    """The shares of all hosts, changed."""
    for name in both.names:
        file = both.folder / f"shares/{name}.json"
        document = json.loads(file.read_text())
        change(document)
        file.write_text(json.dumps(document))


# ---- the place for results -----------------------------------------------------------------------

READ_ONLY = """
mkdir alpha
mount -t tmpfs -o ro tmpfs alpha
exec "$@"
"""


def test_a_state_that_is_read_only_is_named(hosts: Callable[..., Hosts], within: list[str]) -> None:
    both = hosts(QUICK)
    command = [*within, "bash", "-c", READ_ONLY, "-", sys.executable, "-I", str(both.agent), "run"]
    words = ["--plan", "shares/alpha.json", "--host", "alpha", "--out", "alpha", "--engine", "e"]
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, cwd=both.folder, timeout=30
    )
    assert done.returncode == Exit.HOST
    assert f"cannot write to the directory {both.folder}/alpha as user" in done.stderr
    assert "Read-only file system; the kernel's log (dmesg) may say why" in done.stderr


def test_a_disk_that_becomes_read_only_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even the half of a line can be taken back then."""
    lines = Lines(tmp_path / "lines")

    def refuse(*_: Any) -> int:
        raise OSError(30, "Read-only file system")

    for name in ("write", "ftruncate"):
        monkeypatch.setattr(f"perch.agent.files.os.{name}", refuse)
    with pytest.raises(
        AgentError, match=r"cannot write .*: Read-only file system; the kernel's log"
    ):
        lines.write({})


def test_a_file_that_cannot_be_written_has_its_own_remedy(tmp_path: Path) -> None:
    """At the start there are no results that could be kept."""
    (tmp_path / "pid.new").mkdir()
    with pytest.raises(AgentError) as caught:
        write_whole(tmp_path / "pid", b"")
    why = "Is a directory; see that this user can write there"
    assert caught.value.message == f"cannot write {tmp_path}/pid: {why}"


def test_a_second_start_names_the_agent_that_runs(hosts: Callable[..., Hosts]) -> None:
    both = hosts(LONG)
    both.start("alpha")
    out = both.folder / "alpha"
    why = f"an agent runs in {out} already; `perch-agent stop --out {out}` ends it"
    assert why in both.start("alpha", expect=Exit.HOST)
    assert both.status("alpha") == {"state": "running"}


def test_a_user_without_a_name_is_named_by_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", unknown)
    with pytest.raises(AgentError, match=f"/null as user {os.getuid()}: "):
        prepare(Path(os.devnull))


def test_a_log_that_cannot_be_written_ends_nothing(hosts: Callable[..., Hosts]) -> None:
    """Results have priority, and a full disk takes the log first."""
    both = hosts(QUICK)
    both.start("beta")
    words = ["--plan", "shares/alpha.json", "--host", "alpha", "--out", "alpha"]
    engine = ["--engine", str(TOP / "engine/build/perch"), "--start-window", "15"]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-I", both.agent, "run", *words, *engine],
            stderr=full,
            cwd=both.folder,
            timeout=60,
        )
    assert done.returncode == Exit.WALKED
    assert both.status("alpha") == {"state": "done", "flows_done": 1}


def test_a_lease_that_was_removed_is_named(hosts: Callable[..., Hosts]) -> None:
    both = hosts(LONG)
    both.start("alpha")
    lease = both.folder / "alpha/control/lease"
    lease.unlink()
    said = both.call("poll", "--out", "alpha", expect=Exit.HOST).stderr
    assert f"cannot renew the lease {lease}: No such file or directory" in said


# ---- children ------------------------------------------------------------------------------------


def test_a_server_that_never_serves_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\nexec sleep 300\n")
    engine.chmod(0o755)
    monkeypatch.setattr(serving, "READY_WITHIN", 0.3)

    async def work(children: Children) -> None:
        await serving.start(children, share_of("alpha"), str(engine), tmp_path)

    with pytest.raises(AgentError) as caught:
        with_children(work)
    assert caught.value.code is Exit.HOST
    assert caught.value.message == "perch serve on alpha does not serve after 0.3 s"


def test_children_dump_no_core(hosts: Callable[..., Hosts]) -> None:
    """A core of perch would have the token, and takes room that results need."""
    both = hosts(QUICK)

    def change(document: dict[str, Any]) -> None:
        crash = ["bash", "-c", "ulimit -Hc; kill -SEGV $$"]
        document["tests"]["t1"]["forms"]["1"]["client"] = crash

    rewritten(both, change)
    both.start("alpha")
    both.start("beta")
    both.wait("alpha", "beta")
    (line,) = both.flows("alpha").lines[1:-1]
    assert (line["signal"], line["stdout"]) == ("SEGV", "0\n")


def test_a_stopped_server_and_command_are_ended(hosts: Callable[..., Hosts]) -> None:
    both = hosts(LONG)
    both.start("alpha")
    both.start("beta")
    asyncio.run(until(began(both, "alpha", "t1"), 60))
    pid = both.pid("alpha")
    held = [child(pid, word) for word in ("serve", "meet", "lat")]
    for number in held:
        os.kill(number, signal.SIGSTOP)
    assert both.call("stop", "--out", "alpha").stdout == "stopped\n"
    assert all(map(gone, [pid, *held]))
    both.call("stop", "--out", "beta")
    assert both.flows("alpha").lines[-1]["message"] == "stopped by the controller"


def test_a_perch_serve_that_was_killed_ends_its_agent_alone(hosts: Callable[..., Hosts]) -> None:
    """The client has measured nothing, and says so; both ends stay without hanging."""
    both = hosts(LONG, QUICK)
    both.start("beta")
    both.start("alpha")
    asyncio.run(until(began(both, "alpha", "t1"), 60))
    os.kill(child(both.pid("beta"), "serve"), signal.SIGKILL)
    both.wait("alpha", "beta")
    _, line, last = both.flows("beta").lines
    ended = "perch serve on beta ended: by signal KILL"
    assert (line["state"], line["id"]) == ("done", "t1/alpha/beta/0/1")
    assert line["message"].endswith(ended)
    assert (last["state"], last["message"]) == ("stopped", ended)
    _, first, second, last = both.flows("alpha").lines
    assert (first["state"], first["exit"]) == ("done", 4)
    assert second["state"] == "peer_dead" and "beta does not answer" in second["message"]
    assert last["state"] == "done"


# ---- peers ---------------------------------------------------------------------------------------


@pytest.fixture
def blackhole() -> Iterator[Callable[[str, int], None]]:
    """Takes connections at an address, and says nothing."""
    held = []

    def dig(address: str, port: int) -> None:
        held.append(socket.create_server((address, port), backlog=100))

    yield dig
    for one in held:
        one.close()


def test_a_peer_that_says_nothing_is_dead(
    hosts: Callable[..., Hosts], blackhole: Callable[[str, int], None]
) -> None:
    both = hosts(QUICK, QUICK)
    blackhole("127.0.0.2", both.port)
    both.start("alpha", "--start-window", "1")
    both.wait("alpha")
    lines = both.flows("alpha").lines[1:-1]
    assert [line["state"] for line in lines] == ["peer_dead"] * 2
    at = f"beta does not answer at 127.0.0.2 port {both.port}: "
    assert lines[0]["message"].startswith(at) and lines[1]["message"].startswith(f"skipped: {at}")


#: Seconds that the slow network takes each way, as over a satellite (RFC 2488: half of 0.5 s).
DELAY_S = 0.25


class SlowNetwork(Thread):
    """Relays connections at one port of an address to another. `passed`: bytes of both ways."""

    def __init__(self, address: str, port: int, to: int) -> None:
        super().__init__()
        self.passed = 0
        self._address, self._to = address, to
        self._server = socket.create_server((address, port), backlog=100)
        self._loop, self._over = asyncio.new_event_loop(), asyncio.Event()

    def run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._relay())

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self.join()

    async def _relay(self) -> None:
        async with await asyncio.start_server(self._connected, sock=self._server):
            await self._over.wait()

    async def _connected(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError), contextlib.closing(back):  # it may not serve yet
            far, there = await asyncio.open_connection(self._address, self._to)
            await asyncio.gather(self._copied(near, there), self._copied(far, back))

    async def _copied(self, source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError), contextlib.closing(to):
            while chunk := await source.read(65536):
                self.passed += len(chunk)
                await asyncio.sleep(DELAY_S)  # what this network is about
                to.write(chunk)


def test_a_slow_network_costs_time_and_no_flow(
    hosts: Callable[..., Hosts], free: Callable[[], int]
) -> None:
    both = hosts(QUICK, QUICK)
    port = free()
    network = SlowNetwork("127.0.0.2", port, both.port)

    def change(document: dict[str, Any]) -> None:
        if document["host"] == "alpha":
            document["hosts"]["beta"]["port"] = port

    rewritten(both, change)
    network.start()
    try:
        both.start("alpha")
        both.start("beta")
        both.wait("alpha", "beta")
    finally:
        network.end()
    assert network.passed > 0
    for host in both.names:
        assert both.status(host) == {"state": "done", "flows_done": 2}
        for line in both.flows(host).lines[1:-1]:
            assert (line["state"], line.get("exit", 0), "message" in line) == ("done", 0, False)


def test_many_clients_of_one_server_are_all_measured(hosts: Callable[..., Hosts]) -> None:
    """A round in which five hosts come to one: each waits for its turn."""
    names = ["alpha", *(f"client{n}" for n in range(5))]
    many = hosts(QUICK, names=names)

    def change(document: dict[str, Any]) -> None:
        first = document["rounds"][0]
        every = [[n, "t1", name, "alpha", 0, 1, []] for n, name in enumerate(names[1:])]
        own = [one for one in every if document["host"] in one]
        document["rounds"] = [{**first, "size": len(every), "flows": own}]

    rewritten(many, change)
    for name in names:
        many.start(name)
    many.wait(*names)
    _, *served, last = many.flows("alpha").lines
    assert (last["state"], last["flows_done"]) == ("done", 5)
    assert [one["state"] for one in served] == ["done"] * 5
    for name in names[1:]:
        (line,) = many.flows(name).lines[1:-1]
        assert (line["state"], line["exit"]) == ("done", 0)
