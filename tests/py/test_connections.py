"""The connections that both ends of a tool name: of every stream, and of the server's output."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.model.verdict import Verdict
from perch.tools import iperf, iperf3, perftest
from tests.py.conftest import FIXTURES
from tests.py.judging import Change, Document, Run, put

MakeRun = Callable[[str], Path]


def measured_of(verdict: Verdict, test: str) -> str:
    (found,) = [one for one in verdict.checks if one.id.startswith(f"flow/{test}/")]
    assert verdict.verdict == "INCONCLUSIVE"
    return str(found.measured)


# ---- every stream --------------------------------------------------------------------------------


def second_elsewhere(document: Document) -> None:
    document["start"]["connected"][1]["remote_host"] = "127.0.0.3"


def unconnected(document: Document) -> None:
    document["start"]["connected"] = []


def of_one_stream(document: Document) -> None:
    del document["start"]["connected"][1:]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (second_elsewhere, "its streams have several ends"),
        (of_one_stream, "names 1 connections of 4"),
        (unconnected, "the output names no address"),
    ],
)
def test_each_stream_of_iperf3_has_the_planned_ends(
    run_copy: MakeRun, change: Change, words: str
) -> None:
    run = Run(run_copy("loopback"))
    run.flow("iperf3-streams").prints(change)
    assert words in measured_of(run.judge(), "iperf3-streams")


@pytest.mark.parametrize(
    ("pattern", "replacement", "words"),
    [
        (r"(\[  2\] local .* connected with) 127.0.0.2", r"\1 127.0.0.3", "have several ends"),
        (r"(\[  2\] local) 127.0.0.1", r"\1 127.0.0.3", "have several ends"),
        (r"\[  2\] local .*\n", "", "names 1 connections of 2"),
        (r"\[  .\] local .*\n", "", "the output names no address"),
    ],
)
def test_each_stream_of_iperf_has_the_planned_ends(
    run_copy: MakeRun, pattern: str, replacement: str, words: str
) -> None:
    run = Run(run_copy("loopback"))
    end = run.flow("iperf-streams")
    text = re.sub(pattern, replacement, end.read())
    assert text != end.read()
    end.write(text)
    assert words in measured_of(run.judge(), "iperf-streams")


# ---- invalid addresses ---------------------------------------------------------------------------


@pytest.mark.parametrize("address", [None, "", "somewhere", "0x13"])
@pytest.mark.parametrize("role", ["client", "server"])
def test_sockets_name_both_addresses(run_copy: MakeRun, role: str, address: str | None) -> None:
    run = Run(run_copy("loopback"))
    run.flow("tcp-latency").prints(put(f"{role}.address", address))
    host = {"client": "alpha", "server": "beta"}[role]
    words = f"the output says {address}" if address else "the output names no address"
    assert f"the plan has {role} {host} at" in (said := measured_of(run.judge(), "tcp-latency"))
    assert words in said


def test_the_engine_names_both_hosts(run_copy: MakeRun) -> None:
    run = Run(run_copy("rxe"))
    run.flow("verbs-send-latency").prints(put("server.host", None))
    assert "the output names no host" in measured_of(run.judge(), "verbs-send-latency")


# ---- what the server printed ---------------------------------------------------------------------

SERVED = (
    ("loopback", "iperf", r"port 56595", "port 56596"),
    ("loopback", "iperf-streams", r"port 60357", "port 60358"),
    ("loopback", "iperf3", r'"remote_port":\t54775', '"remote_port":\t54776'),
    ("perftest", "perftest-send-latency", r"PSN 0x733542", "PSN 0x733543"),
    ("perftest", "perftest-cm", r"QPN 0x0028", "QPN 0x0029"),
)


@pytest.mark.parametrize(("name", "test", "pattern", "replacement"), SERVED)
def test_a_server_of_other_connections_is_not_its_clients(
    run_copy: MakeRun, name: str, test: str, pattern: str, replacement: str
) -> None:
    run = Run(run_copy(name))
    end = run.flow(test, "server")
    text = re.sub(pattern, replacement, end.read())
    assert text != end.read()
    end.write(text)
    said = measured_of(run.judge(), test)
    assert "the server's stdout names other connections than the client's" in said


@pytest.mark.parametrize(
    ("name", "test"), [("loopback", "iperf3"), ("perftest", "perftest-send-latency")]
)
def test_a_server_that_ended_by_itself_names_its_connections(
    run_copy: MakeRun, name: str, test: str
) -> None:
    run = Run(run_copy(name))
    run.flow(test, "server").write("")
    assert "the server's stdout names no connection" in measured_of(run.judge(), test)


def test_a_server_that_was_terminated_may_have_lost_what_it_had_to_say(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    run.flow("iperf", "server").edit(put("stdout", ""), put("exit", 143), put("signal", "TERM"))
    assert run.judge().verdict == "PASS"


def outputs(name: str, test: str) -> tuple[bytes, bytes]:
    run = Run(FIXTURES / name / "run")
    client, server = (run.flow(test, role).read().encode() for role in ("client", "server"))
    return client, server


@pytest.mark.parametrize(
    ("connections", "name", "test", "count"),
    [
        (iperf.connections, "loopback", "iperf", 1),
        (iperf.connections, "loopback", "iperf-streams", 2),
        (iperf3.connections, "loopback", "iperf3", 1),
        (iperf3.connections, "loopback", "iperf3-streams", 4),
        (perftest.connections, "perftest", "perftest-send-latency", 1),
        (perftest.connections, "rxe", "ud-send-latency", 1),
    ],
)
def test_both_ends_name_the_same_connections(
    connections: Callable[[bytes], frozenset[tuple[bytes, bytes]]], name: str, test: str, count: int
) -> None:
    client, server = (connections(output) for output in outputs(name, test))
    assert len(client) == count
    assert client == {(peer, own) for own, peer in server}
    assert connections(b"") == frozenset()
