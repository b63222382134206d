"""Faults around soaks with real processes: each has its message, and nothing hangs or stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.agent import soak_control, soak_host
from perch.agent.errors import AgentError, Exit
from tests.py.agent_hosts import BUILT, children_of, gone
from tests.py.agent_soaks import BW, LAT, Soaks

pytestmark = BUILT

#: Runs what follows it where the folder `ro` takes no file.
READ_ONLY = """
mkdir -p ro
mount -t tmpfs -o ro tmpfs ro
exec "$@"
"""


@pytest.mark.parametrize(
    ("most", "code", "message"),
    [
        (4000, Exit.HOST, "did not start on alpha: cannot write "),
    ],
)
def test_a_disk_that_is_full_at_the_start_is_named(
    soaks: Callable[..., Soaks], most: int, code: Exit, message: str
) -> None:
    """A limit on the size of files fails a write as a full disk does. Nothing is left then."""
    both = soaks()
    said = both.begin("alpha", before=["prlimit", f"--fsize={most}"], expect=code).stderr
    assert message in said and "free space there and run again" in said
    assert both.left() == [] and not (both.folder / "alpha.state").exists()
    assert not (both.folder / "alpha/flows.jsonl").exists()
    both.begin("alpha")
    both.soak("stop", "alpha")


#: Runs what follows it where alpha's results have little room.
SMALL = """
mkdir alpha
mount -t tmpfs -o size=$SIZE tmpfs alpha
exec "$@"
"""


@pytest.mark.parametrize("size", ["4k", "64k"])
def test_a_disk_without_room_for_the_reserve_is_named(
    soaks: Callable[..., Soaks], within: list[str], size: str
) -> None:
    """The reserve takes what room there is, and gives it back: the log says why."""
    both = soaks()
    before = [*within, "env", f"SIZE={size}", "bash", "-c", SMALL, "-"]
    said = both.begin("alpha", before=before, expect=Exit.HOST).stderr
    why = f"{both.folder}/alpha/control/reserve: No space left on device; free space there"
    assert f"did not start on alpha: cannot write {why}" in said
    assert both.left() == [] and not (both.folder / "alpha.state").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "ro/alpha"], "cannot write to the directory {folder}/ro/alpha as user"),
        (["--state", "ro/state"], "cannot write {folder}/ro/state: Read-only file system;"),
    ],
)
def test_a_state_that_is_read_only_is_named(
    soaks: Callable[..., Soaks], within: list[str], words: list[str], message: str
) -> None:
    both = soaks()
    before = [*within, "bash", "-c", READ_ONLY, "-"]
    said = both.begin("alpha", *words, before=before, expect=Exit.HOST).stderr
    assert message.format(folder=both.folder) in said
    assert both.left() == []


def test_what_is_stopped_is_ended_with_what_it_measured(soaks: Callable[..., Soaks]) -> None:
    """SIGSTOP to all of alpha's processes, and to the agent of beta."""
    both = soaks()
    both.begin("alpha")
    both.begin("beta")
    both.measure(BW, LAT)
    agents = [both.pid(host) for host in both.names]
    held = [pid for pid, words in children_of(agents[0]) if "perch" in words[0]]
    held += [child for pid in held for child, _ in children_of(pid)]
    assert len(held) >= 5  # the server, two keepers, and what they have started
    for pid in [*held, agents[1]]:
        os.kill(pid, signal.SIGSTOP)
    for host in both.names:
        assert both.soak("stop", host) == f"stopped {both.folder}/{host}\n"
        (end,) = both.lines(host, "end")
        assert (end["state"], end["flows_done"]) == ("stopped", 4)
        assert end["message"] == "stopped by the controller"
    assert both.left() == [] and all(map(gone, [*held, *agents]))
    for flow in (BW, LAT):
        assert both.outcome("alpha", flow)["state"] == "done"
        assert "interval" in both.kinds(flow)


def test_a_keeper_dumps_no_core(soaks: Callable[..., Soaks]) -> None:
    both = soaks()
    both.begin("alpha")
    limits = Path(f"/proc/{both.process('alpha', 'serve')}/limits").read_text()
    (core,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
    assert core.split()[4:6] == ["0", "0"]
    both.soak("stop", "alpha")


def test_a_stop_wins_over_an_agent_that_is_about_to_begin(tmp_path: Path) -> None:
    """Its controller was killed in between: the host's soak has no process yet."""
    state, out = tmp_path / "state", tmp_path / "out"
    out.mkdir()
    state.symlink_to(out)
    assert soak_control.command("stop", {"state": str(state)}) == 0
    with pytest.raises(AgentError, match=r"there is no soak in .*/out to go on with"):
        soak_host.take(state, out)
    assert list(tmp_path.iterdir()) == [out]
