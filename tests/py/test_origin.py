"""Flows that were measured between other ends, or at another time than planned."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from perch.model.moments import moment
from perch.soak.moments import dated
from tests.py.judging import Change, Document, Run, check_of, later, put, status
from tests.raw_lines import Walk, ends

MakeRun = Callable[[str], Path]


def swapped(line: Document) -> None:
    line["client"], line["server"] = line["server"], line["client"]


def elsewhere(document: Document) -> None:
    document["start"]["connected"][0]["remote_host"] = "127.0.0.3"


def busy(line: Document) -> None:
    """A processor for 20 s, within a flow of 1.3 s in which this size took 0.2 s."""
    line["cpu"] |= {"server_s": 20, "server_system_s": 20, "server_s_per_gb": None}


ENDS: tuple[tuple[str, str, Change, str], ...] = (
    ("rxe", "verbs-send-latency", swapped, "is host 'alpha', the output says 'beta'"),
    ("rxe", "verbs-send-latency", put("server.host", "gamma"), "the output says 'gamma'"),
    ("loopback", "tcp-bandwidth", put("server.address", "127.0.0.3"), "at 127.0.0.2, the output"),
    ("loopback", "ofi-latency", put("server.address", "127.0.0.3"), "at 127.0.0.2, the output"),
    ("loopback", "ofi-latency", put("client.address", "somewhere"), "the output says somewhere"),
    ("loopback", "ofi-latency", put("client.address", None), "the output names no address"),
    ("rxe", "verbs-send-latency", put("client.address", "somewhere"), "the output says somewhere"),
    ("rxe", "verbs-send-latency", put("client.address", None), "the output names no address"),
    ("loopback", "tcp-bandwidth", swapped, "client alpha at 127.0.0.1"),
    ("loopback", "tcp-bandwidth", put("tool.version", "0.0.9"), "has perch 0.1.0, the output is"),
    ("loopback", "tcp-latency", put("client.device", "eth1"),
     "the output says device eth1 on the client, whose address is on lo"),
    ("loopback", "tcp-latency", busy, "took 20 s of processors, but the flow 0.20"),
    ("loopback", "iperf3", put("start.version", "iperf 3.9"), "the output is of 3.9"),
    ("loopback", "iperf3", elsewhere, "the output says 127.0.0.3"),
    ("loopback", "iperf3", put("start.test_start.reverse", 1), "asks for reverse false"),
    ("loopback", "iperf3", put("start.test_start.target_bitrate", 1000), "asks for paced false"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "test", "change", "words"), ENDS)
def test_an_output_of_other_ends_is_no_evidence(
    run_copy: MakeRun, name: str, test: str, change: Change, words: str
) -> None:
    run = Run(run_copy(name))
    run.flow(test).prints(change)
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    (found,) = [one for one in verdict.checks if one.id.startswith(f"flow/{test}/")]
    assert words in str(found.measured)


@pytest.mark.parametrize(
    ("client", "server", "is_evidence"),
    [
        # a device that measures itself: whether it may is the machine's affair
        ("192.0.2.1", "192.0.2.1", True),
        # a device may have an address of its own, and not that of another host
        ("192.0.2.1", "192.0.2.77", True),
        ("192.0.2.2", "192.0.2.77", False),
        ("192.0.2.77", "192.0.2.1", False),
        # a port of InfiniBand
        ("lid 7", "lid 9", True),
    ],
)
def test_a_device_has_no_address_of_another_host(
    run_copy: MakeRun, client: str, server: str, is_evidence: bool
) -> None:
    run = Run(run_copy("rxe"))
    found = ends(run.root, "verbs-*", "client")
    for end in found:
        end.prints(put("client.address", client), put("server.address", server))
    assert (run.judge().verdict == "PASS") is is_evidence
    assert found


def test_an_iperf_that_connected_elsewhere_is_no_evidence(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    end = run.flow("iperf")
    end.write(end.read().replace("connected with 127.0.0.2", "connected with ::1"))
    assert run.judge().verdict == "INCONCLUSIVE"


TIMES: tuple[tuple[str, str, tuple[Change, ...], str], ...] = (
    ("client", "tcp-latency", (put("started", None),), "does not say when it ran"),
    ("client", "tcp-latency", (put("elapsed_s", 60),), "lie between its start and its end"),
    ("client", "tcp-latency", (put("elapsed_s", 0),), "does not say how long it ran"),
    ("client", "tcp-latency", (put("elapsed_s", 0.001),), "but 1.255 s lie between its start and"),
    ("server", "iperf3", (put("elapsed_s", 0.001),), "lie between its start and its end"),
    (
        "server",
        "tcp-latency",
        (put("ended", "2026-11-21T08:04:10.100Z"),),
        "before it started",
    ),
    (
        "client",
        "iperf3",
        (
            put("started", "2026-10-21T08:04:29.186Z"),
            put("ended", "2026-10-21T08:04:31.205Z"),
        ),
        "before the plan of",
    ),
    (
        "client",
        "iperf3",
        (
            put("started", "2026-11-21T08:05:29.186Z"),
            put("ended", "2026-11-21T08:05:31.205Z"),
        ),
        "the agent on alpha ran from 2026-11-21T08:04:10.509Z to 2026-11-21T08:04:54.593Z",
    ),
)


@pytest.mark.parametrize(("role", "test", "changes", "words"), TIMES)
def test_a_flow_of_another_time_is_no_evidence(
    run_copy: MakeRun, role: str, test: str, changes: tuple[Change, ...], words: str
) -> None:
    run = Run(run_copy("loopback"))
    run.flow(test, role).edit(*changes)
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    (found,) = [one for one in verdict.checks if one.id.startswith(f"flow/{test}/")]
    assert words in str(found.measured)


READ = "before its flow, and at"


def ends_of(root: Path) -> list[Document]:
    return Walk(root / "raw/alpha").ends


def words_of(run: Run) -> str:
    return " ".join(str(one.measured) for one in run.judge().checks)


def test_a_clock_that_is_set_back_by_less_than_a_second_is_no_fault(run_copy: MakeRun) -> None:
    """Within a flow of 0.67 s, so that it ends before it began."""
    root = run_copy("loopback")
    walk = Walk(root / "raw/alpha")
    cut = (moment(walk.ends[3]["started"]) or 0) + 0.0005
    for end in walk.ends:
        for key in ("started", "ended"):
            if (moment(end[key]) or 0) >= cut:
                end[key] = dated((moment(end[key]) or 0) - 0.9)
    walk.agent["ended"] = dated((moment(walk.agent["ended"]) or 0) - 0.9)
    for sample in walk.samples:
        if float(sample["time_s"]) >= cut:
            sample["time_s"] = f"{float(sample['time_s']) - 0.9:.6f}"
    walk.save()
    assert Run(root).judge().verdict == "PASS"


def test_readings_in_a_wrong_order_are_no_evidence(run_copy: MakeRun) -> None:
    """However close to each other: their numbers tell."""
    root = run_copy("rxe")
    file = root / "raw/alpha/samples.jsonl"
    (first, *_), lines = ends_of(root), file.read_text().splitlines()
    begun = moment(first["started"]) or 0
    lines = [re.sub(r'"time_s":"[^"]*"', f'"time_s":"{begun:.6f}"', line) for line in lines]
    file.write_text("\n".join(lines) + "\n")
    flows = root / "raw/alpha/flows.jsonl"
    swapped = re.sub(r'"samples":\[(\d+),(\d+)\]', r'"samples":[\2,\1]', flows.read_text())
    assert (READ in words_of(Run(root)), flows.write_text(swapped) > 0) == (False, True)
    assert READ in words_of(Run(root))


STARTS: tuple[tuple[str, Change, str], ...] = (
    ("tcp-latency", put("started", None), "does not say when it began"),
    ("tcp-latency", put("started", "at noon"), "does not say when it began"),
    ("tcp-latency", later(-200), "its process ran from 2026-11-21T08:04:11.928Z to"),
    ("tcp-latency", later(20), "its process ran from 2026-11-21T08:04:11.928Z to"),
    ("iperf3", put("start.timestamp.timesecs", 1795248269 - 5), "its process ran from"),
    # its start lies in its process, and its end does not
    ("iperf3", put("start.timestamp.timesecs", 1795248269 + 2), "its process ran from"),
    ("tcp-bandwidth", later(20), "its process ran from"),
)


@pytest.mark.parametrize(("test", "change", "words"), STARTS)
def test_a_tool_that_measured_outside_of_its_process_is_no_evidence(
    run_copy: MakeRun, test: str, change: Change, words: str
) -> None:
    """Both times are of one host's clock."""
    run = Run(run_copy("loopback"))
    run.flow(test).prints(change)
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    (found,) = [one for one in verdict.checks if one.id.startswith(f"flow/{test}/")]
    assert words in str(found.measured)
    assert status(verdict, "clock/ends") == "pass"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ((put("elapsed_s", 0.5),), "but 7.663 s lie between its start and its last reading"),
        (
            (put("counters.before.time_s", "1795270600.0"),),
            "the client's line read its counters at",
        ),
        ((put("counters.after.time_s", "1795270645.0"),), "client's line read its counters at"),
        ((put("counters.before.netdev", {}),), "read other devices before its flow than after it"),
        ((put("counters.after.rdma", {}),), "read other devices before its flow than after it"),
        ((put("counters.after.time_s", "soon"),), "does not say when it read its counters"),
    ],
)
def test_counters_are_read_while_their_flow_runs(
    run_copy: MakeRun, changes: tuple[Change, ...], words: str
) -> None:
    run = Run(run_copy("rxe"))
    run.flow("verbs-send-latency").edit(*changes)
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    (found,) = [one for one in verdict.checks if one.id.startswith("flow/verbs-send-latency/")]
    assert words in str(found.measured)


