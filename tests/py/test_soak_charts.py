"""The charts of a soak: what they draw, name at the ends of lines, bound and say on hover."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from perch.model.limits import Limit, LimitBound
from perch.views.charts import Chart
from perch.views.draw import svg
from tests.py.shown import Document, Shown, shown
from tests.py.soak_shown import Maker, soak_in


@pytest.fixture
def soak_of(tmp_path: Path) -> Maker:
    """`soak_of(HOSTS, INTERVALS, SECONDS)`."""
    return soak_in(tmp_path)


# ---- charts over time ----------------------------------------------------------------------------


def _line(report: Shown, chart: str, series: str, figure: str) -> list[Document]:
    return [
        value
        for value in report.chart(chart).values
        if (value["role"], value.get("series"), value.get("figure")) == ("line", series, figure)
    ]


MEAN, LOW = "mean", "lowest 0.1 s"


def test_charts_keep_the_extremes_of_what_they_thin(soak_of: Maker) -> None:
    run = soak_of(2, 900, 1)
    for line in run.lines:
        odd = line["kind"] == "interval" and line["flow"] == "bw/n1/n2/0/1"
        if odd and 700.005 < line["start_s"] < 700.02:
            line["bandwidth"].update(gbit_s=3, min_interval_gbit_s=0.25)
    report = run.shown()
    for figure, least in ((MEAN, 3), (LOW, 0.25)):
        values = _line(report, "soak_bandwidth_1", "n1 → n2", figure)
        assert min(one["v"] for one in values if one["v"] is not None) == least
    # it breaks where intervals are missing
    breaks = {one["x"] for one in report.chart("soak_bandwidth_1").values if _is_break(one)}
    assert len(breaks) == 1
    assert len(report.chart("soak_bandwidth_1").values) < 1500


def test_rails_of_a_pair_are_lines_of_their_own(soak_of: Maker) -> None:
    """What n2 sends to n1 is made another rail of what n1 sends to n2."""
    run = soak_of(2, 60, 1)
    for one in [*run.lines, *run.soak["flows"], *run.plan["rounds"][0]["flows"]]:
        name = "id" if "id" in one else "flow"
        if one.get("client") == "n2":
            one |= {"client": "n1", "server": "n2", "rail": 1}
            one[name] = one[name].replace("/n2/n1/0/", "/n1/n2/1/")
    for of in run.plan["hosts"].values():
        of["devices"] = [{"name": "mlx5_0"}, {"name": "mlx5_1"}]
    for one in run.soak["flows"]:
        if one["kind"] == "bandwidth":
            one["figures"]["bandwidth"]["lowest_interval"] = 2 - one.get("rail", 0)
    report = run.shown()
    assert sorted(report.chart("soak_bandwidth_1").series) == ["n1 → n2", "n1 → n2, rail 1"]
    said = report.section("## Key findings")
    assert "carried less than 1.00 Gb/s** (n1 to n2, rail 1, " in said


def _is_break(value: Document) -> bool:
    return bool(value["role"] == "line" and value["v"] is None)


@pytest.mark.parametrize(
    ("hosts", "series"),
    [
        (2, ["n1 → n2", "n2 → n1"]),
        (3, ["n1 → n2", "n2 → n3", "n3 → n1"]),
        (8, ["n1 → n2", "n2 → n3", "worst of 6 others"]),
    ],
)
def test_six_lines_at_most_the_worst_pairs_by_name(
    soak_of: Maker, hosts: int, series: list[str]
) -> None:
    chart = soak_of(hosts, 60, 1).shown().chart("soak_bandwidth_1")
    assert sorted(chart.series) == series
    assert len(chart.beside["labels"]) == 2 * len(series) <= 6
    many = "The chart names the 2 pairs with the most anomalies" in chart.caption
    assert many == (hosts == 8)


def test_six_temperatures_at_most(soak_of: Maker) -> None:
    chart = soak_of(8, 60, 1).shown().chart("soak_temperature")
    assert len(chart.series) == 6
    assert "hottest of all others" in chart.series


def test_stalls_that_the_verdict_has_no_room_for_have_their_bars(soak_of: Maker) -> None:
    run = soak_of(2, 60, 10)
    run.soak.update(anomalies=[], anomalies_left_out=78)
    intervals = [
        line for line in run.lines if line["kind"] == "interval" and line["flow"] == "lat/n1/n2/0/1"
    ]
    for line in intervals:
        start = line["start_s"] + 3
        stall = line | {"kind": "stall", "start_s": start, "end_s": start + 0.05}
        # these are not longer than their flow's limit, so they are no anomalies
        within = {"flow": "lat/n2/n1/0/1", "client": "n2", "server": "n1", "start_s": start + 4}
        run.lines += [stall, stall | within | {"end_s": start + 4.03}]
    report = run.shown()
    chart = report.chart("soak_anomalies")
    assert sum((one["role"], one["kind"]) == ("bar", "stall") for one in chart.values) == 59
    bars = [one for one in report.chart("soak_latency_3").values if one["role"] == "bar"]
    assert len(bars) == 59
    assert "All stalls and gaps are shown" in chart.caption


def test_turns_of_a_pair_are_one_line_that_breaks_between_them(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    run.soak.update(mode="alternating", turn_s=10)
    kept = []
    for line in run.lines:
        if line["kind"] != "interval":
            kept.append(line)
            continue
        turn = int(line["start_s"] // 10)
        # every other ten seconds; of the last ones, one interval
        if turn % 2 == 0 and line["start_s"] < 41 and line["start_s"] != 40:
            line["flow"] = re.sub("[0-9]+$", str(turn + 1), line["flow"])
            kept.append(line)
    run.lines = kept
    report = run.shown()
    assert "tests in turn" in report.text
    line_values = _line(report, "soak_bandwidth_1", "n2 → n1", MEAN)
    assert sum(value["v"] is None for value in line_values) == 2
    chart = report.chart("soak_bandwidth_1")
    assert chart.series == ["n1 → n2", "n2 → n1"]
    # a turn of a single interval is a point
    shapes = [
        value
        for value in chart.values
        if value["role"] == "shape"
        and (value["series"], value["figure"]) == ("n2 → n1", MEAN)
        and value["x"] > 40000
    ]
    assert len(shapes) == 1


def test_every_chart_is_drawn(soak_of: Maker) -> None:
    report = soak_of(2, 60, 1).shown()
    assert report.names == [
        "soak_anomalies", "soak_bandwidth_1", "soak_bandwidth_2", "soak_latency_3",
        "soak_counters", "soak_memory", "soak_temperature",
    ]  # fmt: skip
    # lines are named at their ends, or in one legend of colour and shape where names are long
    assert svg(report.chart("soak_bandwidth_1")).count("n1 → n2</text>") == 2
    memory = report.chart("soak_memory")
    assert all(f">{name}</text>" in svg(memory) for name in memory.series)
    assert "Stalls shorter than 20 ms" in report.section("### Events that the soak cannot detect")


def test_memory_is_drawn_from_the_end_of_the_warm_up(soak_of: Maker) -> None:
    run = soak_of(2, 60, 60)
    times = [line["end_s"] * 1000 for line in run.lines if line["kind"] == "sample"]
    drawn = [one for one in run.shown().chart("soak_memory").values if one["role"] == "line"]
    first = min(one["x"] for one in drawn)
    assert min(times) + 300_000 <= first < min(times) + 420_000
    assert {one["v"] for one in drawn if one["x"] == first} == {0}


@pytest.mark.parametrize("damage", ["missing", "half-written"])
def test_without_its_lines_over_time_the_tables_stand(soak_of: Maker, damage: str) -> None:
    run = soak_of(2, 60, 1)
    written = run.made.write(run.root)
    if damage == "half-written":
        text = "".join(json.dumps(line) + "\n" for line in run.lines)
        (run.root / "intervals.jsonl").write_text(text[:-20], encoding="utf-8")
    report = shown(written)
    assert "intervals.jsonl is missing or damaged, so nothing is drawn over time" in report.text
    assert "| a1 | FAIL |" in report.text
    assert report.names == ["soak_anomalies"]


def _names(chart: Chart, dataset: str) -> list[str]:
    return [one["name"] for one in chart.beside[dataset]]


def test_each_line_has_its_name_at_its_end(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    # a pair that was lost half-way is named at the right edge, too
    run.lines = [
        one for one in run.lines if one.get("flow") != "bw/n2/n1/0/1" or one["start_s"] < 30
    ]
    report = run.shown()
    chart = report.chart("soak_bandwidth_1")
    assert _names(chart, "labels") == [
        "mean n1 → n2", "lowest 0.1 s n1 → n2", "mean n2 → n1", "lowest 0.1 s n2 → n1",
    ]  # fmt: skip
    edge = {one["x"] for one in chart.beside["labels"]}
    assert len(edge) == 1 and edge.pop() >= 60000
    assert ">lowest 0.1 s n1 → n2</text>" in svg(chart)
    assert ">p99 n2 → n1</text>" in svg(report.chart("soak_latency_3"))
    assert ">hottest of all others</text>" in svg(report.chart("soak_temperature"))
    assert len(report.chart("soak_memory").beside["labels"]) == 6


def test_names_of_lines_that_end_together_do_not_overlap(soak_of: Maker) -> None:
    labels = soak_of(2, 60, 1).shown().chart("soak_memory").beside["labels"]
    heights = sorted(one["v"] for one in labels)
    top = max(1, *heights)
    apart = [(b - a) / top * 240 for a, b in pairwise(heights)]
    assert min(apart) > 10


def test_nothing_carried_is_drawn_as_zero(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    for line in run.lines:
        if line["kind"] == "interval" and line["test"] == "bw":
            line["bandwidth"].update(gbit_s=0, min_interval_gbit_s=0)
    for flow in run.soak["flows"]:
        if flow["test"] == "bw":
            flow["figures"]["bandwidth"].update(median=0)
    chart = run.shown().chart("soak_bandwidth_1")
    assert len(chart.beside["labels"]) == 4
    assert chart.beside["limits"] == []


def test_built_in_limits_of_the_scope_are_lines(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    report = run.shown()
    # of software: half of the median interval, a tenth of it in the lowest window
    assert _names(report.chart("soak_bandwidth_1"), "limits") == [
        "limit of the mean: at least 47.9 Gb/s (50 % of the median)",
        "limit of the lowest 0.1 s: at least 9.58 Gb/s (10 % of the median)",
    ]
    latency = report.chart("soak_latency_3")
    assert _names(latency, "limits") == ["limit of p99: at most 20,000 µs"]
    assert latency.beside["limits"][0]["bound"] == 20000
    assert "limit of p99: at most 20,000 µs</text>" in svg(latency)
    for flow in run.soak["flows"]:
        flow["scope"] = "hardware"
    report = run.shown()
    assert _names(report.chart("soak_latency_3"), "limits") == [
        "limit of p99: at most 1,200 µs (10 times the median)"
    ]


def test_limits_of_the_run_take_the_place_of_built_in_ones(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    run.limits = [
        Limit("least", "", {"test": "bw"}, "soak.interval_gbit_s", LimitBound(min=90), "Gb/s", "",
              "required", ""),
        Limit("tail", "", {}, "soak.p99_us", LimitBound(max=500), "us", "", "required", ""),
    ]  # fmt: skip
    report = run.shown()
    assert _names(report.chart("soak_bandwidth_1"), "limits")[0] == (
        "limit of the mean: at least 90 Gb/s (least)"
    )
    assert len(report.chart("soak_bandwidth_2").beside["limits"]) == 2
    assert _names(report.chart("soak_latency_3"), "limits") == [
        "limit of p99: at most 500 µs (tail)"
    ]


def test_limits_of_pairs_with_unlike_medians_name_their_pairs(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    for flow in run.soak["flows"]:
        if flow["flow"] == "bw/n2/n1/0/1":
            flow["figures"]["bandwidth"].update(median=20)
    assert _names(run.shown().chart("soak_bandwidth_1"), "limits") == [
        "limit of the mean: at least 47.9 Gb/s (50 % of the median of n1 → n2)",
        "limit of the mean: at least 10 Gb/s (50 % of the median of n2 → n1)",
        "limit of the lowest 0.1 s: at least 9.58 Gb/s (10 % of the median of n1 → n2)",
        "limit of the lowest 0.1 s: at least 2 Gb/s (10 % of the median of n2 → n1)",
    ]


def test_each_value_is_said_on_hover(soak_of: Maker) -> None:
    report = soak_of(2, 30, 60).shown()
    drawn = svg(report.chart("soak_bandwidth_2"))
    said = [one for one in re.findall("<title>([^<]*)</title>", drawn) if "Gb/s, " in one]
    # both figures of each of the 30 intervals, one of which the gap took; each said once
    assert len(said) == len(set(said)) == 2 * 30 + 2 * 29
    assert "n2 → n1, mean: 95.7 Gb/s, 0:02:00 after the start" in said
    assert "<title>limit of the mean: at least 47.9 Gb/s (50 % of the median)</title>" in drawn
    latency = svg(report.chart("soak_latency_3"))
    assert re.search(r"<title>n1 → n2, p99: [0-9.]+ µs, 0:02:00 after the start<", latency)
    assert re.search(r"<title>stall, [0-9.]+ s after the start</title>", latency)
    counters = svg(report.chart("soak_counters"))
    assert "<title>retransmissions at n1: 3, 0:06:00 after the start</title>" in counters
    assert "Jan 01, 1970" not in re.sub("<g[^>]*>", "", drawn + latency + counters)
    assert "°C, " in svg(report.chart("soak_temperature"))
    assert " MB, " in svg(report.chart("soak_memory"))


def test_of_many_values_the_extremes_are_said_on_hover(soak_of: Maker) -> None:
    run = soak_of(2, 900, 1)
    for line in run.lines:
        odd = line["kind"] == "interval" and line["flow"] == "bw/n1/n2/0/1"
        if odd and 700.005 < line["start_s"] < 700.02:
            line["bandwidth"].update(gbit_s=3)
    drawn = svg(run.shown().chart("soak_bandwidth_1"))
    assert "<title>n1 → n2, mean: 3.00 Gb/s, 0:11:40 after the start</title>" in drawn
    assert drawn.count("Gb/s, ") / 2 < 4 * 50


def test_labels_of_the_time_leave_room_between_them(soak_of: Maker) -> None:
    run = soak_of(2, 15, 60)
    run.soak["passed_s"] = 911
    report = run.shown()
    for name in ("soak_anomalies", "soak_bandwidth_2", "soak_latency_3", "soak_memory"):
        labels = re.findall(
            r'translate\(([0-9.]+),16\)"[^>]* opacity="1">([0-9]+ min)<', svg(report.chart(name))
        )
        # 12 pixels high: "10 min" is some 40 pixels wide in a wide font
        gaps = [float(b[0]) - float(a[0]) for a, b in pairwise(labels)]
        assert len(labels) >= 5
        assert min(gaps) > 45, (name, labels)
