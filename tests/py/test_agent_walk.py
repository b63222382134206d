"""One end of a flow, in no time: what is asked, started, read and written, and in which order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from perch.agent.children import Ended
from perch.agent.errors import AgentError, Exit
from perch.agent.files import read_lines
from perch.agent.peers import Peers
from perch.agent.raw import Raw
from perch.agent.share import Share
from perch.agent.walk import Tools, Walk
from tests.py.agent_fakes import (
    CAME,
    SILENT,
    FakeClock,
    JumpingClock,
    Script,
    World,
    now,
    run,
    share_of,
)

MEETS = {"start": (0.5, CAME), "done": (0.5, CAME)}
ENDLESS = 10_000.0


class Told(Raw):
    """Says to the world's log when a line is written."""

    def __init__(self, folder: Path, share: Share, clock: FakeClock, world: World) -> None:
        super().__init__(folder, share, clock)
        self._world = world

    def flow(self, *words: Any, **more: Any) -> None:
        self._world.say("line")
        super().flow(*words, **more)


class Walked:
    """A walk to its end, or to a stop after so many seconds.

    changes: (after so many seconds, an attribute of the world, its new value).
    """

    def __init__(
        self,
        folder: Path,
        world: World,
        share: Share,
        serve_ends: float = ENDLESS,
        stop: float = ENDLESS,
        changes: Sequence[tuple[float, str, Any]] = (),
        clock: type[FakeClock] = FakeClock,
    ) -> None:
        self.world = world
        self._clock = clock
        self.error: AgentError | None = None
        self._folder, self._share = folder, share
        self._serve_ends, self._stop, self._changes = serve_ends, stop, changes
        run(self._run)
        head, *self.lines, self.end = read_lines(folder / "flows.jsonl").lines
        assert head["schema"] == "perch.raw/2"

    async def _run(self) -> None:
        world, clock = self.world, self._clock()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str] = loop.create_future()
        loop.call_later(
            self._serve_ends, ended.set_result, "perch serve on here ended: signal KILL"
        )
        for change in self._changes:
            loop.call_later(change[0], setattr, world, *change[1:])
        raw = Told(self._folder, self._share, clock, world)
        peers = Peers(world, self._share.host, loop.time() + 15, ended)
        routes = {"alpha": "lo", "beta": "lo"}
        self.told: list[dict[str, Any]] = []
        seats = world.places.seats
        tools = Tools(
            world, peers, world, raw, clock, world.listening, routes, seats, self.told.append
        )
        walk = Walk(self._share, tools)
        task = asyncio.ensure_future(walk.run())
        await asyncio.wait({task}, timeout=self._stop)
        if task.done():
            error = task.exception()
            assert error is None or isinstance(error, AgentError)
            self.error = error
        else:
            task.cancel()
            await asyncio.wait({task})
            walk.stopped("the agent was told to end")
        self.seconds = now()
        raw.end("done")


# ---- the client's end ----------------------------------------------------------------------------


def test_a_client_writes_its_line_before_the_ends_meet_again(tmp_path: Path) -> None:
    world = World(MEETS, scripts=[Script(1, stdout=b"figures")])
    walked = Walked(tmp_path, world, share_of("alpha"))
    order = ["ask start", "before", "start cat", "after", "line", "ask done"]
    assert world.log == order
    (line,) = walked.lines
    assert (line["state"], line["exit"], line["stdout"]) == ("done", 0, "figures")
    assert (line["samples"], line["route_interface"]) == ([1, 2], "lo")
    assert line["started"] == "1970-01-02T00:16:40.500Z"
    assert line["ended_monotonic_ns"] - line["started_monotonic_ns"] == 10**9
    assert "message" not in line and "signal" not in line and "stdout_bytes" not in line


def test_what_a_reading_takes_is_no_part_of_the_flow(tmp_path: Path) -> None:
    world = World(MEETS, scripts=[Script(1)])
    world.reading_s = 3
    (line,) = Walked(tmp_path, world, share_of("alpha")).lines
    assert line["ended_monotonic_ns"] - line["started_monotonic_ns"] == 10**9


class FullDisk(World):
    """It takes no reading after a flow."""

    async def after(self) -> int:
        raise AgentError(Exit.INTERNAL, "no space left")


def test_a_reading_that_the_disk_refuses_costs_no_result(tmp_path: Path) -> None:
    world = FullDisk(MEETS, scripts=[Script(1, stdout=b"figures")])
    walked = Walked(tmp_path, world, share_of("alpha", 2))
    (line,) = walked.lines
    assert (line["exit"], line["stdout"], "samples" in line) == (0, "figures", False)
    assert walked.error is not None and walked.error.message == "no space left"