@pytest.mark.parametrize(("late", "is_evidence"), [(1.9, True), (2.1, False)])
def test_counters_may_be_read_for_two_seconds_after_their_flow(
    run_copy: MakeRun, late: float, is_evidence: bool
) -> None:
    run = Run(run_copy("rxe"))
    client = run.flow("verbs-send-latency")
    begun, over = (moment(client.document()[key]) for key in ("started", "ended"))
    assert begun and over
    read = round(over + late, 3)
    client.edit(put("counters.after.time_s", str(read)), put("elapsed_s", read - begun - 1))
    found = [one for one in run.judge().checks if one.id.startswith("flow/verbs-send-latency/")]
    assert ("read its counters at" in str([one.measured for one in found])) != is_evidence


@pytest.mark.parametrize("created", ["", "yesterday", "2026-11-21 08:04:06"])
def test_a_plan_that_does_not_say_when_it_was_made_is_refused(
    run_copy: MakeRun, created: str
) -> None:
    run = Run(run_copy("loopback"))
    run.edit("plan.json", put("created", created))
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert f"created is '{created}', not a time" in str(check_of(verdict, "plan").measured)


@pytest.mark.parametrize(
    ("test", "change", "words"),
    [
        ("tcp-bandwidth", put("server.address", "127.0.0.3"), "addresses of both hosts"),
        ("tcp-latency", later(-200), "clocks of both hosts"),
        ("tcp-latency", put("tool.version", "0.0.9"), "one version"),
    ],
)
def test_what_to_do_fits_what_is_wrong(
    run_copy: MakeRun, test: str, change: Change, words: str
) -> None:
    run = Run(run_copy("loopback"))
    run.flow(test).prints(change)
    (found,) = [one for one in run.judge().checks if one.id.startswith(f"flow/{test}/")]
    assert words in str(found.remedy)
    assert "stderr" not in str(found.remedy)


