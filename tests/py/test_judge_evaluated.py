"""Faults planted in a recorded run beside its limits: each is found by its own check.

Counters before and after, intervals, tails, the clocks of both ends, and results that contradict
themselves.
"""

from __future__ import annotations

import numpy as np
import pytest
from selftest.runs import noise

from perch.model.moments import moment
from perch.model.verdict import Bound
from tests.py.cards import PORT, counted
from tests.py.judging import (
    Change,
    Document,
    Run,
    check_of,
    go_on,
    later,
    more,
    put,
    status,
)
from tests.raw_lines import End, Walk, ends

FLOW = "write-latency/alpha/beta/0/1"


def end(run: Run, role: str) -> End:
    return run.flow("write-latency", role)


# ---- counters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "counter", "word", "check"),
    [
        ("port", "port_xmit_discards", "FAIL", "drops"),
        ("eth1", "rx_crc_errors", "FAIL", "errors"),
        ("port", "local_ack_timeout_err", "FAIL", "retransmissions"),
        ("port", "out_of_seq_request", "FAIL", "out-of-sequence"),
        ("eth1", "carrier_down_count", "FAIL", "link"),
        ("eth1", "aer_nonfatal", "FAIL", "pcie"),
        ("eth1", "rx_prio3_pause", "PASS", "pause"),
        ("port", "np_cnp_sent", "PASS", "congestion"),
        ("eth1", "rx_dropped", "PASS", "host-drops"),
        ("eth1", "aer_correctable", "PASS", "pcie-corrected"),
    ],
)
def test_a_class_of_counters_that_moved_fails_hardware_or_is_shown_where_it_only_explains(
    cards: Run, device: str, counter: str, word: str, check: str
) -> None:
    counted(end(cards, "client"), device, counter, 7, 7)
    counted(end(cards, "server"), device, counter, 7, 9)
    verdict = cards.judge()
    assert verdict.verdict == word
    finding = check_of(verdict, f"counters/{check}")
    assert finding.status == ("fail" if word == "FAIL" else "advisory")
    assert finding.evidence == [FLOW]
    assert str(finding.measured).startswith("2 in 1 flow, beta: ")
    assert str(finding.measured).endswith(f" {counter}")
    assert finding.remedy and finding.source


def test_cards_that_saw_nothing_pass(cards: Run) -> None:
    assert cards.judge().verdict == "PASS"


def test_on_software_the_same_counters_are_advisory_and_the_run_passes(rxe: Run) -> None:
    go_on(end(rxe, "server"), more("netdev.eth1.rx_missed_errors", 9))
    verdict = rxe.judge()
    assert verdict.verdict == "PASS"
    assert status(verdict, "counters/drops") == "advisory"
    assert status(verdict, "counters/errors") == "pass"


@pytest.mark.parametrize(("again", "expected"), [(12, "pass"), (13, "fail")])
def test_what_was_sent_again_is_compared_with_the_packets_one_in_a_million(
    cards: Run, again: int, expected: str
) -> None:
    for role in ("client", "server"):
        for way in ("xmit", "rcv"):
            counted(end(cards, role), "port", f"port_{way}_packets", 0, 6_000_000)
    counted(end(cards, "client"), "port", "packet_seq_err", 0, again)
    finding = check_of(cards.judge(), "counters/retransmissions")
    assert finding.status == expected
    if expected == "fail":
        assert str(finding.measured).endswith("in the worst flow 1.08 per million packets")


@pytest.mark.parametrize(
    "fault", [("eth1", "rx_crc_errors", 9, 2), ("port", "link_downed", 255, 255)]
)
def test_a_counter_that_went_backwards_or_is_full_is_inconclusive(
    cards: Run, fault: tuple[str, str, int, int]
) -> None:
    counted(end(cards, "server"), *fault)
    verdict = cards.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, "counters/reset") == "inconclusive"


def without(*counters: str, netdev: bool = True) -> Change:
    def change(document: Document) -> None:
        for when in ("before", "after"):
            reading = document["counters"][when]
            if not netdev:
                del reading["netdev"]
            for port in reading["rdma"].values():
                for counter in counters:
                    port["counters"].pop(counter, None)

    return change


@pytest.mark.parametrize(
    "fault",
    [without("completer_retry_err", netdev=False), without("completer_retry_err", "link_downed")],
)
def test_hardware_whose_devices_do_not_count_what_goes_wrong_is_inconclusive(
    cards: Run, fault: Change
) -> None:
    end(cards, "server").edit(fault)
    verdict = cards.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, "counters/missing") == "inconclusive"


