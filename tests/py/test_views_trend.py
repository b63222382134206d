"""`perchctl trend`: each test's median over the runs of a fabric, as one page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perch.history.trend import read
from perch.model.index import IndexLine
from perch.views import trend, trend_charts
from perch.views.charts import Chart
from perch.views.draw import svg
from tests.py.conftest import Ended
from tests.py.judging import Run

Perchctl = Callable[..., Ended]
Line = dict[str, Any]

FABRIC, OTHER = "0123456789ab", "ba9876543210"


def terms(definition: str, scope: str = "hardware", more: str = "connection=RC") -> list[str]:
    return [f"kind=latency definition={definition} scope={scope} tool=perch {more}"]


def figures(value: float = 2.0, **changed: Any) -> Line:
    """A latency test's part of a line."""
    return {
        "metric": "latency_us.p50", "unit": "us", "by_size": {"8": value, "64": value + 1},
        "terms": terms("half_round_trip"),
        "limits": {"8": {"min": None, "max": 5, "severity": "required"}}, "ceilings": {},
    } | changed  # fmt: skip


def rates(value: float = 90.0, **changed: Any) -> Line:
    return {
        "metric": "bandwidth.gbit_s", "unit": "Gb/s", "by_size": {"65536": value},
        "terms": ["kind=bandwidth definition=receiver_payload scope=hardware tool=perch"],
        "limits": {"65536": {"min": 80, "max": None, "severity": "required"}},
        "ceilings": {"65536": 97.5},
    } | changed  # fmt: skip


def line(number: int, tests: dict[str, Line] | None = None, **changed: Any) -> Line:
    """The line of the run of a day."""
    versions = {"engine": ["0.2"], "kernel": ["6.1"], "firmware": ["mlx5_0 28.39"]}
    return {
        "schema": "perch.index/2", "run": f"run-{number}", "folder": f"run-{number}",
        "created": f"2026-01-{number:02}T12:00:00Z", "suite": "full", "limits": "roce",
        "fabric": FABRIC, "scope": "hardware", "verdict": "PASS", "planned": 4, "measured": 4,
        "digest": "0" * 64, "accepted": None, "label": None, "forced": None,
        "medians": {"send-lat": figures(2 + number / 100), "write-bw": rates()}
        if tests is None else tests,
        "versions": versions,
    } | changed  # fmt: skip