@pytest.mark.parametrize(
    ("created", "is_evidence"),
    [("2026-11-21T08:09:00Z", True), ("2026-11-21T08:09:30Z", False)],
)
def test_clocks_of_a_host_and_the_controller_may_be_minutes_apart(
    run_copy: MakeRun, created: str, is_evidence: bool
) -> None:
    """The first flow began at 08:04:11.9, its agent at 08:04:10.5; 300 s are granted."""
    run = Run(run_copy("loopback"))
    run.edit("plan.json", put("created", created))
    verdict = run.judge()
    assert (verdict.verdict == "PASS") is is_evidence
    if not is_evidence:
        flow = check_of(verdict, "flow/tcp-latency/alpha/beta/0/1")
        assert "line is of 2026-11-21T08:04:11.928Z, before the plan" in str(flow.measured)


def test_gids_of_swapped_ends_are_compared_as_ipv4_addresses(run_copy: MakeRun) -> None:
    """perftest names its ends by their GIDs, of which the last four bytes are an IPv4 address."""
    run = Run(run_copy("rxe"))
    end = run.flow("write-latency")
    text = end.read()
    local, remote = re.findall(r"GID: ([0-9:]+)", text)
    end.write(text.replace(local, "own").replace(remote, local).replace("own", remote))
    verdict = run.judge()
    (found,) = [one for one in verdict.checks if one.id.startswith("flow/write-latency/")]
    assert "which is beta's" in str(found.measured)


@pytest.mark.parametrize("ended_ns", [10**350, -1, 2**63 - 1])
def test_an_impossible_duration_costs_its_flow_and_no_more(
    run_copy: MakeRun, ended_ns: int
) -> None:
    run = Run(run_copy("loopback"))
    run.flow("tcp-latency").edit(put("ended_monotonic_ns", ended_ns))
    verdict = run.judge()
    assert (verdict.verdict, verdict.coverage.measured) == ("INCONCLUSIVE", 25)


def test_clocks_that_differ_by_seconds_are_borne(run_copy: MakeRun) -> None:
    """All times of beta, 200 s behind: its clock is worth a warning, and no flow less."""
    run = Run(run_copy("loopback"))
    path = run.root / "raw/beta/flows.jsonl"
    path.write_text(re.sub(r'("(?:started|ended)":"[^"]*)T08:04:', r"\1T08:01:", path.read_text()))
    verdict = run.judge()
    assert check_of(verdict, "clock/ends").status == "advisory"
    assert verdict.verdict == "PASS"


@pytest.mark.parametrize(
    "change",
    [
        put("flows_done", 9),
        put("flows_done", None),
        put("message", "the disk is full"),
        put("started", None),
        put("ended", "0000-01-01T00:00:00Z"),
        put("host", "beta"),
    ],
)
def test_an_agent_that_contradicts_the_plan_is_no_evidence(
    run_copy: MakeRun, change: Change
) -> None:
    run = Run(run_copy("loopback"))
    run.agent("alpha", change)
    assert check_of(run.judge(), "host/alpha").status == "inconclusive"
