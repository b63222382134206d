"""Soaks with real processes: two hosts of this machine, for seconds."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import signal
import socket
import subprocess
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from perch.agent import soak_control, soak_host
from perch.agent.agent import Settings
from perch.agent.clock import Clock, boot_id
from perch.agent.errors import AgentError, Exit
from perch.agent.files import read_lines
from perch.agent.soak_raw import Since, SoakRaw
from perch.agent.soak_session import SoakAgent
from tests.py.agent_hosts import BUILT, until
from tests.py.agent_soaks import BW, LAT, Soaks
from tests.py.test_agent_soak import full, share_of

pytestmark = BUILT


def test_a_soak_leaves_raw_2_and_the_lines_of_the_engine(soaks: Callable[..., Soaks]) -> None:
    both = soaks("3s")
    said = json.loads(both.begin("alpha").stdout)
    assert (said["state"], said["run"], said["host"]) == ("running", "r", "alpha")
    both.begin("beta")
    both.wait("alpha", "beta")
    for flow in (BW, LAT):
        one = both.outcome("alpha", flow)
        assert (one["state"], one["exit"], "message" in one) == ("done", 0, False)
        assert one["stdout"] == both.file(flow).read_text().splitlines(keepends=True)[-1]
        assert json.loads(one["stdout"])["soak"]["intervals"] == 3
    end = both.lines("alpha", "end")[0]
    assert (end["state"], end["flows_done"], "unwritten" in end) == ("done", 4, False)
    said = json.loads(both.call("soak-status", "--out", "alpha").stdout)
    assert said == {"state": "done", "flows_done": 4}
    (start,) = both.lines("alpha", "start")
    assert (start["supervisor"], start["boot_id"]) == ("session", boot_id())
    # a connection's uptime and the agent's are of one clock
    connection = json.loads(both.file(BW).read_text().splitlines()[1])
    began = connection["uptime_s"] - connection["start_s"] - start["uptime_s"]
    assert connection["boot_id"] == start["boot_id"] and 0 <= began <= 15
    head, layout, *samples = both.samples("alpha").lines
    assert (head["kind"], layout["kind"]) == ("head", "layout")
    assert [one["number"] for one in samples] == list(range(1, len(samples) + 1))
    roles = {role["role"] for one in samples for role in one["processes"]}
    assert roles == {"agent", "serve", "job", "keeper", "measurer"}
    assert {role["flow"] for one in samples for role in one["processes"] if "flow" in role} == {
        BW, LAT,
    }  # fmt: skip
    assert all("operstate" in one["links"]["lo"] for one in samples)
    agents = [one["processes"][0]["resident_bytes"] for one in samples]
    assert max(agents) < 30 * 2**20
    assert not (both.folder / "alpha.state").exists()


def test_turns_take_turns(soaks: Callable[..., Soaks]) -> None:
    both = soaks("4s", mode="alternating", turn="2s")
    both.begin("alpha")
    both.begin("beta")
    both.wait("alpha", "beta")
    flows = [one for host in both.names for one in both.lines(host, "begin")]
    by_turn = {one["id"]: one["passed_s"] for one in flows if one["role"] == "client"}
    assert len(by_turn) == 2
    first, second = sorted(by_turn.values())
    assert second >= 2 > first
    for host in both.names:
        assert [one["state"] for one in both.lines(host, "flow")] == ["done", "done"]


def test_a_stop_ends_all_with_what_was_measured(soaks: Callable[..., Soaks]) -> None:
    both = soaks()
    both.begin("alpha")
    both.begin("beta")
    both.measure(BW, LAT)
    said = both.told("alpha")
    assert said["state"] == "running" and said["passed_s"] > 0.5 and said["remaining_s"] < 60
    with ThreadPoolExecutor() as controller:
        stopped = list(controller.map(lambda host: both.soak("stop", host), both.names))
    assert stopped == [f"stopped {both.folder}/{host}\n" for host in both.names]
    assert both.left() == []
    (alpha,), (beta,) = both.lines("alpha", "end"), both.lines("beta", "end")
    assert (alpha["state"], alpha["message"]) == ("stopped", "stopped by the controller")
    assert alpha["flows_done"] == beta["flows_done"] == 4
    assert said["passed_s"] < alpha["stop_asked_s"] <= alpha["passed_s"]
    assert 0 < beta["stop_asked_s"] <= beta["passed_s"]
    one = both.outcome("alpha", LAT)
    assert (one["state"], one["exit"]) == ("done", 0)
    whole = json.loads(one["stdout"])["soak"]
    assert whole["stopped"] and whole["gaps"] == 0
    assert both.soak("stop", "alpha") == ""
    assert both.told("alpha")["state"] == "none"
    said = json.loads(both.call("soak-status", "--out", "alpha").stdout)
    assert (said["state"], said["message"]) == ("stopped", "stopped by the controller")
    again = both.begin("alpha", expect=3).stderr
    assert "holds the results of an earlier run" in again


def test_what_is_killed_is_started_anew(soaks: Callable[..., Soaks]) -> None:
    both = soaks()
    both.begin("alpha")
    both.begin("beta")
    both.measure(BW, LAT)
    os.kill(both.process("beta", "serve"), signal.SIGKILL)

    def after_gap(flow: str) -> bool:
        kinds = both.kinds(flow)
        return "gap" in kinds and "interval" in kinds[kinds.index("gap") :]

    asyncio.run(until(lambda: after_gap(BW) and after_gap(LAT), 60))
    os.kill(both.process("alpha", "lat"), signal.SIGKILL)
    reason = '"reason":"perch was stopped and restarted'
    asyncio.run(until(lambda: reason in both.file(LAT).read_text(), 60))
    both.soak("stop", "alpha")
    both.soak("stop", "beta")
    assert [one["what"] for one in both.lines("beta", "episode")] == ["serve_restarted"]
    assert [one["what"] for one in both.lines("alpha", "episode")] == ["client_restarted"]
    load, probe = (json.loads(both.outcome("alpha", one)["stdout"])["soak"] for one in (BW, LAT))
    assert load["gaps"] >= 1 and not load["resumed"]
    assert probe["gaps"] >= 2 and probe["resumed"]


def test_a_killed_agent_leaves_nothing_and_another_goes_on(soaks: Callable[..., Soaks]) -> None:
    both = soaks("14s")
    both.begin("alpha")
    both.begin("beta")
    both.measure(BW)
    os.kill(both.pid("alpha"), signal.SIGKILL)
    own = (f"{both.folder}/alpha", "\0--bind\000127.0.0.1\0")
    asyncio.run(until(lambda: not any(word in one for one in both.left() for word in own)))
    said = both.told("alpha")
    assert said["state"] == "interrupted" and said["passed_s"] >= 0.5
    assert said["message"].startswith("no process of it runs, and it is not over")
    assert "playbooks/soak_stop.yml closes it" in said["message"]
    assert "was interrupted and is not over" in both.begin("alpha", "--out", "x", expect=3).stderr
    # what a stop leaves that died before it had stopped anything
    for host in both.names:
        (both.folder / host / "control/reason").write_text("stopped by the controller\n")
    agent = both.resume("alpha")
    asyncio.run(until(lambda: len(both.lines("alpha", "start")) == 2))
    assert not (both.folder / "alpha/control/reason").exists()
    assert both.told("alpha")["state"] == "running"
    both.wait("alpha", "beta")
    (end,) = both.lines("alpha", "end")
    assert end["state"] == "done" and "message" not in end and "stop_asked_s" not in end
    assert agent.wait(10) == 0
    one = both.outcome("alpha", BW)
    whole = json.loads(one["stdout"])["soak"]
    assert (one["state"], one["exit"]) == ("done", 0) and "samples" in one
    assert whole["resumed"] and whole["gaps"] >= 1 and whole["passed_s"] > 13.9
    numbers = [one["number"] for one in both.samples("alpha").lines if one["kind"] == "sample"]
    assert numbers == list(range(1, len(numbers) + 1))


def test_what_is_ended_from_outside_is_not_over_and_can_be_closed(
    soaks: Callable[..., Soaks],
) -> None:
    both = soaks()
    both.begin("alpha")
    both.begin("beta")
    both.measure(BW)
    # what goes on is packed as it is
    path = both.call("soak-pack", "--out", "alpha").stdout.strip()
    with gzip.open(path) as packed, tarfile.open(fileobj=packed) as archive:
        assert {f"flows/{BW}/client.soak", "flows.jsonl"} <= set(archive.getnames())
    assert both.told("alpha")["state"] == "running"
    os.kill(both.pid("alpha"), signal.SIGTERM)
    both.wait("alpha")
    assert both.flows("alpha").lines[-1]["kind"] == "begin"
    assert both.told("alpha")["state"] == "interrupted"
    os.kill(both.pid("beta"), signal.SIGKILL)
    both.wait("beta")
    for host in both.names:
        assert both.soak("stop", host) == f"stopped {both.folder}/{host}\n"
        (end,) = both.lines(host, "end")
        assert (end["state"], end["flows_done"]) == ("stopped", 0)
        assert end["message"] == "stopped by the controller, after it had been interrupted"
        assert not list(both.folder.glob(f"{host}.state*"))
    assert "interval" in both.kinds(BW)  # what was measured stays


def test_a_soak_whose_files_are_gone_can_be_ended(soaks: Callable[..., Soaks]) -> None:
    both = soaks()

    def removed() -> bool:  # the session may just be writing there
        return subprocess.run(["rm", "-r", str(both.folder / "alpha")], check=False).returncode == 0

    for was_killed in (False, True):
        both.begin("alpha")
        if was_killed:
            os.kill(both.pid("alpha"), signal.SIGKILL)
        asyncio.run(until(removed))
        if not was_killed:
            assert both.told("alpha")["state"] == "running"
            said = both.begin("alpha", "--out", "other", expect=3).stderr
            assert f"a soak on alpha runs already, in {both.folder}/alpha" in said
            assert not (both.folder / "other").exists()
        said = both.call("soak-status", "--out", "alpha").stdout
        assert "soak_stop.yml removes what is left" in said
        assert both.soak("stop", "alpha") == f"stopped {both.folder}/alpha\n"
        assert both.left() == [] and not (both.folder / "alpha.state").exists()
    assert both.soak("stop", "alpha") == ""


def test_a_second_soak_is_refused_by_the_name_of_the_first(soaks: Callable[..., Soaks]) -> None:
    both = soaks()
    (both.folder / "alpha.state").symlink_to("/old")
    said = both.begin("alpha").stderr
    assert "of the soak in /old nothing is left; it is forgotten" in said
    said = both.begin("alpha", "--out", "other", expect=3).stderr
    assert f"a soak on alpha runs already, in {both.folder}/alpha: attach to it" in said
    assert not (both.folder / "other").exists()
    both.soak("stop", "alpha")


def test_what_a_controller_looks_for_is_told(soaks: Callable[..., Soaks]) -> None:
    """Results that still lie there, of this host alone, and which plan the soak has."""
    both = soaks()
    words = ["soak-status", "--state", "alpha.state", "--kept", "kept", "--host", "alpha"]
    said = json.loads(both.call(*words).stdout)
    assert said == {"state": "none", "message": "no soak on this host", "kept": []}
    for folder, host in (("one-alpha", "alpha"), ("one-beta", "beta")):
        (both.folder / "kept" / folder).mkdir(parents=True)
        (both.folder / "kept" / folder / f"soak-of-{host}").touch()
    (both.folder / "kept/two-alpha").mkdir()  # of a run
    both.begin("alpha")
    said = json.loads(both.call(*words).stdout)
    plan = (both.folder / "plan.json").read_bytes()
    assert (said["kept"], said["plan_sha256"]) == (["one"], hashlib.sha256(plan).hexdigest())
    both.soak("stop", "alpha")


def test_what_cannot_be_started_is_refused_and_leaves_nothing(
    soaks: Callable[..., Soaks], tmp_path: Path
) -> None:
    both = soaks()
    share = json.loads((tmp_path / "shares/alpha.json").read_text())

    def plan(name: str, **change: Any) -> str:
        (tmp_path / name).write_text(json.dumps({**share, **change}))
        return name

    refused = {
        ("--plan", plan("none.json", soak=None)): "is no soak's",
        ("--plan", plan("long.json", soak={**share["soak"], "interval_s": 61})): "than it lasts",
        ("--plan", plan("old.json", schema="perch.share/0")): "this agent reads perch.share/1",
        ("--engine", "/nowhere"): "there is no engine at /nowhere",
    }
    for words, why in refused.items():
        assert why in both.begin("alpha", *words, "--out", "a", expect=3).stderr
    said = both.begin("alpha", "--supervisor", "cron", expect=2).stderr
    assert 'option --supervisor takes auto|session, not "cron"' in said
    with socket.socket() as one:
        one.bind(("127.0.0.1", both.port))
        one.listen()
        said = both.begin("alpha", expect=3).stderr.splitlines()[-1]
    assert "the soak of run r did not start on alpha: perch serve on alpha ended with exit" in said
    assert "the port is in use" in said
    assert both.lines("alpha", "end")[0]["state"] == "stopped"
    assert not (tmp_path / "alpha.state").exists() and both.left() == []


def options_of(folder: Path) -> dict[str, Any]:
    paths = {"plan": "share.json", "out": "alpha", "state": "state"}
    return {key: str(folder / name) for key, name in paths.items()} | {"host": "alpha", "begin": 7}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the place of systemd: a file with what it was asked; no unit is active."""
    (tmp_path / "bin").mkdir()
    script = f'echo "${{0##*/}} $*" >>{tmp_path}/asked; [ "$1" != is-active ]\n'
    for name in ("systemctl", "sync"):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(soak_host, "UNIT", tmp_path / soak_host.UNIT.name)
    return tmp_path / "asked"


