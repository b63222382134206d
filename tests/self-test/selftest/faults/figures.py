"""Figures that cannot be, or that contradict one another, on recorded runs over loopback."""

import shutil
from pathlib import Path

from perch.imports.run import Given, make
from selftest.edits import (
    TOOLS,
    Change,
    Edit,
    all_times,
    fields,
    output,
    posing_as,
    printed,
    prints,
    put,
    substitute,
    times,
    where,
    wrote,
)
from selftest.fault import FAIL, INCONCLUSIVE, Fault, fault
from selftest.files import Document, compact, limit_set
from selftest.paths import FIXTURES

LATENCY = "tcp-latency/alpha/beta/0/1"
BANDWIDTH = "tcp-bandwidth/alpha/beta/0/1"
VERIFY = "tcp-verify/alpha/beta/0/1"
TRANSFERS = "tcp-write/alpha/beta/0/1"
IPERF = "iperf/alpha/beta/0/1"
OF_LATENCY = "flow/tcp-latency/alpha/beta/0/1 coverage"
OF_BANDWIDTH = "flow/tcp-bandwidth/alpha/beta/0/1 coverage"
OF_VERIFY = "flow/tcp-verify/alpha/beta/0/1 coverage"
OF_TRANSFERS = f"flow/{TRANSFERS} coverage"


def rate(id_: str, title: str, value: str) -> Fault:
    """A bandwidth that says this."""
    return fault(
        id_,
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        title,
        output(BANDWIDTH, substitute(r'"gbit_s":[0-9.]+', f'"gbit_s":{value}')),
    )


def contradiction(id_: str, title: str, plant: Edit) -> Fault:
    """A latency whose figures contradict each other."""
    return fault(id_, "loopback", INCONCLUSIVE, OF_LATENCY, title, plant)


def measured_elsewhere(root: Path) -> None:
    """Notes of perftest over RDMA and iperf over TCP in the place of the run."""
    shutil.rmtree(root)
    notes = FIXTURES / "import/notes.md"
    given = [Given(notes.name, notes.read_bytes())]
    make(root, given, limits_name="none", limits=None, rate_gbit_s=None)


def untuned(root: Path) -> None:
    """A person's notes of perftest on a system that was tuned in three stages."""
    shutil.rmtree(root)
    notes = FIXTURES / "import/notes.md"
    given = [Given(notes.name, notes.read_bytes())]
    limits = compact(limit_set("roce")).encode()
    make(root, given, limits_name="roce", limits=limits, rate_gbit_s=None)


def is_sum(line: Document) -> bool:
    return bool(line["kind"] == "sum")


def half_p99(line: Document) -> None:
    line["latency_us"]["p99"] = line["latency_us"]["p50"] / 2


def thin_p99_99(line: Document) -> None:
    line["latency_us"]["p99_99"] = line["latency_us"]["max"]


def high_mean(line: Document) -> None:
    line["latency_us"]["mean"] = line["latency_us"]["max"] * 2


def latency(**figures: float | None) -> Change:
    """Sets these times of a line."""
    return fields("latency_us", **figures)


def halved_median(line: Document) -> None:
    times(1 / 2, "latency_us.min", "latency_us.p50")(line)


def flattened_tail(line: Document) -> None:
    figures = line["latency_us"]
    figures |= {"p99": figures["p95"], "p99_9": figures["p95"]}


def another_histogram(lines: list[Document]) -> list[Document]:
    """Of the first line that of the second."""
    lines[0]["histogram"] = lines[1]["histogram"]
    return lines


def posing(lines: list[Document]) -> list[Document]:
    """The first size's line, under the name and at the time of the last."""
    return [*lines[:-1], posing_as(lines[0], lines[-1])]


