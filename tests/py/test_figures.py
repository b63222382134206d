"""The figures by which runs are compared: their keys, their terms, and their fabric."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import polars as pl
import pytest

from perch.checks import fabric, figures
from perch.judge import columns
from perch.model.baseline import Fabric
from perch.model.figures import encode, rounded
from perch.model.record import Record
from perch.model.text import UNSEEN

Document = dict[str, Any]


def record(**more: Any) -> Document:
    return {
        "schema": "perch.record/2", "run": "r", "flow": "t/a/b/0/1", "test": "t", "repeat": 1,
        "rail": 0, "scope": "hardware", "tool": {"name": "perch"}, "status": "ok",
        "client": {"host": "a"}, "server": {"host": "b"}, "kind": "latency",
        "params": {"size_bytes": 64, "batch": 8}, **more,
    }  # fmt: skip


def found(*records: Document) -> pl.DataFrame:
    return figures.figures(columns.frame([msgspec.convert(one, Record) for one in records]))


@pytest.mark.parametrize(
    ("kind", "key"),
    [("latency", "t/a/b/64/latency_us.p50"), ("sum", "t/a/b/64x8/latency_us.p50")],
)
def test_a_key_is_made_of_what_names_a_figure_in_every_run(kind: str, key: str) -> None:
    assert key in found(record(kind=kind))["key"].to_list()


def test_a_figure_that_is_missing_is_null_and_never_left_out() -> None:
    # a percentile of too few samples is missing, too
    times = {"count": 500, "mean": 2, "p50": 1, "p99": 3, "p99_9": 4}
    values = found(record(latency_us=times))
    assert values["value"].to_list() == [1, 2, None, None]


def test_what_was_not_measured_has_no_figures() -> None:
    assert found(record(status="error")).height == 0


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (
            "kind=latency definition=completion op=read",
            "kind=latency definition=half_round_trip op=read",
            "definition: completion and half_round_trip",
        ),
        ("kind=latency op=read", "kind=latency", "op: read and none"),
        ("op=read", "op=read", None),
    ],
)
def test_the_first_thing_that_differs_is_named(one: str, other: str, said: str | None) -> None:
    assert figures.unlike(one, other) == said


@pytest.mark.parametrize(("kind", "pairs", "odd"), [
    ("bandwidth", 4, "outstanding: 64 and none"), ("bandwidth", 1, None), ("rate", 4, None),
])  # fmt: skip
def test_a_depth_that_queue_pairs_shared_is_not_comparable(
    kind: str, pairs: int, odd: str | None
) -> None:
    of = record(kind=kind, params={"queue_pairs": pairs, "outstanding": 64})
    now = figures.terms(columns.frame([msgspec.convert(of, Record)]))[0]
    was = " ".join(word.replace("outstanding_each", "outstanding") for word in now.split(" "))
    assert figures.unlike(was, now) == odd


def test_repeats_have_a_median_and_a_coefficient_of_variation() -> None:
    # by hand: median 3, mean 4, sample standard deviation sqrt(7), which is 66.14 % of the mean
    assert figures.of_repeats([2, 3, 7]) == figures.Repeats(3, 66.1437828, 3)
    assert figures.of_repeats([5]) == figures.Repeats(5, None, 1)


END = {"rate_gbit_s": 100, "mtu_bytes": 4096, "layer": "Ethernet"}
ENDS = [{"device": f"mlx5_{i}", **END} for i in (0, 1)]
FABRIC: Document = {
    "id": "0123456789ab", "suite": "S", "limits": "roce", "scope": "hardware",
    "hosts": {"a": {"fabric": "roce", "scope": "hardware", "ends": ENDS}},
}  # fmt: skip


def _put(*path: str | int, value: object) -> Document:
    changed = copy.deepcopy(FABRIC)
    part: Any = changed
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("now", "said"),
    [
        # a device that was not used again makes no other fabric
        (_put("hosts", "a", "ends", value=FABRIC["hosts"]["a"]["ends"][:1]), []),
        (_put("limits", value="tcp"), ["the limits were roce and are tcp"]),
        (_put("scope", value="software"), ["the scope was hardware and is software"]),
        (_put("hosts", "b", value=FABRIC["hosts"]["a"]), ["the hosts were a and are a, b"]),
        (
            _put("hosts", "a", "ends", 0, "mtu_bytes", value=1024),
            [
                "a has mlx5_0 at 100 Gb/s, MTU 1024; it had mlx5_0 at 100 Gb/s, MTU 4096; mlx5_1 "
                "at 100 Gb/s, MTU 4096"
            ],
        ),
    ],
)
def test_a_fabric_is_another_one_by_its_limits_scope_hosts_and_ends(
    now: Document, said: list[str]
) -> None:
    was, is_now = (msgspec.convert(one, Fabric) for one in (FABRIC, now))
    assert list(fabric.differences(was, is_now)) == said


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0000120, "0.000012"), (1.234e-5, "0.00001234"), (1e17, "100000000000000000"),
     (123456789012345678, "123456789012345678"), (8.0, "8"), (9.50e1, "95"), (0.1 + 0.2, "0.3")],
)  # fmt: skip
def test_a_number_has_one_spelling(value: float, text: str) -> None:
    assert encode(rounded(value)).decode() == text


def test_json_holds_no_sign_raw_that_a_terminal_or_a_reader_of_lines_obeys() -> None:
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10000)]))
    text = encode({"a": every}).decode()
    assert not UNSEEN.search(text)
    assert json.loads(text) == {"a": every}
