"""A soak's session in no time: its turns, what is started anew, and what becomes of each flow."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from perch.agent.children import Ended, Process
from perch.agent.clock import Clock, date
from perch.agent.counters import Reading
from perch.agent.errors import AgentError, Exit
from perch.agent.files import read_lines
from perch.agent.share import Share
from perch.agent.soak import Soak, Tools
from perch.agent.soak_raw import Past, Since, SoakRaw, since
from tests.py.agent_fakes import FakeClock, FakeProcess, JumpingClock, Script, now, run

KILLED = Ended(None, "KILL")
NO_ANSWER = Script(1, Ended(4, None), stderr=b"cannot connect")


def share_of(turns: Sequence[float], clients: int = 1) -> Share:
    """In each turn alpha has so many flows to beta, and one from it; an interval is 1 s."""
    hosts = {
        name: {
            "address": f"127.0.0.{number}",
            "port": 18600,
            "devices": [{"name": f"rail{rail}"} for rail in range(2)],
        }
        for number, name in enumerate(("alpha", "beta"), start=1)
    }
    test = {"title": "T", "tool": "perch", "kind": "latency",
            "forms": {"1": {"client": ["perch", "lat", "--soak", "client.soak"]}}}  # fmt: skip
    rounds = [
        {
            "estimate_s": long,
            "deadline_s": long + 60,
            "size": clients + 1,
            "flows": [
                *([place, "t", "alpha", "beta", place, turn, []] for place in range(clients)),
                [clients, "t", "beta", "alpha", 0, turn, []],
            ],
        }
        for turn, long in enumerate(turns, start=1)
    ]
    soak = {"duration_s": sum(turns), "interval_s": 1}
    head = {"schema": "perch.share/1", "run": "r", "plan_sha256": "0" * 64, "host": "alpha"}
    return Share(
        {**head, "hosts": hosts, "tests": {"t": test}, "rounds": rounds, "soak": soak}, "engine", 10
    )


class Told(NamedTuple):
    """What a keeper does, and what it writes at its start, and at its end."""

    script: Script
    first: str = '{"kind":"soak"}\n'
    last: str = '{"kind":"latency","soak":{"stopped":false},"error":null}\n'


class World:
    """Around one session. `log`: what it did; `times`: the second of each."""

    def __init__(
        self,
        folder: Path,
        share: Share,
        keepers: Sequence[Told] = (),
        serves: Sequence[Script] = (),
        clients: Sequence[int] = (),
    ) -> None:
        self.folder, self.share = folder, share
        self.log: list[tuple[float, str]] = []
        self._keepers, self._serves = iter(keepers), iter(serves)
        self._clients = iter(clients)
        self.keepers: list[FakeProcess] = []
        self.serves: list[FakeProcess] = []
        self.clock: Clock = FakeClock()
        self.number = 0
        self.running: dict[str, Process] = {}

    def say(self, what: str) -> None:
        self.log.append((round(now(), 1), what))

    def start(
        self, argv: Sequence[str], *, is_server: bool = False, folder: Path | None = None
    ) -> Process:
        assert is_server and folder is not None
        self.say(f"keeper {folder.relative_to(self.folder / 'flows')}")
        told = next(self._keepers)
        file = folder / "client.soak"
        if told.first:
            with file.open("a") as lines:
                lines.write(told.first)
        process = FakeProcess(told.script)
        self.keepers.append(process)

        def ended(_: asyncio.Future[Ended]) -> None:
            if told.last:
                with file.open("a") as lines:
                    lines.write(told.last)

        process.ended.add_done_callback(ended)
        return process

    async def serve(self) -> Process:
        self.say("serve")
        script = next(self._serves, Script(10_000))
        if script.seconds == 0:
            raise AgentError(Exit.HOST, "the port is in use")
        self.serves.append(FakeProcess(script))
        return self.serves[-1]

    async def take(self) -> int:
        self.number += 1
        self.say("sample")
        return self.number

    def members(self) -> dict[int, list[int]]:
        return {0: [0] * (1 + next(self._clients, 0))}

    def times(self, what: str) -> list[float]:
        return [at for at, said in self.log if said.startswith(what)]

    def run(self, stop: float = 10_000, passed: float = 0) -> list[dict[str, Any]]:
        """To its end, or to a stop after so many seconds; gives the lines of flows.jsonl."""
        (self.folder / "control").mkdir(exist_ok=True)

        async def work() -> None:
            raw = SoakRaw(self.share, self.folder, self.clock)
            raw.routes = {"beta": "lo"}
            at = Since(self.clock.uptime_ns() / 1e9 - passed, self.clock.wall_ns())
            raw.start(at, 60.0, "session")
            take = self.take
            tools = Tools(
                self.start, self.serve, take, take, self.clock, self.running, self.members
            )
            soak = Soak(self.share, raw, at, tools)
            task = asyncio.ensure_future(soak.run())
            await asyncio.wait({task}, timeout=stop)
            reason = "" if task.done() else "stopped by the controller"
            task.cancel()
            await soak.end(reason)
            raw.end("stopped" if reason else "done", reason, passed_s=soak.passed())

        run(work)
        return list(read_lines(self.folder / "flows.jsonl").lines)


def outcomes(lines: list[dict[str, Any]], role: str = "client") -> list[dict[str, Any]]:
    return [one for one in lines if one["kind"] == "flow" and one["role"] == role]


def episodes(lines: list[dict[str, Any]]) -> list[str]:
    return [one["what"] for one in lines if one["kind"] == "episode"]


def test_all_flows_of_a_turn_run_at_once_and_each_interval_has_its_sample(tmp_path: Path) -> None:
    told = Told(Script(3.0, stdout=b"whole\n"))
    world = World(tmp_path, share_of([3], clients=2), [told, told])
    lines = world.run()
    assert world.times("keeper") == [0.0, 0.0]
    grid = [0.0, 1.0, 2.0, 3.0]
    assert [at for at in world.times("sample") if at in grid] == [0, 1, 2, 3, 3, 3]
    for one in outcomes(lines):
        assert (one["state"], one["exit"], one["stdout"]) == ("done", 0, "whole\n")
        assert one["samples"][0] == 1 < one["samples"][1]
        assert one["route_interface"] == "lo"
    assert [one["state"] for one in outcomes(lines, "server")] == ["done"]
    assert (lines[-1]["state"], lines[-1]["flows_done"]) == ("done", 3)
    assert lines[-1]["passed_s"] >= 3
    assert episodes(lines) == []


def test_turns_follow_each_other_and_the_last_has_its_own_length(tmp_path: Path) -> None:
    keepers = [Told(Script(2.0)), Told(Script(10_000), last="")]
    world = World(tmp_path, share_of([2, 6]), keepers)
    lines = world.run()
    assert world.times("keeper") == [0.0, 2.0]
    first, second = outcomes(lines)
    assert first["state"] == "done"
    # six seconds, the start window of ten, and as much for the end
    assert second["timed_out"] and second["message"].startswith("ended at its deadline of 26 s")
    assert [one["id"][-1] for one in outcomes(lines, "server")] == ["1", "2"]


def test_a_turn_waits_for_its_moment(tmp_path: Path) -> None:
    world = World(tmp_path, share_of([2]), [Told(Script(2.0))])
    world.run(passed=-5)
    assert world.times("keeper") == [5.0]
    assert world.times("sample")[0] == 5.0


def test_a_server_stays_until_it_has_had_no_client_for_six_seconds(tmp_path: Path) -> None:
    world = World(tmp_path, share_of([2]), [Told(Script(2.0))], clients=[1] * 10)
    world.run()
    assert world.log[-1][0] == 13.0


def test_a_server_that_ends_is_started_anew_after_a_second(tmp_path: Path) -> None:
    serves = [Script(1, KILLED), Script(0), Script(0), Script(6, KILLED)]
    world = World(tmp_path, share_of([12]), [Told(Script(12))], serves)
    lines = world.run()
    assert world.times("serve") == [0.0, 2.0, 3.0, 4.0, 11.0]
    assert episodes(lines).count("serve_restarted") == 2
    said = [one["message"] for one in lines if one["kind"] == "episode"]
    assert said[0] == "the port is in use; it was started again"
    assert said[1] == "perch serve on alpha ended: by signal KILL; it was started again"


def test_a_keeper_that_a_signal_ended_goes_on_with_its_file(tmp_path: Path) -> None:
    keepers = [Told(Script(1, KILLED), last=""), Told(Script(2))]
    world = World(tmp_path, share_of([3]), keepers)
    lines = world.run()
    assert world.times("keeper") == [0.0, 2.0]
    assert episodes(lines) == ["client_restarted"]
    (event,) = (one for one in lines if one["kind"] == "episode")
    assert event["id"] == "t/alpha/beta/0/1"
    assert event["message"] == "t/alpha/beta/0/1 ended by signal KILL; it is started again"
    (one,) = outcomes(lines)
    assert (one["state"], one["exit"], "message" in one) == ("done", 0, False)


def test_what_has_ended_by_itself_is_not_started_anew(tmp_path: Path) -> None:
    script = Script(5, Ended(5, None), stderr=b"corrupt")
    lines = World(tmp_path, share_of([60]), [Told(script, last='{"kind":"interval"}\n')]).run()
    (one,) = outcomes(lines)
    assert (one["state"], one["exit"], one["message"]) == ("done", 5, "corrupt")
    assert episodes(lines) == []


def test_without_an_answer_a_flow_ends_after_the_start_window(tmp_path: Path) -> None:
    """The engine takes its file away, and is no crash."""
    silent = Told(NO_ANSWER, first="", last="")
    world = World(tmp_path, share_of([60], clients=2), [silent, Told(Script(60)), *[silent] * 9])
    lines = world.run()
    assert world.times("keeper t/alpha/beta/0") == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    dead, well = sorted(outcomes(lines), key=lambda one: str(one["id"]))
    assert dead["state"] == "peer_dead"
    assert dead["message"] == "no connection within 10 s: cannot connect"
    assert well["exit"] == 0
    assert episodes(lines) == []


def test_a_keeper_that_cannot_be_started_ends_no_session(tmp_path: Path) -> None:
    """As on a disk without room for its folder."""
    (tmp_path / "flows").mkdir()
    (tmp_path / "flows/t").write_text("")
    world = World(tmp_path, share_of([20]))
    world.start = missing  # type: ignore[method-assign, assignment]
    (one,) = outcomes(world.run())
    assert (one["state"], "exit" in one) == ("not_run", False)
    assert one["message"].startswith("cannot start engine in ")
    assert world.log[-1][0] > 20


def missing(*_: Any, folder: Path, **__: Any) -> Process:
    raise FileNotFoundError(2, "No such file or directory", str(folder))


def test_after_a_boot_a_device_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    share = share_of([60])
    (tmp_path / "flows.jsonl").write_text(begun_lines())
    missing = Told(Script(1, Ended(3, None), stderr=b"no such device"), first="", last="")
    world = World(tmp_path, share, [missing, missing, Told(Script(50))])
    world.clock = OtherBoot()
    lines = world.run(passed=4)
    assert (episodes(lines), len(world.keepers)) == ([], 3)
    (one,) = outcomes(lines)
    assert one["state"] == "done" and "samples" not in one  # counters began anew with the boot
    assert one["started"] == "1970-01-02T00:16:00.000Z" and "started_monotonic_ns" not in one


class OtherBoot(FakeClock):
    def boot(self) -> str:
        return "other"


def begun_lines() -> str:
    """A soak that was begun on an earlier boot, with its flow."""
    begin = {"kind": "begin", "id": "t/alpha/beta/0/1", "role": "client", "sample": 1,
             "boot_id": "boot", "passed_s": 0, "started": "1970-01-02T00:16:00.000Z",
             "started_monotonic_ns": 5}  # fmt: skip
    start = {"kind": "start", "boot_id": "boot", "uptime_s": 10, "passed_s": 0,
             "begun": "1970-01-02T00:16:00.000Z"}  # fmt: skip
    return "".join(f"{json.dumps(one)}\n" for one in ({"kind": "head"}, start, begin))


def test_of_turns_that_are_over_when_the_agent_comes_back_nothing_is_started(
    tmp_path: Path,
) -> None:
    (tmp_path / "flows.jsonl").write_text(begun_lines())
    world = World(tmp_path, share_of([60, 60]), [Told(Script(30))])
    (one,) = outcomes(world.run(passed=90))
    assert (one["id"], len(world.keepers)) == ("t/alpha/beta/0/2", 1)


def test_a_stop_ends_keepers_first_and_every_flow_has_its_outcome(tmp_path: Path) -> None:
    stopped = '{"kind":"latency","soak":{"stopped":true}}\n'
    deaf = Script(10_000, ignores=(signal.SIGTERM,))
    keepers = [Told(Script(10_000), last=stopped), Told(deaf, last="")]
    world = World(tmp_path, share_of([60, 60], clients=2), keepers, clients=[1] * 99)
    lines = world.run(stop=5)
    assert [one.sent[0] for one in world.keepers] == [signal.SIGTERM] * 2
    # three seconds for the deaf one, and two for the keepers of other hosts
    assert world.log[-1][0] == 10.0
    clean, killed = sorted(outcomes(lines), key=lambda one: str(one["id"]))
    assert (clean["state"], clean["signal"]) == ("done", "TERM")
    assert clean["message"] == "stopped by the controller"
    assert (killed["signal"], killed["message"]) == ("KILL", "stopped by the controller")
    assert [one["message"] for one in outcomes(lines, "server")] == ["stopped by the controller"]
    # those of the second turn did not run, for the reason of the last line
    assert lines[-1]["flows_done"] == 3
    assert lines[-1]["message"] == "stopped by the controller"


def test_a_cut_output_is_marked(tmp_path: Path) -> None:
    """Lines that the disk refused come before the record; a fake keeps 100 bytes."""
    world = World(tmp_path, share_of([3]), [Told(Script(3.0, stdout=b"x" * 150))])
    (one,) = outcomes(world.run())
    assert (one["stdout"], one["stdout_bytes"]) == ("x" * 100, 150)


def test_half_a_line_of_a_crash_says_nothing(tmp_path: Path) -> None:
    """The agent goes on with the flow, whose outcome was being written."""
    (tmp_path / "flows.jsonl").write_text(
        begun_lines() + '{"kind":"flow","id":"t/alpha/beta/0/1","role":"client","state":"do'
    )
    world = World(tmp_path, share_of([60]), [Told(Script(50))])
    (one,) = outcomes(world.run(passed=4))
    assert (one["state"], len(world.keepers)) == ("done", 1)


# ---- its clock -----------------------------------------------------------------------------------


class OtherClock(Clock):
    """A boot of 30 s, and a wall of one's own."""

    def __init__(self, wall_s: float, boot: str = "new") -> None:
        self._wall_s, self._boot = wall_s, boot

    def boot(self) -> str:
        return self._boot

    def wall_ns(self) -> int:
        return round(self._wall_s * 1000) * 10**6

    def uptime_ns(self) -> int:
        return 30 * 10**9


