"""What a report says of a soak, from a verdict and lines that are made by hand.

Some hosts in a ring, bandwidth twice and latency; one gap, a step down, a process that grows, and
many stalls.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perch.exports import soak_prom
from perch.views import soak_lines as lines
from perch.views import soak_words as said
from perch.views.draw import svg
from perch.views.soak_lines import BOTH, LOWEST, Mark, Point
from tests.py.shown import Document, Shown, check, table_faults
from tests.py.soak_shown import Maker, SoakRun, soak_in


@pytest.fixture
def soak_of(tmp_path: Path) -> Maker:
    """`soak_of(HOSTS, INTERVALS, SECONDS)`."""
    return soak_in(tmp_path)


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
