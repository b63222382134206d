"""Which figures are results, and how lines and command lines are read."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from perch.model.part import Part
from perch.model.record import Bandwidth, Interval
from perch.model.text import explained
from perch.tools.claims import is_rdma, lost_messages, needed_bytes
from perch.tools.results import (
    Peaks,
    UnusableError,
    check_rate,
    interval_summary,
    natural,
    natural_or_none,
    positive,
    positive_or_none,
    shown,
    whole,
)
from perch.tools.text import lines_of, number, option_value, tail


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (-1, "-1"), (0.0, "0"), (math.inf, "inf"), (math.nan, "nan"), (None, "null"),
     (1e30, r"1e\+30")],
)  # fmt: skip
def test_no_result_is_a_result(value: float | None, said: str) -> None:
    with pytest.raises(UnusableError, match=f"^x is {said}, which is not a result$"):
        positive(value, "x")


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, None])
def test_a_cost_below_zero_is_none(value: float | None) -> None:
    with pytest.raises(UnusableError, match="which is not a result"):
        natural(value, "x")


def test_figures_are_rounded_to_nine_digits_and_counts_are_exact() -> None:
    assert positive(1.23456789012, "x") == 1.23456789
    assert repr(positive(3.0, "x")) == "3"
    assert positive(5465345884123, "x") == 5465345884123
    assert natural(0.0, "x") == 0


def test_what_is_not_reported_stays_absent() -> None:
    assert positive_or_none(None, "x") is None
    assert natural_or_none(None, "x") is None
    assert whole(None, "x") is None


def test_a_count_may_be_printed_with_an_exponent_but_is_whole() -> None:
    assert whole(1.5e6, "x") == 1500000
    with pytest.raises(UnusableError, match="not a whole number"):
        whole(1.5, "x")


@pytest.mark.parametrize(
    ("value", "text"), [(None, "null"), ("a\n", '"a\\n"'), (0.5, "0.5"), (2.0, "2"), (True, "true")]
)
def test_values_are_shown_as_json(value: object, text: str) -> None:
    assert shown(value) == text


def test_a_last_interval_of_microseconds_is_neither_minimum_nor_peak() -> None:
    spans = [(0, 1, 10), (1, 2, 8), (2, 2.0001, 90)]
    intervals = [Interval(start_s=a, end_s=b, gbit_s=rate) for a, b, rate in spans]
    assert interval_summary(intervals) == Peaks(10, "best_interval_1s", 8)
    assert interval_summary([]) == Peaks(None, None, None)
    assert interval_summary([Interval(start_s=0, end_s=0.1, gbit_s=1)])[1] == "best_interval_0.1s"
    with pytest.raises(UnusableError, match="end before they start"):
        interval_summary([Interval(start_s=2, end_s=1, gbit_s=1)])


@pytest.mark.parametrize(
    ("gbit_s", "size", "why"),
    [(8, 1_000_000_000, None), (8.1, 1_000_000_000, "1000000000 bytes in 1 s are not the 8.1 Gb/s"),
     (1.6e5, 2e13, "bandwidth of 160000 Gb/s is impossible")],
)  # fmt: skip
def test_a_rate_must_be_that_of_its_bytes(gbit_s: float, size: float, why: str | None) -> None:
    bandwidth = Bandwidth(gbit_s=gbit_s, bytes=size)
    if why is None:
        check_rate(bandwidth, 1, 0.01)
    else:
        with pytest.raises(UnusableError, match=why):
            check_rate(bandwidth, 1, 0.01)


@pytest.mark.parametrize(
    ("part", "lost", "needed"),
    [
        ({"kind": "latency", "definition": "half_round_trip", "params": {"size_bytes": 8},
          "latency_us": {"count": 100}}, 0, 1600),
        ({"kind": "latency", "definition": "completion", "params": {"size_bytes": 8},
          "latency_us": {"count": 100}}, 0, 800),
        ({"kind": "bandwidth", "params": {"size_bytes": 100}, "bandwidth": {"bytes": 1000},
          "loss": {"sent_messages": 10, "lost_messages": 3}}, 3, 700),
        ({"kind": "bandwidth"}, 0, 0),
    ],
)  # fmt: skip
def test_what_figures_need_on_the_wire(part: dict[str, Any], lost: int, needed: int) -> None:
    made = msgspec.convert(part, Part)
    assert (lost_messages(made), needed_bytes(made)) == (lost, needed)


@pytest.mark.parametrize(
    ("backend", "tool", "provider", "rdma"),
    [("verbs", "perch", None, True), ("ofi", "perch", "verbs;ofi_rxm", True),
     (None, "perftest", None, True), ("ofi", "perch", "tcp;ofi_rxm", False),
     ("ofi", "perch", "net", False), (None, None, None, False)],
)  # fmt: skip
def test_who_uses_an_rdma_device(
    backend: str | None, tool: str | None, provider: str | None, rdma: bool
) -> None:
    assert is_rdma(backend, tool, provider) is rdma


def test_lines_end_at_newlines_alone() -> None:
    assert lines_of(b"") == []
    assert lines_of(b"a\nb\r\n\n") == ["a", "b\r", ""]
    assert lines_of(b"\xffx") == ["\ufffdx"]


def test_last_words_are_those_of_lines_that_are_not_blank() -> None:
    assert tail(["first", "second", "", "third", "  "], 2) == "second; third"
    assert tail(["x" * 500], 1) == "x" * 400 + "..."
    assert tail([], 2) == ""


def test_the_last_option_counts() -> None:
    argv = ["iperf", "-c", "host", "-t", "10", "--time", "20"]
    assert option_value(argv, ("-t", "--time")) == "20"
    assert option_value(argv[:5], ("-t", "--time")) == "10"
    assert option_value(["iperf", "-t"], ("-t",)) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("1.50", 1.5), ("2.0", 2), ("-3", -3), ("1e3", 1000), ("123456789012345678",
     123456789012345678), ("nan", None), ("inf", None), ("1_000", None), ("9" * 5000, None),
     ("1e999", None), ("", None), (" 1", None), ("٣", None), (None, None)],
)  # fmt: skip
def test_a_number_is_what_tools_print(text: str | None, value: float | None) -> None:
    assert number(text) == value


class Inner(msgspec.Struct):
    p50: int | float | None = None
    count: int | None = None
    unit: str = ""


class Must(msgspec.Struct, forbid_unknown_fields=True):
    be: int


class Outer(msgspec.Struct):
    latency_us: Inner | None = None
    must: Must | None = None


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b'{"latency_us":{"p50":"5"}}', "latency_us.p50: expected number, got string"),
        (b'{"latency_us":{"count":1.5}}', "latency_us.count: expected whole number, got number"),
        (b'{"latency_us":{"unit":1}}', "latency_us.unit: expected string, got whole number"),
        (b'{"latency_us":{"p50":1e999}}', "latency_us.p50: number out of range"),
        (b"[]", "expected object, got list"),
        (b'{"must":{}}', "must: 'be' is missing"),
        (b'{"must":{"be":1,"bee":2}}', "must: unknown key 'bee'"),
    ],
)
def test_a_misfit_is_told_with_its_place(document: bytes, words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(document, type=Outer)
    assert explained(caught.value) == words