def test_what_a_boot_must_find_is_on_disk_before_there_is_any_load(
    tmp_path: Path, programs: Path
) -> None:
    assert soak_host.start_unit(tmp_path / "state", options_of(tmp_path)) == 0
    *_, enable, sync, start = programs.read_text().splitlines()
    assert enable == "systemctl enable --quiet perch-soak.service"
    assert {str(tmp_path), str(soak_host.UNIT)} == set(sync.split()[2:])
    assert start == "systemctl start perch-soak.service"
    assert soak_host.has_unit(tmp_path / "alpha") and not soak_host.has_unit(tmp_path / "beta")
    soak_host.release(tmp_path / "state", tmp_path / "beta")
    assert soak_host.UNIT.exists()  # of another soak
    soak_host.release(tmp_path / "state", tmp_path / "alpha")
    assert not soak_host.UNIT.exists()


def test_an_end_that_cannot_be_written_leaves_a_soak_that_can_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    (out / "control").mkdir(parents=True)
    state.symlink_to(out)
    raw = SoakRaw(share_of([60]), out, Clock())
    raw.start(Since(0.0, 0), 60.0, "session")
    with monkeypatch.context() as patched:
        full(patched)(True)
        with pytest.raises(AgentError, match=r"cannot write .*flows.jsonl") as error:
            soak_control.command("stop", {"state": str(state)})
        assert error.value.code == Exit.INTERNAL
        assert soak_host.held(state) == out
    assert soak_control.command("stop", {"state": str(state)}) == 0
    assert read_lines(out / "flows.jsonl").lines[-1]["state"] == "stopped"
    assert soak_host.held(state) is None


def test_an_agent_whose_end_cannot_be_written_leaves_its_soak_to_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    (out / "control").mkdir(parents=True)
    state.symlink_to(out)

    async def no_room() -> Exit:
        agent = SoakAgent(share_of([60]), Settings(out, "engine", "", 0, 9), state, 0, lambda: None)
        full(monkeypatch)(True)
        return await agent.run()  # which finds no engine

    with pytest.raises(AgentError, match=r"could not be written in .*; free space there"):
        asyncio.run(no_room())
    assert soak_host.held(state) == out


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    options = options_of(tmp_path)
    text = soak_host.unit_text(tmp_path / "state", options)
    assert '"soak-session" "--plan" ' in text and f' "--state" "{options["state"]}" ' in text
    assert text.count('"--begin" "7"\n') == 1
    unit = tmp_path / soak_host.UNIT.name
    for more, said in (("", ""), ("[Service]\nOOMPolicy=maybe\n", "OOM")):
        unit.write_text(text + more)
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", unit],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert said in done.stderr and bool(done.stderr) == bool(said), done.stderr
