"""Figures of one record that contradict each other, planted one at a time into good runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from perch.judge import columns, laws
from perch.model.record import Record
from tests.py.judging import Change, Document, Run, missing, put, times


@pytest.fixture
def run(run_copy: Callable[[str], Path], request: pytest.FixtureRequest) -> Run:
    return Run(run_copy(request.param))


def latency(**figures: float | None) -> Change:
    def change(line: Document) -> None:
        line["latency_us"] |= figures

    return change


def halved_median(line: Document) -> None:
    figures = line["latency_us"]
    figures |= {name: figures[name] / 2 for name in ("min", "p50")}


def flattened_tail(line: Document) -> None:
    figures = line["latency_us"]
    figures |= {"p99": figures["p95"], "p99_9": figures["p95"]}


def lower_most(line: Document) -> None:
    figures = line["latency_us"]
    figures["max"] = figures["p99_9"]


def lower_mean(line: Document) -> None:
    figures = line["latency_us"]
    figures["mean"] = figures["p50"]


def wide(line: Document) -> None:
    figures = line["latency_us"]
    figures["stddev"] = figures["max"]


def a_tenth(line: Document) -> None:
    figures = line["latency_us"]
    figures |= {"count": figures["count"] // 10, "p99_9": None}
    line["cpu"] |= {"client_s_per_gb": None, "server_s_per_gb": None}


def ten_times(line: Document) -> None:
    names = ("gbit_s", "bytes", "messages_per_s")
    times(10, *(f"bandwidth.{name}" for name in names))(line)


def above_best(line: Document) -> None:
    line["bandwidth"]["peak_gbit_s"] = line["bandwidth"]["gbit_s"] / 5


def below_worst(line: Document) -> None:
    line["bandwidth"]["min_interval_gbit_s"] = line["bandwidth"]["peak_gbit_s"] * 1.1


def another_histogram(line: Document) -> None:
    line["histogram"]["data"] = line["histogram"]["data"][:-8] + "AAAAAAA="


def stalled(line: Document) -> None:
    line["stall"] = {"longest_s": line["elapsed_s"] * 2, "start_s": 0, "began": line["started"]}


def stalled_before(line: Document) -> None:
    began = "2026-11-21T08:04:01.000Z"
    line["stall"] = {"longest_s": 0.01, "start_s": 0.01, "began": began}


def fewer_bytes(line: Document) -> None:
    line["bandwidth"]["bytes"] -= 1


@pytest.mark.parametrize(
    ("run", "test", "fault", "said"),
    [
        ("loopback", "tcp-latency", halved_median, "in its histogram"),
        ("loopback", "tcp-latency", flattened_tail, "in its histogram"),
        ("loopback", "tcp-latency", lower_most, "in its histogram"),
        ("loopback", "tcp-latency", lower_mean, "in its histogram"),
        ("loopback", "tcp-latency", latency(stddev=0), "in its histogram"),
        ("loopback", "tcp-latency", wide, "in its histogram"),
        ("loopback", "tcp-latency", a_tenth, "samples"),
        ("loopback", "tcp-latency", latency(p50=None), "it has no p50"),
        ("loopback", "tcp-latency", another_histogram, "cannot be decoded"),
        ("loopback", "tcp-latency", put("histogram.unit", "ns"), "in another unit"),
        ("loopback", "tcp-latency", put("histogram", None), "have no histogram"),
        ("loopback", "tcp-latency", stalled, "it stood still for"),
        ("loopback", "tcp-latency", stalled_before, "it stood still at"),
        ("loopback", "tcp-bandwidth", stalled, "it stood still for"),
        ("loopback", "tcp-bandwidth", ten_times, "above its best window"),
        ("loopback", "tcp-bandwidth", above_best, "above its best window"),
        ("loopback", "tcp-bandwidth", below_worst, "above its best"),
        ("loopback", "tcp-bandwidth", put("bandwidth.peak_gbit_s", None), "no best or"),
        ("loopback", "tcp-bandwidth", put("bandwidth.min_interval_gbit_s", None), "no best or"),
        ("loopback", "tcp-bandwidth", put("bandwidth.messages_per_s", None), "messages_per_s"),
        ("loopback", "tcp-bandwidth", put("cpu", None), "it has no cpu.client_s"),
        ("loopback", "tcp-latency", put("cpu.server_system_s", None), "no cpu.server_system_s"),
        ("loopback", "tcp-latency", put("completion_level", None), "completion_level is null"),
        ("rxe", "verbs-send-latency", put("link", None), "it has no link.mtu_bytes"),
        ("rxe", "verbs-send-latency", put("path.claimed_bytes", None), "claims null bytes"),
        ("loopback", "tcp-bandwidth", fewer_bytes, "no whole messages"),
        ("loopback", "tcp-bandwidth", times(1 / 9, "cpu.client_s_per_gb"), "s a gigabyte"),
        (
            "loopback", "tcp-bandwidth", put("bandwidth.peak_definition", "best_run"),
            'bandwidth.peak_definition is "best_run", a word that perch does not write',
        ),
        ("rxe", "verbs-write-bandwidth", put("params.mtu_bytes", 1024), "its MTU is 1024 in"),
        (
            "loopback", "tcp-bandwidth", put("loss", {"sent_messages": 9, "lost_messages": 4}),
            "has losses",
        ),
        ("loopback", "tcp-verify", put("integrity.checked_bytes", 65536), "less than arrived"),
        ("loopback", "tcp-verify", times(2, "integrity.checked_bytes"), "more than arrived"),
        ("loopback", "tcp-latency", times(2, "cpu.client_s"), "s a gigabyte are not its"),
        ("loopback", "tcp-latency", times(2, "cpu.server_s_per_gb"), "s a gigabyte are not its"),
        ("loopback", "tcp-latency", times(0.1, "cpu.client_system_s"), "its whole host"),
        ("loopback", "tcp-bandwidth", times(9, "bandwidth.peak_gbit_s"), "alone moved more"),
        ("rxe", "verbs-write-bandwidth", put("path.lost_bytes", 65536), "its path lost"),
        (
            "rxe", "verbs-write-bandwidth", times(1 / 2, "bandwidth.bytes", "elapsed_s"),
            "bytes are not those of 100 messages",
        ),
        ("rxe", "verbs-ud-send-bandwidth", put("loss.lost_messages", 50), "leaves other bytes"),
        ("rxe", "verbs-ud-send-bandwidth", put("loss", None), "says nothing of losses"),
    ],
    indirect=["run"],
)  # fmt: skip
def test_figures_that_contradict_each_other_are_no_result(
    run: Run, test: str, fault: Change, said: str
) -> None:
    end = run.flow(test)
    end.prints(fault)
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert missing(verdict) == {end.flow}
    messages = {one["error"]["message"] for one in run.records() if "error" in one}
    assert messages and all(said in message for message in messages), messages


def a_burst_at_the_end(line: Document) -> None:
    """What a busy machine measured: two windows of 0.1 s, and then thrice their rate."""
    line["bandwidth"] |= {"peak_gbit_s": line["bandwidth"]["gbit_s"] * 0.6,
                          "min_interval_gbit_s": line["bandwidth"]["gbit_s"] * 0.37}  # fmt: skip


@pytest.mark.parametrize("run", ["loopback"], indirect=True)
def test_what_no_window_holds_may_be_faster_than_the_best_window(run: Run) -> None:
    run.flow("tcp-bandwidth").prints(a_burst_at_the_end)
    assert run.judge().verdict == "PASS"


@pytest.mark.parametrize("run", ["loopback", "rxe", "transfer"], indirect=True)
def test_recorded_runs_contradict_nothing(run: Run) -> None:
    assert run.judge().verdict == "PASS"


# ---- tools without a histogram -------------------------------------------------------------------

UNTUNED = {"count": 1000, "min": 13.98, "max": 626.09, "mean": 52.07, "stddev": 114.54,
           "p50": 16.77}  # fmt: skip
BEST = {"gbit_s": 9.23, "peak_gbit_s": 9.23, "peak_definition": "best_run_of_messages",
        "bytes": 20971520000}  # fmt: skip


def judged(**figures: object) -> Record:
    record = msgspec.convert(
        {
            "schema": "perch.record/2", "run": "r", "flow": "t/a/b/0/1", "test": "t", "repeat": 1,
            "rail": 0, "scope": "hardware", "tool": {"name": "perftest"}, "status": "ok",
            "client": {}, "server": {}, "elapsed_s": 18.2, "connection": "RC", **figures,
        },
        Record,
    )  # fmt: skip
    laws.judged([record])
    return record


def test_perftest_cuts_what_is_below_a_microsecond_from_its_deviation() -> None:
    swift = {"count": 1000, "min": 0.97, "max": 3.97, "mean": 1.9, "stddev": 0, "p50": 1.9}
    assert judged(latency_us=swift).status == "ok"
    assert judged(latency_us=swift, tool={"name": "cxi"}).status == "error"


def test_what_a_person_noted_of_perftest_contradicts_nothing() -> None:
    assert judged(latency_us=UNTUNED).status == "ok"
    assert judged(bandwidth=BEST).status == "ok"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"stddev": 0}, "its deviation of 0 us does not fit"),
        ({"stddev": 0.1}, "its deviation of 0.1 us does not fit"),
        ({"stddev": 160}, "its deviation of 160 us does not fit"),
        ({"mean": 330}, "its mean of 330 us is not one of these percentiles"),
        ({"mean": 13}, "its mean of 13 us is not one of these percentiles"),
        ({"p50": 200}, "its mean of 52.07 us is not one of these percentiles"),
        ({"p50": 40, "stddev": 9}, "is farther from its mean of 52.07 us than a deviation"),
    ],
)
def test_extremes_mean_median_and_deviation_bound_each_other(
    change: dict[str, float], said: str
) -> None:
    record = judged(latency_us=UNTUNED | change)
    assert record.error is not None and said in record.error.message


def test_an_average_is_not_above_the_best_run_of_messages() -> None:
    record = judged(bandwidth=BEST | {"peak_gbit_s": 9.0})
    assert record.error is not None and "above its best window" in record.error.message


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"completion": "busy"}, "error"),
        ({"completion": "busy", "gap_us": 1000}, "ok"),
        ({"completion": "event"}, "ok"),
    ],
)
def test_ticks_miss_only_a_process_that_sleeps(params: dict[str, object], status: str) -> None:
    cpu = {"client_s": 5, "client_system_s": 0.2}
    assert judged(tool={"name": "perch"}, cpu=cpu, params=params).status == status


@pytest.mark.parametrize(("host", "status"), [(4, "error"), (5, "ok"), (90, "ok"), (None, "ok")])
def test_a_host_counts_each_segment_that_its_socket_sent_again(
    host: int | None, status: str
) -> None:
    counters = {"client": {"TcpRetransSegs": host}, "server": {"TcpRetransSegs": 0}}
    record = judged(tool={"name": "perch"}, tcp={"retransmissions": 5}, counters=counters)
    assert record.status == status


def test_windows_of_iperf3_are_the_senders_and_its_bytes_the_receivers() -> None:
    # iperf3 -t 1 -J --fq-rate 100M: 15.7 MB sent in the second's best window, 12.8 MB received
    paced = {
        "gbit_s": 0.1024, "peak_gbit_s": 0.1256, "bytes": 12800000,
        "peak_definition": "best_interval_1s",
    }  # fmt: skip
    assert judged(tool={"name": "iperf3"}, bandwidth=paced, elapsed_s=1).status == "ok"
    assert judged(tool={"name": "perch"}, bandwidth=paced, elapsed_s=1).status == "error"


WINDOWS = {"gbit_s": 94, "peak_gbit_s": 96, "min_interval_gbit_s": 90, "bytes": 203943 << 20}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, None),
        ({"peak_gbit_s": 188}, "its best window of 188 Gb/s is above its link of 100 Gb/s"),
        ({"peak_gbit_s": 106}, None),  # 64 messages of 1 MiB were under way
        ({"peak_gbit_s": None, "min_interval_gbit_s": None}, "no best or no worst window"),
        ({"peak_gbit_s": None}, "no best or no worst window of its 18.2 s"),
    ],
)
def test_windows_of_the_engine_are_there_and_within_the_link(
    change: dict[str, float | None], said: str | None
) -> None:
    record = judged(
        kind="bandwidth", tool={"name": "perch"}, completion_level="transmit",
        link={"rate_gbit_s": 100}, bandwidth=WINDOWS | change,
        params={"outstanding": 64, "queue_pairs": 1, "size_bytes": 1 << 20},
    )  # fmt: skip
    message = record.error.message if record.error else None
    assert message is None if said is None else said in (message or "")


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        ([(0, 1, 9.23), (0.5, 2, 9.23)], "overlaps the one before"),
        ([(0, 9, 9.23), (10, 18.2, 9.23)], "it has no interval from 9 to 10 s"),
        ([(0, 30, 9.23)], "its intervals end at 30 s"),
        ([(0, 18.2, 8)], "is above the 8 of its intervals"),
        ([(0, 18.2, 11)], "its intervals moved more"),
    ],
)
def test_intervals_are_parts_of_their_whole(
    intervals: list[tuple[float, float, float]], said: str
) -> None:
    these = [{"start_s": a, "end_s": b, "gbit_s": rate} for a, b, rate in intervals]
    record = judged(bandwidth=BEST, intervals=these)
    assert record.error is not None and said in record.error.message


@pytest.mark.parametrize(("least_us", "status"), [(100.0, "ok"), (5000.0, "error")])
def test_a_warm_up_may_check_as_much_as_its_best_time_allows(least_us: float, status: str) -> None:
    made = {
        "schema": "perch.record/2", "run": "r", "flow": "t/a/b/0/1", "test": "t", "rail": 0,
        "repeat": 1, "scope": "software", "tool": {"name": "perch"}, "client": {"host": "a"},
        "server": {"host": "b"}, "status": "ok", "kind": "latency", "op": "send",
        "backend": "tcp", "definition": "half_round_trip", "elapsed_s": 40,
        "params": {"size_bytes": 64, "verify": True, "warmup_s": 0.2, "outstanding": 1,
                   "queue_pairs": 1},
        "latency_us": {"count": 2000, "min": least_us, "max": 20000.0, "mean": 10000.0,
                       **dict.fromkeys(("p50", "p90", "p95", "p99"), 10000.0)},
        "integrity": {"checked_bytes": 2 * 2350 * 64},
    }  # fmt: skip
    record = msgspec.convert(made, Record)
    found = laws.contradictions([record], columns.part([record]))
    assert (
        "error" if any("more than arrived" in why for why in found.values()) else "ok"
    ) == status
