"""What a report says of a soak, from a verdict and lines that are made by hand.

Some hosts in a ring, bandwidth twice and latency; one gap, a step down, a process that grows, and
many stalls.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from perch.exports import soak_prom
from perch.views import soak_lines as lines
from perch.views import soak_words as said
from perch.views.draw import svg
from perch.views.soak_lines import BOTH, LOWEST, Mark, Point
from tests.py.shown import Document, Made, Shown, check, host, plan, shown, table_faults, verdict

MADE = Path(__file__).parents[1] / "fixtures/soak_report/made.jq"


def _part(name: str, hosts: int, intervals: int, seconds: float) -> list[Any]:
    words = ["jq", "-nc", "--arg", "part", name]
    for key, value in (("hosts", hosts), ("n", intervals), ("each", seconds)):
        words += ["--argjson", key, str(value)]
    done = subprocess.run([*words, "-f", str(MADE)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@dataclass
class SoakRun:
    """A soak that a test may change before it is shown."""

    root: Path
    plan: Document
    soak: Document
    lines: list[Document]
    checks: list[Document]
    is_soak: bool = True

    @property
    def made(self) -> Made:
        hosts = {name: host(**of) for name, of in self.plan["hosts"].items()}
        coverage = {"planned": 6, "measured": 0, "missing": []}
        flows = [turn["flows"] for turn in self.plan["rounds"]]
        of_soak = {"soak": self.soak} if self.is_soak else {}
        return Made(
            plan(hosts, flows, "Soak"),
            [],
            verdict("FAIL", "software", coverage=coverage, checks=self.checks, facts=[], **of_soak),
        )

    def shown(self) -> Shown:
        text = "".join(json.dumps(line) + "\n" for line in self.lines)
        (self.root / "intervals.jsonl").write_text(text, encoding="utf-8")
        return self.made.shown(self.root)


Maker = Callable[..., SoakRun]


@pytest.fixture
def soak_of(tmp_path: Path) -> Maker:
    """`soak_of(HOSTS, INTERVALS, SECONDS)`."""

    def make(hosts: int, intervals: int, seconds: float) -> SoakRun:
        parts = {
            name: _part(name, hosts, intervals, seconds) for name in ("plan", "soak", "intervals")
        }
        return SoakRun(tmp_path, parts["plan"][0], parts["soak"][0], parts["intervals"], [])

    return make


# ---- times in words ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.05, "50.0 ms"), (0.0995, "0.0995 s"), (12.34, "12.3 s"), (119.99, "120 s"),
        (120, "2 min"), (303, "5 min 03 s"), (3599.9996, "60 min"), (7199, "119 min 59 s"),
        (86340, "23 h 59 min"), (86400, "24 h"), (172800, "2 d"), (273600, "3 d 4 h"), (None, "-"),
    ],
)  # fmt: skip
def test_a_span_is_as_somebody_would_say_it(seconds: float | None, text: str) -> None:
    assert said.span(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(86400, "24 h"), (5400, "90 min"), (90, "90 s"), (1, "1 s"), (0.5, "0.500 s"), (None, "-")],
)
def test_what_was_asked_is_as_it_was_asked(seconds: float | None, text: str) -> None:
    assert said.asked(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0 s"), (119.96, "120.0 s"), (120, "0:02:00"), (3723.9, "1:02:03"), (90061, "25:01:01"),
     (None, "-")],
)  # fmt: skip
def test_a_time_counts_from_the_start(seconds: float | None, text: str) -> None:
    assert said.since(seconds) == text


@pytest.mark.parametrize(
    ("part", "text"), [(1, "100 %"), (0.99999, "99.99 %"), (0.5, "50.00 %"), (0, "0.00 %")]
)
def test_a_share_is_all_only_where_it_is_all(part: float, text: str) -> None:
    assert said.share(part) == text


# ---- lines of charts -----------------------------------------------------------------------------


def test_of_each_stretch_the_extremes_and_a_hole_stay() -> None:
    odd = {333: 9, 334: -9, 335: None}
    thinned = lines.thinned([Point(x, odd.get(x, x % 3)) for x in range(600)], BOTH)
    values = [point.v for point in thinned if point.v is not None]
    assert len(thinned) == 301
    assert (min(values), max(values)) == (-9, 9)
    assert [point.x for point in thinned] == sorted(point.x for point in thinned)
    assert len(thinned) - len(values) == 1


def test_few_points_stay_as_they_are() -> None:
    points = [Point(1, 2), Point(2, None)]
    assert lines.thinned(points, LOWEST) == points


def test_numbers_that_would_lie_on_each_other_are_left_out() -> None:
    marks = [Mark("gap", x, x, name) for x, name in ((0, "a"), (10, "b"), (100, "c"))]
    assert [mark.id for mark in lines.numbers(marks, 1000)] == ["a", "c"]


def test_bars_that_nearly_touch_are_one() -> None:
    marks = [Mark("gap", x, x2) for x, x2 in ((0, 5), (6, 8), (7, 7), (20, 30))]
    assert lines.bars(marks, 1000) == [(0, 8), (20, 30)]


# ---- the first lines -----------------------------------------------------------------------------


def test_the_first_lines_say_how_long_and_what_was_found(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    run.soak["stall_limits_s"] = [0.04]
    text = run.shown().text
    first = text.partition("| Test")[0]
    assert (
        "**Soak of 1 min**, all tests at once, an interval each 1 s: 55.0 s measured (91.66 %) by "
        "the flow that has least, 3 gaps, 5.01 s without a connection in the worst flow. It ran to "
        "its end." in first
    )
    assert (
        "**Anomalies**: 1 gap, 75 stalls longer than 40 ms, 1 change of level, 1 process that "
        "grows." in first
    )
    # a flow's own stalls are more than those that are anomalies
    assert "| Stalls of 20 ms and more |" in text


def test_what_was_not_measured_for_another_reason_is_no_gap(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    for flow in run.soak["flows"]:
        flow.update(gaps=0, gap_s=0)
    assert "(91.66 %) by the flow that has least, no gap." in run.shown().text


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (
            "running",
            "**It still runs**: the first 30.0 s are here, all intervals that had ended when it "
            "was fetched.",
        ),
        ("stopped", "**It was stopped**"),
        ("short", "**It ended before its time was over.**"),
        ("none", "**Nothing of it was measured.**"),
    ],
)
def test_a_soak_that_did_not_end_well_says_so(soak_of: Maker, state: str, text: str) -> None:
    run = soak_of(2, 60, 1)
    run.soak.update(state=state, running=state == "running", passed_s=30, measured_s=30)
    assert text in run.shown().text


@pytest.mark.parametrize(
    ("measured_s", "state", "text"),
    [
        (0, "none", "Nothing was measured in which an anomaly could have shown."),
        (9, "running", "No anomaly was found in what was measured so far."),
        (60, "done", "No anomaly was found."),
    ],
)
def test_no_anomaly_says_no_more_than_was_measured(
    soak_of: Maker, measured_s: float, state: str, text: str
) -> None:
    run = soak_of(2, 60, 1)
    run.soak.update(measured_s=measured_s, state=state, anomalies=[], anomaly_counts={})
    assert text in run.shown().text


def test_a_run_that_is_no_soak_has_nothing_of_one(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    run.is_soak = False
    assert not re.search("[Ss]oak of|## The soak", run.shown().text)


# ---- anomalies -----------------------------------------------------------------------------------


def _rows(report: Shown) -> list[str]:
    """The rows of anomalies."""
    table = report.section("## The soak")
    return [line for line in table.splitlines() if re.match(r"\| [a-d][0-9]* ", line)]


def _of_kind(run: SoakRun, kind: str) -> list[Document]:
    return [one for one in run.soak["anomalies"] if one["kind"] == kind]


def test_many_alike_hide_no_other_anomaly(soak_of: Maker) -> None:
    run = soak_of(2, 60, 10)
    stalls = _of_kind(run, "stall")
    run.soak["anomalies"] = stalls + [
        one for one in run.soak["anomalies"] if one["kind"] != "stall"
    ]
    report = run.shown()
    rows = _rows(report)
    names = [f"a{i}" for i in (*range(4, 12), *range(1, 4))]
    assert [row.split(" ")[1] for row in rows] == names
    assert (
        "| a1 | FAIL | the connection was lost for 5.01 s and came back at the 3rd attempt | "
        "bw/n1/n2/0/1 | 2026-11-22 18:26:36.250 | 18:26:41.250 | 0:03:20 | 5.01 s | - | "
        "`raw/n1/flows/bw/n1/n2/0/1/client.soak`:17, 18, 19 |" in rows
    )
    assert re.search(r"a4 \| warning .* 50.0 ms \| 64 \|", rows[0])
    assert "67 more, of the same kinds or less severe" in report.text


def test_what_befalls_several_flows_at_once_is_one_row(soak_of: Maker) -> None:
    run = soak_of(2, 60, 10)
    one = _of_kind(run, "stall")[0]
    other = {
        "id": "b", "flow": "bw/n2/n1/0/1", "start_s": one["start_s"] + 0.4, "text": "longer",
        "end_s": one["start_s"] + 0.9, "duration_s": 0.5, "end": "2026-11-22T18:23:26.600Z",
        "messages": 7,
    }  # fmt: skip
    run.soak["anomalies"] = [
        one,
        one | other,
        one | {"id": "c", "start_s": one["start_s"] + 2},
        one | {"id": "d", "severity": "fail"},
    ]
    first, later, worse = _rows(run.shown())
    assert first.startswith(
        "| a4 and 1 more | warning | longer | bw/n2/n1/0/1 and 1 more | 2026-11-22 18:23:25.250 | "
        "18:23:26.600 | 9.7 s | 0.500 s | 71 |"
    )
    assert later.startswith("| c | warning | nothing was completed")
    assert worse.startswith("| d | FAIL | nothing was completed")


def test_what_anomalies_say_is_text(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    kind = "x|y<b>"
    run.soak["anomalies"][0].update(
        text="a|b <script>1</script> `c`\n**d**", kind=kind, host="h|i", evidence=["raw/a|b:1"]
    )
    run.soak["anomaly_counts"][kind] = 2
    run.soak["blind"][0]["text"] = "| <img src=x> |"
    report = run.shown()
    assert list(table_faults(report.text)) == []
    assert "<script>" not in report.text
    assert "<img" not in report.text
    assert "a\\|b &lt;script>1&lt;/script> \\`c\\` \\*\\*d\\*\\*" in report.text
    assert "<b>" not in svg(report.chart("soak_anomalies"))


# ---- charts over time ----------------------------------------------------------------------------


def _line(report: Shown, chart: str, series: str, figure: str) -> list[Document]:
    return [
        value
        for value in report.chart(chart).values
        if (value["role"], value.get("series"), value.get("figure")) == ("line", series, figure)
    ]


MEAN, LOW = "mean of the interval", "lowest 0.1 s of the interval"


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


def _is_break(value: Document) -> bool:
    return bool(value["role"] == "line" and value["v"] is None)


def test_of_many_pairs_the_worst_are_named(soak_of: Maker) -> None:
    chart = soak_of(8, 60, 1).shown().chart("soak_bandwidth_1")
    assert chart.series == ["n1 → n2", "n2 → n3", "n7 → n8", "n8 → n1", "worst of 4 others"]
    assert "The chart names the 4 pairs with the most anomalies" in chart.caption


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
    # colour and shape have one legend
    assert svg(report.chart("soak_bandwidth_1")).count(">n1 → n2</text>") == 1
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


# ---- flows and sentences -------------------------------------------------------------------------


def test_the_worst_interval_of_a_turn_counts_from_the_soaks_start(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    run.soak["flows"][0]["soak_s"] = 3000
    run.soak["flows"][1]["soak_s"] = None
    text = run.shown().text
    assert re.search(r"bw/n1/n2/0/1. \| done \|.* 0:50:20 \|", text)
    assert re.search(r"bw/n2/n1/0/1. \| done \|.* \| - \| -2.00 %", text)


def test_key_findings_name_each_tests_worst_interval(soak_of: Maker) -> None:
    run = soak_of(2, 60, 1)
    said_of = run.shown().section("## Key findings")
    assert (
        "- **No interval of Bandwidth carried less than 94.0 Gb/s** (n2 to n1, 20.1 s after the "
        "start); in the worst 0.1 s of that flow 80.0 Gb/s." in said_of
    )
    assert "- **No interval of Latency under load had a p99 above 1,040 µs**" in said_of
    # none where a flow has no figure
    run.soak["flows"][0]["figures"]["bandwidth"]["lowest_interval"] = None
    said_of = run.shown().section("## Key findings")
    assert "No interval of Bandwidth carried" not in said_of
    assert "- **No interval of Bandwidth, verified carried" in said_of


# ---- for other programs --------------------------------------------------------------------------


def _samples(text: str, name: str) -> dict[str, float]:
    """Labels and value of each sample of a family."""
    found = re.findall(rf"^perch_soak_{name}(?:{{(.*)}})? (.*)$", text, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def test_prometheus_has_the_soaks_time_anomalies_and_worst_interval(soak_of: Maker) -> None:
    soak = soak_of(2, 60, 1).soak
    soak["running"] = True
    soak["flows"][0]["figures"]["bandwidth"]["lowest_interval"] = None
    text = soak_prom.families(soak)
    times = [_samples(text, f"{name}_seconds")[""] for name in ("planned", "measured")]
    assert [*_samples(text, "running").values(), *times] == [1, 60, 55]
    anomalies = {name: count for name, count in _samples(text, "anomalies").items() if count}
    assert anomalies == {
        'kind="gap"': 1, 'kind="stall"': 75, 'kind="change"': 1, 'kind="leak"': 1,
    }  # fmt: skip
    assert _samples(text, "gap_seconds") == {
        'test="bw"': 5.01, 'test="bw-verify"': 5.01, 'test="lat"': 5.01,
    }  # fmt: skip
    # nothing of a test where one flow lacks the figure
    rates = _samples(text, "lowest_interval_bytes_per_second")
    assert rates == {'test="bw-verify"': 11_750_000_000}
    assert _samples(text, "highest_p99_seconds") == {'test="lat"': 0.00104}


def test_a_soaks_check_that_failed_tells_when_and_where(soak_of: Maker, tmp_path: Path) -> None:
    from perch.exports import junit

    run = soak_of(2, 60, 1)
    run.checks = [check("soak/gap", "fail", 1) | {"title": "No gap"}]
    text = junit.document(run.made.write(tmp_path), {})
    assert 'classname="perch.soak" name="soak/gap"' in text
    assert (
        "2026-11-22T18:23:36.250Z to 2026-11-22T18:23:41.250Z, bw/n1/n2/0/1: the connection was "
        "lost for 5.01 s and came back at the 3rd attempt "
        "(raw/n1/flows/bw/n1/n2/0/1/client.soak:17, " in text
    )