def versions(**changed: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = line(1)["versions"]
    return found | changed


def three() -> list[Line]:
    """Three runs; the second one is accepted, the third has new firmware."""
    new = versions(firmware=["mlx5_0 28.41"])
    accepted = "2026-01-02T13:00:00Z"
    return [line(1), line(2, accepted=accepted, label="ticket 7"), line(3, versions=new)]


def built(lines: list[Line]) -> trend.Trend:
    return trend.build(msgspec.convert(lines, list[IndexLine]))


def drawn(lines: list[Line]) -> list[Chart]:
    return list(trend_charts.charts(built(lines)))


def roles(chart: Chart, *names: str) -> list[dict[str, Any]]:
    return [one for one in chart.values if one["role"] in names]


@pytest.fixture
def runs(tmp_path: Path) -> Callable[[list[Line]], Path]:
    """Writes the lines into an index: `runs(lines)` is its folder."""

    def write(lines: list[Line]) -> Path:
        text = "".join(json.dumps(one) + "\n" for one in lines)
        (tmp_path / "index.jsonl").write_text(text)
        return tmp_path

    return write


Runs = Callable[[list[Line]], Path]


# ---- what is drawn -------------------------------------------------------------------------------


def test_three_runs_are_one_page(runs: Runs, perchctl: Perchctl) -> None:
    folder = runs(three())
    ended = perchctl("trend", folder)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout == f"{folder}/trend.html: trend of 3 runs of fabric {FABRIC}\n"
    page = (folder / "trend.html").read_text()
    assert "<title>Trend: suite full, limits roce</title>" in page
    assert page.count("<svg") == 2
    assert "<script" not in page
    for said in ("mlx5_0 28.39 to mlx5_0 28.41", "ticket 7", "at most 5 µs", "at least 80 Gb/s"):
        assert said in page
    assert sorted(one.name for one in folder.iterdir()) == ["index.jsonl", "trend.html"]


def test_every_mark_says_its_value_on_hover() -> None:
    latency, bandwidth = map(svg, drawn(three()))
    assert "<title>send-lat, 8 B: 2.01 µs, run run-1, PASS, hardware</title>" in latency
    assert "<title>send-lat, 8 B: 2.02 µs, run run-2, PASS, hardware, accepted</title>" in latency
    assert "<title>limit: at most 5 µs</title>" in latency
    assert "<title>ceiling of the link: 97.5 Gb/s</title>" in bandwidth
    assert "<title>change 1: firmware: mlx5_0 28.39 to mlx5_0 28.41</title>" in bandwidth
    assert "<title>x:" not in latency + bandwidth


def test_a_change_stands_before_the_run_that_shows_it() -> None:
    (change,) = roles(drawn(three())[0], "change")
    assert change["x"] == 2.5
    (accepted,) = roles(drawn(three())[0], "accepted")
    assert accepted["x"] == 2


def test_an_unknown_version_is_no_change() -> None:
    unknown = line(2, versions={"engine": [], "kernel": [], "firmware": []})
    assert built([line(1), unknown, line(3)]).changes == []
    new = line(3, versions=versions(kernel=["6.9"]))
    (change,) = built([line(1), unknown, new]).changes
    assert (change.order, change.what) == (3, ["kernel: 6.1 to 6.9"])


def test_runs_of_alike_hardware_are_one_line() -> None:
    assert len({one["part"] for one in roles(drawn(three())[0], "solid")}) == 1


@pytest.mark.parametrize("scope", ["software", "simulated", "imported"])
def test_other_scopes_are_hollow_and_never_joined_with_hardware(scope: str) -> None:
    foreign = line(2, {"send-lat": figures(terms=terms("half_round_trip", scope))}, scope=scope)
    lat = {"send-lat": figures()}
    chart, *_ = drawn([line(1, lat), foreign, line(3, lat)])
    marks = roles(chart, "solid", "hollow")
    assert [one["role"] for one in marks] == ["solid", "hollow", "solid"]
    assert len({one["part"] for one in marks}) == 3
    assert f"Hollow marks are no hardware: {scope}." in chart.caption


def test_a_line_without_terms_has_its_runs_scope() -> None:
    chart, *_ = drawn([line(1, {"send-lat": figures(terms=[])}, scope="imported")])
    assert roles(chart, "hollow")
    assert not roles(chart, "solid")


def test_a_run_that_lacks_the_figure_breaks_the_line() -> None:
    lines = [line(1), line(2, {"write-bw": rates()}), line(3)]
    latency, bandwidth = drawn(lines)
    assert len({one["part"] for one in roles(latency, "solid")}) == 2
    assert len({one["part"] for one in roles(bandwidth, "solid")}) == 1
    assert "A line breaks" in latency.caption


def test_a_limit_that_changed_is_drawn_as_it_was() -> None:
    lines = [line(1), line(2), line(3)]
    lines[2]["medians"]["send-lat"]["limits"]["8"]["max"] = 4
    limits = roles(drawn(lines)[0], "limit")
    assert [(one["x"], one["x2"], one["v"]) for one in limits] == [(0.5, 2.5, 5), (2.5, 3.5, 4)]


def test_a_far_limit_is_named_and_does_not_flatten_the_line() -> None:
    far = {"8": {"min": None, "max": 2000, "severity": "advisory"}}
    chart, *_ = drawn([line(n, {"send-lat": figures(limits=far)}) for n in (1, 2)])
    assert not roles(chart, "limit")
    (name,) = roles(chart, "beyond")
    assert name["text"] == "limit: at most 2,000 µs, above this chart"
    assert max(one["v"] for one in roles(chart, "frame")) < 3


def test_at_most_six_lines_are_in_a_chart() -> None:
    tests = {f"lat-{number}": figures(1 + number) for number in range(8)}
    charts = drawn([line(1, tests), line(2, tests)])
    assert [len({one["series"] for one in roles(chart, "solid")}) for chart in charts] == [6, 2]
    assert charts[1].title.endswith("(2 of 2)")
    for chart in charts:
        heights = sorted(one["y"] for one in roles(chart, "name"))
        assert all(b - a >= 13 for a, b in pairwise(heights))
        assert heights[-1] <= trend_charts.HEIGHT


def test_changes_are_against_the_accepted_run() -> None:
    lines = three()
    lines[2]["medians"]["send-lat"] = figures(4.04)
    row = trend.figures_table(built(lines)).rows[0]
    assert row[0] == "send-lat"
    assert "2.02 µs" in row
    assert "4.04 µs" in row
    assert "+100 %" in row


# ---- bad input -----------------------------------------------------------------------------------


def test_one_run_is_shown_and_is_no_trend(runs: Runs, perchctl: Perchctl) -> None:
    folder = runs([line(1)])
    ended = perchctl("trend", folder)
    assert ended.code == 0
    assert ended.stderr == (
        "perchctl trend: only one run of this fabric has medians, so there is no trend yet\n"
    )
    page = (folder / "trend.html").read_text()
    assert "only one run" in page
    assert "2.01 µs" in page


def test_other_definitions_are_drawn_apart(runs: Runs, perchctl: Perchctl) -> None:
    completion = {"send-lat": figures(1, terms=terms("completion"))}
    lines = [line(1, {"send-lat": figures()}), line(2, completion)]
    folder = runs(lines)
    ended = perchctl("trend", folder)
    assert ended.code == 0
    assert "send-lat: definitions differ between runs" in ended.stderr
    assert "definitions differ" in (folder / "trend.html").read_text()
    half, local = drawn(lines)
    assert [len(roles(chart, "solid")) for chart in (half, local)] == [1, 1]
    assert "half of a round trip" in half.title
    assert "from posting to local completion" in local.title


def test_other_terms_break_the_line_with_a_note(runs: Runs, perchctl: Perchctl) -> None:
    other = figures(terms=terms("half_round_trip", more="connection=UD"))
    lines = [line(1, {"send-lat": figures()}), line(2, {"send-lat": other})]
    ended = perchctl("trend", runs(lines))
    assert "run run-2: measured otherwise than before (connection: RC and UD)" in ended.stderr
    (chart,) = drawn(lines)
    assert len({one["part"] for one in roles(chart, "solid")}) == 2


def test_a_damaged_index_shows_what_it_can(runs: Runs, perchctl: Perchctl) -> None:
    folder = runs(three())
    bad = [
        "half a li",
        '{"schema": "perch.index/1", "run": "older", "verdict": "PASS"}',
        json.dumps(line(4) | {"medians": [1]}),
        json.dumps(line(3)),
        "\udcff",
    ]
    with (folder / "index.jsonl").open("ab") as file:
        file.write("\n".join(bad).encode(errors="surrogateescape") + b"\n")
    ended = perchctl("trend", folder)
    assert ended.code == 1
    said = ended.stderr.splitlines()
    assert [one.split(": ")[1].split(", ")[1] for one in said] == [f"line {n}" for n in range(4, 9)]
    assert "listed by Perch 0.1" in said[1]
    assert said[2].endswith(
        "not a valid perch.index/2 line, left out (medians: expected object, got list)"
    )
    assert "run 'run-3' appears twice" in said[3]
    page = (folder / "trend.html").read_text()
    assert "2.03 µs" in page
    assert "line 4: not a line of a run" in page


@pytest.mark.parametrize(
    ("lines", "words", "code", "said"),
    [
        ([], [], 3, "no run with medians is listed"),
        ([line(1, {})], [], 3, "no run with medians is listed"),
        ([line(1, fabric=None)], [], 3, "no run with medians is listed"),
        ([line(1)], ["--fabric", FABRIC[:-1]], 2, f"did you mean '{FABRIC}'?"),
        ([line(1)], ["--output", "trend.txt"], 2, "must end in .html"),
        ([line(1)], ["--output", "/no/such/folder/trend.html"], 6,
         "/no/such/folder/trend.html: No such file or directory"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_one_message(
    runs: Runs, perchctl: Perchctl, lines: list[Line], words: list[str], code: int, said: str
) -> None:
    folder = runs(lines)
    ended = perchctl("trend", *words, folder)
    assert ended.code == code
    assert said in ended.stderr.splitlines()[-1]
    assert "internal error" not in ended.stderr
    assert not (folder / "trend.html").exists()


def test_an_index_without_a_readable_line_names_its_lines(
    tmp_path: Path, perchctl: Perchctl
) -> None:
    (tmp_path / "index.jsonl").write_bytes(b"half a li\n\xff\n")
    ended = perchctl("trend", tmp_path)
    assert ended.code == 3
    *lines, last = ended.stderr.splitlines()
    assert [one.rpartition(", line ")[2][:2] for one in lines] == ["1:", "2:"]
    assert "index.jsonl: no run with medians is listed; judge a run" in last


def test_no_index_is_a_message(tmp_path: Path, perchctl: Perchctl) -> None:
    ended = perchctl("trend", tmp_path)
    assert ended.code == 3
    assert "index.jsonl: no such list of runs; " in ended.stderr
    (tmp_path / "index.jsonl").mkdir()
    assert perchctl("trend", tmp_path).code == 6


def test_a_fabric_can_be_chosen(runs: Runs, perchctl: Perchctl, tmp_path: Path) -> None:
    folder = runs([line(1, fabric=OTHER, suite="quick"), line(2), line(3)])
    out = tmp_path / "other.html"
    ended = perchctl("trend", "--fabric", OTHER, "--output", out, folder)
    assert ended.stdout == f"{out}: trend of 1 run of fabric {OTHER}\n"
    assert "suite quick" in out.read_text()
    perchctl("trend", folder)
    assert f"perchctl trend --fabric {OTHER}" in (folder / "trend.html").read_text()


def test_many_runs_draw_the_latest() -> None:
    lines = [
        line(1, run=f"r{n}", created=f"20{n // 12:02}-{n % 12 + 1:02}-01T00:00:00Z")
        for n in range(100)
    ]
    found = built(lines)
    assert (len(found.runs), found.left_out) == (trend.RUNS_MAX, 100 - trend.RUNS_MAX)
    assert found.runs[-1].run == "r99"
    assert len(roles(drawn(lines)[0], "tick")) <= trend_charts.TICKS_MAX


def test_text_from_outside_stays_text(runs: Runs, perchctl: Perchctl) -> None:
    odd = '<b onload=x>"[a](javascript:b)|'
    lines = [
        line(1, {odd: figures()}),
        line(
            2,
            {odd: figures()},
            versions=versions(kernel=[odd]),
            label=odd,
            accepted="2026-01-02T13:00:00Z",
        ),
    ]
    folder = runs(lines)
    assert perchctl("trend", folder).code == 0
    page = (folder / "trend.html").read_text()
    assert "2.00 µs" in page
    assert "<b onload" not in page
    assert 'href="javascript' not in page


def test_without_pandoc_the_text_remains(
    runs: Runs, perchctl: Perchctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = runs(three())
    monkeypatch.setenv("PATH", "")
    ended = perchctl("trend", folder)
    assert ended.code == 3
    assert "pandoc is not installed" in ended.stderr
    assert "mlx5_0 28.41" in (folder / "trend.md").read_text()
    assert not (folder / "trend.html").exists()


# ---- an index as judged runs write it ------------------------------------------------------------


def test_judged_runs_have_a_trend(
    run_copy: Callable[[str], Path], tmp_path: Path, perchctl: Perchctl
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    shutil.move(run_copy("loopback"), folder / "one")
    Run(folder / "one").judge()
    perchctl("accept", folder / "one")
    assert perchctl("trend", folder).code == 0
    page = (folder / "trend.html").read_text()
    assert "tcp-latency" in page
    assert "Hollow marks are no hardware: software." in page
    (one,), faults = read(folder / "index.jsonl")
    assert faults == []
    assert one.accepted is not None
