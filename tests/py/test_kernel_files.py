"""Files of drivers that never answer: the agent reads on without them, and names them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from perch.agent import kernel_files
from perch.agent.counters import Counters
from perch.agent.devices import find, first_line
from perch.agent.kernel_files import WITHIN_S, KernelFiles
from tests.py.agent_fakes import FakeClock, counted, laid_out, run

STATISTICS = "sys/class/net/eth0/statistics"
PORT = "sys/class/infiniband/mlx5_0/ports/1"
SYS = {
    f"{STATISTICS}/rx_bytes": "10\n",
    f"{PORT}/gid_attrs/ndevs/0": "eth0\n",
    f"{PORT}/counters/port_xmit_data": "7\n",
    f"{PORT}/hw_counters/a_first": "1\n",
    f"{PORT}/hw_counters/z_last": "2\n",
    "proc/net/snmp": "Tcp: RetransSegs\nTcp: 42\n",
}


@pytest.fixture(autouse=True)
def files(monkeypatch: pytest.MonkeyPatch) -> KernelFiles:
    """A reader of this test alone."""
    own = KernelFiles()
    for place in ("counters", "devices"):
        monkeypatch.setattr(f"perch.agent.{place}.FILES", own)
    return own


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return laid_out(tmp_path, SYS)


class Ethtool:
    """It hangs so long, as the kernel may hold it."""

    def __init__(self, seconds: float = 0) -> None:
        self.seconds, self.asked = seconds, 0

    async def answer(self, argv: list[str], limit_s: float = 5.0) -> str:
        self.asked += 1
        await asyncio.sleep(min(self.seconds, limit_s))
        return "rx_bytes_phy: 5" if self.seconds < limit_s else ""


def readings(root: Path, ethtool: Ethtool) -> list[dict[str, Any]]:
    async def work() -> list[dict[str, Any]]:
        counters = Counters(find(["eth0"], root), ethtool, FakeClock(), root)
        found = [await counters.reading(settled=True) for _ in range(2)]
        return [counted(one.layout, one.line["values"]) for one in found]

    return run(work)


def test_a_counter_that_never_answers_costs_its_folder_once(
    root: Path, files: KernelFiles, capfd: pytest.CaptureFixture[str]
) -> None:
    stuck = root / PORT / "hw_counters/m_stuck"
    os.mkfifo(stuck)
    for one in readings(root, Ethtool()):
        assert one["host"] == {"TcpRetransSegs": "42"}
        assert one["netdev"]["eth0"] == {"rx_bytes": "10"}
        # the others of its folder are the same driver's
        assert one["rdma"]["mlx5_0/1"]["counters"] == {"port_xmit_data": "7"}
    said = capfd.readouterr().err
    assert f"{stuck} did not answer in 2 s, so nothing of its folder is read any more" in said
    assert said.count("did not answer") == 1
    assert files.left == {str(stuck.parent)}


def test_an_ethtool_that_never_answers_is_asked_once(
    root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "sys/class/net/eth0/device").mkdir()
    for ethtool, asked, values in ((Ethtool(), 2, {"rx_bytes_phy": "5"}), (Ethtool(60), 1, {})):
        for one in readings(root, ethtool):
            assert one["netdev"]["eth0"] == {"rx_bytes": "10"} | values
        assert ethtool.asked == asked
    assert "`ethtool -S eth0` did not answer in 2 s, so it is not asked again" in (
        capfd.readouterr().err
    )


def test_a_reader_that_was_ended_is_replaced_and_nothing_is_lost(
    root: Path, files: KernelFiles
) -> None:
    path = root / STATISTICS / "rx_bytes"
    assert first_line(path) == "10"
    child = files._child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert files.texts([path, root / "missing", path]) == ["10\n", None, "10\n"]
    assert files.left == set()


def test_a_reader_that_always_ends_does_not_hold_the_agent_up(
    root: Path, files: KernelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_files, "_read", None)
    assert files.texts([root / STATISTICS / "rx_bytes", root / "proc/net/snmp"]) == [None, None]


def test_a_reader_holds_nothing_of_the_agent_and_ends_with_it(tmp_path: Path) -> None:
    """Else one that the kernel holds would keep the agent's connection open."""
    os.mkfifo(tmp_path / "stuck")
    program = f"""
import os, signal
from pathlib import Path
from perch.agent import kernel_files
files = kernel_files.KernelFiles()
files.text(Path("/proc/net/snmp"))
child = files._child
held = os.listdir(f"/proc/{{child.pid}}/fd")
print(child.pid, *sorted(held), flush=True)
os.write(child.asks, b'["{tmp_path}/stuck"]\\n')
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        cwd=Path(kernel_files.__file__).parents[2],
        timeout=60,
    )
    pid, *held = ended.stdout.decode().split()
    assert held == ["0", "1", "2"]
    end = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < end


def is_alive(pid: str) -> bool:
    """A process that nobody has waited for has ended, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_an_answer_may_be_larger_than_a_pipe(tmp_path: Path, files: KernelFiles) -> None:
    many = [tmp_path / f"counter{n:05}" for n in range(3000)]
    many[0].write_text("x" * 300_000)
    many[-1].write_bytes(b"\xff1\n")
    found = files.texts(many)
    assert (len(found), len(found[0] or ""), found[-1]) == (3000, 300_000, "\ufffd1\n")
    assert found[1:-1] == [None] * 2998
    assert WITHIN_S == 2