def test_a_wall_clock_that_jumps_only_dates_results(tmp_path: Path) -> None:
    keepers = [Told(Script(2.0)), Told(Script(3.0))]
    world = World(tmp_path, share_of([2, 3]), keepers)
    world.clock = JumpingClock()
    lines = world.run()
    assert world.times("keeper") == [0.0, 2.0]
    assert {0, 1, 2, 3, 4, 5} < set(world.times("sample"))
    assert [one["state"] for one in outcomes(lines)] == ["done", "done"]
    assert 5 <= lines[-1]["passed_s"] < 20


@pytest.mark.parametrize(
    ("ahead_s", "begun_s", "passed_s"), [(30, 30, -30), (-20, -20, 20), (61, 0, 0), (-61, 0, 0)]
)
def test_turns_begin_at_the_agreed_moment_unless_it_is_of_another_clock(
    tmp_path: Path, ahead_s: int, begun_s: int, passed_s: float
) -> None:
    at = since(Past(tmp_path), OtherClock(1e9), 1_000_000_000 + ahead_s, 60)
    assert at == (30.0 - passed_s, (1_000_000_000 + begun_s) * 10**9)


def test_across_a_boot_the_clock_goes_on_from_the_last_sample(tmp_path: Path) -> None:
    """Ten minutes in; the wall had jumped by an hour, and the host was away for 20 s."""
    begun = {"kind": "start", "boot_id": "old", "uptime_s": 5000.0, "passed_s": 0.0}
    begun["begun"] = date(1_000_000_000 * 10**9)
    (tmp_path / "flows.jsonl").write_text(f"{json.dumps(begun)}\n")
    sample = {"kind": "sample", "number": 9, "boot_id": "old", "time_s": "1000004200.250"}
    sample["uptime_s"] = 5600.0
    (tmp_path / "samples.jsonl").write_text(f'{json.dumps(sample)}\n{{"kind":"sample","boo')
    at = since(Past(tmp_path), clock := OtherClock(1000004220.25))
    assert at.passed(clock) == pytest.approx(620.0)
    assert at.begun_ns == 1_000_000_000 * 10**9
    # without a sample of that boot only the wall says it; within a boot its own clock
    (tmp_path / "samples.jsonl").unlink()
    assert since(Past(tmp_path), clock := OtherClock(1000000700.0)).passed(clock) == 700
    assert since(Past(tmp_path), OtherClock(0.0, "old")).uptime_s == 5000


