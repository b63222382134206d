"""Transfers as a report shows them, and published curves beside them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
import yaml

from perch.judge import columns
from perch.model.record import Record
from perch.views import measured, references, transfers
from perch.views.draw import svg
from perch.views.inputs import Run
from perch.views.measured import ABOUT_COLUMNS, Figures, Point, Results
from perch.views.plan import PlannedTest
from tests.py.shown import Document, Made, host, plan, shown, table_faults, verdict

CURVES = Path(__file__).parents[2] / "reports/limits/reference"


def figures(gbyte_s: float) -> Figures:
    return {
        "peak_gbyte_s": gbyte_s * 2, "gbyte_s": gbyte_s, "min": 1, "mean": 2, "p50": 3, "p99": 4,
        "transfers_per_s": 5,
    }  # fmt: skip


def results(sizes: list[Point], **about: Any) -> Results:
    told = dict.fromkeys(ABOUT_COLUMNS) | {"tool.name": "perch", "params.completion": "busy"}
    name = about.pop("title", "t")
    return Results(PlannedTest(name, name, "transfer"), "transfer", told | about, "", sizes)


# ---- what was measured ---------------------------------------------------------------------------


def _record(
    flow: str, kind: str, pair: int | None, gbit_s: float, least: float, **more: Any
) -> Document:
    return {
        "schema": "perch.record/2", "run": "r", "flow": flow, "test": "t", "repeat": 1, "rail": 0,
        "scope": "software", "tool": {"name": "perch"}, "op": "write", "kind": kind,
        "definition": "batch_completion", "status": "ok",
        "params": {"size_bytes": 8, "batch": 4},
        "client": {"host": "a", "device": f"d{pair}"},
        "server": {"host": "b", "device": f"e{pair}"},
        "transfer": {} if pair is None else {"pair": pair},
        "bandwidth": {"gbit_s": gbit_s, "messages_per_s": 5},
        "latency_us": {"min": least, "mean": 9, "p50": 8}, **more,
    }  # fmt: skip


def _entries(records: list[Document]) -> pl.DataFrame:
    frame = columns.frame([msgspec.convert(one, Record) for one in records])
    return transfers.entries(measured.results(frame))


def test_pairs_and_sums_become_points_in_gigabytes() -> None:
    found = _entries(
        [
            _record("t/a/b/0/1", "transfer", 0, 8, 3),
            _record("t/a/b/0/1", "transfer", 1, 16, 2),
            _record("t/a/b/0/1", "sum", None, 24, 2),
            _record("t/a/b/0/2", "sum", None, 40, 1),
        ]
    )
    (point,), devices = transfers.by_test(found)["t"]
    assert (point.size_bytes, point.batch, point.records) == (8, 4, 2)
    # medians over repeats, the least of the least times
    assert point.figures == {
        "peak_gbyte_s": None, "gbyte_s": 4, "min": 1, "mean": 9, "p50": 8, "p99": None,
        "transfers_per_s": 5, "ceiling_gbyte_s": None,
    }  # fmt: skip
    assert {pair: of["gbyte_s"] for pair, of in point.pairs.items()} == {0: 1, 1: 2}
    assert devices == {0: ("d0", "e0"), 1: ("d1", "e1")}


def test_of_what_one_flow_reports_twice_the_last_counts() -> None:
    found = _entries([_record("t/a/b/0/1", "sum", None, rate, 1) for rate in (8, 80)])
    (point,), _ = transfers.by_test(found)["t"]
    assert (point.records, point.get("gbyte_s")) == (1, 10)


# ---- tables --------------------------------------------------------------------------------------


def point(total: Figures | None, pairs: dict[int, Figures]) -> Point:
    return Point(1024, 1, total, batch=128, pairs=pairs)


ROW = ["1.00", "2.00", "3.00", "4.00", "5.00"]


def test_one_pair_has_one_row_a_size_and_batch() -> None:
    table = transfers.table(results([point(figures(7), {0: figures(7)})]))
    assert table.rows == [["1 KiB", "128", "0.131", "14.0", "7.00", *ROW]]
    assert table.pairs is None


def test_several_pairs_have_the_slowest_named_and_a_table_of_their_own() -> None:
    test = results([point(figures(7), {0: figures(3), 1: figures(4)})])
    test.devices = {0: ("a", "b"), 1: None}
    table = transfers.table(test)
    assert table.rows == [["1 KiB", "128", "0.131", "14.0", "7.00", *ROW, "pair 0: 3.00"]]
    assert table.pairs is not None
    assert table.pairs.rows == [
        ["1 KiB", "128", "**0**", "a to b", "6.00", "3.00", *ROW],
        ["1 KiB", "128", "1", "-", "8.00", "4.00", *ROW],
    ]


def test_without_a_sum_the_pairs_are_all_there_is() -> None:
    table = transfers.table(results([point(None, {4: figures(3), 1: figures(2)})]))
    assert [row[2] for row in table.rows] == ["4", "**1**"]
    assert table.pairs is None


def test_many_rows_are_cut_and_the_rest_is_counted() -> None:
    sizes = [
        Point(size, 1, None, batch=1, pairs={0: figures(1), 1: figures(2)})
        for size in range(1, 151)
    ]
    table = transfers.table(results(sizes))
    assert (len(table.rows), table.more) == (200, 100)


@pytest.mark.parametrize(
    ("records", "about", "end"),
    [
        (
            3,
            {
                "params.completion": "event", "provider": "tcp;ofi_rxm", "link.layer": "loopback",
                "params.devices": 2, "params.queue_pairs": 1, "params.threads": 2,
                "params.consecutive": True, "params.session": False, "params.verify": True,
            },
            "avg a pair's bytes over its time, all pairs' over the longest of these times; waiting "
            "by events; provider tcp;ofi_rxm; over loopback; 2 pairs of devices; 1 queue pair "
            "each; 2 threads; transfers posted one by one; without a session; every byte checked; "
            "medians of 3 records a row.",
        ),
        (
            1,
            {"params.devices": 1},
            "avg all bytes over the whole time; busy polling; 1 pair of devices.",
        ),
        (1, {"tool.name": "mori", "params.completion": None}, "avg as mori prints it."),
    ],
)  # fmt: skip
def test_a_note_says_what_is_known_of_the_figures(records: int, about: Document, end: str) -> None:
    said = transfers.note(results([Point(8, records, None)], **about))
    assert said.partition("fastest batch, ")[2] == end


# ---- lines of charts -----------------------------------------------------------------------------


def sweep(title: str, sizes: list[int], batches: list[int]) -> Results:
    points = [
        Point(size, 1, {"gbyte_s": size * batch}, batch=batch)
        for size in sizes
        for batch in batches
    ]
    return results(points, title=title)


SWEEPS = [
    sweep("s", [8, 16], [1]), sweep("b", [8], [1, 2]), sweep("g", [1, 2], [1, 2, 4, 8, 16]),
    sweep("p", [8], [1]),
]  # fmt: skip


def _lines(along: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for test in SWEEPS:
        for value in transfers.lines(test, along):
            found.setdefault(value["series"], []).append(value["gbyte_s"])
    return found


def test_of_several_batches_the_least_the_middle_and_the_largest_are_lines() -> None:
    assert _lines("size") == {
        "s": [8, 16], "g, batch 1": [1, 2], "g, batch 4": [4, 8], "g, batch 16": [16, 32], "p": [8],
    }  # fmt: skip


def test_along_the_batch_there_is_only_what_has_several() -> None:
    assert _lines("batch") == {
        "b": [8, 16], "g, 1 B": [1, 2, 4, 8, 16], "g, 2 B": [2, 4, 8, 16, 32],
    }  # fmt: skip


def test_without_a_sum_each_pair_has_its_line() -> None:
    points = [
        Point(size, 1, None, batch=1, pairs={0: figures(1), 7: figures(2)}) for size in (1, 2)
    ]
    series = {one["series"] for one in transfers.lines(results(points, title="m"), "size")}
    assert series == {"m, pair 0", "m, pair 7"}


@pytest.mark.parametrize(
    ("sizes", "batches", "left_out"),
    [
        ([8, 16], [1, 2, 4, 8], [True, False]),
        ([8, 16], [1, 2, 4], [False, False]),
        ([8], [1, 2, 4, 8], [False, False]),
    ],
)
def test_a_chart_says_whether_it_leaves_lines_out(
    sizes: list[int], batches: list[int], left_out: list[bool]
) -> None:
    test = sweep("t", sizes, batches)
    assert [transfers.leaves_out(test, along) for along in ("size", "batch")] == left_out


# ---- published curves ----------------------------------------------------------------------------


def curve(rows: list[tuple[float, float, float]], title: str = "C") -> Document:
    return {
        "schema": "perch.reference/1", "title": title, "source": "S", "cite": "P",
        "configuration": "K",
        "rows": [
            {"size_bytes": size, "batch": batch, "avg_gbyte_s": rate} for size, batch, rate in rows
        ],
    }  # fmt: skip


CHOSEN = [
    references.reference(file, document)
    for file, document in {
        "s": curve([(8, 1, 5), (16, 1, 6)]),
        "b": curve([(8, 1, 5), (8, 2, 7)], "D"),
        "n": None,
        "x": curve([(8, 1, 5), (16, 2, 7)]),
        "z": curve([(8, 1, 0), (16, 1, 7)]),
    }.items()
]


def test_a_curve_is_drawn_in_the_chart_that_it_goes_along() -> None:
    assert list(references.points(CHOSEN, "size")) == [
        {
            "series": "C (P)",
            "gbyte_s": rate,
            "size_bytes": size,
            "batch": 1,
            "origin": "published",
            "said": f"C (P): {rate} GB/s",
        }
        for size, rate in ((8, 5), (16, 6))
    ]


def test_what_is_not_drawn_says_why() -> None:
    assert references.lines(CHOSEN, ["size"]) == [
        "*C*: S; K.",
        "*D*: S; K. Not drawn: this run has no transfers along the batch.",
        "`n` cannot be drawn: it is not a perch.reference/1 document.",
        "`x` cannot be drawn: its rows go neither along the size at one batch nor along the batch "
        "at one size.",
        "`z` cannot be drawn: a row of it has no positive avg_gbyte_s.",
    ]


@pytest.mark.parametrize(
    ("rows", "along"),
    [
        ([(8, 1), (16, 1)], "size"),
        ([(16, 1), (8, 1)], None),
        ([(8, 1), (8, 1)], None),
        ([(8, 1), (8, 2)], "batch"),
    ],
)
def test_points_out_of_order_are_no_curve(rows: list[tuple[int, int]], along: str | None) -> None:
    points = [references.Row(size, batch, 1) for size, batch in rows]
    assert references.along(points) == along


@pytest.mark.parametrize("file", sorted(CURVES.glob("*.yml")), ids=lambda file: file.stem)
def test_the_published_curves_can_be_drawn(file: Path) -> None:
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert references.reference(file.name, document).fault == ""


PRINTED = Path(__file__).parents[1] / "fixtures/mori"
_KEYS = ("size_bytes", "total_mb", "peak_gbyte_s", "avg_gbyte_s", "min_us", "avg_us")


@pytest.mark.parametrize("file", sorted(CURVES.glob("*.yml")), ids=lambda file: file.stem)
def test_the_published_curves_are_as_they_were_printed(file: Path) -> None:
    rows = yaml.safe_load(file.read_text(encoding="utf-8"))["rows"]
    table = (PRINTED / f"{file.stem}.txt").read_text(encoding="utf-8")
    printed = [
        [float(number) for number in re.findall("[0-9.]+", line)]
        for line in table.splitlines()
        if re.match(r"\| +[0-9]", line)
    ]
    assert [[row[key] for key in _KEYS] for row in rows] == [
        [numbers[0], *numbers[-5:]] for numbers in printed
    ]
    for row in rows:
        assert row["total_bytes"] == row["size_bytes"] * row["batch"]
        assert row["total_bytes"] / 1e6 == pytest.approx(row["total_mb"], abs=0.005)


# ---- a report ------------------------------------------------------------------------------------


def _transfer(
    test: str, kind: str, size: int, batch: int, pair: int | None, pairs: int, rate: float,
    us: float,
) -> Document:  # fmt: skip
    peak = {} if pair is None and pairs > 1 else {"peak_gbit_s": rate * 9}
    return {
        "schema": "perch.record/2", "run": "made-by-hand", "flow": f"{test}/alpha/beta/0/1",
        "test": test, "repeat": 1, "rail": 0, "scope": "software",
        "tool": {"name": "perch", "version": "0"}, "backend": "tcp", "op": "write", "kind": kind,
        "definition": "batch_completion", "link": {"layer": "loopback"}, "status": "ok",
        "client": {"host": "alpha", "device": f"a{pair}"},
        "server": {"host": "beta", "device": f"b{pair}"},
        "params": {
            "size_bytes": size, "batch": batch, "queue_pairs": 2, "threads": pairs,
            "devices": pairs, "consecutive": False, "session": True, "completion": "busy",
            "verify": False,
        },
        "latency_us": {
            "count": 2000, "min": us * 0.9, "max": us * 3, "mean": us, "p50": us * 0.99,
            "p99": us * 2,
        },
        "bandwidth": {
            "gbit_s": rate * 8, "peak_definition": "fastest_batch",
            "messages_per_s": rate * 1e9 / size, "bytes": 1e9, **peak,
        },
        "transfer": {"pairs": pairs, "batch_bytes": size * batch}
        | ({} if pair is None else {"pair": pair}),
    }  # fmt: skip


def _flow(test: str) -> Document:
    return {
        "id": f"{test}/alpha/beta/0/1", "test": test, "title": f"Test {test}", "tool": "perch",
        "kind": "transfer", "op": "write", "scope": "software", "client": "alpha",
        "server": "beta", "client_argv": ["perch", "transfer"],
        "expect": [{"kind": "sum", "size_bytes": 1024, "batch": 1}],
    }  # fmt: skip


@pytest.fixture
def made() -> Made:
    """`sizes`: three sizes over two pairs of devices; `batches`: seven over one."""
    records = []
    for size in (1024, 4096, 65536):
        records += [
            _transfer("sizes", "transfer", size, 128, 0, 2, 1.5, 90),
            _transfer("sizes", "transfer", size, 128, 1, 2, 1.0, 120),
            _transfer("sizes", "sum", size, 128, None, 2, 2.5, 105),
        ]
    for batch in (1, 2, 4, 8, 16, 32, 64):
        for kind, pair in (("transfer", 0), ("sum", None)):
            records.append(_transfer("batches", kind, 1024, batch, pair, 1, batch / 20, 20))
    missing = {
        "flow": "sizes/alpha/beta/0/1", "status": "error", "code": None, "message": "gone",
        "expect": {"kind": "transfer", "size_bytes": 8192, "batch": 128, "pair": 1},
    }  # fmt: skip
    loopback = {"fabric": "loopback", "scope": "software"}
    hosts = {"alpha": host(**loopback), "beta": host(**loopback)}
    coverage = {"planned": 2, "measured": 1, "missing": [missing]}
    return Made(
        plan=plan(hosts, [[_flow("sizes"), _flow("batches")]], "Transfers"),
        records=records,
        verdict=verdict("INCONCLUSIVE", "software", coverage=coverage),
    )


def drawn(picture: str) -> set[tuple[str, str]]:
    """Series and dashes of each line of a chart; published curves are dashed."""
    pattern = (
        r'<path aria-label="([^"]*)" role="graphics-symbol" '
        r'aria-roledescription="line mark"[^>]*stroke-dasharray="([^"]*)"'
    )
    return set(re.findall(pattern, picture))


def test_each_test_has_one_line_along_size_and_batch(made: Made, tmp_path: Path) -> None:
    report = made.shown(tmp_path)
    by_size, by_batch = (svg(report.chart(f"transfer_{way}")) for way in ("size", "batch"))
    assert drawn(by_size) == {("Test sizes", "1,0")}
    assert drawn(by_batch) == {("Test batches", "1,0")}
    assert ">Bandwidth in GB/s<" in by_size
    assert ">64 KiB<" in by_size
    assert "Published curves" not in report.text


def test_tables_have_all_pairs_and_the_slowest(made: Made, tmp_path: Path) -> None:
    text = made.shown(tmp_path).text
    for row in (
        "| Test sizes (sizes) | 2.50 GB/s at 1 KiB, batch 128 | 2.50 GB/s at 64 KiB, batch 128 |",
        "| Size | Batch | Total, MB | max, GB/s | avg, GB/s | min, µs | avg, µs | p50, µs |",
        "| 4 KiB | 128 | 0.524 | 2.50 | 94.5 | 105 | 104 | 210 | 610,352 | pair 1: 1.00 |",
        "| 4 KiB | 128 | **1** | a1 to b1 | 1.13 | 1.00 | 108 | 120 | 119 | 240 | 244,141 |",
        "| 1 KiB | 64 | 0.0655 | 3.60 | 3.20 | 18.0 | 20.0 | 19.8 | 40.0 | 3,125,000 |",
        "| `sizes/alpha/beta/0/1` | 8 KiB, batch 128, pair 1 | gone |",
    ):
        assert row in text
    # one pair needs no table of pairs
    assert text.count("Each pair of devices") == 1
    assert list(table_faults(text)) == []


def test_chosen_curves_are_dashed_and_a_broken_one_is_named(made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "inputs/reference"
    folder.mkdir(parents=True)
    for name in ("thor2-write-size", "cx7-read-size", "thor2-write-batch"):
        document = yaml.safe_load((CURVES / f"{name}.yml").read_text(encoding="utf-8"))
        (folder / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "half.json").write_text('{"schema": ', encoding="utf-8")
    (folder / "link.json").symlink_to(folder / "cx7-read-size.json")
    run: Run = made.write(tmp_path)
    report = shown(run)
    assert drawn(svg(report.chart("transfer_size"))) == {
        ("Test sizes", "1,0"),
        (
            "CX7 read, 1 device, one transfer at a time (MORI-IO Benchmark)",
            "6,4",
        ),
        (
            "Thor2 write, 1 device, 4 queue pairs, batches of 128 (MORI-IO Benchmark)",
            "6,4",
        ),
    }
    assert len(drawn(svg(report.chart("transfer_batch")))) == 2
    for said in (
        "Dashed lines are published figures",
        "*Thor2 write, 1 device, 16 queue pairs, 1 KiB*: MORI-IO Benchmark (ROCm/mori",
        "`inputs/reference/half.json` cannot be drawn: it is not a perch.reference/1 document.",
    ):
        assert said in report.text
    assert "link.json" not in report.text


def test_another_tools_transfers_stand_in_the_same_chart_under_their_own_title(
    made: Made, tmp_path: Path
) -> None:
    made.plan["rounds"][0]["flows"].append(_flow("theirs"))
    for size in (1024, 65536):
        theirs = _transfer("theirs", "transfer", size, 1, 0, 1, 49.4, 1360)
        theirs["tool"] = {"name": "mori"}
        theirs["params"] = {"size_bytes": size, "batch": 1}
        made.records.append(theirs)
    report = made.shown(tmp_path)
    assert drawn(svg(report.chart("transfer_size"))) == {
        (f"Test {name}", "1,0") for name in ("sizes", "theirs")
    }
    assert "avg as mori prints it" in report.text
    assert "| 64 KiB | 1 | 0.0655 | 55.6 | 49.4 |" in report.text