@pytest.mark.parametrize(
    ("counter", "lacking", "verdict_word"),
    [
        ("link_downed", "inconclusive", "INCONCLUSIVE"),
        ("tx_pkts", None, "PASS"),  # nothing is judged by it
        ("duplicate_request", "advisory", "PASS"),
        ("rcvd_seq_err", "advisory", "PASS"),  # what counts its class is there
    ],
)
def test_a_counter_that_one_host_lacks_is_named(
    cards: Run, counter: str, lacking: str | None, verdict_word: str
) -> None:
    walk = Walk(cards.root / "raw/beta")
    for reading in walk.samples:
        for port in reading["rdma"].values():
            port["counters"].pop(counter, None)
    walk.save()
    verdict = cards.judge()
    check = check_of(verdict, "counters/alike")
    assert (check.status, verdict.verdict) == (lacking or "pass", verdict_word)
    assert not lacking or check.measured == (
        f"beta: mlx5_0/1 has no {counter}, but alpha: mlx5_0/1 does"
    )


def test_software_whose_devices_do_not_count_is_not_judged(rxe: Run) -> None:
    end(rxe, "server").edit(without("completer_retry_err", "link_downed"))
    assert status(rxe.judge(), "counters/missing") is None


def bytes_in_no_packet(document: Document) -> None:
    before, after = (document["counters"][when]["netdev"]["eth1"] for when in ("before", "after"))
    after |= {name: before[name] for name in ("tx_packets", "rx_packets")}


def words_in_no_packet(document: Document) -> None:
    for when in ("before", "after"):
        counters = document["counters"][when]["rdma"][PORT]["counters"]
        counters |= {"port_xmit_packets": "0", "port_rcv_packets": "0"}


@pytest.mark.parametrize("fault", [bytes_in_no_packet, words_in_no_packet])
def test_bytes_in_no_packet_are_no_devices_counters(cards: Run, fault: Change) -> None:
    end(cards, "client").edit(fault)
    verdict = cards.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert status(verdict, "counters/still") == "inconclusive"


def test_an_interface_of_a_loopback_that_counted_nothing_of_a_transfer_is_inconclusive(
    loopback: Run,
) -> None:
    names = ("tx_bytes", "rx_bytes", "tx_packets", "rx_packets", "rx_missed_errors")
    before = dict.fromkeys(names, "5")
    after = before | {
        "tx_bytes": "9000000", "rx_bytes": "9000000", "tx_packets": "900", "rx_packets": "900",
    }  # fmt: skip

    def counters(moved: dict[str, str]) -> Change:
        def change(end: Document) -> None:
            sides = {
                when: {"time_s": str(moment(end[at])), "host": {}, "netdev": {"lo": counts}}
                for when, at, counts in (("before", "started", before), ("after", "ended", moved))
            }
            end["counters"] = {"route_interface": "lo", **sides}

        return change

    ends = [loopback.flow("tcp-latency", role) for role in ("client", "server")]
    for one in ends:
        one.edit(counters(after))
    verdict = loopback.judge()
    assert (verdict.verdict, status(verdict, "counters/still")) == ("PASS", "pass")
    ends[0].edit(counters(before))
    verdict = loopback.judge()
    assert (verdict.verdict, status(verdict, "counters/still")) == ("INCONCLUSIVE", "inconclusive")


# ---- intervals and tails -------------------------------------------------------------------------


def slow_interval(document: Document) -> None:
    """What the second interval lacks, the first one has."""
    first, second = (one["sum"] for one in document["intervals"])
    moved = round(0.6 * second["bytes"])
    for one, change in ((first, moved), (second, -moved)):
        one["bytes"] += change
        one["bits_per_second"] = one["bytes"] * 8 / one["seconds"]


def test_one_bad_interval_is_advisory_on_software(loopback: Run) -> None:
    assert status(loopback.judge(), "interval/iperf3") == "pass"
    loopback.flow("iperf3").prints(slow_interval)
    verdict = loopback.judge()
    finding = check_of(verdict, "interval/iperf3")
    assert (verdict.verdict, finding.status) == ("PASS", "advisory")
    assert isinstance(finding.measured, float) and finding.measured < 0.5
    assert finding.limit == Bound(0.5, None)
    assert finding.evidence == ["iperf3/alpha/beta/0/1#131072"]
    assert "(interval: 1s)" in str(finding.remedy)


def intervals(document: Document) -> None:
    """Six hundred intervals of the line's time, all alike."""
    rate, long_s = document["bandwidth"]["gbit_s"], document["elapsed_s"] / 600
    document["intervals"] = [
        {"start_s": n * long_s, "end_s": (n + 1) * long_s, "count": 10, "gbit_s": rate}
        for n in range(600)
    ]


@pytest.mark.parametrize(("still", "word"), [(None, "PASS"), (411, "FAIL")])
def test_one_interval_of_six_hundred_without_traffic_fails_a_card(
    cards: Run, still: int | None, word: str
) -> None:
    flow = cards.flow("verbs-write-bandwidth")
    flow.prints(intervals)
    if still is not None:
        flow.prints(put(f"intervals.{still}.gbit_s", 0))
    verdict = cards.judge()
    assert verdict.verdict == word
    assert status(verdict, "interval/verbs-write-bandwidth") == word.lower()


