"""The agent with real processes: children that resist, and two agents with the engine."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.agent import devices, peers
from perch.agent.children import Children, Ended, Process, end
from perch.agent.control import detached
from perch.agent.errors import AgentError, Exit
from perch.agent.files import read_lines
from perch.agent.meetings import Answer, Meetings, Place
from perch.run import judging
from tests.py.agent_fakes import counted, share_of
from tests.py.agent_hosts import BUILT, ENGINE, LONG, QUICK, TOP, Hosts, gone, until, with_children

pytestmark = BUILT

# ---- children ------------------------------------------------------------------------------------


def test_a_command_is_captured_and_its_exit_code_kept() -> None:
    async def work(children: Children) -> tuple[Ended, Process]:
        process = children.start(["bash", "-c", "echo out; echo a >&2; echo b >&2; exit 7"])
        return await process.ended, process

    ended, process = with_children(work)
    assert ended == Ended(7, None)
    assert (process.stdout.text(), process.stderr.last_line()) == ("out\n", "b")


def test_an_endless_output_is_cut_and_not_waited_for() -> None:
    async def work(children: Children) -> Process:
        process = children.start(["head", "-c", "3000000", "/dev/zero"])
        await process.ended
        return process

    process = with_children(work)
    assert process.stdout.bytes == 3_000_000 and process.stdout.is_cut
    assert len(process.stdout.text()) == 1024 * 1024


@pytest.mark.parametrize(
    ("script", "signal_name"),
    [
        ("echo up; sleep 60", "TERM"),
        ("trap '' TERM; echo up; sleep 60", "KILL"),
        ("echo up; kill -STOP $$; sleep 60", "TERM"),
        ("trap '' TERM; echo up; kill -STOP $$; sleep 60", "KILL"),
    ],
)
def test_a_child_that_resists_is_ended(script: str, signal_name: str) -> None:
    """Also one that ignores SIGTERM, or is stopped."""

    async def work(children: Children) -> Ended | None:
        process = children.start(["bash", "-c", script])
        while process.stdout.bytes == 0:
            await asyncio.sleep(0.01)
        return await end(process, 0.3)

    assert with_children(work) == Ended(None, signal_name)


def test_what_a_command_leaves_behind_is_ended_with_it() -> None:
    async def work(children: Children) -> None:
        process = children.start(["bash", "-c", "sleep 60 & echo $!"])
        await process.ended
        await until(lambda: gone(int(process.stdout.text())))

    with_children(work)


KILLED = """
import asyncio, sys
from perch.agent.children import Children, Keeper
async def main():
    children = Children(Keeper())
    process = children.start(["bash", "-c", "sleep 300 & echo $! $$; wait"])
    while not process.stdout.bytes:
        await asyncio.sleep(0.01)
    print(process.stdout.text(), flush=True)
    await process.ended
asyncio.run(main())
"""


def test_an_agent_that_is_killed_leaves_nothing() -> None:
    """Neither its child nor what that has started."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, cwd=TOP
    ) as agent:
        assert agent.stdout is not None
        pids = [int(word) for word in agent.stdout.readline().split()]
        assert len(pids) == 2 and not any(map(gone, pids))
        agent.kill()
    asyncio.run(until(lambda: all(map(gone, pids))))


def test_routes_to_all_peers_are_asked_at_once() -> None:
    """One that cannot be reached from the own address costs the others nothing."""

    async def work(children: Children) -> dict[str, str]:
        addresses = ["127.0.0.9", "192.0.2.1", "localhost"]
        return await devices.routes_to(children, addresses, "127.0.0.1")

    assert with_children(work) == {"127.0.0.9": "lo", "localhost": "lo"}


# ---- meetings ------------------------------------------------------------------------------------


def test_meetings_go_on_when_their_process_was_killed(free: Callable[[], int]) -> None:
    """Whoever waits is told, and the next one who asks is served."""
    place = Place("127.0.0.1", free())

    async def work(children: Children) -> tuple[int, str, int]:
        meetings = Meetings(children, str(ENGINE), 2)
        serve = [str(ENGINE), "serve", "--port", str(place.port)]
        server = children.start(serve)
        await until(lambda: b"serving" in server.stderr.text().encode())
        waits = meetings.ask(place, "waits", 60)
        assert (await meetings.ask(place, "alone", 20, 1)).exit == 0
        assert meetings._process is not None
        meetings._process.send(signal.SIGKILL)
        lost = await waits
        again = await meetings.ask(place, "alone", 20, 1)
        await end(server)
        return lost.exit, lost.message, again.exit

    assert with_children(work) == (6, "perch meet --lines ended", 0)


