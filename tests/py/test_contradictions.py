"""What both ends of a flow, their agents and their hosts say against each other or the plan."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.py.judging import Change, Document, Run, check_of, later, put
from tests.raw_lines import End, walks

MakeRun = Callable[[str], Path]

IPERF3, LATENCY, IPERF = (f"{test}/alpha/beta/0/1" for test in ("iperf3", "tcp-latency", "iperf"))
WRITE, WRITES, SENDS = (
    f"{test}/alpha/beta/0/1" for test in ("write-latency", "write-bandwidth", "send-bandwidth")
)


def of_flow(run: Run, flow: str) -> str:
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    return str(check_of(verdict, f"flow/{flow}").measured)


# ---- what agents say of a flow's ends ------------------------------------------------------------

ENDS: tuple[tuple[str, str, Change, str], ...] = (
    (IPERF3, "server", put("argv", ["iperf3", "-s", "-1", "-B", "127.0.0.9"]), "another command"),
    (IPERF3, "server", put("argv", None), "the server's line is of another command than planned"),
    (LATENCY, "server", put("signal", "KILL"), "server's side ended with exit None, signal KILL"),
    (LATENCY, "server", put("timed_out", True), "the server's side ended with"),
    (LATENCY, "client", put("message", "half of it"), "but the client's line has: half of it"),
)


@pytest.mark.parametrize(("flow", "role", "change", "words"), ENDS)
def test_an_end_that_contradicts_its_own_end_is_no_evidence(
    run_copy: MakeRun, flow: str, role: str, change: Change, words: str
) -> None:
    run = Run(run_copy("loopback"))
    End(run.root, flow, role).edit(change)
    assert words in of_flow(run, flow)


def of_64_bytes(change: Change) -> Change:
    def of_one(line: Document) -> None:
        if line["params"]["size_bytes"] == 64:
            change(line)

    return of_one


@pytest.mark.parametrize(("earlier_s", "overlaps"), [(0.007, False), (0.02, True), (2, True)])
def test_sizes_follow_each_other(run_copy: MakeRun, earlier_s: float, overlaps: bool) -> None:
    """In the recorded run 8 ms lie between two sizes."""
    run = Run(run_copy("loopback"))
    End(run.root, LATENCY).prints(of_64_bytes(later(-earlier_s)))
    if overlaps:
        assert "a size began at 2026-11-21T08:04:1" in of_flow(run, LATENCY)
    else:
        assert run.judge().verdict == "PASS"


# ---- what the server printed ---------------------------------------------------------------------

SERVED = (
    ("loopback", IPERF3, '"bytes":\t5295308800', '"bytes":\t5295308', "5295308 bytes received"),
    ("loopback", IPERF3, r'(\s*"end":)', r'"error": "lost", \1', 'has the error "lost"'),
    ("loopback", IPERF3, r"\}\s*\Z", "", "is not a JSON document"),
    (
        "loopback",
        IPERF,
        "3.63 GBytes  15.6 Gb",
        "363 MBytes  1.56 Gb",
        "received, the client",
    ),
    ("rxe", SENDS, r" 2\.89 ", " 14.45 ", "Gb/s, the client's"),
    ("rxe", WRITES, r" 5\.10 (\s+)0.000082", r" 50.10 \g<1>0.000802", "Gb/s, the client's"),
    ("rxe", WRITE, r" 15383.16  (\s+)17870.26 ", r" 1538.32 \g<1>1787.03 ", "us, the client's"),
    ("rxe", WRITE, "RDMA_Write Lat", "RDMA_Read Lat", "other connections than the client's"),
)


@pytest.mark.parametrize(("name", "flow", "pattern", "replacement", "words"), SERVED)
def test_a_server_that_tells_of_another_measurement_is_not_its_clients(
    run_copy: MakeRun, name: str, flow: str, pattern: str, replacement: str, words: str
) -> None:
    run = Run(run_copy(name))
    end = End(run.root, flow, "server")
    text = re.sub(pattern, replacement, end.read())
    assert text != end.read()
    end.write(text)
    assert words in of_flow(run, flow)


@pytest.mark.parametrize("flow", [IPERF3, IPERF])
def test_both_ends_use_the_planned_port(run_copy: MakeRun, flow: str) -> None:
    run = Run(run_copy("loopback"))
    for role in ("client", "server"):
        end = End(run.root, flow, role)
        end.write(re.sub(r"\b(5201|5001)\b", "5999", end.read()))
    assert "the client's stdout names another port than 5" in of_flow(run, flow)


# ---- what hosts say of themselves ----------------------------------------------------------------


HOSTS: tuple[tuple[str, Change, str], ...] = (
    ("environment", put("collected", None), "lacks the host name or the time"),
    ("environment", put("hostname", None), "lacks the host name or the time"),
    ("environment", put("collected", "2026-10-21T08:04:11Z"), "before the plan"),
    ("environment", put("collected", "2026-11-21T07:59:08Z"), "before its agent began"),
    ("environment", put("collected", "2026-12-21T08:04:11Z"), "after its agent ended"),
    ("environment", put("cpu.cores", None), "lacks the number of processors"),
    ("agent", put("started", "2020-01-01T00:00:00Z"), "of 2020-01-01T00:00:00Z, before the plan"),
    ("agent", put("ended", "2026-11-21T08:04:10.000Z"), "ended before it began"),
)


def rested_at(run: Run, *seconds: str) -> None:
    """Sets when beta's idle readings were made, from the first one on."""
    walk = next(walks(run.root, "beta"))
    for reading, at in zip(walk.idle().values(), seconds, strict=False):
        reading["time_s"] = at
    walk.save()


def test_an_idle_time_of_a_millisecond_is_too_short(run_copy: MakeRun) -> None:
    run = Run(run_copy("rxe"))
    rested_at(run, "1795270100.775091")
    said = str(check_of(run.judge(), "host/beta").measured)
    assert said == "its environment.json has idle counters of 0.001 s, which is too short"


@pytest.mark.parametrize("seconds", [1795290000, 1764547200])
def test_an_idle_time_of_another_time_is_no_evidence(run_copy: MakeRun, seconds: int) -> None:
    run = Run(run_copy("rxe"))
    rested_at(run, str(seconds), str(seconds + 1))
    said = str(check_of(run.judge(), "host/beta").measured)
    assert "idle counters of another time" in said


@pytest.mark.parametrize(("name", "change", "words"), HOSTS)
def test_a_host_of_another_time_is_no_evidence(
    run_copy: MakeRun, name: str, change: Change, words: str
) -> None:
    run = Run(run_copy("loopback"))
    if name == "agent":
        run.agent("beta", change)
    else:
        run.edit(f"raw/beta/{name}.json", change)
    found = check_of(run.judge(), "host/beta")
    assert found.status == "inconclusive"
    assert words in str(found.measured)


def test_a_flow_that_began_before_its_agent_is_no_evidence(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    run.agent("alpha", put("started", "2026-11-21T08:04:20.000Z"))
    assert "but the agent on alpha ran from 2026-11-21T08:04:20.000Z" in of_flow(run, LATENCY)