def test_an_output_is_cut_and_the_cut_is_marked(tmp_path: Path) -> None:
    world = World(MEETS, scripts=[Script(stdout=b"x" * 101, stderr=b"\xff" + b"y" * 99)])
    (line,) = Walked(tmp_path, world, share_of("alpha")).lines
    assert (line["stdout"], line["stdout_bytes"]) == ("x" * 100, 101)
    assert line["stderr"] == "\\xff" + "y" * 99
    assert "stderr_bytes" not in line


def test_a_failed_command_is_explained_by_its_last_words(tmp_path: Path) -> None:
    script = Script(ended=Ended(4, None), stderr=b"first\nlost the peer\n")
    (line,) = Walked(tmp_path, World(MEETS, scripts=[script]), share_of("alpha")).lines
    assert (line["exit"], line["message"]) == (4, "lost the peer")


@pytest.mark.parametrize(
    ("ignores", "signal_name", "seconds"),
    [((), "TERM", 30.0), ((signal.SIGTERM,), "KILL", 35.0)],
)
def test_a_command_is_ended_at_its_deadline(
    tmp_path: Path, ignores: tuple[int, ...], signal_name: str, seconds: float
) -> None:
    world = World(MEETS, scripts=[Script(ENDLESS, ignores=ignores)])
    (line,) = Walked(tmp_path, world, share_of("alpha")).lines
    assert (line["timed_out"], line["signal"]) == (True, signal_name)
    assert line["message"] == "ended at its deadline of 30 s"
    assert (line["ended_monotonic_ns"] - line["started_monotonic_ns"]) / 1e9 == seconds


def test_a_wall_clock_that_jumps_only_dates_results(tmp_path: Path) -> None:
    """Deadlines, durations and the order of readings are of the monotonic clock."""
    world = World(MEETS, scripts=[Script(1), Script(ENDLESS)])
    walked = Walked(tmp_path, world, share_of("alpha", 2), clock=JumpingClock)
    dates = [line["started"][11:13] for line in walked.lines]
    assert [line["state"] for line in walked.lines] == ["done"] * 2 and set(dates) <= {"23", "01"}
    seconds = [one["ended_monotonic_ns"] - one["started_monotonic_ns"] for one in walked.lines]
    assert seconds == [10**9, 30 * 10**9]
    assert world.times == sorted(world.times) and walked.seconds == 33


def test_a_command_that_not_even_sigkill_ends_is_given_up(tmp_path: Path) -> None:
    stuck = Script(ENDLESS, ignores=(signal.SIGTERM, signal.SIGKILL))
    walked = Walked(tmp_path, World(MEETS, scripts=[stuck]), share_of("alpha"))
    assert walked.lines[0]["timed_out"] and "exit" not in walked.lines[0]
    assert walked.seconds == pytest.approx(41)


def test_a_missing_tool_is_named_and_the_next_flow_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    share = share_of("alpha", client=["ib_send_lat"])
    (line,) = Walked(tmp_path, World(MEETS), share).lines
    assert line["state"] == "not_run"
    assert line["message"].startswith("ib_send_lat is not installed on alpha: install the package")
    assert "perftest" in line["message"] and "samples" not in line


def test_a_server_that_could_not_start_is_heard_of(tmp_path: Path) -> None:
    world = World({"refused": (0.5, CAME)})
    share = share_of("alpha", server=["cat"])
    (line,) = Walked(tmp_path, world, share).lines
    assert line["state"] == "not_run" and "beta could not start" in line["message"]
    assert world.log == ["ask start", "ask refused", "line"]


# ---- peers ---------------------------------------------------------------------------------------


def test_a_silent_peer_costs_the_start_window_once(tmp_path: Path) -> None:
    world = World({"start": (0.1, SILENT)}, probe=SILENT)
    walked = Walked(tmp_path, world, share_of("alpha", flows=3))
    assert [line["state"] for line in walked.lines] == ["peer_dead"] * 3
    assert walked.lines[0]["message"] == (
        "beta does not answer at 127.0.0.2 port 18600: cannot connect"
    )
    assert walked.lines[1]["message"].startswith("skipped: beta does not answer")
    assert 15 <= walked.seconds < 17


def test_silence_must_last(tmp_path: Path) -> None:
    """A host that is too busy to answer at once, after everyone had time to start, is not dead."""
    world = World({"start": (21.0, CAME), "done": (0.1, CAME)}, scripts=[Script()])
    changes = [(14.0, "probe", SILENT), (17.0, "probe", CAME)]
    (line,) = Walked(tmp_path, world, share_of("alpha"), changes=changes).lines
    assert line["state"] == "done"


