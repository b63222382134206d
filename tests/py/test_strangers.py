"""Connections to `perch serve` that prove nothing: they start no process, and keep nobody out."""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.py.agent_hosts import BUILT, ENGINE, children_of

pytestmark = BUILT

#: Places for strangers (engine/src/control/strangers.h: STRANGERS_MAX).
PLACES = 256


class Server:
    def __init__(self, folder: Path) -> None:
        self.token = folder / "token"
        self.token.touch(mode=0o600)
        self.token.write_text(secrets.token_hex(32))
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.options = ["--port", str(self.port), "--token-file", str(self.token)]
        ready = folder / "ready"
        self.process = subprocess.Popen(
            [ENGINE, "serve", *self.options, "--ready-file", ready], stderr=subprocess.PIPE
        )
        while not ready.exists():
            assert self.process.poll() is None

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port))

    def measure(self) -> subprocess.CompletedProcess[str]:
        unplaced = ["--cpu", "off", "--server-cpu", "off"]
        command = [str(ENGINE), "lat", "127.0.0.1", *self.options, *unplaced, "-n", "10", "-s", "8"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path)
    yield one
    one.process.terminate()
    one.process.communicate(timeout=20)


def test_a_client_is_served_behind_silent_connections(server: Server) -> None:
    with contextlib.ExitStack() as silent:
        crowd = [silent.enter_context(server.connect()) for _ in range(400)]
        # all have come: those that found no place have been told so
        while len(select.select(crowd, [], [])[0]) < len(crowd) - PLACES:
            pass
        assert children_of(server.process.pid) == []
        ended = server.measure()
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_client_is_served_during_a_flood(server: Server) -> None:
    flooded, over = threading.Event(), threading.Event()
    come = 0

    def flood() -> None:
        nonlocal come
        held: deque[socket.socket] = deque()
        while not over.is_set():
            with contextlib.suppress(OSError):
                held.append(server.connect())
            come += 1
            if len(held) > PLACES:
                flooded.set()
                held.popleft().close()
        for one in held:
            one.close()

    crowd = threading.Thread(target=flood)
    crowd.start()
    try:
        flooded.wait()
        before = come
        ended = server.measure()
        assert (ended.returncode, ended.stderr) == (0, "")
        assert come > before + PLACES
    finally:
        over.set()
        crowd.join()
