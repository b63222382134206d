"""What the tools left: an output that is cut off, impossible or another's is never a result."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.py.conftest import FIXTURES
from tests.py.judging import Change, Run, check_of, missing, put, status, times

TOOLS = FIXTURES / "tools"


@pytest.fixture
def run(run_copy: Callable[[str], Path]) -> Run:
    return Run(run_copy("loopback"))


def flow_status(run: Run, test: str) -> str | None:
    return status(run.judge(), f"flow/{test}/alpha/beta/0/1")


# ---- outputs that are cut, empty or of something else --------------------------------------------


def test_half_a_line_of_the_engine_spoils_its_own_size_only(run: Run) -> None:
    end = run.flow("tcp-latency")
    end.write(end.read()[:-100])
    assert run.judge().verdict == "INCONCLUSIVE"
    statuses = [one["status"] for one in run.records() if one["flow"].startswith("tcp-latency/")]
    assert statuses[:4] == ["ok", "ok", "ok", "error"]


def test_an_empty_output_with_exit_0_is_inconclusive_for_every_tool(run: Run) -> None:
    for test in ("tcp-latency", "iperf3", "iperf"):
        run.flow(test).write("")
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert len(verdict.coverage.missing) == 6


def test_iperf3s_document_cut_in_half_is_inconclusive(run: Run) -> None:
    end = run.flow("iperf3")
    end.write(end.read()[:2000])
    assert flow_status(run, "iperf3") == "inconclusive"


@pytest.mark.parametrize("test", ["iperf3", "iperf"])
def test_a_tool_that_was_refused_and_exits_0_is_inconclusive(run: Run, test: str) -> None:
    text = "iperf3_refused.json" if test == "iperf3" else "iperf_refused.txt"
    run.flow(test).write((TOOLS / text).read_text())
    if test == "iperf":
        run.flow(test).write((TOOLS / "iperf_refused.err").read_text(), "stderr")
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert verdict.coverage.missing[0].code == 4


def test_iperf3_whose_server_was_killed_in_the_middle_fails(run: Run) -> None:
    run.flow("iperf3").write((TOOLS / "iperf3_killed.json").read_text())
    assert flow_status(run, "iperf3") == "fail"


def test_bytes_that_are_no_text_do_not_disturb_the_judging(run: Run) -> None:
    for name in ("stderr", "stdout"):
        run.flow("tcp-latency").write(bytes(range(256)).decode("latin-1") * 12, name)
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert len(run.records()) == 29


def test_an_output_that_was_cut_is_an_error_that_names_it(run: Run) -> None:
    run.flow("tcp-latency").edit(put("stdout_bytes", 2**20 + 1))
    verdict = run.judge()
    assert missing(verdict) == {"tcp-latency/alpha/beta/0/1"}
    assert verdict.coverage.missing[0].message == (
        "client's stdout has 1048577 bytes, of which 1 MiB were kept"
    )


def test_a_standard_error_that_lacks_what_was_kept_is_an_error(run: Run) -> None:
    kept = put("stderr_bytes", 10**6), put("stderr", "perch: fine\n" * 5462)
    run.flow("tcp-latency").edit(*kept)
    assert run.judge().verdict == "PASS"
    run.flow("tcp-latency").edit(kept[0], put("stderr", "perch: fine\n" * 5461))
    (first, *_) = run.judge().coverage.missing
    assert first.message == "client's stderr has 1000000 bytes, of which only 65532 are there"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([put("message", "its end was not seen")], "server: its end was not seen"),
        ([put("stderr", "WARNING: odd\n")], "server: WARNING: odd"),
        ([put("stderr", "WARNING: odd\n"), put("signal", "TERM"), put("exit", 143)], None),
    ],
)
def test_what_a_server_complained_of_is_a_warning(
    run: Run, changes: list[Change], said: str | None
) -> None:
    run.flow("iperf", "server").edit(*changes)
    verdict = run.judge()
    found = [str(one.measured) for one in verdict.checks if one.id == "said"]
    assert verdict.verdict == "PASS"
    assert found == ([f"1 flow, such as iperf/alpha/beta/0/1: {said}"] if said else [])


def test_an_output_of_another_backend_is_inconclusive(run: Run) -> None:
    run.flow("tcp-latency").write(run.flow("ofi-latency").read())
    assert flow_status(run, "tcp-latency") == "inconclusive"


def test_garbage_behind_the_last_line_is_inconclusive(run: Run) -> None:
    end = run.flow("iperf")
    end.write(f"{end.read()}oops\n")
    assert flow_status(run, "iperf") == "inconclusive"


# ---- how the two ends ended ----------------------------------------------------------------------


def test_the_record_of_a_failed_flow_has_its_servers_words(run: Run) -> None:
    run.flow("iperf3").edit(put("exit", 1))
    server = run.flow("iperf3", "server")
    server.edit(put("exit", 3))
    server.write("no\x1b[31m memory\n", "stderr")
    run.judge()
    (record,) = (one for one in run.records() if one["test"] == "iperf3")
    assert record["error"]["message"].endswith(
        "; iperf3's server ended with exit 3, signal None: no\\x1b[31m memory"
    )


def test_corrupted_payload_fails_by_the_exit_code_alone(run: Run) -> None:
    run.flow("tcp-latency").edit(put("exit", 5))
    assert run.judge().verdict == "FAIL"


def test_corrupted_payload_fails_by_the_count_of_bytes(run: Run) -> None:
    run.flow("tcp-verify").prints(put("integrity.bad_bytes", 1))
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, "integrity")) == ("FAIL", "fail")


def test_a_peer_lost_after_traffic_fails_one_lost_before_it_is_inconclusive(run: Run) -> None:
    run.flow("tcp-latency").edit(put("exit", 4))
    end = run.flow("tcp-latency")
    end.write("".join(end.read().splitlines(keepends=True)[:2]))
    assert run.judge().verdict == "FAIL"
    end.write("")
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert len(verdict.coverage.missing) == 4


def test_a_limit_on_the_command_line_that_was_missed_fails_and_its_figures_stay(run: Run) -> None:
    run.flow("tcp-latency").edit(put("exit", 1))
    verdict = run.judge()
    assert (verdict.verdict, verdict.coverage.missing) == ("FAIL", [])


@pytest.mark.parametrize(
    "changes",
    [
        [put("exit", 2)],
        [put("exit", 3)],
        [put("exit", 6)],
        [put("exit", 137), put("signal", "KILL")],
        [put("state", "not_run"), put("exit", None)],
        [put("state", "peer_dead"), put("exit", None)],
        [put("state", "meeting_failed"), put("exit", None)],
    ],
)
def test_what_could_not_be_measured_is_inconclusive(run: Run, changes: list[Change]) -> None:
    run.flow("tcp-latency").edit(*changes)
    assert run.judge().verdict == "INCONCLUSIVE"


def test_a_damaged_client_is_inconclusive(run: Run) -> None:
    path = run.root / "raw/alpha/flows.jsonl"
    path.write_text(path.read_text().replace('"stdout":"', '"stdout":', 1))
    said = run.judge().coverage.missing[0].message
    assert said == "the agent on alpha left no line of this flow"


@pytest.mark.parametrize(
    ("role", "change"),
    [
        ("client", put("argv.1", "bw")),
        ("client", lambda end: end["argv"].extend(["--iterations", "1"])),
    ],
)
def test_a_raw_file_of_another_measurement_is_no_evidence(
    run: Run, role: str, change: Change
) -> None:
    run.flow("tcp-latency", role).edit(change)
    verdict = run.judge()
    assert status(verdict, "flow/tcp-latency/alpha/beta/0/1") == "inconclusive"
    first = verdict.coverage.missing[0]
    assert first.code == 6
    assert str(first.message).startswith("raw file belongs to another measurement")


@pytest.mark.parametrize(
    "changes",
    [
        [put("state", "meeting_failed")],
        [put("exit", 1)],
        [put("exit", 137), put("signal", "KILL")],
    ],
)
def test_a_server_with_a_bad_end_leaves_no_result(run: Run, changes: list[Change]) -> None:
    run.flow("iperf3", "server").edit(*changes)
    assert flow_status(run, "iperf3") == "inconclusive"


def test_a_server_that_the_agent_ended_leaves_a_result(run: Run) -> None:
    run.flow("iperf3", "server").edit(put("exit", 143), put("signal", "TERM"))
    assert run.judge().verdict == "PASS"


def test_a_server_without_a_word_leaves_no_result(run: Run) -> None:
    for test in ("iperf3", "tcp-latency"):
        run.flow(test, "server").remove()
    assert len(run.judge().coverage.missing) == 5


# ---- figures that cannot be ----------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0", "-1", "nan", "1e999", "null"])
def test_zero_negative_nan_and_infinite_figures_are_no_results(run: Run, value: str) -> None:
    end = run.flow("tcp-bandwidth")
    text = end.read()
    start = text.index('"gbit_s":') + len('"gbit_s":')
    end.write(text[:start] + value + text[text.index(",", start) :])
    assert flow_status(run, "tcp-bandwidth") == "inconclusive"


@pytest.mark.parametrize(
    ("test", "changes"),
    [
        ("ofi-bandwidth-event", [put("backend", None)]),
        ("ofi-bandwidth-event", [put("provider", "shm")]),
        ("ofi-bandwidth-event", [put("op", "write")]),
        ("ofi-bandwidth-event", [put("kind", None)]),
        ("ofi-bandwidth-event", [put("params.completion", "busy")]),
        ("ofi-bandwidth-event", [put("params.verify", True)]),
        ("ofi-bandwidth-event", [put("params.bidirectional", True)]),
        ("ofi-bandwidth-event", [put("params.duration_s", 3)]),
        ("ofi-bandwidth-event", [put("definition", "initiator_completion")]),
        ("iperf3", [put("start.test_start.num_streams", 2)]),
        ("tcp-bandwidth-event", [put("status", "fine")]),
        ("tcp-bandwidth-event", [put("error", {"code": 6, "message": "oops"})]),
        ("tcp-bandwidth-event", [times(1.1, "bandwidth.gbit_s")]),
        ("tcp-bandwidth-event", [times(1e5, "bandwidth.gbit_s", "bandwidth.bytes")]),
        ("tcp-bandwidth-event", [times(10, "bandwidth.gbit_s", "bandwidth.bytes")]),
        ("tcp-bandwidth-event", [put("elapsed_s", 0.001)]),
        ("tcp-bandwidth-event", [put("params.rate", {"overloaded": True})]),
        ("tcp-verify", [put("integrity.checked_bytes", 0)]),
        ("tcp-verify", [put("integrity", None)]),
        ("tcp-latency", [put("latency_us.count", 3)]),
        ("tcp-latency", [times(2, "latency_us.count")]),
        ("tcp-latency", [put("latency_us.mean", 1)]),
    ],
)
def test_an_output_that_was_not_asked_for_or_cannot_be_is_inconclusive(
    run: Run, test: str, changes: list[Change]
) -> None:
    run.flow(test).prints(*changes)
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, f"flow/{test}/alpha/beta/0/1") == "inconclusive"
    assert missing(verdict) == {f"{test}/alpha/beta/0/1"}


def test_a_bandwidth_above_what_the_link_can_carry_fails(run: Run) -> None:
    link = {"rate_gbit_s": 1, "mtu_bytes": 1500, "layer": "ethernet", "hop_class": None}
    run.flow("tcp-bandwidth").prints(put("link", link))
    verdict = run.judge()
    assert (verdict.verdict, check_of(verdict, "ceiling").status) == ("FAIL", "fail")


@pytest.mark.parametrize(
    ("text", "gbit_s", "verdict"),
    [("iperf_mbytes.txt", 25.3, "PASS"), ("iperf_slow.txt", 0.05, "FAIL")],
)
def test_iperfs_units_are_read_from_each_line(
    run: Run, text: str, gbit_s: float, verdict: str
) -> None:
    output = (TOOLS / text).read_text()
    # at the time and with the ports of the run's own, under a server that has no total: else it
    # would be no output of this run
    served = run.flow("iperf", "server")
    served.write(re.sub(r"\[  1\] 0.*\n", "", served.read()))
    output = re.sub(r"2026-11-21 07:29:\d\d", "2026-11-21 08:04:35", output)
    run.flow("iperf").write(
        re.sub(
            "port [0-9]+ connected with 127.0.0.2 port 15004",
            "port 56595 connected with 127.0.0.2 port 5001",
            output,
        )
    )
    assert run.judge().verdict == verdict
    record = next(one for one in run.records() if one["test"] == "iperf")
    assert record["bandwidth"]["gbit_s"] == pytest.approx(gbit_s, rel=0.02)
