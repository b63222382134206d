"""Lines of `perch transfer`: what one says must hold together, and a sum is that of its pairs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perch.model.part import Part
from perch.model.plan import Expect, Flow
from perch.tools.perch import parts
from perch.tools.transfer import place_of_expect, place_of_part, summed


def line(pair: int | None, pairs: int, change: dict[str, Any] | None = None) -> dict[str, Any]:
    """A line of `pairs` pairs that move 1,000 batches of 128 transfers of 1 KiB each.

    `pair` None: of their sum.
    """
    times = pairs if pair is None else 1

    def device(name: str) -> str:
        return ",".join(f"{name}{i}" for i in range(pairs)) if pair is None else f"{name}{pair}"

    made: dict[str, Any] = {
        "schema": "perch.record/1",
        "tool": {"name": "perch", "version": "0"},
        "backend": "verbs",
        "op": "write",
        "kind": "sum" if pair is None else "transfer",
        "definition": "batch_completion",
        "completion_level": "transmit",
        "connection": "RC",
        "link": {"rate_gbit_s": 100, "mtu_bytes": 4096, "layer": "ethernet"},
        "cpu": dict.fromkeys(
            ("client_s", "server_s", "client_system_s", "server_system_s"),
            0.1 if pair is None else None,
        ),
        "client": {"device": device("c")},
        "server": {"device": device("s")},
        "params": {"size_bytes": 1024, "batch": 128, "iterations": 1000, "duration_s": None,
                   "warmup": 10, "queue_pairs": 4, "outstanding": 64, "threads": pairs,
                   "devices": pairs, "session": True, "chunks": 1, "verify": False,
                   "clock": "monotonic"},
        "elapsed_s": 0.1,
        "latency_us": {"count": 1000 * times, "min": 50, "max": 400, "mean": 99, "stddev": 5,
                       "p50": 98, "p90": 110, "p95": 120, "p99": 200},
        "bandwidth": {"gbit_s": 10.48576 * times, "peak_definition": "fastest_batch",
                      "peak_gbit_s": None if pair is None and pairs > 1 else 20.97152,
                      "messages_per_s": 1.28e6 * times, "bytes": 131072000 * times},
        "transfer": {"pair": pair, "pairs": pairs, "batches": 1000 * times,
                     "completed": 128000 * times, "asked": 128000 * times, "batch_bytes": 131072,
                     "lists": 1, "window_s": 0.1, "numa_node": None},
        "path": None if pair is None else {"client_sent_bytes": 132382720,
                                           "client_received_bytes": 0, "lost_bytes": 0,
                                           "claimed_bytes": 132382720},
        "integrity": None,
        "status": "ok",
        "error": None,
    }  # fmt: skip
    for key, value in (change or {}).items():
        made[key] = {**(made.get(key) or {}), **value} if isinstance(value, dict) else value
    return made


FLOW = Flow(
    id="t/a/b/0/1", test="t", tool="perch", kind="transfer", client="a", server="b",
    scope="hardware",
    expect=[Expect(kind="transfer", size_bytes=1024, batch=128, pair=0),
            Expect(kind="transfer", size_bytes=1024, batch=128, pair=1),
            Expect(kind="sum", size_bytes=1024, batch=128)],
)  # fmt: skip


def parts_of(*lines: dict[str, Any]) -> list[Part]:
    return parts(json.dumps(made).encode() for made in lines)


def why(part: Part) -> str:
    message = part.error.message if part.error else part.status
    return message.removeprefix("perch's line cannot be used: ")


def test_a_whole_line_is_kept_whole() -> None:
    made = parts_of(line(0, 2), line(1, 2), line(None, 2))
    assert [(part.kind, part.status) for part in made] == [
        ("transfer", "ok"), ("transfer", "ok"), ("sum", "ok"),
    ]  # fmt: skip
    assert [part.transfer and part.transfer.pair for part in made] == [0, 1, None]
    assert [part.transfer and part.transfer.completed for part in made] == [128000, 128000, 256000]
    assert [part.claims and part.claims.sent for part in made] == [132382720, 132382720, None]
    assert [part.bandwidth and part.bandwidth.messages_per_s for part in made] == [
        1280000, 1280000, 2560000,
    ]  # fmt: skip


NOTHING = "a line of kind transfer without transfer, latency_us or bandwidth"
SLOWER: dict[str, Any] = {
    "elapsed_s": 0.09,
    "transfer": {"window_s": 0.09},
    "bandwidth": {"gbit_s": 11.650844, "messages_per_s": 1422222},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "ok"),
        ({"transfer": {"batch_bytes": 1024}}, "a batch of 128 x 1024 bytes is not 1024"),
        ({"transfer": {"completed": 127999}}, "127999 of 128000 transfers were completed"),
        ({"transfer": {"asked": None, "completed": 127999}},
         "127999 transfers are not 1000 batches of 128"),
        ({"transfer": {"batches": 0}}, "transfer has no batches"),
        ({"transfer": {"pairs": 0}}, "transfer has no pairs"),
        ({"transfer": None}, NOTHING),
        ({"transfer": {"window_s": None}}, "transfer has no window_s"),
        ({"transfer": {"pair": 2}}, "a line of kind transfer is of pair 2"),
        ({"transfer": {"pair": None}}, "a line of kind transfer is of pair null"),
        ({"transfer": {"lists": 2}}, "a batch of 128 takes 1 lists on each queue pair, not 2"),
        ({"params": {"chunks": 3}}, "a batch of 128 takes 2 lists on each queue pair, not 1"),
        ({"params": {"chunks": 3}, "transfer": {"lists": 2}}, "ok"),
        ({"params": {"consecutive": True}, "transfer": {"lists": 32}}, "ok"),
        ({"latency_us": {"count": 1001}}, "1000 batches have 1001 times"),
        ({"latency_us": None}, NOTHING),
        ({"bandwidth": None}, NOTHING),
        ({"params": {"batch": None}}, "params has no batch"),
        ({"bandwidth": {"messages_per_s": None}}, "bandwidth has no messages_per_s"),
        ({"bandwidth": {"bytes": 131072001}}, "131072001 bytes are not those of 128000 transfers"),
        ({"bandwidth": {"messages_per_s": 1e6}},
         "1000000 transfers a second are not 10.48576 Gb/s"),
        ({"transfer": {"window_s": 0.2}, "elapsed_s": 0.2},
         "10.48576 Gb/s for 0.2 s are not 131072000 bytes"),
        ({"bandwidth": {"peak_gbit_s": 30}}, "131072 bytes in 50 us are no peak of 30 Gb/s"),
        (SLOWER, "batches sum up to 0.099 s of 0.09 s"),
        ({"params": {"verify": True}, "integrity": {"checked_bytes": 131071999, "bad_bytes": 0}},
         "--verify checked 131071999 of 131072000 bytes"),
        ({"params": {"verify": True}, "integrity": {"checked_bytes": 131072000, "bad_bytes": 0}},
         "ok"),
        ({"path": {"client_sent_bytes": 131071999, "claimed_bytes": 131071999}},
         "its path claims 131071999 bytes, but its figures need 131072000"),
    ],
)  # fmt: skip
def test_a_line_must_hold_together(change: dict[str, Any], message: str) -> None:
    assert why(parts_of(line(0, 2, change))[0]) == message


FOUR = {"threads": 4}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transfer": {"window_s": 0.01},
          "bandwidth": {"gbit_s": 104.8576, "messages_per_s": 12800000}},
         "its window of 0.01 s is not the 0.1 s that it took"),
        ({"transfer": {"window_s": 0.01}, "elapsed_s": 0.01,
          "bandwidth": {"gbit_s": 104.8576, "messages_per_s": 12800000, "peak_gbit_s": None}},
         "batches sum up to 0.099 s of 0.01 s"),
        ({"params": {"duration_s": 0.102}, "transfer": {"asked": None}}, "ok"),
        ({"params": {"duration_s": 0.103}, "transfer": {"asked": None}},
         "it lasted 0.1 s of 0.103 s"),
        ({"latency_us": {"min": 98, "mean": 98.5}, "bandwidth": {"peak_gbit_s": 10.699755}}, "ok"),
        ({"latency_us": {"min": 105, "mean": 106, "p50": 106},
          "bandwidth": {"peak_gbit_s": 9.986438}},
         "its average of 10.48576 Gb/s is above its peak of 9.986438 Gb/s"),
        ({"params": FOUR}, "2 lanes have a peak, of which each has its own"),
        ({"params": FOUR, "bandwidth": {"peak_gbit_s": None}}, "ok"),
        ({"params": FOUR, "elapsed_s": 0.05, "transfer": {"window_s": 0.05},
          "bandwidth": {"peak_gbit_s": None, "gbit_s": 20.97152, "messages_per_s": 2.56e6}}, "ok"),
        ({"params": FOUR, "elapsed_s": 0.04, "transfer": {"window_s": 0.04},
          "bandwidth": {"peak_gbit_s": None, "gbit_s": 26.2144, "messages_per_s": 3.2e6}},
         "batches sum up to 0.099 s of 0.04 s"),
        ({"params": {"threads": 1}}, "ok"),
    ],
)  # fmt: skip
def test_batches_of_a_lane_fit_into_its_window(change: dict[str, Any], message: str) -> None:
    assert why(parts_of(line(0, 2, change))[0]) == message


NO_PERCENTILES: dict[str, Any] = dict.fromkeys(("p50", "p90", "p95", "p99"))
SMALL: dict[str, Any] = {"size_bytes": 8, "batch": 1, "iterations": 2}
TWO: dict[str, Any] = {"batches": 2, "completed": 2, "asked": 2, "batch_bytes": 8}


@pytest.mark.parametrize(
    "change",
    [
        {"params": SMALL, "elapsed_s": 7.4e-6, "transfer": TWO | {"window_s": 7.4e-6},
         "latency_us": {"count": 2, "min": 3, "max": 4.1, "mean": 3.55} | NO_PERCENTILES,
         "bandwidth": {"gbit_s": 0.017297297, "messages_per_s": 270270.27,
                       "peak_gbit_s": 0.021333333, "bytes": 16}},
        {"params": SMALL, "elapsed_s": 0.02, "transfer": TWO | {"window_s": 0.02},
         "latency_us": {"count": 2, "min": 9000, "max": 11000, "mean": 10000} | NO_PERCENTILES,
         "bandwidth": {"gbit_s": 6.4e-6, "messages_per_s": 100, "peak_gbit_s": 7.1e-6,
                       "bytes": 16}},
    ],
)  # fmt: skip
def test_a_short_window_and_a_slow_transfer_are_not_refused_for_rounding(
    change: dict[str, Any],
) -> None:
    assert why(parts_of(line(0, 2, change))[0]) == "ok"


@pytest.mark.parametrize(
    ("change", "place"),
    [({"transfer": {"pair": 0.5}}, "transfer.pair"), ({"transfer": {"completed": -1}},
     "transfer.completed"), ({"transfer": {"numa_node": 0.5}}, "transfer.numa_node"),
     ({"params": {"outstanding": 1.5}}, "params.outstanding"),
     ({"params": {"threads": "2"}}, "params.threads")],
)  # fmt: skip
def test_what_is_counted_is_whole(change: dict[str, Any], place: str) -> None:
    said = why(parts_of(line(0, 2, change))[0])
    assert said.startswith(f"line 1 of its output: {place}: expected whole number")


def test_what_finished_before_a_failure_is_kept() -> None:
    lost = {"code": 4, "message": "peer lost", "traffic": True}
    change = {"status": "error", "error": lost, "latency_us": None, "bandwidth": None,
              "transfer": {"completed": 700, "batches": 5, "window_s": 0}}  # fmt: skip
    (part,) = parts_of(line(0, 2, change))
    assert part.status == "error" and part.error is not None and part.error.code == 4
    assert part.transfer is not None and part.latency_us is None
    assert (part.transfer.completed, part.transfer.asked) == (700, 128000)


@pytest.mark.parametrize("api", [None, "ibv_wr"])
def test_the_calls_that_posted_lists_are_kept(api: str | None) -> None:
    (part,) = parts_of(line(0, 2, {"transfer": {"post_api": api}}))
    assert part.transfer is not None and part.transfer.post_api == api


def test_a_stall_counts_with_its_date_alone() -> None:
    dated = {"longest_s": 5.1, "start_s": 1.5, "began": "2026-01-01T00:00:01.500Z"}
    with_date, without = parts_of(
        line(0, 2, {"stall": dated}), line(1, 2, {"stall": dated | {"began": None}})
    )
    assert with_date.stall is not None and without.stall is None


def test_places_are_told_in_the_same_words_by_line_and_plan() -> None:
    made = parts_of(line(0, 2), line(1, 2), line(None, 2))
    assert [place_of_part(part) for part in made] == [place_of_expect(e) for e in FLOW.expect]
    assert place_of_part(made[0]) == "kind transfer, pair 0, batch 128, 1024"
    assert place_of_part(made[2]) == "kind sum, pair null, batch 128, 1024"


# ---- the sum against its pairs -------------------------------------------------------------------


def sum_of(change: dict[str, Any], second: dict[str, Any] | None = None) -> str:
    made = parts_of(line(0, 2), line(1, 2, second), line(None, 2, change))
    assert all(part.status == "ok" for part in made), [why(part) for part in made]
    return why(summed(FLOW, made)[-1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "ok"),
        ({"transfer": {"window_s": 0.2}, "elapsed_s": 0.2,
          "bandwidth": {"gbit_s": 10.48576, "messages_per_s": 1.28e6}},
         "the sum took 0.2 s, the slowest pair 0.1"),
        ({"transfer": {"window_s": 0.0995}, "elapsed_s": 0.0995},
         "the sum took 0.0995 s, the slowest pair 0.1"),
        ({"transfer": {"window_s": 0.1005}, "elapsed_s": 0.1005}, "ok"),
        ({"transfer": {"batches": 1999, "completed": 255872, "asked": None},
          "latency_us": {"count": 1999}, "bandwidth": {"bytes": 262012928}},
         "the sum has 1999 batches, its pairs have 2000"),
    ],
)  # fmt: skip
def test_the_sum_has_the_transfers_of_its_pairs_in_the_longest_of_their_times(
    change: dict[str, Any], message: str
) -> None:
    assert sum_of(change) == message


BETWEEN = "us is not between"


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({}, "ok"),
        ({"min": 49}, "the sum's fastest batch took 49 us, that of its pairs 50 us"),
        ({"min": 60}, "the sum's fastest batch took 60 us, that of its pairs 50 us"),
        ({"max": 400}, "the sum's slowest batch took 400 us, that of its pairs 900 us"),
        ({"max": 901}, "the sum's slowest batch took 901 us, that of its pairs 900 us"),
        ({"mean": 97}, "a batch of the sum took 97 us, of its pairs 99.45 us"),
        ({"mean": 102}, "a batch of the sum took 102 us, of its pairs 99.45 us"),
        ({"stddev": 4.9},
         "the sum's batches deviate by 4.9 us, those of its pairs by 5.01897351 us"),
        ({"p50": 96}, f"the sum's p50 of 96 {BETWEEN} 98 and 140 us, as its pairs' are"),
        ({"p90": 107}, f"the sum's p90 of 107 {BETWEEN} 110 and 150 us, as its pairs' are"),
        ({"p99": 190}, f"the sum's p99 of 190 {BETWEEN} 200 and 900 us, as its pairs' are"),
        ({"p50": 145, "p90": 146, "p95": 147},
         f"the sum's p50 of 145 {BETWEEN} 98 and 140 us, as its pairs' are"),
        ({"p90": 145, "p95": 150}, "ok"),
        ({"p50": None}, "ok"),
    ],
)  # fmt: skip
def test_the_sum_is_no_better_and_no_worse_than_its_pairs(
    times: dict[str, Any], message: str
) -> None:
    second = {"latency_us": {"min": 60, "max": 900, "mean": 99.9, "p50": 99.5, "p90": 140,
                             "p95": 150, "p99": 320},
              "bandwidth": {"peak_gbit_s": 17.476267}}  # fmt: skip
    both = {"max": 900, "mean": 99.45, "p50": 99, "p90": 120, "p95": 130, "p99": 250} | times
    assert sum_of({"latency_us": both}, second) == message


def test_a_sum_beside_a_pair_that_failed_is_left_as_it_is() -> None:
    short = {"transfer": {"window_s": 0.2}, "elapsed_s": 0.2,
             "bandwidth": {"gbit_s": 10.48576, "messages_per_s": 1.28e6}}  # fmt: skip
    made = parts_of(line(0, 2), line(1, 2, {"transfer": None}), line(None, 2, short))
    assert [part.status for part in summed(FLOW, made)] == ["ok", "error", "ok"]