def a_tenth(line: Document) -> None:
    figures = line["latency_us"]
    figures |= {"count": figures["count"] // 10, "p99_9": None}


def above_best(line: Document) -> None:
    line["bandwidth"]["peak_gbit_s"] = line["bandwidth"]["gbit_s"] / 5


def too_fast(line: Document) -> None:
    figures = line["bandwidth"]
    figures["bytes"] *= 200000 / figures["gbit_s"]
    figures["gbit_s"] = 200000


FAULTS = (
    rate("zero", "a bandwidth of zero", "0"),
    rate("negative", "a negative bandwidth", "-21"),
    rate("nan", "a bandwidth that is not a number", "nan"),
    rate("infinite", "an infinite bandwidth", "1e999"),
    rate("absent-figure", "a bandwidth that is null, with status ok", "null"),
    fault(
        "swapped-unit",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "gigabytes reported as gigabits",
        prints(BANDWIDTH, times(1 / 8, "bandwidth.gbit_s")),
    ),
    fault(
        "mib-as-mb",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "MiB/s read as MB/s",
        prints(BANDWIDTH, times(1 / 1.048576, "bandwidth.gbit_s")),
    ),
    fault(
        "edited-figure",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "a raw figure that was edited upwards, its bytes and seconds left as they were",
        prints(BANDWIDTH, times(1.2, "bandwidth.gbit_s")),
    ),
    fault(
        "nanoseconds",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "nanoseconds reported as microseconds",
        prints(LATENCY, all_times(1000)),
    ),
    fault(
        "percentiles",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "a p99 below its p50",
        prints(LATENCY, half_p99),
    ),
    fault(
        "thin-percentile",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "a p99.99 of too few samples",
        prints(LATENCY, thin_p99_99),
    ),
    fault(
        "mean-outside",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "a mean above the maximum",
        prints(LATENCY, high_mean),
    ),
    fault(
        "too-fast",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "a bandwidth that no link of today carries, its bytes made to fit",
        prints(BANDWIDTH, too_fast),
    ),
    fault(
        "corrupted",
        "loopback",
        FAIL,
        f"integrity {OF_VERIFY}",
        "a payload with one corrupted byte",
        prints(VERIFY, put("integrity.bad_bytes", 1)),
    ),
    fault(
        "unchecked",
        "loopback",
        INCONCLUSIVE,
        OF_VERIFY,
        "a verified flow that checked no byte",
        prints(VERIFY, put("integrity.checked_bytes", 0)),
    ),
    fault(
        "slow-iperf",
        "loopback",
        FAIL,
        "limit/iperf-bandwidth/iperf",
        "a rate in Mbits/sec far below its limit",
        wrote(IPERF, TOOLS / "iperf_slow.txt"),
        output(IPERF, substitute("2026-11-21 07:29:09", "2026-11-21 08:04:35")),
        output(IPERF, substitute(r"^\[  1\] 0.*\n", ""), role="server"),
        output(IPERF, substitute("port 40540(.*) port 15004", r"port 56595\1 port 5001")),
    ),
    fault(
        "transfer-pair",
        "transfers",
        INCONCLUSIVE,
        OF_TRANSFERS,
        "transfers of a device pair that are missing although their sum is there",
        printed(TRANSFERS, lambda found: found[1:]),
    ),
    fault(
        "transfer-sum",
        "transfers",
        INCONCLUSIVE,
        OF_TRANSFERS,
        "a sum of transfers that is more than its pairs",
        prints(
            TRANSFERS,
            where(
                is_sum,
                times(1.5, "bandwidth.gbit_s", "bandwidth.bytes", "bandwidth.messages_per_s"),
            ),
        ),
    ),
    fault(
        "transfer-unit",
        "transfers",
        INCONCLUSIVE,
        f"{OF_TRANSFERS} limits",
        "transfers whose gigabytes are reported as gigabits",
        prints(TRANSFERS, times(1 / 8, "bandwidth.gbit_s")),
    ),
    fault(
        "transfer-batch",
        "transfers",
        INCONCLUSIVE,
        f"{OF_TRANSFERS} limits",
        "transfers in other batches than planned",
        prints(TRANSFERS, put("params.batch", 16)),
    ),
    fault(
        "transfer-latency",
        "transfers",
        INCONCLUSIVE,
        f"{OF_TRANSFERS} limits",
        "batches that took longer than the whole measurement",
        prints(TRANSFERS, all_times(4)),
    ),
    fault(
        "too-short",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "a measurement of half of the time that was asked for",
        prints(BANDWIDTH, times(1 / 2, "elapsed_s", "bandwidth.bytes")),
    ),
    fault(
        "other-depth",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "a bandwidth with another number of messages outstanding than the plan leaves to it",
        prints(BANDWIDTH, put("params.outstanding", 16)),
    ),
    fault(
        "no-peak",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "a bandwidth without its best window",
        prints(BANDWIDTH, put("bandwidth.peak_gbit_s", None)),
    ),
    fault(
        "no-link",
        "rxe",
        INCONCLUSIVE,
        "flow/verbs-send-latency/alpha/beta/0/1 coverage",
        "a result over verbs without a word of its link, so that no ceiling is known",
        prints("verbs-send-latency/alpha/beta/0/1", put("link", None)),
    ),
    contradiction(
        "no-processors",
        "a latency without seconds of CPU, which the engine always writes",
        prints(LATENCY, put("cpu", None)),
    ),
    fault(
        "unknown-peak",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "a peak with an unknown definition, far above the average",
        prints(
            BANDWIDTH,
            put("bandwidth.peak_definition", "best_moment"),
            times(50, "bandwidth.peak_gbit_s"),
        ),
    ),
    fault(
        "transfer-times",
        "transfers",
        INCONCLUSIVE,
        OF_TRANSFERS,
        "a sum of transfers whose batches deviate more than those of its pairs",
        prints(TRANSFERS, where(is_sum, times(1.5, "latency_us.stddev"))),
    ),
    contradiction("halved-median", "medians that were halved", prints(LATENCY, halved_median)),
    contradiction("flat-tail", "tails that were flattened", prints(LATENCY, flattened_tail)),
    contradiction(
        "garbage-histogram",
        "a histogram that cannot be decoded",
        prints(LATENCY, put("histogram.data", "HISTFAAAABt4nGNgYGBg")),
    ),
    contradiction(
        "other-histogram", "a histogram of another size", printed(LATENCY, another_histogram)
    ),
    contradiction("tenth", "a tenth of the samples", prints(LATENCY, a_tenth)),
    contradiction("no-median", "a latency without its median", prints(LATENCY, latency(p50=None))),
    contradiction("even", "a deviation of 0", prints(LATENCY, latency(stddev=0))),
    contradiction(
        "uneven", "a deviation larger than all times", prints(LATENCY, latency(stddev=10**6))
    ),
    fault(
        "posing-size",
        "loopback",
        INCONCLUSIVE,
        "copies",
        "one size's output that claims to be another's",
        printed(LATENCY, posing),
    ),
    fault(
        "socket-above-host",
        "fabric",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "a socket that sent more segments again than its whole host",
        prints(BANDWIDTH, put("tcp", {"retransmissions": 500000})),
    ),
    fault(
        "ten-times",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "ten times the bytes in the same time",
        prints(
            BANDWIDTH,
            times(10, "bandwidth.gbit_s", "bandwidth.bytes", "bandwidth.messages_per_s"),
        ),
    ),
    fault(
        "above-best",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "an average above its best interval",
        prints(BANDWIDTH, above_best),
    ),
    fault(
        "reliable-lost",
        "loopback",
        INCONCLUSIVE,
        OF_BANDWIDTH,
        "bytes that a reliable connection lost",
        prints(BANDWIDTH, put("loss", {"sent_messages": 20000, "lost_messages": 3829})),
    ),
    fault(
        "stalled-longer",
        "loopback",
        INCONCLUSIVE,
        OF_LATENCY,
        "traffic that stopped for longer than it was measured",
        prints(LATENCY, put("stall", {"longest_s": 9, "start_s": 0, "began": None})),
    ),
    fault(
        "measured-elsewhere",
        "loopback",
        INCONCLUSIVE,
        "imported definitions *",
        "imported figures of RDMA and TCP whose definitions differ",
        measured_elsewhere,
    ),
    fault(
        "untuned",
        "loopback",
        FAIL,
        "limit/latency-mean-spread/Initial-Test-Untuned-System imported *",
        "a mean of three medians, of a tool that prints no percentile",
        untuned,
    ),
)
