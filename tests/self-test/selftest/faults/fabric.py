"""Speed, evenness, counters and clocks, on a composed fabric: what only hardware is judged by."""

import re

import numpy as np

from selftest.edits import (
    Change,
    Edit,
    agent,
    counting,
    drop,
    edit,
    ends,
    from_then_on,
    idle,
    later,
    more,
    output,
    printed,
    prints,
    put,
    readings,
    slower,
    substitute,
    times,
)
from selftest.fault import FAIL, INCONCLUSIVE, PASS, Fault, fault
from selftest.faults.hosts import HALF_RATE, HOSTS, NETDEV, PORT
from selftest.files import Document
from selftest.runs import noise

SLOW = "write-bandwidth/gamma/delta/0/1"
WRITES = "write-bandwidth/alpha/beta/0/1"
STEADY = "steady-bandwidth/alpha/beta/0/1"
SENDS = "send-latency/alpha/beta/0/1"
PERFTEST = "perftest-write-bandwidth/alpha/beta/0"
BETA = "raw/beta/environment.json"
SHARE = "limit/large-message-share"
CARD = "mlx5_0/1"
COUNTERS = f"rdma.{CARD}.counters"


def line_rate(line: Document) -> None:
    factor = line["bandwidth"]["gbit_s"] / 99.5
    times(1 / factor, "bandwidth.messages_per_s")(line)
    times(factor, "elapsed_s")(line)
    line["bandwidth"]["gbit_s"] = 99.5


def table_rates(repeat: int, factor: float) -> Edit:
    """Rates of both ends' rows of perftest, whose digits stay as many."""

    def row(found: re.Match[str]) -> str:
        size, count, peak, average, rate = found[0].split()
        rates = [float(one) * factor for one in (peak, average, rate)]
        return f" {size} {count} {rates[0]:.2f} {rates[1]:.2f} {rates[2]:.6f}"

    rows = re.compile(r"^ [0-9]+ .*$", re.MULTILINE)
    return output(f"{PERFTEST}/{repeat}", lambda text: rows.sub(row, text), role="*")


def link_rate(value: float | None) -> Change:
    def change(environment: Document) -> None:
        for interface in environment["interfaces"]:
            interface["rate_gbit_s"] = value

    return change


def bad_interval(lines: list[Document]) -> list[Document]:
    """The last line is the whole, whose intervals have lines of their own before it."""
    whole = lines[-1]
    intervals = whole["intervals"]
    bad = next(one for one in intervals if one["start_s"] == 300)
    lacking = bad["gbit_s"] - 20
    for one in intervals:
        one["gbit_s"] = 20 if one is bad else one["gbit_s"] + lacking / (len(intervals) - 1)
    rates = [one["gbit_s"] for one in intervals]
    whole["bandwidth"] |= {"min_interval_gbit_s": min(rates), "peak_gbit_s": max(rates)}
    return [*({"kind": "interval", **one} for one in intervals), whole]


def hidden_interval(lines: list[Document]) -> list[Document]:
    """The bad one is left out, and its bytes are as if they had been those of the others."""
    *intervals, whole = bad_interval(lines)
    kept = [one for one in intervals if one["start_s"] != 300]
    for one in kept:
        one["gbit_s"] += 20 / len(kept)
    return [*kept, whole | {"intervals": kept}]


def without_intervals(lines: list[Document]) -> list[Document]:
    return [lines[-1] | {"intervals": []}]


def tail(samples: int, to_ns: int) -> Change:
    """The slowest round trips took so long; all figures of the line are those of its samples."""

    def change(line: Document) -> None:
        ordered = np.sort(noise.samples_of(line))
        ordered[-samples:] = np.linspace(to_ns, to_ns * 1.1, samples)
        line |= noise.latency(ordered)

    return change


def card_counts(**values: int) -> Edit:
    """How much more alpha's card had counted after its first writes, and ever since."""
    return from_then_on(
        WRITES, *(more(f"{COUNTERS}.{name}", value) for name, value in values.items())
    )


def no_packets(end: Document) -> None:
    readings = [end["counters"][moment]["rdma"][CARD]["counters"] for moment in ("before", "after")]
    for name in ("port_xmit_packets", "port_rcv_packets"):
        readings[1][name] = readings[0][name]


def still_card(end: Document) -> None:
    end["counters"]["after"]["rdma"] = end["counters"]["before"]["rdma"]


def traffic_only(reading: Document) -> None:
    device = reading["rdma"][CARD]
    device["counters"] = {
        name: value
        for name, value in device["counters"].items()
        if re.fullmatch(r"port_(xmit|rcv)_(data|packets)", name)
    }


def without_discards(reading: Document) -> None:
    del reading["rdma"][CARD]["counters"]["port_xmit_discards"]


def counted(id_: str, word: str, checks: str, title: str, *edits: Edit) -> Fault:
    """A fault in what alpha's card counted beside its first writes."""
    return fault(id_, "fabric", word, checks, title, *edits)


