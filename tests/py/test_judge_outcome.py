"""How a flow ended: what its two ends left -> a cause with Perch's exit code."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perch.judge.outcome import Cause, belongs, cause, last_words, server_cause, with_server
from perch.model.plan import Flow
from perch.model.raw import Agent, End
from perch.tools import TOOLS
from perch.tools.tool import shell_exit_code

DONE: dict[str, Any] = {"state": "done", "exit": 0}


def flow(tool: str = "perch") -> Flow:
    return Flow(
        id="t/a/b/0/1", test="t", tool=tool, kind="latency", client="a", server="b",
        scope="software", deadline_s=9, client_argv=["perch", "lat", "b"],
    )  # fmt: skip


def end(**said: Any) -> End:
    return msgspec.convert(said, End)


def code_of(tool: str) -> Any:
    return TOOLS[tool].exit_code_of if tool in TOOLS else shell_exit_code


def test_a_client_that_exited_0_has_no_cause() -> None:
    assert cause(flow(), end(**DONE), None, None, b"", code_of("perch")) is None


@pytest.mark.parametrize(
    ("tool", "words", "code"),
    [
        (
            "perftest",
            b"Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81",
            4,
        ),
        ("perftest", b"Failed status 10: wr_id 0 syndrom 0x88\nscnt=128, ccnt=1", 6),
        ("cxi", b"remote access error", 6),
        ("perch", b"perch: mlx5_0 port 1 to beta: transport retry counter exceeded (12)", 6),
    ],
)
def test_a_completion_that_failed_is_no_exit_0(tool: str, words: bytes, code: int) -> None:
    found = cause(flow(tool), end(**DONE), None, None, b"a warning\n" + words, code_of(tool))
    assert found is not None
    assert (found.state, found.code) == ("error", code)
    assert found.message.startswith("it exited 0, but said: ")
    assert words.split(b"\n")[0].decode() in found.message


def test_a_completion_that_failed_at_the_server_is_no_exit_0() -> None:
    words = b"Completion with error at server"
    assert server_cause(flow("perftest"), end(**DONE), b"") is None
    found = server_cause(flow("perftest"), end(**DONE), words)
    assert found is not None
    assert found.message == "perftest's server said: Completion with error at server"


def test_what_tools_warn_of_is_no_failed_completion() -> None:
    words = b"Device not recognized to implement inline feature. Disabling it\nr^2: 0.47 < 0.9"
    assert cause(flow("perftest"), end(**DONE), None, None, words, code_of("perftest")) is None


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (None, "host a returned no raw data"),
        ("running", "the agent on a was still running, or was killed: its flows.jsonl has no end"),
        ("done", "the agent on a left no line of this flow"),
    ],
)
def test_the_agents_own_report_tells_why_there_is_no_client(
    agent: str | None, message: str
) -> None:
    said = None if agent is None else Agent(state=agent)
    found = cause(flow(), None, None, said, b"", shell_exit_code)
    assert found is not None
    assert (found.state, found.code, found.message) == ("not_measured", None, message)


def test_a_meeting_that_failed_tells_the_servers_side() -> None:
    client = end(state="meeting_failed", message="nobody came")
    server = end(state="not_run", exit=1, host="b", message="port in use")
    found = cause(flow("iperf3"), client, server, None, b"", shell_exit_code)
    assert found is not None
    assert (found.state, found.code) == ("not_measured", 4)
    assert found.message == (
        "the two ends did not meet: nobody came; server on b: exit 1: port in use"
    )


def test_a_flow_whose_server_could_not_start_tells_the_servers_reason() -> None:
    client = end(state="not_run", message="the server's end on b could not start")
    server = end(state="not_run", message="ib_send_lat is not installed on b")
    found = cause(flow("perftest"), client, server, Agent(state="done"), b"", shell_exit_code)
    assert found is not None
    assert (found.state, found.code) == ("not_measured", None)
    assert found.message.endswith("could not start: ib_send_lat is not installed on b")


@pytest.mark.parametrize(
    ("tool", "said", "code", "message"),
    [
        ("perch", {"exit": 124, "signal": "TERM", "timed_out": True}, 4,
         "stopped at its deadline of 9 s: boom"),
        ("perch", {"exit": 137, "signal": "KILL"}, 6, "perch was ended by signal KILL: boom"),
        ("perch", {"exit": 5}, 5, "exit 5: boom"),
        ("iperf", {"exit": 127}, 3, "exit 127: boom"),
        ("iperf3", {"exit": 1}, 6, "exit 1: boom"),
        ("perch", {"exit": None}, 6, "the client's line has no exit code"),
    ],
)  # fmt: skip
def test_an_end_that_is_not_0_has_perchs_code(
    tool: str, said: dict[str, Any], code: int, message: str
) -> None:
    found = cause(flow(tool), end(state="done", **said), None, None, b"boom\n", code_of(tool))
    assert found is not None
    assert (found.state, found.code, found.message) == ("error", code, message)


def test_an_unknown_state_is_an_error() -> None:
    found = cause(flow(), end(state="dreaming"), None, None, b"", shell_exit_code)
    assert found is not None
    assert (found.state, found.code) == ("error", 6)


@pytest.mark.parametrize(
    "change",
    [
        {"run": None}, {"run": "s"}, {"flow": "u/a/b/0/1"}, {"role": "server"}, {"host": "b"},
        {"argv": ["perch", "lat", "c"]}, {"argv": None},
    ],
)  # fmt: skip
def test_a_raw_file_of_another_measurement_is_refused(change: dict[str, Any]) -> None:
    good = {"run": "r", "flow": "t/a/b/0/1", "role": "client", "host": "a", "state": "done"}
    argv = ["/x/perch", "lat", "b", "--port", "1"]
    assert belongs("r", flow(), end(**good, argv=argv), None) is None
    found = belongs("r", flow(), end(**{**good, "argv": argv, **change}), None)
    assert found is not None
    assert (found.state, found.code) == ("error", 6)


def test_a_port_in_the_middle_of_a_command_is_not_compared() -> None:
    good = {"run": "r", "flow": "t/a/b/0/1", "role": "client", "host": "a", "state": "done"}
    argv = ["perch", "-p", "7", "lat", "b"]
    assert belongs("r", flow(), end(**good, argv=argv), None) is None


@pytest.mark.parametrize(
    ("tool", "said", "counts"),
    [
        ("perch", {"state": "done", "exit": None}, True),
        ("iperf3", {"state": "done", "exit": 0}, True),
        ("iperf", {"state": "done", "exit": 143, "signal": "TERM"}, True),
        ("iperf", {"state": "done", "exit": 143, "signal": 15}, True),
        ("perch", None, False),
        ("perch", {"state": "meeting_failed"}, False),
        ("perch", {"state": "done", "exit": 4}, False),
        ("iperf3", {"state": "done", "exit": 1}, False),
        ("iperf3", {"state": "done", "exit": 137, "signal": "KILL"}, False),
        ("iperf3", {"state": "done", "exit": 143, "signal": "TERM", "timed_out": True}, False),
    ],
)
def test_a_result_needs_the_servers_word(
    tool: str, said: dict[str, Any] | None, counts: bool
) -> None:
    found = server_cause(flow(tool), None if said is None else end(**said))
    assert (found is None) == counts
    assert found is None or found.code == 6


@pytest.mark.parametrize(
    ("tool", "said", "stderr", "words"),
    [
        ("perftest", {"exit": 1}, b"Unable to create QP.\n",
         "perftest's server ended with exit 1, signal None: Unable to create QP."),
        ("perch", {"exit": 5, "message": "perch serve on b ended with exit code 5: corrupt"}, b"",
         "the server's side ended with exit 5, signal None: perch serve on b ended with exit code "
         "5: corrupt"),
    ],
)  # fmt: skip
def test_a_server_that_fails_is_quoted(
    tool: str, said: dict[str, Any], stderr: bytes, words: str
) -> None:
    found = server_cause(flow(tool), end(state="done", **said), stderr)
    assert found is not None and found.message == words


@pytest.mark.parametrize(
    ("said", "stderr", "words"),
    [
        ({"exit": 1}, b"Unable to create QP.\n",
         "exit 4: lost; perftest's server ended with exit 1, signal None: Unable to create QP."),
        ({"exit": 143, "signal": "TERM"}, b"Failed to modify QP to RTR\n",
         "exit 4: lost; server: Failed to modify QP to RTR"),
        ({"exit": 0}, b"", "exit 4: lost"),
    ],
)  # fmt: skip
def test_a_client_that_fails_is_explained_by_its_server(
    said: dict[str, Any], stderr: bytes, words: str
) -> None:
    why = Cause("error", 4, "exit 4: lost")
    found = with_server(why, flow("perftest"), end(state="done", **said), stderr)
    assert (found.code, found.message) == (4, words)


def test_last_words_are_two_lines_of_bounded_length() -> None:
    assert last_words(b"one\n\ntwo\n  \nthree\n") == "two; three"
    assert last_words(b"\xff\n") == "\N{REPLACEMENT CHARACTER}"
    assert last_words(b"x" * 10**6) == "x" * 400 + "..."