# ---- a full disk ---------------------------------------------------------------------------------


def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Whether the disk takes nothing."""
    import os

    write, state = os.write, {"full": False}

    def refused(fd: int, content: bytes) -> int:
        if state["full"] and fd > 2:
            raise OSError(28, "No space left on device")
        return write(fd, content)

    monkeypatch.setattr(os, "write", refused)
    return lambda is_full: state.update(full=is_full)


def test_lines_wait_while_the_disk_is_full_and_samples_are_dropped_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perch.agent.soak_raw.WAITING_MAX", 3)
    (tmp_path / "control").mkdir()
    share, disk = share_of([60]), full(monkeypatch)
    raw = SoakRaw(share, tmp_path, Clock())
    assert raw.sample(Reading({"host": []}, {"values": ""})) == 1
    disk(True)
    numbers = [raw.sample(Reading({"host": []}, {"values": ""})) for _ in range(6)]
    raw.episode("serve_ended", "why")
    assert numbers == [2, 3, 4, 5, 5, 5]
    assert raw.unwritten == "flows.jsonl" and raw.waiting == 5
    disk(False)
    raw.sync()
    assert raw.waiting == 0
    raw.sample(Reading({"host": []}, {"values": ""}))
    lines = read_lines(tmp_path / "samples.jsonl").lines[2:]
    assert [(one["number"], one.get("dropped")) for one in lines] == [
        *((number, None) for number in range(1, 6)), (6, 2),
    ]  # fmt: skip
    assert read_lines(tmp_path / "flows.jsonl").lines[-1]["what"] == "serve_ended"
    # another agent goes on with its numbers, and half a line at the end is none
    with (tmp_path / "samples.jsonl").open("a") as file:
        file.write('{"kind":"sam')
    raw = SoakRaw(share, tmp_path, Clock())
    assert raw.sample(Reading({"host": []}, {"values": ""})) == 7
    kinds = [one["kind"] for one in read_lines(tmp_path / "samples.jsonl").lines]
    assert kinds == ["head", "layout", *["sample"] * 6, "layout", "sample"]