def test_a_peer_is_asked_again_when_the_process_of_meetings_was_stopped(
    free: Callable[[], int],
) -> None:
    (flow,) = next(iter(share_of("alpha").rounds()))
    flow = flow._replace(peer_address="127.0.0.1", peer_port=free())
    place = Place(flow.peer_address, flow.peer_port)

    async def work(children: Children) -> tuple[Answer | None, Answer]:
        meetings = Meetings(children, str(ENGINE), 2)
        server = children.start([str(ENGINE), "serve", "--port", str(place.port)])
        await until(lambda: b"serving" in server.stderr.text().encode())
        assert (await meetings.ask(place, "alone", 20, 1)).exit == 0
        waits = meetings.ask(place, "waits", 60)
        assert meetings._process is not None
        meetings._process.send(signal.SIGSTOP)
        answer = await peers.probe(meetings, "alpha", flow)
        await end(server)
        return answer, await waits

    answer, waited = with_children(work)
    assert answer is not None and answer.exit == 0
    assert waited.message == "perch meet --lines ended"


# ---- agents --------------------------------------------------------------------------------------


def test_two_agents_walk_a_plan_and_leave_raw_2(hosts: Callable[..., Hosts]) -> None:
    both = hosts(QUICK, QUICK)
    both.start("alpha")
    both.start("beta")
    both.wait("alpha", "beta")
    for host in ("alpha", "beta"):
        (head, *lines, last), torn = both.flows(host)
        assert (torn, head["schema"], head["host"], head["flows"]) == (
            False,
            "perch.raw/2",
            host,
            2,
        )
        assert (last["kind"], last["state"], last["flows_done"]) == ("end", "done", 2)
        assert [line["state"] for line in lines] == ["done"] * 2
        assert both.status(host) == {"state": "done", "flows_done": 2}
        _, layout, *readings = both.samples(host).lines
        assert layout["kind"] == "layout"
        samples = {one["number"]: one for one in readings}
        assert list(samples) == list(range(1, len(samples) + 1))
        for line in lines:
            before, after = (samples[number] for number in line["samples"])
            assert before["monotonic_ns"] < after["monotonic_ns"] and after["settled"]
            tables = [counted(layout, one["values"])["netdev"]["lo"] for one in (before, after)]
            assert int(tables[0]["rx_bytes"]) < int(tables[1]["rx_bytes"])
            if line["role"] == "client":
                sizes = [json.loads(one) for one in line["stdout"].splitlines()]
                assert [one["params"]["size_bytes"] for one in sizes] == [8, 16]
                assert line["exit"] == 0 and line["argv"][1] == "lat"
        found = json.loads((both.folder / host / "environment.json").read_text())
        assert found["schema"] == "perch.environment/2" and found["address_interface"] == "lo"
        assert found["versions"]["perch"] and "idle_samples" not in found
        assert sorted(one.name for one in (both.folder / host).iterdir()) == [
            *("agent.log", "control", "environment.json", "flows.jsonl", "samples.jsonl")
        ]


def test_what_two_agents_leave_is_judged(hosts: Callable[..., Hosts]) -> None:
    both = hosts(QUICK, {"kind": "bandwidth", "params": {"size": "64K", "duration": "100ms"}})
    both.start("alpha")
    both.start("beta")
    both.wait("alpha", "beta")
    for host in ("alpha", "beta"):
        shutil.copytree(
            both.folder / host, both.folder / "raw" / host, ignore=shutil.ignore_patterns("control")
        )
    verdict, _ = judging.judge(both.folder)
    records = [json.loads(one) for one in (both.folder / "records.jsonl").read_text().splitlines()]
    assert [one["status"] for one in records] == ["ok"] * 3
    assert all(one["counters"]["client"]["lo"]["rx_bytes"] > 0 for one in records)
    unlimited = {"limits", "verdict/limits"}  # no set of limits lies in this run
    bad = {one.id for one in verdict.checks if one.status in ("fail", "inconclusive")}
    assert bad <= unlimited, bad


