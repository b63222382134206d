"""Records as columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from perch.judge import columns
from perch.model.record import Events, Interval, Record
from tests.py.checks_built import record


def test_a_scalar_leaf_is_a_column_by_its_path_and_null_where_a_record_has_none() -> None:
    frame = columns.frame([record(latency_us={"p50": 5, "count": 9}), record()])
    assert frame["latency_us.p50"].to_list() == [5, None]
    assert frame["latency_us.count"].dtype == pl.Int64
    assert frame["latency_us.p50"].dtype == pl.Float64
    assert frame["has.latency_us"].to_list() == [True, False]
    assert frame["params.size_bytes"].to_list() == [65536, 65536]


def test_every_frame_has_every_column_in_one_order_also_without_records() -> None:
    for records in ([], [record()]):
        frame = columns.frame(records)
        assert frame.columns == list(columns.COLUMNS)
        assert frame.schema == pl.Schema(columns.COLUMNS)
        assert frame.height == len(records)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"params": {}},
        {"kind": "sum", "params": {"size_bytes": 1024, "batch": 128}},
        {"kind": "transfer", "params": {"size_bytes": 8, "batch": 2}, "transfer": {"pair": 1}},
    ],
)
def test_place_and_id_are_those_of_the_record(more: dict[str, Any]) -> None:
    one = record(**more)
    frame = columns.frame([one])
    assert (frame["place"][0], frame["id"][0]) == (one.place, one.id)
    assert frame["pair"][0] == "t\ta\tb"


def test_parts_join_in_order_with_columns_that_only_one_of_them_has() -> None:
    ones: list[Record] = [record(f"t/a/b/0/{n}", **more) for n, more in enumerate(
        [{"latency_us": {"p50": 1}}, {}, {"tcp": {"retransmissions": 3}}], 1)]  # fmt: skip
    joined = columns.joined([columns.part(ones[:1]), columns.part(ones[1:])])
    assert joined.equals(columns.frame(ones))
    assert joined["row"].to_list() == [0, 1, 2]


def test_parts_in_files_are_one_frame_as_their_records_are(tmp_path: Path) -> None:
    more: list[dict[str, Any]] = [
        {"latency_us": {"p50": 1}}, {"op": "send"}, {"events": {"reset": ["errors"]}},
    ]  # fmt: skip
    ones = [record(f"t/a/b/0/{n}", **one) for n, one in enumerate(more, 1)]
    paths = [tmp_path / "0.columns", tmp_path / "1.columns"]
    for path, part in zip(paths, (ones[:1], ones[1:]), strict=True):
        columns.part(part).write_ipc(path)
    found = columns.joined([columns.read(paths)])
    assert found.equals(columns.frame(ones))
    assert found.schema == pl.Schema(columns.COLUMNS)


def test_events_have_columns_by_class() -> None:
    events = {"counts": {"drops": 0, "link": 2}, "moved": {"link": "a: m0 link_downed"},
              "reset": ["errors"]}  # fmt: skip
    frame = columns.frame([record(events=events), record()])
    assert frame["events.counts.drops"].to_list() == [0, None]
    assert frame["events.counts.link"].to_list() == [2, None]
    assert frame["events.moved.link"].to_list() == ["a: m0 link_downed", None]
    assert frame["events.reset"].to_list() == [["errors"], None]
    assert all(f"events.counts.{name}" in columns.COLUMNS for name in Events.CLASSES)


def test_the_hosts_own_count_of_segments_is_a_column() -> None:
    frame = columns.frame([record(counters={"client": {"TcpRetransSegs": 3}}), record()])
    assert frame["counters.client.TcpRetransSegs"].to_list() == [3, None]


def test_a_histogram_is_no_column() -> None:
    assert not [name for name in columns.COLUMNS if name.startswith("histogram")]


def intervals(*rates: float | None, last: float = 1, count: int | None = None) -> list[Interval]:
    made = [
        Interval(start_s=n, end_s=n + 1, gbit_s=rate, count=None if rate is not None else count)
        for n, rate in enumerate(rates)
    ]
    made[-1].end_s = (made[-1].start_s or 0) + last
    return made


@pytest.mark.parametrize(
    ("given", "share"),
    [
        (intervals(10, 10, 4, 10), 0.4),
        (intervals(10, 10, 10, 4, last=0.5), 1),  # the ragged end of a run
        (intervals(10, 4), None),
        (intervals(10, 4, 10, last=0.5), None),
        (intervals(10, 0, 10), 0),
        (intervals(0, 0, 0), 0),
        (intervals(None, None, None, count=900), 1),  # latency has no rate of its own
    ],
)
def test_the_worst_whole_interval_is_compared_with_their_median(
    given: list[Interval], share: float | None
) -> None:
    assert columns.worst_interval_share(given) == share
