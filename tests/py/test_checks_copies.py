"""One measurement that is counted as several."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perch.judge import histograms, seen
from perch.model.histogram import decode
from perch.model.moments import moment
from tests.py.checks_built import found, record, run_of
from tests.py.judging import Document, Run, check_of, later, status, times
from tests.raw_lines import End, printed

MakeRun = Callable[[str], Path]


def started(end: End) -> float:
    return moment(end.document()["started"]) or 0


def copied(run: Run) -> End:
    """The output of the second repeat is that of the first, at the time of its own process."""
    first, second = (run.flow("tcp-latency", repeat=n) for n in (1, 2))
    second.write(first.read())
    second.prints(later(started(second) - started(first)))
    return second


def test_an_output_that_was_copied_to_another_repeat_is_found(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    copied(run)
    finding = check_of(run.judge(), "copies")
    assert (finding.status, finding.measured) == ("inconclusive", 2)
    assert finding.evidence == [f"tcp-latency/alpha/beta/0/{repeat}" for repeat in (1, 2)]


def longer(line: Document) -> None:
    line["elapsed_s"] *= 1.001
    line["cpu"]["client_s"] *= 1.001


def test_a_copy_with_other_times_is_found(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    copied(run).prints(longer)
    assert status(run.judge(), "copies") == "inconclusive"


def test_a_line_that_was_copied_to_another_size_is_found(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    end = run.flow("tcp-latency")
    lines = end.lines()
    lines[1] = lines[0] | {key: lines[1][key] for key in ("params", "started")}
    smaller = lines[0]["params"]["size_bytes"] / lines[1]["params"]["size_bytes"]
    cpu = lines[0]["cpu"]
    lines[1]["cpu"] = cpu | {name: cpu[name] * smaller for name in cpu if name.endswith("_per_gb")}
    end.write(printed(lines))
    finding = check_of(run.judge(), "copies")
    assert (finding.status, finding.evidence) == ("inconclusive", ["tcp-latency/alpha/beta/0/1"])


def test_the_same_output_of_another_tools_test_is_found(run_copy: MakeRun) -> None:
    """iperf prints three digits: only the whole output tells."""
    run = Run(run_copy("loopback"))
    run.flow("iperf-streams").write(run.flow("iperf").read())
    finding = check_of(run.judge(), "copies")
    assert finding.evidence == [f"{test}/alpha/beta/0/1" for test in ("iperf", "iperf-streams")]


def test_perftests_output_that_was_copied_to_another_repeat_is_found(run_copy: MakeRun) -> None:
    run = Run(run_copy("perftest"))
    first, second = (run.flow("perftest-send-latency", repeat=n) for n in (1, 2))
    second.write(first.read())
    assert status(run.judge(), "copies") == "inconclusive"


def bandwidth(**more: Any) -> Document:
    figures = {"bytes": 10**9, "gbit_s": 9.87654321, "peak_gbit_s": 9.9}
    return {"bandwidth": figures | more, "cpu": {"client_s": 1.2345, "server_s": 2.3456}}


def latency(**more: Any) -> Document:
    figures = {"count": 100, "mean": 2.34567891, "stddev": 0.1234, "min": 2.1, "max": 9.8}
    return {"kind": "latency", "latency_us": figures | more}


CASES: tuple[tuple[Document, Document, str], ...] = (
    (bandwidth(), bandwidth() | {"elapsed_s": 3}, "inconclusive"),
    (bandwidth(), bandwidth(gbit_s=9.87654322), "pass"),
    (bandwidth(), bandwidth() | {"cpu": {"client_s": 1.2346, "server_s": 2.3456}}, "pass"),
    (
        bandwidth(min_interval_gbit_s=9.1),
        bandwidth(min_interval_gbit_s=9.1, bytes=10**9 + 1) | {"cpu": None},
        "inconclusive",
    ),
    # a rate that never changed is one figure, not three
    (
        bandwidth(min_interval_gbit_s=9.9),
        bandwidth(min_interval_gbit_s=9.9) | {"cpu": None},
        "pass",
    ),
    (latency(), latency(), "inconclusive"),
    (latency(), latency() | {"params": {"size_bytes": 8}}, "inconclusive"),
    (latency(), latency(mean=2.34567892), "pass"),
    (latency(count=99), latency(count=99), "not_judged"),
    (latency(stddev=0), latency(stddev=0), "not_judged"),
    (latency(), latency() | {"status": "error", "error": {"code": 6}}, "pass"),
    (latency() | {"kind": "sum"}, latency() | {"kind": "transfer"}, "pass"),
)


@pytest.mark.parametrize(("one", "other", "expected"), CASES)
@pytest.mark.parametrize("tool", ["perch", "iperf3"])
def test_fine_figures_that_are_alike_are_one_measurement(
    one: Document, other: Document, expected: str, tool: str
) -> None:
    run = run_of(
        [
            record(flow, tool={"name": tool}, **more)
            for flow, more in (("t/a/b/0/1", one), ("u/c/d/0/2", other))
        ]
    )
    assert found(run, "copies")["copies"].status == expected


@pytest.mark.parametrize(("sizes", "expected"), [(3, "inconclusive"), (2, "not_judged")])
def test_a_table_of_few_digits_tells_by_all_of_its_sizes(sizes: int, expected: str) -> None:
    run = run_of(
        [
            record(flow, tool={"name": "perftest"}, **latency(), params={"size_bytes": 2**n})
            for flow in ("t/a/b/0/1", "t/a/b/0/2")
            for n in range(sizes)
        ]
    )
    assert found(run, "copies")["copies"].status == expected


def of_repeats(*lines: tuple[int, Document], tool: str = "perch") -> str:
    """The status of records of repeats of one flow."""
    records = [
        record(f"t/a/b/0/{repeat}", tool={"name": tool}, **figures) for repeat, figures in lines
    ]
    return found(run_of(records), "copies")["copies"].status


def of_size(exponent: int, gbit_s: float) -> Document:
    figures = {"bytes": 10**9, "gbit_s": gbit_s}
    return {"bandwidth": figures, "params": {"size_bytes": 2**exponent}}


@pytest.mark.parametrize(
    ("tool", "sizes", "expected"),
    [
        ("perch", 3, "inconclusive"),
        ("perch", 2, "not_judged"),
        ("perftest", 9, "inconclusive"),
        ("perftest", 8, "not_judged"),
    ],
)
def test_rates_of_many_sizes_do_not_repeat(tool: str, sizes: int, expected: str) -> None:
    lines = [(repeat, of_size(n, n + 0.25)) for repeat in (1, 2) for n in range(sizes)]
    assert of_repeats(*lines, tool=tool) == expected
    lines[0] = (1, of_size(0, 77.7))
    assert of_repeats(*lines, tool=tool) == expected.replace("inconclusive", "pass")


def test_rates_that_are_alike_are_one_figure() -> None:
    """The pairs of a transfer may have one time."""
    assert of_repeats(*((n, of_size(s, 9.7)) for n in (1, 2) for s in range(9))) == "not_judged"


#: Rows of perftest: over a software device, and of a quiet fabric.
WIDE = {"max": 43492.20, "p50": 17.91, "p99": 1356.05, "p99_9": 3308.92}
QUIET = {"max": 3.05, "p50": 2.34, "p99": 2.41, "p99_9": 2.80}


@pytest.mark.parametrize(("row", "expected"), [(WIDE, "inconclusive"), (QUIET, "not_judged")])
def test_a_row_of_few_digits_tells_by_its_tail(row: Document, expected: str) -> None:
    one = latency(**row)
    assert of_repeats((1, one), (2, one), tool="perftest") == expected
    if expected == "inconclusive":
        assert (
            of_repeats((1, one), (2, latency(**row | {"p99": 1356.06})), tool="perftest") == "pass"
        )


def test_perftests_row_that_was_copied_to_another_repeat_is_found(run_copy: MakeRun) -> None:
    run = Run(run_copy("perftest"))
    for role in ("client", "server"):
        first, second = (
            End(run.root, f"perftest-send-latency/alpha/beta/0/{repeat}", role) for repeat in (1, 2)
        )
        row = next(line for line in first.read().splitlines() if line.startswith(" 64 "))
        second.write(re.sub(r"^ 64 .*$", row, second.read(), flags=re.MULTILINE))
    assert status(run.judge(), "copies") == "inconclusive"


def test_a_histogram_that_was_copied_under_another_mean_is_found(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    copied(run).prints(times(1.00001, "latency_us.mean"))
    assert status(run.judge(), "copies") == "inconclusive"


def test_a_histogram_of_few_places_tells_nothing(run_copy: MakeRun) -> None:
    """Repeats of a quiet link may count the same few nanoseconds as often."""
    run = Run(run_copy("loopback"))
    texts = [run.flow("tcp-latency").lines()[0]["histogram"]["data"], "HISTFAAAABt4nGNgYGBg"]
    decoded = decode(texts)
    few = msgspec.structs.replace(
        decoded, row=decoded.row[:29], place=decoded.place[:29], count=decoded.count[:29]
    )
    assert [mark is None for mark in histograms.marks(texts, decoded)] == [False, True]
    assert histograms.marks(texts, few) == [None, None]


def test_outputs_tell_where_no_figure_does() -> None:
    run = run_of([record("t/a/b/0/1"), record("t/a/b/0/2")])
    assert found(run, "copies")["copies"].status == "not_judged"
    for second, expected in (("y", "pass"), ("x", "inconclusive"), (None, "pass")):
        rows = [
            seen.Seen(flow, None, None, None, None, output)
            for flow, output in (("t/a/b/0/1", "x"), ("t/a/b/0/2", second))
        ]
        of_both = run_of([record("t/a/b/0/1"), record("t/a/b/0/2")], seen=seen.frame(rows))
        assert found(of_both, "copies")["copies"].status == expected


def test_recorded_repeats_are_measurements_of_their_own(run_copy: MakeRun) -> None:
    for name in ("loopback", "rxe", "perftest", "transfer"):
        assert status(Run(run_copy(name)).judge(), "copies") == "pass"