def test_a_stop_keeps_what_was_measured_and_leaves_nothing(hosts: Callable[..., Hosts]) -> None:
    both = hosts(QUICK, LONG)
    both.start("alpha")
    both.start("beta")
    progress = both.folder / "alpha/control/progress.jsonl"
    asyncio.run(until(lambda: '"start","flow":"t2/' in progress.read_text(), 60))
    told = both.call("poll", "--out", "alpha", "--offset", "0").stdout.splitlines()
    assert told[0] == "alive" and json.loads(told[1])["event"] == "start"
    assert both.status("beta") == {"state": "running"}
    assert both.call("stop", "--out", "alpha").stdout == "stopped\n"
    *_, last = both.flows("alpha").lines
    assert (last["state"], last["message"]) == ("stopped", "stopped by the controller")
    assert both.call("stop", "--out", "alpha").stdout == ""
    assert both.call("poll", "--out", "alpha", "--offset", "0").stdout.startswith("gone\n")
    both.call("stop", "--out", "beta")
    serving = subprocess.run(["pgrep", "-f", str(both.folder)], capture_output=True, timeout=10)
    assert serving.returncode == 1  # nobody


def test_a_killed_agent_leaves_files_that_say_that_they_are_a_part(
    hosts: Callable[..., Hosts],
) -> None:
    both = hosts(LONG)
    both.start("alpha")
    os.kill(both.pid("alpha"), signal.SIGKILL)
    both.wait("alpha")
    assert [line["kind"] for line in both.flows("alpha").lines] == ["head"]
    assert both.status("alpha") == {"state": "gone"}
    assert "holds the results of an earlier run" in both.start("alpha", expect=3)


def test_a_host_that_cannot_says_why(hosts: Callable[..., Hosts]) -> None:
    both = hosts(QUICK)
    port = json.loads((both.folder / "shares/alpha.json").read_text())["hosts"]["alpha"]["port"]
    with socket.create_server(("127.0.0.1", port)):
        assert f"127.0.0.1:{port}: the port is in use" in both.start("alpha", expect=3)
    *_, last = both.flows("alpha").lines
    assert last["state"] == "stopped" and "perch serve on alpha ended" in last["message"]
    assert "there is no engine at" in both.start("beta", "--engine", "./no-such-engine", expect=3)


#: A small file system for alpha's results; when it is larger, the same command works.
FULL_AT_START = """
mkdir alpha
mount -t tmpfs -o size=$SIZE tmpfs alpha
"$@" 2>said
echo $? >code
find alpha -type f -size +0 >left
mount -o remount,size=1m alpha
"$@" && kill $(cut -d ' ' -f 1 alpha/control/pid)
"""


@pytest.mark.parametrize(
    ("size", "file"),
    [
        ("4k", "control/reserve"),
        ("8k", "control/reserve"),
        ("64k", "control/reserve"),
        ("68k", "flows.jsonl"),
        ("72k", "samples.jsonl"),
    ],
)
def test_a_disk_that_is_full_at_the_start_is_named(
    hosts: Callable[..., Hosts], within: list[str], size: str, file: str
) -> None:
    """The agent says so, even where its log has no room, and leaves room and no results."""
    both = hosts(QUICK)
    both.call(
        *("start", "--plan", "shares/alpha.json", "--host", "alpha", "--out", "alpha"),
        *("--engine", str(ENGINE)),
        before=[*within, "env", f"SIZE={size}", "bash", "-c", FULL_AT_START, "-"],
    )
    assert (both.folder / "code").read_text() == "6\n"
    said = (both.folder / "said").read_text()
    assert f"alpha/{file}: No space left on device; free space there" in said
    left = (both.folder / "left").read_text().split()
    assert set(left) <= {"alpha/control/pid", "alpha/agent.log"}


#: A small file system of its own for alpha's results, which its second flow fills.
FULL = """
set -e
mkdir alpha
mount -t tmpfs -o size=256k tmpfs alpha
code=0
"$@" || code=$?
cp -r alpha kept
exit $code
"""


RESERVED = """
import sys
from pathlib import Path
from perch.agent.errors import AgentError
from perch.agent.files import Lines, Reserve
folder = Path("alpha")
reserve, lines = Reserve(folder / "reserve"), Lines(folder / "lines")
try:
    with (folder / "fill").open("wb", buffering=0) as fill:
        while fill.write(bytes(4096)) == 4096:
            pass
except OSError:
    pass
try:
    while True:
        lines.write("x" * 1000)
except AgentError:
    reserve.release()
for number in range(50):
    lines.write("x" * 1000)
"""