def test_the_worst_window_of_a_tenth_of_a_second_is_compared_with_the_whole(cards: Run) -> None:
    def change(document: Document) -> None:
        rate, size = document["bandwidth"]["gbit_s"], document["params"]["size_bytes"]
        document["bandwidth"] |= {
            "min_interval_gbit_s": rate * 0.49, "bytes": int(rate * 2e9 / 8 / size) * size,
        }  # fmt: skip
        document["elapsed_s"] = 2
        document["cpu"] |= {"client_s_per_gb": None, "server_s_per_gb": None}
        claimed = {"claimed_bytes": 1e9, "client_sent_bytes": 1e9}
        document["path"] = dict.fromkeys(document["path"], 0) | claimed

    cards.flow("verbs-write-bandwidth").prints(change)
    assert status(cards.judge(), "interval/verbs-write-bandwidth") == "fail"


def spike(line: Document) -> None:
    """Thirty messages take longer than eleven medians."""
    samples = np.sort(noise.samples_of(line))
    samples[-30:] = np.maximum(samples[-30:], samples[len(samples) // 2] * 11)
    line |= noise.latency(samples)


def few(line: Document) -> None:
    """A third of the messages, in nearly the same time: nine are longer than eleven medians."""
    samples = np.sort(noise.samples_of(line))[::3] * 14 // 5
    samples[-9:] = np.maximum(samples[-9:], samples[len(samples) // 2] * 11)
    line |= noise.latency(samples)
    line["cpu"] |= {"client_s_per_gb": None, "server_s_per_gb": None}


def test_a_tail_spike_is_found_where_enough_samples_support_it(loopback: Run) -> None:
    flow = loopback.flow("tcp-latency")
    assert status(loopback.judge(), "tail/tcp-latency") == "pass"
    flow.prints(spike)
    verdict = loopback.judge()
    assert (verdict.verdict, status(verdict, "tail/tcp-latency")) == ("PASS", "advisory")
    # nine samples above it are no tail, and the next percentile speaks
    flow.prints(few)
    assert status(loopback.judge(), "tail/tcp-latency") == "pass"


# ---- clocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "word", "expected"),
    [(90, "PASS", "advisory"), (-4000, "INCONCLUSIVE", "inconclusive"), (None, "PASS", "pass")],
)
def test_clocks_of_both_ends_that_differ_are_shown_and_too_far_apart_inconclusive(
    loopback: Run, seconds: float | None, word: str, expected: str
) -> None:
    if seconds is not None:
        loopback.agent("beta", later(seconds))
        for one in ends(loopback.root, host="beta"):
            one.edit(later(seconds))
    verdict = loopback.judge()
    finding = check_of(verdict, "clock/ends")
    assert (verdict.verdict, finding.status) == (word, expected)
    if seconds == 90:
        assert str(finding.measured).startswith("beta is 8")
        assert " s ahead of alpha" in str(finding.measured)
        assert len(finding.evidence) == 1


def test_counters_tell_the_time_too(rxe: Run) -> None:
    def change(document: Document) -> None:
        before = document["counters"]["before"]
        before["time_s"] = str(float(before["time_s"]) + 100)

    end(rxe, "server").edit(change)
    assert status(rxe.judge(), "clock/ends") == "advisory"


def test_a_result_that_took_longer_than_its_process_lived_contradicts_itself(loopback: Run) -> None:
    loopback.flow("iperf3").edit(put("elapsed_s", 0.2))
    verdict = loopback.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    finding = check_of(verdict, "flow/iperf3/alpha/beta/0/1")
    assert finding.status == "inconclusive"
    assert "0.2 s" in str(finding.measured)


# ---- what counters and intervals say of hardware -------------------------------------------------


def test_software_whose_devices_do_not_count_what_goes_wrong_is_not_judged(rxe: Run) -> None:
    for one in ends(rxe.root, host="beta"):
        one.edit(without("completer_retry_err", "link_downed"))
    rxe.edit("raw/beta/environment.json", lambda known: known.pop("idle_samples"))
    verdict = rxe.judge()
    assert (verdict.verdict, status(verdict, "counters/missing")) == ("PASS", None)


def test_one_bad_interval_fails_hardware(cards: Run) -> None:
    flow = cards.flow("verbs-write-bandwidth")
    flow.prints(intervals)
    assert status(cards.judge(), "interval/verbs-write-bandwidth") == "pass"
    flow.prints(put("intervals.411.gbit_s", 0))
    verdict = cards.judge()
    assert status(verdict, "interval/verbs-write-bandwidth") == "fail"
    assert verdict.verdict == "FAIL"


def test_counters_tell_the_time_of_an_end_too(rxe: Run) -> None:
    served = end(rxe, "server")
    before = served.document()["counters"]["before"]["time_s"]
    served.edit(put("counters.before.time_s", str(float(before) + 100)))
    assert status(rxe.judge(), "clock/ends") == "advisory"
