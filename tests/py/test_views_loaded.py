"""What a report says of latency beside a stream, of a run on hardware that is made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from perch.views import loaded
from perch.views.draw import svg
from perch.views.measured import Figures
from tests.py.shown import Document, Made, fabric, flow, record


@pytest.fixture
def made() -> Made:
    return fabric()


def test_several_pairs_have_medians_and_no_tail_that_one_lacks() -> None:
    one: Figures = {"mean": 1, "p50": 2, "p95": 3, "p99": 4, "p99_9": 5, "max": 6}
    other: Figures = {"mean": 3, "p50": 4, "p95": 5, "p99": 6, "p99_9": 9, "max": 60}
    merged = loaded.merged([one, other])
    assert merged == {"mean": 2, "p50": 3, "p95": 4, "p99": 5, "p99_9": 7, "max": 60}
    merged = loaded.merged([one, other | {"p99_9": None}])
    assert (merged["p99_9"], merged["max"]) == (None, 60)


def _with_load(made: Made) -> None:
    """n1 to n2 once more, in the round in which a stream leaves n1; once with other queue pairs."""
    made.plan["rounds"] = [
        {"flows": [one for one in turn["flows"] if one["test"] == test]}
        for turn in made.plan["rounds"]
        for test in ("latency", "read", "bandwidth")
    ]

    def named(one: Document, test: str, title: str) -> Document:
        name = f"{test}/{one['client']}/{one['server']}/0/1"
        return one | {"test": test, "id": name, "title": title}

    latency, stream = flow("latency", "n1", "n2"), flow("bandwidth", "n1", "n3")
    added = [
        named(latency, "loaded", "Loaded | latency"),
        named(latency, "deep", "Deep latency"),
        named(stream, "load", "Load"),
        named(flow("bandwidth", "n3", "n4"), "load", "Load"),
    ]
    made.plan["rounds"].append({"flows": added})
    records = [record(one) for one in added]
    times = records[0]["latency_us"]
    records[0]["latency_us"] = {key: 4 * value for key, value in times.items()} | {"count": 200000}
    records[1]["params"]["queue_pairs"] = 8
    made.records += records


def test_latency_under_load_stands_beside_the_same_without(made: Made, tmp_path: Path) -> None:
    _with_load(made)
    report = made.shown(tmp_path)
    said = report.section("### Latency under load")
    # the stream between n3 and n4 is no load of these hosts
    assert "- *Loaded \\| latency* ran beside Load, which carried 97.0 Gb/s meanwhile." in said
    assert (
        "- *Deep latency* ran beside Load, which carried 97.0 Gb/s meanwhile; not compared: it was "
        "asked otherwise without load (queue\\_pairs: 1 and 8)."
        in said.replace("queue_", "queue\\_")
    )
    assert "| Loaded \\| latency | 64 B | Median | 2.00 µs | 8.00 µs | 4.00x |" in said
    assert "| Loaded \\| latency | 64 B | p99.9 | 3.00 µs | 12.0 µs | 4.00x |" in said
    assert "| Deep latency |" not in said
    chart = report.chart("loaded")
    assert len(chart.values) == 12
    assert {
        "series": "Loaded | latency, 64 B, under load", "figure": "p99", "order": 3,
        "latency_us": 10, "said": "Loaded | latency, 64 B, under load, p99: 10.0 µs",
    } in chart.values  # fmt: skip
    assert "Latency in" in svg(chart)


def test_a_pair_that_was_not_measured_without_load_is_left_out(made: Made, tmp_path: Path) -> None:
    _with_load(made)
    alone = flow("latency", "n3", "n4") | {
        "test": "loaded", "id": "loaded/n3/n4/0/1", "title": "Loaded | latency",
    }  # fmt: skip
    made.plan["rounds"][-1]["flows"].append(alone)
    slow = record(alone)
    slow["latency_us"] = dict.fromkeys(slow["latency_us"], 99) | {"count": 200000}
    idle = ("latency/n3/n4/0/1", "latency/n3/n4/0/2")
    made.records = [one for one in made.records if one["flow"] not in idle] + [slow]
    said = made.shown(tmp_path).section("### Latency under load")
    assert "| Loaded \\| latency | 64 B | Median | 2.00 µs | 8.00 µs | 4.00x |" in said


def test_a_run_without_load_has_no_such_section(made: Made, tmp_path: Path) -> None:
    made.plan["rounds"] = [
        {"flows": [one for one in turn["flows"] if one["test"] == test]}
        for turn in made.plan["rounds"]
        for test in ("latency", "read", "bandwidth")
    ]
    assert "Latency under load" not in made.shown(tmp_path).text


def test_each_rail_is_compared_with_itself_and_the_worst_is_named(
    made: Made, tmp_path: Path
) -> None:
    """Rail 1 is slow already without load; load slows rail 0 four times, and rail 1 twice."""
    rounds, records = [], []
    for test, title, times in (("latency", "Idle", (1, 5)), ("loaded", "Loaded", (4, 10))):
        flows = []
        for rail, factor in enumerate(times):
            one = flow("latency", "n1", "n2") | {"test": test, "title": title, "rail": rail}
            one["id"] = f"{test}/n1/n2/{rail}/1"
            found = record(one)
            found["rail"] = rail
            found["latency_us"] = {
                name: value if name == "count" else factor * value
                for name, value in found["latency_us"].items()
            }
            flows.append(one)
            records.append(found)
        rounds.append({"flows": flows})
    for rail, rate in enumerate((97, 48.5)):
        one = flow("bandwidth", "n1", "n2")
        one |= {"test": "load", "title": "Load", "rail": rail, "id": f"load/n1/n2/{rail}/1"}
        rounds[1]["flows"].append(one)
        found = record(one)
        found["rail"], found["bandwidth"]["gbit_s"] = rail, rate
        records.append(found)
    for one in made.plan["hosts"].values():
        one["devices"] = [{"name": f"mlx5_{rail}"} for rail in range(2)]
    made.plan["rounds"], made.records = rounds, records
    said = made.shown(tmp_path).section("### Latency under load")
    assert "- *Loaded* ran beside Load, which carried 146 Gb/s meanwhile." in said
    assert "| Loaded | 64 B | Median | 6.00 µs | 14.0 µs | 2.33x |" in said
    worst = "Loaded, rail 0 (slowed most of 2)"
    assert f"| {worst} | 64 B | Median | 2.00 µs | 8.00 µs | 4.00x |" in said