def test_the_last_lines_have_room_on_a_full_disk(tmp_path: Path, within: list[str]) -> None:
    command = [*within, "bash", "-c", FULL, "-", sys.executable, "-c", RESERVED]
    python = {**os.environ, "PYTHONPATH": str(TOP)}
    subprocess.run(command, cwd=tmp_path, env=python, timeout=30, check=True)
    assert len(read_lines(tmp_path / "kept/lines").lines) >= 50


@pytest.mark.parametrize(("size", "kept"), [(30000, 2), (300000, 1)])
def test_a_disk_that_fills_in_the_middle_ends_the_agent(
    hosts: Callable[..., Hosts], within: list[str], size: int, kept: int
) -> None:
    """What was measured is kept, as far as the reserve has room, and the last line says why."""
    both = hosts(QUICK, QUICK, QUICK)
    for name in ("alpha", "beta"):
        file = both.folder / f"shares/{name}.json"
        document = json.loads(file.read_text())
        fill = "head -c 999999 /dev/zero >alpha/fill; "
        noise = ["bash", "-c", fill + f"head -c {size} /dev/zero | tr '\\0' x"]
        document["tests"]["t2"]["forms"]["1"]["client"] = noise
        file.write_text(json.dumps(document))
    both.start("beta")
    words = ["--plan", "shares/alpha.json", "--host", "alpha", "--out", "alpha"]
    command = [*within, "bash", "-c", FULL, "-", sys.executable, "-I", str(both.agent), "run"]
    done = subprocess.run(
        [*command, *words, "--engine", str(ENGINE), "--start-window", "15"],
        capture_output=True,
        text=True,
        cwd=both.folder,
        timeout=60,
    )
    assert done.returncode == 6, done.stderr
    (_, *flows, last), torn = read_lines(both.folder / "kept/flows.jsonl")
    assert not torn and [(one["id"], one["exit"], len(one["stdout"])) for one in flows[1:]] == [
        ("t2/alpha/beta/0/1", 0, size)
    ] * (kept - 1)
    assert (flows[0]["id"], flows[0]["exit"]) == ("t1/alpha/beta/0/1", 0)
    assert (last["kind"], last["state"], last["flows_done"]) == ("end", "stopped", kept)
    assert "flows.jsonl: No space left on device; free space there" in last["message"]
    lost = "The reserve has no room for the result of t2/alpha/beta/0/1"
    assert (lost in last["message"]) == (kept == 1)
    both.call("stop", "--out", "beta")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "--plam", "1"], 2, "unknown option '--plam'; did you mean '--plan'?"),
        (["run", "--host", "alpha"], 2, "option --plan is required"),
        (["poll", "--out"], 2, "option --out needs a value"),
        (["poll", "--out", "o", "--offset", "soon"], 2, 'takes a whole number, not "soon"'),
        (["rum"], 2, "unknown command 'rum'; did you mean 'run'?"),
        (["walk"], 2, "unknown command 'walk'; `perch-agent --help` lists all"),
        ([], 2, "perch-agent run"),
        (
            ["run", "--plan", "p", "--host", "h", "--out", "/proc/agent", "--engine", "e"],
            3,
            "cannot write to the directory /proc/agent as user",
        ),
        (
            ["run", "--plan", "/no/p", "--host", "h", "--out", "o", "--engine", "e"],
            3,
            "cannot read the plan /no/p: No such file",
        ),
    ],
)
def test_wrong_usage_is_refused(
    hosts: Callable[..., Hosts], words: list[str], code: int, message: str
) -> None:
    assert message in hosts(QUICK).call(*words, expect=code).stderr


def test_a_process_that_is_ready_writes_its_last_word_into_no_result(tmp_path: Path) -> None:
    result = tmp_path / "flows.jsonl"

    def work(ready: Callable[[], None]) -> int:
        ready()
        os.open(result, os.O_WRONLY | os.O_CREAT)  # it takes the number that the pipe had
        raise AgentError(Exit.STOPPED, "told to end")

    assert detached(work, tmp_path / "agent.log") is None
    assert os.waitstatus_to_exitcode(os.waitpid(-1, 0)[1]) == Exit.STOPPED
    assert result.read_bytes() == b""