FAULTS = (
    fault(
        "above-line-rate",
        "fabric",
        FAIL,
        "ceiling",
        "a result above line rate",
        prints(WRITES, line_rate),
    ),
    fault(
        "at-80",
        "fabric",
        FAIL,
        f"limit/site-peers/write-bandwidth {SHARE}/write-bandwidth",
        "a result at 80 % of the median of comparable pairs",
        prints(SLOW, slower(0.8)),
    ),
    fault(
        "peer-disagrees",
        "fabric",
        FAIL,
        f"agreement/bandwidth-write-RC {SHARE}/perftest-write-bandwidth",
        "an engine and perftest that differ by a fifth on one path",
        *(table_rates(repeat, 0.8) for repeat in (1, 2)),
    ),
    fault(
        "perftest-unit",
        "fabric",
        INCONCLUSIVE,
        "flow/perftest-write-bandwidth/alpha/beta/0/1 coverage path/*",
        "another unit in the header of perftest's table",
        output(f"{PERFTEST}/1", substitute("MiB/sec", "Gb/sec")),
    ),
    fault(
        "perftest-layer",
        "fabric",
        INCONCLUSIVE,
        "flow/perftest-write-bandwidth/alpha/beta/0/1 coverage path/*",
        "perftest's output of an InfiniBand port on a RoCE fabric",
        output(f"{PERFTEST}/1", substitute("Link type       : Ethernet", "Link type       : IB")),
    ),
    fault(
        "engine-layer",
        "fabric",
        INCONCLUSIVE,
        f"flow/{WRITES} coverage path/*",
        "the engine's output of an InfiniBand port on a RoCE fabric",
        prints(WRITES, put("link.layer", "infiniband")),
    ),
    fault(
        "no-rate-told",
        "fabric",
        INCONCLUSIVE,
        "host_check/nic-link-speed/beta/mlx5_0 ceiling/unknown host_check/*",
        "a link whose rate neither host nor tool reports",
        edit(BETA, link_rate(None)),
        edit(
            "raw/beta/host_check.json",
            drop(f"files.{PORT}/rate"),
            drop(f"files.{NETDEV}/speed"),
            drop("commands.settings enp1s0"),
        ),
    ),
    fault(
        "slower-end",
        "fabric",
        FAIL,
        "ceiling expected/rate host_check/*",
        "an end whose link is slower than the result",
        edit(BETA, link_rate(50)),
        edit("raw/beta/host_check.json", HALF_RATE),
    ),
    fault(
        "bought-more",
        "fabric",
        FAIL,
        f"expected/rate {SHARE}/* host_check/* limit/*",
        "links at half of what was bought",
        edit("plan.json", *(put(f"hosts.{host}.link_gbit_s", 200) for host in HOSTS)),
    ),
    fault(
        "bought-less",
        "fabric",
        INCONCLUSIVE,
        "expected/faster",
        "links of twice the rate that was bought, whose floors are half of what they should be",
        edit("plan.json", *(put(f"hosts.{host}.link_gbit_s", 50) for host in HOSTS)),
    ),
    fault(
        "lossy-with-pauses",
        "checked",
        FAIL,
        "host_check/qos-lossless/beta/enp1s0",
        "a fabric that is said not to be lossless, whose hosts have flow control",
        edit("plan.json", put("hosts.beta.traits", {"lossless": False})),
    ),
    fault(
        "bad-interval",
        "fabric",
        FAIL,
        "interval/steady-bandwidth",
        "one bad interval in ten minutes, its bytes made up for by the others",
        printed(STEADY, bad_interval),
    ),
    fault(
        "hidden-interval",
        "fabric",
        INCONCLUSIVE,
        "flow/steady-bandwidth/alpha/beta/0/1 coverage",
        "a bad interval that was left out of ten minutes",
        printed(STEADY, hidden_interval),
    ),
    fault(
        "no-intervals",
        "fabric",
        INCONCLUSIVE,
        "flow/steady-bandwidth/alpha/beta/0/1 coverage path/*",
        "ten minutes without the intervals that were asked for",
        printed(STEADY, without_intervals),
    ),
    fault(
        "tail-spike",
        "fabric",
        FAIL,
        "tail/send-latency",
        "a tail spike: a p99 of twenty times the median",
        prints(SENDS, tail(60, 120_000)),
    ),
    fault(
        "one-message",
        "fabric",
        FAIL,
        "limit/longest-message/send-latency limit/*",
        "one message of 4,000 that took half a second",
        prints(SENDS, tail(1, 1_000_000_000)),
    ),
    fault(
        "slow-median",
        "fabric",
        FAIL,
        "limit/small-message-median/send-latency",
        "a median above its limit",
        prints(SENDS, noise.longer(10)),
    ),
    fault(
        "definitions",
        "fabric",
        INCONCLUSIVE,
        "flow/send-latency/alpha/beta/0/1 coverage path/send-latency/*",
        "a latency of another definition than its operation can have",
        prints(SENDS, put("definition", "completion")),
    ),
    counted(
        "dropped",
        FAIL,
        "counters/drops",
        "packets that the card dropped",
        card_counts(port_xmit_discards=7),
    ),
    counted(
        "damaged",
        FAIL,
        "counters/errors",
        "damaged packets on a link",
        card_counts(port_rcv_errors=40, symbol_error=40),
    ),
    counted(
        "failed-requests",
        FAIL,
        "counters/errors",
        "requests that failed, beside those that a queue pair flushed as it ended",
        card_counts(req_cqe_error=70, req_cqe_flush_error=30),
    ),
    counted(
        "flap",
        FAIL,
        "counters/link",
        "a link that went down during a flow",
        card_counts(link_downed=1),
    ),
    counted(
        "retransmitted",
        FAIL,
        "counters/retransmissions limit/*",
        "retransmissions above the limit for noise",
        card_counts(local_ack_timeout_err=5000),
    ),
    counted(
        "disordered",
        FAIL,
        "counters/out-of-sequence",
        "packets that came out of order",
        card_counts(out_of_sequence=5000),
    ),
    counted(
        "aer",
        FAIL,
        "counters/pcie",
        "an error that PCIe could not correct",
        counting(WRITES, f"{COUNTERS}.aer_nonfatal", 4, 5),
    ),
    counted(
        "counters-hollow",
        INCONCLUSIVE,
        "counters/still",
        "bytes that a card counted without packets",
        ends(WRITES, no_packets),
    ),
    counted(
        "counters-still",
        FAIL,
        "path/write-bandwidth/alpha/beta/0/1",
        "counters of a card that did not move",
        ends(WRITES, still_card),
    ),
    counted(
        "counters-reset",
        INCONCLUSIVE,
        "counters/reset",
        "counters that were cleared during a flow",
        counting(WRITES, f"{COUNTERS}.port_rcv_errors", 9, 0),
    ),
    counted(
        "counters-blind",
        INCONCLUSIVE,
        "counters/missing counters/alike",
        "a card without error counters",
        readings("alpha", traffic_only),
    ),
    counted(
        "counter-lacking",
        INCONCLUSIVE,
        "counters/alike",
        "a card that counts no discards, as the others do",
        readings("alpha", without_discards),
    ),
    fault(
        "host-drops",
        "fabric",
        PASS,
        "counters/host-drops",
        "packets that the host's interface dropped",
        from_then_on(WRITES, more("netdev.enp1s0.rx_dropped", 900)),
    ),
    counted(
        "paused",
        PASS,
        "counters/pause",
        "a card that was paused before it sent",
        card_counts(port_xmit_wait=90000000),
    ),
    counted(
        "marked",
        PASS,
        "counters/congestion",
        "packets that a switch marked as congested",
        card_counts(np_ecn_marked_roce_packets=5000, np_cnp_sent=5000),
    ),
    counted(
        "aer-corrected",
        PASS,
        "counters/pcie-corrected",
        "errors that PCIe corrected",
        counting(WRITES, f"{COUNTERS}.aer_correctable", 4, 900),
    ),
    fault(
        "unsteady",
        "fabric",
        PASS,
        "repeatability/tcp-bandwidth",
        "a repeat at 80 % of the first",
        prints("tcp-bandwidth/alpha/beta/0/2", slower(0.8)),
    ),
    fault(
        "far-from-iperf3",
        "fabric",
        PASS,
        "cross-check",
        "an engine whose TCP bandwidth is a third of iperf3's",
        *(prints(f"tcp-bandwidth/alpha/beta/0/{repeat}", slower(0.3)) for repeat in (1, 2)),
    ),
    fault(
        "one-machine",
        "fabric",
        INCONCLUSIVE,
        "machines",
        "two hosts that are one machine",
        edit(BETA, put("boot_id", "composed-alpha")),
    ),
    fault(
        "one-machine-spelt-twice",
        "fabric",
        INCONCLUSIVE,
        "machines",
        "two hosts that are one machine, whose ids differ in case",
        edit(BETA, put("boot_id", "COMPOSED-ALPHA")),
    ),
    fault(
        "skewed",
        "fabric",
        INCONCLUSIVE,
        "clock/ends",
        "clocks of two hosts ten minutes apart",
        agent("epsilon", later(600)),
        edit("raw/epsilon/environment.json", later(600)),
        idle("epsilon", lambda readings: later(600)({"counters": readings})),
        ends("*", later(600), role="*", host="epsilon"),
        prints("*", later(600), host="epsilon"),
    ),
    fault(
        "lived",
        "fabric",
        INCONCLUSIVE,
        "flow/steady-bandwidth/alpha/beta/0/1 coverage path/*",
        "ten minutes of intervals from a process that lived two minutes",
        ends(STEADY, put("elapsed_s", 120)),
    ),
)