def test_a_process_of_meetings_that_gives_no_answer_is_ended_and_its_peer_lives(
    tmp_path: Path,
) -> None:
    world = World({"start": (21.0, CAME), "done": (0.1, CAME)}, scripts=[Script()])
    walked = Walked(tmp_path, world, share_of("alpha"), changes=[(9.0, "answers", False)])
    (line,) = walked.lines
    assert line["state"] == "done" and world.log.count("close") == 1


def test_a_living_peer_that_does_not_come_costs_its_deadline(tmp_path: Path) -> None:
    walked = Walked(tmp_path, World(), share_of("alpha", flows=2))
    first, second = walked.lines
    assert first["state"] == "meeting_failed"
    assert first["message"] == "beta is alive but did not come in time: 1 of 2 parties came"
    assert second["message"].startswith("skipped: ")
    assert 30 <= walked.seconds < 32


def test_a_peer_that_answers_after_its_deadline_is_not_waited_for(tmp_path: Path) -> None:
    """Its flow has a line that says so, and what comes late changes nothing."""
    world = World({"start": (0.5, CAME), "done": (45.0, CAME)}, scripts=[Script()])
    walked = Walked(tmp_path, world, share_of("beta", 2))
    first, second = walked.lines
    assert (first["state"], second["state"]) == ("meeting_failed", "peer_dead")
    assert first["message"].endswith("alpha is alive but did not come in time")
    assert 40.5 <= walked.seconds < 45
    assert world.log.count("ask done") == 1


def test_a_refused_meeting_is_tried_again(tmp_path: Path) -> None:
    world = World({"start": (0.1, SILENT)}, scripts=[Script()])
    changes = [(2.0, "meetings", MEETS)]
    (line,) = Walked(tmp_path, world, share_of("alpha"), changes=changes).lines
    assert line["state"] == "done"
    assert world.log.count("ask start") == 5  # every 0.6 s


# ---- the server's end ----------------------------------------------------------------------------


def test_a_server_reads_before_the_meeting_and_after_the_last_one(tmp_path: Path) -> None:
    world = World(MEETS)
    (line,) = Walked(tmp_path, world, share_of("beta")).lines
    assert world.log == ["before", "ask start", "ask done", "after", "line"]
    assert line["role"] == "server" and line["state"] == "done"
    assert not {"argv", "exit", "signal", "stdout"} & set(line)


def test_an_external_server_has_time_to_end_by_itself(tmp_path: Path) -> None:
    world = World(MEETS, scripts=[Script(2, stdout=b"served")])
    (line,) = Walked(tmp_path, world, share_of("beta", server=["cat"])).lines
    assert (line["exit"], line["stdout"]) == (0, "served")
    assert world.started[0].sent == []


def test_an_external_server_that_serves_on_is_told_to_end(tmp_path: Path) -> None:
    world = World(MEETS, scripts=[Script(ENDLESS)])
    (line,) = Walked(tmp_path, world, share_of("beta", server=["cat"])).lines
    assert (line["state"], line["signal"]) == ("done", "TERM")


def test_a_server_that_does_not_listen_lets_the_client_go(tmp_path: Path) -> None:
    world = World(
        {"refused": (0.1, CAME)}, scripts=[Script(ENDLESS, stderr=b"in\nuse")], listens=False
    )
    (line,) = Walked(tmp_path, world, share_of("beta", server=["cat"])).lines
    assert line["state"] == "not_run"
    assert line["message"] == (
        "cat did not come to listen on port 5201 of beta (is another program using it?): in use"
    )
    assert world.log == ["start cat", "line", "ask refused"]


def test_a_client_that_dies_ends_its_server_before_the_deadline(tmp_path: Path) -> None:
    world = World({"start": (0.5, CAME)}, scripts=[Script(ENDLESS)])
    share = share_of("beta", server=["cat"])
    walked = Walked(tmp_path, world, share, changes=[(5.0, "probe", SILENT)])
    (line,) = walked.lines
    assert line["state"] == "peer_dead"
    assert line["message"].startswith("the flow had begun, and its end was not seen here: alpha")
    assert world.started[0].sent == [signal.SIGTERM, signal.SIGCONT]
    assert walked.seconds < 35


def test_a_flow_that_had_begun_is_not_said_to_be_not_run(tmp_path: Path) -> None:
    """Its own `perch serve` has ended: the client may have measured to the end."""
    walked = Walked(tmp_path, World({"start": (0.5, CAME)}), share_of("beta", 2), serve_ends=3)
    (line,) = walked.lines
    assert line["state"] == "done"
    assert line["message"].endswith("not seen here: perch serve on here ended: signal KILL")
    assert walked.error is not None and walked.error.code is Exit.HOST


def test_a_stop_leaves_a_line_of_the_server_that_had_begun(tmp_path: Path) -> None:
    walked = Walked(tmp_path, World({"start": (0.5, CAME)}), share_of("beta", 2), stop=3)
    (line,) = walked.lines
    assert (line["state"], line["message"][-25:]) == ("done", "the agent was told to end")


def test_a_stop_of_a_client_leaves_no_line(tmp_path: Path) -> None:
    world = World(MEETS, scripts=[Script(ENDLESS)])
    walked = Walked(tmp_path, world, share_of("alpha"), stop=3)
    assert walked.lines == []


# ---- flows of one round --------------------------------------------------------------------------

LATE = {**MEETS, "t/alpha/beta/1/1/start": (2.0, CAME)}


def test_clients_of_a_round_start_together_and_share_their_readings(tmp_path: Path) -> None:
    world = World(LATE, scripts=[Script(1), Script(3)])
    walked = Walked(tmp_path, world, share_of("alpha", rails=2))
    begin = ["ask start"] * 2 + ["before"] + ["start cat"] * 2
    assert world.log == begin + ["after"] + ["line", "ask done"] * 2
    assert [line["samples"] for line in walked.lines] == [[1, 2]] * 2
    assert {line["started_monotonic_ns"] for line in walked.lines} == {1002 * 10**9}
    assert sorted(line["id"] for line in walked.lines) == ["t/alpha/beta/0/1", "t/alpha/beta/1/1"]


def test_servers_of_a_round_share_their_readings(tmp_path: Path) -> None:
    world = World(LATE)
    walked = Walked(tmp_path, world, share_of("beta", rails=2))
    asked = ["ask start"] * 2 + ["ask done"] * 2
    assert world.log == ["before", *asked, "after", "line", "line"]
    assert [line["samples"] for line in walked.lines] == [[1, 2]] * 2


def test_each_rail_has_a_port_of_its_own(tmp_path: Path) -> None:
    share = share_of("beta", server=["cat", "{server.ports.iperf3}"], rails=2)
    (flows,) = share.rounds()
    assert [(flow.argv[1], flow.listen_port) for flow in flows] == [("5201", 5201), ("5202", 5202)]


def test_a_flow_that_cannot_run_holds_up_no_other_of_its_round(tmp_path: Path) -> None:
    refused = {"t/alpha/beta/1/1/start": (ENDLESS, CAME), "t/alpha/beta/1/1/refused": (1.0, CAME)}
    world = World({**MEETS, **refused}, scripts=[Script(1)])
    world.meetings["t/alpha/beta/0/1/refused"] = (ENDLESS, CAME)
    share = share_of("alpha", server=["cat"], rails=2)
    walked = Walked(tmp_path, world, share)
    lines = {line["id"]: line for line in walked.lines}
    assert lines["t/alpha/beta/0/1"]["samples"] == [1, 2]
    assert lines["t/alpha/beta/1/1"]["state"] == "not_run"
    assert walked.seconds < 3


def test_a_peer_that_dies_ends_the_round_and_the_next_is_skipped(tmp_path: Path) -> None:
    world = World({"start": (0.1, SILENT)}, probe=SILENT)
    walked = Walked(tmp_path, world, share_of("alpha", flows=2, rails=2))
    assert [line["state"] for line in walked.lines] == ["peer_dead"] * 4
    assert walked.seconds < 17


def test_a_stop_leaves_a_line_of_each_server_that_had_begun(tmp_path: Path) -> None:
    walked = Walked(tmp_path, World({"start": (0.5, CAME)}), share_of("beta", rails=2), stop=3)
    assert [line["state"] for line in walked.lines] == ["done"] * 2


# ---- progress ------------------------------------------------------------------------------------


def test_who_watches_is_told_of_each_flow(tmp_path: Path) -> None:
    walked = Walked(tmp_path, World(MEETS, scripts=[Script()] * 2), share_of("alpha", 2))
    events = [(one["event"], one["index"], one["total"], one["exit"]) for one in walked.told]
    assert events == [
        ("start", 1, 2, None),
        ("end", 1, 2, 0),
        ("start", 2, 2, None),
        ("end", 2, 2, 0),
    ]
    assert [one["remaining_s"] for one in walked.told] == [5, 5, 2, 2]
